//! How many sequences of steps are tried, and where their ledgers are.

use proptest::test_runner::Config;

/// So many sequences of steps, or the full number.
pub(super) fn sequences(few: u32, all: u32) -> Config {
    let is_full = std::env::var_os("FAREBOX_FULL").is_some();
    Config {
        cases: if is_full { all } else { few },
        failure_persistence: None,
        ..Config::default()
    }
}

/// A directory in memory where there is one: disks make thousands of ledgers slow.
pub(super) fn memory_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}
