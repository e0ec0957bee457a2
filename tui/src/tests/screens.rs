//! The screens at four sizes, and without colours.

use super::bench::Bench;
use super::fixture::{acts, fast_charge, open_operation};
use crate::app::message::{Effect, Message};
use crate::app::modal::{Hit, ListedOperation, OutcomeLookup};
use crate::app::money::sums::MarginView;
use crate::view::Theme;
use farebox_ledger::FilesAct;
use ratatui::style::{Color, Modifier};

const SIZES: [(u16, u16); 4] = [(40, 10), (80, 24), (120, 40), (200, 50)];

/// One snapshot of a page at all sizes.
fn at_all_sizes(name: &str, reach: impl Fn(&mut Bench)) {
    let screen = |(width, height): (u16, u16)| {
        let mut bench = Bench::new(width, height).live();
        reach(&mut bench);
        format!("--- {width}x{height}\n{}", bench.screen().replace('"', ""))
    };
    let text: String = SIZES.into_iter().map(screen).collect();
    assert!(
        !text.contains("sk-fb-"),
        "a secret never gets into a snapshot"
    );
    insta::assert_snapshot!(name, text);
}

#[test]
fn keys() {
    at_all_sizes("keys", |bench| {
        bench.press("jjj");
    });
}

#[test]
fn bulk_acts() {
    at_all_sizes("bulk_review", |bench| {
        bench.press("jjj<space>jjj<space>m<space>t5<tab>inv-7<enter>");
    });
    at_all_sizes("bulk_done", |bench| {
        bench.press("jj<space>jj<space>m<space>by");
    });
}

#[test]
fn key_detail() {
    at_all_sizes("detail", |bench| {
        bench.press("jjj<enter>j");
    });
    at_all_sizes("detail_money", |bench| {
        bench.press("jjj<enter>]");
    });
    at_all_sizes("detail_models", |bench| {
        bench.press("jjj<enter>]]");
    });
    at_all_sizes("detail_runs", |bench| {
        bench.press("jjj<enter>]]]");
    });
    at_all_sizes("detail_running", |bench| {
        bench.press("jjj<enter>]]]]");
    });
}

#[test]
fn customers() {
    at_all_sizes("customers", |bench| {
        bench.press("U");
    });
    at_all_sizes("customers_unfolded", |bench| {
        bench.press("U<space>j");
    });
    for (name, tabs) in [
        ("customer", ""),
        ("customer_money", "]"),
        ("customer_grants", "]]"),
        ("customer_plans", "]]]"),
        ("customer_keys", "]]]]"),
    ] {
        at_all_sizes(name, |bench| {
            bench.press("U<enter>").press(tabs);
        });
    }
    at_all_sizes("customer_new", |bench| {
        bench.press("UnClass 9c<tab>crm-10<tab><tab><tab><tab><enter>");
    });
    at_all_sizes("customer_move", |bench| {
        let into = bench.customers[1].id;
        bench.press(&format!("Um{into}<tab>5<tab>one purse<enter>"));
    });
    at_all_sizes("customer_plan_sold", |bench| {
        bench.press("Upcoder<tab>2<tab>inv-9<tab><enter>");
    });
    at_all_sizes("customer_suspended", |bench| {
        bench.press("Uby");
    });
}

#[test]
fn other_screens() {
    for (name, key) in [
        ("live", "2"),
        ("models", "3"),
        ("routes", "4j"),
        ("holds", "5"),
        ("audit", "6"),
        ("config", "7v"),
        ("nodes", "0j"),
        ("alerts", "Aj"),
        ("alert", "A<enter>"),
        ("target", "4j<enter>"),
        ("find", "Finv-88"),
        ("spend", "8j"),
        ("margin_charts", "8]C"),
        ("detail_charts", "jjj<enter>["),
    ] {
        at_all_sizes(name, |bench| {
            bench.press(key);
        });
    }
}

/// What the gateway tells of a request that runs, and of one that was refused.
const RUNNING: &str = r#"{"under_way": {"attempts": ["north/large-1: busy: 529 overloaded_error Overloaded"],
    "target": "south/large-1", "since": "2026-11-21T12:04:02Z", "answers": true}}"#;
const REFUSED: &str = r#"{"record": {"key": "k_m5rt02w9kd", "asked": "large", "slug": "large-model", "family": "chat", "status": 503,
    "end_reason": "upstream_unavailable", "code": "upstream_unavailable", "message": "no provider answers for large-model now",
    "attempts": ["north/large-1: operator: 401 invalid x-api-key", "south/large-1: broken: 500 server_error worn out"]}}"#;

