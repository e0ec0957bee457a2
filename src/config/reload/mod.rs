//! One reload: read both files and the secrets, and swap the snapshot or keep the last good one.
//!
//! Files and secrets are compared by content, so a save without a change is not a reload. A bad edit never replaces anything; it
//! stays visible in the [`LoadStatus`] until it is fixed. When to reload is decided in `watch`.

pub(crate) mod compare;
mod debounce;
pub(crate) mod diff;
pub(crate) mod watch;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use farebox_ledger::lock;
use serde::Serialize;
use sha2::{Digest, Sha256};

use self::compare::{PriceFall, falls};
use self::watch::ReloadObserver;
use crate::config::{
    Config, ConfigHandle, Diagnostics, Loaded, Secrets, Source, Unreadable, compare, load_all,
};
use farebox_toml::secrets::{SecretFile, content_hash};

/// Why the files are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    /// The process starts.
    Start,
    /// A file changed.
    Save,
    /// The regular poll.
    Poll,
    /// The operator asked for it.
    Request,
}

/// The result of a check.
#[derive(Debug, Clone)]
pub enum Reload {
    /// A new snapshot is in force; the findings are warnings and notes.
    Swapped(Arc<Config>, Diagnostics),
    /// The files have errors; the last good snapshot stays in force.
    Kept(Diagnostics),
    /// Nothing changed since the last check. `mended`: the files had errors, and now match the snapshot in force again.
    Unchanged {
        /// Whether the files had errors before, and match again.
        mended: bool,
    },
}

/// The snapshot in force, and the result of the last check of the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoadStatus {
    /// Whether the files as they are now are in force.
    pub current: bool,
    /// The snapshot in force.
    pub generation: u64,
    /// When it was loaded, milliseconds since 1970.
    pub loaded_at_ms: i64,
    /// The beginning of the SHA-256 of the catalog in force, in hex.
    pub catalog_hash: String,
    /// The same of the routes in force.
    pub routes_hash: String,
    /// When the files last differed or a reload was requested, milliseconds since 1970.
    pub attempted_at_ms: i64,
    /// What triggered that check.
    pub attempted_by: Trigger,
    /// Snapshots put in force since the start.
    pub swapped: u64,
    /// Failed attempts since the start.
    pub kept: u64,
    /// Findings of that attempt, errors among them when `current` is false.
    pub diagnostics: Diagnostics,
    /// Prices that fell by more than half while this process ran. Alerts tell of them.
    #[serde(skip)]
    pub falls: Vec<PriceFall>,
}

/// Loads both files again and again for one process.
pub struct Reloader {
    catalog: PathBuf,
    routes: PathBuf,
    secrets: Box<dyn Secrets + Send + Sync>,
    handle: Arc<ConfigHandle>,
    status: ArcSwap<LoadStatus>,
    /// Milliseconds since 1970.
    clock: fn() -> i64,
    seen: Mutex<FilesRead>,
}

/// The state of the files at two checks.
#[derive(Debug)]
struct FilesRead {
    /// The snapshot in force.
    good: FileHashes,
    /// The last attempt.
    last: FileHashes,
    /// Sizes and times of all files just before the last check; if they are the same, so is the content.
    stamps: Vec<Option<Stamp>>,
    ever_published: Vec<String>,
}

/// The contents of the files at one check, as hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileHashes {
    catalog: [u8; 32],
    routes: [u8; 32],
    secrets: Vec<SecretFile>,
}

type Stamp = (u64, u64, u64, i64, i64, i64, i64);

/// Both files as they were read.
type Texts = [Result<Source, Unreadable>; 2];

impl LoadStatus {
    /// Identifies the files in force, so that gateways of a fleet can compare them.
    pub fn files(&self) -> String {
        let short = |hash: &str| hash.chars().take(12).collect::<String>();
        format!("{} {}", short(&self.catalog_hash), short(&self.routes_hash))
    }
}

impl Reloader {
    /// Catalog and routes.
    pub fn places(&self) -> [&Path; 2] {
        [&self.catalog, &self.routes]
    }

