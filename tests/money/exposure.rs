//! An honest provider's bill compared with the charges, over many requests of each kind at once (promise P10).
//!
//! The provider has its own counting code (`support/billing.rs`). Each kind of customer, honest or not, sends rounds of 100
//! requests with one key, up to 64 at once, because the promise is about any 100 requests of one key. Everyday runs do a round or
//! two, `FAREBOX_FULL=1` a minute of each kind; the figures are printed, and summed up in `docs/results/exposure.md`.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use farebox_protocol::Family;
use tokio::sync::Semaphore;

use super::adversary;
use super::attacks::{self, Attack, Written};
use super::oddities;
use crate::support::billing::Bills;
use crate::support::load::{Dice, sized};
use crate::support::upstream::{Script, ScriptedUpstream, Seen};
use crate::support::{CATALOG, Gateway, path, routes};

/// One context of the test model, in picodollars.
const CONTEXT: i64 = 200_000 * 3_000_000;
/// Requests of a round, and how many of them run at once.
const ROUND: usize = 100;
const AT_ONCE: usize = 64;

/// The sums billed, charged and booked as loss.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    asked: usize,
    answered: usize,
    billed: i64,
    charged: i64,
    loss: i64,
    /// What was billed by the clock between the provider's first frame and the customer's, and between a leaving and its news.
    late: i64,
    /// The most of any round that was billed beyond the charges, a tenth of the bill, and one context; negative: within them.
    beyond: i64,
}

impl Sums {
    fn add(&mut self, round: Self) {
        let beyond = round.billed - round.late - round.charged - round.billed / 10 - CONTEXT;
        self.beyond = if self.asked == 0 {
            beyond
        } else {
            self.beyond.max(beyond)
        };
        self.asked += round.asked;
        self.answered += round.answered;
        self.billed += round.billed;
        self.charged += round.charged;
        self.loss += round.loss;
    }

    fn ratio(&self) -> f64 {
        self.billed as f64 / (self.charged + self.loss).max(1) as f64
    }
}

/// A round of one kind: a fresh gateway and provider, one key, and requests that come as fast as they may.
async fn round(attack: &Attack, seed: u64) -> Sums {
    let bills = Bills::default();
    let script = {
        let (bills, manner, mut dice) = (bills.clone(), attack.manner, Dice::new(seed));
        let answers = attack.answers;
        Script::by(move |seen, number| {
            let answer = answers(&mut dice);
            bills.reply(seen, number, &answer, manner(&mut dice))
        })
    };
    // Tolerant: an adversary looks for the provider that serves what others refuse.
    let upstream = ScriptedUpstream::tolerant(script).await;
    let catalog = if attack.reasons {
        CATALOG.replacen(
            "\"tools\", \"streaming\"]",
            "\"tools\", \"streaming\", \"reasoning\"]",
            1,
        )
    } else {
        CATALOG.to_owned()
    };
    let first = attack.speaks.split('"').nth(1).unwrap();
    let catalog = catalog.replace(
        "best_path         = \"chat\"",
        &format!("best_path         = \"{first}\""),
    );
    let settings = format!("{}\nspeaks", attack.provider);
    let routes = routes(&upstream.base_url())
        .replacen("speaks", &settings, 1)
        .replacen(attacks::EVERY, attack.speaks, 1);
    let gateway = Gateway::start(&catalog, &routes).await;
    let key = gateway.key(attack.balance).await;
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut dice = Dice::new(seed);
    let (mut others, watched) = (0, Cell::new(Duration::ZERO));
    if attack.seen_before {
        let other = gateway.key(attack.balance).await;
        let (family, body) = (attack.asks)(&mut dice);
        assert!(
            send(
                &gateway,
                &other.secret,
                family,
                (attack.written)(&mut dice, body.to_string()),
                false,
                &Cell::new(None)
            )
            .await
        );
        others = bills.all().len();
    }
    let asking = (0..ROUND).map(|_| {
        let (family, body) = (attack.asks)(&mut dice);
        let (body, headers) = (attack.written)(&mut dice, body.to_string());
        let leaves = (attack.leaves)(&mut dice);
        let (gateway, key, places, watched) = (&gateway, &key, Arc::clone(&places), &watched);
        async move {
            let _place = places.acquire().await.unwrap();
            let leaves = leaves.map(Duration::from_millis);
            let began = Cell::new(None);
            let asking = send(
                gateway,
                &key.secret,
                family,
                (body, headers),
                attack.deaf,
                &began,
            );
            let served = match leaves {
                None => asking.await,
                Some(after) if attack.by_the_clock || attack.deaf => {
                    leave_behind_the_head(asking, &began, after).await
                }
                Some(after) => tokio::time::timeout(after, asking).await.unwrap_or(false),
            };
            watched.set(
                watched.get()
                    + began
                        .get()
                        .map_or(Duration::ZERO, |began: Instant| began.elapsed()),
            );
            served
        }
    });
    let answered = futures_util::future::join_all(asking).await;
    gateway.settled().await;
    let charges = gateway.charges(&key).await;
    let bill = bills.ended(&upstream).split_off(others);
    let billed = bill.iter().map(|billed| billed.cost()).sum();
    Sums {
        asked: ROUND,
        answered: answered.into_iter().filter(|answered| *answered).count(),
        billed,
        late: if attack.by_the_clock {
            late(billed, watched.get(), &upstream)
        } else {
            0
        },
        charged: charges.iter().map(|charge| -charge.amount.picos()).sum(),
        loss: charges
            .iter()
            .map(|charge| charge.bill.as_ref().unwrap().loss.picos())
            .sum(),
        beyond: 0,
    }
}

