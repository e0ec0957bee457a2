//! The ledger reads of each view. Every read is bounded: the newest rows and the hourly sums, whatever the history.

use std::sync::Arc;

use farebox_ledger::{
    Amount, EntryKind, EntryQuery, GrantQuery, JournalEntry, Key, KeyId, KeyStatus, Ledger,
    LedgerError, Timestamp, UsageRow, given_up, lock, text,
};
use maud::Markup;

use super::constant::ConstantDocument;
use super::context::Context;
use super::newest::NewestRequests;
use super::owner;
use super::page::chart::Range;
use super::page::overview::Overview;
use super::page::payments::OpenMoney;
use super::page::requests::{KeyLabels, RequestFilter, RequestsPage};
use super::page::setup::{Checked, SetupQuery};
use super::page::{self, DashboardView};
use super::receipt;
use super::recent::month_of;
use super::runs;
use super::share::{KeyShare, seen};
use super::sources::ChargeSources;
use crate::clock;
use crate::config::{Model, Shop};
use crate::paper;
use crate::proxy::{Failure, offered, record};

/// Entries per read, and reads per page, when a filter rejects most of them.
const LOOK: usize = 500;
const LOOKS: usize = 10;
/// Requests on a page of all.
const PAGE: usize = 50;
/// Less available than this counts as low where neither a top-up nor a setting says so, as in the console.
const LOW: Amount = Amount::from_picos(1_000_000_000_000);
/// Administrative acts searched for payments, and payments shown.
const ACTS: usize = 400;
const PAYMENTS: usize = 100;

/// The values of a URL's query.
pub(super) type Query<'a> = &'a (dyn Fn(&str) -> Option<String> + Sync);

/// One view of a key.
///
/// # Errors
/// When the ledger cannot be read, or the query is invalid.
pub(super) async fn view(
    context: &Context,
    key: &Key,
    view: DashboardView,
    query: Query<'_>,
) -> Result<Markup, Failure> {
    let ledger = context.ledger.as_ref();
    match view {
        DashboardView::Overview => {
            let range = Range::asked(query("range").as_deref());
            let overview = overview(context, key.clone(), range).await?;
            let live = format!("/dashboard/live?range={}", range.name());
            Ok(page::signed_in(
                &context.shop(),
                view,
                key,
                Some(&live),
                &overview.page(),
            ))
        }
        DashboardView::Requests => requests(context, key, query).await,
        DashboardView::Payments => {
            let reader = paper::PaperReader::Customer;
            let mut documents = paper::documents(ledger, key.customer.id, reader).await?;
            documents.reverse();
            documents.truncate(PAYMENTS);
            let months = paper::months(&key.customer, clock::now());
            let entries = payments(ledger, key).await?;
            let mut unapplied = ledger.unapplied().await?;
            unapplied.retain(|payment| payment.customer == key.customer.id);
            let asked = GrantQuery {
                customer: Some(key.customer.id),
                limit: PAYMENTS,
                ..GrantQuery::default()
            };
            let open = OpenMoney {
                claim: key.customer.claim,
                unapplied,
                grants: ledger.grants(asked).await?,
            };
            let content = page::payments::page(&entries, &documents, &months, &open, clock::now());
            Ok(page::signed_in(&context.shop(), view, key, None, &content))
        }
        // `keys` and `plans` render them, with what their forms say.
        DashboardView::Keys | DashboardView::Plans => Err(Failure::Internal),
        DashboardView::Setup => {
            let asked = |name: &str| query(name).unwrap_or_default();
            let asked = SetupQuery {
                model: asked("model"),
                find: asked("find"),
                program: asked("program"),
            };
            Ok(setup(context, key, None, &asked))
        }
        DashboardView::Models => {
            offered(&context.config.current(), key)?;
            let content = page::models::page(&models(context, key));
            Ok(page::signed_in(&context.shop(), view, key, None, &content))
        }
    }
}

/// What is on sale, for everybody.
pub(super) fn prices(context: &Context) -> ConstantDocument {
    let config = context.config.current();
    let mut kept = lock(&context.prices);
    if let Some((of, page)) = &*kept
        && Arc::ptr_eq(of, &config)
    {
        return page.clone();
    }
    let (shop, models) = (&config.catalog.shop, &config.catalog.models);
    let content = page::prices::page(shop, &context.public_url, models);
    let page = page::public(shop, "Prices", &content).into_string();
    let page = ConstantDocument::new("text/html; charset=utf-8", page);
    *kept = Some((config, page.clone()));
    page
}

