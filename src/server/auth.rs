//! Authentication: the first credential with a valid secret decides.
//!
//! A wrong secret and an unknown key get the same answer, and a key's state is revealed only to callers with its secret.
//!
//! Rows of docs/interface.md: `key_is_stopped`, `authorization_bearer`, `native_client_sends_x_api_key`, `key_is_missing`,
//! `key_is_copied_wrongly`, `key_of_a_provider`, `key_is_an_old_one`.

use farebox_ledger::{Key, KeyId, Ledger, LedgerError, MarkUsed, Perform, Secret};
use farebox_protocol::{AuthStyle, Family};
use salvo::http::HeaderMap;
use salvo::http::header::AUTHORIZATION;
use salvo::prelude::{Depot, Request};

use super::{Front, connections};
use crate::clock;
use crate::proxy::{Failure, RefusedFacts};

/// Finds the key that a request carries, and checks that it is active. From then on the request is its customer's, and no stranger's.
///
/// Notes the key of a valid secret, also when it is refused: its owner is wanted in the log.
///
/// # Errors
/// 401 without a valid secret, 403 for a key that is not active, 503 when the ledger cannot be read.
pub(super) async fn authenticate(
    front: &Front,
    req: &Request,
    depot: &Depot,
    family: Family,
    known: &mut RefusedFacts,
) -> Result<Key, Failure> {
    let guest = connections::of(depot);
    let sent = credentials(req.headers(), family);
    let secrets: Vec<(KeyId, Secret)> = sent
        .iter()
        .filter_map(|text| Secret::parse(text).ok())
        .collect();
    if secrets.is_empty() {
        return Err(Failure::Unauthenticated(if sent.is_empty() {
            "no key was sent"
        } else {
            "this is not a key of this service, or it was not copied completely"
        }));
    }
    guest.iter().for_each(|guest| guest.claims());
    let found = find(front.ledger().as_ref(), &secrets, known).await;
    match (&found, guest) {
        (Ok(key), Some(guest)) => guest.belongs_to(key),
        (Err(_), Some(guest)) => guest.is_refused(),
        (_, None) => {}
    }
    found
}

async fn find(
    ledger: &dyn Ledger,
    secrets: &[(KeyId, Secret)],
    known: &mut RefusedFacts,
) -> Result<Key, Failure> {
    let now = clock::now();
    for (id, secret) in secrets {
        match ledger.find_key(*id).await? {
            Some(key) if key.opens_with(secret.hash(), now) => {
                known.key = Some(key.id);
                // Whoever calls has the secret: no token may replace it from now on.
                if key.is_unmarked() {
                    ledger.perform(MarkUsed { key: key.id, now }).await?;
                }
                key.check_acts(now).map_err(LedgerError::Refused)?;
                return Ok(key);
            }
            _ => {}
        }
    }
    Err(Failure::Unauthenticated("this key is not known"))
}

/// Every credential in a request, in order of precedence.
fn credentials(headers: &HeaderMap, family: Family) -> Vec<&str> {
    let texts = |name: &str| {
        headers
            .get_all(name)
            .into_iter()
            .filter_map(|value| value.to_str().ok())
    };
    // Native clients send either header, and some send both with different values.
    let styles = family.protocol().credentials.iter();
    let found = styles.map(|style| match style {
        AuthStyle::Bearer => texts(AUTHORIZATION.as_str())
            .filter_map(bearer_token)
            .collect::<Vec<_>>(),
        AuthStyle::ApiKey => texts("x-api-key").map(str::trim).collect(),
        AuthStyle::PlainApiKey => Vec::new(),
    });
    found.flatten().collect()
}

fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
