//! One token of each role is stolen, and does the worst that it can in a day: as much as the table of `docs/selling.md` says.

use farebox_ledger::{DailyBound, TokenRole};
use serde_json::{Value, json};

use super::{Program, code, gateway, new_token_of, text};

const PAGE: &str = include_str!("../../docs/selling.md");

/// A row of the table, by what its first cell begins with.
fn row(what: &str) -> Vec<String> {
    let table = PAGE.split("### What a stolen token can do").nth(1).unwrap();
    let row = table
        .lines()
        .find(|line| line.starts_with(&format!("| {what}")));
    let row = row.unwrap_or_else(|| panic!("no row {what:?}"));
    let cells = row.trim_matches('|').split('|');
    cells.map(|cell| cell.trim().to_owned()).collect()
}

/// How often a thief does this before a bound stops it, and what the refusal says.
async fn times(
    program: &Program,
    mut next: impl FnMut(usize) -> (String, Value),
) -> (usize, String) {
    for done in 0.. {
        let (path, body) = next(done);
        let answer = program.tries(&path, &body).await;
        if answer.status != 429 {
            assert!(answer.status < 300, "{path}: {}", answer.text);
            continue;
        }
        assert_eq!(code(&answer), "daily_reached");
        let details = answer.json()["error"]["details"].clone();
        let ends = text(&details, "ends_at");
        assert!(ends.ends_with("T00:00:00.000Z"), "{ends}");
        let wait: i64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=86_401).contains(&wait), "{wait}");
        assert_eq!(text(&details, "done"), text(&details, "most"));
        return (done, text(&details, "what"));
    }
    unreachable!("a thief stops at a bound")
}

#[tokio::test]
async fn a_stolen_token_that_sells_does_what_the_table_says() {
    let (_upstream, gateway) = gateway().await;
    let mut thief = Program::new(&gateway, TokenRole::Sell).await;
    let ledger = &*gateway.ledger;
    let daily = Some("25");
    (thief.token, thief.secret) =
        new_token_of(ledger, "stolen", TokenRole::Sell, daily, None).await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let victim = manage.customer("victim").await;
    let most = "max(20, `--daily` ÷ 1 USD)";
    // Customers with a first key each; 25 of a token of 25 dollars.
    let mut keys = Vec::new();
    let customers = times(&thief, |number| {
        (
            "/customers".to_owned(),
            json!({ "label": format!("made up {number}"), "key": {} }),
        )
    });
    assert_eq!(customers.await, (25, "customers".to_owned()));
    assert_eq!(row("make customers")[2], most);
    assert!(row("make first keys")[2].starts_with(most));
    let listed = thief.get("/customers?limit=100").await.json();
    for customer in listed["data"].as_array().unwrap() {
        let shown = thief
            .get(&format!("/customers/{}", text(customer, "id")))
            .await;
        keys.push(text(&shown.json()["keys"][0], "id"));
    }
    let reissued = times(&thief, |number| {
        (
            format!("/keys/{}/reissue", keys[number % keys.len()]),
            json!({}),
        )
    });
    assert_eq!(reissued.await, (25, "reissues".to_owned()));
    assert!(row("replace secrets")[2].starts_with(most));
    // Credit, and after it what is kept as unapplied: on anybody who is active.
    let path = format!("/customers/{victim}/top-ups");
    let paid = times(&thief, |number| {
        let paid = json!({ "amount": "1", "reference": format!("made-up-{number}") });
        (path.clone(), paid)
    });
    let unapplied = usize::try_from(DailyBound::UNAPPLIED).unwrap();
    assert_eq!(paid.await, (25 + unapplied, "unapplied".to_owned()));
    assert_eq!(row("book credit")[2], "`--daily`");
    assert_eq!(
        row("have payments kept as unapplied")[2],
        DailyBound::UNAPPLIED.to_string()
    );
    let balance = async || {
        let found = ledger.find_customer(victim.parse().unwrap()).await;
        found.unwrap().unwrap().account.balance().to_string()
    };
    assert_eq!(balance().await, "25.00");
    // All of it is taken back, and nothing else: of what others booked, nothing.
    manage
        .does(&path, &json!({ "amount": "40", "reference": "real" }), 201)
        .await;
    let back = |payment: &str| json!({ "payment": payment, "kind": "refund", "cumulative": "1", "reference": format!("re-{payment}") });
    let reversals = format!("/customers/{victim}/reversals");
    for number in 0..25 {
        let answer = thief
            .tries(&reversals, &back(&format!("made-up-{number}")))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let foreign = thief.tries(&reversals, &back("real")).await;
    assert_eq!(
        (foreign.status, code(&foreign)),
        (403, "not_allowed".to_owned())
    );
    assert_eq!(balance().await, "40.00");
    assert!(row("take credit back")[2].starts_with("`--daily`"));
    assert!(row("take credit back")[2].contains(&DailyBound::DAYS.to_string()));
    // The operator's own invoice, whose reference was made up: booked by who manages, not by another that sells.
    let invoice = json!({ "amount": "3", "reference": "made-up-100" });
    let (_, other) = new_token_of(ledger, "second shop", TokenRole::Sell, daily, None).await;
    let held = std::mem::replace(&mut thief.secret, other);
    let refused = thief.tries(&path, &invoice).await;
    assert_eq!(
        (refused.status, code(&refused)),
        (409, "reference_used".to_owned())
    );
    thief.secret = held;
    manage.does(&path, &invoice, 201).await;
    assert_eq!(balance().await, "43.00");
    // It sees nothing of whom it did not make.
    assert_eq!(
        code(&thief.get(&format!("/customers/{victim}")).await),
        "not_yours"
    );
    assert!(row("read")[2].contains("made"), "{:?}", row("read"));
}

#[tokio::test]
async fn a_stolen_token_that_reads_changes_nothing_and_one_that_manages_all_but_tokens() {
    let (_upstream, gateway) = gateway().await;
    let manage = Program::new(&gateway, TokenRole::Manage).await;
    let read = Program::new(&gateway, TokenRole::Read).await;
    let customer = manage.customer("Ada").await;
    assert_eq!(row("make customers")[1], "nothing");
    let refused = read.tries("/customers", &json!({ "label": "x" })).await;
    assert_eq!(code(&refused), "role_exceeded");
    assert_eq!(
        read.get(&format!("/customers/{customer}")).await.status,
        200
    );
    assert_eq!(row("read")[1], "everything");
    // More than any bound of one that sells.
    for number in 0..DailyBound::FEWEST + 1 {
        manage.customer(&format!("customer {number}")).await;
    }
    assert_eq!(row("make customers")[3], "without bound");
    let paid = json!({ "amount": "1000", "reference": "pi-1" });
    manage
        .does(&format!("/customers/{customer}/top-ups"), &paid, 201)
        .await;
    assert!(row("book credit")[3].contains("without `--daily`"));
    // There is no path to tokens at all.
    for method in ["GET", "POST", "DELETE"] {
        let request = manage.request(method, "/tokens");
        let answer = request.header("idempotency-key", "k").send().await.unwrap();
        assert_eq!(answer.status(), 404);
    }
    assert_eq!(row("make or revoke tokens")[3], "nothing: only commands do");
}
