//! Finds and replaces in a text, whatever the case, at the edges of words. Linear: a text may be nothing but needles.

/// Which characters may surround a match.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    /// No condition: a match may stand inside a word.
    Any,
    /// No letter or digit in front.
    Front,
    /// No letter, digit, `-` or `_` on either side: `acme` does not match in `acme-beta`.
    Word,
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '-' || c == '_'
}

/// Bytes of the longest prefix of `text` whose characters all fit.
pub(super) fn token_len(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}

/// Position of `needle` at or after `from` with fitting edges. Both are in lower case already: a caller with many needles converts
/// once, because otherwise a text of nothing but needles would cost the square of its length.
pub(super) fn find(lower: &str, from: usize, needle: &str, edge: Edge) -> Option<usize> {
    let hay = lower.get(from..).filter(|_| !needle.is_empty())?;
    if edge == Edge::Any {
        return hay.find(needle).map(|at| from + at);
    }
    let open_end = edge == Edge::Front || needle.ends_with(['-', '_', '/', ':']);
    hay.match_indices(needle)
        .map(|(at, _)| from + at)
        .find(|&at| {
            let before = lower[..at].chars().next_back();
            let behind = lower[at + needle.len()..].chars().next();
            !before.is_some_and(is_word) && (open_end || !behind.is_some_and(is_word))
        })
}

/// The text with each match replaced. `next` gets the text, the same in lower case, and where to look from; it returns where the next
/// match begins and ends, and what stands there now: `None` leaves it.
pub(super) fn replaced<'w>(
    text: &str,
    mut next: impl FnMut(&str, &str, usize) -> Option<(usize, usize, Option<&'w str>)>,
) -> String {
    let lower = text.to_ascii_lowercase();
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    while let Some((at, end, with)) = next(text, &lower, done) {
        out.push_str(&text[done..at]);
        out.push_str(with.unwrap_or(&text[at..end]));
        done = end;
        if at == end {
            // An empty match: on to the next character.
            let Some(c) = text[end..].chars().next() else {
                break;
            };
            out.push(c);
            done += c.len_utf8();
        }
    }
    out + &text[done..]
}

pub(super) fn replace(text: &str, needle: &str, with: &str, edge: Edge) -> String {
    let needle = needle.to_ascii_lowercase();
    replaced(text, |_, lower, from| {
        let at = find(lower, from, &needle, edge)?;
        Some((at, at + needle.len(), Some(with)))
    })
}
