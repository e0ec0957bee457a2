//! How values of the command line are read, each with words about what to type instead; those that bodies have, too, are in
//! `selling`.

use std::net::SocketAddr;

pub(super) use farebox::selling::values::{
    Setting, correction, currency, customer_id, gross, interval, key_id, label, number_or_none,
    one_line, payment, scope, setting_text, slug, tax,
};

/// A provider and its name for a model.
pub(super) fn target(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(text.to_owned()),
        _ => {
            Err("write a provider and its name for the model, with a slash between them".to_owned())
        }
    }
}

pub(super) fn whole_number(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| "write a whole number, like 100".to_owned())
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
