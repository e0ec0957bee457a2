//! The commands as scripts use them: the real binary, its documents, its exit codes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use farebox_protocol::Family;
use serde_json::Value;
use tempfile::TempDir;

/// The real binary with a ledger of its own.
pub(crate) struct Cli {
    pub(crate) folder: TempDir,
    ledger: PathBuf,
}

/// Who these commands act as.
pub(crate) fn actor() -> String {
    farebox_ledger::owner::actor(Some("tests".to_owned()))
}

impl Cli {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            ledger: folder.path().join("farebox.db"),
            folder,
        }
    }

    /// The same commands on a ledger that is there already.
    pub(crate) fn on(ledger: &Path) -> Self {
        Self {
            ledger: ledger.to_owned(),
            ..Self::new()
        }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let root = crate::support::HOME;
        let mut command = Command::new(env!("CARGO_BIN_EXE_farebox"));
        command
            .env_clear()
            .env("FAREBOX_LEDGER", &self.ledger)
            .env("FAREBOX_OPERATOR", "tests");
        command
            .env("FAREBOX_CATALOG", format!("{root}/catalog.toml"))
            .env("FAREBOX_ROUTES", format!("{root}/routes.toml"));
        command.args(arguments).output().unwrap()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The document of a command that may refuse.
    pub(crate) fn json_whatever(&self, arguments: &[&str]) -> Value {
        serde_json::from_slice(&self.run(arguments).stdout).unwrap()
    }

    pub(crate) fn exit(&self, arguments: &[&str]) -> i32 {
        self.run(arguments).status.code().unwrap()
    }
}

