//! The console's manual page and completions, as files for packages.

use std::fs;
use std::io;
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::{Shell, generate_to};
use clap_mangen::Man;

use crate::ConsoleArgs;

/// Writes them into this folder.
pub(crate) fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut command = ConsoleArgs::command();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut command, "farebox-console", folder)?;
    }
    Man::new(command).generate_to(folder)?;
    Ok(())
}
