//! What a running request is told, how long it may run, and when its hold is given another size.

use farebox_ledger::{Amount, EndReason};
use tokio::time::Instant;

use super::super::end::End;
use super::super::money::Reckoned;
use super::{Admitted, LONGEST};
use crate::clock;

impl Admitted {
    /// Headers that say what was served: the slug, where an alias of it was asked for, and what did not reach the model.
    pub(in crate::proxy) fn headers(&self) -> Vec<(&'static str, String)> {
        let slug = &self.model.slug;
        let by_alias = self.count.seen.model != *slug;
        let slug = by_alias.then(|| ("x-farebox-slug", slug.clone()));
        let limit = self.reckoned.terms.told();
        let limit = limit.map(|limit| ("x-farebox-limit", limit));
        let omitted = self.outcome.omissions();
        let omitted = omitted.map(|(_, header, what)| (header, what));
        slug.into_iter().chain(limit).chain(omitted).collect()
    }

    /// When the request must end at the latest.
    pub(in crate::proxy) fn deadline(&self) -> Instant {
        self.request.arrived + LONGEST
    }

    /// Why a running stream has to end now, whatever it shows: its time is over, its key has ended, or other gateways may be about to end its
    /// hold, because this one has lost contact with the ledger.
    pub(in crate::proxy) fn ends(&self, now: Instant) -> Option<End> {
        if now >= self.deadline() {
            return Some(End::TOO_LONG);
        }
        if self.running.has_ended() || self.expires.is_some_and(|at| at <= clock::now()) {
            return Some(End::cut(EndReason::KeyState));
        }
        let lost = || match self.count.meter.shown_anything() {
            true => End::cut(EndReason::LedgerUnavailable),
            // Nothing was delivered, and the fault is ours: free.
            false => End::lost(EndReason::LedgerUnavailable, 200),
        };
        self.hold.lapsed().then(lost)
    }

    /// What is to be held once the provider has counted the prompt, if that is worth a move: more as far as there is room; less if that is much
    /// and somebody may want it.
    pub(in crate::proxy) fn counted_size(&self) -> Option<Amount> {
        let (cost, input) = self.count.meter.counted_prompt()?;
        let Reckoned { ask, terms, .. } = &self.reckoned;
        let price = self.model.price.held(ask.classes);
        let (size, held) = (ask.counted((cost, input), price, terms), self.hold.amount());
        let granted = self.hold.granted();
        let freed = held.checked_sub(size)?;
        let is_much = freed > Amount::from_picos(held.picos() / 4);
        let is_tight = Amount::times(held, 8).is_none_or(|ample| granted.left < ample)
            || self.proxy.waiting.has(self.request.customer);
        let moves = freed.is_negative() || (is_much && is_tight);
        moves.then_some(size)
    }
}
