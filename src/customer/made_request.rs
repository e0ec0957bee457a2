//! What a program sends of a key that an owner key makes: read member by member, so that a slip is named and nothing is guessed.
//!
//! Amounts are read digit by digit, as JSON numbers or texts; they never pass through a float.

use std::collections::BTreeMap;
use std::time::Duration;

use farebox_door::JsonMembers;
use farebox_ledger::{Amount, Cap, CapInterval, KeySettings, MetadataPairs};
use farebox_protocol::BadRequest;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// The longest that a made key lives, and how long without a word: 30 days.
const LONGEST: u64 = 30 * 24 * 3_600;

/// So much of an unknown name is repeated.
const LONGEST_NAME: usize = 40;

/// A key to make.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NewRunKey {
    pub(super) label: String,
    pub(super) purse: Cap,
    pub(super) expires_in: Duration,
    pub(super) models: Option<Vec<String>>,
    pub(super) rate: Option<u32>,
    pub(super) metadata: Option<MetadataPairs>,
}

/// What to change of one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyChanges {
    pub(super) label: Option<String>,
    pub(super) limit: Option<Amount>,
    pub(super) limit_reset: Option<CapInterval>,
    pub(super) disabled: Option<bool>,
    pub(super) reissue: bool,
}

impl NewRunKey {
    /// Reads the body of a request with an owner key of these settings, whose models and rate bound what is made.
    pub(super) fn read(body: &[u8], owner: &KeySettings) -> Result<Self, BadRequest> {
        let known = "name, limit, limit_reset, expires_in, models, rate, metadata";
        let mut members = KeyMembers::read(body, known)?;
        let label = members.label()?.ok_or_else(|| {
            BadRequest::at(
                "name",
                "name the key: who or what will use it, as in \"run 17\"",
            )
        })?;
        let limit = members.limit()?.ok_or_else(|| {
            BadRequest::at(
                "limit",
                "say what the key may spend, in US dollars, as in 0.20",
            )
        })?;
        let expires_in =
            members.number("expires_in", LONGEST, "seconds, at most 2592000: 30 days")?;
        let rate = members.number("rate", u64::from(u32::MAX), "requests each second")?;
        let rate = rate.and_then(|rate| u32::try_from(rate).ok());
        let new = Self {
            label,
            purse: Cap {
                interval: members.limit_reset()?.unwrap_or(CapInterval::Total),
                model: None,
                limit,
            },
            expires_in: Duration::from_secs(expires_in.unwrap_or(LONGEST)),
            models: models(&mut members, owner)?,
            rate: match (rate, owner.rate) {
                (Some(asked), Some(own)) => Some(asked.min(own)),
                (asked, own) => asked.or(own),
            },
            metadata: members.metadata()?,
        };
        members.end()?;
        Ok(new)
    }
}

/// The models that a key may use: of those that its maker may use.
fn models(
    members: &mut KeyMembers<'_>,
    owner: &KeySettings,
) -> Result<Option<Vec<String>>, BadRequest> {
    let say = "list the slugs that the key may use, as in [\"small\"]; leave it out for all that this key may use";
    let Some(models) = members.take::<Vec<String>>("models", say)? else {
        return Ok(owner.models.clone());
    };
    if models.is_empty() {
        return Err(BadRequest::at("models", say));
    }
    let other = models.iter().position(|slug| !owner.allows(slug));
    match other {
        Some(at) => Err(BadRequest::at(
            format!("models[{at}]"),
            "the key that makes another may not use this model itself",
        )),
        None => Ok(Some(models)),
    }
}

impl KeyChanges {
    pub(super) fn read(body: &[u8]) -> Result<Self, BadRequest> {
        let known = "name, limit, limit_reset, disabled, reissue";
        let mut members = KeyMembers::read(body, known)?;
        let say = "write true or false";
        let changes = Self {
            label: members.label()?,
            limit: members.limit()?,
            limit_reset: members.limit_reset()?,
            disabled: members.take("disabled", say)?,
            reissue: members.take("reissue", say)?.unwrap_or_default(),
        };
        members.end()?;
        if changes.limit_reset.is_some() && changes.limit.is_none() {
            let text = "a limit starts again as it did when the key was made; make another key";
            return Err(BadRequest::at("limit_reset", text));
        }
        let none = Self {
            label: None,
            limit: None,
            limit_reset: None,
            disabled: None,
            reissue: false,
        };
        if changes == none {
            return Err(BadRequest::new(format!("say what to change: {known}")));
        }
        Ok(changes)
    }
}

