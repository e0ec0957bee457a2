//! State received from the gateway: the connection, its status and the requests that ended. Those that run come from the ledger's
//! holds, and stand before them.
//!
//! At most [`KEPT`] requests are kept. While the list is paused, new ones are still counted, and shown when it resumes.

use std::collections::{HashMap, VecDeque};

use farebox_ledger::{Amount, KeyId, OpenHold, Timestamp};

use super::cell::{ListCell, SortRank, age, faint, id, number, plain, text};
use super::list::{ListColumn, ListRow, fill, left, right, sorted};
use super::order::ListState;
use super::tone::Tone;
use crate::admin::{LiveEvent, StatusReport};
use crate::{clock, format};

const KEPT: usize = 500;
/// Running requests that are listed, the newest; Holds has all of them.
const RUNNING: usize = 8;
/// Labels that are remembered.
const LABELS: usize = 5_000;
/// Seconds of the small charts.
pub(crate) const SECONDS: usize = 60;

/// A request of the list, and what its key is called; empty if that is not known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LiveLine<'a> {
    pub(crate) event: &'a LiveEvent,
    label: &'a str,
}

impl ListRow for LiveLine<'static> {
    type At<'a> = LiveLine<'a>;
}

pub(crate) const LIVE: &[ListColumn<LiveLine>] = &[
    left("UTC", 8, 0).falling(12, |LiveLine { event, .. }, _| {
        faint(format::clock_of(&event.at)).by(text(&event.at))
    }),
    left("KEY", 12, 4).rising(6, |line, _| id(line.key())),
    left("LABEL", 16, 1).rising(7, |line, _| match line.label {
        "" => plain(line.key()),
        label => plain(label),
    }),
    // The requested model, if it is not one of ours.
    fill("MODEL").rising(8, |LiveLine { event, .. }, _| match event.slug.as_str() {
        "" => plain(&event.asked).toned(Tone::Warn),
        slug => plain(slug),
    }),
    left("PATH", 5, 3).rising(9, |line, _| match line.event.family.as_str() {
        "responses" => faint("resp"),
        "messages" => faint("nat"),
        other => faint(other),
    }),
    right("ST", 3, 0).falling(5, |line, _| status(line.event.status)),
    right("TOKENS", 11, 2).falling(2, |line, _| counts(line.event)),
    right("CHARGE", 10, 0).falling(1, |line, _| charge(line.event)),
    right("TTFB", 6, 5).falling(3, |line, _| match line.event.first_byte_ms {
        Some(millis) => span(millis),
        None => faint("").by(number(-1)),
    }),
    right("WHOLE", 6, 7).falling(4, |LiveLine { event, .. }, now| {
        let begun = clock::parse(&event.at).filter(|_| event.status == 0);
        begun.map_or_else(|| span(event.total_ms), |begun| age(begun, now).faint())
    }),
    left("ENDED", 11, 6).rising(10, |LiveLine { event, .. }, _| {
        let tone = if event.status >= 400 {
            Tone::Warn
        } else {
            Tone::Faint
        };
        plain(&event.end_reason).toned(tone)
    }),
    left("VIA", 28, 8).rising(11, |line, _| faint(&line.event.target)),
];

impl<'a> LiveLine<'a> {
    fn key(self) -> &'a str {
        self.event.key.as_deref().unwrap_or_default()
    }
}

fn status(status: u16) -> ListCell {
    let shown = match status {
        0 => plain("···"),
        ended => plain(ended),
    };
    let tone = match status {
        0..400 => Tone::Good,
        429 => Tone::Warn,
        400..500 => Tone::Plain,
        _ => Tone::Bad,
    };
    shown.toned(tone).by(number(status))
}

/// Tokens in and out, if any were counted.
fn counts(event: &LiveEvent) -> ListCell {
    let (input, output) = event.usage.in_and_out();
    let all = input.saturating_add(output);
    let shown = match all {
        0 => String::new(),
        _ => format!("{}→{}", format::tokens(input), format::tokens(output)),
    };
    plain(shown).by(number(all))
}

/// What was charged; while it runs, what is held, with an `h`.
fn charge(event: &LiveEvent) -> ListCell {
    let charge = match event.status {
        0 => amount(event.hold.as_deref()),
        _ => amount(event.charge.as_deref()),
    };
    let shown = match (event.status, charge) {
        (0, Some(held)) => format!("{}h", format::within(held, 9)),
        (_, Some(charge)) if charge.is_positive() => format::within(charge, 10),
        _ => String::new(),
    };
    let lost = amount(event.loss.as_deref()).is_some_and(Amount::is_positive);
    plain(shown)
        .toned(Tone::Warn.when(lost))
        .by(written(charge))
}

