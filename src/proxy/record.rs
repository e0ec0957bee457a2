//! The record of an ended or refused request: for the log line, the metrics and the live views. Never a body.

use std::borrow::Cow;
use std::error::Error as _;
use std::fmt::Debug;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use farebox_ledger::text::{SECRET_PREFIX, is_unseen};
use farebox_ledger::{Amount, Evidence, KeyId, OperationId, Owed, Timestamp, Usage};
use farebox_protocol::{CallKind, Family};
use serde::Serialize;
use tokio::time::Instant;

use super::Failure;
use crate::clock;
use crate::config::Lookup;
use crate::metering::Miscount;
use crate::upstream::Attempt;
use crate::upstream::redact::Redacted;

/// Characters kept of a model's name, and of a refused field's.
const LONGEST_NAME: usize = 100;
/// Characters kept of what a customer was told.
const LONGEST_MESSAGE: usize = 1_000;

/// What a customer was told instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Told {
    /// The error's code, or the reason's word.
    pub code: String,
    /// The field that it names.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// The text. It may repeat the customer's words, so neither the log nor `/live` has it.
    #[serde(skip)]
    pub message: String,
}

impl Told {
    /// What a failure tells.
    #[must_use]
    pub fn of(failure: &Failure) -> Self {
        let (code, field) = match failure {
            Failure::BadRequest(bad) => (bad.code, bad.param.as_deref()),
            Failure::Upstream(_, error) => (error.code.as_deref(), error.param.as_deref()),
            _ => (None, None),
        };
        Self {
            code: clean(code.unwrap_or(failure.reason()), LONGEST_NAME),
            field: clean(field.unwrap_or_default(), LONGEST_NAME),
            message: clean(&failure.message(), LONGEST_MESSAGE),
        }
    }
}

/// What was known about a request before it was refused, for its record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RefusedFacts {
    /// The key, if its secret was valid.
    pub key: Option<KeyId>,
    /// The model's name as the customer wrote it.
    pub asked: String,
    /// The published slug behind that name.
    pub slug: String,
    /// The call that was asked for on its path.
    pub call: Option<CallKind>,
    /// Whether its path is free.
    pub free: bool,
    /// Whether money was held for it, so that its settlement writes the record.
    pub held: bool,
}

impl RefusedFacts {
    /// Nothing known yet, about a request on a free path.
    #[must_use]
    pub fn on_free_path() -> Self {
        Self {
            free: true,
            ..Self::default()
        }
    }

    /// Notes the request's name for its model, and the catalog's answer.
    pub(crate) fn model(&mut self, asked: &str, found: &Lookup<'_>) {
        asked.clone_into(&mut self.asked);
        match found {
            Lookup::Found(model) => self.slug.clone_from(&model.slug),
            Lookup::Retired(retired, _) => self.slug.clone_from(&retired.slug),
            Lookup::Unknown(_) => {}
        }
    }
}

/// Something odd about how a request was served, which the operator should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Oddity {
    /// A dearer class than was asked for.
    Dearer(&'static str),
    /// A word for a class that nobody knows.
    Unknown(Redacted),
    /// No word for its class, although the target has named one before.
    Missing,
    /// A target refused a pinned field.
    PinRefused(String, &'static str),
    /// Another model made a part of the answer.
    OtherModel,
    /// The answer told a cost that cannot be, and this is what is known of it.
    CostDoubted(String),
}

/// One ended or refused request.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    /// Ours.
    #[serde(serialize_with = "shown")]
    pub request_id: OperationId,
    /// When it ended.
    pub at: Timestamp,
    /// The key, if one was recognised.
    pub key: Option<KeyId>,
    /// Where it came from.
    #[serde(flatten)]
    pub origin: Origin,
    /// The public slug; empty if none was found.
    pub slug: String,
    /// The requested model as the customer wrote it: a slug, an alias, or an unknown name.
    pub asked: String,
    /// The path's family.
    pub family: &'static str,
    /// `provider/model` that answered.
    pub target: String,
    /// HTTP status the customer got.
    pub status: u16,
    /// Why it ended.
    pub end_reason: String,
    /// The error text if no money was held, else empty. It may repeat the customer's words, so only the customer gets to see it.
    #[serde(skip)]
    pub message: String,
    /// What the customer was told, if the request was refused or failed.
    #[serde(flatten)]
    pub told: Option<Told>,
    /// The answer's own id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_id: Option<String>,
    /// Whether it was refused on a free path.
    #[serde(skip)]
    pub free: bool,
    /// Disjoint token counts.
    pub usage: Usage,
    /// The class at whose price it is charged; `None` is the standard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Cow<'static, str>>,
    /// What is odd about how it was served.
    #[serde(skip)]
    pub oddities: Vec<Oddity>,
    /// Taken from the key.
    pub charge: Amount,
    /// The hold's final size.
    pub hold: Amount,
    /// How often the hold was given another size.
    #[serde(skip_serializing_if = "is_zero")]
    pub moves: u32,
    /// To what its output limit was lowered for want of money.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub limit: String,
    /// How long it waited for money, in milliseconds.
    pub waited_ms: u32,
    /// The operator's loss.
    pub loss: Amount,
    /// What providers may bill beyond the charge, at the catalog's prices.
    pub exposure: Amount,
    /// What it cost the operator, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Amount>,
    /// What the answer told that it costs, and what its target's `cost` says, where both are believed.
    #[serde(skip)]
    pub costs: Option<(Amount, Amount)>,
    /// The share of both that failed targets may bill.
    #[serde(skip)]
    pub failed: Vec<(String, Owed)>,
    /// Who counted; `None` if nothing was counted.
    #[serde(skip)]
    pub evidence: Option<Evidence>,
    /// Why the provider's own count was not charged at the end of an answer.
    #[serde(skip)]
    pub miscount: Option<Miscount>,
    /// Members of the answer that the family does not have and that were removed.
    #[serde(skip)]
    pub strange: Vec<Redacted>,
    /// From arrival to the first answer byte.
    pub first_byte_ms: Option<u32>,
    /// From arrival to the end.
    pub total_ms: u32,
    /// The gateway's own time for an admitted request: from arrival to dispatch, plus the settlement.
    pub own_us: Option<u32>,
    /// Losses in translation: of the request as in `x-farebox-lost`, of the answer prefixed with `answer.`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub lost: String,
    /// What was taken out of the request, as in `x-farebox-removed`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub removed: String,
    /// Failed attempts, for the operator only.
    #[serde(serialize_with = "in_words")]
    pub attempts: Vec<Attempt>,
}

