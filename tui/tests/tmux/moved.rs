//! A ledger that is moved away under an open console: nothing is booked into it, and a restored copy is reopened automatically.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::console::*;

fn move_ledger(console: &Console, to: &str) {
    fs::create_dir_all(console.path(to)).unwrap();
    for name in ["farebox.db", "farebox.db-wal", "farebox.db-shm"] {
        let _ = fs::rename(console.path(name), console.path(to).join(name));
    }
}

/// Another ledger at the path is named as such, in full, and nothing is booked into it.
#[test]
fn a_foreign_ledger_in_its_place_is_said_in_words() {
    if !has_tmux() {
        return;
    }
    let console = Console::new(2);
    console.review_a_top_up("10", "inv-f");
    move_ledger(&console, "away");
    run(seed(&console.ledger(), 3));
    let words = |screen: &str| {
        screen
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .contains("another ledger is in its place")
    };
    let screen = console.wait_for("LEDGER ERROR");
    assert!(words(&screen), "{screen}");
    console.press(&["y"]);
    let refused = console.wait_for("not applied");
    assert!(
        words(&refused) && !refused.contains("✓ applied"),
        "{refused}"
    );
    assert_eq!(
        (console.books(1), console.operations_on_file()),
        ((usd("0"), 0), 0),
        "nothing is booked into the other one"
    );
}

#[test]
fn a_payment_is_not_booked_into_a_file_that_was_moved_away() {
    if !has_tmux() {
        return;
    }
    let console = Console::new(2);
    run(console.open().backup(&console.path("copy.db"))).unwrap();
    console.review_a_top_up("10", "inv-m");
    move_ledger(&console, "away");
    console.press(&["y"]);
    let refused = console.wait_for("not applied");
    assert!(!refused.contains("✓ applied"), "{refused}");
    assert_eq!(
        console.operations_on_file(),
        0,
        "it is known that nothing happened"
    );
    // The drill goes on: a copy comes to the ledger's place, and the same console pays into that one.
    fs::copy(console.path("copy.db"), console.path("farebox.db")).unwrap();
    fs::set_permissions(
        console.path("farebox.db"),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    console.press(&["Enter"]);
    console.wait_for("[ Cancel ]");
    console.press(&["y"]);
    console.wait_for("✓ applied");
    assert_eq!(
        console.books(1),
        (usd("10"), 1),
        "it is in the ledger at the path"
    );
    let away = farebox_ledger::sqlite::SqliteLedger::open(
        console.path("away/farebox.db"),
        farebox_ledger::OpenMode::ReadOnly,
        farebox_ledger::Durability::Prompt,
    );
    let totals = run(farebox_ledger::Ledger::totals(&away.unwrap())).unwrap();
    assert_eq!(totals.entries, 1, "and not in the other one");
}
