//! A ledger that is moved away under an open console: nothing is booked into it, and a restored copy is opened by itself.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::console::*;

fn move_ledger(console: &Console, to: &str) {
    fs::create_dir_all(console.path(to)).unwrap();
    for name in ["farebox.db", "farebox.db-wal", "farebox.db-shm"] {
        let _ = fs::rename(console.path(name), console.path(to).join(name));
    }
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
    assert_eq!(console.operations_on_file(), 0, "it is known that nothing happened");
    // The drill goes on: a copy comes to the ledger's place, and the same console pays into that one.
    fs::copy(console.path("copy.db"), console.path("farebox.db")).unwrap();
    fs::set_permissions(console.path("farebox.db"), fs::Permissions::from_mode(0o600)).unwrap();
    console.press(&["Enter"]);
    console.wait_for("[ Cancel ]");
    console.press(&["y"]);
    console.wait_for("✓ applied");
    assert_eq!(console.books(1), (usd("10"), 1), "it is in the ledger at the path");
    let away = farebox_ledger::sqlite::SqliteLedger::open(
        console.path("away/farebox.db"),
        farebox_ledger::sqlite::OpenMode::ReadOnly,
        farebox_ledger::sqlite::Durability::Prompt,
    );
    let totals = run(farebox_ledger::Ledger::totals(&away.unwrap())).unwrap();
    assert_eq!(totals.entries, 1, "and not in the other one");
}
