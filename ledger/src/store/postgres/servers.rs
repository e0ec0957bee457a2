//! Which server of the address is used: what each says about itself, the choice between them, and what operators are told of it.
//!
//! Only a server that takes writes is used, and of several the one that has its standby, and then the one on the highest timeline:
//! a promotion begins a new timeline, so a primary that comes back after its standby was promoted is on a lower one. This file
//! decides from answers; `connector` asks.

use std::sync::Mutex;

use tokio::sync::watch;

use super::facts::{Facts, Purpose};
use super::lock::lock;
use crate::{Cause, Server};

/// One address, and what it answered: nothing yet, an error, or its facts.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) place: String,
    pub(super) answer: Option<Result<Facts, Cause>>,
}

impl Asked {
    pub(super) fn facts(&self) -> Option<&Facts> {
        self.answer.as_ref()?.as_ref().ok()
    }
}

/// The server to use, by its place in the list; or why none.
pub(super) fn choose(
    asked: &[Asked],
    purpose: Purpose,
    allow_single: bool,
    used: &str,
) -> Result<usize, Cause> {
    let mut suiting: Vec<(usize, &Facts)> = asked
        .iter()
        .enumerate()
        .filter_map(|(at, asked)| Some((at, asked.facts().filter(|facts| facts.suits(purpose))?)))
        .collect();
    if suiting.iter().any(|(_, facts)| facts.system == used) {
        suiting.retain(|(_, facts)| facts.system == used);
    }
    if let [(first, one), rest @ ..] = suiting.as_slice()
        && let Some((second, _)) = rest.iter().find(|(_, other)| other.system != one.system)
    {
        let place = |at: &usize| asked.get(*at).map_or("", |asked| asked.place.as_str());
        return Err(format!(
            "{} and {} are not servers of the same database cluster; give the addresses of one cluster",
            place(first),
            place(second)
        )
        .into());
    }
    let best = suiting.into_iter().max_by_key(|(at, facts)| {
        // Of equals the first address wins; of standbys the one that is least behind.
        let order = std::cmp::Reverse(*at);
        let behind = std::cmp::Reverse(facts.behind);
        (
            facts.has_standby(allow_single),
            facts.timeline,
            behind,
            order,
        )
    });
    best.map(|(at, _)| at).ok_or_else(|| none(asked, purpose))
}

/// Why no server suits: each with its state, and what to do.
fn none(asked: &[Asked], purpose: Purpose) -> Cause {
    let said: Vec<String> = (describe(asked, None).iter())
        .map(|server| format!("{}: {}", server.place, server.state))
        .collect();
    let said = said.join("; ");
    let a_standby = asked
        .iter()
        .any(|asked| asked.facts().is_some_and(|facts| facts.is_standby));
    let hint = match purpose {
        _ if said.contains("UnknownIssuer") => {
            "; make the certificate's authority known to this machine (update-ca-certificates), or name its file in the address \
             (sslrootcert=FILE) or in SSL_CERT_FILE"
        }
        Purpose::Write if a_standby => {
            "; give the address of the primary, or one address with all servers"
        }
        Purpose::Read if a_standby => {
            "; give the address of the primary, or read the standby as it is with --standby"
        }
        Purpose::Standby if asked.iter().any(|asked| asked.facts().is_some()) => {
            "; none of them is a standby"
        }
        _ => "",
    };
    let words = format!("{said}{hint}");
    let first = asked
        .iter()
        .find_map(|asked| asked.answer.as_ref()?.as_ref().err());
    match first {
        Some(first) => first.clone().reworded(words),
        None => words.into(),
    }
}

/// Each server and its state in words; `used` is the chosen one.
pub(super) fn describe(asked: &[Asked], used: Option<usize>) -> Vec<Server> {
    let chosen = used
        .and_then(|at| asked.get(at)?.facts())
        .filter(|facts| !facts.is_standby);
    let words = |(at, asked): (usize, &Asked)| {
        let facts = asked.facts();
        let state = match (&asked.answer, facts) {
            (None, _) => "does not answer".to_owned(),
            (Some(Err(why)), _) => why.to_string(),
            (_, Some(facts)) => state(facts, chosen, used == Some(at)),
            (Some(Ok(_)), None) => String::new(),
        };
        Server {
            place: asked.place.clone(),
            name: facts.map(|facts| facts.name.clone()).unwrap_or_default(),
            system: facts.map(|facts| facts.system.clone()).unwrap_or_default(),
            timeline: facts.map(|facts| facts.timeline),
            behind: facts
                .filter(|facts| facts.is_standby && used == Some(at))
                .map(|facts| facts.behind),
            used: used == Some(at),
            stale: state.ends_with("fence it") || state.ends_with("fence one of them"),
            state,
        }
    };
    asked.iter().enumerate().map(words).collect()
}

