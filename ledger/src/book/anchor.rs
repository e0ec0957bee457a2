//! Anchors: the last hash of every chain at one moment, kept outside the ledger.
//!
//! The chains protect each customer's history against edits, but an attacker who recomputes every hash after an edit can only be
//! detected by something stored elsewhere. An anchor is one line of JSON with the chain ends of every customer that changed since the
//! previous anchor. An anchor file is append-only, and an anchor covers only what is on disk.
//!
//! Anchors of earlier versions contain a running digest over all entries, and one over all acts. They are still checked.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::CustomerId;
use crate::book::head::{Hash, HouseHead, NOTHING};

/// How each line begins; so does a line torn by a power cut.
const LINE_START: &str = "{\"at\":\"";

/// A running digest over the hashes of one append-only table, in the order of their positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// How many rows it covers.
    pub count: i64,
    /// The digest over their hashes.
    #[serde(with = "hex")]
    digest: Hash,
}

impl Mark {
    /// Covers nothing yet.
    pub(crate) const START: Self = Self {
        count: 0,
        digest: NOTHING,
    };

    /// Covers one more row.
    pub(crate) fn add(&mut self, hash: &Hash) {
        self.count = self.count.saturating_add(1);
        self.digest = Sha256::new_with_prefix(self.digest)
            .chain_update(hash)
            .finalize()
            .into();
    }
}

/// One line of an anchor file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Anchor {
    /// Written by earlier versions.
    Digests(Digests),
    /// Written by this version.
    Heads(Heads),
}

/// Digests over the whole journal and the whole audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Digests {
    /// When it was made, for people.
    pub at: String,
    /// How far the journal was when it was anchored.
    pub entries: Mark,
    /// How far the record of administrative acts was.
    pub audit: Mark,
}

/// The ends of the chains of the customers that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heads {
    /// When it was made, for people.
    pub at: String,
    /// Entries in the ledger.
    pub entries: i64,
    /// Acts in the ledger.
    pub acts: i64,
    /// Holds ever opened.
    pub opened: i64,
    /// Customers with a new entry or a new act. Earlier versions wrote them as keys, with the same numbers.
    #[serde(alias = "keys")]
    pub customers: Vec<ChainHeads>,
    /// The generation of a ledger in a database; accepting a loss starts a new one. 0 for a file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// The end of the chain of acts that belong to no customer; `None` while there are none, and before version 16 of a file's schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub house: Option<HouseEnd>,
}

/// The end of the chain of acts on tokens and on lots of vouchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HouseEnd {
    /// The newest act.
    pub seq: i64,
    #[serde(with = "hex")]
    pub(crate) hash: Hash,
}

impl HouseEnd {
    pub(crate) fn of(head: HouseHead) -> Option<Self> {
        let HouseHead { seq, hash } = head;
        (seq > 0).then_some(Self { seq, hash })
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(generation: &i64) -> bool {
    *generation == 0
}

/// The ends of a customer's two chains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainHeads {
    /// The customer.
    #[serde(alias = "key", deserialize_with = "owner")]
    pub customer: CustomerId,
    /// Its newest entry; 0 if it has none.
    pub seq: i64,
    /// That entry's hash.
    #[serde(with = "hex")]
    pub(crate) hash: Hash,
    /// Its newest act.
    pub act: i64,
    #[serde(with = "hex")]
    pub(crate) act_hash: Hash,
}

/// A customer, or a key of an earlier version, whose customer has its number.
pub(crate) fn owner<'de, D: serde::Deserializer<'de>>(
    input: D,
) -> std::result::Result<CustomerId, D::Error> {
    let text = String::deserialize(input)?;
    let digits = text.strip_prefix("k_").unwrap_or(&text);
    digits.parse().map_err(serde::de::Error::custom)
}

impl Anchor {
    /// The mark of a ledger without any row.
    pub(crate) const fn start() -> Self {
        Self::Heads(Heads {
            at: String::new(),
            entries: 0,
            acts: 0,
            opened: 0,
            customers: Vec::new(),
            generation: 0,
            house: None,
        })
    }

