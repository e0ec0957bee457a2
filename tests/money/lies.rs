//! Upstreams that lie about usage, in all families: the charge is bounded, and what nobody can pay is the operator's loss.

use std::time::Duration;

use farebox_ledger::{Amount, Bill, Evidence};
use farebox_protocol::{Family, ReportedUsage};
use serde_json::{Value, json};

use crate::support::process::farebox;
use crate::support::upstream::{Reply, ScriptedUpstream, Speech};
use crate::support::{CATALOG, Gateway, TestKey, ask, path, routes};

const WORDS: &str = "one two three four five six seven eight nine ten";
/// Ten words and ten input tokens, at $3 and $15 for a million.
const TRUTH: i64 = 10 * 3_000_000 + 10 * 15_000_000;

/// A claim of this much input and output, in the family's format.
fn claim(family: Family, input: &Value, output: &Value) -> Value {
    match family {
        Family::Chat => json!({ "prompt_tokens": input, "completion_tokens": output }),
        Family::Responses | Family::Messages => {
            json!({ "input_tokens": input, "output_tokens": output })
        }
    }
}

/// The charge of one request at this upstream, and its bill. There is one charge, and nothing stays held.
async fn charged(
    family: Family,
    stream: bool,
    reply: Reply,
    balance: &str,
) -> (i64, Bill, Gateway, TestKey) {
    let upstream = ScriptedUpstream::start(reply).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key(balance).await;
    let answer = gateway
        .post(path(family), &key, &ask(family, "test-model", stream))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    gateway.settled().await;
    let charges = gateway.charges(&key).await;
    let account = gateway.account(&key).await.customer.account;
    assert!(
        charges.len() == 1 && account.is_sound() && account.held == Amount::ZERO,
        "{charges:?} {account:?}"
    );
    (
        -charges[0].amount.picos(),
        charges[0].bill.clone().unwrap(),
        gateway,
        key,
    )
}

fn said(speech: &Speech, stream: bool) -> Reply {
    if stream {
        speech.stream()
    } else {
        speech.whole()
    }
}

#[tokio::test]
async fn missing_usage_is_counted_here_in_every_family() {
    for family in Family::ALL {
        for stream in [false, true] {
            let reply = said(&Speech::new(family, WORDS).claims(json!(null)), stream);
            let (charge, bill, ..) = charged(family, stream, reply, "5").await;
            assert_eq!(
                bill.evidence,
                Some(Evidence::Local),
                "{} {stream}",
                family.name()
            );
            assert!(
                charge > 0 && charge <= bill.hold.picos(),
                "{} {stream}: {charge}",
                family.name()
            );
        }
    }
}

#[tokio::test]
async fn absurd_usage_is_disputed_in_every_family() {
    let (ten, words) = (json!(10), json!("ten"));
    let lies = [
        (json!(-5), ten.clone()),
        (ten.clone(), json!(-5)),
        (json!(900_000_000), ten.clone()),
        (ten.clone(), json!(900_000_000_000_i64)),
        (json!(u64::MAX), ten.clone()),
        (ten.clone(), json!(1e300)),
        (json!(1.5), ten.clone()),
        (words, ten),
    ];
    for family in Family::ALL {
        for (input, output) in &lies {
            for stream in [false, true] {
                let claimed = claim(family, input, output);
                let reply = said(&Speech::new(family, WORDS).claims(claimed.clone()), stream);
                let (charge, bill, ..) = charged(family, stream, reply, "5").await;
                assert_eq!(
                    bill.evidence,
                    Some(Evidence::Disputed),
                    "{} {stream} {claimed}",
                    family.name()
                );
                let made = (u64::from(bill.total_ms) * 150 / 1_000).max(200);
                assert!(
                    bill.usage.input <= 4_400 && bill.usage.output <= made,
                    "{} {stream} {claimed}: {bill:?}",
                    family.name()
                );
                assert!(
                    charge > 0,
                    "{} {stream} {claimed}: what was seen is never free",
                    family.name()
                );
            }
        }
    }
}

/// The catalog and routes of a target that speaks one family.
fn speaking(base: &str, target: Family) -> (String, String) {
    let catalog = CATALOG.replace(
        "best_path         = \"chat\"",
        &format!("best_path = \"{target}\""),
    );
    let every = "[\"chat\", \"responses\", \"messages\"]";
    (
        catalog,
        routes(base).replacen(every, &format!("[\"{target}\"]"), 1),
    )
}

