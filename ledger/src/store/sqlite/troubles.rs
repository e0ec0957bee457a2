//! What of a file's trouble only a look can find: who keeps a late commit waiting, and whether the clock jumped. Neither touches the
//! ledger.

use std::time::Instant;

use super::SqliteLedger;
use crate::store::trouble_record::LedgerWork;
use crate::value::clock;
use crate::{Fault, TroubleKind};

impl SqliteLedger {
    /// Looks, for whoever reads the record next.
    pub(super) fn look_for_trouble(&self) {
        if let Some(writer) = &self.opened().writer {
            writer.explain();
        }
        if let Some(wall_clock) = &self.wall_clock {
            let jumped = wall_clock.look(clock::now(), Instant::now());
            self.record.note(LedgerWork::Clock, jumped);
        }
    }
}

/// What is late without another program in the way.
pub(super) fn slow(what: &str) -> Fault {
    let cause = format!(
        "{what} has been under way for more than a second: the disk does not answer in time"
    );
    let remedy = "look at the disk of the ledger's file (iostat -x 1, the kernel's log)";
    Fault::new(TroubleKind::Slow, cause, remedy).vaguely()
}
