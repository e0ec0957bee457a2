//! Chat's words for each error case; both families under `/v1` share them.

use crate::error::v1_words;
use crate::{Case, Words};

pub(super) fn words(case: Case) -> Words {
    v1_words(case)
}
