//! What a key may spend is one figure, wherever somebody reads it.

use farebox_ledger::key::Change;
use farebox_ledger::{Cap, CapInterval, TokenRole};
use serde_json::{Value, json};

use super::{Program, gateway, text};
use crate::customer::sessions::Visitor;
use crate::process::cli::Cli;
use crate::support::chat;
use crate::support::screen::Screen;

/// The text of a page without its tags.
fn words(page: &str) -> String {
    let parts = page.split('<').map(|part| {
        let end = part.find('>').map_or(0, |end| end + 1);
        &part[end..]
    });
    parts.collect::<Vec<_>>().concat()
}

/// A column of a table of values separated by commas, in its only row.
fn column(csv: &str, name: &str) -> String {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (names, row) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.iter().position(|found| *found == name);
    row[at.unwrap_or_else(|| panic!("no {name} in {names:?}"))].to_owned()
}

#[tokio::test]
async fn a_keys_room_is_the_same_on_every_surface() {
    let (_upstream, gateway) = gateway().await;
    // Its customer has more, and its cap leaves less than that.
    let key = gateway.owner("10.00").await;
    let limit = farebox_ledger::Amount::from_usd_str("3.00").unwrap();
    let cap = Cap {
        interval: CapInterval::Day,
        model: None,
        limit,
    };
    gateway.change(&key, Change::SetCap(cap)).await;
    let answer = gateway
        .post("/v1/chat/completions", &key, &chat("test-model", false))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    gateway.settled().await;
    let room = gateway.account(&key).await.spendable(farebox::clock::now());
    let room = room.to_string();
    assert!(room.starts_with("2.99"), "{room}");

    let (cli, id) = (Cli::on(&gateway.ledger_path()), key.id.to_string());
    let csv = |arguments: &[&str]| String::from_utf8(cli.run(arguments).stdout).unwrap();
    let program = Program::new(&gateway, TokenRole::Manage).await;
    let customer = text(
        &program.get(&format!("/keys/{id}")).await.json(),
        "customer",
    );
    let api = async |path: String| program.get(&path).await.json();
    let visitor = Visitor::signed_in(&gateway, &key).await;
    let page = words(&visitor.get("").await.text);
    let told = gateway.get("/v1/key", &key).await.json();
    let shown = csv(&["show", &id]);
    let (list, one) = (
        api(format!("/customers/{customer}/keys")).await,
        api(format!("/keys/{id}")).await,
    );
    let whole = api(format!("/customers/{customer}")).await;
    let available = |document: &Value| text(document, "available");
    let everywhere = [
        (
            "keys list, JSON",
            available(&cli.json(&["keys", "list", "--format", "json"])["keys"][0]),
        ),
        (
            "keys list, CSV",
            column(&csv(&["keys", "list", "--format", "csv"]), "available"),
        ),
        ("keys of a customer, API", available(&list["data"][0])),
        ("key, API", available(&one)),
        ("customer with its keys, API", available(&whole["keys"][0])),
        ("/v1/key", available(&told["data"])),
    ];
    for (place, figure) in everywhere {
        assert_eq!(figure, room, "{place}");
    }
    assert!(shown.contains(&format!("{room} USD")), "show: {shown}");
    assert!(
        page.contains(&format!("Available now{room}")),
        "dashboard: {page}"
    );
}

/// A grant that somebody gives by API, of kinds that differ from one to the next.
fn grant_of(number: u32) -> Value {
    let mut grant = json!({ "amount": "0.50", "reference": format!("grant-{number}") });
    let more = match number % 6 {
        0 => json!({ "expires_at": "2099-01-31" }),
        1 => json!({ "kind": "paid", "expires_at": "2098-01-31" }),
        2 => json!({ "models": ["test-model"], "priority": 0 }),
        3 => json!({ "models": ["test-blind"], "expires_at": "2097-01-31" }),
        4 => json!({ "effective_at": "2096-01-01" }),
        _ => json!({ "priority": 90 }),
    };
    grant
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    grant
}

/// Whether the lines of the console say of a customer's grants what the API says.
fn in_console(lines: &[Vec<String>], grants: &Value) {
    for grant in grants.as_array().unwrap() {
        let line = lines.iter().find(|line| line.contains(&text(grant, "id")));
        let line = line.unwrap_or_else(|| panic!("{grant}: {lines:?}"));
        for (figure, sign) in [("amount", "$"), ("remaining", "$"), ("status", "")] {
            let shown = format!("{sign}{}", text(grant, figure));
            assert!(line.contains(&shown), "{figure} {shown}: {line:?}");
        }
    }
}

#[tokio::test]
async fn twenty_customers_grants_are_the_same_on_every_surface() {
    let (_upstream, gateway) = gateway().await;
    let (cli, program) = (
        Cli::on(&gateway.ledger_path()),
        Program::new(&gateway, TokenRole::Manage).await,
    );
    let mut all = Vec::new();
    for customer_number in 0..20_u32 {
        let key = gateway.owner("1").await;
        let customer = gateway.account(&key).await.customer.id.to_string();
        let of = format!("/customers/{customer}");
        for place in 0..4 {
            let body = grant_of(customer_number * 4 + place);
            let given = program.does(&format!("{of}/grants"), &body, 201).await;
            // Some are taken back.
            if (customer_number + place) % 5 == 4 {
                let void = format!("/grants/{}/void", text(&given, "id"));
                program.does(&void, &json!({}), 200).await;
            }
        }
        let body = chat("test-model", false);
        let answer = gateway.post("/v1/chat/completions", &key, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        gateway.settled().await;
        let by_api = program.get(&format!("{of}/grants")).await.json();
        let by_command = cli.json(&["grants", "list", "--customer", &customer, "--json"]);
        assert_eq!(by_api["data"], by_command["grants"], "{customer}");
        assert_eq!(by_api["data"].as_array().unwrap().len(), 4);
        let whole = program.get(&of).await.json();
        let shown = cli.json(&["customers", "show", &customer, "--json"]);
        for figure in ["credit", "spent", "held", "balance", "available"] {
            assert_eq!(whole[figure], shown[figure], "{figure} of {customer}");
        }
        let visitor = Visitor::signed_in(&gateway, &key).await;
        let page = words(&visitor.get("").await.text);
        let available = text(&whole, "available");
        assert!(
            page.contains(&format!("Available now{available}")),
            "{available}: {page}"
        );
        let list = words(&visitor.get("/payments").await.text);
        for grant in by_api["data"].as_array().unwrap() {
            let (left, status) = (text(grant, "remaining"), text(grant, "status"));
            assert!(
                list.contains(&left) && list.contains(&status),
                "{grant}: {list}"
            );
        }
        all.push((customer, by_api["data"].clone()));
    }
    if let Some(console) =
        Screen::open(&gateway.ledger_path().display().to_string(), &gateway.admin)
    {
        for (customer, grants) in &all {
            in_console(&console.grants_of(customer, 4), grants);
        }
    }
    let report = gateway.ledger.verify().await.unwrap();
    assert_eq!(report.faults, [""; 0]);
}
