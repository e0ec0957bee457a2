//! Three pages beside the code: what an operator writes is on `docs/config.md`, the rest on `docs/services.md`, and the shop's file on
//! `docs/selling.md`. Their tables of keys are written from `keys.toml`; every key and every code stands on one of them.

use std::path::Path;

use crate::code::Code;
use crate::keys::{ConfigKey, ConfigTable, KEYS};

/// What somebody reads who publishes a model; a further one belongs to the other page.
const MOST_SETTINGS: usize = 40;

fn row(key: &ConfigKey) -> String {
    let (kind, default, meaning) = (&key.kind, &key.default, &key.meaning);
    format!("| `{}` | {kind} | {default} | {meaning} |\n", key.name)
}

/// The rows of a table that stand on a page.
fn rows_on(page: &str, table: &ConfigTable) -> Vec<String> {
    let page_of = |key: &ConfigKey| {
        let named = key.page.as_ref().or(table.page.as_ref());
        named.map_or("config", String::as_str) == page
    };
    table.keys().filter(|key| page_of(key)).map(row).collect()
}

/// A page as it should be, and how many settings its tables have. A page that is not so is written, or refused.
fn page(name: &str) -> (String, usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/{name}.md"));
    let page = std::fs::read_to_string(&path).unwrap();
    let (mut wanted, mut settings) = (page.clone(), 0);
    for (of, table) in KEYS.all() {
        let begin = format!(
            "<!-- keys of {of}: written by FAREBOX_BLESS=1 cargo test -p farebox-toml -->\n"
        );
        let Some((before, rest)) = wanted.split_once(&begin) else {
            continue;
        };
        let (_, after) = rest.split_once("<!-- end of keys -->").unwrap();
        let rows = rows_on(name, table);
        settings += rows.len();
        let head = "\n| field | type | default | meaning |\n|---|---|---|---|\n";
        let rows = rows.concat();
        wanted = format!("{before}{begin}{head}{rows}\n<!-- end of keys -->{after}");
    }
    if page != wanted {
        assert!(
            std::env::var_os("FAREBOX_BLESS").is_some(),
            "docs/{name}.md: FAREBOX_BLESS=1 writes its tables"
        );
        std::fs::write(path, &wanted).unwrap();
    }
    (wanted, settings)
}

#[test]
fn every_key_and_code_is_documented() {
    let (config, settings) = page("config");
    assert!(
        settings <= MOST_SETTINGS,
        "docs/config.md has {settings} settings: `page = \"services\"` in keys.toml moves one"
    );
    let pages = config + &page("services").0 + &page("selling").0;
    for key in KEYS.all().flat_map(|(_, table)| table.keys()) {
        let name = &key.name;
        let said = [
            format!("`{name}`"),
            format!("{name} = "),
            format!("[{name}]"),
        ];
        assert!(
            said.iter().any(|said| pages.contains(said)),
            "`{name}` is not documented"
        );
        let is_worded = !key.meaning.is_empty();
        assert!(
            !is_worded || pages.contains(&row(key)),
            "`{name}`: no table has its row"
        );
    }
    // A shop's codes have no rows: its tests show the report of each.
    for code in Code::ALL.iter().filter(|code| !code.is_of_shop()) {
        let row = format!("| {} | {} |", code.id(), code.title());
        assert!(pages.contains(&row), "no row begins {row}");
    }
}