fn state(facts: &Facts, chosen: Option<&Facts>, used: bool) -> String {
    let (timeline, streaming) = (facts.timeline, facts.standbys.streaming);
    match chosen {
        Some(chosen) if chosen.system != facts.system => {
            "belongs to another database cluster: take it out of the address".to_owned()
        }
        _ if facts.is_standby => {
            format!("standby on timeline {timeline}, {} s behind", facts.behind)
        }
        _ if used => format!("primary on timeline {timeline} with {streaming} standbys, in use"),
        Some(chosen) if chosen.timeline > timeline => {
            format!("stale primary on timeline {timeline}: fence it")
        }
        Some(chosen) => format!(
            "second primary on timeline {timeline}, beside timeline {}: fence one of them",
            chosen.timeline
        ),
        None if facts.read_only => "takes no writes (default_transaction_read_only)".to_owned(),
        None => format!("primary on timeline {timeline} with {streaming} standbys"),
    }
}

/// A server, and its timeline while it was used.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Used {
    place: String,
    system: String,
    timeline: Option<u32>,
}

/// What a process knows of the servers, shared by its connections.
#[derive(Debug)]
pub(super) struct Servers {
    list: Mutex<Vec<Server>>,
    /// The server that was last used, also while none is.
    last: Mutex<Option<Used>>,
    /// Grows when another server is used, or the connections so far are in doubt: each connection remembers the number it was
    /// opened under, and one with a lower number is not used again.
    number: watch::Sender<u64>,
    /// Places that were found not to be transaction pools.
    pub(super) sessions: Mutex<Vec<String>>,
}

impl Default for Servers {
    fn default() -> Self {
        Self {
            list: Mutex::default(),
            last: Mutex::default(),
            number: watch::Sender::new(0),
            sessions: Mutex::default(),
        }
    }
}

impl Servers {
    /// The number of connections that may be used now.
    pub(super) fn number(&self) -> u64 {
        *self.number.borrow()
    }

