//! Keys that owner keys make, in the reference store: how many, and what each may be given, decided here once more.

use super::State;
use super::operations::{Done, amount, not_applicable, picos};
use crate::{
    Amount, Cap, CountedCap, CustomerId, KeyId, KeyRecord, KeyStatus, MadeBound, Membership,
    Refusal, Scope, UtcDay, clock,
};

impl State {
    /// At most a thousand keys of owner keys that can still be used, and sixty in a minute.
    pub(super) fn check_made(&self, customer: CustomerId) -> Done<()> {
        let now = clock::now();
        let all = self.keys.values();
        let made: Vec<_> = all
            .filter(|key| key.belongs_to == customer && key.counts_in.is_some())
            .collect();
        let live = made.iter().filter(|key| {
            let has_ended = key.settings.expires_at.is_some_and(|end| end <= now);
            key.stored_status != KeyStatus::Revoked && !has_ended
        });
        let minute_ago = now.millis().saturating_sub(60_000);
        let lately = made
            .iter()
            .filter(|key| key.created_at.millis() > minute_ago);
        match (live.count(), lately.count()) {
            (1_000.., _) => Err(Refusal::TooManyMade(MadeBound::Live)),
            (_, 60..) => Err(Refusal::TooManyMade(MadeBound::Minute)),
            _ => Ok(()),
        }
    }

    /// What a new key may spend is at most what the key that makes it may spend now.
    pub(super) fn check_purse(&self, id: KeyId, within: &Membership, purse: &Cap) -> Done<()> {
        let Some(maker) = within.made_by else {
            let text = "only a key that an owner key makes begins with a limit";
            return Err(not_applicable(text));
        };
        let mut after = self.clone();
        after.caps.remove(&id.into());
        after.fit_house(id.into())?;
        after.set_cap(id.into(), purse, UtcDay::of(clock::now()))?;
        let room = self.spendable(maker)?;
        if picos(purse.limit) > picos(room) {
            return Err(Refusal::AboveRoom {
                limit: purse.limit,
                left: purse.limit,
                room,
            });
        }
        Ok(())
    }

    /// What a key may spend now on a model that has no cap of its own.
    fn spendable(&self, key: KeyId) -> Done<Amount> {
        let now = clock::now();
        let mut after = self.clone();
        let payer = after.payer(key)?.id;
        let parts = after.begin_windows(payer, "", now);
        let free = after.takable(payer, "", &parts);
        amount(after.room(key, "", UtcDay::of(now), free))
    }

    /// What an owner key gives a key that it made: more only as far as it has room itself.
    pub(super) fn refill(&mut self, key: &KeyRecord, purse: &Cap) -> Done<()> {
        let today = UtcDay::of(clock::now());
        let is_it = |counted: &&CountedCap| {
            (counted.cap.interval, &counted.cap.model) == (purse.interval, &purse.model)
        };
        let before = key.caps.iter().find(is_it).map(|counted| counted.cap.limit);
        let state = self.clone();
        self.set_cap(key.id.into(), purse, today)?;
        let Some(maker) = key.counts_in else {
            *self = state;
            let text = format!("no owner key made key {}", key.id);
            return Err(not_applicable(&text));
        };
        let room = self.spendable(maker)?;
        let caps = self.key(key.id)?.caps.clone();
        let Some(after) = caps.iter().find(is_it) else {
            return Ok(());
        };
        let (limit, left) = (after.cap.limit, after.room(today));
        if before.is_none_or(|before| limit > before) && left > room {
            *self = state;
            return Err(Refusal::AboveRoom { limit, left, room });
        }
        Ok(())
    }

    /// Whether anything that counts in a key's caps was charged or is held.
    pub(super) fn has_spent(&self, key: KeyId) -> bool {
        let counts = |other: KeyId| self.scopes(other).contains(&Scope::Key(key));
        let mut charged = self.entries.iter().filter(|entry| entry.bill.is_some());
        let is_charged = charged.any(|entry| entry.key.is_some_and(counts));
        is_charged || self.holds.values().any(|held| counts(held.open.key))
    }
}
