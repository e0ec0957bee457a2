//! The command line. Every process setting also has an environment variable, and may stand before or after any command.

pub(crate) mod caps;
pub(crate) mod customers;
pub(crate) mod dates;
pub(crate) mod events;
pub(crate) mod grants;
pub(crate) mod library;
pub(crate) mod payments;
pub(crate) mod plans;
pub(crate) mod tokens;
mod values;
pub(crate) mod vouchers;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use farebox_ledger::{CustomerId, KeyId, LedgerAddress, OperationId, parse_public_url};

use caps::CapsCommand;
use customers::CustomersCommand;
use dates::instant;
use events::EventsCommand;
use farebox_selling::key::{CreateKey, EditKey, FirstMoney, Revoke, Rotate};
use farebox_selling::payment::{Adjust, Refund, TopUp};
use farebox_selling::value::{OneLine, Usd};
use grants::GrantsCommand;
use library::{AddOptions, LibraryOptions, ModelsOptions};
use plans::PlansCommand;
use tokens::TokensCommand;
use values::{
    address, customer_id, key_id, log_size, network, none_for_null, origin, target, unless_from,
    whole_number,
};
use vouchers::VouchersCommand;

/// The help heading of the settings that may stand before or after any command.
pub(super) const GLOBAL: &str = "Process settings (for every command)";

/// Farebox, a prepaid gateway to language models
#[derive(Debug, Parser)]
#[command(
    name = "farebox",
    version = env!("FAREBOX_VERSION"),
    propagate_version = true,
    arg_required_else_help = true
)]
pub struct Args {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
    /// A file of NAME=value lines, as a unit's EnvironmentFile; what the environment already has stays
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE")]
    pub env_file: Option<PathBuf>,
    /// What is sold: models and prices
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_CATALOG", default_value = "catalog.toml", value_name = "FILE")]
    pub catalog: PathBuf,
    /// Where requests go
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_ROUTES", default_value = "routes.toml", value_name = "FILE")]
    pub routes: PathBuf,
    /// Keys, balances and charges: an SQLite file, or postgres://… for several gateways
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_LEDGER", hide_env_values = true, default_value = "farebox.db", value_name = "LEDGER")]
    pub ledger: LedgerAddress,
    /// A library of models and list prices that is newer than this version's
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_LIBRARY", value_name = "FILE")]
    pub library: Option<PathBuf>,
    /// The address that customers use
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS", value_parser = address)]
    pub listen: SocketAddr,
    /// The operator's own address: health, metrics, status, live requests
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_ADMIN_LISTEN", default_value = "127.0.0.1:9090", value_name = "ADDRESS", value_parser = address)]
    pub admin_listen: SocketAddr,
    /// The token that opens /status and /live there; needed off loopback, where else the gateway writes one beside its ledger's lock or its
    /// --state
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_ADMIN_TOKEN_FILE", value_name = "FILE")]
    pub admin_token_file: Option<PathBuf>,
    /// Another host name that the admin listener answers to, besides addresses and localhost; may be repeated
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_ADMIN_HOST", value_name = "NAME", value_delimiter = ',')]
    pub admin_host: Vec<String>,
    /// The operator's own certificate, PEM: the admin listener is then HTTPS; read again on SIGHUP
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_ADMIN_TLS_CERT", value_name = "FILE", requires = "admin_tls_key")]
    pub admin_tls_cert: Option<PathBuf>,
    /// That certificate's private key, PEM
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_ADMIN_TLS_KEY", value_name = "FILE", requires = "admin_tls_cert")]
    pub admin_tls_key: Option<PathBuf>,
    /// The base of printed URLs [default: http:// and the listen address]
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_PUBLIC_URL", value_name = "URL", value_parser = parse_public_url)]
    pub public_url: Option<String>,
    /// The customers' certificate, PEM, for HTTPS without a proxy; read again on SIGHUP
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key, PEM
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto count; may be repeated
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_TRUSTED_PROXY", value_name = "CIDR", value_delimiter = ',', value_parser = network)]
    pub trusted_proxy: Vec<ipnet::IpNet>,
    /// Let web pages of this origin use the customers' paths, or * for any origin; may be repeated [default: none]
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_CORS_ORIGIN", value_name = "ORIGIN", value_delimiter = ',', value_parser = origin)]
    pub cors_origin: Vec<String>,
    /// How safe holds and charges are when they count. On SQLite: on disk at most 50 ms later, or at once. On PostgreSQL: in the
    /// standby's memory, or on its disk
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_DURABILITY", default_value = "prompt")]
    pub durability: DurabilityArg,
    /// Use a database that confirms what no standby has: to try things out
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_ALLOW_SINGLE")]
    pub allow_single: bool,
    /// Read a standby of the database, as it is; results then say how far it is behind
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub standby: bool,
    /// A file in which a gateway remembers what PostgreSQL has confirmed to it, and beside which it keeps its admin token, and bills that are due
    /// when it stops
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_STATE", value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// A file for anchors of the journal, written every minute; `ledger verify` compares the ledger with them
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_ANCHORS", value_name = "FILE")]
    pub anchors: Option<PathBuf>,
    /// Your name for the audit, which adds the system user [default: the user who called sudo]
    #[arg(long, global = true, help_heading = GLOBAL, env = "FAREBOX_OPERATOR", value_name = "NAME")]
    pub operator: Option<OneLine>,
    /// The format of results
    #[arg(long, global = true, help_heading = GLOBAL, default_value = "table")]
    pub format: OutputFormat,
    /// The same as --format json
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub json: bool,
    /// Begin CSV with a byte-order mark, by which some spreadsheets recognise UTF-8
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub bom: bool,
}

