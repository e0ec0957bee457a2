//! What `check --explain` says of providers and kinds.

use std::fs;
use std::path::Path;

use crate::support::process::{farebox, json};

const ROUTES: &str = r#"
[provider.eu]
kind    = "openai"
key     = { env = "EU_KEY" }
proxy   = { env = "EU_PROXY" }
pass    = [
  "top_k",   # ours
]
timeouts.whole = "600s"

[provider.eu.headers]
x-team = { env = "TEAM" }

[provider.own]
base_url = "http://10.0.0.5:8000/v1"
speaks   = ["chat"]
speed    = 400
"#;

fn said(folder: &Path, name: &str) -> String {
    let output = farebox(folder, &["check", "--explain", name])
        .output()
        .unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    for line in said.lines() {
        let is_error = line.starts_with("farebox: ");
        assert!(is_error || line.chars().count() <= 80, "{line}");
    }
    format!("## {name}: {}\n{said}\n", output.status.code().unwrap())
}

#[test]
fn each_setting_of_a_provider_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let before_files = said(folder, "gemini");
    assert!(farebox(folder, &["init"]).status().unwrap().success());
    let shipped = fs::read_to_string(folder.join("routes.toml")).unwrap();
    fs::write(folder.join("routes.toml"), shipped + ROUTES).unwrap();
    let names = ["eu", "own", "sim", "gemini", "opnai"];
    let text: String = names.iter().map(|name| said(folder, name)).collect();
    assert!(
        text.contains(&before_files),
        "a kind needs no files: {before_files}"
    );
    insta::assert_snapshot!("explained", text);
    for kind in farebox::config::presets() {
        assert!(
            said(folder, &kind.name).contains("chat_limit"),
            "{}",
            kind.name
        );
    }
    let document = json(folder, &["check", "--explain", "eu"]);
    assert_eq!(document["provider"], "eu");
    assert_eq!(document["kind"], "openai");
    let settings = document["settings"].as_array().unwrap();
    let of = |name: &str| settings.iter().find(|row| row["setting"] == name).unwrap();
    assert_eq!(of("chat_limit")["from"], "kind");
    assert_eq!(of("limit")["from"], "library");
    assert_eq!(of("drop")["from"], "default");
    let whole = of("timeouts.whole");
    assert_eq!(whole["from"], "line");
    assert_eq!(whole["value"], "\"600s\"");
    let line = usize::try_from(whole["line"].as_u64().unwrap()).unwrap();
    let routes = fs::read_to_string(folder.join("routes.toml")).unwrap();
    assert_eq!(
        routes.lines().nth(line - 1),
        Some("timeouts.whole = \"600s\"")
    );
    fs::write(folder.join("routes.toml"), "[provider.eu]\n").unwrap();
    let output = farebox(folder, &["check", "--explain", "gemini"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(78), "mistakes come first");
}
