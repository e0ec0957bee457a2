//! The spine in paused time, with the built-in provider on one side and the reference ledger on the other; no sockets.
//!
//! Half a minute or an hour of a customer's time takes milliseconds here, and every run is the same.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use farebox_ledger::memory::MemoryLedger;
use farebox_ledger::{
    Act, Amount, Change, EntryKind, EntryQuery, Evidence, JournalEntry, KeyChange, KeySettings,
    Ledger, Membership, NewKey, Perform, SecretHash, UsageRow,
};
use tokio::time::{sleep, timeout};

use super::rate_limit::RateLimits;
use super::*;
use crate::billing::exposure::ExposedCustomers;
use crate::billing::outages::FailedTarget;
use crate::clock;
use crate::config::{self, Config, Lookup, ProcessSecrets, Source};
use farebox_door::byte_room::ByteShare;
use farebox_protocol::Classes;

mod counting;
mod oddities;
mod paced;
mod slow;
mod translated;

/// $3 in, $15 out.
const CATALOG: &str = include_str!("tests/catalog.toml");
const ROUTES: &str = include_str!("tests/routes.toml");

#[derive(Debug, Default)]
struct Ended(Mutex<Vec<Arc<Record>>>);

impl Observer for Ended {
    fn ended(&self, record: Arc<Record>) {
        self.0.lock().unwrap().push(record);
    }
}

struct House {
    proxy: Arc<Proxy>,
    rate_limits: Arc<RateLimits>,
    /// Of all requests.
    connection: ConnectionFate,
    ended: Arc<Ended>,
}

impl House {
    fn new() -> Self {
        Self::with(|config| config)
    }

    /// A gateway whose only provider speaks one family.
    fn speaking(family: Family) -> Self {
        Self::with(|config| config.speaking(family))
    }

    /// Lets it know how fast its targets are, so that a leaving stops them.
    fn experienced(self) -> Self {
        for target in ["sim/sim", "sim/sim-slow"] {
            let (classes, took) = (Classes::STANDARD, Duration::from_secs(1_000));
            self.proxy
                .calibrations
                .note_stream(target, classes, 100_000, took);
        }
        self
    }

    fn with(change: impl FnOnce(Config) -> Config) -> Self {
        let (catalog, routes) = (
            Source::new("catalog.toml", CATALOG),
            Source::new("routes.toml", ROUTES),
        );
        let (config, faults) = config::load(&catalog, &routes, &ProcessSecrets { lenient: true });
        let config =
            change(config.unwrap_or_else(|| panic!("{}", faults.render(config::Paint::Plain))));
        let ended = Arc::new(Ended::default());
        let proxy = Proxy {
            upstreams: Upstreams::new(&config).unwrap(),
            config: Arc::new(ConfigHandle::new(config)),
            ledger: Arc::new(MemoryLedger::new()),
            tasks: TaskTracker::new(),
            observer: Arc::<Ended>::clone(&ended),
            calibrations: Calibrations::default(),
            turns: Turns::of_test(),
            pins: Pins::default(),
            items: Arc::default(),
            under_way: UnderWay::default(),
            waiting: WaitingRoom::default(),
        };
        Self {
            proxy: Arc::new(proxy),
            rate_limits: Arc::new(RateLimits::default()),
            connection: ConnectionFate::default(),
            ended,
        }
    }

    async fn key(&self, usd: &str) -> Key {
        new_key(&*self.proxy.ledger, usd).await
    }

    async fn ask(
        &self,
        key: &Key,
        family: Family,
        slug: &str,
        words: u32,
        limit: Option<u32>,
    ) -> Result<Reply, Failure> {
        self.send(key, family, body(family, slug, words, limit))
            .await
    }

    async fn send(&self, key: &Key, family: Family, body: String) -> Result<Reply, Failure> {
        self.send_in(None, key, family, body).await
    }

    /// Like [`Self::send`], with a body whose memory is taken from this room.
    async fn send_in(
        &self,
        room: Option<ByteShare>,
        key: &Key,
        family: Family,
        body: String,
    ) -> Result<Reply, Failure> {
        let request = Request {
            id: clock::operation_id(),
            customer: key.customer.id,
            key: key.id,
            pass: self.rate_limits.enter(key, Instant::now()).unwrap(),
            work: Work::of(&self.proxy.turns, holder(key.customer.id)),
            room,
            family,
            call: None,
            body: Bytes::from(body),
            headers: Vec::new(),
            session: None,
            run: None,
            is_owners: key.is_owner,
            ends_with_error: false,
            origin: Origin::default(),
            connection: self.connection.clone(),
            arrived: Instant::now(),
            at: clock::now(),
        };
        self.proxy
            .run(key, request, &mut RefusedFacts::default())
            .await
    }

