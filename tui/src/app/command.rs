//! Every action of the console by name: one table feeds the keys, the footer, the help and the palette.
//!
//! Nothing acts here. A command that is not available now has a reason in words, and the same reason is shown wherever the command
//! appears.

use farebox_ledger::{EntryKind, KeyStatus};

use super::{ConsoleApp, Screen};

/// Where a key is pressed: a screen, or the page of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CommandContext {
    Keys,
    Detail,
    Live,
    Models,
    Routes,
    Holds,
    Audit,
    Config,
    Exposure,
    Margin,
    Nodes,
    Alerts,
}

/// The commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ConsoleCommand {
    Show(Screen),
    Help,
    Palette,
    Filter,
    Back,
    Quit,
    Up,
    Down,
    HalfUp,
    HalfDown,
    PageUp,
    PageDown,
    First,
    Last,
    Open,
    OpenKey,
    NextTab,
    PreviousTab,
    Sort,
    Reverse,
    Pause,
    Period,
    Refresh,
    TopUp,
    NewKey,
    Edit,
    Block,
    Rotate,
    Revoke,
    Adjust,
    Refund,
    Link,
    Export,
    Verify,
    CopyId,
    Operations,
    Find,
}

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) command: ConsoleCommand,
    /// Its letter; `None` for commands that only have special keys.
    pub(crate) letter: Option<char>,
    /// How the key is written.
    pub(crate) key: &'static str,
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    /// The places where it works; empty means everywhere.
    pub(crate) places: &'static [CommandContext],
}

const LISTS: &[CommandContext] = &[
    CommandContext::Keys,
    CommandContext::Live,
    CommandContext::Models,
    CommandContext::Routes,
    CommandContext::Holds,
    CommandContext::Audit,
];
const KEYED: &[CommandContext] = &[CommandContext::Keys, CommandContext::Detail];
/// Sums by key, target, class or day.
const SUMS: &[CommandContext] = &[CommandContext::Exposure, CommandContext::Margin];

const fn bind(
    command: ConsoleCommand,
    letter: char,
    key: &'static str,
    name: &'static str,
    help: &'static str,
    places: &'static [CommandContext],
) -> Binding {
    Binding {
        command,
        letter: Some(letter),
        key,
        name,
        help,
        places,
    }
}

const fn special(
    command: ConsoleCommand,
    key: &'static str,
    name: &'static str,
    help: &'static str,
    places: &'static [CommandContext],
) -> Binding {
    Binding {
        command,
        letter: None,
        key,
        name,
        help,
        places,
    }
}

