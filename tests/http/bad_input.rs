//! Bad input in all three families: no panic, no charge, nothing upstream, and an answer that says what is wrong.

use farebox_protocol::Family;
use futures_util::stream;
use serde_json::{Value, json};

use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, Gateway, TestKey, ask, path, talking};

struct Table {
    upstream: ScriptedUpstream,
    gateway: Gateway,
    key: TestKey,
}

impl Table {
    async fn set() -> Self {
        let upstream = ScriptedUpstream::start(talking("PONG")).await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5.00").await;
        Self {
            upstream,
            gateway,
            key,
        }
    }

    /// Sends a body that must be refused with a 400, and returns its `param` and message.
    async fn refused(&self, family: Family, body: impl Into<Vec<u8>>) -> (Value, String) {
        let body: Vec<u8> = body.into();
        let start = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        let answer = self.gateway.send(path(family), &self.key, body, &[]).await;
        assert_eq!(
            (answer.status, answer.header("retry-after")),
            (400, None),
            "{family} {start}: {}",
            answer.text
        );
        let error = answer.json()["error"].clone();
        assert_eq!(error["type"], "invalid_request_error");
        (
            error["param"].clone(),
            error["message"].as_str().unwrap().to_owned(),
        )
    }

    async fn untouched(&self) {
        assert!(
            self.upstream.requests().is_empty(),
            "nothing reaches the upstream"
        );
        assert!(self.gateway.charges(&self.key).await.is_empty());
        assert_eq!(
            self.gateway
                .account(&self.key)
                .await
                .customer
                .account
                .available()
                .to_string(),
            "5.00"
        );
    }
}

fn limits(family: Family) -> &'static [&'static str] {
    match family {
        Family::Chat => &["max_tokens", "max_completion_tokens", "n"],
        Family::Responses => &["max_output_tokens"],
        Family::Messages => &["max_tokens"],
    }
}

/// A request whose `name` is this JSON text; every other limit is left out.
fn with_text(family: Family, name: &str, value: &str) -> String {
    let mut body = ask(family, "test-model", false);
    let members = body.as_object_mut().unwrap();
    limits(family)
        .iter()
        .filter(|limit| **limit != name && family == Family::Chat)
        .for_each(|limit| drop(members.remove(*limit)));
    members.insert(name.to_owned(), json!("@"));
    body.to_string().replace("\"@\"", value)
}

const ABSURD: [&str; 20] = [
    "0",
    "-1",
    "-0",
    "2147483648",
    "4294967296",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551617",
    "1e308",
    "1e400",
    "-1e308",
    "\"10\"",
    "0.5",
    "1.0",
    "1e2",
    "true",
    "false",
    "[]",
    "{}",
    "[5]",
];

#[tokio::test]
async fn absurd_limits_and_numbers_of_answers_are_refused_by_name() {
    let table = Table::set().await;
    for family in Family::ALL {
        for name in limits(family) {
            // On messages, 0 asks for no answer.
            let absurd = ABSURD.into_iter();
            for value in absurd.filter(|value| family != Family::Messages || *value != "0") {
                let (param, message) = table.refused(family, with_text(family, name, value)).await;
                assert_eq!(param, *name, "{value}");
                assert!(
                    message.contains(name) && message.contains("integer between 1 and"),
                    "{message}"
                );
            }
        }
    }
    for value in ["0", "-1", "2147483648", "1e308", "\"10\"", "0.5", "true"] {
        let thinking = format!("{{\"type\":\"enabled\",\"budget_tokens\":{value}}}");
        let (param, _) = table
            .refused(
                Family::Messages,
                with_text(Family::Messages, "thinking", &thinking),
            )
            .await;
        assert_eq!(param, "thinking.budget_tokens");
    }
    let both = r#"{"model":"test-model","messages":[{"role":"user","content":"x"}],"max_tokens":5,"max_completion_tokens":6}"#;
    assert!(table.refused(Family::Chat, both).await.1.contains("differ"));
    assert_eq!(
        table
            .refused(Family::Chat, with_text(Family::Chat, "n", "129"))
            .await
            .0,
        "n"
    );
    table.untouched().await;
}

#[tokio::test]
async fn limits_at_their_bounds_are_served() {
    let table = Table::set().await;
    for family in Family::ALL {
        for name in limits(family) {
            // Services of this family take no smaller limit.
            let least = if family == Family::Responses {
                "16"
            } else {
                "1"
            };
            for value in [least, "2147483647", "null"] {
                // A native body needs its limit, and a huge number of answers is not affordable.
                let expected = match (family, *name, value) {
                    (Family::Messages, _, "null") | (_, "n", "2147483647") => 400,
                    _ => 200,
                };
                let answer = table
                    .gateway
                    .send(
                        path(family),
                        &table.key,
                        with_text(family, name, value),
                        &[],
                    )
                    .await;
                assert_eq!(
                    answer.status, expected,
                    "{family} {name} {value}: {}",
                    answer.text
                );
            }
        }
    }
}

