//! Which keys have ended, for a gateway that asks every few seconds: read once, and again only after a key or a customer was changed.

use std::collections::HashMap;
use std::sync::Mutex;

use super::key_cache::ActsSeen;
use super::{Opened, lists};
use crate::{KeyId, LedgerError, lock};

/// Most keys that are remembered; beyond that all are forgotten, and read again.
const MOST: usize = 16_384;

/// What was read of keys, valid until a key or customer is changed.
#[derive(Debug, Default)]
pub(super) struct EndedKeys(Mutex<ReadKeys>);

#[derive(Debug, Default)]
struct ReadKeys {
    as_of: Option<ActsSeen>,
    ended: HashMap<KeyId, bool>,
}

impl Opened {
    /// Those of these keys that have ended.
    pub(super) async fn ended_of(&self, keys: &[KeyId]) -> Result<Vec<KeyId>, LedgerError> {
        let as_of = self.remembered.as_ref().and_then(|cache| cache.acts());
        let (mut ended, unread) = self.ended.known(keys, as_of);
        if !unread.is_empty() {
            let asked = unread.clone();
            let read = self.readers.scan(move |conn, _| lists::ended(conn, &asked));
            let found = read.await?;
            self.ended.note(&unread, &found, as_of);
            ended.extend(found);
        }
        Ok(ended)
    }
}

impl EndedKeys {
    /// Keys that are known to have ended, and those of which nothing is known.
    pub(super) fn known(
        &self,
        keys: &[KeyId],
        as_of: Option<ActsSeen>,
    ) -> (Vec<KeyId>, Vec<KeyId>) {
        let read = lock(&self.0);
        if as_of.is_none() || read.as_of != as_of {
            return (Vec::new(), keys.to_vec());
        }
        let known = |key: &KeyId| read.ended.get(key).copied();
        let ended = keys.iter().filter(|key| known(key) == Some(true));
        let unread = keys.iter().filter(|key| known(key).is_none());
        (ended.copied().collect(), unread.copied().collect())
    }

    /// What was read is at least as new as `as_of`.
    fn note(&self, asked: &[KeyId], ended: &[KeyId], as_of: Option<ActsSeen>) {
        let mut read = lock(&self.0);
        if read.as_of != as_of || read.ended.len() > MOST {
            read.as_of = as_of;
            read.ended.clear();
        }
        read.ended.extend(asked.iter().map(|key| (*key, false)));
        read.ended.extend(ended.iter().map(|key| (*key, true)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_again_until_a_key_is_changed() {
        let (cache, keys) = (EndedKeys::default(), (1..=5_000).map(KeyId::from_random));
        let keys: Vec<KeyId> = keys.collect();
        let seen = |acts| Some(ActsSeen::after(acts));
        assert_eq!(cache.known(&keys, seen(1)), (vec![], keys.clone()));
        cache.note(&keys, &keys[..1], seen(1));
        assert_eq!(cache.known(&keys, seen(1)), (keys[..1].to_vec(), vec![]));
        assert_eq!(cache.known(&keys, seen(2)).1, keys, "a key was changed");
        assert_eq!(cache.known(&keys, None).1, keys, "nobody knows whether");
    }
}
