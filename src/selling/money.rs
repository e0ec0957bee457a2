//! Money: top-ups, corrections, refunds, moves, payments and what of them goes back.

use farebox_ledger::{
    Act, Amount, Credit, CreditKind, CustomerId, Gross, Ledger, LedgerError, NewMove, NewPayment,
    NewReversal, OperationId, PaidSum, PersonalData, ReversalKind, Scope, UnappliedAct,
    UnappliedEnd,
};

use super::{Deed, reads};

/// A credit of any kind.
pub fn credit(
    to: impl Into<Scope>,
    kind: CreditKind,
    amount: Amount,
    reference: &str,
    act: Act,
) -> Deed {
    let Act {
        operation,
        actor,
        at,
    } = act;
    Credit {
        operation,
        to: to.into(),
        kind,
        amount,
        reference: reference.to_owned(),
        actor,
        at,
    }
    .into()
}

/// Money back for one charged request; `None` if it was not charged.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn refund(
    ledger: &dyn Ledger,
    request: OperationId,
    reason: String,
    amount: Amount,
    reference: &str,
    act: Act,
) -> Result<Option<Deed>, LedgerError> {
    let charge = ledger.entry(request).await?;
    Ok(charge.filter(|entry| entry.bill.is_some()).map(|charge| {
        let to = charge
            .key
            .map_or(Scope::Customer(charge.customer), Scope::Key);
        let kind = CreditKind::Refund { request, reason };
        credit(to, kind, amount, reference, act)
    }))
}

/// Takes what a customer that is to be closed has left; `None` if it has nothing.
///
/// # Errors
/// When the ledger cannot be read, or has no such customer.
pub async fn write_off(
    ledger: &dyn Ledger,
    customer: CustomerId,
    reason: String,
    reference: &str,
    act: Act,
) -> Result<Option<Deed>, LedgerError> {
    let left = reads::customer(ledger, customer).await?.account.balance();
    let taken = left.checked_neg().filter(|_| left.is_positive());
    let kind = CreditKind::WriteOff { reason };
    Ok(taken.map(|amount| credit(customer, kind, amount, reference, act)))
}

/// A payment with particulars: of its credit in US dollars without tax, if none are told; and whom its receipt is addressed to, if whoever
/// paid said so.
pub fn pay(
    customer: CustomerId,
    credit: Amount,
    paid: Option<PaidSum>,
    (reference, addressee): (String, Option<PersonalData>),
    act: Act,
) -> Deed {
    NewPayment {
        customer,
        paid: paid.unwrap_or_else(|| PaidSum::in_usd(credit)),
        credit,
        reference,
        addressee,
        act,
    }
    .into()
}

/// What went back of a payment so far.
pub fn reverse(
    payment: String,
    kind: ReversalKind,
    cumulative: Gross,
    reference: String,
    act: Act,
) -> Deed {
    NewReversal {
        payment,
        kind,
        cumulative,
        reference,
        act,
    }
    .into()
}

/// What happens to a payment that could not be booked.
pub fn end_unapplied(payment: String, end: UnappliedEnd, act: Act) -> Deed {
    UnappliedAct { payment, end, act }.into()
}

/// Paid money that goes to another customer.
pub fn give(
    from: CustomerId,
    into: CustomerId,
    amount: Amount,
    reference: String,
    act: Act,
) -> Deed {
    NewMove {
        from,
        into,
        amount,
        reference,
        act,
    }
    .into()
}
