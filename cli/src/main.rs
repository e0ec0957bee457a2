//! Runs one command.

use std::process::ExitCode;

use farebox_bus_error::LastWords;

/// A request makes hundreds of small allocations; the system's allocator took a sixth of its time for them.
/// Without huge pages, which would enlarge an open stream by half.
#[global_allocator]
static ALLOCATOR: LastWords<mimalloc::MiMalloc> = LastWords(mimalloc::MiMalloc);

fn main() -> ExitCode {
    farebox_cli::run()
}
