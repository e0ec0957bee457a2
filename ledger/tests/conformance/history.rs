//! Reading: history, answers and usage.

use std::sync::Arc;

use farebox_ledger::*;

use super::common::*;

pub(crate) async fn history_is_filtered_and_paged(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.perform(new_key(2, 11, Some("5"))).await.unwrap();
    for number in 0..20 {
        let owner = 1 + number % 2;
        ledger
            .perform(new_hold(owner, 100 + number, "0.1"))
            .await
            .unwrap();
        let end = Finish {
            at: at(1_000 + i64::try_from(number).unwrap()),
            ..finish(100 + number, number)
        };
        ledger.perform(Arc::new(end)).await.unwrap();
    }
    let find = async |query: EntryQuery| ledger.entries(query).await.unwrap();
    let all = find(EntryQuery::default()).await;
    assert_eq!(all.len(), 22);
    assert!(
        all.is_sorted_by(|one, next| one.position < next.position),
        "with gaps, where several gateways write"
    );
    let mine = find(EntryQuery {
        key: Some(key(1)),
        ..EntryQuery::default()
    })
    .await;
    assert_eq!(
        mine,
        all.iter()
            .filter(|entry| entry.key == Some(key(1)))
            .cloned()
            .collect::<Vec<_>>()
    );
    assert_eq!(
        mine.iter().map(|entry| entry.seq).collect::<Vec<_>>(),
        (1..=11).collect::<Vec<_>>()
    );
    for owner in [None, Some(key(1))] {
        let rows = if owner.is_some() { &mine } else { &all };
        let newest = find(EntryQuery {
            key: owner,
            limit: Some(3),
            ..EntryQuery::default()
        })
        .await;
        assert_eq!(newest, rows[rows.len() - 3..]);
        for before in [newest[0].position, newest[0].position + 1] {
            let older = find(EntryQuery {
                key: owner,
                before: Some(before),
                limit: Some(2),
                ..EntryQuery::default()
            })
            .await;
            let behind: Vec<JournalEntry> = rows
                .iter()
                .filter(|entry| entry.position < before)
                .cloned()
                .collect();
            assert_eq!(older, behind[behind.len() - 2..]);
        }
        let between = EntryQuery {
            key: owner,
            since: Some(at(1_005)),
            until: Some(at(1_010)),
            ..EntryQuery::default()
        };
        let inside = |entry: &&JournalEntry| entry.at >= at(1_005) && entry.at < at(1_010);
        assert_eq!(
            find(between).await,
            rows.iter().filter(inside).cloned().collect::<Vec<_>>()
        );
    }
    assert_eq!(
        find(EntryQuery {
            key: Some(key(9)),
            ..EntryQuery::default()
        })
        .await,
        Vec::new()
    );
    sound(&*ledger).await;
}

pub(crate) async fn answers_are_found_by_their_own_id(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.perform(new_key(2, 11, Some("5"))).await.unwrap();
    for (operation, count) in [(20, 7), (21, 8), (22, 7)] {
        ledger.perform(new_hold(1, operation, "0.1")).await.unwrap();
        ledger
            .perform(Arc::new(finish(operation, count)))
            .await
            .unwrap();
    }
    let newest = ledger
        .entry_by_answer(key(1), "answer-7")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(newest.operation, op(22));
    assert_eq!(
        ledger.entry_by_answer(key(1), "answer-9").await.unwrap(),
        None
    );
    assert_eq!(
        ledger.entry_by_answer(key(2), "answer-7").await.unwrap(),
        None,
        "another key's answer"
    );
}

pub(crate) async fn usage_is_rolled_up_by_hour_and_slug(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.perform(new_key(2, 11, Some("5"))).await.unwrap();
    for (owner, operation, slug, count, seconds) in [
        (1, 20, "b", 10, 3_600),
        (1, 21, "b", 5, 7_199),
        (1, 22, "a", 1, 7_199),
        (1, 23, "a", 2, 7_200),
        (2, 24, "a", 3, 7_200),
    ] {
        ledger
            .perform(new_hold(owner, operation, "0.1"))
            .await
            .unwrap();
        let ended = Bill {
            slug: slug.to_owned(),
            ..bill(count)
        };
        ledger
            .perform(Arc::new(Finish {
                request: op(operation),
                bill: ended,
                at: at(seconds),
            }))
            .await
            .unwrap();
    }
    let rows = ledger.usage(key(1), at(3_700), at(99_999)).await.unwrap();
    let short: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.hour,
                &*row.slug,
                row.requests,
                row.usage.output,
                row.charge,
            )
        })
        .collect();
    assert_eq!(
        short,
        [
            (at(3_600), "a", 1, 1, usd("0.000001")),
            (at(3_600), "b", 2, 15, usd("0.000015")),
            (at(7_200), "a", 1, 2, usd("0.000002")),
        ]
    );
    assert_eq!(
        ledger.usage(key(1), at(0), at(7_200)).await.unwrap(),
        rows[..2]
    );
    assert_eq!(
        ledger.usage(key(1), at(7_200), at(7_201)).await.unwrap(),
        rows[2..]
    );
    assert_eq!(
        ledger.usage(key(9), at(0), at(99_999)).await.unwrap(),
        Vec::new()
    );
    let hours = ledger.slug_hours(at(3_700), at(7_201)).await.unwrap();
    let hours: Vec<_> = hours
        .iter()
        .map(|hour| {
            (
                hour.hour,
                &*hour.sums.name,
                hour.sums.requests,
                hour.sums.charge,
            )
        })
        .collect();
    assert_eq!(
        hours,
        [
            (at(3_600), "a", 1, usd("0.000001")),
            (at(3_600), "b", 2, usd("0.000015")),
            (at(7_200), "a", 2, usd("0.000005")),
        ],
        "of all keys"
    );
    assert_eq!(ledger.slug_hours(at(0), at(3_600)).await.unwrap(), []);
    let slugs = ledger.slug_use(at(7_300)).await.unwrap();
    assert_eq!(
        slugs,
        [SlugUse {
            slug: "a".into(),
            keys: 2,
            requests: 2
        }]
    );
    let slugs = ledger.slug_use(at(0)).await.unwrap();
    assert_eq!(
        slugs,
        [
            SlugUse {
                slug: "a".into(),
                keys: 2,
                requests: 3
            },
            SlugUse {
                slug: "b".into(),
                keys: 1,
                requests: 2
            }
        ]
    );
    sound(&*ledger).await;
}

