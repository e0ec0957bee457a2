//! Hot reload: notices that files changed, waits until they are completely written, and reloads them.
//!
//! Directories are watched, not files: a watch on a file follows its inode, and would report nothing after an editor's rename or
//! a swapped symlink. Names in events are ignored; the [`Reloader`] compares contents. A poll catches what the kernel does not
//! report. Nothing is spawned here: [`watch`] is a future that the application runs and drops.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{EventKindMask, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::debounce::Debounce;
use super::{Reload, Reloader, Trigger};
use crate::config::Diagnostic;

/// How often the files are checked without an event.
// Events can be missed: some file systems tell nothing of what another machine writes.
const POLL: Duration = Duration::from_secs(30);
/// How often they are checked where the kernel cannot report changes, so that a save still takes effect within a second.
const BLIND_POLL: Duration = Duration::from_millis(500);

/// Which events the kernel reports. For writes only the close: a ledger in the same directory writes its log all the time, and an
/// event per write made a stream cost 50 % more. Reads are left out, because we read the files ourselves.
const WORTH_A_LOOK: EventKindMask = EventKindMask::CREATE
    .union(EventKindMask::REMOVE)
    .union(EventKindMask::MODIFY_META)
    .union(EventKindMask::MODIFY_NAME)
    .union(EventKindMask::ACCESS_CLOSE);

/// Receives the result of each check of the files, to log and count it.
pub trait ReloadObserver: Send + Sync {
    /// Called after each check that found a change, and after each reload that was requested.
    fn reloaded(&self, trigger: Trigger, reload: &Reload);

    /// What stands in the way of losing these price lists: customers who have them. Called where blocking is no harm.
    fn missed(&self, lists: &[&str]) -> Vec<Diagnostic>;

    /// A directory cannot be watched; its files are polled twice a second instead.
    fn unwatched(&self, directory: &Path, problem: &str);
}

/// Reloads on every change of the files and on every message of `requests` (SIGHUP), and checks every 30 s in any case. Never ends.
pub async fn watch(
    reloader: Arc<Reloader>,
    mut requests: mpsc::Receiver<()>,
    observer: Arc<dyn ReloadObserver>,
) {
    let events = Arc::new(Notify::new());
    let mut eyes = Eyes::open(Arc::clone(&events));
    let mut blind = eyes.look_at(&reloader.directories(), &*observer);
    let mut poll = ticks(blind);
    let mut debounce = Debounce::default();
    // Files may have changed between the first load and the start of the watch, and no event reported it: check once.
    debounce.touch(Instant::now());
    let mut asked = true;
    loop {
        let due = debounce.due();
        let trigger = tokio::select! {
            () = events.notified() => {
                debounce.touch(Instant::now());
                continue;
            }
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => Trigger::Save,
            _ = poll.tick() => Trigger::Poll,
            request = requests.recv(), if asked => {
                if request.is_none() {
                    asked = false;
                    continue;
                }
                Trigger::Request
            }
        };
        debounce.clear();
        let (worker, asked_of) = (Arc::clone(&reloader), Arc::clone(&observer));
        // Reading and checking blocks and may take a while, so it must not run on the threads that serve requests.
        let Ok(reload) =
            tokio::task::spawn_blocking(move || worker.reload(trigger, &*asked_of)).await
        else {
            continue;
        };
        if !matches!(reload, Reload::Unchanged { mended: false }) || trigger == Trigger::Request {
            observer.reloaded(trigger, &reload);
        }
        // Watched directories may have been replaced (a mounted ConfigMap swaps them), the new routes may name secrets in other
        // directories, and a link may lead elsewhere even if its contents are the same.
        let now_blind = eyes.look_at(&reloader.directories(), &*observer);
        if now_blind != blind {
            (blind, poll) = (now_blind, ticks(now_blind));
        }
    }
}

fn ticks(blind: bool) -> tokio::time::Interval {
    let period = if blind { BLIND_POLL } else { POLL };
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// The watched directories.
struct Eyes {
    watcher: Result<RecommendedWatcher, String>,
    /// Each with its device and inode, because another directory can take over the same path.
    watched: Vec<(PathBuf, FileIdentity)>,
    /// Directories already reported to the observer, which is told only once about each.
    unwatched: Vec<PathBuf>,
}

/// Device and inode.
type FileIdentity = Option<(u64, u64)>;

impl Eyes {
    fn open(events: Arc<Notify>) -> Self {
        let told = move |_: notify::Result<notify::Event>| events.notify_one();
        let watcher = RecommendedWatcher::new(
            told,
            notify::Config::default().with_event_kinds(WORTH_A_LOOK),
        );
        Self {
            watcher: watcher.map_err(|error| error.to_string()),
            watched: Vec::new(),
            unwatched: Vec::new(),
        }
    }

    /// Watches exactly these directories; returns whether one of them cannot be watched.
    fn look_at(&mut self, directories: &[PathBuf], observer: &dyn ReloadObserver) -> bool {
        let wanted: Vec<(PathBuf, FileIdentity)> = directories
            .iter()
            .map(|directory| (directory.clone(), identity(directory)))
            .collect();
        if let Ok(watcher) = &mut self.watcher {
            for (directory, _) in self.watched.iter().filter(|known| !wanted.contains(known)) {
                // This fails if the directory was removed; the kernel has dropped its watch already.
                let _ = watcher.unwatch(directory);
            }
        }
        self.watched.retain(|known| wanted.contains(known));
        let mut blind = false;
        for (directory, identity) in wanted {
            if self.watched.contains(&(directory.clone(), identity)) {
                continue;
            }
            let watched = match &mut self.watcher {
                Ok(watcher) => watcher
                    .watch(&directory, RecursiveMode::NonRecursive)
                    .map_err(|error| error.to_string()),
                Err(problem) => Err(problem.clone()),
            };
            match watched {
                Ok(()) => {
                    self.unwatched.retain(|known| *known != directory);
                    self.watched.push((directory, identity));
                }
                Err(problem) => {
                    blind = true;
                    if !self.unwatched.contains(&directory) {
                        observer.unwatched(&directory, &problem);
                        self.unwatched.push(directory);
                    }
                }
            }
        }
        blind
    }
}

fn identity(directory: &Path) -> FileIdentity {
    std::fs::metadata(directory)
        .ok()
        .map(|of| (of.dev(), of.ino()))
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
