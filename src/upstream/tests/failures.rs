//! Failed tries: who is at fault, what is tried next, and what the customer may know.

use super::*;

#[tokio::test]
async fn every_kind_of_trouble_has_its_word() {
    let chat = || Speech::new(Family::Chat, "one");
    let error = |status, kind, message| Reply::error(status, kind, None, message);
    let first = |frame: &str| chat().stream().then(0, frame);
    for (stream, reply, expected) in [
        (false, error(500, "server_error", "boom"), "broken"),
        (
            false,
            error(401, "invalid_request_error", "bad key"),
            "operator",
        ),
        (
            false,
            error(404, "invalid_request_error", "no such model"),
            "operator",
        ),
        (
            false,
            error(
                400,
                "invalid_request_error",
                "Your credit balance is too low to access it",
            ),
            "operator",
        ),
        (false, error(429, "insufficient_quota", "quota"), "operator"),
        (false, error(429, "requests", "slow down"), "busy"),
        (
            false,
            Reply::native_error(529, "overloaded_error", "Overloaded"),
            "busy",
        ),
        (
            false,
            Reply::whole(302, "text/plain", "").header("location", "http://127.0.0.1:1/"),
            "broken",
        ),
        (false, Reply::whole(200, "text/html", "<html>"), "broken"),
        (
            false,
            Reply::whole(200, "application/json", "{\"id\":\"x\""),
            "broken",
        ),
        (false, Reply::whole(200, "application/json", ""), "broken"),
        (
            false,
            error(200, "server_error", "an error behind a 200"),
            "broken",
        ),
        (false, chat().stream(), "broken"),
        (false, chat().whole().reset(), "broken"),
        (
            true,
            Reply::whole(200, "application/json", "{\"id\":\"x\"}"),
            "broken",
        ),
        (
            true,
            Reply::native_error(200, "overloaded_error", "JSON and an error"),
            "busy",
        ),
        (
            true,
            first("data: {\"error\":{\"message\":\"m\",\"type\":\"server_error\"}}\n\n"),
            "broken",
        ),
        (
            true,
            first("data: {\"error\":{\"message\":\"m\",\"type\":\"overloaded_error\"}}\n\n"),
            "busy",
        ),
        (true, first("data: hello\n\n"), "broken"),
        (true, first("data: [DONE]\n\n"), "broken"),
        (true, first(": only a comment\n\n"), "broken"),
        (true, chat().stream().end_after(0), "broken"),
        (true, chat().stream().tear_after(0), "broken"),
        (true, chat().stream().reset_after(0), "broken"),
        (true, chat().stream().bad_chunk_after(0), "broken"),
    ] {
        let shown = format!("{reply:?}");
        assert_eq!(class(stream, reply).await, expected, "{shown}");
    }
}

#[tokio::test]
async fn a_customers_fault_stops_is_scrubbed_and_moves_no_breaker() {
    let wording = "max_tokens: 9 > 8 for a-model at 127.0.0.1, see request id req_011CSHoEeqs5";
    let faulty = Reply::native_error(400, "invalid_request_error", wording);
    let (first, second) = (
        ScriptedUpstream::tolerant(faulty).await,
        ScriptedUpstream::tolerant(Speech::new(Family::Messages, "x").whole()).await,
    );
    let desk = Desk::before(&[&first, &second]);
    for _ in 0..5 {
        let Err(DispatchError::ClientFault {
            status,
            error,
            target,
            ..
        }) = desk.ask(Family::Messages, false).await
        else {
            panic!()
        };
        assert_eq!((status, target.name().as_str()), (400, "a/a-model"));
        let expected = UpstreamError {
            kind: Some("invalid_request_error".to_owned()),
            message: "max_tokens: 9 > 8 for slug at [host], see request id [id]".to_owned(),
            ..UpstreamError::default()
        };
        assert_eq!(*error, expected);
    }
    let state = desk.state(0);
    assert_eq!(
        (state.state, state.failures, state.errors, state.requests),
        (BreakerState::Closed, 0, 0, 5)
    );
    assert!(second.requests().is_empty());
}

#[tokio::test]
async fn the_next_target_answers_and_an_open_breaker_is_passed_over() {
    let broken = ScriptedUpstream::tolerant(Reply::error(500, "server_error", None, "boom")).await;
    let good = ScriptedUpstream::tolerant(Speech::new(Family::Chat, "fine").whole()).await;
    let desk = Desk::before(&[&broken, &good]);
    for _ in 0..5 {
        let answer = desk.ask(Family::Chat, false).await.unwrap();
        assert_eq!(answer.target.provider.name, "b");
    }
    assert_eq!(
        broken.requests().len(),
        3,
        "three failures close the target to their key"
    );
    let state = desk.state(0);
    assert_eq!(
        (state.state, state.keys_closed),
        (BreakerState::Closed, 1),
        "and to nobody else"
    );
    assert_eq!((state.failures, state.errors), (3, 3));
    assert_eq!(
        state.last_reason.as_ref().map(|reason| reason.as_str()),
        Some("broken: 500 server_error boom")
    );
    assert_eq!(desk.state(1).state, BreakerState::Closed);
}