/// All commands, in the order of the footer, the help and the palette.
pub(crate) const BINDINGS: &[Binding] = &[
    special(
        ConsoleCommand::Open,
        "enter",
        "open",
        "open what is selected; never changes anything",
        &[
            CommandContext::Keys,
            CommandContext::Detail,
            CommandContext::Live,
            CommandContext::Holds,
            CommandContext::Audit,
            CommandContext::Routes,
            CommandContext::Exposure,
            CommandContext::Margin,
            CommandContext::Alerts,
        ],
    ),
    bind(
        ConsoleCommand::TopUp,
        't',
        "t",
        "top up",
        "pay money onto this key",
        KEYED,
    ),
    bind(
        ConsoleCommand::NewKey,
        'n',
        "n",
        "new key",
        "create a key; its secret is shown once",
        &[CommandContext::Keys],
    ),
    bind(
        ConsoleCommand::OpenKey,
        'K',
        "K",
        "its key",
        "open the key of this line",
        &[
            CommandContext::Live,
            CommandContext::Holds,
            CommandContext::Audit,
            CommandContext::Alerts,
        ],
    ),
    bind(
        ConsoleCommand::Block,
        'b',
        "b",
        "block",
        "refuse this key's requests, or serve them again",
        KEYED,
    ),
    bind(
        ConsoleCommand::Revoke,
        'x',
        "x",
        "revoke",
        "refuse it permanently; asks for the end of its id",
        KEYED,
    ),
    bind(
        ConsoleCommand::Edit,
        'e',
        "e",
        "edit",
        "label, models, last day and limits",
        KEYED,
    ),
    bind(
        ConsoleCommand::Rotate,
        'R',
        "R",
        "rotate",
        "a new secret; balance and history stay",
        KEYED,
    ),
    bind(
        ConsoleCommand::Adjust,
        'a',
        "a",
        "adjust",
        "correct the balance in either direction, with a reason",
        KEYED,
    ),
    bind(
        ConsoleCommand::Refund,
        'f',
        "f",
        "refund",
        "give back the selected charge or a part of it",
        &[CommandContext::Detail],
    ),
    bind(
        ConsoleCommand::Link,
        'L',
        "L",
        "link",
        "a one-time sign-in link to the customer's dashboard",
        KEYED,
    ),
    bind(
        ConsoleCommand::Pause,
        ' ',
        "space",
        "pause",
        "pause the list; requests are still counted",
        &[CommandContext::Live],
    ),
    bind(
        ConsoleCommand::Verify,
        'v',
        "v",
        "verify",
        "check the books: this key's here, all keys' on Config",
        &[CommandContext::Detail, CommandContext::Config],
    ),
    bind(
        ConsoleCommand::Filter,
        '/',
        "/",
        "filter",
        "show only lines that match",
        LISTS,
    ),
    bind(
        ConsoleCommand::Sort,
        's',
        "s",
        "sort",
        "next column to sort by",
        &[
            CommandContext::Keys,
            CommandContext::Exposure,
            CommandContext::Margin,
        ],
    ),
    bind(
        ConsoleCommand::Reverse,
        'S',
        "S",
        "reverse",
        "reverse the order",
        &[
            CommandContext::Keys,
            CommandContext::Exposure,
            CommandContext::Margin,
        ],
    ),
    bind(
        ConsoleCommand::Period,
        'p',
        "p",
        "period",
        "today, 7 days, this month or the last one (UTC days)",
        SUMS,
    ),
    special(
        ConsoleCommand::NextTab,
        "]",
        "next tab",
        "the next tab of this page (also tab)",
        &[
            CommandContext::Detail,
            CommandContext::Exposure,
            CommandContext::Margin,
        ],
    ),
    special(
        ConsoleCommand::PreviousTab,
        "[",
        "previous tab",
        "the tab before",
        &[
            CommandContext::Detail,
            CommandContext::Exposure,
            CommandContext::Margin,
        ],
    ),
    bind(
        ConsoleCommand::Export,
        'o',
        "o",
        "export",
        "write CSV or JSON to a file only you can read",
        &[
            CommandContext::Keys,
            CommandContext::Detail,
            CommandContext::Audit,
            CommandContext::Exposure,
            CommandContext::Margin,
        ],
    ),
    bind(
        ConsoleCommand::CopyId,
        'c',
        "c",
        "copy id",
        "copy the id of this line to the clipboard",
        &[
            CommandContext::Keys,
            CommandContext::Detail,
            CommandContext::Live,
            CommandContext::Holds,
            CommandContext::Audit,
        ],
    ),
    bind(
        ConsoleCommand::Operations,
        'O',
        "O",
        "operations",
        "operations whose outcome is not known yet",
        &[CommandContext::Keys, CommandContext::Audit],
    ),
    bind(
        ConsoleCommand::Find,
        'F',
        "F",
        "find",
        "a request, an answer's id, a payment, a key, a secret or a label",
        &[],
    ),
    bind(
        ConsoleCommand::Refresh,
        'r',
        "r",
        "refresh",
        "refresh now",
        &[],
    ),
    bind(
        ConsoleCommand::Palette,
        ':',
        ":",
        "commands",
        "every action by name",
        &[],
    ),
    bind(ConsoleCommand::Help, '?', "?", "help", "this page", &[]),
    special(
        ConsoleCommand::Back,
        "esc",
        "back",
        "close, go back, then clear the filter",
        &[],
    ),
    bind(
        ConsoleCommand::Quit,
        'q',
        "q",
        "quit",
        "leave the console (also ctrl-c)",
        &[],
    ),
    special(
        ConsoleCommand::Down,
        "j ↓",
        "down",
        "next line (k ↑ up)",
        &[],
    ),
    special(
        ConsoleCommand::PageDown,
        "pgdn",
        "page down",
        "next page (pgup; ctrl-d and ctrl-u half a page)",
        &[],
    ),
    special(
        ConsoleCommand::First,
        "g",
        "first",
        "first line (G last)",
        &[],
    ),
    bind(
        ConsoleCommand::Show(Screen::Keys),
        '1',
        "1",
        "Keys",
        "balances, top-ups and everything about keys",
        &[],
    ),
    bind(
        ConsoleCommand::Show(Screen::Live),
        '2',
        "2",
        "Live",
        "requests as they end",
        &[],
    ),
    bind(
        ConsoleCommand::Show(Screen::Models),
        '3',
        "3",
        "Models",
        "what is sold and what it costs",
        &[],
    ),
    bind(
        ConsoleCommand::Show(Screen::Routes),
        '4',
        "4",
        "Routes",
        "targets and their health",
        &[],
    ),
    bind(
        ConsoleCommand::Show(Screen::Holds),
        '5',
        "5",
        "Holds",
        "money reserved by running requests",
        &[],
    ),
    bind(
        ConsoleCommand::Show(Screen::Audit),
        '6',
        "6",
        "Audit",
        "who did what",
        &[],
    ),
    bind(
        ConsoleCommand::Show(Screen::Config),
        '7',
        "7",
        "Config",
        "the configuration, mistakes in the files, the books",
        &[],
    ),
    bind(
        ConsoleCommand::Show(Screen::Exposure),
        '8',
        "8",
        "Exposure",
        "what providers may bill beyond the charges",
        &[],
    ),
    bind(
        ConsoleCommand::Show(Screen::Margin),
        '9',
        "9",
        "Margin",
        "charges against the operator's own prices",
        &[],
    ),
    bind(
        ConsoleCommand::Show(Screen::Nodes),
        '0',
        "0",
        "Nodes",
        "the gateways that share the ledger",
        &[],
    ),
    bind(
        ConsoleCommand::Show(Screen::Alerts),
        'A',
        "A",
        "Alerts",
        "what is wrong now, what customers see of it, and what to do",
        &[],
    ),
];

