//! Who may import whom, as data: the source of the rule, of `docs/ARCHITECTURE.md`'s table and of the crate docs.
//!
//! A room is a folder (or a file at the top of `src/`); the longest matching folder decides. Everything that a list does not name
//! is forbidden. `protocol::Family` allows one item, `protocol` the whole room. After a change run `FAREBOX_BLESS=1 cargo test
//! --test tidy`, which writes both tables.

/// One room, its job, and what it may name outside itself.
pub(crate) struct Room {
    pub(crate) name: &'static str,
    pub(crate) folder: &'static str,
    /// The crate (and module) that this folder is.
    pub(crate) module: &'static str,
    pub(crate) job: &'static str,
    pub(crate) ours: &'static [&'static str],
    pub(crate) crates: &'static [&'static str],
    /// No async, and nothing of the standard library that reaches outside.
    pub(crate) pure: bool,
}

/// What a pure room leaves alone in the standard library.
pub(crate) const OUTSIDE: [&str; 7] = [
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "std::thread",
    "std::time::SystemTime",
];

pub(crate) const ROOMS: &[Room] = &[
    Room {
        name: "protocol",
        folder: "protocol/src/",
        module: "farebox_protocol",
        job: "the wire families, as bytes",
        ours: &[],
        crates: &[
            "base64",
            "bytes",
            "fearless_simd",
            "hex",
            "imagesize",
            "memchr",
            "serde",
            "serde_json",
            "sha2",
            "simdutf8",
        ],
        pure: true,
    },
    Room {
        name: "doubles",
        folder: "doubles/src/",
        module: "farebox_doubles",
        job: "what each vendor refuses, as tables with their sources; for tests and the simulated provider",
        ours: &[],
        crates: &["serde_json"],
        pure: true,
    },
    Room {
        name: "ledger",
        folder: "ledger/src/",
        module: "farebox_ledger",
        job: "money and keys; the one package that changes a balance",
        ours: &[],
        crates: &[
            "async_trait",
            "getrandom",
            "hex",
            "jiff",
            "nix",
            "rand",
            "serde",
            "serde_json",
            "sha2",
            "thiserror",
            "tokio",
            "tokio_postgres",
            "tracing",
            "unicase",
            "unicode_normalization",
            "zeroize",
        ],
        pure: false,
    },
    Room {
        name: "ledger/store/sqlite",
        folder: "ledger/src/store/sqlite/",
        module: "farebox_ledger::store::sqlite",
        job: "the ledger in one SQLite file",
        ours: &["ledger"],
        crates: &[
            "async_trait",
            "jiff",
            "nix",
            "rusqlite",
            "serde",
            "serde_json",
            "sha2",
            "tempfile",
            "thiserror",
            "tokio",
            "tracing",
        ],
        pure: false,
    },
    Room {
        name: "ledger/store/postgres",
        folder: "ledger/src/store/postgres/",
        module: "farebox_ledger::store::postgres",
        job: "the ledger in a PostgreSQL database that several gateways share",
        ours: &["ledger"],
        crates: &[
            "async_trait",
            "futures_util",
            "getrandom",
            "rustls",
            "rustls_native_certs",
            "serde",
            "serde_json",
            "tokio",
            "tokio_postgres",
            "tokio_postgres_rustls",
            "tracing",
        ],
        pure: false,
    },
    Room {
        name: "config",
        folder: "src/config/",
        module: "farebox::config",
        job: "reads and checks both TOML files; publishes them as one snapshot",
        ours: &[
            "protocol::AuthStyle",
            "protocol::ChatLimit",
            "protocol::Family",
            "protocol::address",
            "protocol::class",
            "protocol::translate",
            "ledger::Amount",
            "ledger::grouped",
        ],
        crates: &[
            "annotate_snippets",
            "arc_swap",
            "hex",
            "notify",
            "serde",
            "serde_json",
            "sha2",
            "strsim",
            "tokio",
            "toml",
        ],
        pure: false,
    },
    Room {
        name: "metering",
        folder: "src/metering/",
        module: "farebox::metering",
        job: "estimates, terms, prices, the meter",
        ours: &[
            "config::ModelLimits",
            "config::Model",
            "config::Price",
            "config::Rates",
            "ledger::Amount",
            "ledger::Evidence",
            "ledger::BillLine",
            "ledger::Usage",
            "ledger::VOTE_DAYS",
            "protocol::FrameFacts",
            "protocol::TextSample",
            "protocol::TextSize",
            "protocol::class",
            "protocol::inspect",
            "protocol::scripts",
            "protocol::talk",
            "protocol::token_estimate",
            "protocol::usage",
        ],
        crates: &["bpe_vocabularies", "memchr", "miniz_oxide"],
        pure: true,
    },
    Room {
        name: "billing",
        folder: "src/billing/",
        module: "farebox::billing",
        job: "money policy below the spine: credit, counting, what targets teach, exposure; extends holds, opens and settles none",
        ours: &[
            "byte_room::Holder",
            "config",
            "ledger",
            "metering",
            "protocol",
            "turns",
        ],
        crates: &["bytes", "tokio", "tokio_util", "tracing"],
        pure: false,
    },
    Room {
        name: "upstream",
        folder: "src/upstream/",
        module: "farebox::upstream",
        job: "calls providers: target order, retries, breakers, pools; the only room that uses reqwest",
        ours: &[
            "byte_room",
            "config",
            "deadline",
            "doubles",
            "ledger::Amount",
            "ledger::Timestamp",
            "ledger::clock",
            "ledger::text",
            "protocol",
        ],
        crates: &[
            "aho_corasick",
            "base64",
            "bytes",
            "hex",
            "http_body_util",
            "hyper",
            "imagesize",
            "jiff",
            "reqwest",
            "rustix",
            "rustls",
            "serde_json",
            "thiserror",
            "tokio",
            "tracing",
            "webpki_root_certs",
        ],
        pure: false,
    },
    Room {
        name: "proxy",
        folder: "src/proxy/",
        module: "farebox::proxy",
        job: "the spine: the steps of a request in order; the only room that opens and settles holds",
        ours: &[
            "billing",
            "byte_room",
            "config",
            "deadline",
            "ledger",
            "metering",
            "protocol",
            "turns",
            "upstream",
        ],
        crates: &[
            "bytes",
            "serde",
            "serde_json",
            "tokio",
            "tokio_util",
            "tracing",
        ],
        pure: false,
    },
    Room {
        name: "telemetry",
        folder: "src/telemetry/",
        module: "farebox::telemetry",
        job: "log, counters and the live feed; observes and decides nothing",
        ours: &[
            "ledger::KeyId",
            "ledger::Timestamp",
            "ledger::Usage",
            "ledger::amount",
            "ledger::clock",
            "metering::Miscount",
            "proxy::record",
        ],
        crates: &["serde_json", "tokio", "tracing", "tracing_subscriber"],
        pure: false,
    },
    Room {
        name: "setup",
        folder: "src/setup/",
        module: "farebox::setup",
        job: "settings for client programs: one table for the command, the page and the docs",
        ours: &[
            "config::Endpoint",
            "config::Model",
            "ledger::gateway_root",
            "protocol::Family",
        ],
        crates: &["serde", "toml"],
        pure: false,
    },
    Room {
        name: "customer",
        folder: "src/customer/",
        module: "farebox::customer",
        job: "the customer's side: balance dialects, usage, receipts, sessions, the dashboard",
        ours: &["config", "ledger", "protocol::Family", "proxy", "setup"],
        crates: &[
            "bytes",
            "futures_util",
            "hex",
            "jiff",
            "maud",
            "salvo",
            "serde",
            "serde_json",
            "sha2",
            "tokio",
            "tokio_util",
            "tracing",
        ],
        pure: false,
    },
    Room {
        name: "selling",
        folder: "src/selling/",
        module: "farebox::selling",
        job: "a seller's acts and documents, for the commands and the API: a typed request becomes an operation of the ledger",
        ours: &["ledger"],
        crates: &["jiff", "serde_json"],
        pure: false,
    },
    Room {
        name: "server",
        folder: "src/server/",
        module: "farebox::server",
        job: "the HTTP front door: every path in one table; uses salvo, as `customer` does",
        ours: &[
            "billing::holder",
            "byte_room",
            "config",
            "customer",
            "ledger",
            "protocol::AuthStyle",
            "protocol::BadRequest",
            "protocol::Family",
            "protocol::paths",
            "proxy",
            "setup",
            "telemetry",
            "turns",
            "upstream::Trouble",
            "upstream::ProgressStage",
            "upstream::Wrong",
        ],
        crates: &[
            "arc_swap",
            "bytes",
            "flate2",
            "futures_util",
            "http_body_util",
            "ipnet",
            "rustls",
            "ruzstd",
            "salvo",
            "serde_json",
            "sha2",
            "socket2",
            "thiserror",
            "tokio",
            "tokio_util",
            "tracing",
        ],
        pure: false,
    },
    Room {
        name: "app",
        folder: "src/app/",
        module: "farebox::app",
        job: "builds the rooms, starts them, reacts to reloads, drains them on shutdown",
        ours: &[
            "billing::Calibrations",
            "config",
            "customer",
            "ledger",
            "proxy",
            "server",
            "telemetry",
            "turns",
            "upstream",
        ],
        crates: &[
            "arc_swap",
            "ipnet",
            "notify",
            "rustix",
            "serde_json",
            "thiserror",
            "tokio",
            "tokio_util",
            "tracing",
        ],
        pure: false,
    },
    Room {
        name: "cli",
        folder: "src/cli/",
        module: "farebox::cli",
        job: "the commands and their arguments",
        ours: &[
            "app",
            "config",
            "ledger",
            "protocol::Family",
            "protocol::class",
            "proxy::record",
            "selling",
            "server::TlsFiles",
            "setup",
            "telemetry",
            "upstream::Upstreams",
            "upstream::online",
        ],
        crates: &[
            "clap",
            "clap_complete",
            "clap_mangen",
            "csv",
            "http_body_util",
            "hyper",
            "hyper_util",
            "ipnet",
            "serde",
            "serde_json",
            "tempfile",
            "tokio",
            "tracing",
            "unicode_width",
        ],
        pure: false,
    },
    Room {
        name: "deadline",
        folder: "src/deadline.rs",
        module: "farebox::deadline",
        job: "a timer that streams reset at every chunk",
        ours: &[],
        crates: &["tokio"],
        pure: false,
    },
    Room {
        name: "byte_room",
        folder: "src/byte_room.rs",
        module: "farebox::byte_room",
        job: "a memory budget shared between keys; no key can take all of it",
        ours: &[],
        crates: &["bytes", "tokio"],
        pure: false,
    },
    Room {
        name: "turns",
        folder: "src/turns",
        module: "farebox::turns",
        job: "a few threads for heavy work; the customers who wait take turns, and have budgets of CPU time",
        ours: &["byte_room::Holder"],
        crates: &["nix", "rustix", "tokio"],
        pure: false,
    },
    Room {
        name: "main",
        folder: "src/",
        module: "farebox",
        job: "the program: starts the runtime and runs one command",
        ours: &["cli", "ledger::clock"],
        crates: &["mimalloc", "tokio"],
        pure: false,
    },
    Room {
        name: "tui",
        folder: "tui/src/",
        module: "farebox_console",
        job: "the admin's console; opens the ledger itself",
        ours: &["ledger"],
        crates: &[
            "clap",
            "clap_complete",
            "clap_mangen",
            "crossterm",
            "futures_util",
            "getrandom",
            "http_body_util",
            "hyper",
            "hyper_util",
            "jiff",
            "ratatui",
            "serde",
            "serde_json",
            "tokio",
        ],
        pure: false,
    },
    Room {
        name: "bench",
        folder: "bench/src/",
        module: "farebox_bench",
        job: "load tests from outside; computes by itself what it checks",
        ours: &["ledger"],
        crates: &[
            "bytes",
            "flate2",
            "futures_util",
            "http_body_util",
            "memchr",
            "reqwest",
            "rustix",
            "rustls",
            "salvo",
            "serde_json",
            "tokio",
        ],
        pure: false,
    },
    Room {
        name: "bench/estimate",
        folder: "bench/estimate/src/",
        module: "farebox_bench_estimate",
        job: "compares the estimate with public tokenizers",
        ours: &["config::ModelLimits", "metering", "protocol"],
        crates: &["serde_json", "tiktoken_rs"],
        pure: false,
    },
];

