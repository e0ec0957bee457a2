//! The last dollar of a customer, bounded by its balance, by a cap of each kind or by a default cap: several keys race for it at gateways that are killed
//! meanwhile. Charged and held of a window never pass its cap (P13), nothing stays held, and the books are sound. One gateway on a file,
//! and three on PostgreSQL. Few kills for every day, 500 with `FAREBOX_FULL=1`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use farebox::clock;
use farebox_ledger::store::SharedStore;
use farebox_ledger::{
    Amount, Cap, CapInterval, Caps, Change, Credit, CreditKind, CustomerAct, CustomerChange,
    CustomerId, Defaults, KeyChange, KeySettings, Membership, NewCustomer, Perform, Scope,
    SetDefaults, UtcDay,
};

use crate::support::cluster::Cluster;
use crate::support::load::{Dice, Load, UPSTREAM_KEY, honest, new_ledger, place, usd};
use crate::support::process::Served;
use crate::support::skip::skip;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{TestKey, act, new_key_within, sized};

/// What there is to race for in each round.
const ROOM: &str = "0.15";
const KEYS: usize = 3;
/// Holds of a killed gateway end within this time, on any machine.
const PATIENCE: Duration = Duration::from_secs(90);
const SINGLE: (&str, &str) = ("FAREBOX_ALLOW_SINGLE", "true");

/// What bounds a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Balance,
    OfCustomer(CapInterval),
    OfKey(CapInterval),
    /// A default of customers, put into force in the middle of what they use. The killed gateway takes it away when it starts again: its
    /// file has none.
    OfAllCustomers,
    /// One of keys, likewise.
    OfAllKeys,
}

impl Bound {
    fn all() -> Vec<Self> {
        let of_customers = CapInterval::ALL.map(Self::OfCustomer);
        let of_keys = CapInterval::ALL.map(Self::OfKey);
        std::iter::once(Self::Balance)
            .chain(of_customers)
            .chain(of_keys)
            .chain([Self::OfAllCustomers, Self::OfAllKeys])
            .collect()
    }

    const fn is_of_key(self) -> bool {
        matches!(self, Self::OfKey(_) | Self::OfAllKeys)
    }
}

/// A customer whose keys race, and what bounds them.
struct Racers {
    bound: Bound,
    customer: CustomerId,
    keys: Vec<TestKey>,
    ledger: SharedStore,
}

impl Racers {
    async fn new(ledger: &SharedStore, bound: Bound) -> Self {
        let customer = clock::customer_id();
        let made = NewCustomer {
            id: customer,
            settings: farebox_ledger::CustomerSettings {
                label: format!("{bound:?}"),
                ..Default::default()
            },
            personal: None,
            act: act(),
        };
        ledger.perform(made).await.unwrap();
        let keys = if bound.is_of_key() { 1 } else { KEYS };
        let mut racers = Self {
            bound,
            customer,
            keys: Vec::new(),
            ledger: Arc::clone(ledger),
        };
        for _ in 0..keys {
            let within = Membership {
                customer: Some(customer),
                ..Membership::default()
            };
            let key = new_key_within(&**ledger, "0", KeySettings::default(), within).await;
            racers.keys.push(key);
        }
        if bound != Bound::Balance {
            racers.pay("9000").await;
        }
        racers
    }

    async fn pay(&self, amount: &str) {
        let paid = Credit {
            operation: clock::operation_id(),
            to: self.customer.into(),
            kind: CreditKind::TopUp,
            amount: usd(amount),
            reference: format!("paid-{}", clock::operation_id()),
            actor: "ada".to_owned(),
            at: clock::now(),
        };
        self.ledger.perform(paid).await.unwrap();
    }

    fn scope(&self) -> Scope {
        if self.bound.is_of_key() {
            self.keys[0].id.into()
        } else {
            self.customer.into()
        }
    }

    async fn caps(&self) -> Caps {
        match self.scope() {
            Scope::Key(id) => self.ledger.find_key(id).await.unwrap().unwrap().own.caps,
            Scope::Customer(id) => self.ledger.find_customer(id).await.unwrap().unwrap().caps,
        }
    }

    /// Leaves room for a few cents more than is charged and held now.
    async fn widen(&self) {
        let interval = match self.bound {
            Bound::Balance => return self.pay(ROOM).await,
            Bound::OfCustomer(interval) | Bound::OfKey(interval) => interval,
            Bound::OfAllCustomers | Bound::OfAllKeys => CapInterval::Month,
        };
        let used = self.counted().await;
        let cap = Cap {
            interval,
            model: None,
            limit: used.checked_add(usd(ROOM)).unwrap(),
        };
        let act = act();
        if matches!(self.bound, Bound::OfAllCustomers | Bound::OfAllKeys) {
            let mut defaults = Defaults::default();
            if self.bound.is_of_key() {
                defaults.key.caps.push(cap);
            } else {
                defaults.customer.caps.push(cap);
            }
            let set = SetDefaults { defaults, act };
            return self.ledger.perform(set).await.unwrap();
        }
        match self.scope() {
            Scope::Key(key) => {
                let change = Change::SetCap(cap);
                let change = KeyChange { key, change, act };
                self.ledger.perform(change).await.unwrap();
            }
            Scope::Customer(customer) => {
                let change = CustomerAct::SetCap(cap);
                let change = CustomerChange {
                    customer,
                    change,
                    act,
                };
                self.ledger.perform(change).await.unwrap();
            }
        }
    }

    async fn spent(&self) -> Amount {
        let found = self.ledger.find_customer(self.customer).await.unwrap();
        found.unwrap().account.spent
    }

