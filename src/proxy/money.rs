//! The money of a request: what its key can hold, what was granted, and the refusal where that is too little.

use farebox_ledger::{Amount, CapInterval, CapReached, Key, LedgerError, Refusal, Scope, UtcDay};
use farebox_protocol::{Family, Inspection};

use super::balance::ToldCap;
use super::{Failure, Request};
use crate::clock;
use crate::config::{Model, Target};
use crate::metering::{Ask, Terms};

/// What bounds the money of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MoneyBound {
    Balance,
    /// A cap, which has less room than the balance.
    Cap,
}

/// A target and what is held for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reckoned {
    /// As an index into the route; `None` where no target may be asked.
    pub(super) target: Option<(usize, Family)>,
    pub(super) ask: Ask,
    pub(super) terms: Terms,
    /// What bound the limit, if it was lowered.
    pub(super) bound: MoneyBound,
}

impl Reckoned {
    /// Whether that is this target, asked in this family.
    pub(super) fn is_for(&self, model: &Model, target: &Target, family: Family) -> bool {
        self.target.is_some_and(|(at, in_family)| {
            let own = model.route.targets.get(at);
            in_family == family && own.is_some_and(|own| std::ptr::eq(own, target))
        })
    }
}

/// What a key can hold for a request: its balance minus holds, or less where a cap has less room.
#[derive(Debug, Clone)]
pub(super) struct MoneyRoom {
    pub(super) available: Amount,
    pub(super) held: Amount,
    /// The cap that binds, if one does.
    pub(super) cap: Option<Box<CapReached>>,
    /// What the account has where a cap binds.
    account: Option<(Amount, Amount)>,
}

/// What a request waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Bottleneck {
    /// Streams of its customer that have no frame yet, and may leave too much together.
    Beginning,
    /// Its customer's purse.
    Purse,
    /// Room in one cap.
    Cap(Scope, CapInterval, Option<String>),
}

impl MoneyRoom {
    pub(super) fn of(key: &Key, slug: &str) -> Self {
        let (customer, today) = (&key.customer, UtcDay::of(clock::now()));
        let available = customer.available(slug);
        // Of grants for other models nothing comes back to this request, however long it waits.
        let left = customer.balance(slug).checked_sub(available);
        let held = left.unwrap_or_default().max(Amount::ZERO);
        match key.binding_cap(slug, today) {
            None => Self {
                available,
                held,
                cap: customer.plan_limit(slug).map(Box::new),
                account: None,
            },
            Some((scope, counted)) => Self {
                account: Some((available, held)),
                ..Self::capped(counted.reached(scope, today, Amount::ZERO))
            },
        }
    }

    /// What was left when the ledger refused a hold.
    ///
    /// # Errors
    /// Any other refusal.
    pub(super) fn left(refusal: Refusal) -> Result<Self, Refusal> {
        match refusal {
            Refusal::Insufficient {
                available, held, ..
            } => Ok(Self {
                available,
                held,
                cap: None,
                account: None,
            }),
            Refusal::CapReached(reached) => Ok(Self::capped(*reached)),
            other => Err(other),
        }
    }

    fn capped(cap: CapReached) -> Self {
        Self {
            available: cap.room,
            held: cap.held,
            cap: Some(Box::new(cap)),
            account: None,
        }
    }

    /// What it would be if nothing were held.
    pub(super) fn at_rest(&self) -> Amount {
        let sum = self.available.checked_add(self.held);
        sum.unwrap_or(self.available)
    }

    /// Whether other requests hold some of it.
    pub(super) const fn is_shared(&self) -> bool {
        self.held.is_positive()
    }

    pub(super) fn bottleneck(&self) -> Bottleneck {
        match self.cap.as_deref() {
            None => Bottleneck::Purse,
            // What a plan has comes back with the purse.
            Some(CapReached { plan: Some(_), .. }) => Bottleneck::Purse,
            Some(CapReached { scope, cap, .. }) => {
                Bottleneck::Cap(*scope, cap.interval, cap.model.clone())
            }
        }
    }
}

/// Why a hold is not as large as a target needs it.
pub(super) fn refused(
    error: LedgerError,
    ask: &Ask,
    of: (&Request, &Inspection),
    model: &Model,
) -> Failure {
    match error {
        LedgerError::Refused(refusal) => match MoneyRoom::left(refusal) {
            Ok(room) => too_little(ask, of, model, room),
            Err(other) => LedgerError::Refused(other).into(),
        },
        error => error.into(),
    }
}

/// The refusal of a request that its balance cannot pay, or a cap has no room for.
pub(super) fn too_little(
    ask: &Ask,
    (request, seen): (&Request, &Inspection),
    model: &Model,
    room: MoneyRoom,
) -> Failure {
    let left = room.available;
    let short = ask.short(model.price.held(ask.classes), &model.limits, left);
    let MoneyRoom {
        available,
        held,
        cap,
        account,
    } = room;
    let (available, held, cap) = match account {
        // The balance is judged first: a cap that starts again would not help.
        Some((available, held)) if short.needed > available => (available, held, None),
        _ => (available, held, cap),
    };
    let cap = cap.map(|cap| Box::new(ToldCap::to((request.key, request.is_owners), *cap)));
    // Named where a smaller one would help.
    let field = seen.places.limit.as_ref().map_or("", |(name, _)| name);
    Failure::balance(&model.slug, &short, (available, held), field).bound_by(cap)
}
