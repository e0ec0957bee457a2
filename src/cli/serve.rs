//! `farebox serve`: the gateway, until a signal or a failing ledger stops it.

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::args::{Args, ServeOptions};
use super::check;
use super::output::{self, Failed};
use crate::app::{App, Settings, StartError};
use crate::telemetry::{self, RequestLog};

pub(super) async fn run(args: &Args, options: &ServeOptions) -> Result<(), Failed> {
    telemetry::start_logging("info");
    super::args::refuse_postgres(&args.ledger)?;
    let config = check::load(args, false)?;
    let models = config.catalog.models.len();
    let settings = Settings {
        ledger: args.ledger.clone(),
        durability: args.durability.into(),
        listen: args.listen,
        public_url: args.public_url.clone().map(|url| url.trim_end_matches('/').to_owned()),
        wait_lock: Duration::from_secs(options.wait_lock),
        anchors: args.anchors.clone(),
    };
    let app = App::start(&settings, config, Arc::new(RequestLog)).await?;
    tracing::info!(
        "serving {models} models at {}/v1 and {}/native, ledger {}",
        app.front.public_url,
        app.front.public_url,
        args.ledger.display()
    );
    if !app.address().ip().is_loopback() {
        tracing::warn!("{} is not a loopback address and is served without TLS; put a TLS proxy in front", app.address());
    }
    app.serve(stop_signal()).await.map_err(Failed::refused)?;
    output::note("stopped; every request is settled");
    Ok(())
}

/// Ends at the first SIGTERM or ctrl-c.
pub(super) async fn stop_signal() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = terminate.recv() => tracing::info!("stopping: running requests are given time to end"),
        _ = tokio::signal::ctrl_c() => tracing::info!("stopping: running requests are given time to end"),
    }
}

impl From<StartError> for Failed {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Ledger(error) => error.into(),
            other => Self::refused(other.to_string()),
        }
    }
}
