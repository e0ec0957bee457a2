//! Pages over a screen: forms, reviews with before and after, receipts, open operations, and facts to read.

use farebox_ledger::Account;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::fields::{FactList, NAME, fact, fields};
use super::pen::{Pen, above, below};
use crate::app::ConsoleApp;
use crate::app::form::{Form, FormPurpose, RefundedCharge};
use crate::app::modal::{
    ActReview, Find, ListedOperation, Modal, OPERATIONS, OutcomeLookup, ReadingModal, Receipt,
    Unknown,
};
use crate::app::order::ListState;
use crate::app::party::Party;
use crate::format;
use crate::sanitize::width;

/// Draws the page that is open.
pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    match &app.modal {
        Some(Modal::Form(form)) => form_page(app, pen, area, form),
        Some(Modal::Review(page)) => review(pen, area, page, false),
        Some(Modal::Sending(page)) => review(pen, area, page, true),
        Some(Modal::Unknown(page)) => unknown(pen, area, page),
        Some(Modal::Receipt(page)) => receipt(pen, area, page),
        Some(Modal::Secret(page)) => super::secret::draw(app, pen, area, page),
        Some(Modal::Request(page)) => super::request::draw(app, pen, area, page),
        Some(Modal::Operations(selected)) => operations(app, pen, area, *selected),
        Some(Modal::Reading(page)) => reading(pen, area, page),
        Some(Modal::Find(page)) => find(pen, area, page),
        Some(Modal::Bulk(act)) => super::bulk::draw(pen, area, act),
        None => {}
    }
}

/// Facts in full.
fn reading(pen: &mut Pen<'_>, area: Rect, page: &ReadingModal) {
    let inner = pen.frame(area, &page.title);
    let mut facts = FactList::default();
    for (name, value) in &page.facts {
        facts.plain(name, value);
    }
    facts.draw_from(pen, area, inner, page.scroll);
}

/// One text field, and why nothing was found.
fn find(pen: &mut Pen<'_>, area: Rect, page: &Find) {
    let inner = pen.frame(area, "Find");
    let theme = pen.theme;
    let used = pen.typed(below(inner, 1), "› ", &page.field);
    let hint = "a request, an answer's id, a payment's reference, a key, a customer, your own system's id, a secret or a label";
    match (&page.problem, page.looking) {
        (_, true) => pen.text(inner, used + 2, 1, "looking …", theme.warn()),
        (Some(problem), _) => pen.paragraph(inner, 3, problem, theme.bad()),
        (None, _) => pen.paragraph(inner, 3, hint, theme.faint()),
    };
}

fn form_page(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect, form: &Form) {
    let inner = pen.frame(area, &form.title());
    let theme = pen.theme;
    let roomy = u16::from(inner.height >= 12);
    let mut y = roomy;
    if let Some(error) = &form.error {
        y += pen.paragraph(inner, y, error, theme.bad()) + roomy;
    }
    let FormPurpose::Act(act) = &form.purpose else {
        y = fields(pen, inner, y, form) + roomy;
        let hint = "written at once; the file must be new and is readable only by you";
        pen.text(inner, 0, y + roomy, hint, theme.faint());
        return;
    };
    if let Some(RefundedCharge {
        request,
        amount,
        slug,
    }) = &act.charge
    {
        let charge = format!("req_{request} · {slug} · charged {amount} USD");
        y += pen.paragraph(inner, y, &charge, Style::new()) + roomy;
    }
    y = fields(pen, inner, y, form) + roomy;
    if let Some(party) = act.about.as_ref().filter(|_| !act.kind.edits) {
        let now = app.listed(party.scope());
        let now = now.as_ref().unwrap_or(party).account();
        y += account(pen, inner, y, "Now", now);
    }
    pen.text(inner, 0, y + roomy, act.hint(), theme.faint());
}

fn account(pen: &mut Pen<'_>, area: Rect, y: u16, name: &str, account: Account) -> u16 {
    let text = if area.width >= 70 {
        format!(
            "balance {:>12}   held {:>9}   available {:>12}",
            format::exact(account.balance()),
            format::exact(account.held),
            format::exact(account.available())
        )
    } else {
        format!(
            "{} held {}",
            format::exact(account.balance()),
            format::exact(account.held)
        )
    };
    fact(pen, area, y, name, &text, pen.theme.strong())
}

fn review(pen: &mut Pen<'_>, area: Rect, page: &ActReview, sending: bool) {
    let pending = &page.pending;
    let title = if sending { "sending" } else { "review" };
    let inner = pen.frame(area, &pending.title(&format!(": {title}")));
    let theme = pen.theme;
    let roomy = u16::from(inner.height >= 14);
    let mut y = roomy;
    for (name, value) in pending.plan.facts() {
        let style = if name == "Amount" {
            theme.strong()
        } else {
            Style::new()
        };
        y += fact(pen, inner, y, &name, &value, style);
    }
    y += roomy;
    let before = page.about.as_ref().map(Party::account);
    if let Some(after) = pending.plan.after(before.unwrap_or_default()) {
        y += account(pen, inner, y, "Now", before.unwrap_or_default());
        y += match after {
            Ok(after) => account(pen, inner, y, "After", after),
            Err(refusal) => {
                let text = format!("it will be refused: {refusal}");
                fact(pen, inner, y, "After", &text, theme.bad())
            }
        };
    } else if let (Some(before), Some(_)) = (before, pending.plan.kind.permanent) {
        y += account(pen, inner, y, "Now", before);
    }
    y += roomy;
    let operation = format!("op_{} by {}", pending.operation, pending.actor);
    y += fact(pen, inner, y, "Operation", &operation, Style::new());
    if roomy > 0 {
        let text =
            "applied at most once, however often it is sent; saved until the outcome is known";
        y += fact(pen, inner, y, "", text, theme.faint());
    }
    let y = (y + roomy).min(inner.height.saturating_sub(1));
    pen.blank(inner, y);
    if sending {
        pen.text(inner, NAME, y, "waiting for the ledger …", theme.warn());
        return;
    }
    let button = "[ Cancel ]";
    let x = NAME.min(inner.width.saturating_sub(12));
    pen.text(inner, x, y, button, theme.selected());
    let x = x + u16::try_from(width(button)).unwrap_or(0) + 4;
    let used = pen.text(inner, x, y, "y", theme.key());
    pen.text(
        inner,
        x + used + 2,
        y,
        pending.plan.kind.yes,
        theme.strong(),
    );
}

