//! Canaries in everything that a provider can write: none reaches a customer, the log or the live view.

use std::sync::{Arc, Mutex};

use farebox_ledger::KeySettings;
use farebox_protocol::Family;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::load::UPSTREAM_KEY;
use crate::support::process::{self, Served};
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Speech};
use crate::support::{CATALOG, DIRECTIONS, Gateway, ask, catalog, path, routes, routes_speaking};

/// The provider's secret as the test configuration resolves it.
pub(super) const SECRET: &str = "upstream-secret-of-UPSTREAM_KEY";
pub(super) const CANARY: &str = "canary-7d1f";

/// Pieces of the secret or the canary that must not appear anywhere.
#[track_caller]
pub(super) fn clean(text: &str, place: &str) {
    clean_of(SECRET, text, place);
}

#[track_caller]
fn clean_of(secret: &str, text: &str, place: &str) {
    let lower = text.to_ascii_lowercase();
    let secret = secret.to_ascii_lowercase();
    let leak = secret
        .as_bytes()
        .windows(16)
        .map(|piece| std::str::from_utf8(piece).unwrap())
        .find(|piece| lower.contains(piece));
    assert!(leak.is_none(), "{place}: {leak:?} in {text}");
    assert!(!lower.contains(CANARY), "{place}: {text}");
    assert!(
        !text
            .chars()
            .any(|c| matches!(c, '\u{202e}' | '\u{9b}' | '\u{1b}')),
        "{place}: {text:?}"
    );
}

/// A chat answer, and the same for the other families, with canaries where no client looks.
fn marked(family: Family, stream: bool) -> Vec<u8> {
    let speech = Speech::new(family, "PONG");
    let reply = if stream {
        speech.stream()
    } else {
        speech.whole()
    };
    let plain = reply.texts().concat();
    let members = format!(
        "\"provider\":\"{CANARY}\",\"x_groq\":{{\"id\":\"{CANARY}\"}},\"request_id\":\"{CANARY}\","
    );
    // Inside of every object that the family itself writes: choices, messages, deltas, blocks, items, parts, usage.
    let nested = format!("\"model\":\"{CANARY}\",\"model\":{{\"name\":\"{CANARY}\"}},{members}");
    let mut plain = plain;
    for begin in [
        "\"index\":0",
        "\"usage\":{",
        "\"delta\":{",
        "\"message\":{",
        "\"role\":",
        "\"type\":\"text",
        "\"type\":\"output_text\"",
    ] {
        let (before, object) = begin
            .split_once('{')
            .map_or(("", begin), |(name, _)| (name, ""));
        plain = match before {
            "" => plain.replace(object, &format!("{nested}{object}")),
            name => plain.replace(&format!("{name}{{\""), &format!("{name}{{{nested}\"")),
        };
    }
    assert!(plain.matches(CANARY).count() > 10, "{plain}");
    if !stream {
        let again = format!(",\"model\":\"{CANARY}\"}}");
        return format!(
            "{{{members}{}{again}",
            plain
                .trim_end()
                .strip_prefix('{')
                .unwrap()
                .strip_suffix('}')
                .unwrap()
        )
        .into_bytes();
    }
    let marked = plain.replace(
        "data: {",
        &format!(": {CANARY}\nid: {CANARY}\nretry: 1\ndata: {{{members}"),
    );
    // The first frame decides whether the answer is good at all; text that is not JSON may follow it.
    let (first, rest) = marked.split_once("\n\n").unwrap();
    format!(": {CANARY}\n\n{first}\n\ndata: {CANARY} is no JSON\n\n{rest}").into_bytes()
}

