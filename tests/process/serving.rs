//! `farebox serve` as a process: signals, the serve lock, TLS, the log, and many reloads under load.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::process::{
    Served, ask, client, farebox, funded_key, json as document, text_at,
};
use crate::support::sized;

/// The shipped files in a new folder, and a funded key's secret.
fn place() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["catalog.toml", "routes.toml"] {
        fs::copy(
            Path::new(crate::support::HOME).join(name),
            folder.path().join(name),
        )
        .unwrap();
    }
    let made = funded_key(folder.path(), "1000");
    let secret = made["secret"].as_str().unwrap().to_owned();
    (folder, secret)
}

async fn metric(client: &reqwest::Client, admin: &str, name: &str) -> u64 {
    let text = text_at(client, format!("{admin}/metrics")).await;
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
        .unwrap_or_default()
}

#[tokio::test]
async fn it_stops_gracefully_and_its_ledger_is_whole() {
    let (folder, secret) = place();
    let mut served = Served::start(folder.path(), &[]);
    ask(&client(), &served.base, "sim-chat", &secret)
        .await
        .unwrap();
    let told = client().head(&served.base).send().await.unwrap();
    assert!(
        told.headers().get("strict-transport-security").is_none(),
        "only where TLS is ours"
    );
    served.signal("TERM");
    assert!(served.ended().success(), "{}", served.log());
    let log = served.log();
    assert!(
        log.contains("every request is settled") && log.contains("status=200"),
        "{log}"
    );
    assert!(
        !log.contains(&secret) && !log.contains("Say PONG"),
        "no secret and no body: {log}"
    );
    assert!(
        farebox(folder.path(), &["ledger", "verify"])
            .output()
            .unwrap()
            .status
            .success()
    );
}

#[tokio::test]
async fn one_gateway_for_one_ledger_and_a_second_one_may_wait() {
    let (folder, _) = place();
    let mut first = Served::start(folder.path(), &[]);
    let ports = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
    ];
    let refused = farebox(folder.path(), &ports).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("in use by process"), "{said}");
    let folder = folder.path().to_owned();
    let waiting = std::thread::spawn(move || Served::start(&folder, &["--wait-lock", "60"]));
    std::thread::sleep(Duration::from_millis(300));
    first.signal("TERM");
    first.ended();
    assert!(
        waiting.join().unwrap().log().contains("serving"),
        "it took over"
    );
}

#[tokio::test]
async fn bad_files_do_not_start_and_leave_no_ledger() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("catalog.toml"), "[[model]]\nslug = 7\n").unwrap();
    fs::write(folder.path().join("routes.toml"), "").unwrap();
    let output = farebox(folder.path(), &["serve"]).output().unwrap();
    assert_eq!(output.status.code(), Some(78));
    assert!(String::from_utf8_lossy(&output.stderr).contains("catalog.toml:2:8"));
    assert!(!folder.path().join("farebox.db").exists());
}

#[tokio::test]
async fn a_bad_edit_is_in_the_log_with_its_caret() {
    let (folder, _) = place();
    let mut served = Served::start(folder.path(), &[]);
    let path = folder.path().join("catalog.toml");
    let good = fs::read_to_string(&path).unwrap();
    fs::write(&path, good.replacen("best_path ", "best_pat ", 1)).unwrap();
    let log = served.wait_for_log("did you mean `best_path`?");
    assert!(
        log.contains("stays in force") && log.contains("^^^^^^^^"),
        "{log}"
    );
    fs::write(&path, good).unwrap();
    served.wait_for_log("match the running configuration again");
    served.signal("HUP");
    served.wait_for_log("reload requested");
}

