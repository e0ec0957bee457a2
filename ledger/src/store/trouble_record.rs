//! The one record of what is wrong with a ledger.
//!
//! Whatever a store does for its callers (a commit, a renewal, a connection, a sync, a checkpoint) says when it begins and how it
//! ends. A failure stands until the same work next succeeds; work that has been under way for a second stands for as long as it is, and
//! what was only slow for a moment longer, so that one slow sync after the other is one trouble.
//! Everybody reads this record, from memory: nothing here asks the ledger, waits for it, or decides whether it is written.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use super::trouble::{Fault, LedgerTrouble, TroubleKind};
use crate::value::clock;
use crate::{Cause, Timestamp, lock};

/// Work that has been under way for this long is in trouble.
pub(crate) const LATE: Duration = Duration::from_secs(1);

/// What was slow and stops no sale is told for so long after its end: the next one may be as slow.
const LINGERS: Duration = Duration::from_millis(1_500);

/// What can be in trouble, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LedgerWork {
    /// All writing.
    Writer,
    /// The files at their paths.
    Files,
    /// The schema, which another version of this program may have changed.
    Schema,
    /// The holds of a file that has come back.
    Recovery,
    /// What the database has confirmed.
    Confirmed,
    Standby,
    /// Connections that were given up in the middle of something.
    Abandoned,
    DatabaseClock,
    /// A batch of holds.
    Commit,
    /// The read of a key, which comes before its hold.
    KeyRead,
    Renewal,
    /// Room on the disk and in the log.
    Room,
    /// A batch of anything else.
    Payments,
    /// A batch of a customer that somebody else has locked.
    LockedCustomer,
    Connect,
    Sync,
    Checkpoint,
    LogReaders,
    Clock,
}

impl LedgerWork {
    /// Whether nothing is sold while it is in trouble.
    const fn stops(self) -> bool {
        !matches!(
            self,
            Self::Payments
                | Self::LockedCustomer
                | Self::Connect
                | Self::Sync
                | Self::Checkpoint
                | Self::LogReaders
                | Self::Clock
        )
    }

    /// Whether what one writes, and the rights it needs, differ from the next.
    const fn is_batch(self) -> bool {
        matches!(self, Self::Commit | Self::Payments | Self::LockedCustomer)
    }

    const fn bit(self) -> u32 {
        1_u32.wrapping_shl(self as u32)
    }

    /// What is under way, in words.
    const fn words(self) -> &'static str {
        match self {
            Self::Commit | Self::LockedCustomer | Self::Payments => "a commit",
            Self::KeyRead => "the read of a key",
            Self::Renewal => "the renewal of this gateway's lease",
            Self::Connect => "a new connection",
            Self::Sync => "a sync of the log",
            Self::Checkpoint => "the copy of the log into the ledger's file",
            Self::Writer
            | Self::Files
            | Self::Schema
            | Self::Recovery
            | Self::Confirmed
            | Self::Standby
            | Self::Abandoned
            | Self::DatabaseClock
            | Self::Room
            | Self::LogReaders
            | Self::Clock => "a look",
        }
    }
}

/// A fault, and when it began by either clock.
#[derive(Debug, Clone)]
struct Standing {
    fault: Fault,
    since: Timestamp,
    began: Instant,
}

#[derive(Debug)]
struct BegunWork {
    number: u64,
    work: LedgerWork,
    at: Instant,
    /// The server's process that does it.
    process: Option<i32>,
    /// What a try met, or whoever asked has found.
    fault: Option<Fault>,
}

/// Work that is late, for whoever asks why.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LateWork {
    pub(crate) number: u64,
    pub(crate) work: LedgerWork,
    pub(crate) process: Option<i32>,
}

/// Work that was slow and has ended well, and when it did.
#[derive(Debug)]
struct SlowWork {
    standing: Standing,
    ended: Instant,
}

impl SlowWork {
    fn is_told(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.ended) < LINGERS
    }
}

#[derive(Debug, Default)]
struct RecordState {
    standing: BTreeMap<LedgerWork, Standing>,
    /// The last of each work, if it was slow.
    slow: BTreeMap<LedgerWork, SlowWork>,
    under_way: Vec<BegunWork>,
    numbers: u64,
}

impl RecordState {
    fn begun(&mut self, number: u64) -> Option<&mut BegunWork> {
        let mut under_way = self.under_way.iter_mut();
        under_way.find(|begun| begun.number == number)
    }
}

/// The record of one ledger in one process.
#[derive(Debug)]
pub(crate) struct TroubleRecord {
    record: Mutex<RecordState>,
    /// A bit for each work with a fault, so that a look without trouble costs nothing.
    standing: AtomicU32,
    /// What it is if nobody has found more about work that is late.
    unexplained: fn(&str) -> Fault,
}

