//! The updates of an open page, as server-sent events: sent only when the account or its history has changed.
//!
//! A stream ends with its session, with the gateway, and after a quarter of an hour; browsers then reconnect by themselves.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farebox_ledger::{Account, Key, KeyStatus, Timestamp};
use futures_util::stream::{self, Stream};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::actor::Viewer;
use super::context::Context;
use super::page::{chart::Range, requests};
use super::session;
use super::views::{self, Query};
use crate::clock;
use crate::proxy::Failure;

/// How often the account is read without a notification: top-ups come from other processes.
const LOOK: Duration = Duration::from_secs(1);
/// Shortest time between two updates.
const PAUSE: Duration = Duration::from_millis(250);
/// A comment is sent after this long without data, so that proxies keep the connection open.
const SILENCE: Duration = Duration::from_secs(15);
/// Open pages per key; each keeps its notification.
const PAGES: usize = 16;
/// Longest life of one stream.
const LIFE: Duration = Duration::from_secs(15 * 60);

/// The parts that a page wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageParts {
    Overview(Range),
    Requests,
}

impl PageParts {
    pub(super) fn asked(query: Query<'_>) -> Self {
        match query("view").as_deref() {
            Some("requests") => Self::Requests,
            _ => Self::Overview(Range::asked(query("range").as_deref())),
        }
    }
}

/// The values that are compared to notice a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Trace {
    account: Account,
    status: KeyStatus,
    last_entry: Option<Timestamp>,
    last_refusal: Option<Timestamp>,
}

struct PageStream {
    context: Arc<Context>,
    viewer: Viewer,
    wanted: PageParts,
    bell: Arc<Notify>,
    seen: Option<Trace>,
    began: Instant,
    spoke: Instant,
    over: bool,
}

/// The events of one open page.
///
/// # Errors
/// 429 when the key has many pages open already.
pub(super) fn events(
    context: Arc<Context>,
    viewer: Viewer,
    wanted: PageParts,
) -> Result<impl Stream<Item = Result<Bytes, std::io::Error>>, Failure> {
    let bell = context.activity.bell(viewer.key.id);
    if Arc::strong_count(&bell) > PAGES {
        return Err(Failure::RateLimited(
            format!("at most {PAGES} pages may be open at once"),
            Duration::from_secs(30),
        ));
    }
    let now = Instant::now();
    let live = PageStream {
        context,
        viewer,
        wanted,
        bell,
        seen: None,
        began: now,
        spoke: now,
        over: false,
    };
    Ok(stream::unfold(live, async |mut live| {
        let bytes = live.next().await?;
        live.spoke = Instant::now();
        Some((Ok(bytes), live))
    }))
}

impl PageStream {
    /// The next event; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.over || self.began.elapsed() > LIFE || self.context.closing.is_cancelled() {
                return None;
            }
            let rung = self.bell.notified();
            match session::live(self.context.ledger.as_ref(), self.viewer.token).await {
                Ok(Some(key)) => {
                    let trace = self.trace(&key);
                    // The page was rendered a moment ago: only differences from the first read are news, and a change between the
                    // page and the first read shows in the first event.
                    if self.seen != Some(trace) {
                        self.seen = Some(trace);
                        return self.parts(key).await.ok();
                    }
                }
                Ok(None) => {
                    self.over = true;
                    return Some(Bytes::from_static(b"event: over\ndata: {}\n\n"));
                }
                // The ledger is busy: the next read may succeed.
                Err(_) => {}
            }
            if self.spoke.elapsed() > SILENCE {
                return Some(Bytes::from_static(b": still here\n\n"));
            }
            let closing = self.context.closing.clone();
            tokio::select! {
                () = closing.cancelled() => return None,
                () = rung => tokio::time::sleep(PAUSE).await,
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    fn trace(&self, key: &Key) -> Trace {
        Trace {
            account: key.customer.account,
            status: key.status(clock::now()),
            last_entry: key.customer.last_entry_at,
            last_refusal: self.context.activity.last_refusal(key.id),
        }
    }

    async fn parts(&self, key: Key) -> Result<Bytes, Failure> {
        let ledger = self.context.ledger.as_ref();
        let title = format!(
            "{} USD · {}",
            key.remaining("", clock::now()),
            self.context.shop().title()
        );
        let parts: Map<String, Value> = match self.wanted {
            PageParts::Overview(range) => {
                let overview = views::overview(&self.context, key, range).await?;
                overview
                    .parts()
                    .into_iter()
                    .map(|(id, part)| (id.to_owned(), Value::String(part.into_string())))
                    .collect()
            }
            PageParts::Requests => {
                let rows = views::newest_part(ledger, &key).await?;
                let refusals = requests::refusals(&self.context.activity.refusals(key.id));
                [("newest", rows), ("refusals", refusals)]
                    .map(|(id, part)| (id.to_owned(), Value::String(part.into_string())))
                    .into_iter()
                    .collect()
            }
        };
        Ok(Bytes::from(format!(
            "event: parts\ndata: {}\n\n",
            json!({ "title": title, "parts": parts })
        )))
    }
}
