//! What newcomers type wrong or find broken: every refusal names the mistake and what to do instead, and nothing is changed.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use unicode_width::UnicodeWidthStr;

use crate::support::process::{farebox, json};

/// Exit code and everything said, with some environment variables.
fn run_with(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
    let output = farebox(folder, arguments)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap(),
    )
}

fn run(folder: &Path, arguments: &[&str]) -> (i32, String) {
    run_with(folder, arguments, &[])
}

/// The shipped files and a ledger with a key.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), &["init"]).0, 0);
    assert_eq!(
        run(
            folder.path(),
            &["keys", "create", "--new-ledger", "--label", "t"]
        )
        .0,
        0
    );
    folder
}

#[test]
fn the_demo_refuses_settings_that_it_would_ignore() {
    let folder = tempfile::tempdir().unwrap();
    let unused: [&[&str]; 6] = [
        &["demo", "--ledger", "mine.db"],
        &["--catalog", "mine.toml", "demo", "--routes", "routes.toml"],
        &["demo", "--json"],
        &["demo", "--format", "csv"],
        &["--admin-listen", "127.0.0.1:1", "demo"],
        &["demo", "--public-url", "https://api.example.com"],
    ];
    for arguments in unused {
        let (code, said) = run(folder.path(), arguments);
        for flag in arguments.iter().filter(|word| word.starts_with("--")) {
            assert!(said.contains(flag), "{flag}: {said}");
        }
        assert!(
            code == 2 && said.contains("`farebox serve`"),
            "{arguments:?}: {said}"
        );
    }
    // Settings of a real gateway may be in the environment, and the port in use is the only mistake here.
    let meant_for_serve = [
        ("FAREBOX_LEDGER", "mine.db"),
        ("FAREBOX_CATALOG", "nowhere.toml"),
        ("FAREBOX_ADMIN_LISTEN", "127.0.0.1:1"),
    ];
    let (code, said) = run_with(
        folder.path(),
        &["demo", "--listen", "192.0.2.1:1"],
        &meant_for_serve,
    );
    assert!(
        code == 1 && !said.contains("the demo does not use"),
        "{said}"
    );
    assert!(!folder.path().join("mine.db").exists());
}

/// A script must never read the text of one format as another.
#[test]
fn a_format_that_a_command_does_not_print_is_refused() {
    let folder = place();
    let markdown = "--format table or --format json or --format csv";
    for (arguments, advice) in [
        (
            &["ledger", "verify", "--format", "csv"][..],
            "does not print csv; write --format table or --format json",
        ),
        (
            &["ledger", "backup", "copy.db", "--format", "csv"],
            "does not print csv",
        ),
        (&["check", "--format", "csv"], "does not print csv"),
        (&["setup", "curl", "--format", "csv"], "does not print csv"),
        (&["keys", "list", "--format", "markdown"], markdown),
        (&["ledger", "entries", "--format", "markdown"], markdown),
        (&["setup", "--format", "markdown"], markdown),
        (
            &[
                "init",
                "--json",
                "--catalog",
                "c.toml",
                "--routes",
                "r.toml",
            ],
            "does not print json; leave out --format and --json",
        ),
        (&["serve", "--json"], "does not print json; leave out"),
    ] {
        let (code, said) = run(folder.path(), arguments);
        assert!(code == 2 && said.contains(advice), "{arguments:?}: {said}");
    }
    assert!(!folder.path().join("copy.db").exists() && !folder.path().join("c.toml").exists());
    let (code, made) = run(
        folder.path(),
        &["keys", "create", "--label", "a, b", "--format", "csv"],
    );
    let lines: Vec<&str> = made.lines().collect();
    assert_eq!(
        (code, lines.len(), lines[0]),
        (0, 2, "key,label,balance,held,available,status,secret"),
        "{made}"
    );
    assert!(
        lines[1].contains(",\"a, b\",0.00,0.00,0.00,active,sk-"),
        "{made}"
    );
}

