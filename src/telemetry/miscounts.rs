//! Targets that repeatedly do not serve what was asked: counts that could not be charged as reported, and endings that break.
//!
//! Covers this clock hour and the previous one. A single miscount is noise; five in an hour, and one in a hundred answers, point to
//! a wrong setting. So do five broken answers, and one in twenty.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::metering::Miscount;
use crate::proxy::Record;
use farebox_ledger::lock;

/// Fewer in an hour are not reported …
const FEWEST: u64 = 5;
/// … nor are fewer than one in this many answers.
const ONE_IN: u64 = 100;
/// Broken answers are reported from one in this many on.
const ONE_BROKEN_IN: u64 = 20;
/// Most targets that are watched.
const MOST_TARGETS: usize = 20_000;

/// What was counted at the end of answers, by target.
#[derive(Debug, Default)]
pub struct Miscounts(Mutex<BTreeMap<String, MiscountHours>>);

#[derive(Debug, Default)]
struct MiscountHours {
    hour: i64,
    current: AnswerCounts,
    before: AnswerCounts,
    /// The slug of the last answer that was miscounted.
    slug: String,
}

#[derive(Debug, Default, Clone, Copy)]
struct AnswerCounts {
    answers: u64,
    miscounts: [u64; Miscount::ALL.len()],
    broken: u64,
}

/// A target that repeatedly breaks answers off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breaking {
    /// `provider/model`.
    pub target: String,
    /// A slug that it serves.
    pub slug: String,
    /// How many answers in the last hour.
    pub count: u64,
    /// Out of how many answers.
    pub answers: u64,
}

/// A target whose counts repeatedly cannot be charged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miscounting {
    /// `provider/model`.
    pub target: String,
    /// A slug that it serves.
    pub slug: String,
    /// The kind of miscount.
    pub miscount: Miscount,
    /// How many answers in the last hour.
    pub count: u64,
    /// Out of how many answers.
    pub answers: u64,
}

impl Miscounting {
    /// What happened.
    pub fn what(&self) -> String {
        let what = match self.miscount {
            Miscount::Missing => "came without usage and were charged by our own count",
            Miscount::AboveContext => "count more input than the model's context and are disputed",
            Miscount::AboveRequest => {
                "count more input than their requests can be and are disputed"
            }
            Miscount::AboveLimit => "count more than twice the output limit sent and are disputed",
            Miscount::Malformed => "have counts that contradict each other and are disputed",
        };
        format!(
            "{}: {} of {} answers in the last hour {what}",
            self.target, self.count, self.answers
        )
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        let provider = self.target.split('/').next().unwrap_or_default();
        match self.miscount {
            Miscount::Missing => {
                "turn usage on at the provider, or in the proxy in front of it that removes it; until then compare its report by day"
                    .to_owned()
            }
            Miscount::AboveContext => format!("raise `limits.context` of {} in the catalog to the model's real size", self.slug),
            Miscount::AboveRequest => format!(
                "if {} bills pictures above the rule of the catalog, set `limits.picture_tokens`; else ask the provider what it adds to prompts",
                self.slug
            ),
            Miscount::AboveLimit => {
                format!(
                    "if the provider bills reasoning beside the output, set `reasoning = \"outside\"` in [provider.{provider}]"
                )
            }
            Miscount::Malformed => {
                "report an answer to the provider, and compare its bill with the exposure of this target".to_owned()
            }
        }
    }
}

impl MiscountHours {
    fn turn(&mut self, hour: i64) {
        match hour.saturating_sub(self.hour) {
            i64::MIN..=0 => return,
            1 => self.before = self.current,
            _ => self.before = AnswerCounts::default(),
        }
        (self.hour, self.current) = (hour, AnswerCounts::default());
    }

    /// How many answers broke, and out of how many, if that is worth reporting.
    fn breaking(&self) -> Option<(u64, u64)> {
        let count = self.current.broken + self.before.broken;
        let answers = self.current.answers + self.before.answers;
        (count >= FEWEST && count.saturating_mul(ONE_BROKEN_IN) >= answers)
            .then_some((count, answers))
    }

    /// How many answers were miscounted this way, and out of how many, if that is worth reporting.
    fn repeated(&self, at: usize) -> Option<(u64, u64)> {
        let of = |counts: &AnswerCounts| counts.miscounts.get(at).copied().unwrap_or_default();
        let (count, answers) = (
            of(&self.current) + of(&self.before),
            self.current.answers + self.before.answers,
        );
        (count >= FEWEST && count.saturating_mul(ONE_IN) >= answers).then_some((count, answers))
    }
}

