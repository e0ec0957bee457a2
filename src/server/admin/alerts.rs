//! Looks at the whole gateway, and tells the board of alerts what stands.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use farebox_ledger::{
    CustomerId, Gateway, LOG_LOUD, LedgerError, LedgerTrouble, Payment, PaymentStatus,
    Perform as _, Standby, Token, TokenStatus, TokenToday, TroubleKind, UtcDay, WriterStats,
};

use super::Admin;
use crate::clock;
use crate::config::Severity;
use crate::server::CertificateTrouble;
use crate::telemetry::alerts::{self, Alert, AlertKind, StandingAlert};
use crate::upstream::{Trouble, Wrong};
use farebox_door::byte_room::Holder;
use farebox_selling::customer;

/// Payments that could not be booked of which there is an alert each; of more, the oldest.
const MOST_UNAPPLIED: usize = 20;

/// What of the books has to be told, as it was read last.
#[derive(Debug, Default)]
pub struct BooksSeen {
    /// Tokens that have reached much of what they may do today, and that day.
    tokens: Vec<(Token, TokenToday)>,
    unapplied: Vec<Payment>,
    /// How many customers have each price list.
    lists: BTreeMap<String, usize>,
}

/// Customers that the reason of one alert names.
const MOST_NAMED: usize = 5;

impl Admin {
    /// Looks now, and returns what stands, the most urgent first. `gateways`: those that share the ledger.
    pub fn alerts(&self, gateways: &[Gateway]) -> Vec<StandingAlert> {
        self.compare(gateways);
        self.look();
        self.telemetry.alerts.standing()
    }

    /// Notes whether these gateways run different files.
    pub fn compare(&self, gateways: &[Gateway]) {
        self.differ
            .store(Gateway::differ(gateways), Ordering::Relaxed);
    }

    /// Reads what of the books has to be told: tokens near a daily bound, what could not be booked, and who has which price list.
    ///
    /// # Errors
    /// When the ledger cannot be read; what was read last stands.
    pub async fn read_books(&self) -> Result<(), LedgerError> {
        let today = UtcDay::of(clock::now());
        let days = self.ledger.token_days(TokenToday::since(today)).await?;
        let tokens = self.ledger.all::<Token>().await?.into_iter().map(|token| {
            let of_today = TokenToday::of(token.id, today, &days);
            (token, of_today)
        });
        let tokens = tokens.filter(|(token, today)| {
            token.status(clock::now()) == TokenStatus::Active
                && today.nearly_reached(token).is_some()
        });
        let tokens = tokens.collect();
        let mut unapplied = self.ledger.unapplied().await?;
        unapplied.truncate(MOST_UNAPPLIED);
        let lists = customer::on_price_lists(&*self.ledger).await?;
        self.books.store(Arc::new(BooksSeen {
            tokens,
            unapplied,
            lists,
        }));
        Ok(())
    }

    /// Looks at everything that may be wrong.
    pub fn look(&self) {
        let mut found = Vec::new();
        found.extend(self.of_ledger());
        found.extend(self.of_files());
        found.extend(self.of_certificates());
        found.extend(self.of_webhooks());
        found.extend(self.of_prices());
        found.extend(self.of_plans());
        found.extend(self.of_lists());
        found.extend(self.of_books());
        let troubles = self.front.proxy.upstreams.troubles();
        found.extend(troubles.iter().map(of_upstream));
        found.extend(self.of_answers());
        found.extend(self.of_limits());
        found.extend(self.of_keys());
        self.telemetry.alerts.follow(clock::now(), found);
    }

