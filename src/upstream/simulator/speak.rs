//! The text of the built-in provider's answers, which depends only on the last turn.
//!
//! `Say X` answers X, `N words` answers N words, anything else is repeated, so that tests and people trying it out can choose the
//! answer and its length.

use std::fmt::Write;

use farebox_protocol::SyntheticStop;

use farebox_protocol::prompt::{CHARS_PER_TOKEN, UnderstoodPrompt};

use super::tools;

const REQUESTS: [&str; 6] = [
    "say ",
    "reply with ",
    "respond with ",
    "answer with ",
    "repeat ",
    "echo ",
];
const MOST_REPEATED: usize = 1_000;
const MOST_WORDS: usize = 50_000;
const WORDS_PER_PIECE: usize = 4;
const FILLER: [&str; 12] = [
    "every", "word", "of", "this", "answer", "is", "made", "here", "and", "costs", "real", "tokens",
];

/// The text of an answer.
pub(super) fn text(prompt: &UnderstoodPrompt) -> String {
    if let Some(schema) = &prompt.schema {
        return tools::example(schema).to_string();
    }
    let seen =
        (!prompt.pictures.is_empty()).then(|| format!("I see {}.", prompt.pictures.join(" and ")));
    let answered = prompt
        .result
        .as_ref()
        .map(|result| format!("The tool answered: {}", clip(result)));
    match (answered, seen) {
        (Some(answered), Some(seen)) => return format!("{answered} {seen}"),
        (Some(only), None) | (None, Some(only)) => return only,
        (None, None) => {}
    }
    let said = prompt.last_user.trim();
    if let Some(wish) = wish(said) {
        return wish.to_owned();
    }
    if let Some(count) = words_wanted(said) {
        return filler(count);
    }
    match said {
        "" => "Hello from the simulated model.".to_owned(),
        said => format!("You said: {}", clip(said)),
    }
}

/// The text, cut at the output limit.
pub(super) fn within(text: String, limit: u64) -> (String, SyntheticStop) {
    let most = usize::try_from(limit.saturating_mul(CHARS_PER_TOKEN)).unwrap_or(usize::MAX);
    match text.char_indices().nth(most) {
        Some((at, _)) => (text[..at].to_owned(), SyntheticStop::Length),
        None => (text, SyntheticStop::Stop),
    }
}

/// The text in pieces of a few words, white space preserved.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for (number, word) in text.split_inclusive(' ').enumerate() {
        match pieces.last_mut() {
            Some(piece) if number % WORDS_PER_PIECE != 0 => piece.push_str(word),
            _ => pieces.push(word.to_owned()),
        }
    }
    pieces
}

/// X of `Say X`, also in quotes.
fn wish(said: &str) -> Option<&str> {
    let quotes = ['"', '\'', '`'];
    let line = said.trim_matches(quotes).lines().next()?;
    let wish = REQUESTS.iter().find_map(|request| {
        let head = line.get(..request.len())?;
        head.eq_ignore_ascii_case(request)
            .then(|| &line[request.len()..])
    })?;
    let wish = wish
        .trim_start()
        .trim_start_matches("exactly")
        .trim_start_matches(':')
        .trim()
        .trim_matches(quotes);
    (!wish.is_empty()).then_some(wish)
}

/// N of `N words`.
fn words_wanted(said: &str) -> Option<usize> {
    let mut words = said.split_whitespace();
    let mut before = words.next()?;
    for word in words {
        if let (true, Ok(count)) = (
            word.starts_with("words"),
            before.replace(',', "").parse::<usize>(),
        ) {
            return Some(count.clamp(1, MOST_WORDS));
        }
        before = word;
    }
    None
}

fn filler(count: usize) -> String {
    let mut text = String::with_capacity(count * 6);
    for (number, word) in FILLER.iter().cycle().take(count).enumerate() {
        let gap = if number == 0 { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{gap}{word}");
    }
    text
}

fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_REPEATED)]
}
