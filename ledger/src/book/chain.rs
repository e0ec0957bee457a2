//! The hash chain: how entries and audit records are serialised for hashing.
//!
//! Each hash is SHA-256 over a format, the customer's previous hash, and every field in a fixed order. Numbers are eight bytes
//! big-endian, texts are length-prefixed, optional fields carry a presence flag: two different records never give the same bytes.
//! Every row stores its format, and the golden hashes below freeze each format.
//!
//! Format 1 hashed the row's position in the whole ledger and its predecessor's. Format 2 hashes neither, so that several writers
//! can append. Its chains begin with the ledger's identity, and an entry ends in a block of named facts. Both name a key, whose
//! history they were; it goes on as that of the customer with the same number. Format 3 names customer and key.

use sha2::{Digest, Sha256};

use crate::book::audit::ActRecord;
use crate::book::head::Hash;
use crate::{AuditRecord, Bill, BillFacts, EntryKind, Evidence, JournalEntry, KeyId, MoneyPart};

/// An entry at its place in the chain.
#[derive(Debug, Clone)]
pub(crate) struct ChainedEntry {
    pub(crate) entry: JournalEntry,
    /// The position of the customer's entry before it, 0 for the first; a database does not store it.
    pub(crate) prev: i64,
    pub(crate) format: i64,
    pub(crate) hash: Hash,
}

/// An act at its place in the chain.
#[derive(Debug, Clone)]
pub(crate) struct ChainedAct {
    pub(crate) record: ActRecord,
    /// The position of the customer's act before it, 0 for the first; a database does not store it.
    pub(crate) prev: i64,
    pub(crate) format: i64,
    pub(crate) hash: Hash,
}

/// The format written today.
pub(crate) const FORMAT: i64 = 3;

/// The first byte hashed: an act can never look like an entry.
// It is the format, and in an act the format with the highest bit set; acts of no customer (`house_act`) have the next bit, too.
const ENTRY_1: u8 = 1;
const ENTRY_2: u8 = 2;
const ENTRY_3: u8 = 3;
const ACT_1: u8 = 129;
const ACT_2: u8 = 130;
const ACT_3: u8 = 131;

/// The number under which an entry's kind is stored and hashed.
pub(crate) const fn kind_code(kind: EntryKind) -> i64 {
    match kind {
        EntryKind::TopUp => 1,
        EntryKind::Charge => 2,
        EntryKind::Refund => 3,
        EntryKind::Adjust => 4,
        EntryKind::Grant => 5,
        EntryKind::Expired => 6,
        EntryKind::Void => 7,
        EntryKind::Reversal => 8,
        EntryKind::Move => 9,
        EntryKind::WriteOff => 10,
        EntryKind::Carry => 11,
    }
}

/// The number under which an evidence is stored and hashed. Without one, the column is NULL and 0 is hashed.
pub(crate) const fn evidence_code(evidence: Evidence) -> i64 {
    match evidence {
        Evidence::Provider => 1,
        Evidence::Local => 2,
        Evidence::Disputed => 3,
        Evidence::Recovered => 4,
        Evidence::Learned => 5,
    }
}

/// The predecessor of a customer's first entry and first act since format 2.
pub(crate) fn genesis(ledger: &[u8; 16]) -> Hash {
    Sha256::new_with_prefix(b"farebox ledger")
        .chain_update(ledger)
        .finalize()
        .into()
}

/// The hash of an entry in its format, behind the hash and the position of the customer's entry before it (0 for the first); `None`
/// for a format that nobody ever wrote.
pub(crate) fn entry_hash(
    format: i64,
    before: &Hash,
    prev: i64,
    entry: &JournalEntry,
) -> Option<Hash> {
    let mut bytes;
    let owner = entry.customer.to_i64();
    match format {
        1 | 2 if entry.key != Some(entry.customer.first_key()) || !entry.parts.is_empty() => {
            return None;
        }
        1 => {
            bytes = HashInput::new(ENTRY_1, before);
            bytes.number(entry.position).number(owner);
            bytes.number(entry.seq).number(prev);
            bytes.entry(entry);
            return Some(bytes.finish());
        }
        2 => {
            bytes = HashInput::new(ENTRY_2, before);
            bytes.number(owner).number(entry.seq);
        }
        FORMAT => {
            bytes = HashInput::new(ENTRY_3, before);
            bytes.number(owner).maybe_key(entry.key).number(entry.seq);
        }
        _ => return None,
    }
    bytes.entry(entry);
    match &entry.bill {
        Some(bill) => bytes.pairs(&bill.pairs()),
        None => bytes.count(0),
    };
    bytes.parts(&entry.parts);
    Some(bytes.finish())
}

