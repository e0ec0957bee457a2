//! The tab of what providers may bill beyond the charges.

use farebox_ledger::MarginOrder;

use super::sums::{NAME, SumLine, part, sum};
use crate::app::cell::{count, plain, short};
use crate::app::list::{ListColumn, fill, left, right};
use crate::app::tone::Tone;

pub(super) const LIST: &[ListColumn<SumLine>] = &[
    fill(NAME).in_sums(4, MarginOrder::Name, |line, _| line.name_cell()),
    right("REQUESTS", 9, 2).falling(5, |line, _| count(line.row.requests).faint()),
    right("CHARGED", 10, 0).in_sums(2, MarginOrder::Charge, |line, _| sum(line.row.charge, 10)),
    right("EXPOSURE", 10, 0).in_sums(1, MarginOrder::Exposure, |SumLine { row, .. }, _| {
        let loud = row.exposure.picos() > row.charge.picos() / 2;
        short(row.exposure, 10).toned(if loud { Tone::Bad } else { Tone::Strong })
    }),
    right("OF CHARGED", 10, 1).falling(6, |line, _| part(line.row.exposure, line.row.charge)),
    right("LOSS", 9, 0).in_sums(3, MarginOrder::Loss, |line, _| sum(line.row.loss, 9)),
    left("STATE", 5, 3).rising(7, |line, _| {
        plain(if line.is_stopped() { "stop" } else { "" }).toned(Tone::Warn)
    }),
];
