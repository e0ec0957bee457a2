//! Anchors of a ledger in a database: the ends of every customer's chains, in one snapshot that a standby has.
//!
//! Positions have gaps and commit in any order, so they do not tell which customers have changed: all are read, and the anchor file
//! leaves out those that it already has.

use super::link::Link;
use super::rows::Columns;
use super::table_rows;
use super::trouble::TransactionTrouble;
use crate::Timestamp;
use crate::book::anchor::{Anchor, ChainHeads, Heads, HouseEnd};
use crate::store::rows::RowColumns as _;

const HEADS: &str =
    "SELECT a.id, a.seq, a.hash, a.audit_seq, a.audit_hash, a.opened FROM accounts a ORDER BY a.id";

/// The current ends of the chains. Returns when a standby has everything that was read: after a restart of the primary a read can
/// see what no standby has, and the record written here follows it in the server's log.
pub(super) async fn anchor(link: &Link, now: Timestamp) -> Result<Anchor, TransactionTrouble> {
    link.client
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        .await?;
    let rows = link
        .query("SELECT generation FROM identity WHERE id = 1", &[])
        .await?;
    let row = rows
        .first()
        .ok_or_else(|| TransactionTrouble::Failed("the database has no identity".into()))?;
    let generation = Columns::of(row).take()?;
    let mut heads = Heads {
        at: now.to_string(),
        entries: 0,
        acts: 0,
        opened: 0,
        customers: Vec::new(),
        generation,
        house: HouseEnd::of(table_rows::house_head(link).await?),
    };
    for row in &link.query(HEADS, &[]).await? {
        let mut columns = Columns::of(row);
        let (customer, seq, hash) = (columns.read()?, columns.take()?, columns.read()?);
        let head = ChainHeads {
            customer,
            seq,
            hash,
            act: columns.take()?,
            act_hash: columns.read()?,
        };
        heads.entries = heads.entries.saturating_add(head.seq);
        heads.acts = heads.acts.saturating_add(head.act);
        heads.opened = heads.opened.saturating_add(columns.take()?);
        heads.customers.push(head);
    }
    link.take_warning();
    link.client
        .batch_execute("SELECT pg_logical_emit_message(true, 'farebox', 'anchor'); COMMIT")
        .await?;
    if link.take_warning() {
        return Err(TransactionTrouble::Unknown(
            "the server committed with a warning".into(),
        ));
    }
    Ok(Anchor::Heads(heads))
}
