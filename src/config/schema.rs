//! The fields of each table in the two files.
//!
//! The readers refuse every other field and suggest the nearest of these; redaction shows no other name. `docs/config.md` explains
//! each one.

/// `catalog.toml`
pub(crate) const CATALOG_FIELDS: &[&str] = &["model", "retired", "shop"];
/// `[[model]]`
pub(crate) const MODEL_FIELDS: &[&str] = &[
    "model",
    "slug",
    "provider",
    "best_path",
    "best_environments",
    "price",
    "capabilities",
    "limits",
    "aliases",
    "below_cost",
];
/// `limits` of a model
pub(crate) const LIMIT_FIELDS: &[&str] = &[
    "context",
    "max_output",
    "max_reasoning",
    "speed",
    "image_bytes",
    "picture_tokens",
    "tools",
];
/// Fields of `[[model]]` in earlier versions
pub(crate) const FORMER_MODEL_FIELDS: &[&str] = &["tokenizer"];
/// Fields of `limits` in earlier versions
pub(crate) const FORMER_LIMIT_FIELDS: &[&str] = &["default_output", "hidden_speed"];
/// `[[retired]]`
pub(crate) const RETIRED_FIELDS: &[&str] = &["slug", "since", "use"];
/// `[shop]`
pub(crate) const SHOP_FIELDS: &[&str] = &[
    "name",
    "contact",
    "pay_url",
    "note",
    "out_of_balance_status",
];
/// `routes.toml`
pub(crate) const ROUTES_FIELDS: &[&str] = &["provider", "route", "webhook"];
/// `[[webhook]]`
pub(crate) const WEBHOOK_FIELDS: &[&str] = &["url", "secret", "secrets", "events"];
/// `[[route]]`
pub(crate) const ROUTE_FIELDS: &[&str] = &[
    "slug",
    "on_disconnect",
    "targets",
    "retry",
    "breaker",
    "translate",
    "prefer",
];
/// one of `targets`
pub(crate) const TARGET_FIELDS: &[&str] = &[
    "provider",
    "model",
    "abilities",
    "cost",
    "pin",
    "limit",
    "speed",
];
/// `speed` of a provider or a target, by class
pub(crate) const SPEED_FIELDS: &[&str] = &["standard", "flex", "fast"];
/// `abilities` of a target
pub(crate) const ABILITY_FIELDS: &[&str] = &[
    "sampling",
    "thinking",
    "efforts",
    "prefill",
    "system_midway",
    "strict_tools",
    "json_schema",
    "custom_tools",
    "cache_breakpoints",
    "auto_cache",
    "reasoning_echo",
    "vision",
    "files",
    "tool_id",
    "system_role",
];
/// `breaker` of a route
pub(crate) const BREAKER_FIELDS: &[&str] = &["failures", "open"];
/// `[provider.NAME]`
pub(crate) const PROVIDER_FIELDS: &[&str] = &[
    "kind",
    "base_url",
    "speaks",
    "key",
    "keys",
    "keys_by",
    "timeouts",
    "simulated",
    "auth",
    "query",
    "proxy",
    "headers",
    "max_concurrent",
    "max_tokens_per_minute",
    "probe_budget",
    "chat_limit",
    "reasoning",
    "pass",
    "drop",
    "pass_answer",
    "refuse_beta",
    "private_urls",
    "pin",
    "limit",
    "stops",
    "speed",
];
/// `timeouts` of a provider
pub(crate) const TIMEOUT_FIELDS: &[&str] = &["connect", "first_byte", "idle", "whole"];
/// `price` of a model
pub(crate) const PRICE_FIELDS: &[&str] = &[
    "input",
    "output",
    "cache_read",
    "cache_write",
    "cache_write_1h",
    "cache_write_12h",
    "reasoning",
    "per_image",
    "per_request",
    "classes",
    "tiers",
];
/// The rates of a price: USD per million tokens.
pub(crate) const RATE_FIELDS: &[&str] = PRICE_FIELDS.split_at(7).0;
/// `price` of a tier: everything except further tiers.
pub(crate) const TIER_PRICE_FIELDS: &[&str] = PRICE_FIELDS.split_at(10).0;
/// `classes` of a price
pub(crate) const CLASS_FIELDS: &[&str] = &["flex", "fast", "us"];
/// a class with a factor and a bound
pub(crate) const TIMES_FIELDS: &[&str] = &["times", "context"];
/// a class with rates of its own
pub(crate) const CLASS_TABLE_FIELDS: &[&str] = &[
    "input",
    "output",
    "cache_read",
    "cache_write",
    "cache_write_1h",
    "cache_write_12h",
    "reasoning",
    "per_image",
    "per_request",
    "context",
];
/// `pin` of a provider or a target
pub(crate) const PIN_FIELDS: &[&str] = &["service_tier", "speed", "inference_geo"];
/// one of `tiers` of a price
pub(crate) const TIER_FIELDS: &[&str] = &["above_input", "price"];
/// one of `keys` of a provider
pub(crate) const KEY_FIELDS: &[&str] = &["env", "file", "weight"];
/// a secret
pub(crate) const SECRET_FIELDS: &[&str] = &["env", "file"];

/// Request headers that only the gateway sets: credentials, and those of the connection. Neither an operator's `headers` nor a
/// customer's request can override them.
pub const RESERVED_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
    "x-api-key",
];
