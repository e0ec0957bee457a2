//! Dashboard sessions: the cookie, the token behind it, and which origins may post.
//!
//! A token is 256 random bits; the ledger keeps only its SHA-256. A session ends after twelve hours, and at once when its key is
//! blocked, revoked or rotated. It gives the right to look, and no other (`actor.rs`). Nothing here trusts the `Host` header.

use std::net::SocketAddr;

use farebox_ledger::{
    Key, KeyId, Ledger, LedgerError, Perform, Secret, SecretHash, Session, Timestamp,
};
use salvo::http::HeaderMap;
use salvo::http::header::{COOKIE, ORIGIN};

use super::actor::Viewer;
use crate::clock;
use crate::proxy::Failure;

/// How long a session lasts.
const LIFETIME_MS: i64 = 12 * 3_600 * 1_000;

/// A fresh token, for a session or a link.
pub fn new_token() -> String {
    hex::encode(clock::random::<32>())
}

/// The key that a pasted secret opens, and until when: a rotated secret opens nothing after its overlap.
///
/// # Errors
/// 401 for a secret that opens nothing, 403 for a key that is blocked or revoked.
pub(super) async fn key_of(
    ledger: &dyn Ledger,
    pasted: &str,
) -> Result<(Key, Option<Timestamp>), Failure> {
    let Ok((id, secret)) = Secret::parse(pasted.trim()) else {
        return Err(Failure::Unauthenticated(
            "this is not a key of this service, or it was not copied completely",
        ));
    };
    match ledger.find_key(id).await? {
        Some(key) if key.opens_with(secret.hash(), clock::now()) => {
            let overlap = key
                .old_secret
                // Only a secret that is nothing but the old one ends with the overlap.
                .filter(|(old, _)| *old == secret.hash() && key.secret != *old);
            key.check_looks().map_err(LedgerError::Refused)?;
            Ok((key, overlap.map(|(_, until)| until)))
        }
        _ => Err(Failure::Unauthenticated("this key is not known")),
    }
}

/// Opens a session for a key, which ends at `until` at the latest; returns the cookie's token.
///
/// # Errors
/// 403 for a key that was stopped meanwhile, 503 when the ledger cannot be written.
pub(super) async fn open(
    ledger: &dyn Ledger,
    key: KeyId,
    until: Option<Timestamp>,
) -> Result<String, Failure> {
    let (token, now) = (new_token(), clock::now());
    let lifetime = Timestamp::from_millis(now.millis().saturating_add(LIFETIME_MS));
    let expires = until.map_or(lifetime, |until| until.min(lifetime));
    ledger
        .perform(Session {
            token: SecretHash::of(&token),
            key,
            at: now,
            expires,
        })
        .await?;
    Ok(token)
}

/// Whoever a request's cookie identifies.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) async fn viewer(
    ledger: &dyn Ledger,
    headers: &HeaderMap,
    secure: bool,
) -> Result<Option<Viewer>, LedgerError> {
    let Some(token) = token(headers, secure).map(SecretHash::of) else {
        return Ok(None);
    };
    Ok(live(ledger, token).await?.map(|key| Viewer { key, token }))
}

/// The key of a live session.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) async fn live(
    ledger: &dyn Ledger,
    token: SecretHash,
) -> Result<Option<Key>, LedgerError> {
    let Some(id) = ledger.find_session(token, clock::now()).await? else {
        return Ok(None);
    };
    // A block ends the sessions it finds; one that was just being opened ends here.
    let key = ledger.find_key(id).await?;
    Ok(key.filter(|key| key.check_looks().is_ok()))
}

