//! Tests of reloading: by hand, and on a real, watched file system.

use std::fs;
use std::sync::atomic::{AtomicI64, Ordering};

use super::*;
use crate::config::{Code, Diagnostics, ProcessSecrets, Reload, Reloader, Severity, Trigger};

static NOW: AtomicI64 = AtomicI64::new(1_000);

fn clock() -> i64 {
    NOW.fetch_add(1, Ordering::Relaxed)
}

const CATALOG: &str = include_str!("../../../tests/configs/valid/base.catalog.toml");
const ROUTES: &str = include_str!("../../../tests/configs/valid/base.routes.toml");

/// How long to wait for what happens by itself, on a machine that may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Both files and a secret file in a new directory.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.write("catalog.toml", CATALOG);
        place.write(
            "routes.toml",
            &ROUTES.replace("{ env = \"ALPHA_KEY\" }", "{ file = \"key\" }"),
        );
        place.write("key", "first-secret\n");
        place
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn start(&self) -> Result<Reloader, Diagnostics> {
        let secrets = Box::new(ProcessSecrets::default());
        Reloader::start(
            &self.path("catalog.toml"),
            &self.path("routes.toml"),
            secrets,
            Vec::new(),
            clock,
        )
    }
}

fn key(reloader: &Reloader) -> String {
    reloader.handle().current().providers[0].keys[0]
        .secret
        .reveal()
        .to_owned()
}

#[test]
fn a_change_is_swapped_and_a_bad_edit_keeps_the_last_good_snapshot() {
    let place = Place::new();
    let reloader = place.start().unwrap();
    let first = reloader.handle().current();
    assert!(matches!(
        reloader.reload(Trigger::Save, &Nobody),
        Reload::Unchanged { mended: false }
    ));

    place.write("catalog.toml", &CATALOG.replace("\"3.00\"", "\"9.00\""));
    let Reload::Swapped(second, warnings) = reloader.reload(Trigger::Save, &Nobody) else {
        panic!("not swapped")
    };
    assert_eq!(second.generation, 2);
    assert!(warnings.0.iter().any(|warning| warning.code == "W403"));
    assert_eq!(
        first.catalog.models[0].price.base.input.picos(),
        3_000_000,
        "a request keeps its snapshot"
    );

    place.write("catalog.toml", "[[model]\n");
    assert!(
        matches!(reloader.reload(Trigger::Save, &Nobody), Reload::Kept(findings) if findings.has_errors())
    );
    assert!(
        matches!(
            reloader.reload(Trigger::Poll, &Nobody),
            Reload::Unchanged { mended: false }
        ),
        "it is reported once"
    );
    assert!(
        matches!(reloader.reload(Trigger::Request, &Nobody), Reload::Kept(_)),
        "or when asked"
    );
    let status = reloader.status();
    assert!(
        !status.current
            && status.generation == 2
            && status.kept == 2
            && status.diagnostics.has_errors()
    );
    assert_eq!(reloader.handle().current().generation, 2);

    place.write("catalog.toml", &CATALOG.replace("\"3.00\"", "\"9.00\""));
    assert!(matches!(
        reloader.reload(Trigger::Save, &Nobody),
        Reload::Unchanged { mended: true }
    ));
    assert!(reloader.status().current && reloader.status().diagnostics.is_empty());
}

#[test]
fn files_that_vanish_are_told_and_may_return() {
    let place = Place::new();
    let reloader = place.start().unwrap();
    fs::rename(place.path("routes.toml"), place.path("away")).unwrap();
    assert!(matches!(
        reloader.reload(Trigger::Save, &Nobody),
        Reload::Kept(_)
    ));
    fs::rename(place.path("away"), place.path("routes.toml")).unwrap();
    assert!(matches!(
        reloader.reload(Trigger::Save, &Nobody),
        Reload::Unchanged { mended: true }
    ));
    for bad in [&b"\xff"[..], b"", b"[[mod"] {
        fs::write(place.path("catalog.toml"), bad).unwrap();
        assert!(matches!(
            reloader.reload(Trigger::Save, &Nobody),
            Reload::Kept(_)
        ));
    }
    assert_eq!(reloader.handle().current().generation, 1);
}

