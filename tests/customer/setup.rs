//! `farebox setup` and the documentation print the contents of the one table, and what they print works.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use farebox::setup;
use farebox_ledger::SecretHash;

use crate::support::skip::installed;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{CATALOG, Gateway, routes, talking};

use super::seller::SHOP;
use super::sessions::Visitor;

fn farebox(arguments: &[&str]) -> Output {
    let root = crate::support::HOME;
    let mut command = Command::new(env!("CARGO_BIN_EXE_farebox"));
    command
        .env_clear()
        .env("FAREBOX_CATALOG", format!("{root}/catalog.toml"))
        .env("FAREBOX_ROUTES", format!("{root}/routes.toml"));
    command.args(arguments).output().unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = farebox(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_documentation_has_a_line_for_each_program() {
    let page = std::fs::read_to_string(
        std::path::Path::new(crate::support::HOME).join("docs/customers.md"),
    )
    .unwrap();
    for client in setup::clients() {
        let figures = [
            &client.empty,
            &client.empty_402,
            &client.busy,
            &client.broken,
        ]
        .map(|figure| {
            figure
                .as_deref()
                .unwrap_or("–")
                .replace(" requests", "")
                .replace(" request", "")
        });
        let row = format!(
            "| {} | `{{base}}/{}` | {} | {} |",
            client.title,
            client.base,
            client.family,
            figures.join(" | ")
        );
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn every_client_gets_its_base_url_once() {
    for client in setup::clients() {
        for url in [
            "https://api.example.com",
            "https://api.example.com/",
            "https://api.example.com/v1",
        ] {
            let text = printed(&["setup", &client.id, "--base-url", url, "--key", "sk-fb-x"]);
            let base = format!("https://api.example.com/{}\"", client.base);
            assert!(
                text.contains(&base)
                    || text.contains(&format!("https://api.example.com/{}/", client.base)),
                "{text}"
            );
            assert!(
                !text.contains("/v1/v1")
                    && !text.contains("<BASE_URL>")
                    && !text.contains("<MODEL>"),
                "{text}"
            );
            assert!(
                text.contains("sk-fb-x") && !text.contains("<API_KEY>"),
                "{text}"
            );
        }
    }
    let native = printed(&["setup", "claude-code"]);
    assert!(
        native.contains("http://127.0.0.1:8080/native") && native.contains("claude-sim-sonnet"),
        "{native}"
    );
    assert!(native.contains("<API_KEY>"));
    for base in ["https://p.example", "https://p.example/v1/"] {
        assert!(
            printed(&["--public-url", base, "setup", "codex"])
                .contains("base_url = \"https://p.example/v1\"")
        );
    }
    for arguments in [
        ["--public-url", "p.example", "setup", "codex"],
        ["setup", "codex", "--base-url", "p.example"],
    ] {
        let refused = String::from_utf8(farebox(&arguments).stderr).unwrap();
        assert!(
            refused.contains("write the whole URL, as in https://"),
            "{refused}"
        );
    }
    assert!(
        printed(&["setup", "codex"]).contains("model = \"sim-codex\""),
        "the model is one that is best on the client's path"
    );
    let document: serde_json::Value =
        serde_json::from_str(&printed(&["setup", "codex", "--model", "m", "--json"])).unwrap();
    assert_eq!(document["blocks"][0]["place"], "~/.codex/config.toml");
}

/// A line with a size is left out where nobody knows it, and what is left can still be read by the program.
#[test]
fn sizes_stand_where_the_catalog_knows_them() {
    for (slug, known) in [("sim-codex", true), ("m", false)] {
        for client in setup::clients() {
            let printed = printed(&["setup", &client.id, "--model", slug, "--json"]);
            let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
            let mut said = String::new();
            for (block, template) in document["blocks"]
                .as_array()
                .unwrap()
                .iter()
                .zip(&client.block)
            {
                let text = block["text"].as_str().unwrap();
                match template.language.as_str() {
                    "json" => drop(serde_json::from_str::<serde_json::Value>(text).unwrap()),
                    "toml" => drop(toml::from_str::<toml::Table>(text).unwrap()),
                    _ => {}
                }
                said.push_str(text);
            }
            let sized = client
                .block
                .iter()
                .any(|block| block.text.contains("<CONTEXT>"));
            assert!(
                !said.contains("<CONTEXT>") && !said.contains("<MAX_OUTPUT>"),
                "{said}"
            );
            assert_eq!(said.contains("200000"), sized && known, "{said}");
        }
    }
}

/// Wherever settings are, somebody will ask what to do when the money is used up.
#[tokio::test]
async fn the_sellers_words_stand_with_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = folder.path().join("catalog.toml");
    let shipped = include_str!("../../catalog.toml");
    std::fs::write(&catalog, format!("{SHOP}{shipped}")).unwrap();
    let of = ["--catalog", catalog.to_str().unwrap(), "setup", "codex"];
    let output = farebox(&of);
    let told = String::from_utf8(output.stderr).unwrap();
    let words = "top up at https://shop.example/top-up?from=page&to=us, or ask Key <Corner> & Sons: help@shop.example";
    assert!(
        told.contains(&format!("When the money is used up: {words}")),
        "{told}"
    );
    let document = printed(&[&of[..], &["--json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["shop"]["contact"], "help@shop.example");
    let silent = farebox(&["setup", "codex"]);
    assert!(
        !String::from_utf8(silent.stderr)
            .unwrap()
            .contains("used up")
    );

    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let catalog = format!("{SHOP}{CATALOG}");
    let gateway = Gateway::start(&catalog, &routes(&upstream.base_url())).await;
    let (empty, full) = (gateway.owner("0").await, gateway.owner("1.00").await);
    let visitor = Visitor::signed_in(&gateway, &empty).await;
    let page = visitor.get("/setup").await.text;
    let mine = gateway.account(&empty).await.customer.id;
    let pay = format!("https://shop.example/top-up?from=page&amp;to=us&amp;customer={mine}");
    for part in ["Nothing is available", &pay, "help@shop.example"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let tested = visitor.post("test", &[("key", "")], None).await.text;
    assert!(
        tested.contains(
            "then retry. Top up at https://shop.example/top-up?from=page&amp;to=us, or ask Key"
        ),
        "{tested}"
    );
    let visitor = Visitor::signed_in(&gateway, &full).await;
    let page = visitor.get("/setup").await.text;
    assert!(!page.contains("Nothing is available"), "{page}");
    // The page knows the sizes of the model that it names.
    assert!(
        page.contains("model_context_window = ") && !page.contains("CONTEXT&gt;"),
        "{page}"
    );
}

#[test]
fn what_a_shell_would_run_is_refused() {
    for bad in [
        ["--key", "$(touch x)"],
        ["--model", "a\"b"],
        ["--base-url", "http://a b"],
        ["--key", ""],
        ["--model", "`id`"],
    ] {
        let output = farebox(&["setup", "curl", bad[0], bad[1]]);
        assert_eq!(output.status.code(), Some(2), "{bad:?}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(farebox(&["setup", "emacs"]).status.code(), Some(2));
}

#[tokio::test]
async fn the_shell_setting_works_as_printed() {
    if !installed("curl", "the shell setting as printed") {
        return;
    }
    let upstream = ScriptedUpstream::start(talking("Hello from the table")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("1.00").await;
    let text = printed(&[
        "setup",
        "curl",
        "--base-url",
        &gateway.base,
        "--key",
        &key.secret,
        "--model",
        "test-model",
    ]);
    let run = tokio::task::spawn_blocking(move || {
        Command::new("sh").arg("-c").arg(text).output().unwrap()
    })
    .await
    .unwrap();
    assert!(run.status.success(), "{run:?}");
    assert!(
        String::from_utf8_lossy(&run.stdout).contains("Hello from the table"),
        "{run:?}"
    );
    assert_eq!(gateway.charges(&key).await.len(), 1);
}

#[tokio::test]
async fn a_link_of_the_command_signs_in() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let gateway = Gateway::before(&upstream).await;
    let key = gateway.key("1.00").await;
    let (ledger, id) = (gateway.ledger_path(), key.id.to_string());
    let arguments = [
        "--ledger",
        ledger.to_str().unwrap(),
        "--public-url",
        "https://p.example/",
        "keys",
        "link",
        &id,
    ];
    let link = printed(&arguments);
    let token = link
        .trim()
        .strip_prefix("https://p.example/dashboard/enter#")
        .unwrap()
        .to_owned();
    assert_eq!(token.len(), 64);
    let first = gateway
        .ledger
        .consume_link(SecretHash::of(&token), farebox::clock::now())
        .await
        .unwrap();
    let second = gateway
        .ledger
        .consume_link(SecretHash::of(&token), farebox::clock::now())
        .await
        .unwrap();
    assert_eq!((first, second), (Some(key.id), None));
    let mut unknown = arguments;
    unknown[6] = "k_0000000000";
    assert_eq!(farebox(&unknown).status.code(), Some(1));
}

/// Other users of the machine can read command lines, so the key need not be on one.
#[test]
fn the_key_comes_from_a_prompt_or_a_file_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "sk-fb-from-a-file\n").unwrap();
    assert!(
        printed(&["setup", "curl", "--key", &format!("@{}", file.display())])
            .contains("sk-fb-from-a-file")
    );

    let mut command = Command::new(env!("CARGO_BIN_EXE_farebox"));
    let root = crate::support::HOME;
    command
        .env_clear()
        .current_dir(root)
        .args(["setup", "curl", "--key", "-"]);
    let mut asked = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    asked
        .stdin
        .take()
        .unwrap()
        .write_all(b"sk-fb-from-a-prompt\n")
        .unwrap();
    let output = asked.wait_with_output().unwrap();
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("Paste the key"),
        "it says what it waits for"
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("sk-fb-from-a-prompt"));

    for (given, status) in [("@/nowhere/key", 1), ("sk-fb-$(reboot)", 2)] {
        let refused = farebox(&["setup", "curl", "--key", given]);
        assert_eq!(refused.status.code(), Some(status), "{given}");
        assert!(
            refused.stdout.is_empty()
                && !String::from_utf8_lossy(&refused.stderr).contains("reboot"),
            "{given}"
        );
    }
}
