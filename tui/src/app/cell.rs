//! What a cell of a list shows, in which tone, and what its column is sorted by: the value behind the text.

use farebox_ledger::{Amount, Timestamp};

use super::tone::Tone;
use crate::format;

#[derive(Debug)]
pub(crate) struct ListCell {
    pub(crate) text: String,
    pub(crate) tone: Tone,
    pub(crate) rank: SortRank,
}

/// A value to sort by.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SortRank {
    Number(i128),
    Text(String),
}

/// Text, without regard to case.
pub(crate) fn text(text: impl AsRef<str>) -> SortRank {
    SortRank::Text(text.as_ref().to_lowercase())
}

/// A number or an instant.
pub(crate) fn number(number: impl Into<i128>) -> SortRank {
    SortRank::Number(number.into())
}

/// A share, comparable with others.
pub(crate) fn share(part: impl Into<i128>, whole: impl Into<i128>) -> SortRank {
    let part: i128 = part.into();
    let share = part.saturating_mul(1_000_000).checked_div(whole.into());
    // A share of nothing is below a share of 0.
    SortRank::Number(share.unwrap_or(-1))
}

impl ListCell {
    pub(crate) fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    pub(crate) fn faint(self) -> Self {
        self.toned(Tone::Faint)
    }

    pub(crate) fn strong(self) -> Self {
        self.toned(Tone::Strong)
    }

    /// Sorted by something else than what it shows.
    pub(crate) fn by(self, rank: SortRank) -> Self {
        Self { rank, ..self }
    }
}

pub(crate) fn plain(shown: impl ToString) -> ListCell {
    let shown = shown.to_string();
    ListCell {
        rank: text(&shown),
        text: shown,
        tone: Tone::Plain,
    }
}

pub(crate) fn faint(text: impl ToString) -> ListCell {
    plain(text).faint()
}

pub(crate) fn strong(text: impl ToString) -> ListCell {
    plain(text).strong()
}

pub(crate) fn id(text: impl ToString) -> ListCell {
    plain(text).toned(Tone::Id)
}

pub(crate) fn state(word: &str) -> ListCell {
    plain(word).toned(Tone::of_state(word))
}

/// Nothing, as it is not known.
pub(crate) fn unknown() -> ListCell {
    plain("—").by(number(i64::MIN))
}

pub(crate) fn count(of: u64) -> ListCell {
    plain(format::count(of)).by(number(of))
}

pub(crate) fn tokens(of: u64) -> ListCell {
    plain(format::tokens(of)).by(number(of))
}

/// Rounded down to cents.
pub(crate) fn money(amount: Amount) -> ListCell {
    plain(format::money(amount)).by(number(amount.picos()))
}

/// Exact, if so many cells are enough.
pub(crate) fn within(amount: Amount, cells: usize) -> ListCell {
    plain(format::within(amount, cells)).by(number(amount.picos()))
}

/// In so many cells.
pub(crate) fn short(amount: Amount, cells: usize) -> ListCell {
    plain(format::short(amount, cells)).by(number(amount.picos()))
}

/// Signed; good if it came.
pub(crate) fn signed(amount: Amount) -> ListCell {
    let cell = plain(format::signed(amount)).by(number(amount.picos()));
    cell.toned(Tone::Good.when(amount.is_positive()))
}

/// How long ago something was.
pub(crate) fn age(at: Timestamp, now: Timestamp) -> ListCell {
    age_of(now.millis() - at.millis())
}

pub(crate) fn age_of(millis: i64) -> ListCell {
    plain(format::age(millis)).by(number(millis))
}

/// A day.
pub(crate) fn date(at: Timestamp) -> ListCell {
    faint(format::date(at)).by(number(at.millis()))
}

/// An instant.
pub(crate) fn when(at: Timestamp, now: Timestamp) -> ListCell {
    faint(format::when(at, now)).by(number(at.millis()))
}