#[test]
fn a_pipe_in_place_of_a_file_is_refused_at_once() {
    let place = Place::new();
    let reloader = Arc::new(place.start().unwrap());
    for name in ["catalog.toml", "key"] {
        fs::rename(place.path(name), place.path("away")).unwrap();
        assert!(
            std::process::Command::new("mkfifo")
                .arg(place.path(name))
                .status()
                .unwrap()
                .success()
        );
        // On a separate thread, because opening a pipe without a writer waits forever.
        let (worker, (done, outcome)) = (Arc::clone(&reloader), std::sync::mpsc::channel());
        std::thread::spawn(move || done.send(worker.reload(Trigger::Save, &Nobody)));
        let Ok(Reload::Kept(findings)) = outcome.recv_timeout(PATIENCE) else {
            panic!("{name} was waited for")
        };
        assert!(
            findings
                .0
                .iter()
                .any(|finding| finding.message.contains("a pipe or a device, not a file")),
            "{findings:?}"
        );
        fs::rename(place.path("away"), place.path(name)).unwrap();
        assert!(matches!(
            reloader.reload(Trigger::Save, &Nobody),
            Reload::Unchanged { mended: true }
        ));
    }
}

#[test]
fn secret_files_are_read_again() {
    let place = Place::new();
    let reloader = place.start().unwrap();
    assert_eq!(key(&reloader), "first-secret");
    place.write("key", "second-secret");
    assert!(matches!(
        reloader.reload(Trigger::Save, &Nobody),
        Reload::Swapped(..)
    ));
    assert_eq!(key(&reloader), "second-secret");
    place.write("key", "");
    assert!(
        matches!(reloader.reload(Trigger::Save, &Nobody), Reload::Kept(_)),
        "an empty secret never comes in force"
    );
    assert_eq!(key(&reloader), "second-secret");
}

