//! Pages of lists: `{"data", "has_more", "next_cursor"}`. A cursor is the place of the last row that was shown, so that rows which come
//! meanwhile neither repeat nor hide others.

use farebox_ledger::{CustomerId, KeyId, KeyPlace};
use serde_json::{Value, json};

use super::answer::{ApiError, ApiReply};
use super::fields::FieldValues;

/// Rows of a page, unless the request says how many.
const USUAL: usize = 50;
/// The most rows of a page.
pub(super) const MOST: usize = 200;

/// The page that a request asks for.
#[derive(Debug)]
pub(super) struct ListPage {
    /// The most rows.
    pub(super) limit: usize,
    cursor: Option<String>,
}

impl ListPage {
    /// Reads `limit` and `cursor`.
    ///
    /// # Errors
    /// 400 for more rows than a page has.
    pub(super) fn of(query: &FieldValues) -> Result<Self, ApiError> {
        let limit = query.count("limit")?.map_or(USUAL, |limit| limit as usize);
        if limit > MOST {
            let message = format!(
                "`limit`: a page has at most {MOST} rows; ask for the next one with `cursor`"
            );
            return Err(ApiError::bad("invalid_field", message));
        }
        let cursor = query.text("cursor");
        Ok(Self { limit, cursor })
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
            let bytes = hex::decode(cursor).ok()?;
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

    /// The answer: the rows, and where the next page begins.
    pub(super) fn answer(
        &self,
        list: &str,
        data: Vec<Value>,
        next: Option<(i64, i64)>,
    ) -> ApiReply {
        let cursor = next.map(|(value, id)| hex::encode(format!("{list} {value} {id}")));
        json!({ "data": data, "has_more": cursor.is_some(), "next_cursor": cursor }).into()
    }
}

/// A whole list as one page.
pub(super) fn whole(data: &[Value]) -> ApiReply {
    json!({ "data": data, "has_more": false, "next_cursor": null }).into()
}

/// A place among customers.
pub(super) fn customer_place((value, id): (i64, i64)) -> Option<(i64, CustomerId)> {
    CustomerId::from_i64(id).map(|id| (value, id))
}

/// A place among keys.
pub(super) fn key_place((value, id): (i64, i64)) -> Option<KeyPlace> {
    KeyId::from_i64(id).map(|key| KeyPlace { value, key })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_of_its_own_list_only() {
        let page = |cursor: Option<String>| ListPage { limit: 3, cursor };
        let answered = page(None).answer("customers", Vec::new(), Some((-7, 12)));
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
