//! A stream that ends at the balance: how much money it leaves, and how far the provider's bill runs past it.

use farebox_protocol::Family;
use serde_json::json;

use super::bodies::{PROSE, random, said};
use super::hidden;
use crate::support::billing::{Bills, Manner};
use crate::support::load::{Dice, sized};
use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, DIRECTIONS, Gateway, path, routes_speaking};

/// What is left of this money, and what was billed beyond it, in picodollars; a caller of one family at a target of another.
async fn ended(
    (family, target): (Family, Family),
    catalog: &str,
    usd: &str,
    (prompt, answer): (&str, &str),
) -> (i64, i64) {
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
    let routes = routes_speaking(&upstream.base_url(), target);
    let best = format!("best_path = \"{target}\"");
    let catalog = catalog.replace("best_path         = \"chat\"", &best);
    let gateway = Gateway::start(&catalog, &routes).await;
    let key = gateway.key(usd).await;
    let mut body = said(family, json!(prompt), 64_000);
    body["stream"] = json!(true);
    let answer = gateway.post(path(family), &key, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    gateway.settled().await;
    let left = gateway
        .account(&key)
        .await
        .customer
        .account
        .available()
        .picos();
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
            let (left, beyond) = ended((family, family), catalog, "0.30", (&prompt, &answer)).await;
            assert!(left < 15_000_000_000, "{family}: {left} of 0.30 USD left");
            assert!(beyond < 3_000_000_000, "{family}: {beyond} beyond it");
        }
    }
    let dense = |length| random(&mut Dice::new(9), "bcdfghjklmnpqrstvwxz7 ~!q", length);
    for family in Family::ALL {
        // Text that no tokenizer has read may be a token a byte, so a cent's stream of it ends early.
        let (_, beyond) = ended(
            (family, family),
            CATALOG,
            "0.01",
            (&dense(1_500), &dense(6_000)),
        )
        .await;
        assert!(beyond < 100_000_000, "{family}: {beyond} beyond it");
    }
}

/// Every family, its own bytes and translated, at targets whose pace is known and unknown, with little money and with more, prose and
/// text of which no tokenizer makes words. What is left counts on known targets.
#[tokio::test]
async fn endings_of_every_kind_run_past_the_balance_by_less_than_a_hundredth() {
    let dense = |length| random(&mut Dice::new(9), "bcdfghjklmnpqrstvwxz7 ~!q", length);
    let texts = [
        ("prose", PROSE.repeat(20), PROSE.repeat(4_000)),
        ("dense", dense(1_500), dense(100_000)),
    ];
    let own = Family::ALL.map(|family| (family, family));
    let pairs: Vec<_> = own.into_iter().chain(DIRECTIONS).collect();
    let (known, unknown) = (hidden::catalog(", hidden_speed = 130"), hidden::catalog(""));
    let paces = [
        ("known", known),
        ("unknown", unknown),
        ("none", CATALOG.to_owned()),
    ];
    let mut faults = Vec::new();
    println!("| caller → target | text | pace | paid | left | billed beyond |");
    for usd in &["0.05", "0.60"][..sized(1, 2) as usize] {
        let paid = farebox_ledger::Amount::from_usd_str(usd).unwrap().picos();
        for (pace, catalog) in &paces[..sized(1, 3) as usize] {
            for (pair, (name, prompt, answer)) in pairs
                .iter()
                .flat_map(|pair| texts.iter().map(move |text| (pair, text)))
            {
                let (left, beyond) = ended(*pair, catalog, usd, (prompt, answer)).await;
                let percent = |part: i64| part as f64 / paid as f64 * 100.0;
                let row = format!(
                    "| {} → {} | {name} | {pace} | {usd} | {:.2} % | {:.2} % |",
                    pair.0,
                    pair.1,
                    percent(left),
                    percent(beyond)
                );
                println!("{row}");
                let leaves_too_much = left >= (paid / 20).max(2_000_000_000);
                if beyond * 100 >= paid || *pace == "known" && leaves_too_much {
                    faults.push(row);
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
