//! A world for the tables: real gateways, providers that bill, and purses of people who use them. Providers, people and gateways live in
//! one time, which runs `pace` times as fast as the machine's.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use farebox_ledger::store::SharedStore;
use farebox_ledger::{Cap, CapInterval, Change, EntryKind, EntryQuery, KeyChange, Perform};
use serde_json::Value;

use super::asks::{Ask, Told};
use super::foreign::{self, Foreign, Other};
use crate::process::bad_machines::Machine;
use crate::support::billing::making::{Prices, USUAL};
use crate::support::billing::provider::{Nature, Provider, Truth};
use crate::support::cluster::Cluster;
use crate::support::load::{self, UPSTREAM_KEY, new_ledger, usd};
use crate::support::process::{Served, client_builder};
use crate::support::skip::skip;
use crate::support::{TestKey, act, path, payment};

/// These databases have no standby.
const SINGLE: (&str, &str) = ("FAREBOX_ALLOW_SINGLE", "true");
/// One context of the usual model, in picodollars.
const CONTEXT: i64 = 600_000_000_000;
/// What a gateway says whose processors are behind.
const NO_TIME: &str = "share of the gateway's time";
/// How often its callers come again.
const PERSEVERANCE: usize = 200;
/// How long everything may take to end and settle, on any machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// One published model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model {
    pub(super) slug: &'static str,
    /// The providers of its targets, in their order.
    pub(super) targets: &'static [usize],
    pub(super) reasons: bool,
    pub(super) prices: Prices,
    pub(super) context: u64,
    pub(super) max_output: u64,
    /// The edge of a dearer tier.
    pub(super) tier: Option<u64>,
    /// Further members of `limits`: `, speed = 150`.
    pub(super) limits: &'static str,
}

/// At $3 and $15, 200,000 tokens of context and 64,000 of output.
pub(super) const PLAIN: Model = Model {
    slug: "plain",
    targets: &[0],
    reasons: false,
    prices: USUAL,
    context: 200_000,
    max_output: 64_000,
    tier: None,
    limits: "",
};

/// A provider, and what stands about it in `routes.toml`.
#[derive(Debug, Clone, Copy)]
pub(super) struct House {
    pub(super) nature: Nature,
    /// Further lines of its table.
    pub(super) lines: &'static str,
}

/// Where everything happens.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) pace: u32,
    /// One on a file; more on PostgreSQL.
    pub(super) gateways: usize,
    pub(super) houses: Vec<House>,
    pub(super) models: Vec<Model>,
    pub(super) seed: u64,
}

/// What somebody has paid, and what became of it.
pub(super) struct Purse {
    pub(super) keys: Vec<TestKey>,
    /// In picodollars.
    pub(super) paid: AtomicU64,
    pub(super) log: Mutex<Vec<Told>>,
    running: Mutex<HashMap<u64, i64>>,
    billed: Mutex<i64>,
}

/// One charge of the ledger.
#[derive(Debug, Clone)]
pub(super) struct Charged {
    pub(super) picos: i64,
    /// The number of the provider's answer.
    pub(super) answer: Option<String>,
}

/// Gateways, providers and the ledger.
pub(super) struct World {
    pub(super) providers: Vec<Provider>,
    pub(super) pace: f64,
    pub(super) models: Vec<Model>,
    ledger: SharedStore,
    gateways: Vec<Served>,
    client: reqwest::Client,
    machine: Machine,
    jumped: AtomicU64,
    plans: AtomicU64,
    folder: tempfile::TempDir,
    times: String,
    foreign: Option<(Other, Foreign)>,
}

fn per_million(picos: i64) -> String {
    format!("\"{}.{:06}\"", picos / 1_000_000, picos % 1_000_000)
}

fn price(prices: Prices) -> String {
    format!(
        "input = {}, output = {}, cache_read = {}, cache_write = {}",
        per_million(prices.input),
        per_million(prices.output),
        per_million(prices.read),
        per_million(prices.write)
    )
}

