//! Counters of ended requests by slug and family, and histograms of durations.
//!
//! Labels are bounded: slugs come only from the catalog (unpublished names count under the empty slug), and a catalog that keeps
//! changing is limited by [`MOST_SLUGS`].

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use farebox_ledger::{Usage, UsageKind, amount, lock};

use super::exposition::Exposition;
use crate::metering::Miscount;
use crate::proxy::Record;

/// The number of slugs that get their own series; later ones are counted under the empty slug.
const MOST_SLUGS: usize = 20_000;
/// Most targets with series of their own.
const MOST_TARGETS: usize = 20_000;

/// From arrival to the first byte, and to the end.
const WAITS: [Duration; 14] = [
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2_500),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(60),
    Duration::from_secs(300),
];

/// Bounds for the gateway's own share.
const OWN: [Duration; 12] = [
    Duration::from_micros(50),
    Duration::from_micros(100),
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_secs(1),
];

/// Counts of all requests that ended since the start.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<MetricTables>);

#[derive(Debug, Default)]
struct MetricTables {
    by_slug: BTreeMap<String, OfSlug>,
    by_target: BTreeMap<String, OfTarget>,
    ends: BTreeMap<String, u64>,
    refusals: BTreeMap<String, u64>,
    own: Histogram<{ OWN.len() + 1 }>,
    held_up: Histogram<{ WAITS.len() + 1 }>,
}

#[derive(Debug, Default)]
struct OfSlug {
    families: BTreeMap<&'static str, OfFamily>,
    usage: Usage,
    charge: i128,
    loss: i128,
    exposure: i128,
}

/// What a target may bill, and how often its own counts could not be charged.
#[derive(Debug, Default)]
struct OfTarget {
    counted: u64,
    miscounts: [u64; Miscount::ALL.len()],
    exposure: i128,
    /// `None` if the operator's prices are not known.
    cost: Option<i128>,
}

#[derive(Debug, Default)]
struct OfFamily {
    statuses: BTreeMap<u16, u64>,
    total: Histogram<{ WAITS.len() + 1 }>,
    first_byte: Histogram<{ WAITS.len() + 1 }>,
}

/// One count for each bound, and one for everything above.
#[derive(Debug)]
struct Histogram<const N: usize> {
    counts: [u64; N],
    sum: Duration,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Self {
        Self {
            counts: [0; N],
            sum: Duration::ZERO,
        }
    }
}

impl<const N: usize> Histogram<N> {
    fn note(&mut self, bounds: &[Duration], value: Duration) {
        let place = bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(value);
    }
}

impl Metrics {
    /// Counts one ended request.
    pub fn note(&self, record: &Record) {
        let mut tables = lock(&self.0);
        update(&mut tables.ends, &record.end_reason, |count| {
            *count += 1_u64
        });
        // 499 means that the customer left: not a refusal.
        if record.status >= 400 && record.status != 499 {
            update(&mut tables.refusals, &record.end_reason, |count| {
                *count += 1_u64
            });
        }
        if let Some(own) = record.own_us {
            tables.own.note(&OWN, Duration::from_micros(own.into()));
        }
        if record.waited_ms > 0 {
            let waited = Duration::from_millis(record.waited_ms.into());
            tables.held_up.note(&WAITS, waited);
        }
        tables.note_targets(record);
        let full = tables.by_slug.len() >= MOST_SLUGS && !tables.by_slug.contains_key(&record.slug);
        update(
            &mut tables.by_slug,
            if full { "" } else { &record.slug },
            |of_slug: &mut OfSlug| of_slug.note(record),
        );
    }

    /// Writes all counters.
    pub fn write(&self, out: &mut Exposition) {
        let tables = lock(&self.0);
        tables.write_requests(out);
        tables.write_waits(out);
        tables.write_money(out);
        tables.write_targets(out);
    }
}

impl OfSlug {
    fn note(&mut self, record: &Record) {
        self.usage = self.usage.and(record.usage);
        self.charge = self.charge.saturating_add(record.charge.picos().into());
        self.loss = self.loss.saturating_add(record.loss.picos().into());
        // A counter only grows: what a count takes back is in the ledger's sums alone.
        self.exposure = (self.exposure).saturating_add(record.exposure.picos().max(0).into());
        let of_family = self.families.entry(record.family).or_default();
        *of_family.statuses.entry(record.status).or_default() += 1;
        of_family
            .total
            .note(&WAITS, Duration::from_millis(record.total_ms.into()));
        if let Some(first_byte) = record.first_byte_ms {
            of_family
                .first_byte
                .note(&WAITS, Duration::from_millis(first_byte.into()));
        }
    }
}

impl OfTarget {
    fn owe(&mut self, exposure: i128, cost: Option<i128>) {
        self.exposure = self.exposure.saturating_add(exposure.max(0));
        if let Some(cost) = cost {
            self.cost = Some(self.cost.unwrap_or_default().saturating_add(cost));
        }
    }
}

impl MetricTables {
    /// Attributes to each target what it may bill: to the answering one everything that the failed tries do not account for.
    fn note_targets(&mut self, record: &Record) {
        let (mut exposure, mut cost) = (
            i128::from(record.exposure.picos()),
            record.cost.map(|cost| i128::from(cost.picos())),
        );
        for (target, owed) in &record.failed {
            let part = (
                i128::from(owed.exposure.picos()),
                owed.cost.map(|cost| i128::from(cost.picos())),
            );
            exposure -= part.0;
            cost = cost.map(|cost| cost - part.1.unwrap_or_default());
            self.target(target, |of_target| of_target.owe(part.0, part.1));
        }
        if record.target.is_empty() {
            return;
        }
        self.target(&record.target, |of_target| {
            of_target.owe(exposure, cost);
            of_target.counted +=
                u64::from(record.counted_at_its_end() && record.miscount.is_none());
            let at = record
                .miscount
                .and_then(|miscount| Miscount::ALL.iter().position(|known| *known == miscount));
            if let Some(count) = at.and_then(|at| of_target.miscounts.get_mut(at)) {
                *count += 1;
            }
        });
    }

