//! R3: answers that come compressed, or whole instead of streamed.

use std::io::Write;

use farebox_doubles::Vendor;
use farebox_protocol::Family;
use serde_json::json;

use super::super::translation::{CHARGE, before, counts, ended_cleanly, read, speech};
use super::{all_ways, calls, charged, is_strict, post, two};
use crate::support::answers::{self, folded};
use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen};
use crate::support::{CATALOG, Gateway, ask, path};

/// Brotli without compression (RFC 7932, 9.2): nothing here writes it.
fn stored_in_brotli(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, part) in text.chunks(65_536).enumerate() {
        let length = u32::try_from(part.len() - 1).unwrap();
        // The size of the window stands once, in front, and is one bit.
        let (shift, first) = if number == 0 { (4, 20) } else { (3, 19) };
        out.extend_from_slice(&(length << shift | 1 << first).to_le_bytes()[..3]);
        out.extend_from_slice(part);
    }
    out.push(3);
    out
}

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A text in every coding that HTTP names, under its name.
fn codings(text: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let level = flate2::Compression::default();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), level);
    let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), level);
    zlib.write_all(text).unwrap();
    raw.write_all(text).unwrap();
    let fastest = ruzstd::encoding::CompressionLevel::Fastest;
    vec![
        ("gzip", gzipped(text)),
        ("deflate", zlib.finish().unwrap()),
        ("deflate", raw.finish().unwrap()),
        ("br", stored_in_brotli(text)),
        ("zstd", ruzstd::encoding::compress_to_vec(text, fastest)),
    ]
}

/// The same reply, compressed.
fn compressed(reply: &Reply, stream: bool) -> Vec<(&'static str, Reply)> {
    let kind = if stream {
        "text/event-stream"
    } else {
        "application/json"
    };
    let coded = codings(reply.texts().concat().as_bytes()).into_iter();
    coded
        .map(|(coding, bytes)| {
            (
                coding,
                Reply::whole(200, kind, bytes).header("content-encoding", coding),
            )
        })
        .collect()
}

/// R3: compressed answers that nobody asked for.
#[tokio::test]
async fn r3_compressed_answers_are_decoded_and_charged_exactly() {
    for (caller, target) in all_ways() {
        for stream in [false, true] {
            let replies = compressed(&speech(target, stream), stream);
            let (names, replies): (Vec<&str>, Vec<Reply>) = replies.into_iter().unzip();
            let upstream = ScriptedUpstream::start(replies).await;
            let gateway = before(&upstream, target, "").await;
            let key = gateway.key("5.00").await;
            for coding in &names {
                let answer = post(&gateway, &key, caller, stream).await;
                let shown = format!(
                    "{caller} on {target}, stream {stream}, {coding}: {}",
                    answer.text
                );
                assert_eq!(read(caller, stream, &answer), "one two three", "{shown}");
                assert_eq!(counts(caller, stream, &answer), [150, 20, 50], "{shown}");
            }
            gateway.settled().await;
            let charges = gateway.charges(&key).await;
            assert_eq!(charges.len(), names.len());
            for charge in charges {
                assert_eq!(-charge.amount.picos(), CHARGE);
                assert_eq!(charge.bill.unwrap().exposure.picos(), 0);
            }
            let asked = upstream.requests();
            assert!(
                asked
                    .iter()
                    .all(|seen| seen.header("accept-encoding") == Some("identity"))
            );
        }
    }
}

/// R3: a stream that is compressed stays one: what was flushed is shown before more comes.
#[tokio::test]
async fn r3_a_compressed_stream_is_read_as_it_comes() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut parts = Vec::new();
    for frame in speech(Family::Chat, true).texts() {
        encoder.write_all(frame.as_bytes()).unwrap();
        encoder.flush().unwrap();
        parts.push(std::mem::take(encoder.get_mut()));
    }
    let reply = Reply::events(parts).header("content-encoding", "gzip");
    // What is there when the target falls silent is charged as what was shown.
    let upstream = ScriptedUpstream::start(reply.close_after(3)).await;
    let gateway = before(&upstream, Family::Chat, "").await;
    let key = gateway.key("5.00").await;
    let answer = post(&gateway, &key, Family::Chat, true).await;
    assert_eq!(read(Family::Chat, true, &answer), "one two ");
    let bill = charged(&gateway, &key).await.bill.unwrap();
    assert_eq!(bill.end_reason.as_str(), "upstream_broken");
    assert_eq!((bill.usage.input, bill.usage.output), (0, 2));
}

