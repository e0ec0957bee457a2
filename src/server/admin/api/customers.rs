//! Customers under `/api/v1`.

use farebox_ledger::{Customer, CustomerId, CustomerQuery, KeyOrder, Outcome, Timestamp};
use farebox_selling::customer::{CustomerDocument, CustomerPage, EditCustomer, WhichCustomers};
use farebox_selling::key::KeyDocument;
use serde_json::{Value, json};

use super::answer::{ApiError, ApiReply};
use super::call::{ApiCall, NamedInPath, ToldTo};
use super::pages::{self, ListPage};
use crate::clock;

/// The list's name in its cursors.
const LIST: &str = "customers";

/// The largest id, so that a page begins behind every row of an instant.
const LAST_ID: u64 = u64::MAX;

pub(super) async fn list(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let which: WhichCustomers = call.read()?;
    if let Some(mut only) = which.only(call.ledger()).await? {
        only.retain(|customer| call.token.may_read(customer));
        return Ok(pages::whole(only.iter().map(CustomerDocument::from)));
    }
    let page: ListPage = call.read()?;
    let place = page.place(LIST)?.and_then(pages::customer_place);
    let after = place.or(page.since().map(before_instant));
    let (found, next) = read(call, &page, after, &which).await?;
    Ok(pages::page(
        LIST,
        found.iter().map(CustomerDocument::from),
        next,
    ))
}

/// A place before everything of an instant.
fn before_instant(since: Timestamp) -> (i64, CustomerId) {
    (
        since.millis().saturating_sub(1),
        CustomerId::from_random(LAST_ID),
    )
}

/// A page of customers that this token may read, and where the next one begins. Of the customers of others as many are passed over as
/// there are.
async fn read(
    call: &ApiCall<'_>,
    page: &ListPage,
    after: Option<(i64, CustomerId)>,
    which: &WhichCustomers,
) -> Result<(Vec<Customer>, Option<(i64, i64)>), ApiError> {
    let (order, until) = (KeyOrder::Created, page.until());
    let mut query = CustomerQuery {
        order,
        after,
        limit: page.rows()?.saturating_add(1).max(pages::MOST),
        ..which.query()
    };
    let (most, mut found) = (page.rows()?, Vec::<Customer>::new());
    loop {
        let rows = call.ledger().list_customers(query.clone()).await?;
        let last = rows.len() < query.limit;
        query.after = rows
            .last()
            .map(|customer| order.place_of_customer(customer));
        for customer in rows {
            if until.is_some_and(|until| customer.created_at >= until) {
                return Ok((found, None));
            }
            if !call.token.may_read(&customer) {
                continue;
            }
            if found.len() == most {
                let next = found.last().map(|last| order.place_of_customer(last));
                return Ok((found, next.map(|(value, id)| (value, id.to_i64()))));
            }
            found.push(customer);
        }
        if last {
            return Ok((found, None));
        }
    }
}

pub(super) async fn show(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let customer = call.customer().await?;
    shown(call, customer.id).await
}

/// One customer with everything, and its ETag.
async fn shown(call: &ApiCall<'_>, id: CustomerId) -> Result<ApiReply, ApiError> {
    let etag = call.ledger().last_act(id.into()).await?;
    let page = CustomerPage::read(call.ledger(), id).await?;
    Ok(ApiReply::from(json!(page.document())).tagged(etag))
}

/// A new customer, with its first key.
pub(super) fn created(outcome: &Outcome, told: &ToldTo) -> (u16, Value) {
    let Outcome::Key(key) = outcome else {
        return (told.status, farebox_selling::document(outcome));
    };
    let document = json!(CustomerDocument {
        key: Some(KeyDocument::of(key, clock::now())),
        ..(&key.customer).into()
    });
    (told.status, document)
}

pub(super) async fn edit(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    call.act::<EditCustomer>().await?;
    shown(call, CustomerId::named(call)?).await
}
