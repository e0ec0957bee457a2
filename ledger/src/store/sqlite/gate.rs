//! Whether a new hold may be taken: its end has room on the disk, and the log is below its limit.
//!
//! The writer asks before each batch that is more than ends of holds, and after each checkpoint a thread looks at disk and log, so
//! that selling goes on by itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::SqliteLedger;
use super::location::Location;
use super::room::DiskRoom;
use crate::store::stats::LOG_LOUD;
use crate::store::trouble_record::{LedgerWork, TroubleRecord};
use crate::{Fault, LedgerError, LogStats, TroubleKind, lock};

/// New holds are refused before the last of the disk is used: other programs need some of it, and so do settlements where nothing
/// can be reserved.
const FLOOR: u64 = LOG_LOUD;
/// Pause before the next attempt after a full disk.
const RETRY_AFTER: Duration = Duration::from_millis(250);

impl SqliteLedger {
    /// From this size of the log on new holds are refused; 1 GiB unless it is set.
    pub fn limit_log(&self, bytes: u64) {
        self.log_limit.store(bytes, Ordering::Relaxed);
    }
}

/// Why a ledger in a file takes no new holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// Nothing more can be reserved on the disk.
    Full,
    /// Less is free than is kept for running requests.
    Low,
    /// The log has reached its limit.
    Log,
}

impl NoRoom {
    /// Who keeps the log long is told with it.
    pub(super) fn fault(self, held: Option<&Fault>) -> Fault {
        let why = match self {
            Self::Full => "the disk is full".to_owned(),
            Self::Low => format!(
                "the disk is full: its last {} MiB are kept for what runs",
                FLOOR >> 20
            ),
            Self::Log => "its log has reached --wal-limit".to_owned(),
        };
        let (kind, remedy) = match self {
            Self::Full | Self::Low => (
                TroubleKind::DiskFull,
                "free space on the ledger's disk (*When the disk fills*); selling goes on by itself within a second",
            ),
            Self::Log => (
                TroubleKind::LogLimit,
                "end the transaction or the process that is named (*When the disk fills*); selling goes on by itself within a second",
            ),
        };
        let by = held.map_or_else(String::new, |held| format!("; {}", held.cause));
        let fault = Fault::new(kind, format!("nothing new is sold: {why}{by}"), remedy);
        fault.by(held.map_or_else(Vec::new, |held| held.blockers.clone()))
    }
}

/// What may run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    All,
    NoHolds(NoRoom),
    /// Only what ends holds: there is no more room than for that.
    Ends(NoRoom),
}

/// What a look at the ledger found.
#[derive(Debug)]
pub(super) struct RoomFacts {
    /// Open holds.
    pub(super) holds: u64,
    /// The size of the ledger's file once everything in the log is copied.
    pub(super) bytes: u64,
    /// Who keeps it from being copied.
    pub(super) held: Option<Fault>,
}

/// Decides whether holds are taken.
#[derive(Debug)]
pub(super) struct HoldGate {
    /// How long the log may become.
    limit: Arc<AtomicU64>,
    record: Arc<TroubleRecord>,
    state: Mutex<GateState>,
}

#[derive(Debug, Default)]
struct GateState {
    /// Only in the gateway.
    room: Option<DiskRoom>,
    /// Open holds at the last look, and those begun since.
    holds: u64,
    begun: u64,
    /// How many bytes of the disk are free; before the first look as many as there may be.
    free: Option<u64>,
    log_bytes: u64,
    /// Who keeps the log from being copied.
    held: Option<Fault>,
    /// The disk was full; when to try again.
    full: Option<Instant>,
}

impl HoldGate {
    /// The gate of a gateway reserves room in the files of `location`; that of a command refuses nothing but after a full disk.
    pub(super) fn new(
        limit: Arc<AtomicU64>,
        record: Arc<TroubleRecord>,
        location: Option<&Location>,
    ) -> Result<Self, LedgerError> {
        let room = location.map(DiskRoom::of).transpose()?;
        let state = Mutex::new(GateState {
            room,
            ..GateState::default()
        });
        Ok(Self {
            limit,
            record,
            state,
        })
    }

