//! What an answer was served as, for its bill and for the operator.

use farebox_ledger::{Bill, CostSource, Evidence, Served, ServedRegion, ServedTier, Usage};
use farebox_protocol::{self as protocol, Classes};

use super::{Admitted, UNREAD_COST, tokens};
use crate::metering::{ClassTrouble, Counted};
use crate::proxy::record::Oddity;
use crate::upstream::RefusedPin;
use crate::upstream::redact;

impl Admitted {
    /// What the provider bills: its classes, the size tier, and which of its accounts.
    pub(super) fn billed_as(&self, usage: &Usage) -> Served {
        if *usage == Usage::default() {
            // Nothing was served.
            return Served::default();
        }
        let Classes { tier, place } = self.count.meter.served();
        let tiers = &self.model.price.tiers;
        let context_band = if tiers.is_empty() {
            0
        } else {
            let input = self.count.meter.steps(usage).0.prompt();
            let exceeded = tiers.iter().filter(|(above, _)| input > *above).count();
            u32::try_from(exceeded).unwrap_or(u32::MAX)
        };
        Served {
            tier: match tier {
                protocol::ServiceTier::Standard => ServedTier::Standard,
                protocol::ServiceTier::Flex => ServedTier::Flex,
                protocol::ServiceTier::Fast => ServedTier::Fast,
            },
            place: match place {
                protocol::RequestRegion::Global => ServedRegion::Global,
                protocol::RequestRegion::Us => ServedRegion::Us,
            },
            context_band,
            account: self
                .count
                .account
                .map_or_else(String::new, |account| account.to_string()),
        }
    }

    /// Notes what the answer used of its account's limit, and what the account had cached of its prompt.
    pub(super) fn note_use(&mut self, counted: &Counted) {
        let usage = counted.usage;
        if let Some(share) = self.tokens.take() {
            share.used(tokens(usage));
        }
        let account = self.outcome.account.as_ref();
        if let Some(account) = account.filter(|_| counted.evidence == Some(Evidence::Provider)) {
            let read = (usage.prompt(), usage.cache_read);
            let upstreams = &self.proxy.upstreams;
            upstreams.counted(account, self.request.arrived, read);
        }
    }

    /// Notes that a target has refused a pinned field; `taken`: the target that answered, without the pins.
    pub(in crate::proxy) fn note_refused_pin(
        &mut self,
        refused: Option<RefusedPin>,
        taken: Option<&str>,
    ) {
        let proves = |refused: &RefusedPin| refused.named || taken == Some(&*refused.target);
        let refused = refused.filter(proves);
        if let Some(RefusedPin { target, .. }) = &refused {
            let customer = self.request.customer;
            self.proxy.pins.refuse(target, customer, self.generation);
        }
        self.outcome.pin_refused = refused.map(|refused| Box::new((refused.target, refused.field)));
    }

    /// What the operator should know about how the answer was served.
    pub(super) fn oddities(&self, counted: &Counted) -> Vec<Oddity> {
        let mut found = Vec::new();
        if counted.evidence.is_some() && !self.count.target.is_empty() {
            let names = self.names_classes(counted);
            let trouble = self.count.meter.class_trouble(&counted.usage, names);
            found.extend(trouble.map(|trouble| match trouble {
                ClassTrouble::Dearer(served) => Oddity::Dearer(served.name()),
                ClassTrouble::Unknown(word) => {
                    Oddity::Unknown(redact::for_operator(&word, &self.model.route))
                }
                ClassTrouble::Missing => Oddity::Missing,
            }));
            found.extend(
                self.count
                    .meter
                    .has_other_models()
                    .then_some(Oddity::OtherModel),
            );
        }
        let pin = self.outcome.pin_refused.as_deref();
        found.extend(pin.map(|(target, field)| Oddity::PinRefused(target.clone(), field)));
        found
    }

    /// What the answer told of its cost, if that cannot be.
    pub(super) fn doubted_cost(&self, bill: &Bill) -> Option<Oddity> {
        match bill.cost_source {
            CostSource::Listed | CostSource::Told => return None,
            CostSource::Doubted => {}
        }
        let told = match (bill.provider_cost, bill.facts.get(UNREAD_COST)) {
            (Some(told), _) => format!("{told} USD"),
            (None, text) => format!("`{}`", text.map_or("", String::as_str)),
        };
        Some(Oddity::CostDoubted(match bill.listed_cost() {
            Some(listed) => format!("{told}, by `cost` {listed} USD"),
            None => told,
        }))
    }

    /// Whether the target has named classes before, where that matters: for a slug that sells some, at a complete answer.
    fn names_classes(&self, counted: &Counted) -> bool {
        if self.model.price.classes.is_empty() || counted.evidence != Some(Evidence::Provider) {
            return false;
        }
        let named = self.count.meter.said().named;
        let calibrations = &self.proxy.calibrations;
        calibrations.names_classes(&self.count.target, named)
    }
}
