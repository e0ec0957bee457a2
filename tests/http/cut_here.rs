//! Stop strings on models that are served by targets which know none: another target first, else the answer is cut here, and paid
//! for as if the customer had left at that point.

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::load::before_pieces;
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen, Speech};
use crate::support::{Answer, Gateway, TestKey, ask, catalog, path, routes_speaking};

const CALLERS: [Family; 2] = [Family::Chat, Family::Messages];

/// A request that ends at `END`.
fn stopping(caller: Family, stream: bool) -> Value {
    let mut body = ask(caller, "test-model", stream);
    body[if caller == Family::Chat {
        "stop"
    } else {
        "stop_sequences"
    }] = json!(["END"]);
    body
}

/// Says one word more than the stop string, and then nothing. As after a leaving, that word is read where it is cheaper than a guess
/// about the prompt.
fn goes_on() -> Reply {
    let speech = Speech::new(Family::Responses, "one two END four five").stream();
    speech.stall_after(before_pieces(Family::Responses) + 4)
}

async fn before(upstream: &ScriptedUpstream, more: &str) -> Gateway {
    let routes = routes_speaking(&upstream.base_url(), Family::Responses);
    let routes = routes.replacen(
        "slug = \"test-model\"",
        &format!("slug = \"test-model\"{more}"),
        1,
    );
    Gateway::start(&catalog(Family::Responses), &routes).await
}

/// The text and the stop reason that a caller reads.
fn read(caller: Family, stream: bool, answer: &Answer) -> (String, Value) {
    if !stream {
        let answer = answer.json();
        let stop = match caller {
            Family::Chat => answer["choices"][0]["finish_reason"].clone(),
            _ => answer["stop_reason"].clone(),
        };
        let text = caller.protocol().first_text(&answer).unwrap_or_default();
        return (text.to_owned(), stop);
    }
    let data = answer
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("data: {"));
    let frames: Vec<Value> = data
        .map(|data| serde_json::from_str(&format!("{{{data}")).unwrap())
        .collect();
    let of = |pointer: &str| -> Vec<Value> {
        let found = frames
            .iter()
            .filter_map(|frame| frame.pointer(pointer).cloned());
        found.filter(|value| !value.is_null()).collect()
    };
    let (text, stop) = match caller {
        Family::Chat => ("/choices/0/delta/content", "/choices/0/finish_reason"),
        _ => ("/delta/text", "/delta/stop_reason"),
    };
    let text = of(text).iter().filter_map(Value::as_str).collect();
    (text, of(stop).pop().unwrap_or_default())
}

async fn end_reason(gateway: &Gateway, key: &TestKey) -> (String, i64) {
    gateway.settled().await;
    let charge = gateway.charges(key).await.pop().unwrap();
    let bill = charge.bill.unwrap();
    (bill.end_reason.to_string(), -charge.amount.picos())
}

#[tokio::test]
async fn the_answer_is_cut_at_the_stop_string_and_its_target_is_left() {
    for caller in CALLERS {
        let mut charges = Vec::new();
        for stream in [true, false] {
            let upstream = ScriptedUpstream::start(goes_on()).await;
            let gateway = before(&upstream, "").await;
            let key = gateway.key("5.00").await;
            let answer = gateway
                .post(path(caller), &key, &stopping(caller, stream))
                .await;
            assert_eq!(
                (answer.status, answer.header("x-farebox-lost")),
                (200, Some("stop=cut_here")),
                "{}",
                answer.text
            );
            let expected = if caller == Family::Chat {
                "stop"
            } else {
                "stop_sequence"
            };
            assert_eq!(
                read(caller, stream, &answer),
                ("one two ".to_owned(), json!(expected)),
                "{}",
                answer.text
            );
            assert_eq!(upstream.requests()[0].json()["stream"], true);
            upstream.closed_by_peer(0).await;
            let (reason, charge) = end_reason(&gateway, &key).await;
            assert_eq!(reason, "stop");
            charges.push(charge);
            gateway.stop().await;
        }
        assert!(charges[0] > 0 && charges[0] == charges[1], "{charges:?}");
    }
}

