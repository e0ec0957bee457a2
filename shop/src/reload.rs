//! Hot reload: offers and texts of a saved file are in force within seconds. A file with mistakes changes nothing, and what needs a
//! restart is said. Nothing is spawned here: [`FileWatch::follow`] is a future that the server runs and drops.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use farebox_toml::{Diagnostics, Paint, ProcessSecrets};
use tokio::sync::watch;

use crate::file;
use crate::settings::{ShopSettings, Storefront};

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
    pub(crate) async fn follow(self, front: &watch::Sender<Arc<Storefront>>) {
        let mut seen = std::fs::read(&self.path).ok();
        let mut changed = None;
        loop {
            tokio::time::sleep(LOOK).await;
            let now = std::fs::read(&self.path).ok();
            if now == seen {
                changed = None;
            } else if changed.as_ref() == Some(&now) {
                (seen, changed) = (now, None);
                self.take_over(front);
            } else {
                changed = Some(now);
            }
        }
    }

    fn take_over(&self, front: &watch::Sender<Arc<Storefront>>) {
        let (settings, findings) = file::load(&self.path, &ProcessSecrets::default());
        let file = self.path.display();
        let Some(settings) = settings else {
            let report = findings.render(Paint::Plain);
            tracing::error!("{file} has mistakes; what was in force stays\n{report}");
            return;
        };
        tell(&findings);
        let stale = self.started.needing_restart(&settings);
        if !stale.is_empty() {
            tracing::warn!("{file} needs a restart for {}", stale.join(", "));
        }
        if **front.borrow() != settings.storefront {
            tracing::info!("offers and texts of {file} are in force");
            front.send_replace(Arc::new(settings.storefront));
        }
    }
}

/// Warnings of a good file.
pub(crate) fn tell(findings: &Diagnostics) {
    if !findings.is_empty() {
        tracing::warn!("{}", findings.render(Paint::Plain));
    }
}
