//! Good answers: what is sent, what comes back, and what survives a reload.

use super::*;

#[tokio::test]
async fn whole_and_streamed_answers_pass_byte_for_byte_in_every_family() {
    for family in Family::ALL {
        let speech = Speech::new(family, "one two three");
        let upstream = ScriptedUpstream::tolerant([
            speech.whole(),
            speech.stream(),
            speech.stream().in_pieces_of(7),
        ])
        .await;
        let desk = Desk::before(&[&upstream]);
        let whole = text_of(desk.ask(family, false).await.unwrap())
            .await
            .unwrap();
        assert!(whole.contains("one two three"), "{whole}");
        let streamed = text_of(desk.ask(family, true).await.unwrap())
            .await
            .unwrap();
        assert!(streamed.contains("three"), "{streamed}");
        assert_eq!(
            text_of(desk.ask(family, true).await.unwrap())
                .await
                .unwrap(),
            streamed
        );
        assert_eq!(
            upstream.request(0).await.path,
            format!("/v1{}", family.protocol().path)
        );
        assert_eq!(upstream.connections(), 1, "the connection is used again");
        let state = desk.state(0);
        assert_eq!(
            (
                state.requests,
                state.errors,
                state.in_flight,
                state.failures
            ),
            (3, 0, 0, 0)
        );
    }
}

