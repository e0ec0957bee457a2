//! The first start: what units, images and containers run makes no ledger by accident, and what the guides say makes one on purpose.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::identity::{run, said};
use crate::support::cluster::Cluster;
use crate::support::process::{Served, farebox};
use crate::support::skip::skip;

/// A file of this repository.
fn text(path: &str) -> String {
    fs::read_to_string(Path::new(crate::support::HOME).join(path)).unwrap()
}

/// The unit's command, without the program.
fn of_unit() -> Vec<String> {
    let unit = text("deploy/farebox.service");
    let line = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let words = line.unwrap().split(' ').skip(1);
    words.map(str::to_owned).collect()
}

/// The image's command, which Docker puts behind the program.
fn of_image() -> Vec<String> {
    let file = text("deploy/Dockerfile");
    let line = file.lines().find_map(|line| line.strip_prefix("CMD "));
    serde_json::from_str(line.unwrap()).unwrap()
}

/// The command of a guide that makes the ledger.
fn first_step(guide: &str) -> Vec<String> {
    let guide = text(guide);
    let line = guide
        .lines()
        .find(|line| line.contains("keys create --new-ledger "));
    let (_, step) = line.unwrap().split_once("keys create ").unwrap();
    let step = step.split('#').next().unwrap().trim();
    let words = step.split_whitespace().map(str::to_owned);
    ["keys".to_owned(), "create".to_owned()]
        .into_iter()
        .chain(words)
        .collect()
}

/// A folder with the two files, and an empty one for the ledger.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), &["init"]).0, 0);
    fs::create_dir(folder.path().join("books")).unwrap();
    folder
}

/// A command there, as a unit or an image has it: the ledger stands in the environment.
fn command(folder: &Path, arguments: &[String], ledger: &str) -> Command {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = farebox(folder, &arguments);
    command
        .env("FAREBOX_LEDGER", ledger)
        .env("FAREBOX_ALLOW_SINGLE", "true")
        .env("FAREBOX_LISTEN", "127.0.0.1:0")
        .env("FAREBOX_ADMIN_LISTEN", "127.0.0.1:0");
    command
}

#[test]
fn unit_and_image_make_no_ledger_and_say_how_to() {
    for (what, arguments) in [("unit", of_unit()), ("image", of_image())] {
        let folder = place();
        let folder = folder.path().canonicalize().unwrap();
        let books = folder.join("books");
        let ledger = books.join("farebox.db").display().to_string();
        let other = folder.join("by-mistake.db");
        let create = ["keys", "create", "--new-ledger", "--label", "t"];
        let elsewhere = [&create[..], &["--ledger", "by-mistake.db"]].concat();
        assert_eq!(run(&folder, &elsewhere).0, 0);
        let (code, words) = said(&mut command(&folder, &arguments, &ledger));
        assert_eq!(code, 78, "{what}: {words}");
        for part in [
            format!("there is no ledger at {ledger}; "),
            format!("working folder: {}; ", folder.display()),
            format!("ledgers nearby: {}", other.display()),
            "farebox serve --new-ledger, or farebox keys create --new-ledger".to_owned(),
        ] {
            assert!(words.contains(&part), "{what}: {part}: {words}");
        }
        assert_eq!(books.read_dir().unwrap().count(), 0, "{what}");
        fs::write(books.join("farebox.db-wal"), "commits").unwrap();
        let (code, words) = said(&mut command(&folder, &arguments, &ledger));
        assert!(
            code == 78 && words.contains("farebox.db-wal is there without its ledger"),
            "{what}: {words}"
        );
        assert_eq!(books.read_dir().unwrap().count(), 1, "{what}");
    }
    let unit = text("deploy/farebox.service");
    assert!(
        unit.lines()
            .any(|line| line == "RestartPreventExitStatus=2 78"),
        "a unit does not start again for ever"
    );
}

/// Each guide's own command makes the ledger; then what unit and image run serves it, and no second one is made.
#[tokio::test]
async fn the_first_step_of_every_guide_makes_the_ledger_once() {
    for guide in [
        "README.md",
        "docs/operations.md",
        "deploy/farebox.service",
        "deploy/Dockerfile",
        "deploy/compose.yml",
        "deploy/debian/postinst",
    ] {
        let folder = place();
        let ledger = folder.path().join("books/farebox.db");
        let step = first_step(guide);
        let run = || said(&mut command(folder.path(), &step, ledger.to_str().unwrap()));
        let (code, words) = run();
        assert_eq!(code, 0, "{guide}: {step:?}: {words}");
        let before = fs::read(&ledger).unwrap();
        let (code, words) = run();
        assert!(
            code == 78 && words.contains("leave it out"),
            "{guide}: {words}"
        );
        assert_eq!(fs::read(&ledger).unwrap(), before, "{guide}");
        let serve = if guide == "deploy/Dockerfile" {
            of_image()
        } else {
            of_unit()
        };
        let served = Served::start_or_end(&mut command(
            folder.path(),
            &serve,
            ledger.to_str().unwrap(),
        ));
        drop(served.unwrap());
    }
}