#[test]
fn the_models_table_lines_up_as_a_terminal_shows_it() {
    let folder = place();
    let catalog = folder.path().join("catalog.toml");
    let shipped = fs::read_to_string(&catalog).unwrap();
    let name = shipped
        .lines()
        .find(|line| line.starts_with("model "))
        .unwrap();
    fs::write(&catalog, shipped.replacen(name, "model = \"漢字の 🦀\"", 1)).unwrap();
    let (code, shown) = run(folder.path(), &["models"]);
    let before = |line: &str| line.split_once(" sim-").map(|(before, _)| before.width());
    let widths: Vec<usize> = shown.lines().filter_map(before).collect();
    assert!(
        code == 0 && widths.len() == 3 && widths.iter().all(|width| *width == widths[0]),
        "{shown}"
    );
}

#[test]
fn amounts_that_pay_nothing_are_usage_errors() {
    let folder = tempfile::tempdir().unwrap();
    let commands: [&[&str]; 4] = [
        &["demo", "--balance"],
        &[
            "keys",
            "create",
            "--label",
            "x",
            "--reference",
            "r",
            "--balance",
        ],
        &["keys", "top-up", "--reference", "r", "k_0000000000"],
        &[
            "keys",
            "refund",
            "--reason",
            "x",
            "--reference",
            "r",
            "req_0000000000000000000000000a",
        ],
    ];
    for (amount, advice) in [
        ("0", "more than zero"),
        ("0.00", "more than zero"),
        ("-1", "without a sign"),
        ("", "like 12.50"),
    ] {
        for command in commands {
            let (code, said) = run(folder.path(), &[command, &[amount]].concat());
            assert!(
                code == 2 && said.contains(advice),
                "{command:?} {amount:?}: {said}"
            );
        }
    }
}

#[test]
fn a_refused_value_of_the_environment_is_named_by_its_variable() {
    let folder = tempfile::tempdir().unwrap();
    for (variable, value) in [
        ("FAREBOX_LISTEN", "8080"),
        ("FAREBOX_LEDGER", ""),
        ("FAREBOX_CATALOG", ""),
    ] {
        let (code, said) = run_with(folder.path(), &["check"], &[(variable, value)]);
        assert!(
            code == 2 && said.contains(&format!("'{variable}'")),
            "{said}"
        );
    }
    let (code, said) = run_with(
        folder.path(),
        &["check", "--listen", "80"],
        &[("FAREBOX_LISTEN", "127.0.0.1:80")],
    );
    assert!(code == 2 && said.contains("'--listen <ADDRESS>'"), "{said}");
}

#[test]
fn the_password_of_a_database_is_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    for address in [
        "postgres://u:secret123@h",
        "mysql://u:secret123@h/db",
        "postgres://u:secret123@127.0.0.1:1/db",
    ] {
        for arguments in [
            &["keys", "list"][..],
            &["serve", "--help"],
            &["keys", "list", "--ledger", address],
        ] {
            let (_, said) = run_with(folder.path(), arguments, &[("FAREBOX_LEDGER", address)]);
            assert!(!said.contains("secret123"), "{arguments:?}: {said}");
        }
        let (code, said) = run(folder.path(), &["ledger", "copy", "--to", address]);
        assert!(code != 0 && !said.contains("secret123"), "{said}");
    }
}

#[test]
fn what_is_repeated_of_a_mistake_shows_no_secret_and_steers_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "sk-farebox-abcdefgh-0123456789abcdefghijklmnopqrstuvwxyz";
    let (flag, pair) = (format!("--{secret}"), format!("--key={secret}"));
    for arguments in [
        &["keys", "list", secret][..],
        &["keys", secret],
        &[secret],
        &["--durability", secret, "keys", "list"],
        &["keys", "rotate", "k", "--overlap", secret],
        &["keys", "top-up", "k", secret, "--reference", "r"],
        &["keys", "list", &flag],
        &["keys", "list", &pair],
    ] {
        let (code, said) = run(folder.path(), arguments);
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert!(!said.contains("0123456789abc"), "{arguments:?}: {said}");
    }
    for odd in ["\u{1b}[2Jx", "--\u{7}\u{9b}x", "a\nb"] {
        let (code, said) = run(folder.path(), &["keys", odd]);
        let steers = |letter: char| letter.is_control() && letter != '\n';
        assert!(code == 2 && !said.contains(steers), "{said:?}");
        assert!(!said.contains("a\nb"), "{said:?}");
    }
}