/// The hash of an act in its format, behind the hash and the position of the customer's act before it (0 for the first); `None` for a
/// format that nobody ever wrote.
pub(crate) fn act_hash(
    format: i64,
    before: &Hash,
    prev: i64,
    ActRecord { record, seq, state }: &ActRecord,
) -> Option<Hash> {
    let mut bytes;
    let owner = record.customer.to_i64();
    match format {
        1 | 2 if record.key != Some(record.customer.first_key()) => return None,
        1 => {
            bytes = HashInput::new(ACT_1, before);
            bytes.number(record.position).number(owner).number(prev);
        }
        2 => {
            bytes = HashInput::new(ACT_2, before);
            bytes.number(owner).number(*seq);
        }
        FORMAT => {
            bytes = HashInput::new(ACT_3, before);
            bytes.number(owner).maybe_key(record.key).number(*seq);
        }
        _ => return None,
    }
    bytes.act(record, state);
    Some(bytes.finish())
}

/// Collects the bytes before hashing: forty small updates of a digest cost more than the hash.
pub(super) struct HashInput(Vec<u8>);

impl HashInput {
    pub(super) fn new(version: u8, before: &Hash) -> Self {
        let mut bytes = Vec::with_capacity(1_024);
        bytes.push(version);
        bytes.extend_from_slice(before);
        Self(bytes)
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn number(&mut self, number: i64) -> &mut Self {
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

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.count(text.len().try_into().unwrap_or(u64::MAX))
            .raw(text.as_bytes())
    }

    fn maybe_key(&mut self, key: Option<KeyId>) -> &mut Self {
        match key {
            Some(key) => self.present().number(key.to_i64()),
            None => self.absent(),
        }
    }

    fn maybe_text(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.present().text(text),
            None => self.absent(),
        }
    }

    /// The part of an entry that every format hashes, in the same order.
    fn entry(&mut self, entry: &JournalEntry) -> &mut Self {
        self.raw(&entry.operation.to_bytes())
            .number(kind_code(entry.kind));
        self.number(entry.amount.picos())
            .number(entry.balance_after.picos())
            .number(entry.at.millis());
        self.text(&entry.actor)
            .maybe_text(entry.reference.as_deref())
            .maybe_text(entry.reason.as_deref());
        match &entry.refunds {
            Some(request) => self.present().raw(&request.to_bytes()),
            None => self.absent(),
        };
        match &entry.bill {
            Some(bill) => self.present().bill(bill),
            None => self.absent(),
        }
    }

    /// The part of an act that every format hashes, in the same order.
    fn act(&mut self, record: &AuditRecord, state: &str) -> &mut Self {
        self.raw(&record.operation.to_bytes())
            .number(record.at.millis());
        self.text(&record.actor)
            .text(&record.act)
            .text(&record.details)
            .text(state)
    }

    fn pairs(&mut self, pairs: &BillFacts) -> &mut Self {
        self.count(pairs.len().try_into().unwrap_or(u64::MAX));
        for (name, value) in pairs {
            self.text(name).text(value);
        }
        self
    }

    /// Nothing of money that came from the pool alone: so entries of before there were grants hash as ever, and no part can be removed.
    fn parts(&mut self, parts: &[MoneyPart]) -> &mut Self {
        if parts.is_empty() {
            return self;
        }
        self.count(parts.len().try_into().unwrap_or(u64::MAX));
        for part in parts {
            match part.grant {
                Some(grant) => self.present().number(grant.to_i64()),
                None => self.absent(),
            };
            self.number(part.amount.picos());
        }
        // The same of windows, for entries of before there were plans.
        for part in parts.iter().filter(|part| !part.windows.is_empty()) {
            self.count(part.windows.len().try_into().unwrap_or(u64::MAX));
            for window in &part.windows {
                self.number(window.to_i64());
            }
        }
        self
    }

