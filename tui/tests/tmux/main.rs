//! The real console in a real terminal: tmux sends keys and captures the screen, and the ledger is queried directly.
//!
//! Every test has its own ledger, state directory and tmux server, and ends only what it started.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test says what is wrong by failing"
)]

mod beside;
#[path = "../../../ledger/tests/common/cluster.rs"]
#[expect(dead_code, reason = "each suite uses its own part")]
mod cluster;
mod console;
mod customers;
mod fleet;
mod moved;
#[path = "../../../ledger/tests/common/pair.rs"]
#[expect(dead_code, reason = "each suite uses its own part")]
mod pair;
mod race;
#[path = "../../../tests/support/skip.rs"]
mod skip;
mod unusable;

use std::sync::Arc;
use std::time::Duration;

use farebox_ledger::sqlite::SqliteLedger;
use farebox_ledger::{
    Amount, Bill, BillLine, CustomerId, Durability, EndReason, Hold, KeyId, Ledger, NewHold,
    OpenMode, Secret, SharedLedger, Timestamp,
};

use console::*;

#[test]
fn a_key_at_zero_is_topped_up_once_however_often_y_is_pressed() {
    if !has_tmux() {
        return;
    }
    let console = Console::new(3);
    console.press(&["G"]);
    console.wait_for("> k_0000000001");
    console.press(&["t", "1,000", "Tab", "inv-1", "Enter"]);
    console.wait_for("ambiguous");
    console.press(&["C-u", "12.50", "Tab", "Enter"]);
    let review = console.wait_for("[ Cancel ]");
    assert!(
        review.contains("$12.50") && review.contains("$0.00"),
        "{review}"
    );
    console.press(&["y", "y", "y", "y"]);
    console.wait_for("✓ applied");
    assert_eq!(console.books(1), (usd("12.5"), 1));
    console.press(&["Escape"]);
    console.wait_for("$12.50");
    assert_eq!(console.operations_on_file(), 0);
    // The same reference with another amount is a conflict: nothing happens, and the form is free again.
    console.review_a_top_up("13", "inv-1");
    console.press(&["y"]);
    console.wait_for("already used");
    assert_eq!(console.books(1), (usd("12.5"), 1));
    assert_eq!(console.operations_on_file(), 0);
}

#[test]
fn a_new_key_works_and_its_secret_is_nowhere_else() {
    if !has_tmux() {
        return;
    }
    let console = Console::new(1);
    console.press(&[
        "n",
        "a new customer",
        "Enter",
        "25",
        "Enter",
        "inv-n",
        "Enter",
        "C-s",
    ]);
    console.wait_for("[ Cancel ]");
    console.press(&["y"]);
    let page = console.wait_for("sk-fb-");
    let text = page
        .split_whitespace()
        .find(|word| word.starts_with("sk-fb-"))
        .unwrap();
    let (id, secret) = Secret::parse(text).unwrap();
    let ledger = console.open();
    let key = run(ledger.find_key(id)).unwrap().unwrap();
    assert!(key.opens_with(secret.hash(), Timestamp::from_millis(0)));
    assert_eq!(key.customer.account.balance(), usd("25"));
    console.press(&["w"]);
    console.wait_for("› File");
    console.press(&["Enter"]);
    console.wait_for(&format!("{id}.key"));
    console.press(&["q"]);
    console.wait_for("Leaving erases it");
    console.press(&["saved", "Enter"]);
    let list = console.wait_for("Keys · 2");
    assert!(
        list.contains("a new customer") && !list.contains("sk-fb-"),
        "{list}"
    );
    assert_eq!(
        std::fs::read_to_string(console.path(&format!("{id}.key")))
            .unwrap()
            .trim(),
        text
    );
    for file in ["farebox.db", "farebox.db-wal", "errors"] {
        let bytes = std::fs::read(console.path(file)).unwrap_or_default();
        assert!(
            !bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes()),
            "{file} holds the secret"
        );
    }
}

