//! Hot reload as an operator does it: saves of every kind, bad edits, secrets, and many reloads under load.
//!
//! A save is in use within a second; a mistake changes nothing and is reported clearly; no request ever notices.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use farebox_ledger::FilesAct;
use farebox_protocol::Family;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::upstream::{Gate, ScriptedUpstream, Speech};
use crate::support::{CATALOG, Gateway, TestKey, chat, routes, sized, talking};

const CHAT: &str = "/v1/chat/completions";
/// A save is in use within a second on an idle machine (0.26 s measured); tests also run on busy ones.
const SOON: Duration = Duration::from_secs(10);

/// A folder with both files, and a gateway that watches them.
struct Place {
    folder: TempDir,
    upstream: ScriptedUpstream,
    gateway: Gateway,
    key: TestKey,
}

impl Place {
    async fn start() -> Self {
        let upstream = ScriptedUpstream::start(talking("PONG")).await;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("catalog.toml"), CATALOG).unwrap();
        fs::write(
            folder.path().join("routes.toml"),
            routes(&upstream.base_url()),
        )
        .unwrap();
        Self::follow(folder, upstream, "catalog.toml", "routes.toml").await
    }

    async fn follow(
        folder: TempDir,
        upstream: ScriptedUpstream,
        catalog: &str,
        routes: &str,
    ) -> Self {
        let gateway =
            Gateway::watching(&folder.path().join(catalog), &folder.path().join(routes)).await;
        let key = gateway.key("50.00").await;
        Self {
            folder,
            upstream,
            gateway,
            key,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn status(&self) -> Value {
        self.gateway.ask("/status").await.json()
    }

    /// Waits until the audit has so many acts on files, newest first.
    async fn acts(&self, count: usize) -> Vec<FilesAct> {
        let begun = Instant::now();
        loop {
            let acts = self.gateway.ledger.files_acts(None, 9).await.unwrap();
            if acts.len() == count {
                return acts;
            }
            assert!(begun.elapsed() < SOON, "{acts:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The newest act on files, once there are so many.
    async fn audited(&self, count: usize) -> Value {
        let acts = self.acts(count).await;
        serde_json::from_str(&acts[0].details).unwrap()
    }

    /// Waits until the status matches, and returns how long it took.
    async fn until(&self, what: &str, ready: impl Fn(&Value) -> bool) -> Duration {
        let begun = Instant::now();
        loop {
            let status = self.status().await;
            if ready(&status) {
                return begun.elapsed();
            }
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "waited in vain until {what}: {status:#}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn generation(&self, wanted: u64) -> Duration {
        self.until("the next generation", |status| {
            status["generation"] == wanted && status["state"] == "ok"
        })
        .await
    }

    async fn rejected(&self) -> Duration {
        self.until("the edit is rejected", |status| {
            status["state"] == "rejected"
        })
        .await
    }

    /// The present cost of one request.
    async fn cost(&self) -> String {
        let answer = self
            .gateway
            .post(CHAT, &self.key, &chat("test-model", false))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.header("x-farebox-cost").unwrap().to_owned()
    }
}

/// The catalog with another output price of `test-model`.
fn priced(output: &str) -> String {
    CATALOG.replacen("\"15.00\"", &format!("\"{output}\""), 1)
}

#[tokio::test]
async fn a_save_is_in_use_within_a_second() {
    let place = Place::start().await;
    let mut quickest = Duration::MAX;
    for number in 2..=4 {
        fs::write(place.path("catalog.toml"), priced(&format!("{number}0.00"))).unwrap();
        quickest = quickest.min(place.generation(number).await);
    }
    assert!(quickest < SOON, "{quickest:?}");
}

#[tokio::test]
async fn running_requests_keep_their_price() {
    let place = Place::start().await;
    assert_eq!(place.cost().await, "0.000045", "10 × $3 + 1 × $15");
    let gate = Gate::new();
    place
        .upstream
        .follow(Speech::new(Family::Chat, "PONG").whole().gated(&gate));
    let body = chat("test-model", false);
    let running = place.gateway.post(CHAT, &place.key, &body);
    let saving = async {
        place.upstream.request(1).await;
        fs::write(place.path("catalog.toml"), priced("20.00")).unwrap();
        place.generation(2).await;
        place.upstream.follow(talking("PONG"));
        assert_eq!(place.cost().await, "0.00005");
        gate.open();
    };
    let (running, ()) = tokio::join!(running, saving);
    assert_eq!(
        running.header("x-farebox-cost"),
        Some("0.000045"),
        "admitted at the old price"
    );
    place
        .until("the change is told", |status| {
            !status["last_changes"].as_array().unwrap().is_empty()
        })
        .await;
    let changes = place.status().await["last_changes"].clone();
    let change = (
        &changes[0]["kind"],
        &changes[0]["slug"],
        &changes[0]["what"],
    );
    assert_eq!(
        change,
        (&"changed".into(), &"test-model".into(), &"price".into()),
        "{changes}"
    );
}

#[tokio::test]
async fn saves_by_rename_are_seen_again_and_again() {
    let place = Place::start().await;
    let mut quickest = Duration::MAX;
    for (number, price) in ["16.00", "17.00", "18.00"].into_iter().enumerate() {
        // Like vim: the old file becomes the backup, and a new one takes its name.
        fs::rename(place.path("catalog.toml"), place.path("catalog.toml~")).unwrap();
        fs::write(place.path("catalog.toml"), priced(price)).unwrap();
        fs::remove_file(place.path("catalog.toml~")).unwrap();
        quickest = quickest.min(place.generation(2 + number as u64).await);
    }
    assert!(quickest < SOON, "{quickest:?}");
    // Like careful programs: a temporary file is renamed over the old one.
    fs::write(place.path(".catalog.tmp"), priced("19.00")).unwrap();
    fs::rename(place.path(".catalog.tmp"), place.path("catalog.toml")).unwrap();
    place.generation(5).await;
    assert_eq!(place.cost().await, "0.000049");
}

#[tokio::test]
async fn a_config_map_is_swapped_as_one() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let folder = tempfile::tempdir().unwrap();
    let version = |name: &str, catalog: &str| {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("catalog.toml"), catalog).unwrap();
        fs::write(
            folder.path().join(name).join("routes.toml"),
            routes(&upstream.base_url()),
        )
        .unwrap();
    };
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, folder.path().join(name)).unwrap()
    };
    version("..v1", CATALOG);
    version("..v2", &priced("30.00"));
    version("..v3", &priced("31.00"));
    link("..v1", "..data");
    link("..data/catalog.toml", "catalog.toml");
    link("..data/routes.toml", "routes.toml");
    let root = folder.path().to_owned();
    let place = Place::follow(folder, upstream, "catalog.toml", "routes.toml").await;
    let mut quickest = Duration::MAX;
    for (number, version) in ["..v2", "..v3"].into_iter().enumerate() {
        std::os::unix::fs::symlink(version, root.join("..data_tmp")).unwrap();
        fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
        quickest = quickest.min(place.generation(2 + number as u64).await);
        fs::remove_dir_all(root.join(format!("..v{}", number + 1))).unwrap();
    }
    assert!(quickest < SOON, "{quickest:?}");
    assert_eq!(place.cost().await, "0.000061");
}

#[tokio::test]
async fn bad_edits_of_every_kind_change_nothing_and_are_loud() {
    let place = Place::start().await;
    let half = &CATALOG.as_bytes()[..CATALOG.len() / 2 + 7];
    let edits: Vec<(&str, Vec<u8>)> = vec![
        ("half-written", half.to_vec()),
        ("empty", Vec::new()),
        ("not UTF-8", [CATALOG.as_bytes(), b"# \xff\xfe\n"].concat()),
        // 10 MB at full size: unoptimised code takes seconds to read them.
        (
            "nothing, much of it",
            vec![b'\n'; sized(1_000_000, 10_000_000) as usize],
        ),
        (
            "noise, much of it",
            b"x = [".repeat(sized(200_000, 2_000_000) as usize),
        ),
        (
            "a misspelled field",
            CATALOG.replacen("price ", "prize ", 1).into_bytes(),
        ),
        (
            "a float price",
            CATALOG.replacen("\"15.00\"", "15.0", 1).into_bytes(),
        ),
        ("one model twice", CATALOG.repeat(2).into_bytes()),
    ];
    for (number, (name, bad)) in edits.into_iter().enumerate() {
        fs::write(place.path("catalog.toml"), bad).unwrap();
        place.rejected().await;
        let status = place.status().await;
        assert_eq!(status["generation"], 1, "{name}");
        let finding = &status["diagnostics"][0];
        assert_eq!(finding["severity"], "error", "{name}: {finding}");
        assert!(
            finding["rendered"].as_str().unwrap().starts_with("error[E"),
            "{name}: {finding}"
        );
        assert!(status["rejected_at"].is_string(), "{name}");
        let metrics = place.gateway.ask("/metrics").await.text;
        assert!(metrics.contains("\nfarebox_config_current 0\n"), "{name}");
        // A large file may be read, and refused, several times while it is being written.
        assert!(
            counted(&metrics, "outcome=\"rejected\"} ") > number as u64,
            "{name}"
        );
        assert_eq!(place.cost().await, "0.000045", "{name}");
        assert_eq!(
            place.gateway.ask("/readyz").await.status,
            200,
            "{name}: it still serves"
        );

        fs::write(place.path("catalog.toml"), CATALOG).unwrap();
        place.generation(1).await;
        assert_eq!(
            place.status().await["diagnostics"].as_array().map(Vec::len),
            Some(0),
            "{name}: mended"
        );
    }
}

#[tokio::test]
async fn files_that_vanish_keep_what_runs_and_are_seen_when_they_return() {
    let place = Place::start().await;
    for name in ["catalog.toml", "routes.toml"] {
        let text = fs::read(place.path(name)).unwrap();
        fs::remove_file(place.path(name)).unwrap();
        place.rejected().await;
        assert_eq!(place.cost().await, "0.000045");
        fs::write(place.path(name), text).unwrap();
        place.generation(1).await;
    }
    fs::remove_file(place.path("catalog.toml")).unwrap();
    place.rejected().await;
    fs::write(place.path("catalog.toml"), priced("40.00")).unwrap();
    place.generation(2).await;
    assert_eq!(place.cost().await, "0.00007");
}

#[tokio::test]
async fn a_reload_is_in_the_audit_with_its_prices_and_the_owner_of_the_files() {
    let place = Place::start().await;
    fs::write(place.path("catalog.toml"), priced("40.00")).unwrap();
    place.generation(2).await;
    let acts = place.acts(2).await;
    let user = farebox_ledger::owner::user_name();
    let actor = format!("{user}; catalog of {user}, routes of {user}");
    for act in &acts {
        assert_eq!(act.actor, actor);
    }
    let [reload, start] =
        [&acts[0], &acts[1]].map(|act| serde_json::from_str::<Value>(&act.details).unwrap());
    assert_eq!(
        (&start["act"], &start["changes"]),
        (&"start".into(), &Value::Null)
    );
    assert_eq!(reload["act"], "reload", "{reload}");
    let change = &reload["changes"][0];
    assert_eq!(
        (&change["slug"], &change["what"]),
        (&"test-model".into(), &"price".into())
    );
    let [old, new] = ["old", "new"].map(|name| change[name].as_str().unwrap().to_owned());
    assert!(old.contains("15") && new.contains("40"), "{change}");
    assert_ne!(reload["files"], start["files"]);
    let told = place.gateway.ledger.events(None, 9).await.unwrap();
    let told = told.last().unwrap().document();
    assert_eq!(told["type"], "price.changed");
    assert_eq!(told["data"]["slug"], "test-model");
    assert_eq!(told["data"]["new"], new);
}

#[tokio::test]
async fn a_slug_is_published_and_later_missed_when_it_vanishes_without_a_word() {
    let place = Place::start().await;
    let new = CATALOG.replacen("\"test-blind\"", "\"test-new\"", 1);
    let more = routes(&place.upstream.base_url()).replacen("\"test-blind\"", "\"test-new\"", 1);
    // The route first: one without a model is only a warning.
    fs::write(
        place.path("routes.toml"),
        format!(
            "{}{}",
            routes(&place.upstream.base_url()),
            only_route(&more, "test-new")
        ),
    )
    .unwrap();
    place.generation(2).await;
    assert_eq!(place.status().await["diagnostics"][0]["code"], "W401");
    fs::write(
        place.path("catalog.toml"),
        format!("{CATALOG}{}", only_model(&new, "test-new")),
    )
    .unwrap();
    place.generation(3).await;
    assert_eq!(
        place
            .gateway
            .post(CHAT, &place.key, &chat("test-new", false))
            .await
            .status,
        200
    );

    fs::write(place.path("catalog.toml"), CATALOG).unwrap();
    place.generation(4).await;
    assert_eq!(
        place
            .gateway
            .post(CHAT, &place.key, &chat("test-new", false))
            .await
            .status,
        404
    );
    let status = place.status().await;
    let warned = status["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .any(|finding| {
            finding["code"] == "W404" && finding["message"].as_str().unwrap().contains("test-new")
        });
    assert!(warned, "{status:#}");
    let remembered = place.gateway.ledger.published().await.unwrap();
    assert!(
        remembered
            .iter()
            .any(|published| published.slug == "test-new")
    );
}

