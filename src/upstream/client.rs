//! Connections to one provider: a pool, what each of its accounts may take, and the headers that may be sent.
//!
//! A request carries what the caller prepared plus this provider's own authentication; a customer's credential is refused here even
//! when a caller forwards it by mistake. Redirects and compression are off, and HTTP/1.1 is used
//! because one shared HTTP/2 connection would queue streams behind its limit.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use farebox_ledger::lock;
use farebox_protocol::{AuthStyle, CallKind, Family};
use reqwest::Url;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use thread_local::ThreadLocal;
use tokio::time::Instant;

use super::account_use::AccountUse;
use super::accounts::Accounts;
use super::pieces::Pieces;
use super::places::{LimitedPlaces, TakenPlace};
use super::purse::Purse;
use super::retry::RepeatBudget;
use super::secret_forms::SecretForms;
use super::{Prepared, TargetOperation, UpstreamCall};
use crate::config::{self, Endpoint, Provider, ProxyChoice, RESERVED_HEADERS};
use farebox_door::byte_room::Holder;

/// Concurrent token-count requests to one provider.
// Counting is free and has an estimate in its place, so it must not take a provider's limits from what is paid for.
const SIDE_PLACES: u32 = 8;
/// The list of models, below every base URL.
const MODELS: &str = "/models";
/// What a key has used, where a service says that.
const KEY: &str = "/key";
// Lower, and requests pay for a new handshake after each pause; higher, and more of them go out on a connection that the other side has
// just closed (servers do after a minute or so), of which nobody knows whether the provider has worked.
const POOL_IDLE: Duration = Duration::from_secs(40);
const USER_AGENT: &str = concat!("farebox/", env!("CARGO_PKG_VERSION"));

/// Where systems keep their certificates, whatever the distribution.
const SYSTEM_BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Trusted certificates, read once for all pools.
#[derive(Clone)]
pub(super) struct Trust(ClientConfig);

impl Trust {
    /// The built-in roots, for machines without a certificate store, plus those of the machine.
    pub(super) fn load() -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
        if let Some(found) = SYSTEM_BUNDLES
            .iter()
            .find_map(|path| CertificateDer::pem_file_iter(path).ok())
        {
            roots.add_parsable_certificates(found.filter_map(Result::ok));
        }
        let builder =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(|error| format!("TLS cannot be set up: {error}"))?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(config))
    }
}

/// One provider's connections and what is shared by all its targets.
pub(super) struct Pool {
    /// Its settings from the files.
    pub(super) provider: Arc<Provider>,
    /// The budget for repeated requests.
    pub(super) budget: Mutex<RepeatBudget>,
    /// What its answers must not reveal.
    pub(super) secrets: SecretForms,
    http: Option<Http>,
    /// What each of its accounts may take and has done.
    uses: Vec<AccountUse>,
    /// Which of its accounts refuse us.
    pub(super) accounts: Arc<Accounts>,
    /// What our own requests may cost.
    pub(super) purse: Arc<Purse>,
    /// For paths other than answers, which never take an answer's place.
    side_places: Arc<LimitedPlaces>,
}

/// The clients, and what all their requests have in common.
struct Http {
    /// Each serving thread has its own: a connection belongs to the runtime that opened it, and a request on another thread's would
    /// wait for both. Made when first needed.
    clients: ThreadLocal<reqwest::Client>,
    provider: Arc<Provider>,
    trust: Trust,
    /// The URL of each path of a family, built once: parsing a URL takes as long as reading a small answer.
    urls: Vec<(&'static str, Url)>,
    /// The operator's own headers.
    headers: HeaderMap,
}

impl Pool {
    /// Opens no connection yet. `before` is the pool of the provider's previous definition: running requests keep counting against
    /// an unchanged limit.
    pub(super) fn new(
        provider: Arc<Provider>,
        trust: &Trust,
        before: Option<&Self>,
    ) -> Result<Self, String> {
        let http = match &provider.endpoint {
            Endpoint::Simulated => None,
            Endpoint::Http(base) => Some(Http::new(&provider, base, trust)?),
        };
        let uses = (0..provider.keys.accounts())
            .map(|account| {
                let before = before.and_then(|old| Some((&*old.provider, old.uses.get(account)?)));
                AccountUse::following(before, &provider)
            })
            .collect();
        let side_places = before.map_or_else(
            || LimitedPlaces::halved(SIDE_PLACES),
            |old| Arc::clone(&old.side_places),
        );
        let purse = before.map_or_else(Arc::default, |old| Arc::clone(&old.purse));
        let budget = Mutex::new(RepeatBudget::new(Instant::now()));
        let secrets = SecretForms::of(&provider);
        Ok(Self {
            provider,
            budget,
            secrets,
            http,
            uses,
            // Refusals are not taken over: the key may be what has changed.
            accounts: Arc::default(),
            purse,
            side_places,
        })
    }

