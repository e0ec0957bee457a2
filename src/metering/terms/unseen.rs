//! The terms of a stream that holds its whole limit: its target may produce all of it before it shows anything, at a pace that nobody
//! knows, so only its limit bounds what it costs.

use super::super::price::times;
use super::{Ask, KeyBudget, SMALLEST_OUTPUT, Shortfall};
use crate::config::ModelLimits;

/// A stream that has to hold its whole limit and declares none holds this many times what a whole answer would get: few answers are
/// longer, and a key with little money would otherwise run a single one.
// The default limit alone would cut long answers that an ordinary stream would deliver; the model's whole limit would lock up
// dollars for an answer of cents.
const UNDECLARED: u64 = 4;
/// Where such a limit is lowered to what the key has, this part of it stays free, so that another request can begin.
const LEFT_FREE: i128 = 10;

/// The limit of a stream that holds all of it.
pub(super) struct Unseen {
    pub(super) sent: u64,
    pub(super) held: u64,
    /// Whether the money does not suffice for what would be sent otherwise.
    pub(super) lowered: bool,
    /// The most that the hold may take.
    pub(super) cap: i128,
}

impl KeyBudget {
    /// The limit of a stream that holds all of it; `room` is the most output that the context leaves.
    pub(super) fn unseen(
        &self,
        ask: &Ask,
        limits: &ModelLimits,
        most: u64,
        room: u64,
    ) -> Result<Unseen, Shortfall> {
        let smallest = ask.thinking_budget.map_or(SMALLEST_OUTPUT, |budget| {
            u64::from(budget).saturating_add(SMALLEST_OUTPUT)
        });
        let wanted = match ask.declared {
            Some(_) => most,
            None => u64::from(limits.default_output)
                .saturating_mul(UNDECLARED)
                .max(smallest)
                .min(most),
        };
        let (affordable, all) = (self.affordable(), self.available);
        if self.available > 0 && affordable >= wanted.min(room) {
            // With ample money an undeclared limit is not written: the hold grows with time beyond what it covers at first.
            let ample = all
                >= self
                    .nearly_empty
                    .saturating_mul(self.fixed.saturating_add(times(self.per_output, most)));
            let sent = if ask.declared.is_none() && ample {
                most
            } else {
                wanted
            };
            return Ok(Unseen {
                sent,
                held: wanted,
                // An undeclared limit that is written here is our choice: the money may suffice for more.
                lowered: false,
                cap: all,
            });
        }
        let sent = self.lowered(wanted, ask.thinking_budget)?;
        let kept = Self {
            available: all.saturating_sub(all / LEFT_FREE),
            ..*self
        };
        let fits = kept.affordable();
        let (sent, cap) = if fits >= smallest {
            (sent.min(fits), kept.available)
        } else {
            (sent.min(smallest), all)
        };
        Ok(Unseen {
            sent,
            held: sent,
            lowered: sent < wanted,
            cap,
        })
    }
}
