//! Who is closed first, who never, and what strangers may have under way.

use super::*;
use crate::customer::Guest as _;
use crate::server::connections::busy::BusyRequest;

const GOOD: Holder = Holder(7);

fn connections(all: usize, of_peer: usize) -> Arc<Connections> {
    let limits = ConnectionLimits {
        all,
        of_peer,
        of_proxy: all / 2,
        safe: 3,
        claims: all / 2,
        excess: 0,
    };
    let pool = (all / PART_OF_STRANGERS).clamp(POOL.0, POOL.1);
    Connections::new(limits, pool, vec!["10.0.0.0/8".parse().unwrap()])
}

/// A connection from an address, on a port of its own.
fn admit(
    connections: &Arc<Connections>,
    address: &str,
    port: u16,
) -> Option<(ConnectionPlace, ConnCtrl)> {
    let ctrl = ConnCtrl::new();
    connections
        .admit(from(address, port), ctrl.clone())
        .map(|place| (place, ctrl))
}

fn from(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), port)
}

fn begin(connections: &Arc<Connections>, address: &str, port: u16) -> Arc<BusyRequest> {
    let begun = connections.begin(from(address, port), None);
    begun.unwrap().unwrap()
}

/// A request of a customer, over.
fn used(connections: &Arc<Connections>, address: &str, port: u16, pays: bool) {
    begin(connections, address, port).belongs(GOOD, pays);
}

#[test]
fn a_peer_at_its_bound_pushes_out_its_own_oldest_idle_connection() {
    let connections = connections(40, 10);
    let (_stranger, stranger) = admit(&connections, "192.0.2.9", 1).unwrap();
    let own: Vec<_> = (0..10)
        .map(|port| admit(&connections, "192.0.2.1", port).unwrap())
        .collect();
    let running = begin(&connections, "192.0.2.1", 0);
    running.belongs(GOOD, false);
    let (_newcomer, _) = admit(&connections, "192.0.2.1", 10).unwrap();
    assert!(!own[0].1.is_aborted(), "a customer's request is under way");
    assert!(own[1].1.is_aborted());
    assert!(!stranger.is_aborted());
    let counts = connections.counts();
    assert_eq!(
        (counts.open, counts.safe, counts.evicted, counts.refused),
        (11, 1, 1, 0)
    );
}

