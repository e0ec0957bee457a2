//! Rows of the table of limits about a seller's tokens, shop and vouchers; `limits.rs` compares them with the code.

use super::limits::LimitNumber;

pub(super) const SELLER_NUMBERS: &[LimitNumber] = &[
    (
        "reservations of a token",
        "| 1,000, together half",
        "ledger/src/rule/reservation.rs",
        "MOST: usize = 1_000;",
    ),
    (
        "reservations of a token",
        "; 30 minutes",
        "ledger/src/rule/reservation.rs",
        "CHECKOUT: i64 = 30 * 60 * 1_000;",
    ),
    (
        "reservations of a token",
        "14 days unpaid",
        "ledger/src/rule/reservation.rs",
        "UNPAID: i64 = 14 * 24 * 60 * 60 * 1_000;",
    ),
    (
        "checkouts of the shop",
        "credit for 30 min",
        "shop/src/reservation.rs",
        "CHECKOUT: i64 = 30 * 60_000;",
    ),
    (
        "checkouts of the shop",
        "14 days when a bank pays later",
        "shop/src/booking.rs",
        "LONGEST_WAIT: i64 = 14 * 86_400_000;",
    ),
    (
        "checkouts of the shop",
        "once in 5 s",
        "shop/src/lookups.rs",
        "REST: Duration = Duration::from_secs(5);",
    ),
    (
        "checkouts of the shop",
        "2,000 remembered",
        "shop/src/lookups.rs",
        "MOST: usize = 2_000;",
    ),
    (
        "checkouts of the shop",
        "12 automatic top-ups",
        "shop/src/checkout.rs",
        "MOST_AGAIN: u8 = 12;",
    ),
    (
        "grants of a customer",
        "| 32 |",
        "ledger/src/rule/grant/order.rs",
        "MOST: usize = 32;",
    ),
    (
        "wrong voucher codes",
        "of a customer 5,",
        "src/customer/guesses.rs",
        "OF_CUSTOMER: u32 = 5;",
    ),
    (
        "wrong voucher codes",
        "address 20",
        "src/customer/guesses.rs",
        "OF_PEER: u32 = 20;",
    ),
    (
        "wrong tokens of a peer",
        "| 10 at once",
        "src/server/admin/api/gate.rs",
        "BURST: u32 = 10;",
    ),
    (
        "wrong tokens of a peer",
        "the last 1 s",
        "src/server/admin/api/gate.rs",
        "FRESH: Duration = Duration::from_secs(1);",
    ),
    (
        "wrong tokens of a peer",
        "each 5 s",
        "src/server/admin/api/gate.rs",
        "EACH: Duration = Duration::from_secs(5);",
    ),
    (
        "a body at `/api/v1`",
        "| 64 KiB",
        "src/server/admin/mod.rs",
        "BodyRule::document(LARGEST_TREE),",
    ),
    (
        "a body at `/api/v1`",
        "200 rows",
        "src/server/admin/api/pages.rs",
        "MOST: usize = 200;",
    ),
];
