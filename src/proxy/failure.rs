//! Every way a request can fail: its status, its text and the headers that tell clients what to do.
//!
//! A failure is created where it is found and becomes an answer once, at the edge. Its text names the remedy and never identifies a
//! provider's account.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use farebox_door::{BodyFault, NotRead, TurnedAway};
use farebox_ledger::{Amount, CustomerStatus, KeyStatus, LedgerError, Refusal};
use farebox_protocol::{BadRequest, Case, ErrorBody, Family, Remedy};

use super::balance::{Balance, ToldCap, balance_in_use, out_of_balance};
use super::exposure_words;
use crate::billing::exposure::ToldStop;
use crate::config::{Lookup, Shop};
use crate::metering::Shortfall;
use crate::turns::WorkUndone;
use crate::upstream::GivenUp;
use crate::upstream::redact::CustomerError;

/// The longest `retry-after` ever sent; SDKs hang silently on longer ones.
const LONGEST_RETRY_AFTER: u128 = 5;

/// For a customer whose bodies take longer to read than there is time for.
const LATE: &str = "their bodies take more than this key's share of the gateway's time; send fewer at once, or smaller ones";

/// Why a request is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// No key, or an unknown one. The text says which.
    Unauthenticated(&'static str),
    /// The key is blocked, expired or revoked.
    KeyState(KeyStatus),
    /// The key's customer is suspended or closed.
    CustomerState(CustomerStatus),
    /// The path is for owner keys, and this is a member.
    OwnersOnly,
    /// The idempotency key came with another body before.
    OtherBody,
    /// A request with the same idempotency key still runs elsewhere.
    StillRunning,
    /// The key may not use this model.
    ModelNotAllowed(String),
    /// No such path; the text names the right one.
    NoPath(String),
    /// The path is not called with this method; the text says which.
    WrongMethod(String),
    /// The client opened a WebSocket.
    NoWebSocket,
    /// The key has no ended request with this id.
    NoRequest(String),
    /// The name is not published; the nearest slugs.
    UnknownModel(String, Vec<String>),
    /// The slug is no longer sold; its replacement.
    RetiredModel(String, Option<String>),
    /// This path does not serve the slug; the path that does.
    OtherPath(String, &'static str),
    /// The request itself is wrong.
    BadRequest(BadRequest),
    /// The body is larger than this many bytes.
    TooLarge(usize),
    /// The body has a content coding that is not supported.
    UnknownCoding,
    /// The body has another content type than the one that the path takes.
    WrongType(&'static str),
    /// Whoever shows no key asks for more than strangers get; when to come back.
    Stranger(Duration),
    /// The key sends too many requests; when to come back.
    RateLimited(String, Duration),
    /// Too much of the key's last days was not paid for. Without a stop, only its requests that run may leave so much.
    ExposureLimit(Option<Box<ToldStop>>),
    /// The network address behind a trusted proxy has too many requests under way.
    Crowded,
    /// The customer's balance, or a cap, has less than this request needs.
    OutOfBalance(Balance),
    /// The key could pay if running requests did not hold the money.
    BalanceInUse(Balance),
    /// The upstream blames the request.
    Upstream(u16, CustomerError),
    /// No target is left to try.
    NoTarget(Option<Duration>),
    /// A whole answer took too long or is too large; it is charged.
    GivenUp(GivenUp),
    /// The ledger cannot be written, and why; customers are not told.
    Ledger(LedgerError),
    /// The customer has a price list that this gateway's catalog does not.
    PriceListUnknown,
    /// Too many bytes in flight.
    Overloaded,
    /// Our own fault.
    Internal,
}

impl Failure {
    /// The refusal for lack of money, which distinguishes an empty balance from money held by running requests.
    #[must_use]
    pub fn balance(
        slug: &str,
        short: &Shortfall,
        (available, held): (Amount, Amount),
        limit_field: &'static str,
    ) -> Self {
        let Shortfall {
            needed,
            affordable_output,
            remedy,
        } = *short;
        Self::short(Balance {
            slug: Some(slug.to_owned()),
            needed,
            available,
            held,
            cap: None,
            // What has no price has no number.
            affordable_output: Some(affordable_output).filter(|tokens| *tokens < u64::MAX),
            remedy,
            limit_field,
            seller: None,
        })
    }

    /// The refusal of a request whose body was not read to its end, because the key could not pay for any of its size.
    #[must_use]
    pub fn unread(needed: Amount, available: Amount, held: Amount) -> Self {
        Self::short(Balance {
            slug: None,
            needed,
            available,
            held,
            cap: None,
            // Nothing buys nothing, whatever the model.
            affordable_output: (available <= Amount::ZERO).then_some(0),
            remedy: None,
            limit_field: "",
            seller: None,
        })
    }

    fn short(balance: Balance) -> Self {
        let free_again = balance.held > Amount::ZERO
            && balance
                .available
                .checked_add(balance.held)
                .is_some_and(|all| all >= balance.needed);
        if free_again {
            Self::BalanceInUse(balance)
        } else {
            Self::OutOfBalance(balance)
        }
    }

    /// The same for a request that a cap has no room for: available and held are those of the cap's window.
    #[must_use]
    pub fn bound_by(mut self, cap: Option<Box<ToldCap>>) -> Self {
        if let Self::OutOfBalance(balance) | Self::BalanceInUse(balance) = &mut self {
            balance.cap = cap;
        }
        self
    }

    /// The same with the seller's words, if it is for lack of money.
    #[must_use]
    pub fn told_by(mut self, shop: &Arc<Shop>) -> Self {
        if let Self::OutOfBalance(balance) = &mut self {
            balance.seller.get_or_insert_with(|| Arc::clone(shop));
        }
        self
    }

    /// The same for a known program: with 402 if it repeats less at that and the seller wants it so, and with what to set in it, found
    /// by one of the names of what was refused.
    #[must_use]
    pub fn told_to<'a>(
        mut self,
        shop: &Shop,
        ends_at_402: bool,
        setting: impl FnOnce(Vec<&str>) -> Option<&'a str>,
    ) -> Self {
        match &mut self {
            Self::OutOfBalance(balance) if ends_at_402 => {
                balance.seller = Some(Arc::new(Shop {
                    out_of_balance_status: shop.out_of_balance_status.where_402_ends_it(),
                    ..shop.clone()
                }));
            }
            Self::BadRequest(bad) => {
                let field = bad
                    .param
                    .as_deref()
                    .and_then(|at| at.split(['.', '[']).next());
                let sets = bad.remedy.and_then(Remedy::sets);
                let names = [bad.code, field, sets].into_iter().flatten().collect();
                if let Some(setting) = setting(names) {
                    let message = bad.message.trim_end_matches('.');
                    bad.message = format!("{message} ({setting})");
                }
            }
            _ => {}
        }
        self
    }

    /// The refusal of a name that is not served.
    #[must_use]
    pub fn no_model(name: &str, lookup: Lookup<'_>) -> Self {
        match lookup {
            Lookup::Retired(retired, replacement) => {
                Self::RetiredModel(retired.slug.clone(), replacement.map(str::to_owned))
            }
            Lookup::Unknown(nearest) => Self::UnknownModel(
                name.to_owned(),
                nearest.into_iter().map(str::to_owned).collect(),
            ),
            Lookup::Found(model) => Self::ModelNotAllowed(model.slug.clone()),
        }
    }

    /// The refusal of a value in the query of a free path.
    #[must_use]
    pub fn bad_query(param: &str, message: String) -> Self {
        Self::BadRequest(BadRequest::at(param, message))
    }

    /// What kind of error this is on the wire.
    pub const fn case(&self) -> Case {
        match self {
            Self::Unauthenticated(_) => Case::Unauthenticated,
            Self::KeyState(_)
            | Self::CustomerState(_)
            | Self::ModelNotAllowed(_)
            | Self::OwnersOnly => Case::Forbidden,
            Self::NoPath(_) | Self::NoRequest(_) => Case::NoPath,
            Self::WrongMethod(_) | Self::NoWebSocket => Case::WrongMethod,
            Self::UnknownModel(..) | Self::RetiredModel(..) | Self::OtherPath(..) => Case::NoModel,
            Self::TooLarge(_) | Self::Upstream(413, _) => Case::TooLarge,
            Self::BadRequest(_)
            | Self::Upstream(..)
            | Self::UnknownCoding
            | Self::WrongType(_)
            | Self::OtherBody
            | Self::StillRunning => Case::BadRequest,
            Self::RateLimited(..) | Self::ExposureLimit(_) | Self::Crowded | Self::Stranger(_) => {
                Case::RateLimited
            }
            Self::OutOfBalance(_) => Case::OutOfBalance,
            Self::BalanceInUse(_) => Case::BalanceInUse,
            Self::NoTarget(_) | Self::GivenUp(_) => Case::NoTarget,
            Self::Ledger(_) | Self::PriceListUnknown | Self::Overloaded => Case::Unavailable,
            Self::Internal => Case::Internal,
        }
    }

    /// One word for the log and the metrics.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Unauthenticated(_) => "invalid_api_key",
            Self::KeyState(KeyStatus::Expired) => "key_expired",
            Self::KeyState(KeyStatus::Revoked) => "key_revoked",
            Self::KeyState(_) => "key_blocked",
            Self::CustomerState(CustomerStatus::Closed) => "customer_closed",
            Self::CustomerState(_) => "customer_suspended",
            Self::ModelNotAllowed(_) => "model_not_allowed",
            Self::OwnersOnly => "owner_key_required",
            Self::OtherBody => "idempotency_key_reused",
            Self::StillRunning => "still_running",
            Self::NoPath(_) => "not_found",
            Self::WrongMethod(_) => "method_not_allowed",
            Self::NoWebSocket => "websocket_not_offered",
            Self::NoRequest(_) => "request_not_found",
            Self::UnknownModel(..) | Self::OtherPath(..) => "model_not_found",
            Self::RetiredModel(..) => "model_retired",
            Self::BadRequest(_) => "bad_request",
            Self::TooLarge(_) => "request_too_large",
            Self::UnknownCoding => "unsupported_encoding",
            Self::WrongType(_) => "unsupported_content_type",
            Self::Stranger(_) => "stranger_limit_exceeded",
            Self::RateLimited(..) => "rate_limit_exceeded",
            Self::ExposureLimit(_) => "exposure_limit",
            Self::Crowded => "address_limit_exceeded",
            Self::OutOfBalance(Balance { cap: Some(_), .. }) => "cap_reached",
            Self::OutOfBalance(_) => "out_of_balance",
            Self::BalanceInUse(_) => "balance_in_use",
            Self::Upstream(..) => "upstream_refused",
            Self::NoTarget(_) => "upstream_unavailable",
            Self::GivenUp(_) => "given_up",
            Self::Ledger(_) => "ledger_unavailable",
            Self::PriceListUnknown => "price_list_unknown",
            Self::Overloaded => "overloaded",
            Self::Internal => "internal",
        }
    }

    /// The HTTP status with which a service of this family answers such a failure.
    pub fn status(&self, family: Family) -> u16 {
        match self {
            Self::Upstream(status, _) => *status,
            Self::UnknownCoding | Self::WrongType(_) => 415,
            Self::NoWebSocket => 426,
            Self::OtherBody => 422,
            Self::StillRunning => 409,
            Self::OutOfBalance(Balance {
                seller: Some(seller),
                ..
            }) => seller.out_of_balance_status.code(),
            _ => family.protocol().words(self.case()).status,
        }
    }

    /// The body in a family.
    pub fn body(&self, family: Family, request_id: String) -> ErrorBody {
        let words = family.protocol().words(self.case());
        let code = words.code.map(str::to_owned);
        let ours = ErrorBody {
            kind: words.kind.to_owned(),
            code,
            param: None,
            message: self.message(),
            details: self.details(has_codes(family)),
            request_id,
        };
        match self {
            Self::KeyState(_)
            | Self::CustomerState(_)
            | Self::ModelNotAllowed(_)
            | Self::OwnersOnly
            | Self::NoRequest(_)
            | Self::PriceListUnknown
            | Self::ExposureLimit(_) => ErrorBody {
                code: words.code.map(|_| self.reason().to_owned()),
                ..ours
            },
            // As other words of a path for programs.
            Self::OtherBody | Self::StillRunning => ErrorBody {
                code: Some(self.reason().to_owned()),
                ..ours
            },
            Self::BadRequest(bad) => ErrorBody {
                code: bad.code.map(str::to_owned),
                param: bad.param.clone(),
                ..ours
            },
            Self::Upstream(_, error) => ErrorBody {
                kind: error.kind.clone().unwrap_or(ours.kind),
                code: error.code.clone().or(ours.code),
                param: error.param.clone(),
                ..ours
            },
            _ => ours,
        }
    }

    /// Headers that tell clients whether and when to retry.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Unauthenticated(_) => {
                vec![
                    ("x-should-retry", "false".to_owned()),
                    ("www-authenticate", "Bearer realm=\"farebox\"".to_owned()),
                ]
            }
            // HTTP wants the name of what to use instead.
            Self::NoWebSocket => vec![("upgrade", "HTTP/1.1".to_owned())],
            // A retry would cost the same again.
            Self::GivenUp(_) => vec![("x-should-retry", "false".to_owned())],
            // Clients built on the AI SDK ignore the first header and retry any 429. The second makes them give up after a second
            // or two instead of a minute, so that the customer reads the reason. The number of their retries is fixed, and a
            // refusal is cheap. An exposure limit is lifted in minutes, and no client should wait for that.
            Self::OutOfBalance(_) | Self::ExposureLimit(Some(_)) => vec![
                ("x-should-retry", "false".to_owned()),
                ("retry-after-ms", "250".to_owned()),
            ],
            Self::BalanceInUse(_) | Self::Crowded | Self::StillRunning => {
                vec![("retry-after", "1".to_owned())]
            }
            Self::RateLimited(_, wait) | Self::Stranger(wait) => {
                vec![("retry-after", seconds(*wait))]
            }
            Self::NoTarget(wait) => {
                vec![("retry-after", wait.map_or_else(|| "5".to_owned(), seconds))]
            }
            Self::Ledger(_)
            | Self::PriceListUnknown
            | Self::Overloaded
            | Self::ExposureLimit(None) => vec![("retry-after", "5".to_owned())],
            _ => Vec::new(),
        }
    }

    /// The text for the customer.
    pub fn message(&self) -> String {
        match self {
            Self::Unauthenticated(why) => format!("{why}; send your key as \"Authorization: Bearer <API_KEY>\""),
            Self::KeyState(status) => format!("this key is {status}; ask the seller of this key"),
            Self::CustomerState(status) => {
                format!("the account of this key is {status}; ask the seller of this key")
            }
            Self::ModelNotAllowed(slug) => {
                format!("this key may not use the model {slug:?}; GET /v1/models lists the ones it may use")
            }
            Self::OwnersOnly => {
                "only an owner key makes and manages keys, and this key is a member; use an owner key of this account, or ask its holder"
                    .to_owned()
            }
            Self::OtherBody => Refusal::KeyOfOtherBody.to_string(),
            Self::StillRunning => Refusal::StillRunning.to_string(),
            Self::NoPath(text) | Self::WrongMethod(text) => text.clone(),
            Self::NoWebSocket => {
                "WebSockets are not offered here: send the request with POST, over HTTP".to_owned()
            }
            Self::NoRequest(id) => {
                let shown: String = id.chars().take(100).collect();
                format!("no generation of this key has the id {shown:?}; a running request appears here once it has finished")
            }
            Self::UnknownModel(asked, nearest) => unknown_model(asked, nearest),
            Self::RetiredModel(slug, Some(replacement)) => {
                format!("model not found: {slug:?} was retired; use {replacement:?} instead")
            }
            Self::RetiredModel(slug, None) => {
                format!("model not found: {slug:?} was retired; GET /v1/models lists what is served now")
            }
            Self::OtherPath(slug, path) => format!("model not found on this path: {slug:?} is served on {path}"),
            Self::BadRequest(bad) => bad.message.clone(),
            Self::UnknownCoding => {
                "this content-encoding is not supported; send the body uncompressed, or as gzip or zstd".to_owned()
            }
            Self::TooLarge(limit) => BodyFault::TooLarge(*limit).message(),
            Self::WrongType(expected) => BodyFault::WrongType(expected).message(),
            Self::Stranger(wait) => TurnedAway::Beyond(*wait).message().to_owned(),
            Self::RateLimited(what, _) => format!("too many requests with this key: {what}"),
            Self::ExposureLimit(stop) => exposure_words::message(stop.as_deref()),
            Self::Crowded => "too many requests from this network address at the same time; retry when one of them has ended".to_owned(),
            Self::OutOfBalance(balance) => out_of_balance(balance),
            Self::BalanceInUse(balance) => balance_in_use(balance),
            Self::Upstream(_, error) => error.message.clone(),
            Self::NoTarget(_) => "this model is unavailable at the moment; use another model, or try again later".to_owned(),
            Self::GivenUp(why) => format!(
                "the answer was given up: {why}; what was made until then is charged; ask with \"stream\": true, or for less output"
            ),
            Self::Ledger(_) => "billing is unavailable at the moment, so no request is served; try again later".to_owned(),
            Self::PriceListUnknown => "the prices of this account are not known here, so no request is served; ask the seller of this key".to_owned(),
            Self::Overloaded => "the gateway is overloaded at the moment; try again later".to_owned(),
            Self::Internal => "something went wrong on our side; nothing was charged".to_owned(),
        }
    }

    /// What programs can act on. Only families with error codes get the amounts; the libraries of the others expect other numbers.
    fn details(&self, with_numbers: bool) -> Option<serde_json::Value> {
        match self {
            Self::BadRequest(bad) => bad.details(with_numbers),
            Self::OutOfBalance(balance) | Self::BalanceInUse(balance) => {
                balance.details(with_numbers)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message())
    }
}

