//! `farebox show ID`: one request, payment, key, customer or subscription, found by whatever a customer or a provider names.
//!
//! The ledger knows what was charged and paid. What was refused, and which attempts failed, only the running gateway remembers.

use farebox_ledger::search::{self, SearchResult};
use farebox_ledger::store::SharedStore;
use farebox_ledger::text::SECRET_PREFIX;
use farebox_ledger::{Customer, Key, OpenMode, SubscriptionId};
use serde_json::{Value, json};

use crate::args::customers::OneCustomer;
use crate::args::{Args, OneKey, OutputFormat, ShowOptions};
use crate::output::{self, CommandFailed};
use crate::sell::{customers, payments, plans, show};
use crate::{books, gateway, tables};
use farebox::clock;
use farebox_selling::customer::CustomerDocument;
use farebox_selling::key::KeyDocument;
use farebox_selling::request::RequestDocument;

pub(crate) async fn run(args: &Args, options: &ShowOptions) -> Result<(), CommandFailed> {
    let id = match options.id.as_str() {
        "-" => prompt()?,
        id => id.trim().to_owned(),
    };
    let book = books::open(args, OpenMode::ReadOnly).await?;
    if let Ok(key) = search::key_id(&id)
        && (book.find_key(key).await?.is_some() || id.starts_with(SECRET_PREFIX))
    {
        return show::run(args, &OneKey { id: key }).await;
    }
    if let Some(subscription) = subscription(&book, &id).await? {
        return plans::show(args, subscription).await;
    }
    let remembered = remembered(args, &id).await;
    if let Ok(Some(document)) = &remembered {
        let owner = owner(&book, document).await;
        print(args, document, owner.as_ref());
        return Ok(());
    }
    match search::find(&*book, &id, clock::now()).await? {
        Some(SearchResult::Key(key)) => show::run(args, &OneKey { id: key.id }).await,
        Some(SearchResult::Customer(found)) => {
            customers::show(args, &OneCustomer { id: found.id }).await
        }
        Some(SearchResult::Payment(payment)) => {
            payments::print(args, &payment);
            Ok(())
        }
        Some(SearchResult::Labelled { customers, keys }) => {
            list(args, &customers, &keys);
            Ok(())
        }
        Some(SearchResult::Entry(entry)) => {
            let document = json!(RequestDocument::from(&*entry));
            let owner = match entry.key {
                Some(key) => book.find_key(key).await?,
                None => None,
            };
            print(args, &document, owner.as_ref());
            Ok(())
        }
        None => Err(unknown(&id, remembered.err())),
    }
}

/// The subscription with this id.
async fn subscription(
    book: &SharedStore,
    id: &str,
) -> Result<Option<SubscriptionId>, CommandFailed> {
    let Some(Ok(id)) = id.starts_with("s_").then(|| id.parse()) else {
        return Ok(None);
    };
    Ok(book.subscription(id).await?.map(|of| of.id))
}

/// Nothing has this name; `unasked` is why the gateway could not be asked.
fn unknown(id: &str, unasked: Option<String>) -> CommandFailed {
    let why = match unasked {
        None => "the gateway does not remember it either".to_owned(),
        Some(why) => format!("refused requests are known only to the running gateway, and {why}"),
    };
    let shown = output::plain(id);
    CommandFailed::refused(format!(
        "nothing in the ledger has the id, reference or label {shown}; {why}"
    ))
}

/// What was asked for, from a prompt or standard input: other users of the machine can read command lines.
fn prompt() -> Result<String, CommandFailed> {
    output::note("Paste an id or a key and press Enter:");
    let mut line = String::new();
    std::io::stdin()
        .read_line(&mut line)
        .map_err(|error| CommandFailed::refused(format!("standard input: {error}")))?;
    Ok(line.trim().to_owned())
}

/// What the running gateway knows of a request, or why it cannot be asked.
async fn remembered(args: &Args, id: &str) -> Result<Option<Value>, String> {
    // Anything else would be no path.
    if id.is_empty()
        || !id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    {
        return Ok(None);
    }
    gateway::read(args, &format!("/requests/{id}")).await
}

/// The key of a request.
async fn owner(book: &SharedStore, document: &Value) -> Option<Key> {
    let parts = ["record", "entry", "running"];
    let id = parts
        .iter()
        .find_map(|part| document[*part]["key"].as_str())?;
    book.find_key(id.parse().ok()?).await.ok()?
}

/// Several customers and keys whose labels contain the text.
fn list(args: &Args, customers: &[Customer], keys: &[Key]) {
    if args.format() == OutputFormat::Json {
        let customers: Vec<_> = customers.iter().map(CustomerDocument::from).collect();
        let keys: Vec<_> = (keys.iter())
            .map(|key| KeyDocument::of(key, clock::now()))
            .collect();
        return output::print_json(&json!({ "keys": keys, "customers": customers }));
    }
    let tables = [
        (!customers.is_empty()).then(|| tables::customers_table(customers)),
        (!keys.is_empty()).then(|| tables::keys_table(keys)),
    ];
    let tables: Vec<String> = tables.into_iter().flatten().collect();
    output::print(&tables.join("\n"));
}

