//! Who sent a request, also through a trusted proxy.
//!
//! Forwarded headers count only from trusted addresses, because any other client could forge them. The result goes into the log, and
//! bounds the requests of one client; no decision about money or keys depends on it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;
use salvo::http::HeaderMap;
use salvo::http::uri::Scheme;
use salvo::prelude::Request;

/// Who sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestSender {
    /// Its address; `None` where a trusted proxy names none.
    pub client: Option<IpAddr>,
    /// Whether nobody could read it on its way to the first machine that is trusted.
    pub secure: bool,
    /// Whether a trusted proxy passed it on.
    pub forwarded: bool,
}

/// Headers that a proxy adds.
const FORWARDED: [&str; 4] = [
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "forwarded",
];

impl RequestSender {
    /// The sender of a request, where these proxies are trusted.
    #[must_use]
    pub fn of(req: &Request, trusted: &[IpNet]) -> Self {
        let secure = req.scheme() == &Scheme::HTTPS;
        sender(req.remote_addr().ip(), secure, req.headers(), trusted)
    }

    /// The address as one peer.
    pub fn peer(&self) -> Option<IpAddr> {
        self.client.map(peer)
    }
}

/// What counts as one peer: an IPv6 host usually has a whole /64.
pub fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & (u128::MAX << 64);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        v4 => v4,
    }
}

/// Reads a network in CIDR form, or one address.
///
/// # Errors
/// What to write instead.
pub fn network(text: &str) -> Result<IpNet, String> {
    let one = text.parse::<IpAddr>().map(IpNet::from);
    one.or_else(|_| text.parse())
        .map_err(|_| "write a network as 10.0.0.0/8, or one address".to_owned())
}

fn sender(
    peer: Option<IpAddr>,
    secure: bool,
    headers: &HeaderMap,
    trusted: &[IpNet],
) -> RequestSender {
    let peer = peer.map(|address| address.to_canonical());
    let is_trusted = |address: &IpAddr| trusted.iter().any(|net| net.contains(address));
    let is_proxy = peer.as_ref().is_some_and(is_trusted);
    // What a trusted machine asks for itself has none of a proxy's headers.
    if !is_proxy || !FORWARDED.iter().any(|name| headers.contains_key(*name)) {
        return RequestSender {
            client: peer.filter(|_| !is_proxy),
            secure,
            forwarded: false,
        };
    }
    // The nearest proxy wrote the last entry, so the origin is the first entry from the end that is not a trusted proxy.
    let hops: Vec<IpAddr> = values(headers, "x-forwarded-for")
        // An entry that is no address ends the chain: nobody can say who wrote what stands before it.
        .map_while(address)
        .collect();
    let client = hops
        .iter()
        .find(|hop| !is_trusted(hop))
        .or(hops.last())
        .copied();
    let scheme = values(headers, "x-forwarded-proto").next();
    RequestSender {
        client,
        // Without the header nobody says that it was encrypted.
        secure: scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")),
        forwarded: true,
    }
}

/// The entries of a list header, the last one first.
fn values<'a>(headers: &'a HeaderMap, name: &'static str) -> impl Iterator<Item = &'a str> {
    let lines: Vec<&str> = headers
        .get_all(name)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    lines
        .into_iter()
        .rev()
        .flat_map(|line| line.rsplit(','))
        .map(str::trim)
}

/// An address with or without a port.
fn address(entry: &str) -> Option<IpAddr> {
    let bare = entry.trim_start_matches('[').trim_end_matches(']');
    let parsed = bare.parse().ok().or_else(|| {
        entry
            .parse::<SocketAddr>()
            .ok()
            .map(|with_port| with_port.ip())
    });
    parsed.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(peer: &str, forwarded: &[&str], proto: &str) -> (Option<String>, bool) {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        if !proto.is_empty() {
            headers.insert("x-forwarded-proto", proto.parse().unwrap());
        }
        let trusted = ["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
        let sender = sender(peer.parse().ok(), false, &headers, &trusted);
        let client = sender.client.map(|client| client.to_string());
        (client, sender.secure)
    }

    fn named(client: &str, secure: bool) -> (Option<String>, bool) {
        (Some(client.to_owned()), secure)
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        assert_eq!(
            found("192.0.2.9", &["198.51.100.1"], "https"),
            named("192.0.2.9", false)
        );
        assert_eq!(
            found("10.0.0.1", &["198.51.100.1"], "https"),
            named("198.51.100.1", true)
        );
        assert_eq!(
            found("::1", &["198.51.100.1:4711"], "http"),
            named("198.51.100.1", false)
        );
        assert_eq!(
            found("::ffff:10.0.0.1", &["[2001:db8::1]:443"], "https"),
            named("2001:db8::1", true)
        );
    }

    #[test]
    fn what_a_client_wrote_in_front_does_not_count() {
        for (forwarded, client) in [
            (&["1.1.1.1, 198.51.100.1, 10.0.0.7"][..], "198.51.100.1"),
            (&["1.1.1.1", "198.51.100.1"], "198.51.100.1"),
            // All of them are ours.
            (&["10.0.0.9, 10.0.0.8"], "10.0.0.9"),
        ] {
            assert_eq!(found("10.0.0.1", forwarded, ""), named(client, false));
        }
    }

    #[test]
    fn a_proxy_that_names_nobody_forwards_for_everybody() {
        assert_eq!(
            found("10.0.0.1", &["1.1.1.1, nonsense"], "https"),
            (None, true)
        );
        assert_eq!(found("10.0.0.1", &[], "https"), (None, true));
        assert_eq!(found("10.0.0.1", &[], ""), (None, false));
    }

    #[test]
    fn what_was_encrypted_behind_a_proxy_was_not_on_the_way_to_it() {
        let mut headers = HeaderMap::new();
        let trusted = ["10.0.0.0/8".parse().unwrap()];
        let peer = "10.0.0.1".parse().ok();
        let own = sender(peer, true, &headers, &trusted);
        assert!(own.secure && !own.forwarded, "it asks for itself");
        headers.insert("x-forwarded-for", "198.51.100.1".parse().unwrap());
        let forwarded = sender(peer, true, &headers, &trusted);
        assert!(!forwarded.secure && forwarded.forwarded);
    }
}