#[test]
fn a_request_shows_its_attempts() {
    for (name, known, keys) in [
        ("request_running", RUNNING, "5j<enter>"),
        ("request_refused", REFUSED, "2jjj<enter>"),
    ] {
        at_all_sizes(name, |bench| {
            (bench.settled, bench.known) = (false, serde_json::from_str(known).unwrap());
            bench.press(keys);
        });
    }
    let mut bench = Bench::new(120, 40).live();
    bench.known = serde_json::from_str(REFUSED).unwrap();
    let screen = bench.press("2jjj<enter>").screen();
    assert!(
        screen.contains("Bill") && screen.contains("worn out"),
        "a settled one has both: {screen}"
    );
    let mut bench = Bench::new(120, 40).live();
    (bench.settled, bench.known) = (false, serde_json::from_str(RUNNING).unwrap());
    bench.press("5j<enter>");
    bench.settled = true;
    bench.tell(Message::Pulse {
        now: super::fixture::ago(-1_000),
        totals: Ok(super::fixture::totals()),
    });
    assert!(bench.screen().contains("Bill"), "it ended meanwhile");
}

#[test]
fn a_reload_stands_in_the_audit_with_its_changes() {
    let act = FilesAct {
        operation: super::fixture::operation(77),
        at: super::fixture::ago(900_000),
        actor: "farebox; catalog of ada, routes of root".to_owned(),
        details: r#"{"act": "reload", "files": "3f9c 81aa", "generation": 4, "changes": [
            {"kind": "changed", "subject": "model", "slug": "large-model", "what": "price", "old": "$3.00 in", "new": "$1.50 in"},
            {"kind": "removed", "subject": "model", "slug": "old-model", "what": "price", "old": "$1.00 in", "new": null}]}"#
            .to_owned(),
    };
    at_all_sizes("audit_files", |bench| {
        bench.press("6");
        bench.tell(Message::FilesActs(vec![act.clone()]));
        bench.press("/large-model<enter>");
    });
    let mut bench = Bench::new(120, 40).live();
    bench.press("6");
    bench.tell(Message::FilesActs(vec![act]));
    let screen = bench.press("/reload<enter><enter>").screen();
    assert!(
        screen.contains("~ large-model price $3.00 in → $1.50 in")
            && screen.contains("− old-model"),
        "{screen}"
    );
}

#[test]
fn a_search_goes_to_what_it_finds() {
    let mut bench = Bench::new(120, 40).live();
    let key = bench.keys[3].id;
    bench.press("Finv-8841<enter>");
    assert!(
        bench.screen().contains("Request req_"),
        "{}",
        bench.screen()
    );
    bench.hit = Ok(Hit::Key(key));
    bench.press("<esc>Fsk-fb-hidden");
    let screen = bench.screen();
    assert!(
        screen.contains("sk-••") && !screen.contains("hidden"),
        "{screen}"
    );
    bench.press("<enter>");
    assert!(bench.app.detail_open && bench.screen().contains("ops@acme.example"));
    bench.hit = Ok(Hit::Label("customer-1".to_owned()));
    bench.press("Fcustomer-1<enter>");
    assert!(
        bench.screen().contains("Keys · label~customer-1"),
        "{}",
        bench.screen()
    );
    bench.hit = Err("nothing in the ledger has this id, reference or label".to_owned());
    bench.press("Fnobody<enter>");
    assert!(bench.screen().contains("nothing in the ledger has this id"));
    let asked = |effect: &Effect| matches!(effect, Effect::Find(text) if text.0 == "nobody");
    assert!(bench.asked.iter().any(asked));
    bench.press("<esc>");
    assert!(bench.app.modal.is_none());
}

#[test]
fn a_selected_line_of_live_stays_selected_when_requests_begin_and_end() {
    let mut bench = Bench::new(160, 40).live();
    bench.press("2jjjj");
    let selected = |bench: &Bench| {
        let shown = bench.app.live.shown(bench.app.now);
        shown[bench.app.live.list.selected].event.request_id.clone()
    };
    let before = selected(&bench);
    bench.tell(Message::Holds(Ok(Vec::new())));
    assert_eq!(selected(&bench), before);
    bench.tell(Message::Holds(Ok(super::fixture::holds())));
    assert_eq!(selected(&bench), before);
    let screen = bench.screen();
    assert!(
        screen.contains("···") && screen.contains("customer 1"),
        "{screen}"
    );
}

#[test]
fn sums_by_key_target_class_and_day() {
    for (name, keys) in [
        ("waiting", "8[j"),
        ("exposure", "8[["),
        ("exposure_target", "8[[b"),
        ("exposure_day", "8[[bbbjj"),
        ("margin", "8]"),
        ("margin_target", "8]bs"),
        ("margin_class", "8]bb"),
        ("margin_day", "8]bbbpS"),
    ] {
        at_all_sizes(name, |bench| {
            bench.press(keys);
        });
    }
}

