//! Off loopback only over TLS, or behind a proxy that the operator named.

use farebox::server::TlsFiles;
use farebox_cli::app::Settings;
use farebox_ledger::TokenRole;

use super::{Program, code};
use crate::support::upstream::ScriptedUpstream;
use crate::support::{Answer, CATALOG, Gateway, routes, talking};

/// An address of this machine that is not loopback.
fn outside() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then_some(address)
}

fn files() -> TlsFiles {
    let place = |name: &str| {
        std::path::Path::new(crate::support::HOME)
            .join("tests/tls")
            .join(name)
    };
    TlsFiles {
        certificate: place("first.crt"),
        key: place("first.key"),
    }
}

fn trusting() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder().no_proxy();
    builder
        .tls_danger_accept_invalid_certs(true)
        .build()
        .unwrap()
}

async fn started(change: impl FnOnce(&mut Settings)) -> (ScriptedUpstream, Gateway) {
    let upstream = ScriptedUpstream::start(talking("one")).await;
    let gateway = Gateway::start_with(CATALOG, &routes(&upstream.base_url()), |settings| {
        settings.admin_listen = Some("0.0.0.0:0".parse().unwrap());
        change(settings);
    })
    .await;
    (upstream, gateway)
}

fn port(gateway: &Gateway) -> u16 {
    gateway.admin.rsplit(':').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn plain_http_from_another_machine_is_refused_and_tls_is_served() {
    let Some(outside) = outside() else {
        return crate::support::skip::list("the API off loopback: this machine has loopback only");
    };
    let (_upstream, gateway) = started(|_| {}).await;
    let mut program = Program::new(&gateway, TokenRole::Read).await;
    program.base = format!("http://{outside}:{}/api/v1", port(&gateway));
    let refused = program.get("/customers").await;
    assert_eq!(
        (refused.status, code(&refused).as_str()),
        (403, "tls_required")
    );
    program.base = format!("http://127.0.0.1:{}/api/v1", port(&gateway));
    assert_eq!(program.get("/customers").await.status, 200);

    let (_upstream, gateway) = started(|settings| settings.admin_tls = Some(files())).await;
    let mut program = Program::new(&gateway, TokenRole::Read).await;
    program.client = trusting();
    program.base = format!("https://{outside}:{}/api/v1", port(&gateway));
    assert_eq!(program.get("/customers").await.status, 200);
}

#[tokio::test]
async fn behind_a_proxy_that_is_trusted_its_word_counts() {
    let behind = |settings: &mut Settings| {
        settings.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    };
    let (_upstream, gateway) = started(behind).await;
    let mut program = Program::new(&gateway, TokenRole::Read).await;
    program.base = format!("http://127.0.0.1:{}/api/v1", port(&gateway));
    let from = ("x-forwarded-for", "198.51.100.7");
    for (headers, status) in [
        (&[from, ("x-forwarded-proto", "https")][..], 200),
        (&[from, ("x-forwarded-proto", "http")], 403),
        // Nobody says that it was encrypted on its way to the proxy.
        (&[from], 403),
        // The machine itself asks.
        (&[], 200),
    ] {
        let mut request = program.request("GET", "/customers");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = Answer::read(request.send().await.unwrap()).await;
        assert_eq!(answer.status, status, "{headers:?}: {}", answer.text);
    }
}
