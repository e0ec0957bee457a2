//! Acts on tokens of the admin API: one chain for all of them, because they belong to no customer.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::chain::HashInput;
use super::head::{Hash, NOTHING};
use crate::{NewToken, OperationId, SecretHash, Timestamp, Token, TokenId};

/// The first byte hashed: an act on a token can never look like another act or an entry.
const TOKEN_ACT: u8 = 193;

/// One act on a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenAct {
    /// Its number, from 1.
    pub seq: i64,
    /// The clock at the act, UTC.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// What: `create_token` or `revoke_token`.
    pub act: String,
    /// The token.
    pub token: TokenId,
    /// The operation's id.
    pub operation: OperationId,
    /// Details as one JSON object, without secrets.
    pub details: String,
}

/// An act at its place in the chain, with the state in which it left the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainedTokenAct {
    pub(crate) act: TokenAct,
    pub(crate) state: String,
    pub(crate) hash: Hash,
}

/// The end of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TokenHead {
    pub(crate) seq: i64,
    pub(crate) hash: Hash,
}

impl TokenHead {
    pub(crate) const NONE: Self = Self {
        seq: 0,
        hash: NOTHING,
    };

    /// What the next act is hashed with, in a ledger whose chains begin with `genesis`.
    const fn previous(&self, genesis: Hash) -> Hash {
        if self.seq == 0 { genesis } else { self.hash }
    }
}

/// What a new token was made with.
pub(crate) fn created(new: &NewToken) -> Value {
    json!({
        "label": new.label,
        "role": new.role,
        "daily": new.daily,
        "expires_at": new.expires_at,
        "secret": fingerprint(&new.secret),
    })
}

/// What only a command changes of a token. The format is frozen.
fn state(token: &Token) -> String {
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

fn fingerprint(hash: &SecretHash) -> String {
    super::audit::fingerprint(hash)
}

/// Chains an act behind `head`; the token is as after the act.
pub(crate) fn chained(
    genesis: Hash,
    head: TokenHead,
    act: TokenAct,
    token: &Token,
) -> ChainedTokenAct {
    let act = TokenAct {
        seq: head.seq.saturating_add(1),
        ..act
    };
    let state = state(token);
    let hash = hash_of(&head.previous(genesis), &act, &state);
    ChainedTokenAct { act, state, hash }
}

/// The hash of an act on a token, behind the hash of the act before it.
fn hash_of(before: &Hash, act: &TokenAct, state: &str) -> Hash {
    let mut bytes = HashInput::new(TOKEN_ACT, before);
    bytes.number(act.token.to_i64()).number(act.seq);
    bytes
        .raw(&act.operation.to_bytes())
        .number(act.at.millis())
        .text(&act.actor)
        .text(&act.act)
        .text(&act.details)
        .text(state);
    bytes.finish()
}

/// Everything about tokens.
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenBook {
    pub(crate) tokens: Vec<Token>,
    /// In order.
    pub(crate) acts: Vec<ChainedTokenAct>,
}

impl TokenBook {
    /// What does not follow in it.
    pub(crate) fn faults(&self, genesis: Hash) -> Vec<String> {
        let (mut faults, mut head) = (Vec::new(), TokenHead::NONE);
        let mut told: BTreeMap<TokenId, &str> = BTreeMap::new();
        for ChainedTokenAct { act, state, hash } in &self.acts {
            let follows = hash_of(&head.previous(genesis), act, state) == *hash;
            if !follows || act.seq != head.seq.saturating_add(1) {
                faults.push(format!(
                    "act {} on token {}: its hash or number does not follow from its content and the act before",
                    act.seq, act.token
                ));
            }
            head = TokenHead {
                seq: act.seq,
                hash: *hash,
            };
            told.insert(act.token, state);
        }
        for token in &self.tokens {
            let is_told = told.remove(&token.id) == Some(&*state(token));
            let most = token.daily.unwrap_or_default();
            if !is_told {
                faults.push(format!(
                    "token {}: was changed without an audit record",
                    token.id
                ));
            }
            if token.sold.is_some_and(|(_, sold)| sold > most) {
                faults.push(format!("token {}: credited more than its bound", token.id));
            }
        }
        faults.extend(
            told.keys()
                .map(|token| format!("token {token}: acts tell of it, and it is missing")),
        );
        faults
    }
}