fn catalog(models: &[Model]) -> String {
    let mut text = String::new();
    for model in models {
        let tiers = model.tier.map_or(String::new(), |edge| {
            let dear = price(model.prices.of_tier());
            format!(", tiers = [ {{ above_input = {edge}, price = {{ {dear} }} }} ]")
        });
        let reasons = if model.reasons { ", \"reasoning\"" } else { "" };
        write!(
            text,
            "[[model]]\nmodel = \"{slug}\"\nslug = \"{slug}\"\nprovider = \"Tests\"\nbest_path = \"chat\"\n\
             best_environments = [\"tests\"]\nprice = {{ {price}{tiers} }}\n\
             capabilities = [\"vision\", \"tools\", \"streaming\"{reasons}]\n\
             limits = {{ context = {context}, max_output = {most}{limits} }}\n\n",
            slug = model.slug,
            price = price(model.prices),
            context = model.context,
            most = model.max_output,
            limits = model.limits,
        )
        .unwrap();
    }
    text
}

fn routes(houses: &[House], providers: &[Provider], models: &[Model]) -> String {
    let mut text = String::new();
    for (number, (house, provider)) in houses.iter().zip(providers).enumerate() {
        write!(
            text,
            "[provider.up{number}]\nbase_url = \"{}\"\nspeaks = [\"chat\", \"responses\", \"messages\"]\n\
             key = {{ env = \"UPSTREAM_KEY\" }}\nprivate_urls = true\n{}\n\n",
            provider.upstream.base_url(),
            house.lines
        )
        .unwrap();
    }
    for model in models {
        let targets = model.targets.iter();
        let targets = targets.map(|number| {
            format!(
                "{{ provider = \"up{number}\", model = \"upstream-{}\" }}",
                model.slug
            )
        });
        let targets = targets.collect::<Vec<_>>().join(", ");
        write!(
            text,
            "[[route]]\nslug = \"{}\"\ntargets = [ {targets} ]\n\n",
            model.slug
        )
        .unwrap();
    }
    text
}

impl Purse {
    pub(super) fn paid(&self) -> i64 {
        i64::try_from(self.paid.load(Ordering::SeqCst)).unwrap()
    }

    /// What may be lost of it: one context, at most half of what was paid.
    pub(super) fn context(&self) -> i64 {
        CONTEXT.min(self.paid() / 2)
    }

    /// The sender tries this one again.
    pub(super) fn again(&self, plan: u64) {
        let mut log = self.log.lock().unwrap();
        if let Some(told) = log.iter_mut().find(|told| told.plan == plan) {
            told.again = true;
        }
    }

    /// What it has beyond twice a bill and those of all that runs: nothing but holds can be in the way of a request then.
    fn has_plenty(&self, bill: i64) -> bool {
        let rest = self.paid() - *self.billed.lock().unwrap();
        let beside: i64 = self.running.lock().unwrap().values().sum();
        rest > 2 * (bill + beside)
    }
}

impl World {
    /// `None` where something for it is not installed, which is listed.
    pub(super) async fn start(setting: &Setting) -> Option<Self> {
        let machine = Machine::new()?;
        let fleet = setting.gateways > 1;
        let cluster = if fleet { Cluster::shared() } else { None };
        if fleet && cluster.is_none() {
            skip("the tables of money at a fleet: PostgreSQL is not installed");
            return None;
        }
        let (pace, folder) = (f64::from(setting.pace), tempfile::tempdir().unwrap());
        let mut providers = Vec::new();
        for (number, house) in setting.houses.iter().enumerate() {
            let seed = setting.seed * 10 + number as u64;
            providers.push(Provider::start(house.nature, pace, seed).await);
        }
        let routes = routes(&setting.houses, &providers, &setting.models);
        std::fs::write(folder.path().join("catalog.toml"), catalog(&setting.models)).unwrap();
        std::fs::write(folder.path().join("routes.toml"), routes).unwrap();
        let address = match cluster {
            Some(cluster) => cluster.url(&cluster.database()),
            None => folder.path().join("farebox.db").display().to_string(),
        };
        let ledger = new_ledger(&address).await;
        let mut world = Self {
            providers,
            pace,
            models: setting.models.clone(),
            ledger,
            gateways: Vec::new(),
            client: client_builder().pool_max_idle_per_host(0).build().unwrap(),
            machine,
            jumped: AtomicU64::new(0),
            plans: AtomicU64::new(1),
            folder,
            times: setting.pace.to_string(),
            foreign: None,
        };
        let times = world.times.clone();
        let machine = world.machine.environment();
        let environment = [
            UPSTREAM_KEY,
            SINGLE,
            ("FAREBOX_LEDGER", &*address),
            ("MACHINE_TIMES", &*times),
            machine[0],
            machine[1],
        ];
        world.gateways = (0..setting.gateways)
            .map(|_| Served::start_with(world.folder.path(), &[], &environment))
            .collect();
        Some(world)
    }

