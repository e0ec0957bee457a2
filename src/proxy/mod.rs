//! The spine. [`Proxy::run`] is the path of every paid request: prepare → admit (money is held) → dispatch → relay → settle.
//!
//! The customer's handler runs the first two. From the hold on, a separate task owns upstream, meter and hold (`serve`), so a
//! customer who disconnects drops the handler but never the money. The spine calls the rooms below it; none calls back.

mod admit;
pub mod balance;
mod bodies;
mod breakage;
mod capabilities;
mod classes;
mod connection_fate;
mod conversation;
pub mod count;
mod dispatch;
mod documents;
mod end;
mod exposure;
mod exposure_words;
pub mod failure;
mod fold;
mod items;
mod money;
mod outlet;
mod phase;
mod pins;
pub mod pipe;
mod prepare;
mod prompt;
pub mod rate_limit;
pub mod record;
mod relay;
mod request;
mod rewrite;
mod sending;
mod stream;
mod translation;
mod under_way;
pub mod waiting;
mod whole;

use std::sync::Arc;

use bytes::Bytes;
use farebox_ledger::{CustomerId, Key, KeyId, OperationId, RunName, SharedLedger, Timestamp};
use farebox_protocol::{CallKind, Family, WirePath};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::billing::exposure::Payer;
pub use crate::billing::{
    Calibrations, ExceededTarget, ExposureSpan, ExposureStanding, Learned, holder,
};
use crate::config::ConfigHandle;
use crate::turns::{Turns, Work};
use crate::upstream::Upstreams;
pub use balance::ToldCap;
pub use connection_fate::ConnectionFate;
pub use conversation::SESSION_HEADER;
pub use failure::Failure;
use farebox_door::byte_room::ByteShare;
pub use items::AnswerItems;
pub use pins::Pins;
pub use prepare::offered;
use rate_limit::Pass;
pub use record::{Observer, Origin, Record, RefusedFacts, Told};
use relay::AnswerRelay;
use request::{Admitted, ReplyTo};
pub use request::{LIMIT, LOST, REMOVED, WAITED};
use under_way::Entered;
pub use under_way::{RunningMoney, UnderWay};
pub use waiting::{MOST_BYTES as MOST_WAITING_BYTES, WaitingRoom};

/// The largest body of a request.
pub const LARGEST_BODY: usize = 32 * 1024 * 1024;

/// The parts of the gateway that the spine uses.
#[derive(Debug)]
pub struct Proxy {
    /// The snapshot in force.
    pub config: Arc<ConfigHandle>,
    /// The money.
    pub ledger: SharedLedger,
    /// The providers.
    pub upstreams: Upstreams,
    /// Every running request; a graceful stop waits for them.
    pub tasks: TaskTracker,
    /// Gets a record of every ended request.
    pub observer: Arc<dyn Observer>,
    /// Compares targets' counts with ours, for local counts.
    pub calibrations: Calibrations,
    /// Who waits for whom when bodies are read and tokens counted.
    pub turns: Arc<Turns>,
    /// Pinned fields that targets have refused.
    pub pins: Pins,
    /// What customers may refer to.
    pub items: Arc<AnswerItems>,
    /// Where running requests are.
    pub under_way: UnderWay,
    /// Where requests wait for money that others hold.
    pub waiting: WaitingRoom,
}

/// An authenticated request with its body.
#[derive(Debug)]
pub struct Request {
    /// Ours; also the id of its hold and charge.
    pub id: OperationId,
    /// The paying customer.
    pub customer: CustomerId,
    /// Its key that asks.
    pub key: KeyId,
    /// Whether that is an owner's, who may see the sums of the account's caps.
    pub is_owners: bool,
    /// Counts the request among the key's running ones.
    pub pass: Pass,
    /// Its work before it is paid for.
    pub work: Work,
    /// The memory reserved for the body; released with the body.
    pub room: Option<ByteShare>,
    /// The path's family; of a call the one whose keys and errors it has.
    pub family: Family,
    /// What it asks for, if it is no conversation.
    pub call: Option<CallKind>,
    /// The body as received.
    pub body: Bytes,
    /// The headers that may go upstream: lower-case name and value.
    pub headers: Vec<(String, Bytes)>,
    /// The session that the client names beside the body.
    pub session: Option<Bytes>,
    /// The run that it belongs to.
    pub run: Option<RunName>,
    /// Its program pays again for an answer that ended by length, or swallows it: where money lowered the limit, it gets an error instead.
    pub ends_with_error: bool,
    /// Who ends its connection.
    pub connection: ConnectionFate,
    /// The client's origin, for the log.
    pub origin: Origin,
    /// When it arrived, for durations.
    pub arrived: Instant,
    /// When it arrived, for the journal.
    pub at: Timestamp,
}

impl Request {
    /// The path on which it came.
    fn path(&self) -> WirePath {
        let family = WirePath::Family(self.family);
        self.call.map_or(family, WirePath::Call)
    }

    /// What it is called in the journal.
    fn path_name(&self) -> &'static str {
        self.path().name()
    }

    const fn payer(&self) -> Payer {
        Payer {
            customer: self.customer,
            key: self.key,
        }
    }
}

/// An answer: complete, or a stream that has begun.
#[derive(Debug)]
pub struct Reply {
    /// Headers besides content type and request id.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: ReplyBody,
}

/// A complete JSON document, or frames as they come.
#[derive(Debug)]
pub enum ReplyBody {
    /// All of it.
    Whole(Bytes),
    /// Frames.
    Stream(pipe::Receiver),
}

impl Proxy {
    /// Serves one request of a key; `key` is as authentication read it. Notes what it finds out, for the record of a refusal.
    ///
    /// # Errors
    /// Any [`Failure`]. A hold has been settled by then: without a charge, or with what a provider has counted or worked on.
    pub async fn run(
        self: &Arc<Self>,
        key: &Key,
        request: Request,
        known: &mut RefusedFacts,
    ) -> Result<Reply, Failure> {
        let prepared = prepare::prepare(self, key, request, known).await?;
        let (admitted, under_way) = admit::admit(self, key, prepared).await?;
        known.held = true;
        let (reply, replied) = oneshot::channel();
        // The customer can drop this function, but not the task that owns the money.
        self.tasks.spawn(serve(admitted, under_way, reply));
        replied.await.unwrap_or(Err(Failure::Internal))
    }
}

/// Serves a request that money is held for, to its settlement.
async fn serve(mut admitted: Box<Admitted>, under_way: Entered, reply: ReplyTo) {
    admitted.begin();
    // Everything is boxed but what passes frames on, here and in the relay: a task keeps room for its largest part for as long as it
    // runs, and tens of thousands of streams do.
    let dispatched = dispatch::dispatch(admitted, &under_way.running.progress, reply);
    let Some(answer) = Box::pin(dispatched).await else {
        return;
    };
    let mut relay = AnswerRelay::of(answer);
    let end = relay.relay().await;
    Box::pin(relay.settle(end)).await;
}

#[cfg(test)]
pub(crate) mod tests;