#[tokio::test]
async fn https_with_a_certificate_that_is_read_again() {
    let (folder, secret) = place();
    let certificates = Path::new(crate::support::HOME).join("tests/tls");
    let install = |name: &str| {
        for ending in ["crt", "key"] {
            fs::copy(
                certificates.join(format!("{name}.{ending}")),
                folder.path().join(format!("tls.{ending}")),
            )
            .unwrap();
        }
    };
    let trusting = |name: &str| {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let pem = fs::read(certificates.join(format!("{name}.crt"))).unwrap();
        let certificate = reqwest::Certificate::from_pem(&pem).unwrap();
        reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([certificate])
            .build()
            .unwrap()
    };
    install("first");
    let mut served = Served::start(
        folder.path(),
        &["--tls-cert", "tls.crt", "--tls-key", "tls.key"],
    );
    assert!(
        served.base.starts_with("https://127.0.0.1:"),
        "{}",
        served.base
    );
    ask(&trusting("first"), &served.base, "sim-chat", &secret)
        .await
        .unwrap();
    assert!(
        ask(&trusting("second"), &served.base, "sim-chat", &secret)
            .await
            .is_err()
    );
    let told = trusting("first").head(&served.base).send().await.unwrap();
    assert_eq!(
        told.headers()["strict-transport-security"],
        "max-age=31536000"
    );

    install("second");
    served.signal("HUP");
    served.wait_for_log("reloaded the certificate");
    ask(&trusting("second"), &served.base, "sim-chat", &secret)
        .await
        .unwrap();

    fs::copy(
        certificates.join("first.key"),
        folder.path().join("tls.key"),
    )
    .unwrap();
    served.signal("HUP");
    served.wait_for_log("the old one stays in force");
    ask(&trusting("second"), &served.base, "sim-chat", &secret)
        .await
        .unwrap();

    // A pipe that nobody writes to would be waited for without end.
    let key = folder.path().join("tls.key");
    fs::remove_file(&key).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&key).status();
    assert!(made.unwrap().success());
    served.signal("HUP");
    served.wait_for_log("it is a pipe or a device");
    ask(&trusting("second"), &served.base, "sim-chat", &secret)
        .await
        .unwrap();
}

#[tokio::test]
async fn the_log_is_one_line_or_one_object_for_each_request() {
    let (folder, secret) = place();
    let mut served = Served::start_with(folder.path(), &[], &[("FAREBOX_LOG_FORMAT", "json")]);
    let client = client();
    ask(&client, &served.base, "sim-chat", &secret)
        .await
        .unwrap();
    ask(&client, &served.base, "sim-chat", "nonsense")
        .await
        .unwrap_err();
    served.signal("TERM");
    served.ended();
    let log = served.log();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    let requests: Vec<&Value> = lines
        .iter()
        .filter(|line| line["message"] == "request")
        .collect();
    assert_eq!(
        (
            requests.len(),
            requests[0]["status"].as_u64(),
            requests[1]["status"].as_u64()
        ),
        (2, Some(200), Some(401)),
        "{log}"
    );
    let served = requests[0];
    assert!(
        served["request"].as_str().unwrap().starts_with("req_")
            && served["key"].as_str().unwrap().starts_with("k_")
    );
    assert_eq!(
        (
            served["slug"].as_str(),
            served["charge"].is_string(),
            served["output"].is_u64()
        ),
        (Some("sim-chat"), true, true)
    );
    assert!(
        !log.contains(&secret) && !log.contains("Say PONG") && !log.contains('\u{1b}'),
        "{log}"
    );
}

#[tokio::test]
async fn the_service_manager_is_told() {
    let (folder, _) = place();
    let path = folder.path().join("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let heard = || {
        let mut text = [0; 200];
        let length = socket.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    let mut served = Served::start_with(
        folder.path(),
        &[],
        &[("NOTIFY_SOCKET", path.to_str().unwrap())],
    );
    assert!(heard().starts_with("READY=1\n"));
    served.signal("TERM");
    assert!(heard().starts_with("STOPPING=1\n"));
    assert!(served.ended().success());
}

#[tokio::test]
async fn addresses_off_loopback_without_tls_are_warned_about() {
    let (folder, _) = place();
    let mut served = Served::start(
        folder.path(),
        &["--listen", "0.0.0.0:0", "--admin-listen", "0.0.0.0:0"],
    );
    let log = served.wait_for_log("closed until --admin-token-file is set");
    assert!(log.contains("without TLS"), "{log}");
    let short = folder.path().join("token");
    fs::write(&short, "short").unwrap();
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--ledger",
        "other.db",
        "--admin-token-file",
        "token",
    ];
    let refused = farebox(folder.path(), &arguments).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(!folder.path().join("other.db").exists());
}

/// Reloads, of which every tenth is a bad edit.
fn rounds() -> u64 {
    sized(50, 1_000)
}