#[test]
fn sums_answer_the_last_question_and_open_their_keys() {
    let mut bench = Bench::new(80, 24).live();
    bench.answers = false;
    bench.press("8[[");
    let first = bench.app.money.exposure.asked.unwrap();
    bench.press("p");
    bench.tell(Message::Margins {
        view: MarginView::Exposure,
        query: first,
        answer: Err("late".to_owned()),
    });
    assert!(
        bench.screen().contains("adding up …"),
        "an answer to another question says nothing"
    );
    bench.answers = true;
    bench.press("r<enter>");
    assert!(bench.app.detail_open && bench.screen().contains("ops@acme.example"));
    bench.press("<esc>b<enter>");
    assert!(!bench.app.detail_open, "a target is no key");
}

#[test]
fn pages_over_a_screen() {
    at_all_sizes("top_up_form", |bench| {
        bench.press("jjjt1,000<tab>inv-9<enter>");
    });
    at_all_sizes("top_up_review", |bench| {
        bench.press("jjjt50<enter>inv-8902<enter>");
    });
    at_all_sizes("top_up_receipt", |bench| {
        bench.press("jjjt50<enter>inv-8902<enter>y");
    });
    at_all_sizes("new_key_form", |bench| {
        bench.press("nnew customer<enter>25<enter>");
    });
    at_all_sizes("new_key_secret", |bench| {
        bench.press("nnew customer<enter>25<enter>inv-1<enter><enter><enter><enter><enter>yh");
    });
    at_all_sizes("revoke_review", |bench| {
        let last_four: String = bench.keys[0].id.chars().chars().skip(6).collect();
        bench.press(&format!("x{last_four}<enter>"));
    });
    at_all_sizes("request", |bench| {
        bench.press("jjj<enter><enter>");
    });
    at_all_sizes("request_fast", |bench| {
        bench.press("jjj<enter><enter>");
        let entry = fast_charge(8);
        bench.tell(Message::Request {
            request: entry.operation,
            entry: Ok(Some(Box::new(entry))),
            known: None,
        });
    });
    at_all_sizes("act", |bench| {
        bench.press("6<enter>");
    });
    at_all_sizes("help", |bench| {
        bench.press("?");
    });
    at_all_sizes("palette", |bench| {
        bench.press(":");
    });
}

/// On a narrow terminal the texts continue on the next line; none is cut.
#[test]
fn help_is_read_to_its_end() {
    for (width, height) in [(40, 10), (60, 18), (80, 24)] {
        let mut bench = Bench::new(width, height).live();
        bench.press("?");
        for _ in 0..150 {
            let screen = bench.screen();
            assert!(
                !screen
                    .lines()
                    .any(|line| line.contains('│') && line.contains('…')),
                "{screen}"
            );
            bench.press("j");
        }
        let end = bench.screen();
        let place = end
            .lines()
            .find_map(|line| line.split_once('–')?.1.split_once(" · j k"))
            .unwrap()
            .0
            .to_owned();
        let (shown, all) = place.split_once(" of ").unwrap();
        assert_eq!(shown, all, "{end}");
    }
}

#[test]
fn an_unknown_outcome_is_said_so() {
    at_all_sizes("unknown", |bench| {
        bench.answer = Some(|pending| Message::Applied {
            operation: pending.operation,
            result: Err(crate::app::modal::ApplyError::Unknown(
                "disk I/O error".to_owned(),
            )),
        });
        bench.press("jjjt50<enter>inv-8902<enter>");
        bench.answers = false;
        bench.press("y");
        let pending = bench.sent[0].clone();
        let result = Err(crate::app::modal::ApplyError::Unknown(
            "disk I/O error".to_owned(),
        ));
        bench.tell(Message::Applied {
            operation: pending.operation,
            result,
        });
    });
}

#[test]
fn open_operations() {
    at_all_sizes("operations", |bench| {
        let id = bench.keys[0].id;
        let open = |act: &str, number| open_operation(act, number, id);
        let listed = vec![
            ListedOperation {
                open: open("Top up", 1),
                found: OutcomeLookup::NotApplied,
            },
            ListedOperation {
                open: open("New key", 2),
                found: OutcomeLookup::Applied(None),
            },
            ListedOperation {
                open: open("Top up", 3),
                found: OutcomeLookup::Elsewhere(4711),
            },
        ];
        bench.tell(Message::Operations(listed));
    });
}

