//! `farebox setup CLIENT`: settings that are ready to paste, from the table of [`farebox::setup`].

use std::sync::Arc;

use farebox_ledger::csv;
use serde_json::json;

use super::check::{self, warn_of_unknown};
use crate::args::{Args, OutputFormat, SetupOptions};
use crate::gateway;
use crate::output::{self, CommandFailed};
use farebox::config::Model;
use farebox::setup::{self, ClientProgram, SetupBlock};

pub(crate) async fn run(args: &Args, options: &SetupOptions) -> Result<(), CommandFailed> {
    let Some(id) = &options.client else {
        list(args.format());
        return Ok(());
    };
    let client =
        setup::client(id).ok_or_else(|| CommandFailed::usage(format!("unknown client {id:?}")))?;
    let typed = options.key.as_deref().map(key).transpose()?;
    let public_url = match &options.base_url {
        Some(typed) => typed.clone(),
        None => gateway::public_url(args).await,
    };
    let model = match &options.model {
        Some(model) => model.clone(),
        None => usual_model(args, client)?,
    };
    check_plain([
        ("--base-url", Some(&public_url)),
        ("--key", typed.as_ref()),
        ("--model", Some(&model)),
    ])?;
    warn_of_unknown(args, options.model.as_slice());
    let (base_url, key) = (
        client.base_url(&public_url),
        typed.as_deref().unwrap_or(setup::KEY),
    );
    let shop = check::seller(args);
    let known = known(args, &model);
    let fill = |block: &SetupBlock| block.fill(&base_url, key, &model, known.as_deref());
    if args.format() == OutputFormat::Json {
        let blocks: Vec<_> = client
            .block
            .iter()
            .map(|block| json!({ "place": block.place, "language": block.language, "text": fill(block) }))
            .collect();
        let document = json!({
            "client": client.id, "title": client.title, "base_url": base_url, "model": model, "note": client.note, "blocks": blocks,
            "shop": { "name": shop.name, "contact": shop.contact, "pay_url": shop.pay_url, "note": shop.note },
        });
        output::print_json(&document);
        return Ok(());
    }
    output::note(&client.note);
    if typed.is_none() {
        output::note(&format!(
            "Replace {} with your key, or pass it with --key - or --key @FILE.",
            setup::KEY
        ));
    }
    let headed = |block: &SetupBlock| match block.place.as_str() {
        "shell" => fill(block),
        place => format!("{} {place}\n{}", block.comment(), fill(block)),
    };
    output::print(
        &client
            .block
            .iter()
            .map(headed)
            .collect::<Vec<_>>()
            .join("\n"),
    );
    let ways = shop.ways_to_pay();
    if !ways.is_empty() {
        output::note(&format!(
            "\nWhen the money is used up: {}",
            output::plain(&ways)
        ));
    }
    Ok(())
}

/// A model of the catalog, if that can be read and has it.
fn known(args: &Args, name: &str) -> Option<Arc<Model>> {
    let config = check::load(args).ok()?;
    config.catalog.get(name).cloned()
}

/// Refuses what would not be itself in settings, or would be run by a shell.
fn check_plain(all: [(&str, Option<&String>); 3]) -> Result<(), CommandFailed> {
    for (name, value) in all {
        if let Some(value) = value.filter(|value| !setup::is_plain(value)) {
            let problem = if value.is_empty() {
                "is empty"
            } else {
                "has characters that cannot be used in settings"
            };
            return Err(CommandFailed::usage(format!("{name} {problem}")));
        }
    }
    Ok(())
}

/// Every client with settings.
fn list(format: OutputFormat) {
    let clients = setup::clients();
    match format {
        OutputFormat::Json => {
            let rows =
                clients.iter().map(|client| json!({ "client": client.id, "title": client.title, "family": client.family }));
            output::print_json(&json!({ "clients": rows.collect::<Vec<_>>() }));
        }
        OutputFormat::Csv => {
            let rows = clients
                .iter()
                .map(|client| csv::line([client.id.as_str(), &client.title, &client.family]));
            output::sheet(
                &std::iter::once(csv::line(["client", "title", "family"]))
                    .chain(rows)
                    .collect::<String>(),
            );
        }
        _ => {
            let rows: Vec<_> = clients
                .iter()
                .map(|client| {
                    vec![
                        client.id.clone(),
                        client.title.clone(),
                        client.family.clone(),
                    ]
                })
                .collect();
            output::print(&output::table(&["client", "name", "speaks"], &rows));
            output::note("\nfarebox setup CLIENT prints what to paste.");
        }
    }
}

/// The key: as given, from a file, or from a prompt, because other users of the machine can read command lines.
fn key(typed: &str) -> Result<String, CommandFailed> {
    let unreadable =
        |error: std::io::Error| CommandFailed::refused(format!("--key {typed}: {error}"));
    let text = match (typed, typed.strip_prefix('@')) {
        ("-", _) => {
            output::note("Paste the key and press Enter:");
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map_err(unreadable)?;
            line
        }
        (_, Some(path)) => std::fs::read_to_string(path).map_err(unreadable)?,
        _ => typed.to_owned(),
    };
    Ok(text.trim().to_owned())
}

/// The default slug, from the catalog.
fn usual_model(args: &Args, client: &ClientProgram) -> Result<String, CommandFailed> {
    let config = check::load(args)?;
    let model = client.usual_model(config.catalog.models.iter().map(AsRef::as_ref));
    model.map(|model| model.slug.clone()).ok_or_else(|| {
        CommandFailed::refused(format!(
            "the catalog has no model for {}; name one with --model",
            client.title
        ))
    })
}
