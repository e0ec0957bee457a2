//! Which server of the address is used: what each says about itself, the choice between them, and what operators are told of it.
//!
//! A promotion begins a new timeline, so a primary that comes back after its standby was promoted is on a lower one: it is stale,
//! and never used once a server on a higher one has been seen, whatever follows it. Of the rest the one is taken that has its
//! standby. One that lacks it is waited for rather than passed over: what it may have confirmed is on no lower timeline. This file
//! decides from answers; `connector` asks.

use std::sync::Mutex;

use tokio::sync::watch;

use super::facts::{ServerFacts, ServerPurpose};
use crate::{Cause, Server, lock};

/// One address, and what it answered: nothing yet, an error, or its facts.
#[derive(Debug, Clone)]
pub(super) struct AskedServer {
    pub(super) place: String,
    pub(super) answer: Option<Result<ServerFacts, Cause>>,
}

impl AskedServer {
    pub(super) fn facts(&self) -> Option<&ServerFacts> {
        self.answer.as_ref()?.as_ref().ok()
    }
}

/// The highest timeline on which a server of the cluster in use was ever seen, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Newest {
    system: String,
    timeline: u32,
    place: String,
}

impl Newest {
    /// Whether a server was left behind by a promotion.
    pub(super) fn outdates(&self, facts: &ServerFacts) -> bool {
        self.system == facts.system && facts.timeline < self.timeline
    }

    /// The same for a cluster, with what its servers say now: standbys count, because they follow a primary of their timeline.
    fn with(&self, asked: &[AskedServer], system: &str) -> Self {
        let known = (self.system == system).then(|| self.clone());
        let now = asked.iter().filter_map(|asked| {
            let facts = asked.facts().filter(|facts| facts.system == system)?;
            Some(Self {
                system: system.to_owned(),
                timeline: facts.timeline,
                place: asked.place.clone(),
            })
        });
        (now.rev().chain(known))
            .max_by_key(|one| one.timeline)
            .unwrap_or_default()
    }
}

