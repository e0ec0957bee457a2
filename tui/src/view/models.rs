//! The Models and Routes screens: models, prices, and the health of targets.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::pen::{Cell, Column, Pen, left, right};
use crate::admin::{ReportedLesson, ReportedModel, ReportedTarget, StatusReport};
use crate::app::ConsoleApp;
use crate::app::keys::window;
use crate::app::live::GatewayLink;
use crate::format;
use crate::sanitize::wrap;

const MODELS: &[Column] = &[
    left("SLUG", 0, 0),
    left("MODEL", 20, 5),
    left("PROVIDER", 12, 4),
    left("PATH", 9, 2),
    left("ENVIRONMENTS", 24, 9),
    right("IN $/M", 9, 0),
    right("OUT $/M", 9, 0),
    right("CACHED", 9, 3),
    right("CONTEXT", 8, 6),
    left("ABILITIES", 22, 8),
    right("KEYS 7 d", 9, 7),
    right("REQS 7 d", 9, 1),
];
const PUBLISHED: &[Column] = &[
    left("SLUG", 0, 0),
    left("PUBLISHED", 10, 1),
    right("KEYS 7 d", 9, 0),
    right("REQS 7 d", 9, 0),
];
const ROUTES: &[Column] = &[
    left("ROUTE, TARGET", 0, 0),
    left("PROVIDER", 14, 2),
    left("STATE", 8, 0),
    right("REQUESTS", 10, 1),
    right("ERRORS", 8, 0),
    right("NOW", 4, 3),
    left("WHY", LEAST_WHY, 4),
];
/// What a target's last failure gets on a narrow terminal; below the list it is in full.
const LEAST_WHY: u16 = 26;
/// Cells of all other columns, with a name of 40.
const BESIDE_WHY: u16 = 92;
/// Lines for the selected target, below the list.
const MOST_ABOUT: u16 = 4;

/// The Models screen.
pub(super) fn models(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let Some(status) = &app.gateway.status else {
        return published(app, pen, area);
    };
    let models = app.shown_models();
    let filter = if app.models.filter.is_empty() {
        String::new()
    } else {
        format!(" · {}", app.models.filter)
    };
    let inner = pen.frame(
        area,
        &format!(
            "Models{filter} · {} published, {} retired{}",
            status.models.len(),
            status.retired.len(),
            app.models.order.in_title()
        ),
    );
    if models.is_empty() {
        let text = if status.models.is_empty() {
            "the gateway publishes no model"
        } else {
            "no model matches this filter; esc clears it"
        };
        pen.text(inner, 0, 1, text, pen.theme.warn());
        return;
    }
    let placed = pen.heads(inner, 0, MODELS, app.models.order);
    let list = Rect {
        y: inner.y + 1,
        height: inner.height.saturating_sub(4),
        ..inner
    };
    let range = window(app.models.selected, models.len(), usize::from(list.height));
    pen.rows_from(list, &range);
    for (y, index) in range.enumerate() {
        let Some(model) = models.get(index) else {
            continue;
        };
        pen.line(
            list,
            u16::try_from(y).unwrap_or(u16::MAX),
            MODELS,
            &placed,
            &model_cells(app, pen, model),
            index == app.models.selected,
        );
    }
    if let Some(model) = models.get(app.models.selected) {
        about(
            pen,
            Rect {
                y: inner.bottom().saturating_sub(2),
                height: 2,
                ..inner
            },
            model,
        );
    }
}

