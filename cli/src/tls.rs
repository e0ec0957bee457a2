//! TLS to the admin listener of this machine's own gateway: exactly the certificate of its files is trusted, whatever name or address
//! it was made for.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Speaks TLS with whoever has the key of the certificate in this file.
///
/// # Errors
/// When the file is no certificate, or another one answers.
pub(super) async fn connect(
    stream: TcpStream,
    certificate: &Path,
) -> std::io::Result<TlsStream<TcpStream>> {
    let named = |error: &dyn std::fmt::Display| {
        std::io::Error::other(format!("{}: {error}", certificate.display()))
    };
    let pem = std::fs::read(certificate).map_err(|error| named(&error))?;
    let trusted = CertificateDer::from_pem_slice(&pem).map_err(|error| named(&error))?;
    let provider = Arc::new(ring::default_provider());
    let pinned = PinnedCertificate {
        trusted,
        provider: Arc::clone(&provider),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(std::io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pinned))
        .with_no_client_auth();
    // It is only sent: what is checked is the certificate, whatever name it has.
    let name = ServerName::try_from("localhost").map_err(std::io::Error::other)?;
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

/// The one certificate that is trusted.
#[derive(Debug)]
struct PinnedCertificate {
    trusted: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *shown == self.trusted {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::General(
            "the gateway shows another certificate than --admin-tls-cert".to_owned(),
        ))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
