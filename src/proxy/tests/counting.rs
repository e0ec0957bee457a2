//! Counting tokens without running the request, at a target that does not answer.

use super::*;
use crate::metering::{TextCounter, local};
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
async fn the_prompt_of_a_long_stream_votes_with_the_count_of_its_checkpoints() {
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

    // Between five low and five high votes, the median is the stream's own vote, once its customer was charged enough there.
    let (calibrations, now) = (&house.proxy.calibrations, clock::now());
    let enough = Amount::from_usd_str("0.50").unwrap();
    let own = house.charges().await[0].customer;
    for (voter, theirs) in (1..=10).map(|voter| (voter, if voter < 6 { 10 } else { 10_000 })) {
        calibrations.observe_count(&target, voter, now, (theirs, 1_000));
        calibrations.note_charge(
            &target,
            farebox_ledger::CustomerId::from_random(voter),
            now,
            enough,
        );
    }
    calibrations.note_charge(&target, own, now, enough);
    let config = house.proxy.config.current();
    let Lookup::Found(model) = config.catalog.find("quick") else {
        panic!("no model")
    };
    let seen = Family::Chat.protocol().inspect(body.as_bytes(), 1).unwrap();
    let ours = local::known(&seen.content, &model.limits, TextCounter::PLAIN);
    // Both counts are of random samples, which differ by 2 or 3 %; the other votes are 10 and 10,000.
    let (found, truth) = (calibrations.factor(&target), THEIRS * 1_000 / ours);
    assert!(found.abs_diff(truth) * 10 < truth, "{found} for {truth}");
}

/// Ten customers who paid make a target known; a restart and a reset go through the ledger.
#[tokio::test(start_paused = true)]
async fn what_targets_have_shown_outlives_a_restart_until_it_is_reset() {
    let house = House::new();
    let (calibrations, now) = (&house.proxy.calibrations, clock::now());
    let usd = |text| Amount::from_usd_str(text).unwrap();
    for customer in 1..=12 {
        calibrations.observe_pace("a/m", customer, now, 90_000 + customer);
        calibrations.observe_count("a/m", customer, now, (1_100, 1_000));
        let paid = usd(if customer <= 10 { "0.50" } else { "0.49" });
        let voter = farebox_ledger::CustomerId::from_random(customer);
        calibrations.note_charge("a/m", voter, now, paid);
    }
    let obeying = farebox_ledger::CustomerId::from_random(1);
    calibrations.reasoned("a/m", obeying, now, false);
    let known = calibrations.learned("a/m");
    assert_eq!(known.obeys, Some(true));
    assert_eq!((known.pace_votes, known.count_votes), (10, 10), "{known:?}");
    assert_eq!((known.pace, known.count), (Some((90_005, 90_009)), 1_100));
    calibrations.exchange(&house.proxy.ledger).await.unwrap();
    let again = Calibrations::default();
    again.exchange(&house.proxy.ledger).await.unwrap();
    assert_eq!(again.learned("a/m"), known);
    house
        .proxy
        .ledger
        .forget_votes("a/m".to_owned())
        .await
        .unwrap();
    for running in [calibrations, &again] {
        running.exchange(&house.proxy.ledger).await.unwrap();
        let nothing = running.learned("a/m");
        assert_eq!(
            (nothing.pace, nothing.count_votes, nothing.obeys),
            (None, 0, None)
        );
        // What was seen before the reset does not come back with the next charge.
        let key = farebox_ledger::CustomerId::from_random(1);
        running.note_charge("a/m", key, now, usd("0.50"));
        assert_eq!(running.learned("a/m").count_votes, 0);
    }
}
