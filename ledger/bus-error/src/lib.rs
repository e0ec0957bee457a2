//! Last words for a process that SIGBUS ends.
//!
//! SQLite maps the index of a ledger's log (`-shm`) into memory. If somebody cuts that file off, the next access ends the process, and
//! the system says no more than *Bus error*. The log still has every commit, so all there is to say is what happened and what to do.

use std::io;
use std::sync::Once;

/// What is said: to standard error, which is where the log goes.
const WORDS: &[u8] = b"farebox: a file that is mapped into memory was cut off (the -shm file beside the ledger). Nothing that was \
confirmed is lost: the log has it. Start the program again, which makes that file anew.\n";

/// The exit code: a fault inside the program's environment (`EX_SOFTWARE`).
const CODE: i32 = 70;

/// From now on SIGBUS ends this process with these words. May be called again.
///
/// # Errors
/// When the system does not install the handler.
pub fn say() -> io::Result<()> {
    static ONCE: Once = Once::new();
    let mut said = Ok(());
    ONCE.call_once(|| said = install());
    said
}

#[expect(
    unsafe_code,
    reason = "a handler may only call what is safe in one: `write` and `_exit` are"
)]
fn install() -> io::Result<()> {
    let last = || unsafe {
        libc::write(libc::STDERR_FILENO, WORDS.as_ptr().cast(), WORDS.len());
        libc::_exit(CODE)
    };
    // SAFETY: the action calls two functions that POSIX lists as safe in a handler, and never returns.
    unsafe { signal_hook_registry::register(libc::SIGBUS, last) }.map(drop)
}
