//! Texts that administrators write: labels, reasons, actors, references.

use crate::Refusal;

/// Texts of administrators are bounded, so that no row grows without limit.
pub(crate) fn check_text(what: &str, text: &str, chars: usize, required: bool) -> Result<(), Refusal> {
    if required && text.trim().is_empty() {
        return Err(Refusal::NotApplicable(format!("{what} is required")));
    }
    if text.chars().count() > chars {
        return Err(Refusal::Limit(format!("{what} has at most {chars} characters")));
    }
    Ok(())
}
