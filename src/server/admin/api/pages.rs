//! Pages of lists: `{"data", "has_more", "next_cursor"}`. A cursor is the place of the last row that was shown, so that rows which come
//! meanwhile neither repeat nor hide others.

use farebox_ledger::{CustomerId, GrantId, KeyId, KeyPlace, Timestamp};
use farebox_selling::value::{Count, Instant, OneLine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::answer::{ApiError, ApiReply};

/// Rows of a page, unless the request says how many.
const USUAL: usize = 50;
/// The most rows of a page.
pub(super) const MOST: usize = 200;

/// The page that a request asks for.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListPage {
    /// Rows of a page, at most 200; 50 unless you say
    limit: Option<Count>,
    /// The next_cursor of the page before
    cursor: Option<OneLine>,
    /// From this instant on, or from the start of this day
    since: Option<Instant>,
    /// Before this instant, or before this day
    until: Option<Instant>,
}

/// The most rows of a page.
///
/// # Errors
/// 400 for more rows than a page has.
pub(super) fn rows(limit: Option<Count>) -> Result<usize, ApiError> {
    let limit = limit.map_or(USUAL, |limit| limit.0 as usize);
    if limit <= MOST {
        return Ok(limit);
    }
    let message =
        format!("`limit`: a page has at most {MOST} rows; ask for the next one with `cursor`");
    Err(ApiError::bad("invalid_field", message))
}

impl ListPage {
    /// The most rows.
    ///
    /// # Errors
    /// 400 for more rows than a page has.
    pub(super) fn rows(&self) -> Result<usize, ApiError> {
        rows(self.limit)
    }

    /// Nothing from before.
    pub(super) fn since(&self) -> Option<Timestamp> {
        self.since.map(Into::into)
    }

    /// Nothing from then on.
    pub(super) fn until(&self) -> Option<Timestamp> {
        self.until.map(Into::into)
    }

    /// Whether an instant is in it.
    pub(super) fn spans(&self, at: Timestamp) -> bool {
        self.since().is_none_or(|since| at >= since) && self.until().is_none_or(|until| at < until)
    }

    /// The place of the cursor in this list, as two numbers.
    ///
    /// # Errors
    /// 400 if it is no cursor of this list.
    pub(super) fn place(&self, list: &str) -> Result<Option<(i64, i64)>, ApiError> {
        let Some(cursor) = &self.cursor else {
            return Ok(None);
        };
        let read = || {
            let bytes = hex::decode(&cursor.0).ok()?;
            let text = String::from_utf8(bytes).ok()?;
            let (value, rest) = text
                .strip_prefix(list)?
                .strip_prefix(' ')?
                .split_once(' ')?;
            Some((value.parse().ok()?, rest.parse().ok()?))
        };
        read().map(Some).ok_or_else(|| {
            ApiError::bad(
                "invalid_cursor",
                "`cursor`: send the `next_cursor` of an earlier page of this list as it was",
            )
        })
    }

    /// The answer: the rows that were found, of which the last may be on the next page.
    pub(super) fn answer<T, D: Serialize>(
        &self,
        list: &str,
        found: &[T],
        row: impl Fn(&T) -> D,
        place: impl Fn(&T) -> (i64, i64),
    ) -> Result<ApiReply, ApiError> {
        let most = self.rows()?.min(found.len());
        let (shown, rest) = found.split_at(most);
        let next = shown.last().filter(|_| !rest.is_empty()).map(place);
        Ok(page(list, shown.iter().map(row), next))
    }
}

/// The answer: the rows, and where the next page begins.
pub(super) fn page(
    list: &str,
    data: impl IntoIterator<Item: Serialize>,
    next: Option<(i64, i64)>,
) -> ApiReply {
    let data: Vec<_> = data.into_iter().collect();
    let cursor = next.map(|(value, id)| hex::encode(format!("{list} {value} {id}")));
    json!({ "data": data, "has_more": cursor.is_some(), "next_cursor": cursor }).into()
}

/// A whole list as one page.
pub(super) fn whole(data: impl IntoIterator<Item: Serialize>) -> ApiReply {
    page("", data, None)
}

/// A place among customers.
pub(super) fn customer_place((value, id): (i64, i64)) -> Option<(i64, CustomerId)> {
    CustomerId::from_i64(id).map(|id| (value, id))
}

/// A place among keys.
pub(super) fn key_place((value, id): (i64, i64)) -> Option<KeyPlace> {
    KeyId::from_i64(id).map(|key| KeyPlace { value, key })
}

/// A place among grants.
pub(super) fn grant_place((value, id): (i64, i64)) -> Option<(Timestamp, GrantId)> {
    GrantId::from_i64(id).map(|id| (Timestamp::from_millis(value), id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_of_its_own_list_only() {
        let page = |cursor: Option<String>| ListPage {
            limit: None,
            cursor: cursor.map(OneLine),
            since: None,
            until: None,
        };
        let answered = super::page("customers", [(); 0], Some((-7, 12)));
        let super::super::answer::ApiContent::Document(document) = answered.body else {
            unreachable!("a document")
        };
        let cursor = document["next_cursor"].as_str().map(str::to_owned);
        assert_eq!(
            page(cursor.clone()).place("customers").unwrap(),
            Some((-7, 12))
        );
        assert!(page(cursor).place("keys").is_err());
        for wrong in ["", "zz", "00", "c3"] {
            assert!(page(Some(wrong.to_owned())).place("customers").is_err());
        }
        assert_eq!(page(None).place("customers").unwrap(), None);
    }
}
