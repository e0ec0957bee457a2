//! A toll on the way from the shop to the gateway and to the processor: it counts calls, and at one of them kills somebody, either before
//! the call arrives or after it was done and before its answer is back.

use std::process::Command;
use std::sync::{Arc, Mutex};

use salvo::http::header::{AUTHORIZATION, CONTENT_TYPE};
use salvo::http::{HeaderName, StatusCode};
use salvo::prelude::{Request, Response, Router, handler};

/// When, seen from the one who is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KillMoment {
    Before,
    After,
}

/// At which call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KillPlace {
    /// The n-th from now, counted from 0.
    Nth(usize),
    /// The first of this method whose path ends like this.
    Like(&'static str, &'static str),
}

#[derive(Debug, Default)]
struct TollState {
    calls: usize,
    /// The call that is the last of these processes.
    at: Option<(KillPlace, KillMoment, Vec<u32>)>,
    /// Which call it was.
    hit: Option<String>,
}

/// The toll, whatever it stands before.
#[derive(Debug, Clone, Default)]
pub(crate) struct Toll(Arc<Mutex<TollState>>);

impl Toll {
    /// The address at which calls to another one pass.
    pub(crate) async fn before(&self, target: &str) -> String {
        let gate = TollGate {
            toll: self.clone(),
            target: target.to_owned(),
            client: super::client(),
        };
        super::serve(Router::with_path("{**rest}").goal(gate)).await
    }

    /// Kills these processes at a call from now on.
    pub(crate) fn kill_at(&self, place: KillPlace, moment: KillMoment, processes: Vec<u32>) {
        let mut state = self.0.lock().unwrap();
        state.calls = 0;
        state.at = Some((place, moment, processes));
        state.hit = None;
    }

    /// The call at which it killed somebody, once.
    pub(crate) fn take_hit(&self) -> Option<String> {
        self.0.lock().unwrap().hit.take()
    }

    /// Whether the call was never made.
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.lock().unwrap().at.is_some()
    }

    /// Counts a call; at its moment the processes end.
    fn pass(&self, what: &str, moment: KillMoment) -> bool {
        let mut state = self.0.lock().unwrap();
        let now = state.calls;
        if moment == KillMoment::After {
            state.calls += 1;
        }
        let is_it = |(place, at, _): &(KillPlace, KillMoment, Vec<u32>)| {
            *at == moment
                && match place {
                    KillPlace::Nth(n) => *n == now,
                    KillPlace::Like(method, end) => what.starts_with(method) && what.ends_with(end),
                }
        };
        if !state.at.as_ref().is_some_and(is_it) {
            return false;
        }
        let (_, _, processes) = state.at.take().unwrap();
        for process in processes {
            let mut kill = Command::new("kill");
            kill.args(["-9", &process.to_string()]);
            assert!(kill.status().unwrap().success(), "{process}");
        }
        state.hit = Some(what.to_owned());
        true
    }
}

struct TollGate {
    toll: Toll,
    target: String,
    client: reqwest::Client,
}

#[handler]
impl TollGate {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let path = req.uri().path_and_query().unwrap().to_string();
        let what = format!("{} {path}", req.method());
        res.status_code(StatusCode::BAD_GATEWAY);
        if self.toll.pass(&what, KillMoment::Before) {
            return;
        }
        let mut sent = self
            .client
            .request(req.method().clone(), format!("{}{path}", self.target));
        for name in [
            AUTHORIZATION,
            CONTENT_TYPE,
            HeaderName::from_static("idempotency-key"),
            HeaderName::from_static("stripe-version"),
        ] {
            if let Some(value) = req.headers().get(&name) {
                sent = sent.header(name, value);
            }
        }
        let body = req.payload().await.unwrap().clone();
        // Who is not there answers nothing.
        let answer = super::try_read(sent.body(body)).await;
        if self.toll.pass(&what, KillMoment::After) {
            return;
        }
        if let Some(answer) = answer {
            res.status_code(StatusCode::from_u16(answer.status).unwrap());
            res.body(answer.text);
        }
    }
}