/// What `init` prints starts the gateway; the same words a second time do not, so that no unit keeps the flag.
#[tokio::test]
async fn the_command_that_init_prints_starts_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (_, words) = run(folder, &["init"]);
    let next = words.lines().find_map(|line| line.strip_prefix("next: "));
    let (check, serve) = next.unwrap().split_once(", then ").unwrap();
    let serve = serve.split(';').next().unwrap();
    assert_eq!(
        (check, serve),
        ("farebox check", "farebox serve --new-ledger")
    );
    assert_eq!(run(folder, &["check"]).0, 0);
    let serve: Vec<String> = serve.split(' ').skip(1).map(str::to_owned).collect();
    let again = || command(folder, &serve, "farebox.db");
    let mut served = Served::start_or_end(&mut again()).unwrap();
    let (code, words) = said(&mut again());
    assert!(code == 78 && words.contains("leave it out"), "{words}");
    served.signal("TERM");
    assert!(served.ended().success());
    let (code, words) = said(&mut again());
    assert!(code == 78 && words.contains("leave it out"), "{words}");
    assert_eq!(run(folder, &["ledger", "verify"]).0, 0);
    let (code, words) = run(
        folder,
        &[
            "keys",
            "create",
            "--new-ledger",
            "--label",
            "t",
            "--customer",
            "c_0000000000",
        ],
    );
    assert!(
        code == 2 && words.contains("cannot be used with"),
        "{words}"
    );
}

/// The gateways of the compose file run what their image says, on a database.
#[tokio::test(flavor = "multi_thread")]
async fn containers_on_a_database_make_no_ledger() {
    let compose = text("deploy/compose.yml");
    let gateways = compose
        .lines()
        .filter(|line| line.starts_with("  gateway-"));
    let shared = compose.split("x-gateway: &gateway\n").nth(1).unwrap();
    let shared = shared.split("\nservices:\n").next().unwrap();
    let lines: Vec<&str> = gateways.chain(shared.lines()).collect();
    assert!(
        lines.len() > 9
            && lines
                .iter()
                .all(|line| !line.contains("command") && !line.contains("entrypoint")),
        "{lines:?}"
    );
    let Some(cluster) = Cluster::shared() else {
        return skip("containers without a ledger: PostgreSQL is not installed");
    };
    let (folder, database) = (place(), cluster.database());
    let address = cluster.url(&database);
    let secret = address.replace("farebox@", "farebox:s3cret@");
    for arguments in [of_image(), of_unit()] {
        let (code, words) = said(&mut command(folder.path(), &arguments, &secret));
        assert!(
            code == 78
                && words.contains("there is no ledger in this database")
                && words.contains("--new-ledger")
                && words.contains("postgres://farebox@")
                && words.contains(&format!("/{database}:")),
            "{words}"
        );
        assert!(!words.contains("s3cret"), "{words}");
    }
    let tables = "SELECT count(*) FROM pg_class WHERE relname IN ('identity', 'nodes')";
    assert_eq!(cluster.psql(&database, tables).unwrap(), "0");
    let new = ["serve".to_owned(), "--new-ledger".to_owned()];
    let mut served = Served::start_or_end(&mut command(folder.path(), &new, &address)).unwrap();
    for arguments in [&new[..], &first_step("deploy/compose.yml")] {
        let (code, words) = said(&mut command(folder.path(), arguments, &address));
        assert!(code == 78 && words.contains("it has a ledger"), "{words}");
    }
    served.signal("TERM");
    assert!(served.ended().success(), "{}", served.log());
    let mut again =
        Served::start_or_end(&mut command(folder.path(), &of_image(), &address)).unwrap();
    again.signal("TERM");
    assert!(again.ended().success(), "{}", again.log());
}

/// Several processes may be told at once: one makes it.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_makes_a_ledger_in_a_database() {
    let Some(cluster) = Cluster::shared() else {
        return skip("a ledger that many make: PostgreSQL is not installed");
    };
    let folder = place();
    let address = cluster.url(&cluster.database());
    let create = ["keys", "create", "--new-ledger", "--label", "t"].map(str::to_owned);
    let makers: Vec<_> = (0..4)
        .map(|_| {
            let mut command = command(folder.path(), &create, &address);
            std::thread::spawn(move || said(&mut command))
        })
        .collect();
    let mut codes: Vec<i32> = (makers.into_iter())
        .map(|maker| maker.join().unwrap().0)
        .collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 78, 78, 78]);
}
