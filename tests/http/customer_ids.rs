//! `customer_id = "hashed"`: what a provider is told of the customer in every family, and that nobody's name goes with it.

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::upstream::{Reply, Script, ScriptedUpstream, Seen, Speech};
use crate::support::{
    CATALOG, DIRECTIONS, Gateway, TestKey, ask, catalog, path, routes, routes_speaking, speech_for,
    talking,
};

const NAME: &str = "anna@example.com";

/// The same routes, whose providers are told of customers.
fn hashed(routes: &str) -> String {
    routes.replace(
        "private_urls = true",
        "private_urls = true\ncustomer_id = \"hashed\"",
    )
}

/// The id of a key's customer in the ledger's own words.
async fn id_of(gateway: &Gateway, key: &TestKey, user: Option<&str>) -> String {
    let customer = gateway.account(key).await.customer.id;
    gateway.ledger.vendor_ids().id(customer, user)
}

/// Where a family names its end user.
fn with_user(family: Family, mut body: Value, user: &str) -> Value {
    match family {
        Family::Chat => body["user"] = json!(user),
        Family::Responses => body["safety_identifier"] = json!(user),
        Family::Messages => body["metadata"] = json!({ "user_id": user }),
    }
    body
}

/// What the newest request told its provider.
fn told(upstream: &ScriptedUpstream, family: Family) -> Value {
    let body = upstream.requests().last().unwrap().json();
    assert!(!body.to_string().contains("anna"), "{body}");
    let field = match family {
        Family::Chat | Family::Responses => "/user",
        Family::Messages => "/metadata/user_id",
    };
    body.pointer(field).cloned().unwrap_or_default()
}

/// Asks whole and as a stream, with and without an end user; the provider speaks the other family.
async fn one_id(from: Family, into: Family) {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let routes = hashed(&routes_speaking(&upstream.base_url(), into));
    let gateway = Gateway::start(&catalog(into), &routes).await;
    let keys = [gateway.key("5.00").await, gateway.key("5.00").await];
    let mut ids = Vec::new();
    for key in &keys {
        let id = id_of(&gateway, key, None).await;
        let of_user = id_of(&gateway, key, Some(NAME)).await;
        assert!(id.len() == 16 && of_user.len() == 25 && of_user.starts_with(&id));
        for stream in [false, true] {
            let body = ask(from, "test-model", stream);
            let named = with_user(from, body.clone(), NAME);
            for (body, id) in [(body, &id), (named, &of_user)] {
                let answer = gateway.post(path(from), key, &body).await;
                assert_eq!(answer.status, 200, "{from} {into}: {}", answer.text);
                assert!(!answer.text.contains(id.as_str()), "{}", answer.text);
                assert_eq!(told(&upstream, into), json!(id), "{from} {into} {stream}");
            }
        }
        ids.push(id);
    }
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn a_customer_has_one_id_in_every_family() {
    for family in Family::ALL {
        one_id(family, family).await;
    }
}

#[tokio::test]
async fn a_translated_request_has_the_same_id() {
    for (from, into) in DIRECTIONS {
        one_id(from, into).await;
    }
}

#[tokio::test]
async fn nobody_is_told_anything_unless_the_operator_says_so() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("5.00").await;
    for family in Family::ALL {
        let body = ask(family, "test-model", false);
        let mut sent = body.clone();
        sent["model"] = json!("upstream-model-1");
        if family == Family::Responses {
            sent["store"] = json!(false);
        }
        assert_eq!(gateway.post(path(family), &key, &body).await.status, 200);
        assert_eq!(upstream.requests().last().unwrap().json(), sent);
    }
}

#[tokio::test]
async fn ids_outlive_a_restart_and_differ_between_ledgers() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let routes = hashed(&routes(&upstream.base_url()));
    let gateway = Gateway::start(CATALOG, &routes).await;
    let key = gateway.key("5.00").await;
    let body = ask(Family::Chat, "test-model", false);
    gateway.post(path(Family::Chat), &key, &body).await;
    let (customer, before) = (
        gateway.account(&key).await.customer.id,
        told(&upstream, Family::Chat),
    );
    let (ledger, _, folder) = gateway.stop_and_keep().await;
    let again = |settings: &mut farebox_cli::app::Settings| settings.ledger = ledger.into();
    let gateway = Gateway::start_with(CATALOG, &routes, again).await;
    gateway.post(path(Family::Chat), &key, &body).await;
    assert_eq!(told(&upstream, Family::Chat), before);
    let other = Gateway::start(CATALOG, &routes).await;
    assert_ne!(json!(other.ledger.vendor_ids().id(customer, None)), before);
    gateway.stop().await;
    drop(folder);
}

