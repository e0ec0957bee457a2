//! Mixed load: customers of all families, whole and streamed, some of whom leave, in front of an upstream that never lies.
//!
//! Every request carries a mark that tells the upstream what to produce, so that a checker can compare the journal with what was
//! really produced, without asking the gateway.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::store::SharedStore;
use farebox_ledger::{
    Amount, Durability, KeyId, KeySettings, Ledger, LedgerAddress, OpenMode, Opening, OperationId,
};
use farebox_protocol::{Family, ReportedUsage};
use tokio::task::JoinSet;

use super::upstream::{Reply, Script, ScriptedUpstream, Seen, Speech};
use super::{CATALOG, TestKey, ask, path, routes};

/// Input tokens of every marked request.
const INPUT: u64 = 400;
/// The variable that the routes name.
pub(crate) const UPSTREAM_KEY: (&str, &str) = ("UPSTREAM_KEY", "a-secret-of-the-upstream");
/// Output tokens of one piece, which is one frame of a stream.
pub(crate) const PIECE: u64 = 150;
/// Characters of one piece: more tokens than any count of ours that leans to the customer's side.
const LETTERS: usize = 300;
/// Most pieces of an answer.
const MOST_PIECES: u64 = 40;
/// The output limit that customers ask for.
const LIMIT: u64 = 8_000;

/// A quick number for every day, or the one of `FAREBOX_FULL=1`.
pub(crate) fn sized(ci: u64, full: u64) -> u64 {
    if std::env::var_os("FAREBOX_FULL").is_some() {
        full
    } else {
        ci
    }
}

/// What the largest request of the load costs, in picodollars at the catalog's price.
pub(crate) const LARGEST: i64 =
    INPUT.cast_signed() * 3_000_000 + (MOST_PIECES * PIECE).cast_signed() * 15_000_000;

/// Numbers that look random and are the same in every run.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// A number below `most`.
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most
    }
}

/// The models `test-model`, which cancels for a customer who leaves, and `test-drain`, which reads on.
pub(crate) fn both_policies(base_url: &str) -> (String, String) {
    let blind = CATALOG
        .find("[[model]]\nmodel             = \"Blind\"")
        .unwrap();
    let (first, rest) = CATALOG.split_at(blind);
    let second = first
        .replace("test-model", "test-drain")
        .replace("test-alias", "test-drains");
    let drain = "\n[[route]]\nslug = \"test-drain\"\non_disconnect = \"drain\"\ntargets = [ { provider = \"up\", model = \"m\" } ]\n";
    (format!("{first}{second}{rest}"), routes(base_url) + drain)
}

/// A folder with the two files, for a gateway before this upstream.
pub(crate) fn place(upstream: &ScriptedUpstream) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (catalog, routes) = both_policies(&upstream.base_url());
    fs::write(folder.path().join("catalog.toml"), catalog).unwrap();
    fs::write(folder.path().join("routes.toml"), routes).unwrap();
    let ledger = folder.path().join("farebox.db");
    (folder, ledger)
}

/// A new ledger for writing.
pub(crate) fn create(ledger: &Path) -> SqliteLedger {
    SqliteLedger::create(ledger, OpenMode::Write, Durability::Prompt).unwrap()
}

/// The same ledger again.
pub(crate) fn open(ledger: &Path) -> SqliteLedger {
    SqliteLedger::open(ledger, OpenMode::Write, Durability::Prompt).unwrap()
}

/// An exact amount.
pub(crate) fn usd(text: &str) -> Amount {
    Amount::from_usd_str(text).unwrap()
}

/// What a request asks the upstream to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) number: u64,
    pub(crate) pieces: u64,
    pub(crate) pace: u64,
}

impl Mark {
    fn text(self) -> String {
        format!("mark:{}:{}:{}:", self.number, self.pieces, self.pace)
    }

