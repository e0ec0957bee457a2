//! Reads the keys of a provider, which stand for its accounts, and how requests are divided among them.

use farebox_toml::{Code, Entry, Fields, KEYS, Report, SecretReader};

use crate::config::{KeysBy, ProviderKey, ProviderKeys};

/// The largest weight of a key: beyond it, no finer division is worth the work of one.
const MOST_WEIGHT: u32 = 100;

/// Reads `key = …` or `keys = [ … ]`, and `keys_by`.
pub(super) fn read_keys(
    fields: &Fields<'_, '_>,
    report: &mut Report<'_>,
    secrets: &mut SecretReader<'_>,
) -> Option<ProviderKeys> {
    let ways = [
        ("conversation", KeysBy::Conversation),
        ("request", KeysBy::Request),
    ];
    let by = fields.word(report, "keys_by", &ways);
    fields.exclude(report, "key", "keys");
    let mut read = Vec::new();
    if let Some(key) = fields.get("key") {
        let secret = secrets.read(key, report, &fields.what);
        read.push(secret.map(|secret| ProviderKey { secret, weight: 1 }));
    }
    let mut good = true;
    if let Some(keys) = fields.get("keys") {
        match keys.list(report, "secrets, each { env = \"…\" } or { file = \"…\" }") {
            Some(list) => {
                let keys = list.into_iter();
                read.extend(keys.map(|key| read_key(key, report, secrets, &fields.what)));
            }
            None => good = false,
        }
        if read.is_empty() && good {
            report.add(
                Code::BadText,
                keys.span(),
                format!("`keys` of {} is empty", fields.what),
            );
            good = false;
        }
    }
    let keys: Option<Vec<ProviderKey>> = read.into_iter().collect();
    let by = by?.unwrap_or(KeysBy::Conversation);
    keys.filter(|_| good)
        .map(|keys| ProviderKeys::new(keys, by))
}

/// Reads one of several keys: `{ env = "…", weight = 2 }`.
fn read_key(
    value: Entry<'_, '_>,
    report: &mut Report<'_>,
    secrets: &mut SecretReader<'_>,
    what: &str,
) -> Option<ProviderKey> {
    let fields = SecretReader::open(value, report, what, &KEYS.account)?;
    let weight = fields.given(report, "weight", |value, report| {
        value.small(report, 1..=MOST_WEIGHT)
    });
    let secret = secrets.of_fields(&fields, value.name, report, what);
    Some(ProviderKey {
        secret: secret?,
        weight: weight?.map_or(1, |weight| weight.value),
    })
}
