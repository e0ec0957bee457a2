//! The table of commands: what each is called, its key, its help and where it works. It feeds the keys, the footer, the help and
//! the palette.

use super::Screen;
use super::command::{CommandContext, ConsoleCommand};

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) command: ConsoleCommand,
    /// How its key is written: most are one letter.
    pub(crate) key: &'static str,
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    /// The places where it works; empty means everywhere.
    pub(crate) places: &'static [CommandContext],
}

const LISTS: &[CommandContext] = &[
    CommandContext::Keys,
    CommandContext::Customers,
    CommandContext::Live,
    CommandContext::Models,
    CommandContext::Routes,
    CommandContext::Holds,
    CommandContext::Audit,
];
/// Lists with columns.
const TABLES: &[CommandContext] = &[
    CommandContext::Keys,
    CommandContext::Customers,
    CommandContext::Detail,
    CommandContext::Customer,
    CommandContext::Live,
    CommandContext::Models,
    CommandContext::Routes,
    CommandContext::Holds,
    CommandContext::Audit,
    CommandContext::Money,
    CommandContext::Nodes,
];
const KEYED: &[CommandContext] = &[CommandContext::Keys, CommandContext::Detail];
/// Where acts are a customer's.
const CUSTOMERS: &[CommandContext] = &[CommandContext::Customers, CommandContext::Customer];
/// Pages with tabs.
const TABBED: &[CommandContext] = &[
    CommandContext::Detail,
    CommandContext::Customer,
    CommandContext::Money,
];
const MONEY: &[CommandContext] = &[CommandContext::Money];

const fn bind(
    command: ConsoleCommand,
    key: &'static str,
    name: &'static str,
    help: &'static str,
    places: &'static [CommandContext],
) -> Binding {
    Binding {
        command,
        key,
        name,
        help,
        places,
    }
}

const fn screen(
    shows: Screen,
    key: &'static str,
    name: &'static str,
    help: &'static str,
) -> Binding {
    bind(ConsoleCommand::Show(shows), key, name, help, &[])
}

