//! The output of commands: results on standard output, everything else on standard error, and fixed exit codes.

use std::io::{ErrorKind, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use farebox_ledger::LedgerError;
use farebox_ledger::text::visible;
use serde::Serialize;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use farebox::telemetry;
use farebox_selling::Unfit;

/// Exit codes. 0 is success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// A rule refused it, or something failed; nothing changed.
    Refused = 1,
    /// The command line is wrong, or what it asks cannot be answered as it stands.
    Usage = 2,
    /// The change may or may not have been made: repeat the command with the same reference.
    Unknown = 75,
    /// The two files have mistakes, or the ledger is not where it should be.
    Configuration = 78,
}

/// Why a command failed.
#[derive(Debug)]
pub(super) struct CommandFailed {
    pub(super) exit: Exit,
    pub(super) message: String,
}

impl CommandFailed {
    pub(super) fn refused(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Refused,
            message: message.into(),
        }
    }

    pub(super) fn configuration(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Configuration,
            message: message.into(),
        }
    }

    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Usage,
            message: message.into(),
        }
    }
}

impl CommandFailed {
    /// Why a program that needs its ledger, or a new one, cannot go on: what is wrong with the address does not heal by itself.
    pub(super) fn without_ledger(error: LedgerError) -> Self {
        match error {
            LedgerError::Misplaced(why) => Self::configuration(why.to_string()),
            other => other.into(),
        }
    }
}

impl From<LedgerError> for CommandFailed {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Unknown(why) => {
                let message = format!(
                    "the outcome is unknown ({why}); repeat the same command with the same reference: it is applied only once"
                );
                Self {
                    exit: Exit::Unknown,
                    message,
                }
            }
            other => Self::refused(other.to_string()),
        }
    }
}

impl From<Unfit> for CommandFailed {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::Incomplete(_, why) => Self::usage(why),
            Unfit::Member(name, why) => Self::usage(format!("--{name}: {why}")),
            Unfit::Unread(error) => error.into(),
            Unfit::Wrong(_) | Unfit::NoCharge(_) | Unfit::NoWish(_) | Unfit::OfAnother(..) => {
                Self::refused(unfit.to_string())
            }
        }
    }
}

/// Why a result of this command could not be printed.
static UNPRINTED: OnceLock<String> = OnceLock::new();

/// Where results come from, if that is not the ledger's primary.
static SOURCE: OnceLock<String> = OnceLock::new();

/// Says in every document where it comes from.
pub(super) fn read_from(source: String) {
    let _ = SOURCE.set(source);
}

/// Prints a result. A closed pipe is not an error; [`printed`] reports any other failure.
pub(super) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let line_end = if text.ends_with('\n') { "" } else { "\n" };
    let written = out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(line_end.as_bytes()))
        .and_then(|()| out.flush());
    if let Err(error) = written.or_else(|error| {
        if error.kind() == ErrorKind::BrokenPipe {
            Ok(())
        } else {
            Err(error)
        }
    }) {
        UNPRINTED.get_or_init(|| error.to_string());
    }
}

/// Whether everything was printed: a command that did its work on a full disk must not look complete to a script.
pub(super) fn printed() -> Result<(), CommandFailed> {
    match UNPRINTED.get() {
        None => Ok(()),
        Some(why) => Err(CommandFailed::refused(format!(
            "the command was carried out, but its result could not be printed: {why}"
        ))),
    }
}

/// Prints one JSON document.
pub(super) fn print_json(value: &impl Serialize) {
    let mut value = json!(value);
    if let (Some(source), Some(document)) = (SOURCE.get(), value.as_object_mut()) {
        document.insert("source".to_owned(), Value::from(source.as_str()));
    }
    print(&format!("{value:#}"));
}

/// Whether the next spreadsheet begins with a byte-order mark.
static BOM: AtomicBool = AtomicBool::new(false);

/// Lets the output begin with a byte-order mark if it is a spreadsheet.
pub(super) fn mark_sheets() {
    BOM.store(true, Ordering::Relaxed);
}

/// Prints a spreadsheet, or the next lines of it.
pub(super) fn sheet(text: &str) {
    let mark = if BOM.swap(false, Ordering::Relaxed) {
        "\u{feff}"
    } else {
        ""
    };
    print(&format!("{mark}{text}"));
}

/// Text from outside, made safe for a terminal.
pub(super) fn plain(text: &str) -> String {
    visible(text)
}

/// `1 model`, `2 models`.
pub(super) fn count(many: impl TryInto<u64>, one: &str) -> String {
    let many = many.try_into().unwrap_or(u64::MAX);
    format!("{many} {one}{}", if many == 1 { "" } else { "s" })
}

/// Prints a message that is not a result.
pub(super) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints what went wrong.
pub(super) fn complain(message: &str) {
    // Some commands have already printed the reason as their result.
    if message.is_empty() {
        return;
    }
    telemetry::last_words(&format!("farebox: {message}\n"));
}

/// Columns for people, as wide as a terminal shows their widest cell; a column of numbers is aligned to the right.
pub(super) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let column = |at: usize| rows.iter().filter_map(move |row| row.get(at));
    let layout = header.iter().enumerate().map(|(at, title)| {
        let width = column(at)
            .map(|cell| cell.width())
            .max()
            .unwrap_or(0)
            .max(title.width());
        (
            width,
            column(at).all(|cell| cell.is_empty() || is_number(cell)),
        )
    });
    let layout: Vec<(usize, bool)> = layout.collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&layout).map(|(cell, (width, numbers))| {
            let space = " ".repeat(width.saturating_sub(cell.width()));
            if *numbers {
                format!("{space}{cell}")
            } else {
                format!("{cell}{space}")
            }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut lines = vec![line(header.to_vec())];
    lines.extend(
        rows.iter()
            .map(|row| line(row.iter().map(String::as_str).collect())),
    );
    lines.join("\n")
}

/// Digits and a point, perhaps with a sign.
fn is_number(cell: &str) -> bool {
    let digits = cell.strip_prefix(['-', '+']).unwrap_or(cell);
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_a_terminal_shows_them() {
        let rows = [
            ["漢字 🦀", "5.00"],
            ["3M", "-12.50"],
            ["e\u{301}te\u{301}", ""],
        ]
        .map(|row| row.map(str::to_owned).to_vec());
        let shown = "label    balance\n漢字 🦀     5.00\n3M        -12.50\ne\u{301}te\u{301}";
        assert_eq!(table(&["label", "balance"], &rows), shown);
    }

    #[test]
    fn tables_carry_nothing_that_drives_a_terminal() {
        assert_eq!(
            plain("acme \u{1b}[31m\u{9b}2J\u{202e}gpj\u{200b}.exe\r\nzwei ünï 漢字"),
            "acme [31m2Jgpj.exezwei ünï 漢字"
        );
    }
}
