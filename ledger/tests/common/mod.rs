//! Shared by the suites: short names for ids and amounts, and a store with everything at hand.
//!
//! Ids and clock are plain numbers here, so that a test reads like a story.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test ends at the first surprise"
)]

pub(crate) mod cluster;
pub(crate) mod netns;
pub(crate) mod pair;
pub(crate) mod pooler;
pub(crate) mod proxy;
#[path = "../../../tests/support/skip.rs"]
mod skip;

use std::path::Path;
use std::sync::Arc;

use farebox_ledger::postgres::PostgresLedger;
use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::store::Store;
use farebox_ledger::*;
pub(crate) use skip::skip;

/// A dollar amount.
pub(crate) fn usd(text: &str) -> Amount {
    Amount::from_usd_str(text).unwrap()
}

/// The key with this number.
pub(crate) fn key(number: u64) -> KeyId {
    KeyId::from_random(number)
}

/// The operation with this number.
pub(crate) fn op(number: u64) -> OperationId {
    OperationId::from_bytes(u128::from(number).to_be_bytes())
}

/// The instant so many seconds after 1970.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

pub(crate) fn secret(number: u8) -> SecretHash {
    SecretHash([number; 32])
}

pub(crate) fn act(operation: u64, seconds: i64) -> Act {
    Act {
        operation: op(operation),
        actor: "ada".to_owned(),
        at: at(seconds),
    }
}

pub(crate) fn new_key(number: u64, operation: u64, balance: Option<&str>) -> NewKey {
    NewKey {
        within: Membership::default(),
        id: key(number),
        secret: secret(1),
        settings: KeySettings {
            label: format!("Key {number}"),
            ..KeySettings::default()
        },
        first_credit: balance.map(|amount| (usd(amount), format!("first-{number}"))),
        purse: None,
        act: act(operation, 100),
    }
}

pub(crate) fn change(number: u64, operation: u64, change: Change) -> KeyChange {
    KeyChange {
        key: key(number),
        change,
        act: act(operation, 200),
    }
}

pub(crate) fn credit(
    number: u64,
    operation: u64,
    kind: CreditKind,
    amount: &str,
    reference: &str,
) -> Credit {
    Credit {
        operation: op(operation),
        to: (key(number)).into(),
        kind,
        amount: usd(amount),
        reference: reference.to_owned(),
        actor: "ada".to_owned(),
        at: at(300),
    }
}

pub(crate) fn top_up(number: u64, operation: u64, amount: &str, reference: &str) -> Credit {
    credit(number, operation, CreditKind::TopUp, amount, reference)
}

pub(crate) fn new_hold(number: u64, operation: u64, amount: &str) -> NewHold {
    NewHold {
        request: op(operation),
        customer: CustomerId::made_for(key(number)),
        key: key(number),
        ways: vec![farebox_ledger::HoldWay::exactly(usd(amount))],
        slug: "small".to_owned(),
        family: "chat".to_owned(),
        at: at(400),
    }
}

/// A bill of `count` tokens at a millionth of a dollar each.
pub(crate) fn bill(count: u64) -> Bill {
    Bill {
        slug: "small".to_owned(),
        family: "chat".to_owned(),
        target: "sim/small".to_owned(),
        status: 200,
        end_reason: EndReason::Stop,
        first_byte_ms: Some(5),
        total_ms: 9,
        answer_id: Some(format!("answer-{count}")),
        evidence: Some(Evidence::Provider),
        usage: Usage {
            output: count,
            ..Usage::default()
        },
        lines: vec![BillLine {
            what: "output".into(),
            count,
            rate: usd("0.000001"),
            class: None,
        }],
        ..Bill::default()
    }
}

/// The same served fast and in the United States, with everything that a class brings.
pub(crate) fn fast(count: u64) -> Bill {
    let mut bill = bill(count);
    bill.lines.push(BillLine {
        what: "request".into(),
        count: 1,
        rate: usd("0.000002"),
        class: None,
    });
    bill.lines[0].class = Some("fast,us".into());
    (bill.usage.cache_write_12h, bill.usage.calls) = (count, 3);
    bill.provider_cost = Some(usd("0.0000015"));
    bill.served = Served {
        tier: ServedTier::Fast,
        place: ServedRegion::Us,
        context_band: 1,
        account: "second".to_owned(),
    };
    bill
}

