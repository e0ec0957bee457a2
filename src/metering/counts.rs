//! Counts of tokens as protocols read and print them, and as the ledger keeps them: one from the other.

use farebox_ledger::Usage;
use farebox_protocol::ReportedUsage;

/// Without pictures.
pub(super) fn usage(counted: ReportedUsage) -> Usage {
    Usage {
        input: counted.input,
        cache_read: counted.cache_read,
        cache_write: counted.cache_write,
        cache_write_1h: counted.cache_write_1h,
        cache_write_12h: counted.cache_write_12h,
        output: counted.output,
        reasoning: counted.reasoning,
        ..Usage::default()
    }
}

/// As answers print it.
pub fn reported(usage: Usage) -> ReportedUsage {
    ReportedUsage {
        input: usage.input,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        cache_write_1h: usage.cache_write_1h,
        cache_write_12h: usage.cache_write_12h,
        output: usage.output,
        reasoning: usage.reasoning,
    }
}
