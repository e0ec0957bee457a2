//! Takes out what identifies an account with a provider: cloud resource names and ids of accounts, projects, organisations,
//! subscriptions and requests.

use super::find::{Edge, find, is_word, replaced, token_len};

/// Prefixes of account-bound ids; customers' own ids begin differently.
const PREFIXES: [&str; 8] = [
    "org-", "org_", "proj_", "proj-", "req_", "req-", "wrkspc_", "acct_",
];
/// Words before an id of any form (`account 123456789012`) …
const ANNOUNCED: [&str; 9] = [
    "account",
    "project",
    "subscription",
    "tenant",
    "organization",
    "organisation",
    "workspace",
    "request",
    "owner",
];
/// … and what may stand between such a word and the id: then it is an id, and no number of tokens.
const BETWEEN: [&str; 11] = [
    "_number", "-number", "number", "_id", "-id", "id", "_name", "name", "no.", "arn", "with",
];
/// Words before an id in the name of a resource …
const COLLECTIONS: [&str; 8] = [
    "projects/",
    "accounts/",
    "subscriptions/",
    "resourcegroups/",
    "tenants/",
    "organizations/",
    "workspaces/",
    "billingaccounts/",
];
/// … and behind it. Other paths begin so too: `projects/site/index.html`.
const INSIDE: [&str; 14] = [
    "locations",
    "providers",
    "resourcegroups",
    "publishers",
    "models",
    "zones",
    "regions",
    "global",
    "deployments",
    "endpoints",
    "services",
    "serviceaccounts",
    "secrets",
    "apikeys",
];
/// A text with one of these speaks of cloud accounts: then a number of twelve digits is one.
const CLOUD: [&str; 5] = ["account", "arn:", "aws", "iam:", "principal"];
const ACCOUNT_DIGITS: usize = 12;
const SHORTEST_ID: usize = 6;
/// A number behind `account` alone may be a limit; no limit has as many digits.
const SHORTEST_NUMBER: usize = 9;
/// Digits of an id that is no word: `version2` has fewer.
const SOME_DIGITS: usize = 4;

pub(super) fn without_accounts(text: &str) -> String {
    let text = without_resources(text);
    let text = PREFIXES
        .iter()
        .fold(text, |text, prefix| without_prefixed(&text, prefix));
    let text = ANNOUNCED
        .iter()
        .fold(text, |text, word| without_announced(&text, word));
    let lower = text.to_ascii_lowercase();
    if CLOUD.iter().any(|word| lower.contains(word)) {
        return without_account_numbers(&text);
    }
    text
}

/// `arn:aws:bedrock:us-east-1:123456789012:…`, and the ids in `projects/…/locations/…`.
fn without_resources(text: &str) -> String {
    let text = replaced(text, |text, lower, from| {
        let at = find(lower, from, "arn:", Edge::Front)?;
        let length = token_len(&text[at..], |c| {
            !c.is_whitespace() && !"\"'`<>(),;\\".contains(c)
        });
        let name = text[at..at + length].trim_end_matches(['.', ':']);
        let is_arn = name.matches(':').count() >= 3;
        Some((at, at + name.len(), is_arn.then_some("[id]")))
    });
    COLLECTIONS.iter().fold(text, |text, collection| {
        replaced(&text, |text, lower, from| {
            let at = find(lower, from, collection, Edge::Front)? + collection.len();
            let id = &text[at..at + token_len(&text[at..], |c| is_word(c) || c == '.')];
            let id = id.trim_end_matches('.');
            let behind = lower[at + id.len()..].strip_prefix('/').unwrap_or_default();
            let inside = &behind[..token_len(behind, |c| c.is_ascii_alphanumeric())];
            let known = INSIDE.contains(&inside) || *collection == "resourcegroups/";
            let is_id = !id.is_empty() && (known || digits(id) >= SOME_DIGITS);
            Some((at, at + id.len(), is_id.then_some("[id]")))
        })
    })
}

fn without_prefixed(text: &str, prefix: &str) -> String {
    replaced(text, |text, lower, from| {
        let at = find(lower, from, prefix, Edge::Word)?;
        let length = token_len(&text[at + prefix.len()..], is_word);
        let end = at + prefix.len() + length;
        Some((at, end, (length >= SHORTEST_ID).then_some("[id]")))
    })
}