impl Args {
    /// The format asked for.
    #[must_use]
    pub fn format(&self) -> OutputFormat {
        if self.json {
            OutputFormat::Json
        } else {
            self.format
        }
    }

    /// The name for the audit.
    #[must_use]
    pub fn actor(&self) -> String {
        let typed = self.operator.clone().map(String::from);
        let typed = typed.filter(|name| !name.trim().is_empty());
        farebox_ledger::owner::actor(typed.or_else(farebox::config::sudo_user))
    }
}

/// The format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people
    Table,
    /// One document
    Json,
    /// For spreadsheets
    Csv,
    /// For documents (the model table only)
    Markdown,
    /// For print (receipts and statements only)
    Html,
}

/// How safe holds and charges are when they count. Payments are on disk with either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DurabilityArg {
    /// On disk at most 50 ms later; on PostgreSQL in the standby's memory.
    Prompt,
    /// On disk; on PostgreSQL on the standby's.
    Strict,
}

impl From<DurabilityArg> for farebox_ledger::Durability {
    fn from(durability: DurabilityArg) -> Self {
        match durability {
            DurabilityArg::Prompt => Self::Prompt,
            DurabilityArg::Strict => Self::Strict,
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the gateway
    Serve(ServeOptions),
    /// Try it here: simulated models, a temporary ledger, a funded key
    Demo(DemoOptions),
    /// Check both TOML files and report every mistake at once
    Check(CheckOptions),
    /// Compare the files with the running configuration: + new, − removed, ~ changed, and how many keys used it this week
    Diff,
    /// Write commented starter files; nothing is overwritten
    Init(InitOptions),
    /// Add a model that the library knows to both files, with its provider and route, after showing what is written
    Add(AddOptions),
    /// Known models with list prices, and when they were read
    Library(LibraryOptions),
    /// Print the canonical model table
    Models(ModelsOptions),
    /// Show a request, payment, key, customer or subscription, by any of its ids
    Show(ShowOptions),
    /// Print settings for a client program, ready to paste
    Setup(SetupOptions),
    /// Sell, fund and manage keys
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Manage who owns the money that keys spend
    #[command(subcommand)]
    Customers(CustomersCommand),
    /// Events for your own programs, and the webhooks that hear of them
    #[command(subcommand)]
    Events(EventsCommand),
    /// Who may use the admin API
    #[command(subcommand)]
    Tokens(TokensCommand),
    /// Bound what a key or customer spends by day, week, month or in all
    #[command(subcommand)]
    Caps(CapsCommand),
    /// Make codes that are worth credit once
    #[command(subcommand)]
    Vouchers(VouchersCommand),
    /// Credit that may end: list it, take it back
    #[command(subcommand)]
    Grants(GrantsCommand),
    /// Subscriptions to plans, and what is left of each
    #[command(subcommand)]
    Plans(PlansCommand),
    /// Read and check the books
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Manage what targets have taught
    #[command(subcommand)]
    Targets(TargetsCommand),
    /// What the running gateway does now: alerts, money, targets; `watch farebox status` repeats it
    Status,
    /// Ask the running gateway whether it serves, for containers and scripts: exit code 0 or 1, and why not
    Health,
    /// Print completions, as for /etc/bash_completion.d/farebox
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages and the completions of bash, zsh and fish, for packages
    #[command(hide = true)]
    Manual {
        /// A new or empty folder
        folder: PathBuf,
    },
}

/// Commands on targets.
#[derive(Debug, Subcommand)]
pub enum TargetsCommand {
    /// Forget how fast a target is, how it counts and what it was seen to do; running gateways follow within 10 seconds
    Reset(ResetOptions),
}

/// Options of `targets reset`.
#[derive(Debug, ClapArgs)]
pub struct ResetOptions {
    /// The target, as routes.toml names provider and model
    #[arg(value_name = "PROVIDER/MODEL", value_parser = target)]
    pub target: String,
}

/// Options of `serve`.
#[derive(Debug, ClapArgs)]
pub struct ServeOptions {
    /// Seconds to wait for another gateway to release the ledger
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    pub wait_lock: u64,
    /// Make the ledger, which must not exist yet: for the first start alone
    #[arg(long)]
    pub new_ledger: bool,
    /// A ledger in a SQLite file takes no new requests while its log is this long, as in 512MiB or 4GiB; only a program that keeps a transaction open lets it grow beyond 64MiB [default: 1GiB]
    #[arg(long, env = "FAREBOX_WAL_LIMIT", value_name = "SIZE", value_parser = log_size)]
    pub wal_limit: Option<u64>,
}

/// Options of `demo`.
#[derive(Debug, ClapArgs)]
pub struct DemoOptions {
    /// The demo key's starting balance
    #[arg(
        long,
        default_value = "5.00",
        value_name = "USD",
        allow_negative_numbers = true
    )]
    pub balance: Usd,
    /// Also open a shop with test cards, and print the way from its price page to a working key
    #[arg(long)]
    pub shop: bool,
}

