//! Contents of the audit: the word and the details of each act, and the state an act leaves a customer and a key in.
//!
//! Pure. Details and states are JSON with fixed fields and never contain a secret: secrets appear as fingerprints, from which
//! neither the secret nor its stored hash can be found. States are hashed into the audit's chain, so their format is frozen per
//! version.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::book::head::AuditHead;
use crate::book::money_acts::OF_MONEY;
use crate::rule::auto_top_up::TopUpWish;
use crate::rule::key::KeyRecord;
use crate::value::reference;
use crate::{
    Act, Amount, Caps, Change, Credit, CreditKind, Customer, CustomerAct, CustomerChange,
    CustomerId, CustomerSettings, CustomerStatus, KeyChange, KeyId, KeySettings, NewCustomer,
    NewKey, NewMove, NewPayment, NewReversal, NewVisit, OperationId, Scope, SecretHash, Timestamp,
    TokenId, UnappliedAct, UnappliedEnd,
};

/// One administrative act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// Position in the audit, ascending.
    pub position: i64,
    /// The clock at the act, UTC.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// What. Of a key: `create`, `set`, `block`, `unblock`, `revoke`, `rotate`, `reissue`, `link`, `set_cap`, `clear_cap`. Of a customer:
    /// `create_customer`, `set_customer`, `suspend`, `resume`, `close`, `describe`, `erase`, `set_cap`, `clear_cap`,
    /// `set_auto_top_up`, `clear_auto_top_up`, `fail_top_up`, `move`. Of either:
    /// `top_up`, `adjust`, `refund`, `write_off`. Of a customer's grants: `grant`, `void_grant`. Of a customer's payments: `unapplied`, `assign`, `return`, `reverse`,
    /// `unapplied_reversal`.
    pub act: String,
    /// The customer that it changed, or whose key it changed.
    pub customer: CustomerId,
    /// The key that it changed; `None` if it was about the customer.
    pub key: Option<KeyId>,
    /// The id by which a repetition is known.
    pub operation: OperationId,
    /// Details as one JSON object, without secrets.
    pub details: String,
}

impl AuditRecord {
    /// Whether it moved money, or was about a payment that did not.
    pub fn is_of_money(&self) -> bool {
        OF_MONEY.contains(&&*self.act)
    }

    /// The key that it changed, or the customer itself; `None` if it moved money.
    pub(crate) fn changed(&self) -> Option<Scope> {
        let of = self.key.map_or(Scope::Customer(self.customer), Scope::Key);
        (!self.is_of_money()).then_some(of)
    }
}

/// An act before it has its place in the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) at: Timestamp,
    pub(crate) actor: String,
    pub(crate) act: &'static str,
    /// The key that it is about; `None` if it is about the customer.
    pub(crate) key: Option<KeyId>,
    pub(crate) operation: OperationId,
    pub(crate) details: String,
}

/// An act at its place, with the state in which it left customer and key.
#[derive(Debug, Clone)]
pub(crate) struct ActRecord {
    pub(crate) record: AuditRecord,
    /// Among the customer's acts; 1 is the first.
    pub(crate) seq: i64,
    pub(crate) state: String,
}

impl Written {
    pub(super) fn by(act: &Act, word: &'static str, key: Option<KeyId>, details: &Value) -> Self {
        Self {
            at: act.at,
            actor: act.actor.clone(),
            act: word,
            key,
            operation: act.operation,
            details: details.to_string(),
        }
    }

    /// The record behind `head`; customer and key are as after the act.
    pub(crate) fn record(
        self,
        position: i64,
        head: &AuditHead,
        customer: &Customer,
        key: Option<&KeyRecord>,
    ) -> ActRecord {
        let record = AuditRecord {
            position,
            at: self.at,
            actor: self.actor,
            act: self.act.to_owned(),
            customer: customer.id,
            key: self.key,
            operation: self.operation,
            details: self.details,
        };
        ActRecord {
            record,
            seq: head.seq.saturating_add(1),
            state: state(customer, key),
        }
    }

    /// Whether `record` is this act, performed before: same key, act and details. Actor and time may differ.
    pub(crate) fn repeats(&self, record: &AuditRecord) -> bool {
        self.key == record.key && self.act == record.act && self.details == record.details
    }
}