impl Binding {
    /// Whether the command is meaningful here.
    pub(crate) fn works_at(&self, place: CommandContext) -> bool {
        self.places.is_empty() || self.places.contains(&place)
    }
}

impl ConsoleCommand {
    /// Whether it only moves the cursor; such commands are not in the palette.
    pub(crate) const fn moves(self) -> bool {
        matches!(
            self,
            Self::Up
                | Self::Down
                | Self::HalfUp
                | Self::HalfDown
                | Self::PageUp
                | Self::PageDown
                | Self::First
                | Self::Last
                | Self::Palette
                | Self::Back
        )
    }

    /// Whether it changes the ledger.
    const fn writes(self) -> bool {
        matches!(
            self,
            Self::TopUp
                | Self::NewKey
                | Self::Edit
                | Self::Block
                | Self::Rotate
                | Self::Revoke
                | Self::Adjust
                | Self::Refund
                | Self::Link
        )
    }

    /// Why it is not available now, in words; `None` if it is.
    pub(crate) fn reason_against(self, app: &ConsoleApp) -> Option<String> {
        if self.writes() && app.options.read_only {
            return Some("the console was started with --read-only".to_owned());
        }
        match self {
            Self::NewKey => None,
            Self::OpenKey if app.alert().is_some_and(|alert| alert.key.is_empty()) => {
                Some("this alert is about no key".to_owned())
            }
            Self::Open | Self::OpenKey | Self::CopyId => app
                .selected_is_empty()
                .then(|| "nothing is selected".to_owned()),
            Self::Refund => app.refund_problem(),
            writes if writes.writes() => match app.selected_key() {
                None => Some("no key is selected".to_owned()),
                // The remaining balance of a revoked key can still be corrected or refunded.
                Some(key) if key.stored_status == KeyStatus::Revoked && self != Self::Adjust => {
                    Some("the key is revoked, which cannot be undone".to_owned())
                }
                Some(key) => (self == Self::Link && key.status(app.now) == KeyStatus::Blocked)
                    .then(|| "the key is blocked".to_owned()),
            },
            _ => None,
        }
    }
}

impl ConsoleApp {
    /// Why the selected line cannot be refunded.
    fn refund_problem(&self) -> Option<String> {
        let Some(detail) = self.detail.as_ref() else {
            return Some("no key is open".to_owned());
        };
        match detail.selected_entry() {
            Some(entry) if entry.kind == EntryKind::Charge && entry.amount.is_negative() => None,
            Some(entry) if entry.kind == EntryKind::Charge => {
                Some("this request was free".to_owned())
            }
            _ => Some("select a charge first".to_owned()),
        }
    }
}
