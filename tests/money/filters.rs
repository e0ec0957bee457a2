//! Filters of a provider that end a stream: the customer's words caused it, so what was made is charged and nobody is blamed.

use farebox_protocol::Family;
use serde_json::json;

use crate::support::upstream::{ScriptedUpstream, Speech};
use crate::support::{Gateway, ask, path};

/// The error frame of a family in which a filter speaks.
fn filtered(family: Family, code: &str) -> String {
    let error = json!({"type": code, "code": code, "message": "the content was filtered"});
    match family {
        Family::Chat => format!("data: {}\n\n", json!({"error": error})),
        Family::Messages => {
            let event = json!({"type": "error", "error": {"type": code, "message": "the content was filtered"}});
            format!("event: error\ndata: {event}\n\n")
        }
        Family::Responses => {
            let response = json!({"id": "resp_1", "object": "response", "status": "failed", "model": "m", "output": [], "error": error});
            let event = json!({"type": "response.failed", "response": response});
            format!("event: response.failed\ndata: {event}\n\n")
        }
    }
}

#[tokio::test]
async fn a_filter_that_ends_a_stream_is_the_customers() {
    for code in ["content_filter", "data_inspection_failed", "1301"] {
        for family in Family::ALL {
            for shown in [0, 3] {
                let before = crate::support::load::before_pieces(family) + shown;
                let speech = Speech::new(family, "one two three four five");
                let reply = speech.stream().then(before, filtered(family, code));
                let upstream = ScriptedUpstream::start(reply).await;
                let gateway = Gateway::before(&upstream).await;
                let key = gateway.key("5").await;
                let answer = gateway
                    .post(path(family), &key, &ask(family, "test-model", true))
                    .await;
                gateway.settled().await;
                let case = format!("{code} in {family} after {shown}: {}", answer.text);
                assert!(answer.text.contains("the content was filtered"), "{case}");
                let charge = gateway.charges(&key).await.pop().unwrap();
                let counted = family == Family::Messages || shown > 0;
                assert_eq!(charge.amount.picos() < 0, counted, "{case}");
                let status = gateway.ask("/status").await.json();
                let target = &status["targets"][0];
                assert_eq!(
                    (&target["state"], &target["errors"]),
                    (&json!("closed"), &json!(0)),
                    "{case}: {status}"
                );
            }
        }
    }
}

/// As a stop reason it is a proper end, charged by the provider's own count.
#[tokio::test]
async fn a_stream_that_stops_at_a_filter_costs_what_was_counted() {
    for (family, word) in [
        (Family::Chat, "content_filter"),
        (Family::Messages, "refusal"),
    ] {
        let upstream =
            ScriptedUpstream::start(Speech::new(family, "one two").stop(word).stream()).await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5").await;
        let answer = gateway
            .post(path(family), &key, &ask(family, "test-model", true))
            .await;
        gateway.settled().await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let charge = gateway.charges(&key).await.pop().unwrap();
        let bill = charge.bill.unwrap();
        assert_eq!(bill.evidence, Some(farebox_ledger::Evidence::Provider));
        assert_eq!(
            (bill.end_reason.to_string(), charge.amount.picos() < 0),
            (word.to_owned(), true)
        );
    }
}
