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
        target: columns.read()?,
        class: columns.read()?,
        tokens: columns.read()?,
        millis: columns.read()?,
        theirs: columns.read()?,
        ours: columns.read()?,
        facts: Facts::from_i64(columns.number()?),
    })
}

pub(crate) fn excess(columns: &mut impl RowColumns) -> Decoded<Excess> {
    Ok(Excess {
        target: columns.read()?,
        customer: columns.read()?,
        tokens: columns.read()?,
        at: columns.read()?,
    })
}