/// The content of the first view.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) async fn overview(
    context: &Context,
    key: Key,
    range: Range,
) -> Result<Overview, LedgerError> {
    let (ledger, now) = (context.ledger.as_ref(), clock::now());
    let first = Range::Month.first_hour(now).min(month_of(now));
    let since = Timestamp::from_millis(first.saturating_mul(3_600_000));
    let until = Timestamp::from_millis(now.millis().saturating_add(3_600_000));
    let labels = labels(ledger, &key).await?;
    let rows = match &labels {
        None => ledger.usage(key.id, since, until).await?,
        Some(labels) => usage_of_all(ledger, labels, since, until).await?,
    };
    let newest = NewestRequests::read(ledger, &key).await?;
    let runs = runs::this_month(ledger, &key, now).await?;
    let account = KeyShare::read(ledger, &key).await?.account(&key, now);
    Ok(Overview {
        account,
        low: warned_below(ledger, &key).await?,
        labels,
        key,
        range,
        rows,
        runs,
        newest,
        now,
        shop: context.shop(),
    })
}

/// The usage of several keys, of which those that were not used are not read.
async fn usage_of_all(
    ledger: &dyn Ledger,
    labels: &KeyLabels,
    since: Timestamp,
    until: Timestamp,
) -> Result<Vec<UsageRow>, LedgerError> {
    let ids: Vec<KeyId> = labels.keys().copied().collect();
    let spent = ledger.spent_since(&ids, since).await?;
    let mut rows = Vec::new();
    for (id, _) in ids
        .iter()
        .zip(spent)
        .filter(|(_, spent)| spent.is_positive())
    {
        rows.extend(ledger.usage(*id, since, until).await?);
    }
    Ok(rows)
}

/// The labels of the customer's keys, for an owner.
async fn labels(ledger: &dyn Ledger, key: &Key) -> Result<Option<KeyLabels>, LedgerError> {
    if !key.is_owner {
        return Ok(None);
    }
    let keys = owner::keys(ledger, key, clock::now()).await?;
    let label = |key: &Key| (key.id, text::visible(&key.settings.label));
    Ok(Some(keys.iter().chain([key]).map(label).collect()))
}

/// The balance below which the customer is told that it is low: as set for it or for all, or a tenth of the last top-up.
async fn warned_below(ledger: &dyn Ledger, key: &Key) -> Result<Amount, LedgerError> {
    if let Some(low) = key.customer.warned_below() {
        return Ok(low);
    }
    for act in ledger
        .audit(Some(key.customer.id.into()), None, ACTS)
        .await?
    {
        if matches!(act.act.as_str(), "create" | "top_up") {
            let entry = ledger.entry(act.operation).await?;
            if let Some(entry) = entry.filter(|entry| entry.kind == EntryKind::TopUp) {
                return Ok(Amount::from_picos(entry.amount.picos() / 10));
            }
        }
    }
    Ok(LOW)
}

async fn requests(context: &Context, key: &Key, query: Query<'_>) -> Result<Markup, Failure> {
    let before = query("before").filter(|before| !before.is_empty());
    let ledger = context.ledger.as_ref();
    let position = match &before {
        None => None,
        // A walk starts only from an entry of this key: from anywhere else it would read all of them.
        Some(before) => Some(place(ledger, key, before).await?),
    };
    let filter = filter(key, query)?;
    let labels = labels(ledger, key).await?;
    let (entries, older) = if !filter.id.is_empty() {
        (named(ledger, key, &filter.id).await?, None)
    } else if filter.is_empty() {
        newest(ledger, key, position, PAGE).await?
    } else {
        filtered(ledger, key, position, &filter).await?
    };
    let mut models: Vec<String> = models(context, key)
        .iter()
        .map(|model| model.slug.clone())
        .collect();
    if !filter.model.is_empty() && !models.contains(&filter.model) {
        models.push(filter.model.clone());
    }
    let first = position.is_none();
    let mut refusals = context.activity.refusals(key.id);
    if !filter.id.is_empty() {
        let wanted = record::operation(&filter.id);
        refusals.retain(|refused| Some(refused.request) == wanted);
    }
    let shown = RequestsPage {
        entries: &entries,
        older: older.as_deref(),
        first,
        filter: &filter,
        models: &models,
        refusals: &refusals,
        labels: labels.as_ref(),
    };
    let live = (first && filter.is_empty()).then_some("/dashboard/live?view=requests");
    Ok(page::signed_in(
        &context.shop(),
        DashboardView::Requests,
        key,
        live,
        &page::requests::page(&shown),
    ))
}