/// A kind says which field its service reads, and a service of the responses family repeats it.
#[tokio::test]
async fn the_field_is_the_kinds_and_the_customer_reads_its_own_name_again() {
    let echoing = Script::by(|seen: &Seen, _| {
        if seen.path.ends_with("/embeddings") {
            return Reply::json(
                200,
                &json!({"object": "list", "model": "m", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
                    "usage": {"prompt_tokens": 1, "total_tokens": 1}}),
            );
        }
        let id = seen.json()["safety_identifier"].to_string();
        let reply = speech_for(seen, "PONG");
        let said = format!("\"object\":\"response\",\"safety_identifier\":{id}");
        let texts = reply.texts().into_iter();
        let mut texts = texts.map(|text| text.replace("\"object\":\"response\"", &said));
        match seen.json()["stream"] == true {
            true => Reply::events(texts),
            false => Reply::whole(200, "application/json", texts.next().unwrap()),
        }
    });
    let upstream = ScriptedUpstream::start(echoing).await;
    let kind = "kind = \"openai\"\ncustomer_id = \"hashed\"";
    let files = routes(&upstream.base_url())
        .replace("private_urls = true", kind)
        .replace("speaks   = [\"chat\", \"responses\", \"messages\"]\n", "");
    let vectors = r#"
[[model]]
model             = "Vectors"
slug              = "vectors"
provider          = "Tests"
best_path         = "embeddings"
best_environments = ["tests"]
price             = { input = "0.02" }
capabilities      = ["embeddings"]
limits            = { context = 8_192 }
"#;
    let route =
        "\n[[route]]\nslug = \"vectors\"\ntargets = [ { provider = \"up\", model = \"v\" } ]\n";
    let gateway = Gateway::start(&format!("{CATALOG}{vectors}"), &format!("{files}{route}")).await;
    let key = gateway.key("5.00").await;
    let id = json!(id_of(&gateway, &key, Some(NAME)).await);
    for family in [Family::Chat, Family::Responses] {
        for stream in [false, true] {
            let body = with_user(family, ask(family, "test-model", stream), NAME);
            let answer = gateway.post(path(family), &key, &body).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            let sent = upstream.requests().last().unwrap().json();
            assert_eq!(sent["safety_identifier"], id);
            assert!(!sent.to_string().contains(NAME), "{sent}");
            assert!(
                !answer.text.contains(id.as_str().unwrap()),
                "{}",
                answer.text
            );
            let reads_own = answer
                .text
                .contains(&format!("\"safety_identifier\":\"{NAME}\""));
            assert_eq!(reads_own, family == Family::Responses, "{}", answer.text);
        }
    }
    let body = json!({ "model": "vectors", "input": "a", "user": NAME });
    let answer = gateway.post("/v1/embeddings", &key, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(upstream.requests().last().unwrap().json()["user"], id);
}

/// The next target, and the same one without what it has refused, know the customer by the same id; one that is not to know, does not.
#[tokio::test]
async fn another_try_has_the_same_id_and_no_name_where_the_field_is_refused() {
    let refusing = Script::by(|seen: &Seen, _| match seen.json().get("user") {
        Some(_) => Reply::json(
            400,
            &json!({"error": {"message": "Unknown parameter: 'user'.", "type": "invalid_request_error",
                "param": "user", "code": "unknown_parameter"}}),
        ),
        None => Reply::error(500, "server_error", None, "broken"),
    });
    let upstreams = [
        ScriptedUpstream::start(refusing).await,
        ScriptedUpstream::start(Reply::error(500, "server_error", None, "broken")).await,
        ScriptedUpstream::start(talking("PONG")).await,
    ];
    let provider = |number: usize, more: &str| {
        let base = upstreams[number].base_url();
        format!(
            "[provider.p{number}]\nbase_url = \"{base}\"\nspeaks = [\"chat\"]\nkey = {{ env = \"K\" }}\n{more}\n"
        )
    };
    let told = "customer_id = \"hashed\"";
    let routes = format!(
        "{}{}{}[[route]]\nslug = \"test-model\"\ntargets = [ {{ provider = \"p0\", model = \"m\" }}, {{ provider = \"p1\", model = \"m\" }}, {{ provider = \"p2\", model = \"m\" }} ]\n",
        provider(0, told),
        provider(1, ""),
        provider(2, told)
    );
    let one = CATALOG.split("\n[[model]]").nth(1).unwrap();
    let gateway = Gateway::start(&format!("[[model]]{one}"), &routes).await;
    let key = gateway.key("5.00").await;
    let mut body = with_user(Family::Chat, ask(Family::Chat, "test-model", false), NAME);
    body["safety_identifier"] = json!(NAME);
    let answer = gateway.post(path(Family::Chat), &key, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let id = id_of(&gateway, &key, Some(NAME)).await;
    let sent = upstreams.each_ref().map(ScriptedUpstream::requests);
    let of = |target: usize, try_: usize| {
        let body = sent[target][try_].json();
        [body["user"].clone(), body["safety_identifier"].clone()]
    };
    assert_eq!(of(0, 0), [json!(id), json!(id)]);
    assert_eq!(
        of(0, 1),
        [Value::Null, json!(id)],
        "without the refused field"
    );
    assert_eq!(of(1, 0), [json!(NAME), json!(NAME)], "not hashed");
    assert_eq!(of(2, 0), [json!(id), json!(id)]);
}

/// The session that a coding client names inside `user_id` decides about the account before the id takes its place.
#[tokio::test]
async fn a_conversation_keeps_its_account() {
    let upstream = ScriptedUpstream::start(Script::by(|seen, _| {
        let stream = seen.json()["stream"] == true;
        let speech = Speech::new(Family::Messages, "go on");
        if stream {
            speech.stream()
        } else {
            speech.whole()
        }
    }))
    .await;
    let keys = r#"keys = [ { env = "KEY_A" }, { env = "KEY_B" }, { env = "KEY_C" } ]"#;
    let files = hashed(&routes_speaking(&upstream.base_url(), Family::Messages));
    let files = files.replacen(r#"key      = { env = "UPSTREAM_KEY" }"#, keys, 1);
    let gateway = Gateway::start(&catalog(Family::Messages), &files).await;
    let key = gateway.key("5.00").await;
    let device = id_of(&gateway, &key, Some(r#"{"device_id":"d"}"#)).await;
    let mut all = std::collections::BTreeSet::new();
    for session in 0..12 {
        let mut accounts = std::collections::BTreeSet::new();
        for turn in 0..3 {
            let mut body = ask(Family::Messages, "test-model", false);
            body["system"] = json!(format!("turn {turn}"));
            let user = json!({ "device_id": "d", "session_id": format!("s{session}") });
            body["metadata"] = json!({ "user_id": user.to_string() });
            let answer = gateway.post(path(Family::Messages), &key, &body).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            let seen = upstream.requests().pop().unwrap();
            assert_eq!(seen.json()["metadata"]["user_id"], json!(device));
            accounts.insert(seen.header("x-api-key").unwrap().to_owned());
        }
        assert_eq!(accounts.len(), 1, "session {session}");
        all.extend(accounts);
    }
    assert!(all.len() > 1, "twelve sessions at one account");
}

/// Tolerant, because services that count refuse the member: what matters is what they would have read.
#[tokio::test]
async fn a_count_has_no_name_in_it_either() {
    let counted = Reply::json(200, &json!({ "input_tokens": 7 }));
    let upstream = ScriptedUpstream::tolerant(counted).await;
    let gateway = Gateway::start(CATALOG, &hashed(&routes(&upstream.base_url()))).await;
    let key = gateway.key("5.00").await;
    let body = ask(Family::Messages, "test-model", false);
    let body = with_user(Family::Messages, body, NAME);
    let path = "/native/v1/messages/count_tokens";
    assert_eq!(
        gateway.post(path, &key, &body).await.json()["input_tokens"],
        7
    );
    told(&upstream, Family::Messages);
}
