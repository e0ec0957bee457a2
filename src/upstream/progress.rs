//! Where a running request is: which target has it now, and which attempts have failed. For the operator; it decides nothing.

use std::sync::Mutex;

use farebox_ledger::{Timestamp, clock, lock};

use super::Attempt;
use crate::config::Target;

/// Shared by the request and whoever looks at it.
#[derive(Debug, Default)]
pub struct Progress(Mutex<ProgressStage>);

/// One look.
#[derive(Debug, Clone, Default)]
pub struct ProgressStage {
    /// Failed attempts so far.
    pub attempts: Vec<Attempt>,
    /// The target that has it now, `provider/model`, and since when.
    pub asked: Option<(String, Timestamp)>,
    /// Whether the answer has begun.
    pub answers: bool,
}

impl Progress {
    /// Where it is now.
    pub fn stage(&self) -> ProgressStage {
        lock(&self.0).clone()
    }

    pub(super) fn asked(&self, target: &Target) {
        self.change(|stage| stage.asked = Some((target.name(), clock::now())));
    }

    pub(super) fn failed(&self, attempt: &Attempt) {
        self.change(|stage| {
            stage.asked = None;
            stage.attempts.push(attempt.clone());
        });
    }

    pub(super) fn answers(&self) {
        self.change(|stage| stage.answers = true);
    }

    fn change(&self, change: impl FnOnce(&mut ProgressStage)) {
        change(&mut lock(&self.0));
    }
}
