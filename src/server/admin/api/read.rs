//! Reads bodies and queries. What is refused, and what to write instead, says the schema of the type that is read.

use farebox_door::JsonMembers;
use farebox_selling::value::{ONE_LINE, one_of};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::answer::ApiError;
use crate::config::did_you_mean;

/// The members of a body or a query.
pub(super) type SentMembers = Map<String, Value>;

/// The members of a JSON body; an empty one is an object without members.
///
/// # Errors
/// 400, which names what is wrong with it.
pub(super) fn body(body: &[u8], schema: &Value) -> Result<SentMembers, ApiError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return check(Map::new(), schema);
    }
    let read: Result<JsonMembers<Value>, _> = serde_json::from_slice(body);
    let members = read.map_err(|error| {
        ApiError::bad(
            "invalid_json",
            format!("the body is no JSON object: {error}"),
        )
    })?;
    check(members.0.into_iter().collect(), schema)
}

/// The members of a query.
///
/// # Errors
/// 400, which names what is wrong with it.
pub(super) fn query(
    pairs: impl Iterator<Item = (String, String)>,
    schema: &Value,
) -> Result<SentMembers, ApiError> {
    let mut members = Map::new();
    for (name, text) in pairs {
        let is_number = kind(&schema["properties"][&name]) == "integer";
        let value = match text.parse::<u32>() {
            Ok(number) if is_number => json!(number),
            _ => Value::String(text),
        };
        if members.insert(name.clone(), value).is_some() {
            return Err(of_field(&name, "it is there twice"));
        }
    }
    check(members, schema)
}

/// Reads what was checked.
///
/// # Errors
/// 400 or 422, which name the member that cannot be read.
pub(super) fn read<T: DeserializeOwned>(members: &SentMembers) -> Result<T, ApiError> {
    serde_path_to_error::deserialize(members).map_err(|error| {
        let path = error.path().to_string();
        let name = path.rsplit('.').next().unwrap_or_default();
        let why = error.inner().to_string();
        let told = of_field(name, &why);
        match why.starts_with(ONE_LINE) {
            true => ApiError {
                status: 422,
                code: "unprintable_character",
                ..told
            },
            false => told,
        }
    })
}

fn check(members: SentMembers, schema: &Value) -> Result<SentMembers, ApiError> {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    if let Some(unknown) = members.keys().find(|name| !properties.contains_key(*name)) {
        let names: Vec<&str> = properties.keys().map(String::as_str).collect();
        return Err(unknown_field(unknown, &names));
    }
    let required = schema["required"].as_array();
    for (name, described) in properties {
        match members.get(name) {
            None | Some(Value::Null) if required.is_some_and(|all| all.contains(&json!(name))) => {
                let words = described["description"].as_str().unwrap_or_default();
                let message = format!("`{name}` is missing: {words}");
                let error = ApiError::bad("missing_field", message);
                return Err(error.with(json!({ "field": name })));
            }
            None | Some(Value::Null) => {}
            Some(Value::Object(inner)) if described.get("properties").is_some() => {
                check(inner.clone(), described)?;
            }
            Some(value) => {
                amiss(value, described).map_or(Ok(()), |why| Err(of_field(name, &why)))?
            }
        }
    }
    Ok(members)
}

/// What a schema wants beside null.
fn kind(schema: &Value) -> &str {
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().unwrap_or(&Value::Null),
        kind => kind,
    };
    kind.as_str().unwrap_or_default()
}

/// What to write instead of a value of another kind.
fn amiss(value: &Value, schema: &Value) -> Option<String> {
    if let Some(words) = schema["enum"].as_array() {
        return (!words.contains(value)).then(|| format!("write {}", one_of(&schema["enum"])));
    }
    if let (Some(least), Some(most)) = (schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
        let fits = (value.as_u64()).is_some_and(|number| (least..=most).contains(&number));
        return (!fits).then(|| format!("write a whole number between {least} and {most}"));
    }
    let pattern = schema["pattern"].as_str().unwrap_or_default();
    let (fits, wanted) = match kind(schema) {
        "string" if pattern.starts_with("^c_") => (value.is_string(), "write a customer's id"),
        "string" if !pattern.is_empty() => (
            value.is_string(),
            "write the amount as text, as in \"12.50\"",
        ),
        "string" => (value.is_string(), "write text"),
        "integer" => (
            value
                .as_u64()
                .is_some_and(|n| (1..=u64::from(u32::MAX)).contains(&n)),
            "write a whole number above 0",
        ),
        "boolean" => (value.is_boolean(), "write true or false"),
        "array" => (
            value
                .as_array()
                .is_some_and(|list| list.iter().all(Value::is_string)),
            "write a list of texts",
        ),
        _ if schema.get("properties").is_some() => (false, "write an object"),
        _ => (
            value
                .as_object()
                .is_some_and(|pairs| pairs.values().all(Value::is_string)),
            "write an object of texts",
        ),
    };
    (!fits).then(|| wanted.to_owned())
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

#[cfg(test)]
mod tests {
    use farebox_ledger::{CapInterval, Said};
    use farebox_selling::value::{Count, OneLine, Usd, Word};
    use proptest::prelude::*;
    use schemars::JsonSchema;

    use super::super::route::described;
    use super::*;

    #[derive(Debug, serde::Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "whether they can be read is what is asked")]
    struct Planted {
        /// how much
        amount: Usd,
        /// a name
        label: Option<OneLine>,
        /// requests each second
        #[serde(default)]
        #[schemars(with = "Option<Count>")]
        rate: Said<Count>,
        /// which way
        kind: Option<Word<CapInterval>>,
    }

    fn planted(bytes: &[u8]) -> Result<Planted, ApiError> {
        read(&body(bytes, &described::<Planted>().1)?)
    }

    fn refused(body: &str) -> String {
        let error = planted(body.as_bytes()).unwrap_err();
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
            (
                r#"{"amount":"1","kind":"x"}"#,
                "write day, week, month or total",
            ),
        ] {
            let told = refused(body);
            assert!(told.contains(says), "{body}: {told}");
        }
    }

    #[test]
    fn a_character_that_cannot_be_shown_is_named() {
        let error = planted(br#"{"amount":"1","label":"a\nb"}"#).unwrap_err();
        assert_eq!(error.status, 422);
        assert!(error.message.contains("U+000A"), "{}", error.message);
    }

    #[test]
    fn what_is_not_said_null_and_a_value_differ() {
        let rate = |body: &str| planted(body.as_bytes()).unwrap().rate;
        assert_eq!(rate(r#"{"amount":"1"}"#), Said::Keep);
        assert_eq!(rate(r#"{"amount":"1","rate":null}"#), Said::Clear);
        assert_eq!(rate(r#"{"amount":"1","rate":7}"#), Said::Set(Count(7)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Err(error) = planted(&bytes) {
                prop_assert_eq!(error.status, 400);
            }
        }
    }
}
