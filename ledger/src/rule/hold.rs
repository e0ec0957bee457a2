//! What a hold is: how large it is, how it begins, moves, ends, and is recovered when its process has died. Pure; what it does to a
//! customer's money is in `account`.

use std::sync::Arc;

use crate::value::tries::{Owed, UNMETERED};
use crate::{
    Amount, Bill, CustomerId, EndReason, Evidence, KeyId, MoneyPart, OperationId, Timestamp, UtcDay,
};

/// One way to reckon what a request may cost: so much whatever is answered, and so much more for each token of the limit that it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldWay {
    /// What the limit does not change: the input, above all.
    pub fixed: Amount,
    /// A token of the limit, in all choices together.
    pub token: Amount,
    /// The limit that a request gets beside others, if there is room for it, however small its share is.
    pub floor: u64,
    /// The limit that one is content with that has what binds it to itself.
    pub least: u64,
    /// The largest limit.
    pub most: u64,
}

/// What a hold finds: how much there is, its own included, and whether anybody else holds some of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HoldRoom {
    pub(crate) left: Amount,
    pub(crate) alone: bool,
}

/// Parts of what is left beyond its input that a request may take: alone …
const HALF: i128 = 2;
/// … and beside others, so that as many agents as usually run side by side find some.
const EIGHTH: i128 = 8;

impl HoldWay {
    /// Exactly this much, whatever the limit is.
    #[must_use]
    pub const fn exactly(amount: Amount) -> Self {
        Self {
            fixed: amount,
            token: Amount::ZERO,
            floor: 0,
            least: 0,
            most: 0,
        }
    }

    /// The limit that there is room for; `None` if it is too small.
    pub(crate) fn limit_in(&self, room: HoldRoom) -> Option<u64> {
        let left = i128::from(room.left.picos()).checked_sub(i128::from(self.fixed.picos()))?;
        if left < 0 {
            return None;
        }
        let buys = |money: i128| match money.checked_div(i128::from(self.token.picos())) {
            Some(tokens) => u64::try_from(tokens).unwrap_or(u64::MAX).min(self.most),
            None => self.most,
        };
        let (part, least) = if room.alone {
            (HALF, self.least)
        } else {
            (EIGHTH, self.floor)
        };
        let fits = buys(left);
        let share = buys(left.checked_div(part)?).max(self.floor);
        // A request that asks for less than the least needs no more than it asks for.
        (fits >= least.min(self.most)).then(|| fits.min(share))
    }

    /// What a limit is held at; `None` above what any balance can be.
    pub fn amount(&self, limit: u64) -> Option<Amount> {
        let tokens = self.token.picos().checked_mul(i64::try_from(limit).ok()?)?;
        self.fixed.checked_add(Amount::from_picos(tokens))
    }

    /// The least that it needs in such a room.
    pub fn needs(&self, alone: bool) -> Amount {
        let least = if alone { self.least } else { self.floor };
        let most = Amount::from_picos(i64::MAX);
        self.amount(least.min(self.most)).unwrap_or(most)
    }

    /// The first way that makes this amount, and the limit with which it does: what a repeated request is answered. Where two ways make it,
    /// this is the one with the smaller limit.
    pub(crate) fn of(ways: &[Self], amount: Amount) -> Option<(usize, u64)> {
        let mut all = ways.iter().enumerate();
        all.find_map(|(at, way)| {
            let beyond = amount.picos().checked_sub(way.fixed.picos())?;
            let limit = match beyond.checked_rem(way.token.picos()) {
                Some(0) => u64::try_from(beyond.checked_div(way.token.picos())?).ok()?,
                // Its tokens cost nothing, so every limit makes this amount: the largest is given (see `limit_in`).
                None if beyond == 0 => way.most,
                Some(_) | None => return None,
            };
            (limit <= way.most).then_some((at, limit))
        })
    }
}

/// A request for a hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewHold {
    /// The caller's own id of the request: the same again gets the answer of the first.
    pub request: OperationId,
    /// Who pays.
    pub customer: CustomerId,
    /// The customer's key that asks.
    pub key: KeyId,
    /// How its cost may be reckoned: the first for which there is room stands.
    pub ways: Vec<HoldWay>,
    /// The public slug.
    pub slug: String,
    /// The wire family.
    pub family: String,
    /// The caller's clock: it dates what is recorded.
    pub at: Timestamp,
}

/// Another size of a hold, and what its request would be charged by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldMove {
    /// The request.
    pub request: OperationId,
    /// Counted by the request from 1 on: a move that is not newer than what the ledger knows changes nothing.
    pub number: u32,
    /// What is to be held.
    pub to: NewSize,
    /// The charge so far, which recovery would take after a crash. `lines` says how it was counted.
    pub checkpoint: Option<Bill>,
    /// The caller's clock: expiry is judged by it.
    pub at: Timestamp,
}

/// The size that a hold is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewSize {
    /// What it has.
    Same,
    /// So much. A smaller one is never refused; a larger one of an active key is had as far as there is room.
    Amount(Amount),
    /// What one of these ways needs, as if it were opened.
    Ways(Vec<HoldWay>),
}

