//! Writes an entry and adds it to its hour.

use rusqlite::{Result, params};

use super::batch::Batch;
use super::rows::{lines_text, number};
use super::statements::Sql;
use super::tx::json;
use crate::book::head::Hash;
use crate::{Amount, Bill, Entry, Owed};

impl Batch<'_> {
    pub(super) fn insert_entry(
        &mut self,
        entry: &Entry,
        format: i64,
        prev: i64,
        hash: &Hash,
    ) -> Result<()> {
        let slug = entry
            .bill
            .as_ref()
            .map(|bill| self.slug(&bill.slug))
            .transpose()?;
        let bill = entry.bill.as_ref();
        let counted = |pick: fn(&Bill) -> u64| bill.map(|bill| number(pick(bill)));
        let lines = bill.map(|bill| lines_text(&bill.lines)).transpose()?;
        let pairs = bill.map(Bill::pairs).filter(|pairs| !pairs.is_empty());
        let facts = pairs.map(|pairs| json(&pairs)).transpose()?;
        self.statements.get(Sql::InsertEntry)?.execute(params![
            entry.position,
            entry.key,
            entry.seq,
            prev,
            entry.operation,
            entry.kind,
            entry.amount,
            entry.balance_after,
            entry.at,
            entry.actor,
            entry.reference,
            entry.reason,
            entry.refunds,
            slug,
            bill.map(|bill| &bill.family),
            bill.map(|bill| &bill.target),
            bill.map(|bill| bill.status),
            bill.map(|bill| bill.end_reason.as_str()),
            bill.map(|bill| bill.first_byte_ms),
            bill.map(|bill| bill.total_ms),
            bill.map(|bill| &bill.answer_id),
            bill.map(|bill| bill.hold),
            bill.map(|bill| bill.loss),
            bill.and_then(|bill| bill.evidence),
            counted(|bill| bill.usage.input),
            counted(|bill| bill.usage.cache_read),
            counted(|bill| bill.usage.cache_write),
            counted(|bill| bill.usage.cache_write_1h),
            counted(|bill| bill.usage.output),
            counted(|bill| bill.usage.reasoning),
            counted(|bill| bill.usage.images),
            lines,
            hash,
            format,
            facts,
        ])?;
        match (slug, bill) {
            (Some(slug), Some(bill)) => self.roll_up(entry, bill, slug),
            _ => Ok(()),
        }
    }

    /// Adds an ended request to its hour.
    fn roll_up(&mut self, entry: &Entry, bill: &Bill, slug: i64) -> Result<()> {
        let usage = &bill.usage;
        let charge = entry.amount.checked_neg().unwrap_or_default();
        let target = self.target(&bill.target)?;
        let values = params![
            entry.at.hour(),
            entry.key,
            slug,
            number(usage.input),
            number(usage.cache_read),
            number(usage.cache_write),
            number(usage.cache_write_1h),
            number(usage.output),
            number(usage.reasoning),
            number(usage.images),
            charge,
            bill.loss,
            target,
        ];
        if self.statements.get(Sql::UpdateUsage)?.execute(values)? == 0 {
            self.statements.get(Sql::InsertUsage)?.execute(values)?;
        }
        if bill.exposure == Amount::ZERO && bill.cost.is_none() {
            return Ok(());
        }
        self.roll_up_owed(entry, slug, &bill.target, bill.owed())?;
        bill.failed()
            .try_for_each(|(target, owed)| self.roll_up_owed(entry, slug, target, owed))
    }

    /// Adds what a target may bill to its hour.
    fn roll_up_owed(&mut self, entry: &Entry, slug: i64, target: &str, owed: Owed) -> Result<()> {
        if (owed.exposure, owed.cost.unwrap_or_default()) == (Amount::ZERO, Amount::ZERO) {
            return Ok(());
        }
        let target = self.target(target)?;
        let values = params![
            entry.at.hour(),
            entry.key,
            slug,
            target,
            owed.exposure,
            owed.cost.unwrap_or_default()
        ];
        if self.statements.get(Sql::UpdateOwed)?.execute(values)? == 0 {
            self.statements.get(Sql::InsertOwed)?.execute(values)?;
        }
        Ok(())
    }
}
