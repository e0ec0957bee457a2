//! Keys that a program makes with an owner key, one for a run or an agent, each with a limit of its own: made, listed, changed, revoked.
//!
//! The names are those of OpenRouter's key API where both know a thing. An owner key sees here what it made itself; the dashboard shows all
//! keys of the customer. Whatever is decided about money is decided in the ledger's transaction.
//!
//! Rows of docs/interface.md: `keys_made_by_program`.

use std::time::Duration;

use farebox_ledger::key::Change;
use farebox_ledger::{
    Act, AnswerOf, Answered, ApiAnswer, Cap, CapInterval, Key, KeyEdit, KeyId, KeyOrder, KeyQuery,
    KeySettings, KeyStatus, LedgerError, MadeBound, MadeQuery, Once, Outcome, Refusal, Secret,
    SecretHash, Timestamp,
};
use farebox_protocol::BadRequest;
use sha2::{Digest as _, Sha256};

use super::actor::{Actor, NewMember};
use super::context::Context;
use super::decimal_json::DecimalJson;
use super::made_document::{KeySums, document};
use super::made_request::{KeyChanges, NewRunKey};
use super::owner;
use crate::clock;
use crate::proxy::Failure;

/// Under what repetitions are kept.
const MAKE: &str = "POST /v1/keys";
/// Most keys of one page.
const PAGE: usize = 100;
/// Most keys that are left out before a page.
const FARTHEST: usize = 10_000;

