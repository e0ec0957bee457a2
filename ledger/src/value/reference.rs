//! References of payments: how they are stored, and when two are the same.
//!
//! Stored trimmed and composed (Unicode NFC), compared without case and without regard to form (NFKC): `inv-7`, ` INV-7` and the
//! full-width `ＩＮＶ－７` are one payment, and so are both Unicode spellings of `café`. Invisible characters are refused, because two references that look the same would be two credits.

use unicase::UniCase;
use unicode_normalization::UnicodeNormalization;

use crate::Refusal;
use crate::value::text::{check_text, is_unseen};

const MAX_CHARS: usize = 200;

/// The stored spelling.
pub(crate) fn normal(text: &str) -> String {
    text.trim().nfc().collect()
}

/// Equal for equivalent references: the compatibility caseless match of the Unicode standard. Folding case can decompose again,
/// hence twice.
pub(crate) fn folded(text: &str) -> String {
    let fold = |text: String| {
        UniCase::unicode(text)
            .to_folded_case()
            .nfkd()
            .collect::<String>()
    };
    fold(fold(text.trim().nfkd().collect()))
        .trim()
        .nfkc()
        .collect()
}

/// Whether two references are of one payment.
pub fn is_same_reference(one: &str, other: &str) -> bool {
    folded(one) == folded(other)
}

/// How the references of redeemed vouchers begin.
const OF_VOUCHERS: &str = "voucher:";

/// How the references of wishes of auto top-up begin.
pub(crate) const OF_WISHES: &str = "auto-top-up:";

/// Refuses what cannot be a reference, or only a voucher's.
pub(crate) fn check(text: &str) -> Result<(), Refusal> {
    if folded(text).starts_with(OF_VOUCHERS) {
        let why = format!(
            "references that begin with {OF_VOUCHERS} are those of redeemed vouchers; choose another"
        );
        return Err(Refusal::NotApplicable(why));
    }
    check_shape(text)
}

/// Refuses what cannot be a reference.
pub(crate) fn check_shape(text: &str) -> Result<(), Refusal> {
    let normal = normal(text);
    check_text("a reference", &normal, MAX_CHARS, true)?;
    match normal.chars().find(|character| is_unseen(*character)) {
        None => Ok(()),
        Some(unseen) => {
            let code = u32::from(unseen);
            Err(Refusal::NotApplicable(format!(
                "a reference must not contain control or invisible characters; this one contains U+{code:04X}"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_one_reference_are_the_same() {
        for spelling in ["inv-7", "inv-7 ", "\tINV-7\n", "\u{a0}Inv-7\u{2003}"] {
            assert_eq!(folded(spelling), "inv-7");
        }
        assert_eq!(folded("cafe\u{301}"), folded("CAF\u{c9}"));
        assert_eq!(folded("Stra\u{df}e 9"), folded("STRASSE 9"));
        assert_eq!(
            folded("\u{3a3}\u{3a3}"),
            folded("\u{3c3}\u{3c2}"),
            "both small forms of sigma"
        );
        assert_ne!(folded("inv-7"), folded("inv 7"));
        assert_eq!(normal(" cafe\u{301} "), "caf\u{e9}");
    }

    #[test]
    fn what_cannot_be_seen_is_refused() {
        for text in [
            "",
            " \t",
            "a\u{7}b",
            "a\nb",
            "inv\u{200b}7",
            "inv\u{202e}7",
            "\u{feff}inv-7",
            "inv\u{ad}7",
            "inv-7\u{3164}",
            "inv\u{2800}7",
            "inv-7\u{ffa0}",
            "\u{115f}inv-7",
        ] {
            assert!(check(text).is_err(), "{text:?}");
        }
        for text in [
            "inv-7",
            " inv-7\n",
            "caf\u{e9}",
            "\u{4e2d}\u{6587} 7",
            &"x".repeat(200),
        ] {
            assert_eq!(check(text), Ok(()), "{text:?}");
        }
        assert!(check(&"x".repeat(201)).is_err());
    }

    proptest! {
        #[test]
        fn folding_does_not_depend_on_how_often_or_on_what_it_is_done(text in "\\PC{0,20}") {
            prop_assert_eq!(folded(&folded(&text)), folded(&text));
            prop_assert_eq!(folded(&normal(&text)), folded(&text));
        }
    }
}
