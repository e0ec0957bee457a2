//! Whether the terminal is light or dark: it is asked (OSC 11), and its answer is taken out of what is typed, whenever it comes.
//!
//! Nothing waits for the answer, because many terminals give none. It arrives among the keys as `]11;rgb:…`, so that keys are held
//! back while they may be the beginning of it, for an instant that nobody notices.

use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

pub(crate) const QUESTION: &str = "\x1b]11;?\x1b\\";
/// How an answer begins, after its escape.
const BEGINNING: &str = "]11;";
/// No answer is longer.
const LONGEST: usize = 40;
/// Between two bytes of an answer: longer pauses are a person's.
const PAUSE: Duration = Duration::from_millis(50);
/// The same once nobody can have typed what came.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// The terminal's background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Background {
    Light,
    Dark,
}

/// Which colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum ThemeChoice {
    /// Those for the terminal's background, if it tells; else those for a dark one.
    #[default]
    Auto,
    Light,
    Dark,
    /// No colours.
    None,
}

impl ThemeChoice {
    /// All, with their names.
    pub(crate) const ALL: [(Self, &'static str); 4] = [
        (Self::Auto, "auto"),
        (Self::Light, "light"),
        (Self::Dark, "dark"),
        (Self::None, "none"),
    ];
}

/// Takes the answer out of the terminal's events.
#[derive(Debug, Default)]
pub(crate) struct AnswerFilter {
    /// The question was sent and not answered.
    waits: bool,
    held: Vec<Event>,
    /// The characters of the held events.
    text: String,
}

/// What an event is to an answer.
enum AnswerPart {
    Char(char),
    End,
    Escape,
    Other,
}

impl AnswerFilter {
    /// A filter for a terminal that was asked, or that was not.
    pub(crate) fn new(asked: bool) -> Self {
        Self {
            waits: asked,
            ..Self::default()
        }
    }

    /// Whether an answer may still come.
    pub(crate) const fn waits(&self) -> bool {
        self.waits
    }

    /// The events to act on now, and the background once the answer is complete.
    pub(crate) fn take(&mut self, event: Event) -> (Vec<Event>, Option<Background>) {
        if !self.waits {
            return (vec![event], None);
        }
        let part = part(&event);
        self.held.push(event);
        match part {
            AnswerPart::Char('\\') if self.text.ends_with('\x1b') => self.end(),
            AnswerPart::End if self.has_begun() => self.end(),
            AnswerPart::Escape if self.has_begun() => {
                self.text.push('\x1b');
                (Vec::new(), None)
            }
            AnswerPart::Char(letter) if self.goes_on_with(letter) => {
                self.text.push(letter);
                (Vec::new(), None)
            }
            _ => {
                self.text.clear();
                (std::mem::take(&mut self.held), None)
            }
        }
    }

    /// How long to wait for the next event before [`AnswerFilter::give_up`]; `None` while nothing is held back.
    pub(crate) fn pause(&self) -> Option<Duration> {
        let pause = if self.has_begun() { LONG_PAUSE } else { PAUSE };
        (!self.held.is_empty()).then_some(pause)
    }

    /// What was held back, after a pause. The beginning of an answer is dropped: nobody types it.
    pub(crate) fn give_up(&mut self) -> Vec<Event> {
        let answer = self.has_begun();
        self.text.clear();
        let held = std::mem::take(&mut self.held);
        if answer { Vec::new() } else { held }
    }

    /// Whether this can only be an answer.
    fn has_begun(&self) -> bool {
        self.text.starts_with(BEGINNING)
    }

    fn goes_on_with(&self, letter: char) -> bool {
        let colour = |letter: char| letter.is_ascii_alphanumeric() || ":/#".contains(letter);
        match BEGINNING.chars().nth(self.text.chars().count()) {
            Some(expected) => letter == expected && BEGINNING.starts_with(&self.text),
            None => colour(letter) && self.text.len() < LONGEST && !self.text.ends_with('\x1b'),
        }
    }

