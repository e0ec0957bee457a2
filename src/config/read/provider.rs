//! Reads `[provider.NAME]` into a [`Provider`]: its address, its families, its settings.

use std::net::IpAddr;

use farebox_protocol::{AuthStyle, ChatLimit, Family, WirePath};
use farebox_toml::{
    Code, Entry, Fields, HiddenText, KEYS, Placed, Report, SecretReader, Span, redact, shorten,
};
use toml::de::{DeTable, DeValue};

use super::bounds::read_bounds;
use super::keys::read_keys;
use super::names::{distinct, read_path};
use super::request_fields::{read_flags, read_request_fields};
use super::service::read_provider_words;
use crate::config::presets::{AUTH_STYLES, CHAT_LIMITS};
use crate::config::{
    Endpoint, Preset, Provider, ProviderKeys, ProxyChoice, RESERVED_HEADERS, presets,
};

const LONGEST_QUERY: usize = 100;

/// Reads one provider; `None` if anything about it is wrong.
pub(crate) fn read_provider(
    report: &mut Report<'_>,
    name: &str,
    span: Span,
    table: &DeTable<'_>,
    secrets: &mut SecretReader<'_>,
) -> Option<Provider> {
    let name = read_name(report, name, span);
    let what = format!("provider `{}`", name.unwrap_or("…"));
    let fields = Fields::open(report, table, span, what, &KEYS.provider);
    let simulated = fields
        .get("simulated")
        .map_or(Some(false), |value| value.boolean(report));
    let kind = fields.given(report, "kind", read_kind);
    let preset = kind.flatten();
    // Fields that are unknown because `kind` is wrong are not also reported as missing.
    let remote = match simulated {
        Some(true) => no_remote(&fields, report),
        Some(false) if kind.is_some() => read_remote(&fields, report, secrets, preset),
        _ => None,
    };
    let speaks = match (fields.get("speaks"), preset) {
        (None, _) if simulated == Some(true) => Some(WirePath::all().collect()),
        (None, Some(preset)) => Some(preset.speaks()),
        (None, None) if kind.is_none() => None,
        _ => required_speaks(&fields, report),
    };
    let bounds = read_bounds(&fields, report);
    let chat_limit = fields.word(report, "chat_limit", &CHAT_LIMITS);
    let places = [("inside", false), ("outside", true)];
    let reasoning = fields.word(report, "reasoning", &places);
    let lists = read_lists(&fields, report, preset);
    let families = speaks.iter().flatten().filter_map(|path| path.family());
    let families: Vec<Family> = families.collect();
    let of_requests = read_request_fields(&fields, report, preset, Some(&families));
    let words = read_provider_words(&fields, report);
    let (remote, bounds, lists) = (remote?, bounds?, lists?);
    Some(Provider {
        name: name?.to_owned(),
        takes_urls: remote.takes_urls,
        endpoint: remote.endpoint,
        speaks: speaks?,
        keys: remote.keys,
        auth: remote.auth,
        query: remote.query,
        proxy: remote.proxy,
        headers: remote.headers,
        timeouts: bounds.timeouts,
        max_concurrent: bounds.max_concurrent,
        max_tokens_per_minute: bounds.max_tokens_per_minute,
        probe_budget: bounds.probe_budget,
        chat_limit: chat_limit?
            .unwrap_or_else(|| preset.map_or(ChatLimit::AsDeclared, Preset::chat_limit)),
        reasoning_outside: reasoning?
            .unwrap_or_else(|| preset.is_some_and(Preset::reasoning_outside)),
        preset,
        fields: of_requests?,
        pass_answer: lists.pass_answer.into(),
        refuse_beta: lists.refuse_beta,
        words: words?,
    })
}

/// What passes in answers, and which flags are refused; the preset's where the file has nothing.
struct Lists {
    pass_answer: Vec<String>,
    refuse_beta: Vec<String>,
}