impl TroubleRecord {
    pub(crate) fn new(unexplained: fn(&str) -> Fault) -> Arc<Self> {
        Arc::new(Self {
            record: Mutex::default(),
            standing: AtomicU32::new(0),
            unexplained,
        })
    }

    /// Something begins.
    pub(crate) fn begin(self: &Arc<Self>, work: LedgerWork) -> WorkUnderWay {
        let mut record = self.lock();
        record.numbers = record.numbers.wrapping_add(1);
        let number = record.numbers;
        record.under_way.push(BegunWork {
            number,
            work,
            at: Instant::now(),
            process: None,
            fault: None,
        });
        drop(record);
        WorkUnderWay {
            record: Arc::clone(self),
            number,
            work,
        }
    }

    /// A fault stands from now on; whether it is news.
    pub(crate) fn set(&self, work: LedgerWork, fault: Fault) -> bool {
        let mut record = self.lock();
        let known = record.standing.get(&work).map(|known| &known.fault);
        let news = known != Some(&fault);
        if news {
            self.put(&mut record, work, fault, Instant::now());
        }
        news
    }

    /// It stands no more; whether it did.
    pub(crate) fn end(&self, work: LedgerWork) -> bool {
        let stood = self.stands(work);
        if stood {
            self.take(&mut self.lock(), work);
        }
        stood
    }

    /// Sets the fault, or ends it if there is none.
    pub(crate) fn note(&self, work: LedgerWork, fault: Option<Fault>) {
        match fault {
            Some(fault) => drop(self.set(work, fault)),
            None => drop(self.end(work)),
        }
    }

    /// Whether a fault of this work stands.
    pub(crate) fn stands(&self, work: LedgerWork) -> bool {
        self.standing.load(Ordering::Acquire) & work.bit() != 0
    }

    /// The fault of the first of these works that has one, in words.
    pub(crate) fn words_of(&self, works: &[LedgerWork]) -> Option<String> {
        let mut works = works.iter().filter(|work| self.stands(**work)).peekable();
        works.peek()?;
        let record = self.lock();
        let found = works.find_map(|work| record.standing.get(work));
        found.map(|standing| standing.fault.to_string())
    }

    /// An error with what is known of its cause.
    pub(crate) fn worded(&self, cause: Cause) -> Cause {
        let stops = self.standing().into_iter().find(|trouble| trouble.stops);
        match stops {
            Some(trouble) => cause.reworded(trouble.fault.to_string()),
            None => cause,
        }
    }

    /// What stands now, the most telling first.
    pub(crate) fn standing(&self) -> Vec<LedgerTrouble> {
        let (now, today) = (Instant::now(), clock::now());
        let record = self.lock();
        let mut standing = record.standing.clone();
        for (work, slow) in record.slow.iter().filter(|(_, slow)| slow.is_told(now)) {
            let known = standing.entry(*work);
            known.or_insert_with(|| slow.standing.clone());
        }
        for begun in &record.under_way {
            let lasts = now.saturating_duration_since(begun.at);
            if lasts < LATE {
                continue;
            }
            let known = standing.get(&begun.work);
            if known.is_some() && begun.fault.is_none() {
                continue;
            }
            let fault =
                (begun.fault.clone()).unwrap_or_else(|| (self.unexplained)(begun.work.words()));
            let since = |standing: &Standing| (standing.since, standing.began);
            let (since, began) = known.map_or_else(|| (before(today, lasts), begun.at), since);
            standing.insert(
                begun.work,
                Standing {
                    fault,
                    since,
                    began,
                },
            );
        }
        drop(record);
        let told = |(work, standing): (LedgerWork, Standing)| LedgerTrouble {
            stops: work.stops(),
            since: standing.since,
            lasts: now.saturating_duration_since(standing.began),
            fault: standing.fault,
        };
        standing.into_iter().map(told).collect()
    }

    /// Work that has been under way for so long.
    pub(crate) fn late(&self, after: Duration) -> Vec<LateWork> {
        let now = Instant::now();
        let record = self.lock();
        let late = |begun: &&BegunWork| now.saturating_duration_since(begun.at) >= after;
        let told = |begun: &BegunWork| LateWork {
            number: begun.number,
            work: begun.work,
            process: begun.process,
        };
        record.under_way.iter().filter(late).map(told).collect()
    }

    /// Says why work is late; `None` forgets what was said.
    pub(crate) fn explain(&self, number: u64, fault: Option<Fault>) {
        if let Some(begun) = self.lock().begun(number) {
            begun.fault = fault;
        }
    }

