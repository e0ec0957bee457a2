//! How the verifier reads a database, and what only a database has: each key in one short snapshot, and rows of no key last.

mod guards;

use std::collections::BTreeSet;

use super::link::Link;
use super::rows::{
    self, Columns, SELECT_ACT, SELECT_ENTRY, SELECT_HOLD, SELECT_KEY, SELECT_LINK, SELECT_SESSION,
};
use super::trouble::TransactionTrouble;
use crate::book::anchor::Anchor;
use crate::book::chain::{self, ChainedAct, ChainedEntry};
use crate::book::head::StoredKey;
use crate::book::verify::{self, HourlyUsage, KeyRows, LedgerIdentity, LedgerReader, ReadRow};
use crate::store::rows::{Decoded, Malformed, RowColumns as _, rollup_columns, served_columns};
use crate::value::reference;
use crate::{KeyId, VerifyReport};

/// Keys whose numbers are read at a time.
const KEYS: i64 = 1_000;
/// Entries or acts read at a time.
const PAGE: i64 = 2_000;

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
    async fn key_rows(&self, number: i64) -> Result<ReadRow<KeyRows>, TransactionTrouble> {
        let link = self.link;
        let key = format!("{SELECT_KEY} WHERE k.id = $1");
        let holds = format!("{SELECT_HOLD} WHERE key = $1");
        let sessions = format!("{SELECT_SESSION} WHERE key = $1");
        let links = format!("{SELECT_LINK} WHERE key = $1");
        let found = link.query(&key, &[&number]).await?;
        let Some(found) = found.first() else {
            return Ok(Err(
                "has no account, or is an account without a key".to_owned()
            ));
        };
        let holds = link.query(&holds, &[&number]).await?;
        let sessions = link.query(&sessions, &[&number]).await?;
        let links = link.query(&links, &[&number]).await?;
        let usage = self.usage(number).await?;
        let read = || -> Decoded<KeyRows> {
            let (stored, traffic) = rows::stored_key(found)?;
            let link = |row| rows::link(row).map(|(token, _, expires)| (token, expires));
            Ok(KeyRows {
                stored,
                holds: holds
                    .iter()
                    .map(rows::stored_hold)
                    .collect::<Decoded<_>>()?,
                sessions: sessions.iter().map(rows::session).collect::<Decoded<_>>()?,
                links: links.iter().map(link).collect::<Decoded<_>>()?,
                traffic: Some(traffic),
                usage: Some(usage?),
            })
        };
        Ok(read().map_err(|why: Malformed| why.to_string()))
    }

    async fn usage(&self, number: i64) -> Result<Decoded<HourlyUsage>, TransactionTrouble> {
        let sql = concat!(
            "SELECT hour, slug, target, ",
            served_columns!(),
            ", ",
            rollup_columns!(),
            " FROM usage WHERE key = $1"
        );
        let rows = self.link.query(sql, &[&number]).await?;
        let hour = |row| {
            let mut columns = Columns::of(row);
            let (hour, slug, target) = (columns.number()?, columns.text()?, columns.text()?);
            let place = (hour, slug, target, columns.served()?);
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
                genesis: chain::genesis(&columns.operation().ok()?.to_bytes()),
                generation: Some(columns.number().ok()?),
            })
        }))
    }

    async fn keys(&mut self, after: i64) -> Result<Vec<i64>, TransactionTrouble> {
        let sql = "SELECT id FROM (SELECT id FROM keys UNION SELECT id FROM accounts) i WHERE id > $1 ORDER BY id LIMIT $2";
        let rows = self.link.query(sql, &[&after, &KEYS]).await?;
        rows.iter()
            .map(|row| Ok(Columns::of(row).number()?))
            .collect()
    }

    async fn key(&mut self, number: i64) -> Result<ReadRow<KeyRows>, TransactionTrouble> {
        if KeyId::from_i64(number).is_none() {
            return Ok(Err("is not a key's id".to_owned()));
        }
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        self.link.client.batch_execute(begin).await?;
        self.key_rows(number).await
    }

    async fn entries(
        &mut self,
        key: &StoredKey,
        before: Option<&ChainedEntry>,
    ) -> Result<Vec<ReadRow<ChainedEntry>>, TransactionTrouble> {
        let sql =
            format!("{SELECT_ENTRY} WHERE e.key = $1 AND e.seq < $2 ORDER BY e.seq DESC LIMIT $3");
        let before = before.map_or(i64::MAX, |before| before.entry.seq);
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&key.key.id.to_i64(), &before, &PAGE];
        let rows = self.link.query(&sql, &values).await?;
        Ok(all("an entry", &rows, rows::stored_entry))
    }

    async fn acts(
        &mut self,
        key: &StoredKey,
        before: Option<&ChainedAct>,
    ) -> Result<Vec<ReadRow<ChainedAct>>, TransactionTrouble> {
        let sql = format!("{SELECT_ACT} WHERE key = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3");
        let before = before.map_or(i64::MAX, |before| before.record.seq);
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&key.key.id.to_i64(), &before, &PAGE];
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
            let (name, owner) = (columns.text()?, columns.maybe_text()?);
            if owner.as_deref().map(reference::folded).as_ref() == Some(&name) {
                taken.insert(name);
            }
        }
        Ok(taken)
    }

    /// A key that is none began no snapshot; the server only warns then.
    async fn end_key(&mut self) -> Result<(), TransactionTrouble> {
        Ok(self.link.client.batch_execute("ROLLBACK").await?)
    }

    async fn rest(&mut self, _: &[Anchor]) -> Result<Vec<String>, TransactionTrouble> {
        let mut faults = Vec::new();
        for (what, sql) in [
            (
                "hold",
                "SELECT count(*) FROM holds WHERE key NOT IN (SELECT id FROM keys)",
            ),
            (
                "session",
                "SELECT count(*) FROM sessions WHERE key NOT IN (SELECT id FROM keys)",
            ),
            (
                "sign-in link",
                "SELECT count(*) FROM links WHERE key NOT IN (SELECT id FROM keys)",
            ),
            (
                "entry",
                "SELECT count(*) FROM entries WHERE key NOT IN (SELECT id FROM keys)",
            ),
            (
                "act",
                "SELECT count(*) FROM audit WHERE key NOT IN (SELECT id FROM keys)",
            ),
            (
                "usage row",
                "SELECT count(*) FROM usage WHERE key NOT IN (SELECT id FROM keys)",
            ),
            (
                "reference",
                "SELECT count(*) FROM refs r WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.operation = r.operation)",
            ),
            (
                "hold of no gateway",
                "SELECT count(*) FROM holds WHERE epoch <> 0 AND epoch NOT IN (SELECT epoch FROM nodes)",
            ),
        ] {
            let count = self.count(sql).await?;
            if count > 0 {
                faults.push(format!("{count} × a {what} that belongs to nothing"));
            }
        }
        faults.extend(guards::faults(self.link).await?);
        Ok(faults)
    }
}
