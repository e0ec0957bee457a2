//! What of a plan binds a request that more money is there for. Pure.

use std::fmt;

use super::WindowSpan;
use super::window::{PlanWindow, Plans, WindowId};
use crate::rule::account::less;
use crate::{Amount, GrantId, Timestamp};

/// The window, or else the period, that opens next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanLimit {
    /// The plan's name.
    pub plan: String,
    /// What people call it.
    pub title: String,
    /// How long its window counts; `None` is the period.
    pub per: Option<WindowSpan>,
    /// Most that may be used in it.
    pub limit: Amount,
    /// What was.
    pub spent: Amount,
    /// What running requests hold of it.
    pub held: Amount,
    /// When there is more again.
    pub opens_at: Timestamp,
}

/// `plan Coder, monthly of 4.00 USD per 5h`.
impl fmt::Display for PlanLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "plan {} of {} USD ", self.title, self.limit)?;
        match self.per {
            Some(per) => write!(out, "per {per}"),
            None => out.write_str("until it begins again"),
        }
    }
}

impl Plans {
    /// What opens next of the running periods that name a slug, for a request with these windows. `of_grant` is what is charged of each
    /// period's allowance, and held.
    pub(crate) fn opens_next(
        &self,
        slug: &str,
        has: &[WindowId],
        of_grant: impl Fn(GrantId) -> Option<(Amount, Amount)>,
    ) -> Option<PlanLimit> {
        let limits = self.live(slug).flat_map(|running| {
            let terms = &running.terms;
            let limit = move |per, limit, (spent, held), opens_at| PlanLimit {
                plan: terms.name.clone(),
                title: terms.title.clone(),
                per,
                limit,
                spent,
                held,
                opens_at,
            };
            let (spent, held) = of_grant(running.grant).unwrap_or_default();
            let left = less(less(terms.allowance, spent), held);
            let own = self.windows().filter(|window| {
                has.contains(&window.id) && window.place.plan == terms.name && window.room() < left
            });
            let of_window = move |window: &PlanWindow| {
                let used = (window.charged, window.held);
                limit(Some(window.place.per), window.bound, used, window.ends)
            };
            // A window that has more than the period leaves binds nothing.
            let of_period = limit(None, terms.allowance, (spent, held), running.ends);
            let mut all: Vec<_> = own.map(of_window).collect();
            if all.is_empty() {
                all.push(of_period);
            }
            all
        });
        limits.min_by_key(|limit| limit.opens_at)
    }
}
