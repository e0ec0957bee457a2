//! The words for a stream that ends with an error, or for want of money.

use farebox_ledger::EndReason;
use farebox_protocol::{Case, ErrorBody, Family};

use super::balance::said_by;
use super::end::End;
use super::money::{MoneyBound, Reckoned};
use super::{Failure, Proxy};
use crate::metering::Ending;
use crate::upstream::redact::CustomerError;

/// What a target's error inside a stream is to the customer.
#[derive(Debug)]
pub(super) enum StreamFault {
    /// Its own, in these words.
    Customers(Box<CustomerError>),
    /// The target has no capacity, and nothing was shown. Clients repeat what says so, so it is not said once something is charged.
    Overloaded,
}

fn overloaded(family: Family, request_id: String) -> ErrorBody {
    let words = family.protocol().words(Case::Overloaded);
    ErrorBody {
        kind: words.kind.to_owned(),
        code: words.code.map(str::to_owned),
        ..Failure::NoTarget(None).body(family, request_id)
    }
}

fn broken(family: Family, end: &End, request_id: String) -> ErrorBody {
    let words = family.protocol().words(Case::BrokenStream);
    let message = match end.ending {
        Ending::Lost => {
            "the gateway could not reach its ledger, so the stream was stopped; nothing is charged"
        }
        Ending::Cut => {
            "the provider's stream broke after you had stopped reading it; what it produced until then is charged"
        }
        Ending::Complete | Ending::Broken | Ending::Nothing => {
            "the provider's stream broke before it was complete; only what was delivered is charged"
        }
    };
    ErrorBody {
        kind: words.kind.to_owned(),
        code: words.code.map(str::to_owned),
        param: None,
        message: message.to_owned(),
        details: None,
        request_id,
    }
}

/// The error event of an incomplete stream: the customer's own error, if the upstream reported one.
pub(super) fn why_it_broke(
    family: Family,
    end: &End,
    fault: Option<&StreamFault>,
    request_id: String,
) -> ErrorBody {
    match fault {
        // As it would have been told before the stream: clients act on its type, code and message.
        Some(StreamFault::Customers(told)) => {
            Failure::Upstream(400, told.as_ref().clone()).body(family, request_id)
        }
        Some(StreamFault::Overloaded) => overloaded(family, request_id),
        None => broken(family, end, request_id),
    }
}

/// The error event of an answer that ended for want of money.
pub(super) fn short(family: Family, words: &str, request_id: String) -> ErrorBody {
    let said = family.protocol().words(Case::OutOfBalance);
    ErrorBody {
        kind: said.kind.to_owned(),
        code: said.code.map(str::to_owned),
        param: None,
        message: words.trim().to_owned(),
        details: None,
        request_id,
    }
}

/// The last words of an answer that ended at a limit that was lowered to what the money buys, told apart from the model's by brackets, which
/// are round because terminals that colour with `[style]` take `[out of …]` for a style and print nothing. Other ends have none. Clients
/// match `You exceeded your current quota`.
pub(super) fn last_words(end: &End, reckoned: &Reckoned, proxy: &Proxy) -> Option<String> {
    let at_its_limit = end.ending == Ending::Complete && end.reason == EndReason::Length;
    (at_its_limit && reckoned.terms.lowered).then_some(())?;
    let limit = reckoned.terms.limit;
    let (what, why, remedy) = match reckoned.bound {
        MoneyBound::Balance => (
            "out of balance",
            "the customer's balance had no more",
            "Top up the same key, then ask again",
        ),
        MoneyBound::Cap => (
            "cap reached",
            "a cap had no more room",
            "Ask again when it starts anew: GET /v1/key says when",
        ),
    };
    let said = match reckoned.bound {
        MoneyBound::Balance => said_by(&proxy.config.current().catalog.shop),
        MoneyBound::Cap => String::new(),
    };
    Some(format!(
        "\n\n({what}: this answer was limited to {limit} tokens, because {why} for it. You exceeded your current quota. {remedy}{said})"
    ))
}
