//! What targets have taught, in the reference store: each of an operation's rows is added and halved by plain arithmetic.

use std::collections::BTreeMap;

use super::State;
use crate::value::lesson::Facts;
use crate::{Excess, Lesson, Taught, Timestamp};

const HALVED_AT: i128 = 5_000_000;
const WEEK: i64 = 604_800_000;

/// A weight and its sum, halved until the weight is below the mark; a sum of more than a million for one is none.
fn bounded(mut weight: i128, mut sum: i128) -> (i128, i128) {
    while weight >= HALVED_AT {
        (weight, sum) = (weight / 2, sum / 2);
    }
    (weight, sum.min(weight.saturating_mul(1_000_000)))
}

fn small(number: i128) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

impl State {
    pub(super) fn teach(&mut self, taught: &Taught) {
        let mut new: BTreeMap<(String, String), [i128; 5]> = BTreeMap::new();
        for lesson in &taught.lessons {
            let place = (lesson.target.clone(), lesson.class.clone());
            let [tokens, millis, theirs, ours, facts] = new.entry(place).or_default();
            *tokens = tokens.saturating_add(lesson.tokens.into());
            *millis = millis.saturating_add(lesson.millis.into());
            *theirs = theirs.saturating_add(lesson.theirs.into());
            *ours = ours.saturating_add(lesson.ours.into());
            *facts |= i128::from(lesson.facts.to_i64());
        }
        for (place, [tokens, millis, theirs, ours, facts]) in new {
            let (tokens, millis) = bounded(tokens, millis);
            let (ours, theirs) = bounded(ours, theirs);
            let is_known = self.lessons.contains_key(&place);
            let row = self.lessons.entry(place).or_default();
            row[0] = row[0].saturating_add(tokens);
            row[1] = row[1].saturating_add(millis);
            row[2] = row[2].saturating_add(theirs);
            row[3] = row[3].saturating_add(ours);
            row[4] |= facts;
            if is_known && row[0] >= HALVED_AT {
                (row[0], row[1]) = (row[0] / 2, row[1] / 2);
            }
            if is_known && row[3] >= HALVED_AT {
                (row[2], row[3]) = (row[2] / 2, row[3] / 2);
            }
        }
        for excess in &taught.excesses {
            let from = excess.at.millis().saturating_sub(WEEK);
            self.excesses
                .retain(|(target, _), (_, at)| *target != excess.target || at.millis() > from);
        }
        for excess in &taught.excesses {
            let place = (excess.target.clone(), excess.customer);
            let (tokens, at) = self.excesses.entry(place).or_default();
            *tokens = excess.tokens.max(*tokens);
            *at = excess.at.max(*at);
        }
    }

    pub(super) fn forget_target(&mut self, gone: &str) {
        self.lessons.retain(|(target, _), _| target != gone);
        self.excesses.retain(|(target, _), _| target != gone);
    }

    pub(super) fn taught(&self) -> Taught {
        let lessons = self.lessons.iter().map(|((target, class), row)| Lesson {
            tokens: small(row[0]),
            millis: small(row[1]),
            theirs: small(row[2]),
            ours: small(row[3]),
            facts: Facts::from_i64(i64::try_from(row[4]).unwrap_or_default()),
            ..Lesson::empty(target, class)
        });
        let excess =
            |((target, customer), (tokens, at)): (&(String, _), &(u64, Timestamp))| Excess {
                target: target.clone(),
                customer: *customer,
                tokens: *tokens,
                at: *at,
            };
        Taught {
            lessons: lessons.collect(),
            excesses: self.excesses.iter().map(excess).collect(),
        }
    }
}
