//! Requests and providers that are out of bounds: limits of every size, the last dollar, and counts that cannot be.

use std::sync::Arc;

use farebox_doubles::Vendor;
use farebox_protocol::Family;
use serde_json::json;
use tokio::task::JoinSet;

use super::asks::{Ask, Told, ask};
use super::scenario::{Attack, Step, at, attack, play, setting, times};
use super::world::{Setting, World};
use crate::support::billing::making::{USUAL, hidden, shown, whole};
use crate::support::billing::provider::{Binds, Claims, First, HONEST, Nature, Plays};

/// A thousandth of a dollar, in picodollars.
const MILLI: i64 = 1_000_000_000;

/// One customer's requests, one after the other, and what came of them.
struct Alone {
    told: Vec<Told>,
    billed: i64,
    charged: i64,
    /// The limits that the provider was sent.
    limits: Vec<Option<u64>>,
    paid: i64,
}

async fn alone(setting: Setting, dollars: &str, asks: &[Ask]) -> Option<Alone> {
    let world = World::start(&setting).await?;
    let purse = world.purse(dollars).await;
    let mut told = Vec::new();
    for ask in asks {
        told.push(world.send(&purse, ask).await);
        world.settle().await;
    }
    let charges = world.charges(&purse).await;
    let truths = world.providers[0].truths();
    Some(Alone {
        told,
        billed: world.billed(),
        charged: charges.iter().map(|charge| charge.picos).sum(),
        limits: truths.iter().map(|(_, truth)| truth.limit).collect(),
        paid: purse.paid(),
    })
}

impl Alone {
    fn statuses(&self) -> Vec<u16> {
        self.told.iter().map(|told| told.status).collect()
    }

    fn is_exact(&self) {
        assert_eq!(self.charged, self.billed, "{:?}", self.told);
    }
}

