//! Tests the rules: one violation of each is planted into a copy of the sources, and the rule must find it.

use crate::house::{House, read};
use crate::{circles, house, names, open, rules};

type Rule = fn(&House) -> Vec<String>;

/// Where, the code, and the rule that must see it.
const PLANTS: &[(&str, &str, Rule)] = &[
    // Walls, in the fronts of the rooms and below them, in every way to write a path.
    (
        "src/upstream/mod.rs",
        "use farebox_ledger::KeyId as Planted;",
        rules::walls,
    ),
    (
        "src/upstream/mod.rs",
        "fn planted() { let _ = crate::metering::estimate::input; }",
        rules::walls,
    ),
    ("src/upstream/mod.rs", "use super::*;", rules::walls),
    (
        "src/upstream/mod.rs",
        "use {super::proxy as spine}; fn planted(_: spine::Request) {}",
        rules::walls,
    ),
    (
        "src/config/mod.rs",
        "use salvo::Request as Planted;",
        rules::walls,
    ),
    (
        "src/config/mod.rs",
        "use farebox_protocol::sse::Frame as Planted;",
        rules::walls,
    ),
    (
        "src/config/mod.rs",
        "fn planted() { println!(\"{}\", crate::server::PLANTED); }",
        rules::walls,
    ),
    (
        "src/proxy/mod.rs",
        "use farebox_ledger as money; use reqwest as web; fn planted(_: web::Client) {}",
        rules::walls,
    ),
    (
        "src/server/mod.rs",
        "mod planted { use super::super::super::metering; }",
        rules::walls,
    ),
    (
        "src/metering/mod.rs",
        "fn planted() { std::fs::read(\"x\"); }",
        rules::walls,
    ),
    ("src/metering/mod.rs", "async fn planted() {}", rules::walls),
    (
        "src/lib.rs",
        "fn planted() { proxy::record::request_id(); }",
        rules::walls,
    ),
    (
        "ledger/src/lib.rs",
        "fn planted(_: rusqlite::Connection) {}",
        rules::walls,
    ),
    (
        "ledger/src/store/sqlite/mod.rs",
        "use farebox_protocol::Family as Planted;",
        rules::walls,
    ),
    (
        "ledger/src/store/postgres/mod.rs",
        "use crate::store::sqlite::SqliteLedger as Planted;",
        rules::walls,
    ),
    (
        "ledger/src/store/sqlite/mod.rs",
        "#[derive(reqwest::Planted)] struct Planted;",
        rules::walls,
    ),
    (
        "protocol/src/lib.rs",
        "fn planted() { tokio::pin!(x); }",
        rules::walls,
    ),
    (
        "tui/src/main.rs",
        "use farebox_protocol::Family as Planted;",
        rules::walls,
    ),
    (
        "tui/src/main.rs",
        "fn planted() -> rusqlite::Result<()> { Ok(()) }",
        rules::walls,
    ),
    // Only the protocol knows families.
    (
        "src/upstream/mod.rs",
        "fn planted(f: Family) -> u8 { match f { Family::Chat => 1, _ => 2 } }",
        rules::families,
    ),
    (
        "src/config/mod.rs",
        "fn p(f: F) -> bool { f == farebox_protocol::Family::Chat }",
        rules::families,
    ),
    (
        "src/proxy/mod.rs",
        "fn p(f: Family) -> bool { matches!(f, Family::Chat | Family::Messages) }",
        rules::families,
    ),
    (
        "src/server/mod.rs",
        "use farebox_protocol::Family as F; fn p(f: F) { if let Some(F::Chat) = g(f) {} }",
        rules::families,
    ),
    (
        "src/upstream/mod.rs",
        "fn p(f: Family) { assert!(Family::Chat != f); }",
        rules::families,
    ),
    // Operations are told apart where they are listed.
    (
        "ledger/src/store/postgres/job.rs",
        "fn planted(o: &Operation) -> bool { match o { Operation::Open(_) => true, _ => false } }",
        rules::operations,
    ),
    (
        "selling/src/lib.rs",
        "fn planted(o: &Operation) -> bool { matches!(o, Operation::Create(_)) }",
        rules::operations,
    ),
    (
        "cli/src/run/demo.rs",
        "fn p(d: D) { let farebox_ledger::Operation::Pay(_) = d.operation else { return }; }",
        rules::operations,
    ),
    (
        "src/server/mod.rs",
        "use farebox_ledger::Operation::{self as O, Move}; fn p(o: O) { if let Move(_) = o {} }",
        rules::operations,
    ),
    // Clocks, environment, tasks, threads, clients, snapshots.
    (
        "src/upstream/mod.rs",
        "fn planted() { std::time::SystemTime::now(); }",
        rules::bans,
    ),
    (
        "src/config/mod.rs",
        "use std::time::SystemTime as S; fn planted() { S::now(); }",
        rules::bans,
    ),
    (
        "ledger/src/store/sqlite/mod.rs",
        "fn planted() { jiff::Timestamp::now(); }",
        rules::bans,
    ),
    (
        "tui/src/main.rs",
        "use std::time; fn planted() { time::Instant::now(); }",
        rules::bans,
    ),
    (
        "src/upstream/mod.rs",
        "use std::env; fn planted() { env::var(\"X\"); }",
        rules::bans,
    ),
    (
        "src/upstream/mod.rs",
        "fn planted() { tokio::spawn(async {}); }",
        rules::bans,
    ),
    (
        "src/config/mod.rs",
        "use tokio::task; fn planted() { task::spawn(x); }",
        rules::bans,
    ),
    (
        "src/upstream/mod.rs",
        "fn planted() { std::thread::spawn(|| ()); }",
        rules::bans,
    ),
    (
        "src/upstream/mod.rs",
        "fn planted() { reqwest::Client::new(); }",
        rules::bans,
    ),
    (
        "src/proxy/mod.rs",
        "fn planted(error: &farebox_protocol::UpstreamError) {}",
        rules::bans,
    ),
    (
        "src/server/mod.rs",
        "use farebox_protocol::UpstreamError as E; fn planted(error: E) {}",
        rules::bans,
    ),
    (
        "src/upstream/mod.rs",
        "fn planted(x: X) { x.config.current(); }",
        rules::bans,
    ),
    // Raw bytes of an upstream.
    (
        "src/telemetry/log.rs",
        "fn planted(frame: &farebox_protocol::Frame) {}",
        rules::bans,
    ),
    (
        "src/proxy/request.rs",
        "use farebox_protocol::AnswerReader as R; fn planted(reader: &dyn R) {}",
        rules::bans,
    ),
    (
        "src/proxy/record.rs",
        "use crate::upstream as up; fn planted(said: up::AnswerContent) {}",
        rules::bans,
    ),
    (
        "src/customer/activity.rs",
        "fn planted(facts: &farebox_protocol::AnswerFacts) {}",
        rules::bans,
    ),
    // Vendors, SQL, long functions.
    (
        "src/upstream/mod.rs",
        "const PLANTED: &str = \"https://api.openai.com\";",
        rules::vendors,
    ),
    ("src/config/mod.rs", "fn for_anthropic() {}", rules::vendors),
    (
        "tui/src/main.rs",
        "const PLANTED: &str = \"SELECT 1\";",
        rules::sql,
    ),
    (
        "ledger/src/lib.rs",
        "fn p() { x!(\"\\n  UPDATE keys SET spent = 0\"); }",
        rules::sql,
    ),
];

