//! Access to `/metrics`, `/status`, `/live` and `/requests/{id}`: with the admin token whole; on loopback without one shortened, as
//! [`Sight`] says; elsewhere not at all.
//!
//! If the operator sets a token, it is required on loopback too. Hashes are compared, so that the duration of a comparison reveals nothing.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use salvo::http::header::AUTHORIZATION;
use salvo::http::{HeaderValue, StatusCode};
use salvo::prelude::{Depot, FlowCtrl, Request, Response, handler};
use sha2::{Digest, Sha256};

use super::sight::Sight;
use super::{Admin, text};
use crate::config::source;

/// A shorter token could be guessed.
// In hex they are 64 bits, which nobody tries out over a network.
const LEAST_CHARACTERS: usize = 16;
/// A longer file cannot be a token.
const LARGEST_FILE: u64 = 4_096;

/// The rule of one listener.
#[derive(Clone, PartialEq, Eq)]
pub enum Guard {
    /// Loopback: the token of this start, as its SHA-256, shows everything. `None` if it could not be written: nothing does.
    Loopback(Option<[u8; 32]>),
    /// Never: another address, without a token.
    Closed,
    /// Only with this token; its SHA-256.
    Token([u8; 32]),
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Loopback(_) => "Loopback(…)",
            Self::Closed => "Closed",
            Self::Token(_) => "Token(…)",
        })
    }
}

/// Why a token file cannot be used. Never shows the token.
#[derive(Debug, thiserror::Error)]
#[error("--admin-token-file {path}: {problem}")]
pub struct TokenError {
    path: String,
    problem: String,
}

impl Guard {
    /// The rule for a listener on `address`, with the token in `file` if there is one.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn new(address: IpAddr, file: Option<&Path>) -> Result<Self, TokenError> {
        let Some(file) = file else {
            return Ok(if address.to_canonical().is_loopback() {
                Self::Loopback(None)
            } else {
                Self::Closed
            });
        };
        let refuse = |problem: String| TokenError {
            path: file.display().to_string(),
            problem,
        };
        let content =
            source::content(file, LARGEST_FILE).map_err(|error| refuse(source::plain(&error)))?;
        let content = String::from_utf8_lossy(&content);
        let token = content.trim();
        if token.chars().count() < LEAST_CHARACTERS
            || !token.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err(refuse(format!(
                "it must contain one token and nothing else: one word of at least {LEAST_CHARACTERS} characters; `openssl rand -hex 24` makes one"
            )));
        }
        Ok(Self::Token(Sha256::digest(token).into()))
    }

    /// The rule for loopback with the token of this start.
    #[must_use]
    pub fn with_own(token: &str) -> Self {
        Self::Loopback(Some(Sha256::digest(token).into()))
    }

    /// What a request with this token sees; `None` if nothing.
    fn sight(&self, token: Option<&str>) -> Option<Sight> {
        match (self, token) {
            (Self::Loopback(_), None) => Some(Sight::Shortened),
            (Self::Loopback(Some(hash)) | Self::Token(hash), Some(token)) => {
                (Sha256::digest(token) == *hash).then_some(Sight::Whole)
            }
            (Self::Closed, _) | (Self::Token(_), None) | (Self::Loopback(None), Some(_)) => None,
        }
    }
}

/// Requires the token in front of a path, unless the path has something for everybody on loopback.
pub(super) struct TokenCheck {
    admin: Arc<Admin>,
    least: Sight,
}

#[handler]
impl TokenCheck {
    pub(super) fn new(admin: Arc<Admin>, least: Sight) -> Self {
        Self { admin, least }
    }

    async fn handle(
        &self,
        req: &mut Request,
        depot: &mut Depot,
        res: &mut Response,
        ctrl: &mut FlowCtrl,
    ) {
        let token = req
            .headers()
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| {
                let (scheme, token) = value.trim().split_once(' ')?;
                scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
            });
        let sight = self.admin.guard.sight(token);
        if let Some(sight) = sight.filter(|sight| *sight >= self.least) {
            depot.insert_typed(sight);
            return;
        }
        ctrl.skip_rest();
        let (status, words) = match self.admin.guard {
            Guard::Closed => (
                StatusCode::FORBIDDEN,
                "this address is not loopback, so a token is needed: start the gateway with --admin-token-file\n",
            ),
            Guard::Token(_) => (
                StatusCode::UNAUTHORIZED,
                "send the token of --admin-token-file as \"Authorization: Bearer <TOKEN>\"\n",
            ),
            Guard::Loopback(None) => (
                StatusCode::UNAUTHORIZED,
                "no token opens this: the gateway could not write one, and its log says why; start it with --admin-token-file\n",
            ),
            Guard::Loopback(Some(_)) => (
                StatusCode::UNAUTHORIZED,
                "send the token that the gateway wrote at its start, beside its ledger's lock or its --state, as \"Authorization: Bearer <TOKEN>\"\n",
            ),
        };
        if status == StatusCode::UNAUTHORIZED {
            res.headers_mut()
                .insert("www-authenticate", HeaderValue::from_static("Bearer"));
        }
        text(res, status, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(address: &str, token: Option<&str>) -> Result<Guard, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), token.unwrap_or_default()).unwrap();
        Guard::new(address.parse().unwrap(), token.map(|_| file.path()))
            .map_err(|error| error.problem)
    }

    #[test]
    fn loopback_is_shortened_without_a_token_and_other_addresses_need_one() {
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let nobody = guard(address, None).unwrap();
            assert_eq!(nobody, Guard::Loopback(None));
            assert_eq!(nobody.sight(None), Some(Sight::Shortened));
            assert_eq!(nobody.sight(Some("anything-at-all-1")), None);
        }
        let own = Guard::with_own("the-token-of-this-start");
        for (sent, sees) in [
            (None, Some(Sight::Shortened)),
            (Some("the-token-of-this-start"), Some(Sight::Whole)),
            (Some("the-token-of-this-star"), None),
            (Some(""), None),
        ] {
            assert_eq!(own.sight(sent), sees, "{sent:?}");
        }
        assert_eq!(format!("{own:?}"), "Loopback(…)");
        assert_eq!(guard("0.0.0.0", None), Ok(Guard::Closed));
        for sent in [None, Some("anything-at-all-1")] {
            assert_eq!(Guard::Closed.sight(sent), None);
        }
        for address in ["127.0.0.1", "192.0.2.1"] {
            let with_token = guard(address, Some("a-token-of-length\n")).unwrap();
            let sees = with_token.sight(Some("a-token-of-length"));
            assert_eq!(sees, Some(Sight::Whole), "{address}");
            for sent in [None, Some("a-token-of-lengt")] {
                assert_eq!(with_token.sight(sent), None, "{address}");
            }
            assert_eq!(format!("{with_token:?}"), "Token(…)");
        }
    }

    #[test]
    fn useless_tokens_are_refused_without_being_shown() {
        for token in [
            "",
            "short",
            "two words of enough length",
            &"x".repeat(5_000),
        ] {
            let problem = guard("127.0.0.1", Some(token)).unwrap_err();
            assert!(token.is_empty() || !problem.contains(token), "{problem}");
        }
        assert!(
            Guard::new(
                "127.0.0.1".parse().unwrap(),
                Some(Path::new("/nonexistent"))
            )
            .is_err()
        );
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("token");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let problem = Guard::new("127.0.0.1".parse().unwrap(), Some(&pipe))
            .unwrap_err()
            .problem;
        assert!(problem.contains("a pipe or a device"), "{problem}");
    }
}
