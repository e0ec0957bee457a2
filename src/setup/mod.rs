//! Ready-made settings for client programs, from one table used by the command, the dashboard and the documentation.
//!
//! Templates contain `<BASE_URL>`, `<API_KEY>` and `<MODEL>`; the values filled in have no character that a shell or a string in
//! any of these languages could misread. `<CONTEXT>` and `<MAX_OUTPUT>` are the model's sizes: a line with them is left out where they
//! are not known, and every template is whole without it.

mod agents;

use std::sync::LazyLock;

use farebox_ledger::gateway_root;
use farebox_protocol::Family;
use serde::Deserialize;

pub use agents::{Agent, EndOfMoney, agent, end_of_money};

use crate::config::{Endpoint, Model};

/// Stands in for a key that is not given.
pub const KEY: &str = "<API_KEY>";
/// The placeholder for the base URL in a template.
pub const BASE_URL: &str = "<BASE_URL>";
/// The placeholder for the slug in a template.
pub const MODEL: &str = "<MODEL>";
const CONTEXT: &str = "<CONTEXT>";
const MAX_OUTPUT: &str = "<MAX_OUTPUT>";

/// One client program.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientProgram {
    /// Its argument to `farebox setup`.
    pub id: String,
    /// Its name as its vendor writes it.
    pub title: String,
    /// What its base URL ends with: `v1` or `native`.
    pub base: String,
    /// The family it speaks, by name.
    pub family: String,
    /// Models that it asks for by itself, whatever it was set to use.
    #[serde(default)]
    pub asks_for: Vec<String>,
    /// What to know before pasting.
    pub note: String,
    /// Its observed behaviour with these settings on an empty balance: requests, and seconds after the first answer.
    pub empty: Option<String>,
    /// The same where the shop answers with 402 instead of 429.
    pub empty_402: Option<String>,
    /// The same with an overloaded provider.
    pub busy: Option<String>,
    /// The same when each stream broke.
    pub broken: Option<String>,
    /// What to paste, in order.
    pub block: Vec<SetupBlock>,
}

/// One thing to paste.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetupBlock {
    /// A file's name, or `shell`.
    pub place: String,
    /// For highlighting: `sh`, `toml`, `yaml`, `json`, `python`, `javascript`, `rust`.
    pub language: String,
    /// The template.
    pub text: String,
}

#[derive(Debug, Deserialize)]
struct ClientTable {
    client: Vec<ClientProgram>,
}

/// The table as it is built in.
pub const SOURCE: &str = include_str!("clients.toml");

static CLIENTS: LazyLock<Vec<ClientProgram>> = LazyLock::new(|| {
    toml::from_str::<ClientTable>(SOURCE)
        .map(|table| table.client)
        .unwrap_or_default()
});

/// Every client of the table.
pub fn clients() -> &'static [ClientProgram] {
    &CLIENTS
}

/// The client with this id.
pub fn client(id: &str) -> Option<&'static ClientProgram> {
    clients().iter().find(|client| client.id == id)
}

impl ClientProgram {
    /// The client's base URL under the gateway's.
    pub fn base_url(&self, public_url: &str) -> String {
        format!("{}/{}", gateway_root(public_url), self.base)
    }

    /// The family it speaks.
    pub fn family(&self) -> Family {
        Family::ALL
            .into_iter()
            .find(|family| family.name() == self.family)
            .unwrap_or(Family::Chat)
    }

    /// Whether a model can be requested on this client's path.
    pub fn reaches(&self, model: &Model) -> bool {
        model.route.serves(self.family()).is_some()
    }

    /// The model to start with: a real one before a simulated one, then one served best on this client's path before one that is
    /// only available there.
    pub fn usual_model<'a>(
        &self,
        models: impl Iterator<Item = &'a Model> + Clone,
    ) -> Option<&'a Model> {
        let simulated = |model: &Model| {
            model
                .route
                .targets
                .iter()
                .all(|target| target.provider.endpoint == Endpoint::Simulated)
        };
        let rank = |model: &&Model| (simulated(model), model.best_path != self.family());
        // The first of the best: `min_by_key` keeps the order of the catalog.
        models.filter(|model| self.reaches(model)).min_by_key(rank)
    }
}

