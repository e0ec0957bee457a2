//! What a form asks for: an act's members with their words and readers, from the schema of its struct.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::value::{Count, one_of};

/// A member that a form asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// What it means.
    pub words: String,
    /// How what is typed is read.
    pub reads: Reads,
    /// Whether something must be typed.
    pub required: bool,
}

/// How what is typed is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reads {
    /// As it is.
    Text,
    /// A whole number above 0.
    Number,
    /// A whole number up to this one.
    UpTo(u64),
    /// Texts with commas or blanks between them.
    List,
    /// One of these.
    Choice(Vec<String>),
}

/// The choices of what is so or not.
const NO_YES: [&str; 2] = ["no", "yes"];

/// The schema of a type, in one piece.
pub fn schema<T: JsonSchema>() -> Schema {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    T::json_schema(&mut settings.into_generator())
}

impl Member {
    /// These members of a type.
    pub fn of<T: JsonSchema>(names: &[&str]) -> Vec<Self> {
        let schema = schema::<T>().to_value();
        let required = schema["required"].as_array();
        let member = |name: &&str| {
            let described = &schema["properties"][*name];
            let words = described["description"].as_str().unwrap_or_default();
            Self {
                name: (*name).to_owned(),
                words: words.to_owned(),
                reads: Reads::of(described),
                required: required.is_some_and(|all| all.contains(&json!(name))),
            }
        };
        names.iter().map(member).collect()
    }

    /// What was typed, as a body has it.
    ///
    /// # Errors
    /// What to type instead.
    pub fn value(&self, typed: &str) -> Result<Value, String> {
        match &self.reads {
            Reads::Text => Ok(json!(typed)),
            Reads::Number => typed.parse().map(|count: Count| json!(count)),
            Reads::UpTo(most) => match typed.parse::<u64>() {
                Ok(number) if number <= *most => Ok(json!(number)),
                _ => Err(format!("write a whole number between 0 and {most}")),
            },
            Reads::List => {
                let texts = typed.split([',', ' ']).filter(|text| !text.is_empty());
                Ok(texts.collect())
            }
            Reads::Choice(words) if words.iter().any(|word| word == typed) => {
                Ok(match *words == NO_YES {
                    true => json!(typed == "yes"),
                    false => json!(typed),
                })
            }
            Reads::Choice(words) => Err(format!("write {}", one_of(&json!(words)))),
        }
    }
}

impl Reads {
    fn of(schema: &Value) -> Self {
        if let Some(words) = schema["enum"].as_array() {
            let words = words.iter().filter_map(Value::as_str);
            return Self::Choice(words.map(str::to_owned).collect());
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.first(),
            kind => Some(kind),
        };
        match kind.and_then(Value::as_str) {
            Some("integer") => match schema["maximum"].as_u64() {
                None => Self::Number,
                Some(most) => Self::UpTo(most),
            },
            Some("array") => Self::List,
            Some("boolean") => Self::Choice(NO_YES.map(str::to_owned).to_vec()),
            _ => Self::Text,
        }
    }
}
