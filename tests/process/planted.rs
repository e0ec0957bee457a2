//! Names in a ledger's folder that lead elsewhere: second gateways, mounts, planted files. Nothing is followed or written over,
//! and only a command that says so makes a ledger.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::identity::{NOTICED, booked, place, run, said};
use crate::support::process::{Served, farebox};
use crate::support::skip::{installed, skip};

#[tokio::test]
async fn a_second_gateway_is_refused_by_whatever_name_it_comes() {
    let (folder, id, secret) = place();
    let folder = folder.path();
    let served = Served::start(folder, &[]);
    let links = tempfile::tempdir().unwrap();
    let (file, directory) = (links.path().join("link.db"), links.path().join("folder"));
    symlink(folder.join("farebox.db"), &file).unwrap();
    symlink(folder, &directory).unwrap();
    for name in [file.clone(), directory.join("farebox.db")] {
        let name = name.to_str().unwrap();
        let mut second = farebox(
            folder,
            &[
                "serve",
                "--ledger",
                name,
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ],
        );
        let (code, text) = said(&mut second);
        assert!(code == 1 && text.contains("is in use by process"), "{text}");
        assert_eq!(
            run(
                folder,
                &[
                    "--ledger",
                    name,
                    "keys",
                    "top-up",
                    &id,
                    "1",
                    "--reference",
                    name
                ]
            )
            .0,
            0,
            "a command may"
        );
        assert_eq!(booked(folder, name), 1);
    }
    assert!(
        !links.path().join("link.db-wal").exists() && !links.path().join("link.db.lock").exists()
    );
    served.ask("sim-chat", &secret).await.unwrap();
    // A deleted lock is taken again, so a second gateway is still refused.
    fs::remove_file(folder.join("farebox.db.lock")).unwrap();
    let begun = Instant::now();
    // Whoever has the lock writes into its file who it is.
    while fs::read(folder.join("farebox.db.lock"))
        .unwrap_or_default()
        .is_empty()
    {
        assert!(begun.elapsed() < NOTICED);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(
        run(
            folder,
            &[
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0"
            ]
        )
        .1
        .contains("is in use by")
    );
    drop(served);
    fs::hard_link(folder.join("farebox.db"), folder.join("twin.db")).unwrap();
    for arguments in [
        &["serve", "--ledger", "twin.db"][..],
        &["serve"],
        &["keys", "top-up", &id, "1", "--reference", "twin"],
    ] {
        let (code, text) = run(folder, arguments);
        assert!(code == 1 && text.contains("2 names (hard links)"), "{text}");
    }
    fs::remove_file(folder.join("twin.db")).unwrap();
    // A linked folder is an ordinary place for a ledger.
    let served = Served::start(&directory, &[]);
    served.ask("sim-chat", &secret).await.unwrap();
}

/// A container that gets the file alone would write a log of its own beside it: money paid here would not be there, and the same
/// money could be spent in both.
#[test]
fn a_ledger_that_is_mounted_by_itself_is_refused_and_one_whose_folder_is_mounted_is_not() {
    if !installed("unshare", "a ledger that is mounted by itself") {
        return;
    }
    let (folder, id, _) = place();
    let (folder, other) = (folder.path(), folder.path().join("other"));
    fs::create_dir(&other).unwrap();
    let program = env!("CARGO_BIN_EXE_farebox");
    // The mount is in a name space of its own, and gone with it.
    let mounted = |what: &str, at: &str, command: &str| {
        let script =
            format!("mount --bind {what} {at} || exit 99; umask 077; exec {program} {command}");
        said(
            Command::new("unshare")
                .args(["--mount", "--propagation", "private", "sh", "-c", &script])
                .current_dir(folder),
        )
    };
    fs::write(other.join("farebox.db"), []).unwrap();
    let pay = format!("keys top-up {id} 1 --ledger other/farebox.db --reference");
    let (code, text) = mounted("farebox.db", "other/farebox.db", &format!("{pay} alone"));
    if code == 99 || code == -1 || text.contains("unshare failed") {
        return skip("a ledger that is mounted by itself: mounting is not permitted");
    }
    assert!(code == 1 && text.contains("is mounted by itself"), "{text}");
    assert_eq!(
        (
            booked(folder, "alone"),
            fs::read_dir(&other).unwrap().count()
        ),
        (0, 1),
        "nothing was made beside it"
    );
    let (code, text) = mounted(
        "farebox.db",
        "other/farebox.db",
        "serve --ledger other/farebox.db --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0",
    );
    assert!(code == 1 && text.contains("is mounted by itself"), "{text}");
    let (code, text) = mounted(".", "other", &format!("{pay} folder"));
    assert_eq!((code, booked(folder, "folder")), (0, 1), "{text}");
}

/// An edit that replaces the file outside is not seen inside, so it is said at the start, and when SIGHUP finds nothing new.
#[test]
fn a_file_of_the_configuration_that_is_mounted_by_itself_is_named() {
    if !installed("unshare", "a catalog that is mounted by itself") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert_eq!(run(folder, &["init"]).0, 0);
    let outside = folder.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::copy(folder.join("catalog.toml"), outside.join("catalog.toml")).unwrap();
    let program = env!("CARGO_BIN_EXE_farebox");
    let script = format!(
        "mount --bind outside/catalog.toml catalog.toml || exit 99; exec {program} serve --new-ledger"
    );
    let mut command = Command::new("unshare");
    command
        .env_clear()
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .current_dir(folder);
    let Ok(mut served) = Served::start_or_end(&mut command) else {
        return skip("a catalog that is mounted by itself: mounting is not permitted");
    };
    let log = served.wait_for_log("is mounted by itself");
    assert!(
        log.contains("W422") && log.contains("catalog.toml"),
        "{log}"
    );
    let edited = fs::read_to_string(outside.join("catalog.toml")).unwrap() + "# edited\n";
    fs::write(outside.join("new"), edited).unwrap();
    fs::rename(outside.join("new"), outside.join("catalog.toml")).unwrap();
    served.signal("HUP");
    served.wait_for_log("these are mounted by themselves");
}

/// An empty log reads as a file without anchors, and anchors written into it would overwrite commits.
#[test]
fn neither_anchors_nor_backups_are_written_into_the_ledgers_own_files() {
    let (folder, ..) = place();
    let folder = folder.path();
    fs::remove_file(folder.join("farebox.db.lock")).ok();
    for name in [
        "farebox.db",
        "farebox.db-wal",
        "./farebox.db-shm",
        "farebox.db-journal",
        "farebox.db.lock",
        "farebox.db.unsettled",
        "farebox.db.admin-token",
    ] {
        let listen = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
        let (code, text) = run(
            folder,
            &[&["serve", "--anchors", name][..], &listen].concat(),
        );
        assert!(
            code == 1 && text.contains("this file is the ledger's own"),
            "{name}: {text}"
        );
        let (code, text) = run(folder, &["ledger", "backup", name]);
        assert!(
            code == 1 && (text.contains("uses this name") || text.contains("already exists")),
            "{name}: {text}"
        );
    }
    assert_eq!(run(folder, &["ledger", "verify"]).0, 0);
}

#[test]
fn only_a_command_that_says_so_makes_a_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for arguments in [
        &["keys", "create", "--label", "t"][..],
        &[
            "keys",
            "create",
            "--label",
            "t",
            "--balance",
            "1",
            "--reference",
            "r",
        ],
        &["keys", "list"],
        &["keys", "show", "k_0000000000"],
        &["keys", "top-up", "k_0000000000", "1", "--reference", "r"],
        &[
            "keys",
            "adjust",
            "k_0000000000",
            "+1",
            "--reason",
            "x",
            "--reference",
            "r",
        ],
        &["keys", "block", "k_0000000000"],
        &["keys", "rotate", "k_0000000000"],
        &["keys", "link", "k_0000000000"],
        &["ledger", "entries"],
        &["ledger", "verify"],
        &["ledger", "backup", "copy.db"],
    ] {
        let (code, text) = run(folder, arguments);
        assert!(
            code == 1 && text.contains("there is no ledger at ") && text.contains("--new-ledger"),
            "{arguments:?}: {text}"
        );
        assert!(
            text.contains(
                folder
                    .canonicalize()
                    .unwrap()
                    .join("farebox.db")
                    .to_str()
                    .unwrap()
            ),
            "{text}"
        );
        assert_eq!(folder.read_dir().unwrap().count(), 0, "{arguments:?}");
    }
    assert_eq!(
        run(
            folder,
            &[
                "--ledger",
                "no/such/folder.db",
                "keys",
                "create",
                "--new-ledger",
                "--label",
                "t"
            ]
        )
        .0,
        1
    );
    let first = ["keys", "create", "--new-ledger", "--label", "t"];
    assert_eq!(run(folder, &first).0, 0);
    let (code, text) = run(folder, &first);
    assert!(code == 78 && text.contains("leave it out"), "{text}");
    assert_eq!(run(folder, &["keys", "create", "--label", "t"]).0, 0);
}

