//! Starts the runtime and runs one command.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    farebox::cli::run().await
}
