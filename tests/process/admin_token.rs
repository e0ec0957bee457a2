//! The gateway's own admin token. Every user of the machine reaches loopback; key ids and webhook paths are for who may read the token's
//! file: commands and console of the gateway's user.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use farebox_ledger::LedgerAddress;
use futures_util::StreamExt;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::block_in_place;

use crate::support::cluster::Cluster;
use crate::support::load::{self, UPSTREAM_KEY};
use crate::support::process::{Served, client, farebox, funded_key};
use crate::support::skip::skip;
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, CATALOG, Gateway, chat, routes, talking};

const CHAT: &str = "/v1/chat/completions";
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// What nobody may see of the webhook's address.
const PATH: &str = "hooks/T0K3N-IN-THE-PATH";
const PATIENCE: Duration = Duration::from_secs(60);

/// A receiver that wants no more events, and the part of `routes.toml` that names it.
async fn receiver(folder: &Path) -> (String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/{PATH}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = vec![0; 64 * 1024];
            let _ = stream.read(&mut buffer).await;
            let gone = b"HTTP/1.1 410 Gone\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(gone).await;
        }
    });
    let secret = folder.join("secret");
    fs::write(&secret, SECRET).unwrap();
    let table = format!(
        "\n[[webhook]]\nurl = \"{url}\"\nsecret = {{ file = \"{}\" }}\n",
        secret.display()
    );
    (url, table)
}

/// What a reader with this token gets at a path of the admin listener.
async fn get(admin: &str, path: &str, token: Option<&str>) -> Answer {
    let mut request = client().get(format!("{admin}{path}"));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    Answer::read(request.send().await.unwrap()).await
}

/// The first event that such a reader of `/live` gets.
async fn first_event(admin: &str, token: Option<&str>) -> String {
    let mut request = client().get(format!("{admin}/live"));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let mut body = request.send().await.unwrap().bytes_stream();
    let mut text = String::new();
    while !text.contains("\"slug\"") {
        let next = tokio::time::timeout(PATIENCE, body.next()).await;
        text += &String::from_utf8_lossy(&next.expect("an event").unwrap().unwrap());
    }
    text
}

