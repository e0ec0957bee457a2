//! Pages of lists: nothing twice and nothing left out, whatever comes meanwhile.

use std::collections::BTreeSet;

use farebox_ledger::TokenRole;
use serde_json::{Value, json};

use super::{Program, code, gateway, text};
use crate::support::chat;

/// Every page from here on; `between` runs before each next one.
async fn walk(program: &Program, path: &str, mut between: impl AsyncFnMut()) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let mark = if path.contains('?') { '&' } else { '?' };
        let page = program.get(&format!("{path}{mark}limit=3{cursor}")).await;
        assert_eq!(page.status, 200, "{}", page.text);
        let page = page.json();
        found.extend(page["data"].as_array().unwrap().clone());
        if page["has_more"] == false {
            assert!(page["next_cursor"].is_null());
            return found;
        }
        cursor = format!("&cursor={}", text(&page, "next_cursor"));
        between().await;
    }
}

#[tokio::test]
async fn pages_lose_nothing_and_repeat_nothing_while_rows_come() {
    let (_upstream, gateway) = gateway().await;
    let program = Program::new(&gateway, TokenRole::Manage).await;
    let mut known = BTreeSet::new();
    for number in 0..10 {
        known.insert(program.customer(&format!("c{number}")).await);
    }
    let mut late = 0;
    let found = walk(&program, "/customers", async || {
        if late < 2 {
            late += 1;
            program.customer("late").await;
        }
    })
    .await;
    let ids: Vec<String> = found.iter().map(|row| text(row, "id")).collect();
    let distinct: BTreeSet<String> = ids.iter().cloned().collect();
    assert_eq!(ids.len(), distinct.len(), "nothing twice");
    assert!(known.is_subset(&distinct), "nothing left out");
    // Entries: newest first, and what is booked meanwhile does not move the pages.
    let customer = ids[0].clone();
    let pay = async |number: u32| {
        let body = json!({ "amount": "1", "reference": format!("pi_{number}") });
        program
            .does(&format!("/customers/{customer}/top-ups"), &body, 201)
            .await;
    };
    for number in 0..8 {
        pay(number).await;
    }
    let mut more = 100;
    let entries = walk(
        &program,
        &format!("/customers/{customer}/entries"),
        async || {
            more += 1;
            pay(more).await;
        },
    )
    .await;
    let seqs: Vec<i64> = entries
        .iter()
        .map(|entry| entry["seq"].as_i64().unwrap())
        .collect();
    assert_eq!(seqs, [8, 7, 6, 5, 4, 3, 2, 1]);
    // Keys of one customer.
    for number in 0..7 {
        let body = json!({ "label": format!("k{number}") });
        program
            .does(&format!("/customers/{customer}/keys"), &body, 201)
            .await;
    }
    let keys = walk(
        &program,
        &format!("/customers/{customer}/keys"),
        async || {},
    )
    .await;
    let labels: BTreeSet<String> = keys.iter().map(|key| text(key, "label")).collect();
    assert_eq!((keys.len(), labels.len()), (7, 7));
}

#[tokio::test]
async fn lists_are_filtered_by_state_name_time_and_reference() {
    let (_upstream, gateway) = gateway().await;
    let program = Program::new(&gateway, TokenRole::Manage).await;
    let body = json!({ "label": "Ada", "external_id": "crm-7" });
    let ada = text(&program.does("/customers", &body, 201).await, "id");
    let bob = program.customer("Bob").await;
    program
        .does(&format!("/customers/{bob}/suspend"), &json!({}), 200)
        .await;
    let paid = json!({ "amount": "1", "reference": "pi_1" });
    program
        .does(&format!("/customers/{ada}/top-ups"), &paid, 201)
        .await;
    let ids = async |query: &str| {
        let page = program.get(query).await;
        assert_eq!(page.status, 200, "{query}: {}", page.text);
        let rows = page.json()["data"].as_array().unwrap().clone();
        rows.iter()
            .map(|row| {
                row["id"]
                    .as_str()
                    .or(row["reference"].as_str())
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(
        ids("/customers?external_id=crm-7").await,
        std::slice::from_ref(&ada)
    );
    assert_eq!(ids("/customers?external_id=crm-8").await, [""; 0]);
    assert_eq!(
        ids("/customers?status=suspended").await,
        std::slice::from_ref(&bob)
    );
    assert_eq!(ids("/customers?label=da").await, std::slice::from_ref(&ada));
    assert_eq!(ids("/customers?until=2020-01-01").await, [""; 0]);
    assert_eq!(ids("/customers?since=2020-01-01").await, [ada.clone(), bob]);
    assert_eq!(ids("/customers?since=2099-01-01").await, [""; 0]);
    assert_eq!(ids("/entries?reference=PI_1").await, ["pi_1"]);
    assert_eq!(
        ids(&format!("/customers/{ada}/entries?until=2020-01-01")).await,
        [""; 0]
    );
    for (query, wrong) in [
        ("/customers?limit=201", "invalid_field"),
        ("/customers?limit=0", "invalid_field"),
        ("/customers?status=asleep", "invalid_field"),
        ("/customers?since=yesterday", "invalid_field"),
        ("/customers?statsu=active", "unknown_field"),
        ("/customers?cursor=abc", "invalid_cursor"),
        ("/customers?limit=1&limit=2", "invalid_field"),
    ] {
        let refused = program.get(query).await;
        assert_eq!(
            (refused.status, code(&refused).as_str()),
            (400, wrong),
            "{query}"
        );
    }
}

/// By our id, and by its answer's, which the gateway remembers first and the journal has for a week; a program that sells sees its own only.
#[tokio::test]
async fn a_request_is_found_by_its_answers_id_too() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let sell = Program::new(&gateway, TokenRole::Sell).await;
    let key = gateway.key("1").await;
    let body = chat("test-model", false);
    let answer = gateway.post("/v1/chat/completions", &key, &body).await;
    let request = answer.header("x-request-id").unwrap().to_owned();
    gateway.settled().await;
    let charge = gateway.charges(&key).await.remove(0);
    let upstream_id = charge.bill.and_then(|bill| bill.answer_id);
    let mut names = vec![request.clone(), text(&answer.json(), "id")];
    names.extend(upstream_id);
    for name in names {
        let found = manage.get(&format!("/requests/{name}")).await;
        assert_eq!(found.status, 200, "{name}: {}", found.text);
        assert_eq!(found.json()["request_id"], request.as_str(), "{name}");
        let foreign = sell.get(&format!("/requests/{name}")).await;
        assert_eq!(code(&foreign), "not_yours", "{name}: {}", foreign.text);
    }
    let unknown = manage.get("/requests/chatcmpl-nobody").await;
    assert_eq!(code(&unknown), "request_not_found");
}