    /// Loads both files for the first time.
    ///
    /// # Errors
    /// With all findings when the files have errors.
    pub fn start(
        catalog: &Path,
        routes: &Path,
        secrets: Box<dyn Secrets + Send + Sync>,
        ever_published: Vec<String>,
        clock: fn() -> i64,
    ) -> Result<Self, Diagnostics> {
        let texts = [Source::read(catalog), Source::read(routes)];
        let Loaded {
            config,
            mut diagnostics,
            secret_files,
        } = load_all(&texts[0], &texts[1], &*secrets);
        let Some(config) = config else {
            return Err(diagnostics);
        };
        diagnostics
            .0
            .extend(compare(None, &config, &ever_published));
        let look = FileHashes::of(&texts, secret_files);
        let now = clock();
        let status = LoadStatus {
            current: true,
            generation: config.generation,
            loaded_at_ms: now,
            catalog_hash: short(&look.catalog),
            routes_hash: short(&look.routes),
            attempted_at_ms: now,
            attempted_by: Trigger::Start,
            swapped: 0,
            kept: 0,
            diagnostics,
            falls: Vec::new(),
        };
        Ok(Self {
            catalog: catalog.to_path_buf(),
            routes: routes.to_path_buf(),
            secrets,
            handle: Arc::new(ConfigHandle::new(config)),
            status: ArcSwap::from_pointee(status),
            clock,
            // Without stamps, so that the first check afterwards reads the files.
            seen: Mutex::new(FilesRead {
                good: look.clone(),
                last: look,
                stamps: Vec::new(),
                ever_published,
            }),
        })
    }

    /// The snapshot in force, now and later.
    pub fn handle(&self) -> Arc<ConfigHandle> {
        Arc::clone(&self.handle)
    }

    /// The snapshot in force, and the result of the last check of the files.
    pub fn status(&self) -> Arc<LoadStatus> {
        self.status.load_full()
    }

    /// Checks the files now. Blocks on file reads, so it must not run on a thread that serves requests.
    pub fn reload(&self, trigger: Trigger, observer: &dyn ReloadObserver) -> Reload {
        let mut seen = lock(&self.seen);
        // Before the files are read: what is written while they are read shows at the next event.
        let stamps = self.stamps(&seen);
        // Most events are about other files in the same folder. A poll and a request read the contents whatever the stamps say.
        if trigger == Trigger::Save && stamps == seen.stamps {
            return Reload::Unchanged { mended: false };
        }
        seen.stamps = stamps;
        let texts = [Source::read(&self.catalog), Source::read(&self.routes)];
        if self.look_again(&texts, &seen.good) == seen.good {
            return self.unchanged(&mut seen, trigger);
        }
        if trigger != Trigger::Request && self.look_again(&texts, &seen.last) == seen.last {
            return Reload::Unchanged { mended: false };
        }
        let Loaded {
            config,
            diagnostics,
            secret_files,
        } = load_all(&texts[0], &texts[1], &*self.secrets);
        seen.last = FileHashes::of(&texts, secret_files);
        match config {
            Some(config) => match self.missed(&config, observer) {
                Some(missed) => self.keep(missed, trigger),
                None => self.swap(&mut seen, config, diagnostics, trigger),
            },
            None => self.keep(diagnostics, trigger),
        }
    }

    /// Price lists of the snapshot in force that a new one does not have, and customers do.
    fn missed(&self, new: &Config, observer: &dyn ReloadObserver) -> Option<Diagnostics> {
        let running = self.handle.current();
        let gone = running.catalog.lists_not_in(&new.catalog);
        let missed = match gone.as_slice() {
            [] => Vec::new(),
            gone => observer.missed(gone),
        };
        (!missed.is_empty()).then_some(Diagnostics(missed))
    }

    /// Which of the two files are mounted by themselves, or have been replaced where they come from.
    pub fn alone(&self) -> Vec<String> {
        let texts = [&self.catalog, &self.routes].map(|path| Source::read(path));
        let alone = texts.into_iter().flatten().filter(|source| source.alone);
        alone.map(|source| source.name).collect()
    }

    /// The directories in which a change can affect the files.
    pub fn directories(&self) -> Vec<PathBuf> {
        let seen = lock(&self.seen);
        let files = self.files(&seen);
        // A symlink changes where it is or where it leads.
        let both = files
            .into_iter()
            .flat_map(|file| [Some(file.clone()), file.canonicalize().ok()])
            .flatten();
        let parent = |file: PathBuf| {
            file.parent().map(|parent| {
                if parent.as_os_str().is_empty() {
                    ".".into()
                } else {
                    parent.to_path_buf()
                }
            })
        };
        let mut directories: Vec<PathBuf> = both.filter_map(parent).collect();
        directories.sort();
        directories.dedup();
        directories
    }