/// The two lines below the list: everything about the selected model.
fn about(pen: &mut Pen<'_>, area: Rect, model: &ReportedModel) {
    let price = &model.price;
    let costs = |value: &&String| value.chars().any(|digit| matches!(digit, '1'..='9'));
    let optional = |name: &str, value: &Option<String>| {
        value
            .as_ref()
            .filter(costs)
            .map(|value| format!(" · {name} {value}"))
            .unwrap_or_default()
    };
    let cache = format!(
        "cache read {} · write {}{}{}{}{}",
        price.cache_read,
        price.cache_write,
        optional("write 1h", &price.cache_write_1h),
        optional("reasoning", &price.reasoning),
        optional("picture", &price.per_image),
        optional("request", &price.per_request)
    );
    let aliases = if model.aliases.is_empty() {
        String::new()
    } else {
        format!(" · also {}", model.aliases.join(", "))
    };
    let first = format!(
        "{} · {} · best on {} · {}{aliases}",
        model.model,
        model.provider,
        path(&model.best_path),
        model.best_environments.join(", ")
    );
    pen.text(area, 0, 0, &first, pen.theme.faint());
    let second = format!(
        "context {} · {} · {cache}",
        format::count(model.context),
        model.capabilities.join(", ")
    );
    pen.text(area, 0, 1, &second, pen.theme.faint());
}

fn path(family: &str) -> &str {
    if family == "messages" {
        "native"
    } else {
        family
    }
}

fn model_cells(app: &ConsoleApp, pen: &Pen<'_>, model: &ReportedModel) -> Vec<Cell> {
    let used = app.used(&model.slug);
    let number = |number: Option<u64>| number.map_or_else(|| "—".to_owned(), format::count);
    vec![
        (model.slug.clone(), pen.theme.strong()),
        (model.model.clone(), Style::new()),
        (model.provider.clone(), Style::new()),
        (path(&model.best_path).to_owned(), Style::new()),
        (model.best_environments.join(", "), pen.theme.faint()),
        (model.price.input.clone(), Style::new()),
        (model.price.output.clone(), Style::new()),
        (model.price.cache_read.clone(), pen.theme.faint()),
        (format::tokens(model.context), pen.theme.faint()),
        (model.capabilities.join(", "), pen.theme.faint()),
        (number(used.map(|used| used.keys)), Style::new()),
        (number(used.map(|used| used.requests)), Style::new()),
    ]
}

/// Without a gateway: the slugs recorded in the ledger.
fn published(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let inner = pen.frame(area, "Models");
    super::no_gateway(app, pen, Rect { height: 3, ..inner });
    let rest = Rect {
        y: inner.y + 4,
        height: inner.height.saturating_sub(4),
        ..inner
    };
    if app.published.is_empty() {
        pen.paragraph(
            rest,
            0,
            "the ledger remembers no published slug: no gateway has served it yet",
            pen.theme.faint(),
        );
        return;
    }
    pen.text(
        rest,
        0,
        0,
        "the ledger remembers these slugs; prices come from the gateway",
        pen.theme.faint(),
    );
    let placed = pen.heads(rest, 1, PUBLISHED, app.models.order);
    let list = Rect {
        y: rest.y + 2,
        height: rest.height.saturating_sub(2),
        ..rest
    };
    let slugs = app.shown_published();
    let range = window(app.models.selected, slugs.len(), usize::from(list.height));
    pen.rows_from(list, &range);
    for (y, index) in range.enumerate() {
        let Some(slug) = slugs.get(index) else {
            continue;
        };
        let used = app.used(&slug.slug);
        let cells = [
            (slug.slug.clone(), pen.theme.strong()),
            (format::date(slug.since), pen.theme.faint()),
            (
                format::count(used.map_or(0, |used| used.keys)),
                Style::new(),
            ),
            (
                format::count(used.map_or(0, |used| used.requests)),
                Style::new(),
            ),
        ];
        pen.line(
            list,
            u16::try_from(y).unwrap_or(u16::MAX),
            PUBLISHED,
            &placed,
            &cells,
            index == app.models.selected,
        );
    }
}

