//! What chat calls each error case.

use crate::{Case, Words};

pub(super) fn words(case: Case) -> Words {
    let _ = case;
    Words { status: 500, kind: "api_error", code: None }
}
