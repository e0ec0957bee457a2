//! What a program can do about a 400 by itself stands in `error.details`. A program that does it is served, for each refusal that has
//! such a remedy; and known programs read what to set in them.

mod program;
mod rows;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use farebox_protocol::{BadRequest, Family, Remedy};
use serde_json::{Value, json};

use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, CATALOG, Gateway, HOME, TestKey, ask, path, talking};
use program::Request;
use rows::{Row, UNREACHED};

use Family::Responses;

/// The test models, and others whose targets know less.
fn catalog() -> String {
    let model = |slug: &str, best: &str, classes: &str, more: &str| {
        format!(
            r#"
[[model]]
model = "{slug}"
slug = "{slug}"
provider = "Tests"
best_path = "{best}"
best_environments = ["tests"]
price = {{ input = "3.00", output = "15.00"{classes} }}
capabilities = ["vision", "tools", "streaming"]
limits = {{ context = 200_000, max_output = 64_000{more} }}
"#
        )
    };
    let fast = r#", classes = { fast = { times = "2", context = 1_000 } }"#;
    let flex = r#", classes = { flex = "0.5" }"#;
    [
        CATALOG.to_owned(),
        model("small", "chat", "", ", tools = 2, image_bytes = 1_000"),
        model("walled", "chat", "", ""),
        model("classes", "chat", fast, ""),
        model("tiers", "messages", flex, ""),
        model("to-chat", "chat", "", ""),
        model("to-messages", "messages", "", ""),
    ]
    .concat()
}