/// The creation of a customer.
pub(crate) fn create_customer(new: &NewCustomer) -> Written {
    let mut details = customer_settings(&new.settings);
    if let (Some(object), Some(data)) = (details.as_object_mut(), &new.personal) {
        object.insert("personal".to_owned(), json!(hex::encode(data.hash().0)));
    }
    Written::by(&new.act, "create_customer", None, &details)
}

/// A change of a customer, which leaves it with these settings.
pub(crate) fn change_customer(change: &CustomerChange, left: &CustomerSettings) -> Written {
    let (word, details) = match &change.change {
        CustomerAct::Edit(_) => ("set_customer", customer_settings(left)),
        CustomerAct::Suspend => ("suspend", json!({})),
        CustomerAct::Resume => ("resume", json!({})),
        CustomerAct::Close => ("close", json!({})),
        CustomerAct::Describe(data) => (
            "describe",
            json!({ "personal": hex::encode(data.hash().0) }),
        ),
        CustomerAct::Erase => ("erase", json!({})),
        CustomerAct::SetCap(cap) => ("set_cap", json!(cap)),
        CustomerAct::ClearCap { interval, model } => {
            ("clear_cap", json!({ "interval": interval, "model": model }))
        }
        CustomerAct::SetAutoTopUp(rule, _) => ("set_auto_top_up", json!(rule)),
        CustomerAct::ClearAutoTopUp => ("clear_auto_top_up", json!({})),
        CustomerAct::FailTopUp { number, reason } => (
            "fail_top_up",
            json!({ "reference": TopUpWish::reference(change.customer, *number), "reason": reason }),
        ),
    };
    Written::by(&change.act, word, None, &details)
}

/// Whether a customer was changed so before, by `record`. An edit was if it changes nothing of the settings that were recorded: the others
/// were what they were. What was said of a person was hashed with what was known, and cannot be compared.
pub(crate) fn repeats_customer_change(change: &CustomerChange, record: &AuditRecord) -> bool {
    let left = if let CustomerAct::Edit(edit) = &change.change {
        edit.clone().over(recorded(record))
    } else {
        CustomerSettings::default()
    };
    let asked = change_customer(change, &left);
    let is_description = matches!(change.change, CustomerAct::Describe(_));
    record.customer == change.customer
        && (asked.repeats(record) || is_description && asked.act == record.act)
}

/// The settings in an act's details.
fn recorded<T: DeserializeOwned + Default>(record: &AuditRecord) -> T {
    serde_json::from_str(&record.details).unwrap_or_default()
}

/// One side of a move: what it gave, or got, and the other side.
pub(crate) fn side_of_move(
    moved: &NewMove,
    operation: OperationId,
    amount: crate::Amount,
    other: CustomerId,
) -> Written {
    let details = json!({
        "amount": amount,
        "reference": reference::normal(&moved.reference),
        "other": other,
    });
    Written {
        operation,
        ..Written::by(&moved.act, "move", None, &details)
    }
}

/// The creation of a key, with its first credit.
pub(crate) fn create(new: &NewKey) -> Written {
    let mut details = settings(&new.settings);
    if let (Some(object), Some((amount, reference))) = (details.as_object_mut(), &new.first_credit)
    {
        object.insert("credit".to_owned(), json!(amount));
        object.insert("reference".to_owned(), json!(reference::normal(reference)));
    }
    if let Some(object) = details.as_object_mut() {
        if let Some(customer) = new.within.customer {
            object.insert("customer".to_owned(), json!(customer));
        }
        of_owner(object, new.within.is_owner, new.within.made_by);
        if let Some(cap) = &new.purse {
            object.insert("cap".to_owned(), json!(cap));
        }
    }
    Written::by(&new.act, "create", Some(new.id), &details)
}

/// What only keys of a customer with several have.
fn of_owner(object: &mut serde_json::Map<String, Value>, is_owner: bool, made_by: Option<KeyId>) {
    if is_owner {
        object.insert("owner".to_owned(), json!(true));
    }
    if let Some(by) = made_by {
        object.insert("made_by".to_owned(), json!(by));
    }
}

