//! A stream that ends at the balance: how much money it leaves, and how far the provider's bill runs past it.

use farebox_protocol::Family;
use serde_json::json;

use super::bodies::{PROSE, random, said};
use super::hidden;
use crate::support::billing::{Bills, Manner};
use crate::support::load::Dice;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, Gateway, path, routes};

/// What is left of this money, and what was billed beyond it, in picodollars.
async fn ended(family: Family, catalog: &str, usd: &str, prompt: &str, answer: &str) -> (i64, i64) {
    let bills = Bills::default();
    let manner = Manner {
        pace: 1,
        piece: 400,
        limited: true,
        hidden: if catalog.contains("hidden_speed") {
            100
        } else {
            0
        },
        ..Manner::default()
    };
    let upstream = ScriptedUpstream::start(bills.answering(answer, manner)).await;
    let gateway = Gateway::start(catalog, &routes(&upstream.base_url())).await;
    let key = gateway.key(usd).await;
    let mut body = said(family, json!(prompt), 64_000);
    body["stream"] = json!(true);
    let answer = gateway.post(path(family), &key, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    gateway.settled().await;
    let left = gateway.account(&key).await.account.available().picos();
    let billed: i64 = bills.ended(&upstream).iter().map(|one| one.cost()).sum();
    let paid = farebox_ledger::Amount::from_usd_str(usd).unwrap().picos();
    (left, billed - paid)
}

#[tokio::test]
async fn a_stream_that_ends_at_the_balance_leaves_little_and_runs_past_it_by_less() {
    let known = hidden::catalog(", hidden_speed = 130");
    let (prompt, answer) = (PROSE.repeat(80), PROSE.repeat(1_500));
    for family in Family::ALL {
        for catalog in [CATALOG, known.as_str()] {
            let (left, beyond) = ended(family, catalog, "0.30", &prompt, &answer).await;
            assert!(left < 15_000_000_000, "{family}: {left} of 0.30 USD left");
            assert!(beyond < 3_000_000_000, "{family}: {beyond} beyond it");
        }
    }
    let dense = |length| random(&mut Dice::new(9), "bcdfghjklmnpqrstvwxz7 ~!q", length);
    for family in Family::ALL {
        // Text that no tokenizer has read may be a token a byte, so a cent's stream of it ends early.
        let (_, beyond) = ended(family, CATALOG, "0.01", &dense(1_500), &dense(6_000)).await;
        assert!(beyond < 100_000_000, "{family}: {beyond} beyond it");
    }
}
