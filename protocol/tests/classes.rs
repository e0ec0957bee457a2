//! Classes, cell by cell: which field of a request asks for which, which member of an answer names the one that was served, and what a
//! pin writes.

#![expect(
    clippy::expect_used,
    reason = "a helper that cannot go on fails the test"
)]

use farebox_protocol::{
    BadRequest, Classes, CostField, Edits, Family, FrameReader, Inspection, RequestRegion,
    SaidClasses, ServiceTier, TargetFit, UsageReading, WireUsage,
};
use serde_json::{Value, json};

const STANDARD: Classes = Classes::STANDARD;
const FLEX: Classes = Classes::of(ServiceTier::Flex, RequestRegion::Global);
const FAST: Classes = Classes::of(ServiceTier::Fast, RequestRegion::Global);
const US: Classes = Classes::of(ServiceTier::Standard, RequestRegion::Us);

fn body(family: Family, members: &Value) -> String {
    let mut body = match family {
        Family::Chat => json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}),
        Family::Responses => json!({"model": "m", "input": "hi"}),
        Family::Messages => {
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]})
        }
    };
    let members = members.as_object().expect("members").clone();
    body.as_object_mut().expect("a body").extend(members);
    body.to_string()
}

fn asked(family: Family, members: &Value) -> Result<Inspection, BadRequest> {
    family
        .protocol()
        .inspect(body(family, members).as_bytes(), 0)
}

#[test]
fn each_word_asks_for_its_class() {
    let tier = |word: Value| json!({ "service_tier": word });
    let chat = [
        (json!({}), STANDARD),
        (tier(json!(null)), STANDARD),
        (tier(json!("auto")), STANDARD),
        (tier(json!("default")), STANDARD),
        (tier(json!("scale")), STANDARD),
        (tier(json!("flex")), FLEX),
        (tier(json!("priority")), FAST),
        (tier(json!("fast")), FAST),
    ];
    let messages = [
        (json!({}), STANDARD),
        (tier(json!("auto")), STANDARD),
        (tier(json!("standard_only")), STANDARD),
        (json!({"speed": null}), STANDARD),
        (json!({"speed": "standard"}), STANDARD),
        (json!({"speed": "fast"}), FAST),
        (json!({"inference_geo": null}), STANDARD),
        (json!({"inference_geo": "global"}), STANDARD),
        (json!({"inference_geo": "us"}), US),
        (
            json!({"speed": "fast", "inference_geo": "us"}),
            Classes::of(ServiceTier::Fast, RequestRegion::Us),
        ),
    ];
    let rows = [
        (Family::Chat, chat.to_vec()),
        (Family::Responses, chat.to_vec()),
        (Family::Messages, messages.to_vec()),
    ];
    for (family, rows) in rows {
        for (members, classes) in rows {
            let seen = asked(family, &members).expect("it is served");
            assert_eq!(seen.classes, classes, "{family} {members}");
        }
    }
}

#[test]
fn other_words_and_values_are_refused_with_the_field_and_what_may_be_sent() {
    let openai = [
        json!("batch"),
        json!("ultrafast"),
        json!("standard_only"),
        json!("FLEX"),
        json!(""),
        json!(3),
        json!(false),
        json!({"tier": "fast"}),
        json!(["fast"]),
    ];
    for family in [Family::Chat, Family::Responses] {
        for word in &openai {
            let bad = asked(family, &json!({ "service_tier": word })).expect_err("a word");
            assert_eq!(bad.param.as_deref(), Some("service_tier"), "{word}");
            assert!(bad.message.contains("\"flex\" or \"priority\""), "{bad:?}");
        }
        let bad = asked(family, &json!({"speed": "fast"})).expect_err("another family's");
        assert_eq!(bad.param.as_deref(), Some("speed"));
    }
    for (name, word) in [
        ("service_tier", json!("default")),
        ("service_tier", json!("priority")),
        ("service_tier", json!("flex")),
        ("service_tier", json!(3)),
        ("speed", json!("slow")),
        ("speed", json!(2)),
        ("inference_geo", json!("eu")),
        ("inference_geo", json!(["us"])),
    ] {
        let bad = asked(Family::Messages, &json!({ name: word })).expect_err("a word");
        assert_eq!(bad.param.as_deref(), Some(name), "{word}");
    }
    let twice = br#"{"model":"m","messages":[{"role":"user","content":"x"}],"service_tier":"flex","service_tier":"fast"}"#;
    assert!(Family::Chat.protocol().inspect(twice, 0).is_err());
}

