//! Two consoles that change the same key at once: each says what it changes, and both changes stay.

use farebox_ledger::{KeyId, Ledger};

use crate::console::{Console, has_tmux, run};

#[test]
fn a_form_and_a_bulk_act_beside_it_both_stay() {
    if !has_tmux() {
        return;
    }
    let console = Console::new(2);
    console.press(&["G"]);
    console.wait_for("> k_0000000001");
    // The form shows the key as it is now.
    console.press(&["e"]);
    console.wait_for("Edit k_0000000001");
    console.press(&[" of Ada"]);
    console.wait_for("customer-1 of Ada");
    let other = Console::of(console.address().to_owned());
    other.start();
    other.wait_for("Keys ·");
    other.press(&["*", "e", "Tab", "Tab", "7", "Tab", "9", "Enter"]);
    other.wait_for("Edit: review · 2 keys");
    other.press(&["y"]);
    other.wait_for("2 of 2 applied, 0 failed");
    console.press(&["C-s"]);
    let review = console.wait_for("[ Cancel ]");
    assert!(
        review.contains("customer-1 of Ada") && !review.contains("Rate"),
        "{review}"
    );
    console.press(&["y"]);
    console.wait_for("✓ applied");
    for (number, label) in [(1, "customer-1 of Ada"), (2, "customer-2")] {
        let key = run(console.open().find_key(KeyId::from_random(number)));
        let settings = key.unwrap().unwrap().own.settings;
        assert_eq!(settings.label, label);
        assert_eq!((settings.rate, settings.concurrency), (Some(7), Some(9)));
    }
}
