//! Output limits as customers declare them, in the field that each provider reads.

use serde_json::{Value, json};

use crate::support::upstream::{ScriptedUpstream, Seen};
use crate::support::{CATALOG, Gateway, routes, talking};

#[tokio::test]
async fn a_declared_limit_is_moved_only_where_the_providers_field_is_known() {
    for (setting, expected) in [
        ("", ["max_tokens", "max_completion_tokens"]),
        ("chat_limit = \"max_tokens\"", ["max_tokens"; 2]),
        (
            "chat_limit = \"max_completion_tokens\"",
            ["max_completion_tokens"; 2],
        ),
    ] {
        let upstream = ScriptedUpstream::start(talking("x")).await;
        let configured = routes(&upstream.base_url());
        let configured = configured.replacen("speaks", &format!("{setting}\nspeaks"), 1);
        let gateway = Gateway::start(CATALOG, &configured).await;
        let key = gateway.key("5.00").await;
        for declared in ["max_tokens", "max_completion_tokens"] {
            let words = json!([{ "role": "user", "content": "Say PONG" }]);
            let body = json!({ "model": "test-model", "messages": words, declared: 40 });
            gateway.post("/v1/chat/completions", &key, &body).await;
        }
        let fields = |sent: Value| {
            let members = sent.as_object().unwrap().clone();
            let limits = members.into_iter().filter(|(name, _)| name.contains("max"));
            limits.collect::<Vec<_>>()
        };
        let sent: Vec<_> = upstream
            .requests()
            .iter()
            .map(Seen::json)
            .map(fields)
            .collect();
        let expected = expected.map(|field| vec![(field.to_owned(), json!(40))]);
        assert_eq!(sent, expected, "{setting}");
    }
}
