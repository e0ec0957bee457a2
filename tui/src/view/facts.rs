//! The first lines of the page of a key or customer: its money, what it owes, what it may do, and its caps as bars.

use farebox_ledger::{
    Amount, CapMaker, CountedCap, Customer, CustomerSettings, Key, KeySettings, Payment, Scope,
    UtcDay,
};
use farebox_selling::customer::paying_by;
use farebox_selling::{grant, subscription};
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::Pen;
use crate::app::ConsoleApp;
use crate::app::detail::PartyDetail;
use crate::app::party::{Party, customer_of};
use crate::app::tone::Tone;
use crate::format;
use crate::sanitize::width;

/// Caps that are shown, those with least room, and the cells of a bar.
const CAPS: usize = 3;
const CAP_BAR: usize = 16;

/// Draws them; returns the number of lines used.
pub(super) fn draw(
    app: &ConsoleApp,
    detail: &PartyDetail,
    party: &Party,
    pen: &mut Pen<'_>,
    area: Rect,
) -> u16 {
    money(app, detail, party, pen, area);
    if area.height < 9 {
        return 2;
    }
    let text = match party {
        Party::Key(key) => of_key(app, key),
        Party::Customer(_) => of_customer(app, detail, party),
    };
    pen.text(area, 0, 2, &text, pen.theme.faint());
    let mut y = 3;
    for line in troubles(detail, party) {
        y += pen.text(area, 0, y, &line, pen.theme.warn()).min(1);
    }
    for line in holdings(app, party) {
        y += pen.text(area, 0, y, &line, pen.theme.faint()).min(1);
    }
    if let Some(line) = auto_top_up(app, party) {
        y += pen.text(area, 0, y, &line, pen.theme.faint()).min(1);
    }
    y + caps(app, party, pen, area, y)
}

/// What of the available money ends or is for some models, in the order of use, and in a line of their own what is left of plans.
fn holdings(app: &ConsoleApp, party: &Party) -> impl Iterator<Item = String> {
    let customer = party.customer();
    let granted = grant::words(customer, app.now).join("; ");
    let plans = subscription::words(customer, app.now).join("; ");
    [("available: ", granted), ("", plans)]
        .into_iter()
        .filter(|(_, words)| !words.is_empty())
        .map(|(before, words)| format!("{before}{words}"))
}

/// When a customer asks for money, and what its rule is doing.
fn auto_top_up(app: &ConsoleApp, party: &Party) -> Option<String> {
    let customer = party.customer();
    let auto = customer.auto_top_up.as_ref()?;
    let (rule, state) = (auto.rule?, auto.state(app.now)?);
    Some(format!("auto top-up {rule}: {}", state.words(customer.id)))
}

/// Balance and state, and below them what came in and went out.
fn money(app: &ConsoleApp, detail: &PartyDetail, party: &Party, pen: &mut Pen<'_>, area: Rect) {
    let theme = pen.theme;
    let account = party.account();
    let word = party.state(app.now);
    let running = if detail.holds.is_empty() {
        String::new()
    } else {
        format!(" ({} running)", detail.holds.len())
    };
    let last_day = party.key().and_then(|key| key.settings.expires_at);
    let state = match last_day.filter(|_| area.width > 100) {
        Some(end) => format!("{word}, last day {}", crate::clock::last_day(end)),
        None => word.to_owned(),
    };
    let amounts = [
        ("Balance ", account.balance(), "", theme.strong()),
        ("   held ", account.held, running.as_str(), Style::new()),
        (
            "   available ",
            party.available(app.now),
            "",
            theme.strong(),
        ),
    ];
    amounts_line(pen, area, 0, &amounts, width(&state) + 2);
    pen.end(
        area,
        0,
        &format!("  {state}"),
        theme.tone(Tone::of_state(word)),
    );
    let amounts = [
        ("Paid in ", account.credit, "", Style::new()),
        ("   spent ", account.spent, "", Style::new()),
        ("   24 h ", detail.spent(app.now, 24), "", Style::new()),
        ("   7 d ", detail.spent(app.now, 168), "", Style::new()),
    ];
    amounts_line(pen, area, 1, &amounts, 0);
}

fn last_entry(app: &ConsoleApp, customer: &Customer) -> String {
    match customer.last_entry_at {
        None => "no entry yet".to_owned(),
        Some(at) => format!(
            "last entry {} ago",
            format::age(app.now.millis() - at.millis())
        ),
    }
}

fn of_key(app: &ConsoleApp, key: &Key) -> String {
    let models = key.settings.models.as_ref().map_or_else(
        || "all models".to_owned(),
        |models| format!("{} models", models.len()),
    );
    let last = last_entry(app, &key.customer);
    let made = format!(
        "made {} by {}",
        format::date(key.created_at),
        key.created_by
    );
    let of = match customer_of(key) {
        "" => String::new(),
        customer => format!("of {customer} (C) · "),
    };
    format!("{of}{last} · {models} · {} · {made}", limits(key))
}

fn of_customer(app: &ConsoleApp, detail: &PartyDetail, party: &Party) -> String {
    let customer = party.customer();
    let external_id = customer.settings.external_id.as_ref();
    let external_id = external_id.map_or_else(String::new, |id| format!("{id} · "));
    let keys = format::many(detail.keys.len(), "key");
    let limits = customer_limits(customer);
    let made = format!(
        "made {} by {}",
        format::date(customer.created_at),
        customer.created_by
    );
    let last = last_entry(app, customer);
    let list = paying_by(customer);
    let list = list.map_or_else(String::new, |words| format!("{words} · "));
    format!("{external_id}{list}{keys} · {last} · {limits} · {made}")
}