/// The part of a file that starts at the last header before this name.
fn section<'a>(text: &'a str, header: &str, name: &str) -> &'a str {
    let at = text.find(&format!("\"{name}\"")).unwrap();
    let begin = text[..at].rfind(header).unwrap();
    let rest = &text[begin + header.len()..];
    &text[begin..begin + header.len() + rest.find("[[").unwrap_or(rest.len())]
}

fn only_model(text: &str, slug: &str) -> String {
    format!("\n{}", section(text, "[[model]]", slug))
}

fn only_route(text: &str, slug: &str) -> String {
    format!("\n{}", section(text, "[[route]]", slug))
}

#[tokio::test]
async fn secrets_are_read_again_and_unchanged_providers_keep_connections_and_health() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("secret"), "first-secret-1\n").unwrap();
    fs::write(folder.path().join("catalog.toml"), CATALOG).unwrap();
    let with_file =
        routes(&upstream.base_url()).replace("{ env = \"UPSTREAM_KEY\" }", "{ file = \"secret\" }");
    fs::write(folder.path().join("routes.toml"), with_file).unwrap();
    let place = Place::follow(folder, upstream, "catalog.toml", "routes.toml").await;
    place.cost().await;
    fs::write(place.path("catalog.toml"), priced("16.00")).unwrap();
    place.generation(2).await;
    place.cost().await;
    assert_eq!(
        place.upstream.connections(),
        1,
        "the connection survived the reload"
    );
    assert_eq!(
        place.status().await["targets"][0]["requests"],
        2,
        "and so did the counts"
    );

    fs::write(place.path("secret"), "second-secret-2\n").unwrap();
    place.generation(3).await;
    place.cost().await;
    let seen = place.upstream.requests();
    let sent: Vec<&str> = seen
        .iter()
        .map(|seen| seen.header("authorization").unwrap())
        .collect();
    assert_eq!(
        sent,
        [
            "Bearer first-secret-1",
            "Bearer first-secret-1",
            "Bearer second-secret-2"
        ]
    );

    fs::write(place.path("secret"), "short").unwrap();
    place.rejected().await;
    let status = place.gateway.ask("/status").await.text;
    assert!(!status.contains("-secret-"), "no secret is shown");
    place.cost().await;
}

