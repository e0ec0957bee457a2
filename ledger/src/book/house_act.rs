//! Acts that belong to no customer: on tokens of the admin API, on lots of vouchers and on the defaults. One chain for all of them.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::anchor::Anchor;
use super::chain::HashInput;
use super::head::{Hash, HouseHead};
use crate::rule::defaults::DefaultsRow;
use crate::rule::voucher::Voucher;
use crate::{
    GrantKind, Lot, LotId, NewLot, NewToken, OperationId, SecretHash, Timestamp, Token, TokenDay,
    TokenId,
};

/// The first byte hashed: such an act can never look like another one or an entry, nor one like one on something else.
const TOKEN_ACT: u8 = 193;
const LOT_ACT: u8 = 194;
const DEFAULTS_ACT: u8 = 195;

/// What such an act is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HouseSubject {
    /// A token of the admin API.
    Token(TokenId),
    /// A lot of vouchers.
    Lot(LotId),
    /// What keys and customers have that set nothing of their own.
    Defaults,
}

impl fmt::Display for HouseSubject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(token) => write!(out, "token {token}"),
            Self::Lot(lot) => write!(out, "lot {lot}"),
            Self::Defaults => out.write_str("defaults"),
        }
    }
}

/// One act that belongs to no customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HouseAct {
    /// Its number, from 1.
    pub seq: i64,
    /// The clock at the act, UTC.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// What: `create_token`, `revoke_token`, `create_lot`, `void_lot` or `set_defaults`; `adopt_lot` of one that was there before acts told of lots.
    pub act: String,
    /// On what.
    pub of: HouseSubject,
    /// The id by which a repetition is known.
    pub operation: OperationId,
    /// Details as one JSON object, without secrets.
    pub details: String,
}

/// An act at its place in the chain, with the state in which it left its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainedHouseAct {
    pub(crate) act: HouseAct,
    pub(crate) state: String,
    pub(crate) hash: Hash,
}

/// What a new token was made with.
pub(crate) fn created_token(new: &NewToken) -> Value {
    json!({
        "label": new.label,
        "role": new.role,
        "daily": new.daily,
        "expires_at": new.expires_at,
        "secret": fingerprint(&new.secret),
    })
}

/// What a new lot was made with.
pub(crate) fn created_lot(new: &NewLot) -> Value {
    details_of_lot(&new.lot(), &new.codes)
}

/// What a lot with these codes was made with.
fn details_of_lot(lot: &Lot, codes: &[SecretHash]) -> Value {
    let mut details = json!({
        "count": lot.count,
        "amount": lot.amount,
        "expires_at": lot.expires_at,
        "once_per_customer": lot.once_per_customer,
        "codes": digest(codes),
    });
    name_kind(&mut details, lot);
    details
}

/// One hash of all codes of a lot, in the order of their numbers.
fn digest(codes: &[SecretHash]) -> String {
    let mut digest = Sha256::new_with_prefix(b"farebox lot");
    for code in codes {
        digest.update(code.0);
    }
    hex::encode(digest.finalize())
}

/// What only a command changes of a token. The format is frozen.
pub(crate) fn state_of_token(token: &Token) -> String {
    json!({
        "v": 1,
        "label": token.label,
        "role": token.role,
        "daily": token.daily,
        "expires_at": token.expires_at,
        "revoked": token.is_revoked,
        "secret": fingerprint(&token.secret),
        "created_at": token.created_at,
        "created_by": token.created_by,
    })
    .to_string()
}

/// What redeeming does not change of a lot. The format is frozen.
pub(crate) fn state_of_lot(lot: &Lot) -> String {
    let mut state = json!({
        "v": 1,
        "count": lot.count,
        "amount": lot.amount,
        "expires_at": lot.expires_at,
        "once_per_customer": lot.once_per_customer,
        "void": lot.is_void,
        "created_at": lot.created_at,
        "created_by": lot.created_by,
    });
    name_kind(&mut state, lot);
    state.to_string()
}