    fn end(&mut self) -> (Vec<Event>, Option<Background>) {
        let colour = std::mem::take(&mut self.text);
        self.held.clear();
        self.waits = false;
        let colour = colour.strip_prefix(BEGINNING).unwrap_or_default();
        (Vec::new(), background(colour.trim_end_matches('\x1b')))
    }
}

fn part(event: &Event) -> AnswerPart {
    let Event::Key(key) = event else {
        return AnswerPart::Other;
    };
    let (alt, ctrl) = (
        key.modifiers.contains(KeyModifiers::ALT),
        key.modifiers.contains(KeyModifiers::CONTROL),
    );
    match key.code {
        _ if key.kind == KeyEventKind::Release => AnswerPart::Other,
        // An escape and the next byte arrive as one key with alt.
        KeyCode::Char(']') if !ctrl => AnswerPart::Char(']'),
        KeyCode::Char('\\') if alt => AnswerPart::End,
        // BEL, the other end of an answer.
        KeyCode::Char('g') if ctrl => AnswerPart::End,
        KeyCode::Char(letter) if !alt && !ctrl => AnswerPart::Char(letter),
        KeyCode::Esc => AnswerPart::Escape,
        _ => AnswerPart::Other,
    }
}

/// The background of a colour written `rgb:1e1e/1e1e/2e2e` or `#1e1e2e`.
fn background(colour: &str) -> Option<Background> {
    let parts: Vec<&str> = match colour.strip_prefix('#') {
        Some(digits) => {
            let wide = digits.len() / 3;
            (0..3)
                .map(|at| digits.get(at * wide..(at + 1) * wide).unwrap_or_default())
                .collect()
        }
        None => colour.split_once(':')?.1.split('/').collect(),
    };
    let [red, green, blue, ..] = parts.as_slice() else {
        return None;
    };
    // In thousandths of the brightest.
    let share = |digits: &&str| {
        let bits = u32::try_from(digits.len())
            .ok()
            .filter(|len| (1..=4).contains(len))?
            * 4;
        let most = (1_u32 << bits) - 1;
        Some(u32::from_str_radix(digits, 16).ok()? * 1000 / most)
    };
    // The weights of red, green and blue in what the eye takes for brightness (sRGB's luminance).
    let brightness = (share(red)? * 213 + share(green)? * 715 + share(blue)? * 72) / 1000;
    Some(if brightness > 500 {
        Background::Light
    } else {
        Background::Dark
    })
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEvent;

    use super::*;

    fn key(letter: char, modifiers: KeyModifiers) -> Event {
        Event::Key(KeyEvent::new(KeyCode::Char(letter), modifiers))
    }

    /// As the terminal's bytes arrive: an escape joins the next byte.
    fn events(bytes: &str) -> Vec<Event> {
        let mut alt = KeyModifiers::NONE;
        let mut events = Vec::new();
        for letter in bytes.chars() {
            match letter {
                '\x1b' => alt = KeyModifiers::ALT,
                '\x07' => events.push(key('g', KeyModifiers::CONTROL)),
                letter => events.push(key(letter, std::mem::replace(&mut alt, KeyModifiers::NONE))),
            }
        }
        events
    }

    fn typed(filter: &mut AnswerFilter, bytes: &str) -> (String, Option<Background>) {
        let (mut text, mut found) = (String::new(), None);
        for event in events(bytes) {
            let (passed, background) = filter.take(event);
            found = found.or(background);
            for event in passed {
                if let Event::Key(KeyEvent {
                    code: KeyCode::Char(letter),
                    ..
                }) = event
                {
                    text.push(letter);
                }
            }
        }
        (text, found)
    }

    #[test]
    fn an_answer_is_read_and_never_typed() {
        for (bytes, expected) in [
            ("\x1b]11;rgb:ffff/ffff/ffff\x1b\\", Some(Background::Light)),
            ("\x1b]11;rgb:1e1e/1e1e/2e2e\x07", Some(Background::Dark)),
            ("\x1b]11;rgb:FA/FB/FC\x1b\\", Some(Background::Light)),
            (
                "\x1b]11;rgba:0000/0000/0000/ffff\x1b\\",
                Some(Background::Dark),
            ),
            ("\x1b]11;#fdf6e3\x07", Some(Background::Light)),
            // The escape came alone, and was a key of its own.
            ("]11;rgb:00/00/00\x07", Some(Background::Dark)),
            ("\x1b]11;nonsense\x07", None),
        ] {
            let mut filter = AnswerFilter::new(true);
            assert_eq!(
                typed(&mut filter, &format!("a{bytes}b")),
                ("ab".to_owned(), expected),
                "{bytes:?}"
            );
            assert!(!filter.waits());
        }
    }

    #[test]
    fn keys_that_only_look_like_one_are_typed() {
        let mut filter = AnswerFilter::new(true);
        assert_eq!(typed(&mut filter, "]1]]j").0, "]1]]j");
        // A lone key is held back for an instant.
        assert_eq!(typed(&mut filter, "]").0, "");
        assert_eq!(filter.pause(), Some(PAUSE));
        assert_eq!(filter.give_up(), events("]"));
        assert_eq!(filter.pause(), None);
        // One that stops in the middle is dropped, and what comes later is typed.
        assert_eq!(typed(&mut filter, "\x1b]11;rgb:00").0, "");
        assert_eq!(filter.pause(), Some(LONG_PAUSE));
        assert_eq!(filter.give_up(), []);
        assert_eq!(typed(&mut filter, "jk").0, "jk");
        // Where nothing was asked, nothing is held back.
        let mut filter = AnswerFilter::new(false);
        assert_eq!(typed(&mut filter, "]").0, "]");
    }
}