#[tokio::test]
async fn ten_thousand_models_are_taken_over_while_requests_run() {
    let place = Place::start().await;
    let mut catalog = CATALOG.to_owned();
    let mut more = routes(&place.upstream.base_url());
    for number in 0..10_000 {
        catalog +=
            &only_model(CATALOG, "test-blind").replace("test-blind", &format!("model-{number}"));
        more += &format!(
            "\n[[route]]\nslug = \"model-{number}\"\ntargets = [ {{ provider = \"up\", model = \"m\" }} ]\n"
        );
    }
    fs::write(place.path("routes.toml"), more).unwrap();
    fs::write(place.path("catalog.toml"), catalog).unwrap();
    place
        .until("all models are there", |status| {
            status["models"].as_array().unwrap().len() == 10_002
        })
        .await;
    assert_eq!(
        place
            .gateway
            .post(CHAT, &place.key, &chat("model-9999", false))
            .await
            .status,
        200
    );
    assert!(
        place
            .gateway
            .ask("/metrics")
            .await
            .text
            .contains("model-9999")
    );
    let remembered = async {
        while place.gateway.ledger.published().await.unwrap().len() < 10_002 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), remembered)
        .await
        .expect("the ledger remembers all slugs");
}

/// The number behind a label in the metrics.
fn counted(metrics: &str, label: &str) -> u64 {
    let number = metrics
        .split(label)
        .nth(1)
        .and_then(|rest| rest.lines().next())
        .expect("the metric is there");
    number.parse().expect("a whole number")
}

