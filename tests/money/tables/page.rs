//! Judges the rows, and writes them to `docs/results/money.md`.
//!
//! `FAREBOX_FULL=1 FAREBOX_BLESS=1 cargo test --test blackbox -- money::tables::page::the_page --nocapture` makes all of it.
#![expect(clippy::print_stdout, reason = "figures are for people, too")]

use std::fmt::Write as _;
use std::time::Instant;

use super::crowd::{Figures, figures, figures_at};
use super::foreign::{self, Other};
use super::scenario::{Outcome, play};
use super::{attacks, people};
use crate::support::skip::list;
use crate::support::{HOME, sized};

const PAGE: &str = "docs/results/money.md";
const MARKS: [(&str, &str); 3] = [
    (
        "<!-- attacks: written by money::tables -->\n",
        "<!-- end of attacks -->",
    ),
    (
        "<!-- people: written by money::tables -->\n",
        "<!-- end of people -->",
    ),
    (
        "<!-- others: written by money::tables -->\n",
        "<!-- end of others -->",
    ),
];

/// The smallest, the middle and the largest.
fn spread(values: &[f64], digits: usize) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let show =
        |value: Option<&f64>| value.map_or("–".to_owned(), |value| format!("{value:.digits$}"));
    let middle = sorted.get(sorted.len() / 2);
    format!(
        "{}, {}, {}",
        show(sorted.first()),
        show(middle),
        show(sorted.last())
    )
}

/// What came of a row's attacks, over all seeds. `None` where something for it is not installed.
async fn played(row: &attacks::Row) -> Option<Vec<Outcome>> {
    let mut all = Vec::new();
    for attack in (row.attacks)() {
        for seed in 1..=sized(1, 4) {
            let outcome = play(&attack, seed).await?;
            println!(
                "{}: {}: {:.2} billed for {:.2}, {} of {} served, x {:.2}, others {:?}",
                row.name,
                attack.name,
                outcome.billed as f64 / 1e12,
                outcome.charged as f64 / 1e12,
                outcome.served,
                outcome.sent,
                outcome.times(),
                outcome.others
            );
            all.push(outcome);
        }
    }
    Some(all)
}

/// Runs a row of attacks: none gets more than the rule says.
pub(super) async fn judge(name: &str) {
    let row = attacks::ROWS.iter().find(|row| row.name == name).unwrap();
    let begun = Instant::now();
    let Some(all) = played(row).await else { return };
    println!("{name}: {:.1?}", begun.elapsed());
    let worst = all.iter().map(Outcome::times).fold(0.0, f64::max);
    assert!(worst <= row.now, "{name}: {worst:.2}, at most {}", row.now);
    let billed = all.iter().map(|outcome| outcome.billed_in_all);
    assert!(
        billed.sum::<i64>() > 0,
        "{name}: the provider was not reached"
    );
}

/// Runs a row of people: their figures are as the rule says.
pub(super) async fn judge_people(name: &str) {
    let row = people::ROWS.iter().find(|row| row.name == name).unwrap();
    let (mut faults, begun) = (Vec::new(), Instant::now());
    for figure in row.figures {
        let people = (figure.of)();
        let Some(figures) = figures(&people).await else {
            return;
        };
        assert!(figures.served > 0, "{}: nobody was served", people.name);
        if !figure.what.holds(&figures, figure.bound) {
            let values = figure.what.of(&figures);
            faults.push(format!(
                "{}: {:?} {values:?}, bound {}",
                people.name, figure.what, figure.bound
            ));
        }
    }
    println!("{name}: {:.1?}", begun.elapsed());
    assert!(faults.is_empty(), "{name}: {faults:#?}");
}

async fn table_of_attacks() -> Option<String> {
    let mut table = "| attack | before | at most | billed ÷ (charged + one context): min, median, max | billed, USD | charged, USD |\n\
                     |---|---|---|---|---|---|\n"
        .to_owned();
    for row in attacks::ROWS {
        let all = played(row).await?;
        let of = |value: fn(&Outcome) -> f64| all.iter().map(value).collect::<Vec<f64>>();
        writeln!(
            table,
            "| `{}` | {} | {} | {} | {} | {} |",
            row.name,
            row.before,
            row.now,
            spread(&of(Outcome::times), 2),
            spread(&of(|outcome| outcome.billed as f64 / 1e12), 2),
            spread(&of(|outcome| outcome.charged as f64 / 1e12), 2)
        )
        .unwrap();
    }
    Some(table)
}

