//! The project's files, read and parsed once, and the meaning of each path in them.
//!
//! A path is resolved through the file's imports and modules to the crate it begins in; local paths are not resolved. The house can
//! be copied with one file changed, which is how the rules themselves are tested.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use crate::facts::{Facts, Name};

/// Folder of each package's sources and the crate's name.
const PACKAGES: [(&str, &str); 12] = [
    ("src/", "farebox"),
    ("door/src/", "farebox_door"),
    ("files/src/", "farebox_toml"),
    ("protocol/src/", "farebox_protocol"),
    ("ledger/src/", "farebox_ledger"),
    ("ledger/bus-error/src/", "farebox_bus_error"),
    ("selling/src/", "farebox_selling"),
    ("cli/src/", "farebox_cli"),
    ("tui/src/", "farebox_console"),
    ("shop/src/", "farebox_shop"),
    ("bench/src/", "farebox_bench"),
    ("bench/estimate/src/", "farebox_bench_estimate"),
];

/// A file with its path from the root and its text.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Every source file that is compiled outside tests, with its facts, by path. Copies share what was parsed.
#[derive(Debug, Clone)]
pub(crate) struct House {
    pub(crate) sources: BTreeMap<String, Arc<Facts>>,
    /// The file of each module.
    modules: Arc<BTreeMap<Vec<String>, String>>,
    /// Crates that a manifest names.
    crates: Arc<BTreeSet<String>>,
    /// The one file that a copy judges.
    judged: Option<String>,
    pub(crate) unreadable: Vec<String>,
}

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

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// One file of the project as text.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every file below these folders with this ending.
pub(crate) fn files(folders: &[&str], ending: &str) -> Vec<File> {
    let mut found = Vec::new();
    for folder in folders {
        walk(&root().join(folder), ending, &mut found);
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn walk(folder: &Path, ending: &str, found: &mut Vec<File>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && name != "node_modules" && !name.starts_with('.') {
                walk(&path, ending, found);
            }
        } else if name.ends_with(ending) {
            let shown = path
                .strip_prefix(root())
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            found.push(File {
                path: shown,
                text: fs::read_to_string(&path).unwrap_or_default(),
            });
        }
    }
}