fn read_lists(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
    preset: Option<&Preset>,
) -> Option<Lists> {
    let mut list = |name, of: fn(&Preset) -> &Vec<String>| {
        let read = fields.given(report, name, read_flags);
        read.map(|list| list.unwrap_or_else(|| preset.map(of).cloned().unwrap_or_default()))
    };
    let pass_answer = list("pass_answer", |preset| &preset.pass_answer);
    let refuse_beta = list("refuse_beta", |preset| &preset.refuse_beta);
    Some(Lists {
        pass_answer: pass_answer?,
        refuse_beta: refuse_beta?,
    })
}

fn read_name<'n>(report: &mut Report<'_>, name: &'n str, span: Span) -> Option<&'n str> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name
        .bytes()
        .next()
        .is_some_and(|first| first.is_ascii_alphanumeric())
        && name.bytes().all(allowed)
        && name.len() <= 64
    {
        return Some(name);
    }
    report
        .add(
            Code::BadProviderName,
            span,
            format!("`{}` cannot be the name of a provider", shorten(name)),
        )
        .help("names are letters, digits and - _ . , at most 64 characters");
    None
}

/// Fields that only a provider on the network has.
struct Remote {
    endpoint: Endpoint,
    takes_urls: bool,
    keys: ProviderKeys,
    auth: Option<AuthStyle>,
    query: Vec<(String, String)>,
    proxy: ProxyChoice,
    headers: Vec<(String, HiddenText)>,
}

fn no_remote(fields: &Fields<'_, '_>, report: &mut Report<'_>) -> Option<Remote> {
    let mut good = true;
    for key in KEYS.provider.keys().filter(|key| key.remote) {
        let name = &key.name;
        if let Some(value) = fields.get(name) {
            report
                .add(
                    Code::Contradiction,
                    value.key,
                    format!("{} is simulated and has `{name}`", fields.what),
                )
                .help(format!(
                    "the simulated provider is built in; remove `{name}` or `simulated`"
                ));
            good = false;
        }
    }
    good.then(|| Remote {
        endpoint: Endpoint::Simulated,
        takes_urls: true,
        keys: ProviderKeys::default(),
        auth: None,
        query: Vec::new(),
        proxy: ProxyChoice::Environment,
        headers: Vec::new(),
    })
}

/// A known service.
fn read_kind(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<&'static Preset> {
    let kinds: Vec<_> = presets()
        .iter()
        .map(|preset| (preset.name.as_str(), preset))
        .collect();
    value.word(report, &kinds)
}

fn read_remote(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
    secrets: &mut SecretReader<'_>,
    preset: Option<&Preset>,
) -> Option<Remote> {
    let path = first_path(fields, preset);
    let base = match preset.filter(|_| !fields.has("base_url")) {
        // What follows from `loopback` here is only that no key has to be said: a kind without one is a server of one's own.
        Some(preset) => Some(BaseUrl { url: preset.base_url.clone(), loopback: preset.key.is_none() }),
        None => fields.required(
            report,
            "base_url",
            &format!("base_url = \"https://…/v1\", the part before {path}, or kind = \"…\", a known service"),
            |value, report| read_base_url(value, report, &fields.what, path),
        ),
    };
    let keys = read_keys(fields, report, secrets);
    let auth = fields.word(report, "auth", &AUTH_STYLES);
    let headers = fields.given(report, "headers", |value, report| {
        read_headers(value, report, &fields.what, secrets)
    });
    let query = fields.given(report, "query", read_query);
    let proxy = fields.given(report, "proxy", |value, report| {
        read_proxy(value, report, &fields.what, secrets)
    });
    let private_urls = fields.given(report, "private_urls", Entry::boolean);
    let base = base?;
    if !["key", "keys"]
        .iter()
        .any(|name| fields.has(name) || fields.misspells(name))
        && !base.loopback
    {
        report
            .add(Code::NoKey, fields.span, format!("{} has no key", fields.what))
            .help("add key = { env = \"…\" } or key = { file = \"…\" }, unless the provider needs none");
    }
    let endpoint = Endpoint::Http(base.url);
    Some(Remote {
        takes_urls: private_urls?.unwrap_or(false) || endpoint.is_public(),
        endpoint,
        keys: keys?,
        auth: auth?.or_else(|| preset.and_then(Preset::auth)),
        query: query?.unwrap_or_default(),
        proxy: proxy?.unwrap_or(ProxyChoice::Environment),
        headers: headers?.unwrap_or_default(),
    })
}

