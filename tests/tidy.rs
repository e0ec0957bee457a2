//! The rules of the house, as a test. Each failure names the rule, the place and what to do instead.

#![expect(clippy::unwrap_used, reason = "a house that cannot be read is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};

/// A file with its path from the root and its text.
struct File {
    path: String,
    text: String,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below these folders with one of these endings.
fn files(folders: &[&str], endings: &[&str]) -> Vec<File> {
    let mut found = Vec::new();
    for folder in folders {
        walk(&root().join(folder), endings, &mut found);
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn walk(folder: &Path, endings: &[&str], found: &mut Vec<File>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && name != "node_modules" && !name.starts_with('.') {
                walk(&path, endings, found);
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            let shown = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            found.push(File { path: shown, text: fs::read_to_string(&path).unwrap_or_default() });
        }
    }
}

/// Every source file, without those that only tests compile.
fn sources() -> Vec<File> {
    let mut all = files(&["src", "protocol/src", "ledger/src", "tui/src"], &[".rs"]);
    all.retain(|file| !file.path.ends_with("/tests.rs") && !file.path.contains("/tests/"));
    all
}

fn report(faults: Vec<String>) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// The part of a file before its inline tests.
fn without_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or(text)
}

#[test]
fn every_file_says_its_job_first() {
    let all = files(&["src", "protocol", "ledger", "tui", "tests", "benches", "bench"], &[".rs"]);
    report(
        all.iter()
            .filter(|file| !file.text.starts_with("//!"))
            .map(|file| format!("{}: begin with //! and the file's one job", file.path))
            .collect(),
    );
}

#[test]
fn files_and_functions_stay_small() {
    let mut faults = Vec::new();
    for file in files(&["src", "protocol", "ledger", "tui", "tests", "benches", "bench"], &[".rs"]) {
        let lines = file.text.lines().count();
        if lines > 600 {
            faults.push(format!("{}: {lines} lines; at most 600, aim for 400: give part of it a file of its own", file.path));
        }
        for (name, at, length) in functions(without_tests(&file.text)) {
            if length > 70 {
                faults.push(format!(
                    "{}:{at}: fn {name} has {length} lines; at most 70: branches in the parent, work in the leaves",
                    file.path
                ));
            }
        }
    }
    report(faults);
}

/// Name, first line and length of every function, by its indentation: code is formatted, so a body ends at its own column.
fn functions(text: &str) -> Vec<(String, usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let Some(rest) = function_start(line.trim_start()) else { continue };
        let name = rest.split(['(', '<']).next().unwrap_or("").to_owned();
        let close = format!("{}}}", " ".repeat(indent));
        if let Some(length) = lines[at..].iter().position(|line| {
            *line == close
                || line.ends_with(';') && line.starts_with(&" ".repeat(indent)) && !line.starts_with(&" ".repeat(indent + 1))
        }) {
            found.push((name, at + 1, length + 1));
        }
    }
    found
}

fn function_start(line: &str) -> Option<&str> {
    let mut line = line;
    for word in ["pub(crate) ", "pub(super) ", "pub ", "const ", "async "] {
        line = line.strip_prefix(word).unwrap_or(line);
    }
    line.strip_prefix("fn ")
}

/// Room, and what it must never name.
const WALLS: &[(&str, &[&str])] = &[
    ("protocol/src", &["tokio", "reqwest", "salvo", "farebox_ledger", "rusqlite", "farebox::"]),
    ("ledger/src", &["farebox_protocol", "reqwest", "salvo", "farebox::"]),
    ("tui/src", &["farebox_protocol", "salvo", "rusqlite", "SELECT ", "INSERT "]),
    ("src/config", &["crate::proxy", "crate::server", "crate::upstream", "crate::metering", "salvo", "reqwest"]),
    ("src/metering", &["crate::proxy", "crate::server", "crate::upstream", "async fn", "tokio", "salvo", "reqwest"]),
    ("src/upstream", &["farebox_ledger", "crate::metering", "crate::server", "crate::proxy", "salvo"]),
    ("src/proxy", &["salvo", "reqwest", "rusqlite", "crate::server", "crate::app", "crate::cli", "SELECT "]),
    ("src/server", &["crate::upstream", "crate::metering", "reqwest", "rusqlite", "crate::app", "crate::cli"]),
    ("src/customer", &["crate::server", "crate::upstream", "crate::metering", "reqwest", "rusqlite", "crate::app", "crate::cli"]),
    (
        "src/setup",
        &["crate::proxy", "crate::server", "crate::customer", "crate::upstream", "crate::metering", "salvo", "reqwest"],
    ),
    ("src/telemetry", &["crate::server", "crate::upstream", "crate::metering", "crate::config", "salvo", "reqwest"]),
];

#[test]
fn rooms_import_only_what_they_may() {
    let mut faults = Vec::new();
    for file in sources() {
        for (room, forbidden) in WALLS {
            if !file.path.starts_with(room) {
                continue;
            }
            for (at, line) in without_tests(&file.text).lines().enumerate() {
                let code = line.split("//").next().unwrap_or("");
                for word in *forbidden {
                    if names(code, word) {
                        faults.push(format!(
                            "{}:{}: {room} must not know {word:?} (docs/ARCHITECTURE.md, Who may import whom)",
                            file.path,
                            at + 1
                        ));
                    }
                }
            }
        }
    }
    report(faults);
}

