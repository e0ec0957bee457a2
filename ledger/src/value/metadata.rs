//! What a caller notes of its own beside a customer or a key: few pairs of short texts, which mean nothing here.

use std::collections::BTreeMap;

use crate::Refusal;
use crate::value::text::check_text;

/// Texts by their names.
pub type MetadataPairs = BTreeMap<String, String>;

/// Most pairs.
const MOST: usize = 16;

/// Checks that it stays small and has no secret.
pub(crate) fn check_metadata(metadata: &MetadataPairs) -> Result<(), Refusal> {
    if metadata.len() > MOST {
        return Err(Refusal::Limit(format!("metadata has at most {MOST} pairs")));
    }
    metadata.iter().try_for_each(|(name, value)| {
        check_text("a name of metadata", name, 64, true)?;
        check_text("a value of metadata", value, 256, false)
    })
}
