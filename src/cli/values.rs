//! How values of the command line are read, each with words about what to type instead.

use std::net::SocketAddr;

use farebox_ledger::{Amount, CustomerId, KeyId, Scope, search};

/// A value, or an explicit `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting<T>(pub Option<T>);

/// A whole number above 0, or `none`.
pub(super) fn number_or_none(text: &str) -> Result<Setting<u32>, String> {
    if text == "none" {
        return Ok(Setting(None));
    }
    match text.parse() {
        Ok(number) if number > 0 => Ok(Setting(Some(number))),
        _ => Err("write a whole number above 0, or none; to stop a key, block it".to_owned()),
    }
}

/// A key's id. Of a secret that was pasted instead, the id in it: a refusal would print the secret.
pub(super) fn key_id(text: &str) -> Result<KeyId, String> {
    search::key_id(text).map_err(|error| error.to_string())
}

/// A customer's id.
pub(super) fn customer_id(text: &str) -> Result<CustomerId, String> {
    text.parse::<CustomerId>()
        .map_err(|error| error.to_string())
}

/// A key's id, or a customer's.
pub(super) fn scope(text: &str) -> Result<Scope, String> {
    if text.starts_with("c_") {
        customer_id(text).map(Scope::Customer)
    } else {
        key_id(text).map(Scope::Key)
    }
}

/// A text, or `none`.
pub(super) fn setting_text(text: &str) -> Result<Setting<String>, String> {
    Ok(Setting((text != "none").then(|| text.to_owned())))
}

/// A slug that is not empty.
pub(super) fn slug(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("write slugs with commas between them".to_owned())
    } else {
        Ok(text.trim().to_owned())
    }
}

/// A provider and its name for a model.
pub(super) fn target(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(text.to_owned()),
        _ => {
            Err("write a provider and its name for the model, with a slash between them".to_owned())
        }
    }
}

/// A label that is not empty.
pub(super) fn label(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("the label is empty; write who has this key".to_owned())
    } else {
        one_line(text)
    }
}

/// A text without line ends and other control characters, which no table shows.
pub(super) fn one_line(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        return Err("write one line, without control characters".to_owned());
    }
    Ok(text.to_owned())
}

pub(super) fn whole_number(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| "write a whole number, like 100".to_owned())
}

/// An amount that is paid; nothing is no payment.
pub(super) fn payment(text: &str) -> Result<Amount, String> {
    match Amount::parse_payment(text) {
        Ok(Amount::ZERO) => Err("type more than zero, like 12.50".to_owned()),
        read => read.map_err(|error| error.to_string()),
    }
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "write an IP address and a port, as in 127.0.0.1:8080 or [::1]:8080".to_owned()
    })
}

/// A network in CIDR form, or one address.
pub(super) fn network(text: &str) -> Result<ipnet::IpNet, String> {
    let one = text.parse::<std::net::IpAddr>().map(ipnet::IpNet::from);
    one.or_else(|_| text.parse())
        .map_err(|_| "write a network as 10.0.0.0/8, or one address".to_owned())
}

/// The origin of a web page as browsers send it: scheme, host and port without a path.
pub(super) fn origin(text: &str) -> Result<String, String> {
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

/// A correction: an amount with a sign; without a sign it is a credit.
pub(super) fn correction(text: &str) -> Result<Amount, String> {
    let amount = Amount::parse_adjustment(text).map_err(|error| error.to_string())?;
    if amount == Amount::ZERO {
        Err("a correction of zero changes nothing".to_owned())
    } else {
        Ok(amount)
    }
}