fn quick() -> Setting {
    setting(20, at(2_000.0))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn declared_limits_of_every_size_are_served() {
    let says = [shown(50)];
    let asks: Vec<Ask> = [1, 300, 64_000, 128_000, (1 << 31) - 1]
        .map(|limit| ask(&says).limit(limit))
        .to_vec();
    let Some(alone) = alone(quick(), "5", &asks).await else {
        return;
    };
    assert_eq!(alone.statuses(), [200; 5]);
    alone.is_exact();
    assert_eq!(alone.limits[..3], [Some(1), Some(300), Some(64_000)]);
    // What the model cannot make is not asked for.
    assert!(
        alone.limits[3..]
            .iter()
            .all(|limit| limit.is_none_or(|limit| limit <= 64_000)),
        "{:?}",
        alone.limits
    );
    assert!(
        alone.told[0].cut && alone.told[0].lowered.is_none(),
        "{:?}",
        alone.told[0]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_below_its_thinking_budget_is_the_callers_fault_and_free() {
    let mut setting = quick();
    setting.houses[0].nature.plays = Plays::Refusing(Vendor::Anthropic);
    let request = Ask {
        family: Family::Messages,
        model: "reasons",
        extra: json!({"thinking": {"type": "enabled", "budget_tokens": 4_000}}),
        ..ask(&[hidden(500), shown(50)]).limit(2_000)
    };
    let Some(alone) = alone(setting, "5", &[request]).await else {
        return;
    };
    assert_eq!(alone.statuses(), [400], "{:?}", alone.told);
    assert_eq!((alone.billed, alone.charged), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prediction_on_the_last_dollar_has_its_bound_or_is_refused() {
    let predicted = json!({"type": "content", "content": "late train ".repeat(1_000)});
    let request = |limit| Ask {
        extra: json!({"prediction": predicted.clone()}),
        tools: false,
        ..ask(&[shown(50)]).limit(limit)
    };
    let asks = [request(64_000), request(2_000)];
    let Some(alone) = alone(quick(), "0.50", &asks).await else {
        return;
    };
    assert_eq!(alone.statuses(), [429, 200], "{:?}", alone.told);
    assert_eq!(alone.told[0].code, "insufficient_quota");
    assert_eq!(alone.limits, [Some(2_000)], "it is not lowered");
    alone.is_exact();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_n_of_128_on_the_last_dollar_is_lowered_for_each_choice() {
    let request = Ask {
        n: 128,
        ..ask(&[shown(600)]).limit(64_000)
    };
    let Some(alone) = alone(quick(), "1", &[request]).await else {
        return;
    };
    assert_eq!(alone.statuses(), [200], "{:?}", alone.told);
    let limit = alone.limits[0].unwrap();
    assert!((256..=520).contains(&limit), "{limit}");
    assert!(
        alone.told[0]
            .lowered
            .as_deref()
            .is_some_and(|told| told.starts_with(&limit.to_string()))
    );
    alone.is_exact();
    assert!(alone.charged <= alone.paid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_shows_more_than_its_limit_is_ended() {
    let mut setting = setting(4, at(300.0));
    setting.houses[0].nature.binds = Binds::Nothing;
    let request = ask(&[shown(12_000)]).limit(300);
    let Some(alone) = alone(setting, "5", &[request]).await else {
        return;
    };
    assert_eq!(alone.statuses(), [200]);
    assert!(
        alone.told[0].text.contains("\"finish_reason\":\"length\""),
        "{}",
        alone.told[0].text
    );
    // 300, an eighth and 64 tokens, and what came until the provider heard of the end, which takes longer beside other programs.
    let output = alone.billed / USUAL.output;
    assert!(output < 6_000, "{output}");
    let near = alone.charged.abs_diff(alone.billed);
    assert!(
        near < 40 * MILLI.unsigned_abs(),
        "{} {}",
        alone.billed,
        alone.charged
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_makes_twice_the_limit_is_held_at_more_the_next_time() {
    let mut setting = quick();
    setting.houses[0].nature.binds = Binds::Twice;
    let asks = times(2, &ask(&[whole(12_000)]).limit(2_000));
    let Some(alone) = alone(setting, "1", &asks).await else {
        return;
    };
    assert_eq!(alone.statuses(), [200, 200]);
    alone.is_exact();
}

/// What a provider that claims this about its usage bills, and what is charged for it.
async fn claiming(claims: Claims, dollars: &str) -> Option<Alone> {
    let mut setting = quick();
    setting.houses[0].nature.claims = claims;
    alone(
        setting,
        dollars,
        &times(2, &ask(&[shown(400)]).limit(2_000)),
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_counts_nothing_is_counted() {
    let Some(alone) = claiming(Claims::Zero, "5").await else {
        return;
    };
    assert_eq!(alone.statuses(), [200, 200]);
    assert!(
        alone.charged * 10 >= alone.billed * 9 && alone.charged <= alone.billed,
        "{} {}",
        alone.charged,
        alone.billed
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_counts_too_much_takes_no_more_than_was_held_and_is_there() {
    for claims in [Claims::Twice, Claims::Absurd] {
        let Some(alone) = claiming(claims, "1").await else {
            return;
        };
        assert_eq!(alone.told[0].status, 200, "{claims:?}");
        assert!(
            (0..=alone.paid).contains(&alone.charged),
            "{claims:?}: {}",
            alone.charged
        );
        assert!(
            alone.charged * 10 >= alone.billed * 9,
            "{claims:?}: {} {}",
            alone.charged,
            alone.billed
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lowered_limit_that_the_vendor_refuses_is_told_and_free() {
    let mut setting = quick();
    setting.houses[0].nature.least_limit = 1_024;
    // 256 tokens and not 1,024 are there for each answer.
    let Some(alone) = alone(setting, "0.008", &[ask(&[shown(50)])]).await else {
        return;
    };
    assert_eq!((alone.billed, alone.charged), (0, 0));
    assert!(
        (400..500).contains(&alone.told[0].status),
        "{:?}",
        alone.told
    );
    assert!(!alone.told[0].text.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_that_the_provider_counts_at_four_times_ours() {
    let mut setting = quick();
    setting.houses[0].nature.counts = 4_000;
    let asks = times(3, &ask(&[shown(50)]).limit(1_000).prompt(1, 20_000));
    let Some(alone) = alone(setting.clone(), "5", &asks).await else {
        return;
    };
    assert_eq!(alone.statuses(), [200; 3]);
    alone.is_exact();
    // What one purse could not pay is a loss, which is exposure: the next one is not lost, too.
    let wave = Step::Send(times(16, &asks[0]));
    let steps = vec![
        wave.clone(),
        Step::Rest(30.0),
        Step::Forgive,
        Step::TopUp("1"),
        wave,
    ];
    let poor = attack("four times", "1", setting, steps);
    let outcome = play(&poor, 1).await.unwrap();
    assert!(outcome.times() <= 1.1, "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_requests_whose_clients_leave_cost_nothing_and_block_nobody() {
    let nature = Nature {
        first: First::Shown,
        ..at(300.0)
    };
    let Some(world) = World::start(&setting(10, nature)).await else {
        return;
    };
    let world = Arc::new(world);
    let purse = Arc::new(world.purse("2").await);
    let mut all = JoinSet::new();
    let long = ask(&[whole(3_000)]).limit(16_000);
    for left in [long.clone()]
        .into_iter()
        .chain(times(64, &long.leaves(4.0)))
    {
        let (place, payer) = (Arc::clone(&world), Arc::clone(&purse));
        all.spawn(async move { place.send(&payer, &left).await });
        world.rest(0.05).await;
    }
    while all.join_next().await.transpose().unwrap().is_some() {}
    world.settle().await;
    let reached = world.providers[0].truths().len();
    assert!((1..40).contains(&reached), "{reached} reached the provider");
    let next = world.send(&purse, &ask(&[shown(20)]).limit(300)).await;
    assert_eq!(next.status, 200, "{next:?}");
    assert!(next.first < 5.0, "{}", next.first);
    assert!(!world.logs().contains("panicked"), "{}", world.logs());
}

/// What a hundred requests want of a dollar at the same instant.
fn hundred(gateways: usize) -> Attack {
    let mut setting = setting(10, HONEST);
    setting.gateways = gateways;
    setting.houses[0].nature.speed = 1_000.0;
    let request = Ask {
        stream: false,
        ..ask(&[whole(3_000)]).limit(64_000)
    };
    attack(
        "a hundred",
        "1",
        setting,
        vec![Step::Send(times(100, &request))],
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purse_that_a_hundred_requests_want_at_once_on_three_gateways() {
    for gateways in [1, 3] {
        let Some(outcome) = play(&hundred(gateways), 1).await else {
            return;
        };
        assert_eq!(outcome.sent, 100);
        assert!(outcome.billed <= 1_000 * MILLI, "{outcome:?}");
        assert_eq!(
            outcome.billed, outcome.charged,
            "{gateways}: all were read to their ends"
        );
        assert!(outcome.served >= 10, "{outcome:?}");
    }
}
