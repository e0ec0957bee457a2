//! Customers who were given plans a day ago, so that periods of a day end and begin while the gateway is killed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use farebox::clock;
use farebox_ledger::{
    GrantKind, GrantQuery, KeyId, Ledger, Perform, PlanAct, PlanAfter, PlanChange, PlanPurchase,
    PlanTerms, SubscriptionId, Timestamp, WindowBound,
};

use crate::support::load::{self, create, usd};
use crate::support::{TestKey, act};

const LEDGER: &str = "FAREBOX_TEST_YESTERDAY";
const DAY: i64 = 86_400_000;
/// When the first of the periods turns, and how long after it the next one does, in milliseconds.
const FIRST: i64 = 3_000;
const EVERY: i64 = 500;
/// Subscriptions of each customer.
const PLANS: i64 = 4;

/// Makes a ledger with two keys whose customers have plans: one is rich, the other is poor. Returns also when the last period has turned.
/// The clock is the process's, so a process of its own makes them.
pub(super) fn made_yesterday(ledger: &Path) -> ([TestKey; 2], Timestamp) {
    let mut alone = Command::new(std::env::current_exe().unwrap());
    let story = ["--exact", "money::yesterday::the_day_before", "--nocapture"];
    let ended = alone.args(story).env(LEDGER, ledger).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    let told = std::fs::read_to_string(ledger.with_extension("keys")).unwrap();
    let keys = told.lines().map(|line| {
        let (id, secret) = line.split_once(' ').unwrap();
        let (id, secret) = (id.parse().unwrap(), secret.to_owned());
        TestKey { id, secret }
    });
    let keys: Vec<TestKey> = keys.collect();
    let turned = clock::now().millis() + FIRST + 2 * PLANS * EVERY;
    (keys.try_into().unwrap(), Timestamp::from_millis(turned))
}

/// Not a test by itself.
#[tokio::test]
async fn the_day_before() {
    let Some(path) = std::env::var_os(LEDGER).map(PathBuf::from) else {
        return;
    };
    let begins = clock::now().millis() - DAY + FIRST;
    clock::stand_at(Some(Timestamp::from_millis(begins)));
    let ledger = create(&path);
    let rich = load::key(&ledger, "900").await;
    let poor = load::key(&ledger, "0.40").await;
    let mut told = String::new();
    for (key, offset) in [(&rich, 0), (&poor, PLANS)] {
        let customer = ledger.find_key(key.id).await.unwrap().unwrap().belongs_to;
        for number in offset..offset + PLANS {
            let at = begins + number * EVERY;
            clock::stand_at(Some(Timestamp::from_millis(at)));
            let given = PlanPurchase {
                subscription: SubscriptionId::from_random(u64::try_from(number).unwrap()),
                terms: daily(number),
                periods: 3,
                processor: None,
                invoiced_at: None,
            };
            let change = PlanChange {
                customer,
                subscription: given.subscription,
                change: PlanAct::Give(given),
                act: act(),
            };
            ledger.perform(change).await.unwrap();
        }
        writeln!(told, "{} {}", key.id, key.secret).unwrap();
    }
    std::fs::write(path.with_extension("keys"), told).unwrap();
    ledger.close();
}

/// A little for a day, of which a part can be used in an hour and a part is carried.
fn daily(number: i64) -> PlanTerms {
    let window = WindowBound {
        per: "1h".parse().unwrap(),
        usd: usd("0.20"),
    };
    PlanTerms {
        name: format!("daily-{number}"),
        title: "Daily".to_owned(),
        price: usd("0"),
        allowance: usd("0.30"),
        period: "day".parse().unwrap(),
        windows: vec![window],
        models: None,
        after: PlanAfter::Balance,
        carry: usd("0.05"),
        grace: 3_600_000,
    }
}

/// Each subscription has begun its second period and no other, and no window was passed.
pub(super) async fn check_turned(ledger: &dyn Ledger, keys: &[KeyId]) {
    for key in keys {
        let customer = ledger.find_key(*key).await.unwrap().unwrap().customer;
        let plans = &customer.grants.plans;
        let places = plans.iter().map(|of| {
            let runs = of.state.running.as_ref().map(|period| period.number);
            let ahead: u32 = of.state.sold.iter().map(|sold| sold.count).sum();
            (of.state.last, runs, ahead)
        });
        let places: Vec<_> = places.collect();
        assert_eq!(places, [(2, Some(2), 1); PLANS as usize], "{key}");
        for window in plans.windows() {
            assert!(window.charged <= window.bound, "{window:?}");
        }
        let query = GrantQuery {
            customer: Some(customer.id),
            limit: 100,
            ..GrantQuery::default()
        };
        let given = ledger.grants(query).await.unwrap().into_iter();
        let periods = given
            .filter(|given| given.grant.kind == GrantKind::Plan)
            .count();
        assert_eq!(periods, 2 * PLANS as usize, "each period is given once");
    }
}
