//! What the upstream answers, rendered once: every byte, every token and so every true cost is known beforehand.
//!
//! The upstream sends an answer's parts, the generator compares what arrives with the whole. Content chunks carry a time stamp
//! of fixed width, the only bytes that differ from one answer to the next.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

/// A wire family, or the call beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BenchFamily {
    Chat,
    Messages,
    Embeddings,
}

impl BenchFamily {
    pub(crate) const ALL: [Self; 3] = [Self::Chat, Self::Messages, Self::Embeddings];
    pub(crate) const CONVERSATIONS: [Self; 2] = [Self::Chat, Self::Messages];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Embeddings => "embeddings",
        }
    }

    /// Where the upstream serves it.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Messages => "/v1/messages",
            Self::Embeddings => "/v1/embeddings",
        }
    }

    /// The name customers ask for.
    pub(crate) const fn slug(self) -> &'static str {
        match self {
            Self::Chat | Self::Messages => SLUG,
            Self::Embeddings => "bench-vectors-2",
        }
    }

    /// The name the upstream knows. A gateway that renames models has to put back the slug.
    pub(crate) const fn upstream_model(self) -> &'static str {
        match self {
            Self::Chat | Self::Messages => UPSTREAM_MODEL,
            Self::Embeddings => "bench-vectors-2-20250929",
        }
    }

    /// What an answer of so many times [`TEXT`] costs, in picodollars: a millionth of a dollar's millionth is one.
    pub(crate) const fn cost(self, times: u64) -> i64 {
        let picos = match self {
            Self::Chat | Self::Messages => {
                FRESH_INPUT * 1_234_567 + CACHED_INPUT * 123_457 + OUTPUT * times * 9_876_543
            }
            Self::Embeddings => BATCH_INPUT * 1_234_567,
        };
        picos as i64
    }

    /// A usage as it stands in an answer under this model's name: on `/v1` Farebox, which puts back the slug, adds the charge.
    fn usage(self, mut usage: serde_json::Value, model: &str, times: u64) -> serde_json::Value {
        if self != Self::Messages && model == self.slug() {
            usage["cost"] = json!(self.cost(times) as f64 / 1e12);
        }
        usage
    }
}

pub(crate) const SLUG: &str = "bench-model-2";
pub(crate) const UPSTREAM_MODEL: &str = "bench-model-2-20250929";

/// What is answered, once or many times, and how often it makes 100 KiB.
const TEXT: &str = "The function reads the file once and keeps \"what it needs\"; nothing else is held in memory.\n\n1. open\n2. read";
pub(crate) const LONG: u64 = 920;

/// What every answer says it used, of output for each time, and USD per million tokens with as many digits as prices may have.
const FRESH_INPUT: u64 = 211;
const CACHED_INPUT: u64 = 48;
const OUTPUT: u64 = 37;
/// Tokens of a batch of texts, how many there are, and how large a vector is: 1,536 numbers in base64.
const BATCH_INPUT: u64 = 2_000_000;
pub(crate) const TEXTS: usize = 2_048;
const VECTOR: usize = 8_192;
pub(crate) const PRICES: [(&str, &str); 3] = [
    ("input", "1.234567"),
    ("cache_read", "0.123457"),
    ("output", "9.876543"),
];

/// Digits of a time stamp, in microseconds.
pub(crate) const STAMP: usize = 16;
const NO_STAMP: &str = "0000000000000000";

/// Now, as a stamp.
pub(crate) fn micros() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
        })
}

/// Writes a stamp over its place.
pub(crate) fn write_stamp(place: &mut [u8], mut micros: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(micros % 10).unwrap_or(0);
        micros /= 10;
    }
}

/// Reads a stamp.
pub(crate) fn read_stamp(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |sum, digit| {
        sum * 10 + u64::from(digit.wrapping_sub(b'0'))
    })
}

/// One answer: what is sent at once, and behind it what is sent step by step.
#[derive(Debug, Clone)]
pub(crate) struct CannedAnswer {
    /// A part's bytes of the body, and where its stamp stands.
    pub(crate) parts: Vec<(Vec<u8>, Option<usize>)>,
}

impl CannedAnswer {
    /// An answer in one piece.
    pub(crate) fn whole(family: BenchFamily, model: &str, times: u64) -> Self {
        let text = TEXT.repeat(times as usize);
        let body = match family {
            BenchFamily::Chat => json!({
                "id": "chatcmpl-BenchBenchBenchBenchBench01", "object": "chat.completion", "created": 1_790_000_000, "model": model,
                "choices": [{"index": 0, "message": {"role": "assistant", "content": text, "refusal": null, "annotations": []},
                             "logprobs": null, "finish_reason": "stop"}],
                "usage": family.usage(chat_usage(OUTPUT * times), model, times), "service_tier": "default", "system_fingerprint": "fp_0123456789",
            }),
            BenchFamily::Messages => json!({
                "id": "msg_01BenchBenchBenchBench", "type": "message", "role": "assistant", "model": model,
                "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": null,
                "usage": messages_usage(OUTPUT * times),
            }),
            BenchFamily::Embeddings => vectors(model),
        };
        Self {
            parts: vec![(body.to_string().into_bytes(), None)],
        }
    }

