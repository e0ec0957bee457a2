//! The words for a stream that ends with an error, or because its key has no money left.

use farebox_ledger::EndReason;
use farebox_protocol::{Case, ErrorBody, Family};

use super::end::End;
use super::failure::said_by;
use super::{Failure, Proxy};
use crate::metering::Ending;
use crate::upstream::redact::CustomerError;

fn broken(family: Family, end: &End, request_id: String) -> ErrorBody {
    let words = family.protocol().words(Case::BrokenStream);
    let message = match end.ending {
        Ending::Lost => {
            "the gateway could not reach its ledger, so the stream was stopped; nothing is charged"
        }
        Ending::Cut => {
            "the provider's stream broke after you had stopped reading it; what it produced until then is charged"
        }
        _ => {
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
    told: Option<&CustomerError>,
    request_id: String,
) -> ErrorBody {
    match told {
        // As it would have been told before the stream: clients act on its type, code and message.
        Some(told) => Failure::Upstream(400, told.clone()).body(family, request_id),
        None => broken(family, end, request_id),
    }
}

/// The last words of an answer that ends because the money ran out, told apart from the model's by brackets; `lowered`: its limit was
/// lowered to what the money buys, so that it ended there by itself. Other ends have none. Clients match `You exceeded your current
/// quota`.
pub(super) fn last_words(end: &End, lowered: bool, proxy: &Proxy) -> Option<String> {
    let at_lowered = lowered && end.ending == Ending::Complete && end.reason == EndReason::Length;
    (end.reason == EndReason::Balance || at_lowered).then(|| {
        format!(
            "\n\n[out of balance: the gateway ended this answer here, because the key has no money left for the rest. You exceeded \
             your current quota. Top up the same key, then ask again{}]",
            said_by(&proxy.config.current().catalog.shop)
        )
    })
}