#[test]
fn slugs_that_vanished_are_warned_about_until_retired() {
    let place = Place::new();
    let reloader = place.start().unwrap();
    let codes = |reload: Reload| match reload {
        Reload::Swapped(_, findings) => findings
            .0
            .iter()
            .map(|finding| finding.code)
            .collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let renamed = CATALOG
        .replace("\"alpha-1\"", "\"alpha-2\"")
        .replace("alpha-latest", "alpha-newest");
    place.write(
        "routes.toml",
        &fs::read_to_string(place.path("routes.toml"))
            .unwrap()
            .replace("\"alpha-1\"", "\"alpha-2\""),
    );
    place.write("catalog.toml", &renamed);
    assert_eq!(codes(reloader.reload(Trigger::Save, &Nobody)), ["W404"]);
    place.write("catalog.toml", &renamed.replace("\"3.00\"", "\"3.01\""));
    assert_eq!(
        codes(reloader.reload(Trigger::Save, &Nobody)),
        ["W404"],
        "still unexplained"
    );
    place.write(
        "catalog.toml",
        &format!(
            "{renamed}\n[[retired]]\nslug = \"alpha-1\"\nsince = 2026-09-01\nuse = \"alpha-2\"\n"
        ),
    );
    assert!(codes(reloader.reload(Trigger::Save, &Nobody)).is_empty());
}

#[test]
fn a_bad_start_says_why() {
    let place = Place::new();
    fs::remove_file(place.path("key")).unwrap();
    let findings = place.start().unwrap_err();
    assert!(
        findings
            .0
            .iter()
            .any(|finding| finding.code == "E309" && finding.severity == Severity::Error)
    );
}

/// Hears of nothing, and has no customers.
struct Nobody;

impl ReloadObserver for Nobody {
    fn reloaded(&self, _trigger: Trigger, _reload: &Reload) {}

    fn missed(&self, _lists: &[&str]) -> Vec<Diagnostic> {
        Vec::new()
    }

    fn unwatched(&self, _directory: &Path, _problem: &str) {}
}

/// Has customers with one price list.
struct OnList(&'static str);

impl ReloadObserver for OnList {
    fn reloaded(&self, _trigger: Trigger, _reload: &Reload) {}

    fn missed(&self, lists: &[&str]) -> Vec<Diagnostic> {
        let had = lists.iter().filter(|name| **name == self.0);
        had.map(|name| Diagnostic::without_line(Code::LostPriceList, *name, ""))
            .collect()
    }

    fn unwatched(&self, _directory: &Path, _problem: &str) {}
}

#[test]
fn a_list_that_customers_have_is_not_lost_by_a_reload() {
    let place = Place::new();
    let list = |name: &str, input: &str| {
        format!(
            "\n[[price_list]]\nname = \"{name}\"\nprice.\"alpha-1\" = {{ input = \"{input}\", output = \"9\" }}\n"
        )
    };
    let with =
        |lists: &[String]| place.write("catalog.toml", &format!("{CATALOG}{}", lists.concat()));
    with(&[list("partners", "2.50"), list("staff", "1.00")]);
    let reloader = place.start().unwrap();
    let had = &OnList("partners");
    // Renamed, in case alone, and deleted.
    for lists in [
        vec![list("Partners", "2.50")],
        vec![list("staff", "1.00")],
        vec![],
    ] {
        with(&lists);
        let Reload::Kept(why) = reloader.reload(Trigger::Save, had) else {
            panic!("{lists:?} was taken")
        };
        assert_eq!((why.0.len(), why.0[0].code), (1, "E222"));
        assert!(!reloader.status().current);
        let kept = reloader.handle().current();
        assert!(kept.catalog.list("partners").is_ok());
    }
    // One that nobody has, and a change.
    with(&[list("partners", "1.00")]);
    let Reload::Swapped(config, findings) = reloader.reload(Trigger::Save, had) else {
        panic!("not swapped")
    };
    assert!(config.catalog.list("staff").is_err());
    let told: Vec<_> = findings
        .0
        .iter()
        .map(|finding| (finding.code, &*finding.message))
        .collect();
    let jump = "the price of `partners/alpha-1` jumps: input from $2.50 to $1.00, cache read from $2.50 to $1.00, cache write from \
                $2.50 to $1.00";
    assert_eq!(told, [("W403", jump)]);
    assert_eq!(reloader.status().falls[0].slug, "partners/alpha-1");
    // Nobody has it any more.
    with(&[]);
    let taken = reloader.reload(Trigger::Request, &Nobody);
    assert!(matches!(taken, Reload::Swapped(..)));
}

/// Sends each outcome to the test.
struct Told(mpsc::UnboundedSender<(Trigger, Reload)>);

impl ReloadObserver for Told {
    fn reloaded(&self, trigger: Trigger, reload: &Reload) {
        let _ = self.0.send((trigger, reload.clone()));
    }

    fn missed(&self, _lists: &[&str]) -> Vec<Diagnostic> {
        Vec::new()
    }

    fn unwatched(&self, _directory: &Path, _problem: &str) {}
}

#[tokio::test]
async fn saves_of_every_kind_are_noticed_within_a_second() {
    let place = Place::new();
    let reloader = Arc::new(place.start().unwrap());
    let (told, mut outcomes) = mpsc::unbounded_channel();
    let (ask, asked) = mpsc::channel(1);
    let story = async {
        let mut next = async || {
            tokio::time::timeout(PATIENCE, outcomes.recv())
                .await
                .unwrap()
                .unwrap()
        };
        let began = Instant::now();
        place.write("catalog.toml", &CATALOG.replace("\"3.00\"", "\"3.10\""));
        assert!(
            matches!(next().await, (Trigger::Save, Reload::Swapped(..))),
            "written in place"
        );
        println!("in force after {:?}", began.elapsed());
        for price in ["\"3.20\"", "\"3.30\""] {
            place.write("new", &CATALOG.replace("\"3.00\"", price));
            fs::rename(place.path("new"), place.path("catalog.toml")).unwrap();
            assert!(
                matches!(next().await, (Trigger::Save, Reload::Swapped(..))),
                "renamed over"
            );
        }
        fs::remove_file(place.path("catalog.toml")).unwrap();
        assert!(
            matches!(next().await, (Trigger::Save, Reload::Kept(_))),
            "removed"
        );
        place.write("catalog.toml", CATALOG);
        assert!(
            matches!(next().await, (Trigger::Save, Reload::Swapped(..))),
            "back"
        );
        place.write("key", "another-secret");
        assert!(
            matches!(next().await, (Trigger::Save, Reload::Swapped(..))),
            "a secret"
        );
        ask.send(()).await.unwrap();
        assert!(
            matches!(
                next().await,
                (Trigger::Request, Reload::Unchanged { mended: false })
            ),
            "asked for"
        );
    };
    tokio::select! {
        () = watch(Arc::clone(&reloader), asked, Arc::new(Told(told))) => panic!("it never ends"),
        () = story => {}
    }
    assert_eq!(reloader.handle().current().generation, 6);
}

#[tokio::test]
async fn swapped_links_are_noticed() {
    let place = Place::new();
    let version = |name: &str, catalog: &str| {
        fs::create_dir(place.path(name)).unwrap();
        fs::write(place.path(name).join("catalog.toml"), catalog).unwrap();
    };
    version("..1", CATALOG);
    version("..2", &CATALOG.replace("\"3.00\"", "\"3.10\""));
    std::os::unix::fs::symlink("..1", place.path("..data")).unwrap();
    fs::remove_file(place.path("catalog.toml")).unwrap();
    std::os::unix::fs::symlink("..data/catalog.toml", place.path("catalog.toml")).unwrap();
    let reloader = Arc::new(place.start().unwrap());
    let (told, mut outcomes) = mpsc::unbounded_channel();
    let (_ask, asked) = mpsc::channel(1);
    let story = async {
        std::os::unix::fs::symlink("..2", place.path("..new")).unwrap();
        fs::rename(place.path("..new"), place.path("..data")).unwrap();
        let (_, reload) = tokio::time::timeout(PATIENCE, outcomes.recv())
            .await
            .unwrap()
            .unwrap();
        assert!(matches!(reload, Reload::Swapped(..)));
    };
    tokio::select! {
        () = watch(reloader, asked, Arc::new(Told(told))) => panic!("it never ends"),
        () = story => {}
    }
}

#[tokio::test]
async fn a_file_replaced_by_a_link_to_its_copy_is_watched_where_the_link_leads() {
    let place = Place::new();
    let reloader = Arc::new(place.start().unwrap());
    let (told, mut outcomes) = mpsc::unbounded_channel();
    let (_ask, asked) = mpsc::channel(1);
    let story = async {
        fs::create_dir(place.path("elsewhere")).unwrap();
        place.write("elsewhere/catalog.toml", CATALOG);
        std::os::unix::fs::symlink("elsewhere/catalog.toml", place.path("link")).unwrap();
        fs::rename(place.path("link"), place.path("catalog.toml")).unwrap();
        let edits = async {
            for cents in 10..100 {
                // Long enough for the swapped link to be looked at by itself.
                tokio::time::sleep(Duration::from_millis(900)).await;
                place.write(
                    "elsewhere/catalog.toml",
                    &CATALOG.replace("\"3.00\"", &format!("\"3.{cents}\"")),
                );
            }
        };
        tokio::select! {
            () = edits => panic!("every edit passed unnoticed"),
            noticed = tokio::time::timeout(PATIENCE, outcomes.recv()) => {
                assert!(matches!(noticed, Ok(Some((Trigger::Save, Reload::Swapped(..))))), "{noticed:?}");
            }
        }
    };
    tokio::select! {
        () = watch(reloader, asked, Arc::new(Told(told))) => panic!("it never ends"),
        () = story => {}
    }
}
