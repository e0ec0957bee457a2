//! The table of commands: what each is called, its key, its help and where it works. It feeds the keys, the footer, the help and
//! the palette.

use super::Screen;
use super::command::{CommandContext, ConsoleCommand};

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
/// Lists with columns.
const TABLES: &[CommandContext] = &[
    CommandContext::Keys,
    CommandContext::Detail,
    CommandContext::Live,
    CommandContext::Models,
    CommandContext::Routes,
    CommandContext::Holds,
    CommandContext::Audit,
    CommandContext::Exposure,
    CommandContext::Margin,
    CommandContext::Nodes,
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
        ConsoleCommand::Mark,
        ' ',
        "space",
        "mark",
        "mark this key: t, a, b and x then act on all marked ones",
        &[CommandContext::Keys],
    ),
    bind(
        ConsoleCommand::MarkRange,
        'm',
        "m",
        "mark to here",
        "mark all from the last mark to this key",
        &[CommandContext::Keys],
    ),
    bind(
        ConsoleCommand::MarkAll,
        '*',
        "*",
        "mark all",
        "mark all that the filter lets through, or none",
        &[CommandContext::Keys],
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
        "sort by the next column",
        TABLES,
    ),
    bind(
        ConsoleCommand::Reverse,
        'S',
        "S",
        "reverse",
        "reverse the order",
        TABLES,
    ),
    bind(
        ConsoleCommand::Undo,
        'u',
        "u",
        "undo",
        "undo the last filter, sort or marks",
        &[],
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
