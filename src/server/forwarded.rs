//! The origin of a request that came through a trusted proxy.
//!
//! Forwarded headers count only from trusted addresses, because any other client could forge them. The result goes into the log, and
//! bounds the requests of one client; no decision about money or keys depends on it.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use salvo::http::HeaderMap;

use crate::proxy::Origin;

/// The origin of a request that arrived from `peer`.
pub(super) fn origin(
    peer: Option<IpAddr>,
    secure: bool,
    headers: &HeaderMap,
    trusted: &[IpNet],
) -> Origin {
    let peer = peer.map(|address| address.to_canonical());
    let is_trusted = |address: &IpAddr| trusted.iter().any(|net| net.contains(address));
    if !peer.as_ref().is_some_and(is_trusted) {
        return Origin {
            client: peer,
            secure,
        };
    }
    // The nearest proxy wrote the last entry, so the origin is the first entry from the end that is not a trusted proxy.
    let hops: Vec<IpAddr> = values(headers, "x-forwarded-for")
        .map_while(address)
        .collect();
    let client = hops
        .iter()
        .find(|hop| !is_trusted(hop))
        .or(hops.last())
        .copied();
    let scheme = values(headers, "x-forwarded-proto").next();
    Origin {
        client: client.or(peer),
        secure: scheme.map_or(secure, |scheme| scheme.eq_ignore_ascii_case("https")),
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

    fn found(peer: &str, forwarded: &[&str], proto: &str) -> (String, bool) {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        if !proto.is_empty() {
            headers.insert("x-forwarded-proto", proto.parse().unwrap());
        }
        let trusted = ["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
        let origin = origin(peer.parse().ok(), false, &headers, &trusted);
        (origin.client.unwrap().to_string(), origin.secure)
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        assert_eq!(
            found("192.0.2.9", &["198.51.100.1"], "https"),
            ("192.0.2.9".to_owned(), false)
        );
        assert_eq!(
            found("10.0.0.1", &["198.51.100.1"], "https"),
            ("198.51.100.1".to_owned(), true)
        );
        assert_eq!(
            found("::1", &["198.51.100.1:4711"], "http"),
            ("198.51.100.1".to_owned(), false)
        );
        assert_eq!(
            found("::ffff:10.0.0.1", &["[2001:db8::1]:443"], "https"),
            ("2001:db8::1".to_owned(), true)
        );
    }

    #[test]
    fn what_a_client_wrote_in_front_does_not_count() {
        assert_eq!(
            found("10.0.0.1", &["1.1.1.1, 198.51.100.1, 10.0.0.7"], "").0,
            "198.51.100.1"
        );
        assert_eq!(
            found("10.0.0.1", &["1.1.1.1", "198.51.100.1"], "").0,
            "198.51.100.1"
        );
        assert_eq!(found("10.0.0.1", &["1.1.1.1, nonsense"], "").0, "10.0.0.1");
        assert_eq!(
            found("10.0.0.1", &["10.0.0.9, 10.0.0.8"], "").0,
            "10.0.0.9",
            "all of them are ours"
        );
        assert_eq!(found("10.0.0.1", &[], "").0, "10.0.0.1");
    }
}
