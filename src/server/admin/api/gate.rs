//! Who may call `/api/v1`: only over an encrypted way, and only with a token. Wrong tokens are rate-limited for each peer.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use farebox_door::RequestSender;
use farebox_ledger::{
    Ledger, Perform as _, SecretHash, Timestamp, Token, TokenSecret, TokenStatus, lock,
};
use salvo::http::header::AUTHORIZATION;
use salvo::prelude::Request;
use tokio::time::Instant;

use super::answer::ApiError;

/// Wrong tokens of a peer that are looked up at once.
const BURST: u32 = 10;
/// How long it takes until one more is.
const EACH: Duration = Duration::from_secs(5);
/// Peers that are remembered; beyond, the memory begins anew.
const MOST: usize = 10_000;
/// How old the known tokens may be.
const FRESH: Duration = Duration::from_secs(1);

/// What is remembered about callers.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Until when each peer's wrong tokens are paid off. `None` are those whom a proxy does not name.
    wrong: Mutex<HashMap<Option<IpAddr>, Instant>>,
    /// The tokens that are active: at a locked address only these are looked up, so that a neighbour's wrong ones keep none out.
    active: tokio::sync::Mutex<Option<ActiveTokens>>,
}

#[derive(Debug)]
struct ActiveTokens {
    read_at: Instant,
    hashes: HashSet<SecretHash>,
}

impl Gate {
    /// The token of a request; `is_local` says that it came from this machine.
    ///
    /// # Errors
    /// 403 for a way that others can read, 401 without a good token, 429 after too many wrong ones.
    pub(super) async fn admit(
        &self,
        req: &Request,
        (sender, is_local): (RequestSender, bool),
        ledger: &dyn Ledger,
        now: Timestamp,
    ) -> Result<Token, ApiError> {
        check_private(sender, is_local)?;
        let peer = sender.peer();
        let sent = bearer(req).ok_or_else(|| {
            unauthorized(
                "token_missing",
                "send a token as \"Authorization: Bearer TOKEN\"; `farebox tokens create` makes one",
            )
        })?;
        let read = TokenSecret::parse(sent).map(|secret| secret.hash());
        if self.is_locked(peer) && !self.is_active(read.as_ref(), ledger, now).await {
            let message = "too many wrong tokens came from this address; wait a few seconds";
            let error = ApiError::new(429, "too_many_wrong_tokens", message);
            return Err(error.header("retry-after", "5"));
        }
        let hash = read.ok_or_else(|| {
            self.note_wrong(peer);
            let message =
                "this is no token of this API, or it is mistyped; they begin with fb-token-";
            unauthorized("invalid_token", message)
        })?;
        let token = ledger.find_token(hash).await?;
        let refused = match token.as_ref().map(|token| token.status(now)) {
            None => ("invalid_token", "this token is not known here"),
            Some(TokenStatus::Expired) => ("token_expired", "this token has expired"),
            Some(TokenStatus::Revoked) => ("token_revoked", "this token was revoked"),
            Some(TokenStatus::Active) => ("", ""),
        };
        match token {
            Some(token) if refused.0.is_empty() => Ok(token),
            _ => {
                self.note_wrong(peer);
                Err(unauthorized(refused.0, refused.1))
            }
        }
    }

    /// Whether a token is among the active ones, which are read again every second, by one request at a time.
    async fn is_active(
        &self,
        hash: Option<&SecretHash>,
        ledger: &dyn Ledger,
        now: Timestamp,
    ) -> bool {
        let Some(hash) = hash else { return false };
        let mut active = self.active.lock().await;
        let is_old = |known: &ActiveTokens| known.read_at.elapsed() >= FRESH;
        if active.as_ref().is_none_or(is_old) {
            // A ledger that does not answer leaves those of before; each of them is looked up all the same.
            if let Ok(tokens) = ledger.all::<Token>().await {
                let tokens = tokens.into_iter();
                let works = |token: &Token| token.status(now) == TokenStatus::Active;
                let hashes = tokens.filter(works).map(|token| token.secret).collect();
                let read_at = Instant::now();
                *active = Some(ActiveTokens { read_at, hashes });
            }
        }
        active
            .as_ref()
            .is_some_and(|known| known.hashes.contains(hash))
    }

    /// Whether a peer sent more wrong tokens than are looked up.
    fn is_locked(&self, peer: Option<IpAddr>) -> bool {
        let wrong = lock(&self.wrong);
        let until = wrong.get(&peer);
        until.is_some_and(|until| *until > Instant::now() + EACH * (BURST - 1))
    }

    fn note_wrong(&self, peer: Option<IpAddr>) {
        let mut wrong = lock(&self.wrong);
        let now = Instant::now();
        if wrong.len() >= MOST {
            wrong.retain(|_, until| *until > now);
        }
        if wrong.len() >= MOST {
            wrong.clear();
        }
        let until = wrong.entry(peer).or_insert(now);
        *until = (*until).max(now) + EACH;
    }
}

/// Refuses what somebody could have read on its way: it came over TLS, from this machine itself, or a trusted proxy took it over TLS.
fn check_private(sender: RequestSender, is_local: bool) -> Result<(), ApiError> {
    // What a proxy on this machine has passed on came from elsewhere, perhaps in the open.
    if sender.secure || is_local && !sender.forwarded {
        return Ok(());
    }
    Err(ApiError::new(
        403,
        "tls_required",
        "off loopback this is served over TLS only: start the gateway with --admin-tls-cert and --admin-tls-key, or behind a TLS proxy \
         that --trusted-proxy names and that says so in X-Forwarded-Proto; a token that was sent like this could be read on its way: \
         revoke it",
    ))
}

fn bearer(req: &Request) -> Option<&str> {
    let value = req.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn unauthorized(code: &'static str, message: &str) -> ApiError {
    ApiError::new(401, code, message).header("www-authenticate", "Bearer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn wrong_tokens_of_a_peer_are_paid_off_one_by_one() {
        let (gate, peer) = (Gate::default(), Some(IpAddr::from([192, 0, 2, 1])));
        for _ in 0..BURST {
            assert!(!gate.is_locked(peer));
            gate.note_wrong(peer);
        }
        assert!(gate.is_locked(peer));
        assert!(!gate.is_locked(Some(IpAddr::from([192, 0, 2, 2]))));
        tokio::time::advance(EACH).await;
        assert!(!gate.is_locked(peer));
        gate.note_wrong(peer);
        assert!(gate.is_locked(peer));
    }

    #[test]
    fn what_a_proxy_forwards_without_the_header_was_not_encrypted() {
        let of = |secure, forwarded| RequestSender {
            client: None,
            secure,
            forwarded,
        };
        assert!(check_private(of(true, true), false).is_ok());
        assert!(check_private(of(true, false), false).is_ok());
        assert!(
            check_private(of(false, false), true).is_ok(),
            "this machine"
        );
        assert!(
            check_private(of(false, true), true).is_err(),
            "a proxy here"
        );
        assert!(check_private(of(false, false), false).is_err());
    }
}
