//! One scripted answer: a head, parts (the frames of a stream, or one whole body), and what happens between them.
//!
//! Built by chaining: `Speech::new(family, "text").stream().reset_after(3)`. Positions count parts: 0 is right after the head.
#![cfg(test)]

use std::sync::Arc;
use std::time::Duration;

use farebox_protocol::ReportedUsage;
use serde_json::{Value, json};
use tokio::sync::watch;

/// A gate that a test opens to let the upstream continue.
#[derive(Debug, Clone)]
pub(crate) struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// A closed gate.
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Lets everybody through, now and later.
    pub(crate) fn open(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn opened(&self) {
        self.0.subscribe().wait_for(|open| *open).await.ok();
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

/// One action of the upstream.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Send(Vec<u8>),
    Wait(Duration),
    /// Until so long after the request arrived.
    Until(Duration),
    Gate(Gate),
    /// Until the peer closes.
    Stall,
    Reset,
    Close,
}

/// One scripted answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    streamed: bool,
    pub(super) parts: Vec<Vec<u8>>,
    before: Vec<Step>,
    between: Vec<(usize, Step)>,
    pace: Option<Duration>,
    /// When each part is sent, if that is said.
    times: Vec<Duration>,
    usage: ReportedUsage,
}

impl Reply {
    /// A whole answer of any kind.
    pub(crate) fn whole(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            // Such headers must never reach a customer.
            headers: [
                ("content-type", content_type),
                ("x-request-id", "req_upstream0001"),
                ("openai-organization", "org-upstream0001"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
            streamed: false,
            parts: vec![body.into()],
            before: Vec::new(),
            between: Vec::new(),
            pace: None,
            times: Vec::new(),
            usage: ReportedUsage::default(),
        }
    }

    /// A whole JSON answer.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::whole(status, "application/json", body.to_string())
    }

    /// An error in the shape of the chat and responses families.
    pub(crate) fn error(status: u16, kind: &str, code: Option<&str>, message: &str) -> Self {
        Self::json(
            status,
            &json!({"error": {"message": message, "type": kind, "param": null, "code": code}}),
        )
    }

    /// An error in the shape of the messages family.
    pub(crate) fn native_error(status: u16, kind: &str, message: &str) -> Self {
        let error = json!({"type": kind, "message": message});
        Self::json(
            status,
            &json!({"type": "error", "error": error, "request_id": "req_upstream0001"}),
        )
    }

    /// A stream of these frames, each as it stands, blank line included.
    pub(crate) fn events<F: Into<Vec<u8>>>(frames: impl IntoIterator<Item = F>) -> Self {
        let mut reply = Self::whole(200, "text/event-stream", Vec::new());
        reply.streamed = true;
        reply.parts = frames.into_iter().map(Into::into).collect();
        reply
    }

