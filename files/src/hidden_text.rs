//! A secret in memory, whose `Debug` shows nothing of it.

use std::fmt;

/// A secret of the operator's. `Debug` never prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct HiddenText(String);

impl HiddenText {
    /// Hides a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text in the clear, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for HiddenText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("HiddenText(…)")
    }
}
