//! Texts from outside: their limits, and the characters in them that must not be shown as they are.

use crate::Refusal;

/// How every customer's secret begins.
pub const SECRET_PREFIX: &str = "sk-fb-";
/// How every token of the admin API begins.
pub const TOKEN_PREFIX: &str = "fb-token-";

/// Control characters, and format characters that take no space or change text direction: they can forge log lines, control a
/// terminal, or make two different texts look alike.
pub fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Each character of a text, and whether it can be shown as it is: the one filter of every surface. A joiner can, where it joins what
/// needs joiners: Persian and Indic letters, and emoji.
pub fn shown(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut joins = false;
    text.chars().map(move |character| {
        let is_joiner = matches!(character, '\u{200c}' | '\u{200d}');
        let is_shown = !is_unseen(character) || is_joiner && joins;
        joins = !is_joiner && is_shown && !character.is_ascii();
        (character, is_shown)
    })
}

/// The text without what cannot be shown.
pub fn visible(text: &str) -> String {
    let all = shown(text).filter(|(_, is_shown)| *is_shown);
    all.map(|(character, _)| character).collect()
}

/// PostgreSQL's texts cannot contain the character U+0000, but text from outside may. It is replaced before anything is hashed, so that
/// no bill is refused because of a byte that a provider sent.
pub(crate) fn clean(text: &mut String) {
    if text.contains('\0') {
        *text = text.replace('\0', "\u{fffd}");
    }
}

/// Refuses a label with a character that forges lines, controls a terminal or turns text around.
pub(crate) fn check_label(
    what: &str,
    text: &str,
    chars: usize,
    required: bool,
) -> Result<(), Refusal> {
    check_text(what, text, chars, required)?;
    match shown(text).find(|(_, is_shown)| !is_shown) {
        None => Ok(()),
        Some((unseen, _)) => Err(Refusal::Unprintable {
            what: what.to_owned(),
            character: unseen,
        }),
    }
}

/// Administrators' texts are limited in length, so that no row grows without bound, and must not contain a secret: the journal
/// never forgets it.
pub(crate) fn check_text(
    what: &str,
    text: &str,
    chars: usize,
    required: bool,
) -> Result<(), Refusal> {
    if required && text.trim().is_empty() {
        return Err(Refusal::NotApplicable(format!("{what} is required")));
    }
    if text.chars().count() > chars {
        return Err(Refusal::Limit(format!(
            "{what} has at most {chars} characters"
        )));
    }
    for (whose, prefix) in [("a key's", SECRET_PREFIX), ("a token's", TOKEN_PREFIX)] {
        if text.contains(prefix) {
            let problem =
                format!("{what} must not contain {whose} secret ({prefix}…): it would be stored");
            return Err(Refusal::NotApplicable(problem));
        }
    }
    Ok(())
}

/// A number's digits in groups of three, as people read them: `1,234,567`.
pub fn grouped(number: impl std::fmt::Display) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len().saturating_mul(2));
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && digits.len().saturating_sub(place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_what_people_can_see_and_names_of_every_script_are_labels() {
        for label in [
            "Zoë & Söhne 株式会社",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "👩\u{200d}👩\u{200d}👧",
            "❤\u{fe0f}",
        ] {
            assert_eq!(
                check_label("a label", label, 200, false),
                Ok(()),
                "{label:?}"
            );
        }
        for (label, code) in [
            ("a\u{1b}[2J", "U+001B"),
            ("a\0b", "U+0000"),
            ("a\nb", "U+000A"),
            ("a\u{2028}b", "U+2028"),
            ("a\u{202e}b", "U+202E"),
            ("a\u{2066}b", "U+2066"),
            ("A\u{200d}cme", "U+200D"),
            ("\u{200c}می", "U+200C"),
            ("می\u{200c}\u{200c}خ", "U+200C"),
        ] {
            let refused = check_label("a label", label, 200, false)
                .unwrap_err()
                .to_string();
            assert!(refused.contains(code), "{label:?}: {refused}");
        }
    }

    #[test]
    fn no_text_stores_a_secret() {
        assert_eq!(
            check_text("a label", "acme, the customer with sk-fb keys", 200, true),
            Ok(())
        );
        for text in ["sk-fb-7f3q9d2xw1", "invoice 4 of sk-fb-7f3q9d2xw1-x"] {
            let refused = check_text("a label", text, 200, false)
                .unwrap_err()
                .to_string();
            assert!(
                refused.starts_with("a label must not contain a key's secret")
                    && !refused.contains("7f3q"),
                "{refused}"
            );
        }
    }
}
