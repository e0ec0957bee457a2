//! No free tokens: what is held covers an honest provider's bill, or the request is refused.
//!
//! The upstream here has its own counting code (`support/billing.rs`), so the gateway is not checked against itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::billing::{Bills, Manner, words};
use crate::support::pdf::{pdf, saved_again};
use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, Gateway, ask, path, routes};

/// A picture's head: a reader that needs the size finds it.
fn png(width: u32, height: u32) -> String {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    bytes.extend([width.to_be_bytes(), height.to_be_bytes()].concat());
    bytes.extend([8, 2, 0, 0, 0, 0, 0, 0, 0]);
    STANDARD.encode(bytes)
}

/// Dense text apart from 16 light bytes in every 256, at a place of the attacker's choice.
fn aligned(phase: usize) -> String {
    let mut block: Vec<u8> = (0..256_u32)
        .map(|at| b"0Az%9Qx#7Lp&"[(at * 7 % 12) as usize])
        .collect();
    block[phase..phase + 16].fill(b' ');
    String::from_utf8(block).unwrap().repeat(700)
}

/// Chat requests that try to get much for little, by name.
fn attacks() -> Vec<(String, Value)> {
    let user = |content: Value| ("messages", json!([{"role": "user", "content": content}]));
    let long =
        "a paragraph that the template of the model shows to it, as it stands; ".repeat(5_000);
    let data = |pdf: &[u8]| format!("data:application/pdf;base64,{}", STANDARD.encode(pdf));
    let file = |pdf: &[u8]| {
        user(json!([{"type": "file", "file": {"filename": "a.pdf", "file_data": data(pdf)}}]))
    };
    let picture = |url: String| json!({"type": "image_url", "image_url": {"url": url}});
    let inline = |width, height| picture(format!("data:image/png;base64,{}", png(width, height)));
    let ninety = pdf(&["a page"; 60]);
    let mut all = vec![
        ("pages".to_owned(), file(&ninety)),
        ("pages saved again".to_owned(), file(&saved_again(&ninety))),
        (
            "a book on one page".to_owned(),
            file(&pdf(&[&"some words of a book ".repeat(28_000)])),
        ),
        (
            "pictures inline".to_owned(),
            user((0..90).map(|_| inline(2_048, 768)).collect()),
        ),
        (
            "small pictures".to_owned(),
            user((0..90).map(|_| inline(20, 20)).collect()),
        ),
        (
            "pictures by address".to_owned(),
            user(
                (0..90)
                    .map(|_| picture("https://example.com/a.png".to_owned()))
                    .collect(),
            ),
        ),
        (
            "a picture in a result".to_owned(),
            (
                "messages",
                json!([{"role": "tool", "tool_call_id": "c", "content": [inline(2_048, 768)]}]),
            ),
        ),
        (
            "a role".to_owned(),
            (
                "messages",
                json!([{"role": "user", "content": "x", "name": "n"}, {"role": long, "content": "x"}]),
            ),
        ),
        (
            "an id".to_owned(),
            (
                "messages",
                json!([{"role": "user", "content": "x", "id": long}]),
            ),
        ),
        (
            "a file's name".to_owned(),
            user(json!([{"type": "text", "text": "x", "filename": long}])),
        ),
        (
            "documents".to_owned(),
            ("documents", json!([{"title": "t", "text": long}])),
        ),
        (
            "a template's options".to_owned(),
            ("chat_template_kwargs", json!({"preamble": long})),
        ),
        ("the user".to_owned(), ("user", json!(long))),
    ];
    for phase in (0..256).step_by(48).map(|phase| phase.min(240)) {
        all.push((format!("aligned at {phase}"), user(json!(aligned(phase)))));
    }
    all.into_iter()
        .map(|(name, (field, value))| {
            let mut body = ask(Family::Chat, "test-model", false);
            body["max_tokens"] = json!(16);
            body[field] = value;
            (name, body)
        })
        .collect()
}

#[tokio::test]
async fn what_is_held_covers_what_is_billed_or_the_request_is_refused() {
    // Tolerant: an attack is written for a provider that serves what others refuse.
    let bills = Bills::default();
    let upstream = ScriptedUpstream::tolerant(bills.answering("PONG", Manner::default())).await;
    // A provider that accepts these fields shows them to its model.
    let passing = routes(&upstream.base_url()).replacen(
        "speaks",
        "pass = [\"documents\", \"chat_template_kwargs\"]\nspeaks",
        1,
    );
    let gateway = Gateway::start(CATALOG, &passing).await;
    for (name, body) in attacks() {
        let key = gateway.key("1000").await;
        let before = bills.all().len();
        let answer = gateway.post(path(Family::Chat), &key, &body).await;
        assert!(
            matches!(answer.status, 200 | 400),
            "{name}: {}",
            answer.text
        );
        let Some(billed) = bills.all().get(before).copied() else {
            continue;
        };
        let charge = gateway.charges(&key).await.remove(0);
        let held = charge.bill.unwrap().hold.picos();
        // A tenth is what the promise allows.
        assert!(
            held * 10 >= billed.cost() * 9,
            "{name}: held {held}, billed {billed:?}"
        );
        assert_eq!(
            -charge.amount.picos(),
            billed.cost(),
            "{name}: an honest count is charged as it is"
        );
    }
    assert!(
        bills.all().len() >= 12,
        "most are served: {}",
        bills.all().len()
    );
}

