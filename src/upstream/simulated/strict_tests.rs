//! The built-in provider refuses what the doubles of its three families refuse, in the same words.

use farebox_doubles::{RuleStanding, WIRES, broken, defined_by, judge_body};
use farebox_protocol::Family;

use super::*;
use crate::config::{BreakerPolicy, OnDisconnect, Prefer, Route};
use crate::upstream::simulated::tests::share;

/// The family and the operation of a path.
fn on(path: &str) -> Option<(Family, TargetOperation)> {
    Family::ALL.into_iter().find_map(|family| {
        let protocol = family.protocol();
        if path == protocol.path() {
            return Some((family, TargetOperation::Generate));
        }
        (protocol.count_path() == Some(path)).then_some((family, TargetOperation::CountTokens))
    })
}

async fn answered(path: &str, body: &[u8]) -> (u16, String) {
    let route = Route {
        slug: "s".to_owned(),
        on_disconnect: OnDisconnect::Cancel,
        targets: Vec::new(),
        retry: 0,
        breaker: BreakerPolicy {
            failures: 1,
            open: Duration::ZERO,
        },
        translate: true,
        prefer: Prefer::Family,
    };
    let (family, operation) = on(path).unwrap();
    let call = UpstreamCall::new(&route, crate::byte_room::Holder(1), family, operation);
    let mut reply = Simulated::default().answer(&call, "sim", body);
    let text = reply.body.whole(1 << 24, &mut share()).await.unwrap();
    (reply.status, String::from_utf8(text.to_vec()).unwrap())
}

#[tokio::test]
async fn what_a_double_refuses_is_refused_here_in_the_same_words() {
    let (mut wires, mut refused) = (0, 0);
    for wire in WIRES
        .iter()
        .filter(|wire| wire.vendor == defined_by(wire.path))
    {
        assert!(on(wire.path).is_some(), "{}", wire.path);
        wires += 1;
        let rules = wire
            .all_rules()
            .filter(|rule| rule.standing == RuleStanding::Verified);
        // No headers are sent within a process.
        for rule in rules.filter(|rule| !rule.place.starts_with('@')) {
            let example = broken(wire, rule).unwrap();
            let body = example.body.to_string();
            let double = judge_body(wire.vendor, wire.path, body.as_bytes()).unwrap_err();
            let (status, text) = answered(wire.path, body.as_bytes()).await;
            assert_eq!(
                (status, text),
                (double.status, double.body),
                "{}",
                example.rule
            );
            refused += 1;
        }
    }
    assert!(
        wires == 5 && refused > 200,
        "{wires} wires, {refused} rules"
    );
}
