//! The page of one key or customer: facts, caps, the chart of two days, and the tab's list.

use farebox_ledger::{Amount, AuditRecord, JournalEntry, OpenHold, Scope};
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{Cell, Column, Pen, left, right};
use super::{chart, facts};
use crate::app::ConsoleApp;
use crate::app::detail::{BalanceCheck, PartyDetail, Tab};
use crate::app::keys::window;
use crate::app::mouse::Spot;
use crate::app::party::{MemberKey, state_word};
use crate::app::spend::SpendFlow;
use crate::format;
use crate::sanitize::width;

/// From this height on the chart is drawn.
const CHART_FROM: u16 = 14;
const HOURS: usize = 48;

const ENTRIES: &[Column] = &[
    left("UTC", 11, 0),
    left("KIND", 7, 0),
    right("AMOUNT", 14, 0),
    right("BALANCE", 12, 1),
    left("WHAT", 0, 0),
];
/// The entries of a customer name their keys.
const CUSTOMERS_ENTRIES: &[Column] = &[
    left("UTC", 11, 0),
    left("KIND", 7, 0),
    right("AMOUNT", 14, 0),
    right("BALANCE", 12, 1),
    left("WHAT", 0, 0),
    left("KEY", 12, 2),
];
const KEYS: &[Column] = &[
    left("KEY", 12, 0),
    left("LABEL", 0, 0),
    left("KIND", 6, 1),
    right("SPENT", 11, 0),
    right("HELD", 9, 2),
    right("ROOM", 11, 0),
    left("STATE", 7, 0),
];
const PAYMENTS: &[Column] = &[
    left("UTC", 11, 0),
    left("KIND", 9, 0),
    right("AMOUNT", 13, 0),
    left("REFERENCE", 16, 0),
    left("BY, WHY", 0, 1),
];
const MODELS: &[Column] = &[
    left("MODEL", 0, 0),
    right("REQUESTS", 9, 0),
    right("INPUT", 7, 2),
    right("CACHED", 7, 3),
    right("OUTPUT", 7, 2),
    right("SPENT", 12, 0),
    right("SHARE", 6, 1),
];
const RUNNING: &[Column] = &[
    left("REQUEST", 15, 2),
    left("MODEL", 0, 0),
    left("PATH", 9, 3),
    right("HELD", 12, 0),
    right("USED", 12, 1),
    right("AGE", 7, 0),
];
const ACTS: &[Column] = &[
    left("UTC", 11, 0),
    left("ACT", 8, 0),
    left("BY", 12, 0),
    left("DETAILS", 0, 0),
];

/// Draws the open key or customer, as a page or beside the list.
pub(super) fn draw(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let Some(detail) = &app.detail else {
        let inner = pen.frame(area, "Page");
        pen.text(inner, 0, 1, "nothing is selected", pen.theme.faint());
        return;
    };
    let label = (detail.party.as_ref())
        .map(|party| format!(" · {}", party.label()))
        .unwrap_or_default();
    let what = match detail.of {
        Scope::Key(_) => "Key",
        Scope::Customer(_) => "Customer",
    };
    let focus = if app.is_wide() && app.detail_open {
        "▸ "
    } else {
        ""
    };
    let inner = pen.frame(area, &format!("{focus}{what} {}{label}", detail.of));
    let Some(party) = &detail.party else {
        let text = match (&detail.error, detail.loaded) {
            (Some(error), _) => error.clone(),
            (None, true) => format!("there is no {} in this ledger", detail.of),
            (None, false) => "reading …".to_owned(),
        };
        pen.paragraph(inner, 1, &text, pen.theme.warn());
        return;
    };
    let roomy = inner.height >= CHART_FROM;
    let mut y = facts::draw(app, detail, party, pen, inner) + u16::from(roomy);
    if roomy && detail.tab == Tab::Entries {
        y += chart(
            app,
            detail,
            pen,
            Rect {
                y: inner.y + y,
                height: inner.height - y,
                ..inner
            },
        );
    }
    let rest = Rect {
        y: inner.y + y,
        height: inner.height.saturating_sub(y),
        ..inner
    };
    tabs(detail, pen, rest);
    let list = Rect {
        y: rest.y + 1,
        height: rest.height.saturating_sub(2),
        ..rest
    };
    rows(app, detail, pen, list);
    check(
        detail,
        pen,
        Rect {
            y: inner.bottom().saturating_sub(1),
            height: 1,
            ..inner
        },
    );
}

fn chart(app: &ConsoleApp, detail: &PartyDetail, pen: &mut Pen<'_>, area: Rect) -> u16 {
    let hours = if area.width >= 100 { HOURS * 2 } else { HOURS };
    let bars = detail.chart(app.now, hours);
    let most = bars.iter().copied().max().unwrap_or(0);
    let most = Amount::from_picos(i64::try_from(most).unwrap_or(i64::MAX));
    let title = format!(
        "Spend per hour, {hours} h, now at the right · most {}",
        format::within(most, 12)
    );
    pen.text(area, 0, 0, &title, pen.theme.faint());
    pen.bars(area, 0, 1, &bars, pen.theme.good());
    3
}

