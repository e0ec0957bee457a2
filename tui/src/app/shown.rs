//! The rows of the Models and Routes screens that pass the filter.

use farebox_ledger::{PublishedSlug, SlugUse};

use super::order::{SortRank, sorted};
use super::{ConsoleApp, ranks};
use crate::admin::{ReportedModel, ReportedTarget};

/// A route's slug, or one of its targets with its position.
type RouteLine<'a> = (&'a str, Option<(usize, &'a ReportedTarget)>);

impl ConsoleApp {
    /// The gateway's published models.
    pub(crate) fn shown_models(&self) -> Vec<&ReportedModel> {
        let filter = self.models.filter.to_ascii_lowercase();
        let passes = |model: &&ReportedModel| {
            let text = format!(
                "{} {} {} {}",
                model.slug,
                model.model,
                model.provider,
                model.aliases.join(" ")
            )
            .to_ascii_lowercase();
            filter.split_whitespace().all(|word| text.contains(word))
        };
        let status = self.gateway.status.iter();
        let all = status.flat_map(|status| &status.models);
        sorted(
            all.filter(passes).collect(),
            self.models.order,
            |model, column| ranks::model(model, self.used(&model.slug), column),
        )
    }

    /// How many keys used a slug, if any did.
    pub(crate) fn used(&self, slug: &str) -> Option<&SlugUse> {
        self.used.iter().find(|used| used.slug == slug)
    }

    /// The published slugs recorded in the ledger, for when no gateway runs.
    pub(crate) fn shown_published(&self) -> Vec<&PublishedSlug> {
        let filter = self.models.filter.to_ascii_lowercase();
        let passes = |slug: &&PublishedSlug| {
            let mut words = filter.split_whitespace();
            words.all(|word| slug.slug.contains(word))
        };
        sorted(
            self.published.iter().filter(passes).collect(),
            self.models.order,
            |slug, column| ranks::published(slug, self.used(&slug.slug), column),
        )
    }

    /// How many rows the Models screen has.
    pub(super) fn model_rows(&self) -> usize {
        if self.gateway.status.is_some() {
            self.shown_models().len()
        } else {
            self.shown_published().len()
        }
    }

    /// Routes, each followed by those of its targets that pass the filter; sorted by a column, the targets of all routes.
    pub(crate) fn shown_routes(&self) -> Vec<RouteLine<'_>> {
        let filter = self.routes.filter.to_ascii_lowercase();
        let mut lines: Vec<RouteLine<'_>> = Vec::new();
        let mut place = 0;
        for target in self
            .gateway
            .status
            .iter()
            .flat_map(|status| &status.targets)
        {
            let text = format!(
                "{} {} {} {}",
                target.slug, target.target, target.provider, target.state
            )
            .to_ascii_lowercase();
            if !filter.split_whitespace().all(|word| text.contains(word)) {
                continue;
            }
            if lines.last().is_none_or(|(slug, _)| *slug != target.slug) {
                lines.push((&target.slug, None));
                place = 0;
            }
            place += 1;
            lines.push((&target.slug, Some((place, target))));
        }
        if self.routes.order.sorts() {
            lines.retain(|(_, target)| target.is_some());
        }
        sorted(lines, self.routes.order, |(_, target), column| {
            target.map_or_else(
                || SortRank::text(""),
                |(_, target)| ranks::target(target, column),
            )
        })
    }
}