    /// The same agents ask another gateway from now on; its budget is of so many dollars.
    pub(super) async fn asks(&mut self, other: Other, venv: &Path, dollars: u64) {
        self.foreign = Some((other, other.start(self, venv, dollars).await));
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Variables for a program that lives in this world's time.
    pub(super) fn machine(&self) -> [(&str, &str); 3] {
        let [library, folder] = self.machine.environment();
        [library, folder, ("MACHINE_TIMES", &self.times)]
    }

    /// A new customer with so many dollars.
    pub(super) async fn purse(&self, dollars: &str) -> Purse {
        let key = load::key(&*self.ledger, dollars).await;
        let paid = u64::try_from(usd(dollars).picos()).unwrap();
        Purse {
            keys: vec![key],
            paid: AtomicU64::new(paid),
            log: Mutex::default(),
            running: Mutex::default(),
            billed: Mutex::default(),
        }
    }

    pub(super) async fn top_up(&self, purse: &Purse, dollars: &str) {
        let amount = usd(dollars);
        let reference = format!("more-{}", self.plan());
        let paid = payment(purse.keys[0].id, amount, reference);
        self.ledger.perform(paid).await.unwrap();
        let more = u64::try_from(amount.picos()).unwrap();
        purse.paid.fetch_add(more, Ordering::SeqCst);
    }

    /// A cap for all time.
    pub(super) async fn cap(&self, purse: &Purse, dollars: &str) {
        let cap = Change::SetCap(Cap {
            interval: CapInterval::Total,
            model: None,
            limit: usd(dollars),
        });
        let change = KeyChange {
            key: purse.keys[0].id,
            change: cap,
            act: act(),
        };
        self.ledger.perform(change).await.unwrap();
    }

    /// A number that no other request has.
    pub(super) fn plan(&self) -> u64 {
        self.plans.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits so many seconds of this world.
    pub(super) async fn rest(&self, seconds: f64) {
        tokio::time::sleep(Duration::from_secs_f64(seconds / self.pace)).await;
    }

    /// Lets so many hours pass on the gateways' calendars; nothing that waits waits less.
    pub(super) fn jump(&self, hours: u64) {
        let seconds = self.jumped.fetch_add(hours * 3_600, Ordering::SeqCst) + hours * 3_600;
        self.machine.set("seconds", &seconds.to_string());
    }

    /// The provider that answers for a model first.
    fn provider(&self, slug: &str) -> &Provider {
        let model = self.models.iter().find(|model| model.slug == slug);
        &self.providers[model.unwrap().targets[0]]
    }

    /// What was really made of a request, wherever it was tried.
    fn truth(&self, plan: u64) -> Option<Truth> {
        let all = self.providers.iter();
        all.filter_map(|provider| provider.truth(plan))
            .reduce(|one, two| Truth {
                billed: one.billed + two.billed,
                ..two
            })
    }

    /// Sends a request, and again as long as the gateway has no time for it: in a fast world its processors are behind, and what is
    /// refused for that says nothing about money.
    pub(super) async fn insist(&self, purse: &Purse, ask: &Ask) -> Told {
        for _ in 0..PERSEVERANCE {
            let told = self.send(purse, ask).await;
            if !told.text.contains(NO_TIME) && told.code != "ledger_unavailable" {
                return told;
            }
            purse.again(told.plan);
            self.rest(2.0).await;
        }
        panic!("the gateway never has time: the world is too fast for this machine")
    }

    /// Sends a request and reads its answer as its sender does.
    pub(super) async fn send(&self, purse: &Purse, ask: &Ask) -> Told {
        let plan = self.plan();
        let body = ask.body(plan);
        let whole = self.provider(ask.model).whole_bill(ask.family, &body);
        let mut told = Told {
            plan,
            spare: purse.has_plenty(whole),
            ..Told::default()
        };
        purse.running.lock().unwrap().insert(plan, whole);
        self.exchange(purse, ask, &body, &mut told).await;
        // The provider hears of an end a moment later.
        self.rest(0.05).await;
        purse.running.lock().unwrap().remove(&plan);
        let truth = self.truth(plan);
        if told.status != 429 {
            let billed = truth.map_or(0, |truth| truth.billed);
            *purse.billed.lock().unwrap() += billed;
            told.billed = billed;
            told.tokens = truth.map_or(0, |truth| truth.tokens);
            told.cut = truth.is_some_and(|truth| truth.cut && told.whole);
        }
        if told.cut {
            told.spare = purse.has_plenty(whole);
        }
        purse.log.lock().unwrap().push(told.clone());
        told
    }

    async fn exchange(&self, purse: &Purse, ask: &Ask, body: &Value, told: &mut Told) {
        let begun = Instant::now();
        let number = usize::try_from(told.plan).unwrap() % self.gateways.len();
        let base = match &self.foreign {
            Some((_, foreign)) => foreign.base.as_str(),
            None => &self.gateways[number].base,
        };
        let base = base.trim_end_matches("/v1");
        let secret = match self.foreign {
            Some(_) => foreign::KEY,
            None => &purse.keys[ask.key].secret,
        };
        let mut request = self
            .client
            .post(format!("{base}{}", path(ask.family)))
            .bearer_auth(secret)
            .json(body);
        if let Some(program) = ask.program {
            request = request.header("user-agent", program);
        }
        let asking = async {
            let Ok(mut answer) = request.send().await else {
                return;
            };
            told.first = begun.elapsed().as_secs_f64() * self.pace;
            told.status = answer.status().as_u16();
            let header = |name: &str| {
                let value = answer.headers().get(name)?;
                value.to_str().ok().map(str::to_owned)
            };
            told.lowered = header("x-farebox-limit");
            told.retry_after = header("retry-after");
            let mut deaf = ask.deaf;
            loop {
                if deaf > 0.0 {
                    self.rest(deaf.min(28.5)).await;
                    deaf -= 28.5;
                }
                match answer.chunk().await {
                    Ok(Some(chunk)) => told.hear(&chunk),
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            told.ends();
            if let Some((other, _)) = self.foreign.as_ref().filter(|_| told.status != 200) {
                told.code = other.code(&told.text).to_owned();
                if !told.code.is_empty() {
                    told.status = 429;
                }
            }
        };
        match ask.leave {
            Some(seconds) => {
                let patience = Duration::from_secs_f64(seconds / self.pace);
                let _ = tokio::time::timeout(patience, asking).await;
            }
            None => asking.await,
        }
    }

    /// Waits until no hold is open and every provider has heard of every end.
    pub(super) async fn settle(&self) {
        let begun = Instant::now();
        while !self.ledger.open_holds(None, 1).await.unwrap().is_empty() {
            assert!(begun.elapsed() < PATIENCE, "holds stay open");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// All that the providers billed, in picodollars.
    pub(super) fn billed(&self) -> i64 {
        self.providers.iter().map(Provider::billed).sum()
    }

    /// What the keys of a purse were charged.
    pub(super) async fn charges(&self, purse: &Purse) -> Vec<Charged> {
        let mut all = Vec::new();
        for key in &purse.keys {
            let query = EntryQuery {
                key: Some(key.id),
                ..EntryQuery::default()
            };
            let entries = self.ledger.entries(query).await.unwrap();
            let charges = entries
                .into_iter()
                .filter(|entry| entry.kind == EntryKind::Charge);
            all.extend(charges.map(|charge| Charged {
                picos: -charge.amount.picos(),
                answer: charge.bill.as_ref().and_then(|bill| bill.answer_id.clone()),
            }));
        }
        all
    }

    /// What a gateway has logged.
    pub(super) fn logs(&self) -> String {
        self.gateways.iter().map(Served::log).collect()
    }
}
