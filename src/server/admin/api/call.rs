//! One call: who asks for what, and how its act is done once.

use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use farebox_ledger::{
    AnswerOf, Answered, ApiAnswer, Asked, Asker, Customer, CustomerId, ExpectedAct, GrantId,
    IdError, Key, KeyId, Ledger, LedgerError, LotId, Once, Operation, OperationId, Outcome,
    PlanTerms, ReservationId, Scope, SecretHash, SubscriptionId, Timestamp, Token, TokenRole,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::answer::{ApiContent, ApiError, ApiReply};
use super::read::{self, SentMembers};
use crate::clock;
use crate::proxy::record;
use crate::server::admin::Admin;
use farebox_selling::value::CustomerName;
use farebox_selling::{Deed, Doer, NewSecret, SellerAct, SoldModels, reads};

/// A request that was read and may be made.
#[derive(Debug)]
pub(super) struct ApiCall<'api> {
    pub(super) admin: &'api Admin,
    pub(super) method: &'static str,
    /// What is answered when all is well.
    pub(super) status: u16,
    /// What an act came to, as its answer shows it.
    pub(super) show: fn(&Outcome, &ToldTo) -> (u16, Value),
    pub(super) token: Token,
    pub(super) path: String,
    pub(super) parameters: Vec<String>,
    /// Those of its body, or of its query if it has none; checked.
    pub(super) members: SentMembers,
    /// The body as it was sent.
    pub(super) bytes: Bytes,
    /// The Idempotency-Key.
    pub(super) once: Option<String>,
    pub(super) if_match: Option<i64>,
    pub(super) now: Timestamp,
}

/// What an act's answer shows.
type ShowOutcome = Arc<dyn Fn(&Outcome) -> (u16, Value) + Send + Sync>;

/// To whom an outcome is shown.
#[derive(Debug)]
pub(super) struct ToldTo {
    pub(super) token: Token,
    /// What is answered when all is well.
    pub(super) status: u16,
    /// What the path names.
    pub(super) named: String,
}

pub(super) trait NamedInPath: Sized {
    /// An example of it, where the parameter's name does not say which.
    const EXAMPLE: Option<&'static str> = None;

    /// As it was sent.
    ///
    /// # Errors
    /// 404 if nothing can have such a name.
    fn named(call: &ApiCall<'_>) -> Result<Self, ApiError>;
}

impl NamedInPath for () {
    fn named(_: &ApiCall<'_>) -> Result<Self, ApiError> {
        Ok(())
    }
}

impl NamedInPath for String {
    fn named(call: &ApiCall<'_>) -> Result<Self, ApiError> {
        Ok(call.parameter().to_owned())
    }
}

impl NamedInPath for CustomerId {
    fn named(call: &ApiCall<'_>) -> Result<Self, ApiError> {
        call.parsed("customer_not_found")
    }
}

impl NamedInPath for Option<CustomerId> {
    fn named(call: &ApiCall<'_>) -> Result<Self, ApiError> {
        CustomerId::named(call).map(Some)
    }
}

impl NamedInPath for KeyId {
    fn named(call: &ApiCall<'_>) -> Result<Self, ApiError> {
        call.parsed("key_not_found")
    }
}

impl NamedInPath for GrantId {
    const EXAMPLE: Option<&'static str> = Some("g_7f3q9d2xw1");

    fn named(call: &ApiCall<'_>) -> Result<Self, ApiError> {
        call.parsed("grant_not_found")
    }
}

impl NamedInPath for SubscriptionId {
    const EXAMPLE: Option<&'static str> = Some("s_7f3q9d2xw1");

    fn named(call: &ApiCall<'_>) -> Result<Self, ApiError> {
        call.parsed("subscription_not_found")
    }
}

impl NamedInPath for LotId {
    const EXAMPLE: Option<&'static str> = Some("l_7f3q9d2xw1");

    fn named(call: &ApiCall<'_>) -> Result<Self, ApiError> {
        call.parsed("lot_not_found")
    }
}

impl NamedInPath for ReservationId {
    fn named(call: &ApiCall<'_>) -> Result<Self, ApiError> {
        call.parsed("reservation_not_found")
    }
}

impl NamedInPath for Scope {
    fn named(call: &ApiCall<'_>) -> Result<Self, ApiError> {
        if call.path.starts_with("/api/v1/keys/") {
            KeyId::named(call).map(Self::Key)
        } else {
            CustomerId::named(call).map(Self::Customer)
        }
    }
}

impl NamedInPath for OperationId {
    fn named(call: &ApiCall<'_>) -> Result<Self, ApiError> {
        let id = call.parameter();
        record::operation(id).ok_or_else(|| {
            let message = format!("there is no charge of {id}");
            ApiError::new(404, "request_not_found", message)
        })
    }
}

impl SoldModels for ApiCall<'_> {
    fn unsold(&self, slug: &str) -> Option<String> {
        let config = self.admin.front.proxy.config.current();
        config.catalog.unsold(slug)
    }

    fn plan(&self, name: &str) -> Result<PlanTerms, String> {
        let config = self.admin.front.proxy.config.current();
        config.catalog.plan(name).cloned()
    }

    fn has_list(&self, name: &str) -> Result<(), String> {
        let config = self.admin.front.proxy.config.current();
        config.catalog.list(name).map(drop)
    }
}

