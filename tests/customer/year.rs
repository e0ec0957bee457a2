//! A year with a plan of the demo's shop, on a clock that the test moves: bought, renewed, overflowed, refused, paid late, changed, paused,
//! ended, refunded and disputed. After each step the books verify, and shop, dashboard and paper say what happened; in a browser where
//! there is one.

mod ground;

use std::process::Command;

use farebox_ledger::{Amount, Secret, SubscriptionStatus};
use serde_json::{Value, json};

use super::sessions::Visitor;
use crate::support::TestKey;
use ground::{OWN, PACE, Year, field, instant, usd};

const ALONE: &str = "FAREBOX_TEST_YEAR";
const PERIOD_10: &str = "Coder, monthly, period 10: 2027-10-30 to 2027-11-30";
/// The processor's payments, as its page numbers them.
const FIRST: u32 = 0;

/// The clock is the process's, so the year has a process of its own.
#[test]
fn a_year_with_a_plan_adds_up() {
    let mut alone = Command::new(std::env::current_exe().unwrap());
    let story = ["--exact", "customer::year::the_year", "--nocapture"];
    let ended = alone.args(story).env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    assert!(
        ended.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

/// Not a test by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_year() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let mut year = bought().await;
    renewed(&mut year).await;
    overflowed(&mut year).await;
    failed(&mut year).await;
    paid_late(&mut year).await;
    changed(&mut year).await;
    paused(&mut year).await;
    went_on(&mut year).await;
    ended(&mut year).await;
    refunded(&mut year).await;
    disputed(&mut year).await;
    adds_up(&mut year).await;
}

// --- the steps ---

async fn bought() -> Year {
    let mut year = Year::begins("2027-01-30T10:00:00Z").await;
    let prices = year.shop("/", None).await;
    year.says(
        &prices,
        &[
            "Coder, monthly 23.80 EUR each month",
            "25.00 USD to use, 1.00 per 5h",
        ],
    );
    let thanks = year.buy(&prices, 2, "Ada").await;
    year.says(
        &thanks,
        &[
            "Coder, monthly was booked for 23.80 EUR.",
            "Coder, monthly: 25.00 of 25.00 USD, next payment at 2027-02-28 10:00 UTC",
        ],
    );
    let (proof, checkout) = (field(&thanks, "proof"), field(&thanks, "checkout"));
    let keyed = [("proof", &*proof), ("checkout", &checkout)];
    let shown = year.shop("/key", Some(&keyed)).await;
    let secret = shown.text.split("id=\"secret\">").nth(1).unwrap();
    let secret = secret.split('<').next().unwrap().to_owned();
    let (id, _) = Secret::parse(&secret).unwrap();
    year.key = Some(TestKey { id, secret });
    year.checkout = checkout;
    let key = year.gateway.account(year.key()).await;
    year.customer = key.customer.id;
    year.subscription = key.customer.grants.plans.iter().next().map(|of| of.id);
    let receipt = format!("/receipt?checkout={}", year.checkout);
    let bought = format!("/bought?checkout={}", year.checkout);
    let plan = "Coder, monthly, period 1: 2027-01-30 to 2027-02-28";
    year.looks(
        "bought",
        &[
            (&bought, &["25.00 of 25.00 USD"]),
            (&receipt, &[plan, "23.80 EUR", "Ada"]),
            ("/dashboard/plans", &["Coder, monthly active", "Paid until"]),
            ("/dashboard/payments", &["a period of coder"]),
            ("PAPER 1", &[plan, "Allowance 25.00 USD", "23.80 EUR"]),
        ],
    )
    .await;
    year
}

async fn renewed(year: &mut Year) {
    // An hour after the end, as processors do, within the grace.
    year.at("2027-02-28T11:00:00Z");
    year.processor("renew", FIRST).await;
    year.until(|of| of.state.last == 2).await;
    let plan = "Coder, monthly, period 2: 2027-02-28 to 2027-03-30";
    year.looks(
        "renewed",
        &[
            (
                OWN,
                &["Coder, monthly: 30.00 USD, next payment at 2027-03-30 10:00 UTC"],
            ),
            ("/dashboard", &["Coder, monthly: 30.00 USD left"]),
            (
                "/dashboard/plans",
                &["Coder, monthly active", "Past periods"],
            ),
            ("PAPER 2", &[plan]),
        ],
    )
    .await;
}

/// More than a window gives: the balance, which is bought by then, pays the rest.
async fn overflowed(year: &mut Year) {
    year.at("2027-03-05T09:00:00Z");
    let page = year.own().await;
    let thanks = year.buy(&page, 0, "Ada").await;
    year.says(&thanks, &["10.00 USD of credit were booked for 11.90 EUR."]);
    let mut requests = Vec::new();
    while year.money().await.1 == usd("10.00") {
        let path = "/native/v1/messages";
        let question = format!("{} {}", requests.len(), "word ".repeat(100_000));
        let body = json!({ "model": "claude-sim-sonnet", "max_tokens": 100,
            "messages": [{ "role": "user", "content": question }] });
        let answer = year.gateway.post(path, year.key(), &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        year.gateway.settled().await;
        requests.push(answer.header("x-request-id").unwrap().to_owned());
        assert!(requests.len() < 9, "{requests:?}");
    }
    let (plan, balance) = year.money().await;
    assert_eq!(
        plan,
        usd("29.00"),
        "all of the window, and what was carried first"
    );
    assert!(balance < usd("10.00") && balance > usd("9.00"), "{balance}");
    let last = format!("/dashboard/requests/{}", requests.last().unwrap());
    year.looks(
        "overflowed",
        &[
            (OWN, &["29.00 USD, next payment"]),
            (
                "/dashboard",
                &["is used up until", "your balance pays until then"],
            ),
            (
                &last,
                &["from your plan Coder, monthly,", "from your balance"],
            ),
            ("PAPER 3", &["Credit 10.00 USD", "11.90 EUR"]),
        ],
    )
    .await;
}

/// The card is refused: the period lives on for its grace, and then the balance pays.
async fn failed(year: &mut Year) {
    year.at("2027-03-30T11:00:00Z");
    let told = year.processor("fail", FIRST + 2).await;
    year.says(&told, &["Told to the shop: The card is refused"]);
    year.looks(
        "failed",
        &[
            (OWN, &["29.00 USD, next payment"]),
            (
                "/dashboard/plans",
                &[
                    "It can be used until",
                    "while the next payment is on its way",
                ],
            ),
        ],
    )
    .await;
    year.at("2027-03-30T16:00:00Z");
    year.ask().await;
    year.looks(
        "lapsed",
        &[
            (OWN, &["Coder, monthly: lapsed"]),
            (
                "/dashboard/plans",
                &["Coder, monthly lapsed", "the next one is not paid"],
            ),
        ],
    )
    .await;
    assert_eq!(year.plan().await.state.status, SubscriptionStatus::Lapsed);
}

/// What is paid late begins when it is paid.
async fn paid_late(year: &mut Year) {
    year.at("2027-04-02T09:00:00Z");
    year.processor("renew", FIRST + 1).await;
    year.until(|of| of.state.last == 3).await;
    let plan = "Coder, monthly, period 3: 2027-04-02 to 2027-05-02";
    year.looks(
        "paid-late",
        &[
            (
                OWN,
                &["25.00 of 25.00 USD, next payment at 2027-05-02 09:00 UTC"],
            ),
            ("/dashboard/plans", &["Coder, monthly active"]),
            ("PAPER 4", &[plan]),
        ],
    )
    .await;
}

/// The seller changes it at once: what is unused becomes credit, and the next period needs its own payment.
async fn changed(year: &mut Year) {
    year.at("2027-04-20T12:00:00Z");
    year.ask().await;
    let (left, balance) = year.money().await;
    let team = json!({ "plan": "team", "at_once": true });
    let path = format!("/subscriptions/{}/change", year.subscription.unwrap());
    year.manage.does(&path, &team, 200).await;
    let (plan, after) = year.money().await;
    let worth = left.picos() * 20 / 25;
    assert_eq!(plan, Amount::ZERO);
    assert_eq!(after.picos() - balance.picos(), worth, "{left} unused");
    year.looks(
        "changed",
        &[
            (OWN, &["Team, monthly: lapsed"]),
            (
                "/dashboard/plans",
                &["Team, monthly lapsed", "Past periods"],
            ),
            (
                "/dashboard/payments",
                &[
                    "Correction: the unused part of a period of coder",
                    "Taken back",
                ],
            ),
        ],
    )
    .await;
    let paid = json!({ "plan": "team", "reference": "bank-1", "currency": "EUR", "gross": "47.60", "tax": "7.60" });
    let path = format!("/customers/{}/plans", year.customer);
    year.manage.does(&path, &paid, 201).await;
    year.looks(
        "changed-and-paid",
        &[
            (OWN, &["Team, monthly: 50.00 of 50.00 USD"]),
            (
                "PAPER 5",
                &[
                    "Team, monthly, period 4: 2027-04-20 to 2027-05-20",
                    "47.60 EUR",
                ],
            ),
        ],
    )
    .await;
}

/// What is left of days is kept over a pause.
async fn paused(year: &mut Year) {
    let path = format!("/subscriptions/{}", year.subscription.unwrap());
    year.at("2027-05-01T12:00:00Z");
    (year.manage)
        .does(&format!("{path}/pause"), &json!({}), 200)
        .await;
    year.at("2027-05-11T12:00:00Z");
    let paused = ["Team, monthly paused", "The seller has stopped its time."];
    year.looks(
        "paused",
        &[
            (OWN, &["Team, monthly: 50.00 of 50.00 USD, paused"]),
            ("/dashboard/plans", &paused),
        ],
    )
    .await;
    (year.manage)
        .does(&format!("{path}/resume"), &json!({}), 200)
        .await;
    let until = year.plan().await.paid_until();
    assert_eq!(until, Some(instant("2027-05-30T12:00:00Z")));
    year.looks(
        "resumed",
        &[("/dashboard/plans", &["Team, monthly active"])],
    )
    .await;
}

/// The processor goes on with what it sold, month after month.
async fn went_on(year: &mut Year) {
    for (number, month) in (5..).zip(["05", "06", "07", "08", "09", "10"]) {
        year.at(&format!("2027-{month}-30T13:00:00Z"));
        year.processor("renew", FIRST + number - 3).await;
        year.until(|of| of.state.last == number).await;
        year.ask().await;
        year.verified().await;
    }
    year.looks(
        "went-on",
        &[
            (OWN, &["next payment at 2027-11-30 13:00 UTC"]),
            ("PAPER 11", &[PERIOD_10]),
        ],
    )
    .await;
}

/// The owner asks for the end on the dashboard; the shop passes it on, and the processor tells of it.
async fn ended(year: &mut Year) {
    year.at("2027-11-05T08:00:00Z");
    let visitor = Visitor::signed_in(&year.gateway, year.key()).await;
    let (once, plan) = (
        field(&visitor.get("/plans").await, "once"),
        year.subscription.unwrap().to_string(),
    );
    let form = [("once", &*once), ("plan", &plan)];
    assert_eq!(visitor.post("plans/end", &form, None).await.status, 303);
    year.until(|of| of.state.status == SubscriptionStatus::Ended)
        .await;
    let over = [
        "Coder, monthly ended",
        "It is renewed no more. What is paid runs until",
    ];
    year.looks(
        "ended",
        &[
            (OWN, &["paid until 2027-11-30 13:00 UTC"]),
            ("/dashboard/plans", &over),
        ],
    )
    .await;
    year.ask().await;
}

/// The running period is paid back: nothing is left of it, and the balance stays as it was.
async fn refunded(year: &mut Year) {
    year.at("2027-11-06T08:00:00Z");
    let (left, balance) = year.money().await;
    assert!(left > usd("25.00"), "{left} are free: all of the payment");
    year.processor("refund", FIRST + 8).await;
    let papers = [
        "Correction",
        "Refunded by the seller",
        PERIOD_10,
        "Allowance -25.00 USD",
    ];
    let over = [
        "Coder, monthly ended",
        "It has ended, and nothing of it is left.",
        "Past periods",
    ];
    year.paper(12).await;
    assert_eq!(year.money().await, (Amount::ZERO, balance));
    year.looks(
        "refunded",
        &[
            (OWN, &["Top up", "Credit"]),
            ("/dashboard/plans", &over),
            ("PAPER 12", &papers),
        ],
    )
    .await;
}

/// Old periods are disputed that are over: their price is taken, what is not there is owed, and the next payment pays it.
async fn disputed(year: &mut Year) {
    let (_, balance) = year.money().await;
    // A day each: a shop takes no more back for the first time than it has sold in 60 days.
    for (payment, papers) in [(FIRST, 13), (FIRST + 1, 14)] {
        year.at(&format!("2027-12-{papers}T08:00:00Z"));
        year.processor("dispute", payment).await;
        year.paper(papers).await;
    }
    assert_eq!(year.money().await.1, Amount::ZERO);
    let owed = usd("40.00").checked_sub(balance).unwrap();
    let claim = year.gateway.account(year.key()).await.customer.claim;
    assert_eq!(claim, owed, "two prices, less what was there");
    let taken = [
        "Correction",
        "Taken back by a dispute",
        "Coder, monthly, period 2: 2027-02-28",
        "-23.80 EUR",
    ];
    year.looks(
        "disputed",
        &[
            (
                "/dashboard",
                &["A payment went back after its credit was spent", "are owed"],
            ),
            ("PAPER 14", &taken),
        ],
    )
    .await;
    let page = year.own().await;
    year.buy(&page, 1, "Ada").await;
    let (_, after) = year.money().await;
    assert_eq!(after, usd("50.00").checked_sub(owed).unwrap());
    year.ask().await;
    year.looks(
        "paid-again",
        &[("PAPER 15", &["Credit 50.00 USD", "59.50 EUR"])],
    )
    .await;
}

/// Every month begins with what the one before has left, and the last ends with what is there.
async fn adds_up(year: &mut Year) {
    year.at("2028-01-30T10:00:00Z");
    let visitor = Visitor::signed_in(&year.gateway, year.key()).await;
    let mut before = json!("0.00");
    for month in 0..13 {
        let (of, number) = (2027 + month / 12, month % 12 + 1);
        let path = format!("/statements/{of}-{number:02}.json");
        let statement: Value = visitor.get(&path).await.json();
        assert_eq!(statement["opening"], before, "{statement}");
        before = statement["closing"].clone();
        tokio::time::sleep(PACE).await;
    }
    let account = year.gateway.account(year.key()).await.customer.account;
    assert_eq!(before, json!(account.balance()));
    year.looks(
        "a-year",
        &[
            ("/dashboard", &[]),
            ("/dashboard/statements/2027-11", &["Statement 2027-11"]),
        ],
    )
    .await;
}
