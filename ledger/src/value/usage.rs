//! What is counted of a request: one table, from which come the counts, their names, and whatever goes through all of them.

use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

macro_rules! counts {
    ($($(#[$about:meta])+ $kind:ident => $(#[$serde:meta])* $count:ident;)+) => {
        /// What a count is of.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum UsageKind { $($(#[$about])+ $kind),+ }

        /// Disjoint counts: no token is in two of them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Usage { $($(#[$about])+ $(#[$serde])* pub $count: u64),+ }

        impl UsageKind {
            /// All of them; first those of tokens.
            pub const ALL: [Self; 9] = [$(Self::$kind),+];

            /// Its name, in columns and documents.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => stringify!($count)),+ }
            }
        }

        impl Usage {
            /// Both, made one count by count.
            #[must_use]
            pub fn zip(self, other: Self, both: impl Fn(u64, u64) -> u64) -> Self {
                Self { $($count: both(self.$count, other.$count)),+ }
            }

            /// The same; `None` if some counts cannot be made one.
            pub fn try_zip(self, other: Self, both: impl Fn(u64, u64) -> Option<u64>) -> Option<Self> {
                Some(Self { $($count: both(self.$count, other.$count)?),+ })
            }
        }

        impl Index<UsageKind> for Usage {
            type Output = u64;

            fn index(&self, kind: UsageKind) -> &u64 {
                match kind { $(UsageKind::$kind => &self.$count),+ }
            }
        }

        impl IndexMut<UsageKind> for Usage {
            fn index_mut(&mut self, kind: UsageKind) -> &mut u64 {
                match kind { $(UsageKind::$kind => &mut self.$count),+ }
            }
        }
    };
}

counts! {
    /// Fresh input tokens: neither read from nor written to a cache.
    Input => input;
    /// Input tokens read from a cache.
    CacheRead => cache_read;
    /// Input tokens written to a cache for the default time.
    CacheWrite => cache_write;
    /// Input tokens written to a cache for one hour.
    CacheWrite1h => cache_write_1h;
    /// Input tokens written to a cache for twelve hours.
    CacheWrite12h => #[serde(skip_serializing_if = "is_zero")] cache_write_12h;
    /// Output tokens, except reasoning that is priced separately.
    Output => output;
    /// Reasoning tokens that are not in `output`.
    Reasoning => reasoning;
    /// Pictures, if they are priced each.
    Images => images;
    /// Calls of tools that the provider runs.
    Calls => #[serde(skip_serializing_if = "is_zero")] calls;
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde passes it")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl UsageKind {
    /// Those of tokens.
    pub const TOKENS: &[Self] = Self::ALL.split_at(7).0;
    /// Those of the first version, in the order in which tables have them and every bill hashes them. Frozen: later ones are facts of
    /// a bill, and come last in what has columns.
    pub const FIRST: [Self; 7] = [
        Self::Input,
        Self::CacheRead,
        Self::CacheWrite,
        Self::CacheWrite1h,
        Self::Output,
        Self::Reasoning,
        Self::Images,
    ];
    /// Those that came later.
    pub(crate) const LATER: [Self; 2] = [Self::CacheWrite12h, Self::Calls];
}

impl Usage {
    /// Those that every bill hashes.
    pub(crate) fn first(&self) -> [u64; 7] {
        UsageKind::FIRST.map(|kind| self[kind])
    }

    /// All input tokens, from and to a cache as well.
    pub const fn prompt(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_written())
    }

    /// Input tokens written to a cache, for however long.
    pub const fn cache_written(&self) -> u64 {
        self.cache_write
            .saturating_add(self.cache_write_1h)
            .saturating_add(self.cache_write_12h)
    }

    /// All output tokens, reasoning included.
    pub const fn all_output(&self) -> u64 {
        self.output.saturating_add(self.reasoning)
    }

    /// The sum of both, count by count; a count that does not fit stays at its largest.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        self.zip(more, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hashed_is_frozen() {
        let names = UsageKind::FIRST.map(UsageKind::name);
        let frozen = [
            "input",
            "cache_read",
            "cache_write",
            "cache_write_1h",
            "output",
            "reasoning",
            "images",
        ];
        assert_eq!(names, frozen);
        let mut all = [UsageKind::FIRST.as_slice(), &UsageKind::LATER].concat();
        all.sort_unstable();
        assert_eq!(all, UsageKind::ALL);
        assert!(UsageKind::TOKENS.ends_with(&[UsageKind::Output, UsageKind::Reasoning]));
    }
}