    /// The mark in a request as the upstream got it; pieces are at most what the limit sent allows.
    pub(crate) fn of(seen: &Seen) -> Option<Self> {
        let body = seen.json();
        let text = body.to_string();
        let mut parts = text
            .split_once("mark:")?
            .1
            .split(':')
            .map_while(|part| part.parse::<u64>().ok());
        let (number, pieces, pace) = (parts.next()?, parts.next()?, parts.next()?);
        let limit = ["max_completion_tokens", "max_tokens", "max_output_tokens"]
            .iter()
            .find_map(|name| body[name].as_u64());
        Some(Self {
            number,
            pieces: pieces.min(limit.unwrap_or(LIMIT) / PIECE),
            pace,
        })
    }

    pub(crate) fn usage(self) -> ReportedUsage {
        ReportedUsage {
            input: INPUT,
            output: self.pieces * PIECE,
            ..ReportedUsage::default()
        }
    }
}

/// The family of a request as the upstream got it.
pub(crate) fn family_of(seen: &Seen) -> Family {
    Family::ALL
        .into_iter()
        .find(|family| seen.path.ends_with(family.protocol().path))
        .expect("a family's path")
}

/// Frames of a stream before its first piece.
pub(crate) fn before_pieces(family: Family) -> usize {
    match family {
        Family::Chat => 1,
        Family::Responses => 4,
        Family::Messages => 3,
    }
}

/// What an honest upstream answers to a marked request.
pub(crate) fn speech(seen: &Seen) -> (Mark, Speech) {
    let mark = Mark::of(seen).expect("a marked request");
    let piece = "w".repeat(LETTERS) + " ";
    let text = piece.repeat(mark.pieces as usize);
    let id = format!("up-{}", mark.number);
    (
        mark,
        Speech::new(family_of(seen), &text)
            .id(&id)
            .usage(mark.usage()),
    )
}

/// An upstream that produces exactly what each request is marked with, and says so.
pub(crate) fn honest() -> Script {
    Script::by(|seen, _| -> Reply {
        let (mark, speech) = speech(seen);
        let pace = Duration::from_millis(mark.pace);
        if seen.json()["stream"] == true {
            speech.stream().paced(pace)
        } else {
            speech.whole().late(pace * 4)
        }
    })
}

/// What the upstream really made for a request, in picodollars at the catalog's price: at most, when its end is uncertain.
pub(crate) fn true_cost(seen: &Seen) -> i64 {
    let Some(mark) = Mark::of(seen) else { return 0 };
    let sent = seen.sent.load(Ordering::SeqCst);
    let streamed = seen.json()["stream"] == true;
    let pieces = if streamed {
        sent.saturating_sub(before_pieces(family_of(seen))) as u64
    } else {
        mark.pieces * sent as u64
    };
    let output = (pieces.min(mark.pieces) * PIECE).max(1);
    i64::try_from(INPUT * 3_000_000 + output * 15_000_000).unwrap()
}

/// One customer's knowledge of one request.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) key: KeyId,
    pub(crate) number: u64,
    /// The gateway's id, once an answer's head was seen.
    pub(crate) request: Option<OperationId>,
    /// The cost that a whole answer said, after it was read to its end.
    pub(crate) cost: Option<Amount>,
    /// A stream was read to its proper end.
    pub(crate) complete: bool,
    pub(crate) status: u16,
}

/// Makes a ledger at an address: in a file, or in a database whose server is alone.
pub(crate) async fn new_ledger(address: &str) -> SharedStore {
    let address: LedgerAddress = address.parse().unwrap();
    let opening = Opening {
        allow_single: true,
        ..Opening::new(OpenMode::Write)
    };
    address.create(&opening).await.unwrap()
}

/// A new key in a ledger.
pub(crate) async fn key(ledger: &dyn Ledger, amount: &str) -> TestKey {
    super::new_key(
        ledger,
        amount,
        KeySettings {
            label: "load".to_owned(),
            ..KeySettings::default()
        },
    )
    .await
}

/// A marked request of any family.
pub(crate) fn marked(family: Family, slug: &str, stream: bool, mark: Mark) -> serde_json::Value {
    let mut body = ask(family, slug, stream);
    for name in ["messages", "input"] {
        if body[name].is_array() {
            body[name][0]["content"] = mark.text().into();
        }
    }
    for name in ["max_tokens", "max_output_tokens"] {
        if body[name].is_u64() {
            body[name] = LIMIT.into();
        }
    }
    body
}