fn tabs(detail: &PartyDetail, pen: &mut Pen<'_>, area: Rect) {
    let theme = pen.theme;
    let mut x = pen.text(area, 0, 0, "[ ]", theme.key()) + 2;
    for (tab, name) in detail.tabs() {
        let style = if *tab == detail.tab {
            theme.selected()
        } else {
            Style::new()
        };
        let many = match tab {
            Tab::Running => detail.holds.len(),
            Tab::Keys => detail.keys.len(),
            _ => 0,
        };
        let text = match many {
            0 => format!(" {name} "),
            many => format!(" {name} {many} "),
        };
        let used = pen.text(area, x, 0, &text, style);
        let place = Rect {
            x: area.x + x,
            width: used,
            height: 1,
            ..area
        };
        pen.spots.push((place, Spot::Tab(*tab)));
        x += used + 1;
    }
}

fn rows(app: &ConsoleApp, detail: &PartyDetail, pen: &mut Pen<'_>, area: Rect) {
    let columns = match detail.tab {
        Tab::Entries if matches!(detail.of, Scope::Customer(_)) => CUSTOMERS_ENTRIES,
        Tab::Entries => ENTRIES,
        Tab::Keys => KEYS,
        Tab::Payments => PAYMENTS,
        Tab::Models => MODELS,
        Tab::Running => RUNNING,
        Tab::Acts => ACTS,
        Tab::Charts => {
            let flow = SpendFlow::of_key(app.now, &detail.usage);
            return chart::grid(pen, area, app.now, &flow);
        }
    };
    if detail.rows() == 0 {
        let text = match detail.tab {
            _ if !detail.loaded => "reading …",
            Tab::Entries => "no entries yet: press t to top up",
            Tab::Payments => "no payments yet: press t to top up",
            Tab::Keys => "no keys yet: press n to make one",
            Tab::Models => "no usage in the last 7 days",
            Tab::Running => "no request is running",
            Tab::Acts => "no acts",
            Tab::Charts => "",
        };
        pen.text(area, 0, 0, text, pen.theme.faint());
        return;
    }
    let placed = pen.heads(area, 0, columns, detail.order);
    let list = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    let range = window(detail.selected, detail.rows(), usize::from(list.height));
    pen.rows_from(list, &range);
    let cells = lines(app, detail, pen, range);
    let focused = app.detail_open;
    for (y, (index, cells)) in cells.into_iter().enumerate() {
        pen.line(
            list,
            u16::try_from(y).unwrap_or(u16::MAX),
            columns,
            &placed,
            &cells,
            focused && index == detail.selected,
        );
    }
}

/// The cells of these lines of the tab.
fn lines(
    app: &ConsoleApp,
    detail: &PartyDetail,
    pen: &Pen<'_>,
    range: std::ops::Range<usize>,
) -> Vec<(usize, Vec<Cell>)> {
    let places = detail.places();
    let shown = places.get(range.clone()).unwrap_or_default();
    // Collected once: each of them is a pass over the key's acts or usage.
    let (payments, models): (Vec<&AuditRecord>, _) =
        (detail.payments().collect(), model_cells(detail, pen));
    let cells = |place: &usize| match detail.tab {
        Tab::Entries => (detail.entries.get(*place)).map(|entry| entry_cells(app, pen, entry)),
        Tab::Payments => (payments.get(*place)).map(|act| payment_cells(app, pen, act)),
        Tab::Keys => (detail.keys.get(*place)).map(|member| member_cells(app, pen, member)),
        Tab::Models => models.get(*place).cloned(),
        Tab::Running => (detail.holds.get(*place)).map(|hold| running_cells(app, pen, hold)),
        Tab::Charts => None,
        Tab::Acts => detail.acts.get(*place).map(|act| {
            let details = format::act_details(&act.details);
            let when = format::when(act.at, app.now);
            plain(pen, [when, act.act.clone(), act.actor.clone(), details])
        }),
    };
    range.zip(shown.iter().filter_map(cells)).collect()
}

fn running_cells(app: &ConsoleApp, pen: &Pen<'_>, hold: &OpenHold) -> Vec<Cell> {
    let age = format::age(app.now.millis() - hold.at.millis());
    let request = hold.request.to_string();
    let tail = request.get(14..).unwrap_or(&request);
    plain(
        pen,
        [
            format!("…{tail}"),
            hold.slug.clone(),
            hold.family.clone(),
            format::within(hold.amount, 12),
            format::within(hold.used, 12),
            age,
        ],
    )
}

fn plain<const N: usize>(pen: &Pen<'_>, cells: [String; N]) -> Vec<Cell> {
    let first = |index| {
        if index == 0 {
            pen.theme.faint()
        } else {
            Style::new()
        }
    };
    cells
        .into_iter()
        .enumerate()
        .map(|(index, text)| (text, first(index)))
        .collect()
}

