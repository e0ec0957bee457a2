//! What bodies, queries and documents of `/api/v1` have, as tables of fields.

use super::fields::FieldKind::{
    Any, Correction, Count, Customer, Flag, Gross, Instant, Lines, List, Number, Object, Pairs,
    Text, Texts, Usd, Word,
};
use super::fields::{Field, FieldKind, always, maybe, or_null};

const LABEL: &str = "A name for people";
const REFERENCE: &str = "Its own name: a repeated one is applied only once, for ever";
const EXPIRES: &str =
    "When it stops working: an instant as 2027-01-31T12:00:00Z, or the end of a day as 2027-01-31";
const RATE: &str = "Requests each second; null is the usual limit";
const CONCURRENCY: &str = "Requests at once; null is the gateway's default";
const INTERVALS: FieldKind = Word(&["day", "week", "month", "total"]);

// --- queries ---

const LIMIT: Field = maybe(
    "limit",
    Count,
    "Rows of a page, at most 200; 50 unless you say",
);
const CURSOR: Field = maybe("cursor", Text, "The next_cursor of the page before");
const SINCE: Field = maybe(
    "since",
    Instant,
    "From this instant on, or from the start of this day",
);
const UNTIL: Field = maybe("until", Instant, "Before this instant, or before this day");

/// Which customers.
pub(super) const CUSTOMERS: &[Field] = &[
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
pub(super) const KEYS: &[Field] = &[
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
pub(super) const ENTRIES_OF: &[Field] = &[
    LIMIT,
    CURSOR,
    SINCE,
    UNTIL,
    maybe("reference", Text, "Only the entry with this reference"),
];

/// Which entries.
pub(super) const ENTRIES: &[Field] = &[
    LIMIT,
    CURSOR,
    SINCE,
    UNTIL,
    maybe("reference", Text, "Only the entry with this reference"),
    maybe("customer", Customer, "Only entries of this customer"),
    maybe("key", Text, "Only entries of this key"),
];

/// Between two instants.
pub(super) const TIMES: &[Field] = &[
    maybe(
        "since",
        Instant,
        "From this instant on, in whole hours; 30 days ago unless you say",
    ),
    maybe("until", Instant, "Before this instant; now unless you say"),
];

/// Which sums.
pub(super) const MARGIN_OF: &[Field] = &[
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

/// Which payments.
pub(super) const PAYMENTS_THAT: &[Field] = &[maybe(
    "status",
    Word(&["unapplied"]),
    "Payments that could not be booked, and were neither assigned nor sent back",
)];

/// Which cap.
pub(super) const WHICH_CAP: &[Field] = &[
    always(
        "interval",
        INTERVALS,
        "How long it counts; days are UTC, weeks begin on Monday",
    ),
    maybe("model", Text, "The model's slug; all unless you say"),
];

// --- bodies ---

/// Nothing.
pub(super) const NOTHING: &[Field] = &[];

const NEW_KEY_OF: &[Field] = &[
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
pub(super) const NEW_CUSTOMER: &[Field] = &[
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
pub(super) const CUSTOMER_EDIT: &[Field] = &[
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
pub(super) const NEW_KEY: &[Field] = &[
    always("label", Text, LABEL),
    NEW_KEY_OF[1],
    NEW_KEY_OF[2],
    NEW_KEY_OF[3],
    NEW_KEY_OF[4],
    NEW_KEY_OF[5],
];

/// What may be changed on a key. What is left out stays; null is the default.
pub(super) const KEY_EDIT: &[Field] = &[
    maybe("label", Text, LABEL),
    maybe("models", Texts, "Slugs that it may use, or [\"all\"]"),
    maybe("expires_at", Text, EXPIRES),
    maybe("rate", Count, RATE),
    maybe("concurrency", Count, CONCURRENCY),
];

/// How long an old secret works on.
pub(super) const ROTATION: &[Field] = &[maybe(
    "overlap",
    Word(&["0", "1h", "24h"]),
    "How long the old secret still works; not at all unless you say",
)];

/// Which keys of an owner go with it.
pub(super) const REVOCATION: &[Field] = &[maybe(
    "with_made",
    Flag,
    "Revoke the keys that this owner made, too",
)];

/// A cap to set.
pub(super) const NEW_CAP: &[Field] = &[
    WHICH_CAP[0],
    always(
        "limit",
        Usd,
        "Most that may be charged and held in one interval",
    ),
    WHICH_CAP[1],
];

/// A payment to book.
pub(super) const TOP_UP: &[Field] = &[
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
];

/// What went back of a payment.
pub(super) const REVERSAL: &[Field] = &[
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
pub(super) const ADJUSTMENT: &[Field] = &[
    always(
        "amount",
        Correction,
        "USD with a sign; at most what is available can be taken",
    ),
    always("reason", Text, "Why, for the journal"),
    always("reference", Text, REFERENCE),
];

/// Money for another customer.
pub(super) const MOVE: &[Field] = &[
    always("into", Customer, "Who gets it"),
    always("amount", Usd, "Paid money that no request holds"),
    always("reference", Text, REFERENCE),
];

/// How a customer is closed.
pub(super) const CLOSING: &[Field] = &[
    maybe(
        "write_off",
        Text,
        "Takes what is left, under this reference",
    ),
    maybe("reason", Text, "Why it is written off"),
];

/// Money back for a request.
pub(super) const REFUND: &[Field] = &[
    always(
        "amount",
        Usd,
        "At most the charge, less earlier refunds of it",
    ),
    always("reason", Text, "Why, for the journal"),
    always("reference", Text, REFERENCE),
];

/// Who gets an unapplied payment.
pub(super) const ASSIGNMENT: &[Field] = &[always("to", Customer, "Who gets its credit")];

/// Why an unapplied payment was sent back.
pub(super) const RETURN: &[Field] = &[always(
    "reason",
    Text,
    "How it was sent back and why, for the audit",
)];

// --- documents ---

/// A cap, and what its window has counted.
pub(super) const CAP: &[Field] = &[
    always("interval", INTERVALS, "How long it counts"),
    or_null("model", Text, "The model's slug; null is all"),
    always(
        "limit",
        Usd,
        "Most that may be charged and held in one interval",
    ),
    always("spent", Usd, "Charged in this window"),
    always("held", Usd, "Held by running requests of this window"),
    always("room", Usd, "What may still be held"),
    or_null("resets_at", Instant, "When it starts again; null is never"),
];

/// A customer.
pub(super) const CUSTOMER: &[Field] = &[
    always("id", Customer, "Its id"),
    always("label", Text, LABEL),
    or_null("external_id", Text, "Its name in your own system"),
    always(
        "status",
        Word(&["active", "suspended", "closed"]),
        "What it may do now",
    ),
    always("balance", Usd, "Paid and not spent"),
    always("held", Usd, "Kept for running requests"),
    always("available", Usd, "Balance less held"),
    always(
        "claim",
        Usd,
        "Owed for payments that went back; paid before anything can be spent",
    ),
    always("credit", Usd, "Everything ever paid in"),
    always("spent", Usd, "Everything ever spent"),
    or_null(
        "low_balance",
        Usd,
        "The balance below which it is low; null is a tenth of the last top-up",
    ),
    or_null("rate", Count, RATE),
    or_null("concurrency", Count, CONCURRENCY),
    always("caps", List(CAP), "Bounds of all its keys together"),
    always("created_at", Instant, "When it was created"),
    maybe(
        "personal",
        Object(PERSONAL),
        "What is known of the person; only where one customer is read",
    ),
    maybe(
        "keys",
        List(KEY),
        "Its keys, oldest first; only where one customer is read",
    ),
    maybe(
        "key",
        Object(KEY),
        "Its first key, with the secret, right after both were made",
    ),
];

/// What is known of a person.
pub(super) const PERSONAL: &[Field] = &[
    or_null("name", Text, "Name on receipts"),
    or_null("address", Lines, "Address on receipts"),
    always("metadata", Pairs, "Whatever else you keep"),
];

/// A key.
pub(super) const KEY: &[Field] = &[
    always("id", Text, "Its id"),
    maybe(
        "secret",
        Text,
        "What the customer types; only right after it was made",
    ),
    always("label", Text, LABEL),
    always(
        "status",
        Word(&["active", "blocked", "expired", "revoked"]),
        "What it may do now",
    ),
    always("balance", Usd, "Its customer's balance"),
    always("held", Usd, "Kept for running requests of its customer"),
    always("available", Usd, "What it may spend now, within its caps"),
    or_null("models", Texts, "Slugs that it may use; null is all"),
    or_null("expires_at", Instant, "When it stops working"),
    or_null("rate", Count, RATE),
    or_null("concurrency", Count, CONCURRENCY),
    always("caps", List(CAP), "Its own bounds"),
    always("created_at", Instant, "When it was created"),
    always("customer", Customer, "Whose it is, for ever"),
    always(
        "owner",
        Flag,
        "It manages the customer's other keys on the dashboard",
    ),
    or_null("made_by", Text, "The owner key that made it"),
    maybe(
        "key_spent",
        Usd,
        "What it spent itself; only where its customer is read",
    ),
    maybe(
        "key_held",
        Usd,
        "What its own running requests hold; only where its customer is read",
    ),
];

/// A sign-in link.
pub(super) const LINK: &[Field] = &[
    always("key", Text, "Whose account it shows"),
    maybe(
        "link",
        Text,
        "The address for the customer's browser; works once, and is shown once",
    ),
    always("expires_at", Instant, "When it stops working"),
];

/// Whose caps, and which.
pub(super) const CAPS: &[Field] = &[
    maybe("customer", Customer, "Whose they are"),
    maybe("key", Text, "Whose they are"),
    always("caps", List(CAP), "The caps"),
];

/// A journal entry; charges have more members.
pub(super) const ENTRY: &[Field] = &[
    always("seq", Number, "Its place among the customer's entries"),
    or_null("key", Text, "The key that it is about"),
    always(
        "kind",
        Text,
        "top_up, charge, refund, adjust, reversal, move, write_off",
    ),
    always(
        "amount",
        Correction,
        "What it adds to the balance, or takes from it",
    ),
    always("balance_after", Usd, "The balance after it"),
    or_null("request_id", Text, "The request that it charges or refunds"),
    or_null("slug", Text, "The model"),
    or_null("usage", Any, "What was counted"),
    or_null("lines", Any, "Count × rate of everything that was bought"),
    or_null("hold", Usd, "What was held for it"),
    or_null("loss", Usd, "Used and not paid"),
    or_null("evidence", Text, "Who counted"),
    or_null("reference", Text, "The payment's own name"),
    or_null("reason", Text, "Why"),
    always(
        "actor",
        Text,
        "Who: an operator, a token's label, or the gateway",
    ),
    always("at", Instant, "When"),
    always("customer", Customer, "Whose it is"),
];

/// A payment, and what of it went back.
pub(super) const PAYMENT: &[Field] = &[
    always("reference", Text, "Its own name"),
    always("customer", Customer, "Whose it is"),
    always(
        "status",
        Word(&["booked", "unapplied", "returned"]),
        "Where it is",
    ),
    or_null("why", Text, "Why it could not be booked"),
    always("currency", Text, "What was paid in"),
    always("gross", Gross, "What was paid, tax included"),
    always("tax", Gross, "The tax in it"),
    always("amount", Usd, "The credit that it buys"),
    always("refunded", Gross, "What you paid back so far"),
    always("withdrawn", Gross, "What disputes took so far"),
    always("reinstated", Gross, "What disputes gave back so far"),
    always(
        "reversed",
        Usd,
        "What of its credit is due because it went back",
    ),
    always("actor", Text, "Who told about it first"),
    always("at", Instant, "When"),
];

/// A payment that moved.
pub(super) const PAYMENT_MOVED: &[Field] = &[
    always("payment", Object(PAYMENT), "The payment as it is now"),
    or_null(
        "entry",
        Object(ENTRY),
        "The entry that was made; null if nothing had to be booked",
    ),
    or_null(
        "customer",
        Object(CUSTOMER),
        "Whose it is, as it is now; null for a token that may not read it",
    ),
];

/// A correction that was booked.
pub(super) const POSTED: &[Field] = &[
    always("entry", Object(ENTRY), "The entry"),
    maybe("customer", Object(CUSTOMER), "Whose it is, as it is now"),
    maybe("key", Object(KEY), "The key that it names, as it is now"),
];

/// Money that went to another customer.
pub(super) const MOVED: &[Field] = &[
    always("from", Object(CUSTOMER), "Who gave, as it is now"),
    always("into", Object(CUSTOMER), "Who got, as it is now"),
];

/// An hour of a key with a model.
pub(super) const USAGE: &[Field] = &[
    always("key", Text, "The key"),
    always("hour", Instant, "The hour's first instant"),
    always("slug", Text, "The model"),
    always("requests", Number, "Requests that ended"),
    always("usage", Any, "Tokens by kind"),
    always("charge", Usd, "What they cost"),
];

/// Sums of one key, target, class or day.
pub(super) const MARGIN: &[Field] = &[
    always(
        "name",
        Text,
        "The key's id, the target, the class, or the day",
    ),
    always("requests", Number, "Requests that ended"),
    always("charge", Usd, "Charged"),
    always("cost", Usd, "At your own prices, where they are known"),
    always("priced", Usd, "The part of the charge whose cost is known"),
    always(
        "exposure",
        Usd,
        "What providers may be owed beyond the charge",
    ),
    always("loss", Usd, "Used but not paid"),
    always("own", Usd, "What the gateway's own requests cost"),
    or_null("margin", Correction, "Charge less cost, where it is known"),
];

/// Sums, and their sum.
pub(super) const MARGINS: &[Field] = &[
    always("rows", List(MARGIN), "The largest first"),
    always("count", Number, "How many rows there are"),
    always("total", Object(MARGIN), "Over all of them"),
];

/// A model that is sold.
pub(super) const MODEL: &[Field] = &[
    always("model", Text, "Its name"),
    always("customer_slug", Text, "What customers write"),
    always("provider", Text, "Who makes it"),
    always("best_path", Text, "chat, responses or native"),
    always("best_environments", Texts, "What it is best for"),
    always("service_price", Text, "What it costs"),
];

/// What became of a request.
pub(super) const REQUEST: &[Field] = &[
    or_null("request_id", Text, "Our id"),
    or_null("record", Any, "What this gateway remembers of it"),
    or_null("running", Any, "Its hold, while it runs"),
    or_null("under_way", Any, "Where it is, while it runs"),
    or_null("entry", Object(ENTRY), "Its charge"),
];
