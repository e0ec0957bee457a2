//! The API at two gateways of one fleet: a key has one effect wherever it comes, bounds are met together, and of two edits of one state one
//! is made.

use std::time::{Duration, Instant};

use farebox_ledger::TokenRole;
use farebox_ledger::store::SharedStore;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{Program, code, new_token, text};
use crate::support::cluster::Cluster;
use crate::support::load::{UPSTREAM_KEY, new_ledger, place};
use crate::support::process::{Served, client};
use crate::support::skip::skip;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, talking};

struct Fleet {
    cluster: &'static Cluster,
    database: String,
    ledger: SharedStore,
    gateways: Vec<Served>,
    _upstream: ScriptedUpstream,
    _folder: tempfile::TempDir,
}

impl Fleet {
    /// Two gateways, or none where there is no PostgreSQL.
    async fn start(what: &str) -> Option<Self> {
        let Some(cluster) = Cluster::shared() else {
            skip(&format!("{what}: no PostgreSQL"));
            return None;
        };
        let upstream = ScriptedUpstream::start(talking("one")).await;
        let (folder, _) = place(&upstream);
        let database = cluster.database();
        let url = cluster.url(&database);
        let ledger = new_ledger(&url).await;
        let environment = [
            UPSTREAM_KEY,
            ("FAREBOX_ALLOW_SINGLE", "true"),
            ("FAREBOX_LEDGER", url.as_str()),
        ];
        let start = |_| Served::start_with(folder.path(), &[], &environment);
        let gateways = (0..2).map(start).collect();
        Some(Self {
            cluster,
            database,
            ledger,
            gateways,
            _upstream: upstream,
            _folder: folder,
        })
    }

