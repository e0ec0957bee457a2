//! The page of one key or customer: facts, caps, the chart of two days, and the tab's list.

use farebox_ledger::{Amount, Scope};
use ratatui::layout::Rect;

use super::pen::{Pen, above, below, last};
use super::{chart, facts};
use crate::app::ConsoleApp;
use crate::app::detail::{BalanceCheck, PartyDetail, Tab};
use crate::app::list::{ListColumn, ListRow};
use crate::app::money::spend::SpendFlow;
use crate::app::mouse::Spot;
use crate::app::tabs::{ACTS, GRANTS, MEMBERS, MODEL_SUMS, PAYMENTS, PLANS, RUNNING, RUNS};
use crate::format;
use crate::sanitize::width;

/// From this height on the chart is drawn.
const CHART_FROM: u16 = 14;
const HOURS: usize = 48;

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
        y += chart(app, detail, pen, below(inner, y));
    }
    let rest = below(inner, y);
    tabs(detail, pen, rest);
    rows(app, detail, pen, above(below(rest, 1), 1));
    check(detail, pen, last(inner, 1));
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
    let tabs = detail.tabs().iter().map(|(tab, name)| {
        let many = match tab {
            Tab::Running => detail.holds.len(),
            Tab::Plans => detail.plans.len(),
            Tab::Keys => detail.keys.len(),
            _ => 0,
        };
        let text = match many {
            0 => (*name).to_owned(),
            many => format!("{name} {many}"),
        };
        (text, *tab == detail.tab, Spot::Tab(*tab))
    });
    pen.tabs(area, tabs);
}

fn rows(app: &ConsoleApp, detail: &PartyDetail, pen: &mut Pen<'_>, area: Rect) {
    if detail.tab == Tab::Charts {
        let flow = SpendFlow::of_key(app.now, &detail.usage);
        return chart::grid(pen, area, app.now, &flow);
    }
    if detail.rows() == 0 {
        let text = match detail.tab {
            _ if !detail.loaded => "reading …",
            Tab::Entries => "no entries yet: press t to top up",
            Tab::Payments => "no payments yet: press t to top up",
            Tab::Grants => "no grants yet: press i to give credit",
            Tab::Plans => "no plan yet: press p to sell or give one",
            Tab::Keys => "no keys yet: press n to make one",
            Tab::Models => "no usage in the last 7 days",
            Tab::Runs => "no request of this month named a run",
            Tab::Running => "no request is running",
            Tab::Acts => "no acts",
            Tab::Charts => "",
        };
        pen.text(area, 0, 0, text, pen.theme.faint());
        return;
    }
    match detail.tab {
        Tab::Entries => list(
            detail,
            pen,
            area,
            detail.entry_columns(),
            detail.entries.iter(),
        ),
        Tab::Payments => list(detail, pen, area, PAYMENTS, detail.payments()),
        Tab::Grants => list(detail, pen, area, GRANTS, detail.grants.iter()),
        Tab::Plans => list(detail, pen, area, PLANS, detail.plans.iter()),
        Tab::Keys => list(detail, pen, area, MEMBERS, detail.keys.iter()),
        Tab::Models => list(detail, pen, area, MODEL_SUMS, detail.by_model().iter()),
        Tab::Runs => list(detail, pen, area, RUNS, detail.runs.iter()),
        Tab::Running => list(detail, pen, area, RUNNING, detail.holds.iter()),
        Tab::Acts => list(detail, pen, area, ACTS, detail.acts.iter()),
        Tab::Charts => {}
    }
}

/// The list of a tab.
fn list<'a, R: ListRow>(
    detail: &PartyDetail,
    pen: &mut Pen<'_>,
    area: Rect,
    columns: &[ListColumn<R>],
    rows: impl Iterator<Item = R::At<'a>>,
) {
    let rows = detail.shown(columns, rows);
    pen.list(area, columns, &rows, &detail.list);
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
        BalanceCheck::Sound { entries, at, .. } => (
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
        let place = format!("{} of {}{more}", detail.list.selected + 1, detail.rows());
        if usize::from(area.width) > width(&text) + place.len() + 2 {
            pen.end(area, 0, &place, theme.faint());
        }
    }
}