    async fn account(&self, key: &Key) -> farebox_ledger::Account {
        self.proxy
            .ledger
            .find_key(key.id)
            .await
            .unwrap()
            .unwrap()
            .customer
            .account
    }

    /// All charges, once every request has ended; also checks the books.
    async fn charges(&self) -> Vec<JournalEntry> {
        while !self.proxy.tasks.is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(
            self.proxy.ledger.open_holds(None, 10).await.unwrap(),
            Vec::new()
        );
        assert_eq!(
            self.proxy.ledger.verify().await.unwrap().faults,
            Vec::<String>::new()
        );
        let entries = self
            .proxy
            .ledger
            .entries(EntryQuery::default())
            .await
            .unwrap();
        entries
            .into_iter()
            .filter(|entry| entry.kind == EntryKind::Charge)
            .collect()
    }
}

/// A key with this balance and room for a thousand concurrent requests.
pub(crate) async fn new_key(ledger: &dyn Ledger, usd: &str) -> Key {
    let settings = KeySettings {
        concurrency: Some(1_000),
        ..KeySettings::default()
    };
    let first_credit = Some((
        Amount::from_usd_str(usd).unwrap(),
        clock::operation_id().to_string(),
    ));
    let new = NewKey {
        within: Membership::default(),
        id: clock::key_id(),
        secret: SecretHash([1; 32]),
        settings,
        first_credit,
        purse: None,
        act: act(),
    };
    ledger.perform(new).await.unwrap()
}

fn act() -> Act {
    Act {
        operation: clock::operation_id(),
        actor: "tests".to_owned(),
        at: clock::now(),
    }
}

fn body(family: Family, slug: &str, words: u32, limit: Option<u32>) -> String {
    let asked = format!("{words} words");
    let mut body = match family {
        Family::Chat => serde_json::json!({"messages": [{"role": "user", "content": asked}]}),
        Family::Responses => serde_json::json!({"input": asked}),
        Family::Messages => {
            serde_json::json!({"max_tokens": 60_000, "messages": [{"role": "user", "content": asked}]})
        }
    };
    body["model"] = slug.into();
    body["stream"] = true.into();
    if let Some(limit) = limit {
        let field = if family == Family::Responses {
            "max_output_tokens"
        } else {
            "max_tokens"
        };
        body[field] = limit.into();
    }
    body.to_string()
}

fn stream(reply: Result<Reply, Failure>) -> pipe::Receiver {
    match reply.unwrap().body {
        ReplyBody::Stream(receiver) => receiver,
        ReplyBody::Whole(body) => panic!("{body:?}"),
    }
}

async fn read(mut receiver: pipe::Receiver) -> String {
    let mut all = Vec::new();
    while let Some(bytes) = receiver.next().await {
        all.extend_from_slice(&bytes);
    }
    String::from_utf8(all).unwrap()
}

fn reason(charge: &JournalEntry) -> &str {
    charge.bill.as_ref().unwrap().end_reason.as_str()
}