/// The query of the view's form.
fn filter(key: &Key, query: Query<'_>) -> Result<RequestFilter, Failure> {
    let asked = |name: &str| query(name).unwrap_or_default();
    let filter = RequestFilter {
        model: asked("model"),
        day: asked("day"),
        status: asked("status"),
        id: asked("id").trim().to_owned(),
        key: asked("key").parse().ok().filter(|_| key.is_owner),
    };
    let slug = |text: &str| {
        text.len() <= 100
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte))
    };
    let day = |text: &str| {
        text.is_empty() || (text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok())
    };
    if !slug(&filter.model) {
        return Err(Failure::bad_query(
            "model",
            "model must be a slug".to_owned(),
        ));
    }
    if !day(&filter.day) {
        return Err(Failure::bad_query(
            "day",
            "day must be a date like 2026-11-22".to_owned(),
        ));
    }
    if !["", "ok", "cut"].contains(&filter.status.as_str()) {
        return Err(Failure::bad_query(
            "status",
            "status must be ok or cut".to_owned(),
        ));
    }
    Ok(filter)
}

/// The one request that an id names.
async fn named(ledger: &dyn Ledger, key: &Key, id: &str) -> Result<Vec<JournalEntry>, Failure> {
    match receipt::find_seen(ledger, key, id).await {
        Ok(entry) => Ok(vec![entry]),
        Err(Failure::NoRequest(_)) => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}

/// The next charges that pass a filter, in short reads; a walk that finds few stops after a while and can be continued.
async fn filtered(
    ledger: &dyn Ledger,
    key: &Key,
    mut position: Option<i64>,
    filter: &RequestFilter,
) -> Result<(Vec<JournalEntry>, Option<String>), LedgerError> {
    let mut found = Vec::new();
    for _ in 0..LOOKS {
        let query = EntryQuery {
            before: position,
            limit: Some(LOOK),
            ..seen(key)
        };
        let mut entries = ledger.entries(query).await?;
        let whole = entries.len() == LOOK;
        entries.reverse();
        for entry in entries {
            position = Some(entry.position);
            if filter.is_past(&entry) {
                return Ok((found, None));
            }
            let id = record::request_id(entry.operation);
            if entry.kind == EntryKind::Charge && filter.passes(&entry) {
                found.push(entry);
            }
            if found.len() >= PAGE {
                return Ok((found, Some(id)));
            }
        }
        if !whole {
            return Ok((found, None));
        }
    }
    let query = EntryQuery {
        // The last one that was looked at, itself: a page begins at an entry's id.
        before: position.map(|at| at + 1),
        limit: Some(1),
        ..seen(key)
    };
    let last = ledger.entries(query).await?;
    Ok((
        found,
        last.first()
            .map(|entry| record::request_id(entry.operation)),
    ))
}

/// One request as a receipt.
///
/// # Errors
/// 404 for an id that is unknown or another key's.
pub(super) async fn receipt(context: &Context, key: &Key, id: &str) -> Result<Markup, Failure> {
    let ledger = context.ledger.as_ref();
    let entry = receipt::find_seen(ledger, key, id).await?;
    let sources = ChargeSources::of(ledger, key, &entry).await?;
    Ok(page::signed_in(
        &context.shop(),
        DashboardView::Requests,
        key,
        None,
        &page::receipt::page(&entry, key.is_owner, sources.words(&entry)),
    ))
}

async fn place(ledger: &dyn Ledger, key: &Key, id: &str) -> Result<i64, Failure> {
    let missing = || Failure::NoRequest(id.to_owned());
    let entry = ledger
        .entry(record::operation(id).ok_or_else(missing)?)
        .await?;
    entry
        .filter(|entry| entry.customer == key.customer.id)
        .filter(|entry| key.is_owner || entry.key == Some(key.id))
        .map(|entry| entry.position)
        .ok_or_else(missing)
}

/// A page of charges, newest first, and where the next page begins.
async fn newest(
    ledger: &dyn Ledger,
    key: &Key,
    before: Option<i64>,
    limit: usize,
) -> Result<(Vec<JournalEntry>, Option<String>), LedgerError> {
    let query = EntryQuery {
        before,
        limit: Some(limit + 1),
        ..seen(key)
    };
    let mut entries = ledger.entries(query).await?;
    entries.reverse();
    let more = entries.len() > limit;
    entries.truncate(limit);
    let older = entries
        .last()
        .filter(|_| more)
        .map(|entry| record::request_id(entry.operation));
    // Only now: the next page begins behind the last entry, whatever its kind.
    entries.retain(|entry| entry.kind == EntryKind::Charge);
    Ok((entries, older))
}

/// The rows with which the view of requests begins.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) async fn newest_part(ledger: &dyn Ledger, key: &Key) -> Result<Markup, LedgerError> {
    let labels = labels(ledger, key).await?;
    let newest = newest(ledger, key, None, PAGE).await?.0;
    Ok(page::requests::rows(&newest, labels.as_ref()))
}

