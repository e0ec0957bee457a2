//! `docs/config.md` beside the code: its tables of keys are written from `keys.toml`, and every key and every code stands on it.

use std::fmt::Write;
use std::path::Path;

use crate::code::Code;
use crate::keys::{ConfigTable, KEYS};

fn table_of(keys: &ConfigTable) -> String {
    let mut table = "\n| field | type | default | meaning |\n|---|---|---|---|\n".to_owned();
    for key in keys.keys() {
        let (kind, default, meaning) = (&key.kind, &key.default, &key.meaning);
        let _ = writeln!(table, "| `{}` | {kind} | {default} | {meaning} |", key.name);
    }
    table + "\n"
}

#[test]
fn every_key_and_code_is_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/config.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut wanted = page.clone();
    for (name, table) in KEYS.all() {
        let begin = format!(
            "<!-- keys of {name}: written by FAREBOX_BLESS=1 cargo test -p farebox-toml -->\n"
        );
        if let Some((before, rest)) = wanted.split_once(&begin) {
            let (_, after) = rest.split_once("<!-- end of keys -->").unwrap();
            wanted = format!(
                "{before}{begin}{}<!-- end of keys -->{after}",
                table_of(table)
            );
        }
    }
    if page != wanted {
        assert!(
            std::env::var_os("FAREBOX_BLESS").is_some(),
            "docs/config.md: FAREBOX_BLESS=1 writes its tables"
        );
        std::fs::write(path, &wanted).unwrap();
    }
    for name in KEYS.all().flat_map(|(_, table)| table.names()) {
        let said = [
            format!("`{name}`"),
            format!("{name} = "),
            format!("[{name}]"),
        ];
        assert!(
            said.iter().any(|said| wanted.contains(said)),
            "`{name}` is not documented"
        );
    }
    for code in Code::ALL {
        let row = format!("| {} | {} |", code.id(), code.title());
        assert!(wanted.contains(&row), "no row begins {row}");
    }
}
