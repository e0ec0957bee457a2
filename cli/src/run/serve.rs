//! `farebox serve`: the gateway, until a signal or a failing ledger stops it.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::app::{App, Files, Settings, StartError, process};
use crate::args::{Args, ServeOptions};
use crate::output::{self, CommandFailed};
use crate::publish::check;
use crate::settings::settings;
use farebox::config::{self, ProcessSecrets};
use farebox::telemetry::{self, LogFormat, LogGuard};

pub(crate) async fn run(args: &Args, options: &ServeOptions) -> Result<(), CommandFailed> {
    let log = start_logging("info,salvo_core=warn");
    process::no_core_dumps();
    let files = Files::Watched {
        catalog: args.catalog.clone(),
        routes: args.routes.clone(),
        secrets: Box::new(ProcessSecrets { lenient: false }),
    };
    let settings = Settings {
        wait_lock: Duration::from_secs(options.wait_lock),
        new_ledger: options.new_ledger,
        wal_limit: options.wal_limit,
        ..settings(args)
    };
    let app = App::start(&settings, files, Arc::new(log.requests())).await?;
    announce(args, &app);
    app.serve(stop_signal())
        .await
        .map_err(CommandFailed::refused)
}

/// Logs what is served and where, and warns about settings that are probably mistakes.
fn announce(args: &Args, app: &App) {
    let models = output::count(
        app.front.proxy.config.current().catalog.models.len(),
        "model",
    );
    let base = &app.front.public_url;
    tracing::info!(
        "serving {models} at {base}/v1 and {base}/native, ledger {}",
        args.ledger
    );
    let mib = |bytes: usize| bytes >> 20;
    tracing::info!(
        "memory: at most {} MiB of request bodies and {} MiB of answers in flight, a quarter of what this process may have",
        mib(app.front.body_room.total()),
        mib(app.front.proxy.upstreams.answer_bytes().1),
    );
    let address = app.address();
    if !address.ip().is_loopback() && args.tls_cert.is_none() {
        tracing::warn!(
            "{address} is not a loopback address and is served without TLS, so keys travel unencrypted: \
             set --tls-cert and --tls-key, or listen on loopback behind a TLS proxy"
        );
    }
    if address.ip().is_unspecified() && args.public_url.is_none() {
        tracing::warn!(
            "printed settings and links begin with {base}, which customers cannot reach: set --public-url"
        );
    }
    if !args.trusted_proxy.is_empty() && args.public_url.is_none() {
        tracing::warn!(
            "--trusted-proxy says that customers come through a proxy, but printed settings and links begin with {base}: \
             set --public-url to the address they use"
        );
    }
    let Some(address) = app.admin_address() else {
        return;
    };
    let scheme = args.admin_tls_cert.as_ref().map_or("http", |_| "https");
    tracing::info!(
        "admin listener at {scheme}://{address}: /healthz /readyz /metrics /status /live /api/v1"
    );
    if !address.ip().is_loopback() && args.admin_tls_cert.is_none() {
        tracing::warn!(
            "the admin listener {address} is not on a loopback address: {}",
            if args.admin_token_file.is_some() {
                "the token for /metrics, /status and /live travels unencrypted"
            } else {
                "/metrics, /status and /live are closed until --admin-token-file is set"
            }
        );
    }
}

/// Starts the log in the format that the environment asks for.
pub(crate) fn start_logging(default: &str) -> LogGuard {
    let format = match (
        config::log_as_json(),
        std::io::stderr().is_terminal() && !config::no_color(),
    ) {
        (true, _) => LogFormat::Json,
        (false, true) => LogFormat::Coloured,
        (false, false) => LogFormat::Text,
    };
    telemetry::start_logging(config::log_filter().as_deref(), default, format)
}

/// Ends at the first SIGTERM or ctrl-c from now on, even if it arrives before this future is polled.
pub(crate) fn stop_signal() -> impl Future<Output = ()> {
    let signals = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
    async move {
        let [Ok(mut terminate), Ok(mut interrupt)] = signals else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: waiting for running requests to end");
    }
}

impl From<StartError> for CommandFailed {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Ledger(error) => Self::without_ledger(error),
            StartError::Configuration(findings) => check::failed(&findings),
            other => Self::refused(other.to_string()),
        }
    }
}
