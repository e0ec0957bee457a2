//! `/requests/{id}`: what became of one request: what the gateway remembers of it, its open hold, and its entry in the journal.
//!
//! The id is ours, or that of the answer. Refused requests have no entry, so they are known only while they are remembered.

use std::sync::Arc;

use salvo::http::StatusCode;
use salvo::prelude::{Request, Response, handler};
use serde_json::{Value, json};

use super::Admin;
use crate::proxy::{Record, RunningMoney, record};
use crate::server::failure;
use crate::telemetry::REMEMBERED;
use crate::upstream::ProgressStage;
use farebox_ledger::{OpenHold, document};
use farebox_selling::request::RequestDocument;

/// Most open holds that are searched for a running request.
const MOST_HOLDS: usize = 20_000;

/// Answers `/requests/{id}`.
pub(super) struct OneRequestHandler {
    admin: Arc<Admin>,
}

#[handler]
impl OneRequestHandler {
    pub(super) fn new(admin: Arc<Admin>) -> Self {
        Self { admin }
    }

    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let id = req.param::<String>("id").unwrap_or_default();
        match find(&self.admin, &id).await {
            Some(document) => failure::json(res, document.to_string()),
            None => {
                res.status_code(StatusCode::NOT_FOUND);
                failure::json(res, json!({ "error": unknown() }).to_string());
            }
        }
    }
}

/// That nothing is known of a request, and who may know more.
pub(super) fn unknown() -> String {
    format!(
        "no such request is running, among the last {REMEMBERED} of this gateway, or charged in its ledger; \
         `farebox show ID` also finds payments, keys and labels"
    )
}

/// What became of the request with this id: ours, or that of its answer.
pub(super) async fn find(admin: &Admin, id: &str) -> Option<Value> {
    let ledger = &admin.ledger;
    let known = admin.telemetry.recent.find(id);
    let ours = known.as_ref().map(|known| known.request_id);
    let ours = ours.or_else(|| record::operation(id));
    // A ledger that does not answer leaves its part out: what this gateway remembers is worth showing alone.
    let (mut entry, mut running) = (None, None);
    if let Some(ours) = ours {
        entry = ledger.entry(ours).await.unwrap_or_default();
        if known.is_none() && entry.is_none() {
            let holds = ledger.open_holds(None, MOST_HOLDS).await;
            let mut holds = holds.unwrap_or_default().into_iter();
            running = holds.find(|hold| hold.request == ours);
        }
    }
    if known.is_none() && entry.is_none() && running.is_none() {
        return None;
    }
    let stage = ours.and_then(|ours| admin.front.proxy.under_way.find(ours));
    Some(json!(RequestDocument {
        request_id: ours.map(record::request_id),
        record: known.as_deref().map(remembered),
        running: running.as_ref().map(hold),
        under_way: stage.as_ref().map(under_way),
        entry: entry.as_ref().map(document::json),
    }))
}

/// Where a running request is, after which failures, and what money does to it.
fn under_way((stage, money): &(ProgressStage, RunningMoney)) -> Value {
    let asked = stage.asked.as_ref();
    let waits = money.waits.map(|since| since.elapsed());
    json!({
        "waits_ms": waits.map(|waits| waits.as_millis()),
        "waited_ms": money.waited.as_millis(),
        "limit": money.limit,
        "attempts": stage.attempts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "target": asked.map(|(target, _)| target),
        "since": asked.map(|(_, since)| since),
        "answers": stage.answers,
    })
}

/// A remembered request, with what its customer was told.
fn remembered(record: &Record) -> Value {
    let mut shown = json!(record);
    if let (Some(fields), Some(told)) = (shown.as_object_mut(), &record.told) {
        fields.insert("message".to_owned(), told.message.clone().into());
    }
    shown
}

fn hold(hold: &OpenHold) -> Value {
    json!({
        "key": hold.key, "slug": hold.slug, "family": hold.family, "hold": hold.amount, "used": hold.used, "at": hold.at,
    })
}