/// The defaults in force, as they are stored; without a row there are none.
pub(crate) fn state_of_defaults(row: Option<&DefaultsRow>) -> String {
    let text = row.map(|row| json!({ "v": 1, "defaults": row.state }));
    text.unwrap_or(Value::Null).to_string()
}

/// Lots of before there were grants gave what counts as paid, and nothing was written about it.
fn name_kind(object: &mut Value, lot: &Lot) {
    match lot.kind {
        GrantKind::Promotional => object["kind"] = json!(lot.kind),
        GrantKind::Plan => {
            object["kind"] = json!(lot.kind);
            object["plan"] = json!(lot.plan);
        }
        GrantKind::Paid => {}
    }
}

fn fingerprint(hash: &SecretHash) -> String {
    super::audit::fingerprint(hash)
}

/// The end of their chain, of these.
pub(crate) fn head<'acts>(acts: impl Iterator<Item = &'acts ChainedHouseAct>) -> HouseHead {
    let last = acts.max_by_key(|chained| chained.act.seq);
    last.map_or(HouseHead::NONE, |chained| HouseHead {
        seq: chained.act.seq,
        hash: chained.hash,
    })
}

/// Chains an act behind `head`; the state is that after the act.
pub(crate) fn chained(
    genesis: Hash,
    head: HouseHead,
    act: HouseAct,
    state: String,
) -> ChainedHouseAct {
    let act = HouseAct {
        seq: head.seq.saturating_add(1),
        ..act
    };
    let hash = hash_of(&head.previous(genesis), &act, &state);
    ChainedHouseAct { act, state, hash }
}

/// The hash of an act, behind the hash of the act before it.
fn hash_of(before: &Hash, act: &HouseAct, state: &str) -> Hash {
    let (kind, number) = match act.of {
        HouseSubject::Token(token) => (TOKEN_ACT, token.to_i64()),
        HouseSubject::Lot(lot) => (LOT_ACT, lot.to_i64()),
        HouseSubject::Defaults => (DEFAULTS_ACT, DefaultsRow::ID),
    };
    let mut bytes = HashInput::new(kind, before);
    bytes.number(number).number(act.seq);
    bytes
        .raw(&act.operation.to_bytes())
        .number(act.at.millis())
        .text(&act.actor)
        .text(&act.act)
        .text(&act.details)
        .text(state);
    bytes.finish()
}

/// Everything that acts of the house tell of, and these acts.
#[derive(Debug, Clone, Default)]
pub(crate) struct HouseBook {
    pub(crate) tokens: Vec<Token>,
    pub(crate) token_days: Vec<TokenDay>,
    pub(crate) lots: Vec<Lot>,
    /// By lot and number.
    pub(crate) vouchers: Vec<Voucher>,
    pub(crate) defaults: Vec<DefaultsRow>,
    /// In order.
    pub(crate) acts: Vec<ChainedHouseAct>,
}

/// What the acts on one subject tell: by which operation it was made, of what, and how the last one left it.
struct SubjectTold<'a> {
    made_by: OperationId,
    details: &'a str,
    state: &'a str,
}

