//! What both stores select of grants.

use crate::table::columns::{ColumnValue, StoredAlone as _};
use crate::table::description::DescribedRow;
use crate::table::grants::NEXT_GRANT;
use crate::value::reference;
use crate::{
    Amount, CustomerId, Grant, GrantId, GrantQuery, GrantStatus, PaidPeriods, PlanWindow,
    Subscription, Timestamp,
};

/// What is selected in the place of [`NEXT_GRANT`], of accounts with this name: the open grants, the open subscriptions and the windows, each
/// as a list of lists. A customer without any costs no look at their tables.
pub(crate) fn selected(accounts: &str) -> String {
    let lists = [
        list_of::<Grant>(accounts, " AND (g.status <= 2 OR g.held > 0)"),
        list_of::<Subscription>(accounts, " AND g.open = 1"),
        list_of::<PlanWindow>(accounts, ""),
    ];
    format!(
        "CASE WHEN {accounts}.{NEXT_GRANT} IS NOT NULL THEN '[' || {} || ']' END",
        lists.join(" || ',' || ")
    )
}

fn list_of<T: DescribedRow>(accounts: &str, condition: &str) -> String {
    let columns = T::columns().into_iter().map(|column| {
        // Texts are JSON already; everything else is a number.
        format!("coalesce(CAST(g.{} AS text), 'null')", column.name)
    });
    let columns: Vec<_> = columns.collect();
    format!(
        "'[' || coalesce((SELECT string_agg('[' || {} || ']', ',') FROM {} g WHERE g.customer = {accounts}.id{condition}), '') || ']'",
        columns.join(" || ',' || "),
        T::TABLE
    )
}

/// Selects a page of grants, with the parameters of [`page_values`]; in a file they are written with other signs.
pub(crate) const GRANTS_PAGE: &str = "WHERE ($1::bigint IS NULL OR customer = $1) AND ($2::bigint IS NULL OR id = $2) \
     AND ($3::text IS NULL OR folded = $3) AND ($4::bigint IS NULL OR status = $4) \
     AND ($5::bigint IS NULL OR (created_at, id) < ($5, $6)) ORDER BY created_at DESC, id DESC LIMIT $7";

/// Of accounts those for whose grants the time has come, some of them.
pub(crate) const DUE: &str = "WHERE next_grant_at <= $1 ORDER BY next_grant_at, id LIMIT 100";

/// The parameters of [`GRANTS_PAGE`].
pub(crate) fn page_values(query: &GrantQuery) -> [ColumnValue<'static>; 7] {
    let folded = query.reference.as_deref().map(reference::folded);
    let (at, after) = query.after.unzip();
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    [
        ColumnValue::Number(query.customer.map(CustomerId::to_i64)),
        ColumnValue::Number(query.id.map(GrantId::to_i64)),
        ColumnValue::Text(folded.map(Into::into)),
        query.status.map_or(GrantStatus::NULL, |status| {
            ColumnValue::Number(match status.value() {
                ColumnValue::Number(code) => code,
                ColumnValue::Text(_) | ColumnValue::Bytes(_) => None,
            })
        }),
        ColumnValue::Number(at.map(Timestamp::millis)),
        ColumnValue::Number(after.map(GrantId::to_i64)),
        ColumnValue::Number(Some(limit)),
    ]
}

/// What nobody paid of a customer's credit, where its payments bought these periods of plans, of which no entry says that they were paid.
/// One that is unreadable counts as given; the verifier tells of it.
pub(crate) fn without_periods(given: Amount, plans: &[String]) -> Amount {
    let read = |text: &String| serde_json::from_str::<PaidPeriods>(text).ok();
    let paid = plans
        .iter()
        .filter_map(read)
        .map(|plan| plan.paid_in().picos());
    Amount::from_picos(paid.fold(given.picos(), i64::saturating_sub))
}