pub(crate) fn finish(operation: u64, count: u64) -> Finish {
    Finish {
        request: op(operation),
        bill: bill(count),
        at: at(500),
    }
}

pub(crate) fn moved(operation: u64, total: &str, count: u64) -> HoldMove {
    HoldMove {
        request: op(operation),
        number: 1,
        to: NewSize::Amount(usd(total)),
        checkpoint: Some(bill(count)),
        at: at(450),
    }
}

/// A refund so far of a payment in US dollars.
pub(crate) fn refund_of(payment: &str, operation: u64, cumulative: &str) -> NewReversal {
    NewReversal {
        payment: payment.to_owned(),
        kind: ReversalKind::Refund,
        cumulative: Gross::parse(cumulative).unwrap(),
        whole: None,
        reference: format!("refund-{operation}"),
        act: act(operation, 500),
    }
}

/// A token with this number, which may credit so many dollars a day.
pub(crate) fn new_token(
    number: u8,
    operation: u64,
    role: TokenRole,
    daily: Option<&str>,
) -> NewToken {
    NewToken {
        id: TokenId::from_random(number.into()),
        secret: secret(number),
        label: format!("shop {number}"),
        role,
        daily: daily.map(usd),
        expires_at: None,
        act: act(operation, 90),
    }
}

/// What a token asks for, at an instant.
pub(crate) fn asked(token: u8, seconds: i64, operation: Operation) -> Asked {
    Asked {
        by: Asker::Token(TokenId::from_random(token.into())),
        at: at(seconds),
        once: None,
        expected: None,
        operation,
    }
}

/// The same under a key of its own, with a body.
pub(crate) fn once(asked: Asked, key: &str, body: &str) -> Asked {
    let answer = AnswerOf::new(|outcome| ApiAnswer {
        status: 201,
        body: format!("{outcome:?}"),
    });
    let once = Once {
        path: "POST /x".to_owned(),
        key: key.to_owned(),
        body: SecretHash::of(body),
        answer,
    };
    Asked {
        once: Some(once),
        ..asked
    }
}

/// A lot of so many vouchers of two dollars each, whose codes have the hashes 200, 201, ….
pub(crate) fn new_lot(number: u64, operation: u64, count: u8) -> NewLot {
    NewLot {
        id: LotId::from_random(number),
        codes: (200..200 + count).map(secret).collect(),
        amount: usd("2"),
        expires_at: Some(at(500)),
        once_per_customer: false,
        kind: GrantKind::Promotional,
        plan: None,
        act: act(operation, 90),
    }
}

/// The redemption of a code by a key.
pub(crate) fn redemption(code: u8, key_number: u64, operation: u64) -> Redemption {
    Redemption {
        code: secret(code),
        key: key(key_number),
        act: act(operation, 400),
    }
}

/// A customer, without anything else.
pub(crate) fn new_customer(number: u64, operation: u64) -> NewCustomer {
    NewCustomer {
        id: CustomerId::from_random(number),
        settings: CustomerSettings {
            label: format!("Customer {number}"),
            ..CustomerSettings::default()
        },
        personal: None,
        act: act(operation, 95),
    }
}

/// A payment of so many dollars without tax.
pub(crate) fn new_payment(
    customer: u64,
    operation: u64,
    dollars: &str,
    reference: &str,
) -> NewPayment {
    NewPayment {
        customer: CustomerId::from_random(customer),
        paid: PaidSum::in_usd(usd(dollars)),
        credit: usd(dollars),
        reference: reference.to_owned(),
        addressee: None,
        expected: None,
        reservation: None,
        plan: None,
        unsold: None,
        act: act(operation, 300),
    }
}

/// A fresh SQLite ledger in a directory that goes away with it.
pub(crate) fn sqlite() -> (tempfile::TempDir, Arc<SqliteLedger>) {
    let dir = tempfile::tempdir().unwrap();
    let ledger = SqliteLedger::create(
        dir.path().join("farebox.db"),
        OpenMode::Serve,
        Durability::Prompt,
    )
    .unwrap();
    (dir, Arc::new(ledger))
}