#[test]
fn a_request_may_only_warm_a_cache() {
    let seen = asked(Family::Messages, &json!({"max_tokens": 0})).expect("good");
    assert_eq!((seen.prewarms, seen.limit), (true, Some(0)));
    for family in [Family::Chat, Family::Responses] {
        let warm = |prewarm: Value| json!({"prompt_cache_options": {"prewarm": prewarm}});
        assert!(asked(family, &warm(json!(true))).expect("good").prewarms);
        assert!(!asked(family, &warm(json!(false))).expect("good").prewarms);
        assert!(asked(family, &warm(json!(1))).is_err());
        let ttl = |ttl: &str| json!({"prompt_cache_options": {"ttl": ttl}});
        let seen = asked(family, &ttl("12h")).expect("good");
        assert_eq!((seen.one_hour_cache, seen.half_day_cache), (false, true));
        assert!(asked(family, &ttl("1h")).expect("good").one_hour_cache);
        for other in ["2h", "24h", "5"] {
            assert!(asked(family, &ttl(other)).is_err(), "{other}");
        }
    }
}

/// What a whole answer of a family says with these members, which are in its usage on messages.
fn said(family: Family, members: &Value) -> SaidClasses {
    let mut answer = match family {
        Family::Chat => {
            json!({"choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1}})
        }
        Family::Responses => {
            json!({"status": "completed", "output": [], "usage": {"input_tokens": 1, "output_tokens": 1}})
        }
        Family::Messages => {
            json!({"type": "message", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}})
        }
    };
    let place = if family == Family::Messages {
        &mut answer["usage"]
    } else {
        &mut answer
    };
    let members = members.as_object().expect("members").clone();
    place.as_object_mut().expect("an object").extend(members);
    let answer = answer.to_string();
    let facts = family.protocol().read_answer(answer.as_bytes());
    facts.expect("an answer").usage.said
}

#[test]
fn each_word_says_what_was_served() {
    let tier = |word: &str| json!({ "service_tier": word });
    for family in [Family::Chat, Family::Responses] {
        for (word, served) in [
            ("default", ServiceTier::Standard),
            ("scale", ServiceTier::Standard),
            ("standard", ServiceTier::Standard),
            ("on_demand", ServiceTier::Standard),
            ("flex", ServiceTier::Flex),
            ("priority", ServiceTier::Fast),
            ("fast", ServiceTier::Fast),
        ] {
            let said = said(family, &tier(word));
            assert_eq!((said.tier, said.unknown), (Some(served), None), "{word}");
        }
        for nothing in [json!({}), tier("auto"), json!({"service_tier": null})] {
            assert_eq!(said(family, &nothing), SaidClasses::default(), "{nothing}");
        }
    }
    for (members, tier, place) in [
        (tier("standard"), None, None),
        // Capacity that was paid for before.
        (tier("priority"), None, None),
        (
            json!({"speed": "standard"}),
            Some(ServiceTier::Standard),
            None,
        ),
        (json!({"speed": "fast"}), Some(ServiceTier::Fast), None),
        (
            json!({"inference_geo": "us"}),
            None,
            Some(RequestRegion::Us),
        ),
        (
            json!({"inference_geo": "global"}),
            None,
            Some(RequestRegion::Global),
        ),
        (json!({"inference_geo": "not_available"}), None, None),
    ] {
        let said = said(Family::Messages, &members);
        assert_eq!((said.tier, said.place), (tier, place), "{members}");
        assert_eq!(said.unknown, None, "{members}");
    }
}

#[test]
fn a_word_that_is_not_known_is_kept_and_says_nothing_else() {
    let long = "x".repeat(500);
    for family in Family::ALL {
        for (word, kept) in [
            (json!("ultrafast"), "ultrafast"),
            (json!({"tier": "fast"}), "(not a word)"),
            (json!(3), "(not a word)"),
            (json!(["fast"]), "(not a word)"),
            (json!(long), &long[..40]),
        ] {
            let said = said(family, &json!({ "service_tier": word }));
            assert_eq!(said.unknown.as_deref(), Some(kept), "{family}");
            assert!(said.named && said.tier.is_none(), "{family}");
            for classes in [STANDARD, FLEX, FAST, US] {
                assert_eq!(said.served(classes), classes, "as asked");
            }
        }
    }
}

fn read(family: Family, frames: &[Value]) -> WireUsage {
    let mut reader = family.protocol().reader();
    reader.expect(1, 0);
    let mut bytes = FrameReader::default();
    for frame in frames {
        let text = format!("data: {frame}\n\n");
        bytes.push(text.into());
        while let Some(frame) = bytes.next_frame().expect("small") {
            reader.read(&frame);
        }
    }
    reader.usage().clone()
}

#[test]
fn in_chat_the_last_chunk_that_has_the_word_stands() {
    let chunk = |tier: Option<&str>, text: &str| {
        let mut chunk = json!({"id": "c", "choices": [{"index": 0, "delta": {"content": text}}]});
        if let Some(tier) = tier {
            chunk["service_tier"] = json!(tier);
        }
        chunk
    };
    let frames = [
        chunk(Some("priority"), "a"),
        chunk(Some("priority"), "b"),
        chunk(Some("default"), "c"),
        chunk(None, "d"),
        chunk(None, "e"),
    ];
    for (read_to, tier) in [
        (1, ServiceTier::Fast),
        (2, ServiceTier::Fast),
        (3, ServiceTier::Standard),
        (5, ServiceTier::Standard),
    ] {
        let usage = read(Family::Chat, &frames[..read_to]);
        assert_eq!(usage.said.tier, Some(tier), "{read_to}");
    }
}

#[test]
fn in_responses_only_the_event_that_ends_the_stream_names_it() {
    let response = |kind: &str, tier: &str| {
        json!({"type": kind, "response": {"id": "r", "status": "completed", "output": [], "service_tier": tier,
            "usage": {"input_tokens": 1, "output_tokens": 1}}})
    };
    let begun = [
        response("response.created", "priority"),
        response("response.in_progress", "priority"),
    ];
    assert_eq!(read(Family::Responses, &begun).said, SaidClasses::default());
    for kind in ["response.completed", "response.incomplete"] {
        let all = [&begun[..], &[response(kind, "default")]].concat();
        let said = read(Family::Responses, &all).said;
        assert_eq!(said.tier, Some(ServiceTier::Standard), "{kind}");
    }
}

#[test]
fn in_messages_the_first_event_names_it_and_stands() {
    let start = json!({"type": "message_start", "message": {"id": "m", "content": [], "usage":
        {"input_tokens": 1, "output_tokens": 1, "speed": "fast", "inference_geo": "us"}}});
    let last = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage":
        {"output_tokens": 9, "speed": "standard", "inference_geo": "global"}});
    let said = read(Family::Messages, &[start, last]).said;
    assert_eq!(
        said.served(STANDARD),
        Classes::of(ServiceTier::Fast, RequestRegion::Us)
    );
}