impl Error for Failure {
    /// For the operator: the message of a fault says nothing of what is behind it.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Ledger(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BadRequest> for Failure {
    fn from(bad: BadRequest) -> Self {
        Self::BadRequest(bad)
    }
}

impl From<BodyFault> for Failure {
    fn from(fault: BodyFault) -> Self {
        match fault {
            BodyFault::TooLarge(most) => Self::TooLarge(most),
            BodyFault::WrongType(expected) => Self::WrongType(expected),
            BodyFault::TooSlow | BodyFault::SlowForm | BodyFault::Broken | BodyFault::Trailers => {
                Self::BadRequest(BadRequest::new(fault.message()))
            }
        }
    }
}

impl From<NotRead<Failure>> for Failure {
    fn from(unread: NotRead<Failure>) -> Self {
        match unread {
            NotRead::Refused(failure) => failure,
            NotRead::Fault(fault) => fault.into(),
        }
    }
}

impl From<TurnedAway> for Failure {
    fn from(why: TurnedAway) -> Self {
        match why {
            TurnedAway::Beyond(wait) => Self::Stranger(wait),
            TurnedAway::UnknownCoding => Self::BadRequest(BadRequest::new(why.message())),
        }
    }
}

impl From<WorkUndone> for Failure {
    fn from(busy: WorkUndone) -> Self {
        match busy {
            WorkUndone::Late => Self::RateLimited(LATE.to_owned(), Duration::from_secs(1)),
            WorkUndone::Broken => Self::Internal,
        }
    }
}