/// What is put behind the base URL, for the first family that the provider speaks.
fn first_path(fields: &Fields<'_, '_>, preset: Option<&Preset>) -> &'static str {
    let said = fields.get("speaks").and_then(|value| match value.node() {
        DeValue::Array(families) => families.iter().find_map(|family| match family.get_ref() {
            DeValue::String(name) => WirePath::all().find(|path| path.name() == name),
            _ => None,
        }),
        _ => None,
    });
    let first = said.or_else(|| preset.and_then(|preset| preset.speaks().first().copied()));
    first.unwrap_or(Family::Chat.into()).path()
}

struct BaseUrl {
    url: String,
    loopback: bool,
}

/// What is wrong with a base URL, and what to write instead. Never repeats the URL: it may contain a secret.
fn split_base_url(text: &str) -> Result<(bool, &str, &str), (&'static str, &'static str)> {
    let (encrypted, rest) = match text.split_once("://") {
        Some(("https", rest)) => (true, rest),
        Some(("http", rest)) => (false, rest),
        _ => {
            return Err((
                "does not begin with https:// or http://",
                "write the whole URL: \"https://host/v1\"",
            ));
        }
    };
    if rest.contains(['?', '#']) {
        return Err((
            "has a query or fragment",
            "write only the part before /chat/completions, /responses or /messages; keys go into `key` or `headers`",
        ));
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err(("has a user name or password in it", "keys go into `key`"));
    }
    if !rest.bytes().all(|byte| byte.is_ascii_graphic())
        || rest.contains(['\\', '"', '<', '>', '{', '}'])
    {
        return Err((
            "has characters that cannot be in a URL",
            "write it in ASCII, percent-encoded where needed",
        ));
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let name = host
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .is_some_and(|host| host.parse::<IpAddr>().is_ok());
    if host.is_empty() || !(name || address) {
        return Err((
            "has no usable host",
            "write the whole URL: \"https://host/v1\"",
        ));
    }
    if port.is_some_and(|port| !port.parse::<u16>().is_ok_and(|port| port > 0)) {
        return Err((
            "has a port that is not a number from 1 to 65535",
            "write the whole URL: \"https://host:8443/v1\"",
        ));
    }
    Ok((encrypted, host, path))
}

/// What is wrong with an address on another machine that anybody between can read.
pub(super) const UNENCRYPTED: &str = "is not encrypted";

/// What is wrong with an address that other people's programs open.
pub(super) fn check_public(text: &str) -> Result<(), &'static str> {
    match split_base_url(text) {
        Ok((true, ..) | (false, "localhost" | "127.0.0.1" | "[::1]", _)) => Ok(()),
        Ok((false, ..)) => Err(UNENCRYPTED),
        Err((wrong, _)) => Err(wrong),
    }
}

fn read_base_url(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
    added: &str,
) -> Option<BaseUrl> {
    let Placed { value: text, span } = value.text(report)?;
    let url = text.trim_end_matches('/');
    let (encrypted, host, path) = match split_base_url(url) {
        Ok(parts) => parts,
        Err((problem, help)) => {
            report
                .add(
                    Code::BadBaseUrl,
                    span,
                    format!("`base_url` of {what} {problem}"),
                )
                .help(help);
            return None;
        }
    };
    for ending in [
        "/chat/completions",
        "/completions",
        "/responses",
        "/messages",
        "/models",
    ] {
        if let Some(before) = url.strip_suffix(ending) {
            report
                .add(
                    Code::BadBaseUrl,
                    span,
                    format!("`base_url` of {what} ends with {ending}, which is added to it"),
                )
                .help(format!("write \"{}\"", redact::base_url(before)));
            return None;
        }
    }
    let bare = host.trim_matches(['[', ']']);
    let loopback = bare == "localhost"
        || bare.ends_with(".localhost")
        || bare
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    if !loopback && !encrypted {
        report
            .add(
                Code::PlainHttp,
                span,
                format!(
                    "{what} is reached without encryption: keys and requests can be read in transit"
                ),
            )
            .help("write https:// unless you own the network in between");
    }
    if !loopback && path.is_empty() {
        report
            .add(
                Code::NoPath,
                span,
                format!("`base_url` of {what} has no path: requests go to {url}{added}"),
            )
            .help(format!("most providers want \"{url}/v1\""));
    }
    Some(BaseUrl {
        url: url.to_owned(),
        loopback,
    })
}