/// What refuses requests although there is money, and money that came and is not there.
fn troubles(detail: &PartyDetail, party: &Party) -> Vec<String> {
    let claim = party.customer().claim;
    let mut lines = Vec::new();
    if claim.is_positive() {
        lines.push(format!(
            "owes {} for payments that went back: what it pays goes there first",
            format::exact(claim)
        ));
    }
    let is_back = |payment: &&Payment| !payment.waiting.is_empty();
    let (back, came): (Vec<&Payment>, Vec<&Payment>) = detail.unapplied.iter().partition(is_back);
    if let Some(Payment { reference, .. }) = came.first() {
        let sum = came.iter().map(|payment| payment.credit);
        let sum = Amount::checked_sum(sum).unwrap_or_default();
        lines.push(format!(
            "{} of {} not booked ({reference}): farebox customers unapplied",
            format::many(came.len(), "payment"),
            format::exact(sum)
        ));
    }
    if let Some(Payment { reference, .. }) = back.first() {
        lines.push(format!(
            "what went back of {} is not booked ({reference}): farebox customers unapplied",
            format::many(back.len(), "payment"),
        ));
    }
    lines
}

/// Rate and concurrency of a key in words.
fn limits(key: &Key) -> String {
    let settings = &key.settings;
    let rate = key.rate().unwrap_or(KeySettings::RATE);
    let most = key.concurrency().unwrap_or(KeySettings::CONCURRENCY);
    let (by_rate, by_most) = (
        default_mark(settings.rate, key.defaults.rate),
        default_mark(settings.concurrency, key.defaults.concurrency),
    );
    format!("{rate} req/s{by_rate}, {most} at once{by_most}")
}

/// Marks what nobody set for this key or customer, and the catalog for all.
const fn default_mark(own: Option<u32>, default: Option<u32>) -> &'static str {
    match (own, default) {
        (None, Some(_)) => " (default)",
        _ => "",
    }
}

/// Rate and concurrency of all keys of a customer in words.
fn customer_limits(customer: &Customer) -> String {
    let (settings, default) = (&customer.settings, customer.defaults);
    let rate = customer.rate().map_or_else(
        || "any number of requests/s".to_owned(),
        |rate| format!("{rate} req/s"),
    );
    let most = settings.concurrency.or(default.concurrency);
    let most = most.unwrap_or(CustomerSettings::CONCURRENCY);
    let (by_rate, by_most) = (
        default_mark(settings.rate, default.rate),
        default_mark(settings.concurrency, default.concurrency),
    );
    format!("{rate}{by_rate}, {most} at once{by_most}")
}

/// The caps with least room as bars, from line `y` on; returns how many lines they took.
fn caps(app: &ConsoleApp, party: &Party, pen: &mut Pen<'_>, area: Rect, y: u16) -> u16 {
    let today = UtcDay::of(app.now);
    let mut caps: Vec<(Scope, &CountedCap)> = match party {
        Party::Key(key) => key.all_caps().collect(),
        Party::Customer(customer) => {
            let of = Scope::Customer(customer.id);
            customer.caps.iter().map(|cap| (of, cap)).collect()
        }
    };
    caps.sort_by_key(|(_, counted)| counted.room(today));
    let hidden = caps.len().saturating_sub(CAPS);
    for (place, (scope, counted)) in caps.iter().take(CAPS).enumerate() {
        let state = counted.reached(*scope, today, Amount::ZERO);
        let used = state.cap.limit.picos().saturating_sub(state.room.picos());
        let cells = i128::from(used) * CAP_BAR as i128 / i128::from(state.cap.limit.picos().max(1));
        let filled = "█".repeat(usize::try_from(cells).unwrap_or_default());
        let bar = format!("{filled:░<CAP_BAR$}");
        let again = state
            .resets_at
            .map_or_else(String::new, |at| format!(", again on {}", format::date(at)));
        let whose = match (party, scope) {
            (Party::Key(_), Scope::Customer(_)) => "customer's ",
            (Party::Key(key), Scope::Key(of)) if *of != key.id => "its maker's ",
            _ => "",
        };
        let more = match hidden > 0 && place + 1 == CAPS {
            true => format!(" ({hidden} more)"),
            false => String::new(),
        };
        let by = match counted.made_by {
            CapMaker::Seller if counted.is_default() => " (default)",
            CapMaker::Seller => "",
            CapMaker::Owner => ", set by an owner",
        };
        let text = format!(
            "{bar} {whose}cap {}{by}: {} left{again}{more}",
            state.cap, state.room
        );
        let style = match state.room {
            Amount::ZERO => pen.theme.strong(),
            _ => pen.theme.faint(),
        };
        let place = u16::try_from(place).unwrap_or_default();
        pen.text(area, 0, y + place, &text, style);
    }
    u16::try_from(caps.len().min(CAPS)).unwrap_or_default()
}

/// Amounts with what is said before and after each, in a line of which the last `taken` cells belong to something else. They are
/// exact, or, where the line is too short, rounded down to what fits.
fn amounts_line(
    pen: &mut Pen<'_>,
    area: Rect,
    y: u16,
    amounts: &[(&str, Amount, &str, Style)],
    taken: usize,
) {
    let words: usize = amounts
        .iter()
        .map(|(before, _, after, _)| width(before) + width(after))
        .sum();
    let room = usize::from(area.width).saturating_sub(taken + words) / amounts.len().max(1);
    let mut x = 0;
    for (before, amount, after, style) in amounts {
        x += pen.text(area, x, y, before, pen.theme.faint());
        x += pen.text(
            area,
            x,
            y,
            &format!("{}{after}", format::within(*amount, room)),
            *style,
        );
    }
}