/// What is asked of the keys that an owner key makes.
#[derive(Debug, Clone, Copy)]
pub enum MadeCall<'a> {
    /// A page of them.
    List(&'a KeyPage),
    /// One more: the body, and the name under which a repetition is recognised.
    Make(&'a [u8], Option<&'a str>),
    /// One of them.
    Read(&'a str),
    /// Other settings: the body.
    Change(&'a str, &'a [u8]),
    /// None any more.
    Delete(&'a str),
}

/// Which page of keys.
#[derive(Debug, Clone, Default)]
pub struct KeyPage {
    /// Blocked ones, too.
    pub with_disabled: bool,
    /// How many; a hundred at most, and by default.
    pub limit: Option<usize>,
    /// So many are left out first.
    pub offset: Option<usize>,
    /// Those after this one.
    pub after: Option<String>,
}

/// What is answered.
#[derive(Debug)]
pub struct MadeAnswer {
    /// The HTTP status.
    pub status: u16,
    /// Whether an earlier request did it.
    pub is_replay: bool,
    /// JSON.
    pub body: String,
}

impl MadeAnswer {
    fn of(status: u16, body: &DecimalJson) -> Self {
        Self {
            status,
            is_replay: false,
            body: body.document(),
        }
    }
}

impl Context {
    /// What a program may do that has authenticated with this key. Nothing of a body need be read for who may do nothing.
    ///
    /// # Errors
    /// 403 for a member and for whoever may not act.
    pub fn key_maker<'a>(&'a self, key: &'a Key) -> Result<KeyMaker<'a>, Failure> {
        if !key.is_owner {
            return Err(Failure::OwnersOnly);
        }
        Ok(KeyMaker {
            actor: Actor::of(key, self.ledger.as_ref())?,
            now: clock::now(),
        })
    }
}

/// The acts of an owner key on what it makes.
#[derive(Debug)]
pub struct KeyMaker<'a> {
    actor: Actor<'a>,
    now: Timestamp,
}

impl KeyMaker<'_> {
    /// Does what is asked.
    ///
    /// # Errors
    /// 404 for a key that this one did not make, 400 for what makes no sense, 422 for an idempotency key of another body, 429 for too many.
    pub async fn answer(&self, call: MadeCall<'_>) -> Result<MadeAnswer, Failure> {
        match call {
            MadeCall::List(page) => self.list(page).await,
            MadeCall::Make(body, once) => self.make(body, once).await,
            MadeCall::Read(hash) => {
                let key = self.find(hash).await?;
                Ok(MadeAnswer::of(200, &self.shown(&key).await?))
            }
            MadeCall::Change(hash, body) => self.change(hash, body).await,
            MadeCall::Delete(hash) => self.delete(hash).await,
        }
    }

    async fn list(&self, page: &KeyPage) -> Result<MadeAnswer, Failure> {
        let (limit, offset) = (
            page.limit.unwrap_or(PAGE).min(PAGE),
            page.offset.unwrap_or_default().min(FARTHEST),
        );
        let after = match &page.after {
            Some(hash) => Some(KeyOrder::Newest.place(&self.find(hash).await?)),
            None => None,
        };
        let query = KeyQuery {
            order: KeyOrder::Newest,
            after,
            made: Some(MadeQuery {
                by: self.actor.key().id,
                blocked: page.with_disabled,
            }),
            now: self.now,
            // One more shows whether there are others.
            limit: offset.saturating_add(limit).saturating_add(1),
            ..KeyQuery::default()
        };
        let found = self.actor.ledger().list_keys(query).await?;
        let mut keys: Vec<Key> = found.into_iter().skip(offset).collect();
        let has_more = keys.len() > limit;
        keys.truncate(limit);
        let sums = KeySums::read(self.actor.ledger(), &keys, self.now).await?;
        let last = keys
            .last()
            .filter(|_| has_more)
            .map(|key| key.id.to_string());
        let shown = keys.iter().zip(&sums);
        let shown = shown.map(|(key, sums)| document(key, sums, self.now));
        let body = DecimalJson::object([
            ("data", DecimalJson::List(shown.collect())),
            ("has_more", has_more.into()),
            ("next_cursor", last.into()),
        ]);
        Ok(MadeAnswer::of(200, &body))
    }

    async fn make(&self, body: &[u8], once: Option<&str>) -> Result<MadeAnswer, Failure> {
        let owner = self.actor.key();
        let asked = NewRunKey::read(body, &owner.settings)?;
        let id = clock::key_id();
        let secret = Secret::generate(id, clock::random());
        let lives = i64::try_from(asked.expires_in.as_millis()).unwrap_or(i64::MAX);
        let end = Timestamp::from_millis(self.now.millis().saturating_add(lives));
        let end = owner.settings.expires_at.map_or(end, |own| own.min(end));
        let new = NewMember {
            id,
            secret: secret.hash(),
            settings: KeySettings {
                label: asked.label,
                models: asked.models,
                expires_at: Some(end),
                rate: asked.rate,
                concurrency: owner.settings.concurrency,
                metadata: asked.metadata.map(Box::new),
            },
            purse: Some(asked.purse),
            act: self.act(),
        };
        let now = self.now;
        let once = once.map(|name| Once {
            path: MAKE.to_owned(),
            key: name.to_owned(),
            body: SecretHash(Sha256::digest(body).into()),
            answer: AnswerOf::new(move |outcome| ApiAnswer {
                status: 201,
                body: repeated(outcome, now),
            }),
        });
        let made = self.actor.make_member(new, once).await.map_err(refused)?;
        let Answered { outcome, answer } = made;
        match (outcome, answer) {
            (None, Some(answer)) => Ok(MadeAnswer {
                status: answer.status,
                is_replay: true,
                body: answer.body,
            }),
            _ => {
                let key = self.find(&id.to_string()).await?;
                Ok(MadeAnswer::of(
                    201,
                    &with_secret(&key, Some(&secret), self.now),
                ))
            }
        }
    }

    async fn change(&self, hash: &str, body: &[u8]) -> Result<MadeAnswer, Failure> {
        let asked = KeyChanges::read(body)?;
        let key = self.find(hash).await?;
        let (ledger, id) = (self.actor.ledger(), key.id);
        // Whoever may not do one of these does none of them, as far as that can be known before.
        let unblocks = match asked.disabled {
            Some(false) if key.stored_status == KeyStatus::Blocked => {
                let act = owner::blocked_by_owner(ledger, id).await?;
                let told = || {
                    BadRequest::at(
                        "disabled",
                        "the seller has blocked this key; ask the seller",
                    )
                };
                Some(act.ok_or_else(told)?)
            }
            _ => None,
        };
        if let Some(limit) = asked.limit {
            let interval = interval_of(&key, self.now);
            if asked.limit_reset.is_some_and(|asked| asked != interval) {
                let text = "a limit starts again as it did when the key was made; make another key";
                return Err(BadRequest::at("limit_reset", text).into());
            }
            let cap = Cap {
                interval,
                model: None,
                limit,
            };
            self.apply(id, Change::SetPurse(cap)).await?;
        }
        if let Some(label) = asked.label {
            let edit = KeyEdit {
                label: Some(label),
                ..KeyEdit::default()
            };
            self.apply(id, Change::Edit(edit)).await?;
        }
        if let Some(expected) = unblocks {
            let act = self.act();
            let done = self
                .actor
                .change_key(id, Change::Unblock, act, Some(expected));
            done.await.map_err(refused)?;
        }
        if asked.disabled == Some(true) && key.stored_status == KeyStatus::Active {
            self.apply(id, Change::Block).await?;
        }
        if !asked.reissue {
            let key = self.find(hash).await?;
            return Ok(MadeAnswer::of(200, &self.shown(&key).await?));
        }
        let secret = Secret::generate(id, clock::random());
        let hashed = secret.hash();
        let change = Change::Reissue { secret: hashed };
        let key = self.apply(id, change).await?;
        Ok(MadeAnswer::of(
            200,
            &with_secret(&key, Some(&secret), self.now),
        ))
    }

    async fn delete(&self, hash: &str) -> Result<MadeAnswer, Failure> {
        let key = self.find(hash).await?;
        self.apply(key.id, Change::Revoke).await?;
        Ok(MadeAnswer::of(
            200,
            &DecimalJson::object([("deleted", true.into())]),
        ))
    }

    async fn apply(&self, key: KeyId, change: Change) -> Result<Key, Failure> {
        let done = self.actor.change_key(key, change, self.act(), None);
        done.await.map_err(refused)
    }

    /// A key that this one made and that is not revoked.
    async fn find(&self, hash: &str) -> Result<Key, Failure> {
        let shown = hash.chars().take(40).collect::<String>();
        let none = || {
            Failure::NoPath(format!(
                "this key has made no key {shown:?}; GET /v1/keys lists those that it made"
            ))
        };
        let id: KeyId = hash.parse().map_err(|_| none())?;
        let found = self.actor.ledger().find_key(id).await?;
        found
            .filter(|key| key.counts_in == Some(self.actor.key().id))
            .filter(|key| key.stored_status != KeyStatus::Revoked)
            .ok_or_else(none)
    }

    async fn shown(&self, key: &Key) -> Result<DecimalJson, Failure> {
        let sums = KeySums::read(self.actor.ledger(), std::slice::from_ref(key), self.now).await?;
        let sums = sums.into_iter().next().unwrap_or_default();
        Ok(DecimalJson::object([(
            "data",
            document(key, &sums, self.now),
        )]))
    }

    fn act(&self) -> Act {
        Act {
            operation: clock::operation_id(),
            actor: owner::actor(self.actor.key().id),
            at: self.now,
        }
    }
}

