//! What bodies and queries of `/api/v1` have, as tables of fields. What documents have is in `shown`.

use super::fields::FieldKind::{
    Correction, Count, Customer, Flag, Gross, Instant, Lines, Object, Pairs, Text, Texts, Usd, Word,
};
use super::fields::{ApiField, FieldKind, always, maybe};

/// What a label is.
pub(super) const LABEL: &str = "A name for people";
const REFERENCE: &str = "Its own name: a repeated one is applied only once, for ever";
const EXPIRES: &str =
    "When it stops working: an instant as 2027-01-31T12:00:00Z, or the end of a day as 2027-01-31";
/// What a rate is.
pub(super) const RATE: &str = "Requests each second; null is the usual limit";
/// What concurrency is.
pub(super) const CONCURRENCY: &str = "Requests at once; null is the gateway's default";
/// The intervals of caps.
pub(super) const INTERVALS: FieldKind = Word(&["day", "week", "month", "total"]);

// --- queries ---

const LIMIT: ApiField = maybe(
    "limit",
    Count,
    "Rows of a page, at most 200; 50 unless you say",
);
const CURSOR: ApiField = maybe("cursor", Text, "The next_cursor of the page before");
const SINCE: ApiField = maybe(
    "since",
    Instant,
    "From this instant on, or from the start of this day",
);
const UNTIL: ApiField = maybe("until", Instant, "Before this instant, or before this day");

/// Which customers.
pub(super) const CUSTOMERS: &[ApiField] = &[
    LIMIT,
    CURSOR,
    SINCE,
    UNTIL,
    maybe(
        "status",
        Word(&["active", "suspended", "closed"]),
        "Only customers in this state",
    ),
    maybe(
        "external_id",
        Text,
        "Only the customer with exactly this name in your own system",
    ),
    maybe(
        "label",
        Text,
        "Only customers whose label or external id contains this text",
    ),
];

/// Which keys.
pub(super) const KEYS: &[ApiField] = &[
    LIMIT,
    CURSOR,
    SINCE,
    UNTIL,
    maybe(
        "status",
        Word(&["active", "blocked", "expired", "revoked"]),
        "Only keys in this state",
    ),
    maybe("label", Text, "Only keys whose label contains this text"),
];

/// Which entries of one customer.
pub(super) const ENTRIES_OF: &[ApiField] = &[
    LIMIT,
    CURSOR,
    SINCE,
    UNTIL,
    maybe("reference", Text, "Only the entry with this reference"),
];

/// Which entries.
pub(super) const ENTRIES: &[ApiField] = &[
    LIMIT,
    CURSOR,
    SINCE,
    UNTIL,
    maybe("reference", Text, "Only the entry with this reference"),
    maybe("customer", Customer, "Only entries of this customer"),
    maybe("key", Text, "Only entries of this key"),
];

/// Between two instants.
pub(super) const TIMES: &[ApiField] = &[
    maybe(
        "since",
        Instant,
        "From this instant on, in whole hours; 30 days ago unless you say",
    ),
    maybe("until", Instant, "Before this instant; now unless you say"),
];

/// Which sums.
pub(super) const MARGIN_OF: &[ApiField] = &[
    TIMES[0],
    TIMES[1],
    maybe(
        "by",
        Word(&["key", "target", "class", "day"]),
        "For each of these; key unless you say",
    ),
    maybe(
        "limit",
        Count,
        "How many rows, at most 200; the total is over all",
    ),
];

/// Which events.
pub(super) const EVENTS_AFTER: &[ApiField] = &[
    LIMIT,
    maybe(
        "after",
        Text,
        "The id of the last event that you got; from the oldest one on unless you say",
    ),
];

/// Which lots of vouchers.
pub(super) const LOTS: &[ApiField] = &[
    LIMIT,
    CURSOR,
    SINCE,
    UNTIL,
    maybe(
        "status",
        Word(&["good", "expired", "void"]),
        "Only lots in this state",
    ),
];

