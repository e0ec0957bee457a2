//! What an honest provider bills against what is charged, over many requests of a kind at once (promise P10).
//!
//! A few seconds each every day, a minute each with `FAREBOX_FULL=1`; the figures are printed and stand in `docs/PROMISES.md`.

use std::time::{Duration, Instant};

use farebox_protocol::Family;
use serde_json::{Value, json};

use crate::support::billing::{Bills, Manner};
use crate::support::load::{Dice, sized};
use crate::support::upstream::{Script, ScriptedUpstream};
use crate::support::{Gateway, ask, path};

/// Customers at the same time.
const CUSTOMERS: u64 = 4;
/// One context of the test model, in picodollars.
const CONTEXT: i64 = 200_000 * 3_000_000;

/// What is billed and what is charged or booked as loss, and how many requests it took.
struct Sums {
    billed: i64,
    charged: i64,
    requests: usize,
}

fn body(family: Family, dice: &mut Dice) -> Value {
    let lines =
        ["fn main() { println!(\"{}\", 42); }\n", "Who knew that the train was late?\n", "8,412 3.14159 77\n", "列车晚点了。\n"];
    let text: String = (0..dice.below(900)).map(|_| lines[dice.below(4) as usize]).collect();
    let mut body = ask(family, "test-model", true);
    body[if family == Family::Responses { "input" } else { "messages" }] = json!([{"role": "user", "content": text}]);
    body
}

/// Asks for a while. `leaves`: the customer goes away before anything can have come.
async fn run(manner: Manner, leaves: bool) -> Sums {
    let bills = Bills::default();
    let answer = "Some words of an answer, 1,024 of them in all, and then a few more. ".repeat(6);
    let script = {
        let bills = bills.clone();
        Script::by(move |seen, _| {
            let reply = bills.reply(seen, &answer, manner);
            if leaves { reply.late(Duration::from_millis(60)) } else { reply }
        })
    };
    let upstream = ScriptedUpstream::start(script).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("10000").await;
    let until = Instant::now() + Duration::from_secs(sized(2, 60));
    let customers = (0..CUSTOMERS).map(|number| {
        let (gateway, key) = (&gateway, &key);
        async move {
            let mut dice = Dice::new(number + 1);
            while Instant::now() < until {
                let family = Family::ALL[dice.below(3) as usize];
                let body = body(family, &mut dice);
                let asking = gateway.post(path(family), key, &body);
                if leaves {
                    let _ = tokio::time::timeout(Duration::from_millis(30), asking).await;
                } else {
                    asking.await;
                }
            }
        }
    });
    futures_util::future::join_all(customers).await;
    gateway.settled().await;
    let charges = gateway.charges(&key).await;
    let charged = charges.iter().map(|charge| charge.bill.as_ref().unwrap().loss.picos() - charge.amount.picos()).sum();
    let all = bills.all();
    // Who leaves before the words is billed the prompt: the stream is stopped at its first frame.
    let billed = all.iter().map(|billed| if leaves { billed.input.cast_signed() * 3_000_000 } else { billed.cost() }).sum();
    Sums { billed, charged, requests: all.len() }
}

#[tokio::test]
async fn what_is_billed_is_charged_or_booked_whoever_asks() {
    for (name, manner, leaves) in [
        ("honest customers, honest usage", Manner::default(), false),
        ("no usage from the provider", Manner { silent_usage: true, ..Manner::default() }, false),
        ("leaving before the first frame", Manner::default(), true),
        ("leaving, and no usage", Manner { silent_usage: true, ..Manner::default() }, true),
    ] {
        let Sums { billed, charged, requests } = run(manner, leaves).await;
        println!("{name}: {requests} requests, billed / (charged + loss) = {:.3}", billed as f64 / charged.max(1) as f64);
        assert!(requests > 20, "{name}: {requests}");
        assert!(billed <= charged + billed / 10 + CONTEXT, "{name}: billed {billed}, charged {charged}");
        // Nor is anybody charged for what was never made.
        assert!(charged <= billed + billed / 10 + CONTEXT, "{name}: billed {billed}, charged {charged}");
    }
}