/// The members of a body that nobody has taken yet.
struct KeyMembers<'a> {
    all: BTreeMap<String, &'a RawValue>,
    known: &'static str,
}

impl<'a> KeyMembers<'a> {
    fn read(body: &'a [u8], known: &'static str) -> Result<Self, BadRequest> {
        let read: Result<JsonMembers<&RawValue>, _> = serde_json::from_slice(body);
        let read = read.map_err(|error| {
            BadRequest::new(format!(
                "send one JSON object with some of {known}: {error}"
            ))
        })?;
        let all = read.0.into_iter().collect();
        Ok(Self { all, known })
    }

    fn take<T: DeserializeOwned>(
        &mut self,
        name: &str,
        say: &str,
    ) -> Result<Option<T>, BadRequest> {
        let Some(raw) = self.all.remove(name) else {
            return Ok(None);
        };
        serde_json::from_str(raw.get()).map_err(|_| BadRequest::at(name, say))
    }

    /// `name`, which some call `label`.
    fn label(&mut self) -> Result<Option<String>, BadRequest> {
        let say = "a name is a text of at most 200 characters";
        let (name, label) = (self.take::<String>("name", say)?, self.take("label", say)?);
        if let (Some(name), Some(label)) = (&name, &label)
            && name != label
        {
            return Err(BadRequest::at(
                "label",
                "name and label are the same; send one of them",
            ));
        }
        let label: Option<String> = name.or(label).map(|label| label.trim().to_owned());
        match label {
            Some(label) if label.is_empty() => Err(BadRequest::at("name", say)),
            label => Ok(label),
        }
    }

    /// An amount above zero.
    fn limit(&mut self) -> Result<Option<Amount>, BadRequest> {
        let say =
            "a limit is an amount of US dollars above 0, with at most 12 decimals, as in 0.20";
        let Some(raw) = self.all.remove("limit") else {
            return Ok(None);
        };
        let text = match raw.get() {
            "null" => return Ok(None),
            quoted if quoted.starts_with('"') => {
                serde_json::from_str(quoted).map_err(|_| BadRequest::at("limit", say))?
            }
            digits => digits.to_owned(),
        };
        match Amount::from_usd_str(&text) {
            Ok(limit) if limit.is_positive() => Ok(Some(limit)),
            _ => Err(BadRequest::at("limit", say)),
        }
    }

    fn limit_reset(&mut self) -> Result<Option<CapInterval>, BadRequest> {
        let say = "a limit starts again \"daily\", \"weekly\" or \"monthly\", or, left out, never";
        let word: Option<String> = self.take("limit_reset", say)?;
        match word.as_deref() {
            None => Ok(None),
            Some("daily") => Ok(Some(CapInterval::Day)),
            Some("weekly") => Ok(Some(CapInterval::Week)),
            Some("monthly") => Ok(Some(CapInterval::Month)),
            Some(_) => Err(BadRequest::at("limit_reset", say)),
        }
    }

    /// Texts by their names, each once; the ledger bounds them.
    fn metadata(&mut self) -> Result<Option<MetadataPairs>, BadRequest> {
        let say = "metadata is an object of texts, each name once, as in {\"task\": \"17\"}";
        let noted: Option<JsonMembers<String>> = self.take("metadata", say)?;
        let noted = noted.filter(|noted| !noted.0.is_empty());
        Ok(noted.map(|noted| noted.0.into_iter().collect()))
    }

    /// A whole number from 1 on.
    fn number(&mut self, name: &str, most: u64, what: &str) -> Result<Option<u64>, BadRequest> {
        let say = format!("write a whole number of {what}");
        match self.take::<u64>(name, &say)? {
            Some(number) if number == 0 || number > most => Err(BadRequest::at(name, say)),
            number => Ok(number),
        }
    }

