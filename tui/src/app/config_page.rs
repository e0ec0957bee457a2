//! The text of the Config screen, line by line: the running configuration, mistakes in the files, the differences, and the books.
//!
//! Scrolling needs the number of lines, so they are made here; the view only colours them.

use super::live::GatewayLink;
use super::tone::Tone;
use super::{AllBooks, ConsoleApp};
use crate::admin::{ClientField, ReportedChange, ReportedDiagnostic, StatusReport};
use crate::format;
use crate::sanitize::{self, wrap};

type ConfigLine = (String, Tone);

/// All lines of the screen.
pub(crate) fn lines(app: &ConsoleApp) -> Vec<ConfigLine> {
    let mut lines = books(app);
    lines.push((String::new(), Tone::Plain));
    let Some(status) = &app.gateway.status else {
        lines.push((
            format!(
                "no gateway at {}; start it or pass --admin",
                app.options.admin
            ),
            Tone::Warn,
        ));
        lines.push((
            "its configuration and diagnostics are shown here; farebox check reads the files without it".to_owned(),
            Tone::Faint,
        ));
        return lines;
    };
    if app.gateway.link != GatewayLink::Live {
        lines.push((
            format!(
                "no gateway at {} now; what follows is what it last said",
                app.options.admin
            ),
            Tone::Warn,
        ));
    }
    if status.shortened {
        let why = "key ids and webhook paths are left out: this console could not read the gateway's token, beside its ledger or its --state";
        lines.extend(wrap(why, 74).into_iter().map(|line| (line, Tone::Warn)));
    }
    configuration(status, &mut lines);
    drift(&status.client_fields, &mut lines);
    for diagnostic in &status.diagnostics {
        lines.push((String::new(), Tone::Plain));
        report(diagnostic, &mut lines);
    }
    lines
}

fn configuration(status: &StatusReport, lines: &mut Vec<ConfigLine>) {
    let of = |severity: &str| {
        status
            .diagnostics
            .iter()
            .filter(|found| found.severity == severity)
            .count()
    };
    let (errors, warnings) = (of("error"), of("warning"));
    if status.state == "rejected" {
        let at = status
            .rejected_at
            .as_deref()
            .map(format::clock_of)
            .unwrap_or_default();
        lines.push((
            format!("NEW FILES REJECTED {at} — the running version stays in force"),
            Tone::Bad,
        ));
    } else {
        lines.push((
            "The running configuration matches the files.".to_owned(),
            Tone::Good,
        ));
    }
    let counts = [
        format::many(errors, "error"),
        format::many(warnings, "warning"),
        format::many(status.models.len(), "model"),
        format!("{} retired", status.retired.len()),
        format::many(status.providers.len(), "provider"),
        format::many(status.targets.len(), "target"),
    ]
    .join(" · ");
    lines.push((counts, Tone::Plain));
    let p99 = status.ledger.commit_p99_us.map_or_else(
        || "—".to_owned(),
        |micros| format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
    );
    lines.push((
        format!(
            "gateway {} since {} · ledger queue {}, commit p99 {p99}",
            status.version,
            format::clock_of(&status.started_at),
            status.ledger.queue
        ),
        Tone::Plain,
    ));
    if !status.last_changes.is_empty() {
        lines.push((String::new(), Tone::Plain));
        lines.push(("Changes in the last reload".to_owned(), Tone::Head));
        lines.extend(status.last_changes.iter().map(difference));
    }
}

/// What clients send that is not served, the most frequent first.
fn drift(fields: &[ClientField], lines: &mut Vec<ConfigLine>) {
    if fields.is_empty() {
        return;
    }
    lines.push((String::new(), Tone::Plain));
    let title = "Fields of clients that are not served (pass of a provider lets some through)";
    lines.push((title.to_owned(), Tone::Head));
    let mut fields: Vec<&ClientField> = fields.iter().collect();
    fields.sort_by_key(|field| std::cmp::Reverse(field.requests));
    for field in fields {
        let (sign, tone) = match field.fate.as_str() {
            "refused" => ("refused  ", Tone::Warn),
            _ => ("taken out", Tone::Plain),
        };
        let requests = format::many(field.requests, "request");
        let text = format!("  {sign} {} {} · {requests}", field.family, field.field);
        lines.push((text, tone));
    }
}

