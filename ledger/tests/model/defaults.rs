//! Steps on the defaults of the house, which come, change and go.

use super::common::*;
use super::*;

/// Defaults of keys and customers: none, one, or several of other limits.
pub(crate) async fn set(ledger: &dyn Ledger, operation: u64, which: u8, limit: i64) -> String {
    let cap = |interval, model: Option<&str>, limit| Cap {
        interval,
        model: model.map(str::to_owned),
        limit: cents(limit),
    };
    let all = cap(CapInterval::Total, None, limit);
    let month = cap(CapInterval::Month, None, limit / 2);
    let odd = cap(CapInterval::Total, Some("odd"), limit - 5);
    let (of_keys, of_customers) = match which {
        0 | 1 => (vec![], vec![]),
        2 => (vec![all], vec![]),
        3 => (vec![month, all], vec![odd]),
        4 => (vec![], vec![all, odd]),
        _ => (vec![odd], vec![month]),
    };
    let defaults = Defaults {
        key: DefaultSettings {
            // More than the steps have requests, as of customers.
            concurrency: which.is_multiple_of(2).then_some(40),
            caps: of_keys,
            ..DefaultSettings::default()
        },
        customer: DefaultSettings {
            low_balance: which.is_multiple_of(3).then_some(cents(limit)),
            caps: of_customers,
            ..DefaultSettings::default()
        },
    };
    // Acts of the house have ids of their own: whoever changes a customer does not look among them.
    let act = act(500 + operation, 70);
    format!("{:?}", ledger.perform(SetDefaults { defaults, act }).await)
}
