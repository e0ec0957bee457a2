//! Lists of lots of vouchers under `/api/v1`.

use farebox_ledger::{Lot, Perform as _};
use farebox_selling::voucher::{self, LotDocument};
use schemars::JsonSchema;
use serde::Deserialize;

use super::answer::{ApiError, ApiReply};
use super::call::ApiCall;
use super::pages::ListPage;

/// The list's name in its cursors.
const LIST: &str = "vouchers";

/// Which lots.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct LotsQuery {
    /// Only lots in this state
    #[schemars(extend("enum" = ["good", "expired", "void"]))]
    status: Option<String>,
}

pub(super) async fn list(call: &ApiCall<'_>) -> Result<ApiReply, ApiError> {
    let (which, page): (LotsQuery, ListPage) = (call.read()?, call.read()?);
    let after = page.place(LIST)?;
    let place = |lot: &Lot| (lot.created_at.millis(), lot.id.to_i64());
    let is_wanted = |word: &str| which.status.as_deref().is_none_or(|status| status == word);
    let mut found = call.ledger().all::<Lot>().await?;
    found.retain(|lot| {
        after.is_none_or(|after| place(lot) > after)
            && page.spans(lot.created_at)
            && is_wanted(voucher::status(lot, call.now))
    });
    page.answer(LIST, &found, |lot| LotDocument::of(lot, call.now), place)
}