/// Which payments.
pub(super) const PAYMENTS_THAT: &[ApiField] = &[maybe(
    "status",
    Word(&["unapplied"]),
    "Payments that could not be booked, and were neither assigned nor sent back",
)];

/// Which cap.
pub(super) const WHICH_CAP: &[ApiField] = &[
    always(
        "interval",
        INTERVALS,
        "How long it counts; days are UTC, weeks begin on Monday",
    ),
    maybe("model", Text, "The model's slug; all unless you say"),
];

// --- bodies ---

/// Nothing.
pub(super) const NOTHING: &[ApiField] = &[];

const NEW_KEY_OF: &[ApiField] = &[
    maybe("label", Text, LABEL),
    maybe(
        "owner",
        Flag,
        "It manages the customer's other keys on the dashboard",
    ),
    maybe("models", Texts, "Slugs that it may use; all unless you say"),
    maybe("expires_at", Text, EXPIRES),
    maybe("rate", Count, RATE),
    maybe("concurrency", Count, CONCURRENCY),
];

/// A customer to create.
pub(super) const NEW_CUSTOMER: &[ApiField] = &[
    always("label", Text, LABEL),
    maybe("external_id", Text, "Its name in your own system; unique"),
    maybe(
        "low_balance",
        Usd,
        "The balance below which it is low; a tenth of the last top-up unless you say",
    ),
    maybe("rate", Count, RATE),
    maybe("concurrency", Count, CONCURRENCY),
    maybe("name", Text, "Name on receipts; kept beside the books"),
    maybe(
        "address",
        Lines,
        "Address on receipts; kept beside the books",
    ),
    maybe(
        "metadata",
        Pairs,
        "At most 16 pairs of 64 and 256 characters, kept beside the books",
    ),
    maybe(
        "key",
        Object(NEW_KEY_OF),
        "Its first key, made in the same step; its secret is in this answer only",
    ),
];

/// What may be changed on a customer. What is left out stays; null is the default.
pub(super) const CUSTOMER_EDIT: &[ApiField] = &[
    maybe("label", Text, LABEL),
    maybe(
        "external_id",
        Text,
        "Its name in your own system; null removes it",
    ),
    maybe("low_balance", Usd, "The balance below which it is low"),
    maybe("rate", Count, RATE),
    maybe("concurrency", Count, CONCURRENCY),
    maybe("name", Text, "Name on receipts"),
    maybe("address", Lines, "Address on receipts"),
    maybe(
        "metadata",
        Pairs,
        "Pairs that are added, or get another value",
    ),
];

/// A key to create.
pub(super) const NEW_KEY: &[ApiField] = &[
    always("label", Text, LABEL),
    NEW_KEY_OF[1],
    NEW_KEY_OF[2],
    NEW_KEY_OF[3],
    NEW_KEY_OF[4],
    NEW_KEY_OF[5],
];

/// What may be changed on a key. What is left out stays; null is the default.
pub(super) const KEY_EDIT: &[ApiField] = &[
    maybe("label", Text, LABEL),
    maybe("models", Texts, "Slugs that it may use, or [\"all\"]"),
    maybe("expires_at", Text, EXPIRES),
    maybe("rate", Count, RATE),
    maybe("concurrency", Count, CONCURRENCY),
];

/// How long an old secret works on.
pub(super) const ROTATION: &[ApiField] = &[maybe(
    "overlap",
    Word(&["0", "1h", "24h"]),
    "How long the old secret still works; not at all unless you say",
)];

/// Which keys of an owner go with it.
pub(super) const REVOCATION: &[ApiField] = &[maybe(
    "with_made",
    Flag,
    "Revoke the keys that this owner made, too",
)];

/// A cap to set.
pub(super) const NEW_CAP: &[ApiField] = &[
    WHICH_CAP[0],
    always(
        "limit",
        Usd,
        "Most that may be charged and held in one interval",
    ),
    WHICH_CAP[1],
];

