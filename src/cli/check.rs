//! `farebox check`: every mistake of both files at once. Also how other commands load the files.

use super::args::{Args, CheckOptions, Format};
use super::output::{self, Failed};
use crate::config::{self, Config, Diagnostics, Paint, ProcessSecrets};

pub(super) fn run(args: &Args, options: &CheckOptions) -> Result<(), Failed> {
    let secrets = ProcessSecrets { lenient: options.no_secrets };
    let (config, diagnostics) = config::load_files(&args.catalog, &args.routes, &secrets);
    if args.format() == Format::Json {
        output::print_json(&serde_json::json!(diagnostics));
    } else if !diagnostics.is_empty() {
        output::print(&diagnostics.render(paint()));
    }
    match config {
        // The report ends with its summary.
        None => Err(Failed::configuration("")),
        Some(config) => {
            if args.format() != Format::Json {
                let models = output::count(config.catalog.models.len(), "model");
                let providers = output::count(config.providers.len(), "provider");
                output::print(&format!("ok: {models}, {providers}"));
            }
            Ok(())
        }
    }
}

/// The snapshot of both files, or every mistake and exit code 78.
pub(super) fn load(args: &Args, lenient: bool) -> Result<Config, Failed> {
    let (config, diagnostics) = config::load_files(&args.catalog, &args.routes, &ProcessSecrets { lenient });
    match config {
        Some(config) => {
            if !diagnostics.is_empty() {
                output::note(&diagnostics.render(paint()));
            }
            Ok(config)
        }
        None => Err(failed(&diagnostics)),
    }
}

/// The end of a command that cannot go on with these files.
pub(super) fn failed(diagnostics: &Diagnostics) -> Failed {
    Failed::configuration(format!("the configuration has mistakes\n\n{}", diagnostics.render(paint()).trim_end()))
}

/// Colours only for a terminal that wants them.
fn paint() -> Paint {
    use std::io::IsTerminal;
    if std::io::stderr().is_terminal() && !config::no_color() { Paint::Coloured } else { Paint::Plain }
}
