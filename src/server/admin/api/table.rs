//! Every path of `/api/v1`, as data: the router, the check of roles, the reading of bodies and the OpenAPI document come from it.

use super::fields::ApiField;
use super::{shapes, shown};

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Least {
    /// Anybody, without a token.
    Anybody,
    /// Every token; one that sells, of customers that it made and payments that it booked.
    Own,
    /// Tokens that read or manage.
    All,
    /// Tokens that sell or manage.
    Sell,
    /// Tokens that manage.
    Manage,
}

/// What answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApiTask {
    OpenApi,
    Customers,
    CreateCustomer,
    Customer,
    EditCustomer,
    Suspend,
    Resume,
    Close,
    Erase,
    KeysOf,
    CreateKey,
    Key,
    EditKey,
    Block,
    Unblock,
    Revoke,
    Rotate,
    Reissue,
    Link,
    CapsOfCustomer,
    SetCapOfCustomer,
    ClearCapOfCustomer,
    CapsOfKey,
    SetCapOfKey,
    ClearCapOfKey,
    SetAutoTopUp,
    ClearAutoTopUp,
    TopUpFailed,
    TopUp,
    Reverse,
    Adjust,
    Move,
    EntriesOf,
    Entries,
    UsageOf,
    Events,
    Payments,
    Payment,
    Assign,
    Return,
    Receipts,
    Receipt,
    Statement,
    Request,
    Refund,
    CreateLot,
    Lots,
    VoidLot,
    Models,
    Margin,
    /// A name that is kept for later.
    Reserved,
}

/// One path and how it is called.
#[derive(Debug)]
pub(super) struct ApiRoute {
    pub(super) method: &'static str,
    /// Behind `/api/v1`, with parameters in braces.
    pub(super) path: &'static str,
    pub(super) least: Least,
    pub(super) task: ApiTask,
    /// What it does, for people.
    pub(super) words: &'static str,
    pub(super) query: &'static [ApiField],
    pub(super) body: &'static [ApiField],
    /// What is answered when all is well.
    pub(super) status: u16,
    /// What the document has; a list of it if `lists`.
    pub(super) answer: &'static [ApiField],
    pub(super) lists: bool,
}

const fn get(
    path: &'static str,
    least: Least,
    task: ApiTask,
    answer: &'static [ApiField],
    words: &'static str,
) -> ApiRoute {
    ApiRoute {
        method: "GET",
        path,
        least,
        task,
        words,
        query: shapes::NOTHING,
        body: shapes::NOTHING,
        status: 200,
        answer,
        lists: false,
    }
}

const fn post(
    path: &'static str,
    least: Least,
    task: ApiTask,
    body: &'static [ApiField],
    answer: &'static [ApiField],
    words: &'static str,
) -> ApiRoute {
    ApiRoute {
        method: "POST",
        body,
        ..get(path, least, task, answer, words)
    }
}

impl ApiRoute {
    const fn list(self, query: &'static [ApiField]) -> Self {
        Self {
            lists: true,
            query,
            ..self
        }
    }

    const fn asked(self, query: &'static [ApiField]) -> Self {
        Self { query, ..self }
    }

    const fn made(self) -> Self {
        Self {
            status: 201,
            ..self
        }
    }

    const fn by(self, method: &'static str) -> Self {
        Self { method, ..self }
    }

    /// Whether the name is only kept for later.
    pub(super) fn is_reserved(&self) -> bool {
        self.task == ApiTask::Reserved
    }

    /// The parameters of a path that this route serves, still as they were sent.
    pub(super) fn parameters<'path>(&self, segments: &[&'path str]) -> Option<Vec<&'path str>> {
        let mut pattern = self.path.trim_start_matches('/').split('/');
        let mut found = Vec::new();
        for segment in segments {
            let part = pattern.next()?;
            if part.starts_with('{') {
                found.push(*segment);
            } else if part != *segment {
                return None;
            }
        }
        pattern.next().is_none().then_some(found)
    }

    /// The names of its parameters.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