fn span(millis: u64) -> ListCell {
    faint(format::span(millis)).by(number(millis))
}

/// Whether there is a gateway to listen to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum GatewayLink {
    #[default]
    Trying,
    Live,
    Down(String),
}

/// One second of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Second {
    pub(crate) second: i64,
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) unpaid: u64,
    pub(crate) charge: i64,
}

/// The gateway as seen by the console.
#[derive(Debug, Default)]
pub(crate) struct GatewayView {
    pub(crate) link: GatewayLink,
    pub(crate) status: Option<Box<StatusReport>>,
}

/// The Live screen.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// Newest first.
    pub(crate) events: VecDeque<LiveEvent>,
    /// Requests that run, newest first. Their status is 0.
    running: Vec<LiveEvent>,
    /// What keys are called, by their ids; empty while it is being read.
    labels: HashMap<String, String>,
    held_back: VecDeque<LiveEvent>,
    pub(crate) paused: bool,
    pub(crate) list: ListState,
    seconds: VecDeque<Second>,
}

impl Live {
    /// Adds requests, oldest first. Those of the initial replay are listed, and counted only if they are recent.
    pub(crate) fn take(&mut self, events: Vec<LiveEvent>) {
        for event in events {
            self.count(&event);
            let below =
                self.list.selected > self.shown_running().count() && !self.list.order.sorts();
            let shown = !self.paused && below && self.passes(&event);
            let list = match self.paused {
                true => &mut self.held_back,
                false => &mut self.events,
            };
            if list
                .iter()
                .take(KEPT)
                .any(|old| !event.request_id.is_empty() && old.request_id == event.request_id)
            {
                continue;
            }
            let id = bare(&event.request_id);
            (self.running).retain(|running| bare(&running.request_id) != id);
            list.push_front(event);
            list.truncate(KEPT);
            self.list.selected = (self.list.selected + usize::from(shown)).min(KEPT - 1);
        }
    }

    /// Pauses the list, or shows what arrived meanwhile.
    pub(crate) fn pause(&mut self) {
        self.paused = !self.paused;
        if !self.paused {
            while let Some(event) = self.held_back.pop_back() {
                self.events.push_front(event);
            }
            self.events.truncate(KEPT);
        }
    }

    /// How many wait behind the pause.
    pub(crate) fn waiting(&self) -> usize {
        self.held_back.len()
    }

    /// What the filter lets through, running requests first unless it is sorted.
    pub(crate) fn shown(&self, now: Timestamp) -> Vec<LiveLine<'_>> {
        let ended = self.events.iter().filter(|event| self.passes(event));
        let line = |event| LiveLine {
            event,
            label: self.label(event),
        };
        let lines = self.shown_running().chain(ended).map(line).collect();
        sorted(LIVE, lines, self.list.order, now)
    }

    fn shown_running(&self) -> impl Iterator<Item = &LiveEvent> {
        let passing = self.running.iter().filter(|event| self.passes(event));
        passing.take(RUNNING)
    }

    fn passes(&self, event: &LiveEvent) -> bool {
        matches(event, self.label(event), &self.list.filter)
    }

    /// What the key of a request is called; empty if that is not known.
    fn label(&self, event: &LiveEvent) -> &str {
        let key = event.key.as_deref().unwrap_or_default();
        self.labels.get(key).map_or("", String::as_str)
    }

    /// Takes the open holds. A selected line below them stays selected.
    pub(crate) fn run(&mut self, holds: &[OpenHold]) {
        if self.paused {
            return;
        }
        let before = self.shown_running().count();
        self.running = holds.iter().rev().map(of_hold).collect();
        let after = self.shown_running().count();
        if self.list.selected >= before && self.list.selected > 0 && !self.list.order.sorts() {
            self.list.selected = self.list.selected - before + after;
        }
    }

    /// Keys on the list whose labels are not known yet; they are asked for once.
    pub(crate) fn unknown(&mut self) -> Vec<KeyId> {
        if self.labels.len() > LABELS {
            self.labels.clear();
        }
        let all = self.running.iter().chain(&self.events);
        let keys: Vec<String> = all
            .filter_map(|event| event.key.clone())
            .filter(|key| !self.labels.contains_key(key))
            .collect();
        let mut unknown = Vec::new();
        for key in keys {
            if let Ok(id) = key.parse()
                && self.labels.insert(key, String::new()).is_none()
            {
                unknown.push(id);
            }
        }
        unknown
    }

    /// Notes what keys are called.
    pub(crate) fn name(&mut self, labels: Vec<(KeyId, String)>) {
        let labels = labels.into_iter();
        (self.labels).extend(labels.map(|(id, label)| (id.to_string(), label)));
    }

    /// The seconds up to `now`, oldest first, gaps filled.
    pub(crate) fn seconds(&self, now: Timestamp) -> Vec<Second> {
        let last = now.millis().div_euclid(1000);
        let first = last - i64::try_from(SECONDS).unwrap_or(0) + 1;
        let of = |second| {
            self.seconds
                .iter()
                .rev()
                .find(|known| known.second == second)
                .copied()
        };
        (first..=last)
            .map(|second| {
                of(second).unwrap_or(Second {
                    second,
                    ..Second::default()
                })
            })
            .collect()
    }

    fn count(&mut self, event: &LiveEvent) {
        let Some(at) = clock::parse(&event.at) else {
            return;
        };
        let second = at.millis().div_euclid(1000);
        if self.seconds.back().is_none_or(|last| last.second < second) {
            self.seconds.push_back(Second {
                second,
                ..Second::default()
            });
        }
        while self.seconds.len() > SECONDS * 2 {
            self.seconds.pop_front();
        }
        let Some(slot) = self
            .seconds
            .iter_mut()
            .rev()
            .find(|known| known.second == second)
        else {
            return;
        };
        slot.requests += 1;
        slot.errors += u64::from(event.status >= 500);
        slot.unpaid += u64::from(event.status == 429);
        slot.charge = slot
            .charge
            .saturating_add(amount(event.charge.as_deref()).map_or(0, Amount::picos));
    }
}

