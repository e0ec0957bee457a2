//! Who may see what on the admin listener: the operator's token, or on loopback one that the gateway writes for whoever may read its
//! ledger's files.

use farebox::server::admin::{Guard, TokenError};
use farebox_ledger::AdminToken;

use super::Settings;

/// What follows without a token.
const LEFT_OUT: &str = "/status, /live and /metrics leave out key ids and webhook paths, for the console and farebox status, too";

/// The rule of the admin listener, with the operator's token if there is one.
pub(super) fn guard(settings: &Settings) -> Result<Guard, TokenError> {
    let address = settings.admin_listen.unwrap_or(settings.listen).ip();
    Guard::new(address, settings.admin_token_file.as_deref())
}

/// Writes the gateway's own token where nothing else would open the listener. One that cannot be written stops no sale.
pub(super) fn write(settings: &Settings, guard: Guard) -> (Guard, Option<AdminToken>) {
    if guard != Guard::Loopback(None) || settings.admin_listen.is_none() {
        return (guard, None);
    }
    let Some(file) = settings.ledger.admin_token_file(settings.state.as_deref()) else {
        tracing::info!("no admin token without --state or --admin-token-file: {LEFT_OUT}");
        return (guard, None);
    };
    match AdminToken::write(file.clone()) {
        Ok(token) => (Guard::with_own(token.reveal()), Some(token)),
        Err(error) => {
            let file = file.display();
            tracing::warn!(
                "no admin token, {file} cannot be written ({error}): {LEFT_OUT}; let the gateway write there and start it again, or set \
                 --admin-token-file"
            );
            (guard, None)
        }
    }
}
