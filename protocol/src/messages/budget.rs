//! Adapts the thinking budget of a translated messages request to its final limit.

use std::ops::Range;

use crate::json::{Cursor, Edit, JsonError, splice};
use crate::translate::effort;
use crate::usage::count;

/// The body with a budget that leaves room for the answer under this limit; `None` if it fits as it is. The flag tells whether
/// thinking had to be turned off.
pub(crate) fn fit_budget(body: &[u8], limit: u32) -> Option<(Vec<u8>, bool)> {
    let found = Cursor::new(body)
        .and_then(|mut cursor| budget(&mut cursor))
        .ok()?;
    let (thinking, (place, tokens)) = found.thinking.zip(found.tokens)?;
    match effort::within(tokens, limit) {
        Some(fits) if fits == tokens => None,
        Some(fits) => Some((
            splice(
                body,
                &mut [Edit::replace(place, fits.to_string().into_bytes())],
            ),
            false,
        )),
        None => Some((
            splice(
                body,
                &mut [Edit::replace(thinking, &br#"{"type":"disabled"}"#[..])],
            ),
            true,
        )),
    }
}

#[derive(Default)]
struct BudgetMembers {
    thinking: Option<Range<usize>>,
    tokens: Option<(Range<usize>, u32)>,
}

fn budget(cursor: &mut Cursor<'_>) -> Result<BudgetMembers, JsonError> {
    let mut found = BudgetMembers::default();
    let mut walk = cursor.enter_object()?;
    while let Some(key) = cursor.member(&mut walk)? {
        let value = cursor.skip()?;
        if key.name != "thinking" {
            continue;
        }
        let mut inner = cursor.back_to(value.span.start);
        found.thinking = Some(value.span);
        let mut members = inner.enter_object()?;
        while let Some(key) = inner.member(&mut members)? {
            let value = inner.skip()?;
            if key.name == "budget_tokens" {
                let tokens = count(&inner, &value).and_then(|tokens| u32::try_from(tokens).ok());
                found.tokens = tokens.map(|tokens| (value.span, tokens));
            }
        }
    }
    Ok(found)
}