fn print(args: &Args, document: &Value, owner: Option<&Key>) {
    if args.format() == OutputFormat::Json {
        return output::print_json(document);
    }
    let lines = page(document, owner);
    let lines = lines
        .iter()
        .map(|(name, value)| format!("{name:<13} {}\n", output::plain(value)));
    output::print(lines.collect::<String>().trim_end());
}

/// Names and values, for people.
fn page(document: &Value, owner: Option<&Key>) -> Vec<(&'static str, String)> {
    let (record, entry, running) = (
        &document["record"],
        &document["entry"],
        &document["running"],
    );
    let first = |name: &str| {
        let parts = [record, entry, running].into_iter();
        parts
            .map(|part| words(&part[name]))
            .find(|text| !text.is_empty())
            .unwrap_or_default()
    };
    let key = match owner {
        Some(key) => format!("{} {}", key.id, key.settings.label),
        None => first("key"),
    };
    let mut page = vec![
        ("request", words(&document["request_id"])),
        ("at", first("at")),
        ("key", key),
    ];
    if entry["kind"].as_str().is_some_and(|kind| kind != "charge") {
        for name in [
            "kind",
            "amount",
            "balance_after",
            "reference",
            "reason",
            "actor",
        ] {
            page.push((name, words(&entry[name])));
        }
    } else {
        of_request(&mut page, document, first);
    }
    page.retain(|(_, value)| !value.is_empty());
    // The record and the ledger's entry may both say it, each by its own name.
    page.dedup_by(|later, earlier| later.0 == "charged" && earlier.0 == "charged");
    page
}

/// What a request asked for, got and cost. `first` reads a member from the first document that has it.
fn of_request(
    page: &mut Vec<(&'static str, String)>,
    document: &Value,
    first: impl Fn(&str) -> String,
) {
    let [record, entry, running] = ["record", "entry", "running"].map(|part| &document[part]);
    page.push(("asked for", words(&record["asked"])));
    for (shown, name) in [
        ("model", "slug"),
        ("path", "family"),
        ("client", "client"),
        ("status", "status"),
        ("ended", "end_reason"),
        ("code", "code"),
        ("field", "field"),
        ("told", "message"),
        ("target", "target"),
        ("answer", "answer_id"),
        ("removed", "removed"),
        ("lost", "lost"),
    ] {
        page.push((shown, first(name)));
    }
    let attempts = record["attempts"].as_array().into_iter().flatten();
    page.extend(attempts.map(|attempt| ("attempt", words(attempt))));
    page.push(("held", held(record, entry, running)));
    page.push((
        "counts",
        pairs(if entry["usage"].is_object() {
            &entry["usage"]
        } else {
            &record["usage"]
        }),
    ));
    let lines = entry["lines"].as_array().into_iter().flatten();
    page.extend(lines.map(|line| ("line", pairs(line))));
    page.push(("served", pairs(&entry["served"])));
    for (shown, name) in [
        ("charged", "charge"),
        ("charged", "amount"),
        ("loss", "loss"),
        ("exposure", "exposure"),
        ("cost", "cost"),
        ("cost by", "cost_source"),
        ("provider says", "provider_cost"),
        ("counted by", "evidence"),
        ("balance", "balance_after"),
        ("first byte", "first_byte_ms"),
        ("total ms", "total_ms"),
    ] {
        page.push((shown, first(name)));
    }
}

fn held(record: &Value, entry: &Value, running: &Value) -> String {
    if running.is_object() {
        return format!(
            "{} now, {} used at the last checkpoint",
            words(&running["hold"]),
            words(&running["used"])
        );
    }
    let hold = [record, entry].map(|part| words(&part["hold"]));
    let hold = hold
        .into_iter()
        .find(|hold| !hold.is_empty())
        .unwrap_or_default();
    match record["moves"].as_u64() {
        Some(times) if times > 0 => format!("{hold}, moved {}", output::count(times, "time")),
        Some(_) | None => hold,
    }
}

/// A value in one line.
fn words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Members that say something, in one line.
fn pairs(object: &Value) -> String {
    let members = object.as_object().into_iter().flatten();
    let members = members.filter(|(_, value)| **value != json!(0) && !words(value).is_empty());
    members
        .map(|(name, value)| format!("{name} {}", words(value)))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_sees_what_was_served_and_what_its_provider_says() {
        let entry = json!({
            "kind": "charge",
            "usage": {"output": 5, "input": 0, "cache_write_12h": 7},
            "served": {"tier": "fast", "place": "us", "context_band": 0, "account": ""},
            "lines": [{"what": "output", "count": 5, "rate": "0.000002", "class": "fast,us"}],
            "provider_cost": "0.000009",
        });
        let document =
            json!({"request_id": "req_1", "record": null, "running": null, "entry": entry});
        let shown = page(&document, None);
        let of = |name: &str| -> Vec<&str> {
            let found = shown.iter().filter(|(other, _)| *other == name);
            found.map(|(_, value)| value.as_str()).collect()
        };
        let words = |text: &str| {
            let mut words: Vec<String> = text.split(", ").map(str::to_owned).collect();
            words.sort();
            words
        };
        assert_eq!(words(of("served")[0]), ["place us", "tier fast"]);
        assert_eq!(of("provider says"), ["0.000009"]);
        assert!(of("line")[0].contains("class fast,us"), "{shown:?}");
        assert_eq!(words(of("counts")[0]), ["cache_write_12h 7", "output 5"]);
    }
}
