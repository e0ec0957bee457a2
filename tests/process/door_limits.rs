//! Rows of the table of limits about bodies, what is kept of them, and strangers; `limits.rs` compares them with the code.

use super::limits::LimitNumber;

pub(super) const DOOR_NUMBERS: &[LimitNumber] = &[
    (
        "bodies and answers in flight",
        "| a quarter of the memory",
        "door/src/memory.rs",
        "PART: u64 = 4;",
    ),
    (
        "request bodies in",
        "16 MiB with nothing",
        "src/proxy/waiting.rs",
        "MOST_BYTES: usize = 16 * 1024 * 1024;",
    ),
    (
        "items of answers",
        "an hour; 1 MiB of a customer",
        "src/proxy/items.rs",
        "OF_ONE: usize = 1 << 20;",
    ),
    (
        "items of answers",
        "256 MiB over all",
        "src/proxy/items.rs",
        "GENERATION: usize = 128 << 20;",
    ),
    (
        "items of answers",
        "an hour",
        "src/proxy/items.rs",
        "KEPT: Duration = Duration::from_secs(60 * 60);",
    ),
    (
        "a form, and a voucher",
        "| 4 KiB",
        "door/src/path.rs",
        "FORM: usize = 4 * 1024;",
    ),
    (
        "a form, and a voucher",
        "10 s to arrive",
        "door/src/body.rs",
        "PATIENCE_WITH_FORM: Duration = Duration::from_secs(10);",
    ),
    (
        "what becomes a tree",
        "64 KiB",
        "door/src/path.rs",
        "LARGEST_TREE: usize = 64 * 1024;",
    ),
    (
        "a body that nobody reads",
        "64 MiB of it is dropped, 5 s",
        "door/src/body.rs",
        "DISCARD: (usize, Duration) = (64 * 1024 * 1024, Duration::from_secs(5));",
    ),
    (
        "a body that nobody reads",
        "all of them 64 MiB a second",
        "door/src/body.rs",
        "DISCARDED_PER_SECOND: usize = 64 * 1024 * 1024;",
    ),
    (
        "what is done without a key",
        "50 ms of CPU time each second, burst 500 ms",
        "door/src/strangers.rs",
        "OF_PEER: CpuBudget = CpuBudget { rate: Duration::from_millis(50), burst: Duration::from_millis(500) };",
    ),
    (
        "what is done without a key",
        "200 ms, burst 2 s",
        "door/src/strangers.rs",
        "OF_ALL: CpuBudget = CpuBudget { rate: Duration::from_millis(200), burst: Duration::from_secs(2) };",
    ),
    (
        "what the shop asks",
        "one call in 2 s, ten at once",
        "door/src/strangers.rs",
        "CALLS_OF_PEER: CpuBudget = CpuBudget { rate: Duration::from_millis(500), burst: Duration::from_secs(10) };",
    ),
    (
        "what the shop asks",
        "ten a second, 40 at once",
        "door/src/strangers.rs",
        "CALLS_OF_ALL: CpuBudget = CpuBudget { rate: Duration::from_secs(10), burst: Duration::from_secs(40) };",
    ),
    (
        "what the shop asks",
        "; 8 under way",
        "door/src/calls.rs",
        "PLACES: usize = 8;",
    ),
    (
        "what the shop asks",
        "two of them",
        "door/src/calls.rs",
        "OF_ONE: usize = 2;",
    ),
    (
        "what the shop asks",
        "10 s until one has",
        "door/src/calls.rs",
        "PATIENCE: Duration = Duration::from_secs(10);",
    ),
    (
        "what the shop asks",
        "waits up to 20 s",
        "door/src/router.rs",
        "PATIENCE: Duration = Duration::from_secs(20);",
    ),
    (
        "a callback of the processor",
        "512 KiB",
        "shop/src/desk.rs",
        "CALLBACK: usize = 512 << 10;",
    ),
    (
        "a callback of the processor",
        "at most 64 MiB",
        "shop/src/desk.rs",
        "BODY_BYTES_IN_FLIGHT: usize = 64 << 20;",
    ),
];
