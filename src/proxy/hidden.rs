//! Output that a stream may not show: which requests may get some, at which targets, and at what pace.

use farebox_protocol::Inspection;

use super::Proxy;
use super::admitted::Admitted;
use crate::config::{Capability, Model};
use crate::metering::pace::{Hiding, Pace};

impl Proxy {
    /// How fast a target produces what its streams do not show: as the operator says, or as enough customers have observed.
    pub(super) fn pace(&self, model: &Model, target: &str) -> Option<Pace> {
        let limits = &model.limits;
        match limits.hidden_speed {
            Some(speed) => Some(Pace::named(speed)),
            None => self
                .calibrations
                .pace(target)
                .map(|pace| pace.within(limits.speed)),
        }
    }

    /// Whether a target's answer to this request may have output that a stream does not show. A reasoning model reasons unless the
    /// request turned that off and the target's counts have shown that it complies.
    pub(super) fn may_hide(&self, model: &Model, seen: &Inspection, target: &str) -> bool {
        let complies = seen.reasoning_off && self.calibrations.obeys(target);
        seen.hidden_reasoning || (model.can(Capability::Reasoning) && !complies)
    }

    /// The same, at a pace that nobody knows: only the limit bounds what the key may come to owe.
    pub(super) fn is_unseen(&self, model: &Model, seen: &Inspection, target: &str) -> bool {
        self.may_hide(model, seen, target) && self.pace(model, target).is_none()
    }
}

impl Admitted {
    /// How silence counts at a target; `None` where nothing is hidden.
    pub(super) fn hiding(&self, target: &str) -> Option<Hiding> {
        self.proxy
            .may_hide(&self.model, &self.seen, target)
            .then(|| {
                let pace = self.proxy.pace(&self.model, target);
                Hiding::new(pace, &self.model.limits, self.whole)
            })
    }
}
