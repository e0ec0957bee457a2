//! Drawing: state in, cells out. Nothing here fetches, waits or changes the state.
//!
//! The first line shows the state, the last line the available keys; between them is one screen, or in wide terminals a list and
//! its detail. Below 40x10 a single line asks for more room.

mod alerts;
mod bulk;
mod chart;
mod config;
mod customers;
mod detail;
mod entry;
mod facts;
mod fields;
mod help;
mod keys;
mod lists;
mod live;
mod modal;
mod models;
mod money;
mod nodes;
mod pen;
mod request;
mod screens;
mod secret;
mod theme;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use crate::app::bindings::{BINDINGS, Binding};
use crate::app::command::ConsoleCommand;
use crate::app::live::GatewayLink;
use crate::app::mouse::{Pane, Spot};
use crate::app::{ConsoleApp, SMALLEST, Screen};
use crate::field::TextField;
use crate::format;
use crate::sanitize::width;
pub(crate) use pen::Spots;
use pen::{Pen, above, below, last, line_of};
pub(crate) use theme::Theme;

/// Draws everything; returns what was drawn where, for the mouse.
pub(crate) fn draw(app: &ConsoleApp, theme: Theme, frame: &mut Frame<'_>) -> Spots {
    let area = frame.area();
    let (cursor, spots) = draw_into(app, theme, area, frame.buffer_mut());
    if let Some(cursor) = cursor {
        frame.set_cursor_position(cursor);
    }
    spots
}

fn draw_into(
    app: &ConsoleApp,
    theme: Theme,
    area: Rect,
    buf: &mut Buffer,
) -> (Option<Position>, Spots) {
    let mut pen = Pen {
        buf,
        theme,
        now: app.now,
        cursor: None,
        spots: Spots::new(),
        pane: Pane::List,
        focus: true,
    };
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        pen.paragraph(
            area,
            0,
            &format!(
                "farebox needs {}x{} characters, this terminal has {}x{}",
                SMALLEST.0, SMALLEST.1, area.width, area.height
            ),
            Style::new(),
        );
        return (None, Spots::new());
    }
    header(app, &mut pen, line_of(area, 0));
    let mut body = above(below(area, 1), 1);
    if let Some(error) = &app.ledger_error {
        // In full, with its remedy: the header has no room for it.
        let taken = pen
            .paragraph(
                Rect {
                    x: body.x + 1,
                    width: body.width - 2,
                    ..body
                },
                0,
                error,
                theme.bad(),
            )
            .min(body.height);
        body = below(body, taken);
    }
    if app.help.is_some() {
        help::help(app, &mut pen, body);
    } else if app.palette.is_some() {
        help::palette(app, &mut pen, body);
    } else if app.modal.is_some() {
        modal::draw(app, &mut pen, body);
    } else {
        screen(app, &mut pen, body);
    }
    footer(app, &mut pen, last(area, 1));
    (pen.cursor, pen.spots)
}

fn screen(app: &ConsoleApp, pen: &mut Pen<'_>, body: Rect) {
    let two = matches!(app.screen, Screen::Keys | Screen::Customers);
    let beside = two && app.is_wide();
    let width = match beside {
        true => body.width * 11 / 20,
        false => body.width,
    };
    let list = Rect { width, ..body };
    if beside {
        one_screen(app, pen, list);
        (pen.pane, pen.focus) = (Pane::Detail, app.detail_open);
        let rest = Rect {
            x: body.x + width,
            width: body.width - width,
            ..body
        };
        detail::draw(app, pen, rest);
    } else if app.detail_open {
        pen.pane = Pane::Detail;
        detail::draw(app, pen, body);
    } else {
        one_screen(app, pen, body);
    }
    // Their names may go on below the page beside the list.
    screens::draw(app, pen, body);
}

fn one_screen(app: &ConsoleApp, pen: &mut Pen<'_>, body: Rect) {
    match app.screen {
        Screen::Keys => keys::draw(app, pen, body),
        Screen::Customers => customers::draw(app, pen, body),
        Screen::Live => live::draw(app, pen, body),
        Screen::Models => models::models(app, pen, body),
        Screen::Routes => models::routes(app, pen, body),
        Screen::Holds => lists::holds(app, pen, body),
        Screen::Audit => lists::audit(app, pen, body),
        Screen::Config => config::draw(app, pen, body),
        Screen::Money => money::draw(app, pen, body),
        Screen::Nodes => nodes::draw(app, pen, body),
        Screen::Alerts => alerts::draw(app, pen, body),
    }
}