/// A payment to book.
pub(super) const TOP_UP: &[ApiField] = &[
    always("amount", Usd, "The credit that it buys, in USD without tax"),
    always(
        "reference",
        Text,
        "The payment's own name, as your processor's id of it; unique",
    ),
    maybe(
        "currency",
        Text,
        "What was paid in, as EUR; USD unless you say",
    ),
    maybe(
        "gross",
        Gross,
        "What was paid, tax included; the credit unless you say",
    ),
    maybe("tax", Gross, "The tax in it"),
    maybe(
        "name",
        Text,
        "Whom the receipt is addressed to; kept beside the books",
    ),
    maybe("address", Lines, "And where"),
];

/// A rule of auto top-up.
pub(super) const NEW_AUTO_TOP_UP: &[ApiField] = &[
    always("threshold", Usd, "Ask when the balance falls below this"),
    maybe("amount", Usd, "Ask for this each time"),
    maybe("target", Usd, "Or ask for what is missing to this balance"),
    always(
        "per_month",
        Count,
        "Ask at most so many times in a month (UTC)",
    ),
];

/// Why a payment failed.
pub(super) const FAILURE: &[ApiField] = &[maybe(
    "reason",
    Text,
    "Why, as your processor says it, for the audit",
)];

/// What went back of a payment.
pub(super) const REVERSAL: &[ApiField] = &[
    always(
        "payment",
        Text,
        "The reference of the payment that went back",
    ),
    always(
        "kind",
        Word(&["refund", "dispute", "dispute-won"]),
        "Which way",
    ),
    always(
        "cumulative",
        Gross,
        "All of it that went back this way so far, in the payment's currency, tax included",
    ),
    always("reference", Text, "The name of this message; unique"),
];

/// A correction.
pub(super) const ADJUSTMENT: &[ApiField] = &[
    always(
        "amount",
        Correction,
        "USD with a sign; at most what is available can be taken",
    ),
    always("reason", Text, "Why, for the journal"),
    always("reference", Text, REFERENCE),
];

/// Money for another customer.
pub(super) const MOVE: &[ApiField] = &[
    always("into", Customer, "Who gets it"),
    always("amount", Usd, "Paid money that no request holds"),
    always("reference", Text, REFERENCE),
];

/// How a customer is closed.
pub(super) const CLOSING: &[ApiField] = &[
    maybe(
        "write_off",
        Text,
        "Takes what is left, under this reference",
    ),
    maybe("reason", Text, "Why it is written off"),
];

/// Money back for a request.
pub(super) const REFUND: &[ApiField] = &[
    always(
        "amount",
        Usd,
        "At most the charge, less earlier refunds of it",
    ),
    always("reason", Text, "Why, for the journal"),
    always("reference", Text, REFERENCE),
];

/// Vouchers to make.
pub(super) const NEW_LOT: &[ApiField] = &[
    always("count", Count, "How many codes, at most 10000"),
    always("amount", Usd, "What each is worth"),
    maybe(
        "expires_at",
        Text,
        "When they are worth nothing any more: an instant as 2027-01-31T12:00:00Z, or the end of a day as 2027-01-31",
    ),
    maybe(
        "once_per_customer",
        Flag,
        "A customer can redeem only one of them",
    ),
];

/// Who gets an unapplied payment.
pub(super) const ASSIGNMENT: &[ApiField] = &[always("to", Customer, "Who gets its credit")];

/// Why an unapplied payment was sent back.
pub(super) const RETURN: &[ApiField] = &[always(
    "reason",
    Text,
    "How it was sent back and why, for the audit",
)];

/// How paper is printed.
pub(super) const FORMAT: &[ApiField] = &[maybe(
    "format",
    Word(&["json", "html", "csv"]),
    "json unless you say; html is for print",
)];

/// Which statement.
pub(super) const STATEMENT_OF: &[ApiField] = &[
    maybe("month", Text, "As 2026-11; this month unless you say"),
    FORMAT[0],
];