impl From<LedgerError> for Failure {
    /// Refusals that the customer can act on are handled where the amounts are known; any other is our own fault.
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Refused(Refusal::NotActive(status)) => Self::KeyState(status),
            LedgerError::Refused(Refusal::CustomerStopped(status)) => Self::CustomerState(status),
            LedgerError::Refused(Refusal::NoSuchKey(_)) => {
                Self::Unauthenticated("this key is not known")
            }
            LedgerError::Refused(refusal @ Refusal::TooManyAtOnce(_)) => {
                Self::RateLimited(refusal.to_string(), Duration::from_secs(1))
            }
            LedgerError::Refused(ref refusal @ Refusal::TooFast { wait, .. }) => {
                Self::RateLimited(refusal.to_string(), wait)
            }
            LedgerError::Refused(_) => Self::Internal,
            LedgerError::Unavailable(_)
            | LedgerError::Unknown(_)
            | LedgerError::Unusable(_)
            | LedgerError::Misplaced(_) => Self::Ledger(error),
        }
    }
}

/// Whether a family's errors have codes.
fn has_codes(family: Family) -> bool {
    let words = family.protocol().words(Case::OutOfBalance);
    words.code.is_some()
}

fn unknown_model(asked: &str, nearest: &[String]) -> String {
    let shown: String = asked.chars().take(100).collect();
    match nearest {
        [] => format!("model not found: {shown:?}; GET /v1/models lists what is served"),
        names => format!(
            "model not found: {shown:?}; did you mean {}? GET /v1/models lists what is served",
            names.join(", ")
        ),
    }
}

fn seconds(wait: Duration) -> String {
    wait.as_millis()
        .div_ceil(1_000)
        .clamp(1, LONGEST_RETRY_AFTER)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_to_wait_for_more_than_five_seconds() {
        for (wait, told) in [(3_600, "5"), (2, "2"), (0, "1")] {
            let wait = Duration::from_secs(wait);
            let headers = Failure::NoTarget(Some(wait)).headers();
            assert_eq!(headers, [("retry-after", told.to_owned())]);
        }
    }
}