/// The room of a source file.
pub(crate) fn of_file(path: &str) -> Option<&'static Room> {
    ROOMS
        .iter()
        .filter(|room| path.starts_with(room.folder))
        .max_by_key(|room| room.folder.len())
}

/// The room that a resolved path leads into.
pub(crate) fn of_path(path: &[String]) -> Option<&'static Room> {
    let leads = |room: &&Room| {
        let parts: Vec<&str> = room.module.split("::").collect();
        path.len() >= parts.len()
            && parts
                .iter()
                .zip(path)
                .all(|(part, segment)| part == segment)
    };
    ROOMS
        .iter()
        .filter(leads)
        .max_by_key(|room| room.module.len())
}

impl Room {
    /// Whether code of this room may name a path that leads into another one.
    pub(crate) fn may(&self, target: &Room, path: &[String]) -> bool {
        self.ours.iter().any(|entry| match entry.split_once("::") {
            Some((room, item)) => target.is(room) && path.iter().any(|segment| segment == item),
            None => target.name == *entry || target.is(entry) && !self.is_beside(target),
        })
    }

    /// Two rooms of one folder, such as the ledger's stores, know each other only by name.
    fn is_beside(&self, other: &Self) -> bool {
        let folder = |room: &Self| room.name.rsplit_once('/').map(|(folder, _)| folder);
        self.name != other.name && folder(self).is_some() && folder(self) == folder(other)
    }

    /// A room counts as part of the one whose folder holds it.
    fn is(&self, name: &str) -> bool {
        self.name == name
            || self
                .name
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('/'))
    }
}

/// The table *Who may import whom*, as Markdown.
pub(crate) fn table() -> String {
    let mut text = "| room | its job | of ours | crates | |\n|---|---|---|---|---|\n".to_owned();
    for room in ROOMS {
        let code = |names: &[&str]| match names {
            [] => "–".to_owned(),
            _ => names
                .iter()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", "),
        };
        let pure = if room.pure {
            "pure: no async, no I/O"
        } else {
            ""
        };
        text.push_str(&format!(
            "| `{}` | {} | {} | {} | {pure} |\n",
            room.name,
            room.job,
            code(room.ours),
            code(room.crates)
        ));
    }
    text
}