impl SetupBlock {
    /// The text to paste, with the model's sizes if it is known.
    pub fn fill(&self, base_url: &str, key: &str, model: &str, known: Option<&Model>) -> String {
        let text = match known.map(|model| &model.limits) {
            Some(limits) => self
                .text
                .replace(CONTEXT, &limits.context.to_string())
                .replace(MAX_OUTPUT, &limits.max_output.to_string()),
            None => self
                .text
                .split_inclusive('\n')
                .filter(|line| !line.contains(CONTEXT) && !line.contains(MAX_OUTPUT))
                .collect(),
        };
        text.replace(BASE_URL, base_url)
            .replace(MODEL, model)
            .replace(KEY, key)
    }

    /// The start of a comment line.
    pub fn comment(&self) -> &'static str {
        if ["javascript", "rust"].contains(&self.language.as_str()) {
            "//"
        } else {
            "#"
        }
    }
}

/// Whether a value can stand between quotes in every template.
pub fn is_plain(value: &str) -> bool {
    !value.is_empty()
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-._~:/[]@%+=".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        let ids: Vec<&str> = clients().iter().map(|client| client.id.as_str()).collect();
        let named = [
            "claude-code",
            "codex",
            "openai-python",
            "openai-node",
            "anthropic-python",
            "anthropic-node",
            "langchain",
            "curl",
        ];
        assert!(named.iter().all(|id| ids.contains(id)), "{ids:?}");
        let scripts = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
        let versions = std::fs::read_to_string(scripts.join("versions")).unwrap();
        for client in clients().iter().filter(|client| client.id != "curl") {
            let id = &client.id;
            assert!(
                scripts.join(format!("{id}.sh")).exists(),
                "{id} is in the table and was never run"
            );
            assert!(
                versions.contains(&format!("{id} ")),
                "{id} has no pinned version"
            );
            let figures = [
                &client.empty,
                &client.empty_402,
                &client.busy,
                &client.broken,
            ];
            assert!(
                figures.iter().all(|figure| figure.is_some()),
                "{id} has no figures: run tests/clients/run {id}"
            );
        }
        for client in clients() {
            assert!(
                ["v1", "native"].contains(&client.base.as_str()),
                "{}",
                client.id
            );
            assert_eq!(client.family().name(), client.family, "{}", client.id);
            let all: String = client
                .block
                .iter()
                .map(|block| block.text.as_str())
                .collect();
            assert!(
                [BASE_URL, KEY, MODEL]
                    .iter()
                    .all(|place| all.contains(place)),
                "{}",
                client.id
            );
            assert!(client.block.iter().all(|block| block.text.ends_with('\n')));
        }
    }

    #[test]
    fn a_base_url_never_gets_v1_twice() {
        let curl = client("curl").unwrap();
        for url in [
            "https://a.example",
            "https://a.example/",
            "https://a.example/v1",
            "https://a.example/native/v1/",
        ] {
            assert_eq!(curl.base_url(url), "https://a.example/v1");
        }
        assert_eq!(
            client("claude-code")
                .unwrap()
                .base_url("https://a.example/v1"),
            "https://a.example/native"
        );
    }

    #[test]
    fn nothing_that_a_shell_reads_is_filled_in() {
        assert!(is_plain("https://[::1]:8080/x") && is_plain("claude-sonnet-4.5"));
        for bad in [
            "", "a b", "a\"b", "a'b", "$(id)", "`id`", "a\\b", "a\nb", "a;b", "a|b", "<KEY>", "é",
        ] {
            assert!(!is_plain(bad), "{bad}");
        }
    }
}
