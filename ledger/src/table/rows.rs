//! Rows of one table in memory, and whether and how they differ from what the database has.

use std::collections::BTreeMap;

use super::description::{DescribedRow, RowChange, WrittenColumn, written};

/// A row that may or may not exist, in memory and in the database.
#[derive(Debug, Clone)]
pub(crate) struct CachedRow<T> {
    pub(crate) now: Option<T>,
    pub(crate) was_stored: bool,
    pub(crate) changed: bool,
}

impl<T> CachedRow<T> {
    pub(crate) const fn stored(value: T) -> Self {
        Self {
            now: Some(value),
            was_stored: true,
            changed: false,
        }
    }

    pub(crate) const fn new(value: T) -> Self {
        Self {
            now: Some(value),
            was_stored: false,
            changed: true,
        }
    }

    /// Removes what is there.
    pub(crate) fn take(&mut self) -> Option<T> {
        self.changed |= self.now.is_some();
        self.now.take()
    }

    /// What happens to it in the database: nothing if it came and went.
    fn change(&self) -> Option<RowChange>
    where
        T: DescribedRow,
    {
        match (&self.now, self.was_stored) {
            (None, false) => None,
            (None, true) => Some(RowChange::Delete),
            (Some(_), true) if !T::MAY_BE_THERE => Some(RowChange::Update),
            (Some(_), _) => Some(RowChange::Insert),
        }
    }
}

/// Rows of a table, by their keys.
#[derive(Debug)]
pub(crate) struct TableRows<T: DescribedRow> {
    rows: BTreeMap<T::Key, CachedRow<T>>,
    /// Those that were changed, in the order in which they first were.
    changed: Vec<T::Key>,
}

impl<T: DescribedRow> Default for TableRows<T> {
    fn default() -> Self {
        Self {
            rows: BTreeMap::new(),
            changed: Vec::new(),
        }
    }
}

impl<T: DescribedRow> TableRows<T> {
    pub(super) fn get(&self, key: &T::Key) -> Option<&T> {
        self.rows.get(key)?.now.as_ref()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.rows.values().filter_map(|row| row.now.as_ref())
    }

    pub(crate) fn put(&mut self, value: T) {
        let key = value.key();
        let known = self.rows.get(&key);
        let was_stored = known.is_some_and(|row| row.was_stored);
        if known.is_none_or(|row| !row.changed) {
            self.changed.push(key.clone());
        }
        let row = CachedRow {
            was_stored,
            ..CachedRow::new(value)
        };
        self.rows.insert(key, row);
    }

    pub(crate) fn take(&mut self, key: &T::Key) -> Option<T> {
        let row = self.rows.get_mut(key)?;
        if row.now.is_some() && !row.changed {
            self.changed.push(key.clone());
        }
        row.take()
    }

    /// A row as the database has it; what is known already stays.
    pub(crate) fn fetched(&mut self, value: T) {
        let known = self.rows.entry(value.key());
        known.or_insert_with(|| CachedRow::stored(value));
    }

    /// Whether the database has everything.
    pub(crate) const fn is_unchanged(&self) -> bool {
        self.changed.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.changed.clear();
    }

