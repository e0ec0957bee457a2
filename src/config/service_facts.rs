//! What is known of the service behind a target when all have been heard.
//!
//! A target's own word wins over its provider's, and that over the library's. A server of the operator's own, of which nobody says
//! anything, binds and stops, as servers that anybody can read do.

use farebox_protocol::CostField;

use super::{
    Endpoint, Library, LimitBinds, Offer, Preset, Provider, Service, ServiceWords, Speeds,
};

/// What is known of a target's service when all have been heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ServiceFacts {
    pub(super) limit: Option<LimitBinds>,
    pub(super) stops: bool,
    pub(super) speed: Speeds,
}

impl ServiceFacts {
    /// Of a target that says this, at a provider, with its model's offer in the library if it has one.
    pub(super) fn of(said: &ServiceWords, provider: &Provider, offer: Option<&Offer>) -> Self {
        let own = !provider.is_hosted();
        let listed = provider.listed().and_then(|service| service.limit.as_ref());
        let speed = offer.and_then(|offer| offer.speed.as_ref());
        Self {
            limit: (said.limit)
                .or(provider.words.limit)
                .or(listed.map(|fact| fact.is))
                .or(own.then_some(LimitBinds::All)),
            stops: provider.said_to_stop().unwrap_or(own),
            speed: said
                .speed
                .or(provider.words.speed)
                .or(speed.map(|fact| fact.is).unwrap_or_default()),
        }
    }
}

impl Provider {
    /// Whether it stops when a stream is closed, by its table or the library; `None` if nobody says it.
    pub fn said_to_stop(&self) -> Option<bool> {
        let listed = self.listed().and_then(|service| service.stops.as_ref());
        self.words.stops.or(listed.map(|fact| fact.is))
    }

    fn listed(&self) -> Option<&'static Service> {
        Library::current().service(&self.preset?.name)
    }

    /// The member of a usage in which it tells what an answer costs: as its kind says, and else as routers do, and we.
    pub fn cost_field(&self) -> Option<CostField> {
        self.preset.map_or(Some(CostField::Usd), Preset::cost_field)
    }

    /// Whether somebody else runs it: a `kind` with keys, or an address outside private networks.
    pub fn is_hosted(&self) -> bool {
        match self.preset {
            Some(preset) => preset.is_hosted(),
            None => self.endpoint != Endpoint::Simulated && self.endpoint.is_public(),
        }
    }
}
