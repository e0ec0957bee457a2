//! Looks at the whole gateway, and tells the board of alerts what stands.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use farebox_ledger::{
    CustomerId, Gateway, LOG_LOUD, LedgerError, LogStats, NoRoom, Payment, PaymentStatus, Standby,
    Token, TokenStatus, UtcDay, WriterStats,
};

use super::Admin;
use crate::byte_room::Holder;
use crate::clock;
use crate::config::Severity;
use crate::server::CertificateTrouble;
use crate::telemetry::alerts::{self, Alert, AlertKind, StandingAlert};
use crate::upstream::{Trouble, Wrong};

/// Payments that could not be booked of which there is an alert each; of more, the oldest.
const MOST_UNAPPLIED: usize = 20;

/// What of the books has to be told, as it was read last.
#[derive(Debug, Default)]
pub struct BooksSeen {
    tokens: Vec<Token>,
    unapplied: Vec<Payment>,
}

/// Customers that the reason of one alert names.
const MOST_NAMED: usize = 5;

impl Admin {
    /// Looks now, and returns what stands, the most urgent first. `gateways`: those that share the ledger.
    pub fn alerts(&self, gateways: &[Gateway]) -> Vec<StandingAlert> {
        self.differ
            .store(Gateway::differ(gateways), Ordering::Relaxed);
        self.look();
        self.telemetry.alerts.standing()
    }

    /// Reads what of the books has to be told: tokens near their daily bound, and payments that could not be booked.
    ///
    /// # Errors
    /// When the ledger cannot be read; what was read last stands.
    pub async fn read_books(&self) -> Result<(), LedgerError> {
        let today = UtcDay::of(clock::now());
        let mut tokens = self.ledger.tokens().await?;
        tokens.retain(|token| {
            token.status(clock::now()) == TokenStatus::Active && token.is_nearly_sold_out(today)
        });
        let mut unapplied = self.ledger.unapplied().await?;
        unapplied.truncate(MOST_UNAPPLIED);
        self.books.store(Arc::new(BooksSeen { tokens, unapplied }));
        Ok(())
    }

    /// Looks at everything that may be wrong.
    pub fn look(&self) {
        let mut found = Vec::new();
        let selling = self.not_selling();
        found.extend(selling.map(|(kind, why)| Alert::new(kind, "", why)));
        found.extend(self.of_ledger());
        found.extend(self.of_files());
        found.extend(self.of_certificates());
        found.extend(self.of_webhooks());
        found.extend(self.of_prices());
        found.extend(self.of_books());
        let troubles = self.front.proxy.upstreams.troubles();
        found.extend(troubles.iter().map(of_upstream));
        found.extend(self.of_answers());
        found.extend(self.of_keys());
        self.telemetry.alerts.follow(clock::now(), found);
    }

    /// Why nothing is sold, if that is so while the gateway is not stopping.
    pub(super) fn not_selling(&self) -> Option<(&'static AlertKind, String)> {
        let stats = self.ledger.stats();
        let found = if stats.stopped {
            (
                &alerts::LEDGER_STOPPED,
                "the ledger's writer has stopped".to_owned(),
            )
        } else if let Some(why) = stats.uncertain() {
            (&alerts::STANDBY_MISSING, format!("nothing is sold: {why}"))
        } else if let Some(why) = stats.displaced {
            (
                &alerts::LEDGER_DISPLACED,
                format!("the ledger cannot be written: {why}"),
            )
        } else if self.ledger.lapsed() {
            (
                &alerts::LEDGER_UNREACHABLE,
                "this gateway cannot reach the ledger that it shares".to_owned(),
            )
        } else if stats.is_clock_wrong() {
            let seconds = stats.clock_off_ms.abs() / 1_000;
            (
                &alerts::CLOCK_WRONG,
                format!("this machine's clock and the database's are {seconds} s apart"),
            )
        } else if let Some(why) = stats.no_room {
            no_room(why, stats.log.as_ref())
        } else {
            return None;
        };
        Some(found)
    }

    /// What is wrong with the ledger while it may be written.
    fn of_ledger(&self) -> Vec<Alert> {
        let stats = self.ledger.stats();
        let mut found = Vec::new();
        if stats.standby == Standby::Single {
            let why = "--allow-single: no standby has what is confirmed";
            found.push(Alert::new(&alerts::SINGLE, "", why));
        }
        found.extend(unresolved(&stats));
        found.extend(stats.log.as_ref().and_then(held_log));
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

    /// Tokens that can soon sell no more today, and money that came and stands nowhere.
    fn of_books(&self) -> Vec<Alert> {
        let (books, today) = (self.books.load(), UtcDay::of(clock::now()));
        let near = books
            .tokens
            .iter()
            .filter(|token| token.is_nearly_sold_out(today));
        let near = near.map(|token| {
            let (sold, daily) = (token.sold_on(today), token.daily.unwrap_or_default());
            let why = format!(
                "token {:?} ({}) has credited {sold} of the {daily} USD that it may credit today (UTC)",
                token.label, token.id
            );
            Alert::new(&alerts::TOKEN_NEAR_DAILY, token.label.clone(), why)
                .with("token", token.id.to_string())
                .with("sold", sold.to_string())
                .with("daily", daily.to_string())
        });
        let unapplied = books.unapplied.iter().map(|payment| {
            let why = match &payment.status {
                PaymentStatus::Unapplied { why } => why.as_str(),
                _ => "",
            };
            let why = format!(
                "{} USD for customer {} came as {:?} and could not be booked: {why}",
                payment.credit, payment.customer, payment.reference
            );
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
        miscounts.chain(breaking).chain(odd).collect()
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
                "{whose}: exposure and loss of {exposure} USD in the last hour are above {allowed} (one context, at most half of what \
                 was paid, and half its charges), so it gets nothing more until they are not"
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

/// Why a ledger in a file takes no new holds.
fn no_room(why: NoRoom, log: Option<&LogStats>) -> (&'static AlertKind, String) {
    let kind = match why {
        NoRoom::Full | NoRoom::Low => &alerts::DISK_FULL,
        NoRoom::Log => &alerts::LOG_LIMIT,
    };
    let held = log.and_then(|log| log.held.as_ref());
    let held = held.map_or_else(String::new, |held| format!("; {held}"));
    (kind, format!("nothing new is sold: {why}{held}"))
}

/// A log that cannot be copied into the ledger's file.
fn held_log(log: &LogStats) -> Option<Alert> {
    let held = log.held.as_ref()?;
    let kind = if log.bytes < LOG_LOUD {
        &alerts::LOG_HELD
    } else {
        &alerts::LOG_GROWS
    };
    let why = format!(
        "{held}; the log has {} MiB of the {} MiB that it may have",
        log.bytes >> 20,
        log.limit >> 20
    );
    let alert = Alert::new(kind, "", why).with("bytes", log.bytes);
    let pids: Vec<u32> = held
        .readers
        .iter()
        .filter_map(|reader| reader.pid)
        .collect();
    Some(alert.with("pids", pids))
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
