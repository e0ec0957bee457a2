//! The command line, one file per command in folders by what an operator does, and [`app`], which puts the gateway together. Both
//! only wire things; the rooms do the work.

pub mod app;
mod args;
mod books;
mod completions;
mod env_file;
mod format;
mod gateway;
mod http;
mod ledger;
mod manual;
mod output;
mod parse;
mod publish;
mod run;
mod sell;
mod settings;
mod tables;
mod tls;
mod watch;

use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;

pub use args::Args;
use args::caps::CapsCommand;
use args::customers::{CreateCustomerOptions, CustomersCommand};
use args::vouchers::VouchersCommand;
use args::{Command, LedgerCommand, TargetsCommand};
use farebox_selling::voucher::VoidVouchers;
use output::{CommandFailed, Exit};
pub use parse::commands;
use publish::{add, check, diff, explain, init, library, models, setup};
pub use run::demo_shop;
use run::{demo, serve};
use sell::{bulk_customers, caps, customers, grants, manage, plans, tokens, vouchers};
use watch::{events, find, health, status, targets};

use farebox::config::{is_set, source};

/// A larger file is none of settings.
const LARGEST_ENV_FILE: u64 = 1 << 20;

/// Starts the runtime and runs the command. The runtime starts here, because async code is compiled where it is first polled: in
/// `main.rs`, it would be compiled after this library instead of with it.
// Customers are served on threads of their own (`server/workers.rs`).
#[tokio::main(worker_threads = 2)]
pub async fn run() -> ExitCode {
    let read = |file: &Path| {
        source::content(file, LARGEST_ENV_FILE).map_err(|error| source::plain(&error))
    };
    if let Err(why) = env_file::load(read, is_set) {
        output::complain(&why);
        return ExitCode::from(Exit::Usage as u8);
    }
    let args = match parse::command_line() {
        Ok(args) => args,
        Err(error) => {
            let asked = matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            );
            // If stdout is closed, the help has no reader: ignore it.
            let _ = error.print();
            return if asked {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(Exit::Usage as u8)
            };
        }
    };
    match dispatch(&args).await.and_then(|()| output::printed()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            output::complain(&failed.message);
            ExitCode::from(failed.exit as u8)
        }
    }
}

async fn dispatch(args: &Args) -> Result<(), CommandFailed> {
    if args.bom {
        output::mark_sheets();
    }
    if let Some(file) = &args.library {
        farebox::config::Library::choose(file).map_err(CommandFailed::usage)?;
    }
    match &args.command {
        Command::Serve(options) => serve::run(args, options).await,
        Command::Demo(options) => demo::run(args, options).await,
        Command::Check(options) => match &options.explain {
            Some(name) => explain::run(args, name),
            None => check::run(args, options).await,
        },
        Command::Diff => diff::run(args).await,
        Command::Init(options) => init::run(args, options),
        Command::Add(options) => add::run(args, options),
        Command::Library(options) => library::run(args, options),
        Command::Models(options) => models::run(args, options),
        Command::Show(options) => find::run(args, options).await,
        Command::Setup(options) => setup::run(args, options).await,
        Command::Keys(command) => manage::run(args, command).await,
        Command::Customers(CustomersCommand::Create(CreateCustomerOptions {
            from: Some(from),
            ..
        })) => bulk_customers::create(args, from).await,
        Command::Customers(command) => customers::run(args, command).await,
        Command::Events(command) => events::run(args, command).await,
        Command::Tokens(command) => tokens::run(args, command).await,
        Command::Caps(CapsCommand::Set(options)) => caps::set(args, options).await,
        Command::Caps(CapsCommand::List(one)) => caps::list(args, one).await,
        Command::Caps(CapsCommand::Clear(on)) => {
            caps::change(args, on.act.clone(), on.of.scope).await
        }
        Command::Vouchers(VouchersCommand::Create(options)) => {
            vouchers::change(args, options.clone(), ()).await
        }
        Command::Vouchers(VouchersCommand::List) => vouchers::list(args).await,
        Command::Vouchers(VouchersCommand::Void(options)) => {
            vouchers::change(args, VoidVouchers {}, options.lot).await
        }
        Command::Grants(command) => grants::run(args, command).await,
        Command::Plans(command) => plans::run(args, command).await,
        Command::Ledger(LedgerCommand::Entries(options)) => ledger::entries(args, options).await,
        Command::Ledger(LedgerCommand::Verify) => ledger::verify(args).await,
        Command::Ledger(LedgerCommand::Backup(options)) => ledger::backup(args, options).await,
        Command::Ledger(LedgerCommand::Accept(options)) => ledger::accept(args, options).await,
        Command::Ledger(LedgerCommand::Copy(options)) => ledger::copy(args, options).await,
        Command::Targets(TargetsCommand::Reset(options)) => targets::reset(args, options).await,
        Command::Status => status::run(args).await,
        Command::Health => health::run(args).await,
        Command::Completions { shell } => {
            completions::run(*shell);
            Ok(())
        }
        Command::Manual { folder } => manual::run(folder),
    }
}
