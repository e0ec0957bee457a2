//! The one HTTP client: no redirects, no proxy, no retries of its own, the built-in roots of trust.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use rustls::{ClientConfig, RootCertStore};

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The largest answer that is read.
const LARGEST: usize = 4 << 20;
const USER_AGENT: &str = concat!("farebox-shop/", env!("CARGO_PKG_VERSION"));

/// An answer.
#[derive(Debug)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// Makes it.
///
/// # Errors
/// When TLS cannot be set up.
pub(crate) fn client() -> Result<reqwest::Client, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    let builder =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be set up: {error}"))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    reqwest::Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(config)
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .user_agent(USER_AGENT)
        .connect_timeout(Duration::from_secs(5))
        .timeout(PATIENCE)
        .build()
        .map_err(|error| error.without_url().to_string())
}

/// Sends a request and reads its answer whole.
///
/// # Errors
/// Why there is none, in words without the address.
pub(crate) async fn send(request: reqwest::RequestBuilder) -> Result<HttpReply, String> {
    let why = |error: reqwest::Error| {
        let error = error.without_url();
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        format!("{error}{}", cause.unwrap_or_default())
    };
    let mut answer = request.send().await.map_err(why)?;
    let (status, mut body) = (answer.status().as_u16(), Vec::new());
    while let Some(piece) = answer.chunk().await.map_err(why)? {
        body.extend_from_slice(&piece);
        if body.len() > LARGEST {
            return Err("the answer is too large".to_owned());
        }
    }
    Ok(HttpReply { status, body })
}

/// A path below a base, each part percent-encoded.
pub(crate) fn below(base: &str, parts: &[&str]) -> Option<Url> {
    let mut url = Url::parse(base).ok()?;
    url.path_segments_mut().ok()?.pop_if_empty().extend(parts);
    Some(url)
}

/// Pairs as a form's body.
pub(crate) fn form(pairs: &[(String, String)]) -> String {
    let Ok(mut url) = Url::parse("http://form.invalid") else {
        return String::new();
    };
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_part_reaches_the_path_unescaped() {
        let url = below("http://127.0.0.1:9/base", &["v1", "a/../b?c=#d"]).unwrap();
        assert_eq!(
            url.as_str(),
            "http://127.0.0.1:9/base/v1/a%2F..%2Fb%3Fc=%23d"
        );
        let pairs = [("a[b]".to_owned(), "ü&=\n".to_owned())];
        assert_eq!(form(&pairs), "a%5Bb%5D=%C3%BC%26%3D%0A");
    }
}
