//! Vouchers: codes that are worth credit once, made in lots. Pure.
//!
//! A code reads `FB-XXXX-XXXX-XXXX-XXXX-XXXX`: nineteen symbols of Crockford's base 32 carry 95 random bits, the twentieth checks them.
//! The store keeps only the SHA-256 of its one canonical spelling.

use crate::rule::secret::shown_once;
use crate::value::text::check_text;
use crate::{
    Act, Amount, CustomerId, GrantKind, KeyId, LotId, OperationId, PlanTerms, Refusal, SecretHash,
    Timestamp,
};

/// Crockford's base 32, as it is printed.
const SYMBOLS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const RANDOM_SYMBOLS: usize = 19;
const ALL_SYMBOLS: usize = 20;
const PREFIX: &str = "FB";

shown_once! {
    /// A voucher's code in the clear. The only way out is [`VoucherCode::reveal`].
    VoucherCode
}

impl VoucherCode {
    /// A code from the caller's randomness, of which five bits of each byte count.
    #[must_use]
    pub fn generate(random: [u8; RANDOM_SYMBOLS]) -> Self {
        let digits: Vec<u8> = random.iter().map(|byte| byte & 31).collect();
        Self::of(&digits)
    }

    /// Reads a code as people type it: in either case, with or without prefix, dashes and spaces, and with look-alikes. `None` if it is
    /// incomplete, or its check symbol is another one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let typed: String = text
            .chars()
            .filter(|typed| !typed.is_whitespace() && !matches!(typed, '-' | '–' | '—' | '_'))
            .map(|typed| typed.to_ascii_uppercase())
            .collect();
        let bare = typed
            .strip_prefix(PREFIX)
            // A code without its prefix may itself begin with these two, which are symbols.
            .filter(|rest| rest.len() == ALL_SYMBOLS);
        let digits: Vec<u8> = bare
            .unwrap_or(&typed)
            .bytes()
            .map(digit_of)
            .collect::<Option<_>>()?;
        let (check, random) = digits.split_last()?;
        let is_whole = random.len() == RANDOM_SYMBOLS && check_of(random) == *check;
        is_whole.then(|| Self::of(random))
    }

    fn of(random: &[u8]) -> Self {
        let check = check_of(random);
        let mut text = PREFIX.to_owned();
        for (place, digit) in random.iter().chain([&check]).enumerate() {
            if place.is_multiple_of(4) {
                text.push('-');
            }
            let symbol = SYMBOLS.get(usize::from(*digit)).copied();
            text.push(char::from(symbol.unwrap_or(b'0')));
        }
        Self(text)
    }

    /// The code in the clear, for the one time it is shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// The value of a symbol, or of one that looks like it.
fn digit_of(symbol: u8) -> Option<u8> {
    let meant = match symbol {
        b'O' => b'0',
        b'I' | b'L' => b'1',
        other => other,
    };
    let place = SYMBOLS.iter().position(|known| *known == meant)?;
    u8::try_from(place).ok()
}

/// The symbol that makes the weighted sum of all zero, in the field of 32 elements. The weights differ from place to place, so it finds
/// every single wrong symbol and every two that changed places.
fn check_of(random: &[u8]) -> u8 {
    // Horner's rule: each digit is multiplied by the field's generator once for each place that follows it.
    random.iter().fold(0, |sum, digit| doubled(sum ^ digit))
}

/// A product with the generator, modulo x⁵ + x² + 1.
const fn doubled(element: u8) -> u8 {
    let shifted = (element & 31) << 1;
    if shifted & 32 == 0 {
        shifted
    } else {
        (shifted ^ 0b0010_0101) & 31
    }
}

/// Vouchers that were made together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lot {
    /// Public id.
    pub id: LotId,
    /// How many vouchers.
    pub count: u32,
    /// What each is worth.
    pub amount: Amount,
    /// First instant at which they are worth nothing.
    pub expires_at: Option<Timestamp>,
    /// Whether a customer can redeem only one of them.
    pub once_per_customer: bool,
    /// What they give: a promotional grant, or money of the pool as what was paid. Lots of before there were grants gave that.
    pub kind: GrantKind,
    /// What the period gives, of vouchers for one.
    pub plan: Option<Box<PlanTerms>>,
    /// Whether those that are left are worth nothing.
    pub is_void: bool,
    /// How many were redeemed.
    pub redeemed: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: String,
    /// The operation that made it.
    pub made_by: OperationId,
}

impl Lot {
    /// Whether its vouchers can be redeemed at an instant.
    pub fn is_good(&self, now: Timestamp) -> bool {
        !self.is_void && self.expires_at.is_none_or(|end| now < end)
    }
}

/// Vouchers to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLot {
    /// Chosen by the caller.
    pub id: LotId,
    /// Hashes of the codes, in the order of their numbers.
    pub codes: Vec<SecretHash>,
    /// What each is worth.
    pub amount: Amount,
    /// First instant at which they are worth nothing.
    pub expires_at: Option<Timestamp>,
    /// Whether a customer can redeem only one of them.
    pub once_per_customer: bool,
    /// What they give.
    pub kind: GrantKind,
    /// What the period gives, of vouchers for one.
    pub plan: Option<Box<PlanTerms>>,
    /// By whom and when.
    pub act: Act,
}