/// Runs a test on a fresh ledger in a database of its own, where PostgreSQL is installed.
pub(crate) fn on_postgres(test: impl AsyncFnOnce(Arc<PostgresLedger>)) {
    let Some(cluster) = cluster::Cluster::shared() else {
        return skip("the ledger on PostgreSQL: it is not installed");
    };
    let url = cluster.url(&cluster.database());
    run(async {
        let ledger = new_postgres(&url, OpenMode::Write).await.unwrap();
        test(Arc::new(ledger)).await;
    });
}

/// Opens the ledger in a file; a gateway's is made where there is none.
pub(crate) fn file(path: &Path, mode: OpenMode) -> Result<SqliteLedger, LedgerError> {
    match SqliteLedger::open(path, mode, Durability::Prompt) {
        Err(LedgerError::Misplaced(_)) if mode == OpenMode::Serve => {
            SqliteLedger::create(path, mode, Durability::Prompt)
        }
        opened => opened,
    }
}

/// Opens the ledger at an address; a gateway's is made where there is none.
pub(crate) async fn postgres(url: &str, mode: OpenMode) -> Result<PostgresLedger, LedgerError> {
    let opening = Opening {
        allow_single: true,
        ..Opening::new(mode)
    };
    postgres_as(url, &opening).await
}

/// The same, with other settings.
pub(crate) async fn postgres_as(
    url: &str,
    opening: &Opening,
) -> Result<PostgresLedger, LedgerError> {
    let LedgerAddress::Postgres(config) = url.parse().unwrap() else {
        unreachable!()
    };
    match PostgresLedger::open(&config, opening).await {
        Err(LedgerError::Misplaced(_)) if opening.mode == OpenMode::Serve => {
            PostgresLedger::create(&config, opening).await
        }
        opened => opened,
    }
}

/// Makes the ledger at an address.
pub(crate) async fn new_postgres(url: &str, mode: OpenMode) -> Result<PostgresLedger, LedgerError> {
    let LedgerAddress::Postgres(config) = url.parse().unwrap() else {
        unreachable!()
    };
    let opening = Opening {
        allow_single: true,
        ..Opening::new(mode)
    };
    PostgresLedger::create(&config, &opening).await
}

pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(test)
}