/// R3: what cannot be decoded, or grows beyond measure, is the target's failure, and free.
#[tokio::test]
async fn r3_bad_codings_and_bombs_cost_nothing() {
    let good = speech(Family::Chat, false).texts().concat();
    let gzip = gzipped(good.as_bytes());
    let bomb = format!("{good}{}", " ".repeat(20 << 20));
    let mut replies = vec![
        ("gzip", gzip[..gzip.len() - 4].to_vec()),
        ("gzip", good.clone().into_bytes()),
        ("br", good.clone().into_bytes()),
        ("zstd", good.clone().into_bytes()),
        ("compress", good.clone().into_bytes()),
        ("gzip, gzip", gzipped(&gzip)),
        ("gzip", gzipped(bomb.as_bytes())),
    ];
    replies.push(replies[0].clone());
    let replies = replies.into_iter().map(|(coding, bytes)| {
        Reply::whole(200, "application/json", bytes).header("content-encoding", coding)
    });
    for reply in replies {
        let (first, second) = (
            ScriptedUpstream::start(reply).await,
            ScriptedUpstream::start(speech(Family::Chat, false)).await,
        );
        let gateway = Gateway::start(CATALOG, &two(&first, &second, Family::Chat)).await;
        let key = gateway.key("5.00").await;
        let answer = post(&gateway, &key, Family::Chat, false).await;
        assert_eq!(read(Family::Chat, false, &answer), "one two three");
        let entry = charged(&gateway, &key).await;
        assert_eq!(-entry.amount.picos(), CHARGE);
        assert_eq!(entry.bill.unwrap().target, "second/two");
    }
}

/// R3: a refusal is read as well.
#[tokio::test]
async fn r3_a_compressed_refusal_keeps_its_words() {
    let words = "messages: at least one message is required";
    let plain = Reply::native_error(400, "invalid_request_error", words);
    let body = gzipped(plain.texts().concat().as_bytes());
    let reply = Reply::whole(400, "application/json", body).header("content-encoding", "gzip");
    let upstream = ScriptedUpstream::start(reply).await;
    let gateway = before(&upstream, Family::Messages, "").await;
    let key = gateway.key("5.00").await;
    let body = ask(Family::Messages, "test-model", false);
    let answer = gateway.post(path(Family::Messages), &key, &body).await;
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert_eq!(answer.json()["error"]["message"], words);
}

/// R3: a whole answer in reply to a request for a stream.
#[tokio::test]
async fn r3_a_json_document_becomes_the_stream_that_was_asked_for() {
    for (caller, target) in all_ways() {
        let upstream = ScriptedUpstream::start(speech(target, false)).await;
        let gateway = before(&upstream, target, "").await;
        let key = gateway.key("5.00").await;
        let answer = post(&gateway, &key, caller, true).await;
        let shown = format!("{caller} on {target}: {}", answer.text);
        assert_eq!(read(caller, true, &answer), "one two three", "{shown}");
        assert_eq!(counts(caller, true, &answer), [150, 20, 50], "{shown}");
        assert!(ended_cleanly(caller, &answer.text), "{shown}");
        let entry = charged(&gateway, &key).await;
        assert_eq!(-entry.amount.picos(), CHARGE, "{shown}");
        let mut record = gateway.records.all();
        assert!(record.remove(0).attempts.is_empty(), "{shown}");
    }
}

/// R3: with its thinking, its calls, and in several pieces.
#[tokio::test]
async fn r3_a_json_document_with_calls_becomes_a_stream() {
    for (caller, target) in all_ways() {
        let vendor = if target == Family::Messages {
            Vendor::Anthropic
        } else {
            Vendor::OpenAi
        };
        let script = Script::by(move |seen: &Seen, _| {
            Reply::json(
                200,
                &answers::answer(vendor, target, &seen.json(), 2, "words"),
            )
        });
        let upstream = ScriptedUpstream::start(script).await;
        let gateway = before(&upstream, target, "").await;
        let key = gateway.key("5.00").await;
        let answer = post(&gateway, &key, caller, true).await;
        let call = ("weather".to_owned(), json!({"city": "Ulm"}));
        let message = folded(caller, &answer.text);
        assert_eq!(
            calls(caller, &message),
            [call.clone(), call],
            "{caller} on {target}: {}",
            answer.text
        );
        assert!(
            caller != Family::Chat || is_strict(&answer.text),
            "{}",
            answer.text
        );
        let entry = charged(&gateway, &key).await;
        assert_eq!(-entry.amount.picos(), 9 * 3_000_000 + 9 * 15_000_000);
    }
}
