//! Counting tokens without running the request, at a target that does not answer.

use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::{
    CustomerId, Durability, Fact, ForgetTarget, LedgerError, OpenMode, Perform, Timestamp,
};
use farebox_protocol::{Classes, RequestRegion, ServiceTier};

use super::*;
use crate::metering::{TextCounter, local, rates};
use crate::proxy::Learned;
use crate::upstream::Recorded;

#[tokio::test(start_paused = true)]
async fn a_target_that_does_not_answer_is_waited_for_ten_seconds_and_then_we_estimate() {
    let house = House::new();
    let late = (
        Duration::from_secs(900),
        Bytes::from_static(b"{\"input_tokens\":1}"),
    );
    house.proxy.upstreams.play(Recorded {
        pieces: vec![late],
        broken: false,
    });
    let (key, begun) = (house.key("5").await, Instant::now());
    let body = Bytes::from(r#"{"model":"quick","messages":[{"role":"user","content":"hello"}]}"#);
    let counted = count::tokens(
        &house.proxy,
        &key,
        (Family::Messages, &body),
        (Vec::new(), None),
        true,
        &mut RefusedFacts::default(),
    )
    .await
    .unwrap();
    assert_eq!(
        (counted.estimated, begun.elapsed()),
        (true, Duration::from_secs(10))
    );
    assert!(counted.tokens > 0);
    let states = house.proxy.upstreams.states();
    assert!(
        states
            .iter()
            .all(|state| (state.errors, state.in_flight) == (0, 0)),
        "nobody is blamed, and no place is kept"
    );
}

/// The request was counted for the checkpoints, and its sample is gone before the answer ends.
#[tokio::test(start_paused = true)]
async fn the_prompt_of_a_long_stream_teaches_with_the_count_of_its_checkpoints() {
    const THEIRS: u64 = 3_500;
    let house = House::new();
    let word = r#"{"choices":[{"index":0,"delta":{"content":"word "}}]}"#.to_owned();
    let stop = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#.to_owned();
    let usage =
        format!(r#"{{"choices":[],"usage":{{"prompt_tokens":{THEIRS},"completion_tokens":20}}}}"#);
    let events = std::iter::repeat_n(word, 20)
        .chain([stop, usage, "[DONE]".to_owned()])
        .map(|data| format!("data: {data}\n\n"));
    house
        .proxy
        .upstreams
        .play(paced::stretched(&events.collect::<Vec<_>>()));
    let prompt = "lorem ".repeat(3_000);
    let body =
        serde_json::json!({"model": "quick", "stream": true, "messages": [{"role": "user", "content": prompt}]}).to_string();
    let reply = house
        .send(&house.key("5").await, Family::Chat, body.clone())
        .await;
    read(stream(reply)).await;
    let target = house.charges().await.remove(0).bill.unwrap().target;

    let known = house
        .proxy
        .calibrations
        .learned(&target, Classes::STANDARD, None);
    let config = house.proxy.config.current();
    let Lookup::Found(model) = config.catalog.find("quick") else {
        panic!("no model")
    };
    let seen = Family::Chat.protocol().inspect(body.as_bytes(), 1).unwrap();
    let ours = local::known(&seen.content, &model.limits, TextCounter::PLAIN);
    // Both counts are of random samples, which differ by 2 or 3 %.
    assert!(known.own_prompts.abs_diff(ours) * 10 < ours, "{known:?}");
    assert_eq!(known.ratio, rates::ratio(THEIRS, known.own_prompts));
    assert_eq!(
        known.own_tokens, 0,
        "twenty tokens say nothing about a pace"
    );
}

const FAST: Classes = Classes::of(ServiceTier::Fast, RequestRegion::Global);

/// What is known of both classes of a target.
fn known(calibrations: &Calibrations) -> [Learned; 2] {
    [Classes::STANDARD, FAST].map(|class| calibrations.learned("a/m", class, None))
}

/// Gateways add, a restart and a reset go through the ledger.
#[tokio::test(start_paused = true)]
async fn what_targets_have_taught_outlives_a_restart_until_it_is_reset() {
    let house = House::new();
    let (one, ledger) = (&house.proxy.calibrations, &house.proxy.ledger);
    let began = known(one);
    assert_eq!((began[0].pace, began[0].ratio), (75_000, 1_000));
    let second = Duration::from_secs(1);
    one.note_stream("a/m", Classes::STANDARD, 10_000, second * 400);
    one.note_stream("a/m", FAST, 4_000, second * 10);
    one.note_prompt("a/m", Classes::STANDARD, 110_000, 100_000);
    one.note_fact("a/m", FAST, Fact::Hides);
    let taught = known(one);
    let [standard, fast] = taught;
    assert_eq!((standard.pace, fast.pace), (37_500, 97_674));
    assert_eq!((standard.ratio, fast.ratio), (1_050, 1_000));
    assert_eq!(
        (standard.own_tokens, standard.own_prompts),
        (10_000, 100_000)
    );
    // What it does in one class is known of the target.
    assert!(standard.hides && fast.hides && !fast.caches);
    one.exchange(ledger).await.unwrap();
    assert_eq!(known(one), taught, "added once");
    let two = Calibrations::default();
    two.exchange(ledger).await.unwrap();
    assert_eq!(known(&two), taught);
    // Known facts are not sent again, and what two gateways add is one sum.
    one.note_fact("a/m", FAST, Fact::Hides);
    one.note_stream("a/m", FAST, 300, Duration::ZERO);
    two.note_stream("a/m", FAST, 300, second);
    for running in [one, &two, one] {
        running.exchange(ledger).await.unwrap();
    }
    assert_eq!(known(one), known(&two));
    assert_eq!(known(one)[1].own_tokens, 4_600);
    let row = ledger.taught().await.unwrap().lessons.remove(0);
    assert_eq!(
        (row.class.as_str(), row.millis),
        ("fast", 11_500),
        "at least half a second"
    );
    ledger
        .perform(ForgetTarget("a/m".to_owned()))
        .await
        .unwrap();
    for running in [one, &two] {
        running.exchange(ledger).await.unwrap();
        assert_eq!(known(running), began);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_ledger_does_not_take_waits_and_is_added_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("farebox.db");
    let open = |mode| -> farebox_ledger::SharedLedger {
        Arc::new(SqliteLedger::open(&path, mode, Durability::Prompt).unwrap())
    };
    drop(SqliteLedger::create(&path, OpenMode::Write, Durability::Prompt).unwrap());
    let one = Calibrations::default();
    let customer = CustomerId::from_random(1);
    one.note_stream("a/m", FAST, 1_000, Duration::from_secs(10));
    one.note_excess("a/m", customer, 9_000, clock::now());
    for _ in 0..2 {
        let refused = one.exchange(&open(OpenMode::ReadOnly)).await;
        assert!(
            matches!(refused, Err(LedgerError::Unavailable(_))),
            "{refused:?}"
        );
        assert_eq!(known(&one)[1].own_tokens, 1_000);
    }
    one.exchange(&open(OpenMode::Write)).await.unwrap();
    one.exchange(&open(OpenMode::Write)).await.unwrap();
    let taught = open(OpenMode::ReadOnly).taught().await.unwrap();
    assert_eq!(
        (taught.lessons[0].tokens, taught.lessons[0].millis),
        (1_000, 10_000)
    );
    assert_eq!(taught.excesses[0].tokens, 9_000);
}

#[test]
fn an_excess_counts_for_its_customer_at_once_and_for_everybody_with_a_second_ones() {
    let one = Calibrations::default();
    let [first, second, third] = [1, 2, 3].map(CustomerId::from_random);
    let day = |days: i64| Timestamp::from_millis(days * 86_400_000);
    let excess = |customer, now| one.excess("a/m", customer, now);
    assert_eq!((excess(first, day(1)), one.exceeded(day(1))), (0, vec![]));
    one.note_excess("a/m", first, 70, day(1));
    assert_eq!(
        (excess(first, day(1)), excess(second, day(1))),
        (4_096, 0),
        "at least"
    );
    one.note_excess("a/m", first, 9_000, day(1));
    one.note_excess("a/m", first, 5_000, day(2));
    assert_eq!((excess(first, day(2)), excess(second, day(2))), (9_000, 0));
    assert_eq!(one.excess("b/m", first, day(2)), 0);
    one.note_excess("a/m", second, 5_000, day(4));
    let everybody = [first, second, third].map(|customer| excess(customer, day(4)));
    assert_eq!(everybody, [9_000; 3], "the largest");
    let exceeded = one.exceeded(day(4));
    assert_eq!((exceeded[0].tokens, exceeded[0].customers), (9_000, 2));
    // Seven days after the first one's last it is the second one's alone.
    let later = [first, second, third].map(|customer| excess(customer, day(9)));
    assert_eq!(later, [0, 5_000, 0]);
    assert!(one.exceeded(day(11)).is_empty());
    one.note_excess("a/m", first, 1, day(11));
    assert_eq!(excess(first, day(11)), 4_096, "the old one counts no more");
}
