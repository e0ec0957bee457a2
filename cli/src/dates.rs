//! Typed dates: what `selling` reads, in the words of a command.

use farebox_ledger::Timestamp;

use super::output::{self, CommandFailed};
pub(super) use dates::{expiry, instant};
use farebox::selling::dates;

/// Refuses an expiry in the past.
pub(super) fn check_expiry(expires: Option<Timestamp>) -> Result<(), CommandFailed> {
    dates::check_expiry(expires).map_err(CommandFailed::refused)
}

/// Prints the instant as it was understood.
pub(super) fn note_expiry(expires: Option<Timestamp>) {
    if let Some(instant) = expires {
        output::note(&format!("The key expires at {instant}."));
    }
}