#[test]
fn killed_at_confirmation_there_is_no_double_credit() {
    if !has_tmux() {
        return;
    }
    let console = Console::new(2);
    // Killed in the review: nothing was sent and nothing is on file.
    console.review_a_top_up("10", "inv-k");
    console.kill();
    assert_eq!(
        (console.books(1), console.operations_on_file()),
        ((usd("0"), 0), 0)
    );
    // Killed after y, at a moment that moves: the credit is there once or not at all, and the next start knows which.
    let mut credits = 0;
    for round in 0_u64..5 {
        console.start();
        console.wait_for("Keys ·");
        console.review_a_top_up("10", &format!("inv-k{round}"));
        console.press(&["y"]);
        std::thread::sleep(Duration::from_millis(round * 4));
        console.kill();
        let applied = console.books(1).1 > credits;
        credits += usize::from(applied);
        if console.operations_on_file() > 0 {
            console.start();
            console.wait_for("outcome is unknown");
            if applied {
                console.wait_for("It was applied once");
                console.press(&["d"]);
            } else {
                console.wait_for("NOT applied");
                console.press(&["y"]);
                console.wait_for("[ Cancel ]");
                console.press(&["y"]);
                console.wait_for("✓ applied");
                console.press(&["Escape"]);
                credits += 1;
            }
            console.wait_for("Keys ·");
            console.kill();
        }
        let ten_each = Amount::times(usd("10"), credits.try_into().unwrap()).unwrap();
        assert_eq!(console.books(1), (ten_each, credits), "round {round}");
        assert_eq!(console.operations_on_file(), 0);
    }
}

#[test]
fn balances_move_by_themselves_beside_a_writer() {
    if !has_tmux() {
        return;
    }
    let console = Console::new(3);
    console.press(&["/", "customer-2"]);
    console.wait_for("Keys · customer-2 · 1 of 3");
    console.press(&["Enter", "Enter"]);
    console.wait_for("sum of 1 entry = balance ✓");
    let writer: SharedLedger = Arc::new(
        SqliteLedger::open(console.ledger(), OpenMode::Write, Durability::Prompt).unwrap(),
    );
    run(async {
        for number in 0..200 {
            let (request, now) = at(1000 + number);
            let (slug, family) = ("gpt-5-mini".to_owned(), "chat".to_owned());
            let (key, amount) = (KeyId::from_random(2), usd("0.01"));
            let new = NewHold {
                request,
                customer: CustomerId::made_for(key),
                key,
                ways: vec![farebox_ledger::HoldWay::exactly(amount)],
                slug: slug.clone(),
                family: family.clone(),
                at: now,
            };
            let hold = Hold::open(Arc::clone(&writer), new).await.unwrap();
            let lines = vec![BillLine {
                what: "input".into(),
                count: 1000,
                rate: usd("0.00001"),
                class: None,
            }];
            let bill = Bill {
                slug,
                family,
                lines,
                status: 200,
                end_reason: EndReason::Stop,
                ..Bill::default()
            };
            hold.settle(bill, now).await.unwrap();
        }
    });
    console.wait_for("Balance $3.00");
    console.press(&["t", "1", "Tab", "inv-beside", "Enter"]);
    console.wait_for("[ Cancel ]");
    console.press(&["y"]);
    console.wait_for("✓ applied");
    console.press(&["Escape"]);
    console.wait_for("Balance $4.00");
    console.wait_for("sum of 202 entries = balance ✓");
    assert_eq!(console.books(2), (usd("4"), 202));
}

#[test]
fn marked_keys_are_topped_up_once_each() {
    if !has_tmux() {
        return;
    }
    let console = Console::new(40);
    console.press(&["*", "t", "2", "Tab", "inv-b", "Enter"]);
    console.wait_for("Top up: review · 40 keys");
    console.press(&["y", "y", "y"]);
    console.wait_for("40 of 40 applied, 0 failed");
    assert_eq!(console.books(1), (usd("2"), 1));
    assert_eq!(console.books(40), (usd("7"), 2));
    assert_eq!(console.operations_on_file(), 0);
    // The same act again, with the same reference: nobody is paid twice.
    console.press(&["Escape", "*", "t", "2", "Tab", "inv-b", "Enter"]);
    console.wait_for("Top up: review · 40 keys");
    console.press(&["y"]);
    console.wait_for("40 of 40 applied, 0 failed");
    assert_eq!(console.books(40), (usd("7"), 2));
}

#[test]
fn the_mouse_selects_and_opens() {
    if !has_tmux() {
        return;
    }
    let console = Console::new(3);
    console.wait_for("> k_");
    // The third row, in the terminal's own words: button 0, column 10, row 6.
    console.click(10, 6);
    console.wait_for("> k_0000000001");
    console.click(10, 6);
    console.wait_for("Key k_0000000001");
}

#[test]
fn every_key_is_reached_by_pages() {
    if !has_tmux() {
        return;
    }
    let console = Console::new(450);
    let screen = console.wait_for("> k_");
    assert!(screen.contains("customer-450"), "{screen}");
    console.press(&["G"]);
    console.wait_for("> k_0000000001");
    console.press(&["g"]);
    console.wait_for("customer-450");
    console.press(&["s"]);
    console.wait_for("BALANCE ▲");
    console.wait_for("> k_0000000001");
}
