//! The results of the single attackers as a table in Markdown.

use crate::machine;

/// What the customer met in one of an attacker's three times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    pub(super) asked: usize,
    /// Requests and callbacks that were refused, or got no right answer.
    pub(super) unserved: usize,
    /// Milliseconds.
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// The part of both CPUs that neither the gateway nor this process used: 0 to 1.
    pub(super) others: f64,
}

/// Without the attacker, with it, and with a spinner in its place.
#[derive(Debug)]
pub(super) struct Times {
    pub(super) quiet: Time,
    pub(super) attacked: Time,
    pub(super) spun: Time,
}

impl Times {
    /// The largest p99 that keeps the promise.
    pub(super) fn bound(&self) -> f64 {
        (2.0 * self.quiet.p99).max(1.2 * self.spun.p99)
    }

    /// What breaks the promise.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.attacked.unserved > 0 {
            faults.push(format!("{} requests not served", self.attacked.unserved));
        }
        // Without an answer there is no p99, and nothing is within a bound.
        let (p99, bound) = (self.attacked.p99, self.bound());
        if p99.is_nan() || p99 > bound {
            faults.push(format!("p99 {p99:.2} ms, the bound is {bound:.2} ms"));
        }
        faults
    }
}

/// An attacker's name, with what was met or why nothing was.
pub(super) type Row = (String, Result<Times, String>);

const HEAD: &str = "\
| attacker | asked under it | not served | p50 ms: quiet | attacked | spinner | p99 ms: quiet | attacked | spinner | bound | others on the CPUs | verdict |
|---|---|---|---|---|---|---|---|---|---|---|---|
";

/// All rows so far, and what they were measured on.
pub(super) fn markdown(rows: &[Row]) -> String {
    let mut text = HEAD.to_owned();
    for (name, met) in rows {
        text.push_str(&match met {
            Ok(times) => row(name, times),
            Err(fault) => format!("| {name} | | | | | | | | | | | not measured: {fault} |\n"),
        });
    }
    text.push('\n');
    let commit = std::env::var("BENCH_COMMIT").unwrap_or_default();
    for fact in machine::facts().iter().chain([&commit]) {
        if !fact.is_empty() {
            text.push_str(&format!("- {fact}\n"));
        }
    }
    text
}

fn row(name: &str, times: &Times) -> String {
    let Times {
        quiet,
        attacked,
        spun,
    } = times;
    let others = quiet.others.max(attacked.others).max(spun.others);
    let verdict = if times.faults().is_empty() {
        "kept"
    } else {
        "broken"
    };
    format!(
        "| {name} | {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.0} % | {verdict} |\n",
        attacked.asked,
        attacked.unserved,
        quiet.p50,
        attacked.p50,
        spun.p50,
        quiet.p99,
        attacked.p99,
        spun.p99,
        times.bound(),
        others * 100.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(p99: f64) -> Time {
        Time {
            asked: 100,
            unserved: 0,
            p50: 1.0,
            p99,
            others: 0.01,
        }
    }

    fn times(attacked: f64) -> Times {
        Times {
            quiet: time(4.0),
            attacked: time(attacked),
            spun: time(6.0),
        }
    }

    #[test]
    fn twice_the_quiet_figure_or_a_fifth_more_than_beside_a_spinner_is_allowed() {
        // 2 × 4 is more than 1.2 × 6.
        assert!(times(8.0).faults().is_empty());
        assert_eq!(times(8.1).faults(), ["p99 8.10 ms, the bound is 8.00 ms"]);
        assert_eq!(times(f64::NAN).faults().len(), 1);
        let quiet = Times {
            spun: time(1.0),
            ..times(8.0)
        };
        assert!(quiet.faults().is_empty());
    }

    #[test]
    fn one_request_that_is_not_served_breaks_the_promise_and_the_table_says_so() {
        let mut met = times(5.0);
        met.attacked.unserved = 1;
        assert_eq!(met.faults(), ["1 requests not served"]);
        let rows = [
            ("gzip".to_owned(), Ok(met)),
            ("bodies".to_owned(), Ok(times(5.0))),
            ("forms-1".to_owned(), Err("no nginx".to_owned())),
        ];
        let text = markdown(&rows);
        let verdicts: Vec<&str> = text
            .lines()
            .skip(2)
            .take(3)
            .filter_map(|line| line.split('|').nth(12))
            .map(str::trim)
            .collect();
        assert_eq!(verdicts, ["broken", "kept", "not measured: no nginx"]);
    }
}