/// Every path. Examples are run in this order.
pub(super) const ROUTES: &[ApiRoute] = &[
    get("/openapi.json", Least::Anybody, ApiTask::OpenApi, shapes::NOTHING, "This document"),
    post("/customers", Least::Sell, ApiTask::CreateCustomer, shapes::NEW_CUSTOMER, shown::CUSTOMER, "Create a customer, with its first key or without").made(),
    get("/customers", Least::Own, ApiTask::Customers, shown::CUSTOMER, "Customers, oldest first").list(shapes::CUSTOMERS),
    get("/customers/{customer}", Least::Own, ApiTask::Customer, shown::CUSTOMER, "One customer: money, limits, caps, personal data and its keys"),
    post("/customers/{customer}", Least::Manage, ApiTask::EditCustomer, shapes::CUSTOMER_EDIT, shown::CUSTOMER, "Change a customer's label, ids, limits or personal data").by("PATCH"),
    post("/customers/{customer}/keys", Least::Sell, ApiTask::CreateKey, shapes::NEW_KEY, shown::KEY, "Create a key; its secret is in this answer only. A token that sells makes the first one").made(),
    get("/customers/{customer}/keys", Least::Own, ApiTask::KeysOf, shown::KEY, "A customer's keys, oldest first").list(shapes::KEYS),
    post("/customers/{customer}/top-ups", Least::Sell, ApiTask::TopUp, shapes::TOP_UP, shown::PAYMENT_MOVED, "Book a payment, once. One that cannot be booked is stored as unapplied and answered with 202").made(),
    post("/customers/{customer}/auto-top-up", Least::Manage, ApiTask::SetAutoTopUp, shapes::NEW_AUTO_TOP_UP, shown::CUSTOMER, "Ask for money by top_up.wanted whenever the balance falls below a threshold"),
    post("/top-ups/{top_up}/failed", Least::Sell, ApiTask::TopUpFailed, shapes::FAILURE, shown::TOP_UP_FAILED, "Say that the payment failed that a top_up.wanted asked for, by its reference"),
    post("/customers/{customer}/auto-top-up", Least::Manage, ApiTask::ClearAutoTopUp, shapes::NOTHING, shown::CUSTOMER, "Ask for no more money").by("DELETE"),
    post("/customers/{customer}/reversals", Least::Sell, ApiTask::Reverse, shapes::REVERSAL, shown::PAYMENT_MOVED, "Take in what went back of a payment: a refund, a dispute, or a dispute that was won. What a daily bound refuses is kept and answered with 202"),
    post("/customers/{customer}/adjust", Least::Manage, ApiTask::Adjust, shapes::ADJUSTMENT, shown::POSTED, "Correct a customer's credit in either direction"),
    post("/customers/{customer}/caps", Least::Manage, ApiTask::SetCapOfCustomer, shapes::NEW_CAP, shown::CAPS, "Set a cap of all keys together, or change its limit"),
    get("/customers/{customer}/caps", Least::Own, ApiTask::CapsOfCustomer, shown::CAPS, "A customer's caps, and what they counted"),
    post("/customers/{customer}/caps", Least::Manage, ApiTask::ClearCapOfCustomer, shapes::NOTHING, shown::CAPS, "Remove a cap").by("DELETE").asked(shapes::WHICH_CAP),
    get("/customers/{customer}/entries", Least::Own, ApiTask::EntriesOf, shown::ENTRY, "A customer's journal, newest first").list(shapes::ENTRIES_OF),
    get("/customers/{customer}/usage", Least::Own, ApiTask::UsageOf, shown::USAGE, "What each key used in each hour").list(shapes::TIMES),
    get("/customers/{customer}/receipts", Least::Own, ApiTask::Receipts, shown::RECEIPT, "Every receipt and correction of a customer, oldest first").list(shapes::FORMAT),
    get("/customers/{customer}/statement", Least::Own, ApiTask::Statement, shown::STATEMENT, "A month's statement: its equation, and what was used").asked(shapes::STATEMENT_OF),
    get("/customers/{customer}/grants", Least::Own, ApiTask::Reserved, shapes::NOTHING, "Kept for later"),
    post("/customers/{customer}/suspend", Least::Manage, ApiTask::Suspend, shapes::NOTHING, shown::CUSTOMER, "Refuse all keys of a customer until it is resumed"),
    post("/customers/{customer}/resume", Least::Manage, ApiTask::Resume, shapes::NOTHING, shown::CUSTOMER, "Serve the keys of a suspended customer again"),
    get("/keys/{key}", Least::Own, ApiTask::Key, shown::KEY, "One key"),
    post("/keys/{key}", Least::Manage, ApiTask::EditKey, shapes::KEY_EDIT, shown::KEY, "Change a key's label, models, expiry or limits").by("PATCH"),
    post("/keys/{key}/reissue", Least::Sell, ApiTask::Reissue, shapes::NOTHING, shown::KEY, "Replace a secret whose answer was lost, before the key's first use"),
    post("/keys/{key}/rotate", Least::Manage, ApiTask::Rotate, shapes::ROTATION, shown::KEY, "Give a key a new secret; balance and history stay"),
    post("/keys/{key}/links", Least::Manage, ApiTask::Link, shapes::NOTHING, shown::LINK, "Make a sign-in link to the dashboard; it works once, for 24 hours").made(),
    post("/keys/{key}/caps", Least::Manage, ApiTask::SetCapOfKey, shapes::NEW_CAP, shown::CAPS, "Set a cap of one key, or change its limit"),
    get("/keys/{key}/caps", Least::Own, ApiTask::CapsOfKey, shown::CAPS, "A key's caps, and what they counted"),
    post("/keys/{key}/caps", Least::Manage, ApiTask::ClearCapOfKey, shapes::NOTHING, shown::CAPS, "Remove a cap").by("DELETE").asked(shapes::WHICH_CAP),
    post("/keys/{key}/block", Least::Manage, ApiTask::Block, shapes::NOTHING, shown::KEY, "Refuse requests until unblocked"),
    post("/keys/{key}/unblock", Least::Manage, ApiTask::Unblock, shapes::NOTHING, shown::KEY, "Serve a blocked key again"),
    post("/keys/{key}/revoke", Least::Manage, ApiTask::Revoke, shapes::REVOCATION, shown::KEY, "Refuse requests permanently; balance and history stay"),
    get("/entries", Least::Own, ApiTask::Entries, shown::ENTRY, "The journal, newest first; a token that sells names a customer").list(shapes::ENTRIES),
    get("/events", Least::All, ApiTask::Events, shown::EVENT, "Events, oldest first: go on after the last one that you got, and you miss none").list(shapes::EVENTS_AFTER),
    get("/payments", Least::All, ApiTask::Payments, shown::PAYMENT, "Payments that could not be booked, oldest first").list(shapes::PAYMENTS_THAT),
    get("/payments/{reference}", Least::Own, ApiTask::Payment, shown::PAYMENT, "One payment, and what of it went back"),
    get("/payments/{reference}/receipt", Least::Own, ApiTask::Receipt, shown::RECEIPT, "A payment's receipt").asked(shapes::FORMAT),
    post("/payments/{reference}/assign", Least::Manage, ApiTask::Assign, shapes::ASSIGNMENT, shown::PAYMENT_MOVED, "Book an unapplied payment on a customer"),
    post("/payments/{reference}/return", Least::Manage, ApiTask::Return, shapes::RETURN, shown::PAYMENT_MOVED, "Note that an unapplied payment's money was sent back"),
    get("/requests/{request}", Least::Own, ApiTask::Request, shown::REQUEST, "What became of a request: by our id, or its answer's"),
    post("/requests/{request}/refund", Least::Manage, ApiTask::Refund, shapes::REFUND, shown::POSTED, "Give money back for one charged request"),
    post("/vouchers", Least::Manage, ApiTask::CreateLot, shapes::NEW_LOT, shown::LOT, "Make a lot of vouchers; the codes are in this answer only. If it was lost, void the lot and make another").made(),
    get("/vouchers", Least::Manage, ApiTask::Lots, shown::LOT, "Lots of vouchers, oldest first, and how many of each were redeemed").list(shapes::LOTS),
    post("/vouchers/{lot}/void", Least::Manage, ApiTask::VoidLot, shapes::NOTHING, shown::LOT, "What is left of a lot is worth nothing from now on; what was redeemed stays"),
    get("/models", Least::Own, ApiTask::Models, shown::MODEL, "What is sold").list(shapes::NOTHING),
    get("/margin", Least::All, ApiTask::Margin, shown::MARGINS, "Charges, cost and possible debts").asked(shapes::MARGIN_OF),
    post("/customers/{customer}/move", Least::Manage, ApiTask::Move, shapes::MOVE, shown::MOVED, "Move paid money that no request holds to another customer"),
    post("/customers/{customer}/erase", Least::Manage, ApiTask::Erase, shapes::NOTHING, shown::CUSTOMER, "Remove name, address and metadata; the books keep no copy"),
    post("/customers/{customer}/close", Least::Manage, ApiTask::Close, shapes::CLOSING, shown::CUSTOMER, "Close a customer that has no money and no running requests, permanently"),
];

/// The routes of a path, with the parameters as they were sent.
pub(super) fn routes_of<'path>(
    segments: &[&'path str],
) -> Vec<(&'static ApiRoute, Vec<&'path str>)> {
    let found = ROUTES.iter();
    found
        .filter_map(|route| Some((route, route.parameters(segments)?)))
        .collect()
}
