//! What targets have taught: sums that gateways add to, the same on every store.

use farebox_ledger::*;

use super::common::*;

fn lesson(target: &str, class: &str, sums: [u64; 4]) -> Lesson {
    let [tokens, millis, theirs, ours] = sums;
    Lesson {
        tokens,
        millis,
        theirs,
        ours,
        ..Lesson::empty(target, class)
    }
}

fn with(fact: Fact, lesson: Lesson) -> Lesson {
    Lesson {
        facts: lesson.facts.with(fact),
        ..lesson
    }
}

async fn teach(ledger: &dyn Ledger, lessons: &[Lesson]) {
    let taught = Taught {
        lessons: lessons.to_vec(),
        excesses: Vec::new(),
    };
    ledger.perform(taught).await.unwrap();
}

pub(crate) async fn what_targets_teach_is_added_up_and_halved(ledger: SharedLedger) {
    assert_eq!(ledger.taught().await.unwrap(), Taught::default());
    let standard = lesson("a/m", "standard", [1_000, 20_000, 3_000, 2_900]);
    let fast = with(Fact::Hides, lesson("a/m", "fast", [500, 1_000, 0, 0]));
    let other = with(Fact::Caches, lesson("b/m", "standard", [0, 0, 7, 8]));
    teach(&*ledger, &[standard.clone(), other.clone(), fast.clone()]).await;
    let found = ledger.taught().await.unwrap().lessons;
    assert_eq!(found, [fast.clone(), standard.clone(), other.clone()]);
    // Gateways add at once, and a row that stands twice is one.
    let more = with(
        Fact::LimitBinds,
        lesson("a/m", "standard", [10, 20, 30, 40]),
    );
    let twice = [more.clone(), more.clone()];
    tokio::join!(teach(&*ledger, &twice), teach(&*ledger, &twice));
    let found = ledger.taught().await.unwrap().lessons;
    let sums = lesson("a/m", "standard", [1_040, 20_080, 3_120, 3_060]);
    assert_eq!(found[1], with(Fact::LimitBinds, sums));
    // Each sum is halved where its own weight is full; one that is full by itself was halved before.
    let full = lesson("a/m", "standard", [4_998_960, 79_920, 0, 12_000_000]);
    teach(&*ledger, &[full]).await;
    let found = ledger.taught().await.unwrap().lessons;
    let halved = lesson("a/m", "standard", [2_500_000, 50_000, 3_120, 3_003_060]);
    assert_eq!(found[1], with(Fact::LimitBinds, halved));
    assert_eq!((&found[0], &found[2]), (&fast, &other));
    // In whatever batch: each addition is judged by itself.
    let half = lesson("c/m", "us", [4_000_000, 4_001, 4_000_000, 4_001]);
    teach(&*ledger, std::slice::from_ref(&half)).await;
    let once = std::slice::from_ref(&half);
    tokio::join!(teach(&*ledger, once), teach(&*ledger, once));
    let found = ledger.taught().await.unwrap().lessons;
    // 4 and 4 are 8, halved 4; and 4 are 8, halved 4.
    assert_eq!(found[3].tokens, 4_000_000);
    assert_eq!(found[3].millis, 4_001);
    // What no answer can be is not believed, and no sum overflows.
    let absurd = lesson("d/m", "standard", [1, u64::MAX, u64::MAX, 2]);
    for _ in 0..3 {
        teach(&*ledger, std::slice::from_ref(&absurd)).await;
    }
    let found = ledger.taught().await.unwrap().lessons;
    let believed = lesson("d/m", "standard", [3, 3_000_000, 6_000_000, 6]);
    assert_eq!(found[4], believed);
    sound(&*ledger).await;
}

const DAY: i64 = 86_400;

fn excess(target: &str, customer: u64, tokens: u64, day: i64) -> Excess {
    Excess {
        target: target.to_owned(),
        customer: CustomerId::made_for(key(customer)),
        tokens,
        at: at(day * DAY),
    }
}

async fn exceed(ledger: &dyn Ledger, excess: Excess) {
    let taught = Taught {
        lessons: Vec::new(),
        excesses: vec![excess],
    };
    ledger.perform(taught).await.unwrap();
}

pub(crate) async fn an_excess_counts_for_seven_days(ledger: SharedLedger) {
    let found = async || ledger.taught().await.unwrap().excesses;
    for new in [
        excess("a/m", 1, 9_000, 1),
        excess("b/m", 1, 4_000, 1),
        excess("a/m", 1, 5_000, 2),
        excess("a/m", 2, 70, 1),
    ] {
        exceed(&*ledger, new).await;
    }
    let mut expected = vec![
        excess("a/m", 1, 9_000, 2),
        excess("a/m", 2, 70, 1),
        excess("b/m", 1, 4_000, 1),
    ];
    expected.sort();
    assert_eq!(
        found().await,
        expected,
        "the largest, and when the last was"
    );
    // Six days later all of it stands; a week later only what was repeated, and other targets' is untouched.
    exceed(&*ledger, excess("a/m", 3, 1, 7)).await;
    assert_eq!(found().await.len(), 4);
    exceed(&*ledger, excess("a/m", 3, 2, 8)).await;
    let mut expected = vec![
        excess("a/m", 1, 9_000, 2),
        excess("a/m", 3, 2, 8),
        excess("b/m", 1, 4_000, 1),
    ];
    expected.sort();
    assert_eq!(found().await, expected);
    exceed(&*ledger, excess("a/m", 1, 3, 9)).await;
    assert!(found().await.contains(&excess("a/m", 1, 3, 9)), "a new one");
    sound(&*ledger).await;
}

pub(crate) async fn what_was_taught_before_a_reset_is_gone(ledger: SharedLedger) {
    let taught = Taught {
        lessons: vec![
            lesson("a/m", "standard", [1, 2, 3, 4]),
            lesson("a/m", "fast", [1, 2, 3, 4]),
            lesson("b/m", "standard", [5, 6, 7, 8]),
        ],
        excesses: vec![excess("a/m", 1, 9, 1), excess("b/m", 1, 9, 1)],
    };
    ledger.perform(taught).await.unwrap();
    ledger
        .perform(ForgetTarget("a/m".to_owned()))
        .await
        .unwrap();
    ledger
        .perform(ForgetTarget("nobody/m".to_owned()))
        .await
        .unwrap();
    let left = Taught {
        lessons: vec![lesson("b/m", "standard", [5, 6, 7, 8])],
        excesses: vec![excess("b/m", 1, 9, 1)],
    };
    assert_eq!(ledger.taught().await.unwrap(), left);
    ledger.perform(Taught::default()).await.unwrap();
    assert_eq!(ledger.taught().await.unwrap(), left);
    sound(&*ledger).await;
}
