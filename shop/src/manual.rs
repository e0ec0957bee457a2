//! The shop's manual page and completions, as files for packages.

use std::path::Path;
use std::{fs, io};

use clap_complete::{Shell, generate_to};
use clap_mangen::Man;

/// Writes them into this folder.
pub(crate) fn write(mut command: clap::Command, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut command, "farebox-shop", folder)?;
    }
    Man::new(command).generate_to(folder)?;
    Ok(())
}
