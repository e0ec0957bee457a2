//! Ledgers of the last version, as its own programs wrote them: this one opens them, nothing in them is lost, and life goes on.
//!
//! `fixtures/README.md` describes their contents. What the two stores hold is the same, and so is what is asked of them here.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::*;
use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::store::Store;
use farebox_ledger::*;

fn fixture(name: &str) -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    home.join("tests/fixtures").join(name)
}

/// A copy to work on.
fn copy(name: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("farebox.db");
    std::fs::copy(fixture(name), &path).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    (dir, path)
}

fn serve(path: &Path) -> SqliteLedger {
    SqliteLedger::open(path, OpenMode::Serve, Durability::Prompt).unwrap()
}

/// A token's hash, as `SELECT lower(hex(token))` shows it.
fn hash(shown: &str) -> SecretHash {
    let bytes = hex::decode(shown).unwrap();
    SecretHash(bytes.try_into().unwrap())
}

/// Opened by the last version's programs on 28 November 2026.
fn then() -> Timestamp {
    at(1_795_824_000)
}

async fn keys(ledger: &dyn Store) -> Vec<Key> {
    let all = KeyQuery {
        limit: 99,
        ..KeyQuery::default()
    };
    ledger.list_keys(all).await.unwrap()
}

async fn key_named(ledger: &dyn Store, label: &str) -> Key {
    let keys = keys(ledger).await;
    let found = keys.into_iter().find(|key| key.settings.label == label);
    found.unwrap()
}

fn caps(caps: &Caps) -> String {
    let shown = |counted: &CountedCap| {
        let (cap, now) = (&counted.cap, &counted.current);
        let model = cap.model.as_deref().unwrap_or("all");
        let interval = cap.interval.as_str();
        format!(
            " {interval} {model} {}: {} {}",
            cap.limit, now.charged, now.held
        )
    };
    caps.iter().map(shown).collect()
}

/// Everything that the programs put in, a line each.
async fn contents(ledger: &dyn Store) -> Vec<String> {
    let mut lines = Vec::new();
    let all = CustomerQuery {
        limit: 99,
        ..CustomerQuery::default()
    };
    for customer in ledger.list_customers(all).await.unwrap() {
        let Account {
            credit,
            spent,
            held,
        } = customer.account;
        let settings = &customer.settings;
        let also = (
            &settings.external_id,
            settings.low_balance.map(|usd| usd.to_string()),
            settings.rate,
            settings.concurrency,
        );
        lines.push(format!(
            "{}: {:?}, {credit} - {spent} - {held}, claim {},{} {also:?}",
            settings.label,
            customer.status,
            customer.claim,
            caps(&customer.caps)
        ));
        if let Some(personal) = ledger.personal_data(customer.id).await.unwrap() {
            let PersonalData {
                name,
                address,
                metadata,
                ..
            } = personal;
            lines.push(format!("personal: {name:?} {address:?} {metadata:?}"));
        }
        if let Some(auto) = &customer.auto_top_up {
            lines.push(serde_json::to_string(auto).unwrap());
        }
    }
    for key in keys(ledger).await {
        let maker = keys(ledger).await.into_iter();
        let mut maker = maker.filter(|other| key.made_by == Some(other.id));
        lines.push(format!(
            "key {} of {}: {:?} owner={} by={:?}{} {:?} {:?} {:?}",
            key.settings.label,
            key.customer.settings.label,
            key.status(then()),
            key.is_owner,
            maker.next().map(|other| other.settings.label.clone()),
            caps(&key.caps),
            key.settings.models,
            key.settings.expires_at.map(|at| at.to_string()),
            (key.settings.rate, key.settings.concurrency),
        ));
    }
    lines.extend(money(ledger).await);
    lines.extend(house(ledger).await);
    lines
}