    fn unchanged(&self, seen: &mut FilesRead, trigger: Trigger) -> Reload {
        let mended = !self.status.load().current;
        seen.last = seen.good.clone();
        if mended || trigger == Trigger::Request {
            self.note(trigger, |status| {
                if !status.current {
                    status.diagnostics = Diagnostics::default();
                }
                status.current = true;
            });
        }
        Reload::Unchanged { mended }
    }

    fn swap(
        &self,
        seen: &mut FilesRead,
        mut config: Config,
        mut diagnostics: Diagnostics,
        trigger: Trigger,
    ) -> Reload {
        let before = self.handle.current();
        diagnostics
            .0
            .extend(compare(Some(&before), &config, &seen.ever_published));
        let gone = before.catalog.models.iter().map(|model| model.slug.clone());
        seen.ever_published.extend(gone);
        seen.ever_published.sort_unstable();
        seen.ever_published.dedup();
        config.generation = before.generation + 1;
        let falls = falls(&self.status.load().falls, &before, &config, (self.clock)());
        self.handle.replace(config);
        let config = self.handle.current();
        self.note(trigger, |status| {
            status.current = true;
            status.generation = config.generation;
            status.loaded_at_ms = status.attempted_at_ms;
            status.catalog_hash = short(&seen.last.catalog);
            status.routes_hash = short(&seen.last.routes);
            status.swapped += 1;
            status.diagnostics = diagnostics.clone();
            status.falls = falls;
        });
        seen.good = seen.last.clone();
        Reload::Swapped(config, diagnostics)
    }

    fn keep(&self, diagnostics: Diagnostics, trigger: Trigger) -> Reload {
        self.note(trigger, |status| {
            status.current = false;
            status.kept += 1;
            status.diagnostics = diagnostics.clone();
        });
        Reload::Kept(diagnostics)
    }

    fn note(&self, trigger: Trigger, change: impl FnOnce(&mut LoadStatus)) {
        let mut status = LoadStatus::clone(&self.status.load());
        (status.attempted_at_ms, status.attempted_by) = ((self.clock)(), trigger);
        change(&mut status);
        self.status.store(Arc::new(status));
    }

    /// The contents now: these texts, and the secret files of an earlier check.
    fn look_again(&self, texts: &Texts, before: &FileHashes) -> FileHashes {
        let again = |(file, _): &SecretFile| (file.clone(), content_hash(&self.secrets.file(file)));
        FileHashes::of(texts, before.secrets.iter().map(again).collect())
    }

    /// All files that matter.
    fn files<'a>(&'a self, seen: &'a FilesRead) -> Vec<&'a PathBuf> {
        [&self.catalog, &self.routes]
            .into_iter()
            .chain(
                [&seen.good, &seen.last]
                    .into_iter()
                    .flat_map(|look| look.secrets.iter().map(|(file, _)| file)),
            )
            .collect()
    }

    fn stamps(&self, seen: &FilesRead) -> Vec<Option<Stamp>> {
        let stamp = |path: &PathBuf| {
            let of = std::fs::metadata(path).ok()?;
            Some((
                of.dev(),
                of.ino(),
                of.size(),
                of.mtime(),
                of.mtime_nsec(),
                of.ctime(),
                of.ctime_nsec(),
            ))
        };
        self.files(seen).into_iter().map(stamp).collect()
    }
}

impl std::fmt::Debug for Reloader {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Reloader")
            .field("catalog", &self.catalog)
            .field("routes", &self.routes)
            .finish_non_exhaustive()
    }
}

impl FileHashes {
    fn of(texts: &Texts, secrets: Vec<SecretFile>) -> Self {
        let hash = |text: &Result<Source, Unreadable>| match text {
            Ok(source) => Sha256::digest(source.text.as_bytes()).into(),
            Err(unreadable) => Sha256::digest(format!("\u{0}{}", unreadable.problem)).into(),
        };
        Self {
            catalog: hash(&texts[0]),
            routes: hash(&texts[1]),
            secrets,
        }
    }
}

fn short(hash: &[u8; 32]) -> String {
    let mut hash = hex::encode(hash);
    hash.truncate(12);
    hash
}
