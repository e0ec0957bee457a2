//! Every key of every file, as data (`keys.toml`): readers refuse others, and hints, redaction and the tables of three pages are
//! made of it.

use std::ptr;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::suggest::did_you_mean;

/// The tables of all files.
pub static KEYS: LazyLock<ConfigTables> =
    LazyLock::new(|| toml::from_str(include_str!("keys.toml")).unwrap_or_default());

macro_rules! tables {
    ($($name:ident)*) => {
        /// The tables of all files, under their names in `keys.toml`.
        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct ConfigTables {
            /// Words in the paths of base URLs that reports show.
            pub(crate) path_words: Vec<String>,
            elsewhere: Vec<KeyHint>,
            $(#[doc = concat!("`", stringify!($name), "`.")] pub $name: ConfigTable,)*
        }

        impl ConfigTables {
            /// Each table with its name.
            pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &ConfigTable)> {
                [$((stringify!($name), &self.$name)),*].into_iter()
            }
        }
    };
}

tables! {
    catalog model limits price rates tier tier_price classes factor class_rates retired plan window price_list defaults defaults_key defaults_customer default_cap shop
    routes provider timeouts secret account route target breaker speed pin abilities webhook
    shop_file shop_gateway processor stripe offer
}

/// One table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigTable {
    place: String,
    /// The page that has its keys.
    pub page: Option<String>,
    /// It stands in a shop's file; the others in a gateway's two.
    #[serde(default)]
    shop: bool,
    #[serde(default)]
    rates: bool,
    #[serde(default)]
    former: Vec<KeyHint>,
    keys: Vec<ConfigKey>,
}

/// One key of a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigKey {
    /// As it is written.
    pub name: String,
    /// The page that has it, if that is not its table's.
    pub page: Option<String>,
    /// What may stand there, in words.
    #[serde(default, rename = "type")]
    pub kind: String,
    /// What holds without it, in words.
    #[serde(default)]
    pub default: String,
    /// What it means, with an example.
    #[serde(default)]
    pub meaning: String,
    table: Option<String>,
    #[serde(default)]
    hidden: bool,
    #[serde(default)]
    pub(crate) secret: bool,
    /// It means nothing at a provider without a network.
    #[serde(default)]
    pub remote: bool,
    #[serde(default)]
    synonyms: Vec<String>,
}

/// What to say of some keys that no table has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyHint {
    names: Vec<String>,
    hint: String,
    /// Of a shop's file.
    #[serde(default)]
    shop: bool,
}

fn hint_for<'h>(hints: &'h [KeyHint], name: &str, shop: bool) -> Option<&'h str> {
    let mut hints = hints.iter().filter(|hint| hint.shop == shop);
    hints.find_map(|hint| (hint.names.iter().any(|other| other == name)).then_some(&*hint.hint))
}

impl ConfigTables {
    fn files(&self) -> [&ConfigTable; 3] {
        [&self.catalog, &self.routes, &self.shop_file]
    }

    /// What stands at the top of any file.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &ConfigKey> {
        self.files().into_iter().flat_map(ConfigTable::keys)
    }

    /// The one of them that a word in a header means.
    pub(crate) fn root(&self, word: &str) -> Option<&ConfigKey> {
        let names: Vec<&str> = self.roots().map(|key| &*key.name).collect();
        let meant = did_you_mean(word, &names)?;
        self.roots().find(|key| key.name == meant)
    }
}

impl ConfigTable {
    /// Its keys, in the order of the page.
    pub fn keys(&self) -> impl Iterator<Item = &ConfigKey> {
        let rates = self.rates.then(|| &KEYS.rates.keys);
        rates.into_iter().flatten().chain(&self.keys)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.keys().map(|key| &*key.name)
    }

    /// Whether it has such a key.
    pub fn has(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// Its key for what other programs call so.
    pub(crate) fn meant(&self, name: &str) -> Option<&str> {
        let name = name.to_ascii_lowercase().replace('-', "_");
        let mut keys = self.keys();
        keys.find_map(|key| key.synonyms.contains(&name).then_some(&*key.name))
    }

    /// What does the job of a key that it had in earlier versions.
    pub(crate) fn former(&self, name: &str) -> Option<&str> {
        hint_for(&self.former, name, false)
    }

    /// What does the job of a key that other programs have, or where it stands.
    pub(crate) fn done_otherwise(&self, name: &str) -> Option<&'static str> {
        hint_for(&KEYS.elsewhere, name, self.shop)
    }

