//! The formats of results, and which command prints which. A command that cannot print the format asked for is refused before it
//! does anything, because a script would read the text of another format as data.

use clap::ValueEnum;

use super::args::customers::CustomersCommand;
use super::args::events::EventsCommand;
use super::args::tokens::TokensCommand;
use super::args::{Args, Command, KeysCommand, LedgerCommand, OutputFormat};

const TEXT: &[OutputFormat] = &[OutputFormat::Table];
const DOCUMENT: &[OutputFormat] = &[OutputFormat::Table, OutputFormat::Json];
const LIST: &[OutputFormat] = &[OutputFormat::Table, OutputFormat::Json, OutputFormat::Csv];

const MODELS: &[OutputFormat] = &[
    OutputFormat::Table,
    OutputFormat::Json,
    OutputFormat::Csv,
    OutputFormat::Markdown,
];
const PAPER: &[OutputFormat] = &[
    OutputFormat::Table,
    OutputFormat::Json,
    OutputFormat::Csv,
    OutputFormat::Html,
];

/// The formats in which a command prints its result.
fn printed(command: &Command) -> &'static [OutputFormat] {
    match command {
        Command::Serve(_)
        | Command::Demo(_)
        | Command::Init(_)
        | Command::Add(_)
        | Command::Health
        | Command::Completions { .. }
        | Command::Manual { .. } => TEXT,
        Command::Check(_)
        | Command::Status
        | Command::Library(_)
        | Command::Show(_)
        | Command::Tokens(TokensCommand::Create(_))
        | Command::Customers(CustomersCommand::Link(_))
        | Command::Keys(KeysCommand::Link(_)) => DOCUMENT,
        Command::Setup(options) if options.client.is_some() => DOCUMENT,
        Command::Customers(CustomersCommand::Receipts(_) | CustomersCommand::Statement(_)) => PAPER,
        Command::Diff
        | Command::Setup(_)
        | Command::Keys(_)
        | Command::Customers(_)
        | Command::Caps(_)
        | Command::Events(EventsCommand::List(_) | EventsCommand::Test(_))
        | Command::Tokens(_)
        | Command::Vouchers(_)
        | Command::Grants(_)
        | Command::Plans(_)
        | Command::Ledger(LedgerCommand::Entries(_)) => LIST,
        Command::Ledger(_) | Command::Targets(_) | Command::Events(_) => DOCUMENT,
        Command::Models(_) => MODELS,
    }
}

/// What to type instead of a format that the command does not print.
pub(super) fn unprinted(args: &Args) -> Option<String> {
    let (wanted, printed) = (args.format(), printed(&args.command));
    if printed.contains(&wanted) {
        return None;
    }
    let instead = if printed.len() == 1 {
        "leave out --format and --json".to_owned()
    } else {
        let flags: Vec<String> = printed
            .iter()
            .map(|format| format!("--format {}", name(*format)))
            .collect();
        format!("write {}", flags.join(" or "))
    };
    Some(format!(
        "this command does not print {}; {instead}",
        name(wanted)
    ))
}

fn name(format: OutputFormat) -> String {
    format
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
}
