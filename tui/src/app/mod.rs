//! The console's state and the one function that changes it: `update(Action) -> Vec<Effect>`.
//!
//! Pure: no clock, no terminal, no ledger; instants and random bits are passed in. State never draws and never waits: it requests
//! outside work with an [`Effect`] and gets the result as a [`Message`]. `dirty` is set when something on screen may have changed;
//! only then is it drawn.

pub(crate) mod act;
pub(crate) mod audit;
mod begin;
pub(crate) mod bindings;
pub(crate) mod bulk;
mod bulk_flow;
pub(crate) mod catalog_lists;
pub(crate) mod cell;
pub(crate) mod command;
pub(crate) mod config_page;
pub(crate) mod customers;
mod customers_flow;
pub(crate) mod detail;
pub(crate) mod filter;
pub(crate) mod find;
pub(crate) mod form;
pub(crate) mod holds;
pub(crate) mod keys;
pub(crate) mod list;
pub(crate) mod live;
pub(crate) mod marks;
pub(crate) mod message;
pub(crate) mod modal;
pub(crate) mod money;
mod money_flow;
pub(crate) mod mouse;
pub(crate) mod nodes;
mod open;
pub(crate) mod order;
pub(crate) mod palette;
pub(crate) mod party;
pub(crate) mod party_filter;
pub(crate) mod perform;
pub(crate) mod reading;
pub(crate) mod receive;
mod selection;
mod show;
mod sorting;
pub(crate) mod tabs;
pub(crate) mod tone;
mod undo;

use farebox_ledger::{
    AuditRecord, FilesAct, HouseAct, OpenHold, OperationId, PublishedSlug, Scope, SlugUse,
    Timestamp, Totals, VerifyReport,
};

use crate::admin::ReportedAlert;
use crate::background::{Background, ThemeChoice};
use crate::field::{FieldEdit, TextField};
use command::{CommandContext, ConsoleCommand};
use customers::CustomersScreen;
use detail::PartyDetail;
use keys::KeysScreen;
use live::{GatewayLink, GatewayView, Live};
use marks::Marks;
use message::{Effect, Message};
use modal::{ListedOperation, Modal};
use money::Money;
use money::sums::Sums;
use mouse::Spot;
use order::ListState;
use party::Party;
use undo::Undo;

/// From this width on, a list and its detail are shown side by side.
pub(crate) const WIDE: u16 = 140;
/// On a smaller terminal the console asks for more room.
pub(crate) const SMALLEST: (u16, u16) = (40, 10);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Screen {
    #[default]
    Keys,
    Customers,
    Live,
    Models,
    Routes,
    Holds,
    Audit,
    Config,
    Money,
    Nodes,
    Alerts,
}

/// The program's settings.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// The ledger's file name, for the header.
    pub(crate) ledger: String,
    /// The admin listener's URL, for messages.
    pub(crate) admin: String,
    pub(crate) read_only: bool,
    /// The base of settings and links, if it was given.
    pub(crate) public_url: Option<String>,
    pub(crate) operator: String,
    pub(crate) theme: ThemeChoice,
    /// The source of random bits for ids.
    pub(crate) random: fn() -> u128,
}

/// Everything that can change the state.
#[derive(Debug)]
pub(crate) enum Action {
    Command(ConsoleCommand),
    Message(Message),
    Resize(u16, u16),
    Edit(FieldEdit),
    Enter,
    Escape,
    Next,
    Previous,
    /// Complete what is typed, in the palette.
    Complete,
    Submit,
    /// `y` in a review or on an operation.
    Yes,
    /// Another letter on a page over the screen.
    Letter(char),
    /// Up or down on a page over the screen.
    Scroll(i16),
    /// A click on a place, and how many lines below its top.
    Click(Spot, usize),
    /// The mouse's wheel, down or up.
    Wheel {
        down: bool,
    },
    /// What the terminal says of its background.
    Background(Background),
    Quit,
}

/// The status line at the bottom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) bad: bool,
}

/// The palette: the typed text and the selected line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Palette {
    pub(crate) field: TextField,
    pub(crate) selected: usize,
}

/// A plain list with its rows.
#[derive(Debug)]
pub(crate) struct RowList<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) list: ListState,
    pub(crate) loaded: bool,
    pub(crate) end: bool,
    pub(crate) loading: bool,
    pub(crate) error: Option<String>,
}

