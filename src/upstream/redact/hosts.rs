//! Takes out the names and addresses of machines: the provider's own, private addresses, and names of internal resolvers.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::find::{replaced, token_len};

/// Ends of names that only an internal resolver knows, and of the addresses of Google's service accounts, which begin with the project.
const INTERNAL: [&str; 10] = [
    ".internal",
    ".local",
    ".localdomain",
    ".lan",
    ".corp",
    ".intra",
    ".intranet",
    ".svc",
    ".home.arpa",
    ".gserviceaccount.com",
];
/// What a program's own members begin with: `this.internal` is code.
const CODE: [&str; 2] = ["this.", "self."];

/// The text without them. The domains are in lower case.
pub(super) fn without_hosts(text: &str, domains: &[String]) -> String {
    without_long_addresses(&without_names(text, domains))
}

/// Names and IPv4 addresses, with their ports.
fn without_names(text: &str, domains: &[String]) -> String {
    let part = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    replaced(text, |_, lower, from| {
        let at = from + lower.get(from..)?.find(part)?;
        let token = &lower[at..at + token_len(&lower[at..], part)];
        let name = token.trim_end_matches(['.', '-']);
        let (before, behind) = (&lower[..at], &lower[at + name.len()..]);
        let port = behind.strip_prefix(':').map_or(0, |port| {
            let digits = token_len(port, |c| c.is_ascii_digit());
            if digits > 0 { 1 + digits } else { 0 }
        });
        let own = domains.iter().any(|domain| {
            let rest = name.strip_suffix(domain.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        });
        let address = !before.trim_end().ends_with("version") && is_private_address(name);
        let internal = is_internal_name(name) && !is_member(name, before, behind)
            || name == "localhost" && port > 0;
        if own || address || internal {
            Some((at, at + name.len() + port, Some("[host]")))
        } else {
            Some((at, at + token.len(), None))
        }
    })
}

/// `10.1.2.3` and, as machines of a cloud are named, `ip-10-1-2-3`.
fn is_private_address(name: &str) -> bool {
    let named = name.strip_prefix("ip-").map(|rest| rest.replace('-', "."));
    let address: Result<Ipv4Addr, _> = named.as_deref().unwrap_or(name).parse();
    address.is_ok_and(|address| {
        let [first, second, ..] = address.octets();
        let shared = first == 100 && (64..128).contains(&second);
        address.is_private() || address.is_loopback() || address.is_link_local() || shared
    })
}

fn is_internal_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && INTERNAL.iter().any(|end| name.ends_with(end))
}

/// Whether a program's text names a member so: `this.internal`, `my_pool.local`, `pool.local(`, `pool.local = 3`.
fn is_member(name: &str, before: &str, behind: &str) -> bool {
    CODE.iter().any(|code| name.starts_with(code))
        || before.ends_with('_')
        || behind.starts_with(['(', '[', '_'])
        || behind.trim_start().starts_with('=')
}

/// IPv6 addresses. `::1` says nothing about anybody, and is code in some languages.
fn without_long_addresses(text: &str) -> String {
    let part = |c: char| c.is_ascii_alphanumeric() || ":.".contains(c);
    replaced(text, |_, lower, from| {
        let at = from + lower.get(from..)?.find(part)?;
        let token = &lower[at..at + token_len(&lower[at..], part)];
        let name = token.strip_suffix(['.', ':']).unwrap_or(token);
        let private = name.parse().is_ok_and(|address: Ipv6Addr| {
            address.is_unique_local() || address.is_unicast_link_local()
        });
        let end = if private { name } else { token };
        Some((at, at + end.len(), private.then_some("[host]")))
    })
}

/// The host of a URL, without user, port and path.
pub(super) fn host_of(url: &str) -> &str {
    let behind_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = behind_scheme
        .split(['/', '?', '#'])
        .next()
        .unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    match host
        .strip_prefix('[')
        .and_then(|inner| inner.split_once(']'))
    {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or_default(),
    }
}

/// The domain that was registered: the last two labels of a host name, or three below `co.uk` and its like. An IP address as it is.
pub(super) fn domain_of(host: &str) -> &str {
    if host.parse::<std::net::IpAddr>().is_ok() {
        return host;
    }
    let labels: Vec<&str> = host.rsplit('.').take(3).collect();
    let kept = match labels[..] {
        [country, kind, _] if country.len() == 2 && kind.len() <= 3 => 3,
        _ => 2,
    };
    let dots = host.rmatch_indices('.').map(|(at, _)| at + 1);
    &host[dots.take(kept).nth(kept - 1).unwrap_or(0)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn becomes(text: &str, expected: &str) {
        assert_eq!(without_hosts(text, &["acme.example".to_owned()]), expected);
    }

    #[test]
    fn internal_names_and_addresses_go() {
        becomes(
            "dial tcp 10.1.2.3:8443: refused by 192.168.0.9, addr:172.16.0.1, fd00::12 or 8.8.8.8.",
            "dial tcp [host]: refused by [host], addr:[host], [host] or 8.8.8.8.",
        );
        becomes(
            "http://gpu-7.svc.cluster.local:8000/v1, localhost:11434, ip-10-0-0-1 and ip-10-0-0-1.ec2.internal.",
            "http://[host]/v1, [host], [host] and [host].",
        );
        becomes(
            "::ffff:10.0.0.7 and svc@my-shop.iam.gserviceaccount.com",
            "::ffff:[host] and svc@[host]",
        );
        becomes(
            "gpu-3.ACME.example, notacme.example",
            "[host], notacme.example",
        );
    }

    #[test]
    fn code_versions_and_paths_of_fields_stay() {
        for text in [
            "messages.3.content.0: got list[::1], std::thread::local and a.local()",
            "this.internal, my_pool.local and pool.internal = 3, settings.local.json, .env.local",
            "version 10.2.3.4 of v10.0.0.1; 1.5.2; 12:30:45; localhost; 3.14. ::",
        ] {
            becomes(text, text);
        }
    }

    #[test]
    fn hosts_are_read_from_urls() {
        assert_eq!(host_of("https://user@a.b.example:8443/v1"), "a.b.example");
        assert_eq!(host_of("http://[::1]:80/v1"), "::1");
        assert_eq!(domain_of("a.b.example"), "b.example");
        assert_eq!(domain_of("api.b.co.uk"), "b.co.uk");
        assert_eq!(domain_of("127.0.0.1"), "127.0.0.1");
        assert_eq!(domain_of("localhost"), "localhost");
    }
}
