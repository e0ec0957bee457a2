//! Access to `/metrics`, `/status` and `/live`: open on loopback, otherwise only with the admin token.
//!
//! If a token is set, it is required on loopback too. Hashes are compared, so that the duration of a comparison reveals nothing.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use salvo::http::header::AUTHORIZATION;
use salvo::http::{HeaderValue, StatusCode};
use salvo::prelude::{FlowCtrl, Request, Response, handler};
use sha2::{Digest, Sha256};

use super::{Admin, text};
use crate::config::source;

/// A shorter token could be guessed.
const LEAST_CHARACTERS: usize = 16;
/// A longer file cannot be a token.
const LARGEST_FILE: u64 = 4_096;

/// The rule of one listener.
#[derive(Clone, PartialEq, Eq)]
pub enum Guard {
    /// Loopback without a token.
    Open,
    /// Never: another address, without a token.
    Closed,
    /// Only with this token; its SHA-256.
    Token([u8; 32]),
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Open => "Open",
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
                Self::Open
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

    fn admits(&self, token: Option<&str>) -> bool {
        match self {
            Self::Open => true,
            Self::Closed => false,
            Self::Token(hash) => token.is_some_and(|token| Sha256::digest(token) == *hash),
        }
    }
}

/// Requires the token in front of a path.
pub(super) struct TokenCheck {
    admin: Arc<Admin>,
}

#[handler]
impl TokenCheck {
    pub(super) fn new(admin: Arc<Admin>) -> Self {
        Self { admin }
    }

    async fn handle(&self, req: &mut Request, res: &mut Response, ctrl: &mut FlowCtrl) {
        let token = req
            .headers()
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| {
                let (scheme, token) = value.trim().split_once(' ')?;
                scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
            });
        if self.admin.guard.admits(token) {
            return;
        }
        ctrl.skip_rest();
        if self.admin.guard == Guard::Closed {
            let words = "this address is not loopback, so a token is needed: start the gateway with --admin-token-file\n";
            text(res, StatusCode::FORBIDDEN, words);
        } else {
            res.headers_mut()
                .insert("www-authenticate", HeaderValue::from_static("Bearer"));
            text(
                res,
                StatusCode::UNAUTHORIZED,
                "send the token of --admin-token-file as \"Authorization: Bearer <TOKEN>\"\n",
            );
        }
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
    fn loopback_is_open_and_other_addresses_need_a_token() {
        assert_eq!(guard("127.0.0.1", None), Ok(Guard::Open));
        assert_eq!(guard("::ffff:127.0.0.1", None), Ok(Guard::Open));
        assert_eq!(guard("0.0.0.0", None), Ok(Guard::Closed));
        assert!(!Guard::Closed.admits(Some("anything-at-all-1")));
        for address in ["127.0.0.1", "192.0.2.1"] {
            let with_token = guard(address, Some("a-token-of-length\n")).unwrap();
            assert!(with_token.admits(Some("a-token-of-length")));
            assert!(
                !with_token.admits(Some("a-token-of-lengt")) && !with_token.admits(None),
                "{address}"
            );
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
