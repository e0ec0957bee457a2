//! `farebox health`: asks the gateway at `--admin-listen` whether it is ready for requests. It needs no token.

use crate::args::Args;
use crate::output::{self, CommandFailed};
use crate::{gateway, http};

pub(crate) async fn run(args: &Args) -> Result<(), CommandFailed> {
    let address = gateway::reachable(args.admin_listen);
    let answer = http::get(address, "/readyz", None, args.admin_tls_cert.as_deref());
    let answer = answer.await.map_err(|error| {
        CommandFailed::refused(format!("no gateway answers at {address} ({error})"))
    })?;
    let said = output::plain(answer.body.trim());
    if answer.status == 200 {
        output::print(&said);
        return Ok(());
    }
    Err(CommandFailed::refused(format!("not ready: {said}")))
}
