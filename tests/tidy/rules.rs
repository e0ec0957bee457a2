//! The rules about code: each takes the house and returns the violations, with the place and what to do instead.

use crate::borders;
use crate::facts::{Facts, Name};
use crate::house::{House, Room, is_ours};

/// Where something may be named, by the beginnings of its path; everywhere else the remedy applies.
struct Ban {
    paths: &'static [&'static str],
    allowed: &'static [&'static str],
    instead: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        paths: &[
            "std::time::SystemTime::now",
            "jiff::Timestamp::now",
            "jiff::Zoned::now",
        ],
        allowed: &["ledger/src/value/clock.rs", "bench/"],
        instead: "take the time from the clock, or get it passed in",
    },
    Ban {
        paths: &["std::time::Instant::now"],
        allowed: &["ledger/src/store/sqlite/", "tui/src/store/", "bench/"],
        instead: "use tokio::time::Instant, which tests can pause",
    },
    Ban {
        paths: &[
            "std::env::var",
            "std::env::var_os",
            "std::env::vars",
            "std::env::vars_os",
        ],
        allowed: &[
            "src/config/",
            "tui/src/main.rs",
            "tui/src/state_file.rs",
            "files/src/secrets.rs",
            "bench/",
        ],
        instead: "read the environment in src/config",
    },
    Ban {
        paths: &["tokio::spawn", "tokio::task::spawn"],
        allowed: &[
            "cli/src/app/",
            "src/events/direct.rs",
            "cli/src/run/demo.rs",
            "shop/src/simulator.rs",
            "tui/src/admin/",
            "tui/src/store/",
            "ledger/src/store/postgres/",
            "bench/",
        ],
        instead: "spawn on the gateway's task tracker: a drain must know every task",
    },
    Ban {
        paths: &["std::thread::spawn", "std::thread::Builder"],
        allowed: &[
            "ledger/src/store/sqlite/",
            "ledger/src/store/postgres/",
            "src/server/workers.rs",
            "src/telemetry/log_writer.rs",
            "bench/",
        ],
        instead: "use a task; only serving customers, the ledger's writer and readers and the log have threads of their own",
    },
    Ban {
        paths: &[
            "farebox_protocol::UpstreamError",
            "farebox_protocol::error::UpstreamError",
        ],
        allowed: &["src/upstream/", "protocol/", "bench/"],
        instead: "take a CustomerError: what an upstream wrote passes src/upstream/redact.rs",
    },
    Ban {
        paths: &[
            "farebox::upstream::UpstreamAnswer",
            "farebox::upstream::AnswerContent",
            "farebox::upstream::stream::FrameStream",
            "farebox_protocol::facts::AnswerFacts",
            "farebox_protocol::sse::Frame",
            "farebox_protocol::sse::FrameReader",
            "farebox_protocol::AnswerReader",
        ],
        allowed: &[
            "src/upstream/",
            "src/proxy/count.rs",
            "src/proxy/dispatch.rs",
            "src/proxy/outlet.rs",
            "src/proxy/relay.rs",
            "src/proxy/stream.rs",
            "src/proxy/stream/last.rs",
            "src/proxy/translation.rs",
            "src/proxy/whole.rs",
            "protocol/",
            "bench/",
        ],
        instead: "an upstream's bytes go through src/proxy/rewrite.rs or src/proxy/translation.rs to the customer who asked, and \
                  its words through src/upstream/redact.rs to everybody else",
    },
    Ban {
        paths: &[
            "salvo::Router",
            "salvo::prelude::Router",
            "salvo::routing",
            "salvo::http::ReqBody",
        ],
        allowed: &["door/src/", "bench/"],
        instead: "write a path into a farebox_door::Door, and read its body as an UnreadBody: both have their bounds there",
    },
    Ban {
        paths: &[
            "farebox_ledger::Asked",
            "farebox_ledger::Credit",
            "farebox_ledger::CustomerChange",
            "farebox_ledger::KeyChange",
            "farebox_ledger::NewKey",
            "farebox_ledger::NewMove",
            "farebox_ledger::NewPayment",
            "farebox_ledger::Redemption",
        ],
        allowed: &[
            "ledger/",
            "cli/",
            "tui/",
            "bench/",
            "selling/src/",
            "src/server/admin/",
            "src/customer/actor.rs",
        ],
        instead: "an act of a customer is a method of src/customer/actor.rs, which only whoever may act has",
    },
    Ban {
        paths: &[
            "reqwest::Client::new",
            "reqwest::Client::builder",
            "reqwest::ClientBuilder",
            "reqwest::get",
        ],
        allowed: &["src/upstream/client.rs", "shop/src/client.rs", "bench/"],
        instead: "ask the pools of src/upstream: they have no proxy, no redirects and our trust",
    },
];

