//! `farebox init`: both files to begin with, commented, as this repository ships them. Nothing is ever overwritten.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use super::args::Args;
use super::output::{self, Failed};

/// The shipped catalog.
pub(super) const CATALOG: &str = include_str!("../../catalog.toml");
/// The shipped routes.
pub(super) const ROUTES: &str = include_str!("../../routes.toml");

pub(super) fn run(args: &Args) -> Result<(), Failed> {
    let files = [(args.routes.as_path(), ROUTES), (args.catalog.as_path(), CATALOG)];
    // Both or none: looked at before anything is written.
    if let Some((taken, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        let advice = "move it away, or name other files with --catalog and --routes";
        return Err(Failed::refused(format!("{} is already there and is not overwritten; {advice}", taken.display())));
    }
    for (path, text) in files {
        write(path, text).map_err(|error| Failed::refused(format!("{} cannot be written: {error}", path.display())))?;
    }
    let (catalog, routes) = (args.catalog.display(), args.routes.display());
    output::print(&format!(
        "wrote {catalog} (what is sold) and {routes} (where requests go): four simulated models, and examples to edit\n\
         next: farebox check, then farebox serve"
    ));
    Ok(())
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}