/// Every word of it is in the entry again, and each kind of answer has its own row in the rollup, which `verify` recomputes.
pub(crate) async fn what_was_served_stays_with_the_entry(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    let band = |context_band| Served {
        context_band,
        ..Served::default()
    };
    let flex = Served {
        tier: ServedTier::Flex,
        ..Served::default()
    };
    let account = Served {
        account: "a\"; '".to_owned(),
        ..Served::default()
    };
    let served = |served| Bill { served, ..bill(7) };
    let bills = [
        bill(7),
        fast(7),
        fast(7),
        served(band(1)),
        served(band(u32::MAX)),
        served(flex),
        served(account),
    ];
    for (bill, operation) in bills.iter().zip(20..) {
        ledger.perform(new_hold(1, operation, "0.1")).await.unwrap();
        let request = op(operation);
        ledger
            .perform(HoldMove {
                checkpoint: Some(bill.clone()),
                ..moved(operation, "0.2", 7)
            })
            .await
            .unwrap();
        let finish = Finish {
            request,
            bill: bill.clone(),
            at: at(3_600),
        };
        ledger.perform(Arc::new(finish)).await.unwrap();
        let entry = ledger.entry(request).await.unwrap().unwrap();
        let stored = entry.bill.unwrap();
        assert_eq!(
            (
                &stored.served,
                &stored.lines,
                stored.usage,
                stored.provider_cost,
                &stored.facts
            ),
            (
                &bill.served,
                &bill.lines,
                bill.usage,
                bill.provider_cost,
                &bill.facts
            )
        );
        sound(&*ledger).await;
    }
    let [hour] = &ledger.usage(key(1), at(0), at(9_000)).await.unwrap()[..] else {
        panic!("one hour of one slug")
    };
    assert_eq!(
        (
            hour.requests,
            hour.usage.output,
            hour.usage.cache_write_12h,
            hour.usage.calls
        ),
        (7, 49, 14, 6)
    );
    assert_eq!(
        (
            hour.charge,
            ledger
                .find_key(key(1))
                .await
                .unwrap()
                .unwrap()
                .customer
                .account
                .spent
        ),
        (usd("0.000053"), usd("0.000053")),
        "what the provider said of its price is charged to nobody"
    );
    let by_class = MarginQuery {
        by: MarginBy::Class,
        from: at(0),
        to: at(9_000),
        order: MarginOrder::Name,
        reverse: false,
        limit: 9,
    };
    let classes = ledger.margins(by_class).await.unwrap();
    let short = |row: &MarginRow| format!("{} {} {}", row.name, row.requests, row.charge);
    assert_eq!(
        classes.rows.iter().map(short).collect::<Vec<_>>(),
        [
            "fast,us 2 0.000018",
            "flex 1 0.000007",
            "standard 4 0.000028"
        ]
    );
}

/// A hold that ends in recovery is charged by its checkpoint, class and all.
pub(crate) async fn a_checkpoint_keeps_what_was_served(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.perform(new_hold(1, 20, "0.1")).await.unwrap();
    let checkpoint = fast(7);
    ledger
        .perform(HoldMove {
            checkpoint: Some(checkpoint.clone()),
            ..moved(20, "0.2", 7)
        })
        .await
        .unwrap();
    ledger.recover(at(900)).await.unwrap();
    let recovered = ledger.entry(op(20)).await.unwrap().unwrap().bill.unwrap();
    assert_eq!(
        (recovered.served, recovered.lines, recovered.usage),
        (checkpoint.served, checkpoint.lines, checkpoint.usage)
    );
    sound(&*ledger).await;
}

/// A class or an account that could not be read back as it was written is refused before anything is.
pub(crate) async fn classes_are_short_words(ledger: SharedLedger) {
    ledger.perform(new_key(1, 10, Some("5"))).await.unwrap();
    ledger.perform(new_hold(1, 20, "0.1")).await.unwrap();
    let class = |class: &str| {
        let mut bill = fast(7);
        bill.lines[0].class = Some(class.to_owned().into());
        bill
    };
    let mut long = fast(7);
    long.served.account = "a".repeat(257);
    let below = Bill {
        provider_cost: Some(Amount::from_picos(-1)),
        ..fast(7)
    };
    let mut many = fast(7);
    many.usage.calls = u64::MAX;
    let mut twice = fast(7);
    twice.facts.insert("tier".to_owned(), "flex".to_owned());
    for bill in [
        class(""),
        class("a;b"),
        class(&"a".repeat(65)),
        long,
        below,
        many,
        twice,
    ] {
        let refused = ledger
            .perform(Arc::new(Finish {
                request: op(20),
                bill,
                at: at(500),
            }))
            .await;
        assert!(
            matches!(refused, Err(LedgerError::Refused(Refusal::Limit(_)))),
            "{refused:?}"
        );
    }
    ledger.perform(Arc::new(finish(20, 7))).await.unwrap();
    sound(&*ledger).await;
}
