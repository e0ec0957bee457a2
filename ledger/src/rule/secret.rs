//! Texts that are shown once and stored as their SHA-256: the secrets of keys here, and the shape of those of tokens, vouchers and links.
//!
//! A key's secret reads `sk-fb-<public id>-<random>-<checksum>`: the public id finds the row, 43 base-62 characters carry 256 bits of
//! randomness, and the checksum detects a mistyped key without touching the store.

use std::fmt;

use sha2::{Digest, Sha256};
use zeroize::Zeroize as _;

use crate::KeyId;
use crate::value::text::SECRET_PREFIX;

/// Characters that carry 256 random bits.
// The fewest that have room for them in base 62.
pub(crate) const RANDOM_CHARS: usize = 43;
/// Characters that detect a mistyped secret.
// As many as 32 bits of a hash need: one mistyped secret in four billion passes, and is then refused by the ledger.
pub(crate) const CHECK_CHARS: usize = 6;
const BASE_62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Makes a type of a text that is shown once: it is never printed by `Debug`, and is wiped when it is dropped.
macro_rules! shown_once {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq)]
        pub struct $name(String);

        impl $name {
            /// What the store keeps.
            pub fn hash(&self) -> $crate::SecretHash {
                $crate::SecretHash::of(&self.0)
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                zeroize::Zeroize::zeroize(&mut self.0);
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(concat!(stringify!($name), "(…)"))
            }
        }
    };
}
pub(super) use shown_once;

shown_once! {
    /// A key's secret in the clear. The only way out is [`Secret::reveal`].
    Secret
}

impl Secret {
    /// A secret from the key's id and the caller's randomness.
    #[must_use]
    pub fn generate(id: KeyId, mut random: [u8; 32]) -> Self {
        let mut text = String::with_capacity(96);
        text.push_str(SECRET_PREFIX);
        text.push_str(&id.chars());
        text.push('-');
        text.push_str(&base_62(&mut random, RANDOM_CHARS));
        let check = checksum(&text);
        text.push('-');
        text.push_str(&check);
        Self(text)
    }

    /// Reads a secret without touching a store: prefix, lengths, characters and checksum must be right.
    ///
    /// # Errors
    /// [`SecretError`], whose text never repeats the input.
    pub fn parse(text: &str) -> Result<(KeyId, Self), SecretError> {
        let rest = text
            .strip_prefix(SECRET_PREFIX)
            .ok_or(SecretError::Prefix)?;
        let mut parts = rest.split('-');
        let (Some(id), Some(random), Some(check), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(SecretError::Shape);
        };
        let base_62 = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if random.len() != RANDOM_CHARS
            || check.len() != CHECK_CHARS
            || !base_62(random)
            || !base_62(check)
        {
            return Err(SecretError::Shape);
        }
        let key: KeyId = id.parse().map_err(|_| SecretError::Shape)?;
        let body = text
            .len()
            .checked_sub(CHECK_CHARS + 1)
            .and_then(|end| text.get(..end))
            .ok_or(SecretError::Shape)?;
        // The public id is case-insensitive; the secret is not, because it is hashed as written.
        if id != key.chars() || checksum(body) != check {
            return Err(SecretError::Checksum);
        }
        Ok((key, Self(text.to_owned())))
    }

    /// The secret in the clear, for the one time it is shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Why a text is not a secret. Never contains the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Another product's key, or not a key.
    #[error("keys of this gateway begin with sk-fb-")]
    Prefix,
    /// Truncated, or with characters that no secret has.
    #[error("this key is incomplete or has characters that do not belong to it")]
    Shape,
    /// One character is wrong.
    #[error("this key is mistyped: its checksum does not match")]
    Checksum,
}

/// SHA-256 of a secret, as stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SecretHash(pub [u8; 32]);

impl SecretHash {
    /// The hash of any secret text: a key's, a session's, a link's.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SecretHash(…)")
    }
}

/// The number in base 62, most significant digit first; the number is wiped.
pub(crate) fn base_62(number: &mut [u8], chars: usize) -> String {
    let mut text = vec![b'0'; chars];
    for place in text.iter_mut().rev() {
        let mut rest = 0_u16;
        for byte in number.iter_mut() {
            let value = (rest << 8) | u16::from(*byte);
            *byte = u8::try_from(value.div_euclid(62)).unwrap_or_default();
            rest = value.rem_euclid(62);
        }
        *place = BASE_62.get(usize::from(rest)).copied().unwrap_or(b'0');
    }
    number.zeroize();
    String::from_utf8(text).unwrap_or_default()
}

/// What a secret ends in.
pub(crate) fn checksum(body: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(body.as_bytes()).into();
    let mut head: Vec<u8> = digest.iter().copied().take(4).collect();
    base_62(&mut head, CHECK_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_checked_without_a_store() {
        let id = KeyId::from_random(0x1234_5678_9abc);
        let secret = Secret::generate(id, [0xff; 32]);
        let text = secret.reveal().to_owned();
        assert_eq!(text.len(), 6 + 10 + 1 + 43 + 1 + 6);
        let (found, parsed) = Secret::parse(&text).unwrap();
        assert_eq!((found, parsed.hash()), (id, secret.hash()));
        for place in 0..text.len() {
            let mut wrong = text.clone().into_bytes();
            wrong[place] = if wrong[place] == b'a' { b'b' } else { b'a' };
            assert!(
                Secret::parse(std::str::from_utf8(&wrong).unwrap()).is_err(),
                "{place}"
            );
        }
        let upper = text.replacen(&id.chars(), &id.chars().to_uppercase(), 1);
        assert_eq!(Secret::parse(&upper), Err(SecretError::Checksum));
        for wrong in [
            "",
            "sk-fb-",
            "sk-ant-x",
            "sk-fb---",
            &text[..60],
            &format!("{text}x"),
            &format!("{text}-x"),
            " sk-fb-",
        ] {
            assert!(Secret::parse(wrong).is_err(), "{wrong}");
        }
        assert!(!format!("{secret:?}{:?}", secret.hash()).contains(&text[20..40]));
        assert_ne!(Secret::generate(id, [0; 32]), Secret::generate(id, [1; 32]));
    }
}
