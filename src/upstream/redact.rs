//! The only exit for text that an upstream wrote. Text for a customer, the log, `/live` or the dashboard first loses everything
//! that identifies the operator's account, is then shortened, and then loses characters that could forge a log line or reverse text
//! direction. The order matters: a secret that was cut in two is no longer found.
//!
//! Only this file creates a [`Redacted`], so the compiler ensures that no text takes another way. Clients match on the wording of a
//! 400, so everything else stays: field names, header names, the customer's own ids and links. The upstream's model name becomes
//! the public slug; keys, hosts, provider names, account and request ids become a word in brackets.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;
use farebox_ledger::text::is_unseen;
use farebox_protocol::{Family, UpstreamError};

use super::secret_forms::SecretForms;
use crate::config::{Endpoint, Route};

/// Redacted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<T = String>(T);

/// An upstream's error as a customer may read it. Outside this room an upstream's error exists only as this type.
pub type CustomerError = Redacted<UpstreamError>;

impl<T> Deref for Redacted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Display> fmt::Display for Redacted<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl Redacted {
    /// Prefixed with a word of our own.
    pub(super) fn labelled(&self, label: impl fmt::Display) -> Self {
        Self(format!("{label}: {}", self.0))
    }
}

/// What must not reach a customer.
#[derive(Default)]
struct Known<'a> {
    /// What customers call the model.
    slug: &'a str,
    /// What providers call it, with and without the vendor in front.
    models: Vec<&'a str>,
    /// Names of providers in the operator's file.
    providers: Vec<&'a str>,
    /// Hosts of base URLs, without port.
    hosts: Vec<&'a str>,
    /// Keys and header values, in every form in which a program writes them.
    secrets: Vec<String>,
}

impl<'a> Known<'a> {
    /// Everything that a route's targets could reveal.
    fn of(route: &'a Route) -> Self {
        let mut known = Self {
            slug: &route.slug,
            ..Self::default()
        };
        for target in &route.targets {
            let provider = &target.provider;
            known.models.push(&target.model);
            known.models.extend(
                target
                    .model
                    .rsplit('/')
                    .next()
                    .filter(|name| name.len() >= SHORTEST_NAME),
            );
            known.providers.push(&provider.name);
            if let Endpoint::Http(base) = &provider.endpoint {
                known.hosts.push(host_of(base));
            }
            known
                .secrets
                .extend(SecretForms::of(provider).iter().map(str::to_owned));
        }
        // A longer name may begin with a shorter one.
        known
            .models
            .sort_by_key(|name| std::cmp::Reverse(name.len()));
        known.models.dedup();
        known
            .secrets
            .sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        known
    }

    fn longest_secret(&self) -> usize {
        self.secrets.first().map_or(0, String::len)
    }
}

/// Prefixes of account-bound ids; customers' own ids begin differently.
const IDS: [&str; 8] = [
    "org-", "org_", "proj_", "proj-", "req_", "req-", "wrkspc_", "acct_",
];
/// Phrases that announce an id of any form.
const ID_PHRASES: [&str; 4] = ["request id", "request-id", "request_id", "requestid"];
/// Shorter model names also occur in ordinary words.
const SHORTEST_NAME: usize = 5;
const SHORTEST_ID: usize = 6;
/// Prefixes of keys that upstreams echo shortened: `sk-ab…yz`, `sk-ab***yz`.
const ECHOED: &str = "sk-";
/// Bytes of a text that are searched.
const WINDOW: usize = 32 << 10;
/// Characters of a message that a customer sees, and of a type, a code or a field's name.
const LONGEST_MESSAGE: usize = 4_000;
const LONGEST_WORD: usize = 200;
/// Characters that an operator sees.
const LONGEST_REASON: usize = 300;

/// The error as a customer may read it.
pub(super) fn for_customer(error: &UpstreamError, route: &Route) -> CustomerError {
    Redacted(error_for_customer(error, &Known::of(route)))
}

/// An event that its family does not have, as a customer may read it. It stays as long as it is.
#[must_use]
pub fn event(bytes: &Bytes, route: &Route) -> Bytes {
    let known = Known::of(route);
    let text = String::from_utf8_lossy(bytes);
    Bytes::from(names_out(without_secrets(&text, &known), &known))
}

/// A text without the secrets, for the operator's log: hosts and model names may stay.
#[must_use]
pub fn for_operator(text: &str, route: &Route) -> Redacted {
    Redacted(text_for_operator(text, &Known::of(route)))
}

/// The same for words of our own.
pub fn plain(text: &str) -> Redacted {
    Redacted(text_for_operator(text, &Known::default()))
}

