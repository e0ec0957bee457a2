//! The one filter between untrusted text and the terminal.
//!
//! Labels, references, upstream errors and everything from the gateway are written by others. Nothing is interpreted here: what
//! cannot be shown safely is replaced. After [`clean`] a text has no control character, no bidirectional override and nothing
//! invisible; after [`cut`] it is no wider than asked.

use std::borrow::Cow;

use farebox_ledger::text::shown;
use ratatui::text::Span;

/// Replaces removed characters.
const MARK: char = '\u{fffd}';

/// Whether a character may reach the terminal as it is.
fn is_safe(letter: char) -> bool {
    // In addition to what every program hides: fillers and variants, whose width terminals do not agree on.
    !matches!(letter,
            '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}')
}

/// The text with every unsafe character replaced by a visible mark; blanks of any kind become one blank.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if shown(text).all(|(letter, is_shown)| is_shown && is_safe(letter)) {
        return Cow::Borrowed(text);
    }
    let show = |(letter, is_shown)| match letter {
        '\n' | '\r' | '\t' => ' ',
        safe if is_shown && is_safe(safe) => safe,
        _ => MARK,
    };
    Cow::Owned(shown(text).map(show).collect())
}

/// The width of a text in cells.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// The cleaned text in at most `cells` cells; a shortened one ends in `…`.
pub(crate) fn cut(text: &str, cells: usize) -> String {
    let text = clean(text);
    if width(&text) <= cells {
        return text.into_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        kept.push(letter);
        if width(&kept) >= cells {
            kept.pop();
            break;
        }
    }
    if cells > 0 {
        kept.push('…');
    }
    kept
}

/// A text of several lines, each cleaned on its own; for rendered diagnostics.
pub(crate) fn lines(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| clean(&line.replace('\t', "    ")).into_owned())
        .collect()
}

/// Breaks a text at blanks into lines of at most `cells`; a word that is longer than a line goes on in the next one.
pub(crate) fn wrap(text: &str, cells: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if width(line) + 1 + width(word) <= cells {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
        while let Some(rest) = lines.last_mut().and_then(|line| beyond(line, cells)) {
            lines.push(rest);
        }
    }
    lines
}

/// Takes off what does not fit; `None` if all of it does, or nothing would.
fn beyond(line: &mut String, cells: usize) -> Option<String> {
    if width(line) <= cells {
        return None;
    }
    let mut used = 0;
    let fits = |(_, letter): &(usize, char)| {
        used += width(letter.encode_utf8(&mut [0; 4]));
        used > cells
    };
    let (at, _) = line.char_indices().find(fits)?;
    (at > 0).then(|| line.split_off(at))
}

/// Masks anything that could be a key's secret, in text that the user is still typing.
pub(crate) fn mask(text: &str) -> Cow<'_, str> {
    match text.find("sk-") {
        Some(start) => {
            let (shown, hidden) = text.split_at(start.saturating_add(3));
            Cow::Owned(format!("{shown}{}", "•".repeat(hidden.chars().count())))
        }
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_unsafe_passes() {
        assert_eq!(clean("plain — ünï 漢字"), "plain — ünï 漢字");
        assert_eq!(clean("a\x1b[31mred\x07"), "a\u{fffd}[31mred\u{fffd}");
        assert_eq!(clean("two\nlines\tand"), "two lines and");
        assert_eq!(clean("abc\u{202e}gpj.exe"), "abc\u{fffd}gpj.exe");
        assert_eq!(
            clean("zero\u{200b}width\u{feff}"),
            "zero\u{fffd}width\u{fffd}"
        );
        assert_eq!(clean("\u{9b}2J"), "\u{fffd}2J");
    }

    #[test]
    fn cutting_counts_cells() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("漢字漢字", 4), "漢…");
        assert_eq!(cut("abc", 0), "");
        for cells in 0..9 {
            assert!(width(&cut("漢a字b漢c", cells)) <= cells, "{cells}");
        }
    }

    #[test]
    fn wrapping_loses_nothing() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(
            wrap("a-word-of-16-char x", 8),
            ["a-word-o", "f-16-cha", "r x"]
        );
        assert_eq!(wrap("漢字漢字", 5), ["漢字", "漢字"]);
        assert_eq!(wrap("漢", 1), ["漢"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn typed_secrets_are_masked() {
        assert_eq!(mask("acme"), "acme");
        assert_eq!(mask("sk-fb-abc"), "sk-••••••");
    }
}
