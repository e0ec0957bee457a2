//! Whether a web address may be given to a provider, by its text alone: nothing is resolved.
//!
//! A provider fetches the pictures that a request names, from inside its own network. An address that means this or a private
//! network there could be read through the model. Programs read odd spellings differently (octal numbers, a 32-bit number, wide
//! digits), so only the plain spelling of a public address is accepted.
//!
//! Rows of docs/interface.md: `picture_in_a_wrong_field`.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::borrow::Cow;

use crate::Content;

/// Last labels of names that only a private network resolves.
const PRIVATE_NAMES: [&str; 10] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "private",
    "lan",
    "home",
    "corp",
    "arpa",
];
/// IPv4 networks that are not the public internet, with the length of their prefix. Among them are the addresses at which clouds
/// serve credentials: 169.254.169.254, 100.100.100.200, 192.0.0.192 and 168.63.129.16.
const PRIVATE_NETWORKS: [([u8; 4], u32); 13] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

impl Content {
    /// Whether the provider would fetch something from an address in the request.
    pub fn names_addresses(&self) -> bool {
        self.pictures.iter().any(|picture| picture.bytes.is_none())
    }
}

/// Why an http or https address is refused; `None` for a public one.
pub fn refusal(url: &str) -> Option<&'static str> {
    let after_scheme = url.split_once("://").map(|(_, rest)| rest);
    let Some(rest) = after_scheme.filter(|rest| !rest.starts_with('/')) else {
        return Some("it has no host");
    };
    // Browsers read a backslash as a slash, and drop line breaks and tabs wherever they are.
    if url
        .bytes()
        .any(|byte| byte.is_ascii_control() || matches!(byte, b'\\' | b' '))
    {
        return Some("it has a backslash, a space or a control character in it");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Some("it has a user name in it");
    }
    let host = match authority.strip_prefix('[') {
        Some(_) => authority.split_inclusive(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let Some(host) = unescaped(host) else {
        return Some("its host cannot be read");
    };
    of_host(&host)
}

/// Why a host may not be named in an address; `None` for a public one.
pub fn of_host(host: &str) -> Option<&'static str> {
    if let Some(address) = host.strip_prefix('[') {
        let address = address.strip_suffix(']').unwrap_or_default();
        return match address.parse() {
            Ok(address) if is_public(address) => None,
            Ok(_) => Some("it is the address of a private network"),
            Err(_) => Some("its host cannot be read"),
        };
    }
    // All of these are read as dots.
    let host = host.replace(['\u{3002}', '\u{ff0e}', '\u{ff61}'], ".");
    let host = host.strip_suffix('.').unwrap_or(&host);
    let Some((before, last)) = host.rsplit_once('.') else {
        return Some("its host has no dot: only a private network knows it");
    };
    if before.split('.').any(str::is_empty) || last.is_empty() {
        return Some("its host cannot be read");
    }
    let is_name = last.bytes().all(|byte| byte.is_ascii_alphabetic())
        || last
            .get(..4)
            .is_some_and(|start| start.eq_ignore_ascii_case("xn--"));
    if is_name {
        let is_private = PRIVATE_NAMES
            .iter()
            .any(|name| last.eq_ignore_ascii_case(name));
        return is_private.then_some("its host is a name of a private network");
    }
    if !last.is_ascii() {
        return Some("its host ends with letters outside ASCII: write it as xn--…");
    }
    match host.parse() {
        Ok(address) if is_private(address) => Some("it is the address of a private network"),
        Ok(_) => None,
        Err(_) => Some("its host is no name, and no address of four plain decimal numbers"),
    }
}

/// Global unicast, without the networks that wrap an IPv4 address (6to4, Teredo).
fn is_public(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0x2001, 0, ..] | [0x2002, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

fn is_private(address: Ipv4Addr) -> bool {
    let bits = u32::from(address);
    PRIVATE_NETWORKS
        .iter()
        .any(|(network, length)| (bits ^ u32::from(Ipv4Addr::from(*network))) >> (32 - length) == 0)
}

/// A host with its percent escapes replaced; `None` if it then is no host.
fn unescaped(host: &str) -> Option<Cow<'_, str>> {
    if !host.contains('%') {
        return Some(Cow::Borrowed(host));
    }
    let mut bytes = Vec::with_capacity(host.len());
    let mut rest = host.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    let host = String::from_utf8(bytes).ok()?;
    let strange = |byte: u8| byte.is_ascii_control() || b" #%/:<>?@[\\]^|".contains(&byte);
    (!host.bytes().any(strange)).then_some(Cow::Owned(host))
}

/// Whether a text is a web address.
pub(crate) fn is_web(url: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        url.get(..scheme.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(scheme))
    })
}

#[cfg(test)]
mod tests {
    use super::refusal;

    #[test]
    fn every_spelling_of_a_private_address_is_refused() {
        for host in [
            "127.0.0.1",
            "127.1",
            "127.0.0.1.",
            "127.255.255.254",
            "2130706433",
            "017700000001",
            "0x7f000001",
            "0x7f.1",
            "127.0.0.0x1",
            "0177.0.0.1",
            "0177.0.0.01",
            "00127.0.0.1",
            "127.0.0.256",
            "0",
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "[::]",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b:1::1]",
            "[2002:7f00:1::]",
            "[2001:0:7f00:1::]",
            "[fc00::1]",
            "[fd00:ec2::254]",
            "[fe80::1]",
            "[fe80::1%25eth0]",
            "[fec0::1]",
            "[ff02::1]",
            "[::1",
            "localhost",
            "LOCALHOST",
            "localhost.",
            "a.localhost",
            "printer.local",
            "printer.LOCAL.",
            "metadata.google.internal",
            "host.docker.internal",
            "nas.lan",
            "router.home.arpa",
            "db",
            "db.",
            "127%2e0%2e0%2e1",
            "%31%32%37.0.0.1",
            "loc%61lhost",
            "127。0。0。1",
            "127．0．0．1",
            "１２７.0.0.1",
            "127.0.0.①",
            "①②⑦.⓪.⓪.①",
            "ⓛocalhost",
            "example.ⓛocal",
            "example.loc\u{ad}al",
            "пример.рф",
            "a..com",
            ".com",
            "",
            "..",
            "user@example.com",
            "example.com@127.0.0.1",
            "127.0.0.1\\@example.com",
            "example.com\t.local",
            "exam%2fple.com",
            "example.com%00.local",
            "example.com%40127.0.0.1",
        ] {
            for url in [
                format!("http://{host}/a.png"),
                format!("HTTPS://{host}:8080?x=.example.com"),
                format!("http://{host}#.example.com"),
                format!("http:{host}"),
                format!("http:///{host}"),
            ] {
                assert!(refusal(&url).is_some(), "{url:?}");
            }
        }
    }

    #[test]
    fn public_addresses_are_passed_on() {
        for url in [
            "https://example.com/a.png",
            "https://Example.COM:8443/a.png?b=@c#d@e",
            "http://a.b-c.example.co.uk./x",
            "https://bücher.example.de/x",
            "https://xn--e1afmkfd.xn--p1ai/x",
            "https://my_bucket.s3.amazonaws.com/a%20b.png",
            "https://8.8.8.8/x",
            "http://172.32.0.1/x",
            "https://[2606:4700::1111]:443/x",
            "https://local.example.com/127.0.0.1",
            "https://127.0.0.1.example.com/x",
            "https://internal.example/x",
        ] {
            assert_eq!(refusal(url), None, "{url:?}");
        }
    }
}
