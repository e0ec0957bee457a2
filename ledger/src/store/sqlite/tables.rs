//! Described tables in a file: what a batch writes of them, and how they are read.

use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Params, Result, params_from_iter};

use super::batch::{BatchTables, Changed};
use super::readers::Readers;
use super::rows::row;
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

impl ToSql for ColumnValue<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Number(Some(number)) => ToSqlOutput::Owned(Value::Integer(*number)),
            Self::Text(Some(text)) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Bytes(Some(bytes)) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Self::Number(None) | Self::Text(None) | Self::Bytes(None) => {
                ToSqlOutput::Owned(Value::Null)
            }
        })
    }
}

/// Writes what has changed of a table.
impl<'set> TableVisitor<'set> for BatchTables<'_> {
    type Error = rusqlite::Error;

    fn table<T: DescribedRow>(&mut self, rows: &'set TableRows<T>) -> Result<()> {
        for (change, cells) in rows.writes() {
            self.write_row::<T>(change, &cells)?;
            // What is there may stay as it is.
            if !T::MAY_BE_THERE {
                self.mark(Changed::Rows);
            }
        }
        Ok(())
    }
}

impl BatchTables<'_> {
    pub(super) fn write_row<T: DescribedRow>(
        &mut self,
        change: RowChange,
        cells: &[WrittenColumn<'_>],
    ) -> Result<()> {
        let write = self
            .statements
            .of_table((T::TABLE, change), || text::<T>(change, cells))?;
        write.execute(params_from_iter(cells.iter().map(|(_, value)| value)))?;
        Ok(())
    }
}

fn text<T: DescribedRow>(change: RowChange, cells: &[WrittenColumn<'_>]) -> String {
    let numbered: Vec<_> = (1..).zip(cells).collect();
    let all =
        |one: fn(usize, &str) -> String, between: &str, of: &[(usize, &WrittenColumn<'_>)]| {
            let parts: Vec<_> = of
                .iter()
                .map(|(place, (name, _))| one(*place, name))
                .collect();
            parts.join(between)
        };
    let set = |place: usize, name: &str| format!("{name} = ?{place}");
    let (key, changing) = numbered.split_at(T::KEY.len().min(numbered.len()));
    let key = all(set, " AND ", key);
    match change {
        RowChange::Insert => format!(
            "INSERT INTO {} ({}) VALUES ({}){}",
            T::TABLE,
            all(|_, name| name.to_owned(), ", ", &numbered),
            all(|place, _| format!("?{place}"), ", ", &numbered),
            T::conflict()
        ),
        RowChange::Update => format!(
            "UPDATE {} SET {} WHERE {key}",
            T::TABLE,
            all(set, ", ", changing)
        ),
        RowChange::Delete => format!("DELETE FROM {} WHERE {key}", T::TABLE),
    }
}

/// The rows of which a condition is true.
pub(super) fn read<T: DescribedRow>(
    conn: &Connection,
    condition: &str,
    values: impl Params,
) -> Result<Vec<T>> {
    let mut statement = conn.prepare_cached(&format!("{}{condition}", select::<T>()))?;
    statement.query_map(values, row)?.collect()
}

impl Readers {
    /// The rows of which a condition is true.
    pub(super) async fn rows<T: DescribedRow>(
        &self,
        condition: &'static str,
        values: impl Params + Send + 'static,
    ) -> Result<Vec<T>, LedgerError> {
        self.scan(move |conn, _| read(conn, condition, values))
            .await
    }

    /// The row of which a condition is true.
    pub(super) fn find<T: DescribedRow>(
        &self,
        condition: &str,
        values: impl Params,
    ) -> Result<Option<T>, LedgerError> {
        self.point(|conn| Ok(read(conn, condition, values)?.pop()))
    }

    pub(super) fn payment(&self, spelled: &str) -> Result<Option<Payment>, LedgerError> {
        self.find("WHERE folded = ?1", [reference::folded(spelled)])
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
        let which = "WHERE ?1 IS NULL OR operation < ?1 ORDER BY operation DESC LIMIT ?2";
        self.rows(which, (before, rows_at_most(limit))).await
    }
}

impl TableReader for &Readers {
    type Error = LedgerError;

    async fn all<T: DescribedRow>(&mut self) -> Result<Vec<T>, LedgerError> {
        self.scan(|conn, _| all(conn)).await
    }
}

/// The end of the chain of acts that belong to no customer.
pub(super) fn house_head(conn: &Connection) -> Result<HouseHead> {
    Ok(house_act::head(read(conn, NEWEST_HOUSE_ACT, [])?.iter()))
}

impl TableReader for &Connection {
    type Error = rusqlite::Error;

    async fn all<T: DescribedRow>(&mut self) -> Result<Vec<T>> {
        all(self)
    }
}

fn all<T: DescribedRow>(conn: &Connection) -> Result<Vec<T>> {
    read(conn, &T::all(), [])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::voucher::Voucher;
    use crate::{FilesAct, LotId, OperationId, SecretHash, Timestamp, TokenDay, TokenId, UtcDay};

    /// What a change of the only row is written by.
    fn written<T: DescribedRow>(rows: &TableRows<T>) -> String {
        let (change, cells) = rows.writes().next().unwrap();
        text::<T>(change, &cells)
    }

    #[test]
    fn statements_follow_from_descriptions() {
        assert_eq!(
            select::<FilesAct>(),
            "SELECT operation, at, actor, details FROM files_acts "
        );
        let mut acts = TableRows::default();
        acts.put(FilesAct {
            operation: OperationId::from_bytes([1; 16]),
            at: Timestamp::from_millis(7),
            actor: "ada".to_owned(),
            details: "{}".to_owned(),
        });
        assert_eq!(
            written(&acts),
            "INSERT INTO files_acts (operation, at, actor, details) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (operation) DO NOTHING"
        );
        let day = TokenDay::empty(TokenId::from_random(1), UtcDay(3));
        let mut days = TableRows::default();
        days.put(day);
        assert_eq!(
            written(&days),
            "INSERT INTO token_days (token, day, booked, payments, customers, keys, reissues, reversed, reversed_payments, unapplied) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (token, day) DO UPDATE SET booked = excluded.booked, \
             payments = excluded.payments, customers = excluded.customers, keys = excluded.keys, reissues = excluded.reissues, \
             reversed = excluded.reversed, reversed_payments = excluded.reversed_payments, unapplied = excluded.unapplied"
        );
        let voucher = Voucher {
            code: SecretHash([1; 32]),
            lot: LotId::from_random(1),
            number: 1,
            redeemed: None,
        };
        let mut vouchers = TableRows::default();
        vouchers.fetched(voucher.clone());
        vouchers.put(voucher);
        assert_eq!(
            written(&vouchers),
            "UPDATE vouchers SET customer = ?2, operation = ?3 WHERE code = ?1"
        );
        vouchers.take(&[1; 32]);
        assert_eq!(written(&vouchers), "DELETE FROM vouchers WHERE code = ?1");
    }
}
