//! `farebox init` and `farebox diff`: starter files, and the effect of an edit before it is in force.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::process::{Served, farebox, json};

fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = farebox(folder, arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

/// A folder with changed files: `sim-chat` costs more, `sim-text` has another slug.
fn candidate(folder: &Path) -> [&'static str; 4] {
    let catalog = fs::read_to_string(folder.join("catalog.toml")).unwrap();
    let renamed =
        catalog
            .replacen("\"1.25\"", "\"1.50\"", 1)
            .replacen("\"sim-text\"", "\"sim-prose\"", 1);
    fs::write(folder.join("new-catalog.toml"), renamed).unwrap();
    let routes = fs::read_to_string(folder.join("routes.toml")).unwrap();
    fs::write(
        folder.join("new-routes.toml"),
        routes.replacen("\"sim-text\"", "\"sim-prose\"", 1),
    )
    .unwrap();
    [
        "--catalog",
        "new-catalog.toml",
        "--routes",
        "new-routes.toml",
    ]
}

fn row<'a>(document: &'a Value, name: &str) -> &'a Value {
    document["changes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|change| change["name"] == name)
        .unwrap()
}

#[test]
fn init_writes_files_that_check_and_overwrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = run(folder.path(), &["init"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(run(folder.path(), &["check"]).0, Some(0));
    fs::remove_file(folder.path().join("catalog.toml")).unwrap();
    fs::write(folder.path().join("routes.toml"), "mine").unwrap();
    let (code, said) = run(folder.path(), &["init"]);
    assert!(
        code == Some(1) && said.contains("routes.toml already exists"),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("routes.toml")).unwrap(),
        "mine"
    );
    assert!(!folder.path().join("catalog.toml").exists(), "both or none");
}

#[test]
fn diff_asks_the_running_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run(folder, &["init"]);
    let served = Served::start(folder, &[]);
    let admin = served.admin.strip_prefix("http://").unwrap();
    let mut arguments = vec!["diff", "--admin-listen", admin];
    assert!(run(folder, &arguments).1.contains("no differences"));
    arguments.extend(candidate(folder));
    let document = json(folder, &arguments);
    assert_eq!(
        (
            document["against"]["gateway"].as_bool(),
            document["against"]["generation"].as_u64()
        ),
        (Some(true), Some(1))
    );
    let price = row(&document, "sim-chat");
    assert_eq!(
        (price["change"].as_str(), price["field"].as_str()),
        (Some("changed"), Some("price"))
    );
    assert!(
        price["old"].as_str().unwrap().contains("$1.25")
            && price["new"].as_str().unwrap().contains("$1.50"),
        "{price}"
    );
    assert_eq!(row(&document, "sim-prose")["change"], "added");
    assert_eq!(row(&document, "sim-text")["change"], "removed");
    let (code, said) = run(folder, &arguments);
    assert_eq!(code, Some(0), "{said}");
    for text in [
        "~  model  sim-chat",
        "+  model  sim-prose",
        "−  model  sim-text",
        "add [[retired]] with slug = \"sim-text\"",
    ] {
        assert!(said.contains(text), "{text}: {said}");
    }
}

#[test]
fn diff_without_a_gateway_uses_what_the_ledger_remembers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run(folder, &["init"]);
    drop(Served::start(folder, &[]));
    // Nothing listens on port 1.
    let mut arguments = vec!["diff", "--admin-listen", "127.0.0.1:1"];
    arguments.extend(candidate(folder));
    let (code, said) = run(folder, &arguments);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("only the names of models were compared"),
        "{said}"
    );
    let document = farebox(folder, &arguments).arg("--json").output().unwrap();
    assert_eq!(document.status.code(), Some(2));
    let document: Value = serde_json::from_slice(&document.stdout).unwrap();
    assert_eq!(document["against"]["gateway"], false);
    assert_eq!(
        document["changes"].as_array().unwrap().len(),
        2,
        "{document:#}"
    );
    assert_eq!(row(&document, "sim-text")["change"], "removed");
    fs::write(folder.join("new-catalog.toml"), "nonsense").unwrap();
    assert_eq!(run(folder, &arguments).0, Some(78));
}

#[tokio::test]
async fn diff_says_how_many_keys_a_change_reaches() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run(folder, &["init"]);
    let served = Served::start(folder, &[]);
    for number in 0..3 {
        let reference = format!("r{number}");
        let made = json(
            folder,
            &[
                "keys",
                "create",
                "--label",
                "t",
                "--balance",
                "1",
                "--reference",
                &reference,
            ],
        );
        let secret = made["secret"].as_str().unwrap();
        served.ask("sim-text", secret).await.unwrap();
    }
    let admin = served.admin.strip_prefix("http://").unwrap();
    let mut arguments = vec!["diff", "--admin-listen", admin];
    arguments.extend(candidate(folder));
    let document = json(folder, &arguments);
    assert_eq!(
        row(&document, "sim-text")["keys_last_week"],
        3,
        "{document:#}"
    );
    assert_eq!(row(&document, "sim-chat")["keys_last_week"], 0);
}

/// The complete files that the two pages show are files: all that `check` says of them is that their secrets are elsewhere.
#[test]
fn the_examples_of_the_pages_pass_the_check() {
    for page in ["docs/config.md", "docs/first-day.md"] {
        let text = fs::read_to_string(Path::new(crate::support::HOME).join(page)).unwrap();
        let blocks: Vec<&str> = (text.split("```toml\n").skip(1))
            .filter_map(|block| block.split("```").next())
            .collect();
        let shown = |mark| *blocks.iter().find(|block| block.contains(mark)).unwrap();
        let (catalog, routes) = (shown("[[model]]"), shown("[[route]]"));
        // One block may show both.
        let catalog = catalog.split("# routes.toml").next().unwrap();
        let routes = routes.rsplit("# routes.toml").next().unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("catalog.toml"), catalog).unwrap();
        fs::write(folder.path().join("routes.toml"), routes).unwrap();
        let (code, said) = run(folder.path(), &["check", "--no-secrets"]);
        assert_eq!(code, Some(0), "{page}: {said}");
        let other = said.matches("error[").count() + said.matches("warning[").count();
        assert!(other == 0 && said.contains("note[N501]"), "{page}: {said}");
    }
}
