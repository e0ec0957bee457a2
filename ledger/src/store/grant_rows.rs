//! What both stores select of grants.

use crate::table::columns::{ColumnValue, StoredAlone as _};
use crate::table::description::Described as _;
use crate::table::grants::NEXT_GRANT;
use crate::value::reference;
use crate::{CustomerId, Grant, GrantId, GrantQuery, GrantStatus, Timestamp};

/// What is selected in the place of [`NEXT_GRANT`], of accounts with this name: the open grants, as a list of lists. A customer without
/// grants costs no look at their table.
pub(crate) fn selected(accounts: &str) -> String {
    let columns = Grant::columns().into_iter().map(|column| {
        // Models are JSON already; everything else is a number.
        format!("coalesce(CAST(g.{} AS text), 'null')", column.name)
    });
    let columns: Vec<_> = columns.collect();
    format!(
        "CASE WHEN {accounts}.{NEXT_GRANT} IS NOT NULL THEN (SELECT string_agg('[' || {} || ']', ',') FROM grants g \
         WHERE g.customer = {accounts}.id AND (g.status <= 2 OR g.held > 0)) END",
        columns.join(" || ',' || ")
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
