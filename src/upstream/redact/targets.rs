//! What a route's targets could reveal, and how it leaves a text.

use farebox_protocol::Family;

use super::accounts::without_accounts;
use super::codes::without_coded;
use super::escapes::without_escaped;
use super::files::without_files;
use super::find::{Edge, find, replace, replaced, token_len};
use super::hosts::{domain_of, host_of, without_hosts};
use super::spelling::Spelling;
use crate::config::{Endpoint, Route, Target};
use crate::upstream::secret_forms::SecretForms;

/// Prefixes of keys that upstreams echo shortened: `sk-ab…yz`, `sk-ab***yz`.
pub(super) const ECHOED: &str = "sk-";

/// What must not reach a customer.
#[derive(Default)]
pub(super) struct RedactedTerms<'a> {
    /// What customers call the model.
    pub(super) slug: &'a str,
    /// What providers call it.
    pub(super) models: Vec<Spelling>,
    /// Names of providers in the operator's file.
    pub(super) providers: Vec<&'a str>,
    /// Hosts of base URLs, without port.
    pub(super) hosts: Vec<&'a str>,
    /// Keys and header values, in every form in which a program writes them.
    pub(super) secrets: Vec<SecretForms>,
}

impl<'a> RedactedTerms<'a> {
    /// Everything that a route's targets could reveal.
    pub(super) fn of(route: &'a Route) -> Self {
        let providers = route.targets.iter().map(|target| &target.provider);
        Self {
            secrets: providers
                .map(|provider| SecretForms::of(provider))
                .collect(),
            ..Self::named(&route.slug, &route.targets)
        }
    }

    /// The names in it, without the secrets.
    pub(super) fn named(slug: &'a str, targets: &'a [Target]) -> Self {
        let mut known = Self {
            slug,
            ..Self::default()
        };
        for target in targets {
            let provider = &target.provider;
            known.models.push(Spelling::of(&target.model));
            known.providers.push(&provider.name);
            if let Endpoint::Http(base) = &provider.endpoint {
                known.hosts.push(host_of(base));
            }
        }
        known
    }

    pub(super) fn longest_secret(&self) -> usize {
        let longest = self.secrets.iter().map(SecretForms::longest);
        longest.max().unwrap_or(0)
    }
}

/// The text without names of hosts, models, providers, accounts and files, plain, escaped or coded.
pub(super) fn names_out(text: String, known: &RedactedTerms<'_>) -> String {
    let clean = |text: &str| plain_names_out(without_secrets(text, known), known);
    let unescaped = without_escaped(&text, clean);
    without_coded(&plain_names_out(unescaped, known), clean)
}

fn plain_names_out(mut text: String, known: &RedactedTerms<'_>) -> String {
    let hosts = known.hosts.iter().filter(|host| !host.is_empty());
    let domains: Vec<String> = hosts
        .clone()
        .map(|host| domain_of(host).to_ascii_lowercase())
        .collect();
    for (host, domain) in hosts.zip(&domains) {
        text = without_urls(&text, domain);
        text = replace(&text, host, "[host]", Edge::Word);
    }
    for model in &known.models {
        text = model.replace(&text, known.slug);
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
    without_hosts(&without_files(&without_accounts(&text)), &domains)
}

/// The text without keys and header values, in any form.
pub(super) fn without_secrets(text: &str, known: &RedactedTerms<'_>) -> String {
    let text = known.secrets.iter().fold(text.to_owned(), |text, secrets| {
        let mut places = secrets.places(&text).into_iter();
        replaced(&text, |_, _, _| {
            let found = places.next()?;
            Some((found.start, found.end, Some("[key]")))
        })
    });
    replaced(&text, |text, lower, from| {
        let at = find(lower, from, ECHOED, Edge::Front)?;
        let end = at + token_len(&text[at..], |c| c.is_alphanumeric() || "-_*.…".contains(c));
        Some((at, end, (end - at > 8).then_some("[key]")))
    })
}

/// Links into the upstream's own domain reveal who it is; a customer's own links stay.
fn without_urls(text: &str, domain: &str) -> String {
    replaced(text, |text, lower, from| {
        let at = find(lower, from, "http", Edge::Any)?;
        if !["http://", "https://"]
            .iter()
            .any(|scheme| lower[at..].starts_with(scheme))
        {
            return Some((at, at + "http".len(), None));
        }
        let length = token_len(&text[at..], |c| {
            !c.is_whitespace() && !"\"'<>()`,".contains(c)
        });
        let url = lower[at..at + length].trim_end_matches(['.', ';', ':']);
        let there = host_of(url);
        let own = there == domain || there.ends_with(&format!(".{domain}"));
        Some((at, at + url.len(), own.then_some("[url]")))
    })
}