/// Options of `check`.
#[derive(Debug, ClapArgs)]
pub struct CheckOptions {
    /// Do not require secrets to be set
    #[arg(long)]
    pub no_secrets: bool,
    /// Also say which callers are served by translation, and what that leaves out and refuses
    #[arg(long)]
    pub verbose: bool,
    /// Then send every target one smallest request, and try limits and closed streams; says first what that may cost at most
    #[arg(long, conflicts_with = "no_secrets")]
    pub online: bool,
    /// Instead, print each setting of this provider, or kind of one, and where it comes from
    #[arg(long, value_name = "PROVIDER", conflicts_with_all = ["verbose", "online"])]
    pub explain: Option<String>,
}

/// Options of `show`.
#[derive(Debug, ClapArgs)]
pub struct ShowOptions {
    /// A request's id, the id in its answer, a payment's reference, a key's or customer's id or label, an external id, a subscription's id; - or nothing prompts for it, as for a secret
    #[arg(default_value = "-")]
    pub id: String,
}

/// Options of `init`.
#[derive(Debug, ClapArgs)]
pub struct InitOptions {
    /// Start with this service instead of simulated models
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(farebox::config::presets().iter().map(|preset| preset.name.as_str())))]
    pub provider: Option<String>,
}

/// Options of `setup`.
#[derive(Debug, ClapArgs)]
pub struct SetupOptions {
    /// The client program [default: lists them]
    #[arg(value_parser = PossibleValuesParser::new(farebox::setup::clients().iter().map(|client| client.id.as_str())))]
    pub client: Option<String>,
    /// The gateway's address [default: the running gateway's, else the public URL]
    #[arg(long, value_name = "URL", value_parser = parse_public_url)]
    pub base_url: Option<String>,
    /// The key to fill in: - prompts for it, @FILE reads it from a file [default: a placeholder]
    #[arg(long)]
    pub key: Option<String>,
    /// The slug to fill in [default: the catalog's first for this program]
    #[arg(long, value_name = "SLUG")]
    pub model: Option<String>,
}

/// Commands on keys.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Create a key; its secret is printed once
    Create(CreateOptions),
    /// List keys, oldest first
    List(ListOptions),
    /// Show one key: money, models, limits, last use, newest entries
    Show(OneKey),
    /// Pay money onto a key
    TopUp(OnKey<TopUp>),
    /// Correct a key's credit in either direction
    Adjust(OnKey<Adjust>),
    /// Give money back for one charged request
    Refund(RefundOptions),
    /// Change a key's label, models, expiry or limits
    Set(OnKey<EditKey>),
    /// Give a key a new secret; balance and history stay
    Rotate(OnKey<Rotate>),
    /// Refuse requests until unblocked
    Block(OneKey),
    /// Serve a blocked key again
    Unblock(OneKey),
    /// Refuse requests permanently; balance and history stay
    Revoke(OnKey<Revoke>),
    /// Make a sign-in link to the dashboard; it works once, for 24 hours
    Link(OneKey),
}

