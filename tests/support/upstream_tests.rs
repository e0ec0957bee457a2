//! Tests of the fake upstream itself: its answers are well-formed and it misbehaves as scripted. Read with a bare socket.

use farebox_protocol::{Family, Frame, FrameReader};
use serde_json::json;
use tokio::net::TcpStream;

use super::*;

/// Sends one request and reads until the upstream closes or `enough` bytes are there.
async fn call(
    upstream: &ScriptedUpstream,
    enough: usize,
) -> (TcpStream, Result<String, io::ErrorKind>) {
    let mut stream = TcpStream::connect(("127.0.0.1", upstream.port))
        .await
        .unwrap();
    stream.write_all(b"POST /v1/x?y=1 HTTP/1.1\r\nHost: h\r\nX-Test: a\r\nContent-Length: 7\r\n\r\n{\"a\":1}").await.unwrap();
    let mut said = Vec::new();
    while said.len() < enough {
        match stream.read_buf(&mut said).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return (stream, Err(error.kind())),
        }
    }
    (stream, Ok(String::from_utf8(said).unwrap()))
}

async fn said(reply: Reply) -> Result<String, io::ErrorKind> {
    let upstream = ScriptedUpstream::start(reply).await;
    call(&upstream, usize::MAX).await.1
}

fn bytes_of(reply: &Reply) -> usize {
    reply
        .steps()
        .iter()
        .map(|step| {
            if let Step::Send(bytes) = step {
                bytes.len()
            } else {
                0
            }
        })
        .sum()
}

#[tokio::test]
async fn requests_are_recorded_and_replies_follow_in_order() {
    let first = Reply::error(429, "requests", Some("rate_limit_exceeded"), "slow down")
        .header("retry-after", "3");
    let second = Reply::native_error(400, "invalid_request_error", "no").status(413);
    let sizes = [bytes_of(&first), bytes_of(&second)];
    let upstream = ScriptedUpstream::start([first, second]).await;
    assert!(upstream.base_url().starts_with("http://127.0.0.1:"));

    let (_, answer) = call(&upstream, sizes[0]).await;
    let answer = answer.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 429 ") && answer.contains("retry-after: 3\r\n"),
        "{answer}"
    );
    for _ in 0..2 {
        let (_, answer) = call(&upstream, sizes[1]).await;
        assert!(answer.unwrap().starts_with("HTTP/1.1 413 "));
    }

    let seen = upstream.request(0).await;
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("POST", "/v1/x?y=1")
    );
    assert_eq!(seen.header("x-test"), Some("a"));
    assert_eq!(seen.json(), json!({"a": 1}));
    assert_eq!(upstream.requests().len(), 3);
    assert_eq!(upstream.request(2).await.connection, 2);
    assert_eq!(upstream.connections(), 3);
    assert_eq!(upstream.closings(), [None; 3]);
}

#[test]
fn several_answers_stand_side_by_side_in_each_frame() {
    let speech = Speech::new(Family::Chat, "one two").choices(3);
    for reply in [speech.whole(), speech.stream()] {
        let first = reply.texts().remove(0);
        assert!(
            [0, 1, 2]
                .iter()
                .all(|index| first.contains(&format!("\"index\":{index}"))),
            "{first}"
        );
    }
}

#[tokio::test]
async fn a_text_comes_in_pieces_of_any_size() {
    let reply = Speech::new(Family::Chat, "one two three")
        .in_pieces_of(5)
        .stream();
    assert!(
        ["one t", "wo th", "ree"]
            .iter()
            .all(|piece| reply.texts().iter().any(|frame| frame.contains(piece)))
    );
}

#[tokio::test]
async fn a_script_can_look_at_the_request_and_be_replaced() {
    let upstream = ScriptedUpstream::start(Script::by(|seen, number| {
        Reply::json(200, &json!([seen.path, number])).close_after(1)
    }))
    .await;
    let (_, answer) = call(&upstream, usize::MAX).await;
    assert!(answer.unwrap().ends_with("[\"/v1/x?y=1\",0]"));
    upstream.follow(vec![
        Reply::whole(500, "text/html", "<html>").close_after(1),
    ]);
    let (_, answer) = call(&upstream, usize::MAX).await;
    assert!(answer.unwrap().ends_with("<html>"));
}

