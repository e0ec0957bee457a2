//! Output that a stream may not show: which requests may get some, at which targets, and at what pace.

use farebox_protocol::Inspection;

use super::calibration::Calibrations;
use crate::config::{Capability, Model};
use crate::metering::pace::Pace;

impl Calibrations {
    /// How fast a target produces what its streams do not show: as the operator says, or as enough customers have observed.
    pub(crate) fn hidden_pace(&self, model: &Model, target: &str) -> Option<Pace> {
        let limits = &model.limits;
        match limits.hidden_speed {
            Some(speed) => Some(Pace::named(speed)),
            None => self.pace(target).map(|pace| pace.within(limits.speed)),
        }
    }

    /// Whether a target's answer to this request may have output that a stream does not show. A reasoning model reasons unless the
    /// request turned that off and the target's counts have shown that it complies.
    pub(crate) fn may_hide(&self, model: &Model, seen: &Inspection, target: &str) -> bool {
        // What a customer turned off is believed only of targets that have been seen to obey: others bill reasoning all the same.
        let complies = seen.reasoning_off && self.obeys(target);
        seen.hidden_reasoning || (model.can(Capability::Reasoning) && !complies)
    }

    /// The same, at a pace that nobody knows: only the limit bounds what the key may come to owe.
    pub(crate) fn is_unseen(&self, model: &Model, seen: &Inspection, target: &str) -> bool {
        self.may_hide(model, seen, target) && self.hidden_pace(model, target).is_none()
    }
}