fn difference(change: &ReportedChange) -> ConfigLine {
    let tone = match change.kind.as_str() {
        "added" => Tone::Good,
        "removed" => Tone::Bad,
        _ => Tone::Warn,
    };
    (format!("  {}", format::change(change)), tone)
}

fn report(diagnostic: &ReportedDiagnostic, lines: &mut Vec<ConfigLine>) {
    let tone = match diagnostic.severity.as_str() {
        "error" => Tone::Bad,
        "warning" => Tone::Warn,
        _ => Tone::Plain,
    };
    let rendered = sanitize::lines(&diagnostic.rendered);
    if rendered.is_empty() {
        lines.push((
            format!(
                "{}[{}]: {}",
                diagnostic.severity, diagnostic.code, diagnostic.message
            ),
            tone,
        ));
        lines.push((
            format!(
                "  --> {}:{}:{}",
                diagnostic.file, diagnostic.line, diagnostic.column
            ),
            Tone::Plain,
        ));
        lines.extend(
            diagnostic
                .help
                .as_ref()
                .map(|help| (format!("  = help: {help}"), Tone::Plain)),
        );
        return;
    }
    lines.extend(
        rendered
            .into_iter()
            .enumerate()
            .map(|(index, line)| (line, if index == 0 { tone } else { Tone::Plain })),
    );
}

fn books(app: &ConsoleApp) -> Vec<ConfigLine> {
    let mut lines = vec![("Books".to_owned(), Tone::Head)];
    if let Some(totals) = &app.totals {
        let balances = totals.credit.saturating_sub(totals.spent);
        lines.push((
            format!(
                "{}, {}, {}",
                format::many(totals.keys, "key"),
                format::entries(totals.entries),
                format::many(totals.holds, "open hold")
            ),
            Tone::Plain,
        ));
        let [paid, charged, balances] =
            [totals.credit, totals.spent, balances].map(format::exact_total);
        let [held, loss] = [totals.held, totals.loss].map(format::exact_total);
        let [exposure, cost] = [totals.exposure, totals.cost].map(format::exact_total);
        lines.push((format!("paid in {paid} · charged {charged}"), Tone::Plain));
        lines.push((format!("balances {balances} · held {held}"), Tone::Plain));
        lines.push((
            format!("operator's loss {loss} · exposure {exposure}"),
            Tone::Plain,
        ));
        lines.push((format!("cost at own prices {cost}"), Tone::Plain));
    }
    match &app.books {
        AllBooks::NotChecked => lines.push((
            "v recomputes every balance, charge, hold and chain".to_owned(),
            Tone::Faint,
        )),
        AllBooks::Running => lines.push(("checking every key …".to_owned(), Tone::Warn)),
        AllBooks::Failed(error) => lines.push((format!("not checked: {error}"), Tone::Bad)),
        AllBooks::Checked {
            report,
            took_ms,
            at,
        } => {
            let checked = format!(
                "{}, {}, {} checked at {} in {}",
                format::many(report.keys, "key"),
                format::entries(report.entries),
                format::many(report.holds, "hold"),
                format::time(*at),
                format::span(*took_ms)
            );
            let (word, tone) = if report.faults.is_empty() {
                ("✓ sound: ", Tone::Good)
            } else {
                ("✗ FAULTS: ", Tone::Bad)
            };
            lines.push((format!("{word}{checked}"), tone));
            for fault in &report.faults {
                lines.extend(
                    wrap(&sanitize::clean(fault), 74)
                        .into_iter()
                        .map(|line| (format!("  {line}"), Tone::Bad)),
                );
            }
        }
    }
    lines
}
