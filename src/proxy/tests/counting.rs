//! Counting tokens without running the request, at a target that does not answer.

use super::*;
use crate::metering::local;
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
        &body,
        Vec::new(),
        true,
        &mut Known::default(),
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
    const THEIRS: u64 = 700;
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
    let prompt = "lorem ".repeat(600);
    let body =
        serde_json::json!({"model": "quick", "stream": true, "messages": [{"role": "user", "content": prompt}]}).to_string();
    let reply = house
        .send(&house.key("5").await, Family::Chat, body.clone())
        .await;
    read(stream(reply)).await;
    let target = house.charges().await.remove(0).bill.unwrap().target;

    // Between two low and two high votes, the median is the stream's own vote.
    for (voter, theirs) in [(1, 10), (2, 10), (3, 10_000), (4, 10_000)] {
        house.proxy.calibrations.vote(&target, voter, theirs, 1_000);
    }
    let config = house.proxy.config.current();
    let Lookup::Found(model) = config.catalog.find("quick") else {
        panic!("no model")
    };
    let seen = Family::Chat.protocol().inspect(body.as_bytes(), 1).unwrap();
    let ours = local::known(&seen.content, &model.limits, model.tokenizer);
    assert_eq!(
        house.proxy.calibrations.factor(&target),
        THEIRS * 1_000 / ours
    );
}
