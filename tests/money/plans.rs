//! Plans under load: agents side by side use up a window before anything else pays.

use farebox_ledger::{
    Amount, Perform, PlanAct, PlanChange, PlanPurchase, SubscriptionId, WindowSpan,
};
use farebox_protocol::Family;
use serde_json::json;

use super::bodies::{PROSE, said};
use crate::support::billing::{Bills, Manner};
use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, Gateway, TestKey, act, path, routes};

/// Most of what is used until the window is charged full that the balance may pay, in per cent.
const FROM_POOL: i64 = 3;

/// 25 dollars a month, 4 of them in five hours.
async fn give_plan(gateway: &Gateway, key: &TestKey) {
    let terms = json!({
        "name": "coder", "title": "Coder, monthly", "price": "20", "allowance": "25", "period": "month",
        "windows": [{ "per": "5h", "usd": "4" }],
    });
    let subscription = SubscriptionId::from_random(1);
    let purchase = PlanPurchase {
        subscription,
        terms: serde_json::from_value(terms).unwrap(),
        periods: 1,
        processor: None,
        invoiced_at: None,
    };
    let given = PlanChange {
        customer: gateway.account(key).await.customer.id,
        subscription,
        change: PlanAct::Give(purchase),
        act: act(),
    };
    gateway.ledger.perform(given).await.unwrap();
}

async fn is_charged_full(gateway: &Gateway, key: &TestKey) -> bool {
    let customer = gateway.account(key).await.customer;
    let mut windows = customer.grants.plans.windows();
    windows.any(|window| window.place.per == WindowSpan::Hours(5) && window.charged == window.bound)
}

#[tokio::test]
async fn eight_agents_use_up_a_window_before_the_balance_pays() {
    let bills = Bills::default();
    let manner = Manner {
        pace: 2,
        piece: 200,
        limited: true,
        ..Manner::default()
    };
    let upstream = ScriptedUpstream::start(bills.answering(&PROSE.repeat(40), manner)).await;
    let gateway = Gateway::fresh(CATALOG, &routes(&upstream.base_url())).await;
    let key = gateway.owner("20").await;
    give_plan(&gateway, &key).await;
    let agents = (0..8).map(|number: usize| {
        let (family, gateway, key) = (Family::ALL[number % 3], &gateway, &key);
        async move {
            let mut turn = 0;
            while !is_charged_full(gateway, key).await {
                turn += 1;
                // A conversation grows with each turn, and starts anew after some.
                let prompt = PROSE.repeat(40 + 25 * number + 60 * (turn % 9));
                let mut body = said(family, json!(prompt), 4_000);
                body["stream"] = json!(true);
                let answer = gateway.post(path(family), key, &body).await;
                assert_eq!(answer.status, 200, "{}", answer.text);
            }
        }
    });
    futures_util::future::join_all(agents).await;
    gateway.settled().await;
    let mut charges = gateway.charges(&key).await;
    charges.sort_by_key(|charge| charge.seq);
    let (mut of_plan, mut of_pool) = (0, 0);
    for charge in &charges {
        let paid = charge.amount.picos().abs();
        let parts = charge.parts.iter().filter(|part| part.grant.is_some());
        let from_plan: i64 = parts.map(|part| part.amount.picos().abs()).sum();
        of_plan += from_plan;
        of_pool += paid - from_plan;
        if of_plan == 4_000_000_000_000 {
            break;
        }
    }
    let (plan, pool) = (Amount::from_picos(of_plan), Amount::from_picos(of_pool));
    println!(
        "{} requests: {plan} of the plan, {pool} of the balance",
        charges.len()
    );
    assert_eq!(
        plan.to_string(),
        "4.00",
        "the window is charged full, and no more"
    );
    assert!(
        of_pool * 100 <= (of_plan + of_pool) * FROM_POOL,
        "{pool} of the balance before the window was full"
    );
    assert_eq!(
        gateway.ledger.verify().await.unwrap().faults,
        Vec::<String>::new()
    );
}