/// The shipped catalog with `sim-chat` at these USD for a million tokens of input, and four times that for output.
fn catalog(input: u64) -> String {
    let shipped = include_str!("../../catalog.toml");
    let line = shipped
        .lines()
        .find(|line| line.contains("\"1.25\""))
        .unwrap();
    shipped.replacen(
        line,
        &format!(
            "price = {{ input = \"{input}\", output = \"{}\" }}",
            input * 4
        ),
        1,
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_reloads_under_load_fail_no_request_and_every_charge_recomputes() {
    let (folder, secret) = place();
    let served = Served::start(folder.path(), &[]);
    let client = client();
    let stop = Arc::new(AtomicBool::new(false));
    let load: Vec<_> = (0..4)
        .map(|_| {
            let (client, base, secret, stop) = (
                client.clone(),
                served.base.clone(),
                secret.clone(),
                Arc::clone(&stop),
            );
            tokio::spawn(async move {
                let mut took = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    ask(&client, &base, "sim-chat", &secret)
                        .await
                        .expect("no request fails");
                    took.push((begun, begun.elapsed()));
                    // Four of them stay below the 200 requests a second that a key may send.
                    tokio::time::sleep(Duration::from_millis(25)).await;
                }
                took
            })
        })
        .collect();

    tokio::time::sleep(Duration::from_secs(1)).await;
    let reloading_since = Instant::now();
    let path = folder.path().join("catalog.toml");
    let outcome = |name: &str| format!("farebox_config_reloads_total{{outcome=\"{name}\"}}");
    for round in 1..=rounds() {
        let bad = round % 10 == 0;
        let text = if bad {
            catalog(round).replacen("slug ", "slugg ", 1)
        } else {
            catalog(round)
        };
        fs::write(folder.path().join("next"), text).unwrap();
        fs::rename(folder.path().join("next"), &path).unwrap();
        served.signal("HUP");
        let (name, wanted) = if bad {
            ("rejected", round / 10)
        } else {
            ("applied", round - round / 10)
        };
        let begun = Instant::now();
        while metric(&client, &served.admin, &outcome(name)).await < wanted {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "round {round} was not seen:\n{}",
                served.log()
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    stop.store(true, Ordering::Relaxed);
    let mut took = Vec::new();
    for worker in load {
        took.extend(worker.await.unwrap());
    }
    let (quiet, reloading) = took.iter().partition(|(begun, _)| *begun < reloading_since);
    let (quiet, reloading) = (p99(quiet), p99(reloading));
    println!(
        "{} requests, {} reloads; p99 {quiet:?} before, {reloading:?} during",
        took.len(),
        rounds()
    );
    // Shown, not asserted: a busy machine must not fail the build. No request failed, and every charge recomputes.
    let total = took.len() as u64;
    drop(served);
    recompute(folder.path(), total);
}

fn p99(took: Vec<&(Instant, Duration)>) -> Duration {
    let mut sorted: Vec<Duration> = took.into_iter().map(|(_, took)| *took).collect();
    sorted.sort_unstable();
    sorted
        .get(sorted.len() * 99 / 100)
        .copied()
        .unwrap_or_default()
}

/// Every charge is the sum of its lines, whose prices are those of a single snapshot that was in force.
fn recompute(folder: &Path, answered: u64) {
    let entries = document(folder, &["ledger", "entries"])["entries"].clone();
    let charges: Vec<&Value> = entries
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["kind"] == "charge")
        .collect();
    assert!(
        charges.len() as u64 >= answered,
        "{} charges for {answered} answers",
        charges.len()
    );
    let shipped = (1_250_000, 10_000_000);
    let mut prices = std::collections::BTreeSet::new();
    for charge in charges {
        let rate = |what: &str| {
            let lines = charge["lines"].as_array().unwrap();
            let line = lines
                .iter()
                .find(|line| line["what"] == what)
                .unwrap_or_else(|| panic!("{charge:#}"));
            (line["count"].as_i64().unwrap(), picos(&line["rate"]))
        };
        let ((input, at), (output, out_at)) = (rate("input"), rate("output"));
        let million = 1_000_000;
        let of_a_snapshot = (at, out_at) == shipped
            || (out_at == 4 * at && at % million == 0 && (at / million) % 10 != 0);
        assert!(
            of_a_snapshot,
            "prices of two snapshots, or of a rejected one: {charge:#}"
        );
        assert_eq!(
            -picos(&charge["amount"]),
            input * at + output * out_at,
            "{charge:#}"
        );
        prices.insert(at);
    }
    assert!(
        prices.len() > 5,
        "the load saw several snapshots: {prices:?}"
    );
    assert!(
        farebox(folder, &["ledger", "verify"])
            .output()
            .unwrap()
            .status
            .success()
    );
}

/// Picodollars of an exact decimal in USD.
fn picos(text: &Value) -> i64 {
    farebox_ledger::Amount::from_usd_str(text.as_str().unwrap())
        .unwrap()
        .picos()
}