#[test]
fn a_pin_replaces_what_asks_for_nothing_and_nothing_else() {
    let pinned = |family: Family, members: &Value, leave_out: &[String]| {
        let body = body(family, members);
        let seen = family.protocol().inspect(body.as_bytes(), 0).expect("good");
        let pin = ["service_tier", "inference_geo"];
        let mut fit = TargetFit::default();
        fit.abilities.leave_out = leave_out.to_vec();
        let edits = Edits {
            model: "up",
            limit_field: "max_tokens",
            fit: &fit,
            pin: &pin,
            ..Edits::default()
        };
        let patched = family.protocol().patch(body.as_bytes(), &seen, &edits);
        let patched: Value = serde_json::from_slice(&patched).expect("JSON");
        (
            patched["service_tier"].clone(),
            patched["inference_geo"].clone(),
            seen.pinned(&pin),
        )
    };
    let tier = |word: Value| json!({ "service_tier": word });
    let none = Value::Null;
    for family in [Family::Chat, Family::Responses] {
        for idle in [json!({}), tier(json!(null)), tier(json!("auto"))] {
            let (tier, geo, fields) = pinned(family, &idle, &[]);
            assert_eq!((tier, geo), (json!("default"), none.clone()), "{idle}");
            assert!(fields.contains(&"service_tier"));
        }
        for word in ["default", "flex", "priority", "fast", "scale"] {
            let (kept, _, fields) = pinned(family, &tier(json!(word)), &[]);
            assert_eq!(kept, json!(word));
            assert!(!fields.contains(&"service_tier"));
        }
        let left = ["service_tier".to_owned()];
        for idle in [json!({}), tier(json!(null)), tier(json!("auto"))] {
            assert_eq!(pinned(family, &idle, &left).0, none, "{idle}");
        }
    }
    for idle in [json!({}), tier(json!(null)), tier(json!("auto"))] {
        let (tier, geo, _) = pinned(Family::Messages, &idle, &[]);
        assert_eq!((tier, geo), (json!("standard_only"), json!("global")));
    }
    let (_, geo, _) = pinned(Family::Messages, &json!({"inference_geo": "us"}), &[]);
    assert_eq!(geo, json!("us"));
}

