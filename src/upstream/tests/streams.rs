//! Streams after their first frame: breaks, silence, cancellation, and their effect on health.

use super::*;

async fn streaming(reply: Reply) -> (ScriptedUpstream, Desk, FrameStream) {
    let upstream = ScriptedUpstream::tolerant(reply).await;
    let mut patient = provider("a", &upstream.base_url());
    patient.timeouts.idle = Duration::from_millis(150);
    let desk = Desk::new(route([patient]));
    let answer = desk.ask(Family::Chat, true).await.unwrap();
    let AnswerContent::Stream(_, frames) = answer.content else {
        panic!("not a stream")
    };
    (upstream, desk, frames)
}

async fn drain(frames: &mut FrameStream) -> Result<usize, StreamBroken> {
    let mut count = 0;
    while frames.next().await?.is_some() {
        count += 1;
    }
    Ok(count)
}

fn speech() -> Reply {
    Speech::new(Family::Chat, "one two three").stream()
}

#[tokio::test]
async fn breaks_are_told_stay_broken_and_count_against_the_target() {
    for reply in [
        speech()
            .wait_after(2, Duration::from_millis(20))
            .reset_after(2),
        speech().close_after(2),
        speech().tear_after(2),
        speech().bad_chunk_after(2),
        speech().stall_after(2),
    ] {
        let shown = format!("{reply:?}");
        let (_upstream, desk, mut frames) = streaming(reply).await;
        let broken = drain(&mut frames).await.expect_err(&shown);
        assert_eq!(frames.next().await, Err(broken.clone()), "{shown}");
        let state = desk.state(0);
        assert_eq!(
            (state.errors, state.failures, state.in_flight),
            (1, 1, 1),
            "{shown}"
        );
        assert_eq!(
            state.last_reason.map(|reason| reason.to_string()),
            Some(format!("broken: {broken}"))
        );
        drop(frames);
        assert_eq!(desk.state(0).in_flight, 0);
    }
}

#[tokio::test]
async fn streams_that_always_break_open_the_breaker() {
    let upstream = ScriptedUpstream::tolerant(speech().close_after(2)).await;
    let desk = Desk::before(&[&upstream]);
    for _ in 0..3 {
        text_of(desk.ask(Family::Chat, true).await.unwrap())
            .await
            .unwrap_err();
    }
    assert_eq!(attempts(desk.ask(Family::Chat, true).await), ["resting"]);
}

#[tokio::test]
async fn dropping_a_stream_closes_the_connection_at_once_and_blames_nobody() {
    let (upstream, desk, mut frames) = streaming(speech().stall_after(3)).await;
    assert!(frames.next().await.unwrap().is_some());
    drop(frames);
    assert!(upstream.closed_by_peer(0).await < SECOND);
    assert_eq!(desk.state(0).errors, 0);
}

#[tokio::test]
async fn a_stream_that_is_stalled_breaks_even_if_its_reader_looks_away_now_and_then() {
    let (upstream, _desk, mut frames) = streaming(speech().stall_after(1)).await;
    let broken = loop {
        // A reader with a timer of its own drops the future each time the timer fires.
        match tokio::time::timeout(Duration::from_millis(20), frames.next()).await {
            Ok(result) => break result,
            Err(_) => continue,
        }
    };
    assert_eq!(broken, Err(StreamBroken("silent for 150ms".to_owned())));
    upstream.closed_by_peer(0).await;
}

#[tokio::test]
async fn a_pace_below_the_idle_limit_is_no_silence() {
    let (_upstream, desk, mut frames) = streaming(speech().paced(Duration::from_millis(40))).await;
    assert_eq!(drain(&mut frames).await, Ok(5));
    assert_eq!(frames.next().await, Ok(None));
    assert_eq!(desk.state(0).errors, 0);
}

#[tokio::test]
async fn comments_and_pings_before_the_first_event_are_dropped_and_later_ones_pass() {
    let chatty = speech()
        .first("event: ping\ndata: {\"type\":\"ping\"}\n\n")
        .first(": hello\n\n");
    let upstream = ScriptedUpstream::tolerant(chatty.then(4, ": later\n\n")).await;
    let desk = Desk::before(&[&upstream]);
    let text = text_of(desk.ask(Family::Chat, true).await.unwrap())
        .await
        .unwrap();
    assert!(
        text.starts_with("data: {\"id\"") && text.ends_with(": later\n\n"),
        "{text}"
    );
}

#[tokio::test]
async fn an_oversized_event_breaks_the_stream() {
    let huge = format!("data: {}\n\n", "x".repeat(17 << 20));
    let (_upstream, _desk, mut frames) = streaming(speech().then(2, huge)).await;
    let broken = drain(&mut frames).await.unwrap_err();
    assert!(broken.0.contains("larger than"), "{broken}");
}

#[tokio::test]
async fn the_caller_can_blame_a_target_for_what_its_bytes_say() {
    let (_upstream, desk, mut frames) = streaming(speech().end_after(3)).await;
    drain(&mut frames).await.unwrap();
    frames.blame("no terminal event");
    drop(frames);
    let state = desk.state(0);
    assert_eq!(
        (
            state.errors,
            state.last_reason.as_ref().map(|reason| reason.as_str())
        ),
        (1, Some("broken: no terminal event"))
    );
}

#[tokio::test]
async fn what_fails_behind_an_opening_never_began() {
    let error = "data: {\"error\":{\"message\":\"m\",\"type\":\"server_error\"}}\n\n";
    for reply in [
        speech().then(1, error),
        speech().then(1, "data: [DONE]\n\n"),
        speech().end_after(1),
        speech().tear_after(1),
        speech().reset_after(1),
    ] {
        assert_eq!(class(true, reply).await, "broken");
    }
    // The customer's own fault stays in the stream, where it is told and counted.
    let refused = "data: {\"error\":{\"message\":\"m\",\"type\":\"invalid_request_error\"}}\n\n";
    let upstream = ScriptedUpstream::tolerant(speech().then(1, refused)).await;
    let answer = Desk::before(&[&upstream]).ask(Family::Chat, true).await;
    assert!(text_of(answer.unwrap()).await.unwrap().ends_with(refused));
}

#[tokio::test]
async fn an_opening_is_waited_for_as_long_as_a_stream_may_be_silent_and_two_seconds() {
    let (_upstream, _desk, mut frames) = streaming(speech().wait_after(1, SECOND)).await;
    let broken = drain(&mut frames).await.unwrap_err();
    assert_eq!(broken.0, "silent for 150ms");
}
