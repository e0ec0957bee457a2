//! Pages of customers, and single ones that are on the screen.

use farebox_ledger::search::{self, SearchResult};
use farebox_ledger::{Customer, CustomerId, CustomerQuery, LedgerError};

use super::{StoreShared, TYPING};
use crate::app::customers::{CustomersPage, CustomersRequest};
use crate::app::message::Message;
use crate::clock;

impl StoreShared {
    pub(super) async fn customers(&self, request: CustomersRequest) {
        if request.debounce {
            tokio::time::sleep(TYPING).await;
        }
        let (generation, more) = (request.generation, request.after.is_some());
        let page = self.customers_page(request).await;
        let ended = page.as_ref().is_ok_and(|(_, ended)| *ended);
        self.tell(Message::Customers(CustomersPage {
            generation,
            more,
            rows: page
                .map(|(rows, _)| rows)
                .map_err(|error| error.to_string()),
            ended,
            at: clock::now(),
        }));
    }

    /// The rows, and whether they are the last ones.
    async fn customers_page(
        &self,
        request: CustomersRequest,
    ) -> Result<(Vec<Customer>, bool), LedgerError> {
        let filter = request.filter;
        if let Some(id) = filter.id {
            let found = self.ledger.find_customer(id).await?;
            return Ok((found.into_iter().collect(), true));
        }
        if let Some(reference) = filter.payment {
            let found = self.payer(&reference).await?;
            return Ok((found.into_iter().collect(), true));
        }
        let query = CustomerQuery {
            order: request.order,
            after: request.after,
            text: filter.text,
            status: filter.status,
            balance_below: filter.balance_below,
            limit: request.limit,
        };
        let rows = self.ledger.list_customers(query).await?;
        let ended = rows.len() < request.limit;
        Ok((rows, ended))
    }

    /// The customer of a payment.
    async fn payer(&self, reference: &str) -> Result<Option<Customer>, LedgerError> {
        let found = search::find(&*self.ledger, reference, clock::now()).await?;
        match found {
            Some(SearchResult::Entry(entry)) => self.ledger.find_customer(entry.customer).await,
            Some(SearchResult::Payment(payment)) => {
                self.ledger.find_customer(payment.customer).await
            }
            _ => Ok(None),
        }
    }

    pub(super) async fn visible_customers(&self, ids: Vec<CustomerId>) {
        let mut fresh = Vec::with_capacity(ids.len());
        for id in ids {
            // On an error the old value stays on screen; the status line shows that the ledger does not answer.
            match self.ledger.find_customer(id).await {
                Ok(customer) => fresh.extend(customer),
                Err(_) => return,
            }
        }
        self.tell(Message::VisibleCustomers(fresh));
    }
}
