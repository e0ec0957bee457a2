//! Reads from the admin listener of the gateway that runs on this machine, with its token if this user may read that.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::args::Args;
use super::http;

/// The part of `/status` with the address for customers.
#[derive(Deserialize)]
struct AddressStatus {
    public_url: String,
}

/// The base of printed URLs: `--public-url`, else the running gateway's own, else the address of these settings.
pub(super) async fn public_url(args: &Args) -> String {
    if let Some(url) = &args.public_url {
        return url.clone();
    }
    match status::<AddressStatus>(args).await {
        Ok(running) => running.public_url,
        Err(_) => format!(
            "{}://{}",
            if args.tls_cert.is_some() {
                "https"
            } else {
                "http"
            },
            reachable(args.listen)
        ),
    }
}

/// A part of the running gateway's `/status`, or why it cannot be read.
pub(super) async fn status<T: DeserializeOwned>(args: &Args) -> Result<T, String> {
    match read(args, "/status").await? {
        Some(status) => Ok(status),
        None => Err("it has no /status".to_owned()),
    }
}

/// A document of the running gateway's admin listener; `None` if it has none there.
pub(super) async fn read<T: DeserializeOwned>(
    args: &Args,
    path: &str,
) -> Result<Option<T>, String> {
    let address = reachable(args.admin_listen);
    let token = match &args.admin_token_file {
        Some(file) => Some(
            std::fs::read_to_string(file)
                .map_err(|error| format!("{}: {error}", file.display()))?,
        ),
        // Nowhere else is it asked for, or safe on its way.
        None if address.ip().is_loopback() => args.ledger.admin_token(args.state.as_deref()),
        None => None,
    };
    let asked = http::get(
        address,
        path,
        token.as_deref().map(str::trim),
        args.admin_tls_cert.as_deref(),
    )
    .await;
    let answer = asked.map_err(|error| format!("no gateway answers at {address} ({error})"))?;
    match answer.status {
        200 => serde_json::from_str(&answer.body)
            .map(Some)
            .map_err(|error| {
                format!("{address} is not this gateway, or is another version of it: {error}")
            }),
        404 => Ok(None),
        401 | 403 => Err(format!(
            "the gateway at {address} wants its own token: set its --ledger, its --state or its --admin-token-file, and run this as its user"
        )),
        status => Err(format!("{address} answered {status}")),
    }
}

/// Why the gateway showed less than everything, and what to do about it.
pub(super) fn left_out(args: &Args) -> String {
    let file = args.ledger.admin_token_file(args.state.as_deref());
    let remedy = match file {
        Some(file) => format!(
            "the gateway's token is in {}, which only its user may read",
            file.display()
        ),
        None => "set --state, beside which the gateway writes its token, or --admin-token-file"
            .to_owned(),
    };
    format!("key ids and webhook paths are left out: {remedy}")
}

/// A wildcard address is reached on loopback.
pub(super) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}
