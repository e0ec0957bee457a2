//! Who acts on a ledger, when, and with whose rights; and the restore drill as it is written.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::identity::{booked, place, run, said, top_up};
use crate::support::payment;
use crate::support::process::{Served, farebox, json};

#[test]
fn dates_count_their_offset_and_the_past_is_refused() {
    let (folder, id, _) = place();
    let folder = folder.path();
    let set = |date: &str| run(folder, &["keys", "set", &id, "--expires", date]);
    for (typed, understood) in [
        ("2127-01-31", "2127-02-01T00:00:00.000Z"),
        ("2127-01-31T00:30:00+01:00", "2127-01-30T23:30:00.000Z"),
        ("2127-01-31T00:30:00Z", "2127-01-31T00:30:00.000Z"),
    ] {
        let (code, text) = set(typed);
        assert!(
            code == 0 && text.contains(&format!("expires at {understood}")),
            "{typed}: {text}"
        );
        let made = json(
            folder,
            &["keys", "create", "--label", "dated", "--expires", typed],
        );
        assert_eq!(made["expires_at"], understood);
    }
    let (code, text) = set("2020-01-01T00:00:00+02:00");
    assert!(
        code == 1
            && text
                .contains("would have expired at 2019-12-31T22:00:00.000Z, which is in the past"),
        "{text}"
    );
    assert_eq!(
        run(
            folder,
            &[
                "keys",
                "create",
                "--label",
                "old",
                "--expires",
                "2020-01-01"
            ]
        )
        .0,
        1
    );
    assert_eq!(
        set("2127-01-31T00:30:00").0,
        2,
        "an instant without an offset is nobody's"
    );
    let kept = json(folder, &["keys", "show", &id]);
    assert_eq!(kept["expires_at"], "2127-01-31T00:30:00.000Z");
}

#[test]
fn who_acts_is_never_unknown() {
    let (folder, id, _) = place();
    let folder = folder.path();
    let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout)
        .unwrap()
        .trim()
        .to_owned();
    let pay = |number: &str, environment: &[(&str, &str)], more: &[&str]| {
        let arguments = [
            &["keys", "top-up", &id, "1", "--reference", number, "--json"],
            more,
        ]
        .concat();
        let output = farebox(folder, &arguments)
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["entry"]["actor"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(pay("1", &[], &[]), user);
    assert_eq!(
        pay("2", &[("USER", "somebody"), ("LOGNAME", "somebody")], &[]),
        user,
        "a variable is not a user"
    );
    assert_eq!(
        pay("3", &[("SUDO_USER", "ada")], &[]),
        format!("ada ({user})"),
        "the name, and who is behind it"
    );
    assert_eq!(
        pay("4", &[("SUDO_USER", "ada")], &["--operator", "bob"]),
        format!("bob ({user})")
    );
}

#[test]
fn a_ledger_of_somebody_else_names_the_owner_and_the_way() {
    let (folder, id, _) = place();
    let folder = folder.path();
    if folder.metadata().unwrap().uid() != 0 {
        println!("skipped: only root can act as another user");
        return;
    }
    // The binary where everybody may run it.
    let open = tempfile::tempdir().unwrap();
    fs::set_permissions(open.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let binary = open.path().join("farebox");
    // By another process: a file that this one still writes to cannot be run by its children.
    let copied = Command::new("cp")
        .args([Path::new(env!("CARGO_BIN_EXE_farebox")), &binary])
        .status()
        .unwrap();
    assert!(copied.success());
    let as_nobody = |arguments: &[&str]| {
        said(
            Command::new(&binary)
                .env_clear()
                .args(arguments)
                .uid(65_534)
                .gid(65_534)
                .current_dir("/")
                .stdin(Stdio::null()),
        )
    };
    let ledger = folder.join("farebox.db");
    let ledger = ledger.to_str().unwrap();
    for mode in [0o700, 0o755] {
        fs::set_permissions(folder, PermissionsExt::from_mode(mode)).unwrap();
        for arguments in [
            &["keys", "list"][..],
            &["keys", "top-up", &id, "1", "--reference", "x"],
            &["ledger", "verify"],
        ] {
            let (code, text) = as_nobody(&[&["--ledger", ledger], arguments].concat());
            assert!(
                code == 1 && text.contains("belongs to root") && text.contains("sudo -u root"),
                "{mode:o} {text}"
            );
        }
    }
}

/// The drill of docs/operations.md, by its own commands, under traffic and with a console open all the time.
#[tokio::test]
async fn the_restore_drill_works_as_it_is_written() {
    use farebox_ledger::sqlite::SqliteLedger;
    use farebox_ledger::{Amount, Durability, OpenMode, Perform};

    let (folder, id, secret) = place();
    let folder = folder.path().canonicalize().unwrap();
    fs::create_dir(folder.join("backups")).unwrap();
    let mut served = Some(Served::start(&folder, &[]));
    // What a console has open: the same store, with the same reopening.
    let console = SqliteLedger::open(
        folder.join("farebox.db"),
        OpenMode::Write,
        Durability::Prompt,
    )
    .unwrap();
    let manual =
        fs::read_to_string(Path::new(crate::support::HOME).join("docs/operations.md")).unwrap();
    let section = manual.split("## Back up and restore").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks: Vec<&str> = section
        .split("```sh\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap())
        .collect();
    let [backup, restore, ..] = blocks[..] else {
        panic!("two blocks of commands come first: {blocks:?}")
    };
    let shell = |command: &str| {
        let here = command
            .replace("/var/lib/farebox", folder.to_str().unwrap())
            .replace(
                "/var/backups/farebox",
                folder.join("backups").to_str().unwrap(),
            )
            .replace("2026-11-21", "$(date +%F)")
            .replace("-o farebox -g farebox ", "");
        let script = format!("set -euo pipefail; fb() {{ farebox \"$@\"; }}; {here}");
        let mut shell = Command::new("bash");
        let binaries = Path::new(env!("CARGO_BIN_EXE_farebox")).parent().unwrap();
        let path = format!("{}:/usr/bin:/bin", binaries.display());
        shell
            .env_clear()
            .env("PATH", path)
            .current_dir(&folder)
            .args(["-c", &script]);
        let (code, text) = said(&mut shell);
        assert_eq!(code, 0, "{command}: {text}");
    };
    backup.lines().for_each(shell);
    assert_eq!(top_up(&folder, &id, "forgotten").0, 0);
    for line in restore.lines().filter(|line| !line.trim().is_empty()) {
        match line.split('#').next().unwrap().trim() {
            "systemctl stop farebox" => {
                let mut stopping = served.take().unwrap();
                stopping.signal("TERM");
                assert!(stopping.ended().success());
            }
            "systemctl start farebox" => served = Some(Served::start(&folder, &[])),
            _ => shell(line),
        }
    }
    let served = served.expect("the drill ends with a start");
    served.ask("sim-chat", &secret).await.unwrap();
    let amount = Amount::from_usd_str("35").unwrap();
    console
        .perform(payment(
            id.parse().unwrap(),
            amount,
            "from-the-console".to_owned(),
        ))
        .await
        .unwrap();
    assert_eq!(
        (
            booked(&folder, "forgotten"),
            booked(&folder, "from-the-console")
        ),
        (0, 1),
        "it is in the served ledger"
    );
    assert_eq!(run(&folder, &["ledger", "verify"]).0, 0);
}
