//! Customers in a real terminal of 80x24: made, paid, given a key, moved from, suspended and closed, each read back from the ledger.

use farebox_ledger::{CustomerId, CustomerStatus, KeyId, KeyQuery, Ledger};

use crate::console::{Console, has_tmux, run, usd};

/// Waits for the review, applies it and closes the receipt.
fn apply(console: &Console) -> String {
    let review = console.wait_for("[ Cancel ]");
    console.press(&["y"]);
    console.wait_for("✓ applied");
    console.press(&["Escape"]);
    review
}

#[test]
fn a_customer_is_made_paid_given_a_key_and_closed() {
    if !has_tmux() {
        return;
    }
    let console = Console::new(2);
    console.press(&["U"]);
    console.wait_for("Customers · 2");
    console.press(&["n", "Class 9b", "Tab", "crm-9", "C-s"]);
    let review = apply(&console);
    assert!(review.contains("External id crm-9"), "{review}");
    console.wait_for("Customers · 3");
    console.press(&["/", "crm-9", "Enter"]);
    console.wait_for("Customers · crm-9 · 1");
    console.press(&["t", "12.50", "Tab", "inv-1", "Enter"]);
    let review = apply(&console);
    assert!(
        review.contains("$0.00") && review.contains("$12.50"),
        "{review}"
    );
    console.press(&["Enter"]);
    console.wait_for("· 0 keys ·");
    console.press(&["n", "pupil", "C-s"]);
    console.wait_for("[ Cancel ]");
    console.press(&["y"]);
    let secret = console.wait_for("sk-fb-");
    assert!(secret.contains("balance $12.50"), "{secret}");
    console.press(&["Escape", "saved", "Enter"]);
    console.wait_for("keys 1");
    // Paid money goes to the oldest key's customer, and what is left is moved after it.
    let into = CustomerId::made_for(KeyId::from_random(1)).to_string();
    console.press(&["m", &into, "Tab", "12.51", "Tab", "one purse", "Enter"]);
    console.wait_for("has 12.50");
    console.press(&["C-u", "12.50", "Tab", "Enter"]);
    apply(&console);
    console.wait_for("EMPTY");
    console.press(&["b"]);
    apply(&console);
    console.wait_for("SUSPENDED");
    let customer = {
        let ledger = console.open();
        let found = run(ledger.find_external("crm-9")).unwrap().unwrap();
        let query = KeyQuery {
            customer: Some(found.id),
            limit: 9,
            ..KeyQuery::default()
        };
        let keys = run(ledger.list_keys(query)).unwrap();
        assert_eq!(keys.len(), 1);
        assert_eq!(keys[0].settings.label, "pupil");
        found
    };
    assert_eq!(
        (customer.status, customer.account.balance()),
        (CustomerStatus::Suspended, usd("0"))
    );
    assert_eq!(console.books(1).0, usd("12.50"));
    let symbols = customer.id.chars();
    console.press(&["x", &symbols[6..], "Enter"]);
    apply(&console);
    let screen = console.wait_for("CLOSED");
    assert!(screen.contains("sum of 2 entries = balance ✓"), "{screen}");
    console.press(&["t"]);
    console.wait_for("the customer is closed");
    assert_eq!(console.operations_on_file(), 0);
    assert_eq!(run(console.open().verify()).unwrap().faults, [""; 0]);
}
