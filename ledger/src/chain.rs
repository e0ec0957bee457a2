//! The hash chain: how an entry and an audit record become the bytes that are hashed.
//!
//! Each hash is SHA-256 over a version, the hash before it of the same key, and every field in a fixed order. Numbers are eight
//! bytes big-endian, texts carry their length, optional fields say whether they are there: two different records never give the
//! same bytes. The format is frozen by the golden hashes below; it may only grow by a new version.

use sha2::{Digest, Sha256};

use crate::{AuditRecord, Bill, Entry, EntryKind, Evidence};

/// A link of the chain.
pub(crate) type Hash = [u8; 32];

/// What stands before a key's first entry and first audit record.
pub(crate) const GENESIS: Hash = [0; 32];

const ENTRY_VERSION: u8 = 1;
const AUDIT_VERSION: u8 = 129;

/// The number an entry's kind is stored and hashed as.
pub(crate) const fn kind_code(kind: EntryKind) -> i64 {
    match kind {
        EntryKind::TopUp => 1,
        EntryKind::Charge => 2,
        EntryKind::Refund => 3,
        EntryKind::Adjust => 4,
    }
}

/// The number an evidence is stored and hashed as.
pub(crate) const fn evidence_code(evidence: Evidence) -> i64 {
    match evidence {
        Evidence::Provider => 1,
        Evidence::Local => 2,
        Evidence::Disputed => 3,
        Evidence::Recovered => 4,
    }
}

/// The hash of an entry whose key's previous entry is at `prev` (0 for the first) with the hash `before`.
pub(crate) fn entry_hash(before: &Hash, prev: i64, entry: &Entry) -> Hash {
    let mut bytes = Encoder::new(ENTRY_VERSION, before);
    bytes.number(entry.position).number(entry.key.to_i64()).number(entry.seq).number(prev);
    bytes.raw(&entry.operation.to_bytes()).number(kind_code(entry.kind));
    bytes.number(entry.amount.picos()).number(entry.balance_after.picos()).number(entry.at.millis());
    bytes.text(&entry.actor).maybe_text(entry.reference.as_deref()).maybe_text(entry.reason.as_deref());
    match &entry.refunds {
        Some(request) => bytes.present().raw(&request.to_bytes()),
        None => bytes.absent(),
    };
    match &entry.bill {
        Some(bill) => bytes.present().bill(bill),
        None => bytes.absent(),
    };
    bytes.finish()
}

/// The hash of an audit record that leaves the key in `state`.
pub(crate) fn audit_hash(before: &Hash, prev: i64, record: &AuditRecord, state: &str) -> Hash {
    let mut bytes = Encoder::new(AUDIT_VERSION, before);
    bytes.number(record.position).number(record.key.to_i64()).number(prev);
    bytes.raw(&record.operation.to_bytes()).number(record.at.millis());
    bytes.text(&record.actor).text(&record.act).text(&record.details).text(state);
    bytes.finish()
}

struct Encoder(Sha256);

impl Encoder {
    fn new(version: u8, before: &Hash) -> Self {
        let mut digest = Sha256::new();
        digest.update([version]);
        digest.update(before);
        Self(digest)
    }

    fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(bytes);
        self
    }

    fn number(&mut self, number: i64) -> &mut Self {
        self.raw(&number.to_be_bytes())
    }

    fn count(&mut self, count: u64) -> &mut Self {
        self.raw(&count.to_be_bytes())
    }

    fn present(&mut self) -> &mut Self {
        self.raw(&[1])
    }

    fn absent(&mut self) -> &mut Self {
        self.raw(&[0])
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.count(text.len().try_into().unwrap_or(u64::MAX)).raw(text.as_bytes())
    }

    fn maybe_text(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.present().text(text),
            None => self.absent(),
        }
    }

    fn bill(&mut self, bill: &Bill) -> &mut Self {
        self.text(&bill.slug).text(&bill.family).text(&bill.target);
        self.number(i64::from(bill.status)).text(bill.end_reason.as_str());
        match bill.first_byte_ms {
            Some(millis) => self.present().number(i64::from(millis)),
            None => self.absent(),
        };
        self.number(i64::from(bill.total_ms)).maybe_text(bill.answer_id.as_deref());
        self.number(bill.hold.picos()).number(bill.loss.picos()).number(evidence_code(bill.evidence));
        let usage = &bill.usage;
        for count in
            [usage.input, usage.cache_read, usage.cache_write, usage.cache_write_1h, usage.output, usage.reasoning, usage.images]
        {
            self.count(count);
        }
        self.count(bill.lines.len().try_into().unwrap_or(u64::MAX));
        for line in &bill.lines {
            self.text(&line.what).count(line.count).number(line.rate.picos());
        }
        self
    }

    fn finish(self) -> Hash {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::{Amount, KeyId, Line, OperationId, Timestamp, Usage};

    fn charge() -> Entry {
        Entry {
            position: 9,
            seq: 3,
            key: KeyId::from_random(77),
            operation: OperationId::from_bytes([7; 16]),
            kind: EntryKind::Charge,
            amount: Amount::from_picos(-405),
            balance_after: Amount::from_picos(595),
            at: Timestamp::from_millis(1_790_000_000_000),
            actor: "gateway".to_owned(),
            reference: None,
            reason: None,
            refunds: None,
            bill: Some(Bill {
                slug: "a".to_owned(),
                family: "chat".to_owned(),
                target: "p/m".to_owned(),
                status: 200,
                end_reason: crate::EndReason::Stop,
                first_byte_ms: Some(12),
                total_ms: 90,
                answer_id: Some("x".to_owned()),
                hold: Amount::from_picos(500),
                loss: Amount::ZERO,
                evidence: Evidence::Local,
                usage: Usage { input: 100, output: 7, ..Usage::default() },
                lines: vec![Line { what: Cow::Borrowed("input"), count: 100, rate: Amount::from_picos(4) }],
            }),
        }
    }

    fn hex(hash: Hash) -> String {
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_format_is_frozen() {
        assert_eq!(hex(entry_hash(&GENESIS, 4, &charge())), "3d5a3c62a152fd76b7ab808d193d110440a98591faea631982788eeafbfae8bd");
        let top_up = Entry {
            kind: EntryKind::TopUp,
            amount: Amount::from_picos(1000),
            reference: Some("inv-1".to_owned()),
            bill: None,
            ..charge()
        };
        assert_eq!(hex(entry_hash(&[5; 32], 0, &top_up)), "1e5392d4e3796402577ff9f9654010dffb79fdbc4c7b72fb2d4678d5e2f49481");
        let record = AuditRecord {
            position: 2,
            at: Timestamp::from_millis(5),
            actor: "ada".to_owned(),
            act: "block".to_owned(),
            key: KeyId::from_random(77),
            operation: OperationId::from_bytes([9; 16]),
            details: "{}".to_owned(),
        };
        assert_eq!(
            hex(audit_hash(&GENESIS, 1, &record, "{\"v\":1}")),
            "2d1b9adf68fb5c57959e296b0c2e02cb024cfc0905e04cff7d2e039a8d893bca"
        );
    }

    #[test]
    fn every_field_matters() {
        let base = entry_hash(&GENESIS, 4, &charge());
        let edits: [fn(&mut Entry); 12] = [
            |entry| entry.position = 10,
            |entry| entry.seq = 4,
            |entry| entry.amount = Amount::from_picos(-404),
            |entry| entry.actor.push('x'),
            |entry| entry.reference = Some(String::new()),
            |entry| entry.reason = Some(String::new()),
            |entry| entry.refunds = Some(entry.operation),
            |entry| entry.bill = None,
            |entry| entry.bill.as_mut().unwrap().slug.push('b'),
            |entry| entry.bill.as_mut().unwrap().first_byte_ms = None,
            |entry| entry.bill.as_mut().unwrap().usage.images = 1,
            |entry| entry.bill.as_mut().unwrap().lines.clear(),
        ];
        for edit in edits {
            let mut entry = charge();
            edit(&mut entry);
            assert_ne!(entry_hash(&GENESIS, 4, &entry), base);
        }
        assert_ne!(entry_hash(&GENESIS, 5, &charge()), base);
        assert_ne!(entry_hash(&[1; 32], 4, &charge()), base);
    }
}
