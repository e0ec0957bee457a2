//! Keys that a program made, as documents: the members of OpenRouter's key API, and those of ours.

use farebox_ledger::{
    Amount, Cap, CapInterval, Key, KeyStatus, Ledger, LedgerError, Timestamp, UtcDay, text,
};

use super::decimal_json::DecimalJson;
use super::dialects::limit_reset;

/// What a key was charged: in all, today, this week, this month.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KeySums([Amount; 4]);

impl KeySums {
    /// Of each of these keys.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(super) async fn read(
        ledger: &dyn Ledger,
        keys: &[Key],
        now: Timestamp,
    ) -> Result<Vec<Self>, LedgerError> {
        let ids: Vec<_> = keys.iter().map(|key| key.id).collect();
        let mut sums = vec![Self::default(); keys.len()];
        let today = UtcDay::of(now);
        let since = [
            Timestamp::from_millis(0),
            CapInterval::Day.window(today).begin(),
            CapInterval::Week.window(today).begin(),
            CapInterval::Month.window(today).begin(),
        ];
        for (at, since) in since.into_iter().enumerate() {
            let spent = ledger.spent_since(&ids, since).await?;
            for (sums, spent) in sums.iter_mut().zip(spent) {
                sums.0[at] = spent;
            }
        }
        Ok(sums)
    }
}

/// The limit of a key: its own cap of all models with least room.
pub(super) fn limit_of(key: &Key, now: Timestamp) -> Option<&Cap> {
    let all = key
        .caps
        .iter()
        .filter(|counted| counted.cap.model.is_none());
    let today = UtcDay::of(now);
    let tightest = all.min_by_key(|counted| counted.room(today));
    tightest.map(|counted| &counted.cap)
}

/// One key. `hash` is its id: nothing here tells anything of its secret.
pub(super) fn document(key: &Key, sums: &KeySums, now: Timestamp) -> DecimalJson {
    let (limit, status) = (limit_of(key, now), key.status(now));
    let label = text::visible(&key.settings.label);
    let KeySums([usage, day, week, month]) = *sums;
    let nothing = || DecimalJson::Count(0);
    let metadata = key.settings.metadata.as_deref().cloned();
    let models = key.settings.models.as_ref();
    let models = models.map(|models| models.iter().map(|slug| slug.as_str().into()).collect());
    DecimalJson::object([
        ("hash", key.id.to_string().into()),
        ("id", key.id.to_string().into()),
        ("name", label.as_str().into()),
        ("label", label.into()),
        ("status", status.to_string().into()),
        ("disabled", (status != KeyStatus::Active).into()),
        ("limit", limit.map(|cap| cap.limit).into()),
        ("limit_remaining", key.remaining("", now).into()),
        (
            "limit_reset",
            limit
                .and_then(|cap| limit_reset(cap.interval))
                .map(str::to_owned)
                .into(),
        ),
        ("usage", usage.into()),
        ("usage_daily", day.into()),
        ("usage_weekly", week.into()),
        ("usage_monthly", month.into()),
        ("include_byok_in_limit", false.into()),
        ("byok_usage", nothing()),
        ("byok_usage_daily", nothing()),
        ("byok_usage_weekly", nothing()),
        ("byok_usage_monthly", nothing()),
        (
            "models",
            models.map_or(DecimalJson::Null, DecimalJson::List),
        ),
        ("rate", key.settings.rate.into()),
        ("metadata", DecimalJson::Texts(metadata.unwrap_or_default())),
        ("created_at", key.created_at.to_string().into()),
        ("updated_at", DecimalJson::Null),
        (
            "expires_at",
            key.settings.expires_at.map(|at| at.to_string()).into(),
        ),
        ("creator_user_id", DecimalJson::Null),
        ("workspace_id", DecimalJson::Null),
    ])
}
