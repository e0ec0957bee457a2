//! Databases of earlier schemas on PostgreSQL: a gateway that is alone brings them up to date, and nothing in them is lost.

#[expect(dead_code, reason = "each suite uses its own part")]
mod common;

use common::*;
use farebox_ledger::*;

#[test]
fn an_older_schema_is_brought_up_to_date_by_a_gateway_alone() {
    with_cluster("an older schema", async |cluster| {
        let database = cluster.database();
        let url = cluster.url(&database);
        {
            let ledger = gateway(&url).await;
            ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
            ledger.open_hold(new_hold(1, 20, "1")).await.unwrap();
            ledger.open_hold(new_hold(1, 21, "1")).await.unwrap();
        }
        let back = "DROP TABLE own_costs, probe_leases, votes; ALTER TABLE accounts DROP COLUMN running, DROP COLUMN paced_to; ALTER TABLE nodes DROP COLUMN configuration, \
             DROP COLUMN holds, DROP COLUMN per_second; UPDATE identity SET version = 2";
        let back = format!("{BACK_TO_5}{back}");
        cluster.psql(&database, &back).unwrap();
        assert!(
            refused(&url, OpenMode::ReadOnly)
                .await
                .contains("older schema 2")
        );
        let ledger = postgres(&url, OpenMode::Serve).await.unwrap();
        assert_eq!(
            cluster
                .psql(&database, "SELECT running FROM accounts")
                .unwrap(),
            "2",
            "open holds count"
        );
        sound(&ledger).await;
    });
}

/// A reference that an older version stored under its own letters is found in every form that is equal today.
#[test]
fn a_ledger_of_the_third_schema_compares_references_in_any_form() {
    with_cluster("references of an older schema", async |cluster| {
        let database = cluster.database();
        let url = cluster.url(&database);
        let wide = "\u{ff29}nv\u{ff0d}8";
        {
            let ledger = gateway(&url).await;
            ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
            ledger.credit(top_up(1, 11, "7", wide)).await.unwrap();
            ledger.credit(top_up(1, 12, "3", "inv-9")).await.unwrap();
        }
        // As the third schema had it: lower case of what was written.
        let back = "ALTER TABLE refs DISABLE TRIGGER refs_append_only; \
             UPDATE refs SET folded = U&'\\FF49nv\\FF0D8' WHERE folded = 'inv-8'; \
             ALTER TABLE refs ENABLE TRIGGER refs_append_only; \
             DROP TABLE own_costs, probe_leases, votes; UPDATE identity SET version = 3";
        let back = format!("{BACK_TO_5}{back}");
        cluster.psql(&database, &back).unwrap();
        let ledger = postgres(&url, OpenMode::Serve).await.unwrap();
        for (operation, spelling) in [(500, "inv-8"), (501, wide), (502, "INV-8")] {
            let again = ledger.credit(top_up(1, operation, "7", spelling)).await;
            assert!(again.unwrap().repeated, "{spelling}");
        }
        let another = ledger.credit(top_up(1, 510, "8", "inv-8")).await;
        assert!(another.is_err(), "another amount");
        assert!(
            ledger
                .credit(top_up(1, 511, "3", "inv-9"))
                .await
                .unwrap()
                .repeated
        );
        assert!(
            !ledger
                .credit(top_up(1, 512, "3", "inv-10"))
                .await
                .unwrap()
                .repeated
        );
        assert_eq!(ledger.votes().await.unwrap(), Vec::<Vote>::new());
        sound(&ledger).await;
    });
}

#[test]
fn a_database_of_the_fifth_schema_gets_a_place_for_acts_on_files() {
    with_cluster("the fifth schema", async |cluster| {
        let database = cluster.database();
        let url = cluster.url(&database);
        {
            let ledger = gateway(&url).await;
            ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
        }
        cluster.psql(&database, BACK_TO_5).unwrap();
        let ledger = gateway(&url).await;
        assert_eq!(ledger.files_acts(None, 9).await.unwrap(), []);
        let act = FilesAct {
            operation: op(700),
            at: at(7),
            actor: "ada".to_owned(),
            details: "{}".to_owned(),
        };
        ledger.note_files(act.clone()).await.unwrap();
        assert_eq!(ledger.files_acts(None, 9).await.unwrap(), [act]);
        sound(&*ledger).await;
    });
}

