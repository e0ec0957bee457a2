//! Writes an anchor of the journal every minute and at shutdown, to the file given by `--anchors`, outside the ledger.
//!
//! An anchor covers only what is on disk: if it covered more, a power cut would later look like tampering.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use farebox_ledger::LedgerError;
use farebox_ledger::anchor::AnchorFile;
use farebox_ledger::sqlite::belongs_to_ledger;
use farebox_ledger::store::SharedStore;

use farebox::clock;

/// Between two anchors.
// A copy that somebody restores or rewrites can lack unnoticed what came after the last anchor.
const EVERY: Duration = Duration::from_secs(60);
/// Longer than any commit takes to reach the disk.
const ON_DISK: Duration = Duration::from_secs(1);

/// An anchor file and the ledger it covers.
#[derive(Debug)]
pub(super) struct Anchoring {
    file: AnchorFile,
    ledger: SharedStore,
}

impl Anchoring {
    /// Continues an anchor file, or creates one. For a file ledger the entries are counted; a database was compared with the
    /// anchors when it was opened.
    ///
    /// # Errors
    /// When the file cannot be used, or the ledger has fewer entries than it covers: somebody put an older copy in its place.
    pub(super) async fn open(
        path: &Path,
        ledger: SharedStore,
        its_file: Option<&Path>,
    ) -> Result<Self, LedgerError> {
        let unusable =
            |why: String| LedgerError::unusable(format!("the anchors {}: {why}", path.display()));
        if its_file.is_some_and(|its_file| belongs_to_ledger(its_file, path)) {
            return Err(unusable(
                "this file is the ledger's own; anchors need one of their own, best on another machine".to_owned(),
            ));
        }
        let file = AnchorFile::open(path).map_err(|error| unusable(error.to_string()))?;
        let (covered, entries) = (file.last().entries(), ledger.totals().await?.entries);
        if its_file.is_some() && i64::try_from(entries).is_ok_and(|entries| entries < covered) {
            let why = format!(
                "they cover {covered} entries, but the ledger has {entries}; was an older copy restored?"
            );
            return Err(unusable(
                why + " To serve from it anyway, move the anchor file away",
            ));
        }
        Ok(Self { file, ledger })
    }

    /// Writes an anchor every minute; never ends.
    pub(super) async fn run(&mut self) -> Infallible {
        loop {
            tokio::time::sleep(EVERY).await;
            self.write(ON_DISK).await;
        }
    }

    /// Writes the last anchor; the ledger is closed and everything on disk.
    pub(super) async fn finish(mut self) {
        self.write(Duration::ZERO).await;
    }

    async fn write(&mut self, wait: Duration) {
        let next = self.ledger.anchor(self.file.last(), clock::now()).await;
        tokio::time::sleep(wait).await;
        let written = match next {
            Ok(next) => self
                .file
                .append(next)
                .map(|()| self.ledger.anchored(self.file.last()))
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = written {
            tracing::error!(
                error,
                "no anchor was written; the next one covers the same entries"
            );
        }
    }
}
