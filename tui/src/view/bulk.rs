//! The page of a bulk act: a line for each key with what changes, and later what came of it.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::fields::NAME;
use super::pen::{Cell, Column, Pen, left, right};
use crate::app::ConsoleApp;
use crate::app::bulk::{BulkAct, BulkItem, BulkItemState};
use crate::app::order::ListOrder;
use crate::app::party::state_word;
use crate::bulk_plan::BulkPlan;
use crate::format;
use crate::plan::ActPlan;
use crate::sanitize::width;

const COLUMNS: &[Column] = &[
    left("KEY", 12, 2),
    left("LABEL", 0, 0),
    right("NOW", 12, 0),
    right("AFTER", 12, 0),
    left("OUTCOME", 18, 1),
];

/// Draws it.
pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect, act: &BulkAct) {
    let changes = act.changes();
    let stage = match (act.sent, act.is_over()) {
        (false, _) => "review",
        (true, false) => "sending",
        (true, true) => "done",
    };
    let title = format!(
        "{}: {stage} · {}",
        act.plan.name(),
        format::many(changes, "key")
    );
    let inner = pen.frame(area, &title);
    let mut y = 0;
    for line in facts(act, changes) {
        y += pen.paragraph(inner, y, &line, Style::new());
    }
    let list = Rect {
        y: inner.y + y,
        height: inner.height.saturating_sub(y + 2),
        ..inner
    };
    rows(app, pen, list, act);
    let last = inner.height.saturating_sub(1);
    pen.blank(inner, last);
    buttons(pen, inner, last, act, changes);
}

/// What is done, in words.
fn facts(act: &BulkAct, changes: usize) -> Vec<String> {
    let left_out = act.items.len() - changes;
    let mut lines = match &act.plan {
        BulkPlan::Credit {
            amount, reference, ..
        } => {
            let count = u64::try_from(changes).unwrap_or(u64::MAX);
            let all = farebox_ledger::Amount::times(*amount, count)
                .map_or_else(|| "more than fits".to_owned(), |all| all.to_string());
            vec![format!(
                "{amount} USD each, {all} USD in all · reference {reference}-KEY"
            )]
        }
        BulkPlan::Block => vec!["new requests are refused at once".to_owned()],
        BulkPlan::Unblock => vec!["requests are served again while money lasts".to_owned()],
        BulkPlan::Revoke => vec!["requests are refused permanently; balances stay".to_owned()],
        BulkPlan::Set(edit) => vec![format!("{}; all else stays", edit.words())],
    };
    if left_out > 0 {
        lines.push(format!(
            "{} left out, with the reason",
            format::many(left_out, "key")
        ));
    }
    lines
}

fn rows(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect, act: &BulkAct) {
    let placed = pen.heads(area, 0, COLUMNS, ListOrder::default());
    let list = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    let height = usize::from(list.height);
    let first = usize::from(act.scroll).min(act.items.len().saturating_sub(height));
    for (y, item) in act.items.iter().skip(first).take(height).enumerate() {
        let y = u16::try_from(y).unwrap_or(u16::MAX);
        pen.line(list, y, COLUMNS, &placed, &cells(app, pen, item), false);
    }
    if act.items.len() > height {
        let end = (first + height).min(act.items.len());
        let place = format!("{}–{end} of {} · j k", first + 1, act.items.len());
        let below = Rect {
            y: area.bottom(),
            height: 1,
            ..area
        };
        pen.text(below, 2, 0, &place, pen.theme.faint());
    }
}

fn cells(app: &ConsoleApp, pen: &Pen<'_>, item: &BulkItem) -> [Cell; 5] {
    let theme = pen.theme;
    let left_out = matches!(item.state, BulkItemState::LeftOut(_));
    let (now, after) = match item.pending.plan.after(item.key.customer.account) {
        Some(after) => (
            format::within(item.key.customer.account.balance(), 12),
            after.map_or_else(
                |_| "refused".to_owned(),
                |after| format::within(after.balance(), 12),
            ),
        ),
        None => (
            state_word(&item.key, app.now).to_owned(),
            match item.pending.plan {
                ActPlan::Block => "BLOCKED",
                ActPlan::Revoke => "REVOKED",
                ActPlan::Set(_) => "changed",
                _ => "served",
            }
            .to_owned(),
        ),
    };
    let (outcome, style) = match &item.state {
        BulkItemState::LeftOut(why) => (why.clone(), theme.faint()),
        BulkItemState::Ready => (String::new(), Style::new()),
        BulkItemState::Sent => ("…".to_owned(), theme.warn()),
        BulkItemState::Unknown(why) => (format!("not known yet: {why}"), theme.warn()),
        BulkItemState::Done => ("✓ applied".to_owned(), theme.good()),
        BulkItemState::Failed(why) => (format!("✗ {why}"), theme.bad()),
    };
    let after_style = if left_out {
        theme.faint()
    } else {
        theme.strong()
    };
    [
        (item.key.id.to_string(), theme.key()),
        (item.key.settings.label.clone(), Style::new()),
        (now, Style::new()),
        (if left_out { "—".to_owned() } else { after }, after_style),
        (outcome, style),
    ]
}

fn buttons(pen: &mut Pen<'_>, inner: Rect, y: u16, act: &BulkAct, changes: usize) {
    let theme = pen.theme;
    if act.sent {
        let done = act.count(|state| *state == BulkItemState::Done);
        let failed = act.count(|state| matches!(state, BulkItemState::Failed(_)));
        let style = match (act.is_over(), failed) {
            (false, _) => theme.warn(),
            (true, 0) => theme.good(),
            (true, _) => theme.bad(),
        };
        let text = format!("{done} of {changes} applied, {failed} failed");
        pen.text(inner, 0, y, &text, style);
        return;
    }
    let button = "[ Cancel ]";
    let x = NAME.min(inner.width.saturating_sub(12));
    pen.text(inner, x, y, button, theme.selected());
    let x = x + u16::try_from(width(button)).unwrap_or(0) + 4;
    if changes == 0 {
        pen.text(inner, x, y, "nothing would change", theme.warn());
        return;
    }
    let used = pen.text(inner, x, y, "y", theme.key());
    let does = format!(
        "{} {}",
        act.plan.name().to_lowercase(),
        format::many(changes, "key")
    );
    pen.text(inner, x + used + 2, y, &does, theme.strong());
}
