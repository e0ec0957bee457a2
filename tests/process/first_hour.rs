//! What newcomers and operators stumbled over: missing files, help, pages of keys, log lines, backups.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::process::cli::Cli;
use crate::support::process::{Served, ask, client, farebox, funded_key, json as document};

/// Exit code and all output.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = farebox(folder, arguments).output().unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap(),
    )
}

/// The shipped files and a funded key's secret.
fn place() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), &["init"]).0, 0);
    let made = funded_key(folder.path(), "5");
    (folder, made["secret"].as_str().unwrap().to_owned())
}

#[test]
fn an_empty_folder_is_told_about_init() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["check", "serve", "models"] {
        let (code, said) = run(folder.path(), &[command]);
        assert_eq!(
            (code, said.matches("`farebox init`").count()),
            (78, 1),
            "{said}"
        );
        assert_eq!(said.matches("2 errors").count(), 1, "one summary: {said}");
    }
}

#[test]
fn init_writes_a_known_service_without_simulated_models() {
    for preset in farebox::config::presets() {
        let folder = tempfile::tempdir().unwrap();
        let (code, said) = run(folder.path(), &["init", "--provider", &preset.name]);
        assert!(code == 0 && said.contains(&preset.title), "{said}");
        let (code, said) = run(folder.path(), &["check", "--no-secrets"]);
        assert_eq!(code, 0, "{said}");
        assert!(
            said.contains("ok: 1 model, 1 provider\n") && !said.contains("warning"),
            "{}: {said}",
            preset.name
        );
        assert!(
            !said.contains("**"),
            "nothing in a starter file looks like a secret: {said}"
        );
        let catalog = fs::read_to_string(folder.path().join("catalog.toml")).unwrap();
        assert!(
            !catalog.contains("sim") && catalog.contains("fill in"),
            "{catalog}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = run(folder.path(), &["init", "--provider", "nobody"]);
    assert!(
        code == 2 && said.contains("openai") && said.contains("llama.cpp"),
        "{said}"
    );
}

#[tokio::test]
async fn the_demo_pays_on_each_path_and_prints_settings_for_both_kinds_of_clients() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = farebox(folder.path(), &["demo"]);
    let for_serve = ("FAREBOX_PUBLIC_URL", "https://api.example.com");
    let mut demo = command
        .env("FAREBOX_LISTEN", "127.0.0.1:0")
        .env(for_serve.0, for_serve.1)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(demo.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let mut said: Vec<String> = Vec::new();
    for line in lines {
        said.push(line);
        if said.last().unwrap().starts_with("Ctrl-c") {
            break;
        }
    }
    let moves: Vec<&String> = said.iter().filter(|line| line.contains(" → ")).collect();
    // One on each path, and one in a class.
    assert_eq!(moves.len(), 4, "{said:?}");
    let classed = |line: &String| line.ends_with("sim-codex  service_tier flex");
    assert!(said.iter().any(classed), "{said:?}");
    let exported: HashMap<&str, &str> = said
        .iter()
        .filter_map(|line| line.trim().strip_prefix("export ")?.split_once('='))
        .collect();
    let base = exported["OPENAI_BASE_URL"].strip_suffix("/v1").unwrap();
    assert_eq!(exported["ANTHROPIC_BASE_URL"], format!("{base}/native"));
    let secret = exported["OPENAI_API_KEY"];
    assert_eq!(exported["ANTHROPIC_AUTH_TOKEN"], secret);
    for model in ["OPUS", "SONNET", "HAIKU"] {
        assert_eq!(
            exported[&*format!("ANTHROPIC_DEFAULT_{model}_MODEL")],
            exported["ANTHROPIC_MODEL"]
        );
    }
    ask(&client(), base, exported["OPENAI_MODEL"], secret)
        .await
        .unwrap();
    let ended = Command::new("kill")
        .args(["-TERM", &demo.id().to_string()])
        .status()
        .unwrap();
    assert!(ended.success() && demo.wait().unwrap().success());
}

#[test]
fn help_and_usage_errors_are_about_the_command() {
    let folder = tempfile::tempdir().unwrap();
    for asked in [
        &["keys", "create", "-h"][..],
        &["keys", "create", "--help"],
        &["help", "keys", "create"],
    ] {
        let (_, help) = run(folder.path(), asked);
        assert!(
            help.ends_with("Process settings: farebox help settings\n"),
            "{help}"
        );
        assert!(
            help.contains("--label") && !help.contains("--tls-cert"),
            "{help}"
        );
    }
    let (_, settings) = run(folder.path(), &["help", "settings"]);
    assert!(
        settings.contains("--tls-cert") && !settings.contains("--label"),
        "{settings}"
    );
    let (_, help) = run(folder.path(), &["--help"]);
    assert!(
        help.starts_with("Farebox, a prepaid gateway to language models\n"),
        "{help}"
    );
    let own = ["--help", "--version", "--price-list"];
    let strangers = |word: &&str| word.starts_with("--") && !own.contains(word);
    let (_, plain) = run(folder.path(), &["models", "-h"]);
    let above: Vec<&str> = plain
        .split("Process settings")
        .next()
        .unwrap()
        .split_whitespace()
        .filter(strangers)
        .collect();
    assert!(
        above.is_empty(),
        "every setting of the process stands under its own heading: {above:?}"
    );
    for arguments in [
        &["--catalog", "x.toml", "keys", "create"][..],
        &["serve", "--wait"],
        &["keys", "create", "--labels", "x"],
    ] {
        let (code, said) = run(folder.path(), arguments);
        assert!(
            code == 2 && !said.contains("--catalog") && !said.contains("--ledger"),
            "{said}"
        );
    }
}

#[test]
fn a_key_has_a_page() {
    let cli = Cli::new();
    let made = cli.json(&[
        "keys",
        "create",
        "--new-ledger",
        "--label",
        "acme",
        "--balance",
        "5",
        "--reference",
        "inv-1",
        "--models",
        "sim-chat",
        "--json",
    ]);
    let id = made["id"].as_str().unwrap();
    cli.json(&[
        "keys",
        "set",
        id,
        "--rate",
        "3",
        "--expires",
        "2099-01-31",
        "--json",
    ]);
    let page = String::from_utf8(cli.run(&["keys", "show", id]).stdout).unwrap();
    for fact in [
        "label      acme",
        "available  5.00 USD",
        "models     sim-chat",
        "limits     3 requests/s",
        "expires    2099-02-01T00:00:00",
        "last use   never",
        "inv-1",
    ] {
        assert!(page.contains(fact), "{fact}: {page}");
    }
}

#[test]
fn unknown_models_are_warned_about_and_empty_labels_refused() {
    let cli = Cli::new();
    let typo = cli.run(&[
        "keys",
        "create",
        "--new-ledger",
        "--label",
        "acme",
        "--models",
        "sim-chta,sim-chat-latest,sim-text",
    ]);
    let said = String::from_utf8_lossy(&typo.stderr).into_owned();
    assert!(
        typo.status.success() && said.contains("`sim-chta`; did you mean `sim-chat`?"),
        "{said}"
    );
    assert!(
        said.contains("an alias") && said.matches("warning").count() == 2,
        "{said}"
    );
    assert_eq!(cli.exit(&["keys", "create", "--label", " "]), 2);
    assert_eq!(cli.exit(&["keys", "set", "k_0000000000", "--label", ""]), 2);
}

#[test]
fn a_backup_never_writes_over_a_file() {
    let (folder, _) = place();
    fs::create_dir(folder.path().join("copies")).unwrap();
    let arguments = ["ledger", "backup", "copies/ledger.db"];
    let (code, said) = run(folder.path(), &arguments);
    assert!(
        code == 0 && said.contains("1 customer, 1 key, 1 entry, 0 open holds"),
        "{said}"
    );
    let (code, said) = run(folder.path(), &arguments);
    assert!(
        code == 1 && said.contains("already exists: a backup never overwrites a file"),
        "{said}"
    );
    assert!(!said.contains("cannot"), "nothing has failed: {said}");
}

#[test]
fn setup_without_a_client_lists_them() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = run(folder.path(), &["setup"]);
    let named = said
        .lines()
        .any(|line| line.starts_with("claude-code ") && line.contains("Claude Code"));
    assert!(code == 0 && named, "{said}");
    let listed = document(folder.path(), &["setup"]);
    let ids: Vec<&str> = listed["clients"]
        .as_array()
        .unwrap()
        .iter()
        .map(|client| client["client"].as_str().unwrap())
        .collect();
    assert!(ids.len() >= 10 && ids.contains(&"codex"), "{ids:?}");
}

#[test]
fn setup_prefers_a_real_model_to_a_simulated_one() {
    let (folder, _) = place();
    let append = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, fs::read_to_string(&path).unwrap() + text).unwrap();
    };
    append(
        "catalog.toml",
        "\n[[model]]\nmodel = \"Real\"\nslug = \"real\"\nprovider = \"R\"\nbest_path = \"chat\"\nbest_environments = [\"x\"]\n\
         price = { input = \"1\", output = \"2\" }\ncapabilities = []\nlimits = { context = 1000, max_output = 1000 }\n",
    );
    append(
        "routes.toml",
        "\n[provider.real]\nkind = \"llama.cpp\"\n\n[[route]]\nslug = \"real\"\ntargets = [ { provider = \"real\", model = \"m\" } ]\n",
    );
    for client in ["curl", "codex", "claude-code"] {
        assert_eq!(
            document(folder.path(), &["setup", client])["model"],
            "real",
            "{client}"
        );
    }
    assert_eq!(
        document(folder.path(), &["setup", "curl", "--model", "sim-text"])["model"],
        "sim-text",
        "the customer may choose"
    );
}