impl House {
    /// The project as it stands on disk, read and parsed once for all tests.
    pub(crate) fn load() -> &'static Self {
        static HOUSE: LazyLock<House> = LazyLock::new(House::read);
        &HOUSE
    }

    fn read() -> Self {
        let folders: Vec<&str> = PACKAGES.iter().map(|(folder, _)| *folder).collect();
        let (sources, modules, judged, unreadable) = Default::default();
        let mut house = Self {
            sources,
            modules,
            crates: Arc::new(crates()),
            judged,
            unreadable,
        };
        for file in files(&folders, ".rs") {
            house.put(&file.path, &file.text);
        }
        house.leave_out_tests();
        house.modules = Arc::new(
            house
                .sources
                .iter()
                .map(|(path, facts)| (facts.module.clone(), path.clone()))
                .collect(),
        );
        house
    }

    /// A copy in which one file has another text, and only that file is judged.
    pub(crate) fn with(&self, path: &str, text: &str) -> Self {
        let mut copy = self.only(path);
        copy.put(path, text);
        copy
    }

    /// A copy in which only one file is judged.
    pub(crate) fn only(&self, path: &str) -> Self {
        Self {
            judged: Some(path.to_owned()),
            ..self.clone()
        }
    }

    /// The files to judge.
    pub(crate) fn judged(&self) -> impl Iterator<Item = (&String, &Facts)> {
        let judged = |path: &String| self.judged.as_ref().is_none_or(|only| only == path);
        self.sources
            .iter()
            .filter(move |(path, _)| judged(path))
            .map(|(path, facts)| (path, &**facts))
    }

    fn put(&mut self, path: &str, text: &str) {
        let Some(module) = module_of(path) else {
            return;
        };
        match Facts::read(module, text) {
            Ok(facts) => drop(self.sources.insert(path.to_owned(), Arc::new(facts))),
            Err(error) => self.unreadable.push(format!("{path}: {error}")),
        }
    }

    /// Drops the files that only a module under `#[cfg(test)]` reaches.
    fn leave_out_tests(&mut self) {
        let tests: Vec<Vec<String>> = self
            .sources
            .values()
            .flat_map(|facts| {
                facts
                    .test_children
                    .iter()
                    .map(|child| [&facts.module[..], std::slice::from_ref(child)].concat())
            })
            .collect();
        self.sources.retain(|path, facts| {
            let beside = path.ends_with("_tests.rs");
            !beside && !tests.iter().any(|test| facts.module.starts_with(test))
        });
    }

    /// The path from its crate on; `None` for what is local to the function or file.
    pub(crate) fn resolve(&self, facts: &Facts, name: &Name) -> Option<Vec<String>> {
        let mut path = self.rooted(facts, &name.module, &name.segments, name.imported)?;
        // An item that a module only passes on is what it passes on.
        for _ in 0..4 {
            match self.passed_on(&path) {
                Some(next) if next != path => path = next,
                _ => break,
            }
        }
        Some(path)
    }

    fn rooted(
        &self,
        facts: &Facts,
        module: &[String],
        segments: &[String],
        imported: bool,
    ) -> Option<Vec<String>> {
        let krate = facts.module.first()?;
        let mut path = segments.to_vec();
        for _ in 0..5 {
            let first = path.first()?.clone();
            let known = matches!(first.as_str(), "std" | "core" | "alloc")
                || is_ours(&first)
                || self.crates.contains(&first);
            match first.as_str() {
                "crate" => return Some(joined(std::slice::from_ref(krate), &path[1..])),
                "self" => return Some(joined(module, &path[1..])),
                "super" => {
                    let ups = path.iter().take_while(|part| *part == "super").count();
                    return Some(joined(
                        &module[..module.len().saturating_sub(ups)],
                        &path[ups..],
                    ));
                }
                _ => {}
            }
            let alias = facts
                .aliases
                .get(&first)
                .filter(|full| full.first() != Some(&first) && !(imported && known));
            if let Some(full) = alias {
                path = joined(full, &path[1..]);
            } else if facts.children.contains(&first) && !known {
                return Some(joined(&facts.module, &path));
            } else if known && (imported || path.len() > 1)
                || imported
                    && first
                        .chars()
                        .all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
            {
                return Some(path);
            } else {
                return None;
            }
        }
        None
    }

    fn passed_on(&self, path: &[String]) -> Option<Vec<String>> {
        let at = (1..path.len())
            .rev()
            .find(|at| self.file_of(&path[..*at]).is_some())?;
        let facts = self.file_of(&path[..at])?;
        if facts.children.contains(&path[at]) {
            return None;
        }
        let full = facts.aliases.get(&path[at])?;
        let rooted = self.rooted(facts, &facts.module, full, true)?;
        Some(joined(&rooted, &path[at + 1..]))
    }

    /// The file that is exactly this module.
    pub(crate) fn file_of(&self, module: &[String]) -> Option<&Facts> {
        self.sources
            .get(self.modules.get(module)?)
            .map(|facts| &**facts)
    }
}

fn joined(before: &[String], after: &[String]) -> Vec<String> {
    before.iter().chain(after).cloned().collect()
}

/// Whether a crate is one of this project.
pub(crate) fn is_ours(krate: &str) -> bool {
    PACKAGES.iter().any(|(_, name)| *name == krate)
}

/// The module a file is, the crate's name first.
fn module_of(path: &str) -> Option<Vec<String>> {
    let (folder, krate) = PACKAGES
        .iter()
        .filter(|(folder, _)| path.starts_with(folder))
        .max_by_key(|(folder, _)| folder.len())?;
    let inside = path.strip_prefix(folder)?.strip_suffix(".rs")?;
    let mut module = vec![(*krate).to_owned()];
    module.extend(
        inside
            .split('/')
            .filter(|part| !matches!(*part, "mod" | "lib" | "main"))
            .map(str::to_owned),
    );
    Some(module)
}

/// Every crate that a manifest of the project depends on, as code spells it.
fn crates() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for manifest in files(&["."], "Cargo.toml") {
        let table: toml::Table = toml::from_str(&manifest.text).expect("a manifest is TOML");
        for kind in ["dependencies", "dev-dependencies"] {
            let names = table
                .get(kind)
                .and_then(toml::Value::as_table)
                .map(toml::Table::keys);
            found.extend(
                names
                    .into_iter()
                    .flatten()
                    .map(|name| name.replace('-', "_")),
            );
        }
    }
    found
}
