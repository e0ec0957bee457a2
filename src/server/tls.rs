//! TLS on the customers' listener: one certificate, read from its files at startup and again when the operator asks.
//!
//! New files replace the old certificate only when both parse and match; open connections keep theirs.
//!
//! Rows of docs/interface.md: `json_over_https`.

use std::fmt;
use std::future::{Ready, ready};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::stream::{Once, once};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use salvo::conn::IntoConfigStream;

use crate::config::source;

/// A certificate with its intermediates has a few KiB.
const LARGEST_FILE: u64 = 1024 * 1024;

/// The PEM files of certificate and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by its intermediates.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Why a certificate is not usable. Never shows a key.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct TlsError {
    path: String,
    problem: String,
}

impl TlsError {
    fn new(path: &Path, problem: &impl fmt::Display) -> Self {
        Self {
            path: path.display().to_string(),
            problem: problem.to_string(),
        }
    }
}

/// The certificate in force.
pub struct Tls {
    files: TlsFiles,
    current: ArcSwap<CertifiedKey>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tls")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads both files.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn load(files: TlsFiles) -> Result<Arc<Self>, TlsError> {
        let current = ArcSwap::from_pointee(read(&files)?);
        Ok(Arc::new(Self { files, current }))
    }

    /// Reads both files again.
    ///
    /// # Errors
    /// [`TlsError`]; the certificate stays what it was.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.current.store(Arc::new(read(&self.files)?));
        Ok(())
    }

    /// The listener's TLS configuration.
    pub(super) fn server_config(self: &Arc<Self>) -> std::io::Result<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(std::io::Error::other)?;
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<Self>::clone(self);
        let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

impl ResolvesServerCert for Tls {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

fn read(files: &TlsFiles) -> Result<CertifiedKey, TlsError> {
    let TlsFiles { certificate, key } = files;
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(&content(certificate)?)
            .collect::<Result<_, _>>()
            .map_err(|error| TlsError::new(certificate, &error))?;
    if chain.is_empty() {
        return Err(TlsError::new(certificate, &"there is no certificate in it"));
    }
    let private = PrivateKeyDer::from_pem_slice(&content(key)?)
        .map_err(|error| TlsError::new(key, &error))?;
    CertifiedKey::from_der(chain, private, &default_provider())
        .map_err(|error| TlsError::new(key, &error))
}

fn content(path: &Path) -> Result<Vec<u8>, TlsError> {
    source::content(path, LARGEST_FILE).map_err(|error| TlsError::new(path, &source::plain(&error)))
}

/// A constant configuration: new certificates come through the resolver.
pub(super) struct Constant(pub(super) ServerConfig);

impl IntoConfigStream<ServerConfig> for Constant {
    type Stream = Once<Ready<ServerConfig>>;

    fn into_stream(self) -> Self::Stream {
        once(ready(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_refused_at_the_start_and_at_a_reload() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        for name in ["first.crt", "first.key"] {
            std::fs::copy(
                Path::new(env!("CARGO_MANIFEST_DIR"))
                    .join("tests/tls")
                    .join(name),
                place(name),
            )
            .unwrap();
        }
        let files = TlsFiles {
            certificate: place("first.crt"),
            key: place("first.key"),
        };
        let tls = Tls::load(files.clone()).unwrap();
        for path in [&files.certificate, &files.key] {
            let kept = std::fs::read(path).unwrap();
            std::fs::remove_file(path).unwrap();
            assert!(
                std::process::Command::new("mkfifo")
                    .arg(path)
                    .status()
                    .unwrap()
                    .success()
            );
            for problem in [
                tls.reload().unwrap_err(),
                Tls::load(files.clone()).unwrap_err(),
            ] {
                assert_eq!(
                    problem.to_string(),
                    format!("{}: it is a pipe or a device, not a file", path.display())
                );
            }
            std::fs::remove_file(path).unwrap();
            std::fs::write(path, kept).unwrap();
        }
        tls.reload().unwrap();
    }
}
