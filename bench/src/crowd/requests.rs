//! What the crowd's requests look like: every path, every lie and every form, drawn without any pattern between them.
//!
//! The draws come from a counter, so that two runs ask the same.

use super::liar::LIES;
use crate::answers::SLUG;

/// A path with its method, and what of a body it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathKind {
    Get,
    Chat,
    Responses,
    Messages,
    Count,
    Login,
}

/// Paths that make an answer, half of all requests.
const PAID: [(&str, PathKind); 4] = [
    ("/v1/chat/completions", PathKind::Chat),
    ("/v1/responses", PathKind::Responses),
    ("/native/v1/messages", PathKind::Messages),
    ("/native/messages", PathKind::Messages),
];
/// All others, also those that are not there.
const FREE: [(&str, PathKind); 18] = [
    ("/native/v1/messages/count_tokens", PathKind::Count),
    ("/v1/models", PathKind::Get),
    ("/v1/models/bench-model-2", PathKind::Get),
    ("/native/v1/models", PathKind::Get),
    ("/v1/key", PathKind::Get),
    ("/v1/credits", PathKind::Get),
    ("/v1/usage", PathKind::Get),
    ("/v1/generation?id=req_0", PathKind::Get),
    ("/dashboard", PathKind::Get),
    ("/dashboard/login", PathKind::Login),
    ("/", PathKind::Get),
    ("/native", PathKind::Get),
    ("/healthz", PathKind::Get),
    ("/metrics", PathKind::Get),
    ("/v1/embeddings", PathKind::Chat),
    ("/v1/v1/chat/completions", PathKind::Chat),
    ("/native/v1/chat/completions", PathKind::Chat),
    ("/v1/nothing", PathKind::Get),
];

/// Draws from a number: the same ones each time, and none tells about another.
#[derive(Debug)]
pub(super) struct Draws(u64);

impl Draws {
    pub(super) fn from(number: u64) -> Self {
        Self(number)
    }

    /// A number below `most`.
    pub(super) fn below(&mut self, most: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most.max(1)
    }

    /// True once in `times`.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let at = self.below(u64::try_from(all.len()).unwrap_or(u64::MAX));
        all.get(usize::try_from(at).unwrap_or(usize::MAX)).copied()
    }
}

/// A request on any path. What an upstream hears of it asks for a lie.
pub(super) fn any(draws: &mut Draws, secret: &str) -> Vec<u8> {
    let drawn = if draws.once_in(2) {
        draws.of(&PAID)
    } else {
        draws.of(&FREE)
    };
    let (path, kind) = drawn.unwrap_or(("/", PathKind::Get));
    // A third asks for a proper answer, so that what money there is gets spent.
    let lie = draws.below(LIES + LIES / 2);
    let text = if lie < LIES {
        format!("\"lie-{lie} please\"")
    } else {
        "\"hello\"".to_owned()
    };
    let (turn, stream) = (
        format!("[{{\"role\":\"user\",\"content\":{text}}}]"),
        draws.once_in(2),
    );
    let body = match kind {
        PathKind::Get => String::new(),
        PathKind::Login => format!("key={secret}"),
        PathKind::Count => format!("{{\"model\":\"{SLUG}\",\"messages\":{turn}}}"),
        PathKind::Responses => format!(
            "{{\"model\":\"{SLUG}\",\"stream\":{stream},\"max_output_tokens\":50,\"input\":{text}}}"
        ),
        PathKind::Chat | PathKind::Messages => {
            format!(
                "{{\"model\":\"{SLUG}\",\"stream\":{stream},\"max_tokens\":50,\"messages\":{turn}}}"
            )
        }
    };
    let method = match kind {
        PathKind::Get if draws.once_in(4) => "HEAD",
        PathKind::Get => "GET",
        _ => "POST",
    };
    let content_type = if kind == PathKind::Login {
        "application/x-www-form-urlencoded"
    } else {
        "application/json"
    };
    format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\ncontent-type: {content_type}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The head of an upload of 32 MiB to a path that makes an answer.
pub(super) fn upload(draws: &mut Draws, secret: &str) -> Vec<u8> {
    let (path, _) = draws.of(&PAID).unwrap_or(("/", PathKind::Get));
    let length = 32 << 20;
    format!("POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\ncontent-length: {length}\r\n\r\n").into_bytes()
}
