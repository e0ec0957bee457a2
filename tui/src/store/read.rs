//! Reads: pages of keys, lists, sums, searches. Every read is bounded; long ones give way to newer queries.

use std::time::Instant;

use farebox_ledger::search::{self, SearchResult};
use farebox_ledger::{
    Key, KeyId, KeyOrder, KeyQuery, MarginBy, MarginQuery, OperationId, Scope, Timestamp,
};

use farebox_selling::waiting;

use super::{StoreShared, TYPING};
use crate::app::detail;
use crate::app::keys::{From, KeysPage, KeysRequest, MatchCount};
use crate::app::message::Message;
use crate::app::modal::Hit;
use crate::app::money::sums::{KeyLabel, MarginView, SumsPage};
use crate::app::party::customer_of;
use crate::app::party_filter::KeyFilter;
use crate::clock;

/// Counting stops here.
const COUNT_TO: usize = 10_000;
pub(super) const LIST: usize = 500;

impl StoreShared {
    pub(super) async fn keys(&self, request: KeysRequest) {
        if request.debounce {
            tokio::time::sleep(TYPING).await;
        }
        let generation = request.generation;
        match self.keys_page(request).await {
            Ok(page) => self.tell(Message::Keys(page)),
            Err(error) => self.tell(Message::KeysFailed {
                generation,
                error: error.to_string(),
            }),
        }
    }

    async fn keys_page(
        &self,
        request: KeysRequest,
    ) -> Result<KeysPage, farebox_ledger::LedgerError> {
        let started = Instant::now();
        let page = |rows, ended| KeysPage {
            generation: request.generation,
            from: request.from,
            rows,
            ended,
            took_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            at: clock::now(),
        };
        if let Some(id) = request.filter.id {
            return Ok(page(
                self.ledger.find_key(id).await?.into_iter().collect(),
                true,
            ));
        }
        let (backwards, after) = match request.from {
            From::Start => (false, None),
            From::End => (true, None),
            From::After(place) => (false, Some(place)),
            From::Before(place) => (true, Some(place)),
        };
        let order = if backwards {
            request.order.reversed()
        } else {
            request.order
        };
        let query = KeyQuery {
            order,
            after,
            ..query(&request.filter, request.limit)
        };
        let mut rows = self.ledger.list_keys(query).await?;
        let ended = rows.len() < request.limit;
        if backwards {
            rows.reverse();
        }
        Ok(page(rows, ended))
    }

    pub(super) async fn count(&self, generation: u64, filter: KeyFilter) {
        if filter.id.is_some() {
            return;
        }
        let (mut keys, mut after) = (0, None);
        while keys < COUNT_TO {
            let Ok(rows) = self
                .ledger
                .list_keys(KeyQuery {
                    after,
                    ..query(&filter, 2000)
                })
                .await
            else {
                return;
            };
            keys += rows.len();
            after = rows.last().map(|key| KeyOrder::Created.place(key));
            if rows.len() < 2000 {
                self.tell(Message::Count {
                    generation,
                    count: MatchCount {
                        keys: keys as u64,
                        more: false,
                    },
                });
                return;
            }
        }
        self.tell(Message::Count {
            generation,
            count: MatchCount {
                keys: COUNT_TO as u64,
                more: true,
            },
        });
    }

    pub(super) async fn visible(&self, ids: Vec<KeyId>) {
        // On an error the old value stays on screen; the status line shows that the ledger does not answer.
        let Ok(keys) = self.ledger.find_keys(&ids).await else {
            return;
        };
        let found: Vec<KeyId> = keys.iter().map(|key| key.id).collect();
        let spent = self
            .ledger
            .spent_since(&found, detail::day_before(clock::now()))
            .await
            .unwrap_or_default();
        let mut spent = spent.into_iter();
        self.tell(Message::Visible(
            keys.into_iter().map(|key| (key, spent.next())).collect(),
        ));
    }

    pub(super) async fn holds(&self) {
        let holds = self.ledger.open_holds(None, LIST).await;
        self.tell(Message::Holds(holds.map_err(|error| error.to_string())));
    }

    pub(super) async fn audit(&self, before: Option<i64>) {
        if before.is_none() {
            // The acts on keys tell of a ledger that cannot be read.
            let files = self.ledger.files_acts(None, LIST).await;
            self.tell(Message::FilesActs(files.unwrap_or_default()));
            let house = self.ledger.house_acts().await;
            self.tell(Message::HouseActs(house.unwrap_or_default()));
        }
        let records = self.ledger.audit(None, before, LIST).await;
        let end = records.as_ref().is_ok_and(|records| records.len() < LIST);
        self.tell(Message::Audit {
            before,
            records: records.map_err(|error| error.to_string()),
            end,
        });
    }

    pub(super) async fn slugs(&self) {
        let now = clock::now();
        let used = self
            .ledger
            .slug_use(detail::week_before(now))
            .await
            .unwrap_or_default();
        let published = self.ledger.published().await.unwrap_or_default();
        self.tell(Message::Slugs { used, published });
    }

