//! Every action of the console, and why it is not available now. Their keys and names are the table in `bindings`.
//!
//! Nothing acts here. A command that is not available now has a reason in words, and the same reason is shown wherever the command
//! appears.

use farebox_ledger::{
    CustomerStatus, EntryKind, GrantRecord, GrantStatus, Key, KeyStatus, SubscriptionStatus,
    Timestamp,
};

use super::party::Party;
use super::{ConsoleApp, Screen};

/// Where a key is pressed: a screen, or the page of one key or customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CommandContext {
    Keys,
    Customers,
    /// The page of a key.
    Detail,
    /// The page of a customer.
    Customer,
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
    OpenCustomer,
    Fold,
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
    By,
    Period,
    Charts,
    Refresh,
    TopUp,
    NewKey,
    NewCustomer,
    Edit,
    /// Block a key or suspend a customer, or serve it again.
    Block,
    Rotate,
    /// Revoke a key, or close a customer.
    Revoke,
    Adjust,
    Move,
    GiveGrant,
    VoidGrant,
    SellPlan,
    ChangePlan,
    /// Stop a subscription's time, or let it go on.
    PausePlan,
    EndPlan,
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
                | Self::NewCustomer
                | Self::Move
                | Self::GiveGrant
                | Self::VoidGrant
                | Self::SellPlan
                | Self::ChangePlan
                | Self::PausePlan
                | Self::EndPlan
                | Self::Edit
                | Self::Block
                | Self::Rotate
                | Self::Revoke
                | Self::Adjust
                | Self::Refund
                | Self::Link
        )
    }

    /// Whether it can be done to all marked keys at once.
    pub(crate) const fn acts_on_many(self) -> bool {
        matches!(
            self,
            Self::TopUp | Self::Adjust | Self::Block | Self::Revoke | Self::Edit
        )
    }

    /// Why it is not available now, in words; `None` if it is.
    pub(crate) fn reason_against(self, app: &ConsoleApp) -> Option<String> {
        if self.writes() && app.options.read_only {
            return Some("the console was started with --read-only".to_owned());
        }
        match self {
            Self::NewCustomer => None,
            Self::NewKey if app.place() == CommandContext::Keys => None,
            Self::Fold => {
                (app.customers.customer().is_none()).then(|| "no customer is listed".to_owned())
            }
            Self::OpenCustomer => {
                (app.selected_party().is_none()).then(|| "no key is selected".to_owned())
            }
            Self::Undo => app.undo_problem(),
            Self::By | Self::Period | Self::Charts | Self::Export
                if app.place() == CommandContext::Money && app.sums().is_none() =>
            {
                Some("only the other tabs add something up".to_owned())
            }
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
            Self::VoidGrant => app.void_problem(),
            Self::ChangePlan | Self::PausePlan | Self::EndPlan => self.plan_problem(app),
            _ if self.acts_on_many() && app.acts_on_marks() => None,
            Self::Rotate | Self::Link if app.acts_on_marks() => {
                Some("it is done one key at a time: esc clears the marks".to_owned())
            }
            writes if writes.writes() => match app.selected_party() {
                None => Some("nothing is selected".to_owned()),
                Some(Party::Key(key)) => self.reason_of_key(&key, app.now),
                Some(Party::Customer(customer)) => {
                    let closed = customer.status == CustomerStatus::Closed;
                    closed.then(|| "the customer is closed, which cannot be undone".to_owned())
                }
            },
            _ => None,
        }
    }

    /// Why nothing can be done to the selected plan.
    fn plan_problem(self, app: &ConsoleApp) -> Option<String> {
        let Some(of) = app.selected_plan() else {
            return Some("select a plan first: its tab is plans".to_owned());
        };
        match (of.status.0, self) {
            (SubscriptionStatus::Ended, _) => Some("this plan is ended".to_owned()),
            (SubscriptionStatus::Lapsed, Self::PausePlan) => {
                Some("this plan has lapsed: nothing is left to pause".to_owned())
            }
            (
                SubscriptionStatus::Active
                | SubscriptionStatus::Lapsed
                | SubscriptionStatus::Paused,
                _,
            ) => None,
        }
    }

    /// Why an act on this key is not available now.
    fn reason_of_key(self, key: &Key, now: Timestamp) -> Option<String> {
        // The remaining balance of a revoked key can still be corrected or refunded.
        if key.stored_status == KeyStatus::Revoked && self != Self::Adjust {
            return Some("the key is revoked, which cannot be undone".to_owned());
        }
        let blocked = self == Self::Link && key.status(now) == KeyStatus::Blocked;
        blocked.then(|| "the key is blocked".to_owned())
    }
}

impl ConsoleApp {
    /// Why the selected line cannot be taken back.
    fn void_problem(&self) -> Option<String> {
        let Some(GrantRecord { grant, .. }) = self.selected_grant() else {
            return Some("select a grant first".to_owned());
        };
        match grant.status_at(self.now) {
            GrantStatus::Pending | GrantStatus::Active => None,
            ended @ (GrantStatus::Exhausted | GrantStatus::Expired | GrantStatus::Voided) => {
                Some(format!("this grant is {}", ended.as_str()))
            }
        }
    }

    /// Why the selected line cannot be refunded.
    fn refund_problem(&self) -> Option<String> {
        let Some(detail) = self.detail.as_ref() else {
            return Some("nothing is open".to_owned());
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
