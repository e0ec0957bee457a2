//! Every rule of every wire: its examples pass, its broken request is refused by that rule, and its source is named.

use farebox_doubles::{ArrivedRequest, RuleStanding, WIRES, broken, judge};

#[test]
fn the_examples_pass() {
    for wire in WIRES {
        let examples = wire.examples();
        assert!(
            !examples.is_empty(),
            "{}: its examples are no JSON",
            wire.name
        );
        for (headers, body) in examples {
            let bytes = body.to_string().into_bytes();
            let request = ArrivedRequest {
                path: wire.path,
                headers: &headers,
                body: &bytes,
            };
            let judged = judge(wire.vendor, &request);
            assert_eq!(judged, Ok(()), "{}: {body}", wire.name);
        }
    }
}

#[test]
fn every_rule_is_broken_once_and_refuses() {
    for wire in WIRES {
        for rule in wire.all_rules() {
            let id = rule.id(wire);
            let broken =
                broken(wire, rule).unwrap_or_else(|| panic!("{id}: no example is broken by it"));
            let faults = wire.faults(&broken.headers, &broken.body);
            let refused = faults.iter().any(|fault| fault.rule.id(wire) == id);
            let verified = rule.standing == RuleStanding::Verified;
            assert_eq!(refused, verified, "{id}: {} {faults:?}", broken.body);
        }
    }
}

#[test]
fn every_rule_has_an_id_of_its_own_and_a_source_with_its_version() {
    for wire in WIRES {
        let mut ids: Vec<String> = wire.all_rules().map(|rule| rule.id(wire)).collect();
        ids.sort();
        let doubled: Vec<_> = ids.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(doubled.is_empty(), "{doubled:?}");
        for rule in wire.all_rules() {
            let numbered = rule.source.bytes().any(|byte| byte.is_ascii_digit());
            assert!(
                numbered,
                "{}: {:?} has no version",
                rule.id(wire),
                rule.source
            );
        }
    }
}
