//! Ledgers of earlier versions: the gateway migrates them, and nothing in them is lost or counted twice.
//!
//! The versions themselves wrote the fixtures; `fixtures/README.md` describes their contents.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use common::*;
use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::*;
use sha2::{Digest as _, Sha256};

/// A copy to work on.
fn copy(name: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("farebox.db");
    assert_eq!(
        SqliteLedger::published_in(&path).unwrap(),
        Vec::<String>::new(),
        "no ledger yet"
    );
    std::fs::copy(
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(name),
        &path,
    )
    .unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    (dir, path)
}

fn serve(path: &std::path::Path) -> SqliteLedger {
    SqliteLedger::open(path, OpenMode::Serve, Durability::Prompt).unwrap()
}

#[test]
fn only_the_gateway_brings_a_ledger_up_to_date() {
    let (_dir, path) = copy("schema-1.sqlite");
    let before = std::fs::read(&path).unwrap();
    for mode in [OpenMode::ReadOnly, OpenMode::Write] {
        let Err(LedgerError::Unusable(text)) = SqliteLedger::open(&path, mode, Durability::Prompt)
        else {
            unreachable!()
        };
        assert!(text.words().contains("start the gateway once"), "{text}");
    }
    assert_eq!(
        SqliteLedger::published_in(&path).unwrap(),
        ["large", "small"],
        "the gateway asks before it takes the ledger"
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
    serve(&path).close();
    SqliteLedger::open(&path, OpenMode::ReadOnly, Durability::Prompt).unwrap();
}

#[test]
fn a_ledger_of_the_first_schema_goes_on() {
    let (_dir, path) = copy("schema-1.sqlite");
    run(async {
        let ledger = serve(&path);
        let totals = ledger.totals().await.unwrap();
        assert_eq!((totals.keys, totals.entries, totals.holds), (4, 15, 1));
        assert_eq!(
            (totals.credit, totals.spent, totals.held),
            (127_500_000_000_000, 2_750_000_000_000, 6_000_000_000_000)
        );
        sound(&ledger).await;
        let recovered = ledger.recover(at(900)).await.unwrap();
        assert_eq!(
            (recovered.epoch, recovered.settled),
            (2, 1),
            "the open hold ends at its checkpoint"
        );
        let account = ledger
            .find_key(key(1))
            .await
            .unwrap()
            .unwrap()
            .customer
            .account;
        assert_eq!(
            (account.credit, account.spent, account.held),
            (usd("75"), usd("1.75"), Amount::ZERO)
        );
        ledger.credit(top_up(4, 200, "5", "new-1")).await.unwrap();
        ledger.open_hold(new_hold(4, 201, "1")).await.unwrap();
        ledger.finish_hold(finish(201, 10)).await.unwrap();
        sound(&ledger).await;
        ledger.close();
        let again = serve(&path);
        assert_eq!(again.totals().await.unwrap().entries, 15 + 1 + 2);
        sound(&again).await;
    });
}

/// Each twin still answers to its exact spelling, so that a payment whose outcome was unknown can be repeated after the upgrade.
#[test]
fn old_twins_stay_apart_and_no_new_one_joins_them() {
    let (_dir, path) = copy("schema-1.sqlite");
    run(async {
        let ledger = serve(&path);
        let known = [
            (10, "inv-7"),
            (11, "inv-7 "),
            (12, "INV-7"),
            (13, "caf\u{e9}"),
            (14, "cafe\u{301}"),
        ];
        for (operation, spelling) in known {
            let again = ledger
                .credit(top_up(1, 300 + operation, "10", spelling))
                .await
                .unwrap();
            assert!(
                again.repeated && again.entry.operation == op(operation),
                "{spelling:?}"
            );
            assert_eq!(
                again.entry.reference.as_deref(),
                Some(spelling),
                "entries keep their bytes"
            );
        }
        for (operation, spelling, owner) in [
            (320, "Inv-7", 10),
            (321, " inv-7", 10),
            (322, "CAF\u{c9}", 13),
        ] {
            let again = ledger
                .credit(top_up(1, operation, "10", spelling))
                .await
                .unwrap();
            assert!(
                again.repeated && again.entry.operation == op(owner),
                "{spelling:?}: the first has the name"
            );
        }
        let conflict = ledger.credit(top_up(2, 330, "10", "STRASSE 9")).await;
        assert!(
            matches!(
                conflict,
                Err(LedgerError::Refused(Refusal::ReferenceUsed { .. }))
            ),
            "{conflict:?}"
        );
        assert_eq!(ledger.totals().await.unwrap().entries, 15);
        sound(&ledger).await;
    });
}

/// A console of the last version that is still open does not know today's references: the database refuses its credits.
#[test]
fn a_program_from_before_cannot_write_a_credit_any_more() {
    let (_dir, path) = copy("schema-1.sqlite");
    let old = rusqlite::Connection::open(&path).unwrap();
    serve(&path).close();
    let credit = "BEGIN IMMEDIATE;
        INSERT INTO entries (position, key, seq, prev, operation, kind, amount, balance_after, at, actor, reference, hash)
            SELECT 16, id, seq + 1, last, randomblob(16), 1, 1, credit - spent + 1, 1, 'old', 'inv-8', zeroblob(32)
            FROM accounts LIMIT 1;
        INSERT INTO audit (position, key, prev, operation, act, actor, at, details, state, hash)
            SELECT 99, key, 0, operation, 'top_up', 'old', 1, '', '', zeroblob(32) FROM entries WHERE position = 16;";
    let error = old.execute_batch(credit).unwrap_err().to_string();
    assert!(error.contains("entries.customer"), "{error}");
}

/// Exposure and cost of all time are added up once, and grow with each entry from then on.
#[test]
fn a_ledger_of_the_third_schema_gets_its_totals_of_all_time() {
    let (dir, path) = copy("schema-3.sqlite");
    run(async {
        let ledger = serve(&path);
        let owed = async |ledger: &dyn Ledger| {
            let totals = ledger.totals().await.unwrap();
            (totals.entries, totals.exposure, totals.cost)
        };
        assert_eq!(
            owed(&ledger).await,
            (8, 7_387_000_000_000, 568_500_000_000),
            "failed tries included"
        );
        sound(&ledger).await;
        assert_eq!(
            ledger.recover(at(10_000)).await.unwrap(),
            Recovered {
                epoch: 2,
                settled: 1,
                released: 1
            }
        );
        // 0.25 of 6 USD was charged and 2 USD released. The first had an exposure of 0.75 and a cost of 0.5 at its checkpoint.
        assert_eq!(
            owed(&ledger).await,
            (
                10,
                7_387_000_000_000 + 5_750_000_000_000 + 2_000_000_000_000,
                1_068_500_000_000
            )
        );
        sound(&ledger).await;
        ledger.backup(&dir.path().join("copy.db")).await.unwrap();
        ledger.close();
        let copied = SqliteLedger::open(
            dir.path().join("copy.db"),
            OpenMode::ReadOnly,
            Durability::Prompt,
        )
        .unwrap();
        assert_eq!(owed(&copied).await.1, 15_137_000_000_000);
    });
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute("UPDATE totals SET exposure = '15137000000001'", [])
        .unwrap();
    drop(conn);
    let faults = run(async { serve(&path).verify().await.unwrap().faults });
    assert!(
        faults
            .iter()
            .any(|fault| fault.starts_with("the totals over all keys")),
        "{faults:?}"
    );
}

/// What was paid under a full-width reference cannot be paid again under the plain one, and the other way round.
#[test]
fn a_ledger_of_the_fourth_schema_compares_references_in_any_form() {
    let (_dir, path) = copy("schema-4.sqlite");
    run(async {
        let ledger = serve(&path);
        sound(&ledger).await;
        let own = ledger
            .list_keys(KeyQuery {
                limit: 9,
                ..KeyQuery::default()
            })
            .await
            .unwrap();
        let own = own.first().unwrap().id;
        let pay = async |operation, amount: &str, reference: &str| {
            let credit = Credit {
                to: (own).into(),
                ..top_up(1, operation, amount, reference)
            };
            ledger.credit(credit).await
        };
        for (operation, amount, spelling) in [
            (500, "7", "inv-8"),
            (501, "7", "\u{ff29}nv\u{ff0d}8"),
            (502, "1", "FIRST"),
            (503, "5", "\u{ff49}\u{ff4e}\u{ff56}-7"),
            // Its own bytes still name the twin of inv-7.
            (504, "2", "\u{ff29}\u{ff2e}\u{ff36}\u{ff0d}\u{ff17}"),
        ] {
            let again = pay(operation, amount, spelling).await.unwrap();
            assert!(again.repeated, "{spelling}");
        }
        assert!(pay(510, "3", "inv-8").await.is_err(), "another amount");
        assert!(!pay(511, "3", "inv-9").await.unwrap().repeated);
        assert_eq!(ledger.votes().await.unwrap(), Vec::<Vote>::new());
        sound(&ledger).await;
    });
}

/// Votes and charges stay, and what own requests cost can be stored from now on.
#[test]
fn a_ledger_of_the_fifth_schema_gets_a_place_for_own_requests() {
    let (_dir, path) = copy("schema-5.sqlite");
    run(async {
        let ledger = serve(&path);
        sound(&ledger).await;
        let totals = ledger.totals().await.unwrap();
        assert_eq!((totals.entries, totals.spent), (3, 72_500_000));
        assert_eq!(ledger.votes().await.unwrap().len(), 1);
        let (from, to) = (Timestamp::default(), at(i64::from(i32::MAX)));
        assert_eq!(ledger.own_costs(from, to).await.unwrap(), []);
        let cost = OwnCost {
            hour: 7,
            target: "sim/sim".to_owned(),
            cost: usd("0.01"),
        };
        ledger.own_cost(cost.clone()).await.unwrap();
        assert_eq!(ledger.own_costs(from, to).await.unwrap(), [cost]);
        sound(&ledger).await;
    });
}

/// Its hours are ordinary ones; what is served from now on has rows of its own, and all of it verifies.
#[test]
fn a_ledger_of_the_sixth_schema_learns_what_was_served() {
    let (_dir, path) = copy("schema-6.sqlite");
    let rows = || -> Vec<String> {
        let conn = rusqlite::Connection::open(&path).unwrap();
        let sql = "SELECT s.slug || ' ' || t.target || ' ' || tier || ' ' || place || ' ' || context_band || ' ' || account || ' '
            || sum(requests) || ' ' || sum(output) || ' ' || sum(exposure) || ' ' || sum(cache_write_12h) || ' ' || sum(calls)
            FROM usage u JOIN slugs s ON s.id = u.slug JOIN targets t ON t.id = u.target WHERE hour < 4 GROUP BY t.id, s.id ORDER BY 1";
        let mut statement = conn.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    let before = [
        "large  standard global 0  1 0 10000000000 0 0",
        "large a/one standard global 0  1 3000 10000000000 0 0",
        "large c/three standard global 0  0 0 4000000000 0 0",
        "small a/one standard global 0  2 5000 10000000000 0 0",
        "small b/two standard global 0  1 2000 10000000000 0 0",
        "small c/three standard global 0  0 0 4000000000 0 0",
    ];
    run(async {
        let ledger = serve(&path);
        sound(&ledger).await;
        assert_eq!(rows(), before);
        let old = ledger.entry(op(22)).await.unwrap().unwrap().bill.unwrap();
        assert_eq!(
            (old.served, old.provider_cost, old.lines[0].class.as_ref()),
            (Served::default(), None, None)
        );
        for request in [40, 41] {
            ledger.open_hold(new_hold(2, request, "1")).await.unwrap();
            let bill = Bill {
                target: "a/one".to_owned(),
                ..fast(10)
            };
            let served = Finish {
                bill,
                at: at(7_500),
                ..finish(request, 10)
            };
            ledger.finish_hold(served).await.unwrap();
        }
        let mut after = before.map(str::to_owned).to_vec();
        after.insert(3, "small a/one fast us 1 second 2 20 0 20 6".to_owned());
        assert_eq!(rows(), after);
        let recovered = ledger.recover(at(8_000)).await.unwrap();
        assert_eq!((recovered.settled, recovered.released), (1, 0));
        assert_eq!(ledger.files_acts(None, 9).await.unwrap(), []);
        let act = FilesAct {
            operation: op(700),
            at: at(9_000),
            actor: "ada".to_owned(),
            details: "{}".to_owned(),
        };
        ledger.note_files(act.clone()).await.unwrap();
        assert_eq!(ledger.files_acts(None, 9).await.unwrap(), [act]);
        sound(&ledger).await;
    });
}

/// Entries of both formats in one chain, anchors of both kinds in one file.
#[test]
fn old_entries_and_old_anchors_are_still_checked() {
    let (dir, path) = copy("schema-1-anchored.sqlite");
    let anchors = dir.path().join("anchors");
    std::fs::copy(
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/schema-1.anchors"),
        &anchors,
    )
    .unwrap();
    run(async {
        let ledger = serve(&path);
        let entry = ledger.entry(op(23)).await.unwrap().unwrap();
        assert_eq!(
            entry.bill.unwrap().end_reason,
            EndReason::from("a_word_of_another_time")
        );
        let hours = ledger.usage(key(1), at(0), at(9_000)).await.unwrap();
        assert_eq!(
            (hours.len(), hours[0].requests, hours[0].usage.output),
            (1, 3, 2_005_000),
            "summed again, by target"
        );
        assert_eq!(
            ledger.recover(at(800)).await.unwrap(),
            Recovered {
                epoch: 2,
                settled: 1,
                released: 1
            }
        );
        ledger
            .credit(Credit {
                at: at(1),
                ..top_up(3, 200, "5", "new-1")
            })
            .await
            .unwrap();
        ledger
            .credit(Credit {
                at: at(1),
                ..top_up(1, 201, "5", "new-2")
            })
            .await
            .unwrap();
        assert_eq!(
            ledger.entry(op(201)).await.unwrap().unwrap().at,
            at(800),
            "a clock that went back does not reorder a chain"
        );
        let mut file = anchor::AnchorFile::open(&anchors).unwrap();
        assert_eq!(file.last().entries(), 8);
        file.append(ledger.anchor(file.last(), at(900)).await.unwrap())
            .unwrap();
        let report = ledger
            .verify_with(anchor::read(&anchors).unwrap())
            .await
            .unwrap();
        assert_eq!(
            (report.faults, report.entries, report.anchors),
            (Vec::<String>::new(), 12, 6)
        );
        let text = std::fs::read_to_string(&anchors).unwrap();
        for (from, to) in [
            ("c60de035", "c60de036"),
            ("\"seq\":1,", "\"seq\":2,"),
            ("\"act\":5,", "\"act\":9,"),
        ] {
            assert!(text.contains(from), "{from} in {text}");
            std::fs::write(&anchors, text.replacen(from, to, 1)).unwrap();
            let faults = ledger
                .verify_with(anchor::read(&anchors).unwrap())
                .await
                .unwrap()
                .faults;
            assert!(
                faults.iter().any(|fault| fault.starts_with("anchor of")),
                "{to}: {faults:?}"
            );
        }
        ledger.close();
    });
    let version: i64 = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(version, 17, "what makes older programs refuse it in words");
}

/// Its open hold began on a day, and a cap that is set now counts it and what was charged before.
#[test]
fn a_ledger_of_the_seventh_schema_learns_caps() {
    let (_dir, path) = copy("schema-7.sqlite");
    run(async {
        let ledger = serve(&path);
        sound(&ledger).await;
        let days = || -> i64 {
            let conn = rusqlite::Connection::open(&path).unwrap();
            conn.query_row("SELECT day FROM holds", [], |row| row.get(0))
                .unwrap()
        };
        assert_eq!(days(), 20_781);
        let query = KeyQuery {
            limit: 9,
            ..KeyQuery::default()
        };
        let keys = ledger.list_keys(query).await.unwrap();
        let rich = keys
            .iter()
            .find(|key| key.customer.account.held.is_positive());
        let change = KeyChange {
            key: rich.unwrap().id,
            change: Change::SetCap(Cap {
                interval: CapInterval::Total,
                model: None,
                limit: usd("1"),
            }),
            act: act(1, 1),
        };
        let capped = ledger.change_key(change).await.unwrap();
        let counted = capped.caps.iter().next().unwrap().current;
        assert_eq!(
            (counted.charged, counted.held),
            (usd("0.000095"), usd("0.0012315"))
        );
        ledger.recover(clock::now()).await.unwrap();
        let after = ledger.find_key(capped.id).await.unwrap().unwrap();
        assert_eq!(after.caps.iter().next().unwrap().current.held, usd("0"));
        sound(&ledger).await;
    });
}

/// Each key has become the only key of a customer with its ten symbols, and with nothing that only customers have.
#[test]
fn a_ledger_of_the_eighth_schema_gets_customers() {
    let (_dir, path) = copy("schema-8.sqlite");
    run(async {
        let ledger = serve(&path);
        sound(&ledger).await;
        let all = CustomerQuery {
            limit: 9,
            ..CustomerQuery::default()
        };
        let customers = ledger.list_customers(all).await.unwrap();
        let shown: Vec<_> = customers
            .iter()
            .map(|of| (of.settings.label.as_str(), of.account.balance().to_string()))
            .collect();
        let expected = [("class of 9b", "6.00"), ("solo", "2.00"), ("none", "0.00")];
        assert_eq!(shown, expected.map(|(label, usd)| (label, usd.to_owned())));
        for customer in &customers {
            let key = ledger.find_key(customer.id.first_key()).await.unwrap();
            let key = key.unwrap();
            assert_eq!((key.belongs_to, &key.customer), (customer.id, customer));
            assert_eq!((key.is_owner, key.made_by), (false, None));
        }
        let first = ledger.find_key(customers[0].id.first_key()).await.unwrap();
        assert_eq!(first.unwrap().caps.iter().count(), 2, "caps stay the key's");
        // A second key of the same customer, and entries of the new format behind the old ones.
        let mut second = new_key(77, 400, Some("1"));
        second.within.customer = Some(customers[0].id);
        let second = ledger.create_key(second).await.unwrap();
        assert_eq!(second.customer.account.balance(), usd("7"));
        sound(&ledger).await;
        ledger.close();
    });
}

/// A payment of before was made in dollars, and what is not there when it goes back is owed.
#[test]
fn a_ledger_of_the_ninth_schema_takes_money_back() {
    let (_dir, path) = copy("schema-9.sqlite");
    run(async {
        let ledger = serve(&path);
        sound(&ledger).await;
        assert_eq!(ledger.unapplied().await.unwrap(), []);
        for (payment, operation, told, left, owed) in [
            ("pi-2", 500, "2.50", "4.5", "0"),
            ("pi-1", 501, "5", "0", "0.5"),
        ] {
            let back = ledger.reverse(refund_of(payment, operation, told)).await;
            let customer = back.unwrap().customer;
            assert_eq!(customer.account.balance(), usd(left));
            assert_eq!(customer.claim, usd(owed));
        }
        sound(&ledger).await;
        ledger.close();
    });
}

/// Nobody had a token, and what is made with one from now on names it.
#[test]
fn a_ledger_of_the_tenth_schema_gets_tokens() {
    let (_dir, path) = copy("schema-10.sqlite");
    run(async {
        let ledger = serve(&path);
        sound(&ledger).await;
        assert_eq!(ledger.tokens().await.unwrap(), []);
        let old = ledger.payment("pi-2").await.unwrap().unwrap();
        assert_eq!((old.due(), old.token), (usd("1.5"), None));
        let first = ledger.find_customer(old.customer).await.unwrap().unwrap();
        assert_eq!((first.account.balance(), first.token), (usd("6.5"), None));
        let new = new_token(1, 500, TokenRole::Sell, Some("10"));
        let token = ledger.create_token(new).await.unwrap();
        let made = Operation::CreateCustomer(Box::new(new_customer(7, 501)));
        ledger.ask(asked(1, 500, made)).await.unwrap();
        let made = ledger.find_customer(CustomerId::from_random(7)).await;
        assert_eq!(made.unwrap().unwrap().token, Some(token.id));
        ledger.create_lot(new_lot(1, 510, 1)).await.unwrap();
        assert_eq!(ledger.lots().await.unwrap().len(), 1);
        sound(&ledger).await;
        ledger.close();
    });
}

/// A ledger that an older program has migrated is what a new one is, table by table, so a published schema never changes again.
#[test]
fn published_schemas_stay_as_they_are() {
    let home = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/store");
    for (store, newest, sum) in [
        (
            "sqlite",
            17,
            "abec7c33ee22e8ca9936f3387b625b6d0c4937b5fedb83dadcd727e099beef4b",
        ),
        (
            "postgres",
            14,
            "a034d56f092a64b0f55d240d61dfcab2a4cb46d2bd6aa01c9c07dc1d7663346d",
        ),
    ] {
        let mut published = Sha256::new();
        for version in 1..=newest {
            let file = home.join(format!("{store}/schema/{version}.sql"));
            published.update(std::fs::read(file).unwrap());
        }
        assert_eq!(hex::encode(published.finalize()), sum, "{store}");
    }
}
