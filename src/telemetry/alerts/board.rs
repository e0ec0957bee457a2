//! The alerts that stand, since when, and their lines in the log.
//!
//! An alert that comes back within a minute is one that flaps: from then on it ends only when it has been gone for a minute.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};

use farebox_ledger::{Timestamp, lock};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::kinds::AlertKind;

/// One problem that an operator has to know of.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// The kind, which names severity and remedy.
    pub kind: &'static AlertKind,
    /// What it is about: a slug, a target, a provider, a key; empty for the gateway itself.
    pub subject: String,
    /// Why, in full.
    pub reason: String,
    /// What ends it, if that can be said more exactly than by its kind.
    pub remedy: Option<String>,
    /// Further fields for programs.
    pub facts: Map<String, Value>,
    /// It never flaps: whoever finds it knows exactly when it begins and ends.
    pub ends_at_once: bool,
}

impl Alert {
    /// An alert with the remedy of its kind.
    #[must_use]
    pub fn new(
        kind: &'static AlertKind,
        subject: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            subject: subject.into(),
            reason: reason.into(),
            remedy: None,
            facts: Map::new(),
            ends_at_once: false,
        }
    }

    /// With its own remedy.
    #[must_use]
    pub fn with_remedy(self, remedy: String) -> Self {
        Self {
            remedy: Some(remedy),
            ..self
        }
    }

    /// With an end that is told as soon as it comes.
    #[must_use]
    pub fn ending_at_once(self) -> Self {
        Self {
            ends_at_once: true,
            ..self
        }
    }

    /// With a field for programs.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// What ends it.
    pub fn remedy(&self) -> &str {
        self.remedy.as_deref().unwrap_or(self.kind.remedy)
    }
}

/// An alert that stands.
#[derive(Debug, Clone, PartialEq)]
pub struct StandingAlert {
    /// The alert, with its latest reason.
    pub alert: Alert,
    /// When it began.
    pub since: Timestamp,
}

impl StandingAlert {
    /// As `/status` shows it.
    pub fn document(&self) -> Value {
        let Self { alert, since } = self;
        let kind = alert.kind;
        let mut document = json!({
            "kind": kind.id,
            "severity": kind.severity.name(),
            "subject": alert.subject,
            "since": since,
            "means": kind.means,
            "reason": alert.reason,
            "customers": kind.customers,
            "remedy": alert.remedy(),
            "text": self.words(),
        });
        if let Some(fields) = document.as_object_mut() {
            fields.extend(alert.facts.clone());
        }
        document
    }

    /// Subject, reason and remedy on one line.
    pub fn words(&self) -> String {
        let alert = &self.alert;
        let subject = if alert.subject.is_empty() || alert.reason.starts_with(&alert.subject) {
            String::new()
        } else {
            format!("{}: ", alert.subject)
        };
        format!("{subject}{}: {}", alert.reason, alert.remedy())
    }
}

/// What came back sooner than this flaps.
const FLAPS_WITHIN_MS: i64 = 60_000;
/// Lines that one look writes about beginnings, and about ends: a provider may have thousands of models.
const MOST_LINES: usize = 20;

/// An alert that begins or ends.
#[derive(Debug, Clone, PartialEq)]
pub enum AlertNews {
    /// It stands from now on.
    Began(StandingAlert),
    /// It stands no more.
    Ended(StandingAlert),
}

/// The alerts that stand, and since when.
#[derive(Debug, Default)]
pub struct Board {
    standing: Mutex<BTreeMap<AlertOrder, BoardEntry>>,
    /// Who else hears of each beginning and end.
    listener: OnceLock<UnboundedSender<AlertNews>>,
}