    /// Whether reports may show what stands in this key.
    pub(crate) fn shows(&self, name: &str) -> bool {
        self.keys().any(|key| key.name == name && !key.secret) || self.former(name).is_some()
    }

    /// Another file, in words, if a table of the top of this one belongs there.
    pub(crate) fn other_file(&self, name: &str) -> Option<String> {
        let files = KEYS.files();
        let tables =
            |file: &&ConfigTable| (file.keys()).any(|key| key.name == name && key.table.is_some());
        let other = files.into_iter().find(tables)?;
        let at_the_top = files.into_iter().any(|file| ptr::eq(file, self));
        at_the_top.then(|| match (self.shop, other.shop) {
            (false, false) => format!(
                "the other file, {}; if the two are swapped, see --catalog and --routes",
                other.place
            ),
            (true, _) => format!("{} of the gateway, another file", other.place),
            (false, true) => format!("{}, another program's file", other.place),
        })
    }

    /// The table in which a key of ours, or of other programs, belongs: one that stands in this one, or this one in it, before others.
    pub(crate) fn home_of(&self, name: &str) -> Option<&'static str> {
        let has = |(_, table): &(_, &ConfigTable)| {
            table.shop == self.shop
                && (table.has(name) || table.meant(name).is_some())
                && !KEYS.files().into_iter().any(|file| ptr::eq(file, *table))
        };
        let is_far = |(_, table): &(_, &ConfigTable)| !self.opens(table) && !table.opens(self);
        let home = KEYS.all().filter(has).min_by_key(is_far);
        home.map(|(_, table)| &*table.place)
    }

    fn opens(&self, other: &Self) -> bool {
        let mut inside = self.keys().filter_map(ConfigKey::inside);
        inside.any(|table| ptr::eq(table, other))
    }
}

impl ConfigKey {
    /// The table that stands there.
    fn inside(&self) -> Option<&'static ConfigTable> {
        let name = self.table.as_deref()?;
        KEYS.all()
            .find_map(|(other, table)| (other == name).then_some(table))
    }

    /// Whether it is a list of tables, with a header in double brackets for each.
    pub(crate) fn is_list(&self) -> bool {
        self.inside()
            .is_some_and(|table| table.place.starts_with("`[["))
    }

    /// The tables in it whose values reports may show.
    pub(crate) fn shown(&self) -> Vec<&'static ConfigTable> {
        let inside = self.inside().filter(|_| !self.hidden && !self.secret);
        let further = inside
            .into_iter()
            .flat_map(ConfigTable::keys)
            .flat_map(Self::shown);
        inside.into_iter().chain(further).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        let read = toml::from_str::<ConfigTables>(include_str!("keys.toml"));
        assert!(read.is_ok(), "{read:?}");
        for (_, table) in KEYS.all() {
            for key in table.keys() {
                let words = [&key.kind, &key.default, &key.meaning];
                assert!(
                    words
                        .iter()
                        .all(|word| word.is_empty() == key.meaning.is_empty()),
                    "{}: all words or none",
                    key.name
                );
                assert_eq!(
                    key.table.is_some(),
                    key.inside().is_some(),
                    "{}: there is no such table",
                    key.name
                );
                assert_eq!(
                    table.names().filter(|name| *name == key.name).count(),
                    1,
                    "{}",
                    key.name
                );
            }
        }
    }

    #[test]
    fn a_key_of_another_table_has_its_home_named() {
        for (table, name, home) in [
            (&KEYS.model, "max_output", Some("`limits`")),
            (&KEYS.limits, "aliases", Some("`[[model]]`")),
            (&KEYS.model, "reasoning", Some("`price`")),
            (&KEYS.route, "speed", Some("`targets`")),
            (&KEYS.target, "on_disconnect", Some("`[[route]]`")),
            (&KEYS.target, "stops", Some("`[provider.NAME]`")),
            (&KEYS.target, "sampling", Some("`abilities` of a target")),
            (&KEYS.target, "api_key", Some("`[provider.NAME]`")),
            (&KEYS.provider, "env", Some("a secret")),
            (&KEYS.catalog, "pay_url", Some("`[shop]`")),
            (&KEYS.model, "retired", None),
            (&KEYS.model, "colour", None),
            (&KEYS.shop_file, "credit", Some("`[[offer]]`")),
            (&KEYS.offer, "webhook_secret", Some("`[processor.stripe]`")),
            (&KEYS.offer, "max_output", None),
        ] {
            assert_eq!(table.home_of(name), home, "{name} in {}", table.place);
        }
    }
}