/// Vendors are data; these places name them because they print or answer for their clients.
const VENDORS: [&str; 9] = [
    "openai",
    "anthropic",
    "claude",
    "gemini",
    "mistral",
    "llama",
    "openrouter",
    "azure",
    "bedrock",
];
const NAME_VENDORS: [&str; 8] = [
    "protocol/",
    "bench/",
    "cli/src/run/demo.rs",
    "shop/src/pages.rs",
    "src/server/models.rs",
    "src/server/mod.rs",
    "src/customer/",
    "src/setup/",
];

/// Rooms that may take a snapshot of the configuration.
const TAKE_SNAPSHOTS: [&str; 6] = [
    // A key's last days are read long after its requests, at the prices of then.
    "src/billing/exposure.rs",
    "cli/src/",
    "src/customer/",
    "src/events/",
    "src/proxy/",
    "src/server/",
];

/// Each path that resolves, with its file.
fn each_name(house: &House, mut judge: impl FnMut(&str, &Facts, &Name, &[String])) {
    for (file, facts) in house.judged() {
        for name in &facts.names {
            if let Some(path) = house.resolve(facts, name) {
                judge(file, facts, name, &path);
            }
        }
    }
}

fn begins(path: &[String], wanted: &str) -> bool {
    let parts: Vec<&str> = wanted.split("::").collect();
    path.len() >= parts.len()
        && parts
            .iter()
            .zip(path)
            .all(|(part, segment)| part == segment)
}

/// A room names only what its list allows.
pub(crate) fn walls(house: &House) -> Vec<String> {
    let mut faults = house.unreadable.clone();
    for file in house
        .judged()
        .map(|(file, _)| file)
        .filter(|file| borders::of_file(file).is_none())
    {
        faults.push(format!(
            "{file} belongs to no room: give it one in tests/tidy/rooms.rs"
        ));
    }
    each_name(house, |file, _, name, path| {
        let Some(room) = borders::of_file(file) else {
            return;
        };
        let krate = path.first().map_or("", String::as_str);
        let allowed = match krate {
            "std" | "core" | "alloc" => {
                !room.pure || !borders::OUTSIDE.iter().any(|outside| begins(path, outside))
            }
            _ if is_ours(krate) => match borders::of_path(path) {
                Some(target) => {
                    target.name == room.name || room.may(target, path) || is_part(room, target)
                }
                None => false,
            },
            _ => room.crates.contains(&krate),
        };
        if !allowed {
            let path = path.join("::");
            faults.push(format!(
                "{file}:{}: `{}` may not name {path} (tests/tidy/rooms.rs)",
                name.line, room.name
            ));
        }
    });
    for (file, facts) in house.judged() {
        if borders::of_file(file).is_some_and(|room| room.pure) {
            faults.extend(
                facts
                    .asyncs
                    .iter()
                    .map(|line| format!("{file}:{line}: a pure room has nothing to wait for")),
            );
        }
    }
    faults.sort();
    faults.dedup();
    faults
}

/// A room inside another belongs to it; the top of the gateway declares every room and may name them so.
fn is_part(room: &Room, target: &Room) -> bool {
    target.folder.starts_with(room.folder) && room.name != "main"
}