impl NewLot {
    /// Most vouchers of a lot.
    // A lot is made by one operation, and so in one transaction, for which all others wait.
    pub const MOST: usize = 10_000;

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_text("an actor", &self.act.actor, 200, false)?;
        if self.codes.is_empty() || self.codes.len() > Self::MOST {
            let text = format!("a lot has between 1 and {} vouchers", Self::MOST);
            return Err(Refusal::Limit(text));
        }
        if !self.amount.is_positive() || self.amount > Amount::MAX_TOP_UP {
            let most = Amount::MAX_TOP_UP;
            let text = format!("a voucher is worth more than zero and at most {most}");
            return Err(Refusal::Limit(text));
        }
        match (&self.plan, self.kind) {
            (Some(terms), GrantKind::Plan) if terms.allowance == self.amount => terms.check()?,
            (None, GrantKind::Promotional | GrantKind::Paid) => {}
            (Some(_) | None, GrantKind::Plan | GrantKind::Promotional | GrantKind::Paid) => {
                let text = "vouchers for a period of a plan are worth its allowance";
                return Err(Refusal::NotApplicable(text.to_owned()));
            }
        }
        Ok(())
    }

    pub(crate) fn lot(&self) -> Lot {
        Lot {
            id: self.id,
            count: u32::try_from(self.codes.len()).unwrap_or(u32::MAX),
            amount: self.amount,
            expires_at: self.expires_at,
            once_per_customer: self.once_per_customer,
            kind: self.kind,
            plan: self.plan.clone(),
            is_void: false,
            redeemed: 0,
            created_at: self.act.at,
            created_by: self.act.actor.clone(),
            made_by: self.act.operation,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Voucher {
    pub(crate) code: SecretHash,
    pub(crate) lot: LotId,
    /// Its number in the lot, from 1.
    pub(crate) number: u32,
    /// Who redeemed it, and the operation of the entry.
    pub(crate) redeemed: Option<(CustomerId, OperationId)>,
}

impl Voucher {
    /// The reference of its entry.
    pub(crate) fn reference(&self) -> String {
        format!("voucher:{}-{}", self.lot, self.number)
    }
}

/// A voucher to redeem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redemption {
    /// SHA-256 of the code in its one canonical spelling.
    pub code: SecretHash,
    /// The key whose customer gets what it is worth.
    pub key: KeyId,
    /// By whom and when.
    pub act: Act,
}

/// A lot of which what is left is worth nothing from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoidLot {
    /// The lot.
    pub lot: LotId,
    /// By whom and when.
    pub act: Act,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_code_has_one_spelling_and_many_that_are_forgiven() {
        let code = VoucherCode::generate([7; 19]);
        let text = code.reveal().to_owned();
        assert_eq!(text.len(), "FB-XXXX-XXXX-XXXX-XXXX-XXXX".len());
        assert!(text.starts_with("FB-7777-7777-7777-7777-777"));
        let zero = VoucherCode::generate([0; 19]);
        let one = VoucherCode::generate([1; 19]);
        let typed = |code: &VoucherCode, from, to| code.reveal().replace(from, to);
        for (code, typed) in [
            (&code, text.to_ascii_lowercase()),
            (&code, text.replace('-', "")),
            (&code, text.replace('-', " ").replace("FB", " ")),
            (&code, format!("  {} ", text.replace('-', "–"))),
            (&zero, typed(&zero, '0', "o")),
            (&one, typed(&one, '1', "l")),
            (&one, typed(&one, '1', "I")),
        ] {
            assert_eq!(VoucherCode::parse(&typed).as_ref(), Some(code), "{typed}");
        }
        for wrong in [
            "",
            "FB",
            "FB-",
            "U",
            &text[..26],
            &format!("{text}0"),
            "FB-é",
        ] {
            assert_eq!(VoucherCode::parse(wrong), None, "{wrong}");
        }
        assert!(!format!("{code:?}").contains("7777"));
    }

    proptest! {
        #[test]
        fn every_wrong_symbol_and_every_swap_is_found(random: [u8; 19], at in 0_usize..20, to in 0_u8..32, with in 0_usize..20) {
            let code = VoucherCode::generate(random);
            let symbols: Vec<u8> = code.reveal()[2..].bytes().filter(|byte| *byte != b'-').collect();
            let parsed = |symbols: &[u8]| VoucherCode::parse(std::str::from_utf8(symbols).unwrap());
            prop_assert_eq!(parsed(&symbols), Some(code.clone()));
            let mut wrong = symbols.clone();
            wrong[at] = SYMBOLS[usize::from(to)];
            prop_assert_eq!(parsed(&wrong).is_some(), wrong == symbols);
            let mut swapped = symbols.clone();
            swapped.swap(at, with);
            prop_assert_eq!(parsed(&swapped).is_some(), swapped == symbols);
        }
    }
}
