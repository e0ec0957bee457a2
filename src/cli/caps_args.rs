//! The arguments of `farebox caps …`.

use clap::{Args as ClapArgs, Subcommand};
use farebox_ledger::{Amount, CapInterval, KeyId};

use super::values::{key_id, payment, slug};

/// Commands on caps.
#[derive(Debug, Subcommand)]
pub enum CapsCommand {
    /// Set a cap, or change its limit; it is exact, and holds from the next request on
    Set(SetCapOptions),
    /// Show a key's caps, what they counted, and when they start again
    List(CapScope),
    /// Remove a cap
    Clear(CapOptions),
}

/// Whose caps.
#[derive(Debug, ClapArgs)]
pub struct CapScope {
    /// The key's id, as in k_7f3q9d2xw1
    #[arg(value_parser = key_id)]
    pub scope: KeyId,
}

/// Which cap.
#[derive(Debug, ClapArgs)]
pub struct CapOptions {
    /// The key's id, as in k_7f3q9d2xw1
    #[arg(value_parser = key_id)]
    pub scope: KeyId,
    /// day, week (from Monday), month or total; days are UTC
    #[arg(value_name = "INTERVAL", value_parser = interval)]
    pub interval: CapInterval,
    /// Only this model's requests count [default: all]
    #[arg(long, value_name = "SLUG", value_parser = slug)]
    pub model: Option<String>,
}

/// Options of `caps set`.
#[derive(Debug, ClapArgs)]
pub struct SetCapOptions {
    #[command(flatten)]
    pub cap: CapOptions,
    /// Most that may be charged and held in one interval
    #[arg(value_name = "USD", value_parser = payment, allow_negative_numbers = true)]
    pub limit: Amount,
}

/// How long a cap counts.
fn interval(text: &str) -> Result<CapInterval, String> {
    let named = |interval: &&CapInterval| interval.as_str() == text;
    CapInterval::ALL
        .iter()
        .find(named)
        .copied()
        .ok_or_else(|| "write day, week, month or total".to_owned())
}