/// An upstream's id of its answer, for the journal. Every answer has one, so a quick check comes first: an ordinary id contains
/// nothing that has to be redacted.
#[must_use]
pub fn answer_id(id: &str, secrets: &SecretForms) -> Redacted {
    let lower = clip(id, WINDOW).to_ascii_lowercase();
    if !lower.contains(ECHOED) && !secrets.stand_in(&lower) {
        return Redacted(printable(&shorten(id, LONGEST_WORD)));
    }
    let known = Known {
        secrets: secrets.iter().map(str::to_owned).collect(),
        ..Known::default()
    };
    Redacted(exit(id, &known, LONGEST_WORD, |text, _| text))
}

fn error_for_customer(error: &UpstreamError, known: &Known<'_>) -> UpstreamError {
    let word = |text: &Option<String>| {
        text.as_deref()
            .map(|text| exit(text, known, LONGEST_WORD, names_out))
    };
    UpstreamError {
        kind: word(&error.kind),
        code: word(&error.code),
        param: word(&error.param),
        message: exit(&error.message, known, LONGEST_MESSAGE, names_out),
    }
}

fn text_for_operator(text: &str, known: &Known<'_>) -> String {
    exit(text, known, LONGEST_REASON, |text, _| text)
}

/// Redacts, then shortens, then removes what could forge a line.
fn exit(
    text: &str,
    known: &Known<'_>,
    longest: usize,
    more: impl FnOnce(String, &Known<'_>) -> String,
) -> String {
    let window = clip(text, WINDOW);
    let mut clean = more(without_secrets(window, known), known);
    if window.len() < text.len() {
        // Text at the edge of the window may be the beginning of a secret.
        let sure = clean
            .len()
            .saturating_sub(known.longest_secret().max(LONGEST_WORD));
        clean.truncate(clean.floor_char_boundary(sure));
    }
    printable(&shorten(&clean, longest))
}

fn shorten(text: &str, longest: usize) -> String {
    // Every character has at least one byte.
    if text.len() <= longest {
        text.to_owned()
    } else {
        text.chars().take(longest).collect()
    }
}

/// Control characters, and those that change a line's direction or end it, become spaces: removing them could join the halves of a
/// secret.
fn printable(text: &str) -> String {
    if text
        .bytes()
        .all(|byte| byte == b' ' || byte.is_ascii_graphic())
    {
        return text.to_owned();
    }
    text.chars()
        .map(|c| if is_unseen(c) { ' ' } else { c })
        .collect()
}

/// The text without names of hosts, models, providers and accounts.
fn names_out(mut text: String, known: &Known<'_>) -> String {
    for host in known.hosts.iter().filter(|host| !host.is_empty()) {
        text = without_urls(&text, host);
        text = replace(&text, host, "[host]", Edge::Word);
    }
    for model in known.models.iter().filter(|model| **model != known.slug) {
        text = replace(&text, model, known.slug, Edge::Name);
    }
    let plain_word = |name: &str| {
        name.len() < 3
            || Family::ALL
                .iter()
                .any(|family| family.name() == name || family.shown() == name)
    };
    for provider in known.providers.iter().filter(|name| !plain_word(name)) {
        text = replace(&text, provider, "[provider]", Edge::Word);
    }
    without_ids(&text)
}

fn without_secrets(text: &str, known: &Known<'_>) -> String {
    let mut text = text.to_owned();
    for secret in &known.secrets {
        text = replace(&text, secret, "[key]", Edge::Any);
    }
    let (mut out, mut done, lower) = (
        String::with_capacity(text.len()),
        0,
        text.to_ascii_lowercase(),
    );
    while let Some(at) = find(&lower, done, ECHOED, Edge::Front) {
        let end = at + token_len(&text[at..], |c| c.is_alphanumeric() || "-_*.…".contains(c));
        out.push_str(&text[done..at]);
        out.push_str(if end - at > 8 {
            "[key]"
        } else {
            &text[at..end]
        });
        done = end;
    }
    out + &text[done..]
}

/// Which characters may surround a match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// Anything.
    Any,
    /// No letter or digit in front.
    Front,
    /// No letter, digit, `-` or `_` on either side: `acme` does not match in `acme-beta`.
    Word,
    /// The same in front; a dated or tagged suffix (`-20250929`, `:free`) is part of the match.
    Name,
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '-' || c == '_'
}

