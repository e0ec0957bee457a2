//! Who may act: every act of every surface, tried by whoever is active, and by everybody who is not.

use std::net::IpAddr;

use farebox::clock;
use farebox::server::routes::endpoints;
use farebox_door::Method;
use farebox_ledger::key::Change;
use farebox_ledger::{
    Credit, CreditKind, CustomerAct, CustomerChange, KeyEdit, KeySettings, Lot, LotId, NewLink,
    NewLot, Perform, RevokeToken, Said, Timestamp, TokenRole, VoucherCode,
};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{Program, code, gateway, new_token, text};
use crate::customer::sessions::Visitor;
use crate::support::upstream::{Reply, Script, ScriptedUpstream};
use crate::support::{Answer, CATALOG, Gateway, TestKey, act, ask, chat, routes, speech_for};

/// How an owner's key, or its customer, is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Active,
    Expired,
    Blocked,
    Revoked,
    Suspended,
    Closed,
}

impl State {
    const ALL: [Self; 6] = [
        Self::Active,
        Self::Expired,
        Self::Blocked,
        Self::Revoked,
        Self::Suspended,
        Self::Closed,
    ];

    /// Whether a session that was open then still shows its history.
    const fn looks(self) -> bool {
        matches!(
            self,
            Self::Active | Self::Expired | Self::Suspended | Self::Closed
        )
    }
}

/// The model of a path that generates nothing.
fn for_call(call: &str) -> String {
    format!(
        r#"
[[model]]
model             = "For {call}"
slug              = "for-{call}"
provider          = "Tests"
best_path         = "{call}"
best_environments = ["tests"]
price             = {{ input = "0.02" }}
capabilities      = ["{call}"]
limits            = {{ context = 8_192 }}
"#
    )
}

/// Brings a key, or its customer, into a state.
async fn stop(gateway: &Gateway, key: &TestKey, state: State) {
    let known = gateway.account(key).await;
    let customer = |change| CustomerChange {
        customer: known.customer.id,
        change,
        act: act(),
    };
    match state {
        State::Active => {}
        State::Expired => {
            let edit = KeyEdit {
                expires_at: Said::Set(Timestamp::from_millis(clock::now().millis() - 1_000)),
                ..KeyEdit::default()
            };
            gateway.change(key, Change::Edit(edit)).await;
        }
        State::Blocked => gateway.change(key, Change::Block).await,
        State::Revoked => gateway.change(key, Change::Revoke).await,
        State::Suspended => {
            let change = customer(CustomerAct::Suspend);
            gateway.ledger.perform(change).await.unwrap();
        }
        State::Closed => {
            let off = Credit {
                operation: clock::operation_id(),
                to: known.customer.id.into(),
                kind: CreditKind::WriteOff {
                    reason: "closed".to_owned(),
                },
                amount: known.customer.account.balance().checked_neg().unwrap(),
                reference: format!("off-{}", known.id),
                actor: "tests".to_owned(),
                at: clock::now(),
            };
            gateway.ledger.perform(off).await.unwrap();
            let change = customer(CustomerAct::Close);
            gateway.ledger.perform(change).await.unwrap();
        }
    }
}

/// A visitor may open ten pages a second.
async fn unhurried() {
    tokio::time::sleep(std::time::Duration::from_millis(120)).await;
}

/// Everything that an act moves: money, acts, vouchers, keys and caps.
async fn everything(gateway: &Gateway) -> String {
    let ledger = &gateway.ledger;
    gateway.settled().await;
    let totals = ledger.totals().await.unwrap();
    let acts = ledger.audit(None, None, 10_000).await.unwrap().len();
    format!("{totals:?} {acts} {:?}", ledger.all::<Lot>().await.unwrap())
}

/// An owner with a member, a voucher for it, and a page that was opened while it was active.
struct Owner<'a> {
    gateway: &'a Gateway,
    key: TestKey,
    member: TestKey,
    voucher: String,
    visitor: Visitor<'a>,
    once: String,
}

