//! What pages name is there: files, the symbols that they say stand in one, and the headings that links lead to.

use std::path::{Component, Path, PathBuf};

use crate::house::{files, read, root};
use crate::pages::report;

/// A page's rows of tables, each alone, and its other text, each with whether it is a row. Examples are left out.
fn blocks(page: &str) -> Vec<(bool, String)> {
    let mut blocks = vec![(false, String::new())];
    let mut example = false;
    for line in page.lines() {
        let row = line.trim_start().starts_with('|');
        if line.trim_start().starts_with("```") {
            example = !example;
        } else if row {
            blocks.push((true, line.to_owned()));
            blocks.push((false, String::new()));
        } else if let Some((_, text)) = blocks.last_mut().filter(|_| !example) {
            text.push_str(line);
            text.push(' ');
        }
    }
    blocks
}

/// `Owner::symbol`, `symbol`, `MACRO!`
fn is_symbol(word: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    word.trim_end_matches('!').split("::").all(is_part)
}

fn is_file(word: &str) -> bool {
    let ends = [".rs", ".toml", ".sql", ".py"];
    word.contains('/') && ends.iter().any(|end| word.ends_with(end))
}

/// Whether a file has the symbol itself, and not only a use of it.
fn stands_in(file: &str, symbol: &str) -> bool {
    if !root().join(file).is_file() {
        return false;
    }
    let text = read(file);
    let name = symbol.rsplit("::").next().unwrap_or_default();
    if !file.ends_with(".rs") || name.ends_with('!') {
        return text.contains(name);
    }
    let kinds = [
        "fn", "struct", "enum", "trait", "type", "const", "static", "mod",
    ];
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let whole = !before.ends_with(is_name) && !after.starts_with(is_name);
        let defined = kinds
            .iter()
            .any(|kind| before.ends_with(&format!("{kind} ")));
        let field = after.starts_with(": ");
        whole && (defined || field)
    })
}

/// Symbols that one text says stand in files, each run of them with its files: `` `a`, `b` in `x.rs` ``, `` `a` (`x.rs`, `y.rs`) ``;
/// in rows of tables also `` `a`, `x.rs` ``.
fn placed(text: &str, row: bool) -> Vec<(Vec<&str>, Vec<&str>)> {
    let parts: Vec<&str> = text.split('`').collect();
    let mut found = Vec::new();
    let (mut symbols, mut places) = (Vec::new(), Vec::new());
    for pair in parts.chunks_exact(2) {
        let (gap, word) = (pair[0].trim(), pair[1]);
        let goes_on = match (symbols.is_empty(), places.is_empty()) {
            (true, _) => false,
            (false, true) if is_symbol(word) => [",", "and"].contains(&gap),
            (false, true) => {
                is_file(word) && (["in", "of", "("].contains(&gap) || row && gap == ",")
            }
            (false, false) => is_file(word) && gap == ",",
        };
        if !goes_on {
            found.push((std::mem::take(&mut symbols), std::mem::take(&mut places)));
        }
        if is_file(word) && goes_on {
            places.push(word);
        } else if is_symbol(word) {
            symbols.push(word);
        }
    }
    found.push((symbols, places));
    found.retain(|(_, places)| !places.is_empty());
    found
}

#[test]
fn symbols_stand_in_the_files_that_pages_name() {
    let mut faults = Vec::new();
    let mut seen = 0;
    for page in files(&["docs"], ".md") {
        for (row, text) in blocks(&page.text) {
            for (symbols, places) in placed(&text, row) {
                seen += symbols.len();
                let absent = symbols
                    .iter()
                    .filter(|symbol| !places.iter().any(|place| stands_in(place, symbol)));
                faults.extend(absent.map(|symbol| {
                    format!(
                        "{}: `{symbol}` does not stand in {}",
                        page.path,
                        places.join(", ")
                    )
                }));
            }
        }
    }
    assert!(seen > 150, "only {seen} symbols were found");
    report(&faults);
}

#[test]
fn a_symbol_in_another_file_is_found() {
    let rows = placed(
        "| it | `read`, `Facts::read` in `tests/tidy/facts.rs`; `File`, `tests/tidy/house.rs` |",
        true,
    );
    assert_eq!(rows.len(), 2);
    assert!(stands_in("tests/tidy/facts.rs", "Facts::read"));
    assert!(
        !stands_in("tests/tidy/facts.rs", "File"),
        "a use is no definition"
    );
    assert!(placed("`File`, `tests/tidy/house.rs` and others", false).is_empty());
}

#[test]
fn pages_name_only_files_that_exist() {
    let mut faults = Vec::new();
    for page in files(&["docs"], ".md") {
        for (_, text) in blocks(&page.text) {
            for word in text.split('`').skip(1).step_by(2) {
                let is_path = is_file(word) || word.contains('/') && word.ends_with('/');
                let own = !word.starts_with('/') && !word.contains(['{', '*', ' ', '<', ':']);
                if is_path && own && !root().join(word).exists() {
                    faults.push(format!(
                        "{} names `{word}`, which does not exist",
                        page.path
                    ));
                }
            }
        }
    }
    report(&faults);
}

/// Where a heading is found from outside.
fn anchor(heading: &str) -> String {
    let kept = heading
        .trim_start_matches('#')
        .trim()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            _ => c.is_alphanumeric().then(|| c.to_ascii_lowercase()),
        });
    kept.collect()
}

/// The page that a link leads to, from the root.
fn target(page: &str, link: &str) -> PathBuf {
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let mut path = PathBuf::new();
    for part in folder.join(link).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            other => path.push(other),
        }
    }
    path
}

#[test]
fn links_lead_to_pages_and_headings() {
    let mut faults = Vec::new();
    for page in files(&["."], ".md") {
        for (_, text) in blocks(&page.text) {
            for link in text
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split(')').next())
            {
                if link.contains(':') {
                    continue;
                }
                let (file, heading) = link.split_once('#').unwrap_or((link, ""));
                let path = match file {
                    "" => PathBuf::from(&page.path),
                    file => target(&page.path, file),
                };
                let leads = root().join(&path).exists()
                    && (heading.is_empty()
                        || read(&path.to_string_lossy())
                            .lines()
                            .any(|line| line.starts_with('#') && anchor(line) == heading));
                if !leads {
                    faults.push(format!("{}: {link} leads nowhere", page.path));
                }
            }
        }
    }
    report(&faults);
}
