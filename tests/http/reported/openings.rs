//! R9, R10: targets that begin a stream and then cannot answer.

use std::time::Duration;

use farebox_doubles::{Vendor, breaking, overloaded};
use farebox_protocol::Family;

use super::super::translation::{CHARGE, before, ended_cleanly, frames, read, speech};
use super::{all_ways, asking, charged, post, two};
use crate::support::upstream::{Reply, ScriptedUpstream};
use crate::support::{Answer, Gateway, catalog, path};

/// The error type and code that a stream or an error tells.
fn told(caller: Family, answer: &Answer) -> (String, String) {
    let all = if answer.status == 200 {
        frames(&answer.text)
    } else {
        vec![answer.json()]
    };
    let error = match caller {
        Family::Responses if answer.status == 200 => &all.last().unwrap()["response"]["error"],
        _ => &all.last().unwrap()["error"],
    };
    let word = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (word("type"), word("code"))
}

/// The frames with which a target of a family begins, and shows nothing.
fn opening(target: Family) -> usize {
    crate::support::load::before_pieces(target)
}

/// The streams of a target that says after so many frames that it has no capacity: each is one way to say it.
fn busy(target: Family, shown: usize) -> impl Iterator<Item = Reply> {
    let frames = overloaded(target.protocol().path).into_iter();
    frames.map(move |frame| speech(target, true).then(shown, frame))
}

/// R9: no capacity, before anything was shown: the next target, else said in the family's words.
#[tokio::test]
async fn r9_overloaded_before_anything_was_shown_goes_on() {
    for (caller, target) in all_ways() {
        let openings = [0, 1, opening(target)].into_iter();
        for busy in openings.flat_map(|shown| busy(target, shown)) {
            let what = format!("{caller} on {target}: {busy:?}");
            let (first, second) = (
                ScriptedUpstream::start(busy.clone()).await,
                ScriptedUpstream::start(speech(target, true)).await,
            );
            let gateway = Gateway::start(&catalog(target), &two(&first, &second, target)).await;
            let key = gateway.key("5.00").await;
            let answer = post(&gateway, &key, caller, true).await;
            assert_eq!(read(caller, true, &answer), "one two three", "{what}");
            let entry = charged(&gateway, &key).await;
            assert_eq!(-entry.amount.picos(), CHARGE, "{what}");
            let attempts = gateway.records.all().remove(0).attempts;
            let class: Vec<String> = attempts.iter().map(|one| one.class.to_string()).collect();
            assert_eq!(class, ["busy"], "{what}");
            // Nobody else can be asked.
            second.follow(busy);
            let answer = (gateway.post(path(caller), &key, &asking(caller, true))).await;
            let expected = match caller {
                Family::Messages => (529, ("overloaded_error", "")),
                Family::Chat | Family::Responses => (503, ("api_error", "upstream_unavailable")),
            };
            let (kind, code) = told(caller, &answer);
            assert_eq!(
                (answer.status, (kind.as_str(), code.as_str())),
                expected,
                "{what}"
            );
            gateway.settled().await;
            let charges = gateway.charges(&key).await;
            let due: i64 = charges.iter().map(|charge| -charge.amount.picos()).sum();
            assert_eq!(
                (charges.len(), due),
                (2, CHARGE),
                "the second is free: {what}"
            );
        }
    }
}

/// R9: no capacity after a long opening, which the customer has: its stream says so in the family's words, for free. After something
/// was shown it does not, because clients repeat what says so, and pay again.
#[tokio::test]
async fn r9_overloaded_inside_a_stream_is_said_only_while_nothing_was_shown() {
    let cases = all_ways().map(async |(caller, target)| {
        for shown in [0, 1] {
            let at = opening(target) + shown;
            // Longer than an opening is waited for.
            let wait = Duration::from_secs(if shown == 0 { 3 } else { 0 });
            let busy = busy(target, at).next().unwrap().wait_after(at, wait);
            let upstream = ScriptedUpstream::start(busy).await;
            let gateway = before(&upstream, target, "").await;
            let key = gateway.key("5.00").await;
            let answer = post(&gateway, &key, caller, true).await;
            let what = format!("{caller} on {target} after {shown}: {}", answer.text);
            assert!(!ended_cleanly(caller, &answer.text), "{what}");
            let (kind, code) = told(caller, &answer);
            let expected = match (caller, shown) {
                (Family::Messages, 0) => ("overloaded_error", ""),
                (Family::Messages, _) => ("api_error", ""),
                (_, 0) => ("server_error", "server_is_overloaded"),
                (Family::Chat, _) => ("upstream_error", "upstream_error"),
                (Family::Responses, _) => ("upstream_error", "server_error"),
            };
            assert_eq!((kind.as_str(), code.as_str()), expected, "{what}");
            gateway.settled().await;
            let charges = gateway.charges(&key).await;
            let due: i64 = charges.iter().map(|charge| -charge.amount.picos()).sum();
            assert_eq!(due, i64::try_from(shown).unwrap() * 15_000_000, "{what}");
        }
    });
    let cases: Vec<_> = cases.collect();
    futures_util::future::join_all(cases).await;
}

/// R10: an opening that shows nothing, then an error or the end.
#[tokio::test]
async fn r10_an_error_behind_an_opening_goes_to_the_next_target() {
    for (caller, target) in all_ways() {
        let path_of = target.protocol().path;
        let vendor = if target == Family::Messages {
            Vendor::Anthropic
        } else {
            Vendor::OpenAi
        };
        let error = breaking(vendor, path_of);
        let plain = || speech(target, true);
        let done = if target == Family::Chat {
            "data: [DONE]\n\n"
        } else {
            ": end\n\n"
        };
        let mut failures = vec![
            plain().then(1, error.clone()),
            plain().then(opening(target), error.clone()),
            plain()
                .then(1, error)
                .wait_after(1, Duration::from_millis(200)),
            plain().end_after(1),
            plain().end_after(opening(target)),
            plain().reset_after(1),
            plain().close_after(opening(target)),
        ];
        failures.push(plain().then(1, done));
        for failure in failures {
            let shape = format!("{caller} on {target}: {failure:?}");
            let (first, second) = (
                ScriptedUpstream::start(failure).await,
                ScriptedUpstream::start(speech(target, true)).await,
            );
            let gateway = Gateway::start(&catalog(target), &two(&first, &second, target)).await;
            let key = gateway.key("5.00").await;
            let answer = post(&gateway, &key, caller, true).await;
            assert_eq!(
                read(caller, true, &answer),
                "one two three",
                "{shape}\n{}",
                answer.text
            );
            let entry = charged(&gateway, &key).await;
            assert_eq!(-entry.amount.picos(), CHARGE, "{shape}");
            assert_eq!(entry.bill.unwrap().target, "second/two", "{shape}");
            assert_eq!(second.requests().len(), 1, "{shape}");
        }
    }
}