impl<'a> Owner<'a> {
    async fn new(gateway: &'a Gateway) -> Self {
        let key = gateway.owner("5").await;
        let member = gateway.member(&key, KeySettings::default()).await;
        let codes = [VoucherCode::generate(clock::random())];
        let lot = NewLot {
            id: LotId::from_random(u64::from_be_bytes(clock::random())),
            codes: codes.iter().map(VoucherCode::hash).collect(),
            amount: farebox_ledger::Amount::from_usd_str("1").unwrap(),
            expires_at: None,
            once_per_customer: false,
            kind: farebox_ledger::GrantKind::Promotional,
            plan: None,
            act: act(),
        };
        gateway.ledger.perform(lot).await.unwrap();
        let visitor = Visitor::signed_in(gateway, &key).await;
        let page = visitor.get("/keys").await.text;
        let once = page.split(r#"name="once" value=""#).nth(1).unwrap();
        let once = once.split('"').next().unwrap().to_owned();
        let [voucher] = codes;
        Self {
            gateway,
            key,
            member,
            voucher: voucher.reveal().to_owned(),
            visitor,
            once,
        }
    }

    /// Does what a path is for, and says whether that is an act: something that moves money, keys, caps or vouchers.
    async fn does(&self, path: &str) -> (Answer, bool) {
        let (gateway, key) = (self.gateway, &self.key);
        let generate = |family| ask(family, "test-model", false);
        use farebox_protocol::Family::{Chat, Messages, Responses};
        let body = match path {
            "/v1/chat/completions" => generate(Chat),
            "/v1/responses" => generate(Responses),
            "/native/v1/messages" | "/native/messages" => generate(Messages),
            "/v1/embeddings" => json!({ "model": "for-embeddings", "input": "one two" }),
            "/v1/rerank" => json!({ "model": "for-rerank", "query": "one", "documents": ["two"] }),
            "/v1/vouchers" => json!({ "code": self.voucher }),
            "/native/v1/messages/count_tokens" | "/v1/responses/input_tokens" => {
                let counted = if path.starts_with("/native") {
                    ask(Messages, "test-model", false)
                } else {
                    json!({ "model": "test-model", "input": "one two" })
                };
                return (gateway.post(path, key, &counted).await, false);
            }
            _ => return self.posts(path).await,
        };
        (gateway.post(path, key, &body).await, true)
    }

    /// A form of the dashboard.
    async fn posts(&self, path: &str) -> (Answer, bool) {
        let below = path.strip_prefix("/dashboard/").expect(path);
        let form: &[(&str, &str)] = match below {
            "keys" => &[("label", "web")],
            "keys/{key}/rotate" => &[("overlap", "day")],
            "keys/{key}/block" | "keys/{key}/unblock" | "auto-top-up/end" | "shop" => &[],
            "keys/{key}/caps" | "caps" => &[("interval", "day"), ("limit", "2")],
            "keys/{key}/caps/clear" | "caps/clear" => &[("interval", "day")],
            "low-balance" => &[("limit", "2")],
            "vouchers" => {
                let form = [("code", self.voucher.as_str())];
                return (self.visitor.post(below, &form, None).await, true);
            }
            // These look, or leave, or find no plan to end.
            "test" | "enter" | "login" | "plans/end" => {
                return (self.visitor.post(below, &[], None).await, false);
            }
            "logout" | "logout-everywhere" => {
                let other = Visitor::new(self.gateway);
                return (other.post(below, &[], None).await, false);
            }
            other => panic!("say here what {other} does, and whether it is an act"),
        };
        let form: Vec<(&str, &str)> = [("once", self.once.as_str())]
            .into_iter()
            .chain(form.iter().copied())
            .collect();
        let path = below.replace("{key}", &self.member.id.to_string());
        (self.visitor.post(&path, &form, None).await, true)
    }
}

/// The dashboard and the paths for programs: each one that takes a POST is in the table above, or it fails.
#[tokio::test]
async fn nothing_moves_but_for_the_active_one() {
    let script = Script::by(|seen, _| {
        if seen.path.contains("_tokens") {
            Reply::json(200, &json!({ "input_tokens": 3 }))
        } else if seen.path.contains("embeddings") || seen.path.contains("rerank") {
            let vector = json!({ "index": 0, "embedding": [0.5] });
            let result = json!({ "index": 0, "relevance_score": 0.5 });
            let usage = json!({ "prompt_tokens": 3, "total_tokens": 3 });
            let answer = json!({ "data": [vector], "results": [result], "usage": usage });
            Reply::json(200, &answer)
        } else {
            speech_for(seen, "one two three")
        }
    });
    let upstream = ScriptedUpstream::start(script).await;
    let all = r#"["chat", "responses", "messages"]"#;
    let speaks = r#"["chat", "responses", "messages", "embeddings", "rerank"]"#;
    let (mut catalog, mut routes) = (
        CATALOG.to_owned(),
        routes(&upstream.base_url()).replace(all, speaks),
    );
    for call in ["embeddings", "rerank"] {
        catalog.push_str(&for_call(call));
        routes.push_str(&format!(
            "\n[[route]]\nslug = \"for-{call}\"\ntargets = [ {{ provider = \"up\", model = \"v\" }} ]\n"
        ));
    }
    let gateway = Gateway::start(&catalog, &routes).await;
    let paths: Vec<&str> = endpoints()
        .into_iter()
        .filter(|endpoint| endpoint.method == Method::Post)
        .map(|endpoint| endpoint.path)
        .collect();
    assert!(paths.len() > 20, "{paths:?}");
    for state in State::ALL {
        // A voucher is worth something once, so programs and the dashboard get an owner each.
        let (first, second) = (Owner::new(&gateway).await, Owner::new(&gateway).await);
        for owner in [&first, &second] {
            stop(&gateway, &owner.key, state).await;
        }
        for path in &paths {
            unhurried().await;
            let owner = if path.starts_with("/dashboard") {
                &second
            } else {
                &first
            };
            let before = everything(&gateway).await;
            let (answer, is_act) = owner.does(path).await;
            let moved = everything(&gateway).await != before;
            let expected = is_act && state == State::Active;
            assert_eq!(
                moved, expected,
                "{state:?} {path}: {} {}",
                answer.status, answer.text
            );
            if is_act && state != State::Active {
                assert!(
                    [401, 403].contains(&answer.status),
                    "{state:?} {path}: {} {}",
                    answer.status,
                    answer.text
                );
            }
        }
        let page = second.visitor.get("/keys").await;
        assert_eq!(
            page.status == 200,
            state.looks(),
            "{state:?}: {}",
            page.text
        );
        let has_forms = page.text.contains("Make a key");
        assert_eq!(has_forms, state == State::Active, "{state:?}");
        assert_eq!(
            page.text.contains("you can look, and change nothing"),
            state.looks() && state != State::Active,
            "{state:?}"
        );
        // A link that was made before signs nobody in.
        let (link, in_an_hour) = (
            farebox::customer::new_token(),
            Timestamp::from_millis(clock::now().millis() + 3_600_000),
        );
        let hash = farebox_ledger::SecretHash::of(&link);
        let made = gateway.ledger.perform(NewLink {
            key: second.key.id,
            token: hash,
            expires: in_an_hour,
            act: act(),
        });
        assert_eq!(made.await.is_ok(), state == State::Active, "{state:?}");
        let stranger = Visitor::new(&gateway);
        let entered = stranger.post("enter", &[("token", &link)], None).await;
        let status = if state == State::Active { 303 } else { 401 };
        assert_eq!(entered.status, status, "{state:?}");
    }
}

#[tokio::test]
async fn a_key_that_expires_in_the_middle_of_a_form_changes_nothing_in_any_of_its_sessions() {
    let (_upstream, gateway) = gateway().await;
    let owner = Owner::new(&gateway).await;
    let mut sessions = Vec::new();
    for _ in 0..10 {
        unhurried().await;
        sessions.push(Visitor::signed_in(&gateway, &owner.key).await);
    }
    stop(&gateway, &owner.key, State::Expired).await;
    let before = everything(&gateway).await;
    let path = format!("keys/{}/rotate", owner.member.id);
    for session in &sessions {
        unhurried().await;
        assert_eq!(session.get("").await.status, 200);
        unhurried().await;
        let form = [("once", owner.once.as_str()), ("overlap", "")];
        let answer = session.post(&path, &form, None).await;
        assert_eq!(answer.status, 403, "{}", answer.text);
        assert!(answer.text.contains("expired"), "{}", answer.text);
        assert!(!answer.text.contains("new-secret"));
    }
    assert_eq!(everything(&gateway).await, before);
}

#[tokio::test]
async fn an_open_page_ends_with_its_key_and_stays_with_its_customer() {
    let (_upstream, gateway) = gateway().await;
    for (state, ends) in [
        (State::Blocked, true),
        (State::Revoked, true),
        (State::Expired, false),
        (State::Suspended, false),
    ] {
        let owner = Owner::new(&gateway).await;
        let url = format!("{}/dashboard/live?view=overview", gateway.base);
        let live = owner.visitor.client.get(url);
        let live = live.header("cookie", &owner.visitor.cookie).send();
        let mut live = live.await.unwrap();
        assert_eq!(live.status(), 200);
        live.chunk().await.unwrap().expect("the first parts");
        stop(&gateway, &owner.key, state).await;
        let reading = async {
            while let Some(chunk) = live.chunk().await.unwrap() {
                if String::from_utf8_lossy(&chunk).contains("event: over") {
                    return;
                }
            }
        };
        let limit = std::time::Duration::from_millis(if ends { 15_000 } else { 2_500 });
        let over = tokio::time::timeout(limit, reading).await;
        assert_eq!(over.is_ok(), ends, "{state:?}");
    }
}

/// Every path of the API that changes something, in a token's way of not being active.
#[tokio::test]
async fn no_token_but_an_active_one_does_anything() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let customer = manage.customer("Ada").await;
    let described = manage.get("/openapi.json").await.json();
    let past = Timestamp::from_millis(clock::now().millis() - 1_000);
    let ledger = &*gateway.ledger;
    let (_, expired) = new_token(ledger, "expired", TokenRole::Manage, Some(past)).await;
    let (revoked, secret) = new_token(ledger, "revoked", TokenRole::Manage, None).await;
    ledger
        .perform(RevokeToken {
            token: revoked.id,
            act: act(),
        })
        .await
        .unwrap();
    let (_, read) = new_token(ledger, "reads", TokenRole::Read, None).await;
    let mut program = Program::new(&gateway, TokenRole::Sell).await;
    let before = everything(&gateway).await;
    let (mut tried, mut peer, methods) = (0, 0, ["post", "patch", "delete"]);
    for (path, served) in described["paths"].as_object().unwrap() {
        for method in methods
            .iter()
            .filter(|method| served.get(**method).is_some())
        {
            let path = path
                .trim_start_matches("/api/v1")
                .replace("{customer}", &customer);
            let path = path.replace(['{', '}'], "");
            // From an address of its own: wrong tokens of one address are slowed down.
            peer += 1;
            let own = reqwest::Client::builder().local_address(IpAddr::from([127, 0, 9, peer]));
            program.client = own.no_proxy().build().unwrap();
            for (token, code_of, status) in [
                (&expired, "token_expired", 401),
                (&secret, "token_revoked", 401),
                (&read, "role_exceeded", 403),
            ] {
                program.secret.clone_from(token);
                let request = program.request(&method.to_uppercase(), &path);
                let request = request.header("idempotency-key", "k").json(&json!({}));
                let answer = Answer::read(request.send().await.unwrap()).await;
                let refused = answer.status == status && code(&answer) == code_of;
                assert!(refused, "{method} {path}: {}", answer.text);
                tried += 1;
            }
        }
    }
    assert!(tried > 60, "{tried}");
    assert_eq!(everything(&gateway).await, before);
}

