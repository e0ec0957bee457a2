//! Requests of a target's own family that are fitted to it, and requests that go to it on another path: what other gateways were
//! reported to send as it stands. The upstreams refuse what the real services refuse. Numbers in names are those of the reports.

mod dropped;
mod refused;

use farebox_doubles::Vendor;
use farebox_protocol::Family;
use serde_json::{Value, json};

use super::translation::{CHARGE, speech};
use crate::support::upstream::{Script, ScriptedUpstream, Seen};
use crate::support::{Answer, Gateway, TestKey, ask, catalog, path};

/// Answers three words in the family it is asked in.
fn in_any() -> Script {
    Script::by(|seen: &Seen, _| speech(family_of(seen), seen.json()["stream"] == true))
}

fn family_of(seen: &Seen) -> Family {
    let path = seen.path.split('?').next().unwrap_or_default();
    let mut families = Family::ALL.into_iter();
    families
        .find(|family| path.ends_with(family.protocol().path))
        .expect("a family's path")
}

/// A gateway with one provider of these settings, and one target.
async fn before(upstream: &ScriptedUpstream, best: Family, provider: &str, target: &str) -> Desk {
    let routes = format!(
        r#"
[provider.up]
base_url = "{}"
key      = {{ env = "UPSTREAM_KEY" }}
{provider}

[[route]]
slug    = "test-model"
targets = [ {{ provider = "up", {target} }} ]

[[route]]
slug    = "test-blind"
targets = [ {{ provider = "up", model = "upstream-model-2" }} ]
"#,
        upstream.base_url()
    );
    let gateway = Gateway::start(&catalog(best), &routes).await;
    let key = gateway.key("5.00").await;
    Desk { gateway, key }
}

struct Desk {
    gateway: Gateway,
    key: TestKey,
}

impl Desk {
    /// A request with these members is served, whole and streamed, and charged exactly; returns both answers.
    async fn served(&self, caller: Family, members: &Value) -> [Answer; 2] {
        [
            self.once(caller, members, false).await,
            self.once(caller, members, true).await,
        ]
    }

    async fn once(&self, caller: Family, members: &Value, stream: bool) -> Answer {
        let body = with(caller, members, stream);
        let before = self.gateway.charges(&self.key).await.len();
        let answer = self.gateway.post(path(caller), &self.key, &body).await;
        assert_eq!(answer.status, 200, "{caller} {members}: {}", answer.text);
        assert!(answer.text.contains("three"), "{}", answer.text);
        self.gateway.settled().await;
        let charges = self.gateway.charges(&self.key).await;
        assert_eq!(charges.len(), before + 1, "once");
        for charge in charges {
            assert_eq!(charge.amount.picos(), -CHARGE, "{caller} {members}");
        }
        answer
    }

    /// What is on the receipt of an answer.
    async fn lost_on_receipt(&self, answer: &Answer) -> Value {
        let id = answer.header("x-request-id").expect("an id");
        let receipt = self
            .gateway
            .get(&format!("/v1/generation?id={id}"), &self.key)
            .await;
        receipt.json()["data"]["lost"].clone()
    }
}

fn with(caller: Family, members: &Value, stream: bool) -> Value {
    let mut body = ask(caller, "test-model", stream);
    for (name, value) in members.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

fn lost(answer: &Answer) -> &str {
    answer.header("x-farebox-lost").unwrap_or_default()
}

/// A function, in the words of a family.
fn tool(family: Family) -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": ["string", "null"], "default": null}}});
    match family {
        Family::Chat => {
            json!({"type": "function", "function": {"name": "weather", "parameters": schema}})
        }
        Family::Responses => {
            json!({"type": "function", "name": "weather", "parameters": schema})
        }
        Family::Messages => json!({"name": "weather", "input_schema": schema}),
    }
}

