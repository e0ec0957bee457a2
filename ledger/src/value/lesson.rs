//! What answers have taught about targets: how fast they are, how their counts compare with ours, what they were seen to do, and which
//! counts exceeded what was held for them.
//!
//! Gateways add what they saw since the last time, and read the sums of all. No balance follows from them and they are in no chain. What
//! they mean is decided in the gateway.

use crate::{CustomerId, Timestamp};

/// At this many tokens a sum and what it is divided by are halved, so that what is new outweighs what is old.
// Lower, and one unusual day outweighs what was learned; higher, and a target that has changed is taken for what it was for longer.
pub(crate) const FULL: u64 = 5_000_000;
/// No answer takes more milliseconds for a token, and none counts more tokens for one of ours.
const MOST_OF_ONE: u64 = 1_000_000;

/// Something that a target was seen to do at least once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// It counted output that it had not shown.
    Hides,
    /// It counted as cached what no request had marked.
    Caches,
    /// It counted a write of a cache that no request had marked.
    WritesUnmarked,
    /// An answer that reasoned ended by length within its limit.
    LimitBinds,
}

impl Fact {
    /// Its place among [`Facts`] as they are stored; a published one never changes.
    const fn bit(self) -> i64 {
        match self {
            Self::Hides => 1,
            Self::Caches => 2,
            Self::WritesUnmarked => 4,
            Self::LimitBinds => 8,
        }
    }
}

/// Any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Facts(i64);

impl Facts {
    /// Whether this is one of them.
    #[must_use]
    pub const fn has(self, fact: Fact) -> bool {
        self.0 & fact.bit() != 0
    }

    /// These and that one.
    #[must_use]
    pub const fn with(self, fact: Fact) -> Self {
        Self(self.0 | fact.bit())
    }

    /// All of both.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// As they are stored; those that only a later version knows stay.
    pub(crate) const fn to_i64(self) -> i64 {
        self.0
    }

    pub(crate) const fn from_i64(stored: i64) -> Self {
        Self(stored)
    }
}

/// What the answers of one class at one target have taught.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Lesson {
    /// `provider/model`.
    pub target: String,
    /// The class that served them, by its name.
    pub class: String,
    /// Tokens of streams …
    pub tokens: u64,
    /// … and the milliseconds that these took.
    pub millis: u64,
    /// Tokens that it counted for prompts …
    pub theirs: u64,
    /// … for which we count these.
    pub ours: u64,
    /// What it was seen to do.
    pub facts: Facts,
}

impl Lesson {
    /// Nothing about answers of this class.
    #[must_use]
    pub fn empty(target: &str, class: &str) -> Self {
        Self {
            target: target.to_owned(),
            class: class.to_owned(),
            ..Self::default()
        }
    }

    /// Adds what other answers of this class have taught.
    pub fn add(&mut self, other: &Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.millis = self.millis.saturating_add(other.millis);
        self.theirs = self.theirs.saturating_add(other.theirs);
        self.ours = self.ours.saturating_add(other.ours);
        self.facts = self.facts.and(other.facts);
    }

    /// As it is added to what is stored: so little that halving once is enough, and nothing that no answer can be.
    fn within_bounds(&mut self) {
        for (weight, sum) in [
            (&mut self.tokens, &mut self.millis),
            (&mut self.ours, &mut self.theirs),
        ] {
            while *weight >= FULL {
                (*weight, *sum) = (*weight / 2, *sum / 2);
            }
            *sum = (*sum).min(weight.saturating_mul(MOST_OF_ONE));
        }
    }
}

/// A count that exceeded what was held for it: the largest of one customer at one target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Excess {
    /// `provider/model`.
    pub target: String,
    /// Whose answer it was.
    pub customer: CustomerId,
    /// By how many tokens of output.
    pub tokens: u64,
    /// When the last one was.
    pub at: Timestamp,
}

impl Excess {
    /// For how many milliseconds it counts: seven days.
    pub const COUNTS_FOR: i64 = 7 * 86_400_000;

    /// Whether it still counts.
    pub const fn counts(&self, now: Timestamp) -> bool {
        now.millis().saturating_sub(self.at.millis()) < Self::COUNTS_FOR
    }

    /// Those of before this instant count no more when this one is noted.
    pub(crate) const fn forgets(&self) -> i64 {
        self.at.millis().saturating_sub(Self::COUNTS_FOR)
    }
}

/// What targets have taught, all of it or what is new.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taught {
    /// By target and class.
    pub lessons: Vec<Lesson>,
    /// By target and customer.
    pub excesses: Vec<Excess>,
}

impl Taught {
    /// Whether it is nothing.
    pub fn is_empty(&self) -> bool {
        self.lessons.is_empty() && self.excesses.is_empty()
    }

    /// As a store adds it: in order, no row twice, each within its bounds.
    pub(crate) fn in_order(&self) -> Self {
        let mut sorted = self.clone();
        sorted.lessons.sort();
        sorted.lessons.dedup_by(|next, kept| {
            let same = (&next.target, &next.class) == (&kept.target, &kept.class);
            if same {
                kept.add(next);
            }
            same
        });
        sorted.lessons.iter_mut().for_each(Lesson::within_bounds);
        sorted.excesses.sort();
        sorted.excesses.dedup_by(|next, kept| {
            let same = (&next.target, next.customer) == (&kept.target, kept.customer);
            if same {
                kept.tokens = kept.tokens.max(next.tokens);
                kept.at = kept.at.max(next.at);
            }
            same
        });
        sorted
    }
}

/// A target of which everything that it has taught is to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgetTarget(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_one_row_each_and_never_absurd() {
        let one = Lesson {
            tokens: 9_000_000,
            millis: 90_000_000,
            theirs: u64::MAX,
            ours: 3,
            facts: Facts::default().with(Fact::Hides),
            ..Lesson::empty("a/m", "standard")
        };
        let two = Lesson {
            tokens: 3_000_000,
            facts: Facts::default().with(Fact::LimitBinds),
            ..Lesson::empty("a/m", "standard")
        };
        let excess = |tokens, at| Excess {
            target: "a/m".to_owned(),
            customer: CustomerId::from_random(1),
            tokens,
            at: Timestamp::from_millis(at),
        };
        let taught = Taught {
            lessons: vec![one, Lesson::empty("a/m", "fast"), two],
            excesses: vec![excess(7, 9), excess(9, 7)],
        };
        let sorted = taught.in_order();
        assert_eq!(sorted.excesses, [excess(9, 9)]);
        let [fast, standard] = &*sorted.lessons else {
            unreachable!("{sorted:?}")
        };
        assert_eq!(fast, &Lesson::empty("a/m", "fast"));
        assert_eq!(
            (standard.tokens, standard.millis),
            (3_000_000, 22_500_000),
            "12 million tokens, halved twice"
        );
        assert_eq!((standard.theirs, standard.ours), (3_000_000, 3));
        assert!(standard.facts.has(Fact::Hides) && standard.facts.has(Fact::LimitBinds));
        assert!(!standard.facts.has(Fact::Caches));
    }

    #[test]
    fn an_excess_counts_for_seven_days() {
        let excess = Excess {
            target: String::new(),
            customer: CustomerId::from_random(1),
            tokens: 1,
            at: Timestamp::from_millis(5),
        };
        let day = |days: i64| Timestamp::from_millis(5 + days * 86_400_000);
        assert!(excess.counts(day(0)) && excess.counts(day(6)) && !excess.counts(day(7)));
    }
}