#[tokio::test]
async fn served_usage_is_that_of_finished_answers() {
    let usage = ReportedUsage {
        input: 5,
        cache_read: 2,
        cache_write: 1,
        cache_write_1h: 1,
        cache_write_12h: 0,
        output: 3,
        reasoning: 4,
    };
    let speech = Speech::new(Family::Messages, "a b").usage(usage);
    let upstream = ScriptedUpstream::start([
        speech.whole(),
        speech.stream(),
        speech.stream().stall_after(1),
    ])
    .await;
    for number in 0..2 {
        call(&upstream, 200).await.1.unwrap();
        upstream.completed(number).await;
    }
    let (stream, _) = call(&upstream, 200).await;
    drop(stream);
    upstream.closed_by_peer(2).await;
    assert_eq!(upstream.served().input, 10);
    assert_eq!(upstream.served().reasoning, 8);
}

#[tokio::test]
async fn misbehaviour_is_as_told() {
    let stream = || Speech::new(Family::Chat, "one two three").stream();
    assert_eq!(
        said(stream().reset()).await,
        Err(io::ErrorKind::ConnectionReset)
    );
    assert_eq!(
        said(
            stream()
                .wait_after(1, Duration::from_millis(20))
                .reset_after(1)
        )
        .await,
        Err(io::ErrorKind::ConnectionReset)
    );

    let cut = said(stream().close_after(2)).await.unwrap();
    assert!(
        cut.contains("one ") && !cut.contains("two") && !cut.ends_with("0\r\n\r\n"),
        "{cut}"
    );
    let bad = said(stream().bad_chunk_after(1)).await.unwrap();
    assert!(bad.ends_with("zz\r\nnot a chunk\r\n"), "{bad}");

    for (reply, ends) in [
        (
            stream().end_after(2),
            "\"one \"},\"index\":0,\"finish_reason\":null}]}\n\n\r\n0\r\n\r\n",
        ),
        (
            stream().then(1, "data: {\"error\":{}}\n\n"),
            "data: {\"error\":{}}\n\n\r\n0\r\n\r\n",
        ),
        (
            stream().first(": hi\n\n").end_after(1),
            "\r\n\r\n6\r\n: hi\n\n\r\n0\r\n\r\n",
        ),
    ] {
        let size = bytes_of(&reply);
        let upstream = ScriptedUpstream::start(reply).await;
        let (_, answer) = call(&upstream, size).await;
        let answer = answer.unwrap();
        assert!(answer.ends_with(ends), "{answer}");
    }
    assert_eq!(stream().tear_after(0).parts(), 1);
    assert!(stream().in_pieces_of(10).parts() > 20);
}

#[tokio::test]
async fn waits_end_when_the_peer_leaves_and_gates_when_they_open() {
    let gate = Gate::new();
    let reply = || Reply::json(200, &json!({}));
    let late = reply()
        .late(Duration::from_millis(1))
        .paced(Duration::from_millis(1));
    let replies = [
        reply().silent(),
        reply().gated(&gate),
        reply().gate_after(0, &gate),
        late,
    ];
    let size = bytes_of(&reply());
    let upstream = ScriptedUpstream::start(replies).await;

    let (stream, _) = call(&upstream, 0).await;
    upstream.request(0).await;
    drop(stream);
    upstream.closed_by_peer(0).await;

    let (mut stream, _) = call(&upstream, 0).await;
    upstream.request(1).await;
    assert!(!upstream.requests()[1].completed);
    gate.open();
    assert!(stream.read_u8().await.is_ok());
    for _ in 0..2 {
        assert_eq!(call(&upstream, size).await.1.unwrap().len(), size);
    }
}

fn frames(reply: &Reply) -> Vec<Frame> {
    let mut reader = FrameReader::new();
    for step in reply.steps().into_iter().skip(1) {
        let Step::Send(bytes) = step else { continue };
        let text = String::from_utf8(bytes).unwrap();
        let (_, rest) = text.split_once("\r\n").unwrap();
        reader.push(rest.trim_end_matches("\r\n").to_owned().into());
    }
    std::iter::from_fn(|| reader.next_frame().unwrap()).collect()
}