/// A request's id without its prefix.
fn bare(id: &str) -> &str {
    id.strip_prefix("req_").unwrap_or(id)
}

/// A running request, as if it had just begun to end.
fn of_hold(hold: &OpenHold) -> LiveEvent {
    LiveEvent {
        request_id: format!("req_{}", hold.request),
        at: hold.at.to_string(),
        key: Some(hold.key.to_string()),
        slug: hold.slug.clone(),
        family: hold.family.clone(),
        hold: Some(hold.amount.to_string()),
        end_reason: "running".to_owned(),
        ..LiveEvent::default()
    }
}

/// An amount as the gateway writes it.
pub(super) fn amount(text: Option<&str>) -> Option<Amount> {
    Amount::from_usd_str(text?).ok()
}

/// To sort by one; unknown ones are below all others.
pub(super) fn written(amount: Option<Amount>) -> SortRank {
    number(amount.map_or(i64::MIN, Amount::picos))
}

/// The first word of a filter that names a field which requests do not have.
pub(crate) fn unknown_field(filter: &str) -> Option<&str> {
    let known = ["status>", "status:", "status=", "key:", "model:"];
    filter
        .split_whitespace()
        .filter_map(super::party_filter::field_of)
        .find(|field| !known.contains(field))
}

/// `status>=400`, `status:429`, `key:k_…`, `model:…`, or any part of key, label, model, target or end reason.
pub(crate) fn matches(event: &LiveEvent, label: &str, filter: &str) -> bool {
    let has = |text: &str, part: &str| {
        text.to_ascii_lowercase()
            .contains(&part.to_ascii_lowercase())
    };
    let key = event.key.as_deref().unwrap_or_default();
    filter.split_whitespace().all(|word| {
        let number = |text: &str| text.parse::<u16>().ok();
        if let Some(least) = word.strip_prefix("status>=").map(number) {
            return least.is_some_and(|least| event.status >= least);
        }
        if let Some(status) = word
            .strip_prefix("status:")
            .or_else(|| word.strip_prefix("status="))
            .map(number)
        {
            return status == Some(event.status);
        }
        if let Some(part) = word.strip_prefix("key:") {
            return has(key, part);
        }
        if let Some(part) = word.strip_prefix("model:") {
            return has(&event.slug, part) || has(&event.asked, part);
        }
        [
            key,
            label,
            &event.slug,
            &event.asked,
            &event.target,
            &event.end_reason,
            &event.family,
            &event.request_id,
        ]
        .iter()
        .any(|text| has(text, word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_requests_do_not_have_is_named() {
        assert_eq!(unknown_field("status>=400 modle:gpt pong"), Some("modle:"));
        assert_eq!(
            unknown_field("status>=400 status:429 key:k_7 model:gpt 12:04 pong"),
            None
        );
        let event = LiveEvent {
            asked: "gpt-9".to_owned(),
            status: 404,
            ..LiveEvent::default()
        };
        assert!(
            matches(&event, "", "model:gpt-9 status:404") && !matches(&event, "", "model:gpt-5")
        );
        assert!(matches(&event, "acme-ci", "acme") && !matches(&event, "other", "acme"));
    }
}