/// Waits until the status, read with this token, has these words.
async fn until_status(admin: &str, token: &str, words: &str) -> String {
    let begun = Instant::now();
    loop {
        let text = get(admin, "/status", Some(token)).await.text;
        if text.contains(words) {
            return text;
        }
        assert!(begun.elapsed() < PATIENCE, "{words}: {text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A gateway on this ledger, or on a file if there is none.
async fn shows_ids_and_paths_to_the_token_alone(database: Option<LedgerAddress>) {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let folder = tempfile::tempdir().unwrap();
    let (url, table) = receiver(folder.path()).await;
    let files = routes(&upstream.base_url()) + &table;
    let state = folder.path().join("state.json");
    let beside = state.clone();
    let gateway = Gateway::start_with(CATALOG, &files, |settings| {
        if let Some(database) = database {
            settings.ledger = database;
            settings.allow_single = true;
            settings.state = Some(beside);
        }
    })
    .await;
    let admin = &gateway.admin;
    let token = gateway.admin_token.as_deref().unwrap();
    // It hears of what happens from then on.
    until_status(admin, token, &url).await;
    let key = gateway.key("5.00").await;
    let answer = gateway.post(CHAT, &key, &chat("test-model", false)).await;
    let request = answer.header("x-request-id").unwrap().to_owned();
    gateway.settled().await;
    let customer = gateway.account(&key).await.customer.id;
    let hidden = [key.id.to_string(), customer.to_string(), PATH.to_owned()];
    until_status(admin, token, "\"webhook_disabled\"").await;

    let whole = get(admin, "/status", Some(token)).await;
    assert_eq!(whole.json()["shortened"], false);
    assert_eq!(whole.json()["webhooks"][0]["url"], url.as_str());
    let metrics = get(admin, "/metrics", Some(token)).await.text;
    assert!(metrics.contains(&format!("subject=\"{url}\"")), "{metrics}");
    let event = first_event(admin, Some(token)).await;
    assert!(event.contains(&hidden[0]), "{event}");
    let one = get(admin, &format!("/requests/{request}"), Some(token)).await;
    assert_eq!(one.json()["entry"]["key"], hidden[0].as_str());

    // Who has no token sees the same without them.
    let shortened = get(admin, "/status", None).await;
    assert_eq!(shortened.json()["shortened"], true);
    let host = url.strip_suffix(PATH).unwrap();
    assert_eq!(shortened.json()["webhooks"][0]["url"], format!("{host}…"));
    for part in ["public_url", "targets", "models", "ledger"] {
        let (seen, whole) = (&shortened.json()[part], &whole.json()[part]);
        if part == "public_url" {
            assert_eq!(seen, whole);
        }
        assert!(!seen.is_null(), "{part}");
    }
    let metrics = get(admin, "/metrics", None).await;
    let alert = format!("kind=\"webhook_disabled\",severity=\"warn\",subject=\"{host}…\"");
    assert!(metrics.text.contains(&alert), "{}", metrics.text);
    let event = first_event(admin, None).await;
    assert!(event.contains("\"key\":\"…\""), "{event}");
    for text in [&shortened.text, &metrics.text, &event] {
        for hidden in &hidden {
            assert!(!text.contains(hidden), "{hidden}: {text}");
        }
    }
    let one = get(admin, &format!("/requests/{request}"), None).await;
    assert_eq!(
        (one.status, one.header("www-authenticate")),
        (401, Some("Bearer"))
    );
    assert!(
        one.text.contains("beside its ledger's lock"),
        "{}",
        one.text
    );

    // A wrong one is refused, however often, and locks nobody out.
    let wrong = token.replace(|c: char| c.is_ascii_digit(), "a") + "b";
    for number in 0..200 {
        let path = ["/status", "/metrics", "/live", "/requests/x"][number % 4];
        let sent = if number % 8 < 4 { &wrong } else { &token[1..] };
        let refused = gateway.ask_with(path, Some(sent)).await;
        assert_eq!(refused.status, 401, "{path}");
    }
    assert_eq!(get(admin, "/status", Some(token)).await.status, 200);
    assert_eq!(get(admin, "/status", None).await.status, 200);
    assert_eq!(get(admin, "/readyz", Some(&wrong)).await.status, 200);
}

#[tokio::test]
async fn on_sqlite_ids_and_paths_are_for_the_token_alone() {
    shows_ids_and_paths_to_the_token_alone(None).await;
}

#[tokio::test]
async fn on_postgresql_ids_and_paths_are_for_the_token_alone() {
    let Some(cluster) = Cluster::shared() else {
        return skip("the admin token beside a state file: PostgreSQL is not installed");
    };
    let address = cluster.url(&cluster.database()).parse().unwrap();
    shows_ids_and_paths_to_the_token_alone(Some(address)).await;
}

/// A folder for a gateway with a webhook, and that webhook's address.
async fn place(upstream: &ScriptedUpstream) -> (TempDir, String) {
    let (folder, _) = load::place(upstream);
    let (url, table) = receiver(folder.path()).await;
    let file = folder.path().join("routes.toml");
    let routes = fs::read_to_string(&file).unwrap() + &table;
    fs::write(&file, routes).unwrap();
    (folder, url)
}

/// The token in a file that only its owner may read.
fn token_in(file: &Path) -> String {
    let mode = file.symlink_metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600, "{}", file.display());
    let text = fs::read_to_string(file).unwrap();
    let token = text.strip_suffix('\n').unwrap();
    assert!(token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit()));
    token.to_owned()
}

/// `farebox status` with these settings: whether it could, its document, and what it said besides.
fn status(folder: &Path, admin: &str, arguments: &[&str]) -> (bool, Value, String) {
    let address = admin.trim_start_matches("http://");
    let run = |format: &[&str]| {
        farebox(folder, &["status", "--admin-listen", address])
            .args(arguments)
            .args(format)
            .output()
            .unwrap()
    };
    let (table, document) = (run(&[]), run(&["--json"]));
    assert_eq!(table.status.success(), document.status.success());
    let said = [table.stdout, table.stderr].concat();
    let document = serde_json::from_slice(&document.stdout).unwrap_or_default();
    (
        table.status.success(),
        document,
        String::from_utf8(said).unwrap(),
    )
}

/// One request of this key: nothing but that it was answered.
async fn asks(served: &Served, key: &Value) {
    let secret = key["secret"].as_str().unwrap();
    served.ask("test-model", secret).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn each_start_has_its_own_and_commands_and_a_running_console_follow_it() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let (folder, url) = place(&upstream).await;
    let file = folder.path().join("farebox.db.admin-token");
    let ledger = folder.path().join("farebox.db").display().to_string();
    let logging = [UPSTREAM_KEY, ("FAREBOX_LOG", "trace")];
    let start = |arguments: &[&str]| {
        block_in_place(|| Served::start_with(folder.path(), arguments, &logging))
    };
    let mut served = block_in_place(|| start(&[]).watched(&ledger));
    let (first, admin) = (token_in(&file), served.admin.clone());
    until_status(&admin, &first, &url).await;
    let key = block_in_place(|| funded_key(folder.path(), "5"));
    until_status(&admin, &first, "\"webhook_disabled\"").await;

    // Commands and console of who may read the file see everything.
    let (_, document, said) = block_in_place(|| status(folder.path(), &admin, &[]));
    assert_eq!(document["webhooks"][0]["url"], url.as_str());
    assert!(said.contains(&url) && !said.contains("left out"), "{said}");
    if let Some(screen) = &served.screen {
        screen.until(PATH);
        screen.press("2");
    }
    // Others are told what they miss, and why.
    let (done, document, said) =
        block_in_place(|| status(folder.path(), &admin, &["--ledger", "elsewhere.db"]));
    assert!(done && document["shortened"] == true, "{document}");
    assert!(
        !said.contains(PATH) && !document.to_string().contains(PATH),
        "{said}"
    );
    let why = "left out: the gateway's token is in elsewhere.db.admin-token";
    assert!(said.contains(why), "{said}");

    // A killed gateway leaves its token behind, which opens nothing any more.
    served.kill();
    assert!(
        !served.log().contains(&first),
        "it is in no line of the log"
    );
    assert_eq!(token_in(&file), first);
    let screen = served.screen.take();
    let again = start(&["--admin-listen", admin.trim_start_matches("http://")]);
    let second = token_in(&file);
    assert_ne!(first, second);
    assert_eq!(get(&admin, "/status", Some(&first)).await.status, 401);
    let (_, document, _) = block_in_place(|| status(folder.path(), &admin, &[]));
    assert_eq!(document["shortened"], false);
    asks(&again, &key).await;
    if let Some(screen) = screen {
        let id = key["id"].as_str().unwrap();
        block_in_place(|| screen.until(&format!("{id} t test-model")));
    }

    let mut again = again;
    again.signal("TERM");
    assert!(again.ended().success());
    assert!(file.symlink_metadata().is_err(), "gone after a clean stop");
    assert!(!again.log().contains(&second));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_cannot_write_its_token_serves_and_says_so() {
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let (folder, _) = place(&upstream).await;
    let key = block_in_place(|| funded_key(folder.path(), "5"));
    let file = folder.path().join("farebox.db.admin-token");
    fs::create_dir(&file).unwrap();
    let served = block_in_place(|| Served::start_with(folder.path(), &[], &[UPSTREAM_KEY]));
    let log = served.log();
    let lines: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("no admin token"))
        .collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(
        lines[0].contains("WARN") && lines[0].contains("farebox.db.admin-token cannot be written"),
        "{log}"
    );
    asks(&served, &key).await;
    let status = get(&served.admin, "/status", None).await;
    assert_eq!(status.json()["shortened"], true);
    for sent in ["a", &"a".repeat(64)] {
        let refused = get(&served.admin, "/status", Some(sent)).await;
        assert!(refused.status == 401 && refused.text.contains("could not write one"));
    }
    assert!(file.is_dir());
}

/// A gateway of a fleet on this machine, with its own state file.
fn of_fleet(folder: &Path, address: &str, name: &str) -> Served {
    let arguments = ["--allow-single", "--state", name];
    let environment = [UPSTREAM_KEY, ("FAREBOX_LEDGER", address)];
    Served::start_with(folder, &arguments, &environment)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_gateway_of_a_fleet_has_its_own_beside_its_state() {
    let Some(cluster) = Cluster::shared() else {
        return skip("the admin tokens of a fleet: PostgreSQL is not installed");
    };
    let upstream = ScriptedUpstream::start(talking("PONG")).await;
    let (folder, url) = place(&upstream).await;
    let address = cluster.url(&cluster.database());
    load::new_ledger(&address).await.close();
    let (one, other) = block_in_place(|| {
        (
            of_fleet(folder.path(), &address, "state-1.json"),
            of_fleet(folder.path(), &address, "state-2.json"),
        )
    });
    let files: [PathBuf; 2] = ["state-1.json.admin-token", "state-2.json.admin-token"]
        .map(|name| folder.path().join(name));
    let [first, second] = [token_in(&files[0]), token_in(&files[1])];
    assert_ne!(first, second);
    assert_eq!(get(&other.admin, "/status", Some(&first)).await.status, 401);
    let asked = |admin: &str, more: &[&str]| {
        let arguments = [&["--ledger", &address][..], more].concat();
        block_in_place(|| status(folder.path(), admin, &arguments))
    };
    until_status(&one.admin, &first, &url).await;
    for (gateway, state) in [(&one, "state-1.json"), (&other, "state-2.json")] {
        let (_, document, said) = asked(&gateway.admin, &["--state", state]);
        assert_eq!(document["shortened"], false, "{said}");
    }
    let (done, _, said) = asked(&one.admin, &["--state", "state-2.json"]);
    assert!(!done && said.contains("wants its own token"), "{said}");
    let (done, document, said) = asked(&one.admin, &[]);
    assert!(done && document["shortened"] == true, "{said}");
    assert!(said.contains("left out: set --state"), "{said}");

    let (mut one, mut other) = (one, other);
    one.signal("TERM");
    assert!(one.ended().success());
    assert!(files[0].symlink_metadata().is_err());
    assert_eq!(token_in(&files[1]), second);
    other.signal("TERM");
    assert!(other.ended().success());
    assert!(files[1].symlink_metadata().is_err());
}
