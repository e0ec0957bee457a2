//! Steps on customers and caps.

use super::common::*;
use super::*;

/// Caps of a month and of all time, of each slug and of both. At midnight between two months a run may differ.
pub(crate) fn a_cap(number: u8, limit: i64) -> Change {
    let interval = if number.is_multiple_of(2) {
        CapInterval::Total
    } else {
        CapInterval::Month
    };
    let model = match number % 6 {
        0 | 1 => Some("small".to_owned()),
        2 | 3 => Some("odd".to_owned()),
        _ => None,
    };
    if number > 9 {
        return Change::ClearCap { interval, model };
    }
    Change::SetCap(Cap {
        interval,
        model,
        limit: cents(limit),
    })
}

/// Some limits are those that an owner key gives a key that it made.
pub(crate) fn a_limit(operation: u64, change: Change) -> Change {
    match change {
        Change::SetCap(cap) if operation.is_multiple_of(4) => Change::SetPurse(cap),
        other => other,
    }
}

/// The third key, which the first one makes, an owner: mostly with a limit from the start.
pub(crate) fn made_by_owner(number: u64, operation: u64, limit: i64) -> Option<NewKey> {
    if number != 3 || !operation.is_multiple_of(3) {
        return None;
    }
    let new = new_key(number, operation, None);
    let purse = Cap {
        interval: CapInterval::ALL[usize::from(operation.is_multiple_of(2)) * 3],
        model: None,
        limit: cents(limit),
    };
    Some(NewKey {
        within: Membership {
            customer: Some(CustomerId::made_for(key(1))),
            is_owner: false,
            made_by: Some(key(1)),
        },
        purse: (!operation.is_multiple_of(9)).then_some(purse),
        settings: KeySettings {
            expires_at: operation.is_multiple_of(5).then(|| hour(500)),
            ..new.settings.clone()
        },
        ..new
    })
}

/// Some acts are asked for by the owner key.
pub(crate) const fn is_of_owner(operation: u64) -> bool {
    operation.is_multiple_of(3)
}

/// What the first key, an owner, asks for.
pub(crate) async fn by_owner(ledger: &dyn Ledger, operation: Operation) -> String {
    let asked = Asked {
        by: Asker::Owner(key(1)),
        at: at(60),
        once: None,
        expected: None,
        operation,
    };
    format!("{:?}", ledger.ask(asked).await)
}

/// An act on the customer with a key's symbols, a payment to it, or a move to another.
pub(crate) async fn customers(
    ledger: &dyn Ledger,
    number: u64,
    operation: u64,
    kind: u8,
    amount: i64,
) -> String {
    let (of, signed) = (CustomerId::made_for(key(number)), act(operation, 60));
    let cap = |limit| match a_cap(kind, limit) {
        Change::SetCap(cap) => CustomerAct::SetCap(cap),
        _ => CustomerAct::Resume,
    };
    let external = CustomerEdit {
        external_id: Said::Set(format!("x{}", amount % 3)),
        low_balance: match amount % 4 {
            0 => Said::Clear,
            1 => Said::Set(cents(amount)),
            _ => Said::Keep,
        },
        price_list: match amount % 5 {
            0 => Said::Clear,
            1 => Said::Set(format!("list-{}", amount % 3)),
            _ => Said::Keep,
        },
        // More than the 30 requests of the steps: only a fleet's ledger counts them itself and would refuse.
        concurrency: Said::Set(40),
        ..CustomerEdit::default()
    };
    let change = match kind {
        0 => CustomerAct::Suspend,
        1 | 2 => CustomerAct::Resume,
        3 => CustomerAct::Close,
        4 => CustomerAct::Edit(external),
        5..=8 => cap(amount),
        9 => CustomerAct::Erase,
        10 | 11 => {
            let paid = credit(
                number,
                operation,
                CreditKind::TopUp,
                "1",
                &format!("r-{kind}"),
            );
            let to = of.into();
            return format!("{:?}", ledger.perform(Credit { to, ..paid }).await);
        }
        _ => {
            let moved = NewMove {
                from: of,
                into: CustomerId::made_for(key(number % 3 + 1)),
                amount: cents(amount),
                reference: format!("r-{}", amount % 12),
                act: signed,
            };
            return format!("{:?}", ledger.perform(moved).await);
        }
    };
    let change = CustomerChange {
        customer: of,
        change,
        act: signed,
    };
    if is_of_owner(operation) {
        return by_owner(ledger, Operation::ChangeCustomer(Box::new(change))).await;
    }
    format!("{:?}", ledger.perform(change).await)
}
