//! How to reach the database: the settings of every connection, and which server it leads to.
//!
//! All addresses are asked at once. A server that does not answer within a second is not waited for if another one has answered,
//! so that a machine that is switched off keeps nobody from the promoted one.

use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::lookup_host;
use tokio::time::Instant;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::facts::{ServerFacts, ServerPurpose};
use super::faults;
use super::link::Link;
use super::servers::{AskedServer, Servers, choose};
use super::tls::DatabaseTls;
use super::trouble::cause;
use crate::store::address::Database;
use crate::store::trouble_record::{LedgerWork, TroubleRecord};
use crate::{Cause, LedgerError, Server, lock};

/// A server that has not answered by then is left out, if another one has.
const SECOND: Duration = Duration::from_secs(1);
/// The same while only others than the wanted one have answered: a primary may be busier than its standby.
const TWO_SECONDS: Duration = Duration::from_secs(2);
/// How long a server is waited for while none answers. Longer than the first two repetitions of a lost SYN, at 1 and 3 s.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often two sessions are compared.
const SESSIONS_COMPARED: usize = 3;
/// How long the settings of a session may take.
const SETTINGS: Duration = Duration::from_secs(5);

/// A batch names every row it reads or writes, so an index leads to each. The planner must not conclude otherwise from a table that
/// was nearly empty when a statement was planned: it would scan all of it, once for every named row.
const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; \
     SET plan_cache_mode = force_generic_plan";

