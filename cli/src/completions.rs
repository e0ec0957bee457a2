//! `farebox completions SHELL`: what a shell needs to complete commands, flags and their values.

use clap::CommandFactory;
use clap_complete::Shell;

use super::args::Args;
use super::output;

pub(super) fn run(shell: Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "farebox", &mut script);
    output::print(String::from_utf8_lossy(&script).trim_end());
}