#[test]
fn an_open_pattern_where_money_is_is_found() {
    let clean = House::load();
    let at = "ledger/src/rule/key.rs";
    let found = |code: &str| {
        let house = clean.with(at, &format!("{}\n{code}\n", read(at)));
        open::open(&house, "ledger/src/").map(|found| found.len())
    };
    let [arms, rests] = open::open(&clean.only(at), "ledger/src/").map(|found| found.len());
    for (code, more) in [
        (
            "fn planted(of: KeyStatus) { match of { KeyStatus::Active => {} _ => {} } }",
            [1, 0],
        ),
        ("fn planted(Key { id, .. }: Key) {}", [0, 1]),
        (
            "fn planted(of: &str) { match of { \"a\" => {} _ => {} } }",
            [0, 0],
        ),
        (
            "fn planted(of: Option<u8>) { match of { Some(1) => {} _ => {} } }",
            [0, 0],
        ),
        (
            "fn planted(of: CreditKind) { if let CreditKind::Adjust { .. } = of {} }",
            [0, 0],
        ),
    ] {
        assert_eq!(found(code), [arms + more[0], rests + more[1]], "{code}");
    }
}

#[test]
fn a_new_namesake_and_a_vague_name_are_found() {
    let clean = House::load();
    let faults = |path: &str, code: &str| {
        let house = clean.with(path, &format!("{}\n{code}\n", read(path)));
        assert_eq!(house.unreadable, Vec::<String>::new());
        names::namesakes(&house).len()
    };
    for (path, code) in [
        // Any kind of type, public or not, in a function or not; also one that has parallels elsewhere.
        ("src/upstream/mod.rs", "struct Terms;"),
        ("src/config/mod.rs", "pub enum Terms { One }"),
        ("tui/src/main.rs", "trait Ledger {}"),
        (
            "protocol/src/lib.rs",
            "fn planted() { type Amount = u8; let _: Amount = 0; }",
        ),
        ("protocol/src/chat/mod.rs", "mod planted { struct Reader; }"),
        ("src/proxy/mod.rs", "struct Known;"),
        ("bench/src/main.rs", "type State = u8;"),
    ] {
        assert_eq!(faults(path, code), 1, "not found in {path}: {code}");
    }
    for code in [
        "struct PlantedHere;",
        "#[cfg(test)] struct Known;",
        "impl Iterator for X { type Item = Known; }",
    ] {
        assert_eq!(faults("src/upstream/mod.rs", code), 0, "{code}");
    }
}

