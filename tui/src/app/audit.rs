//! The lines of the Audit screen: acts on customers and keys, on tokens and lots of vouchers, and configurations that came into force,
//! merged by time.

use farebox_ledger::{AuditRecord, FilesAct, HouseAct, KeyId, OperationId, Timestamp};
use serde_json::Value;

use super::ConsoleApp;
use super::cell::{faint, id, plain, strong, when};
use super::list::{ListColumn, ListRow, fill, left, sorted};
use crate::admin::ReportedChange;
use crate::format;

/// One line.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Audited<'a> {
    Key(&'a AuditRecord),
    House(&'a HouseAct),
    Files(&'a FilesAct),
}

impl ListRow for Audited<'static> {
    type At<'a> = Audited<'a>;
}

pub(crate) const AUDIT: &[ListColumn<Audited>] = &[
    left("UTC", 11, 0).falling(5, |act, now| when(act.at(), now)),
    left("BY", 12, 1).rising(1, |act, _| plain(act.actor())),
    left("ACT", 8, 0).rising(2, |act, _| strong(act.act())),
    left("KEY", 12, 0).rising(3, |act, _| act.key().map_or_else(|| id(""), id)),
    fill("DETAILS").rising(4, |act, _| plain(act.details())),
    left("OPERATION", 29, 3).rising(6, |act, _| faint(format!("op_{}", act.operation()))),
];

impl Audited<'_> {
    pub(crate) const fn at(&self) -> Timestamp {
        match self {
            Self::Key(act) => act.at,
            Self::House(act) => act.at,
            Self::Files(act) => act.at,
        }
    }

    pub(crate) fn actor(&self) -> &str {
        match self {
            Self::Key(act) => &act.actor,
            Self::House(act) => &act.actor,
            Self::Files(act) => &act.actor,
        }
    }

    /// What was done, in a word.
    pub(crate) fn act(&self) -> String {
        match self {
            Self::Key(act) => act.act.clone(),
            Self::House(act) => act.act.clone(),
            Self::Files(act) => {
                let act = details(act)["act"].as_str().map(str::to_owned);
                act.unwrap_or_else(|| "reload".to_owned())
            }
        }
    }

    pub(crate) const fn key(&self) -> Option<KeyId> {
        match self {
            Self::Key(act) => act.key,
            Self::House(_) | Self::Files(_) => None,
        }
    }

    pub(crate) const fn operation(&self) -> OperationId {
        match self {
            Self::Key(act) => act.operation,
            Self::House(act) => act.operation,
            Self::Files(act) => act.operation,
        }
    }

    /// What it did, in one line.
    pub(crate) fn details(&self) -> String {
        match self {
            Self::Key(act) => format::act_details(&act.details),
            Self::House(act) => {
                let details = format::act_details(&act.details);
                [act.of.to_string(), details]
                    .join(", ")
                    .trim_end_matches(", ")
                    .to_owned()
            }
            Self::Files(act) => changes(act).join(", "),
        }
    }

    fn has(&self, word: &str) -> bool {
        let key = self.key().map(|key| key.to_string()).unwrap_or_default();
        let texts = [
            self.act(),
            self.actor().to_ascii_lowercase(),
            key,
            self.operation().to_string(),
            self.details().to_ascii_lowercase(),
        ];
        texts.iter().any(|text| text.contains(word))
    }
}

fn details(act: &FilesAct) -> Value {
    serde_json::from_str(&act.details).unwrap_or_default()
}

/// What a configuration changed, one by one.
pub(crate) fn changes(act: &FilesAct) -> Vec<String> {
    let details = details(act);
    let rows: Vec<ReportedChange> =
        serde_json::from_value(details["changes"].clone()).unwrap_or_default();
    let fell = details["price_fell"].as_array().into_iter().flatten();
    let mut changes: Vec<String> = fell.map(fall).collect();
    changes.extend(rows.iter().map(format::change));
    if let Some(more) = details["more"].as_u64() {
        changes.push(format!("and {more} more"));
    }
    if changes.is_empty() {
        changes.push(format!(
            "files {}",
            details["files"].as_str().unwrap_or_default()
        ));
    }
    changes
}

/// A price that fell by more than half, with old and new.
fn fall(fall: &Value) -> String {
    let [slug, what] = ["slug", "what"].map(|name| fall[name].as_str().unwrap_or_default());
    format!("price of {slug} fell by more than half: {what}")
}

impl ConsoleApp {
    /// Acts that pass the filter, newest first. Configurations older than the oldest act that was read come with its page.
    pub(crate) fn shown_audit(&self) -> Vec<Audited<'_>> {
        let oldest = self.audit.rows.last().filter(|_| !self.audit.end);
        let known = |act: &&FilesAct| oldest.is_none_or(|oldest| act.at >= oldest.at);
        let files = self.files_acts.iter().filter(known).map(Audited::Files);
        let known = |act: &&HouseAct| oldest.is_none_or(|oldest| act.at >= oldest.at);
        let house = self.house_acts.iter().filter(known).map(Audited::House);
        let mut all: Vec<Audited<'_>> = self.audit.rows.iter().map(Audited::Key).collect();
        all.extend(files.chain(house));
        all.sort_by_key(|act| std::cmp::Reverse(act.at()));
        let filter = self.audit.list.filter.to_ascii_lowercase();
        let passes = |act: &Audited<'_>| {
            filter.split_whitespace().all(|word| {
                let word = word.split_once(':').map_or(word, |(_, rest)| rest);
                act.has(word)
            })
        };
        all.retain(passes);
        sorted(AUDIT, all, self.audit.list.order, self.now)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fall;

    #[test]
    fn a_fallen_price_is_told_with_old_and_new() {
        let fell = json!({"slug": "large-model", "what": "output from $15.00 to $0.015"});
        assert_eq!(
            fall(&fell),
            "price of large-model fell by more than half: output from $15.00 to $0.015"
        );
    }
}
