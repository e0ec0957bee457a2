//! Attacks as data: what is sent when, by whom, to which providers; and the figure by which they are judged.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::asks::Ask;
use super::world::{House, Model, PLAIN, Purse, Setting, World};
use crate::support::billing::provider::{HONEST, Nature};
use crate::support::sized;

/// What happens next.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// All side by side; the next step waits until they have ended.
    Send(Vec<Ask>),
    /// One after the other, so many seconds apart; nobody waits for them.
    Begin(Vec<Ask>, f64),
    /// Whatever has begun has ended.
    Ended,
    /// So many seconds pass.
    Rest(f64),
    /// So many hours pass on the calendar.
    Jump(u64),
    /// A new customer pays the same as the one before.
    NewPurse,
    /// A payment of so many dollars.
    TopUp(&'static str),
    /// A cap of so many dollars on the key.
    Cap(&'static str),
    /// The first provider is different from now on.
    Becomes(fn(&mut Nature)),
    /// What was so far is the exception that the promise names.
    Forgive,
}

/// A scenario.
#[derive(Debug, Clone)]
pub(super) struct Attack {
    pub(super) name: String,
    pub(super) dollars: &'static str,
    pub(super) setting: Setting,
    pub(super) steps: Vec<Step>,
}

/// What came of it, in picodollars.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    pub(super) sent: usize,
    pub(super) served: usize,
    pub(super) billed: i64,
    pub(super) charged: i64,
    /// How often each other answer came.
    pub(super) others: BTreeMap<String, usize>,
    /// The same with what is forgiven.
    pub(super) billed_in_all: i64,
    /// One context, at most half of what was paid, of each purse that is judged.
    pub(super) context: i64,
}

impl Outcome {
    /// Billed ÷ (charged + one context).
    pub(super) fn times(&self) -> f64 {
        self.billed as f64 / (self.charged + self.context).max(1) as f64
    }
}

/// A provider and two models of it, `plain` and `reasons`, in a time that is so many times as fast.
pub(super) fn setting(pace: u32, nature: Nature) -> Setting {
    let house = House { nature, lines: "" };
    let reasons = Model {
        slug: "reasons",
        reasons: true,
        ..PLAIN
    };
    Setting {
        // At full size the machine has more time for each second.
        pace: sized(u64::from(pace), u64::from(pace.min(20))) as u32,
        gateways: 1,
        houses: vec![house],
        models: vec![PLAIN, reasons],
        seed: 1,
    }
}

/// The usual provider at another speed.
pub(super) fn at(speed: f64) -> Nature {
    Nature { speed, ..HONEST }
}

/// The same request so many times.
pub(super) fn times(count: usize, ask: &Ask) -> Vec<Ask> {
    vec![ask.clone(); count]
}

/// An attack on one purse.
pub(super) fn attack(
    name: &str,
    dollars: &'static str,
    setting: Setting,
    steps: Vec<Step>,
) -> Attack {
    Attack {
        name: name.to_owned(),
        dollars,
        setting,
        steps,
    }
}

/// Plays it. `None` where something for it is not installed.
pub(super) async fn play(attack: &Attack, seed: u64) -> Option<Outcome> {
    let setting = Setting {
        seed,
        ..attack.setting.clone()
    };
    let world = Arc::new(World::start(&setting).await?);
    let mut purses = vec![Arc::new(world.purse(attack.dollars).await)];
    let (mut running, mut before) = (JoinSet::new(), Outcome::default());
    // The first purse that is judged.
    let mut from = 0;
    let spawn = |running: &mut JoinSet<()>, purse: &Arc<Purse>, ask: &Ask| {
        let (world, purse, ask) = (Arc::clone(&world), Arc::clone(purse), ask.clone());
        running.spawn(async move {
            world.insist(&purse, &ask).await;
        });
    };
    for step in &attack.steps {
        let purse = Arc::clone(purses.last().unwrap());
        match step {
            Step::Send(asks) => {
                let mut own = JoinSet::new();
                for ask in asks {
                    spawn(&mut own, &purse, ask);
                }
                while own.join_next().await.transpose().unwrap().is_some() {}
            }
            Step::Begin(asks, apart) => {
                for ask in asks {
                    spawn(&mut running, &purse, ask);
                    world.rest(*apart).await;
                }
            }
            Step::Ended => while running.join_next().await.transpose().unwrap().is_some() {},
            Step::Rest(seconds) => world.rest(*seconds).await,
            Step::Jump(hours) => {
                world.settle().await;
                world.jump(*hours);
            }
            Step::NewPurse => {
                if before.sent > 0 && from == purses.len() - 1 {
                    from = purses.len();
                }
                purses.push(Arc::new(world.purse(attack.dollars).await));
            }
            Step::TopUp(dollars) => world.top_up(&purse, dollars).await,
            Step::Cap(dollars) => world.cap(&purse, dollars).await,
            Step::Becomes(change) => world.providers[0].becomes(change),
            Step::Forgive => {
                before = sums(&world, &purses).await;
                from = purses.len() - 1;
            }
        }
    }
    while running.join_next().await.transpose().unwrap().is_some() {}
    let all = sums(&world, &purses).await;
    let context = purses[from..].iter().map(|purse| purse.context());
    Some(Outcome {
        sent: all.sent - before.sent,
        served: all.served - before.served,
        billed: all.billed - before.billed,
        charged: all.charged - before.charged,
        billed_in_all: all.billed,
        others: all.others,
        context: context.sum(),
    })
}

async fn sums(world: &World, purses: &[Arc<Purse>]) -> Outcome {
    world.settle().await;
    let mut all = Outcome {
        billed: world.billed(),
        ..Outcome::default()
    };
    for purse in purses {
        let charges = world.charges(purse).await;
        all.charged += charges.iter().map(|charge| charge.picos).sum::<i64>();
        let log = purse.log.lock().unwrap();
        all.sent += log.iter().filter(|told| !told.again).count();
        for told in log.iter().filter(|told| told.status != 200 && !told.again) {
            *all.others.entry(told.reason()).or_default() += 1;
        }
        all.served += log.iter().filter(|told| told.status == 200).count();
    }
    all
}
