//! The one decoder of an hour of the rollup, for both databases.

use super::rows::{Decoded, RowColumns};
use crate::{Timestamp, UsageRow};

/// Slug, the rollup's columns, and what of the exposure no count was read for.
pub(crate) fn usage_row(hour: Timestamp, columns: &mut impl RowColumns) -> Decoded<UsageRow> {
    let slug = columns.text()?;
    let row = UsageRow {
        hour,
        slug,
        ..columns.rollup()?
    };
    Ok(UsageRow {
        unmetered: columns.amount()?,
        ..row
    })
}
