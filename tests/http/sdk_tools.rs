//! No tool of the newest OpenAI library vanishes without a word: on targets of each family it is served, named in a header, or refused.

use farebox_protocol::Family;
use serde_json::{Value, json};

use super::translation::{answering, before};
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, Gateway, TestKey, ask, path};

/// What becomes of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Every target gets it: its own family as it is, the others as a function.
    Served,
    /// Its own family gets it; elsewhere it is named beside other tools, and refused alone and where it is forced.
    Own,
    /// Its own family does not get it either, where it is named.
    Removed,
    /// Refused everywhere.
    Refused,
}

use Fate::{Own, Refused, Removed, Served};

/// Every member of `Tool` in openai 3.57.0 (PyPI, 2026-11): `types/responses/tool.py`; of tools with several types or places, each.
fn responses_tools() -> Vec<(Value, Fate)> {
    let own = json!({"type": "function", "name": "own", "parameters": {"type": "object", "properties": {}}});
    let shell = |environment: Value| json!({"type": "shell", "environment": environment});
    let named = |kind: &str| json!({"type": kind});
    vec![
        (own.clone(), Served),
        (
            json!({"type": "file_search", "vector_store_ids": ["vs_1"]}),
            Refused,
        ),
        (named("computer"), Served),
        (
            json!({"type": "computer_use_preview", "display_width": 1_024, "display_height": 768, "environment": "browser"}),
            Served,
        ),
        (named("web_search"), Removed),
        (named("web_search_2025_08_26"), Removed),
        (
            json!({"type": "mcp", "server_label": "a", "server_url": "https://example.com"}),
            Refused,
        ),
        (
            json!({"type": "code_interpreter", "container": {"type": "auto"}}),
            Refused,
        ),
        (named("programmatic_tool_calling"), Refused),
        (named("image_generation"), Refused),
        (named("local_shell"), Served),
        (shell(json!({"type": "local"})), Served),
        (named("shell"), Refused),
        (shell(Value::Null), Refused),
        (shell(json!({"type": "container_auto"})), Refused),
        (
            shell(json!({"type": "container_reference", "container_id": "cntr_1"})),
            Refused,
        ),
        (json!({"type": "custom", "name": "free"}), Served),
        (
            json!({"type": "namespace", "name": "space", "description": "d", "tools": [own]}),
            Served,
        ),
        (named("tool_search"), Own),
        (named("web_search_preview"), Removed),
        (named("web_search_preview_2025_03_11"), Removed),
        (named("apply_patch"), Served),
    ]
}

/// Every member of `ChatCompletionToolUnion` there: `types/chat/chat_completion_tool_union_param.py`.
fn chat_tools() -> Vec<(Value, Fate)> {
    vec![
        (
            json!({"type": "function", "function": {"name": "own"}}),
            Served,
        ),
        (
            json!({"type": "custom", "custom": {"name": "free"}}),
            Served,
        ),
    ]
}

/// A function beside which others are offered.
fn beside(caller: Family) -> Value {
    match caller {
        Family::Chat => json!({"type": "function", "function": {"name": "beside"}}),
        _ => json!({"type": "function", "name": "beside"}),
    }
}

/// The choice that forces a tool; none for a namespace, which cannot be called.
fn forcing(tool: &Value) -> Option<Value> {
    let kind = tool["type"].as_str().unwrap();
    match kind {
        "namespace" => None,
        "function" | "custom" if tool["name"].is_null() => {
            Some(json!({"type": kind, kind: {"name": tool[kind]["name"]}}))
        }
        "function" | "custom" => Some(json!({"type": kind, "name": tool["name"]})),
        _ => Some(json!({"type": kind})),
    }
}

/// One target: what it was asked, and what the customer read.
struct Bench {
    target: Family,
    upstream: ScriptedUpstream,
    gateway: Gateway,
    key: TestKey,
}

impl Bench {
    async fn of(target: Family) -> Self {
        let upstream = ScriptedUpstream::start(answering(target)).await;
        let gateway = before(&upstream, target, "").await;
        let key = gateway.key("50.00").await;
        Self {
            target,
            upstream,
            gateway,
            key,
        }
    }

    /// The answer, and what the target got if it was asked.
    async fn send(
        &self,
        caller: Family,
        tools: &[Value],
        choice: Option<Value>,
    ) -> (Answer, Option<Value>) {
        let before = self.upstream.requests().len();
        let mut body = ask(caller, "test-model", false);
        body["tools"] = json!(tools);
        if let Some(choice) = choice {
            body["tool_choice"] = choice;
        }
        let answer = self.gateway.post(path(caller), &self.key, &body).await;
        let sent = self.upstream.requests().drain(before..).next_back();
        let sent = sent.map(|seen| seen.json());
        (answer, sent)
    }

    async fn judge(&self, caller: Family, tool: &Value, fate: Fate) {
        let kind = tool["type"].as_str().unwrap();
        let told = format!("{kind} of {caller} towards {}", self.target);
        let translated = caller != self.target;
        let both = [beside(caller), tool.clone()];
        let alone = self.send(caller, std::slice::from_ref(tool), None).await;
        let among = self.send(caller, &both, None).await;
        let forced = match forcing(tool) {
            Some(choice) => Some(self.send(caller, &both, Some(choice)).await),
            None => None,
        };
        let has = |(answer, sent): &(Answer, Option<Value>), tools: usize| {
            assert_eq!(answer.status, 200, "{told}: {}", answer.text);
            let sent = sent.as_ref().unwrap();
            let got = sent["tools"].as_array().map_or(0, Vec::len);
            assert_eq!(got, tools, "{told}: {sent}");
        };
        let named = |(answer, _): &(Answer, Option<Value>), header: &str, word: &str| {
            let value = answer.header(header).unwrap_or_default();
            assert!(value.contains(word), "{told}: {header}: {value}");
        };
        let no = |(answer, sent): &(Answer, Option<Value>)| {
            assert_eq!(
                (answer.status, sent),
                (400, &None),
                "{told}: {}",
                answer.text
            );
            assert!(answer.text.contains(kind), "{told}: {}", answer.text);
        };
        match fate {
            Served => {
                has(&alone, 1);
                has(&among, 2);
                forced.iter().for_each(|forced| has(forced, 2));
                for (answer, _) in [Some(&alone), Some(&among), forced.as_ref()]
                    .into_iter()
                    .flatten()
                {
                    assert_eq!(answer.header("x-farebox-lost"), None, "{told}");
                    assert_eq!(answer.header("x-farebox-removed"), None, "{told}");
                }
            }
            Own | Removed if translated => {
                no(&alone);
                has(&among, 1);
                named(&among, "x-farebox-lost", &format!("tools.{kind}=dropped"));
                forced.iter().for_each(no);
            }
            Own => {
                has(&alone, 1);
                has(&among, 2);
            }
            Removed => {
                has(&alone, 0);
                has(&among, 1);
                for outcome in [&alone, &among] {
                    named(outcome, "x-farebox-removed", kind);
                }
            }
            Refused => {
                no(&alone);
                no(&among);
            }
        }
    }
}

#[tokio::test]
async fn no_tool_of_the_newest_library_vanishes_without_a_word() {
    for target in Family::ALL {
        let bench = Bench::of(target).await;
        for (tool, fate) in responses_tools() {
            bench.judge(Family::Responses, &tool, fate).await;
        }
        for (tool, fate) in chat_tools() {
            bench.judge(Family::Chat, &tool, fate).await;
        }
    }
}
