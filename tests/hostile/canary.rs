//! Canaries in everything that a provider can write: none reaches a customer, the log or the live view.

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::{Reply, Script, ScriptedUpstream, Speech};
use crate::support::{Gateway, ask, path};

/// The provider's secret as the test configuration resolves it.
const SECRET: &str = "upstream-secret-of-UPSTREAM_KEY";
const CANARY: &str = "canary-7d1f";

/// Pieces of the secret or the canary that must be nowhere.
#[track_caller]
fn clean(text: &str, place: &str) {
    let lower = text.to_ascii_lowercase();
    let secret = SECRET.to_ascii_lowercase();
    let leak = secret.as_bytes().windows(16).map(|piece| std::str::from_utf8(piece).unwrap()).find(|piece| lower.contains(piece));
    assert!(leak.is_none(), "{place}: {leak:?} in {text}");
    assert!(!lower.contains(CANARY), "{place}: {text}");
    assert!(!text.chars().any(|c| matches!(c, '\u{202e}' | '\u{9b}' | '\u{1b}')), "{place}: {text:?}");
}

/// A chat answer, and the same for the other families, with canaries where no client looks.
fn marked(family: Family, stream: bool) -> Vec<u8> {
    let speech = Speech::new(family, "PONG");
    let reply = if stream { speech.stream() } else { speech.whole() };
    let plain = reply.texts().concat();
    let members = format!("\"provider\":\"{CANARY}\",\"x_groq\":{{\"id\":\"{CANARY}\"}},\"request_id\":\"{CANARY}\",");
    if !stream {
        let again = format!(",\"model\":\"{CANARY}\"}}");
        return format!("{{{members}{}{again}", plain.trim_end().strip_prefix('{').unwrap().strip_suffix('}').unwrap())
            .into_bytes();
    }
    let marked = plain.replace("data: {", &format!(": {CANARY}\nid: {CANARY}\nretry: 1\ndata: {{{members}"));
    // The first frame decides whether the answer is good at all; text that is no JSON may stand behind it.
    let (first, rest) = marked.split_once("\n\n").unwrap();
    format!(": {CANARY}\n\n{first}\n\ndata: {CANARY} is no JSON\n\n{rest}").into_bytes()
}

#[tokio::test]
async fn good_answers_say_nothing_about_who_gave_them() {
    for family in Family::ALL {
        for stream in [false, true] {
            let body = marked(family, stream);
            let kind = if stream { "text/event-stream" } else { "application/json" };
            let upstream = ScriptedUpstream::start(Reply::whole(200, kind, body).header("x-request-id", CANARY)).await;
            let gateway = Gateway::before(&upstream).await;
            let key = gateway.key("5.00").await;
            let answer = gateway.post(path(family), &key, &ask(family, "test-model", stream)).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            assert!(answer.text.contains("PONG") && answer.text.contains("test-model"), "{}", answer.text);
            let place = format!("{} stream={stream}", family.name());
            clean(&answer.text, &place);
            clean(&format!("{:?}", answer.headers), &place);
            gateway.settled().await;
            clean(&format!("{:?}", gateway.records.all()), &place);
        }
    }
}

#[tokio::test]
async fn errors_of_every_status_say_nothing_about_the_account() {
    let statuses = [200, 205, 206, 226, 302, 400, 401, 402, 403, 404, 409, 413, 422, 429, 500, 502, 503, 529];
    for family in Family::ALL {
        let script = Script::by(move |seen, number| {
            let status = statuses[number % statuses.len()];
            let stream = seen.json()["stream"] == true;
            let text = format!("{}{SECRET} {} \u{202e}\u{9b}2J\n{CANARY}", "x ".repeat(number * 7 % 160), SECRET.to_uppercase());
            let body =
                json!({ "detail": format!("{SECRET} {CANARY}"), "error": { "type": SECRET, "code": SECRET, "message": text } });
            match (status, stream) {
                (200, true) => Reply::whole(200, "text/event-stream", format!("event: error\ndata: {body}\n\n")),
                _ => Reply::json(status, &body),
            }
        });
        let upstream = ScriptedUpstream::start(script).await;
        let gateway = Gateway::before(&upstream).await;
        for _ in 0..2 * statuses.len() {
            // A new key each time: earlier failures close the model to the key that had them.
            let key = gateway.key("5.00").await;
            for stream in [false, true] {
                let answer = gateway.post(path(family), &key, &ask(family, "test-model", stream)).await;
                assert_ne!(answer.status, 200, "{}", answer.text);
                // The client's own fault keeps its wording, and so the canary; never the secret.
                clean(&answer.text.replace(CANARY, ""), family.name());
            }
        }
        gateway.settled().await;
        for record in gateway.records.all() {
            let shown = serde_json::to_value(&record).unwrap();
            clean(&shown.to_string().replace(CANARY, ""), family.name());
            let reasons = shown["attempts"].as_array().cloned().unwrap_or_default();
            assert!(reasons.iter().filter_map(Value::as_str).all(|reason| reason.len() < 1_000 && !reason.contains('\n')));
        }
        let status = gateway.ask("/status").await;
        clean(&status.text.replace(CANARY, ""), "status");
    }
}

#[tokio::test]
async fn a_200_that_is_no_answer_is_not_passed_on() {
    for family in Family::ALL {
        let upstream = ScriptedUpstream::start(Reply::json(200, &json!({ "detail": format!("bad key {SECRET}") }))).await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5.00").await;
        let answer = gateway.post(path(family), &key, &ask(family, "test-model", false)).await;
        assert!(answer.status >= 500, "{}", answer.text);
        clean(&answer.text, family.name());
    }
}
