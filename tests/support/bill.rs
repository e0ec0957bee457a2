//! The bill of a coding client's request, as benchmarks settle it.

use farebox_ledger::{Amount, Bill, BillLine, EndReason, Usage};

/// What a coding client's request may cost.
pub(crate) fn bill() -> Bill {
    let line = |what: &'static str, count, picos| BillLine {
        what: what.into(),
        count,
        rate: Amount::from_picos(picos),
        class: None,
    };
    Bill {
        slug: "claude-sonnet-4.5".into(),
        family: "messages".into(),
        target: "anthropic/claude-sonnet-4-5".into(),
        status: 200,
        end_reason: EndReason::Stop,
        first_byte_ms: Some(420),
        total_ms: 2_300,
        answer_id: Some("msg_01ABCDEFGHIJKLMNOPQRSTUV".into()),
        usage: Usage {
            input: 900,
            cache_read: 8_000,
            output: 300,
            ..Usage::default()
        },
        lines: vec![
            line("input", 900, 300_000),
            line("cache_read", 8_000, 30_000),
            line("output", 300, 1_500_000),
        ],
        ..Bill::default()
    }
}
