//! Last words for a process that SIGBUS ends, or to which the system refuses memory.
//!
//! SQLite maps the index of a ledger's log (`-shm`) into memory. If somebody cuts that file off, the next access ends the process, and
//! the system says no more than *Bus error*. The log still has every commit, so all there is to say is what happened and what to do.

use std::alloc::{GlobalAlloc, Layout};
use std::io;
use std::sync::Once;

/// What is said: to standard error, which is where the log goes.
const WORDS: &[u8] = b"farebox: a file that is mapped into memory was cut off (the -shm file beside the ledger). Nothing that was \
confirmed is lost: the log has it. Start the program again, which makes that file anew.\n";

/// The exit code: a fault inside the program's environment (`EX_SOFTWARE`).
const CODE: i32 = 70;

/// What is said when the system refuses memory.
const NO_MEMORY: &[u8] = b"farebox: the system refuses memory, so this process ends; what was confirmed is in the ledger, and the next \
start ends what ran. Give it more (docs/operations.md, *Limits*), and look whether another program takes it.\n";

/// An allocator that ends the process with one line where another one would abort it without a word about the remedy.
#[derive(Debug)]
pub struct LastWords<A>(pub A);

impl<A> LastWords<A> {
    #[expect(
        unsafe_code,
        reason = "nothing here may allocate: `write` and `_exit` do not"
    )]
    fn or_end(memory: *mut u8) -> *mut u8 {
        if memory.is_null() {
            // SAFETY: both calls take only constants.
            unsafe {
                libc::write(
                    libc::STDERR_FILENO,
                    NO_MEMORY.as_ptr().cast(),
                    NO_MEMORY.len(),
                );
                libc::_exit(CODE)
            }
        }
        memory
    }
}

#[expect(
    unsafe_code,
    reason = "the trait is unsafe; every call goes on unchanged"
)]
// SAFETY: all memory is the inner allocator's, which keeps the contract; a null pointer never returns.
unsafe impl<A: GlobalAlloc> GlobalAlloc for LastWords<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        Self::or_end(unsafe { self.0.alloc(layout) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.0.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        Self::or_end(unsafe { self.0.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        Self::or_end(unsafe { self.0.realloc(memory, layout, size) })
    }
}

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