    /// What is wrong with the ledger, and what it says of itself.
    fn of_ledger(&self) -> Vec<Alert> {
        let (stats, troubles) = (self.ledger.stats(), self.ledger.troubles());
        let stopped = troubles.iter().any(|trouble| trouble.stops);
        // What stops everything says why the rest is slow, too.
        let told = troubles
            .iter()
            .filter(|trouble| trouble.stops || !stopped || is_of_its_own(trouble));
        let mut found: Vec<Alert> = told.map(|trouble| of_trouble(trouble, &stats)).collect();
        if stats.standby == Standby::Single {
            let why = "--allow-single: no standby has what is confirmed";
            found.push(Alert::new(&alerts::SINGLE, "", why));
        }
        found.extend(unresolved(&stats));
        for server in self.ledger.servers() {
            if server.stale {
                let why = format!("{} {}: {}", server.name, server.place, server.state);
                let alert = Alert::new(&alerts::STALE_SERVER, server.place.clone(), why);
                found.push(alert.with("server", server.place));
            }
        }
        if self.differ.load(Ordering::Relaxed) {
            let why = "the gateways of this ledger run different files";
            found.push(Alert::new(&alerts::CONFIGURATION_DIFFERS, "", why));
        }
        found
    }

    /// Targets whose counts have exceeded what their limits allow.
    fn of_limits(&self) -> impl Iterator<Item = Alert> {
        let exceeded = self.front.proxy.calibrations.exceeded(clock::now());
        exceeded.into_iter().map(|known| {
            let (target, tokens, customers) = (known.target, known.tokens, known.customers);
            let why = format!(
                "{target}: answers of {customers} customers were counted up to {tokens} tokens above what could be held for them"
            );
            Alert::new(&alerts::LIMIT_EXCEEDED, target.clone(), why)
                .with("target", target)
                .with("tokens", tokens)
                .with("customers", customers)
        })
    }

    /// An edit that is not in force.
    fn of_files(&self) -> Option<Alert> {
        let status = self.reloader.as_ref()?.status();
        if status.current {
            return None;
        }
        let mut errors = status.diagnostics.0.iter();
        let first = errors.find(|finding| finding.severity == Severity::Error)?;
        let place = (first.place.as_ref()).map(|place| format!("{}:{}: ", place.file, place.line));
        let why = format!(
            "the files have {}; the first: {}{}",
            status.diagnostics.summary(),
            place.unwrap_or_default(),
            first.message
        );
        Some(Alert::new(&alerts::EDIT_REJECTED, "", why))
    }

    /// What is wrong with the listeners' certificates.
    fn of_certificates(&self) -> Vec<Alert> {
        let mut found = Vec::new();
        for (listener, tls) in &self.certificates {
            for trouble in tls.troubles(clock::now()) {
                let kind = match &trouble {
                    CertificateTrouble::Expired(_) | CertificateTrouble::NotYet(_) => {
                        &alerts::CERTIFICATE_EXPIRED
                    }
                    CertificateTrouble::OtherName(_) => &alerts::CERTIFICATE_NAME,
                    CertificateTrouble::EndsSoon(..) => &alerts::CERTIFICATE_ENDS,
                    CertificateTrouble::Rejected(_) => &alerts::CERTIFICATE_REJECTED,
                };
                let why = format!("{}: {trouble}", tls.path());
                let alert = Alert::new(kind, *listener, why);
                found.push(alert.with_remedy(trouble.remedy().to_owned()));
            }
        }
        found
    }

    /// Webhooks that get no more events, or have got none for long.
    fn of_webhooks(&self) -> Vec<Alert> {
        let (webhooks, now) = (self.telemetry.webhooks.seen(), clock::now());
        let alerts = webhooks.iter().filter_map(|webhook| {
            let (kind, why) = match (&webhook.disabled, webhook.failing_long(now)) {
                (Some((_, why)), _) => (&alerts::WEBHOOK_DISABLED, why.clone()),
                (None, Some((since, why))) => (
                    &alerts::WEBHOOK_FAILING,
                    format!("nothing has arrived there since {since}: {why}"),
                ),
                (None, None) => return None,
            };
            Some(Alert::new(kind, webhook.url.clone(), why))
        });
        alerts.collect()
    }

