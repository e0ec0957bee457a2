//! The name of a run: requests with the same one are summed together. A fact of their bills, so that it outlives a crash.

use std::fmt;
use std::str::FromStr;

use crate::value::text::check_label;
use crate::{Bill, Refusal};

/// A name that a customer gives to requests that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunName(String);

impl RunName {
    /// Characters of the longest.
    const MOST_CHARS: usize = 64;
    /// The bill's fact with it.
    pub const FACT: &str = "run";

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl FromStr for RunName {
    type Err = Refusal;

    /// # Errors
    /// For nothing, for more than 64 characters, for what cannot be shown, and for a secret: the journal would never forget it.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        check_label("a run's name", text, Self::MOST_CHARS, true)?;
        Ok(Self(text.trim().to_owned()))
    }
}

impl Bill {
    /// The run that its request belongs to.
    #[must_use]
    pub fn run(&self) -> Option<&str> {
        self.facts.get(RunName::FACT).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_64_characters_that_can_be_seen() {
        let most = "é".repeat(64);
        assert_eq!(most.parse(), Ok(RunName(most.clone())));
        assert_eq!(
            " nightly build 7 ".parse(),
            Ok(RunName("nightly build 7".to_owned()))
        );
        for bad in [
            "",
            "  ",
            "a\nb",
            "a\u{202e}b",
            "sk-fb-secret",
            &"x".repeat(65),
        ] {
            assert!(bad.parse::<RunName>().is_err(), "{bad:?}");
        }
    }
}
