//! One call: who asks for what, and how its act is done once.

use std::sync::Arc;

use bytes::Bytes;
use farebox_ledger::{
    Act, AnswerOf, Answered, ApiAnswer, Asked, Asker, Customer, CustomerId, ExpectedAct, Key,
    KeyId, Ledger, LedgerError, Once, Operation, Outcome, Refusal, Scope, SecretHash, Timestamp,
    Token, TokenRole,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::answer::{ApiContent, ApiError, ApiReply};
use super::fields::FieldValues;
use super::table::ApiRoute;
use crate::clock;
use crate::selling::{self, Deed, NewSecret, documents};
use crate::server::admin::Admin;

/// A request that was read and may be made.
#[derive(Debug)]
pub(super) struct ApiCall<'api> {
    pub(super) admin: &'api Admin,
    pub(super) route: &'static ApiRoute,
    pub(super) token: Token,
    pub(super) path: String,
    pub(super) parameters: Vec<String>,
    pub(super) query: FieldValues,
    pub(super) body: FieldValues,
    /// The body as it was sent.
    pub(super) bytes: Bytes,
    /// The Idempotency-Key.
    pub(super) once: Option<String>,
    pub(super) if_match: Option<i64>,
    pub(super) now: Timestamp,
}

/// What an act's answer shows.
pub(super) type ShowOutcome = Arc<dyn Fn(&Outcome) -> (u16, Value) + Send + Sync>;

