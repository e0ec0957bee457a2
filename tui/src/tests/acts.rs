//! The life of an act: no effect without `y`, one effect however often it is pressed, no second id for one act.

use farebox_ledger::{HouseAct, HouseSubject, KeyOrder, KeyStatus, Timestamp};

use super::bench::Bench;
use super::fixture::{ago, keys, now, open_operation, operation, usd};
use crate::app::detail::PartyDetail;
use crate::app::keys::{From, KeysPage};
use crate::app::message::{Effect, Message};
use crate::app::modal::{ActOutcome, ApplyError, ListedOperation, Modal, OutcomeLookup};

const TOP_UP: &str = "t50<enter>inv-8902<enter>";

#[test]
fn only_y_in_a_review_sends_and_only_once() {
    for keys in [
        "<enter>",
        "<esc>",
        "n",
        "<space>",
        "<tab><enter>",
        "<right><enter>",
    ] {
        assert!(
            Bench::new(80, 24).press(TOP_UP).press(keys).sent.is_empty(),
            "{keys}"
        );
    }
    let mut bench = Bench::new(80, 24);
    bench.press(TOP_UP);
    bench.answers = false;
    bench.press("yyyy<enter>y<esc>y");
    assert_eq!(bench.sent.len(), 1);
    assert!(
        matches!(bench.app.modal, Some(Modal::Sending(_))),
        "it cannot be left before the answer"
    );
    let mut bench = Bench::new(80, 24);
    bench.press(TOP_UP).press("yyyyyy");
    assert_eq!(bench.sent.len(), 1);
    assert!(matches!(bench.app.modal, Some(Modal::Receipt(_))));
    assert!(
        bench
            .asked
            .contains(&Effect::Forget(bench.sent[0].operation))
    );
}

#[test]
fn going_back_keeps_values_and_the_operation() {
    let mut bench = Bench::new(80, 24);
    bench.press(TOP_UP);
    let Some(Modal::Review(review)) = &bench.app.modal else {
        panic!("no review")
    };
    let first = review.pending.operation;
    bench.press("<esc>");
    let Some(Modal::Form(form)) = &bench.app.modal else {
        panic!("no form")
    };
    assert_eq!(
        (form.fields[0].field.text(), form.fields[1].field.text()),
        ("50", "inv-8902")
    );
    bench.press("<enter>y");
    assert_eq!(bench.sent[0].operation, first);
}

#[test]
fn a_refusal_frees_the_form_with_a_new_operation() {
    let mut bench = Bench::with(80, 24, keys(), super::fixture::counted);
    bench.answer = Some(|pending| Message::Applied {
        operation: pending.operation,
        result: Err(ApplyError::No("reference used".to_owned())),
    });
    bench.press(TOP_UP).press("y");
    let Some(Modal::Form(form)) = &bench.app.modal else {
        panic!("no form")
    };
    assert_eq!(form.error.as_deref(), Some("not applied: reference used"));
    assert_ne!(form.operation, bench.sent[0].operation);
}

#[test]
fn an_unknown_outcome_is_asked_for_and_sent_again_under_the_same_id() {
    let mut bench = Bench::with(80, 24, keys(), super::fixture::counted);
    bench.answer = Some(|pending| Message::Applied {
        operation: pending.operation,
        result: Err(ApplyError::Unknown("I/O".to_owned())),
    });
    bench.press(TOP_UP).press("y");
    // The store read that it was not applied; `y` sends exactly the same operation.
    assert!(matches!(&bench.app.modal, Some(Modal::Unknown(unknown)) if unknown.not_applied));
    assert!(bench.screen().contains("NOT applied"));
    bench.answer = None;
    bench.press("y");
    assert_eq!(bench.sent.len(), 2);
    assert_eq!(bench.sent[0], bench.sent[1]);
    assert!(matches!(bench.app.modal, Some(Modal::Receipt(_))));
}

