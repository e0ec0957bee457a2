//! The page of a bulk act: a line for each key with what changes, and later what came of it.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::fields::NAME;
use super::pen::{Pen, above, below};
use crate::app::bulk::{BulkAct, BulkItem, BulkItemState, ITEMS};
use crate::app::order::ListOrder;
use crate::format;
use crate::plan::typed;
use crate::sanitize::width;

pub(super) fn draw(pen: &mut Pen<'_>, area: Rect, act: &BulkAct) {
    let changes = act.changes();
    let stage = match (act.sent, act.is_over()) {
        (false, _) => "review",
        (true, false) => "sending",
        (true, true) => "done",
    };
    let title = format!(
        "{}: {stage} · {}",
        act.plan.kind.name,
        format::many(changes, "key")
    );
    let inner = pen.frame(area, &title);
    let mut y = 0;
    for line in facts(act, changes) {
        y += pen.paragraph(inner, y, &line, Style::new());
    }
    let list = above(below(inner, y), 2);
    rows(pen, list, act);
    let last = inner.height.saturating_sub(1);
    pen.blank(inner, last);
    buttons(pen, inner, last, act, changes);
}

/// What is done, in words.
fn facts(act: &BulkAct, changes: usize) -> Vec<String> {
    let left_out = act.items.len() - changes;
    let plan = &act.plan;
    let first = if let Some((_, amount)) = plan.money() {
        let count = u64::try_from(changes).unwrap_or(u64::MAX);
        let all = farebox_ledger::Amount::times(amount, count)
            .map_or_else(|| "more than fits".to_owned(), |all| all.to_string());
        let reference = plan.body.get("reference").map(typed).unwrap_or_default();
        format!("{amount} USD each, {all} USD in all · reference {reference}-KEY")
    } else if plan.kind.edits {
        let said = plan.facts().into_iter();
        let said = said.map(|(name, value)| format!("{name} {value}"));
        format!("{}; all else stays", said.collect::<Vec<_>>().join(" · "))
    } else {
        let effects = plan.facts().into_iter().map(|(_, effect)| effect);
        effects.collect::<Vec<_>>().join("; ")
    };
    let mut lines = vec![first];
    if left_out > 0 {
        lines.push(format!(
            "{} left out, with the reason",
            format::many(left_out, "key")
        ));
    }
    lines
}

fn rows(pen: &mut Pen<'_>, area: Rect, act: &BulkAct) {
    let height = usize::from(area.height.saturating_sub(1));
    let first = usize::from(act.scroll).min(act.items.len().saturating_sub(height));
    let shown: Vec<&BulkItem> = act.items.iter().skip(first).collect();
    pen.rows(area, ITEMS, &shown, ListOrder::default());
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
        act.plan.kind.name.to_lowercase(),
        format::many(changes, "key")
    );
    pen.text(inner, x + used + 2, y, &does, theme.strong());
}