#[test]
fn splits_of_cache_writes_are_read_wherever_they_are() {
    let parts = |usage: &WireUsage| match usage.reading(false) {
        UsageReading::Counted(usage) => (
            usage.cache_write,
            usage.cache_write_1h,
            usage.cache_write_12h,
        ),
        other => panic!("{other:?}"),
    };
    let chat = |details: Value| {
        let answer = json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 1,
            "prompt_tokens_details": details}});
        let answer = answer.to_string();
        let facts = Family::Chat.protocol().read_answer(answer.as_bytes());
        facts.expect("an answer").usage
    };
    let split = json!({"ttl_5m_tokens": 10, "ttl_1h_tokens": 20, "ttl_12h_tokens": 30});
    let usage = chat(json!({"cache_write_tokens": 60, "cache_write_tokens_details": split}));
    assert_eq!((parts(&usage), usage.writes_divided), ((10, 20, 30), true));
    let split = json!({"ephemeral_5m_input_tokens": 40, "ephemeral_1h_input_tokens": 20});
    let usage = chat(json!({"cache_creation_tokens": 60, "cache_creation_token_details": split}));
    assert_eq!((parts(&usage), usage.writes_divided), ((40, 20, 0), true));
    let usage = chat(json!({"cache_write_tokens": 60}));
    assert_eq!((parts(&usage), usage.writes_divided), ((60, 0, 0), false));
    // Parts that leave some of it open divide nothing.
    let split = json!({"ttl_5m_tokens": 0, "ttl_1h_tokens": 0});
    let usage = chat(json!({"cache_write_tokens": 60, "cache_write_tokens_details": split}));
    assert_eq!((parts(&usage), usage.writes_divided), ((60, 0, 0), false));
    let messages = json!({"type": "message", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1,
        "cache_creation_input_tokens": 60, "cache_creation": {"ephemeral_5m_input_tokens": 10,
        "ephemeral_1h_input_tokens": 20, "ephemeral_12h_input_tokens": 30}}});
    let messages = messages.to_string();
    let facts = Family::Messages.protocol().read_answer(messages.as_bytes());
    assert_eq!(parts(&facts.expect("an answer").usage), (10, 20, 30));
}

