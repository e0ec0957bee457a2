//! Constants of the files that `limits` reads which limit nobody, and why.

/// Constants of the same files and rooms that limit nobody.
pub(super) const NO_LIMITS: &[(&str, &str, &str)] = &[
    ("door/src/byte_room.rs", "STEP", "how finely room is taken"),
    ("door/src/byte_room.rs", "MIB", "a unit"),
    ("door/src/body.rs", "TRUSTED", "how a body's room grows"),
    (
        "door/src/body.rs",
        "AT_A_TIME",
        "how often others have a turn",
    ),
    ("door/src/memory.rs", "UNKNOWN", "where no memory is told"),
    ("door/src/strangers.rs", "CALL", "a unit"),
    (
        "door/src/strangers.rs",
        "REMEMBERED",
        "idle peers are forgotten without a loss",
    ),
    (
        "door/src/strangers.rs",
        "LOOK",
        "how often what waits looks",
    ),
    ("src/customer/live.rs", "LOOK", "how often a page looks"),
    ("src/customer/live.rs", "PAUSE", "how often a page is told"),
    ("src/customer/live.rs", "SILENCE", "a sign of life"),
    (
        "src/server/admin/api/reads.rs",
        "PASSED_OVER",
        "the next call goes on from there",
    ),
    ("src/billing/last_days.rs", "HOUR", "a unit"),
    ("src/billing/last_days.rs", "MINUTE", "a unit"),
    ("src/billing/last_days.rs", "DAY", "a unit"),
    ("src/billing/last_days.rs", "MONTH", "named in words"),
    ("src/proxy/rate_limit.rs", "PAID_RATE", "the ledger's own"),
    (
        "src/proxy/rate_limit.rs",
        "CUSTOMERS_REMEMBERED",
        "idle customers are forgotten without a loss",
    ),
    (
        "src/server/admin/alerts.rs",
        "MOST_NAMED",
        "how many customers the reason of an alert names to the operator",
    ),
    (
        "src/server/admin/alerts.rs",
        "MOST_UNAPPLIED",
        "how many payments the operator gets an alert of each",
    ),
    (
        "src/server/admin/sums.rs",
        "MOMENT",
        "how long the operator's figures wait for a new read before they show the last one",
    ),
    (
        "src/server/admin/requests.rs",
        "MOST_HOLDS",
        "how far the operator's search for a running request goes",
    ),
    (
        "src/server/admin/guard.rs",
        "LEAST_CHARACTERS",
        "of the operator's token",
    ),
    (
        "src/server/admin/guard.rs",
        "LARGEST_FILE",
        "of the operator's token",
    ),
    ("src/server/admin/live.rs", "KEEP_ALIVE", "a sign of life"),
    (
        "src/server/workers.rs",
        "UNTAKEN",
        "further connections wait in the system's queue",
    ),
    (
        "src/server/workers.rs",
        "PAUSE",
        "how soon accepting is tried again",
    ),
    ("src/server/workers.rs", "TICK", "a timer that does nothing"),
    (
        "src/server/workers.rs",
        "LAST_FRAMES",
        "what was just paid for is still delivered when the gateway stops",
    ),
    ("src/server/certificate.rs", "DAY_MS", "a unit"),
    (
        "src/server/certificate.rs",
        "SOON_DAYS",
        "when the operator is told that a certificate ends",
    ),
    (
        "src/server/request_id.rs",
        "LONGEST_OWN_ID",
        "a longer one is ignored",
    ),
    ("src/server/guesses.rs", "MINUTE", "a unit"),
    (
        "src/server/admin/api/customers.rs",
        "LAST_ID",
        "where a page begins",
    ),
    (
        "src/server/admin/api/gate.rs",
        "MOST",
        "what is remembered of the operator's peers",
    ),
    (
        "src/server/admin/api/pages.rs",
        "USUAL",
        "of a page that names no size",
    ),
    (
        "src/server/admin/api/reads.rs",
        "USUAL_DAYS",
        "of sums that name no days",
    ),
    ("src/server/admin/api/reads.rs", "DAY_MS", "a unit"),
    (
        "src/server/admin/api/reads.rs",
        "ANSWER_DAYS",
        "how far the operator's search for an answer's id goes",
    ),
    (
        "src/server/tls.rs",
        "LARGEST_FILE",
        "of the operator's certificate",
    ),
    (
        "src/turns/budget.rs",
        "REMEMBERED",
        "idle customers are forgotten without a loss",
    ),
];