#[tokio::test(start_paused = true)]
async fn an_answer_ends_at_a_limit_that_its_balance_pays_and_says_so() {
    for (family, proper) in [
        (Family::Chat, "\"finish_reason\":\"length\""),
        (Family::Responses, "event: response.incomplete"),
        (Family::Messages, "\"stop_reason\":\"max_tokens\""),
    ] {
        let house = House::new();
        let key = house.key("0.10").await;
        // The second one waits for what the first one holds.
        let first = stream(house.ask(&key, family, "quick", 20_000, None).await);
        let second = house.ask(&key, family, "quick", 20_000, None);
        let (first, second) = tokio::join!(read(first), second);
        let second = second.unwrap();
        let told = |name: &str| second.headers.iter().any(|(header, _)| *header == name);
        assert!(told("x-farebox-limit"), "{:?}", second.headers);
        let second = read(stream(Ok(second))).await;
        assert!(
            first.contains("this answer was limited to") && second.contains("out of balance"),
            "{family}: {second}"
        );
        assert!(
            first.contains(proper) && second.contains(proper),
            "{family}: …{}",
            &first[first.len() - 600..]
        );
        let charges = house.charges().await;
        assert_eq!(
            charges.iter().map(reason).collect::<Vec<_>>(),
            ["length"; 2],
            "{family}"
        );
        let account = house.account(&key).await;
        assert!(
            account.spent <= account.credit && account.held == Amount::ZERO,
            "{family}: {account:?}"
        );
        assert!(
            account.spent.picos() > 60_000_000_000,
            "{family}: most of it was used: {account:?}"
        );
        for charge in charges {
            let bill = charge.bill.unwrap();
            assert_eq!(
                (bill.evidence, bill.loss),
                (Some(Evidence::Provider), Amount::ZERO),
                "{family}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ten_agents_run_side_by_side_on_five_dollars() {
    let house = House::new();
    let key = house.key("5").await;
    let mut running = Vec::new();
    for _ in 0..10 {
        running.push(tokio::spawn(read(stream(
            house
                .ask(&key, Family::Messages, "quick", 8_000, Some(32_000))
                .await,
        ))));
    }
    assert!(
        house.account(&key).await.available().picos() > 1_000_000_000_000,
        "each takes a share of what is left"
    );
    for answer in running {
        assert!(
            answer
                .await
                .unwrap()
                .contains("\"stop_reason\":\"end_turn\"")
        );
    }
    let charges = house.charges().await;
    assert!(
        charges
            .iter()
            .all(|charge| charge.bill.as_ref().unwrap().evidence == Some(Evidence::Provider))
    );
}

#[tokio::test(start_paused = true)]
async fn a_blocked_key_ends_its_streams_within_ten_seconds() {
    let house = House::new();
    let watched = Arc::clone(&house.proxy);
    tokio::spawn(async move { watched.under_way.watch(&watched.ledger).await });
    let key = house.key("5").await;
    let mut answer = stream(house.ask(&key, Family::Chat, "quick", 50_000, None).await);
    answer.next().await.unwrap();
    house
        .proxy
        .ledger
        .perform(KeyChange {
            key: key.id,
            change: Change::Block,
            act: act(),
        })
        .await
        .unwrap();
    assert!(read(answer).await.ends_with("data: [DONE]\n\n"));
    let charges = house.charges().await;
    assert_eq!(reason(&charges[0]), "key_state");
    let bill = charges[0].bill.as_ref().unwrap();
    assert!(bill.total_ms < 10_500, "{} ms", bill.total_ms);
    assert!(matches!(
        house.ask(&key, Family::Chat, "quick", 1, None).await,
        Err(Failure::KeyState(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn what_we_close_is_free_and_is_no_leaving() {
    let house = House::new();
    let key = house.key("5").await;
    let mut answer = stream(house.ask(&key, Family::Chat, "quick", 20_000, None).await);
    answer.next().await.unwrap();
    assert!(house.connection.close());
    drop(answer);
    let charges = house.charges().await;
    assert_eq!(
        (reason(&charges[0]), charges[0].amount),
        ("gateway_closed", Amount::ZERO)
    );
    let bill = charges[0].bill.as_ref().unwrap();
    assert_eq!(bill.status, 200);
    assert!(bill.exposure > Amount::ZERO, "the provider bills it");
    // A request that comes on a connection that is closed by then asks nobody.
    let late = house.ask(&key, Family::Chat, "quick", 20_000, None).await;
    assert!(late.is_err());
    let charges = house.charges().await;
    let closed = charges.iter().map(|charge| charge.bill.as_ref().unwrap());
    let closed: Vec<_> = closed
        .map(|bill| (bill.end_reason.as_str(), bill.status))
        .collect();
    assert_eq!(closed.len(), 2);
    assert!(closed.contains(&("gateway_closed", 503)), "{closed:?}");
    let account = house.account(&key).await;
    assert_eq!(account.balance(), key.customer.account.balance());
}

#[tokio::test(start_paused = true)]
async fn a_customer_who_accepts_nothing_for_half_a_minute_is_gone() {
    let house = House::new().experienced();
    let key = house.key("5").await;
    let mut answer = stream(house.ask(&key, Family::Chat, "quick", 20_000, None).await);
    answer.next().await.unwrap();
    let began = Instant::now();
    let charges = house.charges().await;
    assert_eq!(reason(&charges[0]), "client_gone");
    assert!(
        (30..40).contains(&began.elapsed().as_secs()),
        "{:?}",
        began.elapsed()
    );
    assert!(charges[0].amount.is_negative());
    drop(answer);
}

#[tokio::test(start_paused = true)]
async fn a_slow_customer_is_served_for_an_hour_and_no_longer() {
    let house = House::new();
    let key = house.key("50").await;
    let mut answer = stream(house.ask(&key, Family::Chat, "quick", 50_000, None).await);
    let (began, mut last) = (Instant::now(), Bytes::new());
    while let Some(bytes) = answer.next().await {
        last = bytes;
        // Slower than the upstream, never silent for long; when the hour is over the rest is read at once.
        if began.elapsed() < Duration::from_secs(60 * 60) {
            sleep(Duration::from_secs(1)).await;
        }
    }
    assert!(last.ends_with(b"data: [DONE]\n\n"));
    let charges = house.charges().await;
    assert_eq!(reason(&charges[0]), "max_duration");
    assert_eq!(charges[0].bill.as_ref().unwrap().total_ms / 60_000, 60);
}

#[tokio::test(start_paused = true)]
async fn a_customer_who_leaves_at_any_frame_is_settled_once_by_the_routes_policy() {
    for family in Family::ALL {
        for slug in ["quick", "drained"] {
            // Frames of a whole answer of this kind.
            let house = House::new();
            let key = house.key("5").await;
            let mut answer = stream(house.ask(&key, family, slug, 30, None).await);
            let mut frames = 0;
            while answer.next().await.is_some() {
                frames += 1;
            }
            let full = house.charges().await[0].amount;
            for position in 0..frames {
                let house = House::new().experienced();
                let key = house.key("5").await;
                let mut answer = stream(house.ask(&key, family, slug, 30, None).await);
                for _ in 0..position {
                    answer.next().await.unwrap();
                }
                drop(answer);
                let charges = house.charges().await;
                let place = format!("{family} {slug} after {position} of {frames}");
                assert_eq!(charges.len(), 1, "{place}");
                assert!(
                    charges[0].amount.is_negative() && charges[0].amount >= full,
                    "{place}: {charges:?}, whole {full}"
                );
                if slug == "drained" {
                    assert_eq!(charges[0].amount, full, "{place}: the real usage");
                }
                assert_eq!(house.ended.0.lock().unwrap().len(), 1, "{place}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_customer_who_leaves_before_anything_came_pays_the_prompt_and_where_the_route_drains_all()
{
    // So short a prompt is not worth reading on for longer than one piece.
    for (slug, output) in [("slow", 4), ("slow-drained", 10)] {
        let house = House::new().experienced();
        let key = house.key("5").await;
        let asked = house.ask(&key, Family::Chat, slug, 8, None);
        assert!(
            timeout(Duration::from_secs(1), asked).await.is_err(),
            "the model takes two seconds"
        );
        let charges = house.charges().await;
        let usage = charges[0].bill.as_ref().unwrap().usage;
        assert_eq!(
            (charges.len(), usage.input > 0, usage.output),
            (1, true, output),
            "{slug}: {charges:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_small_requests_cost_exactly_their_sum_and_leave_nothing_held() {
    let house = House::new();
    let key = house.key("5").await;
    for _ in 0..1_000 {
        read(stream(
            house.ask(&key, Family::Chat, "quick", 1, None).await,
        ))
        .await;
    }
    let charges = house.charges().await;
    let sum: i64 = charges.iter().map(|charge| -charge.amount.picos()).sum();
    let account = house.account(&key).await;
    assert_eq!((account.spent.picos(), account.held), (sum, Amount::ZERO));
    assert!(
        charges
            .windows(2)
            .all(|pair| pair[0].amount == pair[1].amount),
        "the same request costs the same"
    );
}

/// A key that left too much unpaid is told for how long it is stopped; what a dead gateway left is not its doing.
#[tokio::test(start_paused = true)]
async fn a_key_with_too_much_exposure_is_stopped_and_told_for_how_long() {
    let house = House::new();
    let (key, now, limits) = (house.key("1").await, clock::now(), &house.rate_limits);
    let hour = UsageRow {
        hour: now,
        slug: "gone".to_owned(),
        exposure: Amount::from_picos(1 << 60),
        ..UsageRow::default()
    };
    let catalog = &house.proxy.config.current().catalog;
    let note = |row: &UsageRow| {
        let rows = BTreeMap::from([(key.id, vec![row.clone()])]);
        limits.exposure_of(key.customer.id, |known| {
            let from = known.unread(now);
            known.note(&rows, catalog, (from, now));
        });
    };
    drop(limits.enter(&key, Instant::now()).unwrap());
    let mut crashed = hour.clone();
    crashed.unmetered = crashed.exposure;
    note(&crashed);
    assert!(limits.enter(&key, Instant::now()).is_ok());
    note(&hour);
    let Err(Failure::ExposureLimit(Some(stop))) = limits.enter(&key, Instant::now()) else {
        panic!("it is stopped");
    };
    let day = 24 * 60;
    assert!((30 * day..=31 * day).contains(&stop.minutes), "{stop:?}");
    let failed = FailedTarget {
        customer: key.customer.id,
        key: key.id,
        exposure: hour.exposure,
        context: Amount::from_picos(1_000_000),
        booked: now,
    };
    limits.excuse(failed, Some(failed.context));
    note(&hour);
    assert!(
        limits.enter(&key, Instant::now()).is_err(),
        "at most ten times what a day leaves"
    );
    limits.excuse(failed, None);
    note(&hour);
    assert!(limits.enter(&key, Instant::now()).is_ok(), "an outage");
}
