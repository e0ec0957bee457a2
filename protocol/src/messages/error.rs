//! The native words for each error case. Native clients know types only, so there are no codes.

use crate::{Case, Words};

pub(super) fn words(case: Case) -> Words {
    let (status, kind) = match case {
        Case::Unauthenticated => (401, "authentication_error"),
        Case::Forbidden => (403, "permission_error"),
        Case::NoPath | Case::NoModel => (404, "not_found_error"),
        Case::WrongMethod => (405, "invalid_request_error"),
        Case::OutOfBalance => (429, "billing_error"),
        Case::BalanceInUse | Case::RateLimited => (429, "rate_limit_error"),
        Case::BadRequest => (400, "invalid_request_error"),
        Case::TooLarge => (413, "request_too_large"),
        Case::NoTarget | Case::Overloaded => (529, "overloaded_error"),
        Case::Unavailable => (503, "api_error"),
        Case::Internal => (500, "api_error"),
        Case::BrokenStream => (502, "api_error"),
    };
    Words {
        status,
        kind,
        code: None,
    }
}
