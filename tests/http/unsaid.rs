//! What a target refuses by its name alone is not said to it, where nobody misses it; stop strings it does not take are cut here.

use farebox_doubles::Vendor;
use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::{ScriptedUpstream, Speech};
use crate::support::{Answer, Gateway, ask, catalog, path, routes_speaking};

/// A gateway whose test model is this one of this vendor.
async fn selling(upstream: &ScriptedUpstream, kind: &str, model: &str) -> Gateway {
    let routes = routes_speaking(&upstream.base_url(), Family::Chat)
        .replacen(
            "[provider.up]",
            &format!("[provider.up]\nkind = \"{kind}\""),
            if kind.is_empty() { 0 } else { 1 },
        )
        .replacen("upstream-model-1", model, 1);
    Gateway::start(&catalog(Family::Chat), &routes).await
}

/// What is sent for a chat request with these members, and the answer.
async fn sent(vendor: Vendor, kind: &str, model: &str, members: Value) -> (Value, Answer) {
    let speech = Speech::new(Family::Chat, "one").stream();
    let upstream = ScriptedUpstream::refusing(vendor, speech).await;
    let gateway = selling(&upstream, kind, model).await;
    let key = gateway.key("5.00").await;
    let mut body = ask(Family::Chat, "test-model", true);
    let members = members.as_object().expect("members").clone();
    body.as_object_mut().expect("a body").extend(members);
    let answer = gateway.post(path(Family::Chat), &key, &body).await;
    let sent = upstream.requests()[0].json();
    gateway.stop().await;
    (sent, answer)
}

#[tokio::test]
async fn penalties_of_nothing_do_not_reach_a_model_that_refuses_penalties() {
    let none = json!({"presence_penalty": 0, "frequency_penalty": 0.0});
    let (body, answer) = sent(Vendor::XAi, "", "grok-4.6", none.clone()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(
        (body.get("presence_penalty"), body.get("frequency_penalty")),
        (None, None)
    );
    assert_eq!(
        answer.header("x-farebox-removed"),
        None,
        "nothing is missed"
    );

    // A model that takes them gets them.
    let (body, answer) = sent(Vendor::XAi, "", "grok-4-fast-non-reasoning", none).await;
    assert_eq!((answer.status, &body["presence_penalty"]), (200, &json!(0)));

    // Who wants one is told that it cannot be had.
    let (_, answer) = sent(Vendor::XAi, "", "grok-4", json!({"presence_penalty": 0.5})).await;
    assert_eq!(answer.status, 400, "{}", answer.text);
}

#[tokio::test]
async fn metadata_does_not_reach_a_service_that_refuses_its_name() {
    let noted = json!({"metadata": {"a": "b"}});
    let (body, answer) = sent(Vendor::Gemini, "gemini", "gemini-3.8-flash", noted.clone()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(
        (body.get("metadata"), answer.header("x-farebox-removed")),
        (None, Some("metadata"))
    );
    let (body, _) = sent(Vendor::OpenAi, "openai", "gpt-5.4-mini", noted).await;
    assert_eq!(body["metadata"], json!({"a": "b"}));
}

#[tokio::test]
async fn stop_sequences_of_native_callers_are_cut_here_for_a_model_without_stop_strings() {
    for stream in [true, false] {
        let speech = Speech::new(Family::Chat, "one two END three four").stream();
        let upstream = ScriptedUpstream::playing(Vendor::XAi, speech).await;
        let gateway = selling(&upstream, "", "grok-4.3").await;
        let key = gateway.key("5.00").await;
        let mut body = ask(Family::Messages, "test-model", stream);
        body["stop_sequences"] = json!(["END"]);
        let answer = gateway.post(path(Family::Messages), &key, &body).await;
        assert_eq!(
            (answer.status, answer.header("x-farebox-lost")),
            (200, Some("stop=cut_here")),
            "{}",
            answer.text
        );
        let text = &answer.text;
        assert!(text.contains("two") && !text.contains("three"), "{text}");
        assert!(text.contains(r#""stop_sequence":"END""#), "{text}");
        assert_eq!(upstream.requests()[0].json().get("stop"), None);
        gateway.settled().await;
        assert_eq!(gateway.charges(&key).await.len(), 1);
        gateway.stop().await;
    }
}