/// Whatever a shop does for a buyer, with each state of the buyer's key and customer.
#[tokio::test]
async fn a_shop_gives_nothing_to_who_is_stopped() {
    let (_upstream, gateway) = gateway().await;
    let shop = Program::new(&gateway, TokenRole::Sell).await;
    for state in State::ALL {
        let body = json!({ "label": "buyer", "key": { "label": "first", "owner": true } });
        let made = shop.does("/customers", &body, 201).await;
        let (customer, key) = (text(&made, "id"), text(&made["key"], "id"));
        let bare = shop.customer("without a key").await;
        let secret = text(&made["key"], "secret");
        let (id, _) = farebox_ledger::Secret::parse(&secret).unwrap();
        let key_of = TestKey { id, secret };
        stop_bought(&gateway, &key_of, state).await;
        let of_customer = matches!(state, State::Suspended | State::Closed);
        if of_customer {
            let bare = bare.parse().unwrap();
            let change = if state == State::Closed {
                CustomerAct::Close
            } else {
                CustomerAct::Suspend
            };
            let change = CustomerChange {
                customer: bare,
                change,
                act: act(),
            };
            gateway.ledger.perform(change).await.unwrap();
        }
        let balance = async || {
            let found = gateway
                .ledger
                .find_customer(customer.parse().unwrap())
                .await;
            found.unwrap().unwrap().account.balance().to_string()
        };
        let reissued = shop
            .tries(&format!("/keys/{key}/reissue"), &json!({}))
            .await;
        let expected = if state == State::Active { 200 } else { 409 };
        assert_eq!(reissued.status, expected, "{state:?}: {}", reissued.text);
        let first = shop
            .tries(&format!("/customers/{bare}/keys"), &json!({ "label": "a" }))
            .await;
        let expected = if of_customer { 409 } else { 201 };
        assert_eq!(first.status, expected, "{state:?}: {}", first.text);
        let paid = json!({ "amount": "2", "reference": format!("pi-{state:?}") });
        let paid = shop
            .tries(&format!("/customers/{customer}/top-ups"), &paid)
            .await;
        let (status, left) = if of_customer {
            (202, "0.00")
        } else {
            (201, "2.00")
        };
        assert_eq!(paid.status, status, "{state:?}: {}", paid.text);
        assert_eq!(balance().await, left, "{state:?}");
    }
}