fn without_announced(text: &str, word: &str) -> String {
    replaced(text, |text, lower, from| {
        let found = find(lower, from, word, Edge::Any)?;
        let at = found + word.len();
        let gap = |at: usize| token_len(&text[at..], |c| " :=#\"'`/\\(".contains(c));
        let mut begin = at + gap(at);
        let mut explicit = false;
        while let Some(between) = BETWEEN
            .iter()
            .find(|word| lower[begin..].starts_with(**word))
        {
            begin += between.len();
            begin += gap(begin);
            explicit |= *between != "with";
        }
        if begin == at {
            return Some((found, at, None));
        }
        let id = &text[begin..begin + token_len(&text[begin..], is_word)];
        // `cannot request gpt-4-0613`: a request's id is always called one.
        let announced = explicit || word != "request";
        // `project my-shop` may be prose, but not where the cloud names a resource.
        let resource = word == "project" && lower[..at].ends_with("resource project");
        if resource && id.contains('-') || announced && is_id(id, explicit) {
            Some((begin, begin + id.len(), Some("[id]")))
        } else {
            // What follows may itself announce an id.
            Some((found, begin, None))
        }
    })
}

fn is_id(id: &str, explicit: bool) -> bool {
    let digits = digits(id);
    if id.len() < SHORTEST_ID || digits == 0 {
        return false;
    }
    if id.contains(char::is_alphabetic) {
        // With `_` it is one of the customer's own, such as `toolu_01A09q`.
        return explicit || digits >= SOME_DIGITS && !id.contains('_') && !begins_with_date(id);
    }
    explicit || digits >= SHORTEST_NUMBER
}

/// Whether it is a time as ISO 8601 writes it.
fn begins_with_date(id: &str) -> bool {
    let shape = |(place, byte): (usize, u8)| match place {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    id.len() >= 10 && id.bytes().take(10).enumerate().all(shape)
}

fn digits(text: &str) -> usize {
    text.bytes().filter(u8::is_ascii_digit).count()
}

/// Numbers of an account's length, but no part of a fraction or a word.
fn without_account_numbers(text: &str) -> String {
    replaced(text, |text, _, from| {
        let digit = |c: char| c.is_ascii_digit();
        let at = from + text.get(from..)?.find(digit)?;
        let end = at + token_len(&text[at..], digit);
        let behind = &text[end..];
        let alone = !text[..at].ends_with(|c: char| is_word(c) || c == '.')
            && !behind.starts_with(is_word)
            && !behind
                .strip_prefix('.')
                .is_some_and(|rest| rest.starts_with(digit));
        let is_account = alone && end - at == ACCOUNT_DIGITS;
        Some((at, end, is_account.then_some("[id]")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn becomes(text: &str, expected: &str) {
        assert_eq!(without_accounts(text), expected);
    }

    #[test]
    fn resources_and_accounts_go() {
        becomes(
            "User: arn:aws:sts::123456789012:assumed-role/prod/i-0abc may not arn:aws-us-gov:bedrock:us-east-1::model/x.",
            "User: [id] may not [id].",
        );
        becomes(
            "account 123456789012, 9876543210987 ms; AWS said 210987654321 is out",
            "account [id], 9876543210987 ms; AWS said [id] is out",
        );
        becomes(
            "projects/my-shop-prod/locations/eu, projects/48392017",
            "projects/[id]/locations/eu, projects/[id]",
        );
        becomes(
            "/subscriptions/0b1f6471-1bf0-4dda-aec3-111122223333/resourceGroups/rg-prod/x",
            "/subscriptions/[id]/resourceGroups/[id]/x",
        );
        becomes(
            "Consumer 'project_number:483920174655' in project number 48392017 of tenant id: 0b1f6471-1bf0",
            "Consumer 'project_number:[id]' in project number [id] of tenant id: [id]",
        );
        becomes(
            "subscription with id '0b1f6471-1bf0-4dda-aec3-111122223333', {\\\"accountId\\\":\\\"ab12cd34\\\"}",
            "subscription with id '[id]', {\\\"accountId\\\":\\\"[id]\\\"}",
        );
        becomes(
            "denied on resource project my-shop-prod.",
            "denied on resource project [id].",
        );
        becomes(
            "for this project project id 48392017",
            "for this project project id [id]",
        );
    }

    #[test]
    fn limits_dates_and_prose_stay() {
        for text in [
            "your account has no money; for this project and organization",
            "limit of this account: 30000000 tokens, account of 400000 TPM",
            "project 2026-11-23T08:12:00Z, account 2026-11-23, project version2",
            "project_id: must be a string; accounting2024-report, account_balance",
            "src/projects/main.rs and projects/site/index.html",
            "0.123456789012 of an account; 1.0 with 1234567890123",
            "max 999999999999",
            "of your organization toolu_01A09q90qw",
            "cannot request gpt-4-0613-preview, this request: 4294967296 bytes",
        ] {
            becomes(text, text);
        }
    }
}
