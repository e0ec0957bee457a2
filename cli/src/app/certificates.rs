//! The listeners' certificates: loaded at the start, read again when the operator asks, and what is wrong with them told each time.

use std::sync::Arc;

use tokio::sync::Notify;

use super::Settings;
use farebox::clock;
use farebox::config::{Code, Diagnostic};
use farebox::server::{CertificateTrouble, Tls, TlsError, TlsFiles};

/// The customers' certificate, and the operator's, where there are any.
pub(super) fn load(settings: &Settings) -> Result<[Option<Arc<Tls>>; 2], TlsError> {
    let [customers, admin] = both(settings);
    let loaded = [customers.transpose()?, admin.transpose()?];
    loaded.iter().flatten().for_each(|tls| log(tls));
    Ok(loaded)
}

/// Those that there are, each with its listener's name.
pub(super) fn shown(tls: &[Option<Arc<Tls>>; 2]) -> Vec<(&'static str, Arc<Tls>)> {
    let all = ["customers", "admin"].into_iter().zip(tls);
    all.filter_map(|(listener, tls)| Some((listener, Arc::clone(tls.as_ref()?))))
        .collect()
}

/// What is wrong with the certificates, as `farebox check` reports it.
#[must_use]
pub fn findings(settings: &Settings) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for loaded in both(settings).into_iter().flatten() {
        let tls = match loaded {
            Ok(tls) => tls,
            Err(error) => {
                let trouble = CertificateTrouble::Rejected(error.to_string());
                found.push(finding(&trouble, error.to_string()));
                continue;
            }
        };
        let path = tls.path();
        let troubles = tls.troubles(clock::now());
        found.extend(
            troubles
                .iter()
                .map(|trouble| finding(trouble, format!("{path}: {trouble}"))),
        );
    }
    found
}

fn finding(trouble: &CertificateTrouble, what: String) -> Diagnostic {
    let code = match trouble {
        CertificateTrouble::Rejected(_) => Code::CertificateUnusable,
        CertificateTrouble::Expired(_) | CertificateTrouble::NotYet(_) => Code::CertificateExpired,
        CertificateTrouble::OtherName(_) => Code::CertificateName,
        CertificateTrouble::EndsSoon(..) => Code::CertificateEnds,
    };
    Diagnostic::without_line(code, what, trouble.remedy().to_owned())
}

/// Both, each with the names that its clients connect to, as far as the settings say.
fn both(settings: &Settings) -> [Option<Result<Arc<Tls>, TlsError>>; 2] {
    let public = settings.public_url.as_deref();
    let public = public.and_then(|url| url.strip_prefix("https://"));
    let names = [
        public.map(host).into_iter().collect(),
        settings.admin_hosts.clone(),
    ];
    let files: [Option<TlsFiles>; 2] = [settings.tls.clone(), settings.admin_tls.clone()];
    let mut names = names.into_iter();
    files.map(|files| {
        let names: Vec<String> = names.next().unwrap_or_default();
        files.map(|files| Tls::load(files, names))
    })
}

/// The host of a URL without its scheme.
fn host(url: &str) -> String {
    let authority = url.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next(),
        None => authority.split(':').next(),
    };
    host.unwrap_or_default().to_owned()
}

/// Says what is wrong with a certificate that is in force from now on.
fn log(tls: &Tls) {
    let certificate = tls.path();
    for trouble in tls.troubles(clock::now()) {
        let remedy = trouble.remedy();
        tracing::warn!(certificate, remedy, "the certificate: {trouble}");
    }
}

/// Reads a certificate again whenever it is woken.
pub(super) async fn read_again(tls: Arc<Tls>, wake: Arc<Notify>) {
    loop {
        wake.notified().await;
        let read = Arc::clone(&tls);
        match tokio::task::spawn_blocking(move || read.reload()).await {
            Ok(Ok(())) => {
                tracing::info!("reloaded the certificate");
                log(&tls);
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "cannot use the new certificate; the old one stays in force")
            }
            Err(error) => tracing::error!(%error, "reading the certificate failed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_what_programs_connect_to() {
        for (url, name) in [
            ("api.example.com", "api.example.com"),
            ("api.example.com:8443/x", "api.example.com"),
            ("[2001:db8::1]:8443", "2001:db8::1"),
            ("192.0.2.1/", "192.0.2.1"),
        ] {
            assert_eq!(host(url), name);
        }
    }
}