    /// Waits until connections of this number must not be used any more.
    pub(super) async fn outdated(&self, number: u64) {
        let mut watcher = self.number.subscribe();
        if watcher.wait_for(|now| *now != number).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Puts every connection so far in doubt.
    pub(super) fn doubt(&self) {
        self.number
            .send_modify(|number| *number = number.saturating_add(1));
    }

    /// The servers as they last answered.
    pub(super) fn list(&self) -> Vec<Server> {
        lock(&self.list).clone()
    }

    /// The cluster in use; empty before the first connection.
    pub(super) fn system(&self) -> String {
        let last = lock(&self.last);
        (last.as_ref()).map_or_else(String::new, |last| last.system.clone())
    }

    /// Records the servers' states, logs those that have changed, and puts connections to another server in doubt. Nothing is
    /// known of a server that was not waited for, so it keeps its last state unless it has none.
    pub(super) fn note(&self, asked: &[Asked], used: Option<usize>) {
        let fresh = describe(asked, used);
        let mut list = lock(&self.list);
        let before = std::mem::take(&mut *list);
        let old = |place: &str| before.iter().find(|server| server.place == place);
        for server in &fresh {
            let said = |server: &Server| (server.kind().to_owned(), server.timeline);
            if old(&server.place).is_some_and(|old| said(old) == said(server)) {
                continue;
            }
            let (place, state, name) = (&server.place, &server.state, &server.name);
            if server.stale {
                tracing::error!(place, name, state, "a server of the ledger");
            } else if fresh.len() > 1 || !before.is_empty() {
                tracing::info!(place, name, state, "a server of the ledger");
            }
        }
        let used = fresh.iter().find(|server| server.used).map(|server| Used {
            place: server.place.clone(),
            system: server.system.clone(),
            timeline: server.timeline,
        });
        *list = fresh;
        drop(list);
        // Between two servers there may be none for a while.
        if used.is_some() {
            let before = std::mem::replace(&mut *lock(&self.last), used.clone());
            if before.is_some() && before != used {
                self.doubt();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::Seen;
    use super::*;

    fn primary(timeline: u32, streaming: i64) -> Facts {
        Facts {
            system: "7".to_owned(),
            timeline,
            standbys: Seen {
                waits: true,
                for_anybody: false,
                needed: 1,
                streaming,
                hidden: 0,
            },
            ..Facts::default()
        }
    }

    fn standby(behind: u64) -> Facts {
        Facts {
            is_standby: true,
            behind,
            ..primary(1, 0)
        }
    }

    fn asked(answers: impl IntoIterator<Item = Option<Facts>>) -> Vec<Asked> {
        let place = |(at, answer): (usize, Option<Facts>)| Asked {
            place: format!("s{at}:5432"),
            answer: answer.map(Ok),
        };
        answers.into_iter().enumerate().map(place).collect()
    }

    fn taken(answers: Vec<Option<Facts>>, purpose: Purpose) -> Result<usize, Cause> {
        choose(&asked(answers), purpose, false, "")
    }

    #[test]
    fn the_primary_with_its_standby_on_the_highest_timeline_is_taken() {
        let write = |answers| taken(answers, Purpose::Write);
        assert_eq!(write(vec![None, Some(primary(1, 1))]), Ok(1));
        assert_eq!(write(vec![Some(standby(0)), Some(primary(1, 1))]), Ok(1));
        // A primary that boots again after its standby was promoted.
        assert_eq!(write(vec![Some(primary(1, 0)), Some(primary(2, 1))]), Ok(1));
        assert_eq!(write(vec![Some(primary(1, 0)), Some(primary(2, 0))]), Ok(1));
        assert_eq!(write(vec![Some(primary(1, 1)), Some(primary(2, 1))]), Ok(1));
        // A server promoted by mistake has confirmed nothing without a standby.
        assert_eq!(write(vec![Some(primary(1, 1)), Some(primary(2, 0))]), Ok(0));
        assert_eq!(
            taken(vec![Some(standby(9)), Some(standby(2))], Purpose::Standby),
            Ok(1)
        );
    }

    #[test]
    fn what_does_not_suit_is_named_with_its_state_and_a_remedy() {
        for (answers, purpose, said) in [
            (
                vec![None, Some(standby(3))],
                Purpose::Write,
                "the address of the primary",
            ),
            (vec![None, Some(standby(3))], Purpose::Read, "--standby"),
            (
                vec![None, Some(standby(3))],
                Purpose::Read,
                "s0:5432: does not answer",
            ),
            (vec![None, Some(standby(3))], Purpose::Read, "3 s behind"),
            (
                vec![Some(primary(1, 1))],
                Purpose::Standby,
                "none of them is a standby",
            ),
        ] {
            let why = taken(answers, purpose).unwrap_err();
            assert!(why.words().contains(said), "{why}");
        }
        let mut other = primary(1, 1);
        other.system = "8".to_owned();
        let both = asked([Some(primary(1, 1)), Some(other)]);
        let why = choose(&both, Purpose::Write, false, "").unwrap_err();
        assert!(why.words().contains("not servers of the same"), "{why}");
        assert_eq!(choose(&both, Purpose::Write, false, "8"), Ok(1));
    }

    #[test]
    fn operators_are_told_which_server_to_fence() {
        let list = describe(
            &asked([
                Some(primary(1, 0)),
                Some(primary(2, 1)),
                Some(standby(0)),
                None,
            ]),
            Some(1),
        );
        let states: Vec<&str> = list.iter().map(|server| server.state.as_str()).collect();
        assert_eq!(
            states,
            [
                "stale primary on timeline 1: fence it",
                "primary on timeline 2 with 1 standbys, in use",
                "standby on timeline 1, 0 s behind",
                "does not answer"
            ]
        );
        assert!(list[0].stale && !list[1].stale);
    }

    #[tokio::test]
    async fn another_server_in_use_puts_older_connections_in_doubt() {
        let servers = Servers::default();
        let both = asked([Some(primary(1, 1)), Some(primary(2, 1))]);
        servers.note(&both, Some(0));
        let number = servers.number();
        servers.note(&both, Some(0));
        assert_eq!(servers.number(), number);
        // None is used for a while.
        servers.note(&both, None);
        assert_eq!(servers.system(), "7");
        servers.note(&both, Some(1));
        servers.outdated(number).await;
        assert_eq!(servers.system(), "7");
    }
}
