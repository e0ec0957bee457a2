//! `farebox-shop`: reads its file, and serves until it is stopped.

mod manual;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser};
use farebox_shop::{OpenShop, ShopSettings};
use farebox_toml::{Diagnostics, Paint, ProcessSecrets};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Sells credit by card, through a gateway's admin API. Holds one sell token, and no data.
#[derive(Debug, Parser)]
#[command(name = "farebox-shop", version = env!("FAREBOX_VERSION"))]
struct ShopArgs {
    /// What is for sale, where the gateway is, and through whom cards are charged
    #[arg(
        long,
        env = "FAREBOX_SHOP",
        default_value = "shop.toml",
        value_name = "FILE"
    )]
    config: PathBuf,
    /// Check the file, the gateway and the processor, and stop
    #[arg(long)]
    check: bool,
    /// With --check: the file alone
    #[arg(long, requires = "check")]
    offline: bool,
    /// Write the manual page and the completions of bash, zsh and fish into this folder, for packages
    #[arg(long, hide = true, value_name = "FOLDER")]
    manual: Option<PathBuf>,
}

/// A mistake in the file, as everywhere else.
const BAD_FILE: u8 = 78;

#[tokio::main]
async fn main() -> ExitCode {
    let args = ShopArgs::parse();
    let filter = EnvFilter::try_from_default_env();
    tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| EnvFilter::new("info,salvo_core=warn")))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    if let Some(folder) = &args.manual {
        return match manual::write(ShopArgs::command(), folder) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                tracing::error!("{}: {error}", folder.display());
                ExitCode::FAILURE
            }
        };
    }
    let (settings, findings) = farebox_shop::load(&args.config, &ProcessSecrets::default());
    show(&findings);
    let Some(settings) = settings else {
        return ExitCode::from(BAD_FILE);
    };
    if !args.offline {
        let asked = match farebox_shop::ask(&settings).await {
            Ok(asked) => asked,
            Err(why) => {
                tracing::error!("{why}");
                return ExitCode::FAILURE;
            }
        };
        show(&asked);
        if !farebox_shop::may_open(&asked) || args.check && asked.has_errors() {
            return ExitCode::from(BAD_FILE);
        }
    }
    if args.check {
        let front = &settings.storefront;
        let (offers, currency) = (front.offers.len(), &front.currency);
        let _ = writeln!(std::io::stdout(), "ok: {offers} offers in {currency}");
        return ExitCode::SUCCESS;
    }
    match run(settings, &args.config).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            tracing::error!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Findings are for people, also in a log.
fn show(findings: &Diagnostics) {
    if findings.is_empty() {
        return;
    }
    let paint = if std::io::stderr().is_terminal() {
        Paint::Coloured
    } else {
        Paint::Plain
    };
    let _ = write!(std::io::stderr(), "{}", findings.render(paint));
}

async fn run(settings: ShopSettings, file: &Path) -> Result<(), String> {
    let mut terminate = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
    let shop = OpenShop::start(settings, file)?;
    tracing::info!(
        "shop at {}, listening on {}",
        shop.public_url(),
        shop.address
    );
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
    };
    shop.serve(stop).await.map_err(|error| error.to_string())
}
