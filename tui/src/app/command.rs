//! Every action of the console, and why it is not available now. Their keys and names are the table in `bindings`.
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
    Spend,
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
    Undo,
    Mark,
    MarkRange,
    MarkAll,
    Mouse,
    Pause,
    Period,
    Charts,
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
            Self::Undo => app.undo_problem(),
            Self::OpenKey if app.alert().is_some_and(|alert| alert.key.is_empty()) => {
                Some("this alert is about no key".to_owned())
            }
            Self::Open | Self::OpenKey | Self::CopyId => app
                .selected_is_empty()
                .then(|| "nothing is selected".to_owned()),
            Self::Mark | Self::MarkRange | Self::MarkAll => app
                .keys
                .rows
                .is_empty()
                .then(|| "no key is listed".to_owned()),
            Self::Refund => app.refund_problem(),
            Self::TopUp | Self::Adjust | Self::Block | Self::Revoke if app.acts_on_marks() => None,
            Self::Edit | Self::Rotate | Self::Link if app.acts_on_marks() => {
                Some("it is done one key at a time: esc clears the marks".to_owned())
            }
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
