//! Shared by the commands on the ledger: opens it, and signs the act. Decides nothing.

use farebox_ledger::store::SharedStore;
use farebox_ledger::{Act, OpenMode, Opening};

use super::args::{Args, OutputFormat};
use super::output::{self, CommandFailed};

/// Makes the ledger, for a command that writes the first thing in it.
pub(super) async fn create(args: &Args) -> Result<SharedStore, CommandFailed> {
    check_standby(args, OpenMode::Write)?;
    let created = args.ledger.create(&opening(args, OpenMode::Write)).await;
    created.map_err(CommandFailed::without_ledger)
}

/// Opens the ledger for a command.
pub(super) async fn open(args: &Args, mode: OpenMode) -> Result<SharedStore, CommandFailed> {
    check_standby(args, mode)?;
    let ledger = args.ledger.open(&opening(args, mode)).await?;
    if let Some(behind) = ledger.servers().iter().find_map(|server| server.behind) {
        let source = format!("standby, {behind} s behind");
        match args.format() {
            OutputFormat::Json => output::read_from(source),
            OutputFormat::Csv => output::sheet(&format!("# {source}")),
            OutputFormat::Table | OutputFormat::Markdown | OutputFormat::Html => {
                output::print(&source)
            }
        }
    }
    Ok(ledger)
}

fn check_standby(args: &Args, mode: OpenMode) -> Result<(), CommandFailed> {
    if args.standby && mode != OpenMode::ReadOnly {
        return Err(CommandFailed::usage(
            "--standby only reads; leave it out to change something",
        ));
    }
    Ok(())
}

/// How the settings say to open the ledger.
pub(super) fn opening(args: &Args, mode: OpenMode) -> Opening {
    let (state, anchors) = (args.state.clone(), args.anchors.clone());
    Opening {
        mode,
        durability: args.durability.into(),
        allow_single: args.allow_single,
        standby: args.standby,
        state,
        anchors,
    }
}

/// An administrative act in the name of the user who runs this command.
pub(super) fn act(args: &Args) -> Act {
    farebox_selling::act(args.actor())
}