/// Credits, newest first. They are found through the acts that made them, because among a million charges there are few.
async fn payments(ledger: &dyn Ledger, key: &Key) -> Result<Vec<JournalEntry>, LedgerError> {
    let mut found = Vec::new();
    for act in ledger
        .audit(Some(key.customer.id.into()), None, ACTS)
        .await?
    {
        if found.len() >= PAYMENTS {
            break;
        }
        let made = match act.act.as_str() {
            "create" | "begin_period" | "top_up" | "adjust" | "grant" | "void_grant" | "refund"
            | "move" | "write_off" => vec![act.operation],
            "change_plan" => given_up(&act).map(Vec::from).unwrap_or_default(),
            _ => Vec::new(),
        };
        for operation in made {
            let entry = ledger.entry(operation).await?;
            found.extend(
                entry
                    .filter(|entry| entry.kind != EntryKind::Charge)
                    .filter(|entry| entry.customer == key.customer.id),
            );
        }
    }
    Ok(found)
}

/// The models that this key may use, at its prices; none where those are not known.
pub(super) fn models(context: &Context, key: &Key) -> Vec<Arc<Model>> {
    let config = context.config.current();
    let models = offered(&config, key).map(|catalog| catalog.models.iter());
    let models = models.into_iter().flatten();
    let may_use = models.filter(|model| key.settings.allows(&model.slug));
    may_use.cloned().collect()
}

/// The set-up view, with the result of checking the key.
pub(super) fn setup(
    context: &Context,
    key: &Key,
    checked: Option<&Checked>,
    query: &SetupQuery,
) -> Markup {
    let (models, shop) = (models(context, key), context.shop());
    let content = page::setup::page(&context.public_url, &models, query, checked, (&shop, key));
    page::signed_in(&shop, DashboardView::Setup, key, None, &content)
}

/// The seller's words, as one more sentence.
fn words(shop: &Shop) -> String {
    match shop.ways_to_pay() {
        ways if ways.is_empty() => ways,
        // No full stop, which could be taken for the end of a link.
        ways => format!(" {}", page::display::capital(&ways)),
    }
}

/// The result shown for a valid secret: whether its key can pay for requests, and if not, why.
pub(super) fn checked(context: &Context, key: &Key) -> Checked {
    let left = key.remaining("", clock::now());
    let models = models(context, key).len();
    let (good, text) = match key.status(clock::now()) {
        KeyStatus::Active if left > Amount::ZERO => (
            true,
            format!(
                "This key is valid and active: {left} USD left, models it may use: {models}."
            ),
        ),
        KeyStatus::Active if key.customer.account.balance() > Amount::ZERO => (
            false,
            "This key is valid, but a cap leaves it nothing to spend: wait until it starts again, or ask for a higher one."
                .to_owned(),
        ),
        KeyStatus::Active => (
            false,
            format!(
                "This key is valid, but out of balance: top it up, then retry.{}",
                words(&context.shop())
            ),
        ),
        other => (false, format!("This key is valid, but {other}.")),
    };
    Checked { good, text }
}
