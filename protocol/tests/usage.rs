//! Usage as upstreams report it: odd counts, steps, lifetimes of cache writes, and every service's own form.

#![expect(
    clippy::expect_used,
    reason = "a helper that cannot go on fails the test"
)]

mod support;

use farebox_protocol::{Family, FrameMarks, ReportedUsage, UsageReading, WireUsage};
use serde_json::{Value, json};
use support::frames;

fn chat(usages: &[Value]) -> WireUsage {
    let mut reader = Family::Chat.protocol().reader();
    for usage in usages {
        let chunk = json!({"choices": [{"index": 0, "delta": {}}], "usage": usage});
        reader.read(
            &frames(format!("data: {chunk}\n\n").as_bytes())
                .pop()
                .expect("one frame"),
        );
    }
    reader.usage().clone()
}

#[test]
fn absurd_counts_are_never_priced() {
    let good = json!({"prompt_tokens": 10, "completion_tokens": 5});
    let usage = ReportedUsage {
        input: 10,
        output: 5,
        ..ReportedUsage::default()
    };
    assert_eq!(
        chat(std::slice::from_ref(&good)).reading(false),
        UsageReading::Counted(usage)
    );
    for (name, value) in [
        ("prompt_tokens", json!(-1)),
        ("completion_tokens", json!(1.5)),
        ("completion_tokens", json!("5")),
        ("prompt_tokens", json!(true)),
    ] {
        let mut bad = good.clone();
        bad[name] = value;
        assert_eq!(chat(&[bad]).reading(false), UsageReading::Absurd, "{name}");
    }
    let cached = json!({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 3}});
    assert_eq!(chat(&[cached]).reading(false), UsageReading::Absurd);
    let reasoning = json!({"prompt_tokens": 10, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 9}});
    assert_eq!(
        chat(std::slice::from_ref(&reasoning)).reading(false),
        UsageReading::Absurd
    );
    let outside = ReportedUsage {
        input: 10,
        output: 5,
        reasoning: 9,
        ..ReportedUsage::default()
    };
    assert_eq!(
        chat(&[reasoning]).reading(true),
        UsageReading::Counted(outside)
    );
    let huge = json!({"prompt_tokens": u64::MAX, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": u64::MAX, "cache_write_tokens": 1}});
    assert_eq!(chat(&[huge]).reading(false), UsageReading::Absurd);
}

/// Google's chat endpoint names no reasoning: `max_tokens: 100` came back as 1 + 9 = 103 tokens.
#[test]
fn reasoning_that_only_the_total_has_is_counted_where_it_stands_beside_the_output() {
    let unnamed = json!({"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 103});
    let counted = |reasoning| {
        UsageReading::Counted(ReportedUsage {
            input: 9,
            output: 1,
            reasoning,
            ..ReportedUsage::default()
        })
    };
    assert_eq!(
        chat(std::slice::from_ref(&unnamed)).reading(true),
        counted(93)
    );
    assert_eq!(
        chat(std::slice::from_ref(&unnamed)).reading(false),
        counted(0),
        "elsewhere an odd total says nothing"
    );
    for total in [json!(10), json!(9), json!(null), json!(-1)] {
        let mut other = unnamed.clone();
        other["total_tokens"] = total;
        assert_eq!(chat(&[other]).reading(true), counted(0));
    }
    let mut growing = unnamed.clone();
    growing["completion_tokens"] = json!(3);
    growing["total_tokens"] = json!(105);
    let read = chat(&[unnamed, growing]).reading(true);
    assert_eq!(
        read,
        UsageReading::Counted(ReportedUsage {
            input: 9,
            output: 3,
            reasoning: 93,
            ..ReportedUsage::default()
        })
    );
}

#[test]
fn the_last_count_wins_and_zero_replaces_nothing() {
    assert_eq!(chat(&[Value::Null]).reading(false), UsageReading::Missing);
    assert_eq!(
        chat(&[json!({"prompt_tokens": 4})]).reading(false),
        UsageReading::Missing
    );
    let several = [
        json!({"prompt_tokens": 10, "completion_tokens": 1}),
        json!({"prompt_tokens": 12, "completion_tokens": 7, "prompt_tokens_details": null}),
        Value::Null,
        json!({"prompt_tokens": 0, "completion_tokens": null}),
    ];
    assert_eq!(
        chat(&several).reading(false),
        UsageReading::Counted(ReportedUsage {
            input: 12,
            output: 7,
            ..ReportedUsage::default()
        })
    );
}

#[test]
fn durations_of_cache_writes_are_told_apart() {
    let answer = |usage: Value| {
        let body = json!({"type": "message", "content": [], "usage": usage}).to_string();
        Family::Messages
            .protocol()
            .read_answer(body.as_bytes())
            .expect("JSON")
            .usage
            .reading(false)
    };
    let split = json!({"input_tokens": 1, "output_tokens": 2, "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}});
    let expected = ReportedUsage {
        input: 1,
        cache_write: 3,
        cache_write_1h: 4,
        cache_write_12h: 0,
        output: 2,
        ..ReportedUsage::default()
    };
    assert_eq!(answer(split.clone()), UsageReading::Counted(expected));
    let mut with_total = split.clone();
    with_total["cache_creation_input_tokens"] = json!(7);
    assert_eq!(answer(with_total), UsageReading::Counted(expected));
    let mut absurd = split;
    absurd["cache_creation_input_tokens"] = json!(2);
    assert_eq!(answer(absurd), UsageReading::Absurd);
}

/// What the operator pays and who served the answer is nobody's business.
#[test]
fn the_upstreams_own_price_is_cut() {
    let cut = |body: &str, cuts: &[std::ops::Range<usize>]| {
        let mut edits: Vec<_> = cuts
            .iter()
            .cloned()
            .map(farebox_protocol::json::Edit::cut)
            .collect();
        String::from_utf8(farebox_protocol::json::splice(body.as_bytes(), &mut edits))
            .expect("UTF-8")
    };
    let body = r#"{"provider":"Host","id":"x","usage":{"cost":0.1,"prompt_tokens":1,"cost_details":{"a":1},"completion_tokens":2,"is_byok":false}}"#;
    let facts = Family::Chat
        .protocol()
        .read_answer(body.as_bytes())
        .expect("JSON");
    assert_eq!(
        cut(body, &facts.marks.more().expect("marks").cuts),
        r#"{"id":"x","usage":{"prompt_tokens":1,"completion_tokens":2}}"#
    );
    let frame = frames(
        br#"data: {"response":{"id":"x","provider":"Host","usage":{"cost":0.1}}}"#
            .iter()
            .chain(b"\n\n")
            .copied()
            .collect::<Vec<u8>>()
            .as_slice(),
    )
    .pop()
    .expect("one");
    let facts = Family::Responses.protocol().reader().read(&frame);
    let text = String::from_utf8_lossy(frame.raw()).into_owned();
    assert_eq!(
        cut(&text, &facts.marks.more().expect("marks").cuts),
        "data: {\"response\":{\"id\":\"x\",\"usage\":{}}}\n\n"
    );
    assert!(facts.marks.usage_empty);
}

/// Reports as services and servers document them; each is charged as it says.
#[test]
fn every_services_chat_usage_is_read() {
    let counts = |[
        input,
        cache_read,
        cache_write,
        cache_write_1h,
        output,
        reasoning,
    ]: [u64; 6]| {
        UsageReading::Counted(ReportedUsage {
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            cache_write_12h: 0,
            output,
            reasoning,
        })
    };
    let details = |name: &str, value: u64| {
        json!({"prompt_tokens": 3_019, "completion_tokens": 104, "total_tokens": 3_123,
        "prompt_tokens_details": {"cached_tokens": 0, name: value}})
    };
    for (service, usage, expected) in [
        (
            "DeepSeek",
            json!({"prompt_tokens": 100, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36, "completion_tokens": 30,
            "total_tokens": 130, "prompt_tokens_details": {"cached_tokens": 64}, "completion_tokens_details": {"reasoning_tokens": 20}}),
            [36, 64, 0, 0, 10, 20],
        ),
        (
            "Kimi",
            json!({"prompt_tokens": 100, "completion_tokens": 9, "total_tokens": 109, "cached_tokens": 80}),
            [20, 80, 0, 0, 9, 0],
        ),
        (
            "Qwen",
            details("cache_creation_input_tokens", 1_605),
            [1_414, 0, 1_605, 0, 104, 0],
        ),
        (
            "Qwen for an hour",
            json!({"prompt_tokens": 3_019, "completion_tokens": 104, "prompt_tokens_details": {"cached_tokens": 0,
            "cache_type": "ephemeral", "cache_creation_input_tokens": 1_605,
            "cache_creation": {"ephemeral_5m_input_tokens": 600, "ephemeral_1h_input_tokens": 1_005}}}),
            [1_414, 0, 600, 1_005, 104, 0],
        ),
        (
            "LiteLLM",
            json!({"prompt_tokens": 98_805, "completion_tokens": 5_120, "total_tokens": 103_925, "cache_read_input_tokens": 66_360,
            "cache_creation_input_tokens": 32_435, "prompt_tokens_details": {"text_tokens": null, "cached_tokens": 66_360,
            "cache_creation_tokens": 32_435, "cache_creation_token_details": {"ephemeral_5m_input_tokens": 2_435,
            "ephemeral_1h_input_tokens": 30_000}}, "completion_tokens_details": {"reasoning_tokens": 1_710, "text_tokens": null}}),
            [10, 66_360, 2_435, 30_000, 3_410, 1_710],
        ),
        (
            "OpenRouter",
            details("cache_write_tokens", 1_605),
            [1_414, 0, 1_605, 0, 104, 0],
        ),
        (
            "xAI",
            json!({"prompt_tokens": 40, "completion_tokens": 30, "total_tokens": 626, "num_sources_used": 0,
            "prompt_tokens_details": {"text_tokens": 40, "image_tokens": 0, "cached_tokens": 32},
            "completion_tokens_details": {"reasoning_tokens": 556}, "cost_in_usd_ticks": 12}),
            [8, 32, 0, 0, 30, 556],
        ),
        (
            "Groq",
            json!({"queue_time": 0.02, "prompt_tokens": 60, "prompt_time": 0.0004, "completion_tokens": 10, "completion_time": 0.01,
            "total_tokens": 70, "prompt_tokens_details": {"cached_tokens": 50}}),
            [10, 50, 0, 0, 10, 0],
        ),
        (
            "Mistral",
            json!({"prompt_tokens": 60, "total_tokens": 70, "completion_tokens": 10, "prompt_audio_seconds": {},
            "prompt_tokens_details": {"cached_tokens": 48}}),
            [12, 48, 0, 0, 10, 0],
        ),
        (
            "vLLM",
            json!({"prompt_tokens": 60, "total_tokens": 70, "completion_tokens": 10, "prompt_tokens_details": null}),
            [60, 0, 0, 0, 10, 0],
        ),
        (
            "SGLang",
            json!({"prompt_tokens": 60, "total_tokens": 90, "completion_tokens": 30, "prompt_tokens_details": {"cached_tokens": 16},
            "reasoning_tokens": 20}),
            [44, 16, 0, 0, 30, 0],
        ),
        (
            "llama.cpp",
            json!({"completion_tokens": 10, "prompt_tokens": 60, "total_tokens": 70,
            "prompt_tokens_details": {"cached_tokens": 59}}),
            [1, 59, 0, 0, 10, 0],
        ),
        (
            "Z.ai",
            json!({"prompt_tokens": 60, "completion_tokens": 30, "total_tokens": 90, "prompt_tokens_details": {"cached_tokens": 43},
            "completion_tokens_details": {"reasoning_tokens": 20}}),
            [17, 43, 0, 0, 10, 20],
        ),
    ] {
        assert_eq!(
            chat(&[json!({"prompt_tokens": 0, "completion_tokens": 0}), usage]).reading(false),
            counts(expected),
            "{service}"
        );
    }
}

#[test]
fn every_services_native_and_responses_usage_is_read() {
    let counted = |input, cache_read, cache_write, cache_write_1h, output, reasoning| {
        UsageReading::Counted(ReportedUsage {
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            cache_write_12h: 0,
            output,
            reasoning,
        })
    };
    let vertex = native(
        &json!({"input_tokens": 10, "cache_read_input_tokens": 500, "cache_creation_input_tokens": 300, "output_tokens": 40,
        "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200}, "service_tier": "standard",
        "server_tool_use": {"web_search_requests": 0}, "output_tokens_details": {"thinking_tokens": 25}}),
    );
    assert_eq!(vertex.reading(false), counted(10, 500, 100, 200, 15, 25));
    let plain =
        native(&json!({"input_tokens": 1, "cache_read_input_tokens": 59, "output_tokens": 10}));
    assert_eq!(
        plain.reading(false),
        counted(1, 59, 0, 0, 10, 0),
        "llama.cpp"
    );
    let bedrock = json!({"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 9, "outputTokenCount": 9}});
    let mut reader = Family::Messages.protocol().reader();
    let facts = reader.read(
        &frames(format!("data: {bedrock}\n\n").as_bytes())
            .pop()
            .expect("one frame"),
    );
    assert_eq!(
        (facts.end, facts.usage, reader.usage().reading(false)),
        (true, false, UsageReading::Missing)
    );
    let turns = json!({"input_tokens": 300, "input_tokens_details": {"cached_tokens": 120, "input_tokens_per_turn": [100, 200],
        "cached_tokens_per_turn": [0, 120]}, "output_tokens": 50, "total_tokens": 350, "output_tokens_details": {"reasoning_tokens": 20,
        "tool_output_tokens": 0, "output_tokens_per_turn": [20, 30]}});
    let body = json!({"object": "response", "status": "completed", "usage": turns}).to_string();
    let facts = Family::Responses
        .protocol()
        .read_answer(body.as_bytes())
        .expect("JSON");
    assert_eq!(
        facts.usage.reading(false),
        counted(180, 120, 0, 0, 30, 20),
        "vLLM"
    );
}

/// A native stream's usage.
fn native(usage: &Value) -> WireUsage {
    let delta =
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage});
    let mut reader = Family::Messages.protocol().reader();
    for _ in 0..2 {
        reader.read(
            &frames(format!("data: {delta}\n\n").as_bytes())
                .pop()
                .expect("one frame"),
        );
    }
    reader.usage().clone()
}

/// A compaction is counted beside the answer; the steps of the answer itself are in its counts.
#[test]
fn compactions_are_charged_too() {
    let usage = native(
        &json!({"input_tokens": 23, "output_tokens": 1, "iterations": [
            {"type": "compaction", "input_tokens": 180, "output_tokens": 3, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 0},
            {"type": "message", "input_tokens": 23, "output_tokens": 1},
        ]}),
    );
    let expected = ReportedUsage {
        input: 203,
        cache_read: 5,
        output: 4,
        ..ReportedUsage::default()
    };
    assert_eq!(usage.reading(false), UsageReading::Counted(expected));
    let compaction = ReportedUsage {
        input: 180,
        cache_read: 5,
        output: 3,
        ..ReportedUsage::default()
    };
    assert_eq!(usage.further_steps(&expected), [compaction]);
}

#[test]
fn the_steps_of_an_answer_are_its_counts_only_if_they_add_up() {
    let step = |input: u64| json!({"type": "message", "input_tokens": input, "output_tokens": 1});
    let counted = |input| ReportedUsage {
        input,
        output: 2,
        ..ReportedUsage::default()
    };
    let two = native(
        &json!({"input_tokens": 50, "output_tokens": 2, "iterations": [step(20), step(30)]}),
    );
    assert_eq!(two.reading(false), UsageReading::Counted(counted(50)));
    assert_eq!(
        two.further_steps(&counted(50)),
        [ReportedUsage {
            input: 30,
            output: 1,
            ..ReportedUsage::default()
        }]
    );
    let odd = native(
        &json!({"input_tokens": 51, "output_tokens": 2, "iterations": [step(20), step(30)]}),
    );
    assert_eq!(odd.reading(false), UsageReading::Counted(counted(51)));
    assert_eq!(odd.further_steps(&counted(51)), []);
    let endless =
        native(&json!({"input_tokens": 51, "output_tokens": 2, "iterations": vec![step(1); 33]}));
    assert_eq!(endless.reading(false), UsageReading::Absurd);
}

#[test]
fn an_answer_that_is_only_a_compaction_is_counted_once() {
    let start = json!({"type": "message_start", "message": {"usage": {"input_tokens": 2_930, "output_tokens": 1}}});
    let step = json!({"type": "compaction", "input_tokens": 2_930, "output_tokens": 1_313});
    let usage = json!({"input_tokens": 0, "output_tokens": 0, "iterations": [step]});
    let delta =
        json!({"type": "message_delta", "delta": {"stop_reason": "compaction"}, "usage": usage});
    let mut reader = Family::Messages.protocol().reader();
    for event in [start, delta] {
        reader.read(
            &frames(format!("data: {event}\n\n").as_bytes())
                .pop()
                .expect("one frame"),
        );
    }
    let counted = ReportedUsage {
        input: 2_930,
        output: 1_313,
        ..ReportedUsage::default()
    };
    assert_eq!(
        reader.usage().reading(false),
        UsageReading::Counted(counted)
    );
    assert_eq!(reader.usage().further_steps(&counted), [counted]);
}

/// The summary that a compaction shows is output.
#[test]
fn the_summary_of_a_compaction_is_shown_text() {
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta", "content": "We met."}});
    let frame = frames(format!("data: {delta}\n\n").as_bytes())
        .pop()
        .expect("one frame");
    assert_eq!(
        Family::Messages
            .protocol()
            .reader()
            .read(&frame)
            .shown
            .bytes(),
        7
    );
    let whole = json!({"type": "message", "content": [{"type": "compaction", "content": "We met."}], "stop_reason": "compaction"});
    let facts = Family::Messages
        .protocol()
        .read_answer(whole.to_string().as_bytes())
        .expect("JSON");
    assert_eq!(facts.shown.bytes(), 7);
}

/// The upstream's name of the model stands in each step as well.
#[test]
fn the_models_of_single_steps_are_marked() {
    let usage = r#"{"input_tokens":1,"output_tokens":2,"iterations":[{"type":"message","model":"up-1"},{"model":null},{"model":"up-2"}]}"#;
    let named = |bytes: &[u8], marks: FrameMarks| -> Vec<String> {
        let more = marks.more().cloned().unwrap_or_default();
        let places = marks.model.into_iter().chain(more.models);
        places
            .map(|place| String::from_utf8_lossy(&bytes[place]).into_owned())
            .collect()
    };
    let answer = format!(r#"{{"type":"message","model":"up-1","content":[],"usage":{usage}}}"#);
    let facts = Family::Messages
        .protocol()
        .read_answer(answer.as_bytes())
        .expect("JSON");
    assert_eq!(
        named(answer.as_bytes(), facts.marks),
        ["\"up-1\"", "\"up-1\"", "\"up-2\""]
    );
    let delta = format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{usage}}}"#
    );
    let start =
        format!(r#"{{"type":"message_start","message":{{"model":"up-1","usage":{usage}}}}}"#);
    for (data, models) in [(delta, 2), (start, 3)] {
        let frame = frames(format!("event: x\ndata: {data}\n\n").as_bytes())
            .pop()
            .expect("one frame");
        let facts = Family::Messages.protocol().reader().read(&frame);
        let found = named(frame.raw(), facts.marks);
        assert_eq!(
            (found.len(), found.last().map(String::as_str)),
            (models, Some("\"up-2\"")),
            "{data}"
        );
    }
}

#[test]
fn long_cache_writes_are_told_apart() {
    let usage = json!({"input_tokens": 100, "output_tokens": 1, "input_tokens_details": {
        "cached_tokens": 10, "cache_write_tokens": 50, "cache_write_tokens_details": {"ttl_30m_tokens": 20, "ttl_12h_tokens": 30},
    }});
    let body = json!({"object": "response", "usage": usage}).to_string();
    let facts = Family::Responses
        .protocol()
        .read_answer(body.as_bytes())
        .expect("JSON");
    let expected = ReportedUsage {
        input: 40,
        cache_read: 10,
        cache_write: 20,
        cache_write_12h: 30,
        output: 1,
        ..ReportedUsage::default()
    };
    assert_eq!(facts.usage.reading(false), UsageReading::Counted(expected));
}