/// Payments, charges, and what runs.
async fn money(ledger: &dyn Store) -> Vec<String> {
    let mut lines = Vec::new();
    for reference in ["pi-1", "pi-2", "pi-3", "pi-4"] {
        let payment = ledger.payment(reference).await.unwrap().unwrap();
        let (paid, registers) = (&payment.paid, &payment.registers);
        lines.push(format!(
            "payment {reference}: {} {} {} for {}, {:?} by {}, back {} {} {}",
            paid.currency,
            paid.gross,
            paid.tax,
            payment.credit,
            payment.status,
            payment.actor,
            registers.refunded,
            registers.withdrawn,
            registers.reinstated
        ));
    }
    assert_eq!(ledger.unapplied().await.unwrap().len(), 1);
    let totals = ledger.totals().await.unwrap();
    lines.push(format!("{totals:?}"));
    for hold in ledger.open_holds(None, 9).await.unwrap() {
        lines.push(format!("hold: {} {}", hold.slug, hold.amount));
    }
    for used in ledger.slug_use(at(0)).await.unwrap() {
        lines.push(format!("{used:?}"));
    }
    lines
}

/// What a token sold on its last day is counted on that day, with as many payments as there are.
async fn counted(ledger: &dyn Store) {
    let days = ledger.token_days(UtcDay::default()).await.unwrap();
    let token = ledger.all::<Token>().await.unwrap().remove(0).id;
    let payment = ledger.payment("pi-1").await.unwrap().unwrap();
    let day = TokenDay {
        booked: usd("10"),
        payments: 1,
        ..TokenDay::empty(token, UtcDay::of(payment.at))
    };
    assert_eq!(days, [day]);
    for key in keys(ledger).await {
        let sellers = |counted: &CountedCap| counted.limits().owner.is_none();
        assert!(key.caps.iter().all(sellers) && key.used_at.is_none());
    }
}

/// What belongs to no customer.
async fn house(ledger: &dyn Store) -> Vec<String> {
    let mut lines = Vec::new();
    let days = ledger.token_days(UtcDay::default()).await.unwrap();
    for token in ledger.all::<Token>().await.unwrap() {
        let sold = days.iter().find(|day| day.token == token.id);
        lines.push(format!(
            "token {}: {:?} {:?} sold {:?}, revoked: {}, until {:?}",
            token.label,
            token.role,
            token.daily.map(|usd| usd.to_string()),
            sold.map(|day| day.booked.to_string()),
            token.is_revoked,
            token.expires_at.map(|at| at.to_string())
        ));
    }
    for lot in ledger.all::<Lot>().await.unwrap() {
        lines.push(format!(
            "lot: {} of {} of {}, once: {}, void: {}",
            lot.redeemed, lot.count, lot.amount, lot.once_per_customer, lot.is_void
        ));
    }
    let acts = ledger.house_acts().await.unwrap();
    let acts: Vec<_> = acts.iter().map(|act| act.act.as_str()).collect();
    lines.push(acts.join(" "));
    let events = events(ledger, 22).await;
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    lines.push(kinds.join(" "));
    let webhooks = ledger.webhooks().await.unwrap();
    let published = ledger.published().await.unwrap();
    let published: Vec<_> = published.iter().map(|slug| slug.slug.as_str()).collect();
    let files = ledger.files_acts(None, 9).await.unwrap();
    lines.push(format!(
        "{} webhooks, {} loads, {}",
        webhooks.len(),
        files.len(),
        published.join(" ")
    ));
    let owner = key_named(ledger, "Acme owner").await.id;
    let session = ledger.find_session(hash(SESSION), then()).await.unwrap();
    assert_eq!(session, Some(owner));
    assert!(ledger.has_link(hash(LINK), then()).await.unwrap());
    lines
}

/// Tokens of Acme's owner, hashed.
const SESSION: &str = "6a1bbbc3ba5b9a6d739e1f681a4b840101f203686c857657f00eb946b29ab2de";
const LINK: &str = "445e709e403d0a50d277c4e8abcb8568d33a07fcb0e5e4f1faf41e61ceeea49d";

/// Votes of before are forgotten; sums come in their place.
async fn taught_anew(ledger: &dyn Store) {
    assert_eq!(ledger.taught().await.unwrap(), Taught::default());
    let lesson = Lesson {
        tokens: 900,
        millis: 9_000,
        ..Lesson::empty("a/m", "standard")
    };
    let taught = Taught {
        lessons: vec![lesson],
        excesses: Vec::new(),
    };
    ledger.perform(taught.clone()).await.unwrap();
    assert_eq!(ledger.taught().await.unwrap(), taught);
}

