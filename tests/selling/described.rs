//! The OpenAPI document: every example in it is lived through against a real gateway, every answer has the shape that it promises, and
//! two independent validators accept it.

use std::collections::BTreeMap;
use std::process::Command;

use farebox::clock;
use farebox_ledger::{LinkToken, NewLink, Perform, TokenRole};
use serde_json::{Value, json};

use super::{Program, gateway, text};
use crate::support::{Answer, Gateway, TestKey, act, chat, skip};

/// What stands in the examples for what is only known at run time.
type RealNames = BTreeMap<String, String>;

/// A document with what is known in place of the examples' names.
fn known_in(document: &str, known: &RealNames) -> String {
    known
        .iter()
        .fold(document.to_owned(), |text, (name, real)| {
            text.replace(name, real)
        })
}

/// Whether a value is what a schema promises, or where it is not.
fn check(value: &Value, schema: &Value, all: &Value, at: &str) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return check(value, &all[name], all, at);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = any.iter().any(|one| check(value, one, all, at).is_ok());
        return if fits {
            Ok(())
        } else {
            Err(format!("{at}: {value} fits none of {any:?}"))
        };
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let allowed = match &schema["type"] {
        Value::Null => return Ok(()),
        Value::String(one) => vec![one.as_str()],
        many => many
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.as_str().unwrap())
            .collect(),
    };
    if !allowed.contains(&kind) {
        return Err(format!("{at}: {value} is no {allowed:?}"));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return Err(format!("{at}: {value} is none of {words:?}"));
    }
    if let Some(rows) = value.as_array() {
        return rows
            .iter()
            .try_for_each(|row| check(row, &schema["items"], all, at));
    }
    let Some(members) = value.as_object() else {
        return Ok(());
    };
    for name in schema["required"].as_array().into_iter().flatten() {
        if !members.contains_key(name.as_str().unwrap()) {
            return Err(format!("{at}: {name} is missing in {value}"));
        }
    }
    for (name, member) in members {
        match schema["properties"].get(name) {
            Some(schema) => check(member, schema, all, &format!("{at}.{name}"))?,
            None if schema["additionalProperties"] == false => {
                return Err(format!("{at}: {name} is not described"));
            }
            None => {}
        }
    }
    Ok(())
}

pub(super) async fn document(gateway: &Gateway) -> Value {
    let answer = gateway.ask("/api/v1/openapi.json").await;
    assert_eq!(answer.status, 200, "no token is needed: {}", answer.text);
    answer.json()
}

/// The operations in the order of the document's story.
pub(super) fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let order = operation["x-order"].as_u64().unwrap();
            found.push((
                order,
                path.clone(),
                method.to_uppercase(),
                operation.clone(),
            ));
        }
    }
    found.sort_by_key(|(order, ..)| *order);
    found
        .into_iter()
        .map(|(_, path, method, operation)| (path, method, operation))
        .collect()
}

/// The path of an operation with its examples in place of the names.
pub(super) fn place(path: &str, operation: &Value) -> String {
    let mut place = path.to_owned();
    let mut query = Vec::new();
    for parameter in operation["parameters"].as_array().unwrap() {
        let (name, sent) = (parameter["name"].as_str().unwrap(), &parameter["example"]);
        match parameter["in"].as_str().unwrap() {
            "path" => place = place.replace(&format!("{{{name}}}"), sent.as_str().unwrap()),
            "query" if parameter["required"] == true => {
                let word = &parameter["schema"]["enum"][0];
                query.push(format!("{name}={}", word.as_str().unwrap()));
            }
            _ => {}
        }
    }
    if query.is_empty() {
        place
    } else {
        format!("{place}?{}", query.join("&"))
    }
}

/// Two payments that could not be booked, and another customer: what the story finds when it begins.
async fn prepare(program: &Program) -> RealNames {
    let closed = program.customer("Closed").await;
    program
        .does(&format!("/customers/{closed}/close"), &json!({}), 200)
        .await;
    for reference in ["pi_2001", "pi_2002"] {
        let body = json!({ "amount": "3", "reference": reference });
        program
            .does(&format!("/customers/{closed}/top-ups"), &body, 202)
            .await;
    }
    let other = program.customer("Other").await;
    RealNames::from([("c_9k2m4n6p8q".to_owned(), other)])
}