/// A service, what it is asked with, and what becomes of four wishes: an effort, tokens, none at all, and tokens that nobody is shown.
type RouterCase = (
    &'static str,
    Vendor,
    &'static str,
    [(Value, &'static str); 4],
);

#[rustfmt::skip]
fn router_cases() -> Vec<RouterCase> {
    let effort = |word: &str| json!({"reasoning_effort": word});
    let switch = |word: &str| json!({"thinking": {"type": word}});
    let none = || json!({});
    let hidden = "reasoning.exclude=dropped";
    let by_effort = || [(effort("high"), ""), (effort("low"), ""), (none(), "reasoning=dropped"), (effort("low"), hidden)];
    vec![
        ("openai", Vendor::OpenAi, r#"model = "gpt-5.4-mini", abilities = { thinking = "effort", efforts = ["none", "low", "medium", "high"] }"#,
            [(effort("high"), ""), (effort("low"), ""), (effort("none"), ""), (effort("low"), hidden)]),
        ("mistral", Vendor::Mistral, r#"model = "mistral-medium-3.5", abilities = { thinking = "effort" }"#, by_effort()),
        ("groq", Vendor::Groq, r#"model = "openai/gpt-oss-120b", abilities = { thinking = "effort" }"#, by_effort()),
        ("gemini", Vendor::Gemini, r#"model = "gemini-3.8-flash", abilities = { thinking = "effort" }"#, by_effort()),
        ("xai", Vendor::XAi, r#"model = "grok-4.3", abilities = { thinking = "effort" }"#, by_effort()),
        ("deepseek", Vendor::DeepSeek, r#"model = "deepseek-v4-flash", abilities = { thinking = "switch" }"#,
            [(switch("enabled"), ""), (switch("enabled"), ""), (switch("disabled"), ""), (switch("enabled"), hidden)]),
        // Nothing is known of how its model thinks.
        ("cerebras", Vendor::Cerebras, r#"model = "llama-4""#,
            [(none(), "reasoning=dropped"), (none(), "reasoning=dropped"), (none(), "reasoning=dropped"),
                (none(), "reasoning=dropped, reasoning.exclude=dropped")]),
    ]
}

#[tokio::test]
async fn r4_a_router_s_reasoning_is_told_in_the_words_of_the_service() {
    let wishes = [
        json!({"effort": "high"}),
        json!({"max_tokens": 2_000}),
        json!({"enabled": false}),
        json!({"max_tokens": 2_000, "exclude": true}),
    ];
    for (kind, vendor, target, told) in router_cases() {
        let upstream = ScriptedUpstream::playing(vendor, in_any()).await;
        let desk = before(
            &upstream,
            Family::Chat,
            &format!("kind = \"{kind}\""),
            target,
        )
        .await;
        for (wish, (members, losses)) in wishes.iter().zip(told) {
            let answers = desk.served(Family::Chat, &json!({"reasoning": wish})).await;
            let sent = upstream.requests();
            for (answer, seen) in answers.iter().zip(&sent[sent.len() - 2..]) {
                let sent = seen.json();
                assert_eq!(lost(answer), losses, "{kind} {wish}");
                for name in ["reasoning", "reasoning_effort", "thinking"] {
                    assert_eq!(sent.get(name), members.get(name), "{kind} {wish}: {sent}");
                }
            }
        }
        desk.gateway.stop().await;
    }
}

#[tokio::test]
async fn r4_it_is_untouched_where_the_service_has_it_or_nothing_is_known() {
    let wish = json!({"effort": "high", "exclude": true});
    for (provider, vendor) in [
        ("kind = \"openrouter\"", Vendor::OpenRouter),
        ("speaks = [\"chat\"]", Vendor::Compatible),
    ] {
        let upstream = ScriptedUpstream::playing(vendor, in_any()).await;
        let desk = before(&upstream, Family::Chat, provider, "model = \"m\"").await;
        let answers = desk.served(Family::Chat, &json!({"reasoning": wish})).await;
        for (answer, seen) in answers.iter().zip(upstream.requests()) {
            assert_eq!((lost(answer), &seen.json()["reasoning"]), ("", &wish));
        }
        desk.gateway.stop().await;
    }
}

/// The words of a router are read for targets of other families, too.
#[tokio::test]
async fn r4_it_is_translated_like_an_effort() {
    let upstream = ScriptedUpstream::playing(Vendor::Anthropic, in_any()).await;
    let target = r#"model = "claude-sonnet-4-5-20250929", abilities = { thinking = "budget" }"#;
    let desk = before(&upstream, Family::Messages, "kind = \"anthropic\"", target).await;
    for (wish, thinking) in [
        (
            json!({"max_tokens": 1_500}),
            json!({"type": "enabled", "budget_tokens": 1_500}),
        ),
        (json!({"enabled": false}), json!({"type": "disabled"})),
        (
            json!({"enabled": true}),
            json!({"type": "enabled", "budget_tokens": 8_192}),
        ),
    ] {
        let members = json!({"reasoning": wish, "max_tokens": 16_000});
        desk.served(Family::Chat, &members).await;
        let sent = upstream.requests();
        assert_eq!(sent.last().expect("a request").json()["thinking"], thinking);
    }
    desk.gateway.stop().await;
}

/// The service says where else it serves what it was asked for: with a 400 for these members, or with a 404 for the model.
#[tokio::test]
async fn r5_a_target_is_asked_on_the_path_that_it_names() {
    let tools = json!({"tools": [tool(Family::Chat)], "reasoning_effort": "low"});
    let plain = json!({});
    let (mini, research) = ("gpt-5.4-mini", "o3-deep-research");
    for (caller, model, members) in [
        (Family::Chat, mini, &tools),
        (Family::Chat, research, &plain),
        (Family::Messages, research, &plain),
    ] {
        let upstream = ScriptedUpstream::refusing(Vendor::OpenAi, in_any()).await;
        let target = format!(
            r#"model = "{model}", abilities = {{ thinking = "effort", sampling = "none" }}"#
        );
        let desk = before(&upstream, Family::Chat, "kind = \"openai\"", &target).await;
        let answers = desk.served(caller, members).await;
        let paths: Vec<Family> = upstream.requests().iter().map(family_of).collect();
        let both = [Family::Chat, Family::Responses];
        assert_eq!(paths, [both, both].concat(), "{caller} {model}");
        let sent = upstream.requests()[1].json();
        assert_eq!(sent["max_output_tokens"], 100, "{sent}");
        if members == &tools {
            assert_eq!(sent["reasoning"]["effort"], "low", "{sent}");
            assert_eq!(sent["tools"][0]["name"], "weather", "{sent}");
        }
        let whole = answers[0].json();
        assert_eq!(caller.protocol().first_text(&whole), Some("one two three"));
        assert_eq!(desk.gateway.charges(&desk.key).await.len(), 2);
        desk.gateway.stop().await;
    }
}

#[tokio::test]
async fn r5_a_path_that_may_not_be_asked_is_the_customer_s_fault_or_the_operator_s() {
    let tools = json!({"tools": [tool(Family::Chat)], "reasoning_effort": "low"});
    for (provider, route) in [
        ("kind = \"openai\"\nspeaks = [\"chat\"]", ""),
        ("kind = \"openai\"", "\ntranslate = false"),
    ] {
        for (model, members, status) in [
            ("gpt-5.4-mini", &tools, 400),
            ("o3-deep-research", &json!({}), 503),
        ] {
            let upstream = ScriptedUpstream::refusing(Vendor::OpenAi, in_any()).await;
            let target = format!("model = \"{model}\" }} ]{route}\n# {{");
            let desk = before(&upstream, Family::Chat, provider, &target).await;
            let body = with(Family::Chat, members, false);
            let answer = desk
                .gateway
                .post(path(Family::Chat), &desk.key, &body)
                .await;
            assert_eq!(answer.status, status, "{provider}{route}: {}", answer.text);
            desk.gateway.settled().await;
            let charges = desk.gateway.charges(&desk.key).await;
            assert!(charges.iter().all(|charge| charge.amount.picos() == 0));
            assert_eq!(upstream.requests().len(), 1);
            desk.gateway.stop().await;
        }
    }
}

#[tokio::test]
async fn r6_what_agents_told_each_other_is_carried_and_unknown_items_are_named() {
    let told = json!([
        {"role": "user", "content": "Begin."},
        {"type": "agent_message", "author": "/root", "recipient": "/root/a", "content": [
            {"type": "input_text", "text": "Look at the tests."}, {"type": "encrypted_content", "encrypted_content": "gAAA"}]},
        {"type": "agent_message", "author": "/root", "recipient": "/root/a", "content": [
            {"type": "encrypted_content", "encrypted_content": "gAAA"}]},
        {"type": "something_new", "id": "x_1", "data": {"a": 1}},
        {"role": "user", "content": "Go on."}]);
    for (target, vendor) in [
        (Family::Chat, Vendor::OpenAi),
        (Family::Messages, Vendor::Anthropic),
    ] {
        let upstream = ScriptedUpstream::playing(vendor, in_any()).await;
        let provider = format!("speaks = [\"{target}\"]");
        let desk = before(&upstream, target, &provider, "model = \"m\"").await;
        let answers = desk
            .served(Family::Responses, &json!({"input": told}))
            .await;
        for (answer, seen) in answers.iter().zip(upstream.requests()) {
            assert_eq!(
                lost(answer),
                "input.agent_message.encrypted_content=dropped(2), input.something_new=dropped"
            );
            let sent = seen.json();
            let turns = sent["messages"].as_array().expect("turns");
            assert!(turns.iter().all(|turn| turn["role"] == "user"), "{sent}");
            let text = sent["messages"].to_string();
            let words = "Message from agent /root to agent /root/a:";
            assert_eq!(text.matches(words).count(), 1, "{text}");
            assert!(text.contains("Look at the tests."), "{text}");
            assert!(!text.contains("gAAA"), "{text}");
        }
        desk.gateway.stop().await;
    }
}

#[tokio::test]
async fn r6_a_reference_without_a_type_is_known() {
    let upstream = ScriptedUpstream::start(in_any()).await;
    for target in Family::ALL {
        let provider = format!("speaks = [\"{target}\"]");
        let desk = before(&upstream, target, &provider, "model = \"m\"").await;
        let input = json!([{"id": "rs_1"}, {"role": "user", "content": "a"}]);
        let body = with(Family::Responses, &json!({"input": input}), false);
        let path = path(Family::Responses);
        let answer = desk.gateway.post(path, &desk.key, &body).await;
        let error = answer.json()["error"].clone();
        assert_eq!(answer.status, 400, "{target}: {error}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.starts_with("`item_reference`"), "{message}");
        assert_eq!(error["param"], "input[0].type");
        assert_eq!(error["details"]["remedies"][0]["store"], false);
        desk.gateway.stop().await;
    }
    assert!(upstream.requests().is_empty());
}

/// Nothing turns the thinking of these models off, and being told so they refuse.
#[tokio::test]
async fn r8_a_model_that_always_thinks_is_asked_for_its_least() {
    let off: [(Family, Value); 3] = [
        (Family::Chat, json!({"reasoning_effort": "none"})),
        (Family::Responses, json!({"reasoning": {"effort": "none"}})),
        (Family::Messages, json!({"thinking": {"type": "disabled"}})),
    ];
    for model in ["claude-opus-5-5", "claude-fable-5"] {
        let upstream = ScriptedUpstream::playing(Vendor::Anthropic, in_any()).await;
        let target = format!(
            r#"model = "{model}", abilities = {{ thinking = "adaptive", sampling = "none" }}"#
        );
        let desk = before(&upstream, Family::Messages, "kind = \"anthropic\"", &target).await;
        for (caller, members) in &off {
            let named = match caller {
                Family::Messages => "thinking=dropped",
                Family::Chat | Family::Responses => "effort=clamped",
            };
            for answer in desk.served(*caller, members).await {
                assert_eq!(lost(&answer), named, "{model} {caller}");
            }
            let sent = upstream.requests();
            for seen in &sent[sent.len() - 2..] {
                let sent = seen.json();
                assert_eq!(sent.get("thinking"), None, "{model} {caller}: {sent}");
                assert_eq!(sent["output_config"], json!({"effort": "low"}), "{sent}");
            }
        }
        // An effort of its own is the caller's.
        let own = json!({"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}});
        desk.served(Family::Messages, &own).await;
        let sent = upstream.requests().last().expect("a request").json();
        assert_eq!(sent["output_config"], json!({"effort": "high"}));
        desk.gateway.stop().await;
    }
}

#[tokio::test]
async fn r8_others_are_told_that_they_shall_not_think() {
    let upstream = ScriptedUpstream::playing(Vendor::Anthropic, in_any()).await;
    let target =
        r#"model = "claude-sonnet-5-5", abilities = { thinking = "adaptive", sampling = "none" }"#;
    let desk = before(&upstream, Family::Messages, "kind = \"anthropic\"", target).await;
    desk.served(Family::Chat, &json!({"reasoning_effort": "none"}))
        .await;
    desk.served(Family::Messages, &json!({"thinking": {"type": "disabled"}}))
        .await;
    for seen in upstream.requests() {
        assert_eq!(seen.json()["thinking"], json!({"type": "disabled"}));
    }
    desk.gateway.stop().await;
}

/// What VS Code and Copilot's app send of earlier turns and of tools.
fn with_nulls() -> Value {
    let mut tool = tool(Family::Chat);
    tool["function"]["strict"] = Value::Null;
    json!({"tools": [tool], "stop": null, "messages": [
        {"role": "user", "content": "How warm is it?"},
        {"role": "assistant", "content": null, "refusal": null, "audio": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":null}"}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "4 degrees"}]})
}

#[tokio::test]
async fn r11_null_members_are_cut_for_servers_that_refuse_them() {
    for (provider, vendor, model) in [
        ("speaks = [\"chat\"]", Vendor::Compatible, "m"),
        ("kind = \"deepseek\"", Vendor::DeepSeek, "deepseek-chat"),
        ("kind = \"gemini\"", Vendor::Gemini, "gemini-3.8-flash"),
    ] {
        let upstream = ScriptedUpstream::playing(vendor, in_any()).await;
        let target = format!("model = \"{model}\"");
        let desk = before(&upstream, Family::Chat, provider, &target).await;
        let answers = desk.served(Family::Chat, &with_nulls()).await;
        for (answer, seen) in answers.iter().zip(upstream.requests()) {
            let sent = seen.json();
            assert_eq!(lost(answer), "", "nothing was asked for");
            let turn = &sent["messages"][1];
            for gone in [turn.get("refusal"), turn.get("audio"), sent.get("stop")] {
                assert_eq!(gone, None, "{provider}: {sent}");
            }
            assert_eq!(sent["tools"][0]["function"].get("strict"), None, "{sent}");
            assert_eq!(turn.get("content"), Some(&Value::Null), "it only calls");
            let city = &sent["tools"][0]["function"]["parameters"]["properties"]["city"];
            assert_eq!(
                city.get("default"),
                Some(&Value::Null),
                "the customer's own"
            );
        }
        desk.gateway.stop().await;
    }
}

/// A `null` where the gateway writes something itself is replaced, not cut.
#[tokio::test]
async fn r11_what_the_gateway_writes_stands_where_null_stood() {
    let upstream = ScriptedUpstream::playing(Vendor::Compatible, in_any()).await;
    let provider = "speaks = [\"chat\"]\nchat_limit = \"max_tokens\"";
    let desk = before(&upstream, Family::Chat, provider, "model = \"m\"").await;
    let members = json!({"max_tokens": null, "max_completion_tokens": 70, "stream_options": null, "seed": null});
    desk.served(Family::Chat, &members).await;
    let sent = upstream.requests()[1].json();
    assert_eq!(sent["max_tokens"], 70, "{sent}");
    assert_eq!(sent["stream_options"], json!({"include_usage": true}));
    for gone in ["seed", "max_completion_tokens"] {
        assert_eq!(sent.get(gone), None, "{sent}");
    }
    desk.gateway.stop().await;
}

#[tokio::test]
async fn r11_other_families_lose_theirs_and_known_services_keep_them() {
    let upstream = ScriptedUpstream::tolerant(in_any()).await;
    let item = json!({"type": "message", "role": "user", "status": null, "content": [{"type": "input_text", "text": "a"}]});
    let cases = [
        (
            Family::Responses,
            json!({"input": [item], "user": null, "reasoning": null}),
        ),
        (
            Family::Messages,
            json!({"system": null, "messages": [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": null}]}]}),
        ),
    ];
    for (family, members) in cases {
        let provider = format!("speaks = [\"{family}\"]");
        let desk = before(&upstream, family, &provider, "model = \"m\"").await;
        desk.served(family, &members).await;
        let sent = upstream.requests().last().expect("a request").json();
        assert!(!sent.to_string().contains("null"), "{sent}");
        desk.gateway.stop().await;
    }
    let desk = before(
        &upstream,
        Family::Chat,
        "kind = \"openai\"",
        "model = \"gpt-4.1-mini\"",
    )
    .await;
    let members = with_nulls();
    desk.served(Family::Chat, &members).await;
    let sent = upstream.requests().last().expect("a request").json();
    assert_eq!(sent["messages"], members["messages"]);
    assert_eq!(sent["tools"], members["tools"]);
    desk.gateway.stop().await;
}