#[test]
fn while_the_outcome_is_unknown_y_does_nothing() {
    let mut bench = Bench::new(80, 24);
    bench.press(TOP_UP);
    bench.answers = false;
    bench.press("y");
    let operation = bench.sent[0].operation;
    bench.tell(Message::Applied {
        operation,
        result: Err(ApplyError::Unknown("I/O".to_owned())),
    });
    bench.press("yyy<enter>");
    assert_eq!(bench.sent.len(), 1);
    bench.tell(Message::Resolved {
        operation,
        tries: 1,
        found: OutcomeLookup::Unreadable("busy".to_owned()),
        outcome: ActOutcome::default(),
    });
    bench.press("y");
    assert_eq!(bench.sent.len(), 1);
    bench.tell(Message::Resolved {
        operation,
        tries: 2,
        found: OutcomeLookup::Applied(None),
        outcome: ActOutcome::default(),
    });
    assert!(matches!(bench.app.modal, Some(Modal::Receipt(_))));
}

#[test]
fn amounts_are_never_guessed() {
    for wrong in [
        "1,000",
        "1e3",
        "$5",
        "",
        "0",
        "-5",
        "0.0000001",
        "5 USD",
        "100001",
    ] {
        let mut bench = Bench::new(80, 24);
        bench.press(&format!("t{wrong}<tab>inv<enter>"));
        assert!(
            matches!(&bench.app.modal, Some(Modal::Form(form)) if form.fields.iter().any(|field| field.error.is_some())),
            "{wrong}"
        );
    }
    let mut bench = Bench::new(80, 24);
    bench.press("t1000.5<tab>inv<enter>");
    assert!(
        matches!(&bench.app.modal, Some(Modal::Form(form)) if form.fields.len() == 3),
        "above $1,000 it is typed twice"
    );
    bench.press("1000.50<tab><enter>y");
    assert_eq!(bench.sent.len(), 1);
    assert_eq!(bench.sent[0].plan.money(), Some(("amount", usd("1000.5"))));
    let mut bench = Bench::new(80, 24);
    bench.press("t5<tab><enter>");
    assert!(bench.screen().contains("the reference is required"));
}

#[test]
fn revoking_asks_for_the_end_of_the_id() {
    let mut bench = Bench::new(80, 24);
    bench.press("xxxxx<enter>");
    assert!(matches!(bench.app.modal, Some(Modal::Form(_))));
    let chars = keys()[0].id.chars();
    bench
        .press("<back><back><back><back><back>")
        .press(&chars[6..])
        .press("<enter>y");
    assert_eq!(bench.sent[0].plan.kind.name, "Revoke");
}

#[test]
fn every_act_reaches_the_ledger_with_its_actor() {
    for (keys, name) in [
        ("b", "Block"),
        ("jjjjb", "Unblock"),
        ("L", "Dashboard link"),
        ("R<enter>", "Rotate"),
        ("eX<tab><tab><tab><tab><enter>", "Edit"),
        ("jjja-0.01<tab>why<tab>fix-9<enter>", "Adjust"),
        ("jjj<enter>f0.001<tab>why<tab>back-1<enter>", "Refund"),
    ] {
        let mut bench = Bench::new(80, 24);
        bench.press(keys);
        assert!(
            matches!(bench.app.modal, Some(Modal::Review(_))),
            "{name}\n{}",
            bench.screen()
        );
        bench.press("y");
        assert_eq!(
            (
                bench.sent.len(),
                bench.sent[0].plan.kind.name,
                bench.sent[0].actor.as_str()
            ),
            (1, name, "ada")
        );
    }
}

#[test]
fn reasons_are_said_instead_of_acting() {
    let mut bench = Bench::new(80, 24);
    bench.app.options.read_only = true;
    for key in ["t", "n", "b", "x", "R", "a", "e", "L"] {
        bench.press(key);
        assert!(
            bench.app.modal.is_none() && bench.screen().contains("--read-only"),
            "{key}"
        );
    }
    let mut bench = Bench::new(80, 24);
    bench.press("jjjjjjjt");
    assert_eq!(
        bench.app.keys.row().map(|row| row.key.stored_status),
        Some(KeyStatus::Revoked)
    );
    assert!(bench.screen().contains("revoked, which cannot be undone"));
    bench.press("<enter>]f");
    assert!(bench.screen().contains("select a charge first"));
}

