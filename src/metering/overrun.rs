//! What is charged of an answer that was allowed to be longer than the customer declared.
//!
//! A family has a smallest limit, and its targets are sent no smaller one. What lies beyond the declared limit is not sold: the operator
//! owes it to the provider.

use super::{Counted, price};

impl Counted {
    /// Charges at most so many tokens of output: reasoning is given away first, because nobody reads it.
    #[must_use]
    pub fn with_output_at_most(mut self, most: u64) -> Self {
        let made = self.usage.all_output();
        let mut given = made.saturating_sub(most);
        for (what, class) in [
            ("reasoning", &mut self.usage.reasoning),
            ("output", &mut self.usage.output),
        ] {
            let taken = given.min(*class);
            *class = class.saturating_sub(taken);
            given = given.saturating_sub(taken);
            price::take(&mut self.lines, what, taken);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use farebox_ledger::{Amount, BillLine, Evidence, Usage};

    use super::*;

    #[test]
    fn what_exceeds_the_declared_limit_is_neither_counted_nor_priced() {
        let line = |what: &'static str, count, rate| BillLine {
            what: what.into(),
            count,
            rate: Amount::from_picos(rate),
            class: None,
        };
        let counted = |output, reasoning| Counted {
            usage: Usage {
                input: 9,
                output,
                reasoning,
                ..Usage::default()
            },
            lines: [
                line("input", 9, 3),
                line("output", output, 15),
                line("reasoning", reasoning, 20),
            ]
            .into_iter()
            .filter(|line| line.count > 0)
            .collect(),
            evidence: Some(Evidence::Provider),
            owed: None,
        };
        for (output, reasoning, kept) in [
            (16, 0, (4, 0)),
            (2, 14, (2, 2)),
            (0, 16, (0, 4)),
            (3, 1, (3, 1)),
            (0, 0, (0, 0)),
        ] {
            let sold = counted(output, reasoning).with_output_at_most(4);
            assert_eq!(sold, counted(kept.0, kept.1), "{output} and {reasoning}");
        }
    }
}