    /// What an account may take and has done. A request knows only accounts of the provider that it was prepared for, whose pool it
    /// gets.
    pub(super) fn account(&self, account: usize) -> Option<&AccountUse> {
        self.uses.get(account)
    }

    /// The same of all accounts.
    pub(super) fn account_uses(&self) -> &[AccountUse] {
        &self.uses
    }

    /// A place among the requests on side paths (`count_tokens`).
    pub(super) fn side_place(&self, holder: Holder) -> Option<TakenPlace> {
        self.side_places.take(holder, 1)
    }

    /// Runs `with` on the retry budget.
    pub(super) fn with_budget<T>(&self, with: impl FnOnce(&mut RepeatBudget) -> T) -> T {
        with(&mut lock(&self.budget))
    }

    /// The request as it leaves, with one of the provider's keys, or `None` for the built-in provider.
    pub(super) fn request(
        &self,
        (call, account): (&UpstreamCall<'_>, usize),
        prepared: &Prepared,
    ) -> Result<Option<reqwest::RequestBuilder>, String> {
        let Some(http) = &self.http else {
            return Ok(None);
        };
        let protocol = call.family.protocol();
        let path = match (call.operation, call.kind()) {
            (_, Some(kind)) => kind.path(),
            (TargetOperation::Generate, None) => protocol.path,
            (TargetOperation::CountTokens, None) => protocol
                .count_path
                .ok_or_else(|| format!("{} requests are not counted", call.family))?,
        };
        let mut headers = forwarded(&prepared.headers)?;
        complete(&mut headers, protocol.required_headers);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accepts = if call.stream {
            "text/event-stream"
        } else {
            "application/json"
        };
        self.identify(&mut headers, (call.family, account), accepts)?;
        let body = reqwest::Body::wrap(Pieces::of(&prepared.body));
        let url = http.url(path)?;
        Ok(Some(http.client()?.post(url).headers(headers).body(body)))
    }

    /// The request for the account's list of models, which every service answers for free.
    pub(super) fn list(
        &self,
        family: Family,
        account: usize,
    ) -> Result<Option<reqwest::RequestBuilder>, String> {
        self.get(MODELS, (family, account))
    }

    /// The request for what the account's key has used, which is free, too.
    pub(super) fn used(
        &self,
        family: Family,
        account: usize,
    ) -> Result<Option<reqwest::RequestBuilder>, String> {
        self.get(KEY, (family, account))
    }

    fn get(
        &self,
        path: &'static str,
        asker: (Family, usize),
    ) -> Result<Option<reqwest::RequestBuilder>, String> {
        let Some(http) = &self.http else {
            return Ok(None);
        };
        let mut headers = HeaderMap::new();
        complete(&mut headers, asker.0.protocol().required_headers);
        self.identify(&mut headers, asker, "application/json")?;
        Ok(Some(http.client()?.get(http.url(path)?).headers(headers)))
    }

    /// Adds what says who asks, and in which form.
    fn identify(
        &self,
        headers: &mut HeaderMap,
        (family, account): (Family, usize),
        accepts: &'static str,
    ) -> Result<(), String> {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(ACCEPT, HeaderValue::from_static(accepts));
        if let Some(key) = self.provider.keys.get(account) {
            let style = self
                .provider
                .auth
                .unwrap_or_else(|| family.protocol().default_auth);
            let (name, value) = credential(style, key.secret.reveal())?;
            headers.insert(name, value);
        }
        if let Some(http) = &self.http {
            // Last, so that a header of the operator's stands in the place of ours.
            headers.extend(http.headers.clone());
        }
        Ok(())
    }
}

impl Http {
    fn url(&self, path: &str) -> Result<Url, String> {
        let found = self.urls.iter().find(|(known, _)| *known == path);
        found
            .map(|(_, url)| url.clone())
            .ok_or_else(|| format!("{path} has no URL"))
    }