impl<T> Default for RowList<T> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            list: ListState::default(),
            loaded: false,
            end: false,
            loading: false,
            error: None,
        }
    }
}

/// The books of all keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum AllBooks {
    #[default]
    NotChecked,
    Running,
    Checked {
        report: VerifyReport,
        took_ms: u64,
        at: Timestamp,
    },
    Failed(String),
}

/// The whole state of the console.
#[derive(Debug)]
pub(crate) struct ConsoleApp {
    pub(crate) options: Options,
    pub(crate) size: (u16, u16),
    pub(crate) now: Timestamp,
    pub(crate) screen: Screen,
    /// Whether the page of one key or customer is open (in wide terminals beside the list; then this means that it has the focus).
    pub(crate) detail_open: bool,
    pub(crate) detail: Option<PartyDetail>,
    /// The pages from which the open one was opened.
    trail: Vec<Scope>,
    pub(crate) keys: KeysScreen,
    pub(crate) customers: CustomersScreen,
    pub(crate) marks: Marks,
    pub(crate) live: Live,
    pub(crate) gateway: GatewayView,
    pub(crate) models: ListState,
    pub(crate) used: Vec<SlugUse>,
    pub(crate) published: Vec<PublishedSlug>,
    pub(crate) routes: ListState,
    pub(crate) holds: RowList<OpenHold>,
    pub(crate) audit: RowList<AuditRecord>,
    pub(crate) files_acts: Vec<FilesAct>,
    pub(crate) house_acts: Vec<HouseAct>,
    pub(crate) config: ListState,
    pub(crate) money: Money,
    pub(crate) node_list: ListState,
    pub(crate) alert_list: ListState,
    pub(crate) books: AllBooks,
    pub(crate) totals: Option<Totals>,
    pub(crate) ledger_error: Option<String>,
    pub(crate) operations: Vec<ListedOperation>,
    pub(crate) modal: Option<Modal>,
    pub(crate) help: Option<u16>,
    pub(crate) palette: Option<Palette>,
    /// The filter line being typed.
    pub(crate) filtering: Option<TextField>,
    pub(crate) notice: Option<Notice>,
    pub(crate) theme: ThemeChoice,
    /// The terminal's, once it has told.
    pub(crate) background: Option<Background>,
    /// Whether the terminal reports the mouse.
    pub(crate) mouse: bool,
    undo: Undo,
    pub(crate) dirty: bool,
    pub(crate) quit: bool,
}

impl ConsoleApp {
    /// The initial state, and the effects it needs first.
    pub(crate) fn new(options: Options, size: (u16, u16), now: Timestamp) -> (Self, Vec<Effect>) {
        let theme = options.theme;
        let mut app = Self {
            options,
            size,
            now,
            screen: Screen::Keys,
            detail_open: false,
            detail: None,
            trail: Vec::new(),
            keys: KeysScreen::new(),
            customers: CustomersScreen::new(),
            marks: Marks::default(),
            live: Live::default(),
            gateway: GatewayView::default(),
            models: ListState::default(),
            used: Vec::new(),
            published: Vec::new(),
            routes: ListState::default(),
            holds: RowList::default(),
            audit: RowList::default(),
            files_acts: Vec::new(),
            house_acts: Vec::new(),
            config: ListState::default(),
            money: Money::default(),
            node_list: ListState::default(),
            alert_list: ListState::default(),
            books: AllBooks::NotChecked,
            totals: None,
            ledger_error: None,
            operations: Vec::new(),
            modal: None,
            help: None,
            palette: None,
            filtering: None,
            notice: None,
            theme,
            background: None,
            mouse: true,
            undo: Undo::default(),
            dirty: true,
            quit: false,
        };
        let first = app.keys.request(keys::From::Start, false, false);
        (app, vec![Effect::LoadKeys(first)])
    }

    /// Changes the state by one action.
    pub(crate) fn update(&mut self, action: Action) -> Vec<Effect> {
        if !matches!(action, Action::Message(_)) {
            self.dirty = true;
            if !matches!(action, Action::Resize(..)) {
                self.notice = None;
            }
        }
        if matches!(action, Action::Message(_)) {
            return self.change(action);
        }
        let before = self.undo.before(self.look());
        let effects = self.change(action);
        self.note(before);
        effects
    }