impl Miscounts {
    /// Counts one ended request.
    pub fn note(&self, record: &Record) {
        let broken = record.end_reason == "upstream_broken";
        if record.target.is_empty() || !(broken || record.counted_at_its_end()) {
            return;
        }
        let mut targets = lock(&self.0);
        if targets.len() >= MOST_TARGETS && !targets.contains_key(&record.target) {
            return;
        }
        let hours = match targets.get_mut(&record.target) {
            Some(hours) => hours,
            None => targets.entry(record.target.clone()).or_default(),
        };
        hours.turn(record.at.hour());
        hours.current.answers += 1;
        if broken || record.miscount.is_some() {
            hours.slug.clone_from(&record.slug);
        }
        hours.current.broken += u64::from(broken);
        let miscount = record.miscount;
        let at = Miscount::ALL
            .iter()
            .position(|known| Some(*known) == miscount);
        if let Some(count) = at.and_then(|at| hours.current.miscounts.get_mut(at)) {
            *count += 1;
        }
    }

    /// Every target that breaks answers off at this hour, by name.
    pub fn breaking(&self, hour: i64) -> Vec<Breaking> {
        let mut targets = lock(&self.0);
        let found = targets.iter_mut().filter_map(|(target, hours)| {
            hours.turn(hour);
            let (count, answers) = hours.breaking()?;
            Some(Breaking {
                target: target.clone(),
                slug: hours.slug.clone(),
                count,
                answers,
            })
        });
        found.collect()
    }

    /// Every target that miscounts at this hour, by name.
    pub fn repeated(&self, hour: i64) -> Vec<Miscounting> {
        let mut targets = lock(&self.0);
        let mut found = Vec::new();
        for (target, hours) in targets.iter_mut() {
            hours.turn(hour);
            for (at, miscount) in Miscount::ALL.into_iter().enumerate() {
                if let Some((count, answers)) = hours.repeated(at) {
                    found.push(Miscounting {
                        target: target.clone(),
                        slug: hours.slug.clone(),
                        miscount,
                        count,
                        answers,
                    });
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use farebox_ledger::{Evidence, OperationId, Timestamp, Usage};
    use farebox_protocol::Family;
    use tokio::time::Instant;

    use super::*;
    use crate::proxy::{Failure, Origin, RefusedFacts};

    fn record(hour: i64, miscount: Option<Miscount>) -> Record {
        let failure = Failure::Internal;
        let id = OperationId::from_bytes([0; 16]);
        let record = Record::refused(
            &failure,
            Family::Chat,
            RefusedFacts::default(),
            id,
            Instant::now(),
            Origin::default(),
        );
        let evidence = Some(if miscount.is_some() {
            Evidence::Disputed
        } else {
            Evidence::Provider
        });
        let (target, slug) = ("acme/large".to_owned(), "large".to_owned());
        Record {
            at: Timestamp::from_millis(hour * 3_600_000),
            target,
            slug,
            usage: Usage {
                input: 1,
                ..Usage::default()
            },
            evidence,
            miscount,
            ..record
        }
    }

    #[test]
    fn what_repeats_is_said_with_its_remedy_and_forgotten_after_two_hours() {
        let known = Miscounts::default();
        for _ in 0..4 {
            known.note(&record(1, Some(Miscount::AboveLimit)));
        }
        assert_eq!(known.repeated(1), [], "four are noise");
        known.note(&record(2, Some(Miscount::AboveLimit)));
        let found = known.repeated(2);
        assert_eq!((found.len(), found[0].count, found[0].answers), (1, 5, 5));
        assert!(
            found[0]
                .remedy()
                .ends_with("set `reasoning = \"outside\"` in [provider.acme]"),
            "{}",
            found[0].remedy()
        );
        for _ in 0..600 {
            known.note(&record(2, None));
        }
        assert_eq!(known.repeated(2), [], "five in six hundred are noise too");
        assert_eq!(known.repeated(4), []);
        for _ in 0..5 {
            known.note(&record(4, Some(Miscount::AboveContext)));
        }
        assert!(
            known.repeated(4)[0]
                .remedy()
                .contains("`limits.context` of large")
        );
    }

    #[test]
    fn endings_that_break_are_said_from_one_in_twenty_on() {
        let known = Miscounts::default();
        let broken = || Record {
            end_reason: "upstream_broken".to_owned(),
            evidence: Some(Evidence::Local),
            ..record(1, None)
        };
        for _ in 0..4 {
            known.note(&broken());
        }
        assert_eq!(known.breaking(1), [], "four are noise");
        known.note(&broken());
        let found = known.breaking(1);
        assert_eq!((found.len(), found[0].count, found[0].answers), (1, 5, 5));
        for _ in 0..96 {
            known.note(&record(1, None));
        }
        assert_eq!(known.breaking(1), [], "five in a hundred and one are noise");
    }
}
