//! Ids by which vendors know customers: a keyed hash, so that a vendor can tell a seller's customers apart and knows nothing else of them.
//!
//! The key is the ledger's identity, which is random, made once and never shown. So ids stay the same over restarts, copies and gateways,
//! and those of two ledgers have nothing in common.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::CustomerId;

/// What else is ever hashed with the same key must begin in another way.
const PURPOSE: &[u8] = b"farebox vendor id";
/// Bytes that a vendor is shown of a customer's hash, and of its end user's.
const SHOWN: usize = 8;
const SHOWN_USER: usize = 4;

/// Makes the ids of one ledger. `Debug` shows nothing of its key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct VendorIds([u8; 16]);

impl fmt::Debug for VendorIds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("VendorIds")
    }
}

impl VendorIds {
    /// Those of the ledger with this identity.
    #[must_use]
    pub const fn of_ledger(identity: [u8; 16]) -> Self {
        Self(identity)
    }

    /// A customer's: 16 hex digits; with an end user of the customer's own, a hyphen and 8 more.
    #[must_use]
    pub fn id(&self, customer: CustomerId, user: Option<&str>) -> String {
        let digest = self.digest(customer);
        let mut id = hex(&digest, SHOWN);
        if let Some(user) = user {
            // The customer's hash is the key: two customers' end users of one name are two.
            id.push('-');
            id.push_str(&hex(&hash(&digest, [user.as_bytes()]), SHOWN_USER));
        }
        id
    }

    /// Whether a vendor's id, which [`Self::customer_part`] was taken from, is this customer's.
    pub(crate) fn is_of(&self, part: &str, customer: CustomerId) -> bool {
        hex(&self.digest(customer), SHOWN) == part
    }

    /// The part of a vendor's id that says which customer it is, in whatever case somebody has copied it; `None` if it is no such id.
    pub(crate) fn customer_part(text: &str) -> Option<String> {
        let part = text.split('-').next()?;
        let is_hex = part.len() == 2 * SHOWN && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| part.to_ascii_lowercase())
    }

    fn digest(&self, customer: CustomerId) -> [u8; 32] {
        hash(&self.0, [PURPOSE, &customer.to_i64().to_be_bytes()])
    }
}

fn hash<const N: usize>(key: &[u8], parts: [&[u8]; N]) -> [u8; 32] {
    // A key of any length will do.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return [0; 32];
    };
    parts.into_iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

fn hex(digest: &[u8; 32], bytes: usize) -> String {
    hex::encode(digest.iter().take(bytes).copied().collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANNA: CustomerId = CustomerId::from_random(7);
    const OURS: VendorIds = VendorIds::of_ledger([7; 16]);

    #[test]
    fn an_id_is_always_the_same_and_another_one_for_each_customer_ledger_and_end_user() {
        // What a vendor has been told is never changed.
        assert_eq!(OURS.id(ANNA, None), "7a6b1800e5b80899");
        assert_eq!(OURS.id(ANNA, Some("u")), "7a6b1800e5b80899-6f04461a");
        let others = [
            OURS.id(CustomerId::from_random(8), None),
            VendorIds::of_ledger([8; 16]).id(ANNA, None),
        ];
        for other in others {
            assert_ne!(other, OURS.id(ANNA, None));
        }
        let of_user = |customer, user| OURS.id(customer, Some(user)).split_off(2 * SHOWN);
        assert_ne!(of_user(ANNA, "u"), of_user(ANNA, "v"));
        assert_ne!(of_user(ANNA, "u"), of_user(CustomerId::from_random(8), "u"));
    }

    #[test]
    fn only_the_first_part_says_which_customer_it_is() {
        let id = OURS.id(ANNA, Some("u"));
        let (first, _) = id.split_at(2 * SHOWN);
        for text in [&id, first, &format!("{first}-"), &id.to_ascii_uppercase()] {
            let part = VendorIds::customer_part(text).unwrap();
            assert!(OURS.is_of(&part, ANNA), "{text}");
            assert!(!OURS.is_of(&part, CustomerId::from_random(8)), "{text}");
        }
        for wrong in [
            "",
            "-",
            &first[1..],
            &format!("{first}0"),
            "g123456789abcdef",
        ] {
            assert_eq!(VendorIds::customer_part(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_key_is_not_shown() {
        assert_eq!(format!("{OURS:?}"), "VendorIds");
    }
}
