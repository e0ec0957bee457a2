//! A stream that ends at the balance: how much money it leaves, and how far the provider's bill runs past it.
//!
//! The provider stops at the limit it is sent, as all do. A piece is a word or, as some providers send them, 400 characters.

use farebox_ledger::Amount;
use farebox_protocol::Family;
use serde_json::json;

use super::bodies::{PROSE, random, said};
use super::hidden;
use crate::support::billing::{Bills, Manner};
use crate::support::load::{Dice, sized};
use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, Gateway, path, routes};

/// What is left of a key at its end in any case: 0.002 USD in picodollars.
const LITTLE: i64 = 2_000_000_000;

/// One stream that its key cannot pay to the end.
#[derive(Debug, Clone, Copy)]
struct Ending {
    caller: Family,
    target: Family,
    usd: &'static str,
    dense: bool,
    /// Characters of a piece.
    piece: usize,
    /// Whether the model reasons, at a known pace.
    reasons: bool,
}

impl Ending {
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for caller in Family::ALL {
            for target in Family::ALL {
                for usd in ["0.01", "0.05", "0.30", "1.00"] {
                    for dense in [false, true] {
                        for piece in [4, 400] {
                            for reasons in [false, true] {
                                all.push(Self {
                                    caller,
                                    target,
                                    usd,
                                    dense,
                                    piece,
                                    reasons,
                                });
                            }
                        }
                    }
                }
            }
        }
        all
    }

    fn text(&self, length: usize) -> String {
        if self.dense {
            random(&mut Dice::new(9), "bcdfghjklmnpqrstvwxz7 ~!q", length)
        } else {
            PROSE.chars().cycle().take(length).collect()
        }
    }

    /// What is left of the key's money, and what was billed beyond it, in picodollars.
    async fn run(&self) -> (i64, i64, String) {
        let bills = Bills::default();
        let paid = Amount::from_usd_str(self.usd).unwrap().picos();
        // A quarter of the money goes into the prompt, and the answer is longer than the rest can pay.
        let tokens = (paid / 4 / 3_000_000) as usize;
        let each = if self.dense { 2 } else { 4 };
        let (prompt, answer) = (
            self.text(tokens * each),
            self.text((paid / 15_000_000) as usize * (each + 1)),
        );
        let manner = Manner {
            pace: 1,
            piece: self.piece,
            limited: true,
            hidden: if self.reasons { 100 } else { 0 },
            ..Manner::default()
        };
        let upstream = ScriptedUpstream::start(bills.answering(&answer, manner)).await;
        let known = hidden::catalog(", hidden_speed = 130");
        let catalog = if self.reasons { &known } else { CATALOG };
        let catalog = catalog.replace(
            "best_path         = \"chat\"",
            &format!("best_path = \"{}\"", self.target),
        );
        let routes = routes(&upstream.base_url()).replacen(
            hidden::EVERY,
            &format!("[\"{}\"]", self.target),
            1,
        );
        let gateway = Gateway::start(&catalog, &routes).await;
        let key = gateway.key(self.usd).await;
        let mut body = said(self.caller, json!(prompt), 64_000);
        body["stream"] = json!(true);
        let answer = gateway.post(path(self.caller), &key, &body).await;
        assert_eq!(answer.status, 200, "{self:?}: {}", answer.text);
        gateway.settled().await;
        let left = gateway.account(&key).await.account.available().picos();
        let billed: i64 = bills.ended(&upstream).iter().map(|one| one.cost()).sum();
        let charge = gateway.charges(&key).await.pop().unwrap();
        let bill = charge.bill.unwrap();
        (
            left,
            billed - paid,
            format!("{} {:?}", bill.end_reason, bill.evidence),
        )
    }
}

#[tokio::test]
async fn a_stream_that_ends_at_the_balance_leaves_little_and_runs_past_it_by_less() {
    let only = std::env::var("FAREBOX_ONLY").unwrap_or_default();
    let mut faults = Vec::new();
    println!("| ending | left, % | beyond, % |");
    let all: Vec<Ending> = Ending::all()
        .into_iter()
        .filter(|one| format!("{one:?}").contains(&only))
        .collect();
    for side_by_side in all.chunks(4) {
        let ends = futures_util::future::join_all(side_by_side.iter().map(Ending::run)).await;
        for (ending, (left, beyond, how)) in side_by_side.iter().zip(ends) {
            let paid = Amount::from_usd_str(ending.usd).unwrap().picos();
            let part = |picos: i64| picos as f64 / paid as f64 * 100.0;
            let bad = left >= LITTLE.max(paid / 20) || beyond >= paid / 100;
            println!(
                "| {ending:?} | {:.1} | {:.1} | {how} {}",
                part(left),
                part(beyond),
                if bad { "BAD" } else { "" }
            );
            if bad {
                faults.push(format!("{ending:?}: {left} left, {beyond} beyond"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    let _ = sized(0, 1);
}
