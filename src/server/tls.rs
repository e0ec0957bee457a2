//! TLS on a listener: one certificate, read from its files at startup and again when the operator asks.
//!
//! New files replace the old certificate only when both parse and match; open connections keep theirs. What is wrong with it is known at
//! any time ([`Tls::troubles`]).
//!
//! Rows of docs/interface.md: `json_over_https`.

use std::fmt;
use std::future::{Ready, ready};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use farebox_ledger::Timestamp;
use futures_util::stream::{Once, once};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use salvo::conn::IntoConfigStream;

use super::certificate::{CertificateTrouble, Validity, other_name};
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
    /// What its clients connect to, as far as that is known: host names and addresses.
    names: Vec<String>,
    current: ArcSwap<ShownCertificate>,
    /// Why the files were not taken when they were last read.
    rejected: ArcSwapOption<TlsError>,
}

/// A certificate, and what is known of it.
struct ShownCertificate {
    key: Arc<CertifiedKey>,
    validity: Option<Validity>,
    other_name: Option<String>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tls")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads both files, for a listener whose clients connect to these names.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn load(files: TlsFiles, names: Vec<String>) -> Result<Arc<Self>, TlsError> {
        let current = ArcSwap::from_pointee(ShownCertificate::of(read(&files)?, &names));
        let rejected = ArcSwapOption::empty();
        Ok(Arc::new(Self {
            files,
            names,
            current,
            rejected,
        }))
    }

    /// Reads both files again.
    ///
    /// # Errors
    /// [`TlsError`]; the certificate stays what it was.
    pub fn reload(&self) -> Result<(), Arc<TlsError>> {
        match read(&self.files) {
            Ok(key) => {
                let shown = ShownCertificate::of(key, &self.names);
                self.current.store(Arc::new(shown));
                self.rejected.store(None);
                Ok(())
            }
            Err(error) => {
                let error = Arc::new(error);
                self.rejected.store(Some(Arc::clone(&error)));
                Err(error)
            }
        }
    }

    /// Where the certificate is.
    pub fn path(&self) -> String {
        self.files.certificate.display().to_string()
    }

    /// Everything that is wrong with it now.
    pub fn troubles(&self, now: Timestamp) -> Vec<CertificateTrouble> {
        let shown = self.current.load();
        let validity = shown.validity.and_then(|validity| validity.trouble(now));
        let rejected = self.rejected.load();
        let rejected = rejected.as_ref().map(|error| error.to_string());
        let name = shown.other_name.clone().map(CertificateTrouble::OtherName);
        let rejected = rejected.map(CertificateTrouble::Rejected);
        validity.into_iter().chain(name).chain(rejected).collect()
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
        Some(Arc::clone(&self.current.load().key))
    }
}

impl ShownCertificate {
    fn of(key: CertifiedKey, names: &[String]) -> Self {
        let own = key.cert.first();
        Self {
            validity: own.and_then(|own| Validity::of(own)),
            other_name: own.and_then(|own| other_name(own, names)),
            key: Arc::new(key),
        }
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
    CertifiedKey::from_der(chain, private, &default_provider()).map_err(|error| {
        if matches!(error, rustls::Error::InconsistentKeys(_)) {
            let other = format!(
                "it is not the key of the certificate in {}",
                certificate.display()
            );
            return TlsError::new(key, &other);
        }
        TlsError::new(key, &error)
    })
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
        let tls = Tls::load(files.clone(), Vec::new()).unwrap();
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
                tls.reload().unwrap_err().to_string(),
                Tls::load(files.clone(), Vec::new())
                    .unwrap_err()
                    .to_string(),
            ] {
                assert_eq!(
                    problem,
                    format!("{}: it is a pipe or a device, not a file", path.display())
                );
            }
            std::fs::remove_file(path).unwrap();
            std::fs::write(path, kept).unwrap();
        }
        assert!(matches!(
            tls.troubles(crate::clock::now()).as_slice(),
            [CertificateTrouble::Rejected(_)]
        ));
        tls.reload().unwrap();
        assert_eq!(tls.troubles(crate::clock::now()), []);
    }
}