    fn lock(&self) -> MutexGuard<'_, RecordState> {
        lock(&self.record)
    }

    fn put(&self, record: &mut RecordState, work: LedgerWork, fault: Fault, began: Instant) {
        self.standing.fetch_or(work.bit(), Ordering::AcqRel);
        if let Some(known) = record.standing.get_mut(&work) {
            // Who only met a lock or no answer knows less than who has asked.
            if !(fault.vague && !known.fault.vague && known.fault.kind == fault.kind) {
                known.fault = fault;
            }
            return;
        }
        let lasts = Instant::now().saturating_duration_since(began);
        let since = before(clock::now(), lasts);
        let standing = Standing {
            fault,
            since,
            began,
        };
        record.standing.insert(work, standing);
    }

    /// Notes how long it took, of what ends well and stops no sale.
    fn pace(&self, record: &mut RecordState, ended: &WorkUnderWay) {
        let now = Instant::now();
        let before_it = record.slow.remove(&ended.work);
        let Some(begun) = record.begun(ended.number) else {
            return;
        };
        let began = begun.at;
        let lasted = now.saturating_duration_since(began);
        if lasted < LATE {
            return;
        }
        let known = begun.fault.take();
        let fault = known.unwrap_or_else(|| (self.unexplained)(ended.work.words()));
        if fault.kind != TroubleKind::Slow {
            return;
        }
        let told = before_it.filter(|slow| slow.is_told(began));
        let (since, began) = told.map_or_else(
            || (before(clock::now(), lasted), began),
            |slow| (slow.standing.since, slow.standing.began),
        );
        let standing = Standing {
            fault,
            since,
            began,
        };
        let slow = SlowWork {
            standing,
            ended: now,
        };
        record.slow.insert(ended.work, slow);
    }

    fn take(&self, record: &mut RecordState, work: LedgerWork) {
        record.standing.remove(&work);
        self.standing.fetch_and(!work.bit(), Ordering::AcqRel);
    }
}

/// So long before an instant.
fn before(now: Timestamp, lasts: Duration) -> Timestamp {
    let lasts = i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.millis().saturating_sub(lasts))
}

/// Work under way. Dropped without an end, it was given up, and nothing is known of it.
#[derive(Debug)]
pub(crate) struct WorkUnderWay {
    record: Arc<TroubleRecord>,
    number: u64,
    work: LedgerWork,
}

impl WorkUnderWay {
    /// Which process of the server does it.
    pub(crate) fn done_by(&self, process: Option<i32>) {
        if let Some(begun) = self.record.lock().begun(self.number) {
            begun.process = process;
        }
    }

    /// A try has failed, and another follows.
    pub(crate) fn met(&self, fault: Fault) {
        let mut record = self.record.lock();
        if let Some(begun) = record.begun(self.number)
            && !(fault.vague && begun.fault.as_ref().is_some_and(|known| !known.vague))
        {
            begun.fault = Some(fault);
        }
    }

    /// It is done, which ends its trouble, unless it is a batch and others are refused: a right may be missing that this one did not need.
    pub(crate) fn succeeded(self) {
        if self.work.stops() && !self.record.stands(self.work) {
            return;
        }
        let mut record = self.record.lock();
        if !self.work.stops() {
            self.record.pace(&mut record, &self);
        }
        let known = record.standing.get(&self.work);
        let refused = known.is_some_and(|known| known.fault.kind == TroubleKind::Refused);
        if !(refused && self.work.is_batch()) {
            self.record.take(&mut record, self.work);
        }
    }

    /// It has ended, well or with this fault.
    pub(crate) fn ended(self, fault: Option<Fault>) {
        match fault {
            None => self.succeeded(),
            Some(fault) => self.failed(fault),
        }
    }

    pub(crate) fn failed(self, fault: Fault) {
        let mut record = self.record.lock();
        let (known, began) = record.begun(self.number).map_or_else(
            || (None, Instant::now()),
            |begun| (begun.fault.clone(), begun.at),
        );
        let fault = if fault.vague {
            known.unwrap_or(fault)
        } else {
            fault
        };
        self.record.put(&mut record, self.work, fault, began);
    }
}