/// The token in a request's cookie.
fn token(headers: &HeaderMap, secure: bool) -> Option<&str> {
    ours(headers, secure)
        .find(|token| token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whether a request brings a cookie of ours, valid or not.
pub(super) fn has_cookie(headers: &HeaderMap, secure: bool) -> bool {
    ours(headers, secure).next().is_some()
}

fn ours(headers: &HeaderMap, secure: bool) -> impl Iterator<Item = &str> {
    let cookies = headers
        .get_all(COOKIE)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    let pairs = cookies
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs.filter_map(move |(name, token)| (name == cookie_name(secure)).then_some(token))
}

/// The header that stores a token in the browser; an empty one removes it.
pub(super) fn set_cookie(token: &str, secure: bool) -> String {
    let age = if token.is_empty() {
        0
    } else {
        LIFETIME_MS / 1_000
    };
    let end = if secure { "; Secure" } else { "" };
    format!(
        "{}={token}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{end}",
        cookie_name(secure)
    )
}

const fn cookie_name(secure: bool) -> &'static str {
    if secure { "__Host-farebox" } else { "farebox" }
}

/// Whether a POST comes from our own page: the public URL's origin, or the listener itself on this machine. A program that sends no
/// origin does not act for a foreign page.
pub(super) fn is_own_origin(headers: &HeaderMap, public_url: &str, address: SocketAddr) -> bool {
    let Some(sent) = headers.get(ORIGIN) else {
        let site = headers
            .get("sec-fetch-site")
            .and_then(|value| value.to_str().ok());
        return matches!(site, None | Some("same-origin" | "none"));
    };
    let Ok(sent) = sent.to_str() else {
        return false;
    };
    sent.eq_ignore_ascii_case(origin(public_url)) || is_loopback(sent, address)
}

fn is_loopback(sent: &str, address: SocketAddr) -> bool {
    // A listener on all addresses is reached over loopback as well.
    let here = address.ip().is_loopback() || address.ip().is_unspecified();
    let port = address.port();
    let local = ["127.0.0.1", "localhost", "[::1]"];
    here && ["http", "https"].iter().any(|scheme| {
        local
            .iter()
            .any(|host| sent == format!("{scheme}://{host}:{port}"))
    })
}

/// Scheme, host and port of a URL, as browsers write an origin.
fn origin(url: &str) -> &str {
    let after = url.find("://").map_or(0, |at| at + 3);
    let rest = url.get(after..).unwrap_or_default();
    let end = rest
        .find(['/', '?', '#'])
        .map_or(url.len(), |at| after + at);
    let origin = url.get(..end).unwrap_or(url);
    let usual_port = if origin.starts_with("https://") {
        ":443"
    } else {
        ":80"
    };
    origin.strip_suffix(usual_port).unwrap_or(origin)
}

#[cfg(test)]
mod tests {
    use salvo::http::HeaderValue;

    use super::*;

    fn accepts(sent: &'static str, public_url: &str, address: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, HeaderValue::from_static(sent));
        is_own_origin(&headers, public_url, address.parse().unwrap())
    }

    #[test]
    fn only_our_own_pages_post() {
        let public = "https://api.example.com:443/base/";
        assert!(accepts("https://api.example.com", public, "10.0.0.1:8080"));
        assert!(accepts("https://API.example.com", public, "10.0.0.1:8080"));
        assert!(accepts("http://localhost:8080", public, "127.0.0.1:8080"));
        assert!(accepts("http://127.0.0.1:8080", public, "0.0.0.0:8080"));
        for foreign in [
            "null",
            "https://evil.example",
            "https://api.example.com.evil.example",
            "http://api.example.com",
            "https://api.example.com:8443",
            "http://localhost:9999",
            "",
        ] {
            assert!(!accepts(foreign, public, "127.0.0.1:8080"), "{foreign}");
        }
        assert!(!accepts("http://localhost:8080", public, "10.0.0.1:8080"));
        let mut headers = HeaderMap::new();
        let address = "127.0.0.1:8080".parse().unwrap();
        assert!(
            is_own_origin(&headers, public, address),
            "a program sends no origin"
        );
        headers.insert("sec-fetch-site", HeaderValue::from_static("cross-site"));
        assert!(!is_own_origin(&headers, public, address));
    }

    #[test]
    fn cookies_are_bound_to_the_host_where_they_can_be() {
        assert_eq!(
            set_cookie("ab", true),
            "__Host-farebox=ab; Path=/; Max-Age=43200; HttpOnly; SameSite=Lax; Secure"
        );
        assert_eq!(
            set_cookie("", false),
            "farebox=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
        );
        let good = "0".repeat(64);
        let mut headers = HeaderMap::new();
        headers.insert(
            COOKIE,
            HeaderValue::from_str(&format!("a=b; farebox=short; farebox={good}; c")).unwrap(),
        );
        assert_eq!(token(&headers, false), Some(good.as_str()));
        assert_eq!(
            token(&headers, true),
            None,
            "a cookie that any sibling host could set does not count on https"
        );
        assert_ne!(new_token(), new_token());
    }
}
