//! Reasoning that no stream shows is bounded by the key's money, over all its streams together, and costs no honest agent its answer.
//!
//! A target is *known* by `limits.hidden_speed` here; what customers teach is tested in `src/proxy/`. Everyday time runs faster: known
//! targets produce 1,500 tokens a second and unknown ones 15,000, and `limits.speed` is raised by the same factor. `FAREBOX_FULL=1`
//! takes the real speeds.

use std::time::Duration;

use farebox_protocol::Family;
use serde_json::{Value, json};

use super::bodies::{PROSE, said};
use crate::support::billing::{Bills, Manner, Thinks};
use crate::support::load::{Dice, sized};
use crate::support::upstream::{Gate, Script, ScriptedUpstream};
use crate::support::{CATALOG, Gateway, TestKey, path, routes};

/// One context of the test model, in picodollars.
const CONTEXT: i64 = 200_000 * 3_000_000;
/// Streams of one key at once.
pub(super) const STREAMS: usize = 32;
/// Tokens that each of them reasons.
const HIDDEN: u64 = 40_000;
pub(super) const BALANCE: &str = "1";
pub(super) const EVERY: &str = "[\"chat\", \"responses\", \"messages\"]";

/// The catalog with a model that reasons; `speeds` are further limits.
pub(super) fn catalog(speeds: &str) -> String {
    CATALOG
        .replacen(
            "\"tools\", \"streaming\"]",
            "\"tools\", \"streaming\", \"reasoning\"]",
            1,
        )
        .replacen(
            "max_output = 64_000",
            &format!("max_output = 64_000{speeds}"),
            1,
        )
}

/// One attempt: who asks whom, how fast the target reasons, and when its first words come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    pub(super) caller: Family,
    target: Family,
    speed: u64,
    thinks: Thinks,
    known: bool,
    /// Whether the streams declare a limit, of all that the model can produce.
    declared: bool,
}

impl Attempt {
    pub(super) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for (number, caller) in Family::ALL.into_iter().enumerate() {
            for speed in [150, 1_500] {
                for known in [false, true] {
                    for thinks in [
                        Thinks::BeforeFrames,
                        Thinks::BeforeWords,
                        Thinks::BehindWords,
                    ] {
                        let other = Family::ALL[(number + 1 + usize::from(known)) % 3];
                        let attempt = Self {
                            caller,
                            target: caller,
                            speed,
                            thinks,
                            known,
                            declared: true,
                        };
                        let translated = Self {
                            target: other,
                            declared: caller == Family::Messages,
                            ..attempt
                        };
                        // Every day one of the two.
                        let both = [attempt, translated];
                        let first = (number + all.len()) % 2;
                        all.extend(&both[first..][..1]);
                        all.extend(&both[1 - first..][..sized(0, 1) as usize]);
                    }
                }
            }
        }
        all
    }

    /// The target's real speed in this run, and the limits that say what is assumed of it.
    fn speeds(&self) -> (u64, String) {
        let speed = sized(if self.known { 1_500 } else { 15_000 }, self.speed);
        let assumed = speed * 150 / self.speed;
        let known = if self.known {
            format!(", hidden_speed = {speed}")
        } else {
            String::new()
        };
        (speed, format!(", speed = {assumed}{known}"))
    }

    pub(super) fn body(&self) -> Value {
        let mut body = said(self.caller, json!("Think."), 64_000);
        if !self.declared {
            for name in ["max_tokens", "max_output_tokens"] {
                body.as_object_mut().unwrap().remove(name);
            }
        }
        body["stream"] = json!(true);
        body
    }

    /// What its target does, what it asks, and the two files that say so.
    pub(super) async fn place(&self) -> Place {
        let (bills, (speed, speeds)) = (Bills::default(), self.speeds());
        let manner = Manner {
            hidden: HIDDEN,
            thinking: speed,
            thinks: self.thinks,
            limited: true,
            ..Manner::default()
        };
        let upstream = ScriptedUpstream::start(bills.answering("One two.", manner)).await;
        let routes =
            routes(&upstream.base_url()).replacen(EVERY, &format!("[\"{}\"]", self.target), 1);
        let catalog = catalog(&speeds).replace(
            "best_path         = \"chat\"",
            &format!("best_path = \"{}\"", self.target),
        );
        Place {
            bills,
            upstream,
            catalog,
            routes,
        }
    }

    /// All streams of a fresh key; what was billed and charged, in picodollars.
    async fn run(&self) -> (i64, i64) {
        let place = self.place().await;
        let gateway = Gateway::start(&place.catalog, &place.routes).await;
        let key = gateway.key(BALANCE).await;
        let body = self.body();
        let asking = (0..STREAMS).map(|_| gateway.post(path(self.caller), &key, &body));
        futures_util::future::join_all(asking).await;
        gateway.settled().await;
        (place.billed(), charged(&gateway, &key).await)
    }

    /// A row of the table, and what breaks P10 in it.
    #[expect(
        clippy::print_stdout,
        reason = "the table is read by whoever runs the test"
    )]
    pub(super) fn judge(&self, where_: &str, (billed, charged): (i64, i64)) -> Option<String> {
        let usd = |picos: i64| picos as f64 / 1e12;
        let paid = farebox_ledger::Amount::from_usd_str(BALANCE)
            .unwrap()
            .picos();
        let beyond = billed - charged - billed / 10 - CONTEXT.min(paid / 2);
        println!(
            "| {where_} {self:?} | {:.2} | {:.2} | {:+.2} |",
            usd(billed),
            usd(charged),
            usd(beyond)
        );
        (beyond > 0 || charged < paid / 2)
            .then(|| format!("{where_} {self:?}: billed {billed}, charged {charged}"))
    }
}

