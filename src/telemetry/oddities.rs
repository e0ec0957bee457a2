//! Targets that serve something else than was asked for: a dearer class, a word that nobody knows, a pin that they refuse, steps of
//! another model, a cost that cannot be.
//!
//! One is enough to be told, because each costs money. Covers this clock hour and the previous one.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::alerts::{self, Alert};
use crate::proxy::record::{Oddity, Record};
use farebox_ledger::lock;

/// Most targets and kinds that are watched.
const MOST: usize = 20_000;

/// What was odd, by target and kind.
#[derive(Debug, Default)]
pub struct Oddities(Mutex<BTreeMap<(String, &'static str), Noted>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Noted {
    hour: i64,
    /// In the hours that it was noted in, without a gap.
    count: u64,
    /// The slug of the last request.
    slug: String,
    oddity: Oddity,
}

impl Oddities {
    pub(super) fn note(&self, record: &Record) {
        for oddity in &record.oddities {
            let target = match oddity {
                Oddity::PinRefused(target, _) => target,
                _ => &record.target,
            };
            let mut noted = lock(&self.0);
            let place = (target.clone(), kind(oddity).id);
            if noted.len() >= MOST && !noted.contains_key(&place) {
                continue;
            }
            let hour = record.at.hour();
            let before = noted.get(&place).filter(|before| before.hour + 1 >= hour);
            let count = before.map_or(0, |before| before.count) + 1;
            let (slug, oddity) = (record.slug.clone(), oddity.clone());
            noted.insert(
                place,
                Noted {
                    hour,
                    count,
                    slug,
                    oddity,
                },
            );
        }
    }

    /// What stands at this hour.
    pub fn alerts(&self, hour: i64) -> Vec<Alert> {
        let mut noted = lock(&self.0);
        noted.retain(|_, noted| noted.hour + 1 >= hour);
        let alerts = noted.iter().map(|((target, _), noted)| noted.alert(target));
        alerts.collect()
    }
}

fn kind(oddity: &Oddity) -> &'static alerts::AlertKind {
    match oddity {
        Oddity::Dearer(_) => &alerts::CLASS_DEARER,
        Oddity::Unknown(_) | Oddity::Missing => &alerts::CLASS_UNKNOWN,
        Oddity::PinRefused(..) => &alerts::PIN_REFUSED,
        Oddity::OtherModel => &alerts::OTHER_MODEL,
        Oddity::CostDoubted(_) => &alerts::COST_DOUBTED,
    }
}

impl Noted {
    fn alert(&self, target: &str) -> Alert {
        let times = self.count;
        let why = match &self.oddity {
            Oddity::Dearer(class) => format!(
                "{target}: {times} answers of {} were served as `{class}`, which was not asked for",
                self.slug
            ),
            Oddity::Unknown(word) => {
                format!("{target}: {times} answers name a class that is not known: {word}")
            }
            Oddity::Missing => format!("{target}: {times} answers no longer name their class"),
            Oddity::PinRefused(_, field) => {
                format!("{target}: {times} requests were refused for the pinned field `{field}`")
            }
            Oddity::OtherModel => {
                format!("{target}: {times} answers have steps of another model")
            }
            Oddity::CostDoubted(told) => format!(
                "{target}: {times} answers told costs that cannot be, the last of {}: {told}",
                self.slug
            ),
        };
        Alert::new(kind(&self.oddity), target, why)
            .with("target", target)
            .with("slug", self.slug.clone())
            .with("count", times)
    }
}

#[cfg(test)]
mod tests {
    use farebox_ledger::{OperationId, Timestamp};
    use farebox_protocol::Family;
    use tokio::time::Instant;

    use super::*;
    use crate::proxy::{Failure, Origin, RefusedFacts};

    fn record(hour: i64, oddity: Oddity) -> Record {
        let record = Record::refused(
            &Failure::Internal,
            Family::Chat,
            RefusedFacts::default(),
            OperationId::from_bytes([0; 16]),
            Instant::now(),
            Origin::default(),
        );
        Record {
            at: Timestamp::from_millis(hour * 3_600_000),
            target: "acme/large".to_owned(),
            slug: "large".to_owned(),
            oddities: vec![oddity],
            ..record
        }
    }

    #[test]
    fn one_is_told_and_forgotten_after_two_hours() {
        let known = Oddities::default();
        known.note(&record(1, Oddity::Dearer("fast")));
        known.note(&record(2, Oddity::Dearer("fast")));
        known.note(&record(2, Oddity::Missing));
        let other = "acme/small".to_owned();
        known.note(&record(2, Oddity::PinRefused(other, "service_tier")));
        let found = known.alerts(3);
        let about: Vec<_> = found
            .iter()
            .map(|alert| (alert.kind.id, &*alert.subject))
            .collect();
        assert_eq!(
            about,
            [
                ("class_dearer", "acme/large"),
                ("class_unknown", "acme/large"),
                ("pin_refused", "acme/small")
            ]
        );
        assert!(found[0].reason.contains("2 answers of large"), "{found:?}");
        assert!(known.alerts(4).is_empty());
    }
}