/// A change of a key, which leaves it with these settings.
pub(crate) fn change(change: &KeyChange, left: &KeySettings) -> Written {
    let (word, details) = match &change.change {
        Change::Edit(_) => ("set", settings(left)),
        Change::Block => ("block", json!({})),
        Change::Unblock => ("unblock", json!({})),
        Change::Revoke => ("revoke", json!({})),
        Change::Rotate { secret, old_until } => (
            "rotate",
            json!({ "secret": fingerprint(secret), "old_until": old_until }),
        ),
        Change::Reissue { secret } => ("reissue", json!({ "secret": fingerprint(secret) })),
        Change::SetCap(cap) | Change::SetPurse(cap) => ("set_cap", json!(cap)),
        Change::ClearCap { interval, model } => {
            ("clear_cap", json!({ "interval": interval, "model": model }))
        }
    };
    Written::by(&change.act, word, Some(change.key), &details)
}

/// As [`repeats_customer_change`], of a key.
pub(crate) fn repeats_change(change: &KeyChange, record: &AuditRecord) -> bool {
    let left = if let Change::Edit(edit) = &change.change {
        edit.clone().over(recorded(record))
    } else {
        KeySettings::default()
    };
    self::change(change, &left).repeats(record)
}

pub(crate) fn credit(credit: &Credit) -> Written {
    let reference = reference::normal(&credit.reference);
    let (act, details) = match &credit.kind {
        CreditKind::TopUp => (
            "top_up",
            json!({ "amount": credit.amount, "reference": reference }),
        ),
        CreditKind::Adjust { reason, is_paid: _ } => (
            "adjust",
            json!({ "amount": credit.amount, "reference": reference, "reason": reason }),
        ),
        CreditKind::WriteOff { reason } => (
            "write_off",
            json!({ "amount": credit.amount, "reference": reference, "reason": reason }),
        ),
        CreditKind::Refund { request, reason } => (
            "refund",
            json!({ "amount": credit.amount, "reference": reference, "request": request, "reason": reason }),
        ),
    };
    let (at, actor) = (credit.at, credit.actor.clone());
    Written {
        at,
        actor,
        act,
        key: credit.key(),
        operation: credit.operation,
        details: details.to_string(),
    }
}

/// A payment whose credit was booked.
pub(crate) fn payment(new: &NewPayment) -> Written {
    Written::by(&new.act, "top_up", None, &of_payment(new))
}

/// A payment whose credit could not be booked.
pub(crate) fn unapplied(new: &NewPayment, why: &str) -> Written {
    let mut details = of_payment(new);
    details["why"] = json!(why);
    Written::by(&new.act, "unapplied", None, &details)
}

fn of_payment(new: &NewPayment) -> Value {
    let mut details = json!({ "amount": new.credit, "reference": reference::normal(&new.reference), "paid": new.paid });
    if let Some(buyer) = &new.addressee {
        details["addressee"] = json!(hex::encode(buyer.hash().0));
    }
    details
}

/// What went back of a payment, and what this took from the customer's money (negative) or gave to it.
pub(crate) fn reversal(new: &NewReversal, moved: Amount) -> Written {
    let mut details = of_reversal(new);
    details["amount"] = json!(moved);
    Written::by(&new.act, "reverse", None, &details)
}

/// What was told about money that goes back, and a bound refused.
pub(crate) fn waiting_reversal(new: &NewReversal, why: &str) -> Written {
    let mut details = of_reversal(new);
    details["why"] = json!(why);
    Written::by(&new.act, "unapplied_reversal", None, &details)
}

fn of_reversal(new: &NewReversal) -> Value {
    json!({
        "payment": reference::normal(&new.payment),
        "kind": new.kind,
        "cumulative": new.cumulative,
        "reference": reference::normal(&new.reference),
    })
}

/// The end of a payment that could not be booked.
pub(crate) fn end_unapplied(ending: &UnappliedAct) -> Written {
    let payment = reference::normal(&ending.payment);
    let (word, details) = match &ending.end {
        UnappliedEnd::Assign(customer) => (
            "assign",
            json!({ "payment": payment, "customer": customer }),
        ),
        UnappliedEnd::Return { reason } => {
            ("return", json!({ "payment": payment, "reason": reason }))
        }
    };
    Written::by(&ending.act, word, None, &details)
}

/// A sign-in link.
pub(crate) fn link(
    key: KeyId,
    token: &SecretHash,
    expires: Timestamp,
    act: &crate::Act,
) -> Written {
    Written {
        details: link_details(token, expires),
        ..Written::by(act, "link", Some(key), &Value::Null)
    }
}

/// An owner who came to a token's shop with a link.
pub(crate) fn visit(key: KeyId, new: &NewVisit) -> Written {
    let details = json!({ "link": fingerprint(&new.link) });
    Written::by(&new.act, "visit", Some(key), &details)
}