/// What a provider says of a greeting is charged as a greeting, whatever it says.
#[tokio::test]
async fn a_greeting_costs_a_greeting_whatever_its_provider_claims() {
    for (caller, target) in Family::ALL
        .into_iter()
        .flat_map(|caller| Family::ALL.map(|target| (caller, target)))
    {
        for input in [1_000_000_000_000_000_u64, 190_000, 4_000] {
            for stream in [false, true] {
                let claimed = claim(target, &json!(input), &json!(10));
                let reply = said(&Speech::new(target, WORDS).claims(claimed), stream);
                let upstream = ScriptedUpstream::start(reply).await;
                let (catalog, routes) = speaking(&upstream.base_url(), target);
                let gateway = Gateway::start(&catalog, &routes).await;
                let key = gateway.key("5").await;
                let answer = gateway
                    .post(path(caller), &key, &ask(caller, "test-model", stream))
                    .await;
                gateway.settled().await;
                let what = format!("{caller} at {target}, {stream}: {input}");
                assert!(
                    answer.status == 200 && answer.text.contains("ten"),
                    "{what}: {}",
                    answer.text
                );
                let charge = gateway.charges(&key).await.pop().unwrap();
                let bill = charge.bill.unwrap();
                let (evidence, most) = if input > 4_000 {
                    (Evidence::Disputed, 4_096 + 300)
                } else {
                    (Evidence::Provider, 4_000)
                };
                assert_eq!(bill.evidence, Some(evidence), "{what}");
                assert!(
                    (4_000..=most).contains(&bill.usage.input),
                    "{what}: {:?}",
                    bill.usage
                );
                let charged = -charge.amount.picos();
                assert!(
                    charged <= (most * 3_000_000 + 150_000_000).cast_signed(),
                    "{what}: {charged}"
                );
            }
        }
    }
}

/// The frames of a stream as the upstream writes them.
fn frames(speech: &Speech) -> Vec<String> {
    speech.stream().texts()
}

/// As Gemini counts: 90 tokens of reasoning stand in the total and nowhere else.
#[tokio::test]
async fn reasoning_that_only_the_total_has_is_charged_where_it_stands_beside_the_output() {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 110});
    for (setting, reasoning) in [("reasoning = \"outside\"", 90), ("", 0)] {
        for stream in [false, true] {
            let reply = said(
                &Speech::new(Family::Chat, WORDS).claims(usage.clone()),
                stream,
            );
            let upstream = ScriptedUpstream::start(reply).await;
            let routes =
                routes(&upstream.base_url()).replacen("speaks", &format!("{setting}\nspeaks"), 1);
            let gateway = Gateway::start(CATALOG, &routes).await;
            let key = gateway.key("5").await;
            let answer = gateway
                .post(
                    "/v1/chat/completions",
                    &key,
                    &ask(Family::Chat, "test-model", stream),
                )
                .await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            gateway.settled().await;
            let charge = gateway.charges(&key).await.remove(0);
            let wanted = TRUTH + reasoning * 15_000_000;
            assert_eq!(
                (-charge.amount.picos(), charge.bill.unwrap().evidence),
                (wanted, Some(Evidence::Provider)),
                "{stream}"
            );
        }
    }
}

/// What a server answers to a prompt that it blocks: nothing but what it counted.
#[tokio::test]
async fn an_answer_without_choices_is_charged_what_the_provider_counted_streamed_or_not() {
    let usage = json!({"prompt_tokens": 4_000, "completion_tokens": 0, "total_tokens": 4_000});
    let answer = |object: &str| json!({"id": "c", "object": object, "created": 1, "model": "m", "choices": [], "usage": usage});
    let frames = [
        format!("data: {}\n\n", answer("chat.completion.chunk")),
        "data: [DONE]\n\n".to_owned(),
    ];
    for (stream, reply) in [
        (false, Reply::json(200, &answer("chat.completion"))),
        (true, Reply::events(frames)),
    ] {
        let (charge, bill, ..) = charged(Family::Chat, stream, reply, "5").await;
        assert_eq!(
            (charge, bill.evidence),
            (4_000 * 3_000_000, Some(Evidence::Provider)),
            "{stream}"
        );
    }
}

#[tokio::test]
async fn usage_said_twice_is_charged_once() {
    for family in Family::ALL {
        let mut frames = frames(&Speech::new(family, WORDS));
        let at = frames
            .iter()
            .rposition(|frame| frame.contains("_tokens\""))
            .unwrap();
        // What ends the stream stays last; what only counts is repeated.
        if family != Family::Responses {
            frames.insert(at, frames[at].clone());
        }
        let (charge, bill, ..) = charged(family, true, Reply::events(frames), "5").await;
        assert_eq!(
            (charge, bill.evidence),
            (TRUTH, Some(Evidence::Provider)),
            "{}",
            family.name()
        );
    }
}

