//! Signed callbacks: `t=SECONDS,v1=HEX` is HMAC-SHA256 over the seconds, a dot and the raw body. Old ones are refused, so that a
//! recorded one is worth nothing.

use farebox_toml::HiddenText;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// How far a callback's time may be from ours, in seconds.
const TOLERANCE: i64 = 300;

fn keyed(secret: &HiddenText, at: &str, body: &[u8]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.reveal().as_bytes()).ok()?;
    mac.update(at.as_bytes());
    mac.update(b".");
    mac.update(body);
    Some(mac)
}

/// Signs a body at an instant.
pub(crate) fn sign(secret: &HiddenText, at: i64, body: &[u8]) -> String {
    let at = at.to_string();
    let mac = keyed(secret, &at, body).map(|mac| hex::encode(mac.finalize().into_bytes()));
    format!("t={at},v1={}", mac.unwrap_or_default())
}

/// The parts of a header, by name.
fn parts(header: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts = header.split(',');
    parts.filter_map(|part| part.trim().split_once('='))
}

/// Whether a header may be a signature of this time: then its body is worth reading. Returns its time as it was sent.
///
/// # Errors
/// Why it is refused.
pub(crate) fn look(header: &str, now: i64) -> Result<&str, &'static str> {
    let at = parts(header).find_map(|(name, value)| (name == "t").then_some(value));
    let at = at.ok_or("the signature has no time")?;
    let seconds: i64 = at.parse().map_err(|_| "the signature has no time")?;
    if now.abs_diff(seconds) > TOLERANCE.unsigned_abs() {
        return Err("the signature is too old");
    }
    if !parts(header).any(|(name, value)| name == "v1" && value.len() == 64) {
        return Err("there is no signature of a version that is read here");
    }
    Ok(at)
}

/// Checks a signature with any of the secrets; they are several while one is replaced.
///
/// # Errors
/// Why it is refused.
pub(crate) fn check(
    header: &str,
    body: &[u8],
    secrets: &[HiddenText],
    now: i64,
) -> Result<(), &'static str> {
    let at = look(header, now)?;
    let given = parts(header).filter(|(name, _)| *name == "v1");
    let given: Vec<Vec<u8>> = given
        .filter_map(|(_, value)| hex::decode(value).ok())
        .collect();
    let is_ours = |secret: &HiddenText| {
        keyed(secret, at, body)
            .is_some_and(|mac| (given.iter()).any(|given| mac.clone().verify_slice(given).is_ok()))
    };
    if !secrets.iter().any(is_ours) {
        return Err("the signature is not of this endpoint's secret");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_body_that_was_signed_lately_counts() {
        let secrets = [HiddenText::new("whsec_new"), HiddenText::new("whsec_old")];
        let body = b"{\"id\":\"evt_1\"}";
        let signed = sign(&secrets[1], 1_000, body);
        assert_eq!(check(&signed, body, &secrets, 1_300), Ok(()));
        let both = format!("{signed},v0=00,v1=aa, v1=zz");
        assert_eq!(check(&both, body, &secrets, 700), Ok(()));
        for (header, body, now) in [
            (signed.clone(), &body[..], 1_301),
            (signed.clone(), &body[..], 699),
            (signed.clone(), &b"{\"id\":\"evt_2\"}"[..], 1_000),
            (signed.replace("t=1000", "t=1001"), &body[..], 1_000),
            (signed.replace("v1=", "v0="), &body[..], 1_000),
            (
                sign(&HiddenText::new("whsec"), 1_000, body),
                &body[..],
                1_000,
            ),
            ("t=1000,v1=".to_owned(), &body[..], 1_000),
            (String::new(), &body[..], 1_000),
        ] {
            assert!(check(&header, body, &secrets, now).is_err(), "{header}");
        }
        assert_eq!(look(&both, 700), Ok("1000"));
        for (header, now) in [(both.as_str(), 1_301), ("t=1000,v1=ab", 1_000), ("", 0)] {
            assert!(look(header, now).is_err(), "{header}");
        }
    }
}