#[test]
fn speeches_are_well_formed_in_every_family() {
    let usage = ReportedUsage {
        input: 9,
        cache_read: 4,
        cache_write: 0,
        cache_write_1h: 0,
        cache_write_12h: 0,
        output: 3,
        reasoning: 0,
    };
    for family in Family::ALL {
        let speech = Speech::new(family, "one two three")
            .usage(usage)
            .model("m-1")
            .id("id-1");
        let body = speech.whole().parts.concat();
        let facts = family.protocol().read_answer(&body).unwrap();
        assert_eq!(facts.id.as_deref(), Some("id-1"));
        assert_eq!(facts.usage.output, Some(3));
        assert_eq!(facts.error, None);

        let mut reader = family.protocol().reader();
        let facts: Vec<_> = frames(&speech.stream())
            .iter()
            .map(|frame| reader.read(frame))
            .collect();
        assert!(facts.iter().all(|facts| facts.error.is_none()));
        assert!(facts.last().unwrap().end, "{family}");
        assert!(facts.iter().any(|facts| facts.stop.is_some()), "{family}");
        assert_eq!(reader.usage().output, Some(3), "{family}");
        assert_eq!(reader.usage().cache_read, Some(4), "{family}");
        assert_eq!(
            facts.iter().map(|facts| facts.shown.ascii).sum::<u64>(),
            13,
            "{family}"
        );

        let silent = speech.claims(serde_json::Value::Null);
        let mut reader = family.protocol().reader();
        frames(&silent.stream())
            .iter()
            .for_each(|frame| drop(reader.read(frame)));
        assert_eq!(reader.usage().output, None, "{family}");
    }
    let cut = Speech::new(Family::Responses, "a").stop("incomplete");
    assert!(
        cut.stream()
            .texts()
            .concat()
            .contains("event: response.incomplete")
    );
}

/// Sends a chat request without a model, which most vendors refuse, and returns the status line.
async fn ask_without_model(upstream: &ScriptedUpstream) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", upstream.port))
        .await
        .unwrap();
    let body = r#"{"messages":[{"role":"user","content":"a"}]}"#;
    let head = "POST /v1/chat/completions HTTP/1.1\r\ncontent-type: application/json\r\nauthorization: Bearer k\r\n";
    let all = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(all.as_bytes()).await.unwrap();
    let mut said = Vec::new();
    while !said.windows(2).any(|two| two == b"\r\n") {
        stream.read_buf(&mut said).await.unwrap();
    }
    String::from_utf8(said).unwrap()
}

#[tokio::test]
async fn a_request_that_the_vendor_refuses_is_refused() {
    let answer = Speech::new(Family::Chat, "PONG").whole();
    let refusing = ScriptedUpstream::refusing(Vendor::Mistral, answer.clone()).await;
    let said = ask_without_model(&refusing).await;
    assert!(said.starts_with("HTTP/1.1 422 "), "{said}");
    let playing = ScriptedUpstream::playing(Vendor::Vllm, answer.clone()).await;
    let said = ask_without_model(&playing).await;
    assert!(
        said.starts_with("HTTP/1.1 200 "),
        "one model needs no name: {said}"
    );
    let tolerant = ScriptedUpstream::tolerant(answer).await;
    let said = ask_without_model(&tolerant).await;
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
}

#[tokio::test]
#[should_panic(expected = "the real service refuses")]
async fn a_refusal_that_no_test_expects_fails_it() {
    let upstream = ScriptedUpstream::start(Speech::new(Family::Chat, "PONG").whole()).await;
    ask_without_model(&upstream).await;
}

#[test]
fn an_upstream_bills_the_class_that_it_names() {
    use super::classes::{Class, Serves, asked};
    let fast = json!({"service_tier": "fast"});
    assert_eq!(asked(&fast), Class::Fast);
    assert_eq!(
        asked(&json!({"speed": "fast", "inference_geo": "us"})).times(),
        2_200
    );
    assert_eq!(asked(&json!({"service_tier": "flex"})), Class::Flex);
    assert_eq!(asked(&json!({"inference_geo": "us"})), Class::Us);
    let tier = |serves: Serves| {
        let saying = serves.saying(asked(&fast), false);
        let whole = Speech::new(Family::Chat, "one").saying(saying).whole();
        let answer: Value = serde_json::from_str(&whole.texts()[0]).unwrap();
        (saying.times, answer["service_tier"].clone())
    };
    assert_eq!(tier(Serves::AsAsked), (2_000, json!("priority")));
    assert_eq!(tier(Serves::Always(Class::Flex)), (500, json!("flex")));
    assert_eq!(tier(Serves::Echoes), (1_000, json!("default")));
    assert_eq!(tier(Serves::Unknown), (2_000, json!("turbo")));
    assert_eq!(tier(Serves::Silent), (2_000, Value::Null));
    assert!(tier(Serves::Object).1.is_object());
}

#[tokio::test]
async fn parts_are_sent_at_their_times_and_no_body_is_kept() {
    let times = [40, 120].map(Duration::from_millis).to_vec();
    let reply = Reply::events(["data: a\n\n", "data: b\n\n"]).at(times);
    let upstream = ScriptedUpstream::tolerant(reply.clone()).await;
    upstream.forget();
    let begun = std::time::Instant::now();
    let (_, answer) = call(&upstream, bytes_of(&reply)).await;
    assert!(answer.unwrap().contains("data: b"));
    assert!(begun.elapsed() >= Duration::from_millis(120));
    assert!(upstream.requests()[0].body.is_empty());
}