#[test]
fn empty_and_broken() {
    let mut bench = Bench::with(80, 24, Vec::new(), super::fixture::counted);
    insta::assert_snapshot!("no_keys", bench.screen());
    bench.press("2");
    insta::assert_snapshot!("no_gateway", bench.screen());
    bench.tell(Message::Status(Err("Connection refused".to_owned())));
    assert!(
        bench
            .screen()
            .contains("no gateway at http://127.0.0.1:9090; start it or pass --admin")
    );
    bench.press("1");
    let generation = bench.app.keys.generation;
    bench.tell(Message::KeysFailed {
        generation,
        error: "the ledger cannot be written: disk full".to_owned(),
    });
    assert!(bench.screen().contains("disk full"));
    bench.press("/nobody");
    assert!(
        Bench::new(80, 24)
            .press("/nobody")
            .screen()
            .contains("no key matches this filter")
    );
    assert!(
        Bench::new(80, 24)
            .press("/state:open<enter>")
            .screen()
            .contains("states are active, blocked")
    );
}

#[test]
fn what_a_gateway_said_before_it_went_away_is_marked() {
    let mut bench = Bench::new(80, 24).live();
    bench.tell(Message::Status(Err("Connection refused".to_owned())));
    assert!(
        bench
            .press("7")
            .screen()
            .contains("no gateway at http://127.0.0.1:9090 now; what follows is what it last said")
    );
    assert!(
        bench
            .press("4")
            .screen()
            .contains("no gateway now; this is what it last said")
    );
}

#[test]
fn too_small_asks_for_room() {
    for (width, height) in [(39, 24), (80, 9), (1, 1), (12, 3)] {
        let screen = Bench::new(width, height).screen();
        assert!(width < 12 || screen.contains("farebox"), "{screen}");
    }
}

#[test]
fn without_colours_there_are_words() {
    let mut bench = Bench::new(80, 24).live();
    for keys in [
        "1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "A", "1<enter>", "t",
    ] {
        bench.press(keys);
        let plain = bench.terminal(Theme::Plain);
        let cells = &plain.backend().buffer().content;
        assert!(
            cells
                .iter()
                .all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset),
            "{keys}"
        );
        assert_eq!(
            plain.backend().to_string(),
            bench.screen(),
            "the words are the same in both"
        );
    }
    insta::assert_snapshot!(
        "no_color",
        Bench::new(80, 24).live().terminal(Theme::Plain).backend()
    );
    assert_eq!(acts().len(), 5);
}

#[test]
fn unknown_filter_words_are_named() {
    let mut bench = Bench::new(100, 24).live();
    assert!(
        bench
            .press("/foo:bar")
            .screen()
            .contains("no filter is called foo:"),
        "{}",
        bench.screen()
    );
    let mut bench = Bench::new(100, 24).live();
    assert!(
        bench
            .press("2/foo:bar")
            .screen()
            .contains("no filter is called foo:"),
        "{}",
        bench.screen()
    );
    let mut bench = Bench::new(100, 24).live();
    assert!(
        bench
            .press("/state:asleep")
            .screen()
            .contains("states are active, blocked,"),
        "{}",
        bench.screen()
    );
}

/// Works on light and dark terminals: dim text is the terminal's own text colour, dimmed by the terminal, and no text has a fixed
/// grey, black or white, which would be invisible on one of the two backgrounds.
#[test]
fn every_text_is_readable_on_light_terminals() {
    let mut bench = Bench::new(200, 50).live();
    let mut dimmed = 0;
    for keys in [
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7v",
        "8",
        "9",
        "1jjj<enter>",
        "t",
        "?",
    ] {
        bench.press(keys);
        let terminal = bench.terminal(Theme::Dark);
        for cell in &terminal.backend().buffer().content {
            assert!(
                !matches!(
                    cell.fg,
                    Color::Black | Color::Gray | Color::DarkGray | Color::White
                ),
                "{keys}: {cell:?}"
            );
            if cell.modifier.contains(Modifier::DIM) {
                dimmed += 1;
                assert_eq!(
                    (cell.fg, cell.bg),
                    (Color::Reset, Color::Reset),
                    "{keys}: {cell:?}"
                );
            }
        }
    }
    assert!(dimmed > 0, "some text is dim");
}

#[test]
fn nothing_unsafe_reaches_a_cell() {
    let mut bench = Bench::new(200, 50).live();
    for keys in [
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
        "7",
        "8",
        "9",
        "0",
        "1jjjjj<enter>",
        "t",
    ] {
        bench.press(keys);
        let terminal = bench.terminal(Theme::Dark);
        for cell in &terminal.backend().buffer().content {
            assert!(
                !cell
                    .symbol()
                    .chars()
                    .any(|letter| letter.is_control() || letter == '\u{202e}'),
                "{keys}: {:?}",
                cell.symbol()
            );
        }
    }
}