/// Its open hold ends at its checkpoint, and customers pay and ask again.
async fn goes_on(ledger: &dyn Store) {
    let contents = contents(ledger).await.join("\n");
    let expected = std::fs::read_to_string(fixture("schema-17.txt")).unwrap();
    assert_eq!(contents, expected.trim_end());
    counted(ledger).await;
    taught_anew(ledger).await;
    sound(ledger).await;
    let recovered = ledger.recover(clock::now()).await.unwrap();
    assert_eq!((recovered.settled, recovered.released), (1, 0));
    let before = key_named(ledger, "Acme team").await;
    assert_eq!(before.customer.account.held, usd("0"));
    let now = clock::now();
    let paid = Credit {
        to: before.customer.id.into(),
        at: now,
        ..top_up(1, 900, "5", "inv-900")
    };
    assert!(!ledger.perform(paid).await.unwrap().repeated);
    let hold = NewHold {
        customer: before.customer.id,
        key: before.id,
        at: now,
        ..new_hold(1, 901, "1")
    };
    ledger.perform(hold).await.unwrap();
    let end = Finish {
        at: now,
        ..finish(901, 1_000)
    };
    ledger.perform(Arc::new(end)).await.unwrap();
    // Payments of before have no addressee of their own; those from now on have.
    let addressees = ledger.addressees(before.customer.id).await.unwrap();
    let personal = ledger.personal_data(before.customer.id).await.unwrap();
    assert_eq!(addressees.of("inv-7"), None);
    assert_eq!(addressees.of("INV-900"), personal.as_ref().map(Some));
    let after = key_named(ledger, "Acme team").await.customer.account;
    let account = before.customer.account;
    assert_eq!(
        (
            after.credit.checked_sub(account.credit),
            after.spent.checked_sub(account.spent)
        ),
        (Some(usd("5")), Some(usd("0.001")))
    );
    // A dispute that took more than was there is paid by what comes next.
    let bob = key_named(ledger, "Bob").await.customer;
    let more = Credit {
        to: bob.id.into(),
        at: now,
        ..top_up(1, 902, "1", "inv-902")
    };
    ledger.perform(more).await.unwrap();
    let bob_now = ledger.find_customer(bob.id).await.unwrap().unwrap();
    assert_eq!(bob_now.claim, usd("0"));
    assert!(bob.claim.is_positive());
    sound(ledger).await;
}

