//! The words of acts that move money, or change what is bought with it.

/// Acts that move money: what else there is of a customer or key stays as it was.
pub(crate) const OF_MONEY: [&str; 22] = [
    "top_up",
    "adjust",
    "refund",
    "write_off",
    "move",
    "unapplied",
    "assign",
    "return",
    "reverse",
    "unapplied_reversal",
    "fail_top_up",
    "grant",
    "void_grant",
    "sell_plan",
    "begin_period",
    "lapse_plan",
    "reverse_plan",
    "change_plan",
    "pause_plan",
    "resume_plan",
    "end_plan",
    "want_end_plan",
];