/// Position of `needle` at or after `from` with fitting edges. Both are in lower case already: a caller with many needles converts
/// once, because otherwise a text of nothing but needles would cost the square of its length.
fn find(lower: &str, from: usize, needle: &str, edge: Edge) -> Option<usize> {
    let hay = lower.get(from..).filter(|_| !needle.is_empty())?;
    if edge == Edge::Any {
        return hay.find(needle).map(|at| from + at);
    }
    let open_end =
        matches!(edge, Edge::Name | Edge::Front) || needle.ends_with(['-', '_', '/', ':']);
    hay.match_indices(needle)
        .map(|(at, _)| from + at)
        .find(|&at| {
            let before = lower[..at].chars().next_back();
            let behind = lower[at + needle.len()..].chars().next();
            let ends = match behind {
                Some(c) if open_end => edge != Edge::Name || !(c.is_alphanumeric() || c == '_'),
                Some(c) => !is_word(c),
                None => true,
            };
            !before.is_some_and(is_word) && ends
        })
}

fn replace(text: &str, needle: &str, with: &str, edge: Edge) -> String {
    let (lower, needle) = (text.to_ascii_lowercase(), needle.to_ascii_lowercase());
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    while let Some(at) = find(&lower, done, &needle, edge) {
        let mut end = at + needle.len();
        if edge == Edge::Name && text[end..].starts_with(['-', ':', '@']) {
            let tail = token_len(&text[end..], |c| is_word(c) || c == ':' || c == '@');
            end += text[end..end + tail]
                .trim_end_matches([':', '-', '@'])
                .len();
        }
        out.push_str(&text[done..at]);
        // The public slug may itself begin with the upstream's name.
        out.push_str(if text[at..end].eq_ignore_ascii_case(with) {
            &text[at..end]
        } else {
            with
        });
        done = end;
    }
    out + &text[done..]
}

/// Links into the upstream's own domain reveal who it is; a customer's own links stay.
fn without_urls(text: &str, host: &str) -> String {
    let domain = domain_of(host).to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let is_url = |text: &str| text.starts_with("https://") || text.starts_with("http://");
    while let Some(at) = rest
        .match_indices("http")
        .map(|(at, _)| at)
        .find(|&at| is_url(&rest[at..]))
    {
        let end = at
            + token_len(&rest[at..], |c| {
                !c.is_whitespace() && !"\"'<>()`,".contains(c)
            });
        let url = rest[at..end].trim_end_matches(['.', ';', ':']);
        let there = host_of(url).to_ascii_lowercase();
        let same = there == domain || there.ends_with(&format!(".{domain}"));
        out.push_str(&rest[..at]);
        out.push_str(if same { "[url]" } else { url });
        rest = &rest[at + url.len()..];
    }
    out + rest
}

fn without_ids(text: &str) -> String {
    let mut text = text.to_owned();
    for prefix in IDS {
        let (mut out, mut done, lower) = (
            String::with_capacity(text.len()),
            0,
            text.to_ascii_lowercase(),
        );
        while let Some(at) = find(&lower, done, prefix, Edge::Word) {
            let end = at + prefix.len() + token_len(&text[at + prefix.len()..], is_word);
            out.push_str(&text[done..at]);
            out.push_str(if end - at - prefix.len() >= SHORTEST_ID {
                "[id]"
            } else {
                &text[at..end]
            });
            done = end;
        }
        out.push_str(&text[done..]);
        text = out;
    }
    ID_PHRASES
        .iter()
        .fold(text, |text, phrase| without_announced_id(&text, phrase))
}

fn without_announced_id(text: &str, phrase: &str) -> String {
    let (mut out, mut done, lower) = (
        String::with_capacity(text.len()),
        0,
        text.to_ascii_lowercase(),
    );
    while let Some(at) = find(&lower, done, phrase, Edge::Any) {
        let behind = at + phrase.len();
        let from = behind + token_len(&text[behind..], |c| " :=\"'`".contains(c));
        let id = &text[from..from + token_len(&text[from..], is_word)];
        let looks_like_id = id.len() >= SHORTEST_ID && id.chars().any(|c| c.is_ascii_digit());
        out.push_str(&text[done..from]);
        out.push_str(if looks_like_id { "[id]" } else { id });
        done = from + id.len();
    }
    out + &text[done..]
}

/// Bytes of the longest prefix of `text` whose characters all fit.
fn token_len(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}

/// The host of a URL, without user, port and path.
fn host_of(url: &str) -> &str {
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

/// The last two labels of a host name; an IP address as it is.
fn domain_of(host: &str) -> &str {
    if host.parse::<std::net::IpAddr>().is_ok() {
        return host;
    }
    let mut dots = host.rmatch_indices('.').map(|(at, _)| at);
    match (dots.next(), dots.next()) {
        (Some(_), Some(second)) => &host[second + 1..],
        _ => host,
    }
}

fn clip(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
