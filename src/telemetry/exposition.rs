//! Writes the Prometheus text format. Pure: names, labels and values in, text out.
//!
//! Numbers are written from integers, so that durations stay exact; money comes as the exact text of `amount::exact`.

use std::fmt::{Display, Write};
use std::time::Duration;

/// A text that grows metric by metric.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
    name: &'static str,
}

/// Label names and values of one sample.
type Labels<'a> = &'a [(&'a str, &'a str)];

impl Exposition {
    /// Begins a metric; the samples that follow belong to it. It is a counter if its name ends in `_total`, else a gauge.
    pub fn metric(&mut self, name: &'static str, help: &str) -> &mut Self {
        let counter = name.ends_with("_total");
        self.begin(name, if counter { "counter" } else { "gauge" }, help)
    }

    /// Begins a metric of histograms.
    pub fn histograms(&mut self, name: &'static str, help: &str) -> &mut Self {
        self.begin(name, "histogram", help)
    }

    /// A metric of one sample without labels.
    pub fn one(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.metric(name, help).sample(&[], value);
    }

    fn begin(&mut self, name: &'static str, kind: &str, help: &str) -> &mut Self {
        self.name = name;
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        self
    }

    /// Adds a sample.
    pub fn sample(&mut self, labels: Labels<'_>, value: impl Display) -> &mut Self {
        self.line("", labels, None, value);
        self
    }

    /// Adds a histogram from one count per bound and one for everything above; each count covers only its own range.
    pub fn histogram(
        &mut self,
        labels: Labels<'_>,
        bounds: &[Duration],
        counts: &[u64],
        sum: Duration,
    ) -> &mut Self {
        let mut below = 0_u64;
        for (at, count) in counts.iter().enumerate() {
            below = below.saturating_add(*count);
            let bound = bounds
                .get(at)
                .map_or_else(|| "+Inf".to_owned(), |bound| seconds(*bound));
            self.line("_bucket", labels, Some(&bound), below);
        }
        self.line("_sum", labels, None, seconds(sum));
        self.line("_count", labels, None, below);
        self
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, bound: Option<&str>, value: impl Display) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        let mut open = '{';
        for (name, value) in labels
            .iter()
            .copied()
            .chain(bound.map(|bound| ("le", bound)))
        {
            self.text.push(open);
            self.text.push_str(name);
            self.text.push_str("=\"");
            escape(&mut self.text, value);
            self.text.push('"');
            open = ',';
        }
        if open == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    /// The whole text.
    #[must_use]
    pub fn finish(self) -> String {
        self.text
    }
}

fn escape(out: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}

/// A duration in seconds, exact to the microsecond, without trailing zeros.
pub fn seconds(duration: Duration) -> String {
    let text = format!("{}.{:06}", duration.as_secs(), duration.subsec_micros());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_prometheus_reads() {
        let mut text = Exposition::default();
        text.metric("a_total", "Things.")
            .sample(&[], 3)
            .sample(&[("slug", "x\"y\\z\n"), ("family", "chat")], 4);
        let bounds = [Duration::from_millis(5), Duration::from_secs(1)];
        text.histograms("b_seconds", "Waits.").histogram(
            &[("f", "g")],
            &bounds,
            &[1, 2, 3],
            Duration::from_millis(2500),
        );
        assert_eq!(
            text.finish(),
            "# HELP a_total Things.\n# TYPE a_total counter\na_total 3\na_total{slug=\"x\\\"y\\\\z\\n\",family=\"chat\"} 4\n\
             # HELP b_seconds Waits.\n# TYPE b_seconds histogram\n\
             b_seconds_bucket{f=\"g\",le=\"0.005\"} 1\nb_seconds_bucket{f=\"g\",le=\"1\"} 3\nb_seconds_bucket{f=\"g\",le=\"+Inf\"} 6\n\
             b_seconds_sum{f=\"g\"} 2.5\nb_seconds_count{f=\"g\"} 6\n"
        );
    }

    #[test]
    fn times_are_exact() {
        assert_eq!(seconds(Duration::from_micros(100)), "0.0001");
        assert_eq!(seconds(Duration::from_secs(120)), "120");
    }
}
