//! Read-only connections, separate from the writer's.
//!
//! Point reads take microseconds and run on the calling thread; scans run on separate threads, so that neither async threads nor
//! the writer ever wait for one. No connection keeps a read transaction between two statements of a scan.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::location::Location;
use super::{files, lessons, reads};
use crate::{Amount, Cause, CustomerId, LedgerError, OpenMode, Taught, lock};

// Each read takes microseconds under its lock, so a few serve as many threads as there are; a scan may take seconds, and two let a quick
// one pass a long one.
const POINTS: usize = 4;
const SCANNERS: usize = 2;

type Scan = Box<dyn FnOnce(&Connection) + Send>;

/// The connections and threads that read.
#[derive(Debug)]
pub(super) struct Readers {
    location: Arc<Location>,
    points: Vec<Mutex<Connection>>,
    turn: AtomicUsize,
    scans: Sender<Scan>,
}

impl Readers {
    pub(super) fn open(location: &Arc<Location>, mode: OpenMode) -> Result<Self, LedgerError> {
        let count = if mode == OpenMode::Serve { POINTS } else { 1 };
        let connect = |_| files::connect_again(location, OpenMode::ReadOnly).map(Mutex::new);
        let points = (0..count).map(connect).collect::<Result<Vec<_>, _>>()?;
        let (scans, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..SCANNERS {
            let (location, waiting) = (Arc::clone(location), Arc::clone(&waiting));
            thread("ledger-reader", move || scan(&location, &waiting))?;
        }
        Ok(Self {
            location: Arc::clone(location),
            points,
            turn: AtomicUsize::new(0),
            scans,
        })
    }

    /// A read that takes microseconds, on the calling thread.
    pub(super) fn point<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, LedgerError> {
        let turn = self
            .turn
            .fetch_add(1, Ordering::Relaxed)
            .checked_rem(self.points.len())
            .unwrap_or(0);
        let chosen = self
            .points
            .get(turn)
            .ok_or_else(|| LedgerError::unavailable("no connection".to_owned()))?;
        let free = self.points.iter().find_map(|conn| conn.try_lock().ok());
        let conn = free.unwrap_or_else(|| lock(chosen));
        read(&conn).map_err(|error| unreadable(&self.location.given, error))
    }

    /// A read of any length, on a reader's thread. From time to time it is asked whether anybody still waits for it.
    pub(super) async fn scan<T, F>(&self, read: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &dyn Fn() -> bool) -> rusqlite::Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let location = Arc::clone(&self.location);
        let job: Scan = Box::new(move |conn| {
            let result = read(conn, &|| !reply.is_closed());
            let _ = reply.send(result.map_err(|error| unreadable(&location.given, error)));
        });
        self.scans
            .send(job)
            .map_err(|_| LedgerError::unavailable("the readers stopped".to_owned()))?;
        answer
            .await
            .unwrap_or_else(|_| Err(LedgerError::unavailable("the readers stopped".to_owned())))
    }

    /// A read that takes minutes, on its own connection and thread.
    pub(super) async fn alone<T, F>(&self, read: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &dyn Fn() -> bool) -> rusqlite::Result<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let conn = files::connect_again(&self.location, OpenMode::ReadOnly)?;
        let location = Arc::clone(&self.location);
        thread("ledger-verify", move || {
            let result = read(&conn, &|| !reply.is_closed());
            let _ = reply.send(result.map_err(|error| unreadable(&location.given, error)));
        })?;
        answer
            .await
            .unwrap_or_else(|_| Err(LedgerError::unavailable("the reader stopped".to_owned())))
    }
}

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), LedgerError> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    started
        .map(|_| ())
        .map_err(|error| LedgerError::unavailable(Cause::of("no thread for reading", error)))
}

/// Reads of which all is wanted.
impl Readers {
    pub(super) async fn given(&self, customer: CustomerId) -> Result<Amount, LedgerError> {
        self.scan(move |conn, _| reads::given(conn, customer)).await
    }

    pub(super) async fn taught(&self) -> Result<Taught, LedgerError> {
        self.scan(|conn, _| lessons::taught(conn)).await
    }
}

fn scan(location: &Location, waiting: &Mutex<Receiver<Scan>>) {
    let mut conn = None;
    loop {
        let next = lock(waiting).recv();
        let Ok(job) = next else { return };
        if conn.is_none() {
            conn = files::connect_again(location, OpenMode::ReadOnly)
                .inspect_err(|error| tracing::error!(%error, "a reader cannot open the ledger"))
                .ok();
        }
        // Without a connection the job is dropped; its caller then gets an error.
        if let Some(conn) = &conn {
            job(conn);
        }
    }
}

pub(super) fn unreadable(path: &Path, error: rusqlite::Error) -> LedgerError {
    match files::damage(path, &error) {
        Some(damage) => LedgerError::unusable(Cause::in_words(damage, error)),
        None => LedgerError::unavailable(Cause::of("it cannot be read", error)),
    }
}