    /// A program with one new token, at each gateway.
    async fn programs(&self, role: TokenRole) -> [Program; 2] {
        let (token, secret) = new_token(&*self.ledger, role.as_str(), role, None).await;
        let at = |gateway: &Served| Program {
            base: format!("{}/api/v1", gateway.admin),
            client: client(),
            token: token.clone(),
            secret: secret.clone(),
        };
        [at(&self.gateways[0]), at(&self.gateways[1])]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_one_effect_at_whichever_gateway_it_comes() {
    let Some(fleet) = Fleet::start("idempotency keys at two gateways").await else {
        return;
    };
    let [here, there] = fleet.programs(TokenRole::Manage).await;
    let body = json!({ "label": "Ada", "key": { "owner": true } });
    let first = here.post("/customers", "create-1", &body).await;
    let again = there.post("/customers", "create-1", &body).await;
    assert_eq!((first.status, again.status), (201, 201), "{}", again.text);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let (mut first, again) = (first.json(), again.json());
    let secret = first["key"].as_object_mut().unwrap().remove("secret");
    assert!(secret.is_some());
    assert_eq!(first, again);
    let other = there
        .post("/customers", "create-1", &json!({ "label": "Bob" }))
        .await;
    assert_eq!(
        (other.status, code(&other).as_str()),
        (422, "idempotency_key_reused")
    );
    // At both at once.
    let path = format!("/customers/{}/top-ups", text(&first, "id"));
    let paid = json!({ "amount": "10", "reference": "pi_1" });
    let sent = (0..20).map(|number| {
        let program = if number % 2 == 0 { &here } else { &there };
        program.post(&path, "pay-1", &paid)
    });
    let answers = join_all(sent).await;
    assert!(answers.iter().all(|answer| answer.status == 201));
    let fresh = |answer: &&Answer| answer.header("idempotent-replayed").is_none();
    assert_eq!(answers.iter().filter(fresh).count(), 1);
    let shown = there
        .get(&format!("/customers/{}", text(&first, "id")))
        .await;
    assert_eq!(shown.json()["balance"], "10.00");
    assert_eq!(fleet.ledger.verify().await.unwrap().faults, [""; 0]);
}

/// Another gateway holds the key and does not come to an end.
#[tokio::test(flavor = "multi_thread")]
async fn while_another_gateway_is_at_it_a_repetition_waits_two_seconds() {
    let Some(fleet) = Fleet::start("an idempotency key that still runs").await else {
        return;
    };
    let [here, there] = fleet.programs(TokenRole::Manage).await;
    let path = format!("/customers/{}/top-ups", here.customer("Ada").await);
    let paid = json!({ "amount": "10", "reference": "pi_1" });
    assert_eq!(here.post(&path, "pay-1", &paid).await.status, 201);
    // As if the first gateway were still at it: nothing is kept yet, and it has the lock.
    let locked = "SELECT pg_advisory_lock(1717662310, ('x' || encode(substring(id FROM 1 FOR 4), 'hex'))::bit(32)::int) \
         FROM answers WHERE position('pi_1' IN answer) > 0; DELETE FROM answers WHERE position('pi_1' IN answer) > 0; SELECT pg_sleep(4)";
    let (cluster, database) = (fleet.cluster, fleet.database.clone());
    let other = std::thread::spawn(move || cluster.psql(&database, locked));
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    while fleet.cluster.psql(&fleet.database, sleeps).unwrap() != "1" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let begun = Instant::now();
    let refused = there.post(&path, "pay-1", &paid).await;
    assert_eq!(
        (refused.status, code(&refused).as_str()),
        (409, "still_running")
    );
    assert!(begun.elapsed() >= Duration::from_secs(2));
    other.join().unwrap().unwrap();
    // Then it is done, and known by its reference.
    let again = there.post(&path, "pay-1", &paid).await;
    assert_eq!(again.status, 200, "{}", again.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daily_bound_is_met_by_both_gateways_together() {
    let Some(fleet) = Fleet::start("a daily bound at two gateways").await else {
        return;
    };
    let [here, there] = fleet.programs(TokenRole::Sell).await;
    let path = format!("/customers/{}/top-ups", here.customer("Ada").await);
    let bodies: Vec<Value> = (0..10)
        .map(|number| json!({ "amount": "30", "reference": format!("pi_{number}") }))
        .collect();
    let sent = bodies.iter().enumerate().map(|(number, body)| {
        let program = if number % 2 == 0 { &here } else { &there };
        let key = format!("k{number}");
        let path = path.clone();
        async move { program.post(&path, &key, body).await.status }
    });
    let mut answers = join_all(sent).await;
    answers.sort_unstable();
    // 100 a day: three of 30, and the others are kept and acknowledged.
    assert_eq!(answers, [201, 201, 201, 202, 202, 202, 202, 202, 202, 202]);
    assert_eq!(fleet.ledger.unapplied().await.unwrap().len(), 7);
    assert_eq!(fleet.ledger.verify().await.unwrap().faults, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_edits_of_one_state_at_two_gateways_one_is_made_and_none_is_lost() {
    let Some(fleet) = Fleet::start("edits at two gateways").await else {
        return;
    };
    let both = fleet.programs(TokenRole::Manage).await;
    let customer = format!("/customers/{}", both[0].customer("Ada").await);
    for round in 0..6 {
        let read = both[round % 2].get(&customer).await;
        let etag = read.header("etag").unwrap().to_owned();
        let sent = (0..8).map(|racer| {
            let request = both[racer % 2].request("PATCH", &customer);
            let request = request.header("if-match", &etag);
            let request = request.json(&json!({ "rate": 10 + racer }));
            async move { Answer::read(request.send().await.unwrap()).await }
        });
        let answers = join_all(sent).await;
        let (made, refused): (Vec<&Answer>, Vec<&Answer>) =
            answers.iter().partition(|answer| answer.status == 200);
        assert_eq!(made.len(), 1);
        assert!(refused.iter().all(|answer| answer.status == 412));
        let shown = both[0].get(&customer).await.json();
        assert_eq!(shown["rate"], made[0].json()["rate"]);
    }
    // Without If-Match, edits of different things at both gateways are all made.
    let edits = [
        json!({ "rate": 77 }),
        json!({ "concurrency": 9 }),
        json!({ "label": "Ada L." }),
        json!({ "low_balance": "3" }),
        json!({ "name": "Ada L." }),
        json!({ "address": "Main St 1" }),
        json!({ "metadata": { "a": "b" } }),
        json!({ "metadata": { "c": "d" }, "external_id": "crm-7" }),
    ];
    let sent = edits.iter().enumerate().map(|(number, body)| {
        let request = both[number % 2].request("PATCH", &customer).json(body);
        async move { Answer::read(request.send().await.unwrap()).await.status }
    });
    assert_eq!(join_all(sent).await, [200; 8]);
    let shown = both[1].get(&customer).await.json();
    assert_eq!(
        (
            &shown["rate"],
            &shown["concurrency"],
            &shown["label"],
            &shown["low_balance"]
        ),
        (&json!(77), &json!(9), &json!("Ada L."), &json!("3.00"))
    );
    assert_eq!(shown["external_id"], "crm-7");
    let expected = json!({
        "name": "Ada L.",
        "address": "Main St 1",
        "metadata": { "a": "b", "c": "d" },
    });
    assert_eq!(shown["personal"], expected);
}

/// Ages what is kept by editing the database, as nobody waits a day.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_free_again_after_a_day_and_not_before() {
    let Some(fleet) = Fleet::start("idempotency keys after a day").await else {
        return;
    };
    let [here, there] = fleet.programs(TokenRole::Manage).await;
    let (ada, bob) = (json!({ "label": "Ada" }), json!({ "label": "Bob" }));
    let first = here.post("/customers", "create-1", &ada).await.json();
    let ages = |millis: i64| {
        let sql = format!("UPDATE answers SET at = at - {millis}");
        fleet.cluster.psql(&fleet.database, &sql).unwrap();
    };
    let minute = 60_000;
    ages(24 * 60 * minute - minute);
    let again = there.post("/customers", "create-1", &ada).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.json(), first);
    let other = there.post("/customers", "create-1", &bob).await;
    assert_eq!(other.status, 422, "{}", other.text);
    ages(minute + 1);
    // Free for another body, and what it did before stays.
    let new = there.post("/customers", "create-1", &bob).await;
    assert_eq!((new.status, new.header("idempotent-replayed")), (201, None));
    assert_eq!(new.json()["label"], "Bob");
    let listed = here.get("/customers").await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);
    let known = here.post("/customers", "create-1", &bob).await;
    assert_eq!(known.json()["id"], new.json()["id"]);
}