impl Record {
    /// A request that was refused before any money was held for it.
    #[must_use]
    pub fn refused(
        failure: &Failure,
        family: Family,
        known: RefusedFacts,
        request_id: OperationId,
        arrived: Instant,
        origin: Origin,
    ) -> Self {
        if let Some(cause) = failure.source() {
            tracing::debug!(%request_id, cause, "refused");
        }
        Self {
            request_id,
            at: clock::now(),
            key: known.key,
            origin,
            slug: known.slug,
            asked: asked(&known.asked),
            family: known.call.map_or(family.name(), CallKind::name),
            target: String::new(),
            status: failure.status(family),
            end_reason: failure.reason().to_owned(),
            message: failure.message(),
            told: Some(Told::of(failure)),
            answer_id: None,
            free: known.free,
            usage: Usage::default(),
            class: None,
            oddities: Vec::new(),
            charge: Amount::ZERO,
            hold: Amount::ZERO,
            moves: 0,
            limit: String::new(),
            waited_ms: 0,
            loss: Amount::ZERO,
            exposure: Amount::ZERO,
            cost: None,
            costs: None,
            failed: Vec::new(),
            evidence: None,
            miscount: None,
            strange: Vec::new(),
            first_byte_ms: None,
            total_ms: u32::try_from(arrived.elapsed().as_millis()).unwrap_or(u32::MAX),
            own_us: None,
            lost: String::new(),
            removed: String::new(),
            attempts: Vec::new(),
        }
    }
}

impl Record {
    /// Whether its answer reached an end at which the provider's count is charged or found missing.
    pub fn counted_at_its_end(&self) -> bool {
        self.miscount.is_some()
            || (self.evidence == Some(Evidence::Provider) && self.usage != Usage::default())
    }
}

/// Where a request came from. For the log only: neither money nor keys depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Origin {
    /// Its address.
    pub client: Option<IpAddr>,
    /// Whether it came over TLS.
    pub secure: bool,
}

/// Observes ended requests.
pub trait Observer: Send + Sync + Debug {
    /// Called once for each ended request.
    fn ended(&self, record: Arc<Record>);
}

/// Several observers; each gets every record.
#[derive(Debug)]
pub struct FanOut(pub Vec<Arc<dyn Observer>>);

impl Observer for FanOut {
    fn ended(&self, record: Arc<Record>) {
        for observer in &self.0 {
            // A settled request is answered even if an observer panics.
            let told = AssertUnwindSafe(|| observer.ended(Arc::clone(&record)));
            if catch_unwind(told).is_err() {
                tracing::error!(?observer, "an observer of requests failed");
            }
        }
    }
}

/// The customer's name for a model, made safe for a log: shortened, without characters that could forge a line. A client whose
/// fields were mixed up sends its key there.
pub(super) fn asked(name: &str) -> String {
    clean(name, LONGEST_NAME)
}

fn clean(text: &str, most: usize) -> String {
    let text: String = text.chars().filter(|c| !is_unseen(*c)).collect();
    let lower = text.trim().to_ascii_lowercase();
    if lower.starts_with("sk-") || lower.contains(SECRET_PREFIX) {
        return "(a key)".to_owned();
    }
    text.chars().take(most).collect()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The operation behind a request id.
pub fn operation(id: &str) -> Option<OperationId> {
    id.strip_prefix("req_")?.parse().ok()
}

/// A request id as customers see it.
pub fn request_id(id: OperationId) -> String {
    format!("req_{id}")
}

fn shown<S: serde::Serializer>(id: &OperationId, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(&request_id(*id))
}

fn in_words<S: serde::Serializer>(attempts: &[Attempt], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(attempts.iter().map(ToString::to_string))
}