#[tokio::test]
async fn a_route_that_drains_reads_the_rest_for_its_count() {
    for stream in [true, false] {
        let upstream = ScriptedUpstream::start(
            Speech::new(Family::Responses, "one two END four five").stream(),
        )
        .await;
        let gateway = before(&upstream, "\non_disconnect = \"drain\"").await;
        let key = gateway.key("5.00").await;
        let answer = gateway
            .post(path(Family::Chat), &key, &stopping(Family::Chat, stream))
            .await;
        assert_eq!(
            read(Family::Chat, stream, &answer),
            ("one two ".to_owned(), json!("stop")),
            "{}",
            answer.text
        );
        upstream.completed(0).await;
        gateway.stop().await;
    }
}

#[tokio::test]
async fn an_answer_without_the_string_is_whole_also_when_asked_for_whole() {
    for caller in CALLERS {
        for stream in [true, false] {
            let speech = Speech::new(Family::Responses, "one two EN").stream();
            let upstream = ScriptedUpstream::start(speech).await;
            let gateway = before(&upstream, "").await;
            let key = gateway.key("5.00").await;
            let answer = gateway
                .post(path(caller), &key, &stopping(caller, stream))
                .await;
            let expected = if caller == Family::Chat {
                "stop"
            } else {
                "end_turn"
            };
            assert_eq!(
                read(caller, stream, &answer),
                ("one two EN".to_owned(), json!(expected)),
                "{}",
                answer.text
            );
            assert!(stream || answer.header("x-farebox-cost").is_some());
            gateway.stop().await;
        }
    }
}

#[tokio::test]
async fn a_broken_stream_gives_no_half_of_a_whole_answer() {
    let broken = Speech::new(Family::Responses, "one two").stream();
    let broken = broken.close_after(before_pieces(Family::Responses) + 1);
    let upstream = ScriptedUpstream::start(broken).await;
    let gateway = before(&upstream, "").await;
    let key = gateway.key("5.00").await;
    let answer = gateway
        .post(path(Family::Chat), &key, &stopping(Family::Chat, false))
        .await;
    assert_eq!(answer.status, 503, "{}", answer.text);
    assert!(!answer.text.contains("one"), "{}", answer.text);
    gateway.stop().await;
}

#[tokio::test]
async fn a_target_that_knows_stop_strings_is_asked_first_and_the_other_after_it() {
    let answering = |family: Family| {
        Script::by(move |_: &Seen, _| Speech::new(family, "one two END four").stream())
    };
    let items = ScriptedUpstream::start(answering(Family::Responses)).await;
    let chat = ScriptedUpstream::start([
        Speech::new(Family::Chat, "one two ").stream(),
        Reply::error(500, "server_error", None, "no"),
    ])
    .await;
    let routes = format!(
        "[provider.items]\nkey = {{ env = \"KEY\" }}\nbase_url = \"{}\"\nspeaks = [\"responses\"]\n[provider.chat]\nkey = {{ env = \"KEY\" }}\nbase_url = \"{}\"\nspeaks = [\"chat\"]\n\
         [[route]]\nslug = \"test-model\"\ntargets = [ {{ provider = \"items\", model = \"r\" }}, {{ provider = \"chat\", model = \"c\" }} ]\n\
         [[route]]\nslug = \"test-blind\"\ntargets = [ {{ provider = \"items\", model = \"r\" }} ]\n",
        items.base_url(),
        chat.base_url()
    );
    let gateway = Gateway::start(&catalog(Family::Responses), &routes).await;
    let key = gateway.key("5.00").await;
    for requests in [(0, 1), (1, 2)] {
        let body = stopping(Family::Messages, true);
        let answer = gateway.post(path(Family::Messages), &key, &body).await;
        let (text, _) = read(Family::Messages, true, &answer);
        assert_eq!(text, "one two ", "{}", answer.text);
        assert_eq!((items.requests().len(), chat.requests().len()), requests);
    }
    gateway.stop().await;
}
