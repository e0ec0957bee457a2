//! The columns of every list, and sorting by them. Only what the ledger pages through is sorted by the ledger.

use farebox_ledger::Scope;

use super::ConsoleApp;
use super::command::CommandContext;
use super::detail::{PartyDetail, Tab};
use super::keys::{From, Sort};
use super::margins::MarginView;
use super::message::Effect;
use super::order::ListOrder;

impl ConsoleApp {
    /// The columns of this list, in the order in which `s` goes through them.
    pub(crate) fn columns(&self) -> &'static [&'static str] {
        match self.place() {
            CommandContext::Keys => Sort::COLUMNS,
            CommandContext::Customers => super::customers::COLUMNS,
            CommandContext::Detail | CommandContext::Customer => {
                let detail = self.detail.as_ref();
                detail.map(columns_of).unwrap_or_default()
            }
            CommandContext::Live => &[
                "", "CHARGE", "TOKENS", "TTFB", "WHOLE", "ST", "KEY", "LABEL", "MODEL", "PATH",
                "ENDED", "VIA", "UTC",
            ],
            CommandContext::Models if self.gateway.status.is_some() => &[
                "",
                "REQS 7 d",
                "KEYS 7 d",
                "IN $/M",
                "OUT $/M",
                "CACHED",
                "CONTEXT",
                "SLUG",
                "MODEL",
                "PROVIDER",
                "PATH",
                "ENVIRONMENTS",
                "ABILITIES",
            ],
            CommandContext::Models => &["", "REQS 7 d", "KEYS 7 d", "PUBLISHED", "SLUG"],
            CommandContext::Routes => &[
                "",
                "ERRORS",
                "REQUESTS",
                "NOW",
                "STATE",
                "PROVIDER",
                "ROUTE, TARGET",
                "WHY",
            ],
            CommandContext::Holds => &[
                "", "HELD", "USED", "AGE", "KEY", "MODEL", "PATH", "STATE", "REQUEST",
            ],
            CommandContext::Audit => &["", "BY", "ACT", "KEY", "DETAILS", "UTC", "OPERATION"],
            CommandContext::Exposure => MarginView::Exposure.columns(),
            CommandContext::Margin => MarginView::Margin.columns(),
            CommandContext::Nodes => &[
                "",
                "REQUESTS/S",
                "HOLDS",
                "SILENT",
                "NAME",
                "VERSION",
                "SINCE",
                "FILES",
                "EPOCH",
            ],
            CommandContext::Spend => &["", "24 h", "REQS 24 h", "7 d", "30 d", "COST 30 d", "SLUG"],
            // Alerts are listed by how much they matter, and Config is a text.
            CommandContext::Config | CommandContext::Alerts => &[],
        }
    }

    /// What this list is sorted by.
    pub(crate) fn shown_order(&self) -> ListOrder {
        self.order_at(self.place())
    }

    /// What the list of a place is sorted by.
    pub(crate) fn order_at(&self, place: CommandContext) -> ListOrder {
        match place {
            CommandContext::Keys => self.keys.list_order(),
            CommandContext::Customers => self.customers.list_order(),
            CommandContext::Detail | CommandContext::Customer => {
                let detail = self.detail.as_ref();
                detail.map(|detail| detail.order).unwrap_or_default()
            }
            CommandContext::Live => self.live.order,
            CommandContext::Models => self.models.order,
            CommandContext::Routes => self.routes.order,
            CommandContext::Holds => self.holds.order,
            CommandContext::Audit => self.audit.order,
            CommandContext::Exposure => self.exposure.list_order(),
            CommandContext::Margin => self.margin.list_order(),
            CommandContext::Nodes => self.nodes_order,
            CommandContext::Spend => self.spend.order,
            CommandContext::Config | CommandContext::Alerts => ListOrder::default(),
        }
    }

    /// Sorts this list; the cursor goes to its first line.
    pub(crate) fn set_order(&mut self, order: ListOrder) -> Vec<Effect> {
        let (place, selected) = match self.place() {
            CommandContext::Keys => {
                self.keys.set_list_order(order);
                let request = self.keys.request(From::Start, false, false);
                return vec![Effect::LoadKeys(request)];
            }
            CommandContext::Customers => {
                self.customers.set_list_order(order);
                let request = self.customers.request(false, false);
                return vec![Effect::LoadCustomers(request)];
            }
            CommandContext::Exposure | CommandContext::Margin => {
                return self.with_sums(|sums| sums.set_list_order(order));
            }
            CommandContext::Detail | CommandContext::Customer => {
                let Some(detail) = self.detail.as_mut() else {
                    return Vec::new();
                };
                (&mut detail.order, &mut detail.selected)
            }
            CommandContext::Live => (&mut self.live.order, &mut self.live.selected),
            CommandContext::Models => (&mut self.models.order, &mut self.models.selected),
            CommandContext::Routes => (&mut self.routes.order, &mut self.routes.selected),
            CommandContext::Holds => (&mut self.holds.order, &mut self.holds.selected),
            CommandContext::Audit => (&mut self.audit.order, &mut self.audit.selected),
            CommandContext::Nodes => (&mut self.nodes_order, &mut self.selected_node),
            CommandContext::Spend => (&mut self.spend.order, &mut self.spend.selected),
            CommandContext::Config | CommandContext::Alerts => return Vec::new(),
        };
        (*place, *selected) = (order, 0);
        Vec::new()
    }

    /// The next column, or the other direction.
    pub(super) fn sort_next(&mut self, next: bool) -> Vec<Effect> {
        let (columns, now) = (self.columns(), self.shown_order());
        if !next {
            let column = match now.column {
                // The order in which rows come has no other direction: the first column has.
                "" => columns.get(1).copied().unwrap_or_default(),
                column => column,
            };
            let descending = !now.descending || !now.sorts();
            return self.set_order(ListOrder { column, descending });
        }
        let here = columns.iter().position(|column| *column == now.column);
        let next = here.map_or(0, |here| (here + 1) % columns.len().max(1));
        let column = columns.get(next).copied().unwrap_or_default();
        self.set_order(ListOrder::first(column))
    }

    /// Sorts by a column, or in the other direction if it is sorted by it: what a click on a heading does.
    pub(crate) fn sort_column(&mut self, column: &'static str) -> Vec<Effect> {
        let now = self.shown_order();
        let order = match now.column == column {
            true => ListOrder {
                column,
                descending: !now.descending,
            },
            false => ListOrder::first(column),
        };
        self.set_order(order)
    }
}

/// The columns of a page's tab.
const fn columns_of(detail: &PartyDetail) -> &'static [&'static str] {
    match (detail.tab, detail.of) {
        (Tab::Entries, Scope::Customer(_)) => {
            &["", "AMOUNT", "BALANCE", "KIND", "WHAT", "KEY", "UTC"]
        }
        (Tab::Entries, Scope::Key(_)) => &["", "AMOUNT", "BALANCE", "KIND", "WHAT", "UTC"],
        (Tab::Payments, _) => &["", "AMOUNT", "REFERENCE", "BY, WHY", "KIND", "UTC"],
        (Tab::Keys, _) => &["", "SPENT", "HELD", "ROOM", "STATE", "KIND", "LABEL", "KEY"],
        (Tab::Models, _) => &[
            "", "REQUESTS", "INPUT", "CACHED", "OUTPUT", "SPENT", "SHARE", "MODEL",
        ],
        (Tab::Running, _) => &["", "HELD", "USED", "AGE", "MODEL", "PATH", "REQUEST"],
        (Tab::Acts, _) => &["", "ACT", "BY", "DETAILS", "UTC"],
        (Tab::Charts, _) => &[],
    }
}