    /// Tokens that can soon do no more today, and money that came or went back and stands nowhere.
    fn of_books(&self) -> Vec<Alert> {
        let (books, today) = (self.books.load(), UtcDay::of(clock::now()));
        let read = books.tokens.iter().filter(|(_, of)| of.day.day == today);
        let near = read.filter_map(|(token, of)| {
            let what = of.nearly_reached(token)?;
            let (done, most) = (of.day.done(what), of.most(token, what)?);
            let why = format!(
                "token {:?} ({}) may {} a day (UTC), and {} are done today",
                token.label,
                token.id,
                what.words(most),
                what.shown(done)
            );
            let alert = Alert::new(&alerts::TOKEN_NEAR_DAILY, token.label.clone(), why);
            let alert = alert.with("token", token.id.to_string());
            Some(
                alert
                    .with("done", what.shown(done))
                    .with("most", what.shown(most)),
            )
        });
        let unapplied = books.unapplied.iter().map(|payment| {
            let (sum, name) = (payment.credit, &payment.reference);
            let customer = payment.customer;
            let why = match (&payment.status, payment.waiting.first()) {
                (PaymentStatus::Unapplied { why }, _) => {
                    format!("{sum} USD for customer {customer} came as {name:?} and could not be booked: {why}")
                }
                (_, Some(waiting)) => {
                    format!("of payment {name:?} of customer {customer} a {waiting}: a token's daily bound refused it")
                }
                (_, None) => format!("payment {name:?} of customer {customer}"),
            };
            Alert::new(&alerts::PAYMENT_UNAPPLIED, payment.reference.clone(), why)
                .with("customer", payment.customer.to_string())
                .with("reference", payment.reference.clone())
                .with("amount", payment.credit.to_string())
        });
        near.chain(unapplied).collect()
    }

    /// Prices that a saved file lowered by more than half.
    fn of_prices(&self) -> Vec<Alert> {
        let status = self.reloader.as_ref().map(|reloader| reloader.status());
        let falls = status.iter().flat_map(|status| &status.falls);
        let standing = falls.filter(|fall| fall.stands(clock::now().millis()));
        let alerts = standing.map(|fall| {
            let why = format!("the price of `{}` fell: {}", fall.slug, fall.what);
            Alert::new(&alerts::PRICE_FELL, fall.slug.clone(), why)
                .with("slug", fall.slug.clone())
                .with("what", fall.what.clone())
        });
        alerts.collect()
    }

    /// Plans that sell nothing.
    fn of_plans(&self) -> Vec<Alert> {
        let config = self.front.proxy.config.current();
        let alerts = config.catalog.dead_plans().map(|plan| {
            let name = plan.name.clone();
            let why = format!("all models of plan `{name}` are retired");
            Alert::new(&alerts::PLAN_DEAD, name.clone(), why).with("plan", name)
        });
        alerts.collect()
    }

    /// Price lists of customers that the catalog does not have.
    fn of_lists(&self) -> Vec<Alert> {
        let (books, config) = (self.books.load(), self.front.proxy.config.current());
        let unknown = (books.lists.iter()).filter(|(name, _)| config.catalog.list(name).is_err());
        let alerts = unknown.map(|(name, customers)| {
            let why = format!(
                "the catalog has no price list `{name}`; customers who have it: {customers}"
            );
            Alert::new(&alerts::PRICE_LIST_UNKNOWN, name.clone(), why).with("count", *customers)
        });
        alerts.collect()
    }