#[tokio::test]
async fn only_prepared_headers_leave_and_never_a_customers_credential() {
    let upstream = ScriptedUpstream::tolerant(Speech::new(Family::Messages, "x").whole()).await;
    let desk = Desk::before(&[&upstream]);
    let given = [
        ("x-version", "2023-06-01"),
        ("authorization", "Bearer customer"),
        ("x-api-key", "customer"),
    ];
    desk.ask_with(Family::Messages, false, r#"{"a":1}"#, &given)
        .await
        .unwrap();
    let seen = upstream.request(0).await;
    let mut names: Vec<_> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let expected = [
        "accept",
        "accept-encoding",
        "anthropic-version",
        "content-length",
        "content-type",
        "host",
        "user-agent",
        "x-version",
    ];
    assert_eq!(names, expected);
    assert_eq!(seen.header("accept-encoding"), Some("identity"));
    assert_eq!(seen.json(), serde_json::json!({"a": 1}));
}

#[tokio::test]
async fn tokens_are_counted_on_their_own_path() {
    let upstream = ScriptedUpstream::tolerant(Script::by(|_, _| {
        Reply::json(200, &serde_json::json!({"input_tokens": 5}))
    }))
    .await;
    let desk = Desk::before(&[&upstream]);
    let call = counting(&desk.route);
    let answer = dispatch(&desk.upstreams, call, None).await.unwrap();
    assert_eq!(text_of(answer).await.unwrap(), r#"{"input_tokens":5}"#);
    assert_eq!(upstream.request(0).await.path, "/v1/messages/count_tokens");
}

#[tokio::test]
async fn the_simulated_provider_is_asked_without_a_connection() {
    let desk = Desk::new(route([provider("sim", "")]));
    let body = r#"{"model":"m","messages":[{"role":"user","content":"Say PONG"}]}"#;
    let answer = desk.ask_with(Family::Chat, false, body, &[]).await.unwrap();
    assert!(text_of(answer).await.unwrap().contains("PONG"));
}

#[tokio::test]
async fn a_provider_at_its_limit_is_waited_for_but_not_forever() {
    let gate = Gate::new();
    let speech = Speech::new(Family::Chat, "one two");
    let upstream =
        ScriptedUpstream::tolerant([speech.stream().gate_after(2, &gate), speech.stream()]).await;
    let mut narrow = provider("a", &upstream.base_url());
    narrow.max_concurrent = Some(1);
    let desk = Desk::new(route([narrow]));
    let held = desk.ask(Family::Chat, true).await.unwrap();
    assert_eq!(desk.state(0).in_flight, 1);

    tokio::time::pause();
    let full = desk.ask(Family::Chat, true).await;
    tokio::time::resume();
    assert!(
        matches!(
            &full,
            Err(DispatchError::NoTarget {
                retry_after: Some(SECOND),
                ..
            })
        ),
        "{full:?}"
    );
    assert_eq!(attempts(full), ["full"]);
    let ending = async {
        gate.open();
        text_of(held).await.unwrap();
    };
    let (waited, ()) = tokio::join!(desk.ask(Family::Chat, true), ending);
    assert!(waited.is_ok(), "{waited:?}");
}

#[tokio::test]
async fn counting_takes_none_of_the_places_of_answers() {
    let gate = Gate::new();
    let waits = Speech::new(Family::Chat, "one")
        .whole()
        .gate_after(0, &gate);
    let speaks = Speech::new(Family::Chat, "one").whole();
    let script = Script::by(move |seen, _| {
        if seen.path.ends_with("count_tokens") {
            waits.clone()
        } else {
            speaks.clone()
        }
    });
    let upstream = ScriptedUpstream::tolerant(script).await;
    let mut narrow = provider("a", &upstream.base_url());
    narrow.max_concurrent = Some(1);
    let desk = Desk::new(route([narrow]));
    let count = || dispatch(&desk.upstreams, counting(&desk.route), None);
    tokio::select! {
        ended = futures_util::future::join_all((0..4).map(|_| count())) => panic!("{ended:?}"),
        answered = async {
            upstream.request(3).await;
            let fifth = attempts(count().await);
            (desk.ask(Family::Chat, false).await, fifth)
        } => {
            let (answer, fifth) = answered;
            text_of(answer.unwrap()).await.unwrap();
            assert_eq!(fifth, ["full"], "four of the eight places are a key's");
        }
    }
    gate.open();
}

#[tokio::test]
async fn an_unchanged_target_keeps_connection_and_health_over_a_reload() {
    let upstream = ScriptedUpstream::tolerant(Speech::new(Family::Chat, "one").whole()).await;
    let desk = Desk::before(&[&upstream]);
    text_of(desk.ask(Family::Chat, false).await.unwrap())
        .await
        .unwrap();

    // Equal, but read from the file again.
    let mut again = route([provider("a", &upstream.base_url())]);
    let kept = desk
        .upstreams
        .known
        .read()
        .unwrap()
        .health("slug", &again.targets[0])
        .unwrap();
    assert_eq!(kept.state("slug", "a/a-model", None).requests, 1);
    desk.upstreams
        .reconcile(&config(std::slice::from_ref(&again)));
    text_of(desk.ask(Family::Chat, false).await.unwrap())
        .await
        .unwrap();
    assert_eq!(upstream.connections(), 1);

    // Changed: a request under the new definition does not use the old pool.
    let mut changed = provider("a", &upstream.base_url());
    changed.timeouts.idle = SECOND;
    again.targets[0].provider = Arc::new(changed);
    desk.upstreams
        .reconcile(&config(std::slice::from_ref(&again)));
    let desk = Desk {
        route: again,
        ..desk
    };
    text_of(desk.ask(Family::Chat, false).await.unwrap())
        .await
        .unwrap();
    assert_eq!(upstream.connections(), 2);
}

#[tokio::test]
async fn running_requests_count_against_an_unchanged_limit_after_a_reload() {
    let speech = Speech::new(Family::Chat, "one two");
    let upstream =
        ScriptedUpstream::tolerant([speech.stream().stall_after(2), speech.stream()]).await;
    let mut narrow = provider("a", &upstream.base_url());
    narrow.max_concurrent = Some(1);
    let desk = Desk::new(route([narrow.clone()]));
    let held = desk.ask(Family::Chat, true).await.unwrap();

    narrow.timeouts.idle = SECOND;
    let desk = Desk {
        route: route([narrow]),
        ..desk
    };
    desk.upstreams
        .reconcile(&config(std::slice::from_ref(&desk.route)));
    tokio::time::pause();
    assert_eq!(attempts(desk.ask(Family::Chat, true).await), ["full"]);
    tokio::time::resume();
    drop(held);
    assert!(desk.ask(Family::Chat, true).await.is_ok());
}