#[test]
fn init_names_every_file_that_is_there() {
    let folder = place();
    let (code, said) = run(folder.path(), &["init"]);
    assert!(
        code == 1
            && said.contains("routes.toml and catalog.toml already exist and were not overwritten"),
        "{said}"
    );
    let (code, said) = run(
        folder.path(),
        &["init", "--catalog", "one.toml", "--routes", "one.toml"],
    );
    assert!(
        code == 2 && said.contains("the same file") && !folder.path().join("one.toml").exists(),
        "{said}"
    );
}

#[test]
fn a_backup_makes_no_folder() {
    let folder = place();
    let (code, said) = run(folder.path(), &["ledger", "backup", "typo/today/copy.db"]);
    assert!(
        code == 1 && said.contains("typo/today is not a folder that exists: create it"),
        "{said}"
    );
    assert!(!folder.path().join("typo").exists());
    fs::create_dir(folder.path().join("copies")).unwrap();
    let (code, said) = run(folder.path(), &["ledger", "backup", "copies"]);
    assert!(
        code == 1 && said.contains("copies is a folder: add the name"),
        "{said}"
    );
}

#[test]
fn all_models_are_all_wherever_they_are_named() {
    let folder = place();
    let made = json(
        folder.path(),
        &["keys", "create", "--label", "all", "--models", "all"],
    );
    assert!(made["models"].is_null(), "{made}");
    let id = made["id"].as_str().unwrap();
    let twice = json(
        folder.path(),
        &["keys", "set", id, "--models", "sim-text,sim-chat,sim-text"],
    );
    assert_eq!(twice["models"], serde_json::json!(["sim-text", "sim-chat"]));
    for command in [
        &["keys", "set", id][..],
        &["keys", "create", "--label", "x"],
    ] {
        let (code, said) = run(
            folder.path(),
            &[command, &["--models", "all,sim-chat"]].concat(),
        );
        assert!(code == 2 && said.contains("`all` alone"), "{said}");
    }
}

#[test]
fn arguments_that_cannot_be_meant_are_refused() {
    let folder = place();
    let refused: [(&[&str], i32, &str); 9] = [
        (&["keys", "create", "--label", "two\nlines"], 2, "one line"),
        (
            &["keys", "set", "k_0000000000", "--label", "a\u{1b}[31m"],
            2,
            "one line",
        ),
        (
            &[
                "keys",
                "adjust",
                "k_0000000000",
                "1",
                "--reason",
                "a\nb",
                "--reference",
                "r",
            ],
            2,
            "one line",
        ),
        (
            &["keys", "set", "k_0000000000", "--rate", "-1"],
            2,
            "a whole number above 0",
        ),
        (
            &["ledger", "entries", "--limit", "-1"],
            2,
            "a whole number, like 100",
        ),
        (
            &["ledger", "entries", "--key", "k_0000000000"],
            1,
            "there is no key k_0000000000",
        ),
        (
            &[
                "ledger",
                "entries",
                "--since",
                "2026-12-01",
                "--until",
                "2026-01-01",
            ],
            2,
            "--since is not before --until",
        ),
        (
            &["setup", "curl", "--key", "@nowhere"],
            1,
            "--key @nowhere: No such file",
        ),
        (&["ledger", "backup"], 2, "Usage: farebox ledger backup"),
    ];
    for (arguments, exit, words) in refused {
        let (code, said) = run(folder.path(), arguments);
        assert!(
            code == exit && said.contains(words),
            "{arguments:?}: {code} {said}"
        );
    }
    let (code, said) = run(folder.path(), &["keys", "list", "--label", "nobody"]);
    assert!(
        code == 0 && said.contains("No label contains \"nobody\"") && !said.contains("no keys yet"),
        "{said}"
    );
}

