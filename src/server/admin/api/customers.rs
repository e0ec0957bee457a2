//! Customers under `/api/v1`.

use std::sync::Arc;

use farebox_ledger::{
    Customer, CustomerAct, CustomerId, CustomerQuery, CustomerStatus, KeyOrder, KeySettings,
    Outcome, Timestamp,
};
use serde_json::{Value, json};

use super::answer::{ApiError, ApiReply};
use super::call::ApiCall;
use super::fields::FieldValues;
use super::keys::new_key;
use super::pages::{self, ListPage};
use super::table::ApiTask;
use crate::clock;
use crate::selling::customers::{self, CustomerEdit, PersonalEdit};
use crate::selling::reads::CustomerPage;
use crate::selling::{documents, keys, money};

/// The list's name in its cursors.
const LIST: &str = "customers";

/// The largest id, so that a page begins behind every row of an instant.
const LAST_ID: u64 = u64::MAX;

pub(super) async fn list(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let query = &call.query;
    if let Some(external_id) = query.text("external_id") {
        let found = call.ledger().find_external(&external_id).await?;
        let found = found.filter(|customer| call.token.may_read(customer));
        let rows: Vec<Value> = found.iter().map(documents::customer).collect();
        return Ok(pages::whole(&rows));
    }
    let page = ListPage::of(query)?;
    let place = page.place(LIST)?.and_then(pages::customer_place);
    let since = query.instant("since")?;
    let after = place.or(since.map(before_instant));
    let (found, next) = read(call, &page, after, query.instant("until")?).await?;
    let rows = found.iter().map(documents::customer).collect();
    Ok(page.answer(LIST, rows, next))
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
    until: Option<Timestamp>,
) -> Result<(Vec<Customer>, Option<(i64, i64)>), ApiError> {
    let order = KeyOrder::Created;
    let mut query = CustomerQuery {
        order,
        after,
        text: call.query.text("label"),
        status: call.query.text("status").and_then(|word| status(&word)),
        limit: page.limit.saturating_add(1).max(pages::MOST),
        ..CustomerQuery::default()
    };
    let mut found: Vec<Customer> = Vec::new();
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
            if found.len() == page.limit {
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

fn status(word: &str) -> Option<CustomerStatus> {
    use CustomerStatus::{Active, Closed, Suspended};
    [Active, Suspended, Closed]
        .into_iter()
        .find(|status| status.to_string() == word)
}

pub(super) async fn show(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let customer = call.customer().await?;
    shown(call, customer.id).await
}

/// One customer with everything, and its ETag.
async fn shown(call: &ApiCall<'_>, id: CustomerId) -> Result<ApiReply, ApiError> {
    let etag = call.ledger().last_act(id.into()).await?;
    let page = CustomerPage::read(call.ledger(), id).await?;
    Ok(ApiReply::from(page.document()).tagged(etag))
}

pub(super) async fn create(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let edit = edit_of(&call.body)?;
    let Some(key) = call.body.object("key") else {
        return call.perform(customers::create(edit, call.act())).await;
    };
    let label = key.text("label").or(call.body.text("label"));
    let settings = new_key(&key, label)?.over(&KeySettings::default());
    let settings = settings.map_err(|why| ApiError::bad("invalid_field", why))?;
    let customer = customers::new(edit, call.act());
    let deed = keys::enrol(customer, settings, key.flag("owner"), call.act());
    let status = call.route.status;
    let show = move |outcome: &Outcome| (status, with_first_key(outcome));
    call.perform_as(deed, Arc::new(show)).await
}

/// A new customer, with its first key.
fn with_first_key(outcome: &Outcome) -> Value {
    let Outcome::Key(key) = outcome else {
        return documents::outcome(outcome);
    };
    let mut shown = documents::customer(&key.customer);
    if let Some(fields) = shown.as_object_mut() {
        fields.insert("key".to_owned(), documents::key(key, clock::now()));
    }
    shown
}

/// What a body says of a customer.
fn edit_of(body: &FieldValues) -> Result<CustomerEdit, ApiError> {
    Ok(CustomerEdit {
        label: body.text("label"),
        external_id: body.setting("external_id", |body, name| Ok(body.text(name)))?,
        low_balance: body.setting("low_balance", FieldValues::usd)?,
        rate: body.setting("rate", FieldValues::count)?,
        concurrency: body.setting("concurrency", FieldValues::count)?,
        personal: PersonalEdit {
            name: body.text("name"),
            address: body.text("address"),
            metadata: body.pairs("metadata"),
        },
    })
}

pub(super) async fn edit(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let id = call.customer_id()?;
    loop {
        let base = call.edit_base(id.into()).await?;
        let customer = call.customer().await?;
        let known = call.ledger().personal_data(id).await?;
        let edit = edit_of(&call.body)?;
        let deeds = customers::set(&customer, known, edit, &call.token.label);
        if call.edit(base, deeds).await? {
            return shown(call, id).await;
        }
    }
}

pub(super) async fn change(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let act = match call.route.task {
        ApiTask::Suspend => CustomerAct::Suspend,
        ApiTask::Resume => CustomerAct::Resume,
        _ => CustomerAct::Erase,
    };
    let deed = customers::change(call.customer_id()?, act, call.act());
    call.perform(deed).await
}

/// Closes a customer. What is left is written off first, under a reference: repeated, it finds nothing left.
pub(super) async fn close(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let id = call.customer_id()?;
    match (call.body.text("write_off"), call.body.text("reason")) {
        (Some(reference), Some(reason)) => {
            let act = call.act();
            let off = money::write_off(call.ledger(), id, reason, &reference, act).await?;
            if let Some(deed) = off {
                call.apply(deed).await?;
            }
        }
        (None, None) => {}
        _ => {
            let message = "`write_off` and `reason` go together: a reference, and why";
            return Err(ApiError::bad("missing_field", message).with(json!({ "field": "reason" })));
        }
    }
    let deed = customers::change(id, CustomerAct::Close, call.act());
    call.perform(deed).await
}
