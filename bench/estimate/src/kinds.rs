//! Texts of every kind that customers send: written ones from `texts`, this repository's own, and generated ones.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// A kind of text and a piece of it, to be repeated as often as needed.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Every kind.
pub(crate) fn all(root: &Path) -> Vec<Kind> {
    let mut kinds = Vec::new();
    let mut files: Vec<_> = fs::read_dir(root.join("bench/estimate/texts"))
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    files.sort_by_key(fs::DirEntry::file_name);
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        kinds.extend(read(&file.path()).map(|text| Kind { name, text }));
    }
    for (name, path) in [
        ("code.rs", "src/proxy/admitted.rs"),
        ("manual.md", "docs/operations.md"),
        ("code.js", "src/customer/assets/page.js"),
        ("code.css", "src/customer/assets/page.css"),
        ("code.toml", "catalog.toml"),
    ] {
        kinds.extend(read(&root.join(path)).map(|text| Kind {
            name: name.to_owned(),
            text,
        }));
    }
    let code = kinds
        .iter()
        .find(|kind| kind.name == "code.py")
        .map_or("", |kind| &kind.text)
        .to_owned();
    let result = kinds
        .iter()
        .find(|kind| kind.name == "result.json")
        .map_or("", |kind| &kind.text)
        .to_owned();
    let made = generated(&code, &result);
    kinds.extend(made.into_iter().map(|(name, text)| Kind {
        name: format!("({name})"),
        text,
    }));
    kinds
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn generated(code: &str, result: &str) -> Vec<(&'static str, String)> {
    let mut dice = Dice(7);
    let value: Value = serde_json::from_str(result).unwrap_or_default();
    let lines = || code.lines().enumerate();
    vec![
        (
            "base64",
            dice.word(
                4_000,
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
            ),
        ),
        ("hex", dice.word(4_000, "0123456789abcdef")),
        (
            "uuids",
            joined(100, || {
                [8, 4, 4, 4, 12]
                    .map(|length| dice.word(length, "0123456789abcdef"))
                    .join("-")
            }),
        ),
        (
            "bytes",
            joined(400, || {
                format!(
                    "0x{}, 0x{},",
                    dice.word(2, "0123456789abcdef"),
                    dice.word(2, "0123456789ABCDEF")
                )
            }),
        ),
        (
            "numbers",
            joined(200, || {
                format!(
                    "{}.{},-{}",
                    dice.word(3, "0123456789"),
                    dice.word(6, "0123456789"),
                    dice.below(99)
                )
            }),
        ),
        (
            "listing",
            joined(100, || {
                format!(
                    "-rw-r--r--  1 root root {:>9} Nov {:>2} 14:02 file_{}.txt",
                    dice.below(9_999_999),
                    dice.below(30),
                    dice.below(999)
                )
            }),
        ),
        (
            "numbered lines",
            lines()
                .map(|(at, line)| format!("{:>6}\t{line}\n", at + 1))
                .collect(),
        ),
        (
            "deep spaces",
            lines()
                .map(|(_, line)| format!("{}{line}\n", " ".repeat(28)))
                .collect(),
        ),
        (
            "deep tabs",
            lines()
                .map(|(_, line)| format!("\t\t\t\t\t{}\n", line.replace("    ", "\t")))
                .collect(),
        ),
        (
            "columns",
            joined(60, || {
                format!("{:<30}{:>16}{:>24}|", "ok", dice.below(99), "")
            }),
        ),
        (
            "rules",
            joined(20, || {
                format!("{}\nChapter\n{}", "=".repeat(72), "-".repeat(60))
            }),
        ),
        ("json lines", format!("{value}\n")),
        (
            "json pretty",
            serde_json::to_string_pretty(&value).unwrap_or_default(),
        ),
        ("json in json", json!(result).to_string()),
        (
            "capitals",
            "THE HARBOUR OFFICE KEPT ITS BOOKS IN A TALL CUPBOARD BEHIND THE STOVE. ".to_owned(),
        ),
    ]
}

fn joined(times: usize, mut line: impl FnMut() -> String) -> String {
    (0..times).map(|_| line() + "\n").collect()
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn word(&mut self, length: usize, letters: &str) -> String {
        let letters: Vec<char> = letters.chars().collect();
        (0..length)
            .filter_map(|_| letters.get(self.below(letters.len() as u64) as usize))
            .collect()
    }
}
