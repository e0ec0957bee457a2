//! Customers: found, unfolded, opened, and changed, each act with its review and its operation.

use farebox_ledger::{CustomerStatus, Grants, Plans, SubscriptionStatus};
use serde_json::json;

use super::bench::Bench;
use super::fixture::{counted, customers, keys, members, usd};
use crate::app::message::{Effect, Message};
use crate::app::modal::{Hit, Modal};
use crate::app::{Screen, customers::CustomerLine};

fn bench() -> Bench {
    let mut bench = Bench::with(80, 24, keys(), counted);
    bench.press("U");
    bench
}

#[test]
fn keys_are_folded_into_their_customer() {
    let mut bench = bench();
    let class = members();
    assert!(!bench.screen().contains("pupil-1"));
    bench.press("<space>");
    let screen = bench.screen();
    assert!(
        screen.contains("▾ ") && screen.contains("teacher") && screen.contains("pupil-2"),
        "{screen}"
    );
    // A key's line opens the key, whose customer is one key away, and esc goes back the way one came.
    bench.press("jj<enter>");
    let open = |bench: &Bench| bench.app.detail.as_ref().map(|detail| detail.of);
    assert_eq!(open(&bench), Some(class[1].id.into()));
    assert!(bench.screen().contains("of Class 9b"), "{}", bench.screen());
    bench.press("C");
    assert_eq!(open(&bench), Some(class[0].belongs_to.into()));
    bench.press("<esc>");
    assert_eq!(open(&bench), Some(class[1].id.into()));
    bench.press("<esc>");
    assert!(!bench.app.detail_open && bench.app.screen == Screen::Customers);
    // Folding in leaves the cursor on the customer.
    bench.press("<space>");
    let line = bench.app.customers.lines()[bench.app.customers.list.selected];
    assert!(
        matches!(line, CustomerLine::Customer(customer, _) if customer.id == class[0].belongs_to)
    );
    assert!(!bench.screen().contains("pupil-1"));
}

