//! Answers of `/api/v1`: documents, and errors with the commands' texts.

use farebox_ledger::{LedgerError, Refusal, TopUpWish};
use farebox_selling::Unfit;
use salvo::http::{HeaderName, HeaderValue, StatusCode};
use salvo::prelude::Response;
use serde_json::{Value, json};

use crate::clock;
use crate::proxy::record;
use crate::server::failure;

/// The status of an answer without a body.
pub(super) const NO_CONTENT: u16 = 204;

/// What is answered.
#[derive(Debug)]
pub(super) struct ApiReply {
    /// The HTTP status.
    pub(super) status: u16,
    pub(super) body: ApiContent,
    /// The number of the last act on what is shown.
    pub(super) etag: Option<i64>,
    /// The same request was answered before.
    pub(super) replayed: bool,
}

/// The body of an answer.
#[derive(Debug)]
pub(super) enum ApiContent {
    /// JSON.
    Document(Value),
    /// JSON as it was answered before.
    Stored(String),
    /// A page for print.
    Html(String),
    /// A spreadsheet.
    Csv(String),
}

impl From<Value> for ApiReply {
    fn from(document: Value) -> Self {
        Self {
            status: 200,
            body: ApiContent::Document(document),
            etag: None,
            replayed: false,
        }
    }
}

impl ApiReply {
    /// A page for print.
    pub(super) fn page(html: String) -> Self {
        Self {
            body: ApiContent::Html(html),
            ..Self::from(Value::Null)
        }
    }

    /// A spreadsheet.
    pub(super) fn sheet(csv: String) -> Self {
        Self {
            body: ApiContent::Csv(csv),
            ..Self::from(Value::Null)
        }
    }

    /// With the number of the last act.
    pub(super) fn tagged(self, etag: i64) -> Self {
        Self {
            etag: Some(etag),
            ..self
        }
    }

    /// Writes it.
    pub(super) fn write(self, res: &mut Response) {
        res.status_code(StatusCode::from_u16(self.status).unwrap_or_default());
        let mut headers = Vec::new();
        if let Some(number) = self.etag {
            headers.push(("etag", format!("\"{number}\"")));
        }
        if self.replayed {
            headers.push(("idempotent-replayed", "true".to_owned()));
        }
        failure::headers(res, headers);
        if self.status == NO_CONTENT {
            return;
        }
        let (kind, body) = match self.body {
            ApiContent::Document(document) => ("application/json", document.to_string()),
            ApiContent::Stored(body) => ("application/json", body),
            ApiContent::Html(body) => ("text/html; charset=utf-8", body),
            ApiContent::Csv(body) => ("text/csv; charset=utf-8", body),
        };
        failure::json(res, body);
        // In the place of the type that `json` has set.
        failure::headers(res, vec![("content-type", kind.to_owned())]);
    }
}

/// Why there is no document.
#[derive(Debug)]
pub(super) struct ApiError {
    /// The HTTP status.
    pub(super) status: u16,
    /// One word for programs.
    pub(super) code: &'static str,
    /// What is wrong, and what to do instead.
    pub(super) message: String,
    /// Facts for programs.
    pub(super) details: Box<Value>,
    /// Headers beside the usual ones.
    pub(super) headers: Vec<(&'static str, String)>,
}

impl ApiError {
    /// An error of this status.
    pub(super) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            details: Box::new(json!({})),
            headers: Vec::new(),
        }
    }

    /// A 400.
    pub(super) fn bad(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(400, code, message)
    }

    /// A 404.
    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, "not_found", message)
    }

    /// With facts for programs.
    pub(super) fn with(self, details: Value) -> Self {
        Self {
            details: Box::new(details),
            ..self
        }
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Writes it.
    pub(super) fn write(self, res: &mut Response, request_id: &str) {
        res.status_code(StatusCode::from_u16(self.status).unwrap_or_default());
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                res.headers_mut()
                    .insert(HeaderName::from_static(name), value);
            }
        }
        let document = json!({
            "error": { "code": self.code, "message": self.message, "details": self.details },
            "request_id": request_id,
        });
        failure::json(res, document.to_string());
    }
}

impl From<LedgerError> for ApiError {
    fn from(error: LedgerError) -> Self {
        let message = error.to_string();
        match error {
            LedgerError::Refused(refusal) => refused(&refusal, message),
            LedgerError::Unavailable(_) | LedgerError::Unusable(_) | LedgerError::Misplaced(_) => {
                Self::new(503, "ledger_unavailable", message).header("retry-after", "5")
            }
            LedgerError::Unknown(_) => {
                let message = format!(
                    "{message}; send the same request with the same Idempotency-Key again: it is applied only once"
                );
                Self::new(503, "outcome_unknown", message).header("retry-after", "1")
            }
        }
    }
}