    /// When it was made.
    pub fn at(&self) -> &str {
        match self {
            Self::Digests(digests) => &digests.at,
            Self::Heads(heads) => &heads.at,
        }
    }

    /// How many entries it covers.
    pub const fn entries(&self) -> i64 {
        match self {
            Self::Digests(digests) => digests.entries.count,
            Self::Heads(heads) => heads.entries,
        }
    }

    /// How many acts it covers.
    pub const fn acts(&self) -> i64 {
        match self {
            Self::Digests(digests) => digests.audit.count,
            Self::Heads(heads) => heads.acts,
        }
    }

    /// How far the acts that belong to no customer were.
    pub const fn house(&self) -> Option<&HouseEnd> {
        match self {
            Self::Digests(_) => None,
            Self::Heads(heads) => heads.house.as_ref(),
        }
    }

    /// How many holds had been opened; 0 if it was not recorded.
    pub const fn opened(&self) -> i64 {
        match self {
            Self::Digests(_) => 0,
            Self::Heads(heads) => heads.opened,
        }
    }

    /// The generation of the ledger that it covers; 0 for a file.
    pub const fn generation(&self) -> i64 {
        match self {
            Self::Digests(_) => 0,
            Self::Heads(heads) => heads.generation,
        }
    }
}

/// What the anchors record of each customer's chains; entries are ticked off while the chains are walked.
#[derive(Debug, Default)]
pub(crate) struct Covered {
    entries: HashMap<CustomerId, BTreeMap<i64, Vec<(Hash, String)>>>,
    acts: HashMap<CustomerId, BTreeMap<i64, Vec<(Hash, String)>>>,
}

impl Covered {
    pub(crate) fn by(anchors: &[Anchor]) -> Self {
        let mut covered = Self::default();
        for heads in anchors.iter().filter_map(|anchor| {
            if let Anchor::Heads(heads) = anchor {
                Some(heads)
            } else {
                None
            }
        }) {
            for key in &heads.customers {
                if key.seq > 0 {
                    let of_key = covered.entries.entry(key.customer).or_default();
                    of_key
                        .entry(key.seq)
                        .or_default()
                        .push((key.hash, heads.at.clone()));
                }
                let of_key = covered.acts.entry(key.customer).or_default();
                of_key
                    .entry(key.act)
                    .or_default()
                    .push((key.act_hash, heads.at.clone()));
            }
        }
        covered
    }

    /// A fault if an anchor recorded another hash for this entry.
    pub(crate) fn entry(&mut self, key: CustomerId, seq: i64, hash: &Hash) -> Option<String> {
        let expected = self.entries.get_mut(&key)?.remove(&seq)?;
        let (_, at) = expected
            .into_iter()
            .find(|(expected, _)| expected != hash)?;
        Some(format!(
            "anchor of {at}: entry {seq} of customer {key} is not the one it covers"
        ))
    }

    /// A fault if an anchor recorded another hash for this act.
    pub(crate) fn act(&mut self, key: CustomerId, seq: i64, hash: &Hash) -> Option<String> {
        let expected = self.acts.get_mut(&key)?.remove(&seq)?;
        let (_, at) = expected
            .into_iter()
            .find(|(expected, _)| expected != hash)?;
        Some(format!(
            "anchor of {at}: administrative act {seq} of customer {key} is not the one it covers"
        ))
    }

    /// What the anchors cover but no chain contained.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (what, keys) in [("entry", &self.entries), ("administrative act", &self.acts)] {
            for (key, left) in keys {
                let missing = left
                    .iter()
                    .flat_map(|(seq, anchors)| anchors.iter().map(move |(_, at)| (seq, at)));
                faults.extend(missing.map(|(seq, at)| {
                    format!("anchor of {at}: {what} {seq} of customer {key} is missing")
                }));
            }
        }
        faults.sort();
        faults
    }
}

/// An anchor file that is being written.
#[derive(Debug)]
pub struct AnchorFile {
    path: PathBuf,
    file: File,
    last: Anchor,
    /// What the file records of each customer, if the ledger is in a database and lists all of them.
    known: HashMap<CustomerId, ChainHeads>,
}

