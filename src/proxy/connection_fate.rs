//! Who ends the connection of a request: its client, or we, for another one or because the gateway stops. What we close is not paid
//! for, and while an answer is being paid for we do not close.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const OPEN: u8 = 0;
const PAYING: u8 = 1;
const CLOSED: u8 = 2;

/// The fate of one connection, as its request and whoever may close it see it.
#[derive(Debug, Clone, Default)]
pub struct ConnectionFate(Arc<AtomicU8>);

impl ConnectionFate {
    /// Decides that we close it; false if an answer is being paid for, or if that was decided before.
    pub fn close(&self) -> bool {
        self.turn(OPEN, CLOSED).is_ok()
    }

    /// Whether we have closed it.
    pub fn is_closed(&self) -> bool {
        self.0.load(Ordering::Acquire) == CLOSED
    }

    /// An answer is being paid for and delivered from now on; false if we have closed the connection.
    pub(crate) fn pay(&self) -> bool {
        self.turn(OPEN, PAYING) != Err(CLOSED)
    }

    /// The request has ended.
    pub fn rest(&self) {
        let _ = self.turn(PAYING, OPEN);
    }

    fn turn(&self, from: u8, to: u8) -> Result<u8, u8> {
        self.0
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_closed_is_not_paid_for_and_what_is_being_paid_for_is_not_closed() {
        let fate = ConnectionFate::default();
        assert!(fate.pay() && !fate.close() && !fate.is_closed());
        fate.rest();
        assert!(fate.close() && fate.is_closed() && !fate.close());
        fate.rest();
        assert!(!fate.pay() && fate.is_closed());
    }
}
