//! Customers who press Esc on a conversation whose prompt is cached: they pay what the provider bills, not ten times as much.
//!
//! `support/billing.rs`, which shares no code with the gateway, caches prompts and makes the bills.

use std::time::Duration;

use farebox_ledger::Evidence;
use farebox_protocol::{Classes, Family};
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::support::billing::{Bills, Manner};
use crate::support::upstream::{Script, ScriptedUpstream};
use crate::support::{Gateway, TestKey, ask, path};

/// A line of some twenty tokens.
const LINE: &str = "Please compare the two listings below, line by line, and say what changed between them since then.\n";

/// A conversation of some 40,000 tokens that grows by one small turn each time.
struct Talk {
    family: Family,
    marked: bool,
    turns: Vec<Value>,
}

impl Talk {
    fn new(family: Family, marked: bool) -> Self {
        let mut talk = Self {
            family,
            marked,
            turns: Vec::new(),
        };
        talk.says("user", &LINE.repeat(2_000));
        talk
    }

    fn says(&mut self, role: &str, text: &str) {
        let kind = match (self.family, role) {
            (Family::Chat, _) => "text",
            (_, "user") => "input_text",
            _ => "output_text",
        };
        self.turns
            .push(json!({"role": role, "content": [{"type": kind, "text": text}]}));
    }

    /// The request, with marks on its last two messages of the user if it is marked, as clients set them.
    fn body(&self) -> Value {
        let mut body = ask(self.family, "test-model", true);
        let list = self.family.protocol().conversation_field();
        body[list] = json!(self.turns);
        let limit = match self.family {
            Family::Responses => "max_output_tokens",
            _ => "max_tokens",
        };
        body[limit] = json!(60_000);
        if self.marked {
            let last = self.turns.len() - 1;
            for at in [last.saturating_sub(2), last] {
                body[list][at]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
            }
        }
        body
    }

    /// The next turn, after a short answer.
    fn goes_on(&mut self) {
        self.says("assistant", "They are the same.");
        self.says("user", &LINE.repeat(10));
    }
}

/// Reads so many bytes of the answer, and leaves.
pub(super) async fn leave_after(
    gateway: &Gateway,
    key: &TestKey,
    (family, body): (Family, Value),
    bytes: usize,
) {
    let url = format!("{}{}", gateway.base, path(family));
    let asking = gateway.client.post(url).bearer_auth(&key.secret);
    let mut answer = asking.json(&body).send().await.unwrap().bytes_stream();
    let mut read = 0;
    while read < bytes {
        read += answer.next().await.unwrap().unwrap().len();
    }
}

/// An upstream that caches prompts, and answers with so many words.
async fn caching(bills: &Bills, marked: bool, words: usize, pace: u64) -> ScriptedUpstream {
    let manner = Manner {
        remembers: true,
        caches: marked,
        pace,
        piece: 60,
        ..Manner::default()
    };
    let (bills, text) = (
        bills.clone(),
        "several plain words of an answer ".repeat(words / 6),
    );
    // Cache marks on chat and responses are understood by some vendors, and by none that this upstream plays.
    ScriptedUpstream::tolerant(Script::by(move |seen, number| {
        let long = seen
            .json()
            .to_string()
            .matches("They are the same.")
            .count()
            > 1;
        let text = if long {
            text.as_str()
        } else {
            "They are the same."
        };
        bills.reply(seen, number, text, manner)
    }))
    .await
}

/// Two turns are read to their end, the third is left in its middle. What was charged for it in thousandths of its bill, and by whose
/// count.
async fn esc(family: Family, marked: bool, words: usize) -> (i64, Evidence) {
    let bills = Bills::default();
    let upstream = caching(&bills, marked, words, 2).await;
    let gateway = Gateway::before(&upstream).await;
    // A target that nobody knows is read to its usage, whatever it costs.
    let (target, known) = ("up/upstream-model-1", Duration::from_secs(2_000));
    let calibrations = &gateway.front.proxy.calibrations;
    calibrations.note_stream(target, Classes::STANDARD, 200_000, known);
    let key = gateway.key("5").await;
    let mut talk = Talk::new(family, marked);
    for _ in 0..2 {
        let answer = gateway.post(path(family), &key, &talk.body()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        talk.goes_on();
    }
    leave_after(&gateway, &key, (talk.family, talk.body()), 4_000).await;
    gateway.settled().await;
    let charge = gateway.charges(&key).await.pop().unwrap();
    let bill = charge.bill.unwrap();
    assert_eq!(bill.end_reason.as_str(), "client_gone");
    let billed = bills.ended(&upstream)[2].cost();
    (
        -charge.amount.picos() * 1_000 / billed,
        bill.evidence.unwrap(),
    )
}

#[tokio::test]
async fn esc_on_a_cached_conversation_costs_what_is_billed() {
    for family in [Family::Chat, Family::Responses] {
        for marked in [false, true] {
            // The rest of a short answer is read to its usage; a long one is stopped, and the prompt counts as learned.
            for (words, evidence) in [(600, Evidence::Provider), (60_000, Evidence::Learned)] {
                let (share, by) = esc(family, marked, words).await;
                println!("| {family}, marked: {marked}, {words} words | {share} ‰ of the bill |");
                assert_eq!(by, evidence, "{family} {marked} {words}");
                assert!(
                    (900..=1_100).contains(&share),
                    "{family} {marked} {words}: {share}"
                );
            }
        }
    }
}

#[tokio::test]
async fn who_leaves_with_a_fresh_prompt_after_a_cached_one_pays_for_it() {
    for family in [Family::Chat, Family::Responses] {
        let bills = Bills::default();
        let upstream = caching(&bills, false, 90_000, 1).await;
        let gateway = Gateway::before(&upstream).await;
        let key = gateway.key("5").await;
        let mut talk = Talk::new(family, false);
        for _ in 0..2 {
            gateway.post(path(family), &key, &talk.body()).await;
            talk.goes_on();
        }
        talk.says(
            "user",
            &"What is fresh is billed at ten times the price.\n".repeat(12_000),
        );
        leave_after(&gateway, &key, (talk.family, talk.body()), 4_000).await;
        gateway.settled().await;
        let charge = gateway.charges(&key).await.pop().unwrap();
        let billed = bills.ended(&upstream)[2].cost();
        let share = -charge.amount.picos() * 1_000 / billed;
        println!(
            "| {family}, 150,000 fresh | {:.4} | {} |",
            billed as f64 / 1e12,
            charge.amount
        );
        assert!((900..=1_100).contains(&share), "{family}: {share}");
    }
}
