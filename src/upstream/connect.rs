//! The HTTP client of a provider: connections over TCP, and TLS where the base URL says so.
//!
//! No redirects, no proxy from the environment, no compression, and HTTP/1.1 only, because one shared HTTP/2 connection would
//! queue streams behind its limit. It knows nothing of keys or headers.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tower_service::Service;

/// A pool of connections, and requests over them.
pub(super) type Client = legacy::Client<Connector, Full<Bytes>>;

/// A connection without a request is closed after this long.
const POOL_IDLE: Duration = Duration::from_secs(40);
/// How often, and how many times, a silent peer is asked whether it is still there.
const PROBE: (Duration, u32) = (Duration::from_secs(15), 3);
/// Bytes that nobody acknowledges for this long break a connection.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Where system certificates are kept, whatever the distribution.
const SYSTEM_BUNDLES: [&str; 4] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"];

/// Trust in certificates, read once for all pools.
#[derive(Clone)]
pub(super) struct Trust(Arc<ClientConfig>);

impl Trust {
    /// The built-in roots, so that a machine without a store works, and those of the machine.
    pub(super) fn load() -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
        if let Some(found) = SYSTEM_BUNDLES.iter().find_map(|path| CertificateDer::pem_file_iter(path).ok()) {
            roots.add_parsable_certificates(found.filter_map(Result::ok));
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be set up: {error}"))?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }
}

/// A client that connects within `limit`; no connection is opened yet.
pub(super) fn client(trust: &Trust, limit: Duration) -> Client {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(PROBE.0));
    tcp.set_keepalive_interval(Some(PROBE.0));
    tcp.set_keepalive_retries(Some(PROBE.1));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    let connector = Connector { connector: HttpsConnector::from((tcp, Arc::clone(&trust.0))), limit };
    legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE)
        .build(connector)
}

/// Connects within a limit that includes the TLS handshake.
#[derive(Clone)]
pub(super) struct Connector {
    connector: HttpsConnector<HttpConnector>,
    limit: Duration,
}

type Connected = Result<MaybeHttpsStream<TokioIo<TcpStream>>, Box<dyn std::error::Error + Send + Sync>>;

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Connected> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (limit, connecting) = (self.limit, self.connector.call(to));
        Box::pin(async move {
            let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {limit:?}")).into());
            tokio::time::timeout(limit, connecting).await.unwrap_or_else(late)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_loads_without_a_default_provider() {
        assert!(Trust::load().is_ok());
    }

    #[tokio::test]
    async fn a_peer_that_never_shakes_hands_is_given_up_within_the_limit() {
        let deaf = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = client(&Trust::load().unwrap(), Duration::from_millis(50));
        let asked = client.get(format!("https://{}/", deaf.local_addr().unwrap()).parse().unwrap()).await;
        let error = asked.unwrap_err();
        assert!(error.is_connect());
        assert_eq!(super::super::stream::cause(&error), "no connection within 50ms");
    }
}
