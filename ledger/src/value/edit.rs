//! What an edit says of a setting.

use serde::{Deserialize, Deserializer};

/// What an edit says of a setting: nothing, that it has no value, or which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Said<T> {
    /// It stays as it is.
    #[default]
    Keep,
    /// It has none: the default counts.
    Clear,
    /// It has this one.
    Set(T),
}

impl<T> Said<T> {
    /// What there is afterwards, of what is known.
    #[must_use]
    pub fn over(self, known: Option<T>) -> Option<T> {
        match self {
            Self::Keep => known,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }

    /// The same of a value of another type.
    #[must_use]
    pub fn map<U>(self, into: impl FnOnce(T) -> U) -> Said<U> {
        match self {
            Self::Keep => Said::Keep,
            Self::Clear => Said::Clear,
            Self::Set(value) => Said::Set(into(value)),
        }
    }
}

/// Something is said: this value, or that there is none.
impl<T> From<Option<T>> for Said<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Clear, Self::Set)
    }
}

/// Of a member that is there: what is left out stays, which is the default of the edit.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Said<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Option::deserialize(input).map(Self::from)
    }
}
