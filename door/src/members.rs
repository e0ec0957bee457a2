//! The members of a JSON object, each once: of two amounts nobody can say which is meant.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

/// An object of few members, in their order.
#[derive(Debug)]
pub struct JsonMembers<V>(pub Vec<(String, V)>);

struct EachOnce<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for JsonMembers<V> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_map(EachOnce(PhantomData))
    }
}

impl<'de, V: Deserialize<'de>> Visitor<'de> for EachOnce<V> {
    type Value = JsonMembers<V>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with braces")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonMembers<V>, A::Error> {
        let mut names = BTreeSet::new();
        let mut members = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, V>()? {
            if !names.insert(name.clone()) {
                return Err(A::Error::custom(format!("{name:?} is in it twice")));
            }
            members.push((name, value));
        }
        Ok(JsonMembers(members))
    }
}
