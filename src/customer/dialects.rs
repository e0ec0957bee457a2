//! The balance in every response shape that client tools read: one statement of the account, one table of documents.
//!
//! "Remaining" is what is available: balance minus what running requests hold. Numbers are exact decimal literals.
//!
//! Rows of docs/interface.md: `balance_of_a_key`.

use std::sync::Arc;

use farebox_ledger::{
    Account, Amount, Cap, CapInterval, GrantKind, Key, KeyStatus, Timestamp, UtcDay, text,
};

use super::decimal_json::{DecimalJson, in_units};
use super::recent::RecentSpending;
use super::share::KeyShare;
use crate::config::Shop;

/// Picodollars per unit of resale gateways, 1/500,000 USD.
const RESALE_UNIT: u64 = 2_000_000;
/// Picodollars in a cent.
const CENT: u64 = 10_000_000_000;

/// A key's money, from one read.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    pub(super) label: String,
    pub(super) status: KeyStatus,
    pub(super) expires_at: Option<Timestamp>,
    /// As the key's holder sees it.
    pub(super) account: Account,
    /// What this key alone has spent and holds.
    pub(super) share: KeyShare,
    /// What may be spent now: what is available, or less where a cap has less room.
    pub(super) spendable: Amount,
    /// What is not yet charged of it, held or not.
    pub(super) remaining: Amount,
    /// What of the balance nobody topped up; of a member's nothing is said.
    pub(super) granted: Amount,
    /// The cap of all models with least room.
    pub(super) cap: Option<Cap>,
    pub(super) shop: Arc<Shop>,
    pub(super) spent: RecentSpending,
}

impl Statement {
    /// The statement of a key at an instant.
    pub(super) fn of(key: &Key, share: KeyShare, shop: &Arc<Shop>, now: Timestamp) -> Self {
        let today = UtcDay::of(now);
        // A member is told nothing of what the customer's other keys spend, and so of no cap that counts them.
        let tightest = if key.is_owner {
            key.tightest_cap("", today).map(|(_, counted)| counted)
        } else {
            key.caps.tightest("", today)
        };
        Self {
            label: text::visible(&key.settings.label),
            status: key.status(now),
            expires_at: key.settings.expires_at,
            account: share.account(key, now),
            share,
            spendable: key.spendable(now),
            remaining: key.remaining("", now),
            granted: granted(key),
            cap: tightest.map(|counted| counted.cap.clone()),
            shop: Arc::clone(shop),
            spent: RecentSpending::default(),
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.status == KeyStatus::Active
    }
}

/// What is left of grants that nobody paid and of plans, of what an owner sees.
fn granted(key: &Key) -> Amount {
    if !key.is_owner {
        return Amount::ZERO;
    }
    let usable = key.customer.grants.usable().into_iter();
    let given = usable.filter(|grant| grant.kind != GrantKind::Paid);
    Amount::checked_sum(given.map(|grant| grant.remaining)).unwrap_or_default()
}

/// One document about the balance and the paths where tools look for it.
#[derive(Debug)]
pub struct Dialect {
    /// Below the base URL.
    pub paths: &'static [&'static str],
    pub(super) document: fn(&Statement) -> DecimalJson,
    /// Whether it says what was spent lately.
    pub(super) has_spent: bool,
}

/// Every dialect whose document follows from the account, and what was spent lately.
pub const DIALECTS: &[Dialect] = &[
    Dialect {
        paths: &["/v1/key", "/api/v1/key"],
        document: key,
        has_spent: true,
    },
    Dialect {
        paths: &["/v1/credits", "/api/v1/credits"],
        document: credits,
        has_spent: false,
    },
    Dialect {
        paths: &["/user/balance", "/v1/user/balance"],
        document: balance,
        has_spent: false,
    },
    Dialect {
        paths: &["/api/usage/token"],
        document: token,
        has_spent: false,
    },
    Dialect {
        paths: &[
            "/v1/dashboard/billing/subscription",
            "/dashboard/billing/subscription",
        ],
        document: subscription,
        has_spent: false,
    },
    Dialect {
        paths: &["/v1/dashboard/billing/usage", "/dashboard/billing/usage"],
        document: billed,
        has_spent: false,
    },
];

