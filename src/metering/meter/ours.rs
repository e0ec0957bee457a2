//! What the meter takes an answer to have used where the provider has not counted all of it: our own counts, and how they join with
//! the provider's. Must not decide what is charged.

use farebox_ledger::Usage;

use super::{Local, Meter, estimate};
use crate::metering::local;

impl Meter {
    /// Our count by the fast estimate, until a tokenizer has counted.
    pub(super) fn estimated(&self) -> Local {
        Local {
            // The estimate is high: its median is a quarter over a tokenizer's count.
            input: (self.input_known).unwrap_or(self.start.estimated_input.saturating_mul(7) / 10),
            output: estimate::lower(self.shown),
        }
    }

    /// The provider's input, else ours; the larger of the two outputs, and what was not shown; at most what was allowed.
    pub(super) fn running(&self, local: Local) -> Usage {
        let ours = Usage {
            input: local.input,
            images: self.images,
            ..Usage::default()
        };
        let reported = self.report.usage;
        let mut usage = *self.report.prompt().unwrap_or(&Usage {
            output: reported.map_or(0, |usage| usage.output),
            reasoning: reported.map_or(0, |usage| usage.reasoning),
            ..ours
        });
        let missing = local.output.saturating_sub(usage.all_output());
        // The unused part of a prediction is at least what the answer lacks.
        let rejected = if reported.is_none() {
            self.start.predicted.saturating_sub(local.output)
        } else {
            0
        };
        usage.output = usage.output.saturating_add(missing);
        let room = self.start.output_limit.saturating_sub(usage.all_output());
        let beside = self.unshown(usage.all_output()).saturating_add(rejected);
        usage.output = usage.output.saturating_add(beside.min(room));
        usage
    }

    /// Our counts without the rounding in the customer's favour.
    pub(super) fn near(&self, local: Option<Local>) -> Local {
        match local {
            Some(Local { input, output }) => Local {
                input: local::unrounded(input),
                output: local::unrounded(output),
            },
            None => Local {
                input: self.input_known.map_or(
                    self.start.estimated_input.saturating_mul(4) / 5,
                    local::unrounded,
                ),
                output: estimate::lower(self.shown).midpoint(estimate::upper(self.shown)),
            },
        }
    }
}