fn header(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let mut x = 0;
    for (index, (text, style)) in header_parts(app, pen.theme).iter().enumerate() {
        let wide = u16::try_from(width(text)).unwrap_or(u16::MAX);
        if index > 2 && x + wide > area.width {
            continue;
        }
        x += pen.text(area, x, 0, text, *style) + 2;
    }
}

/// The header's pieces, the most important first: what does not fit is left out.
fn header_parts(app: &ConsoleApp, theme: Theme) -> Vec<HeaderPart> {
    let mut parts = vec![
        (" fb".to_owned(), theme.head()),
        (app.options.ledger.clone(), theme.strong()),
    ];
    parts.push(match &app.gateway.link {
        GatewayLink::Live => ("● LIVE".to_owned(), theme.good()),
        GatewayLink::Trying => ("○ looking for the gateway".to_owned(), theme.faint()),
        GatewayLink::Down(_) => ("○ NO GATEWAY".to_owned(), theme.warn()),
    });
    if app.options.read_only {
        parts.push(("READ-ONLY".to_owned(), theme.warn()));
    }
    if app.ledger_error.is_some() {
        parts.push(("LEDGER ERROR".to_owned(), theme.bad()));
    }
    if !app.operations.is_empty() {
        parts.push((
            format!("{} open operations: O", app.operations.len()),
            theme.warn(),
        ));
    }
    let status = app
        .gateway
        .status
        .as_ref()
        .filter(|_| app.gateway.link == GatewayLink::Live);
    let rejected = status.filter(|status| status.state == "rejected");
    if let Some(status) = rejected {
        let at = status
            .rejected_at
            .as_deref()
            .map(format::clock_of)
            .unwrap_or_default();
        parts.push((format!("cfg REJECTED {at}"), theme.bad()));
    }
    if !app.alerts().is_empty() {
        let urgent = app.alerts().iter().any(|alert| alert.severity == "page");
        parts.push((
            format!("{}: A", format::many(app.alerts().len(), "alert")),
            if urgent { theme.bad() } else { theme.warn() },
        ));
    }
    let (flow, refused) = traffic(app, theme);
    if app.gateway.link == GatewayLink::Live {
        parts.extend(flow);
    }
    if let Some(totals) = &app.totals {
        parts.push((format!("held {}", format::total(totals.held)), Style::new()));
    }
    if let Some(status) = status.filter(|_| rejected.is_none()) {
        parts.push((
            format!("cfg ok {}", format::clock_of(&status.loaded_at)),
            theme.good(),
        ));
    }
    parts.extend(refused.filter(|_| app.gateway.link == GatewayLink::Live));
    if let Some(totals) = &app.totals {
        parts.push((
            format!(
                "balances {}",
                format::total(totals.credit.saturating_sub(totals.spent))
            ),
            Style::new(),
        ));
        parts.push((format::many(totals.keys, "key"), Style::new()));
        parts.push((format::entries(totals.entries), Style::new()));
    }
    parts
}

/// A piece of the header.
type HeaderPart = (String, Style);

/// Requests per second, and their errors and out-of-balance refusals, over the last ten seconds.
fn traffic(app: &ConsoleApp, theme: Theme) -> (Vec<HeaderPart>, Option<HeaderPart>) {
    let seconds = app.live.seconds(app.now);
    // This second is not over yet.
    let last = || seconds.iter().rev().skip(1).take(10);
    let requests: u64 = last().map(|second| second.requests).sum();
    let errors: u64 = last().map(|second| second.errors).sum();
    let unpaid: u64 = last().map(|second| second.unpaid).sum();
    let rate = if requests >= 100 {
        format!("{} req/s", format::count(requests / 10))
    } else {
        format!("{}.{} req/s", requests / 10, requests % 10)
    };
    let error_style = if errors > 0 {
        theme.bad()
    } else {
        Style::new()
    };
    let parts = vec![
        (rate, Style::new()),
        (
            format!("err {}", format::percent(errors, requests)),
            error_style,
        ),
    ];
    let refused = (unpaid > 0).then(|| {
        (
            format!("429 {}", format::percent(unpaid, requests)),
            theme.warn(),
        )
    });
    (parts, refused)
}

