//! Hot reload: offers and texts of a saved file are in force within seconds. A file with mistakes changes nothing, and what needs a
//! restart is said. Nothing is spawned here: [`FileWatch::follow`] is a future that the server runs and drops.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::desk::ShopDesk;
use crate::settings::ShopSettings;
use crate::{file, preflight};
use farebox_toml::{Diagnostics, Paint, ProcessSecrets};

/// How often the file is looked at. A save is read when two looks saw the same, so that no half of one is.
const LOOK: Duration = Duration::from_secs(1);

/// The file that a shop was started with.
#[derive(Debug)]
pub(crate) struct FileWatch {
    pub(crate) path: PathBuf,
    /// What needs a restart stays as it was then.
    pub(crate) started: ShopSettings,
}

impl FileWatch {
    /// Puts what is saved in force. Never ends.
    pub(crate) async fn follow(self, desk: &ShopDesk) {
        let mut seen = std::fs::read(&self.path).ok();
        let mut changed = None;
        loop {
            tokio::time::sleep(LOOK).await;
            let now = std::fs::read(&self.path).ok();
            if now == seen {
                changed = None;
            } else if changed.as_ref() == Some(&now) {
                (seen, changed) = (now, None);
                self.take_over(desk).await;
            } else {
                changed = Some(now);
            }
        }
    }

    async fn take_over(&self, desk: &ShopDesk) {
        let (settings, findings) = file::load(&self.path, &ProcessSecrets::default());
        let file = self.path.display();
        let Some(settings) = settings else {
            let report = findings.render(Paint::Plain);
            tracing::error!("{file} has mistakes; what was in force stays\n{report}");
            return;
        };
        if !findings.is_empty() {
            tracing::warn!("{}", findings.render(Paint::Plain));
        }
        let stale = self.started.needing_restart(&settings);
        if !stale.is_empty() {
            tracing::warn!("{file} needs a restart for {}", stale.join(", "));
        }
        let front = settings.storefront;
        if **desk.front.borrow() == front {
            return;
        }
        // While the gateway is away each checkout asks it anyway.
        let found = preflight::of_offers(&desk.api, &front).await;
        let found = Diagnostics(found.unwrap_or_default());
        if found.has_errors() {
            let report = found.render(Paint::Plain);
            tracing::error!("{file} offers what cannot be sold; what was in force stays\n{report}");
        } else {
            tracing::info!("offers and texts of {file} are in force");
            desk.front.send_replace(Arc::new(front));
        }
    }
}