    /// What of a batch with so many new holds may run.
    pub(super) fn admit(&self, holds: u64, now: Instant) -> Admission {
        let mut state = self.state();
        // Holds that will be refused need no room.
        let holds = self.scarce(&state).map_or(holds, |_| 0);
        if state.full.is_none_or(|until| now >= until) {
            let open = state.open().saturating_add(holds);
            let covered = state.room.as_ref().map(|room| room.cover(open));
            state.note(covered.transpose(), now);
        }
        let admission = self.judge(&state);
        self.tell(&state, admission);
        if admission == Admission::All {
            state.begun = state.begun.saturating_add(holds);
        }
        admission
    }

    /// Notes that so many holds were ended. An end that was repeated counts twice, until the next look.
    pub(super) fn note_ends(&self, ends: u64) {
        let mut state = self.state();
        let older = ends.saturating_sub(state.begun);
        state.begun = state.begun.saturating_sub(ends);
        state.holds = state.holds.saturating_sub(older);
    }

    /// A commit found the disk full.
    pub(super) fn note_full(&self, now: Instant) {
        let mut state = self.state();
        state.full = now.checked_add(RETRY_AFTER);
        self.tell(&state, self.judge(&state));
    }

    /// How many holds were begun since the last look. Read it before the open holds are counted, and give it to [`HoldGate::look`].
    pub(super) fn begun(&self) -> u64 {
        self.state().begun
    }

    /// Takes note of the ledger, log and disk; returns whether a further look is due soon.
    pub(super) fn look(&self, seen: RoomFacts, begun: u64, now: Instant) -> bool {
        let mut state = self.state();
        state.begun = state.begun.saturating_sub(begun);
        state.holds = seen.holds;
        state.held = seen.held;
        let open = state.open();
        if let Some(room) = &state.room {
            let covered = room
                .cover_copy(seen.bytes, open)
                .and_then(|()| room.cover(open));
            let (bytes, free) = (room.log_bytes(), room.free());
            state.note(covered, now);
            // Neither fails on an open file; if one does, what was seen before stands.
            state.log_bytes = bytes.unwrap_or(state.log_bytes);
            state.free = free.ok().or(state.free);
        }
        self.record.note(LedgerWork::LogReaders, state.held.clone());
        let admission = self.judge(&state);
        self.tell(&state, admission);
        admission != Admission::All
    }

    pub(super) fn log(&self) -> Option<LogStats> {
        let state = self.state();
        state.room.as_ref().map(|_| LogStats {
            bytes: state.log_bytes,
            limit: self.limit.load(Ordering::Relaxed),
        })
    }

    fn tell(&self, state: &GateState, admission: Admission) {
        let why = match admission {
            Admission::All => None,
            Admission::NoHolds(why) | Admission::Ends(why) => Some(why),
        };
        let fault = why.map(|why| why.fault(state.held.as_ref()));
        self.record.note(LedgerWork::Room, fault);
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        lock(&self.state)
    }

    fn judge(&self, state: &GateState) -> Admission {
        if state.full.is_some() {
            return Admission::Ends(NoRoom::Full);
        }
        self.scarce(state)
            .map_or(Admission::All, Admission::NoHolds)
    }

    /// Why no new hold may use what is left.
    fn scarce(&self, state: &GateState) -> Option<NoRoom> {
        match state.free {
            Some(free) if free < FLOOR => Some(NoRoom::Low),
            _ => (state.log_bytes >= self.limit.load(Ordering::Relaxed)).then_some(NoRoom::Log),
        }
    }
}

impl GateState {
    /// How many holds are open now.
    const fn open(&self) -> u64 {
        self.holds.saturating_add(self.begun)
    }

    /// Notes whether what is needed is reserved. Any failure counts as a full disk: it is tried again.
    fn note<T>(&mut self, covered: std::io::Result<T>, now: Instant) {
        let full = covered.is_err();
        match (&covered, self.full) {
            (Err(error), None) => {
                tracing::error!(%error, "no room can be reserved on the ledger's disk: new holds are refused until there is space");
            }
            (Ok(_), Some(_)) => tracing::info!("there is space on the ledger's disk again"),
            (Err(_), Some(_)) | (Ok(_), None) => {}
        }
        self.full = full.then(|| now.checked_add(RETRY_AFTER)).flatten();
    }
}
