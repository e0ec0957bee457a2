//! Who may call `/api/v1`: only over an encrypted way, and only with a token. Wrong tokens are rate-limited for each peer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use farebox_ledger::{Ledger, SecretHash, Timestamp, Token, TokenSecret, TokenStatus};
use ipnet::IpNet;
use salvo::http::header::AUTHORIZATION;
use salvo::http::uri::Scheme;
use salvo::prelude::Request;
use tokio::time::Instant;

use super::answer::ApiError;
use crate::server::{connections, forwarded};

/// Wrong tokens of a peer that are looked up at once.
const BURST: u32 = 10;
/// How long it takes until one more is.
const EACH: Duration = Duration::from_secs(5);
/// Peers and good tokens that are remembered; beyond, the memory begins anew.
const MOST: usize = 10_000;

/// What is remembered about callers.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Until when each peer's wrong tokens are paid off.
    wrong: Mutex<HashMap<IpAddr, Instant>>,
    /// Tokens that were right lately: behind one proxy, the wrong ones of others do not keep them out.
    right: Mutex<HashMap<SecretHash, ()>>,
}

impl Gate {
    /// The token of a request.
    ///
    /// # Errors
    /// 403 for a way that others can read, 401 without a good token, 429 after too many wrong ones.
    pub(super) async fn admit(
        &self,
        req: &Request,
        trusted: &[IpNet],
        ledger: &dyn Ledger,
        now: Timestamp,
    ) -> Result<Token, ApiError> {
        let peer = peer(req, trusted)?;
        let sent = bearer(req).ok_or_else(|| {
            unauthorized(
                "token_missing",
                "send a token as \"Authorization: Bearer TOKEN\"; `farebox tokens create` makes one",
            )
        })?;
        let read = TokenSecret::parse(sent).map(|secret| secret.hash());
        let known = read.as_ref().is_some_and(|hash| self.is_right(hash));
        if !known && self.is_locked(peer) {
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
            Some(token) if refused.0.is_empty() => {
                let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
                if right.len() >= MOST {
                    right.clear();
                }
                right.insert(hash, ());
                Ok(token)
            }
            _ => {
                self.note_wrong(peer);
                let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
                right.remove(&hash);
                Err(unauthorized(refused.0, refused.1))
            }
        }
    }

    fn is_right(&self, hash: &SecretHash) -> bool {
        let right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        right.contains_key(hash)
    }

    /// Whether a peer sent more wrong tokens than are looked up.
    fn is_locked(&self, peer: IpAddr) -> bool {
        let wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let until = wrong.get(&peer);
        until.is_some_and(|until| *until > Instant::now() + EACH * (BURST - 1))
    }

    fn note_wrong(&self, peer: IpAddr) {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Where a request comes from, if nobody can read it on its way: TLS, this machine, or a trusted proxy that took it over TLS.
fn peer(req: &Request, trusted: &[IpNet]) -> Result<IpAddr, ApiError> {
    let secure = req.scheme() == &Scheme::HTTPS;
    let address = req.remote_addr().ip().map(|address| address.to_canonical());
    let origin = forwarded::origin(address, secure, req.headers(), trusted);
    let is_proxy = address.is_some_and(|address| trusted.iter().any(|net| net.contains(&address)));
    let says = req.headers().contains_key("x-forwarded-proto");
    let is_local = address.is_some_and(|address| address.is_loopback());
    let private = if is_proxy {
        origin.secure || !says
    } else {
        origin.secure || is_local
    };
    match origin.client {
        Some(client) if private => Ok(connections::peer(client)),
        _ => Err(ApiError::new(
            403,
            "tls_required",
            "off loopback this is served over TLS only: start the gateway with --admin-tls-cert and --admin-tls-key, or behind a \
             TLS proxy that --trusted-proxy names; a token that was sent like this could be read on its way: revoke it",
        )),
    }
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
        let (gate, peer) = (Gate::default(), IpAddr::from([192, 0, 2, 1]));
        for _ in 0..BURST {
            assert!(!gate.is_locked(peer));
            gate.note_wrong(peer);
        }
        assert!(gate.is_locked(peer));
        assert!(!gate.is_locked(IpAddr::from([192, 0, 2, 2])));
        tokio::time::advance(EACH).await;
        assert!(!gate.is_locked(peer));
        gate.note_wrong(peer);
        assert!(gate.is_locked(peer));
    }
}
