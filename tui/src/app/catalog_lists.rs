//! The lists of the Models and Routes screens, and which rows pass their filters.

use farebox_ledger::{PublishedSlug, SlugUse};

use super::ConsoleApp;
use super::cell::{
    ListCell, count, date, faint, number, plain, share, state, strong, text, tokens,
};
use super::list::{ListColumn, ListRow, fill, left, right, sorted};
use super::live::{amount, written};
use super::tone::Tone;
use crate::admin::{ReportedModel, ReportedTarget, StatusReport};
use crate::format;

/// The gateway's models, with the requests for each.
pub(crate) const MODELS: &[ListColumn<ReportedModel>] = &[
    fill("SLUG").rising(7, |(model, _), _| strong(&model.slug)),
    left("MODEL", 20, 5).rising(8, |(model, _), _| plain(&model.model)),
    left("PROVIDER", 12, 4).rising(9, |(model, _), _| plain(&model.provider)),
    left("PATH", 9, 2).rising(10, |(model, _), _| plain(model.path())),
    left("ENVIRONMENTS", 24, 9).rising(11, |(model, _), _| {
        faint(model.best_environments.join(", "))
    }),
    right("IN $/M", 9, 0).falling(3, |(model, _), _| price(&model.price.input)),
    right("OUT $/M", 9, 0).falling(4, |(model, _), _| price(&model.price.output)),
    right("CACHED", 9, 3).falling(5, |(model, _), _| price(&model.price.cache_read).faint()),
    right("CONTEXT", 8, 6).falling(6, |(model, _), _| tokens(model.context).faint()),
    left("ABILITIES", 22, 8).rising(12, |(model, _), _| faint(model.capabilities.join(", "))),
    right("KEYS 7 d", 9, 7).falling(2, |(_, used), _| {
        used.map_or_else(unused, |used| count(used.keys))
    }),
    right("REQS 7 d", 9, 1).falling(1, |(_, used), _| {
        used.map_or_else(unused, |used| count(used.requests))
    }),
];

/// Without a gateway: the slugs that the ledger remembers.
pub(crate) const PUBLISHED: &[ListColumn<PublishedSlug>] = &[
    fill("SLUG").rising(4, |(slug, _), _| strong(&slug.slug)),
    left("PUBLISHED", 10, 1).falling(3, |(slug, _), _| date(slug.since)),
    right("KEYS 7 d", 9, 0).falling(2, |(_, used), _| count(used.map_or(0, |used| used.keys))),
    right("REQS 7 d", 9, 0).falling(1, |(_, used), _| {
        count(used.map_or(0, |used| used.requests))
    }),
];

/// Routes and their targets.
pub(crate) const ROUTES: &[ListColumn<RouteLine>] = &[
    fill("ROUTE, TARGET").rising(6, |line, _| match line {
        RouteLine::Route(slug, _) => strong(slug),
        RouteLine::Target {
            target,
            place,
            alone,
        } => {
            let route = if alone { &target.slug } else { "" };
            plain(format!("{route} {place} {}", target.target))
        }
    }),
    left("PROVIDER", 14, 2).rising(5, |line, _| match line {
        RouteLine::Route(slug, status) => {
            let route = status.routes.iter().find(|route| route.slug == slug);
            faint(route.map_or("", |route| &route.on_disconnect))
        }
        RouteLine::Target { target, .. } => plain(&target.provider),
    }),
    left("STATE", 8, 0).rising(4, |line, _| {
        line.target().map_or_else(|| plain(""), target_state)
    }),
    right("REQUESTS", 10, 1).falling(2, |line, _| count(line.sum(|target| target.requests))),
    right("ERRORS", 8, 0).falling(1, |line, _| {
        let [errors, all] = [
            line.sum(|target| target.errors),
            line.sum(|target| target.requests),
        ];
        let tone = Tone::Warn.when(errors > 0 && line.target().is_some());
        plain(format::percent(errors, all))
            .toned(tone)
            .by(share(errors, all))
    }),
    right("NOW", 4, 3).falling(3, |line, _| {
        let now = line.sum(|target| target.in_flight);
        plain(now).by(number(now))
    }),
    // On a narrow terminal a last failure gets little; below the list it is in full.
    left("WHY", 26, 4).after(40).rising(7, |line, _| {
        match line.target().and_then(|target| target.reason.as_deref()) {
            Some(why) => plain(why).toned(Tone::Warn),
            // Sorted after every reason: `~` is behind all letters.
            None => plain("").by(text("~")),
        }
    }),
];

impl ListRow for ReportedModel {
    type At<'a> = (&'a Self, Option<&'a SlugUse>);
}