fn required_speaks(fields: &Fields<'_, '_>, report: &mut Report<'_>) -> Option<Vec<WirePath>> {
    fields.required(
        report,
        "speaks",
        &format!("speaks = [\"chat\"], any of {}", WirePath::choices()),
        read_speaks,
    )
}

fn read_speaks(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<Vec<WirePath>> {
    let families = value.each(report, "families", |member, report| {
        read_path(member, report).map(|path| path.value)
    })?;
    if families.is_empty() {
        report
            .add(Code::BadText, value.span(), "`speaks` is empty")
            .help(format!("any of {}", WirePath::choices()));
        return None;
    }
    Some(distinct(families))
}

/// Reads `proxy = "http://proxy.internal:3128"`, `"none"`, or a secret, for an address with a password in it.
fn read_proxy(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
    secrets: &mut SecretReader<'_>,
) -> Option<ProxyChoice> {
    let DeValue::String(text) = value.node() else {
        let address = secrets.read(value, report, what)?;
        return Some(ProxyChoice::Through(address));
    };
    if text == "none" {
        return Some(ProxyChoice::Direct);
    }
    let (problem, help) = match split_base_url(text.trim_end_matches('/')) {
        Ok((_, _, "")) => return Some(ProxyChoice::Through(HiddenText::new(&**text))),
        Ok(_) => ("has a path", "write the address of the proxy alone"),
        Err(("has a user name or password in it", _)) => (
            "has a user name or password in it",
            "write proxy = { env = \"NAME_OF_A_VARIABLE\" } or { file = \"…\" }, and the whole address there",
        ),
        Err((problem, _)) => (
            problem,
            "write \"http://proxy.internal:3128\", or \"none\" to go directly",
        ),
    };
    report
        .add(
            Code::BadBaseUrl,
            value.span(),
            format!("`proxy` of {what} {problem}"),
        )
        .help(help);
    None
}

/// Reads `query = { api-version = "2024-10-21" }`. It is shown wherever the address is, so it is no place for a secret.
fn read_query(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<Vec<(String, String)>> {
    let (table, _) = value.table(report, "a table of strings")?;
    let pairs = table.iter().map(|(name, node)| {
        let text = value.member(node).printable(report, LONGEST_QUERY)?;
        if redact::words(text.value) == text.value {
            return Some((name.get_ref().to_string(), text.value.to_owned()));
        }
        report
            .add(
                Code::LiteralSecret,
                text.span,
                "a part of `query` looks like a secret",
            )
            .label("hidden here; treat it as leaked")
            .help("keys go into `key` or `headers`");
        None
    });
    let pairs: Vec<_> = pairs.collect();
    pairs.into_iter().collect()
}

fn read_headers(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    what: &str,
    secrets: &mut SecretReader<'_>,
) -> Option<Vec<(String, HiddenText)>> {
    let (table, _) = value.table(report, "a table of header names and values")?;
    let mut headers = Vec::with_capacity(table.len());
    let mut good = true;
    for (key, node) in table {
        let name = key.get_ref().to_ascii_lowercase();
        let span = Span::new(value.span().file, key.span());
        let legal = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
        if !legal || RESERVED_HEADERS.contains(&name.as_str()) {
            let problem = if legal {
                "is set by the gateway itself"
            } else {
                "is not the name of a header"
            };
            report.add(
                Code::BadHeader,
                span,
                format!("`{}` in the headers of {what} {problem}", shorten(&name)),
            );
            good = false;
            continue;
        }
        let member = value.member(node);
        let content = secrets.read_header(member, &name, report, what);
        match content {
            Some(content) => headers.push((name, content)),
            None => good = false,
        }
    }
    good.then_some(headers)
}
