//! Fields of bodies, queries and documents, as tables: what is read, what is refused, and what the OpenAPI document says come from the
//! same rows.

use std::collections::BTreeMap;
use std::fmt;

use farebox_ledger::{Amount, CustomerId, Gross, Timestamp};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value, json};

use super::answer::ApiError;
use crate::config::did_you_mean;
use crate::selling::values::Setting;
use crate::selling::{dates, values};

/// One field.
#[derive(Debug, Clone, Copy)]
pub(super) struct ApiField {
    /// Its name in JSON.
    pub(super) name: &'static str,
    /// What it holds.
    pub(super) kind: FieldKind,
    /// What it is without a value.
    pub(super) absence: Absence,
    /// What it means, for people.
    pub(super) words: &'static str,
}

/// What stands where a field has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absence {
    /// It always has one.
    Never,
    /// The field is left out, or null.
    LeftOut,
    /// Null.
    Null,
}

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldKind {
    /// One line of text.
    Text,
    /// Text of any lines.
    Lines,
    /// USD, as text.
    Usd,
    /// USD with a sign, as text.
    Correction,
    /// An amount in a payment's own currency, as text.
    Gross,
    /// A whole number above 0.
    Count,
    /// Any whole number.
    Number,
    /// True or false.
    Flag,
    /// An instant.
    Instant,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A customer's id.
    Customer,
    /// Texts.
    Texts,
    /// Names and texts.
    Pairs,
    /// JsonMembers of their own.
    Object(&'static [ApiField]),
    /// Objects, each with these members.
    List(&'static [ApiField]),
    /// A document whose members are described elsewhere.
    Any,
}

/// A field that must be there.
pub(super) const fn always(name: &'static str, kind: FieldKind, words: &'static str) -> ApiField {
    field(name, kind, Absence::Never, words)
}

/// A field that may be left out.
pub(super) const fn maybe(name: &'static str, kind: FieldKind, words: &'static str) -> ApiField {
    field(name, kind, Absence::LeftOut, words)
}

/// A field that may be null.
pub(super) const fn or_null(name: &'static str, kind: FieldKind, words: &'static str) -> ApiField {
    field(name, kind, Absence::Null, words)
}

const fn field(
    name: &'static str,
    kind: FieldKind,
    absence: Absence,
    words: &'static str,
) -> ApiField {
    ApiField {
        name,
        kind,
        absence,
        words,
    }
}

/// The values of one body or query, checked against its table.
#[derive(Debug, Default)]
pub(super) struct FieldValues(Map<String, Value>);

impl FieldValues {
    /// The values of a JSON body; an empty one is an object without members.
    ///
    /// # Errors
    /// 400, which names what is wrong with it.
    pub(super) fn of_body(body: &[u8], fields: &'static [ApiField]) -> Result<Self, ApiError> {
        if body.iter().all(u8::is_ascii_whitespace) {
            return Self::check(Map::new(), fields);
        }
        let read: Result<JsonMembers, _> = serde_json::from_slice(body);
        let members = read.map_err(|error| {
            ApiError::bad(
                "invalid_json",
                format!("the body is no JSON object: {error}"),
            )
        })?;
        Self::check(members.0, fields)
    }

    /// The values of a query.
    ///
    /// # Errors
    /// 400, which names what is wrong with it.
    pub(super) fn of_query(
        pairs: impl Iterator<Item = (String, String)>,
        fields: &'static [ApiField],
    ) -> Result<Self, ApiError> {
        let mut members = Map::new();
        for (name, text) in pairs {
            let kind = fields.iter().find(|field| field.name == name);
            let value = match (kind.map(|field| field.kind), text.parse::<u32>()) {
                (Some(FieldKind::Count | FieldKind::Number), Ok(number)) => json!(number),
                _ => Value::String(text),
            };
            if members.insert(name.clone(), value).is_some() {
                return Err(of_field(&name, "it is there twice"));
            }
        }
        Self::check(members, fields)
    }

    fn check(members: Map<String, Value>, fields: &'static [ApiField]) -> Result<Self, ApiError> {
        let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
        if let Some(unknown) = members.keys().find(|name| !names.contains(&name.as_str())) {
            return Err(unknown_field(unknown, &names));
        }
        for field in fields {
            match members.get(field.name) {
                None | Some(Value::Null) if field.absence == Absence::Never => {
                    let message = format!("`{}` is missing: {}", field.name, field.words);
                    let error = ApiError::bad("missing_field", message);
                    return Err(error.with(json!({ "field": field.name })));
                }
                None | Some(Value::Null) => {}
                Some(value) => field.check(value)?,
            }
        }
        Ok(Self(members))
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Reads a text by a rule of [`values`].
    fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ApiError> {
        let text = self.get(name).and_then(Value::as_str);
        text.map(|text| read(text).map_err(|why| of_field(name, &why)))
            .transpose()
    }

    /// The setting of a field: not said, none, or a value.
    pub(super) fn setting<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Self, &str) -> Result<Option<T>, ApiError>,
    ) -> Result<Option<Setting<T>>, ApiError> {
        if self.0.contains_key(name) {
            read(self, name).map(|value| Some(Setting(value)))
        } else {
            Ok(None)
        }
    }

    /// A text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.as_str().map(str::to_owned)
    }

    /// A text that must be there.
    pub(super) fn required(&self, name: &str) -> String {
        self.text(name).unwrap_or_default()
    }

    /// USD that are paid.
    pub(super) fn usd(&self, name: &str) -> Result<Option<Amount>, ApiError> {
        self.read(name, values::payment)
    }

    /// USD with a sign.
    pub(super) fn correction(&self, name: &str) -> Result<Option<Amount>, ApiError> {
        self.read(name, values::correction)
    }

    /// An amount in a payment's own currency.
    pub(super) fn gross(&self, name: &str) -> Result<Option<Gross>, ApiError> {
        self.read(name, |text| {
            Gross::parse(text).map_err(|error| error.to_string())
        })
    }

    /// A whole number above 0.
    pub(super) fn count(&self, name: &str) -> Result<Option<u32>, ApiError> {
        let number = self.get(name).and_then(Value::as_u64);
        Ok(number.and_then(|number| u32::try_from(number).ok()))
    }

    /// True or false; false if it is not said.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// An instant, or the first one of a day.
    pub(super) fn instant(&self, name: &str) -> Result<Option<Timestamp>, ApiError> {
        self.read(name, dates::instant)
    }

    /// When something expires: an instant, or the end of a day.
    pub(super) fn expiry(&self, name: &str) -> Result<Option<Timestamp>, ApiError> {
        self.read(name, dates::expiry)
    }

    /// A customer's id.
    pub(super) fn customer(&self, name: &str) -> Result<Option<CustomerId>, ApiError> {
        self.read(name, values::customer_id)
    }

    /// Texts.
    pub(super) fn texts(&self, name: &str) -> Option<Vec<String>> {
        let list = self.get(name)?.as_array()?.iter();
        Some(list.filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// Names and texts.
    pub(super) fn pairs(&self, name: &str) -> BTreeMap<String, String> {
        let pairs = self.get(name).and_then(Value::as_object);
        let text =
            |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        pairs.into_iter().flatten().filter_map(text).collect()
    }

    /// The members of an object.
    pub(super) fn object(&self, name: &str) -> Option<Self> {
        self.get(name)?.as_object().cloned().map(Self)
    }
}

impl ApiField {
    /// Refuses a value of another kind, with what to write instead.
    fn check(&self, value: &Value) -> Result<(), ApiError> {
        let told = |ok: bool, what: &str| if ok { Ok(()) } else { Err(what.to_owned()) };
        let text = value.as_str();
        if let (FieldKind::Text, Some(Err(why))) = (self.kind, text.map(values::one_line)) {
            let message = format!("`{}`: {why}", self.name);
            let told = ApiError::new(422, "unprintable_character", message);
            return Err(told.with(json!({ "field": self.name })));
        }
        let amount = || text.ok_or_else(|| "write the amount as text, as in \"12.50\"".to_owned());
        let checked = match self.kind {
            FieldKind::Text | FieldKind::Lines => told(text.is_some(), "write text"),
            FieldKind::Usd => amount().and_then(|text| values::payment(text).map(drop)),
            FieldKind::Correction => amount().and_then(|text| values::correction(text).map(drop)),
            FieldKind::Gross => amount().and_then(|text| {
                Gross::parse(text)
                    .map(drop)
                    .map_err(|error| error.to_string())
            }),
            FieldKind::Count => {
                let number = value
                    .as_u64()
                    .is_some_and(|n| (1..=u64::from(u32::MAX)).contains(&n));
                told(number, "write a whole number above 0")
            }
            FieldKind::Number => told(value.is_u64(), "write a whole number"),
            FieldKind::Flag => told(value.is_boolean(), "write true or false"),
            FieldKind::Instant => (text.ok_or_else(|| "write a date as text".to_owned()))
                .and_then(|text| dates::instant(text).map(drop)),
            FieldKind::Word(words) => told(
                text.is_some_and(|text| words.contains(&text)),
                &format!("write {}", one_of(words)),
            ),
            FieldKind::Customer => (text.ok_or_else(|| "write a customer's id".to_owned()))
                .and_then(|text| values::customer_id(text).map(drop)),
            FieldKind::Texts => told(
                (value.as_array()).is_some_and(|list| list.iter().all(Value::is_string)),
                "write a list of texts",
            ),
            FieldKind::Pairs => told(
                (value.as_object()).is_some_and(|pairs| pairs.values().all(Value::is_string)),
                "write an object of texts",
            ),
            FieldKind::Object(fields) => match value.as_object() {
                Some(members) => return FieldValues::check(members.clone(), fields).map(drop),
                None => Err("write an object".to_owned()),
            },
            FieldKind::List(_) | FieldKind::Any => Ok(()),
        };
        checked.map_err(|why| of_field(self.name, &why))
    }
}

/// `a, b or c`.
fn one_of(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, first)) => format!("{} or {last}", first.join(", ")),
        None => String::new(),
    }
}