#[test]
fn every_planted_violation_is_found() {
    let clean = House::load();
    for (path, code, rule) in PLANTS {
        let whole = read(path);
        let house = clean.with(path, &format!("{whole}\n{code}\n"));
        assert_eq!(house.unreadable, Vec::<String>::new());
        let before = rule(&clean.only(path)).len();
        assert!(rule(&house).len() > before, "not found in {path}: {code}");
    }
}

#[test]
fn a_circle_is_found_between_rooms_and_between_files() {
    let clean = House::load();
    let before = circles::circles(clean);
    for (path, code) in [
        ("src/config/mod.rs", "use crate::proxy::Request as Planted;"),
        (
            "src/metering/mod.rs",
            "fn planted() { crate::proxy::planted(); }",
        ),
        (
            "ledger/src/value/amount.rs",
            "fn planted(_: crate::JournalEntry) {}",
        ),
    ] {
        let house = clean.with(path, &format!("{}\n{code}\n", read(path)));
        assert_ne!(
            circles::circles(&house),
            before,
            "not found in {path}: {code}"
        );
    }
}

#[test]
fn a_long_function_is_found_also_in_a_room_front() {
    let clean = House::load();
    let long = format!(
        "impl X {{ fn planted() {{\n{}}}\n}}",
        "    call();\n".repeat(70)
    );
    for path in [
        "src/upstream/mod.rs",
        "src/config/mod.rs",
        "ledger/src/store/sqlite/mod.rs",
        "tui/src/main.rs",
    ] {
        let house = clean.with(path, &format!("{}\n{long}\n", read(path)));
        assert_eq!(rules::functions(&house).len(), 1, "{path}");
    }
}

#[test]
fn what_only_tests_compile_is_left_out() {
    let clean = House::load();
    let code = "#[cfg(test)]\nmod planted { use reqwest as web; }\n#[cfg(all(test, unix))]\nfn planted() { salvo::x(); }";
    let house = clean.with(
        "src/config/mod.rs",
        &format!("{}\n{code}\n", read("src/config/mod.rs")),
    );
    assert_eq!(rules::walls(&house), rules::walls(clean));
    assert!(
        clean
            .sources
            .keys()
            .all(|path| !path.ends_with("/tests.rs") && !path.contains("/tests/")),
        "all are test modules"
    );
    assert!(house::files(&["src"], ".rs").len() > clean.sources.len() / 4);
}
