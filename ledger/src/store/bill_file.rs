//! Bills that could not be booked before a gateway stopped: kept in a file until its next start, which books them (`begin`).
//!
//! The file stands beside the ledger, or beside the state file of a gateway on PostgreSQL. While the gateway runs it is empty and has room
//! on the disk, because it is written when the disk is full. Each line is a checksum and JSON: the first line names the ledger, each
//! other one is a bill. A last line without an end was cut off by a crash, and its hold ends at its checkpoint. Any other line that is
//! not as it was written keeps the gateway from starting: a bill is neither lost nor guessed.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::room::reserve;
use super::side_file::{beside, beside_real, opened};
use crate::{Amount, Bill, Cause, Finish, LedgerError, OperationId, Timestamp, lock};

/// What is behind the name of the file that it stands beside.
pub(super) const SUFFIX: &str = ".unsettled";
/// Version of the file's format.
const FORMAT: u32 = 1;
/// The largest file. What has no room is left to recovery.
const MOST: u64 = 64 << 20;
/// Room for the bill of a hold; most need a quarter of it.
const ROOM: u64 = 4 << 10;
/// Room is reserved in steps of this.
const STEP: u64 = 256 << 10;
/// Holds that may be opened before the next look at how many there are.
const AHEAD: u64 = 32;
const REMEDY: &str = "put the right file there, or move it away to start without it: then its holds end at their checkpoints, and nothing \
     beyond them is charged";

/// What a ledger could not book before it was closed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Left {
    /// Bills that the next start books.
    pub bills: usize,
    /// Their cost.
    pub cost: Amount,
    /// Where they are.
    pub file: PathBuf,
    /// Holds that stay open without a bill: the next start ends them at their checkpoints.
    pub holds: usize,
}

impl Left {
    /// Whether every request is settled.
    pub const fn is_nothing(&self) -> bool {
        self.bills == 0 && self.holds == 0
    }

    pub(crate) fn without_bills(holds: usize) -> Self {
        Self {
            holds,
            ..Self::default()
        }
    }

    fn with_bills<'a>(file: &Path, bills: impl IntoIterator<Item = &'a Finish>) -> Self {
        let mut left = Self {
            file: file.to_owned(),
            ..Self::default()
        };
        for finish in bills {
            left.bills = left.bills.saturating_add(1);
            left.cost = left.cost.checked_add(cost(finish)).unwrap_or(left.cost);
        }
        left
    }
}

