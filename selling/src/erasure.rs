//! Where the name of a person still stands after its data was erased: programs of before wrote it into labels, and acts that are chained
//! repeat labels.

use farebox_ledger::{Customer, KeyId, Ledger, LedgerError, PersonalData};

use super::reads;

/// What still has a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remains {
    /// The customer's label.
    pub label: bool,
    /// Keys by their labels.
    pub keys: Vec<KeyId>,
    /// Acts of the customer, which cannot be changed.
    pub acts: usize,
}

impl Remains {
    /// What of a customer has the name that was erased.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn of(
        ledger: &dyn Ledger,
        customer: &Customer,
        erased: Option<&PersonalData>,
    ) -> Result<Self, LedgerError> {
        let name = erased
            .and_then(|data| data.name.as_deref())
            .unwrap_or_default();
        let name = name.trim().to_lowercase();
        let mut found = Self::default();
        if name.is_empty() {
            return Ok(found);
        }
        let has = |text: &str| text.to_lowercase().contains(&name);
        found.label = has(&customer.settings.label);
        let keys = reads::keys_of(ledger, customer.id).await?.into_iter();
        let named = keys.filter(|key| has(&key.settings.label));
        found.keys = named.map(|key| key.id).collect();
        // As it stands in their JSON.
        let written = serde_json::Value::from(name.as_str()).to_string();
        let written = written.trim_matches('"');
        let acts = ledger.acts_of(customer.id).await?.into_iter();
        let named = acts.filter(|act| act.details.to_lowercase().contains(written));
        found.acts = named.count();
        Ok(found)
    }

    /// What to tell, and what to do about it; nothing if nothing is left.
    #[must_use]
    pub fn words(&self, customer: &Customer) -> Vec<String> {
        let mut words = Vec::new();
        let id = customer.id;
        if self.label {
            words.push(format!(
                "its label has the name still; replace it: farebox customers set {id} --label LABEL"
            ));
        }
        for key in &self.keys {
            words.push(format!(
                "the label of key {key} has it; replace it: farebox keys set {key} --label LABEL"
            ));
        }
        if self.acts > 0 {
            let acts = self.acts;
            words.push(format!(
                "acts of its chain that have it, which nothing changes: {acts}"
            ));
        }
        words
    }
}