#[test]
fn a_secret_lives_on_its_page_only() {
    let mut bench = Bench::new(80, 24);
    bench.press("nX<tab><tab><tab><tab><tab><tab><enter>y");
    assert!(bench.screen().contains("sk-fb-"));
    assert!(
        !format!("{:?}", bench.app).contains("sk-fb-"),
        "Debug never shows it"
    );
    bench.press("h");
    assert!(!bench.screen().contains("sk-fb-"));
    bench.press("q<esc><esc>qsaved");
    assert!(
        matches!(bench.app.modal, Some(Modal::Secret(_))),
        "it is not left by accident"
    );
    bench.press("<enter>");
    assert!(
        matches!(bench.app.modal, Some(Modal::Secret(_))),
        "nor with another word"
    );
    bench.press("<esc><esc>saved<enter>");
    assert!(bench.app.modal.is_none());
}

#[test]
fn a_pasted_secret_is_found_by_its_id_and_not_kept() {
    let secret = farebox_ledger::Secret::generate(keys()[3].id, [3; 32]);
    let mut bench = Bench::new(80, 24);
    bench.press("/");
    bench.event(&crossterm::event::Event::Paste(secret.reveal().to_owned()));
    assert_eq!(bench.app.keys.filter.id, Some(keys()[3].id));
    assert!(!format!("{:?}", bench.app).contains(secret.reveal()));
    let mut bench = Bench::new(80, 24);
    bench.press("/").press(secret.reveal().split_at(60).0);
    assert!(
        !bench.screen().contains(&secret.reveal()[20..40]),
        "{}",
        bench.screen()
    );
}

#[test]
fn operations_on_file_are_listed_and_sent_again_only_when_not_applied() {
    let open = open_operation("Top up", 5, keys()[0].id);
    let mut bench = Bench::new(80, 24);
    bench.tell(Message::Operations(vec![ListedOperation {
        open: open.clone(),
        found: OutcomeLookup::Applied(None),
    }]));
    bench.press("y");
    assert!(bench.sent.is_empty());
    bench.press("d");
    assert!(bench.app.operations.is_empty() && bench.asked.contains(&Effect::Forget(operation(5))));
    bench.tell(Message::Operations(vec![ListedOperation {
        open,
        found: OutcomeLookup::NotApplied,
    }]));
    bench.press("y");
    assert!(
        matches!(bench.app.modal, Some(Modal::Review(_))),
        "never without a review"
    );
    bench.press("y");
    assert_eq!(bench.sent[0].operation, operation(5));
}

#[test]
fn nothing_is_drawn_when_nothing_changed() {
    let mut bench = Bench::new(80, 24);
    bench.app.dirty = false;
    let seen = bench
        .asked
        .iter()
        .filter(|effect| matches!(effect, Effect::Visible(_)))
        .count();
    let totals = bench.app.totals.unwrap();
    for millis in (0..5_000).step_by(500) {
        bench.tell(Message::Pulse {
            now: Timestamp::from_millis(now().millis() + millis),
            totals: Ok(totals),
        });
    }
    assert!(!bench.app.dirty);
    assert_eq!(
        bench
            .asked
            .iter()
            .filter(|effect| matches!(effect, Effect::Visible(_)))
            .count(),
        seen + 1,
        "once in five seconds"
    );
    let mut blocked = keys();
    blocked[0].stored_status = KeyStatus::Blocked;
    bench.tell(Message::Visible(vec![(blocked[0].clone(), None)]));
    assert!(
        bench.app.dirty && bench.screen().contains("BLOCKED"),
        "another program's act is seen"
    );
    bench.asked.clear();
    let moved = farebox_ledger::Totals {
        entries: totals.entries + 1,
        ..totals
    };
    bench.tell(Message::Pulse {
        now: now(),
        totals: Ok(moved),
    });
    assert!(
        bench.app.dirty && matches!(bench.asked[..], [Effect::Visible(_)]),
        "{:?}",
        bench.asked
    );
}