/// What is wrong with one field.
pub(super) fn of_field(name: &str, why: &str) -> ApiError {
    ApiError::bad("invalid_field", format!("`{name}`: {why}")).with(json!({ "field": name }))
}

fn unknown_field(unknown: &str, names: &[&str]) -> ApiError {
    let shown: String = unknown
        .chars()
        .filter(|c| !c.is_control())
        .take(60)
        .collect();
    let near = did_you_mean(unknown, names);
    let hint = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => "this request has none".to_owned(),
        None => format!("there are {}", names.join(", ")),
    };
    let message = format!("`{shown}` is not a field of this request; {hint}");
    ApiError::bad("unknown_field", message).with(json!({ "field": shown, "nearest": near }))
}

/// The members of an object, each once: of two amounts nobody can say which is meant.
struct JsonMembers(Map<String, Value>);

impl<'de> Deserialize<'de> for JsonMembers {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct EachOnce;
        impl<'de> Visitor<'de> for EachOnce {
            type Value = JsonMembers;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object with braces")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonMembers, A::Error> {
                let mut members = Map::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if members.insert(name.clone(), value).is_some() {
                        return Err(A::Error::custom(format!("{name:?} is in it twice")));
                    }
                }
                Ok(JsonMembers(members))
            }
        }
        input.deserialize_map(EachOnce)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIELDS: &[ApiField] = &[
        always("amount", FieldKind::Usd, "how much"),
        maybe("label", FieldKind::Text, "a name"),
        maybe("rate", FieldKind::Count, "requests each second"),
        maybe("kind", FieldKind::Word(&["refund", "dispute"]), "which way"),
    ];

    fn refused(body: &str) -> String {
        let error = FieldValues::of_body(body.as_bytes(), FIELDS).unwrap_err();
        assert_eq!(error.status, 400);
        error.message
    }

    #[test]
    fn a_refusal_says_what_to_write() {
        for (body, says) in [
            ("", "`amount` is missing: how much"),
            ("[]", "expected an object"),
            ("{", "EOF"),
            (r#"{"amount":12.5}"#, r#"as in "12.50""#),
            (r#"{"amount":"-1"}"#, "`amount`: "),
            (r#"{"amount":"1","amount":"2"}"#, "twice"),
            (r#"{"amount":"1","lable":"x"}"#, "did you mean `label`?"),
            (
                r#"{"amount":"1","zzzzzzzz":"x"}"#,
                "there are amount, label, rate, kind",
            ),
            (r#"{"amount":"1","rate":0}"#, "above 0"),
            (r#"{"amount":"1","kind":"x"}"#, "write refund or dispute"),
        ] {
            let told = refused(body);
            assert!(told.contains(says), "{body}: {told}");
        }
    }

    #[test]
    fn a_character_that_cannot_be_shown_is_named() {
        let body = br#"{"amount":"1","label":"a\nb"}"#;
        let error = FieldValues::of_body(body, FIELDS).unwrap_err();
        assert_eq!(error.status, 422);
        assert!(error.message.contains("U+000A"), "{}", error.message);
    }

    #[test]
    fn what_is_not_said_null_and_a_value_differ() {
        let read = |body: &str| FieldValues::of_body(body.as_bytes(), FIELDS).unwrap();
        let rate = |body: &str| read(body).setting("rate", FieldValues::count).unwrap();
        assert_eq!(rate(r#"{"amount":"1"}"#), None);
        assert_eq!(rate(r#"{"amount":"1","rate":null}"#), Some(Setting(None)));
        assert_eq!(rate(r#"{"amount":"1","rate":7}"#), Some(Setting(Some(7))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Err(error) = FieldValues::of_body(&bytes, FIELDS) {
                prop_assert_eq!(error.status, 400);
            }
        }
    }
}