    fn new(provider: &Arc<Provider>, base: &str, trust: &Trust) -> Result<Self, String> {
        let mut headers = HeaderMap::with_capacity(provider.headers.len());
        for (name, value) in &provider.headers {
            let (name, mut value) = header(name, value.reveal().as_bytes())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let base = Url::parse(base)
            .map_err(|error| format!("the base URL of provider {}: {error}", provider.name))?;
        let http = Self {
            clients: ThreadLocal::new(),
            provider: Arc::clone(provider),
            trust: trust.clone(),
            urls: urls(&base, &provider.query),
            headers,
        };
        // What keeps one from being made is found before anybody needs it.
        http.client()?;
        Ok(http)
    }

    /// This thread's client.
    fn client(&self) -> Result<&reqwest::Client, String> {
        self.clients
            .get_or_try(|| client(&self.provider, &self.trust))
    }
}

/// Every path of a family at a provider.
fn urls(base: &Url, query: &[(String, String)]) -> Vec<(&'static str, Url)> {
    let paths = Family::ALL
        .into_iter()
        .flat_map(|family| [Some(family.protocol().path), family.protocol().count_path]);
    let below = base.path().trim_end_matches('/');
    let place = |path: &'static str| {
        let mut url = base.clone();
        url.set_path(&[below, path].concat());
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        (path, url)
    };
    let calls = CallKind::ALL.map(CallKind::path);
    let others = calls.into_iter().chain([MODELS, KEY]);
    paths.flatten().chain(others).map(place).collect()
}

/// The proxy to a provider: its own, or the environment's for what leaves the house.
fn proxy(provider: &Provider) -> Result<Option<reqwest::Proxy>, String> {
    let Endpoint::Http(base) = &provider.endpoint else {
        return Ok(None);
    };
    let scheme = base.split("://").next().unwrap_or_default();
    let (address, except) = match &provider.proxy {
        ProxyChoice::Direct => return Ok(None),
        ProxyChoice::Through(address) => (address.reveal().to_owned(), None),
        ProxyChoice::Environment => match config::proxy(scheme) {
            Some(address) if provider.endpoint.is_public() => (address, config::no_proxy()),
            _ => return Ok(None),
        },
    };
    let proxy = reqwest::Proxy::all(&address);
    // The address may contain a password, so the error does not repeat it.
    let proxy =
        proxy.map_err(|_| format!("the proxy of provider {} is no address", provider.name))?;
    let except = except.and_then(|hosts| reqwest::NoProxy::from_string(&hosts));
    Ok(Some(proxy.no_proxy(except)))
}

/// What every client has in common: it goes where it is sent, and nowhere else.
fn builder(trust: &Trust) -> reqwest::ClientBuilder {
    // The library's own look at the environment is off: it would send requests within the house outside.
    reqwest::Client::builder()
        .no_proxy()
        .tls_backend_preconfigured(trust.0.clone())
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        // What may be sent again, and how often, is decided in `retry.rs` alone.
        .retry(reqwest::retry::never())
        .referer(false)
        .user_agent(USER_AGENT)
        .tcp_nodelay(true)
        .pool_idle_timeout(POOL_IDLE)
}

/// A client for what is no provider: encrypted requests go through the environment's proxy, if there is one.
///
/// # Errors
/// TLS or the proxy cannot be set up.
pub fn plain_client() -> Result<reqwest::Client, String> {
    let mut builder = builder(&Trust::load()?);
    if let Some(address) = config::proxy("https") {
        let proxy = reqwest::Proxy::https(&address);
        // The address may contain a password, so the error does not repeat it.
        let proxy = proxy.map_err(|_| "the environment's proxy is no address".to_owned())?;
        let except = config::no_proxy();
        let except = except.and_then(|hosts| reqwest::NoProxy::from_string(&hosts));
        builder = builder.proxy(proxy.no_proxy(except));
    }
    builder
        .build()
        .map_err(|error| format!("no client: {}", error.without_url()))
}

fn client(provider: &Provider, trust: &Trust) -> Result<reqwest::Client, String> {
    let mut builder = builder(trust);
    if let Some(proxy) = proxy(provider)? {
        builder = builder.proxy(proxy);
    }
    builder
        .connect_timeout(provider.timeouts.connect)
        .build()
        .map_err(|error| {
            format!(
                "no client for provider {}: {}",
                provider.name,
                error.without_url()
            )
        })
}

fn forwarded(prepared: &[(String, bytes::Bytes)]) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::with_capacity(prepared.len() + 5);
    for (name, value) in prepared.iter().filter(|(name, _)| {
        !RESERVED_HEADERS
            .iter()
            .any(|refused| name.eq_ignore_ascii_case(refused))
    }) {
        let (name, value) = header(name, value)?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// Leaves each required header once: with what the customer brought, or else with its default.
fn complete(headers: &mut HeaderMap, required: &[(&'static str, &'static str)]) {
    for &(name, default) in required {
        let brought = headers.get(name).filter(|value| !value.is_empty()).cloned();
        headers.insert(
            name,
            brought.unwrap_or_else(|| HeaderValue::from_static(default)),
        );
    }
}

fn credential(style: AuthStyle, key: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = match style {
        AuthStyle::Bearer => (AUTHORIZATION, format!("Bearer {key}")),
        AuthStyle::ApiKey => (HeaderName::from_static("x-api-key"), key.to_owned()),
        AuthStyle::PlainApiKey => (HeaderName::from_static("api-key"), key.to_owned()),
    };
    // The error would not repeat the value, but it must not depend on that.
    let mut value = HeaderValue::try_from(value)
        .map_err(|_| "the provider's key cannot stand in a header".to_owned())?;
    value.set_sensitive(true);
    Ok((name, value))
}

fn header(name: &str, value: &[u8]) -> Result<(HeaderName, HeaderValue), String> {
    let bad = || format!("header {name} cannot be sent");
    let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
    Ok((header, HeaderValue::from_bytes(value).map_err(|_| bad())?))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_customers_credential_never_leaves() {
        let prepared: Vec<(String, Bytes)> = [
            ("Authorization", "Bearer x"),
            ("x-api-key", "x"),
            ("cookie", "x"),
            ("x-beta", "a"),
            ("x-beta", "b"),
        ]
        .map(|(name, value)| (name.to_owned(), Bytes::from_static(value.as_bytes())))
        .to_vec();
        let headers = forwarded(&prepared).unwrap();
        assert_eq!(headers.len(), 2);
        assert_eq!(headers.get_all("x-beta").iter().count(), 2);
    }

    #[test]
    fn credentials_are_marked_so_that_debug_hides_them() {
        let (name, value) = credential(AuthStyle::Bearer, "key-12345678").unwrap();
        assert_eq!(
            (name.as_str(), value.as_bytes()),
            ("authorization", b"Bearer key-12345678".as_slice())
        );
        assert_eq!(format!("{value:?}"), "Sensitive");
        let (name, value) = credential(AuthStyle::ApiKey, "key-12345678").unwrap();
        assert_eq!(
            (name.as_str(), value.as_bytes()),
            ("x-api-key", b"key-12345678".as_slice())
        );
        let error = credential(AuthStyle::Bearer, "new\nline").unwrap_err();
        assert!(!error.contains("line"), "{error}");
    }

    #[test]
    fn every_path_is_below_the_base() {
        let urls = urls(&Url::parse("http://provider.test/some/v1/").unwrap(), &[]);
        let shown: Vec<&str> = urls.iter().map(|(_, url)| url.as_str()).collect();
        assert!(
            shown.contains(&"http://provider.test/some/v1/chat/completions"),
            "{shown:?}"
        );
        assert!(
            urls.iter()
                .all(|(path, url)| url.path() == ["/some/v1", path].concat()),
            "{shown:?}"
        );
    }

    #[test]
    fn a_query_stands_behind_every_path() {
        let query = [("api-version".to_owned(), "2024-10-21".to_owned())];
        for (_, url) in urls(&Url::parse("http://provider.test/openai").unwrap(), &query) {
            assert_eq!(url.query(), Some("api-version=2024-10-21"));
        }
        let (name, _) = credential(AuthStyle::PlainApiKey, "key-12345678").unwrap();
        assert_eq!(name.as_str(), "api-key", "as Azure takes it");
    }

    #[test]
    fn trust_loads_without_a_default_provider() {
        assert!(Trust::load().is_ok());
    }
}