async fn table_of_people() -> Option<String> {
    let mut table = "| people | before | figure | bound | min, median, max | requests | wait, p95 |\n|---|---|---|---|---|---|---|\n".to_owned();
    for row in people::ROWS {
        for figure in row.figures {
            let people = (figure.of)();
            let figures = figures(&people).await?;
            let values: Vec<f64> = figure
                .what
                .of(&figures)
                .iter()
                .map(|value| *value as f64)
                .collect();
            writeln!(
                table,
                "| `{}`: {} | {} | {:?} | {} | {} | {} | {:.1} s |",
                row.name,
                people.name,
                row.before,
                figure.what,
                figure.bound,
                spread(&values, 0),
                figures.requests,
                figures.waited
            )
            .unwrap();
        }
    }
    Some(table)
}

/// Ten agents on $5 here and elsewhere, where the others are installed.
async fn table_of_others() -> Option<String> {
    let people = people::ten_on_5();
    let mut table = "| gateway | part of the purse billed, ‰: min, median, max | beyond the purse, ‰ | refused falsely | cut too early | served |\n\
                     |---|---|---|---|---|---|\n"
        .to_owned();
    let mut row = |name: &str, figures: &Figures| {
        let floats = |values: &[i64]| {
            values
                .iter()
                .map(|value| *value as f64)
                .collect::<Vec<f64>>()
        };
        writeln!(
            table,
            "| {name} | {} | {} | {} | {} | {} of {} |",
            spread(&floats(&figures.used), 0),
            spread(&floats(&figures.overshoot), 0),
            figures.refused_falsely,
            figures.cut_too_early,
            figures.served,
            figures.requests
        )
        .unwrap();
    };
    row("Farebox", &*figures(&people).await?);
    for (name, other) in [
        ("LiteLLM's proxy", Other::LiteLlm),
        ("hardcap", Other::Hardcap),
    ] {
        row(name, &figures_at(&people, other).await?);
    }
    Some(table)
}

/// The same agents at other gateways, where `FAREBOX_OTHERS` says that they are installed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_agents_at_other_gateways() {
    if foreign::installed().is_none() {
        return list(
            "ten agents at LiteLLM and hardcap: FAREBOX_OTHERS names no Python environment with them",
        );
    }
    let table = table_of_others().await.unwrap();
    println!("{table}");
    assert_eq!(table.lines().count(), 5);
}

/// Every row is on the page; with `FAREBOX_BLESS=1` at full size its figures are written, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_has_every_row() {
    let path = format!("{HOME}/{PAGE}");
    let mut page = std::fs::read_to_string(&path).unwrap();
    if std::env::var_os("FAREBOX_BLESS").is_some() && sized(0, 1) == 1 {
        let (Some(attacks), Some(people)) = (table_of_attacks().await, table_of_people().await)
        else {
            return;
        };
        let tables = [Some(attacks), Some(people), table_of_others().await];
        for ((begin, end), table) in MARKS.into_iter().zip(tables) {
            let Some(table) = table else { continue };
            let (before, rest) = page.split_once(begin).expect("the first mark");
            let (_, after) = rest.split_once(end).expect("the second mark");
            page = format!("{before}{begin}{table}{end}{after}");
        }
        std::fs::write(&path, &page).unwrap();
    }
    let attacks = attacks::ROWS.iter().map(|row| row.name);
    let missing: Vec<&str> = attacks
        .chain(people::ROWS.iter().map(|row| row.name))
        .filter(|name| !page.contains(name))
        .collect();
    assert!(
        missing.is_empty(),
        "{PAGE} lacks {missing:?}; FAREBOX_FULL=1 FAREBOX_BLESS=1 writes it"
    );
}
