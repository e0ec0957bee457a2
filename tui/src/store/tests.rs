//! What is sent to a real ledger: every act does what it says, under the id that was kept, and a repetition shows the same secret.

use std::path::Path;
use std::sync::Arc;

use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::{
    Amount, CustomerStatus, Durability, Key, KeyStatus, OpenMode, OperationId, Scope, Timestamp,
};
use farebox_selling::NewSecret;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{SentDeeds, StoreShared};
use crate::acts::{
    ADJUST, BLOCK, CLOSE, EDIT, EDIT_CUSTOMER, LINK, MOVE, NEW_CUSTOMER, NEW_KEY, RESUME, REVOKE,
    ROTATE, SUSPEND, TOP_UP, UNBLOCK,
};
use crate::admin::{AdminClient, TokenSource};
use crate::app::message::Message;
use crate::app::modal::{ActOutcome, ApplyError};
use crate::app::party::Party;
use crate::clock;
use crate::plan::{ActKind, ActPlan, Pending};
use crate::state_file::StateFile;

/// A store on a ledger of its own.
struct RealStore {
    shared: StoreShared,
    messages: UnboundedReceiver<Message>,
    _folder: tempfile::TempDir,
}

fn usd(text: &str) -> Amount {
    Amount::from_usd_str(text).unwrap()
}

fn pending(kind: &'static ActKind, of: Option<Scope>, body: &Value) -> Pending {
    let at = clock::now();
    Pending {
        operation: OperationId::new(at, clock::random_bits()),
        plan: ActPlan {
            body: body.as_object().unwrap().clone(),
            ..ActPlan::plain(kind, of)
        },
        label: "acme".to_owned(),
        actor: "ada".to_owned(),
        at,
    }
}

impl RealStore {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("farebox.db");
        let ledger = SqliteLedger::create(path, OpenMode::Write, Durability::Prompt).unwrap();
        let (tell, messages) = unbounded_channel();
        let token = TokenSource::Given(String::new());
        let shared = StoreShared {
            ledger: Arc::new(ledger),
            state: StateFile::in_directory(folder.path().join("state"), Path::new("/x")),
            client: AdminClient::new("127.0.0.1:9", token, None).unwrap(),
            tell,
            sent: SentDeeds::default(),
        };
        Self {
            shared,
            messages,
            _folder: folder,
        }
    }

    async fn send(&mut self, pending: Pending) -> Result<ActOutcome, ApplyError> {
        self.shared.send(pending).await;
        match self.messages.recv().await {
            Some(Message::Applied { result, .. }) => result,
            other => panic!("{other:?}"),
        }
    }

    /// Does it: it stays on disk until its outcome was seen, and stands in the ledger under its id.
    async fn done(&mut self, kind: &'static ActKind, of: Option<Scope>, body: Value) -> ActOutcome {
        let pending = pending(kind, of, &body);
        let operation = pending.operation;
        let outcome = self.send(pending).await.unwrap();
        assert_eq!(self.shared.state.list().len(), 1, "{kind:?}");
        self.shared.state.forget(operation).unwrap();
        let ledger = &self.shared.ledger;
        let entry = ledger.entry(operation).await.unwrap();
        let act = ledger.act(operation).await.unwrap();
        let actor = act.map(|act| act.actor);
        let actor = actor.or(entry.map(|entry| entry.actor));
        assert_eq!(actor.as_deref(), Some("ada"), "{kind:?}");
        assert!(self.shared.sent().is_empty(), "{kind:?}");
        outcome
    }
}

fn key_of(outcome: &ActOutcome) -> &Key {
    outcome.about.as_ref().and_then(Party::key).unwrap()
}

fn opens(key: &Key, outcome: &ActOutcome) -> bool {
    match &outcome.shown_once {
        Some(NewSecret::Secret(secret)) => key.opens_with(secret.hash(), Timestamp::from_millis(0)),
        _ => false,
    }
}

