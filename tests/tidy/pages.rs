//! The rules about files and documents: every key of the files is documented, every promise has its tests, and generated tables are
//! current.

use std::fs;

use crate::borders;
use crate::house::{files, read, root};

const ALL: [&str; 11] = [
    "src", "files", "protocol", "ledger", "cli", "tui", "shop", "tests", "bench", "door", "selling",
];
/// Participles that do not end in *ed*.
const PARTICIPLES: [&str; 10] = [
    "broken", "done", "hidden", "kept", "known", "said", "shown", "sold", "told", "unopened",
];

pub(crate) fn report(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn every_file_says_its_job_first_and_stays_small() {
    let mut faults = Vec::new();
    for file in files(&ALL, ".rs") {
        if !file.text.starts_with("//!") {
            faults.push(format!(
                "{}: begin with //! and the file's one job",
                file.path
            ));
        }
        let lines = file.text.lines().count();
        if lines > 600 {
            faults.push(format!(
                "{}: has {lines} lines; at most 600 (aim for 400: give part of it a file of its own)",
                file.path
            ));
        }
    }
    report(&faults);
}

/// A file is named by what it holds, so its name is a noun: a participle says that something happened to it, not what it is.
fn is_participle(name: &str) -> bool {
    let last = name.rsplit('_').next().unwrap_or(name);
    PARTICIPLES.contains(&last) || (last.ends_with("ed") && !last.ends_with("eed"))
}

#[test]
fn a_file_is_named_by_a_noun() {
    let programs = ALL
        .into_iter()
        .filter(|folder| !["tests", "bench"].contains(folder));
    let faults: Vec<String> = files(&programs.collect::<Vec<_>>(), ".rs")
        .into_iter()
        .filter(|file| !file.path.contains("/tests/"))
        .filter(|file| {
            let path = file.path.trim_end_matches(".rs");
            path.split('/').any(is_participle)
        })
        .map(|file| format!("{}: name it by a noun that says what it holds", file.path))
        .collect();
    report(&faults);
    assert!(is_participle("payment_moved") && is_participle("told") && !is_participle("seed"));
}

/// A page with the table between its marks replaced.
fn with_table(page: &str, prefix: &str) -> String {
    let (begin, end) = (
        "<!-- rooms: written by FAREBOX_BLESS=1 cargo test --test tidy -->\n",
        "<!-- end of rooms -->",
    );
    let (before, rest) = page
        .split_once(begin)
        .expect("the page has a mark where the table begins");
    let (_, after) = rest
        .split_once(end)
        .expect("the page has a mark where the table ends");
    let lines = borders::table()
        .lines()
        .map(|line| format!("{prefix}{line}\n"))
        .collect::<String>();
    let blank = format!("{}\n", prefix.trim_end());
    format!("{before}{begin}{blank}{lines}{blank}{prefix}{end}{after}")
}

#[test]
fn the_tables_of_rooms_are_those_that_are_enforced() {
    for (path, prefix) in [("docs/ARCHITECTURE.md", ""), ("src/lib.rs", "//! ")] {
        let page = read(path);
        let wanted = with_table(&page, prefix);
        if page == wanted {
            continue;
        }
        assert!(
            std::env::var_os("FAREBOX_BLESS").is_some(),
            "{path} does not show tests/tidy/rooms.rs; FAREBOX_BLESS=1 cargo test --test tidy writes it"
        );
        fs::write(root().join(path), wanted).expect("the page can be written");
    }
}

#[test]
fn every_key_of_the_two_files_is_documented() {
    let docs = read("docs/config.md") + &read("docs/services.md") + &read("docs/selling.md");
    let mut faults = Vec::new();
    for name in ["catalog.toml", "routes.toml"] {
        for line in read(name).lines() {
            let Some((key, _)) = line.trim_start_matches(['#', ' ']).split_once('=') else {
                continue;
            };
            let key = key.trim();
            let is_key = !key.is_empty()
                && key
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if is_key && !docs.contains(&format!("`{key}`")) {
                faults.push(format!("no page of docs/ mentions `{key}` of {name}"));
            }
        }
    }
    report(&faults);
}

#[test]
fn every_test_that_a_promise_names_exists() {
    let page = read("docs/PROMISES.md");
    let code: String = files(
        &[
            "src", "cli", "door", "protocol", "ledger", "shop", "tests", "tui",
        ],
        ".rs",
    )
    .into_iter()
    .map(|file| file.text)
    .collect();
    let mut faults = Vec::new();
    for word in page.split('`').skip(1).step_by(2) {
        let is_path = word.ends_with(".rs");
        let is_test = word.matches('_').count() >= 2 && !word.contains(['/', '.', ' ']);
        if is_path && !root().join(word).exists()
            || is_test && !code.contains(&format!("fn {word}("))
        {
            faults.push(format!(
                "docs/PROMISES.md names `{word}`, which does not exist"
            ));
        }
    }
    for promise in 1..=9 {
        let section = page
            .split("\n## ")
            .find(|section| section.starts_with(&format!("P{promise} ")));
        if !section.is_some_and(|section| section.contains(".rs`")) {
            faults.push(format!("docs/PROMISES.md: P{promise} names no test"));
        }
    }
    report(&faults);
}

/// What all pages together may say. A change may raise it by at most 700, and says so.
const MOST_WORDS: usize = 53_150;

#[test]
fn the_pages_stay_short() {
    let pages = files(&["."], ".md");
    let words: usize = (pages.iter())
        .map(|page| page.text.split_whitespace().count())
        .sum();
    assert!(
        words <= MOST_WORDS,
        "the pages have {words} words, at most {MOST_WORDS}: say each fact once, and leave history to git"
    );
}

#[test]
fn no_program_depends_on_what_is_below_tests() {
    let (below, programs): (Vec<_>, Vec<_>) = (files(&["."], "Cargo.toml").into_iter())
        .map(|file| (toml::from_str::<toml::Table>(&file.text), file.path))
        .map(|(table, path)| (table.expect("a manifest is TOML"), path))
        .partition(|(_, path)| path.starts_with("tests/"));
    assert!(!below.is_empty() && programs.len() > 5, "{}", below.len());
    let mut faults = Vec::new();
    for (helper, _) in &below {
        let name = helper["package"]["name"].as_str().expect("a name");
        for (program, path) in &programs {
            let needs = ["dependencies", "build-dependencies"].map(|kind| program.get(kind));
            if needs
                .into_iter()
                .flatten()
                .any(|kind| kind.get(name).is_some())
            {
                faults.push(format!(
                    "{path}: {name} is for tests; name it below [dev-dependencies]"
                ));
            }
        }
    }
    report(&faults);
}

/// Its tests stand in these files, which follow each other as the page's sections do.
#[test]
fn every_row_of_the_interface_has_its_test_and_its_code() {
    let tests =
        ["service", "endpoints", "errors"].map(|part| read(&format!("tests/interface/{part}.rs")));
    let tests = tests.concat();
    let is_mark = |line: &str| line.starts_with("#[test") || line.starts_with("#[tokio::test");
    let lines = tests.lines().zip(tests.lines().skip(1));
    let tests: Vec<&str> = (lines.filter(|(mark, _)| is_mark(mark)))
        .filter_map(|(_, next)| next.split("fn ").nth(1)?.split('(').next())
        .collect();
    let page = read("docs/interface.md");
    let rows: Vec<(&str, &str)> = (page.lines())
        .filter_map(|line| line.strip_prefix("| `")?.strip_suffix("` |"))
        .filter_map(|row| Some((row.split('`').next()?, row.rsplit('`').next()?)))
        .collect();
    let named: Vec<&str> = rows.iter().map(|(row, _)| *row).collect();
    assert_eq!(
        named, tests,
        "docs/interface.md and tests/interface/ have one row for one test, in one order"
    );
    let without = rows.iter().filter(|(row, code)| !read(code).contains(row));
    let fault = |(row, code): &(&str, &str)| {
        format!(
            "{code}: name `{row}` of docs/interface.md in the file's first lines, or name another file there"
        )
    };
    report(&without.map(fault).collect::<Vec<_>>());
}
