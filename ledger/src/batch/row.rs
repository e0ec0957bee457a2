//! Single rows in memory, and whether and how they differ from what the database has.

use crate::Account;
use crate::book::head::StoredCustomer;
use crate::rule::key::KeyRecord;
use crate::rule::limit::Traffic;

/// A customer with its account and the ends of its chains.
#[derive(Debug, Clone)]
pub(crate) struct CustomerRow {
    pub(crate) stored: StoredCustomer,
    /// Its traffic at all gateways; `None` if a single gateway counts for itself.
    pub(crate) traffic: Option<Traffic>,
    /// Account and number of the newest entry as the database has them; `None` if it does not have the customer yet.
    pub(crate) before: Option<(Account, i64)>,
    pub(crate) account_changed: bool,
    pub(crate) settings_changed: bool,
    pub(crate) audit_changed: bool,
    pub(crate) caps_changed: bool,
    pub(crate) claim_changed: bool,
    pub(crate) watch_changed: bool,
    pub(crate) auto_top_up_changed: bool,
    /// Whether something happens to its grants at another instant than the database says.
    pub(crate) next_grant_changed: bool,
}

impl CustomerRow {
    /// As the database has it.
    pub(crate) fn stored(stored: StoredCustomer, traffic: Option<Traffic>) -> Self {
        let mut row = Self::new(stored, traffic);
        row.written();
        row
    }

    /// Notes that the database has it as it is.
    pub(super) fn written(&mut self) {
        self.before = Some((self.stored.customer.account, self.stored.head.seq));
        (self.account_changed, self.settings_changed) = (false, false);
        (self.audit_changed, self.caps_changed) = (false, false);
        (self.claim_changed, self.watch_changed) = (false, false);
        (self.auto_top_up_changed, self.next_grant_changed) = (false, false);
    }

    /// As it will be inserted.
    pub(crate) const fn new(stored: StoredCustomer, traffic: Option<Traffic>) -> Self {
        Self {
            stored,
            traffic,
            before: None,
            account_changed: true,
            settings_changed: true,
            audit_changed: true,
            caps_changed: true,
            claim_changed: true,
            watch_changed: true,
            auto_top_up_changed: true,
            next_grant_changed: true,
        }
    }

    pub(super) const fn is_touched(&self) -> bool {
        self.account_changed
            || self.settings_changed
            || self.audit_changed
            || self.caps_changed
            || self.claim_changed
            || self.watch_changed
            || self.auto_top_up_changed
            || self.next_grant_changed
    }
}

#[derive(Debug, Clone)]
pub(crate) struct KeyRow {
    pub(crate) key: KeyRecord,
    /// Its traffic at all gateways; `None` if it has no limit of its own, or a single gateway counts for itself.
    pub(crate) traffic: Option<Traffic>,
    /// Whether the database has it.
    pub(crate) is_stored: bool,
    pub(crate) settings_changed: bool,
    /// Whether what its caps and limits count has changed.
    pub(crate) counts_changed: bool,
}

impl KeyRow {
    /// As the database has it.
    pub(crate) const fn stored(key: KeyRecord, traffic: Option<Traffic>) -> Self {
        Self {
            key,
            traffic,
            is_stored: true,
            settings_changed: false,
            counts_changed: false,
        }
    }

    /// As it will be inserted.
    pub(crate) const fn new(key: KeyRecord, traffic: Option<Traffic>) -> Self {
        Self {
            key,
            traffic,
            is_stored: false,
            settings_changed: true,
            counts_changed: true,
        }
    }

    /// Notes that the database has it as it is.
    pub(super) const fn written(&mut self) {
        self.is_stored = true;
        (self.settings_changed, self.counts_changed) = (false, false);
    }
}

/// The last numbers handed out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Positions {
    /// A database has one sequence for both, with gaps.
    Shared(i64),
    /// A file counts both without a gap.
    Counted { entries: i64, acts: i64 },
}

impl Default for Positions {
    fn default() -> Self {
        Self::Shared(0)
    }
}

impl Positions {
    pub(crate) const fn next_entry(self) -> i64 {
        let (Self::Shared(last) | Self::Counted { entries: last, .. }) = self;
        last.saturating_add(1)
    }

    pub(crate) const fn next_act(self) -> i64 {
        let (Self::Shared(last) | Self::Counted { acts: last, .. }) = self;
        last.saturating_add(1)
    }
}
