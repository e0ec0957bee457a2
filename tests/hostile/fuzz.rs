//! Random bytes with a fixed seed for everything that parses bytes from outside: nothing panics, and nothing takes long.
//!
//! Everyday runs do a fixed number of rounds, at most 5 s of CPU time each; with `FAREBOX_FULL=1` each runs for half an hour, with
//! other seeds.

use std::time::{Duration, Instant};

use bytes::Bytes;
use farebox::config::{self, Secrets, Source};
use farebox::metering::pdf;
use farebox_protocol::{Family, FrameReader, UpstreamError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, Gateway, ask, chat, routes, sized, talking};

/// A small generator of numbers; the same ones in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(most.max(1)).unwrap()).unwrap()
    }

    /// A text with a few places changed, repeated or cut.
    fn mutate(&mut self, text: &[u8], words: &[&str]) -> Vec<u8> {
        let mut text = text.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(text.len());
            match self.below(5) {
                0 => text.insert(at, u8::try_from(self.below(256)).unwrap()),
                1 => drop(text.splice(at..(at + self.below(20)).min(text.len()), [])),
                2 => text.truncate(at),
                3 => {
                    let word = words[self.below(words.len())].as_bytes().to_vec();
                    drop(text.splice(at..at, word));
                }
                _ => {
                    let piece = text[at..(at + self.below(40)).min(text.len())].to_vec();
                    drop(text.splice(at..at, piece));
                }
            }
            if text.is_empty() {
                text.push(b'x');
            }
        }
        text
    }
}

const LIMIT: Duration = Duration::from_secs(5);
/// How long an answer may take, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long each runs at full size.
const FULL: Duration = Duration::from_secs(30 * 60);

/// This many rounds, or as many as fit into half an hour.
fn rounds(daily: usize) -> impl Iterator<Item = usize> {
    let (begun, full) = (Instant::now(), sized(0, 1) == 1);
    (0..).take_while(move |round| {
        if full {
            begun.elapsed() < FULL
        } else {
            *round < daily
        }
    })
}

/// CPU time of this thread so far, in the hundredths of a second that the kernel counts.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    // Behind the name, which is in parentheses: the state, ten numbers, and the time as a user and in the kernel.
    let times = stat
        .rsplit(") ")
        .next()
        .unwrap()
        .split(' ')
        .skip(11)
        .take(2);
    Duration::from_millis(
        times
            .map(|hundredths| hundredths.parse::<u64>().unwrap() * 10)
            .sum(),
    )
}

/// Every day it is quick.
#[track_caller]
fn quick(begun: Duration) {
    let took = cpu_time() - begun;
    assert!(took < LIMIT || sized(0, 1) == 1, "{took:?}");
}

#[test]
fn bodies_and_answers_of_any_bytes_are_read_or_refused() {
    let words = [
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\u0000",
        "\\ud800",
        "null",
        "1e999",
        "-",
        "\u{202e}",
        "data:image/png;base64,AAAA",
    ];
    let (mut numbers, begun) = (Numbers(0x5eed), cpu_time());
    let bodies = Family::ALL.map(|family| (family, ask(family, "test-model", true).to_string()));
    for round in rounds(4_500) {
        let (family, body) = &bodies[round % bodies.len()];
        let text = numbers.mutate(body.as_bytes(), &words);
        let _ = family.protocol().inspect(&text, 0);
        let _ = family.protocol().read_answer(&text);
        let _ = UpstreamError::parse(&text);
    }
    quick(begun);
}

#[test]
fn streams_of_any_bytes_in_any_pieces_are_cut_without_loss() {
    let sample =
        ": c\r\nid: 1\r\nevent: x\r\ndata: {\"a\":1}\r\n\r\ndata: [DONE]\n\nretry: 1\rdata: y\r\r";
    let words = [
        "\n",
        "\r",
        "\r\n\r\n",
        "data: ",
        "id:",
        "event: error\n",
        ": ",
        "\u{feff}",
    ];
    let (mut numbers, begun) = (Numbers(0xfa4e), cpu_time());
    for _ in rounds(4_000) {
        let text = numbers.mutate(sample.repeat(3).as_bytes(), &words);
        let mut readers: Vec<_> = Family::ALL
            .iter()
            .map(|family| family.protocol().reader())
            .collect();
        let (mut frames, mut seen, mut rest) = (FrameReader::new(), Vec::new(), &text[..]);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at((1 + numbers.below(9)).min(rest.len()));
            frames.push(Bytes::copy_from_slice(piece));
            rest = behind;
            while let Some(frame) = frames.next_frame().unwrap() {
                seen.extend_from_slice(frame.raw());
                let lines = frame.other_lines();
                assert!(
                    lines
                        .iter()
                        .all(|line| line.start < line.end && line.end <= frame.raw().len())
                );
                readers
                    .iter_mut()
                    .for_each(|reader| drop(reader.read(&frame)));
            }
        }
        let tail = frames.finish();
        let whole = seen.len() + tail.frame.map_or(0, |frame| frame.raw().len()) + tail.left;
        assert_eq!(whole, text.len(), "{:?}", String::from_utf8_lossy(&text));
    }
    quick(begun);
}