#[test]
fn a_result_that_cannot_be_printed_is_a_failure() {
    let folder = place();
    let code = |stdout: fs::File| {
        farebox(folder.path(), &["keys", "list", "--json"])
            .stdout(stdout)
            .output()
            .unwrap()
    };
    let full = code(
        fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap(),
    );
    let said = String::from_utf8(full.stderr).unwrap();
    assert!(
        full.status.code() == Some(1) && said.contains("could not be printed: No space left"),
        "{said}"
    );
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let left = farebox(folder.path(), &["keys", "list"])
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!(
        (left.status.code(), left.stderr.as_slice()),
        (Some(0), [].as_slice()),
        "whoever reads may leave"
    );
}

#[test]
fn a_report_in_a_file_has_no_colours() {
    let folder = tempfile::tempdir().unwrap();
    // The controlling end of a pseudoterminal is a terminal, too.
    let terminal = || {
        fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/ptmx")
            .unwrap()
    };
    let output = farebox(folder.path(), &["check"])
        .stderr(terminal())
        .output()
        .unwrap();
    assert!(
        output.stdout.starts_with(b"error[E106]"),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let output = farebox(folder.path(), &["models"])
        .stdout(terminal())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("\nerror[E106]") && !said.contains('\u{1b}'),
        "{said}"
    );
}

#[test]
fn an_address_in_use_names_the_settings() {
    let folder = place();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for setting in ["--listen", "--admin-listen"] {
        let free = [
            ("FAREBOX_LISTEN", "127.0.0.1:0"),
            ("FAREBOX_ADMIN_LISTEN", "127.0.0.1:0"),
        ];
        let (code, said) = run_with(folder.path(), &["serve", setting, &address], &free);
        assert!(
            code == 1
                && said.contains(&address)
                && said.contains("with --listen or --admin-listen"),
            "{said}"
        );
    }
}

/// In a terminal, `-->` and `= help` have the same margin whether a line of the file is shown or not.
#[test]
fn reports_without_a_line_have_a_margin() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = run(folder.path(), &["check"]);
    assert_eq!(code, 78);
    assert!(
        said.contains("\n --> catalog.toml\n  = help: `farebox init`"),
        "{said}"
    );
    fs::write(folder.path().join("catalog.toml"), "").unwrap();
    let (_, said) = run(folder.path(), &["check"]);
    assert!(
        said.contains("\n --> routes.toml\n  = help: `--routes` names it elsewhere"),
        "{said}"
    );
}

#[test]
fn a_damaged_ledger_says_what_to_do() {
    let folder = place();
    let ledger = folder.path().join("farebox.db");
    let whole = fs::read(&ledger).unwrap();
    let size = whole.len() as u64;
    let remedy = "restore a backup that `farebox ledger verify` finds sound (docs/operations.md, Back up and restore)";
    // The header, the schema's page, and every page but the first ones.
    for (from, to) in [(0, 4_096), (100, 4_096), (4_096, size), (5 * 4_096, size)] {
        fs::write(&ledger, &whole).unwrap();
        let junk: Vec<u8> = (0..to - from).map(|at| (at % 251) as u8).collect();
        fs::OpenOptions::new()
            .write(true)
            .open(&ledger)
            .unwrap()
            .write_all_at(&junk, from)
            .unwrap();
        let commands: [&[&str]; 6] = [
            &["keys", "list"],
            &["keys", "create", "--label", "x"],
            &["ledger", "entries"],
            &["ledger", "verify"],
            &["ledger", "backup", "copy.db"],
            &[
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ],
        ];
        for command in commands {
            let (code, said) = run(folder.path(), command);
            assert!(
                [1, 75].contains(&code) && said.contains(remedy),
                "{from}: {command:?}: {said}"
            );
        }
        assert!(!folder.path().join("copy.db").exists());
    }
}
