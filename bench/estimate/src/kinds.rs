//! Texts of every kind that customers send: written ones from `texts`, this repository's own, and generated ones.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// A kind of text and a piece of it, to be repeated as often as needed.
#[derive(Debug, Clone)]
pub(crate) struct SampleKind {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Every kind.
pub(crate) fn all(root: &Path) -> Vec<SampleKind> {
    let mut kinds = Vec::new();
    let mut files: Vec<_> = fs::read_dir(root.join("bench/estimate/texts"))
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    files.sort_by_key(fs::DirEntry::file_name);
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        kinds.extend(read(&file.path()).map(|text| SampleKind { name, text }));
    }
    for (name, path) in [
        ("code.rs", "src/proxy/request.rs"),
        ("manual.md", "docs/operations.md"),
        ("code.js", "src/customer/assets/page.js"),
        ("code.css", "src/customer/assets/page.css"),
        ("code.toml", "catalog.toml"),
    ] {
        kinds.extend(read(&root.join(path)).map(|text| SampleKind {
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
    kinds.extend(made.into_iter().map(|(name, text)| SampleKind {
        name: format!("({name})"),
        text,
    }));
    kinds
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

const HEX: &str = "0123456789abcdef";
const DIGITS: &str = "0123456789";

fn generated(code: &str, result: &str) -> Vec<(&'static str, String)> {
    let mut texts = diced(&mut Dice(7));
    texts.extend(laid_out(code));
    texts.extend(printed(result));
    texts.push((
        "capitals",
        "THE HARBOUR OFFICE KEPT ITS BOOKS IN A TALL CUPBOARD BEHIND THE STOVE. ".to_owned(),
    ));
    texts
}

/// What programs print: codes, numbers and columns.
fn diced(dice: &mut Dice) -> Vec<(&'static str, String)> {
    const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let uuid = |dice: &mut Dice| {
        let groups = [8, 4, 4, 4, 12].map(|length| dice.word(length, HEX));
        groups.join("-")
    };
    let bytes = |dice: &mut Dice| {
        let (low, high) = (dice.word(2, HEX), dice.word(2, "0123456789ABCDEF"));
        format!("0x{low}, 0x{high},")
    };
    let number = |dice: &mut Dice| {
        let (whole, part) = (dice.word(3, DIGITS), dice.word(6, DIGITS));
        format!("{whole}.{part},-{}", dice.below(99))
    };
    let listed = |dice: &mut Dice| {
        let (size, day, file) = (dice.below(9_999_999), dice.below(30), dice.below(999));
        format!("-rw-r--r--  1 root root {size:>9} Nov {day:>2} 14:02 file_{file}.txt")
    };
    vec![
        ("base64", dice.word(4_000, BASE64)),
        ("hex", dice.word(4_000, HEX)),
        ("uuids", joined(100, || uuid(dice))),
        ("bytes", joined(400, || bytes(dice))),
        ("numbers", joined(200, || number(dice))),
        ("listing", joined(100, || listed(dice))),
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
    ]
}

/// Code as tools and editors show it.
fn laid_out(code: &str) -> Vec<(&'static str, String)> {
    let numbered = |(at, line): (usize, &str)| format!("{:>6}\t{line}\n", at + 1);
    let spaced = |line: &str| format!("{}{line}\n", " ".repeat(28));
    let tabbed = |line: &str| format!("\t\t\t\t\t{}\n", line.replace("    ", "\t"));
    vec![
        (
            "numbered lines",
            code.lines().enumerate().map(numbered).collect(),
        ),
        ("deep spaces", code.lines().map(spaced).collect()),
        ("deep tabs", code.lines().map(tabbed).collect()),
    ]
}

/// A tool's result in the ways in which programs write JSON.
fn printed(result: &str) -> Vec<(&'static str, String)> {
    let value: Value = serde_json::from_str(result).unwrap_or_default();
    vec![
        ("json lines", format!("{value}\n")),
        (
            "json pretty",
            serde_json::to_string_pretty(&value).unwrap_or_default(),
        ),
        ("json in json", json!(result).to_string()),
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