/// The filter while it is typed.
fn filter_line(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect, field: &TextField) {
    let theme = pen.theme;
    let used = pen.typed(area, " / ", field);
    let error = match app.screen {
        Screen::Keys => app.keys.filter_error.as_deref(),
        Screen::Customers => app.customers.filter_error.as_deref(),
        _ => None,
    };
    let hint = match (error, app.screen) {
        (Some(error), _) => (error, theme.bad()),
        (None, Screen::Customers) => (
            "label or external id  pay:inv-1  state:suspended   enter keep  esc clear",
            theme.faint(),
        ),
        (None, Screen::Keys) => (
            "label  balance<5  state:blocked  k_id   enter keep  esc clear",
            theme.faint(),
        ),
        (_, Screen::Live) => (
            "text  status>=400  key:k_  model:   enter keep  esc clear",
            theme.faint(),
        ),
        _ => ("any text   enter keep  esc clear", theme.faint()),
    };
    pen.text(area, used + 3, 0, hint.0, hint.1);
}

fn footer(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let theme = pen.theme;
    if let Some(field) = app
        .filtering
        .as_ref()
        .filter(|_| app.modal.is_none() && app.palette.is_none())
    {
        filter_line(app, pen, area, field);
        return;
    }
    if let Some(notice) = &app.notice {
        let style = if notice.bad {
            theme.bad()
        } else {
            theme.good()
        };
        pen.text(area, 1, 0, &notice.text, style);
        return;
    }
    let keys = help::footer_keys(app);
    let tail = if app.modal.is_none() && app.palette.is_none() && app.help.is_none() {
        ": commands  ? help"
    } else {
        ""
    };
    let room = area
        .width
        .saturating_sub(u16::try_from(width(tail)).unwrap_or(0) + 2);
    let mut x = 1;
    for FooterKey { key, name, spot } in keys {
        let wide = u16::try_from(width(&key) + 1 + width(&name)).unwrap_or(u16::MAX);
        if x + wide > room {
            break;
        }
        let place = Rect {
            x: area.x + x,
            width: wide,
            ..area
        };
        pen.spots.extend(spot.map(|spot| (place, spot)));
        x += pen.text(area, x, 0, &key, theme.key()) + 1;
        x += pen.text(area, x, 0, &name, Style::new()) + 2;
    }
    pen.end(
        Rect {
            width: area.width - 1,
            ..area
        },
        0,
        tail,
        theme.faint(),
    );
}

/// A key in the footer, and what a click on it does.
struct FooterKey {
    key: String,
    name: String,
    spot: Option<Spot>,
}

/// The keys of a place, as the footer names them.
fn bound_keys(app: &ConsoleApp) -> Vec<FooterKey> {
    let place = app.place();
    let named = |binding: &&Binding| binding.works_at(place) && !binding.places.is_empty();
    let of = |binding: &Binding| FooterKey {
        key: binding.key.to_owned(),
        name: binding.name.to_owned(),
        spot: Some(Spot::Command(binding.command)),
    };
    let back = app.detail_open.then(|| FooterKey {
        key: "esc".to_owned(),
        name: "back".to_owned(),
        spot: Some(Spot::Command(ConsoleCommand::Back)),
    });
    let bound = BINDINGS.iter().filter(named).map(of);
    back.into_iter().chain(bound).collect()
}

/// The text of a screen that needs the gateway when none is running.
fn no_gateway(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let text = match &app.gateway.link {
        GatewayLink::Trying => format!("looking for the gateway at {} …", app.options.admin),
        GatewayLink::Live => "reading …".to_owned(),
        GatewayLink::Down(_) => format!(
            "no gateway at {}; start it or pass --admin",
            app.options.admin
        ),
    };
    let taken = pen.paragraph(area, 1, &text, pen.theme.warn());
    if let GatewayLink::Down(error) = &app.gateway.link {
        pen.paragraph(area, 2 + taken, &format!("({error})"), pen.theme.faint());
    }
}