impl HouseBook {
    /// What does not follow in it, or differs from what an anchor covers.
    pub(crate) fn faults(&self, genesis: Hash, anchors: &[Anchor]) -> Vec<String> {
        let (mut faults, mut head) = (Vec::new(), HouseHead::NONE);
        let mut told: BTreeMap<HouseSubject, SubjectTold<'_>> = BTreeMap::new();
        for ChainedHouseAct { act, state, hash } in &self.acts {
            let follows = hash_of(&head.previous(genesis), act, state) == *hash;
            if !follows || act.seq != head.seq.saturating_add(1) {
                faults.push(format!(
                    "act {} on {}: its hash or number does not follow from its content and the act before",
                    act.seq, act.of
                ));
            }
            head = HouseHead {
                seq: act.seq,
                hash: *hash,
            };
            let first = SubjectTold {
                made_by: act.operation,
                details: &act.details,
                state,
            };
            told.entry(act.of).or_insert(first).state = state;
        }
        for token in &self.tokens {
            let most = token.daily.unwrap_or_default();
            let known = told.remove(&HouseSubject::Token(token.id));
            if known.is_none_or(|known| known.state != state_of_token(token)) {
                faults.push(format!(
                    "token {}: was changed without an audit record",
                    token.id
                ));
            }
            let own = self.token_days.iter().filter(|day| day.token == token.id);
            let passed = own.filter(|day| day.booked > most);
            faults.extend(passed.map(|day| {
                let (token, day) = (token.id, day.day);
                format!("token {token}: credited more than its bound on {day}")
            }));
        }
        self.faults_of_lots(&mut told, &mut faults);
        self.faults_of_defaults(&mut told, &mut faults);
        faults.extend(
            told.keys()
                .map(|subject| format!("{subject}: acts tell of it, and it is missing")),
        );
        faults.extend(anchors.iter().filter_map(|anchor| self.differs(anchor)));
        faults
    }

    fn faults_of_defaults(
        &self,
        told: &mut BTreeMap<HouseSubject, SubjectTold<'_>>,
        faults: &mut Vec<String>,
    ) {
        let known = told.remove(&HouseSubject::Defaults);
        let known = known.map_or_else(|| state_of_defaults(None), |known| known.state.to_owned());
        let is_told = match self.defaults.as_slice() {
            [] => known == state_of_defaults(None),
            [row] => row.id == DefaultsRow::ID && known == state_of_defaults(Some(row)),
            [_, _, ..] => false,
        };
        if !is_told {
            faults.push("defaults: were changed without an audit record".to_owned());
        }
    }

    fn faults_of_lots(
        &self,
        told: &mut BTreeMap<HouseSubject, SubjectTold<'_>>,
        faults: &mut Vec<String>,
    ) {
        let mut codes: BTreeMap<LotId, Vec<SecretHash>> = BTreeMap::new();
        let mut redeemed: BTreeMap<LotId, u32> = BTreeMap::new();
        for (place, voucher) in self.vouchers.iter().enumerate() {
            let of_lot = codes.entry(voucher.lot).or_default();
            of_lot.push(voucher.code);
            if usize::try_from(voucher.number) != Ok(of_lot.len()) {
                let lot = voucher.lot;
                faults.push(format!("lot {lot}: voucher {} is misnumbered", place));
            }
            if voucher.redeemed.is_some() {
                let sum = redeemed.entry(voucher.lot).or_default();
                *sum = sum.saturating_add(1);
            }
        }
        for lot in &self.lots {
            let codes = codes.remove(&lot.id).unwrap_or_default();
            let details = details_of_lot(lot, &codes).to_string();
            let known = told.remove(&HouseSubject::Lot(lot.id));
            let is_told = known.is_some_and(|known| {
                known.made_by == lot.made_by
                    && known.details == details
                    && known.state == state_of_lot(lot)
            });
            if !is_told {
                faults.push(format!(
                    "lot {}: it or its codes were changed without an audit record",
                    lot.id
                ));
            }
            if redeemed.remove(&lot.id).unwrap_or_default() != lot.redeemed {
                faults.push(format!(
                    "lot {}: counts other vouchers as redeemed than were",
                    lot.id
                ));
            }
        }
        faults.extend(
            codes
                .keys()
                .map(|lot| format!("lot {lot}: it has vouchers and is missing")),
        );
    }

    /// A fault if an anchor recorded another end of this chain.
    fn differs(&self, anchor: &Anchor) -> Option<String> {
        let recorded = anchor.house()?;
        let place = usize::try_from(recorded.seq).ok()?.checked_sub(1)?;
        let what = match self.acts.get(place) {
            Some(found) if found.hash == recorded.hash => return None,
            Some(_) => "is not the one it covers",
            None => "is missing",
        };
        Some(format!(
            "anchor of {}: act {} on tokens and lots {what}",
            anchor.at(),
            recorded.seq
        ))
    }
}
