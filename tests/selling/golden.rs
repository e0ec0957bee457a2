//! What programs are told, as it was: the OpenAPI document, and the refusal of each act for each kind of mistake. A changed line is a
//! decision, and stands in the change that makes it.

use farebox::clock;
use farebox_ledger::TokenRole;
use serde_json::{Value, json};

use super::described::{document, operations, place};
use super::{Program, gateway};
use crate::support::Answer;

#[tokio::test]
async fn the_document_is_as_it_was() {
    let (_upstream, gateway) = gateway().await;
    let document = serde_json::to_string_pretty(&document(&gateway).await).unwrap();
    insta::assert_snapshot!("openapi", document.replace(&gateway.admin, "http://ADMIN"));
}

#[tokio::test]
async fn refusals_of_every_act_are_as_they_were() {
    let (_upstream, gateway) = gateway().await;
    let program = Program::new(&gateway, TokenRole::Manage).await;
    let document = document(&gateway).await;
    let mut told = String::new();
    for (path, method, operation) in operations(&document) {
        let Some(content) = operation["requestBody"]["content"].get("application/json") else {
            continue;
        };
        told += &format!("## {method} {path}\n");
        let schema = &content["schema"];
        let schema = match schema["$ref"].as_str() {
            Some(name) => &document["components"]["schemas"][name.rsplit('/').next().unwrap()],
            None => schema,
        };
        for (mistake, body) in mistakes(&content["example"], schema) {
            let url = place(&path, &operation);
            let key = clock::operation_id().to_string();
            let request = program
                .request(&method, &url)
                .header("idempotency-key", key);
            let answer = Answer::read(request.body(body).send().await.unwrap()).await;
            let said = match answer.status {
                400..=499 => without_ids(&answer.json()["error"].to_string()),
                _ => "taken".to_owned(),
            };
            told += &format!("{mistake}: {} {said}\n", answer.status);
        }
        told.push('\n');
    }
    insta::assert_snapshot!("refusals", told);
}

/// A text without the ends of ids, which are new in every run.
fn without_ids(text: &str) -> String {
    let id = |word: &str| {
        let (kind, rest) = word.split_once('_')?;
        let is_id = kind.len() == 1
            && rest.len() == 10
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_id.then(|| format!("{kind}_…"))
    };
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !part(c));
    let found = words.filter_map(|word| Some((word, id(word)?)));
    found.fold(text.to_owned(), |text, (word, id)| text.replace(word, &id))
}

/// Every kind of mistake in a document: of the whole, and of each member.
fn mistakes(example: &Value, schema: &Value) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = [
        ("no JSON", "{"),
        ("a list", "[]"),
        ("nothing", "{}"),
        ("null", "null"),
    ]
    .map(|(mistake, body)| (mistake.to_owned(), body.to_owned()))
    .to_vec();
    let with = |name: &str, value: Option<Value>| {
        let mut body = example.clone();
        let members = body.as_object_mut().unwrap();
        match value {
            Some(value) => drop(members.insert(name.to_owned(), value)),
            None => drop(members.remove(name)),
        }
        body.to_string()
    };
    all.push((
        "an unknown member".to_owned(),
        with("nonsense", Some(json!(1))),
    ));
    for name in schema["properties"].as_object().unwrap().keys() {
        // Nearly its name.
        let typo = format!("{name}s");
        all.push((typo.clone(), with(&typo, Some(json!(1)))));
        all.push((format!("no {name}"), with(name, None)));
        for value in [
            json!(null),
            json!(-1),
            json!(1.5),
            json!(true),
            json!(""),
            json!("§"),
            json!("x".repeat(3_000)),
            json!([1]),
            json!({"a": 1}),
        ] {
            let mut shown = value.to_string();
            if shown.len() > 20 {
                shown = "a long text".to_owned();
            }
            all.push((format!("{name} = {shown}"), with(name, Some(value))));
        }
    }
    all
}