    fn change(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Message(message) => self.receive(message),
            Action::Resize(width, height) => {
                self.size = (width, height);
                self.after_move()
            }
            Action::Quit => {
                self.quit = true;
                Vec::new()
            }
            Action::Command(command) => self.perform(command),
            Action::Background(background) => {
                self.background = Some(background);
                Vec::new()
            }
            Action::Click(spot, line) => self.click(spot, line),
            Action::Wheel { down } => self.wheel(down),
            typed if self.palette.is_some() => self.in_palette(typed),
            typed if self.filtering.is_some() => self.in_filter(typed),
            typed => self.in_modal(typed),
        }
    }

    /// Where letters act when no page is over the screen.
    pub(crate) const fn place(&self) -> CommandContext {
        match &self.detail {
            Some(detail) if self.detail_open => match detail.of {
                Scope::Key(_) => CommandContext::Detail,
                Scope::Customer(_) => CommandContext::Customer,
            },
            _ => self.screen_place(),
        }
    }

    /// Where letters act when no page of a key or customer is open either.
    pub(crate) const fn screen_place(&self) -> CommandContext {
        match self.screen {
            Screen::Keys => CommandContext::Keys,
            Screen::Customers => CommandContext::Customers,
            Screen::Live => CommandContext::Live,
            Screen::Models => CommandContext::Models,
            Screen::Routes => CommandContext::Routes,
            Screen::Holds => CommandContext::Holds,
            Screen::Audit => CommandContext::Audit,
            Screen::Config => CommandContext::Config,
            Screen::Money => CommandContext::Money,
            Screen::Nodes => CommandContext::Nodes,
            Screen::Alerts => CommandContext::Alerts,
        }
    }

    /// Whether a list and its detail fit side by side.
    pub(crate) const fn is_wide(&self) -> bool {
        self.size.0 >= WIDE
    }

    /// Lines of a list on this terminal.
    pub(crate) fn page_height(&self) -> usize {
        usize::from(self.size.1.saturating_sub(6)).max(1)
    }

    /// Whether acts apply to the marked keys, and not to the selected one.
    pub(crate) fn acts_on_marks(&self) -> bool {
        self.place() == CommandContext::Keys && !self.marks.is_empty()
    }

    /// Why nothing can be undone.
    pub(crate) fn undo_problem(&self) -> Option<String> {
        let nothing = self.undo.is_empty();
        nothing.then(|| "no filter, order or mark was changed".to_owned())
    }

    /// What acts apply to: the open key or customer, else the selected one.
    pub(crate) fn selected_party(&self) -> Option<Party> {
        match self.place() {
            CommandContext::Detail | CommandContext::Customer => {
                self.detail.as_ref().and_then(|detail| detail.party.clone())
            }
            CommandContext::Keys => self.keys.row().map(|row| row.key.clone().into()),
            CommandContext::Customers => self.customers.customer().cloned().map(Party::from),
            _ => None,
        }
    }

    /// Whether nothing is selected.
    pub(crate) fn selected_is_empty(&self) -> bool {
        self.selected_id().is_none()
    }

    /// The sums of the Margin or Exposure tab.
    pub(crate) fn sums(&self) -> Option<&Sums> {
        let sums = self.money.sums();
        sums.filter(|_| self.screen == Screen::Money)
    }

    /// The gateway's alerts.
    pub(crate) fn alerts(&self) -> &[ReportedAlert] {
        let status = self
            .gateway
            .status
            .as_ref()
            .filter(|_| self.gateway.link == GatewayLink::Live);
        status.map_or(&[], |status| &status.alerts)
    }

    /// The selected alert, on the screen of alerts.
    pub(crate) fn alert(&self) -> Option<&ReportedAlert> {
        let selected = self.alerts().get(self.alert_list.selected);
        selected.filter(|_| self.place() == CommandContext::Alerts)
    }

    /// The base of the settings and links that are shown.
    pub(crate) fn public_url(&self) -> &str {
        let of_gateway = self
            .gateway
            .status
            .as_ref()
            .map(|status| status.public_url.as_str())
            .filter(|url| !url.is_empty());
        let given = self.options.public_url.as_deref();
        given.or(of_gateway).unwrap_or("http://127.0.0.1:8080")
    }

    /// A fresh operation id.
    pub(crate) fn new_operation(&self) -> OperationId {
        OperationId::new(self.now, (self.options.random)())
    }

    /// Shows a message in the status line.
    pub(crate) fn say(&mut self, text: impl Into<String>, bad: bool) {
        self.notice = Some(Notice {
            text: text.into(),
            bad,
        });
        self.dirty = true;
    }
}