    pub(super) async fn margins(&self, view: MarginView, query: MarginQuery) {
        let answer = self.sums(query).await.map_err(|error| error.to_string());
        self.tell(Message::Margins {
            view,
            query,
            answer,
        });
    }

    pub(super) async fn waiting(&self) {
        let read = waiting::read(&*self.ledger, clock::now()).await;
        self.tell(Message::Waiting(read.map_err(|error| error.to_string())));
    }

    pub(super) async fn spend(&self, from: Timestamp, to: Timestamp) {
        let hours = self.ledger.slug_hours(from, to).await;
        self.tell(Message::Spend(hours.map_err(|error| error.to_string())));
    }

    pub(super) async fn sums(
        &self,
        query: MarginQuery,
    ) -> Result<SumsPage, farebox_ledger::LedgerError> {
        let page = self.ledger.margins(query).await?;
        let ids: Vec<KeyId> = match query.by {
            MarginBy::Key => page
                .rows
                .iter()
                .filter_map(|row| row.name.parse().ok())
                .collect(),
            MarginBy::Customer
            | MarginBy::Slug
            | MarginBy::Target
            | MarginBy::Provider
            | MarginBy::Account
            | MarginBy::Class
            | MarginBy::Day => Vec::new(),
        };
        let keys = if ids.is_empty() {
            Vec::new()
        } else {
            self.ledger.find_keys(&ids).await?
        };
        let label = |key: Key| {
            let customer = customer_of(&key).to_owned();
            let (id, label) = (key.id.to_string(), key.own.settings.label);
            (id, KeyLabel { label, customer })
        };
        let labels = keys.into_iter().map(label).collect();
        Ok(SumsPage { page, labels })
    }

    pub(super) async fn verify(&self) {
        let started = Instant::now();
        let report = self
            .ledger
            .verify()
            .await
            .map_err(|error| error.to_string());
        let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.tell(Message::Verified {
            report,
            took_ms,
            at: clock::now(),
        });
    }

    pub(super) async fn request(&self, request: OperationId) {
        let id = format!("req_{request}");
        let (entry, known) = tokio::join!(self.ledger.entry(request), self.client.request(&id));
        self.tell(Message::Request {
            request,
            entry: entry
                .map(|entry| entry.map(Box::new))
                .map_err(|error| error.to_string()),
            // The journal is enough when no gateway runs.
            known: known.ok().flatten().map(Box::new),
        });
    }

    /// Looks in the ledger and in the gateway's memory for whatever has this name.
    pub(super) async fn find(&self, text: &str) {
        self.tell(Message::Found(self.hit(text).await));
    }

    async fn hit(&self, text: &str) -> Result<Hit, String> {
        let known = self.client.request(text).await;
        if let Ok(Some(known)) = &known
            && let Ok(request) = known.request_id.parse()
        {
            let key = known.record.as_ref().and_then(|record| record.key.as_ref());
            let key = key.and_then(|key| key.parse().ok()).map(Scope::Key);
            return Ok(Hit::Request(request, key));
        }
        let found = search::find(&*self.ledger, text, clock::now()).await;
        match found.map_err(|error| error.to_string())? {
            Some(SearchResult::Key(key)) => Ok(Hit::Key(key.id)),
            Some(SearchResult::Customer(customer)) => Ok(Hit::Customer(customer.id)),
            Some(SearchResult::Payment(payment)) => Ok(Hit::Customer(payment.customer)),
            Some(SearchResult::Entry(entry)) => {
                let of = match entry.key {
                    Some(key) => Scope::Key(key),
                    None => Scope::Customer(entry.customer),
                };
                Ok(Hit::Request(entry.operation, Some(of)))
            }
            Some(SearchResult::Labelled { keys, .. }) if keys.is_empty() => {
                Ok(Hit::Customers(text.to_owned()))
            }
            Some(SearchResult::Labelled { .. }) => Ok(Hit::Label(text.to_owned())),
            None => {
                let memory = match known {
                    Ok(_) => "the gateway does not remember it either".to_owned(),
                    Err(why) => {
                        format!("what was refused only the running gateway remembers ({why})")
                    }
                };
                Err(format!(
                    "nothing in the ledger has this id, reference or label; {memory}"
                ))
            }
        }
    }

    pub(super) async fn labels(&self, ids: Vec<KeyId>) {
        let keys = self.ledger.find_keys(&ids).await.unwrap_or_default();
        let labels = keys.into_iter().map(|key| (key.id, key.own.settings.label));
        self.tell(Message::Labels(labels.collect()));
    }
}

/// The ledger's query for a filter.
pub(super) fn query(filter: &KeyFilter, limit: usize) -> KeyQuery {
    KeyQuery {
        made: None,
        customer: None,
        order: KeyOrder::Created,
        after: None,
        label: filter.text.clone(),
        status: filter.status,
        balance_below: filter.balance_below,
        now: clock::now(),
        limit,
    }
}
