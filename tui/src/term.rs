//! The terminal: entered once, and restored however the program ends, panics included.
//!
//! Leaving clears the alternate screen, so that nothing shown on it, such as a secret, remains.

use std::io::{self, Write as _};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use ratatui::DefaultTerminal;
use ratatui::layout::{Position, Rect};

/// Buttons and wheel, with coordinates of any size.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";

/// The terminal while the console runs.
pub(crate) struct Term {
    pub(crate) terminal: DefaultTerminal,
}

impl Term {
    /// Enters the alternate screen and raw mode; a panic restores both before its text is printed.
    pub(crate) fn enter() -> io::Result<Self> {
        let terminal = ratatui::try_init()?;
        let mut term = Self { terminal };
        execute!(term.terminal.backend_mut(), EnableBracketedPaste)?;
        term.mouse(true)?;
        Ok(term)
    }

    /// Has the terminal report buttons and the wheel, or leaves them to the terminal. Movements are never reported: each would be
    /// a few bytes for nothing.
    pub(crate) fn mouse(&mut self, on: bool) -> io::Result<()> {
        self.say(if on { MOUSE_ON } else { MOUSE_OFF })
    }

    /// Asks the terminal for its background; the answer comes among its events.
    pub(crate) fn ask_for_background(&mut self) -> io::Result<()> {
        self.say(crate::background::QUESTION)
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        let out = self.terminal.backend_mut();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Hands a text to the terminal's clipboard (OSC 52).
    pub(crate) fn copy(&mut self, text: &str) -> io::Result<()> {
        let out = self.terminal.backend_mut();
        write!(out, "\x1b]52;c;{}\x07", base_64(text.as_bytes()))?;
        out.flush()
    }

    /// Forgets what is on the screen, so that all of it is drawn next time. [`ratatui::Terminal::clear`] would first query the
    /// cursor's position; the answer races with the keys that are read, and the last one would end up on the user's command line.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        // If the terminal itself is gone, there is nowhere to report it.
        let _ = self.clear();
        let _ = self.mouse(false);
        let _ = execute!(self.terminal.backend_mut(), DisableBracketedPaste);
        ratatui::restore();
    }
}

/// Standard base 64 with padding.
fn base_64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter = |bits: u32| {
        LETTERS
            .get((bits & 63) as usize)
            .map_or('=', |letter| char::from(*letter))
    };
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |place: usize| group.get(place).copied().map_or(0, u32::from);
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        text.push(letter(bits >> 18));
        text.push(letter(bits >> 12));
        text.push(if group.len() > 1 {
            letter(bits >> 6)
        } else {
            '='
        });
        text.push(if group.len() > 2 { letter(bits) } else { '=' });
    }
    text
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{Term, base_64};

    /// The test below runs this on its own terminal. It fails by design.
    #[test]
    #[ignore = "panics inside of the console's terminal"]
    fn a_console_that_panics() {
        let _term = Term::enter().unwrap();
        panic!("something broke");
    }

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_speaks() {
        if !Command::new("script")
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
        {
            return println!("skipped: script (util-linux) is not installed");
        }
        let program = std::env::current_exe().unwrap();
        let child = "term::tests::a_console_that_panics --exact --ignored --nocapture";
        let command = format!("stty -g; {} {child}; echo; stty -g", program.display());
        let output = Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let place = |part: &str| {
            text.find(part)
                .unwrap_or_else(|| panic!("{part:?} is not in {text:?}"))
        };
        let (entered, left, spoke) = (
            place("\x1b[?1049h"),
            place("\x1b[?1049l"),
            place("something broke"),
        );
        assert!(entered < left && left < spoke, "{text:?}");
        assert!(
            place("\x1b[?2004h") < place("\x1b[?2004l"),
            "pasting is as it was: {text:?}"
        );
        assert!(
            place(super::MOUSE_ON) < place(super::MOUSE_OFF),
            "so is the mouse: {text:?}"
        );
        assert!(
            !text.contains("\x1b[6n"),
            "the answer to a question for the cursor is left on the command line: {text:?}"
        );
        let modes: Vec<&str> = text
            .lines()
            .filter(|line| line.matches(':').count() > 20)
            .collect();
        assert!(
            modes.len() == 2 && modes.first() == modes.last(),
            "raw mode stayed: {text:?}"
        );
    }

    #[test]
    fn base_64_is_the_standard_one() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
            ("\u{ff}?>", "w78/Pg=="),
        ] {
            assert_eq!(base_64(bytes.as_bytes()), text);
        }
    }
}
