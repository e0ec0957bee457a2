//! The Config screen: what runs, every mistake in the files with its caret, the difference to the files, and the books.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::format;
use super::pen::{Pen, wrap};
use super::theme::Theme;
use crate::admin::{Change, Diagnostic, Status};
use crate::app::{App, Books};
use crate::sanitize;

/// Draws it.
pub(super) fn draw(app: &App, pen: &mut Pen<'_>, area: Rect) {
    let title = match &app.gateway.status {
        Some(status) => format!(
            "Config · running {}: generation {}, catalog {}, routes {}",
            format::clock_of(&status.loaded_at),
            status.generation,
            hash(&status.catalog_hash),
            hash(&status.routes_hash)
        ),
        None => "Config".to_owned(),
    };
    let inner = pen.frame(area, &title);
    let lines = lines(app, Style::new(), pen.theme);
    let height = usize::from(inner.height);
    let first = app.config.selected.min(lines.len().saturating_sub(height));
    for (y, (text, style)) in lines.iter().skip(first).take(height).enumerate() {
        pen.text(inner, 0, u16::try_from(y).unwrap_or(u16::MAX), text, *style);
    }
    if lines.len() > height {
        let place = format!(" {}–{} of {} ", first + 1, (first + height).min(lines.len()), lines.len());
        pen.end(
            Rect { y: area.bottom().saturating_sub(1), height: 1, width: area.width - 2, ..area },
            0,
            &place,
            pen.theme.faint(),
        );
    }
}

fn hash(text: &str) -> String {
    sanitize::cut(text, 7)
}

/// All lines of the screen.
pub(super) fn lines(app: &App, plain: Style, theme: Theme) -> Vec<(String, Style)> {
    let mut lines = books(app, plain, theme);
    lines.push((String::new(), plain));
    let Some(status) = &app.gateway.status else {
        lines.push((format!("no gateway at {}; start it or pass --admin", app.options.admin), theme.warn()));
        lines.push((
            "its configuration and diagnostics are shown here; farebox check reads the files without it".to_owned(),
            theme.faint(),
        ));
        return lines;
    };
    configuration(status, plain, theme, &mut lines);
    for diagnostic in &status.diagnostics {
        lines.push((String::new(), plain));
        report(diagnostic, plain, theme, &mut lines);
    }
    lines
}

fn configuration(status: &Status, plain: Style, theme: Theme, lines: &mut Vec<(String, Style)>) {
    let of = |severity: &str| status.diagnostics.iter().filter(|found| found.severity == severity).count();
    let (errors, warnings) = (of("error"), of("warning"));
    if status.state == "rejected" {
        let at = status.rejected_at.as_deref().map(format::clock_of).unwrap_or_default();
        lines.push((format!("NEW FILES REJECTED {at} — the running version stays in force"), theme.bad()));
    } else {
        lines.push(("The files run as they are.".to_owned(), theme.good()));
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
    lines.push((counts, plain));
    let p99 = status
        .ledger
        .commit_p99_us
        .map_or_else(|| "—".to_owned(), |micros| format!("{}.{} ms", micros / 1000, micros % 1000 / 100));
    lines.push((
        format!(
            "gateway {} since {} · ledger queue {}, commit p99 {p99}",
            status.version,
            format::clock_of(&status.started_at),
            status.ledger.queue
        ),
        plain,
    ));
    for (title, changes) in [("Files against what runs", &status.changes), ("What the last reload changed", &status.last_changes)]
    {
        if !changes.is_empty() {
            lines.push((String::new(), plain));
            lines.push((title.to_owned(), theme.head()));
            lines.extend(changes.iter().map(|change| difference(change, theme)));
        }
    }
}

fn difference(change: &Change, theme: Theme) -> (String, Style) {
    let values = match (&change.old, &change.new) {
        (Some(old), Some(new)) => format!(" {old} → {new}"),
        (Some(old), None) => format!(" {old} → nothing"),
        (None, Some(new)) => format!(" nothing → {new}"),
        (None, None) => String::new(),
    };
    let (sign, style) = match change.kind.as_str() {
        "added" => ("+", theme.good()),
        "removed" => ("−", theme.bad()),
        _ => ("~", theme.warn()),
    };
    (format!("  {sign} {} {}{values}", change.slug, change.what), style)
}

fn report(diagnostic: &Diagnostic, plain: Style, theme: Theme, lines: &mut Vec<(String, Style)>) {
    let style = theme.state(&diagnostic.severity);
    let rendered = sanitize::lines(&diagnostic.rendered);
    if rendered.is_empty() {
        lines.push((format!("{}[{}]: {}", diagnostic.severity, diagnostic.code, diagnostic.message), style));
        lines.push((format!("  --> {}:{}:{}", diagnostic.file, diagnostic.line, diagnostic.column), plain));
        lines.extend(diagnostic.help.as_ref().map(|help| (format!("  = help: {help}"), plain)));
        return;
    }
    lines.extend(rendered.into_iter().enumerate().map(|(index, line)| (line, if index == 0 { style } else { plain })));
}

fn books(app: &App, plain: Style, theme: Theme) -> Vec<(String, Style)> {
    let mut lines = vec![("Books".to_owned(), theme.head())];
    if let Some(totals) = &app.totals {
        let balances = totals.credit.saturating_sub(totals.spent);
        lines.push((
            format!(
                "{} keys, {} entries, {} open holds",
                format::count(totals.keys),
                format::count(totals.entries),
                format::count(totals.holds)
            ),
            plain,
        ));
        lines.push((
            format!(
                "paid in {} − charged {} = balances {}",
                format::total(totals.credit),
                format::total(totals.spent),
                format::total(balances)
            ),
            plain,
        ));
        lines.push((format!("held {} · operator's loss {}", format::total(totals.held), format::total(totals.loss)), plain));
    }
    match &app.books {
        Books::NotChecked => lines.push(("v recomputes every balance, charge, hold and chain".to_owned(), theme.faint())),
        Books::Running => lines.push(("checking every key …".to_owned(), theme.warn())),
        Books::Failed(error) => lines.push((format!("not checked: {error}"), theme.bad())),
        Books::Checked { report, took_ms, at } => {
            let checked = format!(
                "{} keys, {} entries, {} holds checked at {} in {}",
                format::count(report.keys),
                format::count(report.entries),
                format::count(report.holds),
                format::time(*at),
                format::span(*took_ms)
            );
            let (word, style) =
                if report.faults.is_empty() { ("✓ sound: ", theme.good()) } else { ("✗ FAULTS: ", theme.bad()) };
            lines.push((format!("{word}{checked}"), style));
            for fault in &report.faults {
                lines.extend(wrap(&sanitize::clean(fault), 74).into_iter().map(|line| (format!("  {line}"), theme.bad())));
            }
        }
    }
    lines
}