#[test]
fn documents_of_any_bytes_are_counted_or_given_up() {
    let sample = "%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj <</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>> endobj\n\
                  3 0 obj <</Type/Page/Parent 2 0 R/Contents 5 0 R/Resources<</XObject<</F 6 0 R>>>>>> endobj\n\
                  4 0 obj <</Type/Page/Parent 2 0 R/Contents [5 0 R 5 0 R]>> endobj\n\
                  5 0 obj <</Length 40>> stream\nBT (words of a page) Tj ET /F Do\nendstream endobj\n\
                  6 0 obj <</Type/XObject/Subtype/Form/Length 12>> stream\n(more) Tj /F Do\nendstream endobj\n\
                  xref\n0 1\n0000000000 65535 f \ntrailer <</Root 1 0 R/Size 7>>\nstartxref\n9\n%%EOF\n";
    let words = [
        "<<",
        ">>",
        "[",
        "]",
        "(",
        ")",
        "stream\n",
        "endstream",
        " 0 R",
        "9 0 obj ",
        "/Kids",
        "/Prev 9",
        "/Filter/FlateDecode",
        "/Type/ObjStm/N 99/First 5",
        "startxref\n0\n%%EOF",
        "-1",
        "99999999999",
        "/Count 2147483647",
        "/Length 999999999",
    ];
    let (mut numbers, begun) = (Numbers(0xd0c5), cpu_time());
    assert!(
        pdf::tokens(sample.as_bytes()).is_some(),
        "the sample itself is read"
    );
    for _ in rounds(2_000) {
        let text = numbers.mutate(sample.as_bytes(), &words);
        let one = cpu_time();
        let _ = pdf::tokens(&text);
        assert!(
            cpu_time() - one < Duration::from_secs(3),
            "{:?}",
            String::from_utf8_lossy(&text)
        );
    }
    quick(begun);
}

/// Every variable is set.
struct AnySecrets;

impl Secrets for AnySecrets {
    fn variable(&self, _: &str) -> Option<String> {
        Some("a-secret-of-some-length".to_owned())
    }

    fn file(&self, _: &std::path::Path) -> std::io::Result<String> {
        Ok("a-secret-of-some-length".to_owned())
    }
}

#[test]
fn files_of_any_bytes_are_loaded_or_explained() {
    let words = [
        "[[",
        "]]",
        "=",
        "\"",
        "'''",
        "{",
        "}",
        "-1",
        "9999999999999999999",
        "true",
        "\n[provider.x]\n",
        "\u{202e}",
        "#",
    ];
    let (mut numbers, begun) = (Numbers(0x70a1), cpu_time());
    let routes = routes("http://127.0.0.1:1/v1");
    for number in rounds(300) {
        let mut text = |file: &str| {
            String::from_utf8_lossy(&numbers.mutate(file.as_bytes(), &words)).into_owned()
        };
        let (catalog, routes) = if number % 2 == 0 {
            (text(CATALOG), routes.clone())
        } else {
            (CATALOG.to_owned(), text(&routes))
        };
        let (_, findings) = config::load(
            &Source::new("catalog.toml", &catalog),
            &Source::new("routes.toml", &routes),
            &AnySecrets,
        );
        assert!(
            !findings
                .render(config::Paint::Plain)
                .contains("a-secret-of-some-length")
        );
    }
    quick(begun);
}

#[tokio::test]
async fn heads_of_any_bytes_are_served_or_refused() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    let head = "POST /v1/chat/completions?a=b HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-nobody\r\nx-api-key: y\r\n\
                content-type: application/json\r\ncontent-length: 2\r\naccept: */*\r\nx-request-id: 1\r\n\r\n{}";
    let words = [
        "\r\n",
        "\n",
        "\r\n\r\n",
        ":",
        "\0",
        "\u{ff}",
        "transfer-encoding: chunked\r\n",
        "content-length: 99999999999999999999\r\n",
        "content-length: -1\r\n",
        "expect: 100-continue\r\n",
        "connection: upgrade\r\nupgrade: h2c\r\n",
        "GET ",
        "//",
        "/../",
        "%00",
        "%2e%2e",
        "host: y\r\n",
        "HTTP/9.9",
    ];
    let (mut numbers, begun) = (Numbers(0x4ead), cpu_time());
    for _ in rounds(400) {
        let text = numbers.mutate(head.as_bytes(), &words);
        let mut stream = TcpStream::connect(gateway.base.trim_start_matches("http://"))
            .await
            .unwrap();
        // A refusal may come, and close the connection, before the last byte was sent.
        let _ = stream.write_all(&text).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
        assert!(
            read.is_ok(),
            "no end after {:?}",
            String::from_utf8_lossy(&text)
        );
        let said = String::from_utf8_lossy(&answer);
        let refused =
            said.is_empty() || said.starts_with("HTTP/1.1 4") || said.starts_with("HTTP/1.0 4");
        assert!(
            refused || said.starts_with("HTTP/1.1 100"),
            "{said:?} to {:?}",
            String::from_utf8_lossy(&text)
        );
    }
    quick(begun);
    assert!(upstream.requests().is_empty(), "nobody here has a key");
    assert_eq!(
        gateway
            .post("/v1/chat/completions", &key, &chat("test-model", false))
            .await
            .status,
        200
    );
}