/// The audit details of a sign-in link.
pub(crate) fn link_details(token: &SecretHash, expires: Timestamp) -> String {
    json!({ "link": fingerprint(token), "expires": expires }).to_string()
}

/// The parts of a customer, and of the key that an act was about, that only an administrator changes.
pub(crate) fn state(customer: &Customer, key: Option<&KeyRecord>) -> String {
    let customer = customer_state(customer);
    match key {
        Some(key) => json!({ "v": 2, "customer": customer, "key": key_state(key) }).to_string(),
        None => json!({ "v": 2, "customer": customer }).to_string(),
    }
}

/// The state that acts carried when keys owned money.
pub(crate) fn state_1(key: &KeyRecord) -> String {
    let mut state = json!({ "v": 1 });
    if let (Some(state), Value::Object(of_key)) = (state.as_object_mut(), key_state(key)) {
        state.extend(of_key);
    }
    state.to_string()
}

/// Which parts of the state of an act are no longer so: the customer's, and the key's.
pub(crate) fn differs(
    state: &str,
    customer: Option<&Customer>,
    key: Option<&KeyRecord>,
) -> (bool, bool) {
    let read: Value = serde_json::from_str(state).unwrap_or_default();
    if read.get("v") != Some(&json!(2)) {
        return (false, key.is_some_and(|key| state_1(key) != state));
    }
    let is = |name: &str, expected: Value| read.get(name) == Some(&expected);
    (
        customer.is_some_and(|customer| !is("customer", customer_state(customer))),
        key.is_some_and(|key| !is("key", key_state(key))),
    )
}

/// Whether an act says what its customer was like. Those from before there were customers do not.
pub(crate) fn names_customer(state: &str) -> bool {
    state.starts_with("{\"v\":2,")
}

/// Whether a customer is as the upgrade made it for a key.
pub(crate) fn is_as_upgraded(customer: &Customer, key: &KeyRecord) -> bool {
    let Customer {
        id,
        settings,
        status,
        account: _,
        claim: _,
        caps,
        defaults: _,
        auto_top_up,
        personal,
        created_at,
        created_by,
        token,
        last_entry_at: _,
        // Money is in no state.
        grants: _,
    } = customer;
    *id == CustomerId::made_for(key.id)
        && *settings == CustomerSettings::labelled(&key.settings.label)
        && *status == CustomerStatus::Active
        && caps.settings().is_empty()
        && auto_top_up.is_none()
        && personal.is_none()
        && token.is_none()
        && (*created_at, created_by) == (key.created_at, &key.created_by)
}

fn key_state(key: &KeyRecord) -> Value {
    let mut state = json!({
        "settings": settings(&key.settings),
        "status": key.stored_status.to_string(),
        "secret": fingerprint(&key.secret),
        "old_secret": key.old_secret.as_ref().map(|(hash, _)| fingerprint(hash)),
        "old_until": key.old_secret.map(|(_, until)| until),
        "created_at": key.created_at,
        "created_by": *key.created_by,
    });
    // Keys without any of these keep the state that every version wrote.
    if let Some(object) = state.as_object_mut() {
        with_caps(object, &key.caps);
        of_owner(object, key.is_owner, key.made_by);
        if let Some(maker) = key.counts_in {
            object.insert("counts_in".to_owned(), json!(maker));
        }
        with_token(object, key.token);
    }
    state
}

fn customer_state(customer: &Customer) -> Value {
    let mut state = json!({
        "settings": customer_settings(&customer.settings),
        "status": customer.status,
        "personal": customer.personal.map(|hash| hex::encode(hash.0)),
        "created_at": customer.created_at,
        "created_by": *customer.created_by,
    });
    if let Some(object) = state.as_object_mut() {
        with_caps(object, &customer.caps);
        if let Some(rule) = customer.auto_top_up.as_ref().and_then(|auto| auto.rule) {
            object.insert("auto_top_up".to_owned(), json!(rule));
        }
        if let Some(by) = customer.auto_top_up.as_ref().and_then(|auto| auto.by) {
            object.insert("auto_top_up_by".to_owned(), json!(by));
        }
        with_token(object, customer.token);
    }
    state
}

/// What a token of the admin API made names it.
fn with_token(object: &mut serde_json::Map<String, Value>, token: Option<TokenId>) {
    if let Some(token) = token {
        object.insert("token".to_owned(), json!(token));
    }
}