fn entry_cells(app: &ConsoleApp, pen: &Pen<'_>, entry: &JournalEntry) -> Vec<Cell> {
    let theme = pen.theme;
    let amount = if entry.amount.is_positive() {
        theme.good()
    } else {
        Style::new()
    };
    let loss = entry
        .bill
        .as_ref()
        .is_some_and(|bill| bill.loss.is_positive());
    vec![
        (format::when(entry.at, app.now), theme.faint()),
        (format::kind(entry.kind).to_owned(), Style::new()),
        (format::signed(entry.amount), amount),
        (format::within(entry.balance_after, 12), Style::new()),
        (
            format::what(entry),
            if loss { theme.warn() } else { Style::new() },
        ),
        (
            entry.key.map(|key| key.to_string()).unwrap_or_default(),
            theme.key(),
        ),
    ]
}

fn member_cells(app: &ConsoleApp, pen: &Pen<'_>, member: &MemberKey) -> Vec<Cell> {
    let (key, theme) = (&member.key, pen.theme);
    let word = state_word(key, app.now);
    vec![
        (key.id.to_string(), theme.key()),
        (key.settings.label.clone(), Style::new()),
        (member.kind().to_owned(), theme.faint()),
        (format::within(member.spent, 11), Style::new()),
        (format::within(member.held, 9), theme.faint()),
        (format::within(key.spendable(app.now), 11), theme.strong()),
        (word.to_owned(), theme.state(word)),
    ]
}

fn payment_cells(app: &ConsoleApp, pen: &Pen<'_>, act: &AuditRecord) -> Vec<Cell> {
    let text = |name: &str| format::act_fact(act, name);
    let amount = format::paid(act);
    let kind = if act.act == "top_up" || act.act == "create" {
        "top-up"
    } else {
        act.act.as_str()
    };
    let why = [text("reason"), text("why")].concat();
    let reference = match text("reference") {
        none if none.is_empty() => text("payment"),
        reference => reference,
    };
    let by = if why.is_empty() {
        format!("by {}", act.actor)
    } else {
        format!("by {}: {why}", act.actor)
    };
    let style = if amount.is_positive() {
        pen.theme.good()
    } else {
        Style::new()
    };
    vec![
        (format::when(act.at, app.now), pen.theme.faint()),
        (kind.to_owned(), Style::new()),
        (format::signed(amount), style),
        (reference, Style::new()),
        (by, Style::new()),
    ]
}

fn model_cells(detail: &PartyDetail, pen: &Pen<'_>) -> Vec<Vec<Cell>> {
    let models = detail.by_model();
    let all: u64 = models
        .iter()
        .map(|row| row.charge.picos().max(0).unsigned_abs() / 1_000_000)
        .fold(0, u64::saturating_add);
    let row = |row: &farebox_ledger::UsageRow| {
        let usage = &row.usage;
        let charge = row.charge.picos().max(0).unsigned_abs() / 1_000_000;
        let mut cells = plain(
            pen,
            [
                row.slug.clone(),
                format::count(row.requests),
                format::tokens(usage.input.saturating_add(usage.cache_write)),
                format::tokens(usage.cache_read),
                format::tokens(usage.output.saturating_add(usage.reasoning)),
                format::within(row.charge, 12),
                format::percent(charge, all),
            ],
        );
        if let Some(slug) = cells.first_mut() {
            slug.1 = Style::new();
        }
        cells
    };
    models.iter().map(row).collect()
}

fn check(detail: &PartyDetail, pen: &mut Pen<'_>, area: Rect) {
    let theme = pen.theme;
    let (text, style) = match &detail.check {
        BalanceCheck::NotYet => (String::new(), theme.faint()),
        BalanceCheck::Long(entries) => (
            format!(
                "{} · v sums them up",
                format::entries(entries.unsigned_abs())
            ),
            theme.faint(),
        ),
        BalanceCheck::Running => ("summing up the entries …".to_owned(), theme.faint()),
        BalanceCheck::Sound { entries: 0, .. } => {
            ("no entries, balance nothing ✓".to_owned(), theme.good())
        }
        BalanceCheck::Sound { entries, at } => (
            format!(
                "sum of {} = balance ✓ {}",
                format::entries(*entries),
                format::time(*at)
            ),
            theme.good(),
        ),
        BalanceCheck::Wrong { sum, balance } => (
            format!(
                "✗ the entries sum up to {sum}, the balance is {balance}: run farebox ledger verify"
            ),
            theme.bad(),
        ),
        BalanceCheck::Failed(error) => (
            format!("the entries could not be summed up: {error}"),
            theme.warn(),
        ),
    };
    pen.text(area, 0, 0, &text, style);
    if let Some(error) = &detail.error {
        pen.end(area, 0, error, theme.bad());
    } else if detail.rows() > 0 {
        let more = if detail.tab == Tab::Entries && !detail.entries_end {
            "+"
        } else {
            ""
        };
        let place = format!("{} of {}{more}", detail.selected + 1, detail.rows());
        if usize::from(area.width) > width(&text) + place.len() + 2 {
            pen.end(area, 0, &place, theme.faint());
        }
    }
}
