//! Admission: the one place where money is held.
//!
//! The first decision uses the key as authentication read it moments ago; the ledger's writer checks again inside its transaction.
//! A refusal costs no write. If another request took the money in between, the terms are decided again from what is left. If other
//! requests hold some of the balance, the account is read once more before the refusal, because they may have released it
//! meanwhile.
//!
//! Rows of docs/interface.md: `balance_smaller_than_the_request`.

use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::{
    Account, Amount, CapReached, Hold, Key, LedgerError, NewHold, Refusal, SharedLedger, UtcDay,
};

use super::admitted::Admitted;
use super::balance::ToldCap;
use super::broken::MoneyBound;
use super::prepare::PreparedRequest;
use super::{Failure, Proxy};
use crate::clock;
use crate::metering::{Remedies, Shortfall, Terms, terms};

/// Attempts before a request whose key's balance keeps changing is refused with a retry hint.
///
/// Each try reads the account anew, so it fails only if another request of the same key took the money in between. One try would
/// refuse requests that the balance can pay; without an end, agents that race for the last cents would keep the ledger busy.
const TRIES: usize = 5;
/// If the key was read longer ago than this, because the body arrived slowly, it is read again.
///
/// Ordinary requests are admitted within a few milliseconds and cost no second read. An older account misses payments and released
/// holds; it cannot overspend, because the ledger's writer checks again.
const FRESH: Duration = Duration::from_millis(100);

/// Holds the money for a request; `key` is as authentication read it.
///
/// # Errors
/// 403 for a key that is no longer active, 429 without enough money, 503 without a ledger.
pub(super) async fn admit(
    proxy: &Arc<Proxy>,
    key: &Key,
    mut prepared: PreparedRequest,
) -> Result<Box<Admitted>, Failure> {
    let (hold, terms, bound) = hold(&proxy.ledger, key, &prepared).await?;
    prepared.request.work.paid();
    (prepared.bodies).limit(&terms, prepared.seen.limit, &prepared.model);
    Ok(Admitted::new(
        Arc::clone(proxy),
        prepared,
        (terms, bound),
        hold,
    ))
}

/// What a key can hold for a request: its balance minus holds, or less where a cap has less room.
struct HoldableMoney {
    available: Amount,
    held: Amount,
    /// The cap that binds, if one does.
    cap: Option<Box<CapReached>>,
    /// The account, where it has not been judged yet.
    account: Option<Account>,
}

impl HoldableMoney {
    fn of(key: &Key, slug: &str) -> Self {
        let (account, today) = (key.customer.account, UtcDay::of(clock::now()));
        let available = account.available();
        match key.binding_cap(slug, today) {
            None => Self {
                available,
                held: account.held,
                cap: None,
                account: None,
            },
            Some((scope, counted)) => Self {
                account: Some(account),
                ..Self::capped(counted.reached(scope, today, Amount::ZERO))
            },
        }
    }

    const fn bound(&self) -> MoneyBound {
        match self.cap {
            None => MoneyBound::Balance,
            Some(_) => MoneyBound::Cap,
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
}

/// Decides the terms from what the key can hold, and opens the hold.
async fn hold(
    ledger: &SharedLedger,
    key: &Key,
    prepared: &PreparedRequest,
) -> Result<(Hold, Terms, MoneyBound), Failure> {
    let PreparedRequest {
        request,
        model,
        ask,
        ..
    } = prepared;
    let mut refusal = None;
    let mut fresh = request.arrived.elapsed() > FRESH;
    let mut purse = if fresh {
        read(ledger, prepared).await?
    } else {
        HoldableMoney::of(key, &model.slug)
    };
    let price = model.price.held(ask.classes);
    for _ in 0..TRIES {
        let terms = match terms::decide(ask, price, &model.limits, purse.available) {
            Ok(terms) => terms,
            // If nothing is held, only a payment can help, and the first read already saw every confirmed payment.
            Err(short) if fresh || purse.held == Amount::ZERO => {
                return Err(too_little(prepared, key, &short, purse));
            }
            Err(_) => {
                (purse, fresh) = (read(ledger, prepared).await?, true);
                continue;
            }
        };
        match Hold::open(Arc::clone(ledger), new_hold(prepared, &terms)).await {
            Ok(hold) => return Ok((hold, terms, purse.bound())),
            Err(LedgerError::Refused(refused)) => {
                let less = match refused {
                    Refusal::Insufficient {
                        available, held, ..
                    } => HoldableMoney {
                        available,
                        held,
                        cap: None,
                        account: None,
                    },
                    Refusal::CapReached(reached) => HoldableMoney::capped(*reached),
                    other => return Err(LedgerError::Refused(other).into()),
                };
                let available = less.available;
                let short = terms::decide(ask, price, &model.limits, available).err();
                let short = short.unwrap_or(Shortfall {
                    needed: terms.hold,
                    affordable_output: 0,
                    remedies: Remedies::default(),
                });
                refusal = Some(too_little(prepared, key, &short, less));
                (purse, fresh) = (read(ledger, prepared).await?, true);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(refusal.unwrap_or_else(|| {
        LedgerError::unavailable("the account changed before every attempt to hold money").into()
    }))
}

fn new_hold(prepared: &PreparedRequest, terms: &Terms) -> NewHold {
    let request = &prepared.request;
    NewHold {
        request: request.id,
        customer: request.customer,
        key: request.key,
        amount: terms.hold,
        slug: prepared.model.slug.clone(),
        family: request.family.name().to_owned(),
        // Not the arrival time: the body may have arrived slowly, and the key may have expired meanwhile.
        at: clock::now(),
    }
}

/// The refusal of a request that its balance cannot pay, or a cap has no room for.
fn too_little(
    prepared: &PreparedRequest,
    key: &Key,
    short: &Shortfall,
    purse: HoldableMoney,
) -> Failure {
    // Named where a smaller one would help.
    let limit = prepared.seen.places.limit.as_ref();
    let limit_field = limit.map_or("", |(name, _)| name);
    let HoldableMoney {
        available,
        held,
        cap,
        account,
    } = purse;
    let (available, held, cap) = match account {
        // The balance is judged first: a cap that starts again would not help.
        Some(account) if short.needed > account.available() => {
            (account.available(), account.held, None)
        }
        _ => (available, held, cap),
    };
    let cap = cap.map(|cap| Box::new(ToldCap::to(key, *cap)));
    Failure::balance(&prepared.model.slug, short, available, held, limit_field).bound_by(cap)
}

/// What the key can hold now.
async fn read(ledger: &SharedLedger, prepared: &PreparedRequest) -> Result<HoldableMoney, Failure> {
    let key = ledger.find_key(prepared.request.key).await?;
    key.map(|key| HoldableMoney::of(&key, &prepared.model.slug))
        .ok_or(Failure::Unauthenticated("this key is not known"))
}