/// The events of a ledger, once so many can be seen: on PostgreSQL a transaction of another test may delay them.
pub(crate) async fn events(ledger: &dyn Ledger, count: usize) -> Vec<Event> {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let found = ledger.events(None, 10_000).await.unwrap();
        if found.len() >= count || tokio::time::Instant::now() > deadline {
            return found;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// The books must always be right.
pub(crate) async fn sound(ledger: &dyn Ledger) {
    let report = ledger.verify().await.unwrap();
    assert_eq!(report.faults, Vec::<String>::new());
}

/// Parallel holds of a dollar, sent to several stores of one new ledger, on a key with three dollars: in each round three are
/// admitted, and another store than the one that admitted them ends them.
pub(crate) async fn hold_the_last_dollar_once(stores: &[SharedLedger], rounds: u64) {
    stores[0].perform(new_key(1, 10, Some("3"))).await.unwrap();
    for round in 0..rounds {
        let begin = 1_000 + round * 100;
        let tasks: Vec<_> = (begin..begin + 45)
            .zip(stores.iter().cycle().cloned())
            .map(|(operation, ledger)| {
                tokio::spawn(async move {
                    ledger
                        .perform(new_hold(1, operation, "1"))
                        .await
                        .is_ok()
                        .then_some(operation)
                })
            })
            .collect();
        let mut admitted = Vec::new();
        for task in tasks {
            admitted.extend(task.await.unwrap());
        }
        assert_eq!(admitted.len(), 3, "round {round}");
        for operation in admitted {
            let other = usize::try_from(operation - begin + 1).unwrap() % stores.len();
            stores[other]
                .perform(Arc::new(finish(operation, 0)))
                .await
                .unwrap();
        }
    }
    let account = stores[0]
        .find_key(key(1))
        .await
        .unwrap()
        .unwrap()
        .customer
        .account;
    assert_eq!(
        account,
        Account {
            credit: usd("3"),
            ..Account::default()
        }
    );
    sound(&*stores[0]).await;
}

/// A fresh database and gateways on it.
pub(crate) async fn fleet(
    cluster: &cluster::Cluster,
    gateways: usize,
) -> (String, Vec<Arc<PostgresLedger>>) {
    let database = cluster.database();
    let mut fleet = Vec::new();
    for _ in 0..gateways {
        fleet.push(gateway(&cluster.url(&database)).await);
    }
    (database, fleet)
}

pub(crate) fn with_cluster(what: &str, test: impl AsyncFnOnce(&'static cluster::Cluster)) {
    match cluster::Cluster::shared() {
        Some(cluster) => run(test(cluster)),
        None => skip(what),
    }
}

/// A gateway on PostgreSQL that has recovered.
pub(crate) async fn gateway(url: &str) -> Arc<PostgresLedger> {
    let ledger = postgres(url, OpenMode::Serve).await.unwrap();
    ledger.recover(at(1)).await.unwrap();
    Arc::new(ledger)
}

/// Why nothing is sold; empty if it is.
pub(crate) fn why_not(ledger: &dyn Store) -> String {
    let obstacle = ledger.obstacle();
    obstacle.map_or_else(String::new, |trouble| trouble.fault.to_string())
}

/// Why a ledger on PostgreSQL cannot be used.
pub(crate) async fn refused(url: &str, mode: OpenMode) -> String {
    match postgres(url, mode).await {
        Err(LedgerError::Unusable(why) | LedgerError::Misplaced(why)) => why.to_string(),
        other => unreachable!("{other:?}"),
    }
}

/// A charge that a gift and the pool paid, and an open hold that has some of a grant, of the second key's customer.
pub(crate) async fn a_hold_of_a_grant(ledger: &SqliteLedger) {
    ledger.perform(new_hold(2, 25, "1.5")).await.unwrap();
    let paid_by_both = finish(25, 1_500_000);
    ledger.perform(Arc::new(paid_by_both)).await.unwrap();
    let ends = clock::now().millis() + 400 * 86_400_000;
    let used_last = NewGrant {
        id: GrantId::from_random(1),
        customer: CustomerId::made_for(key(2)),
        kind: GrantKind::Promotional,
        amount: usd("3"),
        priority: 60,
        effective_at: None,
        expires_at: Some(Timestamp::from_millis(ends)),
        models: Some(vec!["small".to_owned(), "small-1".to_owned()]),
        reference: "grant-1".to_owned(),
        act: act(17, 400),
    };
    ledger.perform(used_last).await.unwrap();
    ledger.perform(new_hold(2, 30, "1")).await.unwrap();
    ledger.perform(moved(30, "2", 500_000)).await.unwrap();
}

/// One that keys were made for, with personal data, a charge and money from another.
pub(crate) async fn a_customer_with_several_keys(ledger: &SqliteLedger) {
    let customer = CustomerId::from_random(40);
    let new = NewCustomer {
        id: customer,
        settings: CustomerSettings {
            label: "Bob".to_owned(),
            external_id: Some("crm-40".to_owned()),
            ..CustomerSettings::default()
        },
        personal: Some(PersonalData {
            name: Some("Bob 1".to_owned()),
            salt: [3; 32],
            ..PersonalData::default()
        }),
        act: act(40, 500),
    };
    ledger.perform(new).await.unwrap();
    for number in [41, 42] {
        let mut key = new_key(number, number, None);
        key.within.customer = Some(customer);
        ledger.perform(key).await.unwrap();
    }
    let moved = NewMove {
        from: CustomerId::made_for(key(1)),
        into: customer,
        amount: usd("0.5"),
        reference: "one purse".to_owned(),
        act: act(43, 500),
    };
    ledger.perform(moved).await.unwrap();
    let hold = NewHold {
        customer,
        ..new_hold(41, 44, "0.1")
    };
    ledger.perform(hold).await.unwrap();
    ledger.perform(Arc::new(finish(44, 10))).await.unwrap();
}