    /// Sets the true usage of this answer.
    pub(crate) fn with_usage(mut self, usage: ReportedUsage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets the status.
    pub(crate) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Adds a header, or replaces the one of that name.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Waits before every part.
    pub(crate) fn paced(mut self, pace: Duration) -> Self {
        self.pace = Some(pace);
        self
    }

    /// Sends each part so long after the request arrived.
    pub(crate) fn at(mut self, times: Vec<Duration>) -> Self {
        self.times = times;
        self
    }

    /// Waits before the head.
    pub(crate) fn late(mut self, time: Duration) -> Self {
        self.before.push(Step::Wait(time));
        self
    }

    /// Waits before the head until a gate opens.
    pub(crate) fn gated(mut self, gate: &Gate) -> Self {
        self.before.push(Step::Gate(gate.clone()));
        self
    }

    /// Never answers; ends when the peer closes.
    pub(crate) fn silent(mut self) -> Self {
        self.before.push(Step::Stall);
        self
    }

    /// Resets the connection before the head.
    pub(crate) fn reset(mut self) -> Self {
        self.before.push(Step::Reset);
        self
    }

    /// Waits after `parts` parts.
    pub(crate) fn wait_after(self, parts: usize, time: Duration) -> Self {
        self.between(parts, Step::Wait(time))
    }

    /// Waits after `parts` parts until a gate opens.
    pub(crate) fn gate_after(self, parts: usize, gate: &Gate) -> Self {
        self.between(parts, Step::Gate(gate.clone()))
    }

    /// Sends nothing more after `parts` parts; ends when the peer closes.
    pub(crate) fn stall_after(self, parts: usize) -> Self {
        self.between(parts, Step::Stall)
    }

    /// Resets the connection after `parts` parts.
    pub(crate) fn reset_after(self, parts: usize) -> Self {
        self.between(parts, Step::Reset)
    }

    /// Closes the connection after `parts` parts, without the end of the chunked body.
    pub(crate) fn close_after(self, parts: usize) -> Self {
        self.between(parts, Step::Close)
    }

    /// Sends what is no chunk after `parts` parts.
    pub(crate) fn bad_chunk_after(self, parts: usize) -> Self {
        self.between(parts, Step::Send(b"zz\r\nnot a chunk\r\n".to_vec()))
            .between(parts, Step::Close)
    }

    /// Ends properly after `parts` parts: no terminal marker, but a clean end of the body.
    pub(crate) fn end_after(mut self, parts: usize) -> Self {
        self.parts.truncate(parts);
        self
    }

    /// Ends properly in the middle of the part behind `parts` parts.
    pub(crate) fn tear_after(mut self, parts: usize) -> Self {
        self.parts.truncate(parts + 1);
        if let Some(part) = self.parts.get_mut(parts) {
            part.truncate(part.len() / 2);
        }
        self
    }

    /// Replaces everything behind `parts` parts by this part.
    pub(crate) fn then(mut self, parts: usize, part: impl Into<Vec<u8>>) -> Self {
        self.parts.truncate(parts);
        self.parts.push(part.into());
        self
    }

    /// Puts a part in front: a comment, a ping.
    pub(crate) fn first(mut self, part: impl Into<Vec<u8>>) -> Self {
        self.parts.insert(0, part.into());
        self
    }

    /// Sends the body in pieces of so many bytes, whatever the frames.
    pub(crate) fn in_pieces_of(mut self, bytes: usize) -> Self {
        self.parts = self
            .parts
            .concat()
            .chunks(bytes)
            .map(<[u8]>::to_vec)
            .collect();
        self
    }

    /// The parts as text, to be changed and sent as [`Reply::events`].
    pub(crate) fn texts(&self) -> Vec<String> {
        self.parts
            .iter()
            .map(|part| String::from_utf8(part.clone()).unwrap())
            .collect()
    }

    /// Frames of the stream, or 1.
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    pub(super) fn usage(&self) -> ReportedUsage {
        self.usage
    }

    fn between(mut self, parts: usize, step: Step) -> Self {
        self.between.push((parts, step));
        self
    }

    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps = self.before.clone();
        // With times, the head comes with the first part.
        steps.extend(self.times.first().copied().map(Step::Until));
        steps.push(Step::Send(self.head()));
        for position in 0..=self.parts.len() {
            steps.extend(
                self.between
                    .iter()
                    .filter(|(at, _)| *at == position)
                    .map(|(_, step)| step.clone()),
            );
            if let Some(part) = self.parts.get(position) {
                steps.extend(self.pace.map(Step::Wait));
                steps.extend(self.times.get(position).copied().map(Step::Until));
                steps.push(Step::Send(if self.streamed {
                    chunk(part)
                } else {
                    part.clone()
                }));
            }
        }
        if self.streamed {
            steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
        }
        steps
    }

    fn head(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", self.status);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &if self.streamed {
            "transfer-encoding: chunked\r\n\r\n".to_owned()
        } else {
            format!(
                "content-length: {}\r\n\r\n",
                self.parts.iter().map(Vec::len).sum::<usize>()
            )
        };
        head.into_bytes()
    }
}

fn chunk(part: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", part.len()).into_bytes();
    chunk.extend_from_slice(part);
    chunk.extend_from_slice(b"\r\n");
    chunk
}