/// The family's answer with members that no family knows, in every object at every depth.
fn strange(family: Family, stream: bool) -> String {
    fn plant(value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(plant),
            Value::Object(members) => {
                members.values_mut().for_each(plant);
                for name in [
                    "model",
                    "provider",
                    "request_id",
                    "organization",
                    "zz_debug",
                ] {
                    members.entry(name).or_insert_with(|| json!(CANARY));
                }
            }
            _ => {}
        }
    }
    let planted = |text: &str| match serde_json::from_str::<Value>(text) {
        Ok(mut value) if value.is_object() => {
            plant(&mut value);
            value.to_string()
        }
        _ => text.to_owned(),
    };
    let speech = Speech::new(family, "PONG");
    if !stream {
        return planted(&speech.whole().texts().concat());
    }
    let lines = speech.stream().texts().concat();
    let line = |line: &str| {
        line.strip_prefix("data: ").map_or_else(
            || line.to_owned(),
            |data| format!("data: {}", planted(data)),
        )
    };
    lines.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn good_answers_say_nothing_about_who_gave_them() {
    for family in Family::ALL {
        for stream in [false, true] {
            let body = marked(family, stream);
            let kind = if stream {
                "text/event-stream"
            } else {
                "application/json"
            };
            let upstream = ScriptedUpstream::start(
                Reply::whole(200, kind, body).header("x-request-id", CANARY),
            )
            .await;
            let gateway = Gateway::before(&upstream).await;
            let key = gateway.key("5.00").await;
            let answer = gateway
                .post(path(family), &key, &ask(family, "test-model", stream))
                .await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            assert!(
                answer.text.contains("PONG") && answer.text.contains("test-model"),
                "{}",
                answer.text
            );
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
    let statuses = [
        200, 205, 206, 226, 302, 400, 401, 402, 403, 404, 409, 413, 422, 429, 500, 502, 503, 529,
    ];
    for family in Family::ALL {
        let script = Script::by(move |seen, number| {
            let status = statuses[number % statuses.len()];
            let stream = seen.json()["stream"] == true;
            let text = format!(
                "{}{SECRET} {} \u{202e}\u{9b}2J\n{CANARY}",
                "x ".repeat(number * 7 % 160),
                SECRET.to_uppercase()
            );
            let body = json!({ "detail": format!("{SECRET} {CANARY}"), "error": { "type": SECRET, "code": SECRET, "message": text } });
            match (status, stream) {
                (200, true) => Reply::whole(
                    200,
                    "text/event-stream",
                    format!("event: error\ndata: {body}\n\n"),
                ),
                _ => Reply::json(status, &body),
            }
        });
        let upstream = ScriptedUpstream::start(script).await;
        let gateway = Gateway::before(&upstream).await;
        for _ in 0..2 * statuses.len() {
            // A new key each time: earlier failures close the model to the key that had them.
            let key = gateway.key("5.00").await;
            for stream in [false, true] {
                let answer = gateway
                    .post(path(family), &key, &ask(family, "test-model", stream))
                    .await;
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
            assert!(
                reasons
                    .iter()
                    .filter_map(Value::as_str)
                    .all(|reason| reason.len() < 1_000 && !reason.contains('\n'))
            );
        }
        let status = gateway.ask("/status").await;
        clean(&status.text.replace(CANARY, ""), "status");
    }
}

#[tokio::test]
async fn a_200_that_is_no_answer_is_not_passed_on() {
    for family in Family::ALL {
        let upstream = ScriptedUpstream::start(Reply::json(
            200,
            &json!({ "detail": format!("bad key {SECRET}") }),
        ))
        .await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5.00").await;
        let answer = gateway
            .post(path(family), &key, &ask(family, "test-model", false))
            .await;
        assert!(answer.status >= 500, "{}", answer.text);
        clean(&answer.text, family.name());
    }
}

/// A gateway whose only upstream speaks this family alone.
async fn translating(upstream: &ScriptedUpstream, speaks: Family) -> Gateway {
    Gateway::start(
        &catalog(speaks),
        &routes_speaking(&upstream.base_url(), speaks),
    )
    .await
}

#[tokio::test]
async fn translated_answers_and_errors_say_nothing_either() {
    for (caller, speaks) in DIRECTIONS {
        for stream in [false, true] {
            let place = format!("{caller} on {speaks} stream={stream}");
            let kind = if stream {
                "text/event-stream"
            } else {
                "application/json"
            };
            let good =
                Reply::whole(200, kind, marked(speaks, stream)).header("x-request-id", CANARY);
            let upstream = ScriptedUpstream::start(good).await;
            let gateway = translating(&upstream, speaks).await;
            let key = gateway.key("5.00").await;
            let answer = gateway
                .post(path(caller), &key, &ask(caller, "test-model", stream))
                .await;
            assert!(
                answer.status == 200 && answer.text.contains("PONG"),
                "{place}: {}",
                answer.text
            );
            clean(&answer.text, &place);
            clean(&format!("{:?}", answer.headers), &place);
            upstream.follow(Reply::whole(200, kind, strange(speaks, stream)));
            let answer = gateway
                .post(path(caller), &key, &ask(caller, "test-model", stream))
                .await;
            assert!(
                answer.status == 200 && answer.text.contains("PONG"),
                "{place}: {}",
                answer.text
            );
            clean(&answer.text, &format!("{place}, unknown members"));
            for status in [400, 401, 413, 429, 500] {
                let key = gateway.key("5.00").await;
                upstream.follow(Reply::error(
                    status,
                    SECRET,
                    Some(SECRET),
                    &format!("{SECRET} of up at {}", upstream.base_url()),
                ));
                let answer = gateway
                    .post(path(caller), &key, &ask(caller, "test-model", stream))
                    .await;
                assert_ne!(answer.status, 200);
                clean(&answer.text, &place);
                clean(&format!("{:?}", answer.headers), &place);
            }
            gateway.settled().await;
            clean(&format!("{:?}", gateway.records.all()), &place);
        }
    }
}

/// An error arrives in two pieces, cut at every byte in and around the secret.
#[tokio::test]
async fn an_error_that_is_cut_anywhere_is_scrubbed_as_a_whole() {
    for family in Family::ALL {
        let first = Speech::new(family, "PONG ").stream().texts()[..2].concat();
        let error = json!({ "type": "error", "error": { "type": format!("{SECRET}_error"), "message": format!("no {SECRET}, no") } });
        let event = format!("event: error\ndata: {error}\n\n");
        let upstream = ScriptedUpstream::start(Reply::whole(200, "text/plain", "")).await;
        let gateway = Gateway::before(&upstream).await;
        let window =
            event.find(SECRET).unwrap() - 3..event.rfind(SECRET).unwrap() + SECRET.len() + 3;
        for at in window {
            let (front, rest) = event.split_at(at);
            upstream.follow(Reply::events([first.as_str(), front, rest]));
            let key = gateway.key("5.00").await;
            let answer = gateway
                .post(path(family), &key, &ask(family, "test-model", true))
                .await;
            assert!(answer.text.contains("error"), "{at}: {}", answer.text);
            clean(&answer.text, &format!("{family} cut at {at}"));
        }
        gateway.settled().await;
        clean(&format!("{:?}", gateway.records.all()), family.name());
        clean(&gateway.ask("/status").await.text, family.name());
    }
}

/// Errors of megabytes inside a stream: short words for the customer, and no line of the log that an upstream wrote.
#[tokio::test]
async fn an_endless_error_inside_a_stream_is_a_short_line() {
    let long = format!("{SECRET}\nlevel=error ").repeat(70_000);
    assert!(long.len() > 3_000_000);
    let error = json!({ "type": "error", "error": { "type": long, "code": long, "param": long, "message": long } });
    for family in Family::ALL {
        let first = Speech::new(family, "PONG ").stream().texts()[..2].concat();
        let upstream = ScriptedUpstream::start(Reply::events([
            first,
            format!("event: error\ndata: {error}\n\n"),
        ]))
        .await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5.00").await;
        let answer = gateway
            .post(path(family), &key, &ask(family, "test-model", true))
            .await;
        gateway.settled().await;
        let records = format!("{:?}", gateway.records.all());
        for (text, most) in [
            (&answer.text, 20_000),
            (&records, 5_000),
            (&gateway.ask("/status").await.text, 40_000),
        ] {
            clean(text, family.name());
            assert!(
                text.len() < most && !text.contains("\nlevel=") && !text.contains("\\nlevel="),
                "{family}: {}",
                text.len()
            );
        }
    }
}

/// A good stream arrives in two pieces, cut at every byte of a frame that is full of removed text.
#[tokio::test]
async fn a_good_answer_that_is_cut_anywhere_is_the_same() {
    for family in Family::ALL {
        let body = marked(family, true);
        let text = std::str::from_utf8(&body).unwrap();
        let upstream = ScriptedUpstream::start(Reply::events([text])).await;
        let gateway = Gateway::before(&upstream).await;
        // One key asks hundreds of times, faster than its default rate on a quick machine.
        let often = KeySettings {
            rate: Some(1_000_000),
            ..KeySettings::default()
        };
        let key = gateway.key_with("50.00", often).await;
        let whole = gateway
            .post(path(family), &key, &ask(family, "test-model", true))
            .await
            .text;
        clean(&whole, family.name());
        // The second frame with data, its comment and its id line.
        let begin = text.match_indices("\n\n").nth(1).unwrap().0;
        let end = text[begin + 2..].match_indices("\n\n").nth(1).unwrap().0 + begin + 4;
        for at in (begin..end.min(begin + 700)).filter(|at| text.is_char_boundary(*at)) {
            upstream.follow(Reply::events([&text[..at], &text[at..]]));
            let answer = gateway
                .post(path(family), &key, &ask(family, "test-model", true))
                .await;
            assert_eq!(answer.text, whole, "{family} cut at {at}");
        }
    }
}

/// Everything that a reader of `/live` with this token gets while it is open.
async fn listen(admin: String, token: String, heard: Arc<Mutex<String>>) {
    let mut live = TcpStream::connect(admin.trim_start_matches("http://"))
        .await
        .unwrap();
    let request =
        format!("GET /live HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
    live.write_all(request.as_bytes()).await.unwrap();
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = live.read(&mut buffer).await {
        heard
            .lock()
            .unwrap()
            .push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_no_log_level_and_in_no_live_view_stands_a_secret() {
    let (_, secret) = UPSTREAM_KEY;
    // These levels include everything that the quieter ones write.
    for level in ["info", "debug", "trace"] {
        let upstream = ScriptedUpstream::start(Reply::whole(200, "text/plain", "")).await;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("catalog.toml"), CATALOG).unwrap();
        std::fs::write(
            folder.path().join("routes.toml"),
            routes(&upstream.base_url()),
        )
        .unwrap();
        let made = process::funded_key(folder.path(), "5");
        let key = made["secret"].as_str().unwrap().to_owned();
        let mut served =
            Served::start_with(folder.path(), &[], &[UPSTREAM_KEY, ("FAREBOX_LOG", level)]);
        let heard = Arc::new(Mutex::new(String::new()));
        let (admin, token) = (served.admin.clone(), served.admin_token().unwrap());
        let listening = tokio::spawn(listen(admin, token, Arc::clone(&heard)));
        let client = process::client();
        for family in Family::ALL {
            for stream in [false, true] {
                let kind = if stream {
                    "text/event-stream"
                } else {
                    "application/json"
                };
                let told = json!({ "error": { "type": secret, "code": secret, "message": format!("{secret}\u{202e}\n{CANARY}") } });
                let replies = [
                    Reply::whole(200, kind, marked(family, stream)).header("x-request-id", CANARY),
                    Reply::json(401, &told),
                    Reply::json(500, &told),
                    Reply::json(400, &told),
                    Reply::whole(
                        200,
                        "text/event-stream",
                        format!("event: error\ndata: {told}\n\n"),
                    ),
                    Reply::whole(200, kind, format!("{secret} is no answer")),
                ];
                for reply in replies {
                    upstream.follow(reply);
                    let request = client
                        .post(format!("{}{}", served.base, path(family)))
                        .bearer_auth(&key)
                        .header("x-api-key", &key)
                        .header("x-request-id", &key);
                    let _ = request
                        .json(&ask(family, "test-model", stream))
                        .send()
                        .await
                        .unwrap()
                        .text()
                        .await;
                }
            }
        }
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", served.id())).unwrap();
        let cores = limits
            .lines()
            .find(|line| line.starts_with("Max core file size"))
            .unwrap();
        assert_eq!(
            cores.split_whitespace().nth(4),
            Some("0"),
            "no core dump: {cores}"
        );
        assert!(
            include_str!("../../deploy/farebox.service").contains("\nLimitCORE=0\n"),
            "nor from the unit"
        );
        served.signal("TERM");
        served.ended();
        listening.abort();
        let (log, live) = (served.log(), heard.lock().unwrap().clone());
        assert!(log.contains("status=200"), "{level}: {log}");
        assert!(live.contains("\"status\":200"), "{live}");
        for (text, place) in [
            (log.replace(CANARY, ""), format!("log at {level}")),
            (live.replace(CANARY, ""), "live".to_owned()),
        ] {
            clean_of(secret, &text, &place);
            assert!(!text.contains(&key), "{place}: the customer's key");
            assert!(
                !text.contains("Say PONG"),
                "{place}: what the customer asked"
            );
        }
    }
}