impl AnchorFile {
    /// Opens or creates an anchor file and reads its last line. A line torn by a power cut is cut off.
    ///
    /// # Errors
    /// When it cannot be read or written, or its last line is not an anchor.
    pub fn open(path: &Path) -> Result<Self> {
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(flags)
            .open(path)?;
        let found = file.metadata()?;
        if !found.is_file() || found.nlink() != 1 {
            return Err(Error::other(
                "it is not a regular file, or has more than one name",
            ));
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let whole = text.rfind('\n').map_or(0, |end| end.saturating_add(1));
        let mut anchors = parse(text.get(..whole).unwrap_or_default())?;
        let last = anchors.last().cloned().unwrap_or_else(Anchor::start);
        anchors
            .retain(|anchor| anchor.generation() > 0 && anchor.generation() == last.generation());
        let of_keys = anchors.into_iter().flat_map(|anchor| {
            if let Anchor::Heads(heads) = anchor {
                heads.customers
            } else {
                Vec::new()
            }
        });
        let known = of_keys.map(|key| (key.customer, key)).collect();
        let torn = text.get(whole..).unwrap_or_default();
        if !torn.is_empty() {
            if !torn.starts_with(LINE_START) && !LINE_START.starts_with(torn) {
                return Err(Error::other("it is not a file of anchors"));
            }
            tracing::warn!(
                "{}: the last line is incomplete and was removed",
                path.display()
            );
            file.set_len(whole.try_into().unwrap_or(u64::MAX))?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            last,
            known,
        })
    }

    /// The newest anchor.
    pub const fn last(&self) -> &Anchor {
        &self.last
    }

    /// Appends an anchor and syncs it to disk. Skips an anchor that covers nothing new, and keys that have not changed since an
    /// earlier one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, mut anchor: Anchor) -> Result<()> {
        let counts = |anchor: &Anchor| {
            let house = anchor.house().map(|end| end.seq);
            (anchor.generation(), anchor.entries(), anchor.acts(), house)
        };
        if counts(&anchor) == counts(&self.last) {
            return Ok(());
        }
        if anchor.generation() != self.last.generation() {
            self.known.clear();
        }
        if let Anchor::Heads(heads) = &mut anchor
            && heads.generation > 0
        {
            heads
                .customers
                .retain(|key| self.known.get(&key.customer) != Some(key));
        }
        let line = serde_json::to_string(&anchor).map_err(Error::other)? + "\n";
        self.file.write_all(line.as_bytes())?;
        self.file.sync_data()?;
        tracing::debug!(
            entries = anchor.entries(),
            "anchored in {}",
            self.path.display()
        );
        if let Anchor::Heads(heads) = &anchor
            && heads.generation > 0
        {
            self.known.extend(
                heads
                    .customers
                    .iter()
                    .map(|key| (key.customer, key.clone())),
            );
        }
        self.last = anchor;
        Ok(())
    }
}

/// All anchors of a file, oldest first. Its last line may be cut off, no other may.
///
/// # Errors
/// When it cannot be read or contains a line that is not an anchor.
pub fn read(path: &Path) -> Result<Vec<Anchor>> {
    let text = std::fs::read_to_string(path)?;
    let whole = text.rfind('\n').map_or(0, |end| end.saturating_add(1));
    parse(text.get(..whole).unwrap_or_default())
}

fn parse(text: &str) -> Result<Vec<Anchor>> {
    let read = |(number, line): (usize, &str)| {
        let wrong = |error| {
            Error::new(
                ErrorKind::InvalidData,
                format!("line {}: {error}", number.saturating_add(1)),
            )
        };
        serde_json::from_str(line).map_err(wrong)
    };
    text.lines().enumerate().map(read).collect()
}

/// Digests as text.
pub(crate) mod hex {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::book::head::Hash;

