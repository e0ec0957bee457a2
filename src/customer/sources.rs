//! Where the money of charges came from: which grants, and how much of the balance. For owners alone: a member sees nothing of its
//! customer's money.

use std::collections::HashMap;

use farebox_ledger::{
    Amount, GrantId, GrantKind, GrantQuery, GrantRecord, JournalEntry, Key, Ledger, LedgerError,
    MoneyPart, Plans,
};

use super::decimal_json::DecimalJson;

/// The grants of charges that an owner sees.
#[derive(Debug, Default)]
pub(super) struct ChargeSources {
    is_owner: bool,
    known: HashMap<GrantId, GrantRecord>,
    /// What the customer has of plans.
    plans: Plans,
}

impl ChargeSources {
    /// What the holder of a key may see; no grant is known yet.
    pub(super) fn seen_by(key: &Key) -> Self {
        Self {
            is_owner: key.is_owner,
            known: HashMap::new(),
            plans: key.customer.grants.plans.clone(),
        }
    }

    /// The same, with the grants of one charge.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(super) async fn of(
        ledger: &dyn Ledger,
        key: &Key,
        entry: &JournalEntry,
    ) -> Result<Self, LedgerError> {
        let mut sources = Self::seen_by(key);
        sources.learn(ledger, std::iter::once(entry)).await?;
        Ok(sources)
    }

    /// Reads the grants of more charges, each once.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(super) async fn learn<'a>(
        &mut self,
        ledger: &dyn Ledger,
        entries: impl Iterator<Item = &'a JournalEntry>,
    ) -> Result<(), LedgerError> {
        if !self.is_owner {
            return Ok(());
        }
        let named = entries.flat_map(|entry| &entry.parts);
        let named: Vec<GrantId> = named.filter_map(|part| part.grant).collect();
        for id in named {
            if self.known.contains_key(&id) {
                continue;
            }
            let query = GrantQuery {
                id: Some(id),
                limit: 1,
                ..GrantQuery::default()
            };
            let found = ledger.grants(query).await?;
            self.known
                .extend(found.into_iter().map(|record| (id, record)));
        }
        Ok(())
    }

    /// The parts of a charge, each as it was taken; none for a member, or if nothing was charged.
    fn parts(&self, entry: &JournalEntry) -> Vec<MoneyPart> {
        let taken = |amount: Amount| amount.checked_neg().unwrap_or_default();
        let all = MoneyPart::of(None, taken(entry.amount));
        let mut parts: Vec<MoneyPart> = (entry.parts.iter())
            .map(|part| MoneyPart::of(part.grant, taken(part.amount)))
            .collect();
        if parts.is_empty() {
            parts.push(all);
        }
        parts.retain(|part| self.is_owner && part.amount.is_positive());
        parts
    }

    /// The parts in a receipt: null for a member.
    pub(super) fn document(&self, entry: &JournalEntry) -> DecimalJson {
        if !self.is_owner {
            return DecimalJson::Null;
        }
        let part = |part: &MoneyPart| {
            let kind = part.grant.and_then(|id| self.known.get(&id));
            let kind = kind.map_or(GrantKind::Paid, |record| record.grant.kind);
            DecimalJson::object([
                ("grant", part.grant.map(|id| id.to_string()).into()),
                ("kind", kind.as_str().into()),
                ("amount", part.amount.into()),
            ])
        };
        DecimalJson::List(self.parts(entry).iter().map(part).collect())
    }

    /// The parts in a spreadsheet.
    pub(super) fn cell(&self, entry: &JournalEntry) -> String {
        let part = |part: &MoneyPart| match part.grant {
            Some(id) => format!("{id} {}", part.amount),
            None => format!("balance {}", part.amount),
        };
        let parts: Vec<_> = self.parts(entry).iter().map(part).collect();
        parts.join("; ")
    }

    /// The parts for people, if any came from a grant: `2.10 from your voucher, 0.40 from your balance`.
    pub(super) fn words(&self, entry: &JournalEntry) -> Option<String> {
        let parts = self.parts(entry);
        parts.iter().find(|part| part.grant.is_some())?;
        let part = |part: &MoneyPart| format!("{} from {}", part.amount, self.source(part));
        Some(parts.iter().map(part).collect::<Vec<_>>().join(", "))
    }

    fn source(&self, part: &MoneyPart) -> String {
        let Some(id) = part.grant else {
            return "your balance".to_owned();
        };
        let known = self.known.get(&id);
        if known.is_some_and(|record| record.grant.kind == GrantKind::Plan) {
            let Some(of) = self.plans.of_period(id).map(|of| &of.state) else {
                return "a plan".to_owned();
            };
            let running = of.running.as_ref().filter(|running| running.grant == id);
            let terms = running.map_or(&of.terms, |running| &running.terms);
            return format!("your plan {}", terms.title);
        }
        let reference = known.and_then(|record| record.reference.0.as_deref());
        let source = match reference {
            Some(name) if name.starts_with("voucher:") => "your voucher",
            Some(_) | None => "credit that you were given",
        };
        source.to_owned()
    }
}
