//! Counting tokens without running the request: a target that does not answer.

use super::*;
use crate::upstream::Recorded;

#[tokio::test(start_paused = true)]
async fn a_target_that_does_not_answer_is_waited_for_ten_seconds_and_then_we_estimate() {
    let house = House::new();
    let late = (Duration::from_secs(900), Bytes::from_static(b"{\"input_tokens\":1}"));
    house.proxy.upstreams.play(Recorded { pieces: vec![late], broken: false });
    let (key, begun) = (house.key("5").await, Instant::now());
    let body = Bytes::from(r#"{"model":"quick","messages":[{"role":"user","content":"hello"}]}"#);
    let counted = count::tokens(&house.proxy, &key, &body, Vec::new(), true).await.unwrap();
    assert_eq!((counted.estimated, begun.elapsed()), (true, Duration::from_secs(10)));
    assert!(counted.tokens > 0);
    let states = house.proxy.upstreams.states();
    assert!(states.iter().all(|state| (state.errors, state.in_flight) == (0, 0)), "nobody is blamed, and no place is kept");
}