/// What is held for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// How much.
    pub amount: Amount,
    /// What is left beside it.
    pub left: Amount,
    /// Whether a cap has less room than the balance.
    pub by_cap: bool,
    /// Which of the ways was granted, and the limit that it buys; `None` of a size that was named.
    pub granted: Option<(usize, u64)>,
}

/// The end of a hold. `bill.lines` is the cost of the request; the store decides how much of it the customer can pay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The request.
    pub request: OperationId,
    /// How it ended. The store fills in `hold` and `loss`.
    pub bill: Bill,
    /// The caller's clock: it dates what is recorded.
    pub at: Timestamp,
}

impl Finish {
    /// A resolver's replacement for a finish with an absurd bill: the last checkpoint's counts, marked as disputed.
    pub(crate) fn disputed(self, checkpoint: Option<Bill>) -> Self {
        let counted = checkpoint.unwrap_or_default();
        let mut bill = Bill {
            usage: counted.usage,
            lines: counted.lines,
            evidence: Some(Evidence::Disputed),
            ..self.bill
        };
        // What is told beside the charge stands, unless it is absurd as well.
        if bill.check_facts().is_err() {
            (bill.exposure, bill.cost, bill.facts) =
                (counted.exposure, counted.cost, counted.facts);
            (bill.provider_cost, bill.cost_source) = (counted.provider_cost, counted.cost_source);
        }
        Self { bill, ..self }
    }
}

/// The end of a hold that must be reached: nobody else will tell it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveHold(pub Arc<Finish>);

/// A new epoch to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeginEpoch {
    /// The caller's clock: it dates what is recorded, and limits and expiry are judged by it.
    pub now: Timestamp,
}

/// Holds of earlier epochs to end at their checkpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recover {
    /// The current epoch.
    pub epoch: i64,
    /// The caller's clock: it dates what is recorded, and limits and expiry are judged by it.
    pub now: Timestamp,
}

/// The finish that recovery gives a hold whose process died.
pub(crate) fn recovered(hold: &OpenHold, checkpoint: Option<Bill>, now: Timestamp) -> Finish {
    let blank = || Bill {
        slug: hold.slug.clone(),
        family: hold.family.clone(),
        ..Bill::default()
    };
    let mut bill = checkpoint.unwrap_or_else(blank);
    bill.evidence = Some(Evidence::Recovered);
    bill.end_reason = EndReason::Recovered;
    // The provider went on until it noticed the disconnect, or to its end. It bills no more than is held.
    let accounted = hold.used.picos().saturating_add(bill.exposure.picos());
    let exposure = Amount::from_picos(hold.amount.picos().saturating_sub(accounted).max(0));
    bill.owe(
        UNMETERED,
        Owed {
            exposure,
            cost: None,
        },
    );
    Finish {
        request: hold.request,
        bill,
        at: now,
    }
}

/// The result of ending a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedHold {
    /// Taken from the customer; not negative.
    pub charge: Amount,
    /// Cost that the customer could not pay.
    pub loss: Amount,
    /// What the key may still be charged for the slug, immediately afterwards.
    pub remaining: Amount,
}

/// A hold as the lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenHold {
    /// The request.
    pub request: OperationId,
    /// The key that asked; its customer pays.
    pub key: KeyId,
    /// Held now.
    pub amount: Amount,
    /// Charge so far at the last checkpoint.
    pub used: Amount,
    /// The public slug.
    pub slug: String,
    /// The wire family.
    pub family: String,
    /// When it was opened.
    pub at: Timestamp,
    /// The gateway run that opened it.
    pub epoch: i64,
}

/// What a recovery at startup did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// The new epoch.
    pub epoch: i64,
    /// Holds ended with a charge from their checkpoint.
    pub settled: usize,
    /// Holds ended without a charge.
    pub released: usize,
}

/// An open hold, with the fields that lists do not show.
#[derive(Debug, Clone)]
pub(crate) struct StoredHold {
    pub(crate) open: OpenHold,
    /// Its size at the beginning.
    pub(crate) opened: Amount,
    /// What of it is held of grants; the rest is the pool's.
    pub(crate) parts: Vec<MoneyPart>,
    /// The number of its last move.
    pub(crate) moves: u32,
    /// The day by the ledger's clock on which it was opened: its caps count it there, and its charge.
    pub(crate) day: UtcDay,
    /// Boxed, because most holds end without one.
    pub(crate) checkpoint: Option<Box<Bill>>,
}

impl StoredHold {
    /// A hold as it is opened.
    pub(crate) fn new(new: &NewHold, amount: Amount, epoch: i64, day: UtcDay) -> Self {
        let open = OpenHold {
            request: new.request,
            key: new.key,
            amount,
            used: Amount::ZERO,
            slug: new.slug.clone(),
            family: new.family.clone(),
            at: new.at,
            epoch,
        };
        Self {
            open,
            opened: amount,
            parts: Vec::new(),
            moves: 0,
            day,
            checkpoint: None,
        }
    }

    /// Whether this is what opening `new` made. It may have moved since.
    pub(crate) fn is_of(&self, new: &NewHold) -> bool {
        let open = &self.open;
        let same = (open.key, &open.slug, &open.family, open.at)
            == (new.key, &new.slug, &new.family, new.at);
        same && HoldWay::of(&new.ways, self.opened).is_some()
    }
}
