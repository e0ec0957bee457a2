//! Honest people: agents who think, ask, and try again as programs do, until their money is gone; and what they got for it.
#![expect(clippy::print_stdout, reason = "figures are for people, too")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::task::JoinSet;

use super::asks::{Ask, Told};
use super::foreign::{self, Other};
use super::world::{Charged, Purse, Setting, World};
use crate::support::billing::provider::Plays;
use crate::support::load::Dice;
use crate::support::sized;

/// Makes the requests of one agent.
pub(super) type Maker = Box<dyn FnMut(&mut Dice) -> Ask + Send>;

/// How people work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Each agent goes on until the money is gone; every day it stops after so many requests.
    UntilTheEnd(u64),
    /// So many requests, divided among all.
    Batch(u64),
}

/// People on one purse.
#[derive(Clone)]
pub(super) struct People {
    pub(super) name: &'static str,
    pub(super) dollars: &'static str,
    pub(super) agents: u64,
    pub(super) setting: Setting,
    pub(super) work: Work,
    /// The requests of the agent with this number.
    pub(super) asks: fn(u64, &mut Dice) -> Maker,
}

/// What people got, over all seeds.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    pub(super) requests: usize,
    pub(super) served: usize,
    pub(super) refused_falsely: usize,
    pub(super) gave_up: usize,
    pub(super) cut: usize,
    pub(super) cut_too_early: usize,
    /// In thousandths, of each seed: the part of the purse that was charged, and of that what paid for answers that were cut.
    pub(super) used: Vec<i64>,
    pub(super) on_cut: Vec<i64>,
    /// Charged ÷ billed in thousandths: what was finished, and what was left.
    pub(super) finished: Vec<i64>,
    pub(super) left: Vec<i64>,
    /// Seconds until the first byte beyond which one in twenty was.
    pub(super) waited: f64,
    /// How often each refusal came.
    pub(super) refusals: BTreeMap<String, usize>,
    /// Billed beyond the purse, in thousandths of it.
    pub(super) overshoot: Vec<i64>,
    /// Thousands of tokens that a dollar bought.
    pub(super) thousands_a_dollar: Vec<u64>,
    /// Everything was served or the money was gone.
    pub(super) to_the_end: bool,
}

/// What an agent does about an answer.
enum Next {
    GoesOn,
    GivesUp,
    Ends,
}

/// An even number between two, by their logarithms.
pub(super) fn between(dice: &mut Dice, low: f64, high: f64) -> u64 {
    let even = dice.below(1_000_000) as f64 / 1e6;
    (low.ln() + even * (high.ln() - low.ln())).exp() as u64
}

pub(super) fn chance(dice: &mut Dice, percent: u64) -> bool {
    dice.below(100) < percent
}

/// Sends one request, and again up to twice if money was in use.
async fn one(world: &World, purse: &Purse, ask: &Ask) -> Next {
    for tries in 0.. {
        let told = world.insist(purse, ask).await;
        if told.status != 429 {
            return Next::GoesOn;
        }
        match told.code.as_str() {
            "balance_in_use" if tries < 2 => {
                purse.again(told.plan);
                world.rest(1.0).await;
            }
            "insufficient_quota" | "exposure_limit" => return Next::Ends,
            _ => return Next::GivesUp,
        }
    }
    unreachable!("the third try returns")
}

async fn agent(world: Arc<World>, purse: Arc<Purse>, mut asks: Maker, mut dice: Dice, most: u64) {
    world.rest(dice.below(3_000) as f64 / 1e3).await;
    let mut failures = 0;
    for _ in 0..most {
        match one(&world, &purse, &asks(&mut dice)).await {
            Next::GoesOn => failures = 0,
            Next::Ends => return,
            Next::GivesUp => {
                failures += 1;
                if failures == 3 {
                    return;
                }
                world.rest(5.0).await;
            }
        }
        world.rest(1.0 + dice.below(3_000) as f64 / 1e3).await;
    }
}

async fn worker(
    world: Arc<World>,
    purse: Arc<Purse>,
    mut asks: Maker,
    mut dice: Dice,
    left: Arc<AtomicU64>,
) {
    let take = |left: &AtomicU64| {
        let less = |count: u64| count.checked_sub(1);
        left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
            .is_ok()
    };
    while take(&left) {
        one(&world, &purse, &asks(&mut dice)).await;
    }
}

/// One run; `None` where something for it is not installed.
async fn run(
    people: &People,
    seed: u64,
    other: Option<Other>,
) -> Option<(Vec<Told>, Vec<Charged>, i64)> {
    let setting = Setting {
        seed,
        ..people.setting.clone()
    };
    let mut setting = setting;
    if other.is_some() {
        // What another gateway sends is not ours to judge.
        setting.houses[0].nature.plays = Plays::Lenient;
    }
    let mut world = World::start(&setting).await?;
    if let Some(other) = other {
        let dollars = people.dollars.parse().unwrap();
        world.asks(other, &foreign::installed()?, dollars).await;
    }
    let world = Arc::new(world);
    let purse = Arc::new(world.purse(people.dollars).await);
    let mut all = JoinSet::new();
    let left = Arc::new(AtomicU64::new(match people.work {
        Work::Batch(total) => total,
        Work::UntilTheEnd(_) => 0,
    }));
    for number in 0..people.agents {
        let mut dice = Dice::new(seed * 1_000 + number);
        let asks = (people.asks)(number, &mut dice);
        let (world, purse) = (Arc::clone(&world), Arc::clone(&purse));
        match people.work {
            Work::UntilTheEnd(few) => {
                let most = sized(few, u64::MAX);
                all.spawn(agent(world, purse, asks, dice, most));
            }
            Work::Batch(_) => {
                all.spawn(worker(world, purse, asks, dice, Arc::clone(&left)));
            }
        }
    }
    while all.join_next().await.transpose().unwrap().is_some() {}
    world.settle().await;
    let charges = world.charges(&purse).await;
    let log = std::mem::take(&mut *purse.log.lock().unwrap());
    Some((log, charges, purse.paid()))
}