/// As [`stop`], of a customer without money.
async fn stop_bought(gateway: &Gateway, key: &TestKey, state: State) {
    if state != State::Closed {
        return stop(gateway, key, state).await;
    }
    let change = CustomerChange {
        customer: gateway.account(key).await.customer.id,
        change: CustomerAct::Close,
        act: act(),
    };
    gateway.ledger.perform(change).await.unwrap();
}

#[tokio::test]
async fn a_token_that_is_revoked_while_its_request_arrives_does_nothing() {
    let (_upstream, gateway) = gateway().await;
    let shop = Program::new(&gateway, TokenRole::Sell).await;
    let customer = shop.customer("Ada").await;
    let body = json!({ "amount": "5", "reference": "pi-late" }).to_string();
    let address = gateway.admin.trim_start_matches("http://").to_owned();
    let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST /api/v1/customers/{customer}/top-ups HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
         idempotency-key: late\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        shop.secret,
        body.len()
    );
    let (begin, end) = body.split_at(10);
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(begin.as_bytes()).await.unwrap();
    // It was let in, and waits for the rest.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    gateway
        .ledger
        .perform(RevokeToken {
            token: shop.token.id,
            act: act(),
        })
        .await
        .unwrap();
    stream.write_all(end.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.contains("token_stopped"), "{answer}");
    assert_eq!(gateway.ledger.payment("pi-late").await.unwrap(), None);
}