/// Clocks, environment, tasks, threads and HTTP clients have their places.
pub(crate) fn bans(house: &House) -> Vec<String> {
    let mut faults = Vec::new();
    each_name(house, |file, _, name, path| {
        for ban in BANS {
            let banned = ban.paths.iter().any(|banned| begins(path, banned));
            if banned && !ban.allowed.iter().any(|place| file.starts_with(place)) {
                faults.push(format!(
                    "{file}:{}: {}: {}",
                    name.line,
                    path.join("::"),
                    ban.instead
                ));
            }
        }
    });
    for (file, facts) in house.judged() {
        let takes = facts
            .texts
            .windows(2)
            .filter(|pair| pair[0].text == "config" && pair[1].text == "current");
        if !TAKE_SNAPSHOTS.iter().any(|place| file.starts_with(place)) {
            faults.extend(takes.map(|pair| {
                format!(
                    "{file}:{}: get the configuration's snapshot passed in",
                    pair[1].line
                )
            }));
        }
    }
    faults
}

/// Only `protocol` asks which family it has before it.
pub(crate) fn families(house: &House) -> Vec<String> {
    let mut faults = Vec::new();
    each_name(house, |file, _, name, path| {
        let family =
            path.len() > 2 && path[0] == "farebox_protocol" && path[path.len() - 2] == "Family";
        let variant = path
            .last()
            .is_some_and(|last| last.starts_with(char::is_uppercase) && last != "ALL");
        if family
            && variant
            && name.compared
            && !file.starts_with("protocol/")
            && !file.starts_with("bench/")
        {
            faults.push(format!(
                "{file}:{}: ask the family's protocol instead of comparing {}",
                name.line,
                path.join("::")
            ));
        }
    });
    faults
}

/// Which operation of the ledger it has is asked in the file with their list alone: what differs is said by each operation itself.
pub(crate) fn operations(house: &House) -> Vec<String> {
    let mut faults = Vec::new();
    each_name(house, |file, _, name, path| {
        let variant = path.len() > 4 && begins(path, "farebox_ledger::batch::operation::Operation");
        if variant && (name.compared || name.imported) && file != "ledger/src/batch/operation.rs" {
            faults.push(format!(
                "{file}:{}: let the operation say it (`LedgerOperation`, or a method of `Operation`) instead of asking whether it is {}",
                name.line,
                path.join("::")
            ));
        }
    });
    faults
}

/// Vendors' names belong into `protocol/`, the TOML files, tests or docs.
pub(crate) fn vendors(house: &House) -> Vec<String> {
    let mut faults = Vec::new();
    for (file, facts) in house
        .judged()
        .filter(|(file, _)| !NAME_VENDORS.iter().any(|place| file.starts_with(place)))
    {
        for text in &facts.texts {
            let plain = text
                .text
                .to_lowercase()
                .replace("openai-style", "")
                .replace("anthropic-beta", "");
            if let Some(vendor) = VENDORS.iter().find(|vendor| plain.contains(*vendor)) {
                faults.push(format!(
                    "{file}:{}: {vendor:?} belongs into protocol/, the TOML files, tests or docs",
                    text.line
                ));
            }
        }
    }
    faults
}

/// SQL stands in the ledger's stores.
pub(crate) fn sql(house: &House) -> Vec<String> {
    let verbs = [
        "SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "ALTER ", "DROP ", "PRAGMA ",
        "WITH ", "BEGIN ",
    ];
    let mut faults = Vec::new();
    let store = |file: &str| {
        [
            "ledger/src/store/sqlite/",
            "ledger/src/store/postgres/",
            // What both are asked in the same words.
            "ledger/src/store/select.rs",
            "ledger/src/store/strays.rs",
        ]
        .iter()
        .any(|place| file.starts_with(place))
    };
    for (file, facts) in house.judged().filter(|(file, _)| !store(file)) {
        for text in facts.texts.iter().filter(|text| text.literal) {
            if verbs
                .iter()
                .any(|verb| text.text.trim_start().starts_with(verb))
            {
                faults.push(format!(
                    "{file}:{}: ask the ledger; SQL stands in its stores",
                    text.line
                ));
            }
        }
    }
    faults
}

/// A function is a paragraph.
pub(crate) fn functions(house: &House) -> Vec<String> {
    let mut faults = Vec::new();
    for (file, facts) in house.judged() {
        for function in facts
            .functions
            .iter()
            .filter(|function| function.lines > 70)
        {
            faults.push(format!(
                "{file}:{}: fn {} has {} lines; at most 70 (branches in the parent, work in the leaves)",
                function.line, function.name, function.lines
            ));
        }
    }
    faults
}