/// All commands, in the order of the footer, the help and the palette.
pub(crate) const BINDINGS: &[Binding] = &[
    bind(
        ConsoleCommand::Open,
        "enter",
        "open",
        "open what is selected; never changes anything",
        &[
            CommandContext::Keys,
            CommandContext::Customers,
            CommandContext::Detail,
            CommandContext::Customer,
            CommandContext::Live,
            CommandContext::Models,
            CommandContext::Holds,
            CommandContext::Audit,
            CommandContext::Routes,
            CommandContext::Money,
            CommandContext::Alerts,
        ],
    ),
    bind(
        ConsoleCommand::TopUp,
        "t",
        "top up",
        "pay money onto this key",
        KEYED,
    ),
    bind(
        ConsoleCommand::NewKey,
        "n",
        "new key",
        "create a key; its secret is shown once",
        &[CommandContext::Keys],
    ),
    bind(
        ConsoleCommand::Fold,
        "space",
        "its keys",
        "show the keys of this customer below it, or fold them in",
        &[CommandContext::Customers],
    ),
    bind(
        ConsoleCommand::TopUp,
        "t",
        "top up",
        "pay money to this customer",
        CUSTOMERS,
    ),
    bind(
        ConsoleCommand::NewCustomer,
        "n",
        "new",
        "create a customer, without keys",
        &[CommandContext::Customers],
    ),
    bind(
        ConsoleCommand::NewKey,
        "n",
        "new key",
        "create a key of this customer; its secret is shown once",
        &[CommandContext::Customer],
    ),
    bind(
        ConsoleCommand::Edit,
        "e",
        "edit",
        "label, external id, low balance and limits",
        CUSTOMERS,
    ),
    bind(
        ConsoleCommand::Block,
        "b",
        "suspend",
        "refuse all keys of this customer, or serve them again",
        CUSTOMERS,
    ),
    bind(
        ConsoleCommand::Move,
        "m",
        "move money",
        "to another customer: both sides are booked, or neither",
        CUSTOMERS,
    ),
    bind(
        ConsoleCommand::Adjust,
        "a",
        "adjust",
        "correct the balance in either direction, with a reason",
        CUSTOMERS,
    ),
    bind(
        ConsoleCommand::GiveGrant,
        "i",
        "give",
        "credit that may end, and is used before what was paid",
        CUSTOMERS,
    ),
    bind(
        ConsoleCommand::VoidGrant,
        "d",
        "void grant",
        "take back what is left of the selected grant",
        &[CommandContext::Customer],
    ),
    bind(
        ConsoleCommand::SellPlan,
        "p",
        "sell plan",
        "periods of a plan, paid or given: starts or renews it",
        CUSTOMERS,
    ),
    bind(
        ConsoleCommand::ChangePlan,
        "P",
        "change plan",
        "the selected one, with its next period or at once",
        &[CommandContext::Customer],
    ),
    bind(
        ConsoleCommand::PausePlan,
        "z",
        "pause plan",
        "stop the time of the selected one, or let it go on",
        &[CommandContext::Customer],
    ),
    bind(
        ConsoleCommand::EndPlan,
        "E",
        "end plan",
        "renew the selected one no more; what is paid still runs",
        &[CommandContext::Customer],
    ),
    bind(
        ConsoleCommand::Revoke,
        "x",
        "close",
        "for ever, with nothing held or left; asks for the end of its id",
        CUSTOMERS,
    ),
    bind(
        ConsoleCommand::OpenKey,
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
        "b",
        "block",
        "refuse this key's requests, or serve them again",
        KEYED,
    ),
    bind(
        ConsoleCommand::Revoke,
        "x",
        "revoke",
        "refuse it permanently; asks for the end of its id",
        KEYED,
    ),
    bind(
        ConsoleCommand::Edit,
        "e",
        "edit",
        "label, models, last day and limits",
        KEYED,
    ),
    bind(
        ConsoleCommand::Rotate,
        "R",
        "rotate",
        "a new secret; balance and history stay",
        KEYED,
    ),
    bind(
        ConsoleCommand::Adjust,
        "a",
        "adjust",
        "correct the balance in either direction, with a reason",
        KEYED,
    ),
    bind(
        ConsoleCommand::Refund,
        "f",
        "refund",
        "give back the selected charge or a part of it",
        &[CommandContext::Detail, CommandContext::Customer],
    ),
    bind(
        ConsoleCommand::Link,
        "L",
        "link",
        "a one-time sign-in link to the customer's dashboard",
        KEYED,
    ),
    bind(
        ConsoleCommand::OpenCustomer,
        "C",
        "customer",
        "open the customer of this key",
        KEYED,
    ),
    bind(
        ConsoleCommand::Mark,
        "space",
        "mark",
        "mark this key: t, a, b, e and x then act on all marked ones",
        &[CommandContext::Keys],
    ),
    bind(
        ConsoleCommand::MarkRange,
        "m",
        "mark to here",
        "mark all from the last mark to this key",
        &[CommandContext::Keys],
    ),
    bind(
        ConsoleCommand::MarkAll,
        "*",
        "mark all",
        "mark all that the filter lets through, or none",
        &[CommandContext::Keys],
    ),
    bind(
        ConsoleCommand::Pause,
        "space",
        "pause",
        "pause the list; requests are still counted",
        &[CommandContext::Live],
    ),
    bind(
        ConsoleCommand::Verify,
        "v",
        "verify",
        "check the books: this customer's here, all of them on Config",
        &[
            CommandContext::Detail,
            CommandContext::Customer,
            CommandContext::Config,
        ],
    ),
    bind(
        ConsoleCommand::Filter,
        "/",
        "filter",
        "show only lines that match",
        LISTS,
    ),
    bind(
        ConsoleCommand::Sort,
        "s",
        "sort",
        "sort by the next column",
        TABLES,
    ),
    bind(
        ConsoleCommand::Reverse,
        "S",
        "reverse",
        "reverse the order",
        TABLES,
    ),
    bind(
        ConsoleCommand::Undo,
        "u",
        "undo",
        "undo the last filter, sort or marks",
        &[],
    ),
    bind(
        ConsoleCommand::By,
        "b",
        "by",
        "add up by key, target, class or day",
        MONEY,
    ),
    bind(
        ConsoleCommand::Period,
        "p",
        "period",
        "today, 7 days, this month or the last one (UTC days)",
        MONEY,
    ),
    bind(
        ConsoleCommand::Charts,
        "C",
        "charts",
        "charts of all keys above the sums, or none",
        MONEY,
    ),
    bind(
        ConsoleCommand::NextTab,
        "]",
        "next tab",
        "the next tab of this page (also tab)",
        TABBED,
    ),
    bind(
        ConsoleCommand::PreviousTab,
        "[",
        "previous tab",
        "the tab before",
        TABBED,
    ),
    bind(
        ConsoleCommand::Export,
        "o",
        "export",
        "write CSV or JSON to a file only you can read",
        &[
            CommandContext::Keys,
            CommandContext::Detail,
            CommandContext::Customer,
            CommandContext::Audit,
            CommandContext::Money,
        ],
    ),
    bind(
        ConsoleCommand::CopyId,
        "c",
        "copy id",
        "copy the id of this line to the clipboard",
        &[
            CommandContext::Keys,
            CommandContext::Customers,
            CommandContext::Detail,
            CommandContext::Customer,
            CommandContext::Live,
            CommandContext::Holds,
            CommandContext::Audit,
        ],
    ),
    bind(
        ConsoleCommand::Operations,
        "O",
        "operations",
        "operations whose outcome is not known yet",
        &[
            CommandContext::Keys,
            CommandContext::Customers,
            CommandContext::Audit,
        ],
    ),
    bind(
        ConsoleCommand::Find,
        "F",
        "find",
        "a request, an answer's id, a payment, a key, a customer, a secret or a label",
        &[],
    ),
    bind(ConsoleCommand::Refresh, "r", "refresh", "refresh now", &[]),
    bind(
        ConsoleCommand::Mouse,
        "M",
        "mouse",
        "off, so that the terminal selects text, or on again",
        &[],
    ),
    bind(
        ConsoleCommand::Palette,
        ":",
        "commands",
        "every action by name",
        &[],
    ),
    bind(ConsoleCommand::Help, "?", "help", "this page", &[]),
    bind(
        ConsoleCommand::Back,
        "esc",
        "back",
        "close, go back, then clear the filter",
        &[],
    ),
    bind(
        ConsoleCommand::Quit,
        "q",
        "quit",
        "leave the console (also ctrl-c)",
        &[],
    ),
    bind(
        ConsoleCommand::Down,
        "j ↓",
        "down",
        "next line (k ↑ up)",
        &[],
    ),
    bind(
        ConsoleCommand::PageDown,
        "pgdn",
        "page down",
        "next page (pgup; ctrl-d and ctrl-u half a page)",
        &[],
    ),
    bind(
        ConsoleCommand::First,
        "g",
        "first",
        "first line (G last)",
        &[],
    ),
    screen(
        Screen::Keys,
        "1",
        "Keys",
        "balances, top-ups and everything about keys",
    ),
    screen(Screen::Live, "2", "Live", "requests as they end"),
    screen(
        Screen::Models,
        "3",
        "Models",
        "what is sold and what it costs",
    ),
    screen(Screen::Routes, "4", "Routes", "targets and their health"),
    screen(
        Screen::Holds,
        "5",
        "Holds",
        "money reserved by running requests",
    ),
    screen(Screen::Audit, "6", "Audit", "who did what"),
    screen(
        Screen::Config,
        "7",
        "Config",
        "the configuration, mistakes in the files, the books",
    ),
    screen(
        Screen::Money,
        "8",
        "Money",
        "charges by hour and day; what is left of them, and what may be billed beyond them",
    ),
    screen(
        Screen::Nodes,
        "0",
        "Nodes",
        "the gateways that share the ledger",
    ),
    screen(
        Screen::Alerts,
        "A",
        "Alerts",
        "what is wrong now, what customers see of it, and what to do",
    ),
    screen(
        Screen::Customers,
        "U",
        "Customers",
        "who owns the money, with their keys folded in",
    ),
];

impl Binding {
    /// Whether the command is meaningful here.
    pub(crate) fn works_at(&self, place: CommandContext) -> bool {
        self.places.is_empty() || self.places.contains(&place)
    }

    /// Whether a letter is its key.
    pub(crate) fn is_on(&self, letter: char) -> bool {
        match letter {
            ' ' => self.key == "space",
            letter => self.key.chars().eq([letter]),
        }
    }
}

/// Whether a command is meaningful here.
pub(crate) fn works_at(command: ConsoleCommand, place: CommandContext) -> bool {
    let mut bound = BINDINGS.iter();
    bound.any(|bound| bound.command == command && bound.works_at(place))
}