#[test]
fn keys_that_come_while_another_screen_is_shown_are_listed() {
    let mut bench = Bench::new(80, 24);
    let totals = bench.app.totals.unwrap();
    let mut new = keys()[0].clone();
    new.id = farebox_ledger::KeyId::from_random(77);
    bench.press("2");
    bench.keys.insert(0, new.clone());
    bench.tell(Message::Pulse {
        now: now(),
        totals: Ok(farebox_ledger::Totals {
            keys: totals.keys + 1,
            ..totals
        }),
    });
    let screen = bench.press("1").screen();
    assert!(screen.contains(&new.id.to_string()), "{screen}");
}

#[test]
fn a_sort_is_said_at_once_and_filled_in_later() {
    let mut bench = Bench::new(80, 24);
    bench.answers = false;
    bench.press("s");
    let screen = bench.screen();
    assert!(
        screen.contains("BALANCE ▲ sorting") && screen.contains(&keys()[0].id.to_string()),
        "{screen}"
    );
    let Some(Effect::LoadKeys(request)) = bench.asked.last().cloned() else {
        panic!("{:?}", bench.asked)
    };
    assert_eq!(
        (request.order, request.from),
        (KeyOrder::LowestBalance, From::Start)
    );
    let (generation, from, rows) = (request.generation, request.from, vec![keys()[3].clone()]);
    bench.tell(Message::Keys(KeysPage {
        generation,
        from,
        rows,
        ended: true,
        took_ms: 9,
        at: now(),
    }));
    let screen = bench.screen();
    assert!(
        !screen.contains("sorting") && screen.contains("order of 12:04:11"),
        "{screen}"
    );
    assert!(
        screen.contains(&keys()[3].id.to_string()) && !screen.contains(&keys()[0].id.to_string()),
        "{screen}"
    );
}

#[test]
fn older_answers_are_dropped() {
    let mut detail = PartyDetail::new(keys()[0].id.into(), None);
    let other = crate::app::detail::DetailData {
        at: now(),
        of: keys()[1].id.into(),
        party: None,
        entries: Vec::new(),
        entries_end: true,
        usage: Vec::new(),
        runs: Vec::new(),
        acts: Vec::new(),
        holds: Vec::new(),
        keys: Vec::new(),
        unapplied: Vec::new(),
        grants: Vec::new(),
    };
    detail.take(other);
    assert!(!detail.loaded);
    let mut bench = Bench::new(80, 24);
    let generation = bench.app.keys.generation;
    bench.press("s");
    bench.tell(Message::KeysFailed {
        generation,
        error: "old".to_owned(),
    });
    assert!(bench.app.keys.error.is_none());
    assert!(ago(1) < now());
}

#[test]
fn acts_on_lots_stand_in_the_audit() {
    let act = HouseAct {
        seq: 2,
        at: ago(800_000),
        actor: "my-shop".to_owned(),
        act: "create_lot".to_owned(),
        of: HouseSubject::Lot("l_7f3q9d2xw1".parse().unwrap()),
        operation: operation(78),
        details: r#"{"count": 20, "amount": "5.00"}"#.to_owned(),
    };
    let mut bench = Bench::new(120, 40).live();
    bench.press("6");
    bench.tell(Message::HouseActs(vec![act]));
    let screen = bench.press("/create_lot<enter>").screen();
    assert!(
        screen.contains("my-shop") && screen.contains("lot l_7f3q9d2xw1, count 20, amount 5"),
        "{screen}"
    );
    let page = bench.press("<enter>").screen();
    assert!(page.contains("lot l_7f3q9d2xw1"), "{page}");
}
