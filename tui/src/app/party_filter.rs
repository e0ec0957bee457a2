//! Filters of keys and of customers: `acme`, `balance<5`, `state:low`, an id, and what only one of the lists has.

use farebox_ledger::{Amount, CustomerId, CustomerStatus, KeyId, KeyStatus, Secret};

use super::party::LOW;

/// A list's filter: `I` is what its rows are called by, `S` their status.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PartyFilter<I, S> {
    /// A part of a label, or of a customer's external id.
    pub(crate) text: Option<String>,
    pub(crate) status: Option<S>,
    pub(crate) balance_below: Option<Amount>,
    pub(crate) id: Option<I>,
    /// The reference of one of a customer's payments.
    pub(crate) payment: Option<String>,
}

pub(crate) type KeyFilter = PartyFilter<KeyId, KeyStatus>;
pub(crate) type CustomerFilter = PartyFilter<CustomerId, CustomerStatus>;

impl<I, S> Default for PartyFilter<I, S> {
    fn default() -> Self {
        Self {
            text: None,
            status: None,
            balance_below: None,
            id: None,
            payment: None,
        }
    }
}

impl<I: PartialEq, S: PartialEq> PartyFilter<I, S> {
    /// Whether everything passes.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What the rows of a list are called by.
pub(crate) trait FilteredBy: Sized {
    type Status: Copy + 'static;
    const STATES: &'static [(&'static str, Self::Status)];
    /// The filter that the other list does not have.
    const OWN: &'static str;

    /// The id that a word is.
    fn of(word: &str) -> Option<Result<Self, String>>;
}

/// An id with or without its name, or a whole pasted secret, which is found by the public id inside it.
impl FilteredBy for KeyId {
    type Status = KeyStatus;
    const STATES: &'static [(&'static str, KeyStatus)] = &[
        ("active", KeyStatus::Active),
        ("blocked", KeyStatus::Blocked),
        ("expired", KeyStatus::Expired),
        ("revoked", KeyStatus::Revoked),
    ];
    const OWN: &'static str = "key:";

    fn of(word: &str) -> Option<Result<Self, String>> {
        if word.starts_with("sk-") {
            let secret = Secret::parse(word).map_err(|error| error.to_string());
            return Some(secret.map(|(id, _)| id));
        }
        let id = word.strip_prefix(Self::OWN).unwrap_or(word);
        id.parse().ok().map(Ok)
    }
}

impl FilteredBy for CustomerId {
    type Status = CustomerStatus;
    const STATES: &'static [(&'static str, CustomerStatus)] = &[
        ("active", CustomerStatus::Active),
        ("suspended", CustomerStatus::Suspended),
        ("closed", CustomerStatus::Closed),
    ];
    const OWN: &'static str = PAYMENT;

    fn of(word: &str) -> Option<Result<Self, String>> {
        let id = word.starts_with("c_").then(|| word.parse().ok());
        id.flatten().map(Ok)
    }
}

/// Names the reference of a payment.
const PAYMENT: &str = "pay:";

impl<I: FilteredBy> PartyFilter<I, I::Status> {
    /// Reads what was typed.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut filter = Self::default();
        let mut parts: Vec<&str> = Vec::new();
        for word in text.split_whitespace() {
            if let Some(id) = I::of(word) {
                filter.id = Some(id?);
            } else if let Some(amount) = after(word, ["balance<", "bal<"]) {
                let amount = Amount::parse_payment(amount.trim_start_matches('$'));
                filter.balance_below = Some(amount.map_err(|error| error.to_string())?);
            } else if let Some(state) = after(word, ["state:", "status:"]) {
                filter.state(&state.to_ascii_lowercase())?;
            } else if let Some(part) = after(word, ["label~", "label:"]) {
                parts.push(part);
            } else if let (PAYMENT, Some(reference)) = (I::OWN, word.strip_prefix(PAYMENT)) {
                filter.payment = (!reference.is_empty()).then(|| reference.to_owned());
            } else if let Some(name) = field_of(word) {
                let own = I::OWN;
                return Err(format!(
                    "no filter is called {name}: use label~, balance<, state: or {own}"
                ));
            } else {
                parts.push(word);
            }
        }
        filter.text = (!parts.is_empty()).then(|| parts.join(" "));
        Ok(filter)
    }

    fn state(&mut self, word: &str) -> Result<(), String> {
        let word = if word == "ok" { "active" } else { word };
        let known = I::STATES.iter().find(|(name, _)| *name == word);
        match (word, known) {
            (_, Some((_, status))) => self.status = Some(*status),
            ("empty", None) => self.balance_below = Some(Amount::from_picos(1)),
            ("low", None) => self.balance_below = Some(LOW),
            (_, None) => {
                let names: Vec<&str> = I::STATES.iter().map(|(name, _)| *name).collect();
                return Err(format!("states are {}, empty and low", names.join(", ")));
            }
        }
        Ok(())
    }
}

/// What stands behind one of these names.
fn after<'word>(word: &'word str, names: [&str; 2]) -> Option<&'word str> {
    names.iter().find_map(|name| word.strip_prefix(name))
}

/// The name in a word like `name:value`, with its sign, whether or not such a filter exists.
pub(crate) fn field_of(word: &str) -> Option<&str> {
    let at = word.find([':', '~', '<', '>', '='])?;
    let name = &word[..at];
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic())).then(|| &word[..=at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_is_not_one_is_said() {
        let said = KeyFilter::parse("acme balanc<5").unwrap_err();
        assert!(
            said.contains("balanc<") && said.contains("balance<"),
            "{said}"
        );
        let filter = KeyFilter::parse("label:acme:ci ops@acme").unwrap();
        assert_eq!(filter.text.as_deref(), Some("acme:ci ops@acme"));
        let said = KeyFilter::parse("pay:inv-1").unwrap_err();
        assert!(said.contains("pay:") && said.contains("key:"), "{said}");
    }

    #[test]
    fn a_key_is_found_by_its_id_and_its_states() {
        let read = |text: &str| KeyFilter::parse(text).unwrap();
        let id = read("key:k_7f3q9d2xw1").id;
        assert_eq!(id, read("k_7f3q9d2xw1").id);
        assert!(id.is_some());
        assert_eq!(read("state:OK").status, Some(KeyStatus::Active));
        assert_eq!(read("status:low").balance_below, Some(LOW));
        let said = KeyFilter::parse("state:closed").unwrap_err();
        assert_eq!(
            said,
            "states are active, blocked, expired, revoked, empty and low"
        );
        assert!(KeyFilter::parse("sk-broken").is_err());
    }

    #[test]
    fn filters_of_customers_are_read() {
        let read = |text: &str| CustomerFilter::parse(text).unwrap();
        let filter = read("class 9b bal<5 pay:inv-8902");
        assert_eq!(filter.text.as_deref(), Some("class 9b"));
        assert_eq!(filter.payment.as_deref(), Some("inv-8902"));
        assert!(filter.balance_below.is_some());
        let id = read("c_7f3q9d2xw1").id.unwrap();
        assert_eq!(id.to_string(), "c_7f3q9d2xw1");
        assert_eq!(read("c_or").text.as_deref(), Some("c_or"));
        let said = CustomerFilter::parse("ext:9").unwrap_err();
        assert!(said.contains("ext:") && said.contains("pay:"), "{said}");
        assert!(CustomerFilter::parse("state:asleep").is_err());
    }
}