    pub(crate) fn serialize<S: Serializer>(digest: &Hash, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&::hex::encode(digest))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Hash, D::Error> {
        let text = String::deserialize(input)?;
        let pair = |at: usize| {
            text.get(at..at.saturating_add(2))
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
        };
        let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(pair).collect();
        bytes
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| Error::custom("a digest has 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(rows: u8) -> Anchor {
        let key = ChainHeads {
            customer: CustomerId::from_random(1),
            seq: rows.into(),
            hash: [rows; 32],
            act: 1,
            act_hash: [9; 32],
        };
        Anchor::Heads(Heads {
            at: "now".to_owned(),
            entries: rows.into(),
            acts: 1,
            opened: 0,
            customers: vec![key],
            generation: 0,
            house: None,
        })
    }

    #[test]
    fn a_database_names_all_keys_and_the_file_has_those_that_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchors");
        let key = |number, seq: u8| {
            let (customer, hash) = (CustomerId::from_random(number), [seq; 32]);
            ChainHeads {
                customer,
                seq: seq.into(),
                hash,
                act: 1,
                act_hash: [9; 32],
            }
        };
        let all = |generation, keys: Vec<ChainHeads>| {
            let entries = keys.iter().map(|key| key.seq).sum();
            Anchor::Heads(Heads {
                at: "now".to_owned(),
                entries,
                acts: 2,
                opened: 0,
                customers: keys,
                generation,
                house: None,
            })
        };
        AnchorFile::open(&path)
            .unwrap()
            .append(all(1, vec![key(1, 1), key(2, 1)]))
            .unwrap();
        let mut file = AnchorFile::open(&path).unwrap();
        file.append(all(1, vec![key(1, 1), key(2, 2)])).unwrap();
        file.append(all(1, vec![key(1, 2), key(2, 2)])).unwrap();
        // After an accepted loss, all keys are written again.
        file.append(all(2, vec![key(1, 2), key(2, 2)])).unwrap();
        let keys: Vec<Vec<ChainHeads>> = read(&path)
            .unwrap()
            .into_iter()
            .map(|anchor| {
                if let Anchor::Heads(heads) = anchor {
                    heads.customers
                } else {
                    vec![]
                }
            })
            .collect();
        assert_eq!(
            keys,
            [
                vec![key(1, 1), key(2, 1)],
                vec![key(2, 2)],
                vec![key(1, 2)],
                vec![key(1, 2), key(2, 2)]
            ]
        );
    }

    #[test]
    fn order_and_content_matter() {
        let (mut one, mut other) = (Mark::START, Mark::START);
        [[1; 32], [2; 32]].iter().for_each(|hash| one.add(hash));
        [[2; 32], [1; 32]].iter().for_each(|hash| other.add(hash));
        assert_eq!(one.count, other.count);
        assert_ne!(one, other);
    }

    #[test]
    fn a_file_goes_on_where_it_ended_and_survives_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchors");
        let mut file = AnchorFile::open(&path).unwrap();
        assert_eq!(file.last(), &Anchor::start());
        for rows in [1, 2, 2] {
            file.append(anchor(rows)).unwrap();
        }
        assert_eq!(
            read(&path).unwrap(),
            [anchor(1), anchor(2)],
            "what adds nothing is left out"
        );
        std::fs::write(
            &path,
            std::fs::read_to_string(&path).unwrap() + "{\"at\":\"no",
        )
        .unwrap();
        assert_eq!(read(&path).unwrap().len(), 2);
        let mut file = AnchorFile::open(&path).unwrap();
        assert_eq!(file.last(), &anchor(2));
        file.append(anchor(3)).unwrap();
        assert_eq!(read(&path).unwrap().len(), 3);
        let old = r#"{"at":"then","entries":{"count":0,"digest":"00"},"audit":{"count":0,"digest":"00"}}"#
            .replace("00", &"00".repeat(32));
        std::fs::write(&path, format!("{old}\n")).unwrap();
        assert!(
            matches!(&read(&path).unwrap()[..], [Anchor::Digests(digests)] if digests.at == "then")
        );
        std::fs::write(&path, "no anchor\n").unwrap();
        assert!(read(&path).is_err() && AnchorFile::open(&path).is_err());
        std::fs::write(&path, "somebody's notes, without a line's end").unwrap();
        assert!(AnchorFile::open(&path).is_err());
        assert!(
            std::fs::read_to_string(&path)
                .unwrap()
                .starts_with("somebody's notes"),
            "what is not ours is not cut off"
        );
    }
}
