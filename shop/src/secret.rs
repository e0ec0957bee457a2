//! Secrets from files and variables: never printed, and read when they are needed, so that a replaced file counts at once.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

/// Where a secret is. The file never holds one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum SecretPlace {
    /// A file; its first line.
    File(PathBuf),
    /// A variable of the environment.
    Env(String),
}

/// A secret, whose `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct HiddenText(String);

impl HiddenText {
    /// Hides a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for HiddenText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("hidden")
    }
}

impl SecretPlace {
    /// Reads it.
    ///
    /// # Errors
    /// When it is not there, or empty; the text names the place and never the secret.
    pub(crate) fn read(&self) -> Result<HiddenText, String> {
        let text = match self {
            Self::File(path) => std::fs::read_to_string(path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?,
            Self::Env(name) => {
                std::env::var(name).map_err(|_| format!("the variable {name} is not set"))?
            }
        };
        match text.lines().next().map(str::trim) {
            Some(secret) if !secret.is_empty() => Ok(HiddenText::new(secret)),
            _ => Err(match self {
                Self::File(path) => format!("{} is empty", path.display()),
                Self::Env(name) => format!("the variable {name} is empty"),
            }),
        }
    }
}