/// How to reach the database.
#[derive(Clone)]
pub(super) struct Connector {
    database: Database,
    tls: DatabaseTls,
    purpose: ServerPurpose,
    allow_single: bool,
    servers: Arc<Servers>,
    record: Arc<TroubleRecord>,
    /// How the server was reached that was used last.
    used: Arc<Mutex<Option<Config>>>,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The configuration contains the password.
        out.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Connector {
    /// Prepares connections. Connections to other machines are encrypted and the server's certificate is checked, unless the
    /// address says `sslmode=disable`.
    pub(super) fn new(
        database: &Database,
        purpose: ServerPurpose,
        allow_single: bool,
    ) -> Result<Self, LedgerError> {
        let mut database = database.clone();
        let config = &mut database.config;
        if config.get_ssl_mode() == SslMode::Prefer {
            let local = config.get_hosts().iter().all(is_local);
            let demanded = database.roots.is_some() || !local;
            config.ssl_mode(if demanded {
                SslMode::Require
            } else {
                SslMode::Disable
            });
        }
        let roots = if config.get_ssl_mode() == SslMode::Disable {
            RootCertStore::empty()
        } else {
            trusted(database.roots.as_deref()).map_err(|why| {
                let words = format!("{database}: {why}");
                LedgerError::Unusable(why.reworded(words))
            })?
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| LedgerError::unusable(Cause::in_words(error.to_string(), error)))?;
        Ok(Self {
            tls: DatabaseTls::new(versions.with_root_certificates(roots).with_no_client_auth()),
            database,
            purpose,
            allow_single,
            servers: Arc::default(),
            record: TroubleRecord::new(faults::unexplained),
            used: Arc::default(),
        })
    }

    /// What is known of the servers.
    pub(super) const fn servers(&self) -> &Arc<Servers> {
        &self.servers
    }

    /// What is wrong with the ledger.
    pub(super) const fn record(&self) -> &Arc<TroubleRecord> {
        &self.record
    }

    /// The server in use, in words.
    pub(super) fn used(&self) -> String {
        let used = self.servers.last_used();
        used.unwrap_or_else(|| "the server".to_owned())
    }

    /// The servers as they last answered.
    pub(super) fn list(&self) -> Vec<Server> {
        self.servers.list()
    }

    /// Whether there is a choice: several addresses, or a name that leads to several.
    pub(super) fn has_several(&self) -> bool {
        self.database.config.get_hosts().len() > 1 || self.list().len() > 1
    }

    /// Opens a connection for a writer of batches.
    pub(super) async fn connect_for_batches(&self) -> Result<Link, Cause> {
        let link = self.connect().await?;
        let set = tokio::time::timeout(SETTINGS, link.client.batch_execute(BY_INDEX));
        set.await.map_err(|_| "no answer")?.map_err(cause)?;
        Ok(link)
    }

    /// Opens a connection to the server that suits.
    pub(super) async fn connect(&self) -> Result<Link, Cause> {
        let under_way = self.record.begin(LedgerWork::Connect);
        let opened = self.open().await;
        under_way.ended(opened.as_ref().err().map(faults::of));
        opened
    }

    /// Opens another connection to the server that was used last, without asking the others: one of them may be what is wrong.
    pub(super) async fn connect_beside(&self) -> Result<Link, Cause> {
        let used = lock(&self.used).clone();
        match used {
            Some(config) => self.ask_server(config).await,
            None => self.connect().await,
        }
    }

    async fn open(&self) -> Result<Link, Cause> {
        let (asked, links) = self.ask().await;
        let at = self.chosen(&asked)?;
        let server = asked.into_iter().zip(links).nth(at);
        let Some((AskedServer { place, answer: _ }, Some(mut link))) = server else {
            return Err("no answer".into());
        };
        link.number = self.servers.number();
        *lock(&self.used) = Some(link.config.clone());
        self.refuse_shared_sessions(&link, place).await?;
        Ok(link)
    }

    /// Chooses, and notes the choice.
    fn chosen(&self, asked: &[AskedServer]) -> Result<usize, Cause> {
        let newest = self.servers.newest();
        let chosen = choose(asked, self.purpose, self.allow_single, &newest);
        self.servers.note(asked, chosen.as_ref().ok().copied());
        chosen
    }

    /// Asks all servers, so that a change among them is noticed while the connections stay as they are.
    pub(super) async fn survey(&self) {
        // Why none suits is told where one is wanted.
        let _ = self.chosen(&self.ask().await.0);
    }

    /// Opens a connection to every server that answers in time.
    async fn ask(&self) -> (Vec<AskedServer>, Vec<Option<Link>>) {
        let hosts = self.database.config.get_hosts();
        let (begun, newest) = (Instant::now(), self.servers.newest());
        let looking = hosts.iter().enumerate();
        let mut answers = looking
            .map(|(at, host)| self.reached(at, host))
            .collect::<FuturesUnordered<_>>()
            .flat_map_unordered(None, |reached| {
                let asking = reached.into_iter().map(|server| self.ask_reached(server));
                asking.collect::<FuturesUnordered<_>>()
            });
        let mut found: Vec<(usize, AskedServer, Option<Link>)> = Vec::new();
        loop {
            let suits = |facts: &ServerFacts| facts.suits(self.purpose) && !newest.outdates(facts);
            let answered = found.iter().filter_map(|(_, asked, _)| asked.facts());
            let wait = match answered.map(suits).max() {
                Some(true) => SECOND,
                Some(false) => TWO_SECONDS,
                None => PATIENCE,
            };
            let next = tokio::time::timeout(wait.saturating_sub(begun.elapsed()), answers.next());
            let Ok(Some(answer)) = next.await else { break };
            found.push(answer);
        }
        for (at, host) in hosts.iter().enumerate() {
            if !found.iter().any(|(known, ..)| *known == at) {
                let place = self.place(at, host);
                found.push((
                    at,
                    AskedServer {
                        place,
                        answer: None,
                    },
                    None,
                ));
            }
        }
        found.sort_by_key(|(at, ..)| *at);
        found
            .into_iter()
            .map(|(_, asked, link)| (asked, link))
            .unzip()
    }

    /// Every server that a host's name leads to.
    async fn reached(&self, at: usize, host: &Host) -> Vec<ReachedServer> {
        let reached = |place: String, config| ReachedServer { at, place, config };
        let (place, given) = (self.place(at, host), self.given_address(at));
        let (Host::Tcp(name), None) = (host, given) else {
            return vec![reached(place, Ok(self.config_of(at, host, given)))];
        };
        let addresses: Vec<IpAddr> = match lookup_host((name.as_str(), self.port(at))).await {
            Ok(addresses) => addresses.map(|address| address.ip()).collect(),
            Err(error) => {
                let why = Cause::of("the name cannot be resolved", error);
                return vec![reached(place, Err(why))];
            }
        };
        let several = addresses.len() > 1;
        let named = |address| match several {
            true => format!("{place} ({address})"),
            false => place.clone(),
        };
        let each = addresses.into_iter();
        each.map(|address| reached(named(address), Ok(self.config_of(at, host, Some(address)))))
            .collect()
    }

    async fn ask_reached(&self, server: ReachedServer) -> (usize, AskedServer, Option<Link>) {
        let ReachedServer { at, place, config } = server;
        let answer = match config {
            Ok(config) => self.ask_server(config).await,
            Err(why) => Err(why),
        };
        let (answer, link) = match answer {
            Ok(link) => (Ok(link.facts.clone()), Some(link)),
            Err(why) => (Err(why), None),
        };
        let answer = Some(answer);
        (at, AskedServer { place, answer }, link)
    }

    async fn ask_server(&self, config: Config) -> Result<Link, Cause> {
        let asking = async {
            let (client, connection) = config
                .connect(self.tls.clone())
                .await
                .map_err(|error| self.explained(cause(error)))?;
            Link::begin(client, connection, config).await
        };
        tokio::time::timeout(PATIENCE, asking)
            .await
            .map_err(|_| "does not answer")?
    }

    /// The settings of a connection to one server.
    fn config_of(&self, at: usize, host: &Host, address: Option<IpAddr>) -> Config {
        let all = &self.database.config;
        let mut one = Config::new();
        match host {
            Host::Tcp(name) => one.host(name),
            Host::Unix(folder) => one.host_path(folder),
        };
        if let Some(address) = address {
            one.hostaddr(address);
        }
        one.port(self.port(at))
            .user(all.get_user().unwrap_or_default())
            .dbname(all.get_dbname().unwrap_or_default())
            .application_name(all.get_application_name().unwrap_or("farebox"))
            .ssl_mode(all.get_ssl_mode())
            .ssl_negotiation(all.get_ssl_negotiation())
            .channel_binding(all.get_channel_binding())
            .keepalives_idle(Duration::from_secs(5))
            .keepalives_interval(Duration::from_secs(2))
            .keepalives_retries(2)
            .tcp_user_timeout(Duration::from_secs(10));
        if let Some(password) = all.get_password() {
            one.password(password);
        }
        if let Some(options) = all.get_options() {
            one.options(options);
        }
        one
    }

    fn port(&self, at: usize) -> u16 {
        let ports = self.database.config.get_ports();
        ports.get(at).or(ports.first()).copied().unwrap_or(5432)
    }

    /// `hostaddr` of the address, for a host whose name is only that of its certificate.
    fn given_address(&self, at: usize) -> Option<IpAddr> {
        self.database.config.get_hostaddrs().get(at).copied()
    }

    fn place(&self, at: usize, host: &Host) -> String {
        match host {
            Host::Tcp(name) => format!("{name}:{}", self.port(at)),
            Host::Unix(folder) => format!("{}/.s.PGSQL.{}", folder.display(), self.port(at)),
        }
    }

    /// A failure to connect, with the option or file of the address that it is about.
    fn explained(&self, error: Cause) -> Cause {
        let why = error.words();
        let about = if why.contains("UnknownIssuer") {
            match &self.database.roots {
                Some(file) => format!(" (sslrootcert={})", file.display()),
                None => " (no sslrootcert in the address: the system's certificates)".to_owned(),
            }
        } else if why.contains("NotValidForName") || why.contains("not valid for") {
            " (the certificate is another machine's: the address must name the server as its certificate does)".to_owned()
        } else if why.contains("TLS") {
            " (sslmode=disable in the address would do without encryption)".to_owned()
        } else if why.contains("password") {
            let user = self.database.config.get_user().unwrap_or_default();
            format!(" (user {user})")
        } else {
            String::new()
        };
        let words = format!("{why}{about}");
        error.reworded(words)
    }

    /// Refuses a pooler that gives one server session to several clients in turn: settings and locks of a session would be
    /// anybody's. Two connections that both exist have two sessions anywhere else.
    async fn refuse_shared_sessions(&self, link: &Link, place: String) -> Result<(), Cause> {
        if lock(&self.servers.sessions).contains(&place) {
            return Ok(());
        }
        let second = tokio::time::timeout(SECOND, self.ask_server(link.config.clone()));
        // A pool of sessions that has none left keeps it waiting.
        let Ok(Ok(other)) = second.await else {
            return Ok(());
        };
        let mut shared = other.facts.backend == link.facts.backend;
        // A busy pooler does not give the same session every time.
        for _ in 0..SESSIONS_COMPARED {
            let (first, second) = (link.session().await, other.session().await);
            shared |= first != link.facts.backend.pid || first == second;
        }
        if shared {
            return Err(format!(
                "{place}: this pooler shares sessions between clients; let it pool sessions (pool_mode = session), or connect to \
                 PostgreSQL directly"
            )
            .into());
        }
        lock(&self.servers.sessions).push(place);
        Ok(())
    }
}

/// A server that a host's name leads to, and how to connect to it; or why that is not known.
struct ReachedServer {
    /// The host's number in the address.
    at: usize,
    place: String,
    config: Result<Config, Cause>,
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost"
                || name
                    .parse::<IpAddr>()
                    .is_ok_and(|address| address.is_loopback())
        }
        Host::Unix(_) => true,
    }
}

/// The certificates that a server's is checked against: those of `sslrootcert`, else the system's.
fn trusted(file: Option<&Path>) -> Result<RootCertStore, Cause> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    };
    let what = format!("sslrootcert={}", file.display());
    let certificates = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| Cause::of(&what, error))?;
    if certificates.is_empty() {
        return Err(format!("{what}: there is no certificate in it").into());
    }
    for certificate in certificates {
        roots
            .add(certificate)
            .map_err(|error| Cause::of(&what, error))?;
    }
    Ok(roots)
}
