//! Which row of a list is selected, and whose key it is about.

use farebox_ledger::KeyId;

use super::ConsoleApp;
use super::command::CommandContext;

impl ConsoleApp {
    /// The key of the selected line, on screens that are about something else.
    pub(super) fn selected_key_id(&self) -> Option<KeyId> {
        match self.place() {
            CommandContext::Live => self
                .live
                .shown()
                .get(self.live.selected)?
                .key
                .as_ref()?
                .parse()
                .ok(),
            CommandContext::Holds => self
                .shown_holds()
                .get(self.holds.selected)
                .map(|hold| hold.key),
            CommandContext::Audit => self.shown_audit().get(self.audit.selected)?.key(),
            CommandContext::Exposure | CommandContext::Margin => {
                self.sums()?.selected_name()?.parse().ok()
            }
            CommandContext::Alerts => self.alert()?.key.parse().ok(),
            _ => None,
        }
    }

    /// The selected row of this list.
    pub(super) fn selected_row(&self) -> usize {
        match self.place() {
            CommandContext::Keys => self.keys.selected,
            CommandContext::Customers => self.customers.selected,
            CommandContext::Detail | CommandContext::Customer => {
                self.detail.as_ref().map_or(0, |detail| detail.selected)
            }
            CommandContext::Live => self.live.selected,
            CommandContext::Models => self.models.selected,
            CommandContext::Routes => self.routes.selected,
            CommandContext::Holds => self.holds.selected,
            CommandContext::Audit => self.audit.selected,
            CommandContext::Config => self.config.selected,
            CommandContext::Exposure => self.exposure.selected,
            CommandContext::Margin => self.margin.selected,
            CommandContext::Nodes => self.selected_node,
            CommandContext::Alerts => self.selected_alert,
            CommandContext::Spend => self.spend.selected,
        }
    }
}
