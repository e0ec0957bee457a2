//! Hints that a target turns out not to know: the same target is asked once more without, and the hint is named.

use super::*;
use crate::support::upstream::Reply;

/// A vendor's refusal of a field that its requests may not have.
struct Refused {
    family: Family,
    /// The field, as a pointer.
    field: &'static str,
    status: u16,
    words: Value,
}

impl Refused {
    /// Refuses the request while it has the field, and answers it without.
    fn script(&self) -> Script {
        let (field, status, words) = (self.field, self.status, self.words.clone());
        let answered = |seen: &Seen| speech(family_of(seen), seen.json()["stream"] == true);
        Script::by(move |seen: &Seen, _| match seen.json().pointer(field) {
            Some(_) => Reply::json(status, &words),
            None => answered(seen),
        })
    }
}

/// In whose words, and where each was seen: OpenAI's and xAI's errors as their pages show them, a validating server's (vLLM, Mistral),
/// Anthropic's, Groq's.
fn refusals() -> Vec<(Refused, Value, &'static str)> {
    let of = |family, field, status, words| Refused {
        family,
        field,
        status,
        words,
    };
    let openai = |code: &str, param: &str, message: &str| json!({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}});
    vec![
        (
            of(
                Family::Chat,
                "/temperature",
                400,
                openai(
                    "unsupported_value",
                    "temperature",
                    "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
                ),
            ),
            json!({"temperature": 0.2}),
            "temperature=dropped",
        ),
        (
            of(
                Family::Responses,
                "/top_p",
                400,
                openai(
                    "unsupported_parameter",
                    "top_p",
                    "Unsupported parameter: 'top_p' is not supported with this model.",
                ),
            ),
            json!({"top_p": 0.5}),
            "top_p=dropped",
        ),
        (
            of(
                Family::Messages,
                "/context_management",
                400,
                json!({"type": "error", "error": {"type": "invalid_request_error",
                    "message": "context_management: Extra inputs are not permitted"}}),
            ),
            json!({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}),
            "context_management=dropped",
        ),
        (
            of(
                Family::Chat,
                "/presence_penalty",
                400,
                json!({"code": "Client specified an invalid argument",
                    "error": "Argument not supported on this model: presencePenalty"}),
            ),
            json!({"presence_penalty": 0.5}),
            "presence_penalty=dropped",
        ),
        (
            of(
                Family::Chat,
                "/messages/0/cache_control",
                400,
                json!({"error": {"message": "property 'messages.0.cache_control' is unsupported", "type": "invalid_request_error"}}),
            ),
            json!({"messages": [{"role": "user", "content": "hi", "cache_control": {"type": "ephemeral"}}]}),
            "messages.cache_control=dropped",
        ),
        (
            of(
                Family::Chat,
                "/tools/0/function/strict",
                422,
                json!({"detail": [{"type": "extra_forbidden", "loc": ["body", "tools", 0, "function", "strict"],
                    "msg": "Extra inputs are not permitted", "input": true}]}),
            ),
            json!({"tools": [{"type": "function", "function": {"name": "weather", "strict": true,
                "parameters": {"type": "object", "properties": {}, "required": [], "additionalProperties": false}}}]}),
            "tools.function.strict=dropped",
        ),
        (
            of(
                Family::Chat,
                "/seed",
                400,
                json!({"object": "error", "code": 400, "type": "BadRequestError", "message":
                    "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not permitted', 'input': 7}]"}),
            ),
            json!({"seed": 7}),
            "seed=dropped",
        ),
    ]
}

#[tokio::test]
async fn a_target_that_refuses_a_hint_is_asked_once_more_without() {
    for (refused, members, named) in refusals() {
        let upstream = ScriptedUpstream::tolerant(refused.script()).await;
        let provider = format!("speaks = [\"{}\"]", refused.family);
        let desk = before(&upstream, refused.family, &provider, "model = \"m\"").await;
        for answer in desk.served(refused.family, &members).await {
            assert_eq!(lost(&answer), named);
            assert_eq!(desk.lost_on_receipt(&answer).await, named);
        }
        let seen = upstream.requests();
        let had = seen
            .iter()
            .map(|seen| seen.json().pointer(refused.field).is_some());
        assert!(had.eq([true, false, true, false]), "{named}");
        desk.gateway.stop().await;
    }
}

/// A translated request is asked again, too.
#[tokio::test]
async fn a_hint_is_left_out_of_a_translated_request() {
    let (refused, ..) = refusals().swap_remove(0);
    let upstream = ScriptedUpstream::tolerant(refused.script()).await;
    let desk = before(
        &upstream,
        Family::Chat,
        "speaks = [\"chat\"]",
        "model = \"m\"",
    )
    .await;
    for answer in desk
        .served(Family::Messages, &json!({"temperature": 0.2}))
        .await
    {
        assert_eq!(lost(&answer), "temperature=dropped");
    }
    desk.gateway.stop().await;
}

/// What the answer, its price or its bounds rest on is not left out, nor is a hint whose value is wrong, nor a second hint; and what
/// was not sent cannot be left out.
#[tokio::test]
async fn other_refusals_are_told() {
    let unknown = |name: &str| {
        json!({"error": {"message": format!("Unknown parameter: '{name}'."), "type": "invalid_request_error",
        "param": name, "code": "unknown_parameter"}})
    };
    let too_hot = json!({"error": {"message": "temperature: must be between 0 and 1", "type": "invalid_request_error"}});
    let json_form = json!({"response_format": {"type": "json_object"}});
    for (members, script, asked) in [
        (
            json!({"tools": [tool(Family::Chat)]}),
            Reply::json(400, &unknown("tools")).into(),
            1,
        ),
        (
            json_form,
            Reply::json(400, &unknown("response_format")).into(),
            1,
        ),
        (
            json!({}),
            Reply::json(400, &unknown("max_completion_tokens")).into(),
            1,
        ),
        (
            json!({"temperature": 1.9}),
            Reply::json(400, &too_hot).into(),
            1,
        ),
        (json!({}), Reply::json(400, &unknown("seed")).into(), 1),
        (
            json!({"seed": 7, "user": "u"}),
            Script::from([unknown("seed"), unknown("user")].map(|words| Reply::json(400, &words))),
            2,
        ),
    ] {
        let upstream = ScriptedUpstream::tolerant(script).await;
        let desk = before(
            &upstream,
            Family::Chat,
            "speaks = [\"chat\"]",
            "model = \"m\"",
        )
        .await;
        let body = with(Family::Chat, &members, false);
        let answer = desk
            .gateway
            .post(path(Family::Chat), &desk.key, &body)
            .await;
        assert_eq!(answer.status, 400, "{members}: {}", answer.text);
        assert_eq!(upstream.requests().len(), asked, "{members}");
        desk.gateway.settled().await;
        let charges = desk.gateway.charges(&desk.key).await;
        assert!(
            charges.iter().all(|charge| charge.amount.picos() == 0),
            "{members}"
        );
        desk.gateway.stop().await;
    }
}
