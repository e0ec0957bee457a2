//! How values of the command line are read, each with words about what to type instead; those that bodies have, too, are in
//! `selling`.

use std::net::SocketAddr;

use clap::Arg;

pub(crate) use farebox_door::network;

pub(crate) use farebox_selling::value::{customer_id, key_id, scope};

/// What a body calls null, people type as `none`.
pub(crate) fn none_for_null(arg: Arg) -> Arg {
    match arg.get_help().map(ToString::to_string) {
        Some(help) if help.contains("null") => arg.help(help.replace("null", "`none`")),
        _ => arg,
    }
}

/// What is required of one is in the rows of a document of many.
pub(crate) fn unless_from(of_one: Arg) -> Arg {
    of_one.required(false).required_unless_present("from")
}

/// A provider and its name for a model.
pub(crate) fn target(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(text.to_owned()),
        _ => {
            Err("write a provider and its name for the model, with a slash between them".to_owned())
        }
    }
}

pub(crate) fn whole_number(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| "write a whole number, like 100".to_owned())
}

/// A size of the ledger's log: a whole number of MiB or GiB. A log of up to 64 MiB is ordinary.
pub(crate) fn log_size(text: &str) -> Result<u64, String> {
    let advice = || "write a size of at least 64MiB, as in 512MiB or 4GiB".to_owned();
    let (number, shift) = match (text.strip_suffix("MiB"), text.strip_suffix("GiB")) {
        (Some(number), _) => (number, 20),
        (None, Some(number)) => (number, 30),
        (None, None) => return Err(advice()),
    };
    let number: u64 = number.trim_end().parse().map_err(|_| advice())?;
    let bytes = number.checked_mul(1 << shift);
    bytes
        .filter(|bytes| *bytes >= farebox_ledger::LOG_LOUD)
        .ok_or_else(advice)
}

pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "write an IP address and a port, as in 127.0.0.1:8080 or [::1]:8080".to_owned()
    })
}

/// The origin of a web page as browsers send it: scheme, host and port without a path.
pub(crate) fn origin(text: &str) -> Result<String, String> {
    let host = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let bare = |host: &str| {
        !host.is_empty()
            && host
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte))
    };
    if text == "*" || host.is_some_and(bare) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("write an origin the way browsers do, as in https://app.example.com, without a path; or *".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_log_have_a_unit_and_are_not_below_what_is_ordinary() {
        assert_eq!(log_size("64MiB"), Ok(64 << 20));
        assert_eq!(log_size("4 GiB"), Ok(4 << 30));
        for wrong in [
            "",
            "100",
            "63MiB",
            "0GiB",
            "1.5GiB",
            "99999999999999999GiB",
            "1GB",
        ] {
            assert!(
                log_size(wrong).unwrap_err().contains("as in 512MiB"),
                "{wrong}"
            );
        }
    }
}
