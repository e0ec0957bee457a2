//! R1: counts, where a target has none, or too many.

use farebox_ledger::Evidence;
use farebox_protocol::Family;
use serde_json::{Value, json};

use super::super::translation::{CHARGE, before, counts, ended_cleanly, frames, read, speech};
use super::{all_ways, charged, post};
use crate::support::upstream::{Reply, ScriptedUpstream, Speech};
use crate::support::{ask, path};

/// Counts of nothing, in a family's words.
fn nothing(target: Family) -> Value {
    match target {
        Family::Chat => json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
        Family::Responses => json!({"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}),
        Family::Messages => json!({"input_tokens": 0, "output_tokens": 0}),
    }
}

/// R1: a target that counts nothing.
#[tokio::test]
async fn r1_a_caller_who_asks_for_usage_gets_the_settled_counts() {
    for (caller, target) in all_ways() {
        for claims in [Value::Null, nothing(target)] {
            for stream in [true, false] {
                let said = Speech::new(target, "one two three").claims(claims.clone());
                let reply = if stream { said.stream() } else { said.whole() };
                let upstream = ScriptedUpstream::start(reply).await;
                let gateway = before(&upstream, target, "").await;
                let key = gateway.key("5.00").await;
                let answer = post(&gateway, &key, caller, stream).await;
                let shown = format!(
                    "{caller} on {target}, stream {stream}, {claims}: {}",
                    answer.text
                );
                assert_eq!(read(caller, stream, &answer), "one two three", "{shown}");
                assert!(!stream || ended_cleanly(caller, &answer.text), "{shown}");
                let entry = charged(&gateway, &key).await;
                let bill = entry.bill.unwrap();
                assert_eq!(bill.evidence, Some(Evidence::Local), "{shown}");
                let (input, output) = (bill.usage.input, bill.usage.output);
                assert!(input > 0 && output > 0, "{:?}", bill.usage);
                assert_eq!(
                    counts(caller, stream, &answer),
                    [input, 0, output],
                    "{shown}"
                );
                let due = i64::try_from(input * 3_000_000 + output * 15_000_000).unwrap();
                assert_eq!(-entry.amount.picos(), due, "{shown}");
                let usages = frames(&answer.text).into_iter();
                let usages = usages.filter(|frame| frame["usage"].is_object()).count();
                assert!(!stream || caller != Family::Chat || usages == 1, "{shown}");
            }
        }
    }
}

/// R1: who asks for no usage gets none.
#[tokio::test]
async fn r1_a_caller_who_asks_for_no_usage_gets_none() {
    let reply = Speech::new(Family::Chat, "one two").claims(Value::Null);
    let upstream = ScriptedUpstream::start(reply.stream()).await;
    let gateway = before(&upstream, Family::Chat, "").await;
    let key = gateway.key("5.00").await;
    let body = ask(Family::Chat, "test-model", true);
    let answer = gateway.post(path(Family::Chat), &key, &body).await;
    assert!(!answer.text.contains("usage"), "{}", answer.text);
    assert!(ended_cleanly(Family::Chat, &answer.text));
}

/// R1: a chat target that counts in every chunk what it has made so far.
#[tokio::test]
async fn r1_cumulative_usage_becomes_one() {
    let plain = speech(Family::Chat, true).texts();
    let last = plain.iter().find_map(|frame| {
        frames(frame)
            .pop()
            .filter(|frame| frame["usage"].is_object())
    });
    let usage = last.unwrap()["usage"].clone();
    let counting = |frame: &String, output: usize| match frames(frame).pop() {
        None => frame.clone(),
        Some(mut chunk) => {
            if chunk["usage"].is_null() {
                chunk["usage"] = usage.clone();
                chunk["usage"]["completion_tokens"] = json!(output);
            }
            format!("data: {chunk}\n\n")
        }
    };
    let cumulative: Vec<String> = (plain.iter().enumerate())
        .map(|(output, frame)| counting(frame, output))
        .collect();
    // The same with nothing behind the last choice, and with a count of the prompt in front.
    let mut without = cumulative.clone();
    without.remove(without.len() - 2);
    let early = json!({"id": "up-1", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": [], "usage": usage});
    let mut in_front = plain.clone();
    in_front.insert(1, format!("data: {early}\n\n"));
    for reply in [cumulative, without, in_front] {
        for caller in Family::ALL {
            let upstream = ScriptedUpstream::start(Reply::events(reply.clone())).await;
            let gateway = before(&upstream, Family::Chat, "").await;
            let key = gateway.key("5.00").await;
            let answer = post(&gateway, &key, caller, true).await;
            let entry = charged(&gateway, &key).await;
            let bill = entry.bill.unwrap();
            assert_eq!(bill.evidence, Some(Evidence::Provider), "{}", answer.text);
            let output = bill.usage.output;
            assert_eq!(
                counts(caller, true, &answer),
                [150, 20, output],
                "{}",
                answer.text
            );
            let due = CHARGE - i64::try_from((50 - output) * 15_000_000).unwrap();
            assert_eq!(-entry.amount.picos(), due);
            let usages = frames(&answer.text).into_iter();
            let usages = usages.filter(|frame| frame["usage"]["prompt_tokens"].is_u64());
            assert_eq!(
                usages.count(),
                usize::from(caller == Family::Chat),
                "{}",
                answer.text
            );
        }
    }
}
