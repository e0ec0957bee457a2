//! The cost of the wire code: inspecting and splicing requests, cutting frames, reading usage.
//!
//! A plain harness: each case runs for a fixed time in rounds, and the best round is shown. `cargo bench -p farebox-protocol`.

#![expect(clippy::expect_used, reason = "a bench that cannot go on stops")]
#![expect(clippy::print_stdout, reason = "a bench shows its figures")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use farebox_protocol::{Edits, Family, FrameReader, ReportedUsage, SyntheticAnswer, SyntheticStop};

const ROUND: Duration = Duration::from_millis(40);
const ROUNDS: u32 = 12;

fn main() {
    for (name, bytes) in [
        ("1 KiB", 1 << 10),
        ("60 KiB", 60 << 10),
        ("100 KiB", 100 << 10),
        ("1 MiB", 1 << 20),
    ] {
        for family in Family::ALL {
            let body = request(family, bytes);
            requests(&format!("{family} {name}"), family, &body);
        }
    }
    for family in Family::ALL {
        streams(family);
    }
}

fn requests(name: &str, family: Family, body: &[u8]) {
    let protocol = family.protocol();
    let seen = protocol.inspect(body, 0).expect("a good request");
    let edits = Edits {
        model: "upstream-model-name",
        limit_field: "max_tokens",
        limit: Some(1_000),
        ..Edits::default()
    };
    measure(&format!("inspect {name}"), body.len(), || {
        let _ = black_box(protocol.inspect(black_box(body), 0));
    });
    measure(&format!("splice  {name}"), body.len(), || {
        black_box(protocol.patch(black_box(body), &seen, &edits));
    });
}

fn streams(family: Family) {
    let protocol = family.protocol();
    let usage = ReportedUsage {
        input: 1_000,
        cache_read: 200,
        output: 400,
        ..ReportedUsage::default()
    };
    let draft = SyntheticAnswer {
        id: "bench".into(),
        model: "model".into(),
        created: 1,
        pieces: vec![" some words of text".into(); 400],
        tool: None,
        usage: Some(usage),
        stop: SyntheticStop::Stop,
        stream_usage: true,
        classes: farebox_protocol::Classes::STANDARD,
    };
    let stream = Bytes::from(protocol.write_frames(&draft).concat());
    let chunks: Vec<Bytes> = (0..stream.len())
        .step_by(1_400)
        .map(|at| stream.slice(at..(at + 1_400).min(stream.len())))
        .collect();
    let frames = cut(&chunks);
    measure(
        &format!("cut     {family}, {} frames", frames.len()),
        stream.len(),
        || {
            black_box(cut(black_box(&chunks)));
        },
    );
    measure(
        &format!("read    {family}, {} frames", frames.len()),
        stream.len(),
        || {
            let mut reader = protocol.reader();
            for frame in &frames {
                black_box(reader.read(frame));
            }
        },
    );
    let answer = protocol.write_answer(&draft);
    measure(&format!("answer  {family}"), answer.len(), || {
        black_box(protocol.read_answer(black_box(&answer)));
    });
}

fn cut(chunks: &[Bytes]) -> Vec<farebox_protocol::Frame> {
    let mut reader = FrameReader::new();
    let mut frames = Vec::new();
    for chunk in chunks {
        reader.push(chunk.clone());
        while let Ok(Some(frame)) = reader.next_frame() {
            frames.push(frame);
        }
    }
    frames
}

fn measure(name: &str, bytes: usize, mut run: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut runs = 0_u32;
        while start.elapsed() < ROUND {
            run();
            runs += 1;
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(runs));
    }
    let rate = bytes as f64 / best / 1e9;
    println!(
        "{name:32} {bytes:>9} bytes {:>10.2} µs {rate:>7.2} GB/s",
        best * 1e6
    );
}

/// A request like a coding client's: tools with schemas, then turns of source text with its escapes.
fn request(family: Family, bytes: usize) -> Vec<u8> {
    let source = r#"fn main() {\n    let name = \"world\";\n    println!(\"hello {name}\");\n    // a comment of some length here\n}\n"#;
    let tool = |index: usize| {
        let schema = r#"{"type":"object","properties":{"path":{"type":"string","description":"Where the file is."},"limit":{"type":"number"}},"required":["path"]}"#;
        match family {
            Family::Chat => format!(
                r#"{{"type":"function","function":{{"name":"tool_{index}","parameters":{schema}}}}}"#
            ),
            Family::Responses => {
                format!(r#"{{"type":"function","name":"tool_{index}","parameters":{schema}}}"#)
            }
            Family::Messages => format!(r#"{{"name":"tool_{index}","input_schema":{schema}}}"#),
        }
    };
    let tools: Vec<String> = (0..(bytes / 4_096)).map(tool).collect();
    let mut turns = Vec::new();
    let mut size = 600 + tools.iter().map(String::len).sum::<usize>();
    while size < bytes || turns.is_empty() {
        let text = source.repeat(((bytes.saturating_sub(size)) / source.len()).clamp(1, 40));
        let kind = if family == Family::Responses {
            "input_text"
        } else {
            "text"
        };
        turns.push(format!(
            r#"{{"role":"user","content":[{{"type":"{kind}","text":"{text}"}}]}}"#
        ));
        size += text.len() + 60;
    }
    let list = if family == Family::Responses {
        "input"
    } else {
        "messages"
    };
    let limit = if family == Family::Responses {
        "max_output_tokens"
    } else {
        "max_tokens"
    };
    let (tools, turns) = (tools.join(","), turns.join(","));
    format!(r#"{{"model":"some-slug","stream":true,"{limit}":32000,"{list}":[{turns}],"tools":[{tools}]}}"#).into_bytes()
}