fn members(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn a_key_is_created_funded_and_shown_with_stable_names() {
    let cli = Cli::new();
    let made = cli.json(&[
        "--json",
        "keys",
        "create",
        "--new-ledger",
        "--label",
        "acme",
        "--balance",
        "5",
        "--reference",
        "inv-1",
    ]);
    assert_eq!(
        members(&made)[..7],
        [
            "id",
            "secret",
            "label",
            "status",
            "balance",
            "held",
            "available"
        ]
    );
    assert!(made["secret"].as_str().unwrap().starts_with("sk-fb-"));
    assert_eq!(
        (made["balance"].as_str(), made["status"].as_str()),
        (Some("5.00"), Some("active"))
    );
    let id = made["id"].as_str().unwrap();
    let shown = cli.json(&["keys", "show", id, "--format", "json"]);
    assert!(shown.get("secret").is_none() && shown["label"] == "acme");
    let posted = cli.json(&[
        "keys",
        "top-up",
        id,
        "2.50",
        "--reference",
        "inv-2",
        "--json",
    ]);
    assert_eq!(
        (
            posted["entry"]["kind"].as_str(),
            posted["customer"]["balance"].as_str()
        ),
        (Some("top_up"), Some("7.50"))
    );
    assert_eq!(
        cli.json(&["keys", "list", "--json"])["keys"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let entries = cli.json(&["ledger", "entries", "--json", "--key", id]);
    let first = &entries["entries"][0];
    let stable = [
        "seq",
        "key",
        "kind",
        "amount",
        "balance_after",
        "request_id",
        "slug",
        "usage",
        "lines",
        "hold",
        "loss",
        "evidence",
        "reference",
        "reason",
        "actor",
        "at",
        "customer",
    ];
    assert_eq!(members(first), stable);
    assert_eq!(
        (first["amount"].as_str(), first["actor"].as_str()),
        (Some("5.00"), Some(&*actor()))
    );
    assert_eq!(
        cli.json(&["ledger", "verify", "--json"])["faults"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn the_same_reference_is_applied_once_and_a_different_fact_is_a_conflict() {
    let cli = Cli::new();
    let made = cli.json(&[
        "--json",
        "keys",
        "create",
        "--new-ledger",
        "--label",
        "acme",
    ]);
    let id = made["id"].as_str().unwrap();
    let first = cli.json(&["keys", "top-up", id, "10", "--reference", "inv-1", "--json"]);
    let again = cli.json(&["keys", "top-up", id, "10", "--reference", "inv-1", "--json"]);
    assert_eq!(first["entry"], again["entry"]);
    assert_eq!(again["customer"]["balance"], "10.00");
    let conflict = cli.run(&["keys", "top-up", id, "11", "--reference", "inv-1"]);
    assert_eq!(conflict.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&conflict.stderr).contains(&id.replace("k_", "c_")),
        "the conflict names the customer"
    );
    let create = cli.run(&[
        "keys",
        "create",
        "--label",
        "other",
        "--balance",
        "1",
        "--reference",
        "inv-1",
    ]);
    assert_eq!(create.status.code(), Some(1));
    assert_eq!(
        cli.json(&["keys", "list", "--json"])["keys"]
            .as_array()
            .unwrap()
            .len(),
        1,
        "nothing was created"
    );
}

#[test]
fn exit_codes_and_texts_say_what_to_type_instead() {
    let cli = Cli::new();
    assert_eq!(cli.exit(&["check"]), 0);
    assert_eq!(cli.exit(&["keys", "top-up"]), 2);
    assert_eq!(cli.exit(&["keys", "shwo", "k_0000000000"]), 2);
    let ambiguous = cli.run(&[
        "keys",
        "top-up",
        "k_0000000000",
        "1,000",
        "--reference",
        "x",
    ]);
    assert_eq!(ambiguous.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ambiguous.stderr).contains("type 1000"));
    let missing = cli.run(&["keys", "list"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        !cli.folder.path().join("farebox.db").exists(),
        "reading creates nothing"
    );
    assert_eq!(cli.exit(&["--ledger", "postgres://db", "keys", "list"]), 2);
    let broken = cli.folder.path().join("broken.toml");
    std::fs::write(&broken, "[[model]]\nslug = 7\n").unwrap();
    assert_eq!(
        cli.exit(&["check", "--catalog", broken.to_str().unwrap()]),
        78
    );
    assert_eq!(
        cli.exit(&["serve", "--catalog", broken.to_str().unwrap()]),
        78
    );
}

#[test]
fn a_pasted_secret_names_its_key_and_is_never_printed_or_stored() {
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
        "one",
        "--json",
    ]);
    let (id, secret) = (
        made["id"].as_str().unwrap(),
        made["secret"].as_str().unwrap(),
    );
    let said = |arguments: &[&str]| {
        let output = cli.run(arguments);
        (
            output.status.code().unwrap(),
            String::from_utf8([output.stdout, output.stderr].concat()).unwrap(),
        )
    };
    let cut = &secret[..40];
    for pasted in [secret, cut] {
        let (code, page) = said(&["keys", "show", pasted]);
        assert!(
            code == 0 && page.contains(id) && !page.contains(cut),
            "{page}"
        );
    }
    let texts: [&[&str]; 4] = [
        &["keys", "create", "--label", secret],
        &["keys", "set", id, "--label", secret],
        &["keys", "top-up", id, "1", "--reference", secret],
        &[
            "keys",
            "adjust",
            id,
            "1",
            "--reference",
            "two",
            "--reason",
            secret,
        ],
    ];
    for arguments in texts {
        let (code, refusal) = said(arguments);
        assert!(
            code == 1
                && refusal.contains("must not contain a key's secret")
                && !refusal.contains(cut),
            "{refusal}"
        );
    }
    assert_eq!(
        cli.json(&["ledger", "entries", "--json"])["entries"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

/// An operator who serves a model to other families sees before the first request what those lose.
#[test]
fn a_check_says_what_each_translation_leaves_out_and_refuses() {
    let cli = Cli::new();
    let file = |name: &str| cli.folder.path().join(name).to_str().unwrap().to_owned();
    let (catalog, routes) = (file("catalog.toml"), file("routes.toml"));
    let write = |best: Family, speaks: &str| {
        std::fs::write(&catalog, crate::support::catalog(best)).unwrap();
        let provider =
            format!("[provider.one]\nbase_url = \"http://127.0.0.1:9\"\nspeaks = [{speaks}]\n");
        let route = |slug: &str| {
            format!(
                "[[route]]\nslug = \"{slug}\"\ntargets = [ {{ provider = \"one\", model = \"m\" }} ]\n"
            )
        };
        std::fs::write(
            &routes,
            format!("{provider}{}{}", route("test-model"), route("test-blind")),
        )
        .unwrap();
        let output = cli.run(&[
            "check",
            "--verbose",
            "--catalog",
            &catalog,
            "--routes",
            &routes,
        ]);
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success(),
            "{shown}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        shown
    };
    let shown = write(Family::Messages, "\"messages\"");
    let line = |begins: &str| {
        shown
            .lines()
            .find(|line| line.starts_with(begins))
            .unwrap_or_else(|| panic!("{begins}: {shown}"))
    };
    line(
        "test-model: chat requests are translated to messages, responses requests are translated to messages",
    );
    let chat = line("translated from chat to messages: leaves out ");
    assert!(
        chat.contains("frequency_penalty, ") && chat.contains("; refuses n, logprobs, "),
        "{chat}"
    );
    assert!(
        !chat.contains("temperature"),
        "what is carried is not lost: {chat}"
    );
    let responses = line("translated from responses to messages: leaves out truncation, ");
    assert!(
        responses.contains("; refuses ")
            && responses.contains("previous_response_id, conversation"),
        "{responses}"
    );
    assert!(
        !shown.contains("from messages to "),
        "no caller of messages needs a translation: {shown}"
    );
    assert!(
        write(Family::Responses, "\"responses\"")
            .contains("from messages to responses: leaves out ")
    );
    assert!(!write(Family::Chat, "\"chat\", \"responses\", \"messages\"").contains("leaves out"));
}

#[test]
fn the_model_table_has_the_canonical_columns() {
    let cli = Cli::new();
    let models = cli.json(&["models", "--json"]);
    let columns = [
        "model",
        "customer_slug",
        "provider",
        "best_path",
        "best_environments",
        "service_price",
    ];
    assert_eq!(members(&models["models"][0]), columns);
    let markdown = String::from_utf8(cli.run(&["models", "--format", "markdown"]).stdout).unwrap();
    assert!(markdown.starts_with(
        "| model | customer slug | provider | best path | best environments | service price |"
    ));
}

#[test]
fn a_second_gateway_on_one_ledger_names_the_first() {
    let cli = Cli::new();
    cli.json(&["keys", "create", "--new-ledger", "--label", "t", "--json"]);
    let lock = farebox_ledger::sqlite::ServeLock::acquire(
        cli.folder.path().join("farebox.db"),
        std::time::Duration::ZERO,
    )
    .unwrap();
    let second = cli.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.status.code(), Some(1));
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(text.contains(&std::process::id().to_string()), "{text}");
    drop(lock);
}
