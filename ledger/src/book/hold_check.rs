//! Whether open holds are what caps count, and follow from their checkpoints: a part of `verify`.

use crate::rule::hold::StoredHold;
use crate::{Amount, Bill, Caps};

/// What is wrong with what caps count as held.
pub(super) fn capped(
    name: &str,
    caps: &Caps,
    holds: &[&StoredHold],
) -> impl Iterator<Item = String> {
    caps.windows().filter_map(move |(counted, window)| {
        let counts = |hold: &&&StoredHold| counted.counts_in(window, &hold.open.slug, hold.day);
        let of_window = holds.iter().filter(counts).map(|hold| hold.open.amount);
        let (cap, held) = (&counted.cap, window.held);
        (Amount::checked_sum(of_window) != Some(held)).then(|| {
            format!("{name}: its holds do not add up to {held} held under its cap of {cap}")
        })
    })
}

/// What is wrong with checkpoints.
pub(super) fn checkpoints(name: &str, holds: &[StoredHold]) -> impl Iterator<Item = String> {
    holds.iter().filter_map(move |hold| {
        let StoredHold {
            open,
            opened,
            moves,
            checkpoint,
            ..
        } = hold;
        let cost = checkpoint.as_deref().map_or(Ok(Amount::ZERO), Bill::total);
        let moved = checkpoint.is_some() || open.amount != *opened;
        let is_wrong = cost != Ok(open.used) || (moved && *moves == 0);
        let request = open.request;
        is_wrong.then(|| format!("{name}: hold {request}: does not follow from its checkpoint"))
    })
}
