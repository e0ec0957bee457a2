//! Events of a responses stream, each with the next sequence number.

use crate::sse;

/// Writes events with their numbers.
#[derive(Debug, Default)]
pub(super) struct Numbered {
    next: u64,
}

impl Numbered {
    /// An event from its members, JSON already.
    pub(super) fn event(&mut self, kind: &str, members: &str, out: &mut Vec<u8>) {
        let number = self.take();
        out.extend(sse::event(
            kind,
            &format!(r#"{{"type":"{kind}",{members},"sequence_number":{number}}}"#),
        ));
    }

    /// The next number.
    pub(super) fn take(&mut self) -> u64 {
        let number = self.next;
        self.next = number.saturating_add(1);
        number
    }
}
