//! The results as Markdown: the aims, every figure, and the machine.

use std::fmt::Write;

use crate::answers::BenchFamily;
use crate::lanes::{Figure, LoadLane};
use crate::machine;
use crate::rounds::{Bench, median};
use crate::subjects::Subject;

/// What a figure of Farebox is compared with.
#[derive(Debug, Clone, Copy)]
enum ComparedWith {
    Subject(Subject),
    /// How much more it is than another subject's.
    Above(Subject),
    /// Nothing: the figure itself.
    Itself,
}

/// One row of the table of aims.
struct Aim {
    what: &'static str,
    lane: LoadLane,
    figure: Figure,
    /// The variant of Farebox that is measured, if only one is.
    own: Option<Subject>,
    against: ComparedWith,
    /// What it must not exceed.
    aim: f64,
    /// The figure itself must be below this, too.
    below: Option<f64>,
    unit: &'static str,
}

const fn ratio(
    what: &'static str,
    lane: LoadLane,
    figure: Figure,
    against: Subject,
    aim: f64,
) -> Aim {
    Aim {
        what,
        lane,
        figure,
        own: None,
        against: ComparedWith::Subject(against),
        aim,
        below: None,
        unit: "",
    }
}

const AIMS: [Aim; 15] = {
    use Figure::{AddedP50, AddedP99, CpuPerChunk, CpuPerRequest, KibPerStream, P99, PaidMs};
    use LoadLane::{Answer, Batch, Cold, Large, Long, Open, Paced, Rate, Small};
    use Subject::{Bare, Direct, Farebox, Lasting, Logging, Nginx, Onwards, TwoWorkers};
    [
        ratio(
            "CPU, 500 requests/s / onwards",
            Rate,
            CpuPerRequest,
            Onwards,
            1.1,
        ),
        ratio(
            "added p50 at 500/s / nginx's added",
            Rate,
            AddedP50,
            Nginx,
            1.6,
        ),
        ratio(
            "added p99 at 500/s / nginx's added",
            Rate,
            AddedP99,
            Nginx,
            2.0,
        ),
        Aim {
            own: Some(Logging),
            ..ratio(
                "CPU, small request with its log / without",
                Small,
                CpuPerRequest,
                Farebox,
                1.06,
            )
        },
        ratio(
            "CPU, small request / nginx",
            Small,
            CpuPerRequest,
            Nginx,
            4.0,
        ),
        ratio(
            "CPU, small request / onwards without accounting",
            Small,
            CpuPerRequest,
            Onwards,
            1.0,
        ),
        Aim {
            own: Some(Lasting),
            ..ratio(
                "CPU, small request in 30 s / in 8 s",
                Long,
                CpuPerRequest,
                Farebox,
                1.03,
            )
        },
        ratio(
            "CPU, 100 KiB request / nginx",
            Large,
            CpuPerRequest,
            Nginx,
            2.5,
        ),
        ratio(
            "CPU, 100 KiB answer / nginx",
            Answer,
            CpuPerRequest,
            Nginx,
            1.1,
        ),
        ratio(
            "CPU, 2,048 texts in 8 MiB / nginx",
            Batch,
            CpuPerRequest,
            Nginx,
            3.5,
        ),
        ratio("CPU per SSE chunk / nginx", Paced, CpuPerChunk, Nginx, 1.4),
        Aim {
            below: Some(5_000.0),
            ..ratio(
                "chunk delay p99 / nginx, and under 5 ms",
                Paced,
                P99,
                Nginx,
                1.5,
            )
        },
        Aim {
            unit: " KiB",
            against: ComparedWith::Above(Bare),
            ..ratio(
                "KiB per open stream above bare salvo+reqwest",
                Open,
                KibPerStream,
                Bare,
                6.0,
            )
        },
        Aim {
            own: Some(TwoWorkers),
            ..ratio(
                "CPU, small request with two workers / with one",
                Small,
                CpuPerRequest,
                Farebox,
                1.18,
            )
        },
        Aim {
            unit: " ms",
            against: ComparedWith::Itself,
            ..ratio("cold start with 1,000,000 keys", Cold, PaidMs, Direct, 20.0)
        },
    ]
};

