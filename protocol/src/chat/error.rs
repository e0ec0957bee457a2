//! What chat calls each error case: the words that both families under `/v1` share.

use crate::error::v1_words;
use crate::{Case, Words};

pub(super) fn words(case: Case) -> Words {
    v1_words(case)
}