    /// Refuses what nobody has taken: a misspelt bound would bound nothing.
    fn end(self) -> Result<(), BadRequest> {
        match self.all.into_keys().next() {
            Some(name) => {
                let message = format!("unknown member; this path takes {}", self.known);
                let name: String = name.chars().take(LONGEST_NAME).collect();
                Err(BadRequest::at(name, message))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(body: &str) -> Result<NewRunKey, String> {
        let owner = KeySettings {
            models: Some(vec!["small".to_owned()]),
            rate: Some(5),
            ..KeySettings::default()
        };
        let read = NewRunKey::read(body.as_bytes(), &owner);
        read.map_err(|bad| bad.param.unwrap_or_default())
    }

    #[test]
    fn what_is_sent_is_read_to_the_last_digit() {
        let read = new(
            r#"{"label":" run 1 ","limit":0.200000000001,"limit_reset":"daily","expires_in":60,"rate":9}"#,
        );
        let read = read.unwrap();
        assert_eq!(read.label, "run 1");
        assert_eq!(read.purse.limit.to_string(), "0.200000000001");
        assert_eq!(read.purse.interval, CapInterval::Day);
        assert_eq!(
            (read.expires_in.as_secs(), read.rate),
            (60, Some(5)),
            "its maker's rate"
        );
        let least = new(
            r#"{"name":"a","limit":"7","limit_reset":null,"models":["small"],"metadata":{"task":"17"}}"#,
        )
        .unwrap();
        assert_eq!(least.metadata.unwrap()["task"], "17");
        assert_eq!(least.expires_in.as_secs(), LONGEST);
        assert_eq!(
            (least.purse.interval, least.purse.limit.to_string()),
            (CapInterval::Total, "7.00".to_owned())
        );
    }

    #[test]
    fn slips_are_named() {
        for (body, at) in [
            ("[]", ""),
            ("", ""),
            (r#"{"limit":1}"#, "name"),
            (r#"{"name":"","limit":1}"#, "name"),
            (r#"{"name":7,"limit":1}"#, "name"),
            (r#"{"name":"a","label":"b","limit":1}"#, "label"),
            (r#"{"name":"a"}"#, "limit"),
            (r#"{"name":"a","limit":null}"#, "limit"),
            (r#"{"name":"a","limit":0}"#, "limit"),
            (r#"{"name":"a","limit":-1}"#, "limit"),
            (r#"{"name":"a","limit":1e-3}"#, "limit"),
            (r#"{"name":"a","limit":0.0000000000001}"#, "limit"),
            (r#"{"name":"a","limit":true}"#, "limit"),
            (r#"{"name":"a","limit":99999999999999999999}"#, "limit"),
            (
                r#"{"name":"a","limit":1,"limit_reset":"yearly"}"#,
                "limit_reset",
            ),
            (r#"{"name":"a","limit":1,"expires_in":0}"#, "expires_in"),
            (
                r#"{"name":"a","limit":1,"expires_in":2592001}"#,
                "expires_in",
            ),
            (r#"{"name":"a","limit":1,"expires_in":1.5}"#, "expires_in"),
            (r#"{"name":"a","limit":1,"limit":5}"#, ""),
            (r#"{"name":"a","limit":1,"rate":0}"#, "rate"),
            (r#"{"name":"a","limit":1,"models":[]}"#, "models"),
            (
                r#"{"name":"a","limit":1,"models":["small","large"]}"#,
                "models[1]",
            ),
            (
                r#"{"name":"a","limit":1,"metadata":{"task":17}}"#,
                "metadata",
            ),
            (
                r#"{"name":"a","limit":1,"metadata":{"task":"1","task":"2"}}"#,
                "metadata",
            ),
            (
                r#"{"name":"a","limit":1,"limit_rest":"daily"}"#,
                "limit_rest",
            ),
        ] {
            assert_eq!(new(body), Err(at.to_owned()), "{body}");
        }
        for body in [
            "{}",
            r#"{"limit_reset":"daily"}"#,
            r#"{"disabled":"yes"}"#,
            r#"{"expires_in":1}"#,
        ] {
            assert!(KeyChanges::read(body.as_bytes()).is_err(), "{body}");
        }
    }
}
