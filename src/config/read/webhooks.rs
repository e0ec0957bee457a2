//! Reads `[[webhook]]`: who hears of events.

use std::sync::Arc;

use farebox_ledger::EventKind;
use farebox_toml::{
    Code, Entry, Fields, KEYS, Placed, Report, SecretReader, Span, did_you_mean, shorten,
};
use toml::de::{DeTable, DeValue};

use super::names::read_tables;
use super::provider::{UNENCRYPTED, check_public};
use crate::config::webhooks::{DIRECT_EVENTS, EventFilter, Webhook, WebhookSecret, covers};

/// Longest address.
const LONGEST: usize = 500;
/// The webhooks, in the order of the file.
pub(super) fn read_webhooks(
    routes: &Fields<'_, '_>,
    report: &mut Report<'_>,
    secrets: &mut SecretReader<'_>,
) -> Vec<Arc<Webhook>> {
    let mut found: Vec<(Span, Arc<Webhook>)> = Vec::new();
    for (table, span) in read_tables(routes, report, "webhook") {
        let Some((place, webhook)) = read_webhook(report, table, span, secrets) else {
            continue;
        };
        if let Some((first, _)) = found.iter().find(|(_, known)| known.url == webhook.url) {
            report
                .add(
                    Code::DuplicateWebhook,
                    place,
                    "two webhooks have this address",
                )
                .also(*first, "first here")
                .help(
                    "one webhook can hear of everything: put the names of both into its `events`",
                );
            continue;
        }
        found.push((place, Arc::new(webhook)));
    }
    found.into_iter().map(|(_, webhook)| webhook).collect()
}

fn read_webhook(
    report: &mut Report<'_>,
    table: &DeTable<'_>,
    span: Span,
    secrets: &mut SecretReader<'_>,
) -> Option<(Span, Webhook)> {
    let fields = Fields::open(report, table, span, "a webhook", &KEYS.webhook);
    let url = fields.required(
        report,
        "url",
        "url = \"https://shop.example/hooks/farebox\"",
        read_address,
    );
    let keys = read_secrets(&fields, report, secrets);
    let events = fields.given(report, "events", read_events);
    let url = url?;
    let webhook = Webhook {
        url: url.value.to_owned(),
        secrets: keys?,
        events: events?.unwrap_or_default(),
    };
    Some((url.span, webhook))
}

/// An address that receives events: encrypted, except on this machine.
fn read_address<'r>(value: Entry<'r, '_>, report: &mut Report<'_>) -> Option<Placed<&'r str>> {
    let url = value.printable(report, LONGEST)?;
    let Err(wrong) = check_public(url.value) else {
        return Some(url);
    };
    let help = match wrong {
        UNENCRYPTED => "write https://…",
        "has a query or fragment" => "leave it out: receivers know us by the signature",
        _ => "write the whole address: \"https://shop.example/hooks/farebox\"",
    };
    report
        .add(Code::BadWebhook, url.span, format!("`url` {wrong}"))
        .help(help);
    None
}

/// `secret = …`, or `secrets = [ …, … ]` while one is replaced.
fn read_secrets(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
    secrets: &mut SecretReader<'_>,
) -> Option<Vec<WebhookSecret>> {
    let members = match (fields.get("secret"), fields.get("secrets")) {
        (Some(_), Some(_)) => {
            fields.exclude(report, "secret", "secrets");
            return None;
        }
        (Some(secret), None) => vec![secret],
        (None, Some(several)) => {
            let most = Webhook::MOST_SECRETS;
            let list = several.list(report, "secrets, each { env = \"…\" } or { file = \"…\" }")?;
            if list.is_empty() || list.len() > most {
                report
                    .add(
                        Code::OutOfRange,
                        several.span(),
                        format!("`secrets` has one or {most}"),
                    )
                    .help("the new one and, until every receiver knows it, the old one");
                return None;
            }
            list
        }
        (None, None) => {
            if !fields.misspells("secret") && !fields.misspells("secrets") {
                report
                    .add(Code::MissingField, fields.span, "`secret` is missing in a webhook")
                    .help("add secret = { env = \"NAME_OF_A_VARIABLE\" }; make one with: echo \"whsec_$(openssl rand -base64 32)\"");
            }
            return None;
        }
    };
    let read: Vec<_> = members
        .into_iter()
        .map(|member| read_secret(member, report, secrets))
        .collect();
    read.into_iter().collect()
}

fn read_secret(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    secrets: &mut SecretReader<'_>,
) -> Option<WebhookSecret> {
    let secret = secrets.read(value, report, "a webhook")?;
    if secret.reveal().is_empty() && secrets.lenient() {
        return Some(WebhookSecret::unread());
    }
    match WebhookSecret::parse(secret.reveal()) {
        Ok(secret) => Some(secret),
        Err(wrong) => {
            report
                .add(
                    Code::BadSecret,
                    value.span(),
                    format!("the secret of a webhook {wrong}"),
                )
                .help("make one with: echo \"whsec_$(openssl rand -base64 32)\"");
            None
        }
    }
}

fn read_events(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<EventFilter> {
    let names = value.each(report, "strings", read_event)?;
    if names.is_empty() {
        report
            .add(Code::BadText, value.span(), "`events` is empty")
            .help("leave it out for all events, or name some: events = [\"balance.*\", \"top_up.booked\"]");
        return None;
    }
    Some(EventFilter(names))
}

fn read_event(value: Entry<'_, '_>, report: &mut Report<'_>) -> Option<String> {
    let name = match value.node() {
        DeValue::String(name) => name.as_ref(),
        _ => {
            value.expected(report, "a string");
            return None;
        }
    };
    let kinds = EventKind::ALL.iter().map(|kind| kind.as_str());
    let known: Vec<&str> = kinds.chain(DIRECT_EVENTS).collect();
    if known.iter().any(|kind| covers(name, kind)) {
        return Some(name.to_owned());
    }
    let near = did_you_mean(name, &known);
    let finding = report.add(
        Code::UnknownWord,
        value.span(),
        format!("there is no event `{}`", shorten(name)),
    );
    match near {
        Some(near) => finding.help(format!("did you mean \"{near}\"?")),
        None => finding.help("docs/selling.md lists the events; a group is written \"balance.*\""),
    };
    None
}