    /// Targets that do not serve what was asked.
    fn of_answers(&self) -> Vec<Alert> {
        let hour = clock::now().hour();
        let miscounts = self.telemetry.miscounts.repeated(hour).into_iter();
        let miscounts = miscounts.map(|found| {
            let subject = format!("{} ({})", found.target, found.miscount.name());
            Alert::new(&alerts::MISCOUNT, subject, found.what())
                .with("counted", found.miscount.name())
                .with("count", found.count)
                .with("answers", found.answers)
                .with("what", found.what())
                .with_remedy(found.remedy())
                .with("target", found.target)
                .with("slug", found.slug)
        });
        let breaking = self.telemetry.miscounts.breaking(hour).into_iter();
        let breaking = breaking.map(|found| {
            let why = format!(
                "{}: {} of {} answers in the last hour broke off",
                found.target, found.count, found.answers
            );
            Alert::new(&alerts::ENDINGS_BREAK, found.target.clone(), why)
                .with("target", found.target)
                .with("slug", found.slug)
        });
        let odd = self.telemetry.oddities.alerts(hour);
        let costs = self.telemetry.told_costs.alerts(clock::now());
        miscounts.chain(breaking).chain(odd).chain(costs).collect()
    }

    /// Keys that are stopped for their exposure.
    fn of_keys(&self) -> Vec<Alert> {
        let stopped = self.front.rate_limits.stopped(clock::now()).into_iter();
        let alerts = stopped.map(|stop| {
            let (exposure, allowed) = (stop.standing.exposure, stop.standing.allowed);
            let key = stop.key;
            let whose = if stop.all_keys {
                format!("all keys of {} together, most of it by {key}", stop.customer)
            } else {
                key.to_string()
            };
            let why = format!(
                "{whose}: exposure and loss of {exposure} USD in the last {} are above {allowed} ({}, and half its charges), so it gets \
                 nothing more until they are not",
                stop.standing.span.name(),
                stop.standing.span.allows()
            );
            Alert::new(&alerts::EXPOSURE_LIMIT, key.to_string(), why)
                .with("key", key.to_string())
                .with("customer", stop.customer.to_string())
                .with("exposure", exposure.to_string())
                .with("allowed", allowed.to_string())
        });
        alerts.collect()
    }
}

/// Whether it does not follow from another trouble of the ledger.
const fn is_of_its_own(trouble: &LedgerTrouble) -> bool {
    matches!(
        trouble.fault.kind,
        TroubleKind::LogHeld | TroubleKind::ClockJumped
    )
}

/// What of the ledger's record is told, and how much it matters.
fn of_trouble(trouble: &LedgerTrouble, stats: &WriterStats) -> Alert {
    let (fault, stops) = (&trouble.fault, trouble.stops);
    let log_bytes = stats.log.as_ref().map_or(0, |log| log.bytes);
    let kind = match fault.kind {
        TroubleKind::Stopped => &alerts::LEDGER_STOPPED,
        TroubleKind::Displaced => &alerts::LEDGER_DISPLACED,
        TroubleKind::ClockWrong => &alerts::CLOCK_WRONG,
        TroubleKind::ClockJumped => &alerts::CLOCK_JUMPED,
        TroubleKind::DiskFull => &alerts::DISK_FULL,
        TroubleKind::LogLimit => &alerts::LOG_LIMIT,
        TroubleKind::LogHeld if log_bytes >= LOG_LOUD => &alerts::LOG_GROWS,
        TroubleKind::LogHeld => &alerts::LOG_HELD,
        TroubleKind::Slow => &alerts::LEDGER_SLOW,
        TroubleKind::Uncertain if stops => &alerts::STANDBY_MISSING,
        TroubleKind::Unreachable if stops => &alerts::LEDGER_UNREACHABLE,
        TroubleKind::Blocked if stops => &alerts::LEDGER_BLOCKED,
        TroubleKind::Refused if stops => &alerts::LEDGER_REFUSED,
        TroubleKind::Uncertain
        | TroubleKind::Unreachable
        | TroubleKind::Blocked
        | TroubleKind::Refused => &alerts::LEDGER_IMPAIRED,
    };
    let mut alert = Alert::new(kind, "", fault.cause.clone())
        .with_remedy(fault.remedy.clone())
        .ending_at_once();
    let blockers = &fault.blockers;
    let pids: Vec<u32> = blockers.iter().filter_map(|blocker| blocker.pid).collect();
    if !pids.is_empty() || fault.kind == TroubleKind::LogHeld {
        alert = alert.with("pids", pids);
    }
    if let Some(table) = blockers.iter().find_map(|blocker| blocker.table.clone()) {
        alert = alert.with("table", table);
    }
    if let Some(sqlstate) = fault.sqlstate.clone() {
        alert = alert.with("sqlstate", sqlstate);
    }
    match fault.kind {
        TroubleKind::LogHeld => alert.with("bytes", log_bytes),
        _ => alert,
    }
}