fn thousandths(part: i64, whole: i64) -> i64 {
    i64::try_from(i128::from(part) * 1_000 / i128::from(whole.max(1))).unwrap()
}

impl Figures {
    fn add(&mut self, log: &[Told], charges: &[Charged], paid: i64) {
        let asked = log.iter().filter(|told| !told.again);
        self.requests += asked.count();
        let served: Vec<&Told> = log.iter().filter(|told| told.status == 200).collect();
        self.served += served.len();
        for told in log.iter().filter(|told| told.status != 200) {
            *self.refusals.entry(told.reason()).or_default() += 1;
        }
        let all: i64 = log.iter().map(|told| told.billed).sum();
        let tokens: u64 = log.iter().map(|told| told.tokens).sum();
        let cents = u64::try_from(all / 10_000_000_000).unwrap().max(1);
        self.thousands_a_dollar.push(tokens / 10 / cents);
        self.overshoot.push(thousandths((all - paid).max(0), paid));
        let falsely = log.iter().filter(|told| told.refused_falsely());
        self.refused_falsely += falsely.count();
        let gave_up = |told: &&Told| told.code == "balance_in_use" && !told.again;
        self.gave_up += log.iter().filter(gave_up).count();
        let cut: Vec<&Told> = served.iter().copied().filter(|told| told.cut).collect();
        self.cut += cut.len();
        self.cut_too_early += cut.iter().filter(|told| told.spare).count();
        let charged = |plan: u64| -> i64 {
            let name = format!("up-{plan}");
            let own = charges.iter();
            own.filter(|charge| charge.answer.as_deref() == Some(&*name))
                .map(|charge| charge.picos)
                .sum()
        };
        let all: i64 = charges.iter().map(|charge| charge.picos).sum();
        self.used.push(thousandths(all, paid));
        let on_cut = cut.iter().map(|told| charged(told.plan)).sum();
        self.on_cut.push(thousandths(on_cut, all));
        let finished: Vec<&&Told> = served.iter().filter(|told| told.whole).collect();
        let billed: i64 = finished.iter().map(|told| told.billed).sum();
        for told in &finished {
            let own = charged(told.plan);
            if own != told.billed {
                println!("charged {own} for {}: {told:?}", told.billed);
            }
        }
        let paid_for: i64 = finished.iter().map(|told| charged(told.plan)).sum();
        self.finished.push(thousandths(paid_for, billed));
        // Whoever left before the first frame has no answer to be found by.
        let left = log.iter().filter(|told| !told.whole && told.status != 429);
        let billed: i64 = left.map(|told| told.billed).sum();
        if billed > 0 {
            self.left.push(thousandths(all - paid_for, billed));
        }
        let streams = served.iter().filter(|told| told.text.contains("data: "));
        let mut waits: Vec<f64> = streams.map(|told| told.first).collect();
        waits.sort_by(f64::total_cmp);
        let late = waits.get(waits.len() * 19 / 20).copied().unwrap_or(0.0);
        self.waited = self.waited.max(late);
        self.to_the_end |=
            sized(0, 1) == 1 || log.iter().any(|told| told.code == "insufficient_quota");
    }
}

/// Their figures, over one seed every day and four at full size. Several rows ask for the same people.
pub(super) async fn figures(people: &People) -> Option<Arc<Figures>> {
    type Known = Mutex<
        Vec<(
            &'static str,
            Arc<tokio::sync::OnceCell<Option<Arc<Figures>>>>,
        )>,
    >;
    static KNOWN: Known = Mutex::new(Vec::new());
    let cell = {
        let mut known = KNOWN.lock().unwrap();
        let found = known.iter().find(|(name, _)| *name == people.name);
        let cell = found.map(|(_, cell)| Arc::clone(cell)).unwrap_or_default();
        known.push((people.name, Arc::clone(&cell)));
        cell
    };
    let made = cell.get_or_init(|| async {
        let mut all = Figures::default();
        for seed in 1..=sized(1, 4) {
            let (log, charges, paid) = run(people, seed, None).await?;
            all.add(&log, &charges, paid);
        }
        println!("{}: {all:?}", people.name);
        Some(Arc::new(all))
    });
    made.await.clone()
}

/// The figures of the same people at another gateway, which has no ledger: what was billed counts.
pub(super) async fn figures_at(people: &People, other: Other) -> Option<Figures> {
    let mut all = Figures::default();
    for seed in 1..=sized(1, 4) {
        let (log, _, paid) = run(people, seed, Some(other)).await?;
        let charges: Vec<Charged> = (log.iter().filter(|told| told.billed > 0))
            .map(|told| Charged {
                picos: told.billed,
                answer: Some(format!("up-{}", told.plan)),
            })
            .collect();
        all.add(&log, &charges, paid);
    }
    println!("{} at {other:?}: {all:?}", people.name);
    Some(all)
}
