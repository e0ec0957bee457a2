//! Certificates that have ended, end soon, are for another name or came without their key: each is a finding and an alert, at the start
//! and after a reload, and ends with the cause.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::bad_days::{alert, logged, over, told};
use crate::support::HOME;
use crate::support::process::{Served, farebox};

/// When the certificates of the tests end, as it stands in them.
const END: &str = "21261028040137Z";

/// The certificate, ending at another time. Whoever connects would see that its signature does not fit; the gateway does not look.
fn ending(at: &str) -> String {
    let pem = fs::read_to_string(format!("{HOME}/tests/tls/first.crt")).unwrap();
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let mut der = BASE64_STANDARD.decode(body).unwrap();
    let place = der
        .windows(END.len())
        .position(|part| part == END.as_bytes());
    let place = place.unwrap();
    der[place..place + END.len()].copy_from_slice(at.as_bytes());
    let text = BASE64_STANDARD.encode(der);
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

fn put(folder: &Path, certificate: &str, key: &str) {
    let key = fs::read(format!("{HOME}/tests/tls/{key}.key")).unwrap();
    fs::write(folder.join("own.crt"), certificate).unwrap();
    fs::write(folder.join("own.key"), key).unwrap();
}

fn settings(public_url: &str) -> [&str; 6] {
    [
        "--tls-cert",
        "own.crt",
        "--tls-key",
        "own.key",
        "--public-url",
        public_url,
    ]
}

/// `farebox check` with these settings: its code, and what it prints.
fn check(folder: &Path, public_url: &str) -> (Option<i32>, String) {
    let output = farebox(folder, &[&["check"], &settings(public_url)[..]].concat())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

fn serve(folder: &Path, public_url: &str) -> Served {
    Served::start(folder, &settings(public_url))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_trouble_of_a_certificate_is_told_at_the_start_and_after_a_reload() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(farebox(folder, &["init"]).status().unwrap().success());
    let whole = fs::read_to_string(format!("{HOME}/tests/tls/first.crt")).unwrap();
    let here = "https://localhost:8443";
    put(folder, &whole, "first");
    assert_eq!(check(folder, here).0, Some(0), "{:?}", check(folder, here));

    put(folder, &ending("20200101000000Z"), "first");
    let (code, said) = check(folder, here);
    assert!(code == Some(78) && said.contains("E609"), "{code:?} {said}");
    let mut served = serve(folder, here);
    served.wait_for_log("the certificate: it has expired on 2020-01-01");
    let expired = told(&served, "certificate_expired", "customers").await;
    assert_eq!(expired["severity"], "page");
    assert!(
        expired["reason"].as_str().unwrap().contains("own.crt"),
        "{expired}"
    );

    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(5 * 24 + 1);
    let soon = soon.strftime("%Y%m%d%H%M%SZ").to_string();
    put(folder, &ending(&soon), "first");
    let (code, said) = check(folder, here);
    assert!(code == Some(0) && said.contains("W424"), "{code:?} {said}");
    served.signal("HUP");
    let ends = told(&served, "certificate_ends", "customers").await;
    assert!(
        ends["reason"].as_str().unwrap().contains("in 5 days"),
        "{ends}"
    );
    over(&served, "certificate_expired", "customers").await;

    // The key of another certificate: the old one stays, and what is wrong with it, too.
    put(folder, &whole, "second");
    let (code, said) = check(folder, here);
    assert!(code == Some(78) && said.contains("E608"), "{code:?} {said}");
    served.signal("HUP");
    let rejected = told(&served, "certificate_rejected", "customers").await;
    let why = rejected["reason"].as_str().unwrap();
    assert!(why.contains("not the key of the certificate"), "{rejected}");
    assert!(
        alert(&served, "certificate_ends", "customers")
            .await
            .is_some()
    );

    put(folder, &whole, "first");
    served.signal("HUP");
    over(&served, "certificate_rejected", "customers").await;
    over(&served, "certificate_ends", "customers").await;
    drop(served);

    let elsewhere = "https://api.example.com";
    let (code, said) = check(folder, elsewhere);
    assert!(code == Some(0) && said.contains("W423"), "{code:?} {said}");
    let served = serve(folder, elsewhere);
    let name = told(&served, "certificate_name", "customers").await;
    assert!(
        name["reason"]
            .as_str()
            .unwrap()
            .contains("`api.example.com`"),
        "{name}"
    );
    logged(&served, "certificate_name", "customers").await;
}
