//! Each setting of a provider as it holds, and who says so: its table in `routes.toml`, its kind, the library, or nobody.

use std::ops::Range;

use farebox_toml::{ConfigKey, KEYS, redact, syntax};
use serde::Serialize;
use toml::de::{DeTable, DeValue};

use super::{Endpoint, Library, LimitBinds, Preset, Provider};

/// What a kind says of its service that no key of a provider can.
const FACTS: [&str; 9] = [
    "leave_out",
    "turn_members",
    "signed_calls",
    "refuses_nulls",
    "refuses_marks",
    "takes_reasoning",
    "told_cost",
    "bills_writes",
    "customer_id_in",
];

/// A setting as it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedSetting {
    /// Its key, with its table before it if that is not the provider's.
    pub setting: String,
    /// Its value, without secrets.
    pub value: String,
    /// Who says so.
    #[serde(flatten)]
    pub from: SettingOrigin,
}

/// Who says what a setting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "from", content = "line", rename_all = "lowercase")]
pub enum SettingOrigin {
    /// This line of `routes.toml`.
    Line(usize),
    /// What is known of the service that `kind` names.
    Kind,
    /// The library.
    Library,
    /// Nobody.
    Default,
}

impl Provider {
    /// Its settings, in the order of the pages. `routes` is the text that it was read from.
    #[must_use]
    pub fn explained(&self, routes: &str) -> Vec<ExplainedSetting> {
        let root = syntax::parse(routes);
        let table = inner(&root, "provider").and_then(|all| inner(all, &self.name));
        let sources = SettingSources {
            shown: redact::file(routes),
            kind: self.preset,
            hosted: self.is_hosted(),
        };
        let simulated = self.endpoint == Endpoint::Simulated;
        let keys = KEYS
            .provider
            .keys()
            .filter(|key| !(simulated && key.remote));
        sources.explain(keys, table)
    }
}

impl Preset {
    /// What it sets where a provider's table says nothing else.
    #[must_use]
    pub fn explained(&self) -> Vec<ExplainedSetting> {
        let sources = SettingSources {
            shown: String::new(),
            kind: Some(self),
            hosted: self.is_hosted(),
        };
        let keys = KEYS.provider.keys().filter(|key| key.name != "kind");
        sources.explain(keys, None)
    }
}

fn inner<'t, 'i>(table: &'t DeTable<'i>, name: &str) -> Option<&'t DeTable<'i>> {
    let DeValue::Table(inner) = table.get(name)?.get_ref() else {
        return None;
    };
    Some(inner)
}

/// All that may say what a setting is.
struct SettingSources<'s> {
    /// The file, with its secrets hidden.
    shown: String,
    kind: Option<&'s Preset>,
    hosted: bool,
}

impl SettingSources<'_> {
    fn explain<'k>(
        &self,
        keys: impl Iterator<Item = &'k ConfigKey>,
        table: Option<&DeTable<'_>>,
    ) -> Vec<ExplainedSetting> {
        let of_kind = self.kind.and_then(|kind| toml::Table::try_from(kind).ok());
        let of_kind = &of_kind.unwrap_or_default();
        let mut settings = Vec::new();
        for key in keys {
            if key.name == "timeouts" {
                let waits = table.and_then(|table| inner(table, "timeouts"));
                settings.extend(KEYS.timeouts.keys().map(|wait| {
                    let setting = format!("timeouts.{}", wait.name);
                    let said = self.written(waits, &wait.name);
                    with(setting, said.unwrap_or_else(|| default(wait)))
                }));
                continue;
            }
            let said = self
                .written(table, &key.name)
                .or_else(|| by_kind(of_kind, &key.name))
                .or_else(|| self.of_service(&key.name));
            settings.push(with(key.name.clone(), said.unwrap_or_else(|| default(key))));
        }
        let facts = FACTS.into_iter();
        settings
            .extend(facts.filter_map(|name| Some(with(name.to_owned(), by_kind(of_kind, name)?))));
        settings
    }

    fn written(&self, table: Option<&DeTable<'_>>, name: &str) -> Option<(String, SettingOrigin)> {
        let (key, value) = table?.get_key_value(name)?;
        let part = |range: Range<usize>| self.shown.get(range).unwrap_or_default();
        let line = part(0..key.span().start).matches('\n').count() + 1;
        let words: Vec<&str> = part(value.span()).split_whitespace().collect();
        Some((words.join(" "), SettingOrigin::Line(line)))
    }

    /// `limit` and `stops`: as the library says, and else as own servers are, or hosted ones of which nobody knows.
    fn of_service(&self, name: &str) -> Option<(String, SettingOrigin)> {
        let listed = self
            .kind
            .and_then(|kind| Library::current().service(&kind.name));
        let (fact, own, unsaid) = match name {
            "limit" => {
                let fact = listed.and_then(|service| service.limit.as_ref());
                let word = |limit: LimitBinds| format!("\"{}\"", limit.name());
                let fact = fact.map(|fact| word(fact.is));
                (fact, word(LimitBinds::All), "not known: held as \"text\"")
            }
            "stops" => {
                let fact = listed.and_then(|service| service.stops.as_ref());
                let fact = fact.map(|fact| fact.is.to_string());
                (fact, true.to_string(), "not known: read to the end")
            }
            _ => return None,
        };
        let nobody = if self.hosted { unsaid.to_owned() } else { own };
        Some(match fact {
            Some(fact) => (fact, SettingOrigin::Library),
            None => (nobody, SettingOrigin::Default),
        })
    }
}

fn by_kind(kind: &toml::Table, name: &str) -> Option<(String, SettingOrigin)> {
    let value = kind.get(name)?;
    let says_nothing = match value {
        toml::Value::Boolean(is) => !is,
        toml::Value::Array(list) => list.is_empty(),
        toml::Value::Table(table) => table.is_empty(),
        _ => false,
    };
    (!says_nothing).then(|| (value.to_string(), SettingOrigin::Kind))
}

/// As the pages have it, without their marks.
fn default(key: &ConfigKey) -> (String, SettingOrigin) {
    (key.default.replace('`', ""), SettingOrigin::Default)
}

fn with(setting: String, (value, from): (String, SettingOrigin)) -> ExplainedSetting {
    ExplainedSetting {
        setting,
        value,
        from,
    }
}
