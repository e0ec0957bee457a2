//! Parses the command line with clap. Errors name what was written: a flag, or the environment variable in its place. Runs no command.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches};

use super::args::{Args, GLOBAL};
use super::format;
use farebox::config;

/// The process settings that `demo` uses.
const OF_DEMO: [&str; 3] = ["listen", "durability", "operator"];

/// The command line of this process.
///
/// # Errors What clap wants to be printed: help, the version, or the mistake.
pub(super) fn command_line() -> Result<Args, clap::Error> {
    let mut command = commands();
    let typed: Vec<OsString> = std::env::args_os().collect();
    if typed.iter().skip(1).eq(["help", "settings"]) {
        // clap returns help as an error, so this is where the function ends.
        settings().try_get_matches_from(["farebox", "--help"])?;
    }
    let parsed = command
        .try_get_matches_from_mut(&typed)
        .and_then(|matches| {
            refuse_unused(&matches, &mut command)?;
            let args =
                Args::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
            match format::unprinted(&args) {
                None => Ok(args),
                Some(message) => Err(command.error(ErrorKind::ArgumentConflict, message)),
            }
        });
    parsed.map_err(|mut error| {
        let lists = |usage: &str| {
            command
                .get_arguments()
                .filter_map(Arg::get_long)
                .any(|long| usage.contains(&format!("--{long}")))
        };
        // A usage line would list the settings that every command takes.
        if error
            .get(ContextKind::Usage)
            .is_some_and(|usage| lists(&usage.to_string()))
        {
            error.remove(ContextKind::Usage);
        }
        let named = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => text.as_str(),
            _ => "",
        };
        let of_ledger = named(ContextKind::InvalidArg).ends_with("<LEDGER>");
        hide_secrets(&mut error, of_ledger);
        if let Some(variable) = from_environment(&error, &command, &typed) {
            error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
        }
        error
    })
}

/// The commands, each with a help of its own arguments alone.
#[must_use]
pub fn commands() -> Command {
    brief(Args::command())
}

/// A command whose help names the settings of the process in one line.
pub(super) fn brief(command: Command) -> Command {
    let of_process = |arg: Arg| {
        let hidden = arg.get_help_heading() == Some(GLOBAL);
        // clap prints the long form of help, two lines and more for each argument, where any has values with meanings.
        let takes_value = arg.get_action().takes_values();
        arg.hide(hidden).hide_possible_values(hidden && takes_value)
    };
    command
        .mut_args(of_process)
        .after_help("Process settings: farebox help settings")
        .mut_subcommands(brief)
}

/// The settings of the process alone, for their help.
fn settings() -> Command {
    let command = Args::command();
    let settings = command
        .get_arguments()
        .filter(|arg| arg.get_help_heading() == Some(GLOBAL));
    Command::new("farebox")
        .override_usage("farebox [SETTINGS] <COMMAND>")
        .about("Settings that every command takes, before or after it; each also from its variable")
        .args(settings.cloned())
}

/// Hides secrets in what clap repeats of the arguments, and everything that would steer a terminal. The address of a database, which
/// may hold a password, is hidden as a whole.
pub(super) fn hide_secrets(error: &mut clap::Error, of_ledger: bool) {
    let clean = |text: &str| {
        let printable = text.replace(char::is_control, "\u{fffd}");
        config::hide_secrets(&printable)
    };
    let typed = [
        ContextKind::InvalidValue,
        ContextKind::InvalidArg,
        ContextKind::InvalidSubcommand,
        ContextKind::PriorArg,
    ];
    for kind in typed {
        let cleaned = match error.get(kind) {
            Some(ContextValue::String(text))
                if of_ledger && kind == ContextKind::InvalidValue && !text.is_empty() =>
            {
                ContextValue::String("…".to_owned())
            }
            Some(ContextValue::String(text)) => ContextValue::String(clean(text)),
            Some(ContextValue::Strings(texts)) => {
                ContextValue::Strings(texts.iter().map(|text| clean(text)).collect())
            }
            _ => continue,
        };
        if error.get(kind) != Some(&cleaned) {
            error.insert(kind, cleaned);
            // A suggestion repeats the argument.
            error.remove(ContextKind::Suggested);
        }
    }
}

/// Refuses flags that have no effect on `demo`, which has its own files, ledger and address. In the environment they are accepted,
/// because they are meant for other commands: a public URL there is the real gateway's, and must not receive the demo's key.
fn refuse_unused(matches: &ArgMatches, command: &mut Command) -> Result<(), clap::Error> {
    if matches.subcommand_name() != Some("demo") {
        return Ok(());
    }
    let unused = |arg: &&Arg| {
        let id = arg.get_id().as_str();
        arg.is_global_set()
            && !OF_DEMO.contains(&id)
            && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let unused: Vec<String> = command
        .get_arguments()
        .filter(unused)
        .filter_map(Arg::get_long)
        .map(|long| format!("--{long}"))
        .collect();
    if unused.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the demo does not use {}: it has its own models, a temporary ledger and its own address, and prints text; leave that out, or run your own \
         files with `farebox serve`",
        unused.join(", ")
    );
    Err(command.find_subcommand_mut("demo").map_or_else(
        || clap::Error::new(ErrorKind::ArgumentConflict),
        |demo| demo.error(ErrorKind::ArgumentConflict, message),
    ))
}

/// The environment variable that a refused value came from.
fn from_environment(error: &clap::Error, command: &Command, typed: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(refused)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let arg = command
        .get_arguments()
        .find(|arg| arg.to_string() == *refused)?;
    let flag = format!("--{}", arg.get_long()?);
    let typed = typed
        .iter()
        .any(|word| word.to_str().is_some_and(|word| word.starts_with(&flag)));
    arg.get_env()
        .filter(|_| !typed)
        .and_then(|variable| variable.to_str())
        .map(str::to_owned)
}