#[tokio::test]
async fn honest_requests_are_held_for_what_they_may_cost_and_charged_what_they_do() {
    let bills = Bills::default();
    let upstream = ScriptedUpstream::start(
        bills.answering(&"some words of an answer ".repeat(15), Manner::default()),
    )
    .await;
    let gateway = Gateway::before(&upstream).await;
    let text =
        "Could you look at this function, and tell me why it takes so long for a large list?\n"
            .repeat(60);
    let page = "A paragraph of a report, with figures such as 1,024 and a few names of people. "
        .repeat(35);
    for family in Family::ALL {
        for stream in [false, true] {
            let mut body = ask(family, "test-model", stream);
            let data = STANDARD.encode(pdf(&[page.as_str(); 4]));
            let url = format!("data:application/pdf;base64,{data}");
            let parts = match family {
                Family::Chat => {
                    json!([{"type": "text", "text": text}, {"type": "file", "file": {"filename": "a.pdf", "file_data": url}}])
                }
                Family::Responses => {
                    json!([{"type": "input_text", "text": text}, {"type": "input_file", "filename": "a.pdf", "file_data": url}])
                }
                Family::Messages => {
                    json!([{"type": "text", "text": text}, {"type": "document", "source":
                    {"type": "base64", "media_type": "application/pdf", "data": data}}])
                }
            };
            let list = if family == Family::Responses {
                "input"
            } else {
                "messages"
            };
            body[list] = json!([{"role": "user", "content": parts}]);
            let key = gateway.key("1000").await;
            let answer = gateway.post(path(family), &key, &body).await;
            assert_eq!(
                (answer.status, answer.header("x-farebox-removed")),
                (200, None),
                "{}",
                answer.text
            );
            gateway.settled().await;
            let charge = gateway.charges(&key).await.remove(0);
            let billed = bills.all().pop().unwrap();
            assert_eq!(-charge.amount.picos(), billed.cost(), "{family}, {stream}");
            let held = charge.bill.unwrap().hold.picos();
            // Input may be a cache write, a quarter dearer; a page is held at 4,400 tokens and billed 1,500 here.
            // A stream may have held one slice more.
            assert!(
                (billed.cost()..billed.cost() * 7 / 2).contains(&held),
                "{family}, {stream}: held {held}, {billed:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_prompt_well_over_the_context_never_reaches_a_provider() {
    let bills = Bills::default();
    let upstream = ScriptedUpstream::start(bills.answering("PONG", Manner::default())).await;
    let small = CATALOG.replacen(
        "context = 200_000, max_output = 64_000",
        "context = 10_000, max_output = 1_000",
        1,
    );
    let gateway = Gateway::start(&small, &routes(&upstream.base_url())).await;
    let key = gateway.key("5").await;
    let line = "one line of a text that is repeated until it is too long for the model\n";
    for (tokens, status) in [(10_000, 200), (14_000, 400)] {
        let mut body = ask(Family::Chat, "test-model", false);
        body["messages"][0]["content"] = json!(line.repeat((tokens / words(line)) as usize));
        let answer = gateway.post(path(Family::Chat), &key, &body).await;
        assert_eq!(answer.status, status, "{tokens}: {}", answer.text);
        assert!(
            status == 200 || answer.json()["error"]["code"] == "context_length_exceeded",
            "{}",
            answer.text
        );
    }
    assert_eq!(bills.all().len(), 1);
}

#[tokio::test]
async fn reasoning_that_is_not_shown_is_charged_and_silence_about_usage_is_not_free() {
    let text = "a few words of an answer";
    for (manner, exact) in [
        (
            Manner {
                hidden: 50,
                ..Manner::default()
            },
            true,
        ),
        (
            Manner {
                silent_usage: true,
                ..Manner::default()
            },
            false,
        ),
    ] {
        let bills = Bills::default();
        let upstream = ScriptedUpstream::start(bills.answering(text, manner)).await;
        let gateway = Gateway::before(&upstream).await;
        for stream in [false, true] {
            let key = gateway.key("5").await;
            gateway
                .post(
                    path(Family::Chat),
                    &key,
                    &ask(Family::Chat, "test-model", stream),
                )
                .await;
            gateway.settled().await;
            let (charge, billed) = (
                -gateway.charges(&key).await.remove(0).amount.picos(),
                bills.all().pop().unwrap(),
            );
            assert_eq!(billed.output, words(text) + manner.hidden);
            // What frames a prompt, 12 tokens here, is in our count and not in this bill.
            let fair = if exact {
                charge == billed.cost()
            } else {
                (1..=billed.cost() + 36_000_000).contains(&charge)
            };
            assert!(
                fair,
                "{manner:?}, {stream}: charged {charge}, billed {billed:?}"
            );
        }
    }
}