#[tokio::test]
async fn a_price_that_falls_by_more_than_half_is_told_with_old_and_new() {
    let place = Place::start().await;
    let alerts = |status: &Value| -> Vec<Value> {
        let all = status["alerts"].as_array().unwrap().iter();
        all.filter(|alert| alert["kind"] == "price_fell")
            .cloned()
            .collect()
    };
    fs::write(place.path("catalog.toml"), priced("0.015")).unwrap();
    place.generation(2).await;
    let told = alerts(&place.status().await);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["slug"], "test-model");
    let text = told[0]["text"].as_str().unwrap();
    assert!(
        text.contains("output from $15.00 to $0.015"),
        "old and new: {text}"
    );
    let reload = place.audited(2).await;
    assert_eq!(reload["price_fell"][0]["slug"], "test-model", "{reload}");
    let what = reload["price_fell"][0]["what"].as_str().unwrap();
    assert!(what.contains("output from $15.00 to $0.015"), "{what}");
    // A later edit of something else does not end it; one of the price does.
    let other = priced("0.015").replacen("\"2.00\"", "\"2.10\"", 1);
    fs::write(place.path("catalog.toml"), other).unwrap();
    place.generation(3).await;
    assert_eq!(alerts(&place.status().await), told);
    assert_eq!(place.audited(3).await["price_fell"], Value::Null, "once");
    fs::write(place.path("catalog.toml"), priced("15.00")).unwrap();
    place.generation(4).await;
    assert!(alerts(&place.status().await).is_empty());
    // A class can fall by itself.
    for (generation, times) in [(5, "2"), (6, "0.5")] {
        let classes = format!("\"15.00\", classes = {{ fast = \"{times}\" }}");
        let catalog = priced("15.00").replacen("\"15.00\"", &classes, 1);
        fs::write(place.path("catalog.toml"), catalog).unwrap();
        place.generation(generation).await;
    }
    let told = alerts(&place.status().await);
    let text = told[0]["text"].as_str().unwrap();
    assert!(text.contains("fast output from $30.00 to $7.50"), "{text}");
}

#[tokio::test]
async fn a_price_below_half_of_the_cost_is_refused_unless_it_is_meant() {
    let place = Place::start().await;
    let routes = fs::read_to_string(place.path("routes.toml")).unwrap();
    let cost = "cost = { input = \"2.50\", output = \"12.50\" }";
    let costly = routes.replacen(
        "model = \"upstream-model-1\"",
        &format!("model = \"upstream-model-1\", {cost}"),
        1,
    );
    assert_ne!(routes, costly, "{routes}");
    fs::write(place.path("routes.toml"), costly).unwrap();
    place.generation(2).await;
    let cheap = priced("0.015");
    fs::write(place.path("catalog.toml"), &cheap).unwrap();
    place.rejected().await;
    assert_eq!(place.cost().await, "0.000045", "the old price");
    let meant = cheap.replacen("[[model]]\n", "[[model]]\nbelow_cost = true\n", 1);
    fs::write(place.path("catalog.toml"), meant).unwrap();
    place.generation(3).await;
}