#[tokio::test]
async fn every_act_of_a_key_does_what_it_says() {
    let mut store = RealStore::new();
    let first = json!({ "label": "laptop", "balance": "25", "reference": "inv-1", "rate": 5 });
    let sold = store.done(&NEW_KEY, None, first).await;
    let key = key_of(&sold).clone();
    assert!(opens(&key, &sold) && key.customer.account.credit == usd("25"));
    let of = Some(key.id.into());
    let paid = json!({ "amount": "12.50", "reference": "inv-2" });
    let topped_up = store.done(&TOP_UP, of, paid.clone()).await;
    // A payment of its customer, as the command books it.
    let entry = topped_up.entry.as_ref().unwrap();
    assert_eq!((entry.key, entry.amount), (None, usd("12.50")));
    assert_eq!(entry.customer, key.belongs_to);
    // The same money under another id is the same answer.
    let again = store.send(pending(&TOP_UP, of, &paid)).await.unwrap();
    let customer = again.about.as_ref().unwrap().customer();
    assert!(again.repeated && customer.account.credit == usd("37.50"));
    let taken = json!({ "amount": "-2.50", "reason": "a slip", "reference": "fix" });
    let adjusted = store.send(pending(&ADJUST, of, &taken)).await.unwrap();
    assert_eq!(adjusted.entry.unwrap().reason.as_deref(), Some("a slip"));
    let mut store = RealStore::new();
    let sold = store
        .done(&NEW_KEY, None, json!({ "label": "phone", "rate": 5 }))
        .await;
    let (old, of) = (key_of(&sold).clone(), Some(key_of(&sold).id.into()));
    let said =
        json!({ "label": "Ada's", "models": ["a", "b"], "expires_at": "2099-01-31", "rate": null });
    let edited = store.done(&EDIT, of, said).await;
    let settings = &key_of(&edited).settings;
    assert_eq!(settings.models, Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!((settings.label.as_str(), settings.rate), ("Ada's", None));
    assert_eq!(
        settings.expires_at.map(clock::last_day).as_deref(),
        Some("2099-01-31")
    );
    let rotated = store.done(&ROTATE, of, json!({ "overlap": "0" })).await;
    assert!(opens(key_of(&rotated), &rotated) && !opens(&old, &rotated));
    let link = store.done(&LINK, of, json!({})).await;
    assert!(matches!(link.shown_once, Some(NewSecret::Link(_))));
    for (kind, status) in [
        (&BLOCK, KeyStatus::Blocked),
        (&UNBLOCK, KeyStatus::Active),
        (&REVOKE, KeyStatus::Revoked),
    ] {
        let changed = store.done(kind, of, json!({})).await;
        assert_eq!(key_of(&changed).stored_status, status);
    }
    let late = json!({ "amount": "1", "reference": "inv-late" });
    let refused = store.send(pending(&TOP_UP, of, &late)).await;
    assert!(matches!(refused, Err(ApplyError::No(why)) if why.contains("is revoked")));
}

#[tokio::test]
async fn every_act_of_a_customer_does_what_it_says() {
    let mut store = RealStore::new();
    let customer = |outcome: &ActOutcome| outcome.about.as_ref().unwrap().customer().clone();
    let new = json!({ "label": "Class 9b", "external_id": "crm-9", "low_balance": "2.50" });
    let class = customer(&store.done(&NEW_CUSTOMER, None, new).await);
    assert_eq!(class.settings.low_balance, Some(usd("2.50")));
    let other = store.done(&NEW_CUSTOMER, None, json!({ "label": "Class 9c" }));
    let other = customer(&other.await);
    let of = Some(class.id.into());
    // A payment with particulars, as one of the API.
    let paid = json!({ "amount": "10", "reference": "inv-1" });
    let topped_up = store.done(&TOP_UP, of, paid).await;
    assert_eq!(topped_up.entry.as_ref().unwrap().amount, usd("10"));
    assert!(
        store
            .shared
            .ledger
            .payment("inv-1")
            .await
            .unwrap()
            .is_some()
    );
    let pupil = store.done(&NEW_KEY, of, json!({ "label": "pupil" })).await;
    assert_eq!(key_of(&pupil).belongs_to, class.id);
    let said = json!({ "external_id": null, "concurrency": 9 });
    let edited = customer(&store.done(&EDIT_CUSTOMER, of, said).await).settings;
    assert_eq!((edited.external_id, edited.concurrency), (None, Some(9)));
    assert_eq!(
        (edited.label.as_str(), edited.low_balance),
        ("Class 9b", Some(usd("2.50")))
    );
    let moved = json!({ "into": other.id.to_string(), "amount": "10", "reference": "one purse" });
    let moved = customer(&store.done(&MOVE, of, moved).await);
    assert_eq!(moved.account.balance(), Amount::ZERO);
    for (kind, status) in [
        (&SUSPEND, CustomerStatus::Suspended),
        (&RESUME, CustomerStatus::Active),
        (&CLOSE, CustomerStatus::Closed),
    ] {
        let changed = customer(&store.done(kind, of, json!({})).await);
        assert_eq!(changed.status, status);
    }
    // Money that comes for it now is kept, and told.
    let late = json!({ "amount": "1", "reference": "inv-late" });
    let kept = store.send(pending(&TOP_UP, of, &late)).await.unwrap();
    assert!(kept.unapplied.is_some() && kept.entry.is_none());
}

#[tokio::test]
async fn what_is_sent_again_is_the_same_with_the_same_secret() {
    let mut store = RealStore::new();
    for kind in [&NEW_KEY, &NEW_CUSTOMER] {
        let pending = pending(kind, None, &json!({ "label": "acme" }));
        // The ledger did it, and its answer was lost.
        let deed = store.shared.deed(&pending).await.unwrap();
        store.shared.ledger.apply(deed.operation).await.unwrap();
        store.shared.resolve(pending.clone()).await;
        let Some(Message::Resolved { outcome, .. }) = store.messages.recv().await else {
            panic!("nothing was told")
        };
        if *kind == NEW_KEY {
            assert!(opens(key_of(&outcome), &outcome));
        }
        let again = store.send(pending).await.unwrap();
        let id = |outcome: &ActOutcome| outcome.about.as_ref().unwrap().scope();
        assert_eq!(id(&again), id(&outcome));
        if *kind == NEW_KEY {
            assert!(opens(key_of(&again), &again));
        }
    }
    assert_eq!(store.shared.ledger.totals().await.unwrap().keys, 1);
}

#[tokio::test]
async fn a_refusal_takes_the_operation_off_the_disk() {
    let mut store = RealStore::new();
    let gone = farebox_ledger::KeyId::from_random(7);
    for (kind, body) in [
        (&BLOCK, json!({})),
        (&TOP_UP, json!({ "amount": "1", "reference": "x" })),
        (&EDIT, json!({ "label": "x" })),
        // What no file of the console's own has.
        (&TOP_UP, json!({ "amount": "1" })),
        (&SUSPEND, json!({})),
    ] {
        let refused = store.send(pending(kind, Some(gone.into()), &body)).await;
        assert!(matches!(refused, Err(ApplyError::No(_))), "{kind:?}");
        assert!(store.shared.state.list().is_empty(), "{kind:?}");
    }
}
