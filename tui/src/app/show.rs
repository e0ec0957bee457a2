//! Showing a screen, and requesting what its visible rows lack.

use farebox_ledger::{KeyId, Scope};

use super::detail::PartyDetail;
use super::message::Effect;
use super::party::Party;
use super::{ConsoleApp, Screen};

impl ConsoleApp {
    /// Requests data that newly visible rows still lack, and the detail beside the list.
    pub(crate) fn after_move(&mut self) -> Vec<Effect> {
        if self.detail_open || !matches!(self.screen, Screen::Keys | Screen::Customers) {
            return Vec::new();
        }
        let mut effects = Vec::new();
        let unknown = self.screen == Screen::Keys
            && self
                .keys
                .visible(self.page_height())
                .any(|row| self.keys.rows.get(row).is_some_and(|row| row.day.is_none()));
        if unknown {
            effects.push(Effect::Visible(self.visible_ids()));
        }
        effects.extend(self.beside());
        effects
    }

    /// Shows the selected line's page beside its list, if there is room.
    fn beside(&mut self) -> Option<Effect> {
        if !self.is_wide() {
            return None;
        }
        let (of, party) = match (self.screen, self.customers.scope()) {
            (Screen::Customers, Some(Scope::Key(key))) => (key.into(), None),
            (Screen::Customers, _) => {
                let party: Party = self.customers.customer()?.clone().into();
                (party.scope(), Some(party))
            }
            _ => {
                let party: Party = self.keys.row()?.key.clone().into();
                (party.scope(), Some(party))
            }
        };
        if self.detail.as_ref().is_some_and(|detail| detail.of == of) {
            return None;
        }
        self.detail = Some(PartyDetail::new(of, party));
        Some(Effect::LoadDetail { of, debounce: true })
    }

    pub(crate) fn visible_ids(&self) -> Vec<KeyId> {
        let range = self.keys.visible(self.page_height());
        range
            .filter_map(|row| self.keys.rows.get(row))
            .map(|row| row.key.id)
            .collect()
    }

    pub(super) fn show(&mut self, screen: Screen) -> Vec<Effect> {
        self.screen = screen;
        self.detail_open = false;
        self.trail.clear();
        self.filtering = None;
        match screen {
            Screen::Customers if !self.customers.loaded => {
                let first = self.customers.request(false, false);
                vec![Effect::LoadCustomers(first)]
            }
            Screen::Customers => {
                let effects = self.after_move();
                effects
                    .into_iter()
                    .chain(self.visible_customers())
                    .collect()
            }
            Screen::Keys => {
                let mut effects = self.after_move();
                effects.push(Effect::Visible(self.visible_ids()));
                effects
            }
            Screen::Holds => vec![Effect::LoadHolds],
            Screen::Audit => vec![Effect::LoadAudit { before: None }],
            Screen::Models => vec![Effect::LoadSlugs, Effect::ReadStatus],
            Screen::Live => {
                let mut effects = vec![Effect::ReadStatus, Effect::LoadHolds];
                effects.extend(self.load_labels());
                effects
            }
            Screen::Routes | Screen::Config | Screen::Nodes | Screen::Alerts => {
                vec![Effect::ReadStatus]
            }
            Screen::Money => self.load_sums(),
        }
    }

    /// Requests what the keys on the Live screen are called.
    pub(crate) fn load_labels(&mut self) -> Option<Effect> {
        let unknown = self.live.unknown();
        (!unknown.is_empty()).then_some(Effect::LoadLabels(unknown))
    }
}
