//! What the real console sends to its terminal and takes from it, byte by byte.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test says what is wrong by failing"
)]

#[path = "support/running.rs"]
mod running;
#[path = "../../tests/support/skip.rs"]
mod skip;

use std::path::Path;
use std::time::Duration;

use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::{Durability, OpenMode};

use running::{Running, console};

const QUESTION: &str = "\x1b]11;?\x1b\\";
const WHITE: &str = "\x1b]11;rgb:ffff/ffff/ffff\x1b\\";
/// The light theme's blue.
const BLUE: &str = "38;5;25";

fn ledger(home: &Path) -> std::path::PathBuf {
    let path = home.join("farebox.db");
    SqliteLedger::create(&path, OpenMode::Write, Durability::Prompt)
        .unwrap()
        .close();
    path
}

fn has_script() -> bool {
    skip::installed("script", "the console's bytes")
}

#[test]
fn the_colours_follow_the_terminals_answer_which_is_never_typed() {
    if !has_script() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Running::start(&ledger(home.path()), home.path());
    terminal.until(QUESTION);
    // A filter is being typed when the answer comes.
    terminal.press("/");
    terminal.until("label");
    terminal.send(&format!("ac{WHITE}me"));
    terminal.until(BLUE);
    terminal.press("x");
    terminal.until("x");
    // Clearing the filter shows what was in it: nothing but letters was typed.
    terminal.press("\x7f\x7f\x7f\x7f\x7f");
    let drawn = terminal.drawn_in(Duration::from_millis(300));
    assert!(
        !drawn.contains("rgb") && !drawn.contains("11;"),
        "{drawn:?}"
    );
}

#[test]
fn without_an_answer_it_works_as_before_and_an_idle_screen_sends_nothing() {
    if !has_script() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut terminal = Running::start(&ledger(home.path()), home.path());
    terminal.until("no keys yet");
    terminal.press("5");
    terminal.until("Holds");
    // The gateway is looked for at first, and the books are read.
    terminal.drawn_in(Duration::from_secs(3));
    assert_eq!(terminal.drawn_in(Duration::from_secs(3)), "");
}

#[test]
fn a_chosen_theme_asks_nothing() {
    if !has_script() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let line = format!("exec {} --theme light", console(&ledger(home.path())));
    let terminal = Running::of(&line, home.path());
    let drawn = terminal.drawn_in(Duration::from_secs(2));
    assert!(drawn.contains(BLUE), "{drawn:?}");
    assert!(!drawn.contains(QUESTION), "{drawn:?}");
}
