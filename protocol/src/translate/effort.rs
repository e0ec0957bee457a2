//! How hard a model thinks, in efforts and in tokens.

use super::neutral::Effort;

/// Fewest tokens a budget may have.
// What vendors with budgets require; less is a 400.
pub(crate) const MIN_BUDGET: u32 = 1_024;

/// The thinking budget for an effort. A share of the model's largest limit would cost money that the customer did not ask for.
pub(crate) fn budget(effort: Effort) -> u32 {
    match effort {
        Effort::None => 0,
        Effort::Minimal => MIN_BUDGET,
        Effort::Low => 2_048,
        Effort::Medium => 8_192,
        Effort::High => 16_384,
        Effort::Xhigh => 24_576,
        Effort::Max => 32_000,
    }
}

/// The effort closest to a budget; never one of the two highest.
pub(crate) fn of_budget(tokens: u32) -> Effort {
    match tokens {
        0..=2_048 => Effort::Low,
        2_049..=8_192 => Effort::Medium,
        // Who sends a large budget mostly means a bound, and not a wish for the dearest answer.
        _ => Effort::High,
    }
}

/// The least limit with a budget in it.
// The rest is for the answer: with less, a customer would pay for reasoning and read half a sentence.
const MIN_LIMIT: u32 = MIN_BUDGET + 256;

/// A budget reduced to fit under a limit: at most three quarters of it, and at least 1,024. `None`: too little is left.
pub(crate) fn within(budget: u32, limit: u32) -> Option<u32> {
    // Thinking counts against the limit. Without a share for the answer, a model can think up to the limit and answer nothing,
    // for which the customer pays.
    let room = MIN_BUDGET.max(limit - limit.div_ceil(4));
    (limit >= MIN_LIMIT)
        .then(|| budget.min(room))
        .filter(|budget| *budget >= MIN_BUDGET)
}