    fn bill(&mut self, bill: &Bill) -> &mut Self {
        self.text(&bill.slug).text(&bill.family).text(&bill.target);
        self.number(i64::from(bill.status))
            .text(bill.end_reason.as_str());
        match bill.first_byte_ms {
            Some(millis) => self.present().number(i64::from(millis)),
            None => self.absent(),
        };
        self.number(i64::from(bill.total_ms))
            .maybe_text(bill.answer_id.as_deref());
        self.number(bill.hold.picos())
            .number(bill.loss.picos())
            .number(bill.evidence.map_or(0, evidence_code));
        for count in bill.usage.first() {
            self.count(count);
        }
        self.count(bill.lines.len().try_into().unwrap_or(u64::MAX));
        for line in &bill.lines {
            self.text(&line.what)
                .count(line.count)
                .number(line.rate.picos());
        }
        self
    }

    pub(super) fn finish(self) -> Hash {
        Sha256::digest(self.0).into()
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::book::head::NOTHING;
    use crate::{
        Amount, BillLine, CostSource, CustomerId, KeyId, OperationId, Served, ServedRegion,
        ServedTier, Timestamp, Usage,
    };

    fn charge() -> JournalEntry {
        JournalEntry {
            position: 9,
            seq: 3,
            customer: CustomerId::from_random(77),
            key: Some(KeyId::from_random(77)),
            operation: OperationId::from_bytes([7; 16]),
            kind: EntryKind::Charge,
            amount: Amount::from_picos(-405),
            balance_after: Amount::from_picos(595),
            at: Timestamp::from_millis(1_790_000_000_000),
            actor: "gateway".to_owned(),
            reference: None,
            reason: None,
            refunds: None,
            parts: Vec::new(),
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
                evidence: Some(Evidence::Local),
                usage: Usage {
                    input: 100,
                    output: 7,
                    ..Usage::default()
                },
                lines: vec![BillLine {
                    what: Cow::Borrowed("input"),
                    count: 100,
                    rate: Amount::from_picos(4),
                    class: None,
                }],
                ..Bill::default()
            }),
        }
    }

    fn hex(hash: Option<Hash>) -> String {
        hex::encode(hash.unwrap())
    }

    fn top_up() -> JournalEntry {
        let (kind, amount, reference) = (
            EntryKind::TopUp,
            Amount::from_picos(1000),
            Some("inv-1".to_owned()),
        );
        JournalEntry {
            kind,
            amount,
            reference,
            parts: Vec::new(),
            bill: None,
            ..charge()
        }
    }

    fn act() -> ActRecord {
        let record = AuditRecord {
            position: 2,
            at: Timestamp::from_millis(5),
            actor: "ada".to_owned(),
            act: "block".to_owned(),
            customer: CustomerId::from_random(77),
            key: Some(KeyId::from_random(77)),
            operation: OperationId::from_bytes([9; 16]),
            details: "{}".to_owned(),
        };
        ActRecord {
            record,
            seq: 1,
            state: "{\"v\":1}".to_owned(),
        }
    }

    #[test]
    fn format_1_is_frozen() {
        assert_eq!(
            hex(entry_hash(1, &NOTHING, 4, &charge())),
            "3d5a3c62a152fd76b7ab808d193d110440a98591faea631982788eeafbfae8bd"
        );
        assert_eq!(
            hex(entry_hash(1, &[5; 32], 0, &top_up())),
            "1e5392d4e3796402577ff9f9654010dffb79fdbc4c7b72fb2d4678d5e2f49481"
        );
        assert_eq!(
            hex(act_hash(1, &NOTHING, 1, &act())),
            "2d1b9adf68fb5c57959e296b0c2e02cb024cfc0905e04cff7d2e039a8d893bca"
        );
    }

    #[test]
    fn format_2_is_frozen() {
        let before = genesis(&[3; 16]);
        let mut cut = charge();
        let bill = cut.bill.as_mut().unwrap();
        (bill.exposure, bill.cost) = (Amount::from_picos(7), Some(Amount::ZERO));
        bill.facts.insert("node".to_owned(), "a".to_owned());
        let mut fast = charge();
        let bill = fast.bill.as_mut().unwrap();
        bill.served = Served {
            tier: ServedTier::Fast,
            place: ServedRegion::Us,
            context_band: 1,
            account: "second".to_owned(),
        };
        (bill.usage.cache_write_12h, bill.usage.calls) = (5, 2);
        bill.provider_cost = Some(Amount::from_picos(9));
        bill.lines[0].class = Some(Cow::Borrowed("fast,us"));
        let hashes = [
            Some(before),
            entry_hash(2, &before, 0, &charge()),
            entry_hash(2, &before, 0, &cut),
            entry_hash(2, &before, 0, &fast),
            entry_hash(2, &before, 0, &top_up()),
            act_hash(2, &before, 0, &act()),
        ];
        let frozen = [
            "f394a85d75916d33c30c491a982d9dea49a7a33a96a3ca712f91466e5b4921af",
            "5074d15d7fbc44273bd7d11d0af2bf6d556c00b02ed1431c32e271a1dc8e8887",
            "8517781c9685576b5ade1f54e9487faef61a9743854dfa55fa68d709ddce3ce8",
            "3b15b2dc7d459f3a35dbd25dfe88647e30b17ac7448709c4d50fc9fee28133b2",
            "c3dcb5ed072b33d0f5daff102a3161714d2977d25a77735128f744ba87a15cbc",
            "86176d3dc3ef660d5d21686c62f2c4e4358d9cf60597fd722657757753087a9c",
        ];
        assert_eq!(hashes.map(hex), frozen);
    }

    #[test]
    fn format_3_is_frozen() {
        let before = genesis(&[3; 16]);
        let of_customer = JournalEntry {
            key: None,
            kind: EntryKind::Move,
            ..top_up()
        };
        let hashes = [
            entry_hash(FORMAT, &before, 0, &charge()),
            entry_hash(FORMAT, &before, 0, &of_customer),
            act_hash(FORMAT, &before, 0, &act()),
        ];
        let frozen = [
            "a00f2fc3b532a8530c0156d05e8a7a5433ac1b22f1e5b5cc7f6f4a8480852f48",
            "7e4d5cf7630e80c5dfb0bc816ad336ac35443ffc8902a9c016d4865e19149984",
            "b4b3ec8d6a386fb80c19f74427c6d80d5c1531c7e15410d7c104ea924323e99b",
        ];
        assert_eq!(hashes.map(hex), frozen);
        assert_eq!(entry_hash(4, &before, 0, &charge()), None);
    }

    #[test]
    fn every_field_matters() {
        let base = entry_hash(FORMAT, &NOTHING, 0, &charge());
        let of_entry: [fn(&mut JournalEntry); 10] = [
            |entry| entry.customer = CustomerId::from_random(78),
            |entry| entry.key = Some(KeyId::from_random(78)),
            |entry| entry.key = None,
            |entry| entry.seq = 4,
            |entry| entry.amount = Amount::from_picos(-404),
            |entry| entry.actor.push('x'),
            |entry| entry.reference = Some(String::new()),
            |entry| entry.reason = Some(String::new()),
            |entry| entry.refunds = Some(entry.operation),
            |entry| entry.bill = None,
        ];
        let of_bill: [fn(&mut Bill); 17] = [
            |bill| bill.slug.push('b'),
            |bill| bill.first_byte_ms = None,
            |bill| bill.evidence = None,
            |bill| bill.usage.images = 1,
            |bill| bill.usage.cache_write_12h = 1,
            |bill| bill.usage.calls = 1,
            |bill| bill.lines.clear(),
            |bill| bill.lines[0].class = Some(Cow::Borrowed("us")),
            |bill| bill.exposure = Amount::from_picos(1),
            |bill| bill.cost = Some(Amount::ZERO),
            |bill| bill.provider_cost = Some(Amount::ZERO),
            |bill| bill.cost_source = CostSource::Doubted,
            |bill| bill.served.tier = ServedTier::Flex,
            |bill| bill.served.place = ServedRegion::Us,
            |bill| bill.served.context_band = 1,
            |bill| bill.served.account.push('x'),
            |bill| drop(bill.facts.insert("a".to_owned(), "b".to_owned())),
        ];
        for edit in of_bill {
            let mut entry = charge();
            edit(entry.bill.as_mut().unwrap());
            assert_ne!(entry_hash(FORMAT, &NOTHING, 0, &entry), base);
        }
        for edit in of_entry {
            let mut entry = charge();
            edit(&mut entry);
            assert_ne!(entry_hash(FORMAT, &NOTHING, 0, &entry), base);
        }
        assert_ne!(entry_hash(FORMAT, &[1; 32], 0, &charge()), base);
        let moved = JournalEntry {
            position: 10,
            ..charge()
        };
        assert_eq!(
            entry_hash(FORMAT, &NOTHING, 0, &moved),
            base,
            "several writers have no common position"
        );
        assert_ne!(
            entry_hash(1, &NOTHING, 4, &moved),
            entry_hash(1, &NOTHING, 4, &charge())
        );
    }
}
