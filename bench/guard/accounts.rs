//! What a conversation that keeps its account costs: requests before a provider with three accounts, compared with the same before one
//! with a single account. They are refused for want of money, so that what is counted is the request's way to its hold, without threads:
//! they want 128 answers of a service that takes no limit, on a balance beside which no tokenizer counts their prompts.

use farebox::config::Secrets;

/// What is counted, and the most instructions that three accounts may take beyond one: a number, and hundredths of what one takes.
pub(crate) const LAWS: [(&str, u64, u64); 2] =
    [("refused 1 KiB", 1_000, 0), ("refused 100 KiB", 0, 5)];

/// The routes to a provider that is never reached.
pub(crate) fn routes(accounts: usize) -> String {
    let keys: Vec<String> = (0..accounts)
        .map(|number| format!("{{ env = \"KEY_{number}\" }}"))
        .collect();
    let provider = format!(
        "base_url = \"http://127.0.0.1:1/v1\"\nspeaks = [\"chat\", \"responses\", \"messages\"]\nlimit = \"none\"\nkeys = [{}]",
        keys.join(", ")
    );
    include_str!("../../routes.toml").replacen("simulated = true", &provider, 1)
}

/// Keys that nobody has.
pub(crate) struct Invented;

impl Secrets for Invented {
    fn variable(&self, name: &str) -> Option<String> {
        Some(format!("a-secret-of-{name}"))
    }

    fn file(&self, _: &std::path::Path) -> std::io::Result<String> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}

/// What a key has whose requests are refused.
pub(crate) const BALANCE: &str = "10";
/// The field of such a request.
pub(crate) const MANY: &str = r#""n":128,"#;
