//! TLS on the admin listener: its certificate is read again on SIGHUP, whatever becomes of the customers' one, and programs that trust it
//! read what is there.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::process::{Served, farebox, funded_key};

const CERTIFICATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/tls");

/// Certificate and key of this name, as this listener's.
fn install(folder: &Path, name: &str, listener: &str) {
    for ending in ["crt", "key"] {
        let from = Path::new(CERTIFICATES).join(format!("{name}.{ending}"));
        // Renamed into place, as tools that renew certificates do.
        let part = folder.join("part");
        fs::copy(from, &part).unwrap();
        fs::rename(part, folder.join(format!("{listener}.{ending}"))).unwrap();
    }
}

/// Whether the certificate of this name is the one that a listener shows to a new connection.
async fn shows(name: &str, url: &str) -> bool {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let pem = fs::read(Path::new(CERTIFICATES).join(format!("{name}.crt"))).unwrap();
    let certificate = reqwest::Certificate::from_pem(&pem).unwrap();
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([certificate])
        .build()
        .unwrap();
    client.get(url).send().await.is_ok()
}

#[tokio::test]
async fn the_admin_listeners_certificate_is_read_again_and_waits_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["catalog.toml", "routes.toml"] {
        let from = Path::new(crate::support::HOME).join(name);
        fs::copy(from, folder.path().join(name)).unwrap();
    }
    funded_key(folder.path(), "1");
    install(folder.path(), "first", "tls");
    install(folder.path(), "first", "admin");
    let arguments = [
        "--tls-cert",
        "tls.crt",
        "--tls-key",
        "tls.key",
        "--admin-tls-cert",
        "admin.crt",
        "--admin-tls-key",
        "admin.key",
    ];
    let mut served = Served::start(folder.path(), &arguments);
    let url = format!("{}/healthz", served.admin);
    assert!(url.starts_with("https://"), "{url}");
    assert!(shows("first", &url).await && !shows("second", &url).await);

    // The customers' key is a pipe that nobody writes to, and the admin listener's certificate a new one.
    let key = folder.path().join("tls.key");
    fs::remove_file(&key).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&key).status();
    assert!(made.unwrap().success());
    install(folder.path(), "second", "admin");
    served.signal("HUP");
    served.wait_for_log("reloaded the certificate");
    served.wait_for_log("it is a pipe or a device");
    served.wait_for_log("reload requested");
    assert!(shows("second", &url).await && !shows("first", &url).await);
    assert!(shows("first", &served.base).await);

    // A command reads the listener with the certificate that it is told, and says what is wrong with another one.
    let status = |certificate: &str| {
        let output = farebox(folder.path(), &["status", "--json"])
            .args([
                "--admin-tls-cert",
                certificate,
                "--admin-tls-key",
                "admin.key",
            ])
            .args([
                "--admin-listen",
                served.admin.trim_start_matches("https://"),
            ])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (serde_json::from_slice::<Value>(&output.stdout).ok(), said)
    };
    let (read, said) = status("admin.crt");
    assert!(read.is_some_and(|status| status["ready"] == true), "{said}");
    let (none, said) = status("tls.crt");
    assert!(
        none.is_none() && said.contains("another certificate than --admin-tls-cert"),
        "{said}"
    );
}
