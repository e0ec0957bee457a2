//! `farebox init`: writes two commented starter files: simulated models as this repository ships them, or one known service.
//! Nothing is ever overwritten.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use crate::args::{Args, InitOptions};
use crate::output::{self, CommandFailed};
use farebox::config;

/// The shipped catalog.
pub(crate) const CATALOG: &str = include_str!("../../../catalog.toml");
/// The shipped routes.
pub(crate) const ROUTES: &str = include_str!("../../../routes.toml");

pub(crate) fn run(args: &Args, options: &InitOptions) -> Result<(), CommandFailed> {
    let preset = options.provider.as_deref().and_then(config::preset);
    let (catalog, routes) = match preset {
        None => (CATALOG.to_owned(), ROUTES.to_owned()),
        Some(preset) => (preset.starter_catalog(), preset.starter_routes()),
    };
    let files = [
        (args.routes.as_path(), routes),
        (args.catalog.as_path(), catalog),
    ];
    if args.catalog == args.routes {
        return Err(CommandFailed::usage(
            "--catalog and --routes name the same file; they are two files",
        ));
    }
    // Checked before anything is written, so that either both files are written or neither.
    let taken = files
        .iter()
        .filter(|(path, _)| path.symlink_metadata().is_ok())
        .map(|(path, _)| path.display().to_string());
    let taken: Vec<String> = taken.collect();
    if !taken.is_empty() {
        let (exist, them) = if taken.len() == 1 {
            ("exists and was", "it")
        } else {
            ("exist and were", "them")
        };
        let advice = format!("move {them} away, or choose other paths with --catalog and --routes");
        return Err(CommandFailed::refused(format!(
            "{} already {exist} not overwritten; {advice}",
            taken.join(" and ")
        )));
    }
    for (path, text) in &files {
        write(path, text).map_err(|error| {
            CommandFailed::refused(format!("cannot write {}: {error}", path.display()))
        })?;
    }
    let (catalog, routes) = (args.catalog.display(), args.routes.display());
    let content = preset.map_or_else(
        || "four simulated models, and examples to edit".to_owned(),
        |preset| {
            format!(
                "`{}` at {}; fill in your prices",
                preset.model.slug, preset.title
            )
        },
    );
    let secret = preset
        .and_then(|preset| preset.key.as_deref())
        .map(|key| format!("export {key}=…, then "))
        .unwrap_or_default();
    output::print(&format!(
        "wrote {catalog} (models and prices) and {routes} (where requests go): {content}"
    ));
    if let Some(note) = preset.and_then(|preset| preset.note.as_deref()) {
        output::print(note);
    }
    output::print(&format!(
        "next: {secret}farebox check, then farebox serve --new-ledger; from the second start on without that flag"
    ));
    if preset.is_none() {
        output::print("for a real model: farebox library, then farebox add SERVICE/MODEL");
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)?
        .write_all(text.as_bytes())
}
