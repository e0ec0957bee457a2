//! Described tables in a database: what a batch writes of them, and how they are read.

use tokio_postgres::types::ToSql;

use super::link::Link;
use super::readers::Readers;
use super::rows::row;
use super::trouble::TransactionTrouble;
use super::writes::{SqlValue, TableWrite, Write};
use crate::book::head::HouseHead;
use crate::book::house_act::{self, ChainedHouseAct};
use crate::store::rows::rows_at_most;
use crate::store::select::select;
use crate::table::columns::ColumnValue;
use crate::table::description::{DescribedRow, RowChange, WrittenColumn};
use crate::table::list::{NEWEST_HOUSE_ACT, TableReader, TableVisitor};
use crate::table::rows::TableRows;
use crate::value::reference;
use crate::{FilesAct, HouseAct, LedgerError, OperationId, Payment};

/// The values of a column as one parameter, and the type of each, which is that of `like`.
pub(super) fn array<'row>(
    like: &ColumnValue<'_>,
    values: impl Iterator<Item = ColumnValue<'row>>,
) -> (&'static str, SqlValue<'row>) {
    let (mut numbers, mut texts, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for value in values {
        match value {
            ColumnValue::Number(number) => numbers.push(number),
            ColumnValue::Text(text) => texts.push(text),
            ColumnValue::Bytes(found) => bytes.push(found),
        }
    }
    match like {
        ColumnValue::Number(_) => ("bigint", Box::new(numbers)),
        ColumnValue::Text(_) => ("text", Box::new(texts)),
        ColumnValue::Bytes(_) => ("bytea", Box::new(bytes)),
    }
}

/// A value as a parameter.
pub(super) fn one(value: ColumnValue<'_>) -> SqlValue<'_> {
    match value {
        ColumnValue::Number(number) => Box::new(number),
        ColumnValue::Text(text) => Box::new(text),
        ColumnValue::Bytes(bytes) => Box::new(bytes),
    }
}

impl<'rows, R> TableWrite<'_, 'rows, R> {
    /// The columns that a description names.
    pub(super) fn described(self, cells: impl Fn(&R) -> Vec<WrittenColumn<'rows>>) -> Self {
        let all: Vec<_> = self.rows().iter().map(cells).collect();
        let first = all.first().into_iter().flatten().enumerate();
        first.fold(self, |table, (place, (name, like))| {
            let values = all.iter().filter_map(|cells| cells.get(place));
            let values = values.map(|(_, value)| value.clone());
            table.with(name, array(like, values))
        })
    }
}

/// Adds what has changed of a table: one statement for what goes, one for what is new, one for what changes.
impl<'set> TableVisitor<'set> for Vec<Write<'set>> {
    type Error = TransactionTrouble;

    fn table<T: DescribedRow>(
        &mut self,
        rows: &'set TableRows<T>,
    ) -> Result<(), TransactionTrouble> {
        let all: Vec<_> = rows.writes().collect();
        for wanted in [RowChange::Delete, RowChange::Insert, RowChange::Update] {
            let found = all.iter().filter(|(change, _)| *change == wanted);
            let found: Vec<&Vec<WrittenColumn<'set>>> = found.map(|(_, cells)| cells).collect();
            if found.is_empty() {
                continue;
            }
            let table = TableWrite::of(T::TABLE, &found).described(|cells| (*cells).clone());
            self.push(match wanted {
                RowChange::Delete => table.delete(),
                RowChange::Insert => table.insert(&T::conflict()),
                RowChange::Update => table.update(T::KEY),
            });
        }
        Ok(())
    }
}

/// The rows of which a condition is true.
pub(super) async fn read<T: DescribedRow>(
    link: &Link,
    condition: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<T>, TransactionTrouble> {
    let rows = link
        .query(&format!("{}{condition}", select::<T>()), values)
        .await?;
    rows.iter().map(|found| Ok(row(found)?)).collect()
}

impl Readers {
    /// The rows of which a condition is true.
    pub(super) async fn rows<T: DescribedRow>(
        &self,
        condition: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<T>, LedgerError> {
        self.with(|link| async move { read(&link, condition, values).await })
            .await
    }

    /// The row of which a condition is true.
    pub(super) async fn find<T: DescribedRow>(
        &self,
        condition: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<T>, LedgerError> {
        Ok(self.rows(condition, values).await?.into_iter().next())
    }

    pub(super) async fn payment(&self, spelled: &str) -> Result<Option<Payment>, LedgerError> {
        let folded = reference::folded(spelled);
        // No stored text contains U+0000, and no parameter can carry it.
        if folded.contains('\0') {
            return Ok(None);
        }
        self.find("WHERE folded = $1", &[&folded]).await
    }

    pub(super) async fn house_acts(&self) -> Result<Vec<HouseAct>, LedgerError> {
        let mut reader = self;
        let acts = reader.all::<ChainedHouseAct>().await?;
        Ok(acts.into_iter().map(|chained| chained.act).collect())
    }

    /// Configurations that came into force, newest first.
    pub(super) async fn files_acts(
        &self,
        before: Option<OperationId>,
        limit: usize,
    ) -> Result<Vec<FilesAct>, LedgerError> {
        let which = "WHERE $1::bytea IS NULL OR operation < $1 ORDER BY operation DESC LIMIT $2";
        let before = before.as_ref().map(OperationId::as_bytes);
        self.rows(which, &[&before, &rows_at_most(limit)]).await
    }
}

impl TableReader for &Readers {
    type Error = LedgerError;

    async fn all<T: DescribedRow>(&mut self) -> Result<Vec<T>, LedgerError> {
        self.with(|link| async move { (&*link).all().await }).await
    }
}

/// The end of the chain of acts that belong to no customer.
pub(super) async fn house_head(link: &Link) -> Result<HouseHead, TransactionTrouble> {
    Ok(house_act::head(
        read(link, NEWEST_HOUSE_ACT, &[]).await?.iter(),
    ))
}

impl TableReader for &Link {
    type Error = TransactionTrouble;

    async fn all<T: DescribedRow>(&mut self) -> Result<Vec<T>, TransactionTrouble> {
        read(self, &T::all(), &[]).await
    }
}

#[cfg(test)]
mod tests {
    use crate::rule::voucher::Voucher;
    use crate::table::list::TableSet;
    use crate::{KeyId, LotId, SecretHash, Session, Timestamp};

    #[test]
    fn statements_follow_from_descriptions() {
        let session = |number| Session {
            token: SecretHash([number; 32]),
            key: KeyId::from_random(1),
            at: Timestamp::from_millis(7),
            expires: Timestamp::from_millis(9),
        };
        let voucher = Voucher {
            code: SecretHash([1; 32]),
            lot: LotId::from_random(1),
            number: 1,
            redeemed: None,
        };
        let mut set = TableSet::default();
        set.fetched(session(1));
        set.take::<Session>(&[1; 32]);
        set.put(session(2));
        set.put(session(3));
        set.fetched(voucher.clone());
        set.put(voucher);
        let mut writes = Vec::new();
        set.each(&mut writes).unwrap();
        let texts: Vec<_> = writes.iter().map(|write| &*write.sql).collect();
        assert_eq!(
            texts,
            [
                "DELETE FROM sessions WHERE token = ANY ($1::bytea[])",
                "INSERT INTO sessions AS t (token, key, at, expires) \
                 SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[])",
                "UPDATE vouchers t SET customer = u.customer, operation = u.operation \
                 FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) AS u (code, customer, operation) WHERE t.code = u.code",
            ]
        );
    }
}