impl Drop for WorkUnderWay {
    fn drop(&mut self) {
        let mut record = self.record.lock();
        let number = self.number;
        record.under_way.retain(|begun| begun.number != number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unexplained(what: &str) -> Fault {
        Fault::new(TroubleKind::Slow, format!("{what} takes long"), "wait").vaguely()
    }

    fn refused(cause: &str) -> Fault {
        Fault::new(TroubleKind::Refused, cause, "grant it").answered(Some("42501"))
    }

    fn unreachable() -> Fault {
        Fault::new(TroubleKind::Unreachable, "it is gone", "start it")
    }

    fn make_late(record: &TroubleRecord) {
        let begun = &mut record.lock().under_way[0];
        begun.at = begun.at.checked_sub(LATE).unwrap();
    }

    fn causes(record: &TroubleRecord) -> Vec<String> {
        let standing = record.standing().into_iter();
        standing.map(|trouble| trouble.fault.cause).collect()
    }

    #[test]
    fn a_failure_stands_until_the_same_work_succeeds() {
        let record = TroubleRecord::new(unexplained);
        record.begin(LedgerWork::Commit).failed(unreachable());
        assert_eq!(causes(&record), ["it is gone"]);
        assert!(record.standing()[0].stops);
        record.begin(LedgerWork::Renewal).succeeded();
        assert_eq!(causes(&record).len(), 1, "other work proves nothing");
        record.begin(LedgerWork::Commit).succeeded();
        assert!(record.standing().is_empty() && !record.stands(LedgerWork::Commit));
    }

    #[test]
    fn what_only_some_commits_meet_is_not_ended_by_another_one() {
        let record = TroubleRecord::new(unexplained);
        record.begin(LedgerWork::Commit).failed(refused("no right"));
        record.begin(LedgerWork::Commit).succeeded();
        assert_eq!(causes(&record), ["no right"]);
        record.end(LedgerWork::Commit);
        assert!(record.standing().is_empty());
        record
            .begin(LedgerWork::Renewal)
            .failed(refused("read-only"));
        record.begin(LedgerWork::Renewal).succeeded();
        assert!(record.standing().is_empty());
    }

    #[test]
    fn late_work_stands_with_what_is_known_of_it_for_as_long_as_it_is_under_way() {
        let record = TroubleRecord::new(unexplained);
        let begun = record.begin(LedgerWork::Sync);
        assert!(record.standing().is_empty());
        make_late(&record);
        assert_eq!(causes(&record), ["a sync of the log takes long"]);
        let [late] = record.late(LATE)[..] else {
            unreachable!()
        };
        record.explain(late.number, Some(unreachable()));
        let told = &record.standing()[0];
        assert!(!told.stops && told.lasts >= LATE, "{told:?}");
        assert_eq!(told.fault, unreachable());
        begun.succeeded();
        assert!(record.standing().is_empty());
        let gone = record.begin(LedgerWork::Sync);
        make_late(&record);
        drop(gone);
        assert!(record.standing().is_empty(), "nothing is known of it");
    }

    #[test]
    fn one_slow_sync_after_the_other_is_one_trouble_until_one_is_in_time_or_none_follows() {
        let record = TroubleRecord::new(unexplained);
        let slow = |work| {
            let begun = record.begin(work);
            make_late(&record);
            begun.succeeded();
        };
        slow(LedgerWork::Commit);
        assert!(record.standing().is_empty(), "what has stopped the sale");
        slow(LedgerWork::Sync);
        let first = record.standing();
        assert_eq!(first[0].fault.kind, TroubleKind::Slow);
        assert!(!record.stands(LedgerWork::Sync));
        let next = record.begin(LedgerWork::Sync);
        assert_eq!(record.standing()[0].since, first[0].since);
        next.succeeded();
        assert!(record.standing().is_empty(), "it was in time");
        slow(LedgerWork::Sync);
        let mut state = record.lock();
        let slow = state.slow.get_mut(&LedgerWork::Sync).unwrap();
        slow.ended = slow.ended.checked_sub(LINGERS).unwrap();
        drop(state);
        assert!(record.standing().is_empty(), "none has followed");
    }

    #[test]
    fn who_asked_knows_better_than_who_only_waited() {
        let record = TroubleRecord::new(unexplained);
        let begun = record.begin(LedgerWork::Commit);
        let number = record.late(Duration::ZERO)[0].number;
        let locked = Fault::new(TroubleKind::Blocked, "7 has locked it", "end 7");
        record.explain(number, Some(locked.clone()));
        let timeout = Fault::new(TroubleKind::Blocked, "a lock", "wait").vaguely();
        begun.met(timeout.clone());
        begun.failed(timeout.clone());
        assert_eq!(record.standing()[0].fault, locked);
        record.begin(LedgerWork::Commit).failed(timeout);
        assert_eq!(record.standing()[0].fault, locked);
        record.begin(LedgerWork::Commit).failed(refused("no right"));
        assert_eq!(causes(&record), ["no right"]);
        let sqlstate = &record.standing()[0].fault.sqlstate;
        assert_eq!(sqlstate.as_deref(), Some("42501"));
    }
}
