//! Caps of a key or a customer.

use farebox_ledger::key::Change;
use farebox_ledger::{
    Act, Cap, CapInterval, Caps, CustomerAct, Ledger, LedgerError, Outcome, Scope,
};
use serde_json::{Value, json};

use super::{Deed, customers, documents, keys, reads};
use crate::clock;

/// Sets a cap, or its limit.
pub fn set(of: Scope, cap: Cap, act: Act) -> Deed {
    match of {
        Scope::Key(key) => keys::change(key, Change::SetCap(cap), act),
        Scope::Customer(customer) => customers::change(customer, CustomerAct::SetCap(cap), act),
    }
}

/// Removes a cap.
pub fn clear(of: Scope, interval: CapInterval, model: Option<String>, act: Act) -> Deed {
    match of {
        Scope::Key(key) => keys::change(key, Change::ClearCap { interval, model }, act),
        Scope::Customer(customer) => {
            customers::change(customer, CustomerAct::ClearCap { interval, model }, act)
        }
    }
}

/// The caps of a key or customer.
///
/// # Errors
/// When the ledger cannot be read, or has neither.
pub async fn read(ledger: &dyn Ledger, of: Scope) -> Result<Caps, LedgerError> {
    Ok(match of {
        Scope::Key(key) => reads::key(ledger, key).await?.own.caps,
        Scope::Customer(customer) => reads::customer(ledger, customer).await?.caps,
    })
}

/// The caps that an operation left.
pub fn left(outcome: Outcome) -> Caps {
    match outcome {
        Outcome::Key(key) => key.own.caps,
        Outcome::Customer(customer) => customer.caps,
        _ => Caps::default(),
    }
}

/// Whose they are, and what their windows have counted.
pub fn document(of: Scope, caps: &Caps) -> Value {
    let kind = match of {
        Scope::Key(_) => "key",
        Scope::Customer(_) => "customer",
    };
    json!({ kind: of, "caps": documents::caps(of, caps, clock::now()) })
}