/// In which formats its entries are hashed.
fn formats(path: &Path) -> String {
    let conn = rusqlite::Connection::open(path).unwrap();
    let sql =
        "SELECT group_concat(format, ' ') FROM (SELECT DISTINCT format FROM entries ORDER BY 1)";
    conn.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_file_of_the_last_version_goes_on() {
    let (_dir, path) = copy("schema-17.sqlite");
    assert_eq!(formats(&path), "1 3");
    run(async {
        let vote = "INSERT OR REPLACE INTO votes VALUES ('a/m', 1, 20785, 1, 90000)";
        let conn = rusqlite::Connection::open(&path).unwrap();
        assert_eq!(conn.execute(vote, []).unwrap(), 1);
        conn.close().unwrap();
        assert_eq!(
            SqliteLedger::published_in(&path).unwrap().len(),
            6,
            "the gateway asks before it takes the ledger"
        );
        let ledger = serve(&path);
        goes_on(&ledger).await;
        ledger.close();
        sound(&serve(&path)).await;
    });
}

#[test]
fn a_database_of_the_last_version_goes_on() {
    with_cluster("the last version's ledger on PostgreSQL", async |cluster| {
        let database = cluster.restored(&fixture("schema-14.sql"));
        let vote = "INSERT INTO votes VALUES ('a/m', 1, 20785, 1, 90000) ON CONFLICT DO NOTHING";
        cluster.psql(&database, vote).unwrap();
        let url = cluster.url(&database);
        let ledger = postgres(&url, OpenMode::Serve).await.unwrap();
        goes_on(&ledger).await;
        drop(ledger);
        sound(&postgres(&url, OpenMode::ReadOnly).await.unwrap()).await;
    });
}

/// Entries of format 2, hours by what was served, and what own requests cost.
async fn served(ledger: &dyn Store) {
    sound(ledger).await;
    let costs = ledger.own_costs(at(0), then()).await.unwrap();
    assert_eq!(costs.len(), 1);
    let totals = ledger.totals().await.unwrap();
    assert_eq!((totals.keys, totals.entries), (2, 10));
    let owed = (totals.exposure, totals.cost);
    assert_eq!(owed, (2_798_000_000_000, 8_500_000_000));
    let old = ledger.entry(op(22)).await.unwrap().unwrap().bill.unwrap();
    assert_eq!((old.served, old.provider_cost), (Served::default(), None));
    let first = keys(ledger).await.remove(0);
    let hold = NewHold {
        customer: first.customer.id,
        key: first.id,
        ..new_hold(1, 901, "1")
    };
    ledger.perform(hold).await.unwrap();
    let bill = fast(10);
    ledger
        .perform(Arc::new(Finish {
            bill,
            ..finish(901, 10)
        }))
        .await
        .unwrap();
    sound(ledger).await;
}

#[test]
fn entries_of_the_second_format_go_on() {
    let (_dir, path) = copy("schema-17-served.sqlite");
    assert_eq!(formats(&path), "2 3");
    run(async { served(&serve(&path)).await });
    with_cluster("the second format on PostgreSQL", async |cluster| {
        let database = cluster.restored(&fixture("schema-14-served.sql"));
        let ledger = postgres(&cluster.url(&database), OpenMode::Serve).await;
        served(&ledger.unwrap()).await;
    });
}

/// Each twin still answers to its exact spelling, so that a payment whose outcome was unknown can be repeated.
#[test]
fn old_twins_stay_apart_and_no_new_one_joins_them() {
    let (_dir, path) = copy("schema-17.sqlite");
    run(async {
        let ledger = serve(&path);
        let entries = ledger.totals().await.unwrap().entries;
        for (operation, spelling) in [
            (10, "inv-7"),
            (11, "inv-7 "),
            (12, "INV-7"),
            (13, "caf\u{e9}"),
            (14, "cafe\u{301}"),
        ] {
            let again = ledger
                .perform(top_up(1, 300 + operation, "10", spelling))
                .await;
            let again = again.unwrap();
            assert!(
                again.repeated && again.entry.operation == op(operation),
                "{spelling:?}"
            );
            let kept = again.entry.reference.as_deref();
            assert_eq!(kept, Some(spelling), "entries keep their bytes");
        }
        for (operation, spelling, owner) in [
            (320, "Inv-7", 10),
            (321, " inv-7", 10),
            (322, "CAF\u{c9}", 13),
        ] {
            let again = ledger
                .perform(top_up(1, operation, "10", spelling))
                .await
                .unwrap();
            assert!(
                again.repeated && again.entry.operation == op(owner),
                "{spelling:?}"
            );
        }
        let conflict = ledger.perform(top_up(2, 330, "10", "STRASSE 9")).await;
        let used = matches!(
            conflict,
            Err(LedgerError::Refused(Refusal::ReferenceUsed { .. }))
        );
        assert!(used, "{conflict:?}");
        assert_eq!(ledger.totals().await.unwrap().entries, entries);
        sound(&ledger).await;
    });
}

/// Anchors of the first format are digests over all rows; the last version continued their file with ends of chains.
#[test]
fn old_anchors_are_still_checked() {
    let (dir, path) = copy("schema-17-anchored.sqlite");
    let anchors = dir.path().join("anchors");
    std::fs::copy(fixture("schema-17.anchors"), &anchors).unwrap();
    assert_eq!(formats(&path), "1 3");
    run(async {
        let ledger = serve(&path);
        let entry = ledger.entry(op(23)).await.unwrap().unwrap();
        let word = EndReason::from("a_word_of_another_time");
        assert_eq!(entry.bill.unwrap().end_reason, word);
        let back = Credit {
            at: at(1),
            ..top_up(1, 201, "5", "new-2")
        };
        ledger.perform(back).await.unwrap();
        let back = ledger.entry(op(201)).await.unwrap().unwrap();
        assert!(
            back.at > then(),
            "a clock that went back does not reorder a chain"
        );
        let mut file = anchor::AnchorFile::open(&anchors).unwrap();
        assert_eq!(file.last().entries(), 12);
        file.append(ledger.anchor(file.last(), clock::now()).await.unwrap())
            .unwrap();
        let report = ledger.verify_with(anchor::read(&anchors).unwrap()).await;
        let report = report.unwrap();
        assert_eq!(report.faults, Vec::<String>::new());
        assert_eq!((report.entries, report.anchors), (13, 7));
        let text = std::fs::read_to_string(&anchors).unwrap();
        for (from, to) in [
            ("c60de035", "c60de036"),
            ("\"seq\":8,", "\"seq\":7,"),
            ("\"act\":6,", "\"act\":9,"),
        ] {
            assert!(text.contains(from), "{from} in {text}");
            std::fs::write(&anchors, text.replacen(from, to, 1)).unwrap();
            let report = ledger.verify_with(anchor::read(&anchors).unwrap()).await;
            let faults = report.unwrap().faults;
            assert!(
                faults.iter().any(|fault| fault.starts_with("anchor of")),
                "{to}: {faults:?}"
            );
        }
        ledger.close();
    });
}

/// What steps made of it once is what a new ledger begins with.
#[test]
fn a_new_ledger_has_the_schema_of_an_upgraded_one() {
    let (dir, upgraded) = copy("schema-17.sqlite");
    let fresh = dir.path().join("fresh.db");
    let schema = |path: &Path| -> Vec<String> {
        serve(path).close();
        let conn = rusqlite::Connection::open(path).unwrap();
        let sql = "SELECT name || coalesce(sql, '') FROM sqlite_schema ORDER BY name";
        let mut statement = conn.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    let made = SqliteLedger::create(&fresh, OpenMode::Serve, Durability::Prompt);
    made.unwrap().close();
    assert_eq!(schema(&fresh), schema(&upgraded));
    with_cluster("the schema on PostgreSQL", async |cluster| {
        let upgraded = cluster.restored(&fixture("schema-14.sql"));
        let fresh = cluster.database();
        for database in [&upgraded, &fresh] {
            gateway(&cluster.url(database)).await;
        }
        assert_eq!(cluster.schema(&fresh), cluster.schema(&upgraded));
    });
}

/// SQLite changes no CHECK: its text is replaced, and whoever has had the file open is bound by the new one, too.
#[test]
fn replaced_checks_bind_whoever_has_the_file_open() {
    let (_dir, path) = copy("schema-17.sqlite");
    let open = rusqlite::Connection::open(&path).unwrap();
    let text = |sql: &str| open.query_row(sql, [], |row| row.get::<_, String>(0));
    text("SELECT count(*) || '' FROM entries").unwrap();
    serve(&path).close();
    assert_eq!(text("PRAGMA integrity_check").unwrap(), "ok");
    let new = "INSERT INTO grants (id, customer, kind, amount, priority, effective_at, remaining, held, status, created_at, created_by) \
         SELECT 1, id, ?1, 5, 20, 0, ?2, 0, 2, 0, 'ada' FROM accounts LIMIT 1";
    for (kind, remaining, may_be) in [(3, 9, true), (1, 9, false), (4, 5, false), (2, 5, true)] {
        open.execute_batch("BEGIN").unwrap();
        let made = open.execute(new, [kind, remaining]);
        assert_eq!(made == Ok(1), may_be, "{kind} {remaining}: {made:?}");
        open.execute_batch("ROLLBACK").unwrap();
    }
}

#[test]
fn an_older_schema_is_refused_with_the_way_to_this_one() {
    let named = |why: &str, schema: &str| {
        assert!(
            why.contains(schema) && why.contains("commit 8e66c1e9"),
            "{why}"
        );
    };
    let (_dir, path) = copy("schema-17.sqlite");
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.pragma_update(None, "user_version", 16).unwrap();
    drop(conn);
    let before = std::fs::read(&path).unwrap();
    for mode in [OpenMode::ReadOnly, OpenMode::Write, OpenMode::Serve] {
        let refused = SqliteLedger::open(&path, mode, Durability::Prompt).unwrap_err();
        named(&refused.to_string(), "schema 16");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    with_cluster("an older schema on PostgreSQL", async |cluster| {
        let database = cluster.restored(&fixture("schema-14.sql"));
        let older = "UPDATE identity SET version = 13";
        cluster.psql(&database, older).unwrap();
        for mode in [OpenMode::ReadOnly, OpenMode::Write, OpenMode::Serve] {
            named(&refused(&cluster.url(&database), mode).await, "schema 13");
        }
    });
}
