//! How the verifier reads a database, and what only a database has: each customer in one short snapshot, and rows of no customer last.

mod guards;

use std::collections::BTreeSet;

use super::link::Link;
use super::rows::{
    self, Columns, SELECT_ACT, SELECT_CUSTOMER, SELECT_ENTRY, SELECT_HOLD, SELECT_KEY_RECORD,
};
use super::table_rows;
use super::trouble::TransactionTrouble;
use crate::book::anchor::Anchor;
use crate::book::chain::{self, ChainedAct, ChainedEntry};
use crate::book::head::StoredCustomer;
use crate::book::house_act::HouseBook;
use crate::book::verify::{self, CustomerRows, HourlyUsage, LedgerIdentity, LedgerReader, ReadRow};
use crate::rule::link::SignInLink;
use crate::store::rows::{Decoded, Malformed, RowColumns as _, rollup_columns, served_columns};
use crate::store::select::select;
use crate::store::strays::{self, Question, STRAYS};
use crate::value::reference;
use crate::{CustomerId, OperationId, Session, VerifyReport};

/// Customers whose numbers are read at a time.
const CUSTOMERS: i64 = 1_000;
/// Entries or acts read at a time.
const PAGE: i64 = 2_000;

/// Asked of a database only: there nothing else meets these rows.
const OWN_STRAYS: [Question; 4] = [
    (
        "an entry of no customer",
        "SELECT count(*) FROM entries WHERE customer NOT IN (SELECT id FROM accounts)",
    ),
    (
        "an act of no customer",
        "SELECT count(*) FROM audit WHERE customer NOT IN (SELECT id FROM accounts)",
    ),
    (
        "an hour of usage of no key",
        "SELECT count(*) FROM usage WHERE key NOT IN (SELECT id FROM keys)",
    ),
    (
        "a hold of no gateway",
        "SELECT count(*) FROM holds WHERE epoch <> 0 AND epoch NOT IN (SELECT epoch FROM nodes)",
    ),
];

/// Checks everything.
pub(super) async fn verify(
    link: &Link,
    anchors: &[Anchor],
) -> Result<VerifyReport, TransactionTrouble> {
    verify::verify(&mut DatabaseReader { link }, anchors).await
}

struct DatabaseReader<'link> {
    link: &'link Link,
}

/// Rows, each of them or why it cannot be read.
fn all<T>(
    what: &str,
    rows: &[tokio_postgres::Row],
    decode: fn(&tokio_postgres::Row) -> Decoded<T>,
) -> Vec<ReadRow<T>> {
    rows.iter()
        .map(|row| decode(row).map_err(|why| format!("{what}: {why}")))
        .collect()
}

impl DatabaseReader<'_> {
    async fn customer_rows(
        &self,
        number: i64,
    ) -> Result<ReadRow<CustomerRows>, TransactionTrouble> {
        const OF_KEYS: &str = " WHERE key IN (SELECT id FROM keys WHERE customer = $1)";
        let link = self.link;
        let customer = format!("{SELECT_CUSTOMER} WHERE a.id = $1");
        let keys = format!("{SELECT_KEY_RECORD} WHERE k.customer = $1");
        let found = link.query(&customer, &[&number]).await?;
        let Some(found) = found.first() else {
            return Ok(Err("has keys, and is not there itself".to_owned()));
        };
        let keys = link.query(&keys, &[&number]).await?;
        let of_keys = |select: &str| format!("{select}{OF_KEYS}");
        let holds = link.query(&of_keys(SELECT_HOLD), &[&number]).await?;
        let sessions = link
            .query(&of_keys(&select::<Session>()), &[&number])
            .await?;
        let links = link
            .query(&of_keys(&select::<SignInLink>()), &[&number])
            .await?;
        let usage = self.usage(number).await?;
        let personal = "SELECT data FROM personal_data WHERE customer = $1";
        let personal = link.query(personal, &[&number]).await?;
        let payments = "WHERE customer = $1 ORDER BY folded";
        let payments = table_rows::read(link, payments, &[&number]).await?;
        let grants = "WHERE customer = $1 ORDER BY id";
        let subscriptions = table_rows::read(link, grants, &[&number]).await?;
        let windows = table_rows::read(link, grants, &[&number]).await?;
        let grants = table_rows::read(link, grants, &[&number]).await?;
        let runs = "SELECT month, '', sum(requests)::bigint, sum(charge)::bigint FROM runs WHERE customer = $1 GROUP BY month";
        let runs = link.query(runs, &[&number]).await?;
        let read = || -> Decoded<CustomerRows> {
            let (stored, traffic, next_grant_at) = rows::stored_customer(found)?;
            let personal = personal.first().map(rows::row).transpose()?;
            Ok(CustomerRows {
                stored,
                keys: keys.iter().map(rows::key_record).collect::<Decoded<_>>()?,
                holds: holds
                    .iter()
                    .map(rows::stored_hold)
                    .collect::<Decoded<_>>()?,
                sessions: sessions.iter().map(rows::row).collect::<Decoded<_>>()?,
                links: links.iter().map(rows::row).collect::<Decoded<_>>()?,
                personal,
                payments,
                grants,
                subscriptions,
                windows,
                runs: runs.iter().map(rows::row).collect::<Decoded<_>>()?,
                next_grant_at,
                traffic: Some(traffic),
                usage: Some(usage?),
            })
        };
        Ok(read().map_err(|why: Malformed| why.to_string()))
    }

    async fn usage(&self, number: i64) -> Result<Decoded<HourlyUsage>, TransactionTrouble> {
        let sql = concat!(
            "SELECT key, hour, slug, target, ",
            served_columns!(),
            ", ",
            rollup_columns!(),
            " FROM usage WHERE key IN (SELECT id FROM keys WHERE customer = $1)"
        );
        let rows = self.link.query(sql, &[&number]).await?;
        let hour = |row| {
            let mut columns = Columns::of(row);
            let (key, hour) = (columns.read()?, columns.number()?);
            let (slug, target) = (columns.read()?, columns.read()?);
            let place = (key, hour, slug, target, columns.served()?);
            Ok((place, columns.rollup()?))
        };
        Ok(rows.iter().map(hour).collect())
    }

    async fn count(&self, sql: &str) -> Result<i64, TransactionTrouble> {
        let rows = self.link.query(sql, &[]).await?;
        let count = rows.first().map(|row| Columns::of(row).number());
        Ok(count.transpose()?.unwrap_or_default())
    }
}