#[tokio::test]
async fn a_first_call_of_any_kind_marks_a_key_that_a_token_made() {
    let (_upstream, gateway) = gateway().await;
    let shop = Program::new(&gateway, TokenRole::Sell).await;
    for way in [
        "reads its balance",
        "signs in",
        "is refused for want of money",
    ] {
        let body = json!({ "label": "buyer", "key": { "label": "first" } });
        let made = shop.does("/customers", &body, 201).await;
        let secret = text(&made["key"], "secret");
        let (id, _) = farebox_ledger::Secret::parse(&secret).unwrap();
        let key = TestKey { id, secret };
        let path = format!("/keys/{id}/reissue");
        match way {
            "reads its balance" => assert_eq!(gateway.get("/v1/key", &key).await.status, 200),
            "signs in" => drop(Visitor::signed_in(&gateway, &key).await),
            _ => {
                let body = chat("test-model", false);
                let refused = gateway.post("/v1/chat/completions", &key, &body).await;
                assert_eq!(refused.status, 429);
            }
        }
        let marked = gateway.account(&key).await.used_at;
        assert!(marked.is_some(), "{way}");
        let refused = shop.tries(&path, &json!({})).await;
        assert_eq!(refused.status, 409, "{way}: {}", refused.text);
        assert!(refused.text.contains("has been used"), "{}", refused.text);
        // It is marked once.
        gateway.get("/v1/key", &key).await;
        assert_eq!(gateway.account(&key).await.used_at, marked, "{way}");
    }
}
