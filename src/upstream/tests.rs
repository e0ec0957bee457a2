//! Dispatch from end to end, against scripted upstreams that are tolerant: this room carries bytes that it does not read, and so
//! these tests send any.

use std::time::Duration;

use farebox_ledger::Amount;
use farebox_protocol::{ChatLimit, Family, UpstreamError};

use super::*;
use crate::config::{
    BreakerPolicy, Catalog, Endpoint, OnDisconnect, Prefer, ProviderKeys, TargetAbilities, Timeouts,
};

#[path = "../../tests/support/upstream.rs"]
mod scripted;

use scripted::{Gate, Reply, Script, ScriptedUpstream, Speech};

const RATES: Rates = Rates {
    input: Amount::from_picos(3_000_000),
    output: Amount::from_picos(15_000_000),
    cache_read: Amount::ZERO,
    cache_write: Amount::ZERO,
    cache_write_1h: None,
    cache_write_12h: None,
    reasoning: Amount::ZERO,
    per_image: Amount::ZERO,
    per_request: Amount::ZERO,
};
const SECOND: Duration = Duration::from_secs(1);

fn provider(name: &str, base: &str) -> Provider {
    Provider {
        takes_urls: true,
        name: name.to_owned(),
        endpoint: if base.is_empty() {
            Endpoint::Simulated
        } else {
            Endpoint::Http(base.to_owned())
        },
        speaks: farebox_protocol::WirePath::all().collect(),
        keys: ProviderKeys::default(),
        auth: None,
        headers: Vec::new(),
        timeouts: Timeouts {
            connect: SECOND * 5,
            first_byte: SECOND * 20,
            idle: SECOND * 20,
            whole: SECOND * 20,
        },
        max_concurrent: None,
        max_tokens_per_minute: None,
        probe_budget: Amount::from_usd_str("0.10").unwrap(),
        chat_limit: ChatLimit::AsDeclared,
        reasoning_outside: false,
        preset: None,
        fields: crate::config::ProviderFields::default(),
        pass_answer: Arc::default(),
        refuse_beta: Vec::new(),
        words: crate::config::ServiceWords::default(),
        query: Vec::new(),
        proxy: crate::config::ProxyChoice::Direct,
    }
}

fn route(providers: impl IntoIterator<Item = Provider>) -> Route {
    let target = |provider: Provider| Target {
        model: format!("{}-model", provider.name),
        provider: Arc::new(provider),
        abilities: TargetAbilities::default(),
        cost: None,
        list: None,
        pin: None,
        fit: Arc::default(),
        limit: None,
        stops: true,
        speeds: crate::config::Speeds::default(),
    };
    Route {
        slug: "slug".to_owned(),
        on_disconnect: OnDisconnect::Cancel,
        targets: providers.into_iter().map(target).collect(),
        retry: 1,
        breaker: BreakerPolicy {
            failures: 3,
            open: SECOND * 30,
        },
        translate: true,
        prefer: Prefer::Family,
        call: None,
    }
}

fn config(routes: &[Route]) -> Config {
    let providers = routes.iter().flat_map(|route| {
        route
            .targets
            .iter()
            .map(|target| Arc::clone(&target.provider))
    });
    Config {
        webhooks: Vec::new(),
        catalog: Catalog::default(),
        providers: providers.collect(),
        generation: 1,
    }
}

/// The upstream room with one route.
struct Desk {
    upstreams: Upstreams,
    route: Route,
}

impl Desk {
    fn new(route: Route) -> Self {
        let upstreams = Upstreams::new(&config(std::slice::from_ref(&route))).unwrap();
        let mut known = upstreams.known.write().unwrap();
        for target in &route.targets {
            let listed = ListedTarget {
                slug: route.slug.clone(),
                target: target.clone(),
                health: Arc::new(Health::new(Arc::default(), Arc::default())),
                rates: RATES,
                call: None,
            };
            let at = known.targets.len();
            known
                .by_slug
                .entry(route.slug.clone())
                .or_default()
                .push(at);
            known.targets.push(listed);
        }
        drop(known);
        Self { upstreams, route }
    }

    /// With one provider for each upstream, named a, b, …
    fn before(upstreams: &[&ScriptedUpstream]) -> Self {
        let names = ["a", "b", "c"];
        Self::new(route(
            names
                .iter()
                .zip(upstreams)
                .map(|(name, upstream)| provider(name, &upstream.base_url())),
        ))
    }

    async fn ask(&self, family: Family, stream: bool) -> Result<UpstreamAnswer, DispatchError> {
        self.ask_with(family, stream, "{}", &[]).await
    }

    async fn ask_with(
        &self,
        family: Family,
        stream: bool,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Result<UpstreamAnswer, DispatchError> {
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Bytes::copy_from_slice(value.as_bytes())))
            .collect();
        let body = Bytes::copy_from_slice(body.as_bytes());
        let call = UpstreamCall {
            stream,
            ..UpstreamCall::new(
                &self.route,
                farebox_door::byte_room::Holder(1),
                family,
                TargetOperation::Generate,
            )
        };
        let places = self.upstreams.order(&call, None, |_, _| true);
        self.upstreams
            .dispatch(call, &places, &mut move |_: &Target, _: Family| {
                Some(Prepared {
                    body: vec![body.clone()],
                    headers: headers.clone(),
                    ..Prepared::default()
                })
            })
            .await
    }

    fn state(&self, at: usize) -> TargetState {
        self.upstreams.states().swap_remove(at)
    }
}

/// Sends a call to the places of its route, whatever they can carry.
async fn dispatch(
    upstreams: &Upstreams,
    call: UpstreamCall<'_>,
    conversation: Option<Conversation>,
) -> Result<UpstreamAnswer, DispatchError> {
    let places = upstreams.order(&call, conversation, |_, _| true);
    let mut prepare = |_: &Target, _: Family| Some(Prepared::default());
    upstreams.dispatch(call, &places, &mut prepare).await
}

async fn text_of(answer: UpstreamAnswer) -> Result<String, StreamBroken> {
    let mut all = Vec::new();
    match answer.content {
        AnswerContent::Whole(bytes, ..) => all.extend_from_slice(&bytes),
        AnswerContent::Stream(first, mut rest) => {
            first
                .iter()
                .for_each(|frame| all.extend_from_slice(frame.raw()));
            while let Some(frame) = rest.next().await? {
                all.extend_from_slice(frame.raw());
            }
        }
    }
    Ok(String::from_utf8(all).unwrap())
}

/// A call that only counts tokens.
fn counting(route: &Route) -> UpstreamCall<'_> {
    let family = Family::Messages;
    UpstreamCall::new(
        route,
        farebox_door::byte_room::Holder(1),
        family,
        TargetOperation::CountTokens,
    )
}

#[track_caller]
fn attempts(result: Result<UpstreamAnswer, DispatchError>) -> Vec<String> {
    match result {
        Err(DispatchError::NoTarget { attempts, .. } | DispatchError::GivenUp { attempts, .. }) => {
            attempts
                .iter()
                .map(|attempt| attempt.class.to_string())
                .collect()
        }
        other => panic!("{other:?}"),
    }
}

/// The class of one failed try at an upstream that replies like this.
async fn class(stream: bool, reply: Reply) -> String {
    let upstream = ScriptedUpstream::tolerant(reply).await;
    let desk = Desk::before(&[&upstream]);
    attempts(desk.ask(Family::Chat, stream).await).join(",")
}

mod accounts;
mod answers;
mod failures;
mod keys;
mod online;
mod streams;