#[tokio::test]
async fn the_last_of_contradictory_counts_is_charged_and_zero_replaces_nothing() {
    for family in Family::ALL {
        for (first, last, wanted) in [(30, 10, 10), (10, 30, 30), (10, 0, 10)] {
            let mut frames = frames(&Speech::new(family, WORDS));
            let at = frames
                .iter()
                .rposition(|frame| frame.contains("_tokens\""))
                .unwrap();
            let (early, late) = (
                claim(family, &json!(first), &json!(1)),
                claim(family, &json!(last), &json!(10)),
            );
            let carrier = frames[at].clone();
            frames[at] = with_usage(&carrier, &late);
            if family == Family::Messages {
                frames[0] = with_usage(&frames[0], &early);
            } else if family == Family::Responses {
                frames[1] = with_usage(&frames[1], &early);
            } else {
                frames.insert(1, with_usage(&carrier, &early));
            }
            let (charge, bill, ..) = charged(family, true, Reply::events(frames), "5").await;
            let truth = wanted * 3_000_000 + 10 * 15_000_000;
            assert_eq!(
                (charge, bill.evidence),
                (truth, Some(Evidence::Provider)),
                "{} {first} {last}",
                family.name()
            );
        }
    }
}

/// The frame with another usage, wherever its family puts it.
fn with_usage(frame: &str, usage: &Value) -> String {
    let (before, data) = frame.split_once("data: ").unwrap();
    let mut data: Value = serde_json::from_str(data).unwrap();
    let place = ["/response", "/message", ""]
        .into_iter()
        .find(|place| data.pointer(place).is_some_and(Value::is_object))
        .unwrap();
    data.pointer_mut(place).unwrap()["usage"] = usage.clone();
    format!("{before}data: {data}\n\n")
}

#[tokio::test]
async fn usage_that_comes_late_is_waited_for() {
    for family in Family::ALL {
        let speech = Speech::new(family, WORDS).stream();
        let before_the_end = speech.parts() - 2;
        let reply = speech.wait_after(before_the_end, Duration::from_millis(300));
        let (charge, bill, ..) = charged(family, true, reply, "5").await;
        assert_eq!(
            (charge, bill.evidence),
            (TRUTH, Some(Evidence::Provider)),
            "{}",
            family.name()
        );
    }
}

#[tokio::test]
async fn usage_inside_an_error_is_not_charged() {
    for family in Family::ALL {
        let usage = claim(family, &json!(9_000), &json!(100));
        let error = json!({ "type": "error", "error": { "type": "server_error", "message": "boom" }, "usage": usage });
        let name = if family == Family::Chat {
            ""
        } else {
            "event: error\n"
        };
        let event = format!("{name}data: {error}\n\n");
        // With nothing shown the answer has not begun.
        for shown in [1, 3] {
            let reply = Speech::new(family, WORDS).stream().then(
                crate::support::load::before_pieces(family) + shown,
                event.clone(),
            );
            let (charge, bill, ..) = charged(family, true, reply, "5").await;
            assert_eq!(
                (bill.status, bill.end_reason.as_str()),
                (200, "upstream_broken"),
                "{}",
                family.name()
            );
            assert!(
                charge <= TRUTH && charge > 0,
                "{} {shown}: {charge} {bill:?}",
                family.name()
            );
        }
    }
}

#[tokio::test]
async fn what_a_key_cannot_pay_is_the_operators_loss_and_never_debt() {
    for family in Family::ALL {
        for stream in [false, true] {
            let usage = ReportedUsage {
                input: 4_000,
                output: 10,
                ..ReportedUsage::default()
            };
            let reply = said(&Speech::new(family, WORDS).usage(usage), stream);
            let (charge, bill, gateway, key) = charged(family, stream, reply, "0.01").await;
            let (cost, paid) = (4_000 * 3_000_000 + 10 * 15_000_000, 10_000_000_000);
            assert_eq!(
                (charge, bill.loss.picos()),
                (paid, cost - paid),
                "{} {stream}: {bill:?}",
                family.name()
            );
            assert_eq!(
                gateway.account(&key).await.customer.account.balance(),
                Amount::ZERO
            );
            let record = gateway.records.all().pop().unwrap();
            assert_eq!(
                (record.charge.picos(), record.loss),
                (paid, bill.loss),
                "what is told is what is booked"
            );
            let lines: i64 = bill
                .lines
                .iter()
                .map(|line| line.count.cast_signed() * line.rate.picos())
                .sum();
            assert_eq!(lines, cost, "the lines say the whole cost");
            exported(&gateway, &bill.loss.to_string());
        }
    }
}

/// Both exports carry the loss.
fn exported(gateway: &Gateway, loss: &str) {
    let ledger = gateway.ledger_path();
    for format in ["json", "csv"] {
        let output = farebox(
            ledger.parent().unwrap(),
            &["ledger", "entries", "--format", format],
        )
        .output()
        .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && text.contains(loss),
            "{format}: {text}"
        );
    }
}