/// One key.
#[derive(Debug, ClapArgs)]
pub struct OneKey {
    /// The key's id, as in k_7f3q9d2xw1
    #[arg(value_parser = key_id)]
    pub id: KeyId,
}

/// Options of `keys create`.
#[derive(Debug, ClapArgs)]
#[command(mut_args(none_for_null), mut_arg("label", unless_from))]
pub struct CreateOptions {
    #[command(flatten)]
    pub act: Option<CreateKey>,
    #[command(flatten)]
    pub money: FirstMoney,
    #[command(flatten)]
    pub whose: KeyOwner,
    /// Create a key for each row of a CSV file, or of standard input if it is `-`; its columns are named as the flags
    #[arg(long, value_name = "FILE", conflicts_with_all = ["CreateKey", "FirstMoney", "KeyOwner"])]
    pub from: Option<PathBuf>,
    /// Make the ledger, which must not exist yet: for the first key alone
    #[arg(long, conflicts_with = "customer")]
    pub new_ledger: bool,
}

/// Whose a new key is.
#[derive(Debug, Clone, ClapArgs)]
pub struct KeyOwner {
    /// The customer that it belongs to, as in c_7f3q9d2xw1 [default: a new one with the same label]
    #[arg(long, value_name = "ID", value_parser = customer_id)]
    pub customer: Option<CustomerId>,
}

/// Options of `keys list`.
#[derive(Debug, ClapArgs)]
pub struct ListOptions {
    /// Only labels that contain this text
    #[arg(long)]
    pub label: Option<String>,
    /// Only keys of this customer
    #[arg(long, value_name = "ID", value_parser = customer_id)]
    pub customer: Option<CustomerId>,
}

/// An act on a key.
#[derive(Debug, ClapArgs)]
#[command(mut_args(none_for_null))]
pub struct OnKey<A: ClapArgs> {
    /// The key's id, as in k_7f3q9d2xw1
    #[arg(value_parser = key_id)]
    pub id: KeyId,
    #[command(flatten)]
    pub act: A,
}

/// Options of `keys refund`.
#[derive(Debug, ClapArgs)]
pub struct RefundOptions {
    /// The charged request, as in req_…
    #[arg(value_name = "REQUEST_ID")]
    pub request: OperationId,
    #[command(flatten)]
    pub act: Refund,
}

/// Commands on the ledger.
#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// Print journal entries, oldest first
    Entries(EntriesOptions),
    /// Recompute balances, charges and chains, and compare with --anchors
    Verify,
    /// Make a verified copy; the gateway may be running
    Backup(BackupOptions),
    /// Copy the ledger, which must not be served, to the other kind of store, SQLite or PostgreSQL
    Copy(CopyOptions),
    /// Sell again after the database has gone back in time: list what the files of --state and --anchors know and the database does not have, and begin a new generation. Without --lost: list what was accepted before
    Accept(AcceptOptions),
}

/// Options of `ledger accept`.
#[derive(Debug, ClapArgs)]
pub struct AcceptOptions {
    /// You have found out what was lost
    #[arg(long)]
    pub lost: bool,
}

/// Options of `ledger copy`.
#[derive(Debug, ClapArgs)]
pub struct CopyOptions {
    /// The new ledger: an empty database as postgres://…, or the name of a new file
    #[arg(
        long,
        env = "FAREBOX_COPY_TO",
        hide_env_values = true,
        value_name = "LEDGER"
    )]
    pub to: LedgerAddress,
}

/// Options of `ledger backup`.
#[derive(Debug, ClapArgs)]
pub struct BackupOptions {
    /// The new file; an existing file is never overwritten
    pub file: PathBuf,
}

/// Options of `ledger entries`.
#[derive(Debug, ClapArgs)]
pub struct EntriesOptions {
    /// Only entries of this key
    #[arg(long, value_parser = key_id)]
    pub key: Option<KeyId>,
    /// Only entries of this customer
    #[arg(long, value_name = "ID", value_parser = customer_id)]
    pub customer: Option<CustomerId>,
    /// From this instant on
    #[arg(long, value_name = "DATE", value_parser = instant)]
    pub since: Option<farebox_ledger::Timestamp>,
    /// Before this instant
    #[arg(long, value_name = "DATE", value_parser = instant)]
    pub until: Option<farebox_ledger::Timestamp>,
    /// Only the newest N entries [default: all]
    #[arg(long, value_name = "N", value_parser = whole_number, allow_negative_numbers = true)]
    pub limit: Option<usize>,
}