#[tokio::test]
async fn setup_prints_the_address_that_is_served() {
    let (folder, _) = place();
    let served = Served::start(folder.path(), &[]);
    let admin = served.admin.strip_prefix("http://").unwrap();
    let settings = document(folder.path(), &["setup", "curl", "--admin-listen", admin]);
    assert_eq!(settings["base_url"], format!("{}/v1", served.base));
    let keys = document(folder.path(), &["keys", "list"]);
    let link = document(
        folder.path(),
        &[
            "keys",
            "link",
            keys["keys"][0]["id"].as_str().unwrap(),
            "--admin-listen",
            admin,
        ],
    );
    assert!(
        link["link"]
            .as_str()
            .unwrap()
            .starts_with(&format!("{}/dashboard/", served.base)),
        "{link}"
    );
    let nobody = document(
        folder.path(),
        &[
            "setup",
            "curl",
            "--admin-listen",
            "127.0.0.1:1",
            "--tls-cert",
            "a",
            "--tls-key",
            "b",
        ],
    );
    assert_eq!(nobody["base_url"], "https://127.0.0.1:8080/v1");
    let (code, said) = run(folder.path(), &["setup", "curl", "--model", "sim-chta"]);
    assert!(
        code == 0 && said.contains("does not publish `sim-chta`; did you mean `sim-chat`?"),
        "{said}"
    );
}

