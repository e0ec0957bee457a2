//! The Models and Routes screens: models, prices, and the health of targets.

use ratatui::layout::Rect;

use super::pen::{Pen, above, below, last};
use crate::admin::{ReportedLesson, ReportedModel, ReportedTarget};
use crate::app::ConsoleApp;
use crate::app::catalog_lists::{MODELS, PUBLISHED, ROUTES};
use crate::app::live::GatewayLink;
use crate::format;
use crate::sanitize::wrap;

/// Lines for the selected target, below the list.
const MOST_ABOUT: u16 = 4;

/// The Models screen.
pub(super) fn models(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let Some(status) = &app.gateway.status else {
        return published(app, pen, area);
    };
    let models = app.shown_models();
    let filter = app.models.filter_in_title();
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
    pen.list(above(inner, 3), MODELS, &models, &app.models);
    if let Some((model, _)) = models.get(app.models.selected) {
        about(pen, last(inner, 2), model);
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
        model.path(),
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

/// Without a gateway: the slugs recorded in the ledger.
fn published(app: &ConsoleApp, pen: &mut Pen<'_>, area: Rect) {
    let inner = pen.frame(area, "Models");
    super::no_gateway(app, pen, Rect { height: 3, ..inner });
    let rest = below(inner, 4);
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
    let slugs = app.shown_published();
    pen.list(below(rest, 1), PUBLISHED, &slugs, &app.models);
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
    let selected = lines
        .get(app.routes.selected)
        .and_then(|line| line.target());
    let about = about_target(app, selected);
    let needs = u16::try_from(wrap(&about, usize::from(inner.width)).len()).unwrap_or(MOST_ABOUT);
    let needs = needs.min(MOST_ABOUT).min(inner.height / 3).max(1);
    pen.list(above(inner, 1 + needs), ROUTES, &lines, &app.routes);
    // Below it: what the selected target has taught, and its state and last failure in full.
    if let Some(target) = selected {
        let taught = taught(target);
        pen.text(last(inner, 1 + needs), 0, 0, &taught, pen.theme.faint());
    }
    pen.paragraph(last(inner, needs), 0, &about, pen.theme.faint());
}

/// The selected target's state and last failure, in full.
fn about_target(app: &ConsoleApp, selected: Option<&ReportedTarget>) -> String {
    match selected {
        _ if app.gateway.link != GatewayLink::Live => {
            "no gateway now; this is what it last said".to_owned()
        }
        Some(target) => explain(app, target),
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