/// The words with which a family's stream ends properly.
pub(crate) fn ends_properly(family: Family, text: &str) -> bool {
    text.contains(match family {
        Family::Chat => "data: [DONE]",
        Family::Responses => "event: response.completed",
        Family::Messages => "event: message_stop",
    })
}

/// Customers who send requests until they are stopped.
pub(crate) struct Load {
    told: Arc<Mutex<Vec<Told>>>,
    stop: Arc<AtomicBool>,
    customers: JoinSet<()>,
}

impl Load {
    /// Starts this many customers; keys are shared in turn, marks come from one counter.
    pub(crate) fn start(
        base: &str,
        keys: &[TestKey],
        count: usize,
        numbers: &Arc<AtomicU64>,
        seed: u64,
    ) -> Self {
        let (told, stop) = (
            Arc::new(Mutex::new(Vec::new())),
            Arc::new(AtomicBool::new(false)),
        );
        let client = super::process::client();
        let mut customers = JoinSet::new();
        for customer in 0..count {
            let key = keys[customer % keys.len()].clone();
            let (told, stop, numbers) = (Arc::clone(&told), Arc::clone(&stop), Arc::clone(numbers));
            let (client, base, mut dice) = (
                client.clone(),
                base.to_owned(),
                Dice::new(seed * 1_000 + customer as u64),
            );
            customers.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let number = numbers.fetch_add(1, Ordering::Relaxed);
                    let one = one(&client, &base, &key, number, &mut dice).await;
                    let failed = one.status == 0;
                    told.lock().unwrap().push(one);
                    if failed {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                }
            });
        }
        Self {
            told,
            stop,
            customers,
        }
    }

    /// Whether a request with at least this number was answered.
    pub(crate) fn has_sold_since(&self, number: u64) -> bool {
        let told = self.told.lock().unwrap();
        (told.iter().rev()).any(|told| told.number >= number && told.status == 200)
    }

    /// Waits for the customers and returns what they know.
    pub(crate) async fn end(mut self) -> Vec<Told> {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = self.customers.join_next().await {
            ended.unwrap();
        }
        std::mem::take(&mut self.told.lock().unwrap())
    }
}

/// One request of a random kind.
async fn one(
    client: &reqwest::Client,
    base: &str,
    key: &TestKey,
    number: u64,
    dice: &mut Dice,
) -> Told {
    let family = Family::ALL[dice.below(3) as usize];
    let (stream, drains, leaves) = (dice.below(3) > 0, dice.below(2) == 0, dice.below(5) == 0);
    let mark = Mark {
        number,
        pieces: 1 + dice.below(MOST_PIECES),
        pace: dice.below(6),
    };
    let leaves_after = leaves.then(|| dice.below(30));
    let body = marked(
        family,
        if drains { "test-drain" } else { "test-model" },
        stream,
        mark,
    );
    let mut told = Told {
        key: key.id,
        number,
        request: None,
        cost: None,
        complete: false,
        status: 0,
    };
    let sending = client
        .post(format!("{base}{}", path(family)))
        .bearer_auth(&key.secret)
        .json(&body)
        .send();
    let patience = if stream { None } else { leaves_after };
    let sent = match patience {
        Some(millis) => tokio::time::timeout(Duration::from_millis(millis), sending)
            .await
            .ok(),
        None => Some(sending.await),
    };
    let Some(Ok(mut answer)) = sent else {
        return told;
    };
    told.status = answer.status().as_u16();
    let header = |name: &str| {
        answer
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    told.request = header("x-request-id").and_then(|id| id.strip_prefix("req_")?.parse().ok());
    let cost = header("x-farebox-cost").map(|cost| Amount::from_usd_str(&cost).unwrap());
    let (mut text, mut chunks) = (Vec::new(), 0);
    loop {
        match answer.chunk().await {
            Ok(Some(chunk)) => text.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(_) => return told,
        }
        chunks += 1;
        if stream && leaves_after.is_some_and(|most| chunks > most) {
            return told;
        }
    }
    told.cost = cost;
    told.complete =
        stream && told.status == 200 && ends_properly(family, &String::from_utf8_lossy(&text));
    told
}
