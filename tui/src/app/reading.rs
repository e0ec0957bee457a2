//! Pages that only show something in full: an alert, a target, an act.

use farebox_ledger::{AuditRecord, HouseAct};
use serde_json::Value;

use super::ConsoleApp;
use super::audited::{Audited, changes};
use super::command::CommandContext;
use super::modal::ReadingModal;
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
pub(super) fn of_act(act: &AuditRecord) -> ReadingModal {
    let mut facts = vec![
        fact("Act", act.act.clone()),
        fact(
            "Key",
            act.key
                .map_or_else(|| act.customer.to_string(), |key| key.to_string()),
        ),
        fact("Actor", act.actor.clone()),
        fact("At", format!("{} UTC", format::stamp(act.at))),
        fact("Operation", format!("op_{}", act.operation)),
        fact("", ""),
    ];
    facts.extend(told(&act.details));
    page("Act", facts)
}

/// One act on a token or a lot of vouchers.
fn of_house(act: &HouseAct) -> ReadingModal {
    let mut facts = vec![
        fact("Act", act.act.clone()),
        fact("On", act.of.to_string()),
        fact("Actor", act.actor.clone()),
        fact("At", format!("{} UTC", format::stamp(act.at))),
        fact("Operation", format!("op_{}", act.operation)),
        fact("", ""),
    ];
    facts.extend(told(&act.details));
    page("Act", facts)
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

/// One line of the Audit screen.
pub(super) fn of_audited(act: &Audited<'_>) -> ReadingModal {
    let files = match act {
        Audited::Key(act) => return of_act(act),
        Audited::House(act) => return of_house(act),
        Audited::Files(files) => files,
    };
    let mut facts = vec![
        fact("Act", act.act()),
        fact("Actor", act.actor()),
        fact("At", format!("{} UTC", format::stamp(act.at()))),
        fact("Operation", format!("op_{}", act.operation())),
        fact("", ""),
    ];
    facts.extend(
        changes(files)
            .into_iter()
            .map(|change| fact("Changed", change)),
    );
    page("Files", facts)
}

impl ConsoleApp {
    /// The page of the selected alert, or of the selected target.
    pub(crate) fn reading(&self) -> Option<ReadingModal> {
        match self.place() {
            CommandContext::Alerts => {
                let alert = self.alert()?;
                Some(page(
                    format!("Alert {} {}", alert.kind, alert.subject),
                    self.of_alert(alert),
                ))
            }
            CommandContext::Routes => {
                let lines = self.shown_routes();
                let (slug, target) = lines.get(self.routes.selected)?;
                let (place, target) = (*target)?;
                let title = format!("Target {place} of {slug}");
                Some(page(title, self.of_target(target)))
            }
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