impl fmt::Display for Left {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_nothing() {
            return out.write_str("every request is settled");
        }
        let (cost, file) = (self.cost, self.file.display());
        let bills = format!(
            "bills that wait in {file} for the next start: {} ({cost} USD)",
            self.bills
        );
        let holds = format!(
            "holds that stay open and end at their checkpoints: {}",
            self.holds
        );
        match (self.bills, self.holds) {
            (_, 0) => out.write_str(&bills),
            (0, _) => out.write_str(&holds),
            (_, _) => write!(out, "{bills}; {holds}"),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct FirstLine {
    format: u32,
    ledger: String,
}

/// Any other line.
#[derive(Serialize, Deserialize)]
struct Line {
    request: String,
    at: i64,
    bill: Bill,
}

/// A gateway's file for bills. Nothing is opened or created before `prepare`.
#[derive(Debug)]
pub struct Unsettled {
    path: PathBuf,
    ledger: String,
    opened: Mutex<Option<OpenFile>>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    reserved: u64,
    /// Whether the last attempt to reserve room failed.
    failed: bool,
}

impl Unsettled {
    /// Beside this file, for this ledger.
    pub(crate) fn beside(path: &Path, ledger: [u8; 16]) -> Self {
        Self {
            path: beside(path, SUFFIX),
            ledger: OperationId::from_bytes(ledger).to_string(),
            opened: Mutex::default(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The bills in it.
    pub(super) fn read(&self) -> Result<Vec<Finish>, LedgerError> {
        read(&self.path, Some(&self.ledger))
    }

    /// Creates or empties the file, and reserves its first room.
    pub(super) fn prepare(&self) -> Result<(), LedgerError> {
        let file = open(&self.path).and_then(|file| {
            file.set_len(0)?;
            file.sync_all().map(|()| file)
        });
        let file = file.map_err(|error| cannot_use(&self.path, error))?;
        *lock(&self.opened) = Some(OpenFile {
            file,
            reserved: 0,
            failed: false,
        });
        self.grow(0);
        Ok(())
    }

    /// Reserves room for the bills of so many open holds, and of as many that may be opened soon.
    pub(crate) fn grow(&self, holds: u64) {
        let mut opened = lock(&self.opened);
        let Some(OpenFile {
            file,
            reserved,
            failed,
        }) = opened.as_mut()
        else {
            return;
        };
        // Twice, because holds go on being opened until the next look, and what this cannot reserve then may find a full disk.
        let wanted = holds.saturating_mul(2).saturating_add(AHEAD);
        let wanted = wanted.saturating_mul(ROOM).div_ceil(STEP);
        let wanted = wanted.saturating_mul(STEP).min(MOST);
        if wanted <= *reserved {
            return;
        }
        match reserve(file, *reserved, wanted.saturating_sub(*reserved)) {
            Ok(()) => (*reserved, *failed) = (wanted, false),
            Err(error) if !std::mem::replace(failed, true) => {
                tracing::warn!(%error, file = %self.path.display(), "no room can be reserved for bills that a stop on a full disk would leave");
            }
            Err(_) => {}
        }
    }

    /// Keeps what is due; removes the file if nothing is.
    pub(crate) fn close(&self, due: &[Arc<Finish>]) -> Left {
        let mut opened = lock(&self.opened);
        if due.is_empty() {
            let empty = |opened: &OpenFile| {
                is_at(&opened.file, &self.path)
                    && opened.file.metadata().is_ok_and(|found| found.len() == 0)
            };
            if opened.take().as_ref().is_some_and(empty)
                && let Err(error) = std::fs::remove_file(&self.path)
            {
                tracing::warn!(%error, file = %self.path.display(), "an empty file for bills stays behind");
            }
            return Left::default();
        }
        let file = match opened.take() {
            Some(OpenFile { file, .. }) if is_at(&file, &self.path) => Ok(file),
            // It was moved away with the ledger, or never opened.
            _ => open(&self.path),
        };
        let kept = file
            .and_then(|file| self.append(&file, due))
            .unwrap_or_else(|error| {
                tracing::error!(%error, file = %self.path.display(), "bills cannot be kept");
                0
            });
        let kept_bills = due.iter().take(kept).map(Arc::as_ref);
        Left {
            holds: due.len().saturating_sub(kept),
            ..Left::with_bills(&self.path, kept_bills)
        }
    }

    /// Writes as many bills as there is room for, and returns how many are on the disk.
    fn append(&self, file: &File, due: &[Arc<Finish>]) -> Result<usize, Error> {
        let mut end = file.metadata()?.len();
        if end == 0 {
            let header = FirstLine {
                format: FORMAT,
                ledger: self.ledger.clone(),
            };
            put(file, &mut end, &serde_json::to_string(&header)?)?;
        }
        let mut kept = 0_usize;
        for finish in due {
            let line = Line {
                request: finish.request.to_string(),
                at: finish.at.millis(),
                bill: finish.bill.clone(),
            };
            if let Err(error) = put(file, &mut end, &serde_json::to_string(&line)?) {
                tracing::error!(%error, file = %self.path.display(), "not all bills can be kept");
                break;
            }
            kept = kept.saturating_add(1);
        }
        file.sync_all()?;
        let folder = self.path.parent().filter(|at| !at.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(kept)
    }
}

/// What waits beside a ledger's file or a gateway's state file.
pub(crate) fn waiting_beside(path: &Path) -> Result<Left, LedgerError> {
    let file = beside_real(path, SUFFIX);
    // Not opened then: a running gateway's file is readable by its own user alone.
    if file.symlink_metadata().is_ok_and(|found| found.len() == 0) {
        return Ok(Left::default());
    }
    Ok(Left::with_bills(&file, &read(&file, None)?))
}

pub(super) fn cost(finish: &Finish) -> Amount {
    finish.bill.total().unwrap_or_default()
}

/// Opens or creates it, and nothing else that has its name.
fn open(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    opened(options.write(true).create(true).mode(0o600), path)
}

fn is_at(file: &File, path: &Path) -> bool {
    let place = |found: std::fs::Metadata| (found.dev(), found.ino());
    let there = path.symlink_metadata().map(place).ok();
    there.is_some() && file.metadata().map(place).ok() == there
}

/// The first half of SHA-256, in hex: enough to find a line that was torn or changed by mistake.
fn checksum(json: &str) -> String {
    let mut sum = hex::encode(Sha256::digest(json));
    sum.truncate(32);
    sum
}

/// Writes a line at the end; one that does not fit is taken away again.
fn put(file: &File, end: &mut u64, json: &str) -> Result<(), Error> {
    let line = format!("{} {json}\n", checksum(json));
    let next = end.saturating_add(u64::try_from(line.len()).unwrap_or(u64::MAX));
    if next > MOST {
        return Err(ErrorKind::FileTooLarge.into());
    }
    if let Err(error) = file.write_all_at(line.as_bytes(), *end) {
        file.set_len(*end)?;
        return Err(error);
    }
    *end = next;
    Ok(())
}

/// The bills in a file; none if there is no file. `ledger` says whose they must be.
fn read(path: &Path, ledger: Option<&str>) -> Result<Vec<Finish>, LedgerError> {
    let mut text = Vec::new();
    let found = opened(&mut OpenOptions::new(), path)
        .and_then(|file| file.take(MOST.saturating_add(1)).read_to_end(&mut text));
    match found {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot_use(path, error)),
        Ok(_) => {}
    }
    let shown = path.display();
    let mut bills = Vec::new();
    for (line, number) in text.split_inclusive(|byte| *byte == b'\n').zip(1_u32..) {
        let line = match line.strip_suffix(b"\n") {
            Some(whole) => whole,
            None if number == 1 => line,
            None => {
                tracing::warn!(file = %shown, "the last bill was cut off while it was written; its hold ends at its checkpoint");
                break;
            }
        };
        if number == 1 {
            let why = match content::<FirstLine>(line).filter(|header| header.format == FORMAT) {
                None => format!("{shown} is not a file of bills that this version can read"),
                Some(header) if ledger.is_some_and(|ledger| ledger != header.ledger) => {
                    format!("{shown} has bills of another ledger, {}", header.ledger)
                }
                Some(_) => continue,
            };
            return Err(LedgerError::unusable(format!("{why}: {REMEDY}")));
        }
        let finish = content(line).and_then(finish_of).ok_or_else(|| {
            let why = format!("line {number} of {shown}, a bill that could not be booked, is not as it was written: {REMEDY}");
            LedgerError::unusable(why)
        })?;
        bills.push(finish);
    }
    Ok(bills)
}

/// The content of a line that is as it was written.
fn content<'line, T: Deserialize<'line>>(line: &'line [u8]) -> Option<T> {
    let (sum, json) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    (sum == checksum(json)).then(|| serde_json::from_str(json).ok())?
}

fn finish_of(line: Line) -> Option<Finish> {
    Some(Finish {
        request: line.request.parse().ok()?,
        bill: line.bill,
        at: Timestamp::from_millis(line.at),
    })
}

fn cannot_use(path: &Path, error: Error) -> LedgerError {
    let what = format!(
        "{}, the file for bills that cannot be booked",
        path.display()
    );
    LedgerError::unusable(Cause::of(&what, error))
}