impl ApiCall<'_> {
    pub(super) fn ledger(&self) -> &dyn Ledger {
        &*self.admin.ledger
    }

    /// An act in the token's name.
    pub(super) fn act(&self) -> Act {
        selling::act(self.token.label.clone())
    }

    /// The first parameter of the path.
    pub(super) fn parameter(&self) -> &str {
        self.parameters.first().map_or("", String::as_str)
    }

    /// The customer that the path names.
    pub(super) fn customer_id(&self) -> Result<CustomerId, ApiError> {
        let parsed = self.parameter().parse::<CustomerId>();
        parsed.map_err(|error| ApiError::new(404, "customer_not_found", error.to_string()))
    }

    /// The key that the path names.
    pub(super) fn key_id(&self) -> Result<KeyId, ApiError> {
        let parsed = self.parameter().parse::<KeyId>();
        parsed.map_err(|error| ApiError::new(404, "key_not_found", error.to_string()))
    }

    /// What the path names.
    pub(super) fn scope(&self) -> Result<Scope, ApiError> {
        if self.route.path.starts_with("/keys/") {
            self.key_id().map(Scope::Key)
        } else {
            self.customer_id().map(Scope::Customer)
        }
    }

    /// The customer that the path names, if this token may read it.
    pub(super) async fn customer(&self) -> Result<Customer, ApiError> {
        let customer = selling::reads::customer(self.ledger(), self.customer_id()?).await?;
        self.check_may_read(&customer)?;
        Ok(customer)
    }

    /// The key that the path names, if this token may read its customer.
    pub(super) async fn key(&self) -> Result<Key, ApiError> {
        let key = selling::reads::key(self.ledger(), self.key_id()?).await?;
        self.check_may_read(&key.customer)?;
        Ok(key)
    }

    /// Refuses what a token that sells may not see.
    pub(super) fn check_may_read(&self, customer: &Customer) -> Result<(), ApiError> {
        if self.token.may_read(customer) {
            return Ok(());
        }
        let message = format!(
            "token {:?} sells, and customer {} was not made by it",
            self.token.label, customer.id
        );
        Err(ApiError::new(403, "not_yours", message))
    }

    /// Whether this token sees its own customers only.
    pub(super) fn sells(&self) -> bool {
        self.token.role == TokenRole::Sell
    }

    /// Does an act, and answers with the usual document.
    pub(super) async fn perform(&self, deed: Deed) -> Result<ApiReply, ApiError> {
        self.perform_as(deed, Arc::new(documents::outcome_of(self.route.status)))
            .await
    }

    /// Does an act once, and answers with what `show` makes of it.
    pub(super) async fn perform_as(
        &self,
        deed: Deed,
        show: ShowOutcome,
    ) -> Result<ApiReply, ApiError> {
        let shown = Arc::clone(&show);
        let once = self.once.as_ref().map(|key| Once {
            path: format!("{} {}", self.route.method, self.path),
            key: key.clone(),
            body: SecretHash(Sha256::digest(&self.bytes).into()),
            answer: AnswerOf::new(move |outcome: &Outcome| {
                let (status, document) = shown(outcome);
                let body = document.to_string();
                ApiAnswer { status, body }
            }),
        });
        let answered = match self.ask(deed.operation, once, None).await {
            Ok(answered) => answered,
            Err(error) => return Err(self.refusal(error).await),
        };
        if let (true, Some(stored)) = (answered.is_replay(), answered.answer) {
            return Ok(ApiReply {
                status: stored.status,
                body: ApiContent::Stored(stored.body),
                etag: None,
                replayed: true,
            });
        }
        let outcome = answered.outcome.unwrap_or(Outcome::Done);
        let (status, mut document) = show(&outcome);
        if let Some(secret) = &deed.shown_once {
            self.reveal(&mut document, secret);
        }
        Ok(ApiReply {
            status,
            ..document.into()
        })
    }

    /// Why an act was not done. A reference or an external id leads only those to its customer who may read it.
    async fn refusal(&self, error: LedgerError) -> ApiError {
        let named = match &error {
            LedgerError::Refused(Refusal::ReferenceUsed {
                reference,
                customer,
            }) => Some((reference.clone(), *customer)),
            LedgerError::Refused(Refusal::ExternalIdUsed {
                external_id,
                customer,
            }) => Some((external_id.clone(), *customer)),
            _ => None,
        };
        let told = ApiError::from(error);
        let Some((name, customer)) = named else {
            return told;
        };
        let found = self.ledger().find_customer(customer).await;
        if let Ok(Some(customer)) = found
            && self.token.may_read(&customer)
        {
            return told;
        }
        let message = format!("{name:?} was already used; nothing was changed");
        ApiError::new(told.status, told.code, message)
    }

    /// Does an act that is no POST, or one on the way to it.
    pub(super) async fn apply(&self, deed: Deed) -> Result<Outcome, ApiError> {
        let answered = self.ask(deed.operation, None, None).await?;
        Ok(answered.outcome.unwrap_or(Outcome::Done))
    }

    async fn ask(
        &self,
        operation: Operation,
        once: Option<Once>,
        expected: Option<ExpectedAct>,
    ) -> Result<Answered, LedgerError> {
        let asked = Asked {
            by: Asker::Token(self.token.id),
            at: clock::now(),
            once,
            expected,
            operation,
        };
        self.ledger().ask(asked).await
    }

    /// Adds what only this answer shows.
    fn reveal(&self, document: &mut Value, secret: &NewSecret) {
        let key = match document.get("key") {
            Some(Value::Object(_)) => document.get_mut("key"),
            _ => Some(document),
        };
        let Some(fields) = key.and_then(Value::as_object_mut) else {
            return;
        };
        let (name, shown) = match secret {
            NewSecret::Secret(secret) => ("secret", json!(secret.reveal())),
            NewSecret::Link(token) => ("link", json!(token.url(&self.admin.front.public_url))),
            NewSecret::Codes(codes) => ("codes", documents::codes(codes)),
        };
        fields.insert(name.to_owned(), shown);
    }

    /// The state that an edit begins with, to be read before anything else of it: what the caller has read, or the newest.
    pub(super) async fn edit_base(&self, of: Scope) -> Result<ExpectedAct, ApiError> {
        let position = match self.if_match {
            Some(expected) => expected,
            None => self.ledger().last_act(of).await?,
        };
        Ok(ExpectedAct { of, position })
    }

    /// Makes an edit of what was read since `base`; each comparison is in the transaction of its change, whichever gateway does it. False if
    /// it was changed meanwhile and the caller expects no state: then it is to be read again.
    ///
    /// # Errors
    /// 412 if it is not in the state that the caller expects.
    pub(super) async fn edit(
        &self,
        mut base: ExpectedAct,
        deeds: Vec<Deed>,
    ) -> Result<bool, ApiError> {
        for deed in deeds {
            let operation = deed.operation.id();
            match self.ask(deed.operation, None, Some(base)).await {
                Err(LedgerError::Refused(Refusal::ChangedSince { .. }))
                    if self.if_match.is_none() =>
                {
                    return Ok(false);
                }
                done => drop(done?),
            }
            if let Some(operation) = operation
                && let Some(act) = self.ledger().act(operation).await?
            {
                base.position = act.position;
            }
        }
        Ok(true)
    }
}
