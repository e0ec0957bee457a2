//! Tokens of the admin API, as the commands print them.

use farebox_ledger::text::visible;
use farebox_ledger::{DailyBound, Timestamp, Token, TokenToday};
use serde_json::{Value, json};

/// A token of the admin API, without its secret.
pub fn document(token: &Token, today: &TokenToday, now: Timestamp) -> Value {
    let bounds = DailyBound::ALL.into_iter().filter_map(|what| {
        let (most, done) = (today.most(token, what)?, today.day.done(what));
        Some(json!({ "what": what, "most": what.shown(most), "done": what.shown(done) }))
    });
    json!({
        "id": token.id,
        "label": visible(&token.label),
        "role": token.role,
        "status": token.status(now),
        "daily": token.daily,
        "today": today.day.booked,
        "bounds": bounds.collect::<Vec<_>>(),
        "expires_at": token.expires_at,
        "created_at": token.created_at,
        "created_by": token.created_by,
    })
}
