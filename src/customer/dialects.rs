//! The balance in every response shape that client tools read: one statement of the account, one table of documents.
//!
//! "Remaining" is what is available: balance minus what running requests hold. Numbers are exact decimal literals.

use farebox_ledger::{Account, Amount, Key, Status, Timestamp};

use super::decimal_json::{DecimalJson, in_units};

/// Picodollars per unit of resale gateways, 1/500,000 USD.
const RESALE_UNIT: u64 = 2_000_000;
/// Picodollars in a cent.
const CENT: u64 = 10_000_000_000;

/// A key's money, from one read.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    pub(super) label: String,
    pub(super) status: Status,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) account: Account,
}

impl Statement {
    /// The statement of a key at an instant.
    pub(super) fn of(key: &Key, now: Timestamp) -> Self {
        Self {
            label: key.settings.label.clone(),
            status: key.status(now),
            expires_at: key.settings.expires_at,
            account: key.account,
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.status == Status::Active
    }
}

/// One document about the balance and the paths where tools look for it.
#[derive(Debug)]
pub struct Dialect {
    /// Below the base URL.
    pub paths: &'static [&'static str],
    pub(super) document: fn(&Statement) -> DecimalJson,
}

/// Every dialect whose document follows from the account alone.
pub const DIALECTS: &[Dialect] = &[
    Dialect {
        paths: &["/v1/key", "/api/v1/key"],
        document: key,
    },
    Dialect {
        paths: &["/v1/credits", "/api/v1/credits"],
        document: credits,
    },
    Dialect {
        paths: &["/user/balance", "/v1/user/balance"],
        document: balance,
    },
    Dialect {
        paths: &["/api/usage/token"],
        document: token,
    },
    Dialect {
        paths: &[
            "/v1/dashboard/billing/subscription",
            "/dashboard/billing/subscription",
        ],
        document: subscription,
    },
    Dialect {
        paths: &["/v1/dashboard/billing/usage", "/dashboard/billing/usage"],
        document: billed,
    },
];

/// OpenRouter's key document, plus our three key figures as text.
fn key(statement: &Statement) -> DecimalJson {
    let account = statement.account;
    let data = DecimalJson::object([
        ("label", statement.label.as_str().into()),
        ("limit", account.credit.into()),
        ("limit_remaining", account.available().into()),
        ("usage", account.spent.into()),
        ("is_free_tier", false.into()),
        ("status", statement.status.to_string().into()),
        (
            "expires_at",
            statement.expires_at.map(|at| at.to_string()).into(),
        ),
        ("balance", account.balance().to_string().into()),
        ("held", account.held.to_string().into()),
        ("available", account.available().to_string().into()),
    ]);
    DecimalJson::object([("data", data)])
}

/// OpenRouter's credits.
fn credits(statement: &Statement) -> DecimalJson {
    let account = statement.account;
    DecimalJson::object([(
        "data",
        DecimalJson::object([
            ("total_credits", account.credit.into()),
            ("total_usage", account.spent.into()),
        ]),
    )])
}

/// The general preset of wallet tools, and the older one with `balance_infos`, in one document.
fn balance(statement: &Statement) -> DecimalJson {
    let account = statement.account;
    let info = DecimalJson::object([
        ("currency", "USD".into()),
        ("total_balance", account.balance().to_string().into()),
        ("granted_balance", Amount::ZERO.to_string().into()),
        ("topped_up_balance", account.balance().to_string().into()),
    ]);
    DecimalJson::object([
        ("is_active", statement.is_active().into()),
        ("balance", account.balance().into()),
        ("currency", "USD".into()),
        (
            "is_available",
            (statement.is_active() && account.available().is_positive()).into(),
        ),
        ("balance_infos", DecimalJson::List(vec![info])),
    ])
}

/// Resale gateways, which count in 1/500,000 USD and write "never" as 0.
fn token(statement: &Statement) -> DecimalJson {
    let account = statement.account;
    let expires = statement
        .expires_at
        .map_or(0, |at| at.millis().max(0).unsigned_abs() / 1_000);
    let data = DecimalJson::object([
        ("object", "token_usage".into()),
        ("name", statement.label.as_str().into()),
        ("total_granted", in_units(account.credit, RESALE_UNIT)),
        ("total_used", in_units(account.spent, RESALE_UNIT)),
        (
            "total_available",
            in_units(account.available(), RESALE_UNIT),
        ),
        ("unlimited_quota", false.into()),
        ("expires_at", expires.into()),
    ]);
    DecimalJson::object([
        ("code", true.into()),
        ("message", "ok".into()),
        ("data", data),
    ])
}

/// The old billing page: its tools subtract [`billed`] from this limit.
fn subscription(statement: &Statement) -> DecimalJson {
    let credit = statement.account.credit;
    let until = statement
        .expires_at
        .map_or(0, |at| at.millis().max(0).unsigned_abs() / 1_000);
    DecimalJson::object([
        ("object", "billing_subscription".into()),
        ("has_payment_method", true.into()),
        ("soft_limit_usd", credit.into()),
        ("hard_limit_usd", credit.into()),
        ("system_hard_limit_usd", credit.into()),
        ("access_until", until.into()),
    ])
}

/// Everything ever spent, whatever dates are requested: together with the limit above it gives the balance.
fn billed(statement: &Statement) -> DecimalJson {
    DecimalJson::object([
        ("object", "list".into()),
        ("total_usage", in_units(statement.account.spent, CENT)),
    ])
}