fn with_caps(object: &mut serde_json::Map<String, Value>, caps: &Caps) {
    let set = caps.settings();
    if !set.is_empty() {
        object.insert("caps".to_owned(), json!(set));
    }
}

fn customer_settings(settings: &CustomerSettings) -> Value {
    json!({
        "label": settings.label,
        "external_id": settings.external_id,
        "price_list": settings.price_list,
        "low_balance": settings.low_balance,
        "rate": settings.rate,
        "concurrency": settings.concurrency,
    })
}

fn settings(settings: &KeySettings) -> Value {
    let mut said = json!({
        "label": settings.label,
        "models": settings.models,
        "expires_at": settings.expires_at,
        "rate": settings.rate,
        "concurrency": settings.concurrency,
    });
    if let (Some(object), Some(metadata)) = (said.as_object_mut(), &settings.metadata) {
        object.insert("metadata".to_owned(), json!(metadata));
    }
    said
}

pub(crate) fn fingerprint(hash: &SecretHash) -> String {
    let digest: [u8; 32] = Sha256::new_with_prefix(b"farebox fingerprint")
        .chain_update(hash.0)
        .finalize()
        .into();
    hex::encode(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyStatus;
    use crate::rule::customer::made;

    #[test]
    fn the_state_is_frozen_and_has_no_secret() {
        let key = KeyRecord {
            id: KeyId::from_random(1),
            belongs_to: CustomerId::from_random(1),
            is_owner: false,
            made_by: None,
            counts_in: None,
            token: None,
            settings: KeySettings {
                label: "a \"b\"".to_owned(),
                models: Some(vec!["m".to_owned()]),
                rate: Some(3),
                ..KeySettings::default()
            },
            stored_status: KeyStatus::Blocked,
            secret: SecretHash([0xab; 32]),
            old_secret: Some((SecretHash([0xcd; 32]), Timestamp::from_millis(9))),
            caps: Caps::default(),
            defaults: crate::ByDefault::default(),
            used_at: None,
            created_at: Timestamp::from_millis(7),
            created_by: "ada".into(),
        };
        let state = state_1(&key);
        let expected = concat!(
            r#"{"v":1,"settings":{"label":"a \"b\"","models":["m"],"expires_at":null,"rate":3,"concurrency":null},"status":"blocked""#,
            r#","secret":"b275f17ab5d11b6b95859d5430c8e0cc09e73f1919f06732d815a2dc1485c26a","old_secret":"379926cd25cb402172917dec219e4802c508ba7cf6540e105f34e47ecdb0513a""#,
            r#","old_until":"1970-01-01T00:00:00.009Z","created_at":"1970-01-01T00:00:00.007Z","created_by":"ada"}"#,
        );
        assert_eq!(state, expected);
        assert!(!state.contains("abab") && !state.contains("cdcd"));
        let act = Act {
            operation: OperationId::from_bytes([1; 16]),
            actor: "ada".to_owned(),
            at: Timestamp::from_millis(7),
        };
        let mut customer = made(
            CustomerId::from_random(1),
            CustomerSettings::labelled("a \"b\""),
            &act,
        );
        assert!(is_as_upgraded(&customer, &key));
        let both = super::state(&customer, Some(&key));
        let of_key = state.strip_prefix(r#"{"v":1,"#).unwrap();
        let of_customer = concat!(
            r#"{"v":2,"customer":{"settings":{"label":"a \"b\"","external_id":null,"price_list":null,"low_balance":null,"rate":null,"#,
            r#""concurrency":null},"status":"active","personal":null,"created_at":"1970-01-01T00:00:00.007Z","created_by":"ada"}"#,
        );
        assert_eq!(both, format!("{of_customer},\"key\":{{{of_key}}}"));
        assert!(names_customer(&both) && !names_customer(&state));
        assert_eq!(differs(&both, Some(&customer), Some(&key)), (false, false));
        assert_eq!(differs(&state, Some(&customer), Some(&key)), (false, false));
        customer.settings.external_id = Some("7".to_owned());
        let owner = KeyRecord {
            is_owner: true,
            ..key.clone()
        };
        assert_eq!(differs(&both, Some(&customer), Some(&owner)), (true, true));
        assert!(!is_as_upgraded(&customer, &key));
    }
}
