//! Money: whole picodollars (1e-12 USD) in an `i64`; checked, never a float.

/// An amount of money, in picodollars. May be negative in journal entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Amount(i64);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// From picodollars.
    #[must_use]
    pub const fn from_picos(picos: i64) -> Self {
        Self(picos)
    }

    /// As picodollars.
    #[must_use]
    pub const fn picos(self) -> i64 {
        self.0
    }
}