/// What serves them, all of it one upstream.
fn routes(base_url: &str) -> String {
    let provider = |name: &str, speaks: &str, more: &str| {
        format!(
            "[provider.{name}]\nbase_url = \"{base_url}\"\nspeaks = {speaks}\nkey = {{ env = \"UPSTREAM_KEY\" }}\n{more}\n"
        )
    };
    let route = |slug: &str, provider: &str, abilities: &str| {
        format!(
            "[[route]]\nslug = \"{slug}\"\ntargets = [ {{ provider = \"{provider}\", model = \"up-{slug}\"{abilities} }} ]\n"
        )
    };
    let all = r#"["chat", "responses", "messages"]"#;
    let open = "private_urls = true";
    [
        provider(
            "up",
            all,
            &format!("{open}\nrefuse_beta = [\"context-1m-*\"]"),
        ),
        provider("walled", all, ""),
        provider("chat", r#"["chat"]"#, open),
        provider("messages", r#"["messages"]"#, open),
        route("test-model", "up", ""),
        route("test-blind", "up", ""),
        route("small", "up", ""),
        route("walled", "walled", ""),
        route("classes", "up", ""),
        route("tiers", "messages", ""),
        route(
            "to-chat",
            "chat",
            ", abilities = { vision = false, json_schema = false }",
        ),
        route("to-messages", "messages", ", abilities = { files = true }"),
    ]
    .concat()
}

async fn gateway(upstream: &ScriptedUpstream) -> Gateway {
    Gateway::start(&catalog(), &routes(&upstream.base_url())).await
}

fn request(row: &Row) -> Request {
    let mut body = ask(row.family, row.slug, false);
    for (name, value) in row.fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    Request {
        family: row.family,
        body,
        headers: row.headers.clone(),
    }
}

async fn send(gateway: &Gateway, key: &TestKey, request: &Request) -> Answer {
    let text = request.body.to_string();
    let at = path(request.family);
    gateway.send(at, key, text, &request.headers).await
}

/// What is in the details; of numbers that this family is not told, what its text says.
fn details(error: &Value, row: &Row) -> Value {
    if !error["details"].is_null() {
        return error["details"].clone();
    }
    let said = BadRequest::at("", "").with(row.remedy);
    said.details(true).unwrap()
}

#[tokio::test]
async fn each_refusal_carries_its_remedy_and_a_program_that_does_it_is_served() {
    let upstream = ScriptedUpstream::start(talking("x")).await;
    let gateway = gateway(&upstream).await;
    let key = gateway.key("500.00").await;
    let models = gateway.get("/v1/models", &key).await.json();
    let mut faults = Vec::new();
    for row in rows::all() {
        let mut request = request(&row);
        let mut answer = send(&gateway, &key, &request).await;
        let mut fault = answer.status != 400 || answer.json()["error"]["details"] != row.details;
        // Each refusal names one thing: what else is wrong comes next.
        for _ in 0..3 {
            if fault || answer.status != 400 {
                break;
            }
            let error = answer.json()["error"].clone();
            // The native family's errors name no field.
            let param = error["param"].as_str().unwrap_or("stop_sequences");
            request.heed(&details(&error, &row), param, &models);
            answer = send(&gateway, &key, &request).await;
        }
        fault |= answer.status != 200;
        if fault {
            let sent: String = request.body.to_string().chars().take(300).collect();
            let Row { family, slug, .. } = row;
            faults.push(format!("{family} {slug} {sent}: {}", answer.text));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// Its number; a new remedy does not compile without one.
fn number(remedy: Remedy) -> usize {
    match remedy {
        Remedy::Unthreaded => 0,
        Remedy::Off(_) => 1,
        Remedy::Whole(_) => 2,
        Remedy::Without => 3,
        Remedy::WithoutEach(_) => 4,
        Remedy::Inline => 5,
        Remedy::AtMost(..) => 6,
        Remedy::Capable(_) => 7,
    }
}

/// How many places of a source file refuse with a remedy.
fn places(text: &str) -> usize {
    let remedies = text.match_indices("Remedy::").filter(|(at, word)| {
        let next = text[at + word.len()..].chars().next();
        next.is_some_and(char::is_uppercase)
    });
    // Such a refusal has a remedy of its own; `with` replaces it.
    let unsupported =
        text.matches("unsupported(").count() - text.matches("fn unsupported(").count();
    remedies.count().max(unsupported)
}

/// The source files below a folder, with their places.
fn below(folder: &Path, found: &mut BTreeMap<String, usize>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            below(&path, found);
            continue;
        }
        let name = path
            .strip_prefix(HOME)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let own = name.ends_with("bad_request.rs") || name.contains("test");
        let places = places(&fs::read_to_string(&path).unwrap_or_default());
        if !own && places > 0 {
            found.insert(name, places);
        }
    }
}

#[test]
fn every_place_that_names_a_remedy_has_its_rows() {
    let mut found = BTreeMap::new();
    for folder in ["src", "protocol/src"] {
        below(&Path::new(HOME).join(folder), &mut found);
    }
    let rows = rows::all();
    for (file, places) in found {
        let of_file = rows.iter().filter(|row| row.file == file).count();
        let unreached = UNREACHED.iter().filter(|(name, ..)| *name == file);
        let known = of_file + unreached.map(|(_, count, _)| count).sum::<usize>();
        assert!(
            known >= places,
            "{file} refuses with a remedy in {places} places, and tests/http/remedies/rows.rs has {known} rows"
        );
    }
    let mut numbers: Vec<usize> = rows.iter().map(|row| number(row.remedy)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(
        numbers,
        (0..8).collect::<Vec<usize>>(),
        "each remedy has a row"
    );
}

#[tokio::test]
async fn a_known_program_reads_what_to_set_in_it() {
    let upstream = ScriptedUpstream::start(talking("x")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let mut reference = ask(Responses, "test-model", false);
    reference["input"] = json!([{"type": "item_reference", "id": "rs_1"}]);
    for (sent, setting) in [
        (
            "ai/7.0.173 ai-sdk-provider-utils/5.0.81",
            Some("providerOptions: { openai: { store: false } }"),
        ),
        ("OpenAI/Python 3.54.0", None),
    ] {
        let request = Request {
            family: Responses,
            body: reference.clone(),
            headers: vec![("user-agent", sent)],
        };
        let answer = send(&gateway, &key, &request).await;
        let error = answer.json()["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("Send `store: false` and the items themselves"),
            "{message}"
        );
        assert!(
            setting.is_none_or(|setting| message.contains(setting)),
            "{message}"
        );
        assert_eq!(message.contains("AI SDK"), setting.is_some(), "{message}");
    }
}
