//! `farebox targets reset`: forgets what a target has taught. Works while a gateway runs.

use farebox_ledger::{ForgetTarget, OpenMode, Perform};
use serde_json::json;

use crate::args::{Args, OutputFormat, ResetOptions};
use crate::books::open;
use crate::output::{self, CommandFailed};

pub(crate) async fn reset(args: &Args, options: &ResetOptions) -> Result<(), CommandFailed> {
    let ledger = open(args, OpenMode::Write).await?;
    let target = &options.target;
    let taught = ledger.taught().await?;
    let lessons = taught.lessons.iter();
    let lessons = lessons.filter(|lesson| lesson.target == *target).count();
    let excesses = taught.excesses.iter();
    let excesses = excesses.filter(|excess| excess.target == *target).count();
    if (lessons, excesses) == (0, 0) {
        return Err(CommandFailed::refused(format!(
            "nothing is known of {target}"
        )));
    }
    ledger.perform(ForgetTarget(target.clone())).await?;
    match args.format() {
        OutputFormat::Json => output::print_json(
            &json!({ "target": target, "classes": lessons, "excesses": excesses }),
        ),
        _ => output::note(&format!(
            "{target}: what answers of {lessons} classes have taught is forgotten, and {excesses} excesses; running gateways follow within \
             10 seconds"
        )),
    }
    Ok(())
}
