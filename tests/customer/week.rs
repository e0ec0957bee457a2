//! A week of use, as somebody sees it who works with the gateway every day: it adds up, and it is the README's picture.

use std::sync::Arc;

use farebox::clock;
use farebox_ledger::{
    Amount, Bill, BillLine, Credit, CreditKind, CustomerId, EndReason, Finish, HoldWay, KeyId,
    KeySettings, Ledger, Membership, NewHold, NewKey, OperationId, Perform, Secret, Timestamp,
    Usage,
};

use super::dashboard::{has_browser, signed_in};
use crate::support::browser::DESKTOP;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Gateway, TestKey, act, talking};

const HOUR: i64 = 60 * 60 * 1_000;
/// Requests on each day of a week, until today.
const DAYS: [i64; 7] = [14, 19, 4, 2, 23, 17, 12];
/// What is asked, in turn: slug, family, thousands of tokens (input, of the cache, output) and their prices in USD per million.
const ASKED: [(&str, &str, [u64; 3], [f64; 3]); 4] = [
    (
        "claude-sonnet-5.5",
        "messages",
        [9, 61, 2],
        [3.0, 0.3, 15.0],
    ),
    (
        "claude-sonnet-5.5",
        "messages",
        [4, 83, 1],
        [3.0, 0.3, 15.0],
    ),
    ("gpt-5.4", "responses", [12, 30, 3], [2.0, 0.5, 8.0]),
    ("gpt-5.4-mini", "chat", [7, 0, 1], [0.15, 0.0, 0.6]),
];

/// A key that was bought eight days ago.
async fn key(ledger: &dyn Ledger, at: Timestamp) -> TestKey {
    let id = clock::key_id();
    let secret = Secret::generate(id, clock::random());
    let new = NewKey {
        within: Membership::default(),
        id,
        secret: secret.hash(),
        settings: KeySettings {
            label: "Ada's laptop".to_owned(),
            ..KeySettings::default()
        },
        first_credit: Some((usd("20"), "pi_3Pq".to_owned())),
        purse: None,
        act: farebox_ledger::Act { at, ..act() },
    };
    ledger.perform(new).await.unwrap();
    let secret = secret.reveal().to_owned();
    TestKey { id, secret }
}

fn usd(text: &str) -> Amount {
    Amount::from_usd_str(text).unwrap()
}

/// One request of then, as it was billed.
async fn charge(ledger: &dyn Ledger, key: KeyId, number: i64, at: Timestamp) {
    let request = OperationId::new(at, u128::from(number.unsigned_abs()));
    let turn = usize::try_from(number).unwrap();
    let (slug, family, counts, prices) = ASKED[turn * 7 % ASKED.len()];
    // No two alike.
    let vary = 700 + u64::from(number.unsigned_abs() as u32) * 131 % 900;
    let [input, cache_read, output] = counts.map(|thousands| thousands * vary);
    let (slug, family) = (slug.to_owned(), family.to_owned());
    let hold = NewHold {
        request,
        customer: CustomerId::made_for(key),
        key,
        ways: vec![HoldWay::exactly(usd("0.50"))],
        slug: slug.clone(),
        family: family.clone(),
        at,
    };
    ledger.perform(hold).await.unwrap();
    let counted = ["input", "cache_read", "output"].into_iter();
    let lines = counted.zip([input, cache_read, output]).zip(prices);
    let lines = lines.filter(|((_, count), _)| *count > 0);
    let lines = lines.map(|((what, count), price)| BillLine {
        what: what.into(),
        count,
        rate: Amount::from_picos((price * 1_000_000.0) as i64),
        class: None,
    });
    let bill = Bill {
        target: format!("provider/{slug}"),
        slug,
        family,
        status: 200,
        end_reason: EndReason::Stop,
        first_byte_ms: Some(420 + (vary % 400) as u32),
        total_ms: 6_000,
        usage: Usage {
            input,
            cache_read,
            output,
            ..Usage::default()
        },
        lines: lines.collect(),
        ..Bill::default()
    };
    ledger
        .perform(Arc::new(Finish { request, bill, at }))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_week_of_use_adds_up() {
    if !has_browser() {
        return;
    }
    let upstream = ScriptedUpstream::start(talking("one two three")).await;
    let gateway = Gateway::before(&upstream).await;
    let (ledger, now) = (&*gateway.ledger, clock::now().millis());
    let before = |hours: i64| Timestamp::from_millis(now - hours * HOUR);
    let key = key(ledger, before(8 * 24)).await;
    let mut number = 0;
    for (day, requests) in DAYS.into_iter().enumerate() {
        let until = now - (6 - i64::try_from(day).unwrap()) * 24 * HOUR;
        for request in (0..requests).rev() {
            number += 1;
            let at = Timestamp::from_millis(until - request * 23 * 60_000);
            charge(ledger, key.id, number, at).await;
        }
    }
    let paid = Credit {
        kind: CreditKind::TopUp,
        ..crate::support::payment(key.id, usd("10"), "pi_4Xa".to_owned())
    };
    ledger.perform(paid).await.unwrap();

    let browser = signed_in(&gateway, &key, DESKTOP).await;
    browser.press(".ranges a[href$='7d']").await;
    let week = "return document.querySelectorAll('.chart rect').length >= 14";
    browser.until("a week of bars", week).await;
    // Three models, and their sum is what is gone.
    let rows = "return [...document.querySelectorAll('#spending tbody tr, main table tbody tr')].map(r => r.innerText).join('|')";
    let rows = browser.ask(rows).await;
    for slug in ["claude-sonnet-5.5", "gpt-5.4", "gpt-5.4-mini"] {
        assert!(rows.as_str().unwrap().contains(slug), "{rows}");
    }
    let spent = gateway.account(&key).await.customer.account.spent;
    let range = browser.text(".ranges a[href$='7d']").await;
    assert!(range.contains(&spent.to_string()), "{range}, {spent}");
    browser.picture("week-desktop").await;
}