/// Of what is billed by the clock, the part for time that nobody watched: on a busy machine the gateway reads a first frame late,
/// and the provider hears late that somebody has left.
fn late(billed: i64, watched: Duration, upstream: &ScriptedUpstream) -> i64 {
    let open = |seen: Seen| {
        seen.closed_at
            .map_or(Duration::ZERO, |closed| closed - seen.at)
    };
    let open: Duration = upstream.requests().into_iter().map(open).sum();
    (billed as f64 * (1.0 - watched.as_secs_f64() / open.as_secs_f64()).max(0.0)) as i64
}

/// Leaves so long after the answer's head has come.
async fn leave_behind_the_head(
    asking: impl Future<Output = bool>,
    began: &Cell<Option<Instant>>,
    after: Duration,
) -> bool {
    let leaving = async {
        while began.get().is_none_or(|began| began.elapsed() < after) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        served = asking => served,
        () = leaving => false,
    }
}

/// Sends one request and reads its answer to the end, or nothing of it; whether it was served. `began`: when its head came.
async fn send(
    gateway: &Gateway,
    secret: &str,
    family: Family,
    (body, headers): Written,
    deaf: bool,
    began: &Cell<Option<Instant>>,
) -> bool {
    let url = format!("{}{}", gateway.base, path(family));
    let asking = headers
        .iter()
        .fold(gateway.client.post(url), |asking, (name, value)| {
            asking.header(*name, *value)
        });
    let asking = asking
        .header("content-type", "application/json")
        .bearer_auth(secret)
        .body(body);
    let Ok(sent) = asking.send().await else {
        return false;
    };
    began.set(Some(Instant::now()));
    let served = sent.status().is_success();
    if deaf {
        std::future::pending::<()>().await;
    }
    let _ = sent.bytes().await;
    served
}

/// All rounds of one kind within this time, but at least `rounds`.
async fn run(attack: &Attack, rounds: u64, time: Duration) -> Sums {
    let (mut sums, began) = (Sums::default(), Instant::now());
    let mut done = 0;
    while done < rounds || began.elapsed() < time {
        sums.add(round(attack, done + 1).await);
        done += 1;
    }
    sums
}

/// A line of the table that `docs/results/exposure.md` sums up.
fn row(attack: &Attack, sums: &Sums) -> String {
    format!(
        "| {} | {} | {} | {:.2} | {:.2} | {:.2} | {:.3} | {:+.2} |",
        attack.name,
        sums.asked,
        sums.answered,
        sums.billed as f64 / 1e12,
        sums.charged as f64 / 1e12,
        sums.loss as f64 / 1e12,
        sums.ratio(),
        sums.beyond as f64 / 1e12,
    )
}

fn judge(attack: &Attack, sums: &Sums, faults: &mut Vec<String>) {
    let spent = sums.charged + sums.loss;
    if sums.beyond > 0 {
        faults.push(format!(
            "{}: one round is {:.2} USD beyond the promise",
            attack.name,
            sums.beyond as f64 / 1e12
        ));
    }
    // Nobody is charged for what was never produced, either.
    if spent > sums.billed + sums.billed / 10 + CONTEXT && !attack.dear {
        faults.push(format!(
            "{}: charged {spent} for {}",
            attack.name, sums.billed
        ));
    }
}

#[tokio::test]
async fn what_is_billed_is_charged_whoever_asks() {
    let only = std::env::var("FAREBOX_ONLY").unwrap_or_default();
    println!(
        "| who | asked | answered | billed | charged | loss | billed ÷ (charged + loss) | worst 100 against P10 |"
    );
    let mut faults = Vec::new();
    for attack in attacks::all()
        .iter()
        .chain(&oddities::all())
        .filter(|attack| attack.name.contains(&only))
    {
        let sums = run(attack, 1, Duration::from_secs(sized(0, 60))).await;
        println!("{}", row(attack, &sums));
        judge(attack, &sums, &mut faults);
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The attempts of an adversary who knows how requests are counted.
#[tokio::test]
async fn an_adversary_loses_its_own_money() {
    let only = std::env::var("FAREBOX_ONLY").unwrap_or_default();
    let mut faults = Vec::new();
    for attack in adversary::all()
        .iter()
        .filter(|attack| attack.name.contains(&only))
    {
        let sums = run(attack, 1, Duration::from_secs(sized(0, 60))).await;
        println!("{}", row(attack, &sums));
        judge(attack, &sums, &mut faults);
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Everything at random: families, streams, texts, pictures, documents, tools, answers, manners, and when somebody leaves.
#[tokio::test]
async fn random_askings_and_leavings_are_charged() {
    let attack = attacks::anything();
    let sums = run(&attack, sized(3, 100), Duration::ZERO).await;
    println!("{}", row(&attack, &sums));
    let mut faults = Vec::new();
    judge(&attack, &sums, &mut faults);
    assert!(faults.is_empty() && sums.answered > 0, "{faults:#?}");
}