/// The server to use, by its place in the list; or why none.
pub(super) fn choose(
    asked: &[AskedServer],
    purpose: ServerPurpose,
    allow_single: bool,
    newest: &Newest,
) -> Result<usize, Cause> {
    let mut suiting: Vec<(usize, &ServerFacts)> = asked
        .iter()
        .enumerate()
        .filter_map(|(at, asked)| Some((at, asked.facts().filter(|facts| facts.suits(purpose))?)))
        .collect();
    if suiting
        .iter()
        .any(|(_, facts)| facts.system == newest.system)
    {
        // While one of the cluster in use answers, those of another are only told of, and stop nothing.
        suiting.retain(|(_, facts)| facts.system == newest.system);
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
    // A standby is read as it is, however far behind.
    if purpose != ServerPurpose::Standby {
        suiting.retain(|(_, facts)| !newest.with(asked, &facts.system).outdates(facts));
    }
    let best = suiting.into_iter().max_by_key(|(at, facts)| {
        // Of equals the first address wins; of standbys the one that is least behind.
        let order = std::cmp::Reverse(*at);
        let behind = std::cmp::Reverse(facts.behind);
        (
            facts.timeline,
            facts.has_standby(allow_single),
            behind,
            order,
        )
    });
    best.map(|(at, _)| at)
        .ok_or_else(|| none(asked, purpose, newest))
}

/// Why no server suits: each with its state, and what to do.
fn none(asked: &[AskedServer], purpose: ServerPurpose, newest: &Newest) -> Cause {
    let list = describe(asked, None, newest);
    let words = |(one, server): (&AskedServer, &Server)| match one.facts() {
        // Not how far it is behind, which is another number every second, and of no use to who wants to write.
        Some(facts) if facts.is_standby && purpose == ServerPurpose::Write => {
            format!("{}: standby on timeline {}", server.place, facts.timeline)
        }
        _ => format!("{}: {}", server.place, server.state),
    };
    let said: Vec<String> = asked.iter().zip(&list).map(words).collect();
    let said = said.join("; ");
    if list.iter().any(|server| server.stale) {
        let system = (asked.iter().find_map(AskedServer::facts)).map_or("", |facts| &facts.system);
        let Newest {
            timeline, place, ..
        } = newest.with(asked, system);
        return format!(
            "{said}; {place} was seen on timeline {timeline}: bring the primary of that timeline back (if it was promoted by \
             mistake and is gone for good, start this program again)"
        )
        .into();
    }
    let a_standby = asked
        .iter()
        .any(|asked| asked.facts().is_some_and(|facts| facts.is_standby));
    let hint = match purpose {
        _ if said.contains("UnknownIssuer") => {
            "; make the certificate's authority known to this machine (update-ca-certificates), or name its file in the address \
             (sslrootcert=FILE) or in SSL_CERT_FILE"
        }
        ServerPurpose::Write if a_standby => {
            "; if one that does not answer is the primary, wake or start it, or fence it and promote the standby; otherwise give the address \
             of the primary, or one address with all servers"
        }
        ServerPurpose::Read if a_standby => {
            "; give the address of the primary, or read the standby as it is with --standby"
        }
        ServerPurpose::Standby if asked.iter().any(|asked| asked.facts().is_some()) => {
            "; none of them is a standby"
        }
        ServerPurpose::Write | ServerPurpose::Read | ServerPurpose::Standby => "",
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
pub(super) fn describe(asked: &[AskedServer], used: Option<usize>, newest: &Newest) -> Vec<Server> {
    let chosen = used
        .and_then(|at| asked.get(at)?.facts())
        .filter(|facts| !facts.is_standby);
    let words = |(at, one): (usize, &AskedServer)| {
        let facts = one.facts();
        let state = match (&one.answer, facts) {
            (None, _) => "does not answer".to_owned(),
            (Some(Err(why)), _) => why.to_string(),
            (_, Some(facts)) => {
                let newest = newest.with(asked, &facts.system);
                state(facts, chosen, used == Some(at), newest.outdates(facts))
            }
            (Some(Ok(_)), None) => String::new(),
        };
        Server {
            place: one.place.clone(),
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

fn state(facts: &ServerFacts, chosen: Option<&ServerFacts>, used: bool, outdated: bool) -> String {
    let (timeline, streaming) = (facts.timeline, facts.standbys.streaming);
    match chosen {
        Some(chosen) if chosen.system != facts.system => {
            "belongs to another database cluster: take it out of the address".to_owned()
        }
        _ if facts.is_standby => {
            format!("standby on timeline {timeline}, {} s behind", facts.behind)
        }
        _ if used => format!("primary on timeline {timeline} with {streaming} standbys, in use"),
        _ if outdated => format!("stale primary on timeline {timeline}: fence it"),
        Some(_) => format!("second primary on timeline {timeline}: fence one of them"),
        None if facts.read_only => "takes no writes (default_transaction_read_only)".to_owned(),
        None => format!("primary on timeline {timeline} with {streaming} standbys"),
    }
}

/// A server, and its timeline while it was used.
#[derive(Debug, Clone, PartialEq, Eq)]
struct UsedServer {
    place: String,
    system: String,
    timeline: Option<u32>,
}

/// What a process knows of the servers, shared by its connections.
#[derive(Debug)]
pub(super) struct Servers {
    list: Mutex<Vec<Server>>,
    /// The server that was last used, also while none is.
    last: Mutex<Option<UsedServer>>,
    newest: Mutex<Newest>,
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
            newest: Mutex::default(),
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

    /// The place of the server that was used last.
    pub(super) fn last_used(&self) -> Option<String> {
        lock(&self.last).as_ref().map(|last| last.place.clone())
    }

    /// The newest timeline seen; of no cluster before the first connection.
    pub(super) fn newest(&self) -> Newest {
        lock(&self.newest).clone()
    }

    /// The primaries that must be fenced, as an addition to a message.
    pub(super) fn to_fence(&self) -> String {
        let stale = self.list().into_iter().filter(|server| server.stale);
        stale
            .map(|server| format!("; {}: {}", server.place, server.state))
            .collect()
    }

    /// Records the servers' states, logs those that have changed, and puts connections to another server in doubt. Nothing is
    /// known of a server that was not waited for, so it keeps its last state unless it has none.
    pub(super) fn note(&self, asked: &[AskedServer], used: Option<usize>) {
        let fresh = describe(asked, used, &self.newest());
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
            // The only server's first state is no news: it was just connected to.
            } else if fresh.len() > 1 || !before.is_empty() {
                tracing::info!(place, name, state, "a server of the ledger");
            }
        }
        let used = fresh
            .iter()
            .find(|server| server.used)
            .map(|server| UsedServer {
                place: server.place.clone(),
                system: server.system.clone(),
                timeline: server.timeline,
            });
        *list = fresh;
        drop(list);
        let mut last = lock(&self.last);
        let before = last.clone();
        // Between two servers there may be none for a while.
        if used.is_some() {
            last.clone_from(&used);
        }
        let Some(system) = last.as_ref().map(|last| last.system.clone()) else {
            return;
        };
        drop(last);
        let mut newest = lock(&self.newest);
        *newest = newest.with(asked, &system);
        let seen = Some(newest.timeline);
        drop(newest);
        let left = used.is_some() && used != before;
        let outrun =
            used.is_none() && (before.as_ref()).is_some_and(|before| before.timeline < seen);
        if before.is_some() && (left || outrun) {
            self.doubt();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::ReplicationAnswer;
    use super::*;

    fn primary(timeline: u32, streaming: i64) -> ServerFacts {
        ServerFacts {
            system: "7".to_owned(),
            timeline,
            standbys: ReplicationAnswer {
                waits: true,
                for_anybody: false,
                needed: 1,
                streaming,
                hidden: 0,
            },
            ..ServerFacts::default()
        }
    }

    fn standby(behind: u64) -> ServerFacts {
        ServerFacts {
            is_standby: true,
            behind,
            ..primary(1, 0)
        }
    }

    fn asked(answers: impl IntoIterator<Item = Option<ServerFacts>>) -> Vec<AskedServer> {
        let place = |(at, answer): (usize, Option<ServerFacts>)| AskedServer {
            place: format!("s{at}:5432"),
            answer: answer.map(Ok),
        };
        answers.into_iter().enumerate().map(place).collect()
    }

    fn taken(answers: Vec<Option<ServerFacts>>, purpose: ServerPurpose) -> Result<usize, Cause> {
        choose(&asked(answers), purpose, false, &Newest::default())
    }

    #[test]
    fn the_primary_on_the_highest_timeline_is_taken_and_waited_for_if_it_lacks_its_standby() {
        let write = |answers| taken(answers, ServerPurpose::Write);
        assert_eq!(write(vec![None, Some(primary(1, 1))]), Ok(1));
        assert_eq!(write(vec![Some(standby(0)), Some(primary(1, 1))]), Ok(1));
        // A primary that boots again after its standby was promoted, whatever follows either.
        for (old, promoted) in [(0, 1), (0, 0), (1, 1), (1, 0), (2, 0)] {
            for purpose in [ServerPurpose::Write, ServerPurpose::Read] {
                let both = vec![Some(primary(1, old)), Some(primary(2, promoted))];
                assert_eq!(taken(both, purpose), Ok(1), "{old} {promoted}");
            }
        }
        // On one timeline the one that has its standby.
        assert_eq!(write(vec![Some(primary(2, 0)), Some(primary(2, 1))]), Ok(1));
        assert_eq!(
            taken(
                vec![Some(standby(9)), Some(standby(2))],
                ServerPurpose::Standby
            ),
            Ok(1)
        );
    }

    #[test]
    fn a_lower_timeline_than_one_that_was_seen_is_never_taken() {
        // A standby on it is enough.
        let follower = ServerFacts {
            timeline: 2,
            ..standby(0)
        };
        let why = taken(
            vec![Some(primary(1, 1)), Some(follower)],
            ServerPurpose::Write,
        )
        .unwrap_err();
        assert!(
            why.words()
                .contains("s0:5432: stale primary on timeline 1: fence it")
                && why.words().contains("s1:5432 was seen on timeline 2"),
            "{why}"
        );
        // So is having seen one earlier.
        let servers = Servers::default();
        servers.note(&asked([None, Some(primary(2, 1))]), Some(1));
        let number = servers.number();
        let stale = asked([Some(primary(1, 1)), None]);
        for purpose in [ServerPurpose::Write, ServerPurpose::Read] {
            let why = choose(&stale, purpose, false, &servers.newest()).unwrap_err();
            assert!(
                why.words().contains("s1:5432 was seen on timeline 2"),
                "{why}"
            );
        }
        servers.note(&stale, None);
        assert!(servers.list()[0].stale);
        assert_eq!(servers.number(), number, "what is in use stays in use");
        assert_eq!(
            servers.to_fence(),
            "; s0:5432: stale primary on timeline 1: fence it"
        );
        // A restored server begins a higher one.
        let restored = asked([Some(primary(1, 1)), Some(primary(3, 0))]);
        let taken = choose(&restored, ServerPurpose::Write, false, &servers.newest());
        assert_eq!(taken, Ok(1));
    }

    #[tokio::test]
    async fn connections_to_a_primary_that_turns_out_stale_are_left() {
        let servers = Servers::default();
        servers.note(&asked([Some(primary(1, 1)), None]), Some(0));
        let number = servers.number();
        let follower = ServerFacts {
            timeline: 2,
            ..standby(0)
        };
        servers.note(&asked([Some(primary(1, 1)), Some(follower)]), None);
        servers.outdated(number).await;
    }

    #[test]
    fn what_does_not_suit_is_named_with_its_state_and_a_remedy() {
        for (answers, purpose, said) in [
            (
                vec![None, Some(standby(3))],
                ServerPurpose::Write,
                "the address of the primary",
            ),
            (
                vec![None, Some(standby(3))],
                ServerPurpose::Read,
                "--standby",
            ),
            (
                vec![None, Some(standby(3))],
                ServerPurpose::Read,
                "s0:5432: does not answer",
            ),
            (
                vec![None, Some(standby(3))],
                ServerPurpose::Read,
                "3 s behind",
            ),
            (
                vec![Some(primary(1, 1))],
                ServerPurpose::Standby,
                "none of them is a standby",
            ),
        ] {
            let why = taken(answers, purpose).unwrap_err();
            assert!(why.words().contains(said), "{why}");
        }
        let mut other = primary(1, 1);
        other.system = "8".to_owned();
        let both = asked([Some(primary(1, 1)), Some(other)]);
        let nothing = Newest::default();
        let why = choose(&both, ServerPurpose::Write, false, &nothing).unwrap_err();
        assert!(why.words().contains("not servers of the same"), "{why}");
        let servers = Servers::default();
        servers.note(&both, Some(1));
        assert_eq!(
            choose(&both, ServerPurpose::Write, false, &servers.newest()).ok(),
            Some(1)
        );
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
            &Newest::default(),
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
        servers.note(&both, Some(1));
        servers.outdated(number).await;
    }
}
