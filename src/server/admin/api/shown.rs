//! What documents of `/api/v1` have, as tables of fields.

use super::fields::FieldKind::{
    Any, Correction, Count, Customer, Flag, Gross, Instant, Lines, List, Number, Object, Pairs,
    Text, Texts, Usd, Word,
};
use super::fields::{ApiField, always, maybe, or_null};
use super::shapes::{CONCURRENCY, INTERVALS, LABEL, RATE};

/// A cap, and what its window has counted.
pub(super) const CAP: &[ApiField] = &[
    always("interval", INTERVALS, "How long it counts"),
    or_null("model", Text, "The model's slug; null is all"),
    always(
        "limit",
        Usd,
        "Most that may be charged and held in one interval",
    ),
    always(
        "made_by",
        Word(&["seller", "owner"]),
        "Whose limit that is: the lesser of both",
    ),
    or_null("seller_limit", Usd, "The limit that you set"),
    or_null("owner_limit", Usd, "The limit that an owner set"),
    always("spent", Usd, "Charged in this window"),
    always("held", Usd, "Held by running requests of this window"),
    always("room", Usd, "What may still be held"),
    or_null("resets_at", Instant, "When it starts again; null is never"),
];

/// A customer.
pub(super) const CUSTOMER: &[ApiField] = &[
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
    or_null(
        "auto_top_up",
        Object(AUTO_TOP_UP),
        "When it asks for money, and what it is doing now",
    ),
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

/// A rule of auto top-up, and what it is doing.
pub(super) const AUTO_TOP_UP: &[ApiField] = &[
    always(
        "threshold",
        Usd,
        "It asks when the balance falls below this",
    ),
    or_null("amount", Usd, "It asks for this each time"),
    or_null("target", Usd, "It asks for what is missing to this balance"),
    always("per_month", Count, "At most so many times in a month (UTC)"),
    always(
        "status",
        Word(&["ready", "pending", "resting", "used_up", "off"]),
        "pending: it has asked; resting: for a day after a failure; used_up: until next month; off: until it is set again",
    ),
    or_null(
        "why",
        Word(&["failures", "dispute"]),
        "Why it is off: three failures, or a dispute",
    ),
    or_null(
        "until",
        Instant,
        "When the pending payment counts as failed, or when it asks again",
    ),
    or_null("pending", Object(PENDING), "What it has asked for"),
    always(
        "asked_this_month",
        Number,
        "How many times it has asked in this month",
    ),
    always("failures", Number, "Failures since the last booking"),
];

/// A payment that was asked for.
pub(super) const PENDING: &[ApiField] = &[
    always(
        "reference",
        Text,
        "The reference and the idempotency key of its payment",
    ),
    always("amount", Usd, "How much"),
];

/// A payment that was asked for, and failed.
pub(super) const TOP_UP_FAILED: &[ApiField] = &[
    always("reference", Text, "The payment that was asked for"),
    always("customer", Customer, "Whose it was"),
    or_null(
        "auto_top_up",
        Object(AUTO_TOP_UP),
        "What the rule is doing now; null to a token that may not read this customer",
    ),
];

/// What is known of a person.
pub(super) const PERSONAL: &[ApiField] = &[
    or_null("name", Text, "Name on receipts"),
    or_null("address", Lines, "Address on receipts"),
    always("metadata", Pairs, "Whatever else you keep"),
];

/// A key.
pub(super) const KEY: &[ApiField] = &[
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
pub(super) const LINK: &[ApiField] = &[
    always("key", Text, "Whose account it shows"),
    maybe(
        "link",
        Text,
        "The address for the customer's browser; works once, and is shown once",
    ),
    always("expires_at", Instant, "When it stops working"),
];

/// Whose caps, and which.
pub(super) const CAPS: &[ApiField] = &[
    maybe("customer", Customer, "Whose they are"),
    maybe("key", Text, "Whose they are"),
    always("caps", List(CAP), "The caps"),
];

/// A journal entry; charges have more members.
pub(super) const ENTRY: &[ApiField] = &[
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

/// What went back of a payment and is not booked.
const WAITING: &[ApiField] = &[
    always(
        "kind",
        Word(&["refund", "dispute", "dispute_won"]),
        "What kind",
    ),
    always("cumulative", Gross, "All of it so far"),
    always("reference", Text, "The name of the message that told it"),
    always("at", Instant, "When it was told"),
];

/// A payment, and what of it went back.
pub(super) const PAYMENT: &[ApiField] = &[
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
    always(
        "waiting",
        List(WAITING),
        "What went back and is not booked, because a token's daily bound refused it: tell it yourself",
    ),
    always("actor", Text, "Who told about it first"),
    always("at", Instant, "When"),
];

/// A payment that moved.
pub(super) const PAYMENT_MOVED: &[ApiField] = &[
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
pub(super) const POSTED: &[ApiField] = &[
    always("entry", Object(ENTRY), "The entry"),
    maybe("customer", Object(CUSTOMER), "Whose it is, as it is now"),
    maybe("key", Object(KEY), "The key that it names, as it is now"),
];

/// Money that went to another customer.
pub(super) const MOVED: &[ApiField] = &[
    always("from", Object(CUSTOMER), "Who gave, as it is now"),
    always("into", Object(CUSTOMER), "Who got, as it is now"),
];

/// An hour of a key with a model.
pub(super) const USAGE: &[ApiField] = &[
    always("key", Text, "The key"),
    always("hour", Instant, "The hour's first instant"),
    always("slug", Text, "The model"),
    always("requests", Number, "Requests that ended"),
    always("usage", Any, "Tokens by kind"),
    always("charge", Usd, "What they cost"),
];

/// Sums of one key, target, class or day.
pub(super) const MARGIN: &[ApiField] = &[
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
pub(super) const MARGINS: &[ApiField] = &[
    always("rows", List(MARGIN), "The largest first"),
    always("count", Number, "How many rows there are"),
    always("total", Object(MARGIN), "Over all of them"),
];

/// A model that is sold.
pub(super) const MODEL: &[ApiField] = &[
    always("model", Text, "Its name"),
    always("customer_slug", Text, "What customers write"),
    always("provider", Text, "Who makes it"),
    always("best_path", Text, "chat, responses or native"),
    always("best_environments", Texts, "What it is best for"),
    always("service_price", Text, "What it costs"),
];

/// What became of a request.
pub(super) const REQUEST: &[ApiField] = &[
    or_null("request_id", Text, "Our id"),
    or_null("record", Any, "What this gateway remembers of it"),
    or_null("running", Any, "Its hold, while it runs"),
    or_null("under_way", Any, "Where it is, while it runs"),
    or_null("entry", Object(ENTRY), "Its charge"),
];

/// A receipt, or a correction of one.
pub(super) const RECEIPT: &[ApiField] = &[
    always(
        "number",
        Text,
        "Customer, generation, and place among its documents, without gaps",
    ),
    always("kind", Text, "receipt or correction"),
    always("at", Instant, "When the books took it in"),
    always("seller", Any, "Name and contact of the seller"),
    always("customer", Customer, "Whose it is"),
    or_null("name", Text, "Name on receipts"),
    or_null("address", Lines, "Address on receipts"),
    always("reference", Text, "The payment's own name"),
    always("currency", Text, "What was paid in"),
    always("net", Correction, "Without tax"),
    always("tax", Correction, "The tax"),
    always("gross", Correction, "Tax included"),
    always("credit", Correction, "The credit, in USD"),
    or_null(
        "corrects",
        Text,
        "The number of the receipt that it corrects",
    ),
    or_null("reason", Text, "Why it corrects"),
];

/// A month of a customer.
pub(super) const STATEMENT: &[ApiField] = &[
    always("customer", Customer, "Whose it is"),
    or_null("name", Text, "Name on receipts"),
    or_null("address", Lines, "Address on receipts"),
    always("seller", Any, "Name and contact of the seller"),
    always("month", Text, "Which month, in UTC"),
    always("final", Flag, "Whether the month is over"),
    always("opening", Correction, "The balance before it"),
    always("paid", Correction, "Payments"),
    always("promotional", Correction, "Credit that was given"),
    always("refunded", Correction, "Charges that were given back"),
    always("adjusted", Correction, "Corrections"),
    always("moved", Correction, "From and to other customers"),
    always("charged", Correction, "Requests"),
    always("expired", Correction, "Credit whose time was over"),
    always("voided", Correction, "Credit that was taken back"),
    always("reversed", Correction, "Payments that went back"),
    always(
        "written_off",
        Correction,
        "What was left when it was closed",
    ),
    always("closing", Correction, "The balance after it"),
    always("used", List(USED), "By model and class"),
];

/// A lot of vouchers.
pub(super) const LOT: &[ApiField] = &[
    always("id", Text, "Its id"),
    maybe(
        "codes",
        Texts,
        "What customers type, in the order of their numbers; only right after they were made",
    ),
    always(
        "status",
        Word(&["good", "expired", "void"]),
        "What those that are left are worth",
    ),
    always("count", Count, "How many vouchers it has"),
    always("redeemed", Number, "How many were redeemed"),
    always("amount", Usd, "What each is worth"),
    or_null(
        "expires_at",
        Instant,
        "When they are worth nothing any more",
    ),
    always(
        "once_per_customer",
        Flag,
        "A customer can redeem only one of them",
    ),
    always("created_at", Instant, "When it was made"),
    always("created_by", Text, "Who made it"),
];

/// What was used of one model and class.
pub(super) const USED: &[ApiField] = &[
    always("model", Text, "The model's slug"),
    always("class", Text, "The class that it was served as"),
    always("requests", Number, "Requests that ended"),
    always("usage", Any, "Tokens by kind"),
    always("charged", Usd, "What they cost"),
];

/// An event.
pub(super) const EVENT: &[ApiField] = &[
    always("id", Text, "The same however often it comes to you"),
    always("type", Text, "What happened"),
    always("timestamp", Instant, "When"),
    or_null("customer", Customer, "Whose it is"),
    or_null("seq", Number, "Its place among the customer's events"),
    always("data", Any, "More of it, by type"),
];