#[tokio::test]
async fn wrong_types_and_missing_fields_are_refused_by_name() {
    let table = Table::set().await;
    for family in Family::ALL {
        let list = if family == Family::Responses {
            "input"
        } else {
            "messages"
        };
        for (name, value) in [
            ("model", "7"),
            ("model", "null"),
            ("model", "[\"test-model\"]"),
            ("stream", "\"true\""),
            ("stream", "1"),
            ("tools", "{}"),
            ("tools", "\"x\""),
            (list, "{}"),
            (list, "7"),
            (list, "[]"),
            (list, "null"),
        ] {
            let mut body = ask(family, "test-model", false);
            body[name] = json!("@");
            let (param, _) = table
                .refused(family, body.to_string().replace("\"@\"", value))
                .await;
            assert_eq!(param, name, "{family} {value}");
        }
        for name in ["model", list] {
            let mut body = ask(family, "test-model", false);
            body.as_object_mut().unwrap().remove(name);
            assert_eq!(
                table.refused(family, body.to_string()).await.0,
                name,
                "{family}"
            );
        }
    }
    table.untouched().await;
}

#[tokio::test]
async fn a_top_level_key_twice_is_refused_also_escaped() {
    let table = Table::set().await;
    for family in Family::ALL {
        let body = ask(family, "test-model", false).to_string();
        let limit = limits(family)[0];
        for twice in [
            "\"model\":\"test-blind\"",
            "\"mod\\u0065l\":\"test-blind\"",
            "\"\\u006dodel\":\"x\"",
            "\"stream\":true",
        ] {
            for text in [
                body.replacen('{', &format!("{{{twice},"), 1),
                format!("{},{twice}}}", &body[..body.len() - 1]),
            ] {
                assert!(table.refused(family, text).await.1.contains("twice"));
            }
        }
        let escaped = format!(
            "{},\"{}\":100,\"x_{limit}\":1}}",
            &body[..body.len() - 1],
            limit.replace('m', "\\u006d")
        );
        assert!(
            table.refused(family, escaped).await.1.contains("twice"),
            "{family}"
        );
    }
    table.untouched().await;
}

#[tokio::test]
async fn what_is_not_json_text_is_refused() {
    let table = Table::set().await;
    for family in Family::ALL {
        let good = ask(family, "test-model", false).to_string();
        let nul = good.replace("PONG", "PO\0NG").into_bytes();
        let mut invalid = good.clone().into_bytes();
        let at = good.find("PONG").unwrap();
        invalid[at] = 0xff;
        let mut surrogate = good.clone().into_bytes();
        surrogate.splice(at..at, [0xed, 0xa0, 0x80]);
        let bodies: Vec<Vec<u8>> = vec![
            Vec::new(),
            b"   ".to_vec(),
            b"null".to_vec(),
            b"\"x\"".to_vec(),
            format!("[{good}]").into_bytes(),
            format!("{good}{good}").into_bytes(),
            format!("\u{feff}{good}").into_bytes(),
            good.as_bytes()[..good.len() - 1].to_vec(),
            good.replace(':', "=").into_bytes(),
            good.replace("\"stream\":false", "\"stream\":False")
                .into_bytes(),
            b"model=test-model".to_vec(),
            nul,
            invalid,
            surrogate,
        ];
        for body in bodies {
            assert!(!table.refused(family, body).await.1.is_empty());
        }
    }
    table.untouched().await;
}

#[tokio::test]
async fn deep_nesting_is_refused_in_known_and_unknown_fields() {
    let table = Table::set().await;
    for family in Family::ALL {
        let list = if family == Family::Responses {
            "input"
        } else {
            "messages"
        };
        for name in [
            "x_unknown",
            "metadata",
            "tools",
            list,
            "stream_options",
            "thinking",
            "reasoning",
        ] {
            for depth in [200, 100_000] {
                for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("{\"content\":[", "]}")] {
                    let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
                    let mut body = ask(family, "test-model", false);
                    body[name] = json!("@");
                    table
                        .refused(family, body.to_string().replace("\"@\"", &deep))
                        .await;
                }
            }
        }
    }
    table.untouched().await;
}

#[tokio::test]
async fn a_body_of_40_mib_gets_a_413_that_can_be_read_also_when_chunked() {
    let table = Table::set().await;
    let piece = bytes::Bytes::from(vec![b' '; 1024 * 1024]);
    for family in Family::ALL {
        for chunked in [false, true] {
            let url = format!("{}{}", table.gateway.base, path(family));
            let request = table
                .gateway
                .client
                .post(url)
                .bearer_auth(&table.key.secret);
            let pieces: Vec<Result<bytes::Bytes, std::io::Error>> =
                (0..40).map(|_| Ok(piece.clone())).collect();
            let request = if chunked {
                request.body(reqwest::Body::wrap_stream(stream::iter(pieces)))
            } else {
                request.body(vec![b' '; 40 * 1024 * 1024])
            };
            let answer = Answer::read(request.send().await.unwrap()).await;
            assert_eq!(
                answer.status, 413,
                "{family}, chunked {chunked}: {}",
                answer.text
            );
            let kind = if family == Family::Messages {
                "request_too_large"
            } else {
                "invalid_request_error"
            };
            assert_eq!(answer.json()["error"]["type"], kind);
        }
    }
    table.untouched().await;
    let good = table
        .gateway
        .post(
            path(Family::Chat),
            &table.key,
            &ask(Family::Chat, "test-model", false),
        )
        .await;
    assert_eq!(good.status, 200, "and the next request is served");
}