impl LedgerReader for DatabaseReader<'_> {
    type Error = TransactionTrouble;

    async fn identity(&mut self) -> Result<Option<LedgerIdentity>, TransactionTrouble> {
        let sql = "SELECT ledger, generation FROM identity WHERE id = 1";
        let rows = self.link.query(sql, &[]).await?;
        Ok(rows.first().and_then(|row| {
            let mut columns = Columns::of(row);
            Some(LedgerIdentity {
                genesis: chain::genesis(&columns.read::<OperationId>().ok()?.to_bytes()),
                generation: Some(columns.number().ok()?),
            })
        }))
    }

    async fn customers(&mut self, after: i64) -> Result<Vec<i64>, TransactionTrouble> {
        let sql = "SELECT id FROM (SELECT customer AS id FROM keys UNION SELECT id FROM accounts) i WHERE id > $1 ORDER BY id LIMIT $2";
        let rows = self.link.query(sql, &[&after, &CUSTOMERS]).await?;
        rows.iter()
            .map(|row| Ok(Columns::of(row).number()?))
            .collect()
    }

    async fn customer(&mut self, number: i64) -> Result<ReadRow<CustomerRows>, TransactionTrouble> {
        if CustomerId::from_i64(number).is_none() {
            return Ok(Err("is not a customer's id".to_owned()));
        }
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        self.link.client.batch_execute(begin).await?;
        self.customer_rows(number).await
    }

    async fn entries(
        &mut self,
        customer: &StoredCustomer,
        before: Option<&ChainedEntry>,
    ) -> Result<Vec<ReadRow<ChainedEntry>>, TransactionTrouble> {
        let sql = format!(
            "{SELECT_ENTRY} WHERE e.customer = $1 AND e.seq < $2 ORDER BY e.seq DESC LIMIT $3"
        );
        let before = before.map_or(i64::MAX, |before| before.entry.seq);
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&customer.customer.id.to_i64(), &before, &PAGE];
        let rows = self.link.query(&sql, &values).await?;
        Ok(all("an entry", &rows, rows::stored_entry))
    }

    async fn acts(
        &mut self,
        customer: &StoredCustomer,
        before: Option<&ChainedAct>,
    ) -> Result<Vec<ReadRow<ChainedAct>>, TransactionTrouble> {
        let sql =
            format!("{SELECT_ACT} WHERE customer = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3");
        let before = before.map_or(i64::MAX, |before| before.record.seq);
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&customer.customer.id.to_i64(), &before, &PAGE];
        let rows = self.link.query(&sql, &values).await?;
        Ok(all("an administrative act", &rows, rows::stored_act))
    }

    async fn taken(
        &mut self,
        folded: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, TransactionTrouble> {
        let folded: Vec<&str> = folded.iter().map(String::as_str).collect();
        let sql = "SELECT r.folded, e.reference FROM refs r JOIN entries e ON e.operation = r.operation WHERE r.folded = ANY ($1::text[])";
        let mut taken = BTreeSet::new();
        for row in &self.link.query(sql, &[&folded]).await? {
            let mut columns = Columns::of(row);
            let (name, owner): (String, Option<String>) = (columns.read()?, columns.read()?);
            if owner.as_deref().map(reference::folded).as_ref() == Some(&name) {
                taken.insert(name);
            }
        }
        Ok(taken)
    }

    async fn house(&mut self) -> Result<ReadRow<HouseBook>, TransactionTrouble> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        self.link.client.batch_execute(begin).await?;
        let book = HouseBook::read(&mut self.link).await;
        self.link.client.batch_execute("ROLLBACK").await?;
        match book {
            Ok(book) => Ok(Ok(book)),
            Err(TransactionTrouble::Failed(why)) => Ok(Err(format!("a token or voucher: {why}"))),
            Err(other) => Err(other),
        }
    }

    /// A customer that is none began no snapshot; the server only warns then.
    async fn end_customer(&mut self) -> Result<(), TransactionTrouble> {
        Ok(self.link.client.batch_execute("ROLLBACK").await?)
    }

    async fn rest(&mut self, _: &[Anchor]) -> Result<Vec<String>, TransactionTrouble> {
        let mut faults = Vec::new();
        for (what, sql) in STRAYS.into_iter().chain(OWN_STRAYS) {
            let count = self.count(sql).await?;
            faults.extend(strays::fault(what, count));
        }
        faults.extend(guards::faults(self.link).await?);
        Ok(faults)
    }
}