/// An upstream with its bills, and the files of a gateway in front of it.
pub(super) struct Place {
    bills: Bills,
    upstream: ScriptedUpstream,
    pub(super) catalog: String,
    pub(super) routes: String,
}

impl Place {
    pub(super) fn billed(&self) -> i64 {
        let bills = self.bills.ended(&self.upstream);
        bills.iter().map(|one| one.cost()).sum()
    }
}

pub(super) async fn charged(gateway: &Gateway, key: &TestKey) -> i64 {
    let charges = gateway.charges(key).await;
    charges.iter().map(|charge| -charge.amount.picos()).sum()
}

/// 32 streams that reason unseen, each with a limit that the key could pay for that one alone.
#[tokio::test]
async fn streams_that_reason_unseen_are_bounded_by_the_money_of_their_key() {
    let only = std::env::var("FAREBOX_ONLY").unwrap_or_default();
    let mut faults = Vec::new();
    println!("| attempt | billed | charged | against P10 |");
    let attempts: Vec<Attempt> = Attempt::all()
        .into_iter()
        .filter(|attempt| format!("{attempt:?}").contains(&only))
        .collect();
    for side_by_side in attempts.chunks(3) {
        let sums = futures_util::future::join_all(side_by_side.iter().map(Attempt::run)).await;
        let judged = side_by_side.iter().zip(sums);
        faults.extend(judged.filter_map(|(attempt, sums)| attempt.judge("alone", sums)));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// An agent's request with a limit of 32,000.
fn agent(dice: &mut Dice) -> (Family, Value) {
    let family = Family::ALL[dice.below(3) as usize];
    let mut body = said(family, json!(PROSE.repeat(40)), 32_000);
    body["stream"] = json!(true);
    (family, body)
}

/// Ten agents on five dollars, whose answers have 500 to 3,000 tokens: what came of each, and how many ran at once.
async fn ten_agents(speeds: &str) -> (Vec<String>, usize) {
    let (bills, gate, mut dice) = (Bills::default(), Gate::new(), Dice::new(11));
    let upstream = {
        let gate = gate.clone();
        ScriptedUpstream::start(Script::by(move |seen, number| {
            // 23 tokens each, and some reasoning before them.
            let text = PROSE.repeat(11 + dice.below(100) as usize) + "the end";
            let manner = Manner {
                hidden: 200 + dice.below(200),
                limited: true,
                piece: 200,
                ..Manner::default()
            };
            bills.reply(seen, number, &text, manner).gated(&gate)
        }))
        .await
    };
    let gateway = Gateway::start(&catalog(speeds), &routes(&upstream.base_url())).await;
    let (key, mut dice) = (gateway.key("5").await, Dice::new(12));
    let asks: Vec<(Family, Value)> = (0..10).map(|_| agent(&mut dice)).collect();
    let asking = asks
        .iter()
        .map(|(family, body)| gateway.post(path(*family), &key, body));
    let opening = async {
        // Whoever is admitted is asked within a moment; nobody is answered before.
        let mut asked = 0;
        for _ in 0..50 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            asked = upstream.requests().len();
        }
        gate.open();
        asked
    };
    let (answers, asked) = tokio::join!(futures_util::future::join_all(asking), opening);
    gateway.settled().await;
    let ends = gateway.charges(&key).await;
    let ends: Vec<String> = ends
        .iter()
        .map(|charge| charge.bill.as_ref().unwrap().end_reason.to_string())
        .collect();
    for answer in &answers {
        assert!(
            answer.status != 200 || answer.text.contains("the end"),
            "{speeds}: {}",
            answer.text
        );
    }
    (ends, asked)
}

#[tokio::test]
async fn ten_agents_on_five_dollars_get_whole_answers() {
    let (ends, asked) = ten_agents(", hidden_speed = 130").await;
    assert_eq!((ends, asked), (vec!["stop".to_owned(); 10], 10));
    let (ends, asked) = ten_agents("").await;
    assert!(asked >= 8, "{asked} at once on an unknown target");
    assert!(ends.iter().all(|end| end == "stop"), "{ends:?}");
}
