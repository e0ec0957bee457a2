//! `farebox targets reset`: forgets what customers' requests have shown about a target. Works while a gateway runs.

use farebox_ledger::OpenMode;
use serde_json::json;

use super::args::{Args, OutputFormat, ResetOptions};
use super::books::open;
use super::output::{self, CommandFailed};

pub(super) async fn reset(args: &Args, options: &ResetOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let target = &options.target;
    let votes = ledger.votes().await?;
    let forgotten = votes.iter().filter(|vote| vote.target == *target).count();
    if forgotten == 0 {
        return Err(CommandFailed::refused(format!(
            "nothing is known of {target}"
        )));
    }
    ledger.forget_votes(target.clone()).await?;
    match args.format() {
        OutputFormat::Json => {
            output::print_json(&json!({ "target": target, "forgotten": forgotten }))
        }
        _ => output::note(&format!(
            "{target}: {forgotten} votes forgotten; running gateways follow within 30 seconds"
        )),
    }
    Ok(())
}
