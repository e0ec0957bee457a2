//! Programs by their `User-Agent`: which repeat less at 402 when the money is out, which pay again for an answer that money cut, and their
//! own names for what a refusal asks for.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// What is known of one program.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// A part of its `User-Agent`.
    pub user_agent: String,
    /// The run in which it repeated less at 402 than at 429, where it does.
    pub at_402: Option<String>,
    /// How it is told that an answer ended for want of money.
    #[serde(default)]
    pub end_of_money: EndOfMoney,
    /// What it did where an answer ended by length, and what a person read of it.
    pub at_length: Option<String>,
    /// The same with an error event in its place.
    pub at_error: Option<String>,
    /// What to set in it: by the code of a refusal, by the field at fault, or by the field that helps.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

/// How a program is told that money had lowered the limit at which its answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndOfMoney {
    /// By last words, in an answer that ends by its length.
    #[default]
    Length,
    /// By an error event: it would pay again for an answer that ends by its length, or swallow it.
    Error,
}

#[derive(Debug, Deserialize)]
struct AgentTable {
    agent: Vec<Agent>,
}

static AGENTS: LazyLock<Vec<Agent>> = LazyLock::new(|| {
    toml::from_str::<AgentTable>(include_str!("agents.toml"))
        .map(|table| table.agent)
        .unwrap_or_default()
});

/// The program that sends this `User-Agent`, if it is known.
pub fn agent(user_agent: &str) -> Option<&'static Agent> {
    AGENTS
        .iter()
        .find(|agent| user_agent.contains(&agent.user_agent))
}

/// How the program that sends this `User-Agent` is told that an answer ended for want of money.
pub fn end_of_money(user_agent: &str) -> EndOfMoney {
    agent(user_agent)
        .map(|agent| agent.end_of_money)
        .unwrap_or_default()
}

impl Agent {
    /// What to set in it, by the first of these names that it has a setting for.
    pub fn setting<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Option<&str> {
        let mut settings = names.into_iter().map(|name| self.settings.get(name));
        settings.find_map(|setting| setting.map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What these programs were recorded to send on 25 November 2026.
    #[test]
    fn programs_are_told_apart_by_what_they_send() {
        for (sent, known) in [
            (
                "opencode/1.18.33 ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14",
                Some("opencode/"),
            ),
            (
                "Kilo-Code/7.7.9 ai-sdk/provider-utils/4.0.27 runtime/bun/1.3.14",
                Some("Kilo-Code/"),
            ),
            (
                "ai-sdk/openai-compatible/3.0.37 ai-sdk/provider-utils/5.0.30 runtime/bun/1.3.13",
                Some("ai-sdk"),
            ),
            (
                "ai/7.0.173 ai-sdk-provider-utils/5.0.81 node.js/v20.20.2",
                Some("ai-sdk"),
            ),
            // Nanocoder.
            (
                "ai-sdk/openai-compatible/2.0.51 ai-sdk/provider-utils/4.0.30 runtime/node.js/26",
                Some("ai-sdk"),
            ),
            ("factory-cli/0.225.2", Some("factory-cli/")),
            ("codex_exec/0.169.0 (Debian 12.0.0; x86_64)", Some("codex")),
            (
                "claude-cli/2.1.330 (external, sdk-cli)",
                Some("claude-cli/"),
            ),
            ("pi-coding-agent", Some("pi-coding-agent")),
            ("OpenAI/Python 3.54.0", None),
            ("AsyncOpenAI/Python 2.54.0", None),
            ("OpenAI/JS 6.26.0", None),
            ("Anthropic/Python 2.12.0", None),
            ("", None),
        ] {
            let found = agent(sent).map(|agent| agent.user_agent.as_str());
            assert_eq!(found, known, "{sent}");
        }
    }

    #[test]
    fn programs_that_would_pay_again_get_an_error_where_money_ended_an_answer() {
        for paying_again in [
            "codex_exec/0.169.0 (Debian 12.0.0; x86_64)",
            "claude-cli/2.1.330 (external, sdk-cli)",
            "pi-coding-agent",
            // Cline.
            "ai-sdk/openai-compatible/3.0.37 ai-sdk/provider-utils/5.0.30 runtime/bun/1.3.13",
        ] {
            assert_eq!(end_of_money(paying_again), EndOfMoney::Error);
        }
        // opencode throws the text away where an error follows it.
        for other in [
            "opencode/1.18.33 ai-sdk/provider-utils/4.0.23",
            "OpenAI/Python 3.54.0",
            "",
        ] {
            assert_eq!(end_of_money(other), EndOfMoney::Length, "{other}");
        }
    }

    /// pi sends its library's name by itself.
    #[test]
    fn pi_says_who_it_is_as_it_is_set_up_here() {
        let pi = crate::setup::client("pi").expect("pi");
        let said = pi.block[0]
            .text
            .contains(r#""User-Agent": "pi-coding-agent""#);
        assert!(said, "{}", pi.block[0].text);
    }

    #[test]
    fn the_table_can_be_read() {
        let less_at_402 = AGENTS.iter().filter(|agent| agent.at_402.is_some());
        assert!(AGENTS.len() >= 5 && less_at_402.count() == 4);
        for agent in AGENTS
            .iter()
            .filter(|agent| agent.end_of_money == EndOfMoney::Error)
        {
            assert!(
                agent.at_length.is_some() && agent.at_error.is_some(),
                "{agent:?}"
            );
        }
    }
}