#[tokio::test]
async fn every_example_is_true() {
    let (_upstream, gateway) = gateway().await;
    let program = Program::new(&gateway, TokenRole::Manage).await;
    let document = document(&gateway).await;
    let schemas = &document["components"]["schemas"];
    let mut known = prepare(&program).await;
    let mut run = 0;
    for (path, method, operation) in operations(&document) {
        let responses = operation["responses"].as_object().unwrap();
        let Some(status) = responses.keys().find(|status| status.starts_with('2')) else {
            continue;
        };
        let media = &responses[status]["content"]["application/json"];
        let at = format!("{method} {path}");
        if let Some(example) = media.get("example") {
            check(example, &media["schema"], schemas, &at).unwrap();
        }
        let url = if path == "/customers/{customer}/close" {
            // The one of the story has a plan by now.
            format!("/customers/{}/close", program.customer("Leaves").await)
        } else {
            known_in(&place(&path, &operation), &known)
        };
        let mut request = program.request(&method, &url);
        if method == "POST" {
            request = request.header("idempotency-key", at.replace(' ', "-"));
        }
        if let Some(content) = operation["requestBody"]["content"].get("application/json") {
            check(&content["example"], &content["schema"], schemas, &at).unwrap();
            request = request.body(known_in(&content["example"].to_string(), &known));
        }
        let answer = Answer::read(request.send().await.unwrap()).await;
        assert_eq!(
            answer.status.to_string(),
            *status,
            "{at} {url}: {}",
            answer.text
        );
        run += 1;
        if answer.status == 204 {
            assert_eq!((&*answer.text, media), ("", &Value::Null), "{at}");
            continue;
        }
        check(&answer.json(), &media["schema"], schemas, &at).unwrap();
        learn(&gateway, &at, &answer.json(), &mut known).await;
    }
    assert!(run > 35, "{run}");
    let report = gateway.ledger.verify().await.unwrap();
    assert_eq!(report.faults, [""; 0]);
}

/// What later examples name.
async fn learn(gateway: &Gateway, at: &str, answer: &Value, known: &mut RealNames) {
    match at {
        "POST /customers" => {
            known.insert("c_7f3q9d2xw1".to_owned(), text(answer, "id"));
            known.insert("first secret".to_owned(), text(&answer["key"], "secret"));
        }
        "POST /customers/{customer}/auto-top-up" => {
            let wanted = text(&answer["auto_top_up"]["pending"], "reference");
            known.insert("auto-top-up:c_7f3q9d2xw1-4".to_owned(), wanted);
        }
        "POST /reservations" => {
            known.insert("r_7f3q9d2xw1".to_owned(), text(answer, "id"));
        }
        "POST /keys/{key}/links" => {
            let key = farebox_ledger::search::key_id(&known["first secret"]).unwrap();
            let link = LinkToken::generate(clock::random());
            let new = NewLink {
                key,
                token: link.shop_hash(),
                expires: LinkToken::shop_expires(clock::now()),
                act: act(),
            };
            gateway.ledger.perform(new).await.unwrap();
            let token = link.shop_url("x").replace("x?link=", "");
            known.insert("0123456789abcdef".repeat(4), token);
        }
        "POST /customers/{customer}/grants" => {
            known.insert("g_7f3q9d2xw1".to_owned(), text(answer, "id"));
        }
        "POST /customers/{customer}/plans" => {
            known.insert(
                "s_7f3q9d2xw1".to_owned(),
                text(&answer["subscription"], "id"),
            );
        }
        "POST /vouchers" => {
            known.insert("l_7f3q9d2xw1".to_owned(), text(answer, "id"));
        }
        "POST /customers/{customer}/keys" => {
            known.insert("k_7f3q9d2xw1".to_owned(), text(answer, "id"));
        }
        "POST /customers/{customer}/top-ups" => {
            let secret = known["first secret"].clone();
            let id = farebox_ledger::search::key_id(&secret).unwrap();
            let key = TestKey { id, secret };
            let answer = gateway
                .post("/v1/chat/completions", &key, &chat("test-model", false))
                .await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            let request = answer.header("x-request-id").unwrap().to_owned();
            gateway.settled().await;
            known.insert("req_01kaxv8m3n5p7q9r1s3t5v7w9x".to_owned(), request);
        }
        _ => {}
    }
}

#[tokio::test]
async fn every_answer_that_is_promised_is_an_error_without_a_token() {
    let (_upstream, gateway) = gateway().await;
    let document = document(&gateway).await;
    for (path, method, operation) in operations(&document) {
        if operation["security"] == json!([]) {
            continue;
        }
        let url = format!("{}/api/v1{}", gateway.admin, place(&path, &operation));
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let answer = Answer::read(gateway.client.request(method, url).send().await.unwrap()).await;
        assert_eq!(answer.status, 401, "{path}");
        check(
            &answer.json(),
            &document["components"]["schemas"]["Error"],
            &json!({}),
            &path,
        )
        .unwrap();
    }
}

#[tokio::test]
async fn two_independent_validators_accept_it() {
    let tools = format!("{}/target/tools/openapi", crate::support::HOME);
    let (python, node) = (
        format!("{tools}/python/bin/python"),
        format!("{tools}/node_modules/.bin/redocly"),
    );
    let (_upstream, gateway) = gateway().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openapi.json");
    std::fs::write(&file, document(&gateway).await.to_string()).unwrap();
    let mut validated = 0;
    for (program, arguments) in [
        (python, vec!["-m", "openapi_spec_validator"]),
        (node, vec!["lint", "--extends", "minimal"]),
    ] {
        if !std::path::Path::new(&program).exists() {
            skip::skip(&format!(
                "the OpenAPI document by {program}: it is not installed"
            ));
            continue;
        }
        let output = Command::new(&program)
            .args(arguments)
            .arg(&file)
            .env("REDOCLY_TELEMETRY", "off")
            .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true")
            .output()
            .unwrap();
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(output.status.success(), "{program}: {said}");
        validated += 1;
    }
    assert!(validated == 2 || std::env::var_os("FAREBOX_ALLOW_SKIP").is_some());
}