/// A key that was made now, with its secret for the one time that it is shown.
fn with_secret(key: &Key, secret: Option<&Secret>, now: Timestamp) -> DecimalJson {
    DecimalJson::object([
        ("data", document(key, &KeySums::default(), now)),
        ("key", secret.map(Secret::reveal).into()),
    ])
}

/// What a repetition is answered: the same key, without its secret.
fn repeated(outcome: &Outcome, now: Timestamp) -> String {
    match outcome {
        Outcome::Key(key) => with_secret(key, None, now).document(),
        _ => DecimalJson::Null.document(),
    }
}

/// When the limit of a key starts again.
fn interval_of(key: &Key, now: Timestamp) -> CapInterval {
    super::made_document::limit_of(key, now).map_or(CapInterval::Total, |cap| cap.interval)
}

/// What the ledger refuses, as the caller can act on it.
fn refused(error: LedgerError) -> Failure {
    let LedgerError::Refused(refusal) = error else {
        return error.into();
    };
    let text = refusal.to_string();
    let coded = |param: Option<&str>, code| BadRequest {
        param: param.map(str::to_owned),
        code: Some(code),
        ..BadRequest::new(text.clone())
    };
    match refusal {
        Refusal::AboveRoom { .. } => coded(Some("limit"), "limit_above_room").into(),
        Refusal::TooManyMade(MadeBound::Live) => coded(None, "too_many_keys").into(),
        Refusal::TooManyMade(MadeBound::Minute) => {
            Failure::RateLimited(text, Duration::from_secs(60))
        }
        Refusal::KeyOfOtherBody => Failure::OtherBody,
        Refusal::StillRunning => Failure::StillRunning,
        Refusal::Limit(_)
        | Refusal::Unprintable { .. }
        | Refusal::NotApplicable(_)
        | Refusal::NotAllowed(_)
        | Refusal::ChangedSince { .. } => BadRequest::new(text).into(),
        other => LedgerError::Refused(other).into(),
    }
}