/// Targets and their health.
pub(super) fn routes(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let Some(status) = &app.gateway.status else {
        let inner = pen.frame(area, "Routes");
        return super::no_gateway(app, pen, inner);
    };
    let open = status
        .targets
        .iter()
        .filter(|target| target.state == "open")
        .count();
    let inner = pen.frame(
        area,
        &format!(
            "Routes · {} · {} · {}{}",
            format::many(status.providers.len(), "provider"),
            format::many(status.targets.len(), "target"),
            format::many(open, "open breaker"),
            app.routes.order.in_title()
        ),
    );
    let lines = app.shown_routes();
    if lines.is_empty() {
        pen.text(inner, 0, 1, "no target", pen.theme.faint());
        return;
    }
    let mut columns = ROUTES.to_vec();
    if let Some(why) = columns.last_mut() {
        why.width = inner.width.saturating_sub(BESIDE_WHY).max(LEAST_WHY);
    }
    let selected = lines
        .get(app.routes.selected)
        .and_then(|(_, target)| *target);
    let about = about_target(app, selected);
    let needs = u16::try_from(wrap(&about, usize::from(inner.width)).len()).unwrap_or(MOST_ABOUT);
    let needs = needs.min(MOST_ABOUT).min(inner.height / 3).max(1);
    let placed = pen.heads(inner, 0, &columns, app.routes.order);
    let list = Rect {
        y: inner.y + 1,
        height: inner.height.saturating_sub(2 + needs),
        ..inner
    };
    let range = window(app.routes.selected, lines.len(), usize::from(list.height));
    pen.rows_from(list, &range);
    for (y, index) in range.enumerate() {
        let Some((route, target)) = lines.get(index) else {
            continue;
        };
        let cells = target.map_or_else(
            || route_cells(pen, status, route),
            |(place, target)| match app.routes.order.sorts() {
                true => target_cells(pen, &format!("{route} {place} "), target),
                false => target_cells(pen, &format!(" {place} "), target),
            },
        );
        pen.line(
            list,
            u16::try_from(y).unwrap_or(u16::MAX),
            &columns,
            &placed,
            &cells,
            index == app.routes.selected,
        );
    }
    below(pen, inner, needs, selected, &about);
}

/// Below the list: what the selected target has taught, and its state and last failure in full.
fn below(
    pen: &mut Pen<'_>,
    inner: Rect,
    needs: u16,
    selected: Option<(usize, &ReportedTarget)>,
    about: &str,
) {
    let bottom = Rect {
        y: inner.bottom().saturating_sub(needs),
        height: needs,
        ..inner
    };
    if let Some((_, target)) = selected {
        let above = Rect {
            y: bottom.y.saturating_sub(1),
            height: 1,
            ..bottom
        };
        pen.text(above, 0, 0, &taught(target), pen.theme.faint());
    }
    pen.paragraph(bottom, 0, about, pen.theme.faint());
}

/// The selected target's state and last failure, in full.
fn about_target(app: &ConsoleApp, selected: Option<(usize, &ReportedTarget)>) -> String {
    match selected {
        _ if app.gateway.link != GatewayLink::Live => {
            "no gateway now; this is what it last said".to_owned()
        }
        Some((_, target)) => explain(app, target),
        None => "targets are tried in this order; edit routes.toml to change it".to_owned(),
    }
}

/// What a target has taught, and from how many tokens.
fn taught(target: &ReportedTarget) -> String {
    let classes: Vec<String> = target.taught.iter().map(of_class).collect();
    let does = |word: &str, seen: fn(&ReportedLesson) -> bool| {
        let seen = target.taught.first().is_some_and(seen);
        if seen {
            format!(" · {word}")
        } else {
            String::new()
        }
    };
    let excess = target.excess.as_ref().map_or_else(String::new, |excess| {
        format!(
            " · {} tokens above its limit ({} customers)",
            format::tokens(excess.tokens),
            excess.customers
        )
    });
    format!(
        "taught: {}{}{}{excess}",
        classes.join(" · "),
        does("hides output", |lesson| lesson.hides),
        does("caches by itself", |lesson| lesson.caches)
    )
}

/// Its pace and counts in one class.
fn of_class(lesson: &ReportedLesson) -> String {
    let class = match lesson.class.as_str() {
        "" | "standard" => String::new(),
        class => format!("{class} "),
    };
    let (whole, tenth) = (lesson.pace / 1_000, lesson.pace % 1_000 / 100);
    let counts = match lesson.ratio {
        0 | 1_000 => "counts as we do".to_owned(),
        ratio => format!("counts {}.{:03} of ours", ratio / 1_000, ratio % 1_000),
    };
    let (paced, compared) = (
        format::tokens(lesson.own_tokens),
        format::tokens(lesson.own_prompts),
    );
    format!("{class}{whole}.{tenth} tokens/s ({paced}), {counts} ({compared})")
}