impl ApiCall<'_> {
    pub(super) fn ledger(&self) -> &dyn Ledger {
        &*self.admin.ledger
    }

    /// What it says.
    ///
    /// # Errors
    /// 400 or 422, which name the member that cannot be read.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        read::read(&self.members)
    }

    /// The token, as whoever acts.
    pub(super) fn doer(&self) -> Doer<'_> {
        Doer {
            ledger: self.ledger(),
            actor: &self.token.label,
            sells: self.sells(),
            kept: None,
            sold: Some(self),
        }
    }

    /// The first parameter of the path.
    pub(super) fn parameter(&self) -> &str {
        self.parameters.first().map_or("", String::as_str)
    }

    fn parsed<T: FromStr<Err = IdError>>(&self, unknown: &'static str) -> Result<T, ApiError> {
        let parsed = self.parameter().parse();
        parsed.map_err(|error: IdError| ApiError::new(404, unknown, error.to_string()))
    }

    /// The customer that the path names, if this token may read it.
    pub(super) async fn customer(&self) -> Result<Customer, ApiError> {
        let customer = reads::customer(self.ledger(), CustomerId::named(self)?).await?;
        self.check_may_read(&customer)?;
        Ok(customer)
    }

    /// The key that the path names, if this token may read its customer.
    pub(super) async fn key(&self) -> Result<Key, ApiError> {
        let key = reads::key(self.ledger(), KeyId::named(self)?).await?;
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

    /// Whose rows a list has, which `named` names: of all customers only for a token that may read them.
    pub(super) async fn whose(
        &self,
        named: Option<CustomerName>,
        rows: &str,
    ) -> Result<Option<CustomerId>, ApiError> {
        let whose = match self.parameters.is_empty() {
            true => named.map(Into::into),
            false => Some(self.customer().await?.id),
        };
        if let Some(id) = whose.filter(|_| self.sells()) {
            self.check_may_read(&reads::customer(self.ledger(), id).await?)?;
        } else if self.sells() {
            let message =
                format!("a token that sells reads the {rows} of one customer; name it: ?customer=");
            return Err(ApiError::new(403, "not_yours", message));
        }
        Ok(whose)
    }

    /// Does what its members say, once. Of several deeds the first is judged by the state that the caller expects.
    pub(super) async fn act<A: SellerAct<Of: NamedInPath>>(&self) -> Result<ApiReply, ApiError> {
        let (act, of, doer) = (self.read::<A>()?, A::Of::named(self)?, self.doer());
        let mut expected = self.expected()?;
        // These are not kept under the key. Of what is done, a repetition finds nothing left: no key that is not revoked, no money to write
        // off.
        for deed in act.before(&of, &doer).await? {
            self.ask(deed.operation, None, expected.take()).await?;
        }
        let deed = act.deed(of, &doer).await?;
        let (show, told) = (self.show, self.told());
        let show = Arc::new(move |outcome: &Outcome| show(outcome, &told));
        self.perform(deed, expected, show).await
    }

    /// The state in which the caller expects what is changed.
    fn expected(&self) -> Result<Option<ExpectedAct>, ApiError> {
        let Some(position) = self.if_match else {
            return Ok(None);
        };
        let of = Scope::named(self)?;
        Ok(Some(ExpectedAct { of, position }))
    }

    fn told(&self) -> ToldTo {
        ToldTo {
            token: self.token.clone(),
            status: self.status,
            named: self.parameter().to_owned(),
        }
    }

    /// Does an act once, and answers with what `show` makes of it.
    pub(super) async fn perform(
        &self,
        deed: Deed,
        expected: Option<ExpectedAct>,
        show: ShowOutcome,
    ) -> Result<ApiReply, ApiError> {
        let shown = Arc::clone(&show);
        let once = self.once.as_ref().map(|key| Once {
            path: format!("{} {}", self.method, self.path),
            key: key.clone(),
            body: SecretHash(Sha256::digest(&self.bytes).into()),
            answer: AnswerOf::new(move |outcome: &Outcome| {
                let (status, document) = shown(outcome);
                let body = document.to_string();
                ApiAnswer { status, body }
            }),
        });
        let answered = match self.ask(deed.operation, once, expected).await {
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
        let taken = match &error {
            LedgerError::Refused(refusal) => refusal.taken(),
            _ => None,
        };
        let Some((name, customer)) = taken else {
            return error.into();
        };
        let found = self.ledger().find_customer(customer).await;
        if let Ok(Some(customer)) = found
            && self.token.may_read(&customer)
        {
            return error.into();
        }
        let message = format!("{name:?} was already used; nothing was changed");
        let told = ApiError::from(error);
        ApiError::new(told.status, told.code, message)
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
            NewSecret::Token(secret) => ("secret", json!(secret.reveal())),
            NewSecret::Link(token) => ("link", json!(token.url(&self.admin.front.public_url))),
            NewSecret::ShopLink(token) => {
                let config = self.admin.front.proxy.config.current();
                let pay_url = config.catalog.shop.pay_url.as_ref();
                ("link", json!(pay_url.map(|url| token.shop_url(url))))
            }
            NewSecret::Codes(codes) => ("codes", json!(farebox_selling::revealed(codes))),
        };
        fields.insert(name.to_owned(), shown);
    }
}