#[tokio::test]
async fn the_log_names_changed_prices_and_says_standing_warnings_once() {
    let (folder, secret) = place();
    let catalog = folder.path().join("catalog.toml");
    let routes = folder.path().join("routes.toml");
    let lonely =
        "\n[[route]]\nslug = \"lonely\"\ntargets = [ { provider = \"sim\", model = \"sim\" } ]\n";
    fs::write(&routes, fs::read_to_string(&routes).unwrap() + lonely).unwrap();
    let mut served = Served::start_with(
        folder.path(),
        &["--trusted-proxy", "127.0.0.1"],
        &[("FAREBOX_LOG_FORMAT", "json")],
    );
    let good = fs::read_to_string(&catalog).unwrap();
    fs::write(&catalog, good.replacen("\"1.25\"", "\"1.50\"", 1)).unwrap();
    served.wait_for_log("price of sim-chat: ");
    fs::write(&catalog, good.replacen("capabilities ", "capabilites ", 1)).unwrap();
    served.wait_for_log("stays in force");
    ask(&client(), &served.base, "sim-chta", &secret)
        .await
        .unwrap_err();
    ask(&client(), &served.base, "sim-chat-latest", &secret)
        .await
        .unwrap();
    served.signal("TERM");
    served.ended();
    let log = served.log();
    assert!(log.contains("serving 4 models at "), "{log}");
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let find = |text: &str| {
        lines
            .iter()
            .filter(|line| {
                line["message"]
                    .as_str()
                    .is_some_and(|said| said.contains(text))
            })
            .collect::<Vec<_>>()
    };
    let change = find("new configuration in force")[0]["changes"]
        .as_str()
        .unwrap();
    let (old, new) = change
        .split_once("price of sim-chat: ")
        .unwrap()
        .1
        .split_once(" → ")
        .unwrap();
    assert!(old.contains("1.25") && new.contains("1.50"), "{change}");
    assert_eq!(find("no model is published as `lonely`").len(), 1, "{log}");
    let finding = find("unknown field `capabilites`")[0];
    assert_eq!(
        (finding["code"].as_str(), finding["line"].as_u64()),
        (Some("E102"), Some(16)),
        "{finding}"
    );
    assert!(finding["file"].as_str().unwrap().ends_with("catalog.toml"));
    assert_eq!(
        find("set --public-url").len(),
        1,
        "a proxy without a public URL: {log}"
    );
    let asked: Vec<_> = find("request")
        .iter()
        .filter_map(|line| line["asked"].as_str())
        .map(str::to_owned)
        .collect();
    assert_eq!(asked, ["sim-chta", "sim-chat-latest"]);
}
