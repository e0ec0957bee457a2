//! What a routes file names, whatever else is right or wrong with it.

use toml::{Table, Value};

/// The names in a routes file.
#[derive(Debug)]
pub struct NamesIn {
    /// Providers, with their `kind`.
    pub providers: Vec<(String, Option<String>)>,
    /// Slugs with a route.
    pub routes: Vec<String>,
}

impl NamesIn {
    /// Of a text; `None` if it is not TOML.
    #[must_use]
    pub fn routes(text: &str) -> Option<Self> {
        let table: Table = toml::from_str(text).ok()?;
        let text_of = |of: &Value, name: &str| of.get(name)?.as_str().map(str::to_owned);
        let providers = table.get("provider").and_then(Value::as_table);
        let routes = table.get("route").and_then(Value::as_array);
        Some(Self {
            providers: (providers.into_iter().flatten())
                .map(|(name, provider)| (name.clone(), text_of(provider, "kind")))
                .collect(),
            routes: (routes.into_iter().flatten())
                .filter_map(|route| text_of(route, "slug"))
                .collect(),
        })
    }
}
