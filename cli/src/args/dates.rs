//! Typed dates: what `selling` reads, in the words of a command.

use farebox_ledger::Timestamp;

use crate::output;
pub(crate) use farebox_selling::dates::instant;

/// Prints the instant as it was understood.
pub(crate) fn note_expiry(expires: Option<Timestamp>) {
    if let Some(instant) = expires {
        output::note(&format!("The key expires at {instant}."));
    }
}
