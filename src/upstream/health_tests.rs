//! What the pieces of a target's health do together.

use super::super::outage::{PASSING, SLOWEST};
use super::super::redact;
use super::*;

const POLICY: BreakerPolicy = BreakerPolicy {
    failures: 1,
    open: Duration::from_secs(30),
};
const UNREACHABLE: TargetFault = TargetFault {
    unreachable: true,
    rest: None,
};

fn wish(family: Family, key: u64) -> TargetWish {
    TargetWish {
        family,
        key: Holder(key),
        stream: true,
        account: 0,
    }
}

fn new() -> Arc<Health> {
    Arc::new(Health::new(Arc::default(), Arc::default()))
}

fn fail(health: &Arc<Health>, wish: TargetWish, fault: TargetFault) {
    let mut running = health.begin(wish, POLICY, None).unwrap();
    running.failed(FailureClass::Broken, &redact::plain("x"), fault);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_trial_does_not_lock_the_customer_out() {
    let (health, chat) = (new(), wish(Family::Chat, 1));
    fail(&health, chat, TargetFault::default());
    assert!(health.begin(chat, POLICY, None).is_err());
    tokio::time::advance(TRY_EVERY).await;
    let trial = health.begin(chat, POLICY, None).unwrap();
    assert!(health.begin(chat, POLICY, None).is_err());
    drop(trial);
    let mut trial = health.begin(chat, POLICY, None).unwrap();
    trial.began();
    assert!(health.begin(chat, POLICY, None).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_failing_family_leaves_the_others_alone() {
    let health = new();
    fail(&health, wish(Family::Chat, 1), UNREACHABLE);
    assert!(health.is_open_to(wish(Family::Chat, 2)).is_some());
    assert!(
        health
            .begin(wish(Family::Messages, 2), POLICY, None)
            .is_ok()
    );
    assert!(health.is_paused());
    assert_eq!(
        health.state("slug", "a/b", None).state,
        BreakerState::Open,
        "the worst of them is shown"
    );
    // What is proved about the connection holds for every family.
    let due = health.probe_due(Instant::now()).unwrap();
    assert_eq!(due.doubt, Doubt::Connection);
    health.probed(&due, due.at, ProbeVerdict::Reached, None, None);
    assert!(!health.is_paused());
}

/// A try that ended without a frame is a reason to ask, within ten seconds; later our answer would say nothing about it.
#[tokio::test(start_paused = true)]
async fn who_got_no_frame_makes_us_ask_soon_or_not_at_all() {
    let health = new();
    let ends_silent = || {
        health
            .begin(wish(Family::Chat, 1), POLICY, None)
            .unwrap()
            .silent()
    };
    ends_silent();
    let now = Instant::now();
    let due = health.probe_due(now).unwrap();
    assert_eq!((due.at, due.doubt), (now + TRY_EVERY, Doubt::Answer));
    tokio::time::advance(TRY_EVERY).await;
    health.probing(&due, Instant::now());
    assert_eq!(health.probe_due(Instant::now()), None, "once");
    health.probed(&due, due.at, ProbeVerdict::Passed, None, None);
    // It passed, so the next one is ten seconds away, then twenty.
    ends_silent();
    let due = health.probe_due(Instant::now()).unwrap();
    assert_eq!(due.at, Instant::now() + 2 * TRY_EVERY);
    tokio::time::advance(2 * TRY_EVERY).await;
    health.probing(&due, Instant::now());
    health.probed(&due, due.at, ProbeVerdict::Passed, None, None);
    ends_silent();
    assert_eq!(health.probe_due(Instant::now()), None, "too late to tell");
}

/// A request of our own shows an outage only where one passed within a day, and no answer got a frame meanwhile.
#[tokio::test(start_paused = true)]
async fn our_own_request_shows_an_outage_where_it_should_have_passed() {
    let health = new();
    health
        .begin(wish(Family::Chat, 1), POLICY, None)
        .unwrap()
        .silent();
    let due = health.probe_due(Instant::now()).unwrap();
    let is_out = |sent| health.is_out(sent, Instant::now());
    assert_eq!(health.patience(Instant::now()), None);
    assert!(!is_out(Instant::now()), "none of ours has passed");
    let passes = async |after: u64| {
        let sent = Instant::now();
        tokio::time::advance(Duration::from_secs(after)).await;
        health.probed(&due, sent, ProbeVerdict::Passed, None, None);
    };
    passes(1).await;
    assert_eq!(health.patience(Instant::now()), Some(SLOWEST));
    passes(9).await;
    assert_eq!(
        health.patience(Instant::now()),
        Some(Duration::from_secs(15)),
        "three times what they took"
    );
    let sent = Instant::now();
    tokio::time::advance(Duration::from_secs(15)).await;
    assert!(is_out(sent));
    health.frame(Instant::now());
    assert!(!is_out(sent), "another answer goes on");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(is_out(Instant::now()));
    tokio::time::advance(PASSING).await;
    assert!(!is_out(Instant::now()), "nobody knows how ours do now");
}

#[tokio::test(start_paused = true)]
async fn a_failing_account_leaves_the_others_alone() {
    let health = new();
    let of = |account| TargetWish {
        account,
        ..wish(Family::Chat, 1)
    };
    fail(&health, of(1), TargetFault::default());
    let open = [0, 1, 2].map(|account| health.is_open_to(of(account)));
    assert_eq!(open, [None, Some(TRY_EVERY), None]);
    assert!(health.begin(of(1), POLICY, None).is_err());
    assert!(health.begin(of(2), POLICY, None).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_target_is_asked_once_in_five_seconds_whatever_its_families() {
    let health = new();
    for family in [Family::Chat, Family::Messages] {
        fail(&health, wish(family, 1), TargetFault::default());
        fail(&health, wish(family, 2), TargetFault::default());
    }
    let now = Instant::now();
    let first = health.probe_due(now).unwrap();
    assert_eq!(first.at, now);
    health.probing(&first, now);
    let second = health.probe_due(now).unwrap();
    assert_eq!(second.at, now + TRY_EVERY);
}

#[tokio::test(start_paused = true)]
async fn a_target_is_busy_for_ten_seconds_after_a_frame() {
    let health = new();
    assert!(!health.is_busy(Instant::now()));
    health.frame(Instant::now());
    tokio::time::advance(Duration::from_secs(9)).await;
    assert!(health.is_busy(Instant::now()));
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(!health.is_busy(Instant::now()));
}

#[tokio::test(start_paused = true)]
async fn counts_and_reasons_are_shown() {
    let (health, chat) = (new(), wish(Family::Chat, 1));
    let running = health.begin(chat, POLICY, None).unwrap();
    let mut broken = health.begin(chat, POLICY, None).unwrap();
    broken.began();
    broken.failed(
        FailureClass::Broken,
        &redact::plain("cut"),
        TargetFault {
            unreachable: false,
            rest: Some(Duration::from_secs(9_000)),
        },
    );
    broken.failed(FailureClass::Broken, &redact::plain("again"), UNREACHABLE);
    drop(broken);
    let state = health.state("slug", "a/b", None);
    assert_eq!((state.requests, state.errors, state.in_flight), (2, 1, 1));
    assert_eq!(
        (state.state, state.keys_closed),
        (BreakerState::Closed, 1),
        "closed to that customer alone"
    );
    assert_eq!(health.is_open_to(chat), Some(Duration::from_secs(60)));
    assert_eq!(
        state
            .last_reason
            .map(|reason| reason.to_string())
            .as_deref(),
        Some("broken: cut")
    );
    drop(running);
    assert_eq!(health.state("slug", "a/b", None).in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn what_our_own_requests_cost_is_shown() {
    let health = new();
    for key in [1, 2] {
        fail(&health, wish(Family::Chat, key), TargetFault::default());
    }
    let (now, cost) = (Instant::now(), Amount::from_picos(7));
    let due = health.probe_due(now).unwrap();
    health.probed(&due, now, ProbeVerdict::Passed, Some(cost), None);
    health.probed(&due, now, ProbeVerdict::Nothing, None, None);
    let failed = ProbeVerdict::Failed(TargetFault::default());
    let reason = Some(redact::plain("no"));
    health.probed(&due, now, failed, Some(cost), reason);
    let probes = health.state("slug", "a/b", None).probes;
    assert_eq!(
        (probes.sent, probes.failed, probes.cost),
        (2, 1, Amount::from_picos(14))
    );
}

/// Two customers fail at this gateway, while another one asks the target for all.
#[tokio::test(start_paused = true)]
async fn what_another_gateway_finds_counts_once_and_is_looked_for_every_second() {
    let (health, chat) = (new(), Family::Chat);
    for key in [1, 2] {
        fail(&health, wish(chat, key), TargetFault::default());
    }
    let hear = |found| {
        let now = Instant::now();
        let due = health.probe_due(now).unwrap();
        assert!(due.at <= now, "it is looked for again");
        health.probing(&due, now);
        health.heard(&due, found);
    };
    let soon = async || tokio::time::advance(HEAR_EVERY).await;
    let failed = ProbeVerdict::Failed(TargetFault::default());
    hear(None);
    assert!(!health.is_paused(), "nothing is known yet");
    soon().await;
    hear(Some((7, Instant::now(), failed)));
    assert!(health.is_paused());
    soon().await;
    hear(Some((7, Instant::now(), failed)));
    soon().await;
    hear(Some((8, Instant::now(), ProbeVerdict::Passed)));
    assert!(!health.is_paused());
    let probes = health.state("slug", "a/b", None).probes;
    assert_eq!(probes, Probes::default(), "the cost is theirs");
    // The same finding heard again changes nothing, whatever has failed since.
    for key in [1, 2] {
        fail(&health, wish(chat, key), TargetFault::default());
    }
    tokio::time::advance(2 * TRY_EVERY).await;
    hear(Some((7, Instant::now(), failed)));
    assert!(!health.is_paused());
}

/// What our own request finds, or another gateway's, ends a refusal for money if it is an answer, and nothing else does.
#[tokio::test(start_paused = true)]
async fn a_refusal_for_money_ends_with_an_answer_and_not_with_a_refused_parameter() {
    let health = new();
    let broke = AttemptFailure::Operator("402 Insufficient credits".to_owned());
    let refuse = || {
        let running = health.begin(wish(Family::Chat, 1), POLICY, None).unwrap();
        running.judge(&broke, &redact::plain("402"));
    };
    let stands = || health.accounts.refusal(0).is_some();
    refuse();
    tokio::time::advance(TRY_EVERY).await;
    let now = Instant::now();
    let due = health.probe_due(now).unwrap();
    assert_eq!((due.doubt, due.at), (Doubt::Answer, now));
    health.probing(&due, now);
    for (number, free) in [(1, ProbeVerdict::Listed), (2, ProbeVerdict::Accepted)] {
        health.probed(&due, now, free, None, None);
        health.heard(&due, Some((number, now, free)));
        assert!(stands(), "{free:?}");
    }
    health.probed(&due, now, ProbeVerdict::Passed, Some(Amount::ZERO), None);
    assert!(!stands());
    refuse();
    tokio::time::advance(TRY_EVERY).await;
    health.heard(&due, Some((3, Instant::now(), ProbeVerdict::Passed)));
    assert!(!stands(), "another gateway has asked");
}
