//! The options of the commands around models: `add`, `library` and `models`.

use clap::Args as ClapArgs;

/// Options of `add`.
#[derive(Debug, ClapArgs)]
pub struct AddOptions {
    /// The service and the model, as `farebox library` names them; a service alone adds its usual model
    #[arg(value_name = "SERVICE[/MODEL]")]
    pub model: String,
    /// What customers pay above the list price, in percent: 20%
    #[arg(long, default_value = "0", value_name = "PERCENT", value_parser = percent)]
    pub markup: u32,
    /// What callers send [default: the library's name]
    #[arg(long)]
    pub slug: Option<String>,
}

/// Options of `library`.
#[derive(Debug, ClapArgs)]
pub struct LibraryOptions {
    /// Only what the library says now of targets whose `cost` is another
    #[arg(long)]
    pub diff: bool,
}

/// Options of `models`.
#[derive(Debug, ClapArgs)]
pub struct ModelsOptions {
    /// What customers with this price list are offered, at its prices
    #[arg(long = "price-list", value_name = "NAME")]
    pub list: Option<String>,
}

fn percent(text: &str) -> Result<u32, String> {
    let number = text.trim_end_matches('%').trim_end().parse();
    let good = number.ok().filter(|percent| *percent <= 1_000);
    good.ok_or_else(|| "write a whole number of percent, at most 1000: 20%".to_owned())
}