/// What is in a folder that others can write to stays as it is, whatever name it has.
#[test]
fn nothing_that_was_planted_is_followed_or_written_over() {
    let (folder, _, _) = place();
    let folder = folder.path();
    let precious = folder.join("precious");
    let untouched = || {
        let found = precious.metadata().unwrap();
        assert_eq!(
            (fs::read_to_string(&precious).unwrap(), found.mode() & 0o777),
            ("precious, no end of line".to_owned(), 0o640)
        );
    };
    fs::write(&precious, "precious, no end of line").unwrap();
    fs::set_permissions(&precious, PermissionsExt::from_mode(0o640)).unwrap();
    let serve = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--anchors",
        "anchors",
    ];
    let plant: [fn(&Path, &Path); 6] = [
        |at, precious| symlink(precious, at).unwrap(),
        |at, _| symlink("nowhere", at).unwrap(),
        |at, precious| fs::hard_link(precious, at).unwrap(),
        |at, _| assert!(Command::new("mkfifo").arg(at).status().unwrap().success()),
        |at, _| drop(std::os::unix::net::UnixListener::bind(at).unwrap()),
        |at, precious| assert!(fs::copy(precious, at).unwrap() > 0),
    ];
    for (number, plant) in plant.iter().enumerate() {
        for name in ["farebox.db.lock", "farebox.db.unsettled", "anchors"] {
            let at = folder.join(name);
            let _ = fs::remove_file(&at);
            plant(&at, &precious);
            let before = at.symlink_metadata().unwrap();
            let (code, text) = run(folder, &serve);
            assert!(code == 1 && text.contains(name), "{name} {number}: {text}");
            let after = at.symlink_metadata().unwrap();
            assert_eq!(
                (before.ino(), before.len(), before.mode()),
                (after.ino(), after.len(), after.mode()),
                "{name} {number}"
            );
            fs::remove_file(&at).unwrap();
        }
        for name in ["copy.db", "copy.db.part", "copy.db-journal"] {
            let at = folder.join(name);
            plant(&at, &precious);
            let before = at.symlink_metadata().unwrap();
            let (code, text) = run(folder, &["ledger", "backup", "copy.db"]);
            assert_eq!(
                code,
                i32::from(name == "copy.db"),
                "{name} {number}: {text}"
            );
            let after = at.symlink_metadata().unwrap();
            assert_eq!(
                (before.ino(), before.len()),
                (after.ino(), after.len()),
                "{name} {number}"
            );
            fs::remove_file(&at).unwrap();
            let _ = fs::remove_file(folder.join("copy.db"));
        }
        for name in ["farebox.db-wal", "farebox.db-shm"] {
            if number == 5 {
                // A plain file of that name is SQLite's to judge.
                continue;
            }
            let at = folder.join(name);
            let _ = fs::remove_file(&at);
            plant(&at, &precious);
            assert_eq!(
                run(folder, &["keys", "create", "--label", "x"]).0,
                1,
                "{name} {number}"
            );
            fs::remove_file(&at).unwrap();
        }
        assert!(!folder.join("nowhere").exists());
        untouched();
    }
    let left = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.contains(".part")).count(), 0);
    assert_eq!(run(folder, &["ledger", "verify"]).0, 0);
}