impl From<Unfit> for ApiError {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::Incomplete(field, why) => {
                let error = Self::bad("missing_field", why);
                match field {
                    Some(field) => error.with(json!({ "field": field })),
                    None => error,
                }
            }
            Unfit::Wrong(why) => Self::bad("invalid_field", why),
            Unfit::Member(name, why) => Self::bad("invalid_field", format!("{name}: {why}")),
            Unfit::NoCharge(request) => {
                let message = format!("there is no charge of {}", record::request_id(request));
                Self::new(404, "request_not_found", message)
            }
            Unfit::NoWish(named) => {
                let message = format!(
                    "{named:?} is not the reference of a top_up.wanted; they look like {}",
                    TopUpWish::EXAMPLE
                );
                Self::new(404, "top_up_not_found", message)
            }
            Unfit::OfAnother(payment, customer) => {
                let message =
                    format!("payment {payment:?} is of customer {customer}; send this there");
                let error = Self::new(409, "payment_of_another_customer", message);
                error.with(json!({ "customer": customer }))
            }
            Unfit::Unread(error) => error.into(),
        }
    }
}

/// A rule said no.
fn refused(refusal: &Refusal, message: String) -> ApiError {
    let (status, code) = match refusal {
        Refusal::NoSuchEvent(_) => (410, "event_gone"),
        Refusal::NoSuchKey(_) => (404, "key_not_found"),
        Refusal::NoSuchCustomer(_) => (404, "customer_not_found"),
        Refusal::NoSuchLot(_) => (404, "lot_not_found"),
        Refusal::NoSuchGrant(_) => (404, "grant_not_found"),
        Refusal::NoSuchSubscription(_) => (404, "subscription_not_found"),
        Refusal::NoSuchLink => (404, "link_not_found"),
        Refusal::NoSuchReservation(_) => (404, "reservation_not_found"),
        Refusal::SoldOut(_) => (409, "sold_out"),
        Refusal::HasPlan(..) => (409, "has_plan"),
        Refusal::NoSuchPayment(_) => (404, "payment_not_found"),
        Refusal::ExternalIdUsed { .. } => (409, "external_id_used"),
        Refusal::ReferenceUsed { .. } => (409, "reference_used"),
        Refusal::NotActive(_) => (409, "key_not_active"),
        Refusal::CustomerStopped(_) => (409, "customer_not_active"),
        Refusal::Insufficient { .. } => (409, "insufficient_balance"),
        Refusal::NotRefundable { .. } => (409, "not_refundable"),
        Refusal::TokenStopped(_) => (401, "token_stopped"),
        Refusal::ChangedSince { .. } => (412, "changed_meanwhile"),
        Refusal::NotAllowed(_) => (403, "not_allowed"),
        Refusal::DailyReached(_) => (429, "daily_reached"),
        Refusal::KeyOfOtherBody => (422, "idempotency_key_reused"),
        Refusal::StillRunning => (409, "still_running"),
        Refusal::Limit(_) => (400, "limit"),
        Refusal::Unprintable { .. } => (422, "unprintable_character"),
        Refusal::NotApplicable(_) => (409, "not_applicable"),
        _ => (409, "refused"),
    };
    let details = match refusal {
        Refusal::Insufficient {
            needed,
            available,
            held,
        } => json!({ "needed": needed, "available": available, "held": held }),
        Refusal::ChangedSince { last, .. } => json!({ "etag": last.to_string() }),
        Refusal::NotRefundable { refundable, .. } => json!({ "refundable": refundable }),
        Refusal::DailyReached(reached) => json!({
            "what": reached.what,
            "most": reached.what.shown(reached.most),
            "done": reached.what.shown(reached.done),
            "reserved": reached.what.shown(reached.reserved),
            "ends_at": reached.ends_at,
        }),
        Refusal::SoldOut(sold_out) => {
            json!({ "free_at": sold_out.free_at, "most": sold_out.most })
        }
        _ => match refusal.taken() {
            Some((_, customer)) => json!({ "customer": customer }),
            None => json!({}),
        },
    };
    let error = ApiError::new(status, code, message).with(details);
    let again_at = match refusal {
        Refusal::DailyReached(reached) => Some(reached.ends_at),
        Refusal::SoldOut(sold_out) => sold_out.free_at,
        _ => None,
    };
    match again_at {
        Some(at) => {
            let left = at.millis().saturating_sub(clock::now().millis());
            // Rounded up: who comes back a moment too early is refused again.
            let seconds = left.div_euclid(1_000).max(0).saturating_add(1);
            error.header("retry-after", seconds.to_string())
        }
        None => error,
    }
}