#[test]
fn steps_of_another_model_stand_beside_the_answers_own() {
    let step = |kind: &str, input: u64, output: u64| json!({"type": kind, "input_tokens": input, "output_tokens": output});
    let read = |usage: Value| {
        let answer = json!({"type": "message", "content": [], "usage": usage}).to_string();
        let facts = Family::Messages.protocol().read_answer(answer.as_bytes());
        facts.expect("an answer").usage
    };
    // As recorded from the service: the counts leave the adviser out.
    let usage = read(
        json!({"input_tokens": 2390, "output_tokens": 121, "iterations": [
        step("message", 1128, 110), step("advisor_message", 2518, 22), step("message", 1262, 11)]}),
    );
    let UsageReading::Counted(all) = usage.reading(false) else {
        panic!("{usage:?}")
    };
    assert_eq!((all.input, all.output), (2390 + 2518, 121 + 22));
    assert_eq!(usage.further_steps(&all).len(), 2);
    assert!(usage.other_models);
    // Where the counts contain such a step, it counts once.
    for steps in [
        vec![step("message", 5, 1), step("fallback_message", 7, 2)],
        vec![step("fallback_message", 12, 3)],
    ] {
        let usage = read(json!({"input_tokens": 12, "output_tokens": 3, "iterations": steps}));
        let UsageReading::Counted(all) = usage.reading(false) else {
            panic!("{usage:?}")
        };
        assert_eq!((all.input, all.output), (12, 3));
        assert!(usage.other_models);
    }
}

#[test]
fn what_a_provider_says_about_its_price_is_kept_and_not_shown() {
    let (usd, ticks) = (CostField::Usd, CostField::Ticks);
    let own = |cost: Value, behind: Value| {
        let details = json!({"upstream_inference_cost": behind});
        json!({"cost": cost, "is_byok": true, "cost_details": details})
    };
    for (costs, field, told) in [
        (json!({"cost": 0.00012}), usd, Some(Ok(120_000_000))),
        (json!({"cost": 1e-6}), usd, Some(Ok(1_000_000))),
        (
            json!({"cost": {"total_cost": 0.5}}),
            usd,
            Some(Ok(500_000_000_000)),
        ),
        (
            json!({"cost_in_usd_ticks": 37_756}),
            ticks,
            Some(Ok(3_775_600)),
        ),
        (
            json!({"cost": 1, "cost_in_usd_ticks": 1}),
            ticks,
            Some(Ok(100)),
        ),
        (json!({"cost": 0.1}), ticks, None),
        (json!({"cost_in_usd_ticks": 1}), usd, None),
        (json!({"cost": "0.1"}), usd, Some(Err("\"0.1\""))),
        // With one's own key at the service behind, it is a fee beside that service's own bill.
        (own(json!(0.01), json!(0.2)), usd, Some(Ok(210_000_000_000))),
        (own(json!(0), json!(0.2)), usd, Some(Ok(200_000_000_000))),
        (own(json!(0.01), Value::Null), usd, None),
        (own(json!(0.01), json!(true)), usd, Some(Err("true"))),
        (
            json!({"cost": 0.2, "is_byok": false, "cost_details": {"upstream_inference_cost": 0.2}}),
            usd,
            Some(Ok(200_000_000_000)),
        ),
    ] {
        for (family, input, output) in [
            (Family::Chat, "prompt_tokens", "completion_tokens"),
            (Family::Responses, "input_tokens", "output_tokens"),
            (Family::Messages, "input_tokens", "output_tokens"),
        ] {
            let mut usage = json!({input: 1, output: 1});
            let members = costs.as_object().expect("costs").clone();
            usage.as_object_mut().expect("a usage").extend(members);
            let answer = json!({"type": "message", "choices": [], "content": [], "output": [], "usage": usage});
            let answer = answer.to_string();
            let facts = family.protocol().read_answer(answer.as_bytes());
            let facts = facts.expect("an answer");
            assert_eq!(facts.usage.costs.told(field), told, "{answer}");
            let cuts = &facts.marks.more().expect("marks").cuts;
            let shown = cuts.iter().any(|cut| answer[cut.clone()].contains("cost"));
            assert!(shown, "it is taken out: {answer}");
        }
    }
}
