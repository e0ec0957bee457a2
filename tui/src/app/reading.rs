//! Pages that only show something in full: an alert, a target, an act.

use serde_json::Value;

use super::ConsoleApp;
use super::audit::{Audited, changes};
use super::catalog_lists::RouteLine;
use super::modal::ReadingModal;
use super::selection::SelectedRow;
use crate::admin::{ReportedAlert, ReportedTarget};
use crate::clock;
use crate::format;

type FactRows = Vec<(String, String)>;

fn page(title: impl Into<String>, facts: FactRows) -> ReadingModal {
    ReadingModal {
        title: title.into(),
        facts,
        scroll: 0,
    }
}

fn fact(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

/// An administrative act.
pub(super) fn of_act(act: Audited<'_>) -> ReadingModal {
    let (title, of, told) = match act {
        Audited::Key(act) => {
            let key = act.key.map(|key| key.to_string());
            let of = key.unwrap_or_else(|| act.customer.to_string());
            ("Act", Some(fact("Key", of)), told(&act.details))
        }
        Audited::House(act) => {
            let of = fact("On", act.of.to_string());
            ("Act", Some(of), told(&act.details))
        }
        Audited::Files(files) => {
            let changes = changes(files).into_iter();
            let told = changes.map(|change| fact("Changed", change));
            ("Files", None, told.collect())
        }
    };
    let mut facts = vec![fact("Act", act.act())];
    facts.extend(of);
    facts.extend([
        fact("Actor", act.actor()),
        fact("At", format!("{} UTC", format::stamp(act.at()))),
        fact("Operation", format!("op_{}", act.operation())),
        fact("", ""),
    ]);
    facts.extend(told);
    page(title, facts)
}

/// The details of an act, one by one.
fn told(details: &str) -> FactRows {
    let read: Value = serde_json::from_str(details).unwrap_or_default();
    let members = read.as_object().into_iter().flatten();
    let told = members.map(|(name, value)| match value {
        Value::String(text) => fact(name, text.clone()),
        other => fact(name, other.to_string()),
    });
    told.collect()
}

impl ConsoleApp {
    /// The page of the selected alert, target or act.
    pub(crate) fn reading(&self) -> Option<ReadingModal> {
        match self.selected()? {
            SelectedRow::Alert(alert) => {
                let title = format!("Alert {} {}", alert.kind, alert.subject);
                Some(page(title, self.of_alert(alert)))
            }
            SelectedRow::Route(RouteLine::Target { target, place, .. }) => {
                let title = format!("Target {place} of {}", target.slug);
                Some(page(title, self.of_target(target)))
            }
            SelectedRow::Act(act) => Some(of_act(act)),
            _ => None,
        }
    }

    fn of_alert(&self, alert: &ReportedAlert) -> FactRows {
        vec![
            fact("Means", alert.means.clone()),
            fact("About", alert.subject.clone()),
            fact("Severity", alert.severity.clone()),
            fact("Since", self.since(&alert.since)),
            fact("Why", alert.reason.clone()),
            fact("Customers", alert.customers.clone()),
            fact("To do", alert.remedy.clone()),
        ]
    }

    /// An instant of the gateway's, and how long ago it was.
    pub(crate) fn since(&self, at: &str) -> String {
        match clock::parse(at) {
            Some(instant) => {
                let age = format::age(self.now.millis() - instant.millis());
                format!("{} UTC, {age}", format::stamp(instant))
            }
            None => at.to_owned(),
        }
    }

    fn of_target(&self, target: &ReportedTarget) -> FactRows {
        let name = format!("{}/{}", target.provider, target.target);
        let mut facts = vec![
            fact("Target", name.clone()),
            fact("State", target.state.clone()),
            fact("Requests", format::count(target.requests)),
            fact("Errors", format::count(target.errors)),
            fact("In a row", format::count(target.failures)),
            fact("In flight", format::count(target.in_flight)),
            fact(
                "Last reason",
                target.reason.clone().unwrap_or_else(|| "none".to_owned()),
            ),
        ];
        for alert in self.alerts().iter().filter(|alert| alert.is_about(&name)) {
            facts.push(fact("", ""));
            facts.push(fact("Alert", alert.kind.clone()));
            facts.extend(self.of_alert(alert));
        }
        facts
    }
}