#[test]
fn a_database_of_the_fourth_schema_gets_a_place_for_own_requests() {
    with_cluster("the fourth schema", async |cluster| {
        let database = cluster.database();
        let url = cluster.url(&database);
        {
            let ledger = gateway(&url).await;
            ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
            ledger.open_hold(new_hold(1, 20, "1")).await.unwrap();
            ledger.finish_hold(finish(20, 10)).await.unwrap();
        }
        let back = "DROP TABLE own_costs, probe_leases; UPDATE identity SET version = 4";
        let back = format!("{BACK_TO_5}{back}");
        cluster.psql(&database, &back).unwrap();
        assert!(
            refused(&url, OpenMode::ReadOnly)
                .await
                .contains("older schema 4")
        );
        let ledger = gateway(&url).await;
        let cost = OwnCost {
            hour: 7,
            target: "a/m".to_owned(),
            cost: usd("0.01"),
        };
        ledger.own_cost(cost.clone()).await.unwrap();
        let all = ledger.own_costs(at(0), at(i64::from(i32::MAX))).await;
        assert_eq!(all.unwrap(), [cost]);
        assert_eq!(ledger.lease_probe("a/m").await.unwrap(), ProbeLease::Ours);
        assert_eq!(ledger.totals().await.unwrap().entries, 2);
        sound(&*ledger).await;
    });
}

/// The hours of before are ordinary, and old and new entries verify together.
#[test]
fn a_database_of_the_fifth_schema_learns_what_was_served() {
    with_cluster("the fifth schema", async |cluster| {
        let database = cluster.database();
        let url = cluster.url(&database);
        {
            let ledger = gateway(&url).await;
            ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
            for request in [20, 21] {
                ledger.open_hold(new_hold(1, request, "1")).await.unwrap();
                ledger.finish_hold(finish(request, 10)).await.unwrap();
            }
        }
        cluster.psql(&database, BACK_TO_5).unwrap();
        assert!(
            refused(&url, OpenMode::ReadOnly)
                .await
                .contains("older schema 5")
        );
        let ledger = gateway(&url).await;
        sound(&*ledger).await;
        for request in [30, 31] {
            ledger.open_hold(new_hold(1, request, "1")).await.unwrap();
            let served = Finish {
                bill: fast(10),
                ..finish(request, 10)
            };
            ledger.finish_hold(served).await.unwrap();
        }
        let rows = "SELECT requests, output, cache_write_12h, calls, tier, place, context_band, account FROM usage ORDER BY calls";
        assert_eq!(
            cluster.psql(&database, rows).unwrap(),
            "2|20|0|0|standard|global|0|\n2|20|20|6|fast|us|1|second"
        );
        sound(&*ledger).await;
    });
}

/// Keys of the last version become the only keys of customers with their ten symbols; their limits go on counting what runs.
#[test]
fn a_database_of_the_seventh_schema_gets_customers() {
    with_cluster("the seventh schema", async |cluster| {
        let database = cluster.database();
        let url = cluster.url(&database);
        {
            let ledger = gateway(&url).await;
            let mut limited = new_key(1, 10, Some("5"));
            limited.settings.concurrency = Some(2);
            ledger.create_key(limited).await.unwrap();
            ledger.create_key(new_key(2, 11, Some("3"))).await.unwrap();
            ledger.open_hold(new_hold(1, 20, "1")).await.unwrap();
            ledger.open_hold(new_hold(2, 21, "1")).await.unwrap();
            ledger.finish_hold(finish(21, 10)).await.unwrap();
        }
        cluster.psql(&database, BACK_TO_7).unwrap();
        assert!(
            refused(&url, OpenMode::ReadOnly)
                .await
                .contains("older schema 7")
        );
        let ledger = gateway(&url).await;
        sound(&*ledger).await;
        let customer = CustomerId::made_for(key(2));
        let found = ledger.find_customer(customer).await.unwrap().unwrap();
        assert_eq!(found.settings.label, "Key 2");
        let entries = EntryQuery {
            customer: Some(customer),
            ..EntryQuery::default()
        };
        let entries = ledger.entries(entries).await.unwrap();
        assert!(entries.len() == 2 && entries.iter().all(|entry| entry.key == Some(key(2))));
        let running = "SELECT count(*) FROM keys WHERE running IS NOT NULL";
        assert_eq!(cluster.psql(&database, running).unwrap(), "1");
    });
}