fn explain(app: &ConsoleApp, target: &ReportedTarget) -> String {
    let name = format!("{}/{}", target.provider, target.target);
    if let Some(alert) = app.alerts().iter().find(|alert| alert.is_about(&name)) {
        return format!("! {}", alert.text);
    }
    let state = match (target.state.as_str(), target.alert.as_deref()) {
        (_, Some("account_refused")) => {
            "REFUSED: the provider refuses the account; the gateway asks every 5 s whether it still does"
                .to_owned()
        }
        ("open", _) => "PAUSED for all: the gateway asks every 5 s whether it answers again".to_owned(),
        ("half_open", _) => "PAUSED for all: one request in 5 s tries it".to_owned(),
        _ => format!(
            "{} failures in a row, {} in flight",
            target.failures, target.in_flight
        ),
    };
    let accounts = accounts(app, &target.provider);
    let reason = target.reason.as_ref();
    let reason = reason.map_or_else(String::new, |why| format!(" · last failure: {why}"));
    format!("{state}{accounts}{reason}")
}

/// What each account of a provider has done, for all of its targets.
fn accounts(app: &ConsoleApp, provider: &str) -> String {
    let mut providers = app
        .gateway
        .status
        .iter()
        .flat_map(|status| &status.providers);
    let found = providers.find(|known| known.name == provider);
    let accounts = found
        .map(|found| found.accounts.as_slice())
        .unwrap_or_default();
    let shown = accounts.iter().enumerate().map(|(number, account)| {
        let (requests, spills) = (
            format::many(account.requests, "answer"),
            format::many(account.spills, "spill"),
        );
        let cached = format::percent(account.cached, account.input);
        format!(
            " · key {}: {requests}, {cached} cached, {spills}",
            number + 1
        )
    });
    shown.collect()
}

fn route_cells(pen: &Pen<'_>, status: &StatusReport, slug: &str) -> Vec<Cell> {
    let policy = status
        .routes
        .iter()
        .find(|route| route.slug == slug)
        .map(|route| route.on_disconnect.clone())
        .unwrap_or_default();
    let of = || status.targets.iter().filter(|target| target.slug == slug);
    let requests = of()
        .map(|target| target.requests)
        .fold(0, u64::saturating_add);
    let errors = of()
        .map(|target| target.errors)
        .fold(0, u64::saturating_add);
    let now = of()
        .map(|target| target.in_flight)
        .fold(0, u64::saturating_add);
    vec![
        (slug.to_owned(), pen.theme.strong()),
        (policy, pen.theme.faint()),
        (String::new(), Style::new()),
        (format::count(requests), Style::new()),
        (format::percent(errors, requests), Style::new()),
        (now.to_string(), Style::new()),
        (String::new(), Style::new()),
    ]
}

fn target_cells(pen: &Pen<'_>, before: &str, target: &ReportedTarget) -> Vec<Cell> {
    let state = match (target.state.as_str(), target.alert.as_deref()) {
        ("open", _) => "OPEN",
        ("half_open", _) => "trial",
        (_, Some("account_refused" | "target_refuses")) => "REFUSED",
        (_, Some("target_failing")) => "failing",
        ("closed", _) if target.requests == 0 => "idle",
        ("closed", _) => "ok",
        (other, _) => other,
    };
    let errors = if target.errors > 0 {
        pen.theme.warn()
    } else {
        Style::new()
    };
    vec![
        (format!("{before}{}", target.target), Style::new()),
        (target.provider.clone(), Style::new()),
        (state.to_owned(), pen.theme.state(state)),
        (format::count(target.requests), Style::new()),
        (format::percent(target.errors, target.requests), errors),
        (target.in_flight.to_string(), Style::new()),
        (target.reason.clone().unwrap_or_default(), pen.theme.warn()),
    ]
}
