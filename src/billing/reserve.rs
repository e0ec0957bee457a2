//! What running requests may leave unpaid, reserved of what the rule for exposure leaves their customer.
//!
//! A prompt that is held at its likely price, because it is probably cached, may be counted dearer; a stream that ends without a first
//! frame leaves its whole prompt. Many at once must not leave more than the rule allows, which looks only at what has ended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use farebox_ledger::{Amount, CustomerId, lock};

/// What is reserved for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Risk {
    /// What a known prompt's hold leaves uncovered, until the prompt is counted.
    Gap,
    /// The likely prompt of a stream, until its first frame.
    Prompt,
}

/// What is reserved for each customer on this gateway.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reservations(Arc<Mutex<HashMap<(CustomerId, Risk), ReservedSum>>>);

#[derive(Debug, Clone, Copy, Default)]
struct ReservedSum {
    requests: u64,
    picos: i128,
}

/// One request's part. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Reserved {
    of: Reservations,
    place: (CustomerId, Risk),
    picos: i128,
}

impl Reservations {
    /// Reserves an amount within what is left to a customer. `alone`: the first one is let through whatever it may leave.
    pub(crate) fn reserve(
        &self,
        place: (CustomerId, Risk),
        amount: Amount,
        (left, alone): (Amount, bool),
    ) -> Option<Reserved> {
        let picos = i128::from(amount.picos().max(0));
        let mut all = lock(&self.0);
        let sum = all.get(&place).copied().unwrap_or_default();
        let first = alone && sum.requests == 0;
        if !first && sum.picos + picos > i128::from(left.picos()) {
            return None;
        }
        let grown = ReservedSum {
            requests: sum.requests + 1,
            picos: sum.picos + picos,
        };
        all.insert(place, grown);
        drop(all);
        Some(Reserved {
            of: self.clone(),
            place,
            picos,
        })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut all = lock(&self.of.0);
        if let Some(sum) = all.get_mut(&self.place) {
            sum.requests = sum.requests.saturating_sub(1);
            sum.picos -= self.picos;
            if sum.requests == 0 {
                all.remove(&self.place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_at_once_reserve_no_more_than_is_left() {
        let (book, customer) = (Reservations::default(), CustomerId::from_random(1));
        let reserve = |risk, picos, left, alone| {
            let (picos, left) = (Amount::from_picos(picos), Amount::from_picos(left));
            book.reserve((customer, risk), picos, (left, alone))
        };
        let first = reserve(Risk::Gap, 60, 100, false).unwrap();
        assert!(reserve(Risk::Gap, 41, 100, false).is_none());
        let second = reserve(Risk::Gap, 40, 100, false).unwrap();
        assert!(reserve(Risk::Gap, 1, 100, false).is_none());
        drop(first);
        assert!(reserve(Risk::Gap, 60, 100, false).is_some());
        let other = (CustomerId::from_random(2), Risk::Gap);
        let hundred = Amount::from_picos(100);
        assert!(book.reserve(other, hundred, (hundred, false)).is_some());
        drop(second);
        assert!(lock(&book.0).is_empty(), "nothing is left behind");
    }

    #[test]
    fn one_stream_is_always_let_through() {
        let (book, customer) = (Reservations::default(), CustomerId::from_random(1));
        let stream = |left: i64| {
            let place = (customer, Risk::Prompt);
            book.reserve(
                place,
                Amount::from_picos(500),
                (Amount::from_picos(left), true),
            )
        };
        let first = stream(100).unwrap();
        assert!(stream(900).is_none(), "not beside another one");
        let second = stream(1_000).unwrap();
        drop((first, second));
        assert!(stream(0).is_some());
    }
}