/// A top-up of before is a payment in dollars, and can go back.
#[test]
fn a_database_of_the_eighth_schema_takes_money_back() {
    with_cluster("the eighth schema", async |cluster| {
        let database = cluster.database();
        let url = cluster.url(&database);
        {
            let ledger = gateway(&url).await;
            ledger.create_key(new_key(1, 10, None)).await.unwrap();
            ledger.credit(top_up(1, 11, "5", "inv-9")).await.unwrap();
            ledger.open_hold(new_hold(1, 20, "1")).await.unwrap();
            ledger.finish_hold(finish(20, 1_000_000)).await.unwrap();
        }
        cluster.psql(&database, BACK_TO_8).unwrap();
        assert!(
            refused(&url, OpenMode::ReadOnly)
                .await
                .contains("older schema 8")
        );
        let ledger = gateway(&url).await;
        sound(&*ledger).await;
        let back = ledger.reverse(refund_of("inv-9", 30, "5")).await.unwrap();
        assert_eq!(back.entry.unwrap().amount, usd("-4"));
        assert_eq!(back.customer.claim, usd("1"));
        sound(&*ledger).await;
    });
}

#[test]
fn a_database_of_the_ninth_schema_gets_tokens() {
    with_cluster("the ninth schema", async |cluster| {
        let database = cluster.database();
        let url = cluster.url(&database);
        {
            let ledger = gateway(&url).await;
            ledger.create_key(new_key(1, 10, None)).await.unwrap();
            let paid = new_payment(1, 11, "5", "pi-1");
            ledger.pay(paid).await.unwrap();
        }
        cluster.psql(&database, BACK_TO_9).unwrap();
        assert!(
            refused(&url, OpenMode::ReadOnly)
                .await
                .contains("older schema 9")
        );
        let ledger = gateway(&url).await;
        sound(&*ledger).await;
        let old = ledger.payment("pi-1").await.unwrap().unwrap();
        assert_eq!(old.token, None);
        let new = new_token(1, 20, TokenRole::Sell, Some("10"));
        ledger.create_token(new).await.unwrap();
        let pay = Operation::Pay(Box::new(new_payment(1, 21, "3", "pi-2")));
        ledger.ask(asked(1, 300, pay)).await.unwrap();
        let paid = ledger.payment("pi-2").await.unwrap().unwrap();
        assert_eq!(paid.token, Some(TokenId::from_random(1)));
        ledger.create_lot(new_lot(1, 30, 1)).await.unwrap();
        sound(&*ledger).await;
    });
}

/// Nothing of before is told, and a tenth of the last payment is low.
#[test]
fn a_database_of_the_tenth_schema_tells_what_happens() {
    with_cluster("the tenth schema", async |cluster| {
        let database = cluster.database();
        let url = cluster.url(&database);
        {
            let ledger = gateway(&url).await;
            ledger.create_key(new_key(1, 10, Some("5"))).await.unwrap();
            ledger.credit(top_up(1, 11, "1", "inv-9")).await.unwrap();
        }
        cluster.psql(&database, BACK_TO_10).unwrap();
        assert!(
            refused(&url, OpenMode::ReadOnly)
                .await
                .contains("older schema 10")
        );
        let ledger = gateway(&url).await;
        sound(&*ledger).await;
        ledger.open_hold(new_hold(1, 20, "1")).await.unwrap();
        ledger.finish_hold(finish(20, 5_950_000)).await.unwrap();
        let told = events(&*ledger, 1).await;
        assert_eq!(told[0].document()["data"]["threshold"], "0.10");
        sound(&*ledger).await;
    });
}
