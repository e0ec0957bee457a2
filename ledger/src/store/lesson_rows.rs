//! The one decoder of what targets have taught, for both databases.

use super::rows::{Decoded, RowColumns};
use crate::value::lesson::Facts;
use crate::{Excess, Lesson};

/// What [`lesson`] takes.
pub(crate) const LESSON: &str = "target, class, tokens, millis, theirs, ours, facts";
/// What [`excess`] takes.
pub(crate) const EXCESS: &str = "target, customer, tokens, at";

pub(crate) fn lesson(columns: &mut impl RowColumns) -> Decoded<Lesson> {
    Ok(Lesson {
        target: columns.text()?,
        class: columns.text()?,
        tokens: columns.small()?,
        millis: columns.small()?,
        theirs: columns.small()?,
        ours: columns.small()?,
        facts: Facts::from_i64(columns.number()?),
    })
}

pub(crate) fn excess(columns: &mut impl RowColumns) -> Decoded<Excess> {
    Ok(Excess {
        target: columns.text()?,
        customer: columns.customer()?,
        tokens: columns.small()?,
        at: columns.at()?,
    })
}