    fn target(&mut self, target: &str, change: impl FnOnce(&mut OfTarget)) {
        if self.by_target.len() < MOST_TARGETS || self.by_target.contains_key(target) {
            update(&mut self.by_target, target, change);
        }
    }

    fn write_targets(&self, out: &mut Exposition) {
        let help = "Answers by what the target counted at their end: believable usage, or what was wrong with it.";
        out.metric("farebox_target_counts_total", help);
        for (target, of_target) in &self.by_target {
            out.sample(
                &[("target", target), ("counted", "provider")],
                of_target.counted,
            );
            for (miscount, count) in Miscount::ALL
                .iter()
                .zip(of_target.miscounts)
                .filter(|(_, count)| *count > 0)
            {
                out.sample(&[("target", target), ("counted", miscount.name())], count);
            }
        }
        let help = "What a target may bill beyond the charges, at the catalog's prices.";
        out.metric("farebox_target_exposure_usd_total", help);
        for (target, of_target) in &self.by_target {
            out.sample(&[("target", target)], amount::exact(of_target.exposure));
        }
        let help = "What a target may bill at the operator's own prices, where they are known.";
        out.metric("farebox_target_cost_usd_total", help);
        for (target, cost) in self
            .by_target
            .iter()
            .filter_map(|(target, of_target)| Some((target, of_target.cost?)))
        {
            out.sample(&[("target", target)], amount::exact(cost));
        }
    }

    fn write_requests(&self, out: &mut Exposition) {
        out.metric(
            "farebox_requests_total",
            "Ended requests; unknown names have the empty slug.",
        );
        for (slug, family, of_family) in self.families() {
            for (status, count) in &of_family.statuses {
                out.sample(
                    &[
                        ("slug", slug),
                        ("family", family),
                        ("status", &status.to_string()),
                    ],
                    count,
                );
            }
        }
        out.metric(
            "farebox_request_ends_total",
            "Ended requests by the reason in the journal.",
        );
        for (reason, count) in &self.ends {
            out.sample(&[("reason", reason)], count);
        }
        out.metric(
            "farebox_refusals_total",
            "Requests that were answered with an error, by reason.",
        );
        for (reason, count) in &self.refusals {
            out.sample(&[("reason", reason)], count);
        }
    }

    fn write_waits(&self, out: &mut Exposition) {
        out.histograms(
            "farebox_request_seconds",
            "From a request's arrival to its end.",
        );
        for (slug, family, of_family) in self.families() {
            let Histogram { counts, sum } = &of_family.total;
            out.histogram(&[("slug", slug), ("family", family)], &WAITS, counts, *sum);
        }
        out.histograms(
            "farebox_first_byte_seconds",
            "From a request's arrival to the first byte of its answer.",
        );
        for (slug, family, of_family) in self.families() {
            let Histogram { counts, sum } = &of_family.first_byte;
            out.histogram(&[("slug", slug), ("family", family)], &WAITS, counts, *sum);
        }
        let help = "Time the gateway itself took: from arrival to dispatch, reading the body included, and the settlement.";
        out.histograms("farebox_own_seconds", help).histogram(
            &[],
            &OWN,
            &self.own.counts,
            self.own.sum,
        );
        let help = "How long requests waited for money that other requests of their customer held.";
        out.histograms("farebox_money_wait_seconds", help)
            .histogram(&[], &WAITS, &self.held_up.counts, self.held_up.sum);
    }

    fn write_money(&self, out: &mut Exposition) {
        out.metric(
            "farebox_tokens_total",
            "Counted tokens; each token is in one kind only.",
        );
        for (slug, of_slug) in &self.by_slug {
            for kind in UsageKind::TOKENS {
                let count = of_slug.usage[*kind];
                if count > 0 {
                    out.sample(&[("slug", slug), ("kind", kind.name())], count);
                }
            }
        }
        out.metric("farebox_charged_usd_total", "Charged to keys.");
        for (slug, of_slug) in &self.by_slug {
            out.sample(&[("slug", slug)], amount::exact(of_slug.charge));
        }
        out.metric(
            "farebox_loss_usd_total",
            "Used but not paid: the operator's loss.",
        );
        for (slug, of_slug) in &self.by_slug {
            out.sample(&[("slug", slug)], amount::exact(of_slug.loss));
        }
        let help = "What providers may bill beyond the charges, at the catalog's prices.";
        out.metric("farebox_exposure_usd_total", help);
        for (slug, of_slug) in &self.by_slug {
            out.sample(&[("slug", slug)], amount::exact(of_slug.exposure));
        }
    }

    fn families(&self) -> impl Iterator<Item = (&str, &'static str, &OfFamily)> {
        self.by_slug.iter().flat_map(|(slug, of_slug)| {
            of_slug
                .families
                .iter()
                .map(move |(family, of)| (slug.as_str(), *family, of))
        })
    }
}

/// Changes the value under a name; copies the name only if it is new.
fn update<T: Default>(map: &mut BTreeMap<String, T>, name: &str, change: impl FnOnce(&mut T)) {
    match map.get_mut(name) {
        Some(value) => change(value),
        None => change(map.entry(name.to_owned()).or_default()),
    }
}
