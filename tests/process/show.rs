//! One request, payment or key, found by whatever somebody names: `farebox show`, `/requests/{id}`, and the counts of fields that
//! clients send and nobody serves.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use farebox_protocol::Family;
use serde_json::{Value, json};

use super::bad_days::Place;
use crate::support::process::{client, document_at, farebox, text_at};
use crate::support::upstream::{Gate, Reply, ScriptedUpstream, Speech};
use crate::support::{routes, talking};

/// Sends a body: the request's id, the status, and the answer.
async fn send(place: &Place, body: &Value) -> (String, u16, Value) {
    let request = client()
        .post(format!("{}/v1/chat/completions", place.served.base))
        .bearer_auth(&place.keys[0].1)
        .json(body);
    let answer = request.send().await.unwrap();
    let id = answer.headers()["x-request-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let status = answer.status().as_u16();
    (id, status, answer.json().await.unwrap())
}

/// What the gateway says of one request.
async fn one(place: &Place, id: &str) -> Value {
    let text = place.served.read(&format!("/requests/{id}")).await;
    serde_json::from_str(&text).unwrap()
}

/// What `farebox show` prints for this id, from its arguments or from standard input.
fn shown(place: &Place, arguments: &[&str], typed: Option<&str>) -> (bool, String) {
    let admin = place.served.admin.trim_start_matches("http://");
    let all = [&["show"][..], arguments, &["--admin-listen", admin]].concat();
    let folder: &Path = place.folder.path();
    let mut child = farebox(folder, &all)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(typed.unwrap_or_default().as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[track_caller]
fn says(place: &Place, id: &str, words: &[&str]) {
    let (found, text) = shown(place, &[id], None);
    for word in words {
        assert!(
            found && text.contains(word),
            "{word:?} of {id} is not in:\n{text}"
        );
    }
}

fn ask(more: &Value) -> Value {
    let mut body =
        json!({ "model": "test-alias", "messages": [{ "role": "user", "content": "Say PONG" }] });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_found_by_its_id_its_answers_id_and_in_both_endings() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let place = Place::start(&upstream.base_url());
    let (refused, status, told) = send(&place, &ask(&json!({ "brand_new_field": 1 }))).await;
    assert_eq!(
        (status, &told["error"]["param"]),
        (400, &json!("brand_new_field"))
    );
    let key = place.keys[0].0.clone();
    says(
        &place,
        &refused,
        &[
            &refused,
            &key,
            "test-alias",
            "400",
            "unknown_parameter",
            "brand_new_field",
            "is not supported with test-model",
        ],
    );

    let (answered, status, answer) = send(&place, &ask(&json!({}))).await;
    assert_eq!(status, 200);
    for id in [answered.as_str(), answer["id"].as_str().unwrap()] {
        says(
            &place,
            id,
            &[
                &answered,
                &key,
                "test-alias",
                "up/upstream-model-1",
                "stop",
                "held",
                "input 10",
                "rate",
                "charged",
                "balance",
            ],
        );
    }
    let document = one(&place, &answered).await;
    assert_eq!(document["record"]["slug"], "test-model", "{document}");
    assert_eq!(document["entry"]["kind"], "charge", "{document}");
    let unknown = one(&place, "req_nothing").await;
    assert!(
        unknown["error"]
            .as_str()
            .unwrap()
            .starts_with("no such request")
    );

    let broken = Reply::error(
        400,
        "invalid_request_error",
        Some("bad_thing"),
        "the picture is upside down",
    );
    upstream.follow(broken);
    let (refused, status, _) = send(&place, &ask(&json!({}))).await;
    assert_eq!(status, 400);
    says(
        &place,
        &refused,
        &[
            "bad_thing",
            "the picture is upside down",
            "upstream_refused",
            "up/upstream-model-1",
        ],
    );
    upstream.follow(Reply::error(500, "server_error", None, "worn out"));
    let (failed, status, _) = send(&place, &ask(&json!({}))).await;
    assert_eq!(status, 503);
    says(
        &place,
        &failed,
        &[
            "upstream_unavailable",
            "attempt",
            "up/upstream-model-1: broken: 500 server_error worn out",
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_request_tells_where_it_is() {
    let gate = Gate::new();
    let speech = Speech::new(Family::Chat, "one two three four").stream();
    let upstream = ScriptedUpstream::start(speech.gate_after(3, &gate)).await;
    let place = Place::start(&upstream.base_url());
    let request = client()
        .post(format!("{}/v1/chat/completions", place.served.base))
        .bearer_auth(&place.keys[0].1)
        .json(&ask(&json!({ "stream": true })));
    let answer = request.send().await.unwrap();
    let id = answer.headers()["x-request-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let document = one(&place, &id).await;
    let now = &document["under_way"];
    assert_eq!(now["target"], "up/upstream-model-1", "{document}");
    assert_eq!(
        (&now["answers"], &now["attempts"]),
        (&json!(true), &json!([])),
        "{document}"
    );
    assert_eq!(document["running"]["slug"], "test-model", "{document}");
    gate.open();
    answer.text().await.unwrap();
    let begun = std::time::Instant::now();
    loop {
        let document = one(&place, &id).await;
        if document["under_way"].is_null() && document["entry"].is_object() {
            break;
        }
        assert!(begun.elapsed().as_secs() < 60, "{document}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_a_key_a_label_and_a_secret_are_found() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let place = Place::start(&upstream.base_url());
    let (id, secret) = place.keys[0].clone();
    says(&place, "inv-0", &["top_up", "inv-0", "10", &id]);
    says(&place, "INV-1", &["top_up", "inv-1", &place.keys[1].0]);
    says(&place, &id, &["key", &id, "available"]);
    says(&place, "t", &[&id, &place.keys[1].0, &place.keys[2].0]);
    for (arguments, typed) in [(&["-"][..], &secret), (&[][..], &secret)] {
        let (found, text) = shown(&place, arguments, Some(typed));
        assert!(
            found && text.contains(&id) && !text.contains(&secret),
            "{text}"
        );
    }
    let (found, text) = shown(&place, &["no-such-thing"], None);
    assert!(
        !found && text.contains("no-such-thing") && text.contains("nothing in the ledger"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_are_refused_or_taken_out_are_counted_by_name() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let place = Place::start(&upstream.base_url());
    for _ in 0..2 {
        assert_eq!(
            send(&place, &ask(&json!({ "brand_new_field": 1 }))).await.1,
            400
        );
    }
    let body = json!({ "model": "test-model", "input": "Say PONG", "context_hint": { "a": 1 } });
    let request = client()
        .post(format!("{}/v1/responses", place.served.base))
        .bearer_auth(&place.keys[0].1);
    let answer = request.json(&body).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["x-farebox-removed"], "context_hint");
    answer.text().await.unwrap();
    let admin = &place.served.admin;
    let status = document_at(&client(), format!("{admin}/status")).await;
    assert_eq!(
        status["client_fields"],
        json!([
            { "family": "chat", "field": "brand_new_field", "fate": "refused", "requests": 2 },
            { "family": "responses", "field": "context_hint", "fate": "taken_out", "requests": 1 },
        ]),
        "{status}"
    );
    let metrics = text_at(&client(), format!("{admin}/metrics")).await;
    assert!(
        metrics.contains("farebox_client_fields_total{family=\"chat\",field=\"brand_new_field\",fate=\"refused\"} 2"),
        "{metrics}"
    );
    let log = place.served.log();
    assert!(
        log.contains("code=\"unknown_parameter\"") && log.contains("field=\"brand_new_field\""),
        "{log}"
    );
}

/// What a vendor complains of names the id that it was sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_customer_is_found_by_the_id_that_a_vendor_knows_also_once_it_is_erased() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let hashed = "private_urls = true\ncustomer_id = \"hashed\"";
    let files = routes(&upstream.base_url()).replace("private_urls = true", hashed);
    let place = Place::of(&files);
    let customer = place.keys[0].0.replace("k_", "c_");
    let set = |arguments: &[&str]| {
        let done = farebox(place.folder.path(), arguments).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    set(&["customers", "set", &customer, "--name", "Zoë"]);
    assert_eq!(send(&place, &ask(&json!({ "user": "u" }))).await.1, 200);
    let body = upstream.requests().pop().unwrap().json();
    let id = body["user"].as_str().unwrap();
    let (first, capitals) = (&id[..16], id.to_ascii_uppercase());
    for spelt in [id, first, &id[..20], &capitals] {
        says(&place, spelt, &[&customer, "Zoë"]);
    }
    for wrong in ["0123456789abcdef", &first[1..], &first[..15]] {
        let (found, text) = shown(&place, &[wrong], None);
        assert!(!found && text.contains("nothing in the ledger"), "{text}");
    }
    set(&["customers", "erase", &customer]);
    says(&place, id, &[&customer]);
    let (_, text) = shown(&place, &[id], None);
    assert!(!text.contains("Zoë"), "{text}");
}