#[test]
fn a_customers_page_has_its_keys_caps_and_what_is_not_booked() {
    let mut bench = bench();
    let screen = bench.press("<enter>").screen();
    for words in [
        "Customer c_",
        "Class 9b",
        "crm-9",
        "3 keys",
        "cap 40.00 USD per month: 26.25 left",
        "1 payment of $30.00 not booked (pi_3PqK)",
        "money in",
        "keys 3",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    let screen = bench.press("]]]]").screen();
    assert!(
        screen.contains("owner") && screen.contains("$4.08"),
        "{screen}"
    );
    bench.press("j<enter>");
    let open = bench.app.detail.as_ref().map(|detail| detail.of);
    assert_eq!(open, Some(members()[1].id.into()));
    let mut bench = self::bench();
    let screen = bench.press("j<enter>").screen();
    assert!(
        screen.contains("owes $2.50") && screen.contains("SUSPENDED"),
        "{screen}"
    );
}

#[test]
fn grants_are_listed_given_and_taken_back() {
    let mut bench = bench();
    let screen = bench.press("<enter>").screen();
    assert!(screen.contains("3.00 of it until 30 November"), "{screen}");
    let screen = bench.press("]]").screen();
    for words in [
        "g_000000002v",
        "spring-7",
        "$3.00",
        "2026-11-30",
        "active",
        "pending",
        "voided",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    // Only what can still be used is taken back.
    bench.press("jjd");
    assert!(
        bench.app.modal.is_none() && bench.screen().contains("this grant is voided"),
        "{}",
        bench.screen()
    );
    let screen = bench.press("kkd").screen();
    assert!(
        screen.contains("Grant") && screen.contains("g_000000002v"),
        "{screen}"
    );
    bench.press("y");
    let sent = &bench.sent[0].plan;
    assert_eq!(
        (sent.kind.name, &sent.body["grant"]),
        ("Void grant", &json!("g_000000002v"))
    );
}

#[test]
fn plans_are_listed_sold_changed_stopped_and_ended() {
    let mut bench = bench();
    assert!(bench.screen().contains("LAPSED"), "{}", bench.screen());
    let screen = bench.press("<enter>").screen();
    let words = "coder (s_000000002z): active, 12.00 of 25.00 left until";
    assert!(screen.contains(words), "{screen}");
    bench.press("E");
    let screen = bench.screen();
    assert!(screen.contains("select a plan first"), "{screen}");
    let screen = bench.press("]]]").screen();
    for words in [
        "plans 2",
        "coder",
        "$12.00",
        "$2.50",
        "15:04:11",
        "2026-12-20",
        "active",
        "team",
        "not paid",
        "lapsed",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    let screen = bench.press("jz").screen();
    let words = "nothing is left to pause";
    assert!(
        bench.app.modal.is_none() && screen.contains(words),
        "{screen}"
    );
    for (keys, name, says) in [
        ("z", "Pause plan", json!({})),
        ("E", "End plan", json!({})),
        (
            "Pteam<tab>y<enter>",
            "Change plan",
            json!({ "plan": "team", "at_once": true }),
        ),
    ] {
        let mut bench = self::bench();
        bench.press("<enter>]]]").press(keys).press("y");
        let plan = &bench.sent[0].plan;
        assert_eq!(plan.kind.name, name);
        let mut said = json!(plan.body);
        let of = said.as_object_mut().unwrap().remove("subscription");
        assert_eq!((of, said), (Some(json!("s_000000002z")), says), "{name}");
    }
    bench.customers[0].grants = paused(&bench.customers[0].grants);
    bench.press("rkz").press("y");
    assert_eq!(bench.sent[0].plan.kind.name, "Resume plan");
}

/// The same grants, with every plan paused.
fn paused(grants: &Grants) -> Grants {
    let plans = grants.plans.iter().cloned().map(|mut of| {
        of.state.status = SubscriptionStatus::Paused;
        of
    });
    let windows = grants.plans.windows().cloned();
    let plans = Plans::of(plans.collect(), windows.collect());
    Grants::of(grants.iter().cloned().collect()).and(plans)
}

#[test]
fn every_act_on_a_customer_is_reviewed_and_sent_once() {
    let [class, other] = [&customers()[0], &customers()[1]];
    let end: String = class.id.chars().chars().skip(6).collect();
    let moves = format!("m{}<tab>5<tab>one purse<enter>", other.id);
    let closes = format!("x{end}<enter>");
    for (keys, name) in [
        ("t5<tab>inv-1<enter>", "Top up"),
        ("a-1<tab>why<tab>fix-1<enter>", "Adjust"),
        (
            "i5<tab>spring-8<tab><tab>2099-01-31<tab>0<enter>",
            "Give credit",
        ),
        ("pcoder<tab><tab><tab>y<enter>", "Sell plan"),
        ("e<tab><tab><tab><tab>9<tab><enter>", "Edit customer"),
        ("b", "Suspend"),
        ("jb", "Resume"),
        (moves.as_str(), "Move"),
        (closes.as_str(), "Close"),
        (
            "nClass 9c<tab>crm-10<tab>2.50<tab>5<tab><tab><enter>",
            "New customer",
        ),
        ("<enter>b", "Suspend"),
        (
            "<enter>npupil-3<tab><tab><tab><tab><tab><tab><enter>",
            "New key",
        ),
    ] {
        let mut bench = bench();
        bench.press(keys);
        assert!(
            matches!(bench.app.modal, Some(Modal::Review(_))) && bench.sent.is_empty(),
            "{name}\n{}",
            bench.screen()
        );
        bench.press("<enter>");
        assert!(bench.sent.is_empty(), "{name}: enter is Cancel");
        let mut bench = self::bench();
        bench.press(keys).press("yyy");
        let sent = &bench.sent;
        let plan = &sent[0].plan;
        assert_eq!((sent.len(), plan.kind.name), (1, name));
        let of = (name != "New customer").then_some(class.id.into());
        match name {
            "Resume" => assert_eq!(plan.of, Some(other.id.into())),
            _ => assert_eq!(plan.of, of, "{name}"),
        }
        let said = match name {
            "New customer" => json!({
                "label": "Class 9c", "external_id": "crm-10", "low_balance": "2.50", "rate": 5,
            }),
            "New key" => json!({ "label": "pupil-3" }),
            "Sell plan" => json!({ "plan": "coder", "given": true }),
            // Of an edit only what differs from what its form showed.
            "Edit customer" => json!({ "concurrency": 9 }),
            _ => continue,
        };
        assert_eq!(json!(plan.body), said, "{name}");
    }
}

#[test]
fn money_that_is_not_there_is_not_moved() {
    let other = customers()[1].id;
    let own = customers()[0].id;
    // 50 paid in, 12.25 spent, 1.50 held.
    for (keys, words) in [
        (format!("m{other}<tab>36.26<tab>x<enter>"), "has 36.25"),
        (
            format!("m{own}<tab>1<tab>x<enter>"),
            "it is the one that gives",
        ),
        (
            "mk_0000000000<tab>1<tab>x<enter>".to_owned(),
            "is not a customer id",
        ),
        (format!("m{other}<tab>0<tab>x<enter>"), "more than zero"),
        (
            format!("m{other}<tab>1<tab><enter>"),
            "the reference is required",
        ),
    ] {
        let mut bench = bench();
        let screen = bench.press(&keys).screen();
        assert!(
            screen.contains(words) && matches!(bench.app.modal, Some(Modal::Form(_))),
            "{words}: {screen}"
        );
    }
}

#[test]
fn closed_customers_and_read_only_consoles_say_why_not() {
    let mut bench = bench();
    bench.customers[0].status = CustomerStatus::Closed;
    bench.press("r");
    for key in ["t", "a", "e", "b", "m", "x"] {
        let screen = bench.press(key).screen();
        assert!(
            bench.app.modal.is_none() && screen.contains("the customer is closed"),
            "{key}: {screen}"
        );
    }
    bench.app.options.read_only = true;
    for key in ["n", "t"] {
        let screen = bench.press(key).screen();
        assert!(screen.contains("--read-only"), "{key}: {screen}");
    }
    let mut bench = self::bench();
    let screen = bench.press("xabcd<enter>").screen();
    assert!(screen.contains("not the last four"), "{screen}");
}

#[test]
fn customers_are_found_by_what_they_are_called_and_by_their_payments() {
    let mut bench = bench();
    bench.press("/crm-9<enter>");
    assert_eq!(bench.app.customers.rows.len(), 1);
    assert!(
        bench.screen().contains("Customers · crm-9 · 1"),
        "{}",
        bench.screen()
    );
    bench.press("u");
    assert!(bench.app.customers.rows.len() > 30, "a filter is undone");
    bench.press("/pay:inv-8841<enter>");
    let Some(Effect::LoadCustomers(request)) = bench
        .asked
        .iter()
        .rev()
        .find(|effect| matches!(effect, Effect::LoadCustomers(_)))
    else {
        panic!("{:?}", bench.asked)
    };
    assert_eq!(request.filter.payment.as_deref(), Some("inv-8841"));
    let screen = bench.press("<esc>/foo:bar").screen();
    assert!(screen.contains("no filter is called foo:"), "{screen}");
    bench.press("<esc>1");
    bench.hit = Ok(Hit::Customer(customers()[0].id));
    bench.press("Fcrm-9<enter>");
    assert!(bench.screen().contains("Customer c_"), "{}", bench.screen());
    bench.hit = Ok(Hit::Customers("Class".to_owned()));
    bench.press("FClass<enter>");
    assert_eq!(
        (bench.app.screen, bench.app.customers.list.filter.as_str()),
        (Screen::Customers, "Class")
    );
}

#[test]
fn an_idle_list_is_read_again_and_not_drawn() {
    let mut bench = bench();
    bench.press("<space>");
    bench.app.dirty = false;
    bench.tell(Message::VisibleCustomers(customers()));
    bench.tell(Message::KeysOf {
        customer: customers()[0].id,
        keys: Ok(members()),
    });
    assert!(!bench.app.dirty);
    let mut changed = customers();
    changed[1].account.credit = usd("9");
    bench.tell(Message::VisibleCustomers(changed));
    assert!(bench.app.dirty && bench.screen().contains("$1.00"));
}

#[test]
fn keys_that_are_stopped_by_their_exposure_sort_first() {
    let mut bench = Bench::new(120, 40).live();
    let stopped = bench.keys[0].id;
    let mut status = super::fixture::status();
    status.alerts[0].key = stopped.to_string();
    bench.tell(Message::Status(Ok(Box::new(status))));
    bench.press("8[[:sort state<enter>S");
    assert!(bench.screen().contains("STATE"), "{}", bench.screen());
    let first = bench.app.money.exposure.page.rows[0].name.clone();
    assert_eq!(first, stopped.to_string());
}

/// The list and the page are in the snapshot `customers_unfolded`.
#[test]
fn a_key_is_exported_with_what_its_caps_leave() {
    let pupil = members().remove(1);
    assert_eq!(pupil.customer.account.available().to_string(), "36.25");
    let row = crate::store::export::key_row(&pupil, super::fixture::now());
    assert_eq!(row["available"], "26.25");
}

#[test]
fn a_list_of_keys_says_whose_they_are_and_the_border_names_all_screens() {
    let mut bench = Bench::with(120, 40, members(), counted);
    for keys in ["", "*b"] {
        let screen = bench.press(keys).screen();
        assert!(
            screen.contains("CUSTOMER") && screen.contains("Class 9b"),
            "{screen}"
        );
    }
    for width in [100, 140, 200] {
        let screen = Bench::new(width, 24).screen();
        assert!(
            screen.contains("8 Money 0 Nodes A Alerts U Customers"),
            "{screen}"
        );
    }
}
