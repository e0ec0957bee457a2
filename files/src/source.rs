//! Reads the texts of the two files.
//!
//! `Debug` never shows a text: the routes may contain a misplaced secret.

use std::fmt;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use farebox_ledger::is_mounted_alone;

/// Larger files are refused: 10,000 models need about 5 MiB.
const LARGEST_FILE: u64 = 64 * 1024 * 1024;

/// One of the two files.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    /// The path as the operator wrote it; secret files named in it are relative to its directory.
    pub name: String,
    /// The file's text, as it was read.
    pub text: String,
    /// It is mounted by itself, or has been replaced where it comes from: an edit there is not seen here.
    pub alone: bool,
}

impl Source {
    /// A file's name and text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            alone: false,
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// With a message for the operator: the file cannot be opened or read, is too large, or is not UTF-8.
    pub fn read(path: &Path) -> Result<Self, Unreadable> {
        let name = path.display().to_string();
        let refuse = |problem: String| Unreadable {
            name: name.clone(),
            problem,
            absent: false,
        };
        let file = open(path).map_err(|error| Unreadable {
            absent: error.kind() == std::io::ErrorKind::NotFound,
            ..refuse(plain(&error))
        })?;
        let alone = is_alone(path, &file);
        let mut bytes = Vec::new();
        file.take(LARGEST_FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| refuse(plain(&error)))?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(refuse(format!(
                "it is larger than {} MiB",
                LARGEST_FILE / 1024 / 1024
            )));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { name, text, alone }),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let line = error
                    .as_bytes()
                    .iter()
                    .take(at)
                    .filter(|byte| **byte == b'\n')
                    .count()
                    + 1;
                Err(refuse(format!(
                    "it is not UTF-8 (line {line}, byte {at}); save it as UTF-8"
                )))
            }
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Source({}, {} bytes)", self.name, self.text.len())
    }
}

/// Whether a file is a mount point itself, or has no name any more where it comes from.
fn is_alone(path: &Path, file: &std::fs::File) -> bool {
    let nameless = file.metadata().is_ok_and(|found| found.nlink() == 0);
    nameless
        || path
            .canonicalize()
            .is_ok_and(|real| is_mounted_alone(&real))
}

/// A file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The path as the operator wrote it.
    pub name: String,
    /// Why, in words.
    pub problem: String,
    /// There is no such file.
    pub absent: bool,
}

/// The content of a regular file of at most `most` bytes.
///
/// # Errors
/// What the system says, or that it is no regular file, or larger; [`plain`] has the words.
pub fn content(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let length = open(path)?.take(most + 1).read_to_end(&mut bytes)? as u64;
    if length > most {
        Err(std::io::Error::other(format!(
            "it has more than {most} bytes"
        )))
    } else {
        Ok(bytes)
    }
}

/// Opens a regular file. Opening a named pipe waits for its writer, perhaps forever, and no further change would be noticed.
pub fn open(path: &Path) -> std::io::Result<std::fs::File> {
    let kind = std::fs::metadata(path)?.file_type();
    // Reading a folder fails at once, and in words that say what it is.
    if kind.is_file() || kind.is_dir() {
        return std::fs::File::open(path);
    }
    Err(std::io::Error::other(
        "it is a pipe or a device, not a file",
    ))
}

/// An I/O error without the operating system's number.
pub fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "the file does not exist".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    /// As a file that is mounted by itself looks after somebody has replaced it outside.
    #[test]
    fn a_file_that_has_been_replaced_where_it_comes_from_is_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("catalog.toml");
        std::fs::write(&path, "x = 1\n").unwrap();
        assert!(!Source::read(&path).unwrap().alone);
        let open = std::fs::File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let nameless = format!("/proc/self/fd/{}", open.as_raw_fd());
        let source = Source::read(Path::new(&nameless)).unwrap();
        assert!(source.alone && source.text == "x = 1\n");
    }
}