fn unknown(pen: &mut Pen<'_>, area: Rect, page: &Unknown) {
    let pending = &page.review.pending;
    let inner = pen.frame(
        area,
        &format!("{}: answer not received", pending.plan.kind.name),
    );
    let theme = pen.theme;
    let mut y = 1;
    if page.not_applied {
        y += pen.paragraph(
            inner,
            y,
            "The ledger was read and does not have this operation: it was NOT applied.",
            theme.warn(),
        ) + 1;
        y += pen.paragraph(
            inner,
            y,
            "y sends the same operation again. It keeps its id, so it cannot be applied twice.",
            Style::new(),
        ) + 1;
    } else {
        y += pen.paragraph(
            inner,
            y,
            "The ledger has not confirmed this. The outcome is NOT known yet.",
            theme.bad(),
        ) + 1;
        y += pen.paragraph(
            inner,
            y,
            &format!(
                "Looking it up by its id …  attempt {}, again every 2 s.",
                page.tries + 1
            ),
            Style::new(),
        ) + 1;
        y += pen.paragraph(
            inner,
            y,
            "Do not start a new one. This page will show the receipt, or that it was not applied.",
            Style::new(),
        ) + 1;
    }
    y += fact(
        pen,
        inner,
        y,
        "Operation",
        &format!("op_{}", pending.operation),
        Style::new(),
    );
    let of = pending.plan.of.map(|of| of.to_string());
    let of: Vec<String> = of.into_iter().chain([pending.label.clone()]).collect();
    y += fact(pen, inner, y, "Of", &of.join(" · "), Style::new());
    for (name, value) in pending.plan.facts() {
        y += fact(pen, inner, y, &name, &value, Style::new());
    }
    fact(pen, inner, y, "Problem", &page.problem, theme.warn());
}

fn receipt(pen: &mut Pen<'_>, area: Rect, page: &Receipt) {
    let pending = &page.pending;
    let inner = pen.frame(area, &pending.title(": done"));
    let (good, strong) = (pen.theme.good(), pen.theme.strong());
    let roomy = u16::from(inner.height >= 12);
    let done = if page.repeated {
        "✓ it was already applied and is not applied twice"
    } else if page.unapplied.is_some() {
        "not booked, and kept: farebox customers unapplied"
    } else {
        "✓ applied"
    };
    pen.text(inner, 0, roomy, done, good);
    let mut list = FactList::default();
    list.if_any("Because", page.unapplied.as_deref().unwrap_or_default());
    if let Some(entry) = &page.entry {
        list.styled("Amount", &format!("{} USD", entry.amount), strong);
        let balance = format!("{} USD after it", entry.balance_after);
        list.styled("Balance", &balance, strong);
        if let Some(reference) = &entry.reference {
            list.plain("Reference", reference);
        }
        if let Some(reason) = &entry.reason {
            list.plain("Reason", reason);
        }
        let (seq, at, actor) = (entry.seq, format::stamp(entry.at), &entry.actor);
        list.plain(
            "Entry",
            &format!("{seq} of its customer, {at} UTC by {actor}"),
        );
    } else {
        for (name, value) in pending.plan.facts() {
            list.plain(&name, &value);
        }
    }
    list.plain("Operation", &format!("op_{}", pending.operation));
    let begin = roomy + 1 + roomy;
    let y = begin + list.draw(pen, inner, begin);
    if let Some(party) = &page.about {
        account(pen, inner, y + roomy, "Now", party.account());
    }
}

fn operations(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect, selected: usize) {
    let inner = pen.frame(area, "Operations whose outcome is unknown");
    let rows: Vec<&ListedOperation> = app.operations.iter().collect();
    let list = ListState {
        selected,
        ..ListState::default()
    };
    pen.list(above(inner, 3), OPERATIONS, &rows, &list);
    let Some(listed) = app.operations.get(selected) else {
        return;
    };
    let text = match &listed.found {
        OutcomeLookup::Applied(_) if listed.open.brings_secret() => {
            "It was applied, but its secret was not seen: R rotate on this key gives a new one."
        }
        OutcomeLookup::Applied(_) => "It was applied once. d removes it from this list.",
        OutcomeLookup::NotApplied if listed.open.pending().is_some() => {
            "It was not applied. y reviews and sends the same operation; d drops it."
        }
        OutcomeLookup::NotApplied => {
            "It was not applied. d drops it; start a new one if you still need it."
        }
        OutcomeLookup::Elsewhere(_) => "Another console of this user is working on it.",
        OutcomeLookup::Unreadable(_) => "The ledger cannot be read.",
    };
    pen.paragraph(
        inner,
        inner.height.saturating_sub(2),
        text,
        pen.theme.strong(),
    );
}
