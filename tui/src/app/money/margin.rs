//! The tab of what remains of the charges: less what answers told that they cost, or what the operator's own prices say.

use farebox_ledger::{Amount, MarginOrder};

use super::sums::{NAME, SumLine, part, sum};
use crate::app::cell::{count, short, unknown};
use crate::app::list::{ListColumn, fill, right};
use crate::app::tone::Tone;

pub(super) const LIST: &[ListColumn<SumLine>] = &[
    fill(NAME).in_sums(6, MarginOrder::Name, |line, _| line.name_cell()),
    right("REQUESTS", 9, 4).falling(7, |line, _| count(line.row.requests).faint()),
    right("CHARGED", 9, 0).in_sums(2, MarginOrder::Charge, |line, _| sum(line.row.charge, 9)),
    right("COST", 9, 0).in_sums(3, MarginOrder::Cost, |SumLine { row, .. }, _| {
        match row.cost.checked_add(row.own).unwrap_or(row.cost) {
            Amount::ZERO if row.margin().is_none() => unknown().faint(),
            spent => sum(spent, 9),
        }
    }),
    right("TOLD", 5, 5).falling(9, |SumLine { row, .. }, _| part(row.told, row.cost)),
    right("MARGIN", 9, 0).in_sums(1, MarginOrder::Margin, |line, _| match line.row.margin() {
        Some(lost) if lost.is_negative() => short(lost, 9).toned(Tone::Bad),
        Some(margin) => short(margin, 9).strong(),
        None => unknown().strong(),
    }),
    right("OF", 6, 1).falling(8, |SumLine { row, .. }, _| match row.margin() {
        Some(margin) => part(margin, row.priced),
        None => unknown().faint(),
    }),
    right("EXPOSURE", 8, 3).in_sums(4, MarginOrder::Exposure, |line, _| {
        sum(line.row.exposure, 8)
    }),
    right("LOSS", 7, 2).in_sums(5, MarginOrder::Loss, |line, _| sum(line.row.loss, 7)),
];