/// Its order is the order in which alerts are shown.
type AlertOrder = (super::AlertSeverity, &'static str, String);

#[derive(Debug)]
struct BoardEntry {
    standing: StandingAlert,
    /// Since when it has not been found any more.
    gone: Option<Timestamp>,
    ended: bool,
    flaps: bool,
}

impl BoardEntry {
    /// Whether it has been gone for a minute.
    fn is_over(&self, now: Timestamp) -> bool {
        self.gone
            .is_some_and(|gone| now.millis().saturating_sub(gone.millis()) >= FLAPS_WITHIN_MS)
    }
}

impl Board {
    /// Compares what stands now with what stood before, and logs what began and what ended.
    pub fn follow(&self, now: Timestamp, found: Vec<Alert>) {
        let mut board = lock(&self.standing);
        let mut begun = Vec::new();
        let mut there: BTreeMap<AlertOrder, Alert> = BTreeMap::new();
        for alert in found {
            let place = (alert.kind.severity, alert.kind.id, alert.subject.clone());
            there.entry(place).or_insert(alert);
        }
        let mut ended = Vec::new();
        board.retain(|place, entry| {
            if there.contains_key(place) {
                return true;
            }
            entry.gone.get_or_insert(now);
            let waits = entry.flaps && !entry.standing.alert.ends_at_once;
            if !entry.ended && (!waits || entry.is_over(now)) {
                entry.ended = true;
                ended.push(entry.standing.clone());
            }
            !entry.is_over(now)
        });
        for (place, alert) in there {
            if let Some(entry) = board.get_mut(&place) {
                entry.gone = None;
                entry.standing.alert = alert;
                if std::mem::replace(&mut entry.ended, false) {
                    entry.flaps = true;
                    entry.standing.since = now;
                    begun.push(entry.standing.clone());
                }
                continue;
            }
            let standing = StandingAlert { alert, since: now };
            begun.push(standing.clone());
            let entry = BoardEntry {
                standing,
                gone: None,
                ended: false,
                flaps: false,
            };
            board.insert(place, entry);
        }
        drop(board);
        log_begun(&begun);
        log_ended(&ended, now);
        if let Some(listener) = self.listener.get() {
            let begun = begun.into_iter().map(AlertNews::Began);
            for news in begun.chain(ended.into_iter().map(AlertNews::Ended)) {
                let _ = listener.send(news);
            }
        }
    }

    /// Everything that begins and ends from now on; for one listener.
    pub fn listen(&self) -> UnboundedReceiver<AlertNews> {
        let (sender, receiver) = unbounded_channel();
        let _ = self.listener.set(sender);
        receiver
    }

    /// What stands, the most urgent first.
    pub fn standing(&self) -> Vec<StandingAlert> {
        let board = lock(&self.standing);
        let standing = board.values().filter(|entry| !entry.ended);
        standing.map(|entry| entry.standing.clone()).collect()
    }
}

fn log_begun(begun: &[StandingAlert]) {
    for StandingAlert { alert, .. } in begun.iter().take(MOST_LINES) {
        let Alert {
            kind,
            subject,
            reason,
            ..
        } = alert;
        tracing::warn!(
            alert = kind.id,
            severity = kind.severity.name(),
            subject,
            reason,
            customers = kind.customers,
            remedy = alert.remedy(),
            "an alert begins"
        );
    }
    let more = begun.len().saturating_sub(MOST_LINES);
    if more > 0 {
        tracing::warn!(more, "more alerts begin; /status lists them");
    }
}

fn log_ended(ended: &[StandingAlert], now: Timestamp) {
    for StandingAlert { alert, since } in ended.iter().take(MOST_LINES) {
        let seconds = now.millis().saturating_sub(since.millis()) / 1_000;
        tracing::warn!(
            alert = alert.kind.id,
            subject = alert.subject,
            seconds,
            "an alert ends"
        );
    }
    let more = ended.len().saturating_sub(MOST_LINES);
    if more > 0 {
        tracing::warn!(more, "more alerts end");
    }
}

#[cfg(test)]
mod tests {
    use super::super::kinds::{DISK_FULL, TARGET_PAUSED};
    use super::*;

    fn paused() -> Alert {
        Alert::new(&TARGET_PAUSED, "large at acme/large-1", "529 overloaded")
    }

    #[test]
    fn an_alert_stands_from_its_beginning_to_its_end() {
        let (board, at) = (Board::default(), Timestamp::from_millis);
        board.follow(at(1_000), vec![paused()]);
        let later = Alert {
            reason: "a later reason".to_owned(),
            ..paused()
        };
        board.follow(
            at(2_000),
            vec![later.clone(), Alert::new(&DISK_FULL, "", "no space")],
        );
        let standing = board.standing();
        assert_eq!(standing.len(), 2);
        assert_eq!(
            standing[0].alert.kind.id, "disk_full",
            "the urgent one first"
        );
        assert_eq!((standing[1].since, &standing[1].alert), (at(1_000), &later));
        board.follow(at(3_000), Vec::new());
        assert_eq!(board.standing(), []);
    }

    #[test]
    fn one_that_flaps_stands_until_it_has_been_gone_for_a_minute() {
        let (board, at) = (Board::default(), Timestamp::from_millis);
        board.follow(at(0), vec![paused()]);
        board.follow(at(1_000), Vec::new());
        assert_eq!(board.standing(), [], "the first time it ends at once");
        board.follow(at(2_000), vec![paused()]);
        for second in 3..60 {
            board.follow(at(second * 1_000), Vec::new());
            assert_eq!(board.standing().len(), 1, "at {second} s");
        }
        assert_eq!(board.standing()[0].since, at(2_000));
        board.follow(at(64_000), Vec::new());
        assert_eq!(board.standing(), []);
        board.follow(at(200_000), vec![paused()]);
        board.follow(at(201_000), Vec::new());
        assert_eq!(board.standing(), [], "long after, it is new again");
        let exact = || Alert::new(&DISK_FULL, "", "no space").ending_at_once();
        for second in [300, 302, 304] {
            board.follow(at(second * 1_000), vec![exact()]);
            assert_eq!(board.standing()[0].since, at(second * 1_000));
            board.follow(at(second * 1_000 + 500), Vec::new());
            assert_eq!(board.standing(), [], "its end is known exactly");
        }
    }
}
