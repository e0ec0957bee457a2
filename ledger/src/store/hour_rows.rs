//! The one decoder of hours of the rollup, for both databases.

use super::rows::{Decoded, RowColumns};
use crate::batch::rows::SpentHour;
use crate::{Timestamp, UsageRow};

/// Slug, the rollup's columns, and what of the exposure no count was read for.
pub(crate) fn usage_row(hour: Timestamp, columns: &mut impl RowColumns) -> Decoded<UsageRow> {
    let slug = columns.read()?;
    let row = UsageRow {
        hour,
        slug,
        ..columns.rollup()?
    };
    Ok(UsageRow {
        unmetered: columns.read()?,
        ..row
    })
}

/// An hour, a slug and what was charged: the sum may be more than any of its parts.
pub(crate) fn spent_hour(columns: &mut impl RowColumns) -> Decoded<SpentHour> {
    Ok((
        Timestamp::of_hour(columns.number()?),
        columns.read()?,
        columns.read()?,
    ))
}
