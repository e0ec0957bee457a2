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

#[cfg(test)]
mod tests {
    use crate::store::rows::{entry_counts, rollup_columns};
    use crate::{Bill, UsageKind};

    #[test]
    fn columns_are_those_of_the_counts() {
        let (first, later) = (
            UsageKind::FIRST.map(UsageKind::name),
            UsageKind::LATER.map(UsageKind::name),
        );
        assert_eq!(entry_counts!(), format!("e.{}", first.join(", e.")));
        let columns = format!(
            "requests, {}, charge, loss, exposure, cost, {}, told",
            first.join(", "),
            later.join(", ")
        );
        assert_eq!(rollup_columns!(), columns);
        assert!(later.iter().all(|name| Bill::FIELDS.contains(name)));
    }
}