    /// What is charged and held, which must be within the bound.
    async fn counted(&self) -> Amount {
        let found = self.ledger.find_customer(self.customer).await.unwrap();
        let account = found.unwrap().account;
        assert!(
            account.is_sound() && !account.available().is_negative(),
            "{:?}: {account:?}",
            self.bound
        );
        let caps = self.caps().await;
        let Some(cap) = caps.iter().next() else {
            return account.spent.checked_add(account.held).unwrap();
        };
        let counts = cap.counts(UtcDay::of(clock::now())).unwrap();
        let used = counts.charged.checked_add(counts.held).unwrap();
        assert!(used <= cap.cap.limit, "{:?}: {cap:?}", self.bound);
        used
    }

    /// Watches the bound until the race is over.
    async fn watch(&self, over: &AtomicBool) {
        while !over.load(Ordering::SeqCst) {
            self.counted().await;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Gateways on one ledger, and those who race there.
struct Race {
    /// It answers as long as they run.
    _upstream: ScriptedUpstream,
    folder: tempfile::TempDir,
    /// As `--ledger` takes it; `None` is the file in the folder.
    address: Option<String>,
    ledger: SharedStore,
    gateways: Vec<Served>,
    racers: Vec<Racers>,
    numbers: Arc<AtomicU64>,
    dice: Dice,
}

fn file(folder: &Path) -> String {
    folder.join("farebox.db").display().to_string()
}

impl Race {
    async fn new(gateways: usize, address: Option<String>) -> Self {
        let upstream = ScriptedUpstream::start(honest()).await;
        let (folder, _) = place(&upstream);
        let own = file(folder.path());
        let ledger = new_ledger(address.as_ref().unwrap_or(&own)).await;
        let mut racers = Vec::new();
        for bound in Bound::all() {
            racers.push(Racers::new(&ledger, bound).await);
        }
        let mut race = Self {
            _upstream: upstream,
            folder,
            address,
            ledger,
            gateways: Vec::new(),
            racers,
            numbers: Arc::new(AtomicU64::new(1)),
            dice: Dice::new(7),
        };
        for _ in 0..gateways {
            race.gateways.push(race.gateway());
        }
        race
    }

    fn gateway(&self) -> Served {
        let address = self.address.as_deref().unwrap_or("farebox.db");
        let settings = [UPSTREAM_KEY, SINGLE, ("FAREBOX_LEDGER", address)];
        Served::start_with(self.folder.path(), &[], &settings)
    }

    /// One race, in which one gateway is killed.
    async fn round(&mut self, number: u64) {
        let place = usize::try_from(number).unwrap() % self.racers.len();
        let victim = self.dice.below(self.gateways.len() as u64) as usize;
        let delay = Duration::from_millis(80 + self.dice.below(250));
        let racers = &self.racers[place];
        racers.widen().await;
        let before = racers.spent().await;
        let over = AtomicBool::new(false);
        let (numbers, seed) = (&self.numbers, self.dice.below(u64::from(u32::MAX)));
        let loads = self.gateways.iter();
        let loads: Vec<Load> = loads
            .map(|gateway| Load::start(&gateway.base, &racers.keys, 4, numbers, seed))
            .collect();
        let killed = &mut self.gateways[victim];
        let killing = async {
            // A busy machine begins late.
            let begun = Instant::now();
            while racers.spent().await == before {
                assert!(
                    begun.elapsed() < PATIENCE,
                    "{:?}: nobody races",
                    racers.bound
                );
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            tokio::time::sleep(delay).await;
            killed.kill();
            tokio::time::sleep(delay).await;
            for load in loads {
                load.end().await;
            }
            over.store(true, Ordering::SeqCst);
        };
        tokio::join!(killing, racers.watch(&over));
        self.gateways[victim] = self.gateway();
        let racers = &self.racers[place];
        racers.counted().await;
        if self.gateways.len() == 1 {
            // The next start ends what the killed one held, before it serves.
            let open = self.ledger.open_holds(None, 9).await.unwrap();
            assert_eq!(open, [], "{:?}", racers.bound);
        }
    }

    /// Waits until nothing is held, and checks that what the caps counted is what was charged.
    async fn end(self) -> Amount {
        let begun = Instant::now();
        while !self.ledger.open_holds(None, 9).await.unwrap().is_empty() {
            assert!(begun.elapsed() < PATIENCE, "holds stay open");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let mut all = Amount::ZERO;
        for racers in &self.racers {
            racers.counted().await;
            let spent = racers.spent().await;
            assert!(spent.is_positive(), "{:?}: nobody raced", racers.bound);
            all = all.checked_add(spent).unwrap();
        }
        let report = self.ledger.verify().await.unwrap();
        assert_eq!(report.faults, [""; 0]);
        drop(self.gateways);
        self.ledger.close();
        all
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_every_race_a_gateway_lets_nobody_past_the_last_dollar() {
    let rounds = sized(11, 500);
    let (begun, mut race) = (Instant::now(), Race::new(1, None).await);
    for number in 0..rounds {
        race.round(number).await;
    }
    let spent = race.end().await;
    println!("{rounds} kills in {:?}, {spent} USD spent", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_gateways_of_which_one_is_killed_let_nobody_past_the_last_dollar() {
    let Some(cluster) = Cluster::shared() else {
        return skip("the last dollar on a fleet: PostgreSQL is not installed");
    };
    let rounds = sized(11, 500);
    let address = cluster.url(&cluster.database());
    let (begun, mut race) = (Instant::now(), Race::new(3, Some(address)).await);
    for number in 0..rounds {
        race.round(number).await;
    }
    let spent = race.end().await;
    println!("{rounds} kills in {:?}, {spent} USD spent", begun.elapsed());
}