impl Aim {
    /// What a variant of Farebox came to in the median round, and whether it also stayed below the fixed bound.
    fn measured(
        &self,
        bench: &Bench,
        family: BenchFamily,
        variant: Subject,
    ) -> Option<(f64, bool)> {
        let rounds = |subject| bench.values(self.lane, family, subject, self.figure);
        let own = rounds(self.own.unwrap_or(variant));
        let value = match self.against {
            // On a noisy machine, nothing or less may seem to be added.
            ComparedWith::Subject(other) => paired(&own, &rounds(other), |own, base| {
                (base > 0.0).then(|| own / base)
            }),
            ComparedWith::Above(other) => {
                paired(&own, &rounds(other), |own, base| Some(own - base))
            }
            ComparedWith::Itself => median(own.clone()),
        };
        let below = self
            .below
            .is_none_or(|bound| median(own).is_some_and(|own| own < bound));
        Some((value?, below))
    }

    fn row(&self, bench: &Bench) -> String {
        // A call has no second family beside it.
        let families = match *self.lane.families() {
            [only] => [Some(only), None],
            _ => BenchFamily::CONVERSATIONS.map(Some),
        };
        let all = self.own.is_none();
        let of = |variant| {
            families.map(|family| {
                let is_measured = all || variant == Subject::Farebox;
                family
                    .filter(|_| is_measured)
                    .and_then(|family| self.measured(bench, family, variant))
            })
        };
        let variants = [Subject::Farebox, Subject::Profiled, Subject::Strict].map(of);
        let cells = variants.iter().flatten().map(|value| match value {
            None => "–".to_owned(),
            Some((value, _)) => {
                let digits = if *value < 20.0 { 2 } else { 0 };
                format!("{value:.digits$}{}", self.unit)
            }
        });
        let cells: Vec<String> = cells.collect();
        let [plain, profiled, _] = variants;
        let counts = if profiled.iter().any(Option::is_some) {
            profiled
        } else {
            plain
        };
        let met = |(value, below): &(f64, bool)| *below && *value <= self.aim;
        let counts: Vec<_> = counts.iter().flatten().collect();
        let verdict = match counts.as_slice() {
            [] => "not measured",
            some if some.iter().all(|one| met(one)) => "aim",
            _ => "**missed**",
        };
        let (what, aim, unit) = (self.what, self.aim, self.unit);
        format!(
            "| {what} | ≤ {aim}{unit} | {} | {verdict} |",
            cells.join(" | ")
        )
    }
}

/// The median of what each round makes of its two figures: what disturbed one of them disturbed the other.
fn paired(own: &[f64], base: &[f64], compare: impl Fn(f64, f64) -> Option<f64>) -> Option<f64> {
    let pairs = own.iter().zip(base);
    median(
        pairs
            .filter_map(|(own, base)| compare(*own, *base))
            .collect(),
    )
}

/// The whole report.
pub(crate) fn markdown(bench: &Bench, versions: &[String]) -> String {
    let mut text = String::new();
    for why in &bench.void {
        let _ = writeln!(text, "**VOID**: {why}\n");
    }
    for again in &bench.late {
        let _ = writeln!(text, "{again}; the round was taken again.\n");
    }
    if bench.quick {
        let _ = writeln!(
            text,
            "Short rounds (`--quick`): for development, not for comparison.\n"
        );
    }
    let _ = writeln!(
        text,
        "| what (same run, accounting on) | aim | chat | messages | with a profile, chat | messages | strict, chat | messages | verdict |"
    );
    let _ = writeln!(text, "|---|---|---|---|---|---|---|---|---|");
    for aim in &AIMS {
        let _ = writeln!(text, "{}", aim.row(bench));
    }
    let _ = writeln!(
        text,
        "\nThe verdict is that of the default mode, with a profile where that is measured, of the worse family. `cargo bench -p farebox-ledger` has the ledger's own rows."
    );
    if bench.governed > 0 {
        books(&mut text, bench);
    }
    for lane in LoadLane::ALL {
        for family in lane.families() {
            table(&mut text, bench, lane, *family);
        }
    }
    calls(&mut text, bench);
    let _ = writeln!(text, "\n### Machine and versions\n");
    let others = bench
        .rounds
        .iter()
        .map(|round| round.shares.others)
        .fold(0.0, f64::max);
    for fact in machine::facts().iter().chain(versions) {
        let _ = writeln!(text, "- {fact}");
    }
    let _ = writeln!(
        text,
        "- at most {:.0} % of both CPUs went to anything else in a window",
        others * 100.0
    );
    text
}

