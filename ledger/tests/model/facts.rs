//! What the steps of the model test are made of: changes, credits, payments.

use farebox_ledger::*;

use super::common::{self, act, at, bill, credit, op, secret};

/// Cents, so that lines of a cent each make charges of the same size as holds and credits.
pub(super) fn cents(amount: i64) -> Amount {
    Amount::from_picos(amount * 10_000_000_000)
}

pub(super) fn cost(count: u64) -> Bill {
    let slug = if count.is_multiple_of(2) {
        "even"
    } else {
        "odd"
    };
    let rate = if count == 59 {
        Amount::from_picos(-1)
    } else {
        cents(1)
    };
    let tier = match count % 5 {
        0 => ServedTier::Fast,
        1 => ServedTier::Flex,
        _ => ServedTier::Standard,
    };
    let run = count
        .is_multiple_of(3)
        .then(|| (RunName::FACT.to_owned(), format!("run {}", count % 2)));
    Bill {
        slug: slug.to_owned(),
        facts: run.into_iter().collect(),
        lines: vec![BillLine {
            what: "output".into(),
            count,
            rate,
            class: (tier != ServedTier::Standard).then(|| tier.as_str().into()),
        }],
        served: Served {
            tier,
            ..Served::default()
        },
        ..bill(count)
    }
}

/// Instants hours apart, so that rollups have several rows and keys expire.
pub(super) fn hour(time: i64) -> Timestamp {
    at(time * 900)
}

pub(super) fn a_change(number: u8, time: i64) -> Change {
    match number {
        0 => Change::Block,
        1..=3 => Change::Unblock,
        4 => Change::Edit(KeyEdit {
            label: Some(format!("at {time}")),
            expires_at: Said::Set(hour(time)),
            ..KeyEdit::default()
        }),
        5 => Change::Edit(KeyEdit {
            expires_at: Said::Clear,
            ..KeyEdit::default()
        }),
        6 => Change::Rotate {
            secret: secret(7),
            old_until: (time % 2 == 0).then_some(hour(time)),
        },
        _ if time < 20 => Change::Revoke,
        _ => Change::Block,
    }
}

pub(super) fn a_credit(
    key: u64,
    operation: u64,
    kind: u8,
    amount: i64,
    reference: u64,
    request: u64,
) -> Credit {
    let kind = match kind {
        0..=2 => CreditKind::TopUp,
        3 => CreditKind::Adjust {
            reason: "more".into(),
            is_paid: operation.is_multiple_of(2),
        },
        _ => CreditKind::Refund {
            request: op(request),
            reason: "bad".into(),
        },
    };
    let amount = if matches!(kind, CreditKind::Adjust { .. }) {
        cents(amount - 20)
    } else {
        cents(amount)
    };
    Credit {
        amount,
        ..credit(key, operation, kind, "1", &format!("r-{reference}"))
    }
}

/// A payment of as many euros as it buys dollars.
pub(super) fn a_payment(key: u64, operation: u64, amount: i64, reference: u64) -> NewPayment {
    let gross = Gross::from_parts(amount.max(1) * 100).unwrap();
    NewPayment {
        customer: CustomerId::made_for(common::key(key)),
        paid: PaidSum {
            currency: "EUR".to_owned(),
            gross,
            tax: Gross::ZERO,
        },
        credit: cents(amount),
        reference: format!("r-{reference}"),
        addressee: None,
        expected: operation.is_multiple_of(7).then(|| AskedSum {
            currency: "EUR".to_owned(),
            gross: Gross::from_parts(2_000).unwrap(),
        }),
        reservation: None,
        plan: None,
        unsold: None,
        act: act(operation, 300),
    }
}

pub(super) fn a_reversal(
    operation: u64,
    kind: u8,
    told: i64,
    payment: u64,
    reference: u64,
) -> NewReversal {
    let kinds = [
        ReversalKind::Refund,
        ReversalKind::Dispute,
        ReversalKind::DisputeWon,
    ];
    NewReversal {
        payment: format!("r-{payment}"),
        kind: kinds[usize::from(kind)],
        cumulative: Gross::from_parts(told * 100).unwrap(),
        whole: (told % 3 == 0).then(|| Gross::from_parts(5_000).unwrap()),
        reference: format!("r-{reference}"),
        act: act(operation, 350),
    }
}
