//! `farebox events list|replay|test`: what is told, and to whom. Works while a gateway runs.

use farebox_ledger::{
    DeliveryStep, DeliverySteps, Event, OpenMode, OperationId, Perform, WebhookId,
};
use serde_json::{Value, json};

use crate::args::events::{EventsCommand, ListEventsOptions, ReplayOptions, TestOptions};
use crate::args::{Args, OutputFormat};
use crate::books::open;
use crate::output::{self, CommandFailed};
use crate::publish::check;
use crate::tables;
use farebox::clock;
use farebox::config::WebhookSecret;
use farebox::events::{DirectEvent, Sending};

/// Events that are read at once.
const PAGE: usize = 1_000;
const HEADER: [&str; 6] = ["id", "type", "at", "customer", "seq", "data"];

pub(crate) async fn run(args: &Args, command: &EventsCommand) -> Result<(), CommandFailed> {
    match command {
        EventsCommand::List(options) => list(args, options).await,
        EventsCommand::Replay(options) => replay(args, options).await,
        EventsCommand::Test(options) => test(args, options).await,
    }
}

async fn list(args: &Args, options: &ListEventsOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::ReadOnly).await?;
    let wanted = |event: &Event| {
        let kind = options.kind.as_deref();
        kind.is_none_or(|kind| event.kind.as_str() == kind)
            && (options.customer).is_none_or(|customer| event.customer == Some(customer))
    };
    let (mut after, mut found) = (options.after, Vec::new());
    while found.len() < options.limit {
        let page = ledger.events(after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        found.extend(page.into_iter().filter(wanted));
    }
    found.truncate(options.limit);
    match args.format() {
        OutputFormat::Json => {
            let events: Vec<Value> = found.iter().map(Event::document).collect();
            output::print_json(&json!({ "events": events }));
        }
        format => tables::print(format, &HEADER, &found.iter().map(row).collect::<Vec<_>>()),
    }
    Ok(())
}

fn row(event: &Event) -> Vec<String> {
    vec![
        format!("evt_{}", event.id),
        event.kind.as_str().to_owned(),
        event.at.to_string(),
        event.customer.map(|id| id.to_string()).unwrap_or_default(),
        event.seq.map(|seq| seq.to_string()).unwrap_or_default(),
        event.data.clone(),
    ]
}

async fn replay(args: &Args, options: &ReplayOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let (webhook, due) = (WebhookId::of(&options.url), clock::now());
    let known = ledger.webhooks().await?;
    if !known.iter().any(|known| known.id == webhook) {
        return Err(CommandFailed::refused(format!(
            "no gateway has delivered to {}; is it in the routes file, as it is written here?",
            options.url
        )));
    }
    let mut steps = vec![DeliveryStep::Enable { webhook, due }];
    let mut again = 0_usize;
    if let Some(after) = options.after {
        let events = wanted_after(args, &*ledger, &options.url, after).await?;
        again = events.len();
        steps.push(DeliveryStep::Replay {
            webhook,
            events,
            due,
        });
    }
    ledger.perform(DeliverySteps(steps)).await?;
    match args.format() {
        OutputFormat::Json => {
            output::print_json(&json!({ "url": options.url, "enabled": true, "replayed": again }));
        }
        _ => output::note(&format!(
            "{} gets what it missed{}; running gateways begin within a second",
            options.url,
            if again > 0 {
                format!(", and {} again", output::count(again, "event"))
            } else {
                String::new()
            }
        )),
    }
    Ok(())
}

/// The events after this one that a webhook of the routes file wants.
async fn wanted_after(
    args: &Args,
    ledger: &dyn farebox_ledger::Ledger,
    url: &str,
    after: OperationId,
) -> Result<Vec<OperationId>, CommandFailed> {
    let config = check::load(args)?;
    let webhook = config.webhooks.iter().find(|webhook| webhook.url == url);
    let webhook = webhook
        .ok_or_else(|| CommandFailed::refused(format!("{url} is not in the routes file")))?;
    let (mut after, mut found) = (after, Vec::new());
    loop {
        let page = ledger.events(Some(after), PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(found);
        };
        after = last.id;
        let wanted = page
            .iter()
            .filter(|event| webhook.events.wants(event.kind.as_str()));
        found.extend(wanted.map(|event| event.id));
    }
}

async fn test(args: &Args, options: &TestOptions) -> Result<(), CommandFailed> {
    let config = check::load(args)?;
    let sending = Sending::new().map_err(CommandFailed::refused)?;
    let event = DirectEvent::new("webhook.test", &json!({ "actor": args.actor() }));
    let mut rows = Vec::new();
    let mut failed = 0_usize;
    for webhook in &config.webhooks {
        if options.url.as_ref().is_some_and(|url| *url != webhook.url) {
            continue;
        }
        if webhook.secrets.iter().any(WebhookSecret::is_unread) {
            failed += 1;
            let said = "its secret is not in this environment; --env-file names the gateway's";
            rows.push(vec![webhook.url.clone(), said.to_owned()]);
            continue;
        }
        let said = match sending.send(webhook, &event.id, event.body()).await {
            Ok(()) => "delivered".to_owned(),
            Err(error) => {
                failed += 1;
                error.to_string()
            }
        };
        rows.push(vec![webhook.url.clone(), said]);
    }
    if rows.is_empty() {
        return Err(CommandFailed::refused(match &options.url {
            Some(url) => format!("{url} is not in the routes file"),
            None => "the routes file has no [[webhook]]; docs/selling.md shows one".to_owned(),
        }));
    }
    match args.format() {
        OutputFormat::Json => {
            let tried = rows.iter();
            let tried: Vec<Value> = tried
                .map(|row| json!({ "url": row[0], "outcome": row[1] }))
                .collect();
            output::print_json(&json!({ "event": event.id, "webhooks": tried }));
        }
        format => tables::print(format, &["webhook", "outcome"], &rows),
    }
    if failed > 0 {
        return Err(CommandFailed::refused(format!(
            "{} did not take it",
            output::count(failed, "webhook")
        )));
    }
    Ok(())
}