#[tokio::test]
async fn a_named_time_rests_the_target() {
    let busy = Reply::error(429, "requests", None, "slow down").header("retry-after", "3600");
    let upstream = ScriptedUpstream::tolerant(busy).await;
    let desk = Desk::before(&[&upstream]);
    for expected in ["busy", "resting"] {
        let result = desk.ask(Family::Chat, false).await;
        let Err(DispatchError::NoTarget { retry_after, .. }) = &result else {
            panic!("{result:?}")
        };
        assert!(retry_after.is_some_and(|wait| wait > SECOND * 5));
        assert_eq!(attempts(result), [expected]);
    }
    assert_eq!(desk.state(0).keys_closed, 1);
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn what_never_left_is_tried_again_and_what_may_have_left_is_not() {
    let closed = ScriptedUpstream::tolerant(Reply::json(200, &serde_json::Value::Null)).await;
    let base = closed.base_url();
    drop(closed);
    tokio::task::yield_now().await;
    let desk = Desk::new(route([provider("a", &base)]));
    assert_eq!(
        attempts(desk.ask(Family::Chat, false).await),
        ["unsent", "unsent"]
    );

    let no_tls = ScriptedUpstream::tolerant(Speech::new(Family::Chat, "x").whole()).await;
    let mut hasty = provider("a", &no_tls.base_url().replace("http://", "https://"));
    hasty.timeouts.connect = Duration::from_millis(100);
    let desk = Desk::new(route([hasty]));
    assert_eq!(
        attempts(desk.ask(Family::Chat, false).await),
        ["unsent", "unsent"]
    );
    assert!(no_tls.requests().is_empty());

    let resetting =
        ScriptedUpstream::tolerant(Speech::new(Family::Chat, "x").whole().reset()).await;
    let desk = Desk::before(&[&resetting]);
    assert_eq!(attempts(desk.ask(Family::Chat, false).await), ["broken"]);
    assert_eq!(resetting.requests().len(), 1);
}

#[tokio::test]
async fn silence_is_limited_and_the_upstream_is_left() {
    for (stream, reply) in [
        (false, Speech::new(Family::Chat, "x").whole().silent()),
        (true, Speech::new(Family::Chat, "x").stream().silent()),
        (
            true,
            Speech::new(Family::Chat, "x")
                .stream()
                .first(": wait\n\n")
                .stall_after(1),
        ),
    ] {
        let upstream = ScriptedUpstream::tolerant(reply).await;
        let mut hasty = provider("a", &upstream.base_url());
        hasty.timeouts.first_byte = Duration::from_millis(100);
        hasty.timeouts.whole = Duration::from_millis(100);
        let desk = Desk::new(route([hasty]));
        assert_eq!(attempts(desk.ask(Family::Chat, stream).await), ["broken"]);
        upstream.closed_by_peer(0).await;
    }
}

#[tokio::test]
async fn a_customer_who_leaves_before_the_answer_closes_the_upstream_and_blames_nobody() {
    let upstream =
        ScriptedUpstream::tolerant(Speech::new(Family::Chat, "x").stream().silent()).await;
    let desk = Desk::before(&[&upstream]);
    tokio::select! {
        result = desk.ask(Family::Chat, true) => panic!("{result:?}"),
        _ = upstream.request(0) => {}
    }
    assert!(upstream.closed_by_peer(0).await < SECOND);
    let state = desk.state(0);
    assert_eq!((state.errors, state.in_flight), (0, 0));
}

#[tokio::test]
async fn a_side_path_that_a_provider_does_not_have_moves_no_breaker() {
    let upstream = ScriptedUpstream::tolerant(Reply::whole(404, "text/plain", "not found")).await;
    let desk = Desk::before(&[&upstream]);
    let call = counting(&desk.route);
    for _ in 0..5 {
        assert_eq!(
            attempts(dispatch(&desk.upstreams, call, None).await),
            ["operator"]
        );
    }
    let state = desk.state(0);
    assert_eq!(
        (state.state, state.failures, state.requests),
        (BreakerState::Closed, 0, 0)
    );
}

#[tokio::test]
async fn a_family_nobody_speaks_has_no_target() {
    let mut only_chat = provider("sim", "");
    only_chat.speaks = vec![Family::Chat.into()];
    let desk = Desk::new(Route {
        translate: false,
        ..route([only_chat])
    });
    assert!(attempts(desk.ask(Family::Messages, false).await).is_empty());
}

#[tokio::test]
async fn a_request_whose_time_is_over_names_every_try_and_the_target_that_still_had_it() {
    let broken = ScriptedUpstream::tolerant(Reply::error(500, "server_error", None, "boom")).await;
    let silent =
        ScriptedUpstream::tolerant(Reply::json(200, &serde_json::json!({})).silent()).await;
    let desk = Desk::before(&[&broken, &silent]);
    let family = Family::Chat;
    let call = UpstreamCall {
        caller: family,
        family,
        operation: TargetOperation::Generate,
        until: Some(Instant::now() + Duration::from_millis(700)),
        ..counting(&desk.route)
    };
    let mut prepare = |_: &Target, _: Family| {
        Some(Prepared {
            body: vec![Bytes::from_static(b"{}")],
            ..Prepared::default()
        })
    };
    let places = desk.upstreams.order(&call, None, |_, _| true);
    let dispatched = desk.upstreams.dispatch(call, &places, &mut prepare).await;
    let Err(DispatchError::TooLate { attempts }) = dispatched else {
        panic!("nothing was too late");
    };
    let reasons: Vec<&str> = attempts.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons[0].contains("boom"), "{reasons:?}");
    assert_eq!(reasons[1], "no answer within the request's time");
    assert!(
        attempts[1]
            .worked
            .is_some_and(|time| time > Duration::from_millis(100))
    );
}