    /// A streamed answer with `chunks` chunks that carry a stamp.
    pub(crate) fn stream(family: BenchFamily, model: &str, chunks: usize) -> Self {
        let (first, chunk, last) = match family {
            BenchFamily::Chat | BenchFamily::Embeddings => chat_stream(model),
            BenchFamily::Messages => messages_stream(model),
        };
        let place = chunk.find(NO_STAMP);
        let mut parts = vec![(first.into_bytes(), None)];
        parts.extend((0..chunks).map(|_| (chunk.clone().into_bytes(), place)));
        parts.push((last.into_bytes(), None));
        Self { parts }
    }

    /// The whole body.
    pub(crate) fn body(&self) -> Vec<u8> {
        self.parts
            .iter()
            .flat_map(|(part, _)| part.iter().copied())
            .collect()
    }

    /// Where the stamps stand in the whole body.
    pub(crate) fn stamps(&self) -> Vec<usize> {
        let mut at = 0;
        let mut stamps = Vec::new();
        for (part, stamp) in &self.parts {
            stamps.extend(stamp.map(|stamp| at + stamp));
            at += part.len();
        }
        stamps
    }
}

/// As the libraries ask for them: in base64.
fn vectors(model: &str) -> serde_json::Value {
    let vector = "Kx7/vZbq+D3M".repeat(VECTOR / 12 + 1);
    let vector = &vector[..VECTOR];
    let data: Vec<_> = (0..TEXTS)
        .map(|index| json!({"object": "embedding", "index": index, "embedding": vector}))
        .collect();
    let usage = json!({"prompt_tokens": BATCH_INPUT, "total_tokens": BATCH_INPUT});
    let usage = BenchFamily::Embeddings.usage(usage, model, 1);
    json!({"object": "list", "data": data, "model": model, "usage": usage})
}

fn chat_usage(output: u64) -> serde_json::Value {
    json!({
        "prompt_tokens": FRESH_INPUT + CACHED_INPUT, "completion_tokens": output, "total_tokens": FRESH_INPUT + CACHED_INPUT + output,
        "prompt_tokens_details": {"cached_tokens": CACHED_INPUT, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    })
}

fn messages_usage(output: u64) -> serde_json::Value {
    json!({
        "input_tokens": FRESH_INPUT, "cache_creation_input_tokens": 0, "cache_read_input_tokens": CACHED_INPUT,
        "output_tokens": output, "service_tier": "standard",
    })
}

/// The first event, one with a stamp, and the last ones.
fn chat_stream(model: &str) -> (String, String, String) {
    let event = |choices: serde_json::Value, usage: serde_json::Value| {
        let data = json!({
            "id": "chatcmpl-BenchBenchBenchBenchBench01", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": model,
            "service_tier": "default", "system_fingerprint": "fp_0123456789", "choices": choices, "usage": usage,
        });
        format!("data: {data}\n\n")
    };
    let choice = |delta: serde_json::Value, finish: serde_json::Value| json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
    let first = event(
        choice(
            json!({"role": "assistant", "content": "", "refusal": null}),
            json!(null),
        ),
        json!(null),
    );
    let chunk = event(
        choice(json!({"content": format!(" {NO_STAMP}")}), json!(null)),
        json!(null),
    );
    let finish = event(choice(json!({}), json!("stop")), json!(null));
    let usage = BenchFamily::Chat.usage(chat_usage(OUTPUT), model, 1);
    (
        first,
        chunk,
        finish + &event(json!([]), usage) + "data: [DONE]\n\n",
    )
}

fn messages_stream(model: &str) -> (String, String, String) {
    let event = |name: &str, data: serde_json::Value| format!("event: {name}\ndata: {data}\n\n");
    let message = json!({
        "id": "msg_01BenchBenchBenchBench", "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": messages_usage(1),
    });
    let block = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let first = event(
        "message_start",
        json!({"type": "message_start", "message": message}),
    ) + &event("content_block_start", block);
    let delta = json!({"type": "text_delta", "text": format!(" {NO_STAMP}")});
    let chunk = event(
        "content_block_delta",
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
    );
    let stop = json!({"stop_reason": "end_turn", "stop_sequence": null});
    let last = event(
        "content_block_stop",
        json!({"type": "content_block_stop", "index": 0}),
    ) + &event(
        "message_delta",
        json!({"type": "message_delta", "delta": stop, "usage": {"output_tokens": OUTPUT}}),
    ) + &event("message_stop", json!({"type": "message_stop"}));
    (first, chunk, last)
}

#[cfg(test)]
mod tests {
    use super::{BenchFamily, CannedAnswer, SLUG, read_stamp, write_stamp};

    #[test]
    fn a_stamp_comes_back() {
        let mut place = *b"0000000000000000";
        write_stamp(&mut place, 1_790_000_000_123_456);
        assert_eq!(read_stamp(&place), 1_790_000_000_123_456);
    }

    #[test]
    fn stamps_stand_where_the_body_says() {
        for family in BenchFamily::CONVERSATIONS {
            let answer = CannedAnswer::stream(family, SLUG, 3);
            let body = answer.body();
            let stamps = answer.stamps();
            assert_eq!(stamps.len(), 3);
            assert!(
                stamps
                    .iter()
                    .all(|at| &body[*at..*at + super::STAMP] == super::NO_STAMP.as_bytes())
            );
        }
    }
}