/// What was compared; a round whose books were not exact ends the run, and is not among these.
fn books(text: &mut String, bench: &Bench) {
    let (answers, usd) = (bench.governed, bench.paid);
    let (whole, picos) = (usd / 1_000_000_000_000, usd % 1_000_000_000_000);
    let _ = writeln!(
        text,
        "\nBooks: {answers} answers of Farebox for {whole}.{picos:012} USD. After every round of these the ledger was equal to what the upstream \
         served, in sum and for each key, to the last picodollar, without an open hold, and `farebox ledger verify` found no fault."
    );
}

/// System calls per request by name, those of at least one in twenty requests.
fn calls(text: &mut String, bench: &Bench) {
    for counted in &bench.calls {
        let frequent = counted
            .per_request
            .iter()
            .filter(|(_, calls)| *calls >= 0.05);
        let named: Vec<String> = frequent
            .map(|(name, calls)| format!("{name} {calls:.2}"))
            .collect();
        let _ = writeln!(
            text,
            "\nCalls of {}, {}: {}.",
            counted.subject.name(),
            counted.family.name(),
            named.join(", ")
        );
    }
}

/// Every figure of one lane: the median round, and all of them.
fn table(text: &mut String, bench: &Bench, lane: LoadLane, family: BenchFamily) {
    let rounds: Vec<_> = bench
        .rounds
        .iter()
        .filter(|round| (round.lane, round.family) == (lane, family))
        .collect();
    if rounds.is_empty() {
        return;
    }
    let titles: Vec<&str> = lane.figures().iter().map(|figure| figure.title()).collect();
    let _ = writeln!(text, "\n### {} ({})\n", lane.title(), family.name());
    let _ = writeln!(
        text,
        "| subject | {} | idle: its CPU, ours |",
        titles.join(" | ")
    );
    let _ = writeln!(text, "|---|{}---|", "---|".repeat(titles.len()));
    for subject in lane.subjects() {
        let of_subject: Vec<_> = rounds
            .iter()
            .filter(|round| round.subject == *subject)
            .collect();
        if of_subject.is_empty() {
            let why = if subject.path(family).is_none() {
                "does not speak it"
            } else {
                "not installed"
            };
            let _ = writeln!(
                text,
                "| {} | {why} |{}",
                subject.name(),
                " |".repeat(titles.len())
            );
            continue;
        }
        let cells = lane.figures().iter().map(|figure| {
            let values = bench.values(lane, family, *subject, *figure);
            let all: Vec<String> = values.iter().map(|value| format!("{value:.1}")).collect();
            median(values).map_or_else(
                || "–".to_owned(),
                |median| format!("**{median:.1}** ({})", all.join(", ")),
            )
        });
        let cells: Vec<String> = cells.collect();
        let idle = |share: fn(&machine::Shares) -> f64| {
            100.0
                * of_subject
                    .iter()
                    .map(|round| share(&round.shares))
                    .sum::<f64>()
                / of_subject.len() as f64
        };
        let (its, ours) = (
            idle(|shares| shares.subjects_idle),
            idle(|shares| shares.our_idle),
        );
        let _ = writeln!(
            text,
            "| {} | {} | {its:.0} %, {ours:.0} % |",
            subject.name(),
            cells.join(" | ")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_one_round_and_the_middle_one_counts() {
        let (own, base) = ([60.0, 90.0, 70.0], [12.0, 30.0, 10.0]);
        let ratio = paired(&own, &base, |own, base| Some(own / base));
        assert_eq!(
            ratio,
            Some(5.0),
            "of 5, 3 and 7; the best rounds would make 6"
        );
        assert_eq!(paired(&own, &[], |own, _| Some(own)), None);
    }
}
