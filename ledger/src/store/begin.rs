//! What a gateway's start does to its ledger: it books the bills that the last run kept, and then ends its other holds.

use std::sync::Arc;

use futures_util::future::join_all;

use super::Store;
use super::bill_file::cost;
use crate::{
    Amount, EndReason, Finish, LedgerError, Perform, Recovered, Refusal, ResolveHold, Timestamp,
};

/// Bills booked at the same time.
// They share commits, as requests do: one after the other, each bill would cost a commit of its own, and the sale waits for all of them.
const TOGETHER: usize = 256;

/// Says that a bill came too late.
pub(crate) fn log_late(finish: &Finish) {
    tracing::error!(request = %finish.request, cost = %cost(finish), "a bill arrived after its request had been ended at its checkpoint; it is not charged");
}

/// What became of a kept bill.
enum Booked {
    /// Charged, now or before.
    Charged,
    /// Its hold had been ended at its checkpoint before.
    Late,
    /// Its ledger does not know the request, and nothing was to be charged: the hold was never opened.
    Nothing,
    /// The ledger refuses it.
    Refused(Refusal),
}

/// Books the bills that an earlier run left behind, and then ends its other holds. Killed at any moment, it can be repeated.
pub(crate) async fn begin(
    store: &(impl Store + ?Sized),
    now: Timestamp,
) -> Result<Recovered, LedgerError> {
    let Some(unsettled) = store.unsettled() else {
        return store.recover(now).await;
    };
    let (bills, file) = (unsettled.read()?, unsettled.path().display());
    let mut late = Vec::new();
    for part in bills.chunks(TOGETHER) {
        let booked = join_all(part.iter().map(|bill| book(store, bill)));
        for (bill, booked) in part.iter().zip(booked.await) {
            match booked? {
                Booked::Charged | Booked::Nothing => {}
                Booked::Late => late.push(bill),
                Booked::Refused(refusal) => {
                    return Err(LedgerError::unusable(format!(
                        "{file} has the bill of request req_{}, which this ledger refuses ({refusal}): bring back the ledger that knows it, \
                         or move the file away to start without it",
                        bill.request
                    )));
                }
            }
        }
    }
    if !late.is_empty() {
        store.store_late(&late).await?;
    }
    if !bills.is_empty() {
        tracing::warn!(bills = bills.len(), late = late.len(), %file, "booked the bills that the last run could not book");
    }
    // Its first commit is synced, and with it those of the bills.
    let recovered = store.recover(now).await?;
    unsettled.prepare()?;
    Ok(recovered)
}

async fn book(store: &(impl Store + ?Sized), bill: &Finish) -> Result<Booked, LedgerError> {
    let finish = Arc::new(bill.clone());
    let finished = match store.perform(Arc::clone(&finish)).await {
        Err(LedgerError::Refused(Refusal::Limit(_))) => {
            store.apply(ResolveHold(finish).into()).await.map(drop)
        }
        finished => finished.map(drop),
    };
    match finished {
        Ok(()) => {}
        Err(LedgerError::Refused(_)) if cost(bill) == Amount::ZERO => return Ok(Booked::Nothing),
        Err(LedgerError::Refused(refusal)) => return Ok(Booked::Refused(refusal)),
        Err(error) => return Err(error),
    }
    let entry = store.entry(bill.request).await?;
    let charged = entry.and_then(|entry| entry.bill);
    Ok(match charged {
        Some(charged) if charged.end_reason == EndReason::Recovered && cost(bill).is_positive() => {
            Booked::Late
        }
        Some(_) | None => Booked::Charged,
    })
}
