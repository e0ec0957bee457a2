//! `farebox manual FOLDER`: a manual page for each command, and the completions, as files for packages.

use std::fs;
use std::io;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate_to};
use clap_mangen::Man;

use super::args::Args;
use super::output::CommandFailed;
use super::parse;

pub(super) fn run(folder: &Path) -> Result<(), CommandFailed> {
    write(folder).map_err(|error| CommandFailed::refused(format!("{}: {error}", folder.display())))
}

fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut command = Args::command();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut command, "farebox", folder)?;
    }
    command.build();
    // The settings of the process stand in the first page alone.
    pages(&command.mut_subcommands(parse::brief), folder)
}

fn pages(command: &Command, folder: &Path) -> io::Result<()> {
    Man::new(command.clone())
        .source(concat!("farebox ", env!("FAREBOX_VERSION")))
        .generate_to(folder)?;
    let shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    command
        .get_subcommands()
        .filter(shown)
        .try_for_each(|command| pages(command, folder))
}