impl ListRow for PublishedSlug {
    type At<'a> = (&'a Self, Option<&'a SlugUse>);
}

/// A route, or one of its targets.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RouteLine<'a> {
    /// Its slug, and what knows its targets.
    Route(&'a str, &'a StatusReport),
    Target {
        target: &'a ReportedTarget,
        place: usize,
        /// It does not stand below its route.
        alone: bool,
    },
}

impl ListRow for RouteLine<'static> {
    type At<'a> = RouteLine<'a>;
}

impl<'a> RouteLine<'a> {
    pub(crate) const fn target(self) -> Option<&'a ReportedTarget> {
        match self {
            Self::Target { target, .. } => Some(target),
            Self::Route(..) => None,
        }
    }

    /// Of a target, or of all targets of a route.
    fn sum(self, of: fn(&ReportedTarget) -> u64) -> u64 {
        match self {
            Self::Target { target, .. } => of(target),
            Self::Route(slug, status) => {
                let targets = status.targets.iter().filter(|target| target.slug == slug);
                targets.map(of).fold(0, u64::saturating_add)
            }
        }
    }
}

/// The one word for a target's state; it sorts the worst first.
fn target_state(target: &ReportedTarget) -> ListCell {
    let word = match (target.state.as_str(), target.alert.as_deref()) {
        ("open", _) => "OPEN",
        ("half_open", _) => "trial",
        (_, Some("account_refused" | "target_refuses")) => "REFUSED",
        (_, Some("target_failing")) => "failing",
        ("closed", _) if target.requests == 0 => "idle",
        ("closed", _) => "ok",
        (other, _) => other,
    };
    state(word).by(number(match target.state.as_str() {
        "open" => 0,
        "half_open" => 1,
        _ => 2,
    }))
}

/// A price as the gateway writes it.
fn price(text: &str) -> ListCell {
    plain(text).by(written(amount(Some(text))))
}

/// Of a model that nobody has used.
fn unused() -> ListCell {
    plain("—").by(number(0))
}

/// Whether all words of a filter are in a text.
fn has(text: &str, filter: &str) -> bool {
    let (text, filter) = (text.to_ascii_lowercase(), filter.to_ascii_lowercase());
    filter.split_whitespace().all(|word| text.contains(word))
}

impl ConsoleApp {
    /// The gateway's published models.
    pub(crate) fn shown_models(&self) -> Vec<<ReportedModel as ListRow>::At<'_>> {
        let passes = |model: &&ReportedModel| {
            let names = [
                &model.slug,
                &model.model,
                &model.provider,
                &model.aliases.join(" "),
            ];
            has(&names.map(String::as_str).join(" "), &self.models.filter)
        };
        let status = self.gateway.status.iter();
        let models = status.flat_map(|status| &status.models).filter(passes);
        let models = models
            .map(|model| (model, self.used(&model.slug)))
            .collect();
        sorted(MODELS, models, self.models.order, self.now)
    }

    /// How many keys used a slug, if any did.
    fn used(&self, slug: &str) -> Option<&SlugUse> {
        self.used.iter().find(|used| used.slug == slug)
    }

    /// The published slugs recorded in the ledger, for when no gateway runs.
    pub(crate) fn shown_published(&self) -> Vec<<PublishedSlug as ListRow>::At<'_>> {
        let passes = |slug: &&PublishedSlug| has(&slug.slug, &self.models.filter);
        let slugs = self.published.iter().filter(passes);
        let slugs = slugs.map(|slug| (slug, self.used(&slug.slug))).collect();
        sorted(PUBLISHED, slugs, self.models.order, self.now)
    }

    /// Routes, each followed by those of its targets that pass the filter; sorted by a column, the targets of all routes.
    pub(crate) fn shown_routes(&self) -> Vec<RouteLine<'_>> {
        let Some(status) = self.gateway.status.as_deref() else {
            return Vec::new();
        };
        let alone = self.routes.order.sorts();
        let mut lines: Vec<RouteLine<'_>> = Vec::new();
        let (mut route, mut place) = (None, 0);
        for target in &status.targets {
            let names = [
                &target.slug,
                &target.target,
                &target.provider,
                &target.state,
            ];
            if !has(&names.map(String::as_str).join(" "), &self.routes.filter) {
                continue;
            }
            if route != Some(&target.slug) {
                (route, place) = (Some(&target.slug), 0);
                lines.extend((!alone).then_some(RouteLine::Route(&target.slug, status)));
            }
            place += 1;
            lines.push(RouteLine::Target {
                target,
                place,
                alone,
            });
        }
        sorted(ROUTES, lines, self.routes.order, self.now)
    }
}