    /// What the database does not have yet, in the order in which it first changed.
    pub(crate) fn writes(&self) -> impl Iterator<Item = (RowChange, Vec<WrittenColumn<'_>>)> {
        let changed = self.changed.iter();
        changed.filter_map(|key| {
            let (key, row) = self.rows.get_key_value(key)?;
            let change = row.change()?;
            Some((change, written(key, row.now.as_ref(), change)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::answer::{AnswerId, KeptAnswer};
    use crate::table::columns::ColumnValue;
    use crate::{
        Amount, ApiAnswer, CustomerId, Gross, Lot, LotId, OperationId, PaidSum, Payment,
        SecretHash, Timestamp,
    };

    fn lot() -> Lot {
        Lot {
            id: LotId::from_random(1),
            count: 3,
            amount: Amount::from_picos(5),
            expires_at: None,
            once_per_customer: true,
            kind: crate::GrantKind::Paid,
            plan: None,
            is_void: false,
            redeemed: 0,
            created_at: Timestamp::from_millis(7),
            created_by: "ada".into(),
            made_by: OperationId::from_bytes([1; 16]),
        }
    }

    fn names<T: DescribedRow>(rows: &TableRows<T>) -> Vec<(RowChange, Vec<&'static str>)> {
        rows.writes()
            .map(|(change, cells)| (change, cells.iter().map(|(name, _)| *name).collect()))
            .collect()
    }

    #[test]
    fn a_new_row_is_written_whole() {
        let mut rows = TableRows::default();
        rows.put(lot());
        let written: Vec<_> = rows.writes().collect();
        let [(RowChange::Insert, cells)] = &*written else {
            panic!("{written:?}");
        };
        assert_eq!(cells.len(), 12);
        assert_eq!(cells[3], ("expires_at", ColumnValue::Number(None)));
        assert_eq!(cells[4], ("once", ColumnValue::Number(Some(1))));
        assert_eq!(
            cells[10],
            ("created_by", ColumnValue::Text(Some("ada".into())))
        );
        assert_eq!(cells[11], ("operation", ColumnValue::Bytes(Some(&[1; 16]))));
        rows.take(&lot().id);
        assert_eq!(names(&rows), []);
    }

    #[test]
    fn of_a_stored_row_what_may_change_is_written() {
        let mut rows = TableRows::default();
        rows.fetched(lot());
        assert_eq!(names(&rows), []);
        rows.put(Lot {
            redeemed: 1,
            ..lot()
        });
        // What the database has is older than what is known.
        rows.fetched(lot());
        assert_eq!(rows.get(&lot().id).map(|lot| lot.redeemed), Some(1));
        let update = vec!["id", "void", "redeemed"];
        assert_eq!(names(&rows), [(RowChange::Update, update)]);
        rows.take(&lot().id);
        assert_eq!(names(&rows), [(RowChange::Delete, vec!["id"])]);
        rows.clear();
        assert_eq!(names(&rows), []);
    }

    #[test]
    fn a_key_that_is_no_member_is_written_and_not_read() {
        let mut rows = TableRows::default();
        rows.put(Payment {
            reference: "Pi 1".to_owned(),
            customer: CustomerId::from_random(1),
            paid: PaidSum {
                currency: "EUR".to_owned(),
                gross: Gross::ZERO,
                tax: Gross::ZERO,
            },
            credit: Amount::ZERO,
            plan: None,
            registers: crate::rule::payment::Registers::default(),
            waiting: Vec::new(),
            status: crate::rule::payment::PaymentStatus::Returned,
            actor: "ada".to_owned(),
            token: None,
            at: Timestamp::from_millis(7),
        });
        let (_, cells) = rows.writes().next().unwrap();
        let folded = crate::value::reference::folded("Pi 1");
        assert_eq!(cells[0], ("folded", ColumnValue::Text(Some(folded.into()))));
        assert_eq!(cells.len(), 17);
        assert!(!Payment::names().contains("folded"));
    }

    #[test]
    fn a_row_that_may_be_there_is_written_over() {
        let kept = KeptAnswer {
            id: AnswerId([1; 32]),
            token: None,
            at: Timestamp::from_millis(7),
            operation: None,
            body: SecretHash([2; 32]),
            answer: ApiAnswer {
                status: 200,
                body: "{}".to_owned(),
            },
        };
        let mut rows = TableRows::default();
        rows.fetched(kept.clone());
        rows.put(kept);
        let [(RowChange::Insert, all)] = &*names(&rows) else {
            panic!("an answer is inserted");
        };
        assert_eq!(all.len(), 7);
        assert!(
            KeptAnswer::conflict()
                .starts_with(" ON CONFLICT (id) DO UPDATE SET at = excluded.at, ")
        );
        assert_eq!(Lot::conflict(), "");
        assert_eq!(
            crate::FilesAct::conflict(),
            " ON CONFLICT (operation) DO NOTHING"
        );
    }
}
