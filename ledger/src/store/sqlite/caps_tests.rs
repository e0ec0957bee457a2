//! Caps across midnight: a hold and its charge belong to the day on which it was opened, by the ledger's clock.

use super::batch::Batch;
use super::files;
use crate::batch::operation::Operation;
use crate::batch::outcome::Outcome;
use crate::{
    Act, Amount, Bill, BillLine, Cap, CapInterval, Caps, Change, Credit, CreditKind, CustomerAct,
    CustomerChange, CustomerId, Finish, Held, HoldMove, KeyChange, KeyId, KeySettings, Membership,
    NewHold, NewKey, NewSize, OpenMode, OperationId, Refusal, Scope, SecretHash, Timestamp,
};

const DAY: i64 = 86_400_000;

fn op(number: u64) -> OperationId {
    OperationId::from_bytes(u128::from(number).to_be_bytes())
}

fn key() -> KeyId {
    KeyId::from_random(1)
}

fn picos(picos: i64) -> Amount {
    Amount::from_picos(picos)
}

fn act(operation: u64, at: Timestamp) -> Act {
    Act {
        operation: op(operation),
        actor: "ada".to_owned(),
        at,
    }
}

/// Runs an operation in a transaction of its own at an instant of the ledger's clock.
fn run(batch: &mut Batch<'_>, at: Timestamp, operation: &Operation) -> Result<Outcome, Refusal> {
    batch.begin().unwrap();
    batch.rows.now = at.millis().saturating_mul(1_000);
    let outcome = batch.run(operation).unwrap();
    batch.commit().unwrap();
    outcome
}

fn hold(request: u64, at: Timestamp, amount: i64) -> Operation {
    Operation::Open(NewHold {
        request: op(request),
        customer: CustomerId::made_for(key()),
        key: key(),
        ways: vec![crate::HoldWay::exactly(picos(amount))],
        slug: "m".to_owned(),
        family: "chat".to_owned(),
        at,
    })
}

fn bill(cost: u64) -> Bill {
    Bill {
        slug: "m".to_owned(),
        lines: vec![BillLine {
            what: "output".into(),
            count: cost,
            rate: picos(1),
            class: None,
        }],
        ..Bill::default()
    }
}

fn finish(request: u64, at: Timestamp, cost: u64) -> Operation {
    Operation::Finish(std::sync::Arc::new(Finish {
        request: op(request),
        bill: bill(cost),
        at,
    }))
}

/// A cap of a key, and one of its customer.
#[test]
fn a_stream_across_midnight_is_counted_where_it_was_admitted() {
    for of in [
        Scope::Key(key()),
        Scope::Customer(CustomerId::made_for(key())),
    ] {
        across_midnight(of);
    }
}

/// Sets a cap of a hundred a day.
fn set_cap(batch: &mut Batch<'_>, at: Timestamp, of: Scope) {
    let cap = Cap {
        interval: CapInterval::Day,
        model: None,
        limit: picos(100),
    };
    let act = act(2, at);
    let operation = match of {
        Scope::Key(key) => {
            let change = Change::SetCap(cap);
            Operation::Change(Box::new(KeyChange { key, change, act }))
        }
        Scope::Customer(customer) => Operation::ChangeCustomer(Box::new(CustomerChange {
            customer,
            change: CustomerAct::SetCap(cap),
            act,
        })),
    };
    run(batch, at, &operation).unwrap();
}

/// The caps of a key or customer.
fn caps_of(batch: &mut Batch<'_>, of: Scope) -> Caps {
    batch.begin().unwrap();
    batch.fetch_key(key()).unwrap();
    let caps = match of {
        Scope::Key(key) => batch.rows.key(key).unwrap().caps.clone(),
        Scope::Customer(id) => {
            batch.fetch_customer(id).unwrap();
            batch.rows.customer(id).unwrap().customer.caps.clone()
        }
    };
    batch.commit().unwrap();
    caps
}

fn across_midnight(of: Scope) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    files::make_new(&path).unwrap();
    let (conn, _) = files::open_ledger(&path, OpenMode::Serve).unwrap();
    let mut batch = Batch::new(&conn, None);
    let evening = Timestamp::from_millis(20_000 * DAY - 1_000);
    let morning = Timestamp::from_millis(20_000 * DAY + 1_000);
    let new = NewKey {
        within: Membership::default(),
        id: key(),
        secret: SecretHash([1; 32]),
        settings: KeySettings::default(),
        first_credit: Some((picos(1_000), "first".to_owned())),
        purse: None,
        act: act(1, evening),
    };
    run(&mut batch, evening, &Operation::Create(Box::new(new))).unwrap();
    set_cap(&mut batch, evening, of);
    run(&mut batch, evening, &hold(10, evening, 60)).unwrap();
    // The new day has its whole room, and the old one no more than before.
    run(&mut batch, morning, &hold(11, morning, 100)).unwrap();
    let grow = |number, total| {
        Operation::MoveHold(Box::new(HoldMove {
            request: op(10),
            number,
            to: NewSize::Amount(picos(total)),
            checkpoint: Some(bill(1)),
            at: morning,
        }))
    };
    let full = Outcome::Held(Held {
        amount: picos(100),
        left: picos(0),
        by_cap: true,
        granted: None,
    });
    for (number, total) in [(1, 100), (2, 101)] {
        assert_eq!(
            run(&mut batch, morning, &grow(number, total)),
            Ok(full.clone())
        );
    }
    run(&mut batch, morning, &finish(10, morning, 300)).unwrap();
    run(&mut batch, morning, &finish(11, morning, 30)).unwrap();
    let counts = |caps: &Caps, at| {
        let counted = caps.iter().next().unwrap();
        let counts = counted.counts(crate::UtcDay::of(at)).unwrap();
        (counts.charged.picos(), counts.held.picos())
    };
    let caps = caps_of(&mut batch, of);
    assert_eq!(
        (counts(&caps, evening), counts(&caps, morning)),
        ((100, 0), (30, 0))
    );
    // Its entry is of the morning and names the day that paid, so that a refund goes back there.
    let refund = Operation::Credit(Box::new(Credit {
        operation: op(20),
        to: (key()).into(),
        amount: picos(40),
        kind: CreditKind::Refund {
            request: op(10),
            reason: "late".to_owned(),
        },
        reference: "r-1".to_owned(),
        actor: "ada".to_owned(),
        at: morning,
    }));
    run(&mut batch, morning, &refund).unwrap();
    let caps = caps_of(&mut batch, of);
    assert_eq!(
        (counts(&caps, evening), counts(&caps, morning)),
        ((60, 0), (30, 0))
    );
}
