//! Texts that others write: their bounds, and the characters in them that must not be shown as they are.

use crate::Refusal;

/// Control characters, and format characters that take no space or turn the direction of what follows: they forge lines of a log,
/// drive a terminal, or make two different texts look alike.
#[must_use]
pub fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

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
