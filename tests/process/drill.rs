//! The upgrade from the last version: the drill of `docs/operations.md`, as printed, with that version's ledger, and in full runs with
//! its program, too.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::process::{Served, farebox, json};

use crate::support::HOME;
/// The last version, as its users have it.
const LAST: &str = "8e66c1e9";

fn drill() -> &'static str {
    let page = include_str!("../../docs/operations.md");
    let rest = page.split("<!-- the drill").nth(1).unwrap();
    let commands = rest.split("```sh\n").nth(1).unwrap();
    commands.split("```").next().unwrap()
}

/// Two ports that were free a moment ago.
fn addresses() -> [String; 2] {
    let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let pair = [free(), free()];
    pair.map(|listener| listener.local_addr().unwrap().to_string())
}

/// Runs the commands in this folder; what they said.
fn follow(folder: &Path, commands: &str, [old, live]: [&Path; 2]) -> String {
    let [listen, admin] = addresses();
    let new = Path::new(env!("CARGO_BIN_EXE_farebox"));
    // Whatever it started ends with it.
    let script = format!(
        "set -euo pipefail\ntrap 'kill $gateway 2> /dev/null || true' EXIT\nset -x\n{commands}trap - EXIT\necho the end"
    );
    let mut shell = Command::new("/usr/bin/timeout");
    shell.args(["120", "/bin/bash", "-c", &script]).env_clear();
    shell.env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    shell
        .env("FAREBOX_LISTEN", listen)
        .env("FAREBOX_ADMIN_LISTEN", admin);
    shell.env("old", old).env("new", new).env("live", live);
    let output = shell
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(
        output.status.success() && said.contains("the end"),
        "{said}"
    );
    assert_eq!(said.matches("the books are sound").count(), 2, "{said}");
    said
}

/// The version of a ledger's schema, which SQLite keeps in the header of its file.
fn schema(ledger: &Path) -> [u8; 4] {
    let file = fs::read(ledger).unwrap();
    file[60..64].try_into().unwrap()
}

/// What can be run without the last version's program: all that the new one does, and that the restored backup can be upgraded again.
#[test]
fn the_last_versions_ledger_is_taken_over_and_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let live = Path::new(HOME).join("ledger/tests/fixtures/schema-17-served.sqlite");
    for name in ["catalog.toml", "routes.toml"] {
        fs::copy(Path::new(HOME).join(name), folder.join(name)).unwrap();
    }
    fs::copy(&live, folder.join("before.db")).unwrap();
    let own = fs::Permissions::from_mode(0o600);
    fs::set_permissions(folder.join("before.db"), own).unwrap();
    fs::write(
        folder.join("before.csv"),
        "key,label,balance\nk_0000000001,Key 1,5.7467425\nk_0000000002,Key 2,6.993\n",
    )
    .unwrap();
    let of_old = |line: &&str| {
        !line.starts_with("$old --ledger $live")
            && !line.contains("before.csv\n")
            && !line.starts_with('!')
    };
    let commands: String = drill().split_inclusive('\n').filter(of_old).collect();
    let new = Path::new(env!("CARGO_BIN_EXE_farebox"));
    follow(folder, &commands, [new, &live]);
}

/// The program of the last version, built from the history.
fn last_program() -> PathBuf {
    let place = Path::new(HOME).join("target/last-version");
    fs::create_dir_all(&place).unwrap();
    let unpack = format!("git -C '{HOME}' archive {LAST} | tar -x");
    for (program, arguments) in [
        ("bash", &["-o", "pipefail", "-c", &unpack][..]),
        ("cargo", &["build", "--locked", "--package", "farebox"]),
    ] {
        let mut step = Command::new(program);
        step.args(arguments)
            .current_dir(&place)
            .env("CARGO_TARGET_DIR", place.join("target"));
        assert!(step.status().unwrap().success(), "{program}");
    }
    place.join("target/debug/farebox")
}

#[tokio::test]
async fn the_drill_of_an_upgrade_and_back() {
    if std::env::var_os("FAREBOX_FULL").is_none() {
        return;
    }
    let old = last_program();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let of_old = |arguments: &[&str]| {
        let mut command = Command::new(&old);
        command.env_clear().current_dir(folder).args(arguments);
        command
    };
    assert!(of_old(&["init"]).status().unwrap().success());
    let create = [
        "keys",
        "create",
        "--new-ledger",
        "--label",
        "t",
        "--balance",
        "5",
    ];
    let made = of_old(&create)
        .args(["--reference", "r", "--json"])
        .output()
        .unwrap();
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    // The old gateway serves all the while.
    let served = Served::start_or_end(&mut of_old(&["serve"])).unwrap();
    let secret = made["secret"].as_str().unwrap();
    served.ask("sim-chat", secret).await.unwrap();
    let live = folder.join("farebox.db");
    // Only a ledger of another schema is refused.
    let ours = folder.join("ours.db");
    let create = ["--ledger", "ours.db", "keys", "create", "--new-ledger"];
    let made = farebox(folder, &create).args(["--label", "t"]).status();
    assert!(made.unwrap().success());
    let changed = schema(&live) != schema(&ours);
    let commands = drill().split_inclusive('\n');
    let commands: String = (commands.filter(|line| changed || !line.starts_with('!'))).collect();
    let said = follow(folder, &commands, [&old, &live]);
    assert_eq!(
        said.contains("written by a newer version"),
        changed,
        "{said}"
    );
    served.ask("sim-chat", secret).await.unwrap();
    drop(served);
    // The real upgrade then.
    let mut served = Served::start(folder, &[]);
    served.ask("sim-chat", secret).await.unwrap();
    served.signal("TERM");
    assert!(served.ended().success());
    assert!(
        farebox(folder, &["ledger", "verify"])
            .status()
            .unwrap()
            .success()
    );
    let entries = json(folder, &["ledger", "entries"]);
    assert_eq!(entries["entries"].as_array().unwrap().len(), 4);
}