/// OpenRouter's key document, every member that its libraries require, plus our three key figures as text.
fn key(statement: &Statement) -> DecimalJson {
    let (account, spent, cap) = (statement.account, statement.spent, statement.cap.as_ref());
    let nothing = || DecimalJson::Count(0);
    let no_rate = [
        ("requests", DecimalJson::Number("-1".to_owned())),
        ("interval", "10s".into()),
        ("note", "see the limits of this key".into()),
    ];
    let data = DecimalJson::object([
        ("label", statement.label.as_str().into()),
        ("limit", cap.map_or(account.credit, |cap| cap.limit).into()),
        ("limit_remaining", statement.remaining.into()),
        (
            "limit_reset",
            cap.and_then(|cap| limit_reset(cap.interval))
                .map(str::to_owned)
                .into(),
        ),
        ("usage", statement.share.spent.into()),
        ("usage_daily", spent.day.into()),
        ("usage_weekly", spent.week.into()),
        ("usage_monthly", spent.month.into()),
        ("is_free_tier", false.into()),
        ("is_management_key", false.into()),
        ("is_provisioning_key", false.into()),
        ("byok_usage", nothing()),
        ("byok_usage_daily", nothing()),
        ("byok_usage_weekly", nothing()),
        ("byok_usage_monthly", nothing()),
        ("include_byok_in_limit", false.into()),
        ("rate_limit", DecimalJson::object(no_rate)),
        ("budgets", DecimalJson::List(Vec::new())),
        ("effective_budget", DecimalJson::Null),
        (
            "free_model_daily_requests",
            DecimalJson::object(["limit", "used", "remaining"].map(|name| (name, nothing()))),
        ),
        ("allowed_data_regions", DecimalJson::List(Vec::new())),
        ("creator_user_id", DecimalJson::Null),
        ("organization_id", DecimalJson::Null),
        ("workspace_id", DecimalJson::Null),
        ("status", statement.status.to_string().into()),
        (
            "expires_at",
            statement.expires_at.map(|at| at.to_string()).into(),
        ),
        ("disabled", (!statement.is_active()).into()),
        ("balance", account.balance().to_string().into()),
        ("held", account.held.to_string().into()),
        ("available", statement.spendable.to_string().into()),
        ("key_spent", statement.share.spent.to_string().into()),
        ("key_held", statement.share.held.to_string().into()),
        ("shop", shop(&statement.shop)),
    ]);
    DecimalJson::object([("data", data)])
}

/// OpenRouter's word for when a limit starts again.
pub(super) const fn limit_reset(interval: CapInterval) -> Option<&'static str> {
    match interval {
        CapInterval::Day => Some("daily"),
        CapInterval::Week => Some("weekly"),
        CapInterval::Month => Some("monthly"),
        CapInterval::Total => None,
    }
}

/// Whom to ask, and where to pay; `null` where the seller says nothing.
fn shop(shop: &Shop) -> DecimalJson {
    let words = [
        ("name", &shop.name),
        ("contact", &shop.contact),
        ("pay_url", &shop.pay_url),
        ("note", &shop.note),
    ];
    if words.iter().all(|(_, said)| said.is_none()) {
        return DecimalJson::Null;
    }
    DecimalJson::object(words.map(|(name, said)| (name, said.clone().into())))
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
    let (account, granted) = (statement.account, statement.granted);
    let paid = account.balance().checked_sub(granted).unwrap_or_default();
    let info = DecimalJson::object([
        ("currency", "USD".into()),
        ("total_balance", account.balance().to_string().into()),
        ("granted_balance", granted.to_string().into()),
        ("topped_up_balance", paid.to_string().into()),
    ]);
    DecimalJson::object([
        ("is_active", statement.is_active().into()),
        ("balance", account.balance().into()),
        ("currency", "USD".into()),
        (
            "is_available",
            (statement.is_active() && statement.remaining.is_positive()).into(),
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
            in_units(statement.remaining, RESALE_UNIT),
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