#[test]
fn strangers_are_closed_first_and_paying_customers_last() {
    let connections = connections(8, 8);
    let open: Vec<_> = (0..8)
        .map(|port| admit(&connections, "192.0.2.1", port).unwrap())
        .collect();
    used(&connections, "192.0.2.1", 0, true);
    used(&connections, "192.0.2.1", 1, false);
    used(&connections, "192.0.2.1", 2, true);
    // What a stranger has under way protects nothing.
    let _forms: Vec<_> = (3..8)
        .map(|port| begin(&connections, "192.0.2.1", port))
        .collect();
    let mut newcomers = Vec::new();
    let mut order = Vec::new();
    for port in 10..17 {
        let place = admit(&connections, "192.0.2.1", port).unwrap();
        // None of the newcomers is closed for the next.
        used(&connections, "192.0.2.1", port, true);
        newcomers.push(place);
        let closed = (0..8).filter(|number| open[*number].1.is_aborted());
        order.extend(
            closed
                .filter(|number| !order.contains(number))
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(order, [3, 4, 5, 6, 7, 1, 0]);
}

#[test]
fn a_customer_has_a_bound_on_safe_connections_and_when_all_are_safe_the_newcomer_is_refused() {
    let connections = connections(4, 4);
    let open: Vec<_> = (0..4)
        .map(|port| admit(&connections, "2001:db8::1", port).unwrap())
        .collect();
    let mut busy: Vec<_> = (0..4)
        .map(|port| begin(&connections, "2001:db8::1", port))
        .collect();
    busy.iter().for_each(|busy| busy.belongs(GOOD, true));
    assert_eq!(connections.counts().safe, 3);
    let (_newcomer, _) = admit(&connections, "2001:db8::ffff:1", 9).unwrap();
    assert!(
        open[3].1.is_aborted(),
        "the same /64, and one more than a customer's safe ones"
    );
    let other = begin(&connections, "2001:db8::ffff:1", 9);
    other.belongs(Holder(8), true);
    assert!(admit(&connections, "2001:db8:0:1::1", 9).is_none());
    assert_eq!(connections.counts().refused, 1);
    busy.remove(0);
    assert!(admit(&connections, "2001:db8:0:1::1", 9).is_some());
    drop((busy, other));
    let open = connections.lock();
    assert!(open.safe.is_empty() && open.forwarded.is_empty());
}

#[test]
fn places_come_back_and_a_trusted_proxy_has_half_of_them() {
    let connections = connections(8, 2);
    let proxy: Vec<_> = (0..8)
        .map(|port| admit(&connections, "10.1.2.3", port).unwrap())
        .collect();
    let counts = connections.counts();
    assert_eq!((counts.open, counts.evicted), (4, 4));
    let _newcomer = admit(&connections, "192.0.2.1", 1).unwrap();
    drop(proxy);
    assert_eq!(connections.counts().open, 1);
    let open = connections.lock();
    assert_eq!((open.peers.len(), open.by_address.len()), (1, 1));
}

#[test]
fn behind_a_trusted_proxy_requests_are_bounded_by_the_forwarded_peer() {
    let connections = connections(8, 2);
    let _open: Vec<_> = (0..4)
        .map(|port| admit(&connections, "10.1.2.3", port).unwrap())
        .collect();
    let begin = |port, client: &str| {
        connections.begin(from("10.1.2.3", port), Some(client.parse().unwrap()))
    };
    let first = begin(0, "2001:db8::1").unwrap();
    let _second = begin(1, "2001:db8::2").unwrap();
    assert_eq!(
        begin(2, "2001:db8::3").err(),
        Some(Crowded::Requests),
        "the same /64"
    );
    let _other = begin(2, "2001:db8:0:1::3").unwrap();
    drop(first);
    assert!(begin(3, "2001:db8::3").is_ok());
    // Nobody else is believed.
    let _direct = admit(&connections, "192.0.2.1", 1).unwrap();
    for _ in 0..3 {
        let client = Some("2001:db8::9".parse().unwrap());
        assert!(connections.begin(from("192.0.2.1", 1), client).is_ok());
    }
}

#[test]
fn a_full_pool_pushes_out_the_oldest_of_the_greediest_peer() {
    let connections = Connections::with_descriptors(1_024, Vec::new());
    let most = u16::try_from(connections.counts().most_of_strangers).unwrap();
    let (_honest, honest) = admit(&connections, "192.0.2.9", 1).unwrap();
    let _form = begin(&connections, "192.0.2.9", 1);
    let slow: Vec<_> = (0..most)
        .map(|port| {
            let place = admit(&connections, "192.0.2.1", port).unwrap();
            (place, begin(&connections, "192.0.2.1", port))
        })
        .collect();
    assert!(slow[0].0.1.is_aborted() && !slow[1].0.1.is_aborted());
    assert!(!honest.is_aborted());
    let counts = connections.counts();
    assert_eq!((counts.strangers, counts.crowded), (usize::from(most), 1));
    // A request whose key is known needs no place among strangers.
    slow[1].1.belongs(GOOD, false);
    assert_eq!(connections.counts().strangers, usize::from(most) - 1);
    drop((slow, _form));
    assert_eq!(connections.counts().strangers, 0);
}

#[test]
fn unfinished_heads_have_a_pool_and_a_customers_connection_needs_none() {
    let connections = Connections::with_descriptors(1_024, Vec::new());
    let most = u16::try_from(connections.counts().most_of_strangers).unwrap();
    let slow: Vec<_> = (0..=most)
        .map(|port| {
            let (place, ctrl) = admit(&connections, "192.0.2.1", port).unwrap();
            let head = place.unfinished_head().unwrap();
            (place, ctrl, head)
        })
        .collect();
    assert!(slow[0].1.is_aborted() && !slow[1].1.is_aborted());
    let (place, _ctrl) = admit(&connections, "192.0.2.9", 1).unwrap();
    used(&connections, "192.0.2.9", 1, true);
    assert!(place.unfinished_head().is_none());
    // A request that has begun has a complete head, whatever is read of its connection until the answer.
    let last = slow.last().unwrap();
    let heads = connections.counts().heads;
    let request = begin(&connections, "192.0.2.1", last.0.connection.address.port());
    assert_eq!(connections.counts().heads, heads - 1);
    drop(request);
    drop(slow);
    assert_eq!(connections.counts().heads, 0);
}

/// However long it takes to look a key up, whoever shows one is no stranger meanwhile; and half of all at most, so that made-up keys do
/// not keep every connection.
#[test]
fn who_shows_a_key_is_no_stranger_until_it_is_known_to_be_none() {
    let connections = connections(80, 80);
    let most = u16::try_from(connections.counts().most_of_strangers).unwrap();
    let asking: Vec<_> = (0..4 * most)
        .map(|port| {
            let place = admit(&connections, "192.0.2.1", port).unwrap();
            let request = begin(&connections, "192.0.2.1", port);
            request.claims();
            (place, request)
        })
        .collect();
    assert_eq!(connections.counts().strangers, 0);
    assert!(asking.iter().all(|((_, ctrl), _)| !ctrl.is_aborted()));
    // Newcomers push each other out, and none of those.
    let _idle: Vec<_> = (100..180)
        .map(|port| admit(&connections, "192.0.2.2", port))
        .collect();
    assert!(asking.iter().all(|((_, ctrl), _)| !ctrl.is_aborted()));
    let beyond = admit(&connections, "192.0.2.3", 1).unwrap();
    let one_more = begin(&connections, "192.0.2.3", 1);
    one_more.claims();
    assert_eq!(connections.counts().strangers, 1, "half of all show a key");
    // A good key makes it safe, and a bad one a stranger's.
    asking[0].1.belongs(GOOD, true);
    asking[1].1.is_refused();
    asking[1].1.is_refused();
    let counts = connections.counts();
    assert_eq!((counts.safe, counts.strangers), (1, 2));
    drop((asking, one_more, beyond));
    let open = connections.lock();
    assert_eq!(
        (open.claims, open.strangers.len(), open.safe.len()),
        (0, 0, 0)
    );
}

#[test]
fn a_connection_beyond_the_limits_is_turned_away_at_its_first_request() {
    let connections = Connections::with_descriptors(1_024, Vec::new());
    let counts = connections.counts();
    let most = u16::try_from(counts.most_of_peer).unwrap();
    let open: Vec<_> = (0..most)
        .map(|port| {
            let place = admit(&connections, "192.0.2.1", port).unwrap();
            let request = begin(&connections, "192.0.2.1", port);
            request.claims();
            (place, request)
        })
        .collect();
    let waiting: Vec<_> = (0..30)
        .map(|port| admit(&connections, "192.0.2.1", 1_000 + port).unwrap())
        .collect();
    assert!(open.iter().all(|((_, ctrl), _)| !ctrl.is_aborted()));
    let begun = |port| connections.begin(from("192.0.2.1", port), None);
    assert_eq!(begun(1_029).err(), Some(Crowded::Connections));
    let left = waiting.iter().filter(|(_, ctrl)| !ctrl.is_aborted());
    assert_eq!(left.count(), counts.most / PART_OF_EXCESS, "the newest");
    assert_eq!(connections.counts().refused, 30);
    let (_other, other) = admit(&connections, "192.0.2.9", 1).unwrap();
    drop(begin(&connections, "192.0.2.9", 1));
    assert!(!other.is_aborted());
    drop((open, waiting));
    let _newcomer = admit(&connections, "192.0.2.1", 1).unwrap();
    assert_eq!(connections.counts().open, 2);
}

/// What is being paid for is delivered: another one makes way.
#[test]
fn a_connection_with_an_answer_that_is_paid_for_makes_no_way() {
    let connections = connections(4, 4);
    let open: Vec<_> = (0..4)
        .map(|port| admit(&connections, "192.0.2.1", port).unwrap())
        .collect();
    let busy: Vec<_> = (0..4)
        .map(|port| begin(&connections, "192.0.2.1", port))
        .collect();
    busy.iter().for_each(|busy| busy.belongs(GOOD, true));
    let (fate, paid) = (busy[3].connection(), &open[3].1);
    assert!(fate.pay());
    assert!(admit(&connections, "192.0.2.1", 9).is_none() && !paid.is_aborted());
    fate.rest();
    assert!(admit(&connections, "192.0.2.1", 9).is_some());
    assert!(paid.is_aborted() && fate.is_closed());
}

#[test]
fn half_of_the_descriptors_are_for_upstreams() {
    let of = |descriptors| {
        let counts = Connections::with_descriptors(descriptors, Vec::new()).counts();
        (counts.most, counts.most_safe, counts.most_of_strangers)
    };
    assert_eq!(of(1_024), (448, 112, 56));
    assert_eq!(of(20_000), (9_936, 256, 256));
    assert_eq!((of(1 << 20).0, of(0).0), (MOST, 8));
}

#[test]
fn calls_of_the_api_leave_connections_to_those_who_ask_whether_all_is_well() {
    let connections = Connections::of_operator();
    let calls: Vec<_> = (0..64)
        .map(|port| {
            let place = admit(&connections, "127.0.0.1", port).unwrap();
            let busy = begin(&connections, "127.0.0.1", port);
            busy.belongs(Holder(1), true);
            (place, busy)
        })
        .collect();
    assert_eq!(connections.counts().safe, MOST_OF_OPERATOR - OF_MONITORS);
    for port in 64..80 {
        let (_monitor, _) = admit(&connections, "127.0.0.1", port).unwrap();
    }
    let counts = connections.counts();
    assert_eq!((counts.refused, counts.safe), (0, 48));
    let is_gone = |call: &&((ConnectionPlace, ConnCtrl), Arc<BusyRequest>)| call.0.1.is_aborted();
    assert!(calls.iter().any(|call| is_gone(&call)));
}
