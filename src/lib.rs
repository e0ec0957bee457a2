//! Farebox: a prepaid gateway to language models.
//!
//! Every file belongs to one room, and calls go one way: `server → proxy → {upstream, billing} → {metering, ledger} → {config, protocol}`.
//! Money is held in `proxy/admit.rs` and settled in `proxy/request.rs`, and nowhere else. To follow a request, read
//! [`proxy::Proxy::run`] from top to bottom; `docs/ARCHITECTURE.md` walks one through the rooms.
//!
//! # Who may import whom
//!
//! <!-- rooms: written by FAREBOX_BLESS=1 cargo test --test tidy -->
//!
//! | room | its job | of ours | crates | |
//! |---|---|---|---|---|
//! | `protocol` | the wire families, as bytes | – | `base64`, `bytes`, `fearless_simd`, `hex`, `imagesize`, `memchr`, `serde`, `serde_json`, `sha2`, `simdutf8` | pure: no async, no I/O |
//! | `door` | every path of a listener with the body that it takes, and what strangers may spend; for gateway and shop | – | `bytes`, `form_urlencoded`, `http_body_util`, `ipnet`, `nix`, `salvo`, `serde`, `tokio` |  |
//! | `files` | TOML files that people write: the table of their keys, and reports of every mistake in them | `ledger::grouped`, `ledger::is_mounted_alone` | `annotate_snippets`, `serde`, `sha2`, `strsim`, `toml` |  |
//! | `ledger` | money and keys; the one package that changes a balance | – | `async_trait`, `foldhash`, `futures_util`, `getrandom`, `hex`, `hmac`, `jiff`, `nix`, `rand`, `serde`, `serde_json`, `sha2`, `thiserror`, `tokio`, `tokio_postgres`, `tracing`, `unicase`, `unicode_normalization`, `zeroize` |  |
//! | `bus_error` | last words for a process that SIGBUS ends, or that gets no memory; the one package with unsafe code | – | `libc`, `signal_hook_registry` |  |
//! | `ledger/store/sqlite` | the ledger in one SQLite file | `bus_error`, `ledger` | `async_trait`, `nix`, `rusqlite`, `serde`, `serde_json`, `tempfile`, `tokio`, `tracing` |  |
//! | `ledger/store/postgres` | the ledger in a PostgreSQL database that several gateways share | `ledger` | `async_trait`, `futures_util`, `getrandom`, `rustls`, `rustls_native_certs`, `serde`, `serde_json`, `tokio`, `tokio_postgres`, `tokio_rustls`, `tracing` |  |
//! | `config` | reads and checks both TOML files; publishes them as one snapshot | `files`, `protocol::AuthStyle`, `protocol::CallKind`, `protocol::ChatLimit`, `protocol::CostField`, `protocol::END_USER_FIELDS`, `protocol::Family`, `protocol::TargetFit`, `protocol::WirePath`, `protocol::address`, `protocol::class`, `protocol::translate`, `ledger::Amount`, `ledger::Cap`, `ledger::CapInterval`, `ledger::DefaultSettings`, `ledger::Defaults`, `ledger::EventKind`, `ledger::PlanAfter`, `ledger::PlanTerms`, `ledger::WindowBound`, `ledger::grouped`, `ledger::lock`, `ledger::with_query` | `arc_swap`, `base64`, `hex`, `notify`, `schemars`, `serde`, `serde_json`, `sha2`, `tokio`, `toml` |  |
//! | `metering` | estimates, bounds, prices, the meter | `config::LimitBinds`, `config::ModelLimits`, `config::Model`, `config::Price`, `config::Rates`, `ledger::Amount`, `ledger::Evidence`, `ledger::HoldWay`, `ledger::BillLine`, `ledger::ToldCost`, `ledger::Usage`, `ledger::UsageKind`, `protocol::FrameFacts`, `protocol::TextSample`, `protocol::TextSize`, `protocol::class`, `protocol::inspect`, `protocol::scripts`, `protocol::talk`, `protocol::token_estimate`, `protocol::usage` | `bpe_vocabularies`, `memchr`, `miniz_oxide` | pure: no async, no I/O |
//! | `billing` | money policy below the spine: counting, what targets teach, exposure; opens, moves and settles no hold | `door::byte_room`, `config`, `ledger`, `metering`, `protocol`, `turns` | `bytes`, `highway`, `tokio`, `tokio_util`, `tracing` |  |
//! | `upstream` | calls providers: target order, retries, breakers, pools; with events the only room that uses reqwest | `config`, `deadline`, `door`, `files::nearest_models`, `ledger::Amount`, `ledger::Timestamp`, `ledger::clock`, `ledger::lock`, `ledger::text`, `protocol` | `aho_corasick`, `base64`, `brotli_decompressor`, `bytes`, `flate2`, `hex`, `http_body_util`, `hyper`, `imagesize`, `jiff`, `memchr`, `reqwest`, `rustix`, `rustls`, `ruzstd`, `serde_json`, `thiserror`, `thread_local`, `tokio`, `tracing`, `webpki_root_certs` |  |
//! | `events` | events on their way to webhooks: signed, retried, disabled | `config`, `ledger`, `telemetry`, `upstream::plain_client` | `base64`, `hmac`, `reqwest`, `serde_json`, `sha2`, `tokio`, `tokio_util`, `tracing` |  |
//! | `proxy` | the spine: the steps of a request in order; the only room that opens and settles holds | `billing`, `config`, `deadline`, `door`, `ledger`, `metering`, `protocol`, `turns`, `upstream` | `bytes`, `serde`, `serde_json`, `tokio`, `tokio_util`, `tracing`, `xxhash_rust` |  |
//! | `telemetry` | log, counters and the live feed; observes and decides nothing | `ledger::KeyId`, `ledger::Timestamp`, `ledger::Usage`, `ledger::UsageKind`, `ledger::UtcDay`, `ledger::amount`, `ledger::clock`, `ledger::lock`, `metering::Miscount`, `proxy::record` | `serde_json`, `tokio`, `tracing`, `tracing_subscriber` |  |
//! | `setup` | settings for client programs: one table for the command, the page and the docs | `config::Endpoint`, `config::Model`, `ledger::gateway_root`, `protocol::Family` | `serde`, `toml` |  |
//! | `paper` | receipts, corrections and statements for bookkeepers, made of what the ledger has | `config::Shop`, `ledger`, `selling` | `maud`, `serde_json` |  |
//! | `customer` | the customer's side: balance dialects, usage, receipts, sessions, the dashboard | `config`, `door::FormFields`, `door::JsonMembers`, `door::UnreadBody`, `door::Visit`, `ledger`, `paper`, `protocol::BadRequest`, `protocol::Family`, `proxy`, `setup`, `selling::dates`, `selling::subscription` | `bytes`, `futures_util`, `hex`, `jiff`, `maud`, `salvo`, `serde`, `serde_json`, `sha2`, `tokio`, `tokio_util`, `tracing` |  |
//! | `selling` | a seller's acts and documents, for the commands and the API: a typed request becomes an operation of the ledger | `ledger` | `clap`, `jiff`, `schemars`, `serde`, `serde_json` |  |
//! | `server` | the HTTP front door: every path in one table; uses salvo, as `customer` does | `billing::holder`, `config`, `customer`, `door`, `files`, `ledger`, `paper`, `protocol::AuthStyle`, `protocol::BadRequest`, `protocol::CallKind`, `protocol::Family`, `protocol::WirePath`, `protocol::paths`, `proxy`, `selling`, `setup`, `telemetry`, `turns`, `upstream::AccountSeen`, `upstream::Trouble`, `upstream::ProgressStage`, `upstream::Wrong` | `arc_swap`, `bytes`, `flate2`, `futures_util`, `hex`, `ipnet`, `percent_encoding`, `rustls`, `ruzstd`, `salvo`, `schemars`, `serde`, `serde_json`, `serde_path_to_error`, `sha2`, `socket2`, `thiserror`, `tokio`, `tokio_util`, `tracing` |  |
//! | `lib` | names the rooms of the gateway | `ledger::clock` | – |  |
//! | `deadline` | a timer that streams reset at every chunk | – | `tokio` |  |
//! | `turns` | a few threads for heavy work; the customers who wait take turns, and have budgets of CPU time | `door::byte_room`, `door::cpu` | `rustix`, `tokio` |  |
//! | `app` | builds the rooms, starts them, reacts to reloads, drains them on shutdown | `billing::Calibrations`, `config`, `customer`, `events`, `files`, `ledger`, `proxy`, `server`, `telemetry`, `turns`, `upstream`, `selling::customer`, `selling::subscription` | `arc_swap`, `ipnet`, `notify`, `rustix`, `serde_json`, `thiserror`, `tokio`, `tokio_util`, `tracing` |  |
//! | `cli` | the program `farebox`: the commands and their arguments | `app`, `bus_error`, `config`, `door::network`, `events`, `files`, `ledger`, `paper`, `protocol::Family`, `protocol::class`, `proxy::record`, `selling`, `server::TlsFiles`, `setup`, `shop`, `telemetry`, `upstream::Organisations`, `upstream::Upstreams`, `upstream::online`, `upstream::trial` | `clap`, `clap_complete`, `clap_mangen`, `csv`, `futures_util`, `http_body_util`, `hyper`, `hyper_util`, `ipnet`, `mimalloc`, `rustls`, `serde`, `serde_json`, `tempfile`, `tokio`, `tokio_rustls`, `tracing`, `unicode_width` |  |
//! | `tui` | the admin's console; opens the ledger itself | `ledger`, `selling` | `clap`, `clap_complete`, `clap_mangen`, `crossterm`, `futures_util`, `getrandom`, `http_body_util`, `hyper`, `hyper_util`, `jiff`, `ratatui`, `rustls`, `serde`, `serde_json`, `tokio`, `tokio_rustls` |  |
//! | `shop` | sells credit by card through the admin API; a program of its own, without a database | `door`, `files`, `ledger::Amount`, `ledger::CustomerId`, `ledger::Gross`, `ledger::PlanPeriod`, `ledger::PlanPurchase`, `ledger::Timestamp`, `ledger::WindowBound`, `ledger::clock`, `ledger::lock`, `ledger::parse_public_url`, `ledger::text` | `async_trait`, `base64`, `clap`, `clap_complete`, `clap_mangen`, `hex`, `hmac`, `ipnet`, `maud`, `reqwest`, `rustls`, `salvo`, `serde`, `serde_json`, `sha2`, `tokio`, `toml`, `tracing`, `tracing_subscriber`, `webpki_root_certs` |  |
//! | `bench` | load tests from outside; computes by itself what it checks | `ledger` | `bytes`, `flate2`, `futures_util`, `hmac`, `http_body_util`, `memchr`, `reqwest`, `rustix`, `rustls`, `salvo`, `serde_json`, `sha2`, `tokio` |  |
//! | `bench/estimate` | compares the estimate with public tokenizers | `config::ModelLimits`, `metering`, `protocol` | `serde_json`, `tiktoken_rs` |  |
//!
//! <!-- end of rooms -->

pub mod billing;
pub mod config;
pub mod customer;
pub mod deadline;
pub mod events;
pub mod metering;
pub mod paper;
pub mod proxy;
pub mod server;
pub mod setup;
pub mod telemetry;
pub mod turns;
pub mod upstream;

pub use farebox_ledger::clock;
