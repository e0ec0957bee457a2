//! The parts of the gateway that the customer's side uses, and its answers to programs that call with a key.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use farebox_ledger::{Key, SharedLedger, Timestamp};
use tokio_util::sync::CancellationToken;

use super::activity::Activity;
use super::constant::ConstantDocument;
use super::decimal_json::DecimalJson;
use super::dialects::{Dialect, Statement};
use super::guesses::WrongGuesses;
use super::receipt;
use super::recent::RecentSpending;
use super::share::KeyShare;
use super::sources::ChargeSources;
use super::usage::{AskedUsage, Days};
use crate::clock;
use crate::config::{Config, ConfigHandle, Shop};
use crate::proxy::rate_limit::RateLimits;
use crate::proxy::{Failure, Proxy, record};

/// Everything the customer's side may reach.
#[derive(Debug)]
pub struct Context {
    pub(super) ledger: SharedLedger,
    pub(super) config: Arc<ConfigHandle>,
    pub(super) rate_limits: Arc<RateLimits>,
    pub(super) activity: Arc<Activity>,
    /// Who tried codes of vouchers that are none.
    pub(super) wrong_guesses: WrongGuesses,
    /// The page of prices, and the snapshot that it was made of.
    pub(super) prices: Mutex<Option<(Arc<Config>, ConstantDocument)>>,
    /// The only base of printed URLs.
    pub(super) public_url: String,
    /// The address of the customers' listener.
    pub(super) address: SocketAddr,
    /// Ends open pages when the gateway stops: a live page must not delay the drain.
    pub(super) closing: CancellationToken,
}

/// A program's query.
#[derive(Debug, Clone, Copy)]
pub enum ProgramQuery {
    /// The account in one dialect.
    Account(&'static Dialect),
    /// Usage by day and model.
    Usage,
    /// One request.
    Receipt,
}

impl ProgramQuery {
    /// The query parameters it accepts; others are refused, because a misspelt range would show other days.
    #[must_use]
    pub const fn parameters(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Usage => Some(&["from", "to", "by", "format"]),
            Self::Account(_) | Self::Receipt => None,
        }
    }
}

/// An answer to a program.
#[derive(Debug)]
pub struct ProgramAnswer {
    /// `application/json` or `text/csv`.
    pub content_type: &'static str,
    /// What is sent, in the format that `content_type` names.
    pub body: String,
}

impl ProgramAnswer {
    pub(super) fn json(body: String) -> Self {
        Self {
            content_type: "application/json",
            body,
        }
    }

    pub(super) fn csv(body: String) -> Self {
        Self {
            content_type: "text/csv; charset=utf-8",
            body,
        }
    }
}

impl Context {
    /// The context on top of a spine.
    #[must_use]
    pub fn new(
        proxy: &Proxy,
        rate_limits: Arc<RateLimits>,
        activity: Arc<Activity>,
        public_url: String,
        address: SocketAddr,
    ) -> Self {
        Self {
            ledger: Arc::clone(&proxy.ledger),
            config: Arc::clone(&proxy.config),
            rate_limits,
            activity,
            wrong_guesses: WrongGuesses::default(),
            prices: Mutex::default(),
            public_url,
            address,
            closing: CancellationToken::new(),
        }
    }

    /// Ends every open page, so that a stopping gateway need not wait for them.
    pub fn close(&self) {
        self.closing.cancel();
    }

    /// Whether browsers reach it over HTTPS.
    pub(super) fn is_secure(&self) -> bool {
        self.public_url.starts_with("https://")
    }

    /// The seller, as the catalog in force describes it.
    pub(super) fn shop(&self) -> Arc<Shop> {
        Arc::clone(&self.config.current().catalog.shop)
    }

    /// Answers a program that has authenticated with this key; `query` gives the URL's query parameters.
    ///
    /// # Errors
    /// 400 for a bad range, 404 for an unknown request, 503 when the ledger cannot be read.
    pub async fn read(
        &self,
        key: &Key,
        what: ProgramQuery,
        query: &(dyn Fn(&str) -> Option<String> + Sync),
    ) -> Result<ProgramAnswer, Failure> {
        let now = clock::now();
        let mut statement = self.statement(key, now).await?;
        match what {
            ProgramQuery::Account(dialect) if dialect.has_spent => {
                // The end is not in the range; the hour that begins in this very millisecond is.
                let until = Timestamp::from_millis(now.millis().saturating_add(1));
                let rows = self
                    .ledger
                    .usage(key.id, RecentSpending::begins(now), until)
                    .await?;
                statement.spent = RecentSpending::of(&rows, now);
                Ok(ProgramAnswer::json(
                    (dialect.document)(&statement).document(),
                ))
            }
            ProgramQuery::Account(dialect) => Ok(ProgramAnswer::json(
                (dialect.document)(&statement).document(),
            )),
            ProgramQuery::Usage => {
                let days = Days::asked(query("from").as_deref(), query("to").as_deref(), now)?;
                let by = query("by");
                let asked = (days, by.as_deref());
                let sums = AskedUsage::read(self.ledger.as_ref(), key, asked, false).await?;
                match query("format").as_deref() {
                    Some("csv") => Ok(ProgramAnswer::csv(sums.spreadsheet())),
                    None | Some("" | "json") => Ok(ProgramAnswer::json(sums.document(&statement))),
                    Some(_) => Err(Failure::bad_query(
                        "format",
                        "format must be json or csv".to_owned(),
                    )),
                }
            }
            ProgramQuery::Receipt => {
                let id = query("id").ok_or_else(|| {
                    Failure::bad_query("id", "name the request, as in ?id=req_…".to_owned())
                })?;
                Ok(ProgramAnswer::json(
                    DecimalJson::object([("data", self.receipt(key, &id).await?)]).document(),
                ))
            }
        }
    }

    /// A key's money as its holder sees it.
    pub(super) async fn statement(&self, key: &Key, now: Timestamp) -> Result<Statement, Failure> {
        let share = KeyShare::read(self.ledger.as_ref(), key).await?;
        Ok(Statement::of(key, share, &self.shop(), now))
    }

    /// What one request used and cost. Refused requests are known as long as the gateway remembers them.
    async fn receipt(&self, key: &Key, id: &str) -> Result<DecimalJson, Failure> {
        match receipt::find(self.ledger.as_ref(), key, id).await {
            Ok(entry) => {
                let sources = ChargeSources::of(self.ledger.as_ref(), key, &entry).await?;
                Ok(receipt::document(&entry, key.is_owner, &sources))
            }
            Err(Failure::NoRequest(id)) => record::operation(&id)
                .and_then(|request| self.activity.refusal(key.id, request))
                .map(|refused| receipt::refused_document(&refused))
                .ok_or(Failure::NoRequest(id)),
            Err(failure) => Err(failure),
        }
    }
}