/// Whether code names a word as a whole, not as part of another.
fn names(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_');
        let after = code[at + word.len()..].chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '_');
        before && (after || word.ends_with(['(', ' ', ':']))
    })
}

#[test]
fn only_the_protocol_crate_tells_families_apart() {
    let mut faults = Vec::new();
    for file in sources().into_iter().filter(|file| !file.path.starts_with("protocol/")) {
        for (at, line) in without_tests(&file.text).lines().enumerate() {
            let arm = ["Family::Chat", "Family::Responses", "Family::Messages"].iter().any(|family| {
                line.trim_start()
                    .strip_prefix(family)
                    .is_some_and(|rest| rest.trim_start().starts_with("=>") || rest.trim_start().starts_with('|'))
            });
            if arm {
                faults.push(format!("{}:{}: ask the family's protocol instead of matching on it", file.path, at + 1));
            }
        }
    }
    report(faults);
}

#[test]
fn vendors_are_data() {
    let vendors = ["openai", "anthropic", "claude", "gemini", "mistral", "llama", "openrouter", "azure", "bedrock"];
    // The two header names are part of the native dialect; the demo prints environment variables of well-known clients.
    let allowed = ["src/cli/demo.rs", "src/server/models.rs", "src/server/mod.rs", "src/customer", "src/setup"];
    let mut faults = Vec::new();
    for file in sources().into_iter().filter(|file| !file.path.starts_with("protocol/")) {
        if allowed.iter().any(|place| file.path.starts_with(place)) {
            continue;
        }
        for (at, line) in without_tests(&file.text).lines().enumerate() {
            let code =
                line.split("//").next().unwrap_or("").to_lowercase().replace("openai-style", "").replace("anthropic-beta", "");
            if let Some(vendor) = vendors.iter().find(|vendor| code.contains(*vendor)) {
                faults.push(format!(
                    "{}:{}: {vendor:?} belongs into protocol/, the TOML files, tests or docs",
                    file.path,
                    at + 1
                ));
            }
        }
    }
    report(faults);
}

#[test]
fn only_the_clock_reads_the_time_and_only_config_the_environment() {
    let mut faults = Vec::new();
    for file in sources().into_iter().filter(|file| file.path.starts_with("src/")) {
        for (at, line) in without_tests(&file.text).lines().enumerate() {
            if line.contains("SystemTime::now") && file.path != "src/clock.rs" {
                faults.push(format!("{}:{}: take the time from crate::clock", file.path, at + 1));
            }
            if line.contains("env::var") && !file.path.starts_with("src/config/") {
                faults.push(format!("{}:{}: read the environment in src/config", file.path, at + 1));
            }
            if line.contains(".config.current()")
                && !["src/proxy/", "src/server/", "src/customer/", "src/app/", "src/cli/"]
                    .iter()
                    .any(|place| file.path.starts_with(place))
            {
                faults.push(format!("{}:{}: only the spine and the lists take a snapshot", file.path, at + 1));
            }
        }
    }
    report(faults);
}

#[test]
fn the_architecture_page_names_only_what_exists() {
    let page = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).expect("docs/ARCHITECTURE.md");
    let mut faults = Vec::new();
    for word in page.split('`').skip(1).step_by(2) {
        let is_path = word.contains('/')
            && (word.ends_with(".rs") || word.ends_with(".toml") || word.ends_with('/') || word.ends_with(".sql"));
        if is_path && !word.starts_with('/') && !word.contains(['{', '*', ' ', '<']) && !root().join(word).exists() {
            faults.push(format!("docs/ARCHITECTURE.md names `{word}`, which does not exist"));
        }
    }
    report(faults);
}

#[test]
fn every_key_of_the_two_files_is_documented() {
    let docs = fs::read_to_string(root().join("docs/config.md")).expect("docs/config.md");
    let mut faults = Vec::new();
    for name in ["catalog.toml", "routes.toml"] {
        let text = fs::read_to_string(root().join(name)).expect(name);
        for line in text.lines() {
            let line = line.trim_start_matches(['#', ' ']);
            let Some((key, _)) = line.split_once('=') else { continue };
            let key = key.trim();
            if !key.is_empty()
                && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
                && !docs.contains(&format!("`{key}`"))
            {
                faults.push(format!("docs/config.md does not mention `{key}` of {name}"));
            }
        }
    }
    report(faults);
}

#[test]
fn every_test_that_a_promise_names_exists() {
    let page = fs::read_to_string(root().join("docs/PROMISES.md")).expect("docs/PROMISES.md");
    let code: String = files(&["src", "ledger", "tests", "tui"], &[".rs"]).into_iter().map(|file| file.text).collect();
    let words: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let mut faults = Vec::new();
    for word in &words {
        let is_path = word.ends_with(".rs");
        let is_test = word.matches('_').count() >= 2 && !word.contains(['/', '.', ' ']);
        if is_path && !root().join(word).exists() || is_test && !code.contains(&format!("fn {word}(")) {
            faults.push(format!("docs/PROMISES.md names `{word}`, which does not exist"));
        }
    }
    for promise in 1..=9 {
        let section = page.split("\n## ").find(|section| section.starts_with(&format!("P{promise} ")));
        if !section.is_some_and(|section| section.contains(".rs`")) {
            faults.push(format!("docs/PROMISES.md: P{promise} names no test"));
        }
    }
    report(faults);
}