/// Holds that cannot be ended now, if there are any.
fn unresolved(stats: &WriterStats) -> Option<Alert> {
    if stats.unresolved == 0 {
        return None;
    }
    let rejected: Vec<&str> = (stats.unresolved_by.keys().map(String::as_str))
        .filter(|sqlstate| !sqlstate.is_empty())
        .collect();
    let why = if rejected.is_empty() {
        String::new()
    } else {
        let states = rejected.join(", ");
        format!(": the database rejects them (SQLSTATE {states})")
    };
    let why = format!("{} settlements wait for the ledger{why}", stats.unresolved);
    let alert = Alert::new(&alerts::UNRESOLVED, "", why);
    let alert = alert.with("holds", stats.unresolved);
    Some(alert.with("sqlstates", rejected))
}

/// The alert that tells of it.
pub(super) const fn kind_of(wrong: &Wrong) -> &'static AlertKind {
    match wrong {
        Wrong::Account(..) => &alerts::ACCOUNT_REFUSED,
        Wrong::Dead => &alerts::SLUG_DEAD,
        Wrong::Refuses => &alerts::TARGET_REFUSES,
        Wrong::Paused => &alerts::TARGET_PAUSED,
        Wrong::Failing => &alerts::TARGET_FAILING,
        Wrong::PausedFor(_) => &alerts::TARGET_PAUSED_FOR,
    }
}

fn of_upstream(trouble: &Trouble) -> Alert {
    let Trouble {
        what,
        slug,
        target,
        reason,
    } = trouble;
    let kind = kind_of(what);
    let alert = match what {
        Wrong::Account(_, number, of) => {
            let subject = if *of > 1 {
                format!("{target}, key {} of {of}", number + 1)
            } else {
                target.clone()
            };
            let alert = Alert::new(kind, subject, reason.clone());
            let alert = alert.with("provider", target.clone());
            return match trouble.remedy() {
                Some(remedy) => alert.with_remedy(remedy),
                None => alert,
            };
        }
        Wrong::Dead => {
            let alert = Alert::new(kind, slug.clone(), reason.clone());
            return alert.with("slug", slug.clone());
        }
        Wrong::Refuses | Wrong::Paused | Wrong::Failing => {
            Alert::new(kind, format!("{slug} at {target}"), reason.clone())
        }
        Wrong::PausedFor(holders) => {
            let (named, customers) = named(holders);
            let reason = format!("for {named}: {reason}");
            let alert = Alert::new(kind, format!("{slug} at {target}"), reason);
            alert.with("customer_ids", customers)
        }
    };
    alert
        .with("slug", slug.clone())
        .with("target", target.clone())
}

/// Customers, as a reason names them, and all of them.
fn named(holders: &[Holder]) -> (String, Vec<String>) {
    let known = holders
        .iter()
        .filter_map(|holder| CustomerId::from_i64(holder.0.cast_signed()));
    let customers: Vec<String> = known.map(|customer| customer.to_string()).collect();
    let few = customers.iter().take(MOST_NAMED).cloned();
    let mut named = few.collect::<Vec<_>>().join(", ");
    let more = customers.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        named = format!("{named} and {more} more");
    }
    (named, customers)
}
