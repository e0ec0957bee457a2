//! Lists: any column sorts, whatever was filtered, sorted or marked can be undone, and the palette does both by name.

use super::bench::Bench;
use super::fixture::{keys, now};
use crate::app::keys::{From, KeysPage};
use crate::app::message::{Effect, Message};

/// Every list, by the keys that show it.
const LISTS: &[&str] = &[
    "1",
    "U",
    "U<enter>",
    "U<enter>]]",
    "2",
    "3",
    "4",
    "5",
    "6",
    "8",
    "9",
    "0",
    "$",
    "jjj<enter>",
    "jjj<enter>]",
    "jjj<enter>]]",
    "jjj<enter>]]]",
    "jjj<enter>]]]]",
];

/// The labels on the screen, from the top.
fn labels(bench: &Bench) -> Vec<String> {
    let rows = bench.app.keys.rows.iter();
    rows.map(|row| row.key.settings.label.clone()).collect()
}

#[test]
fn every_column_sorts_in_both_directions_and_comes_round() {
    for list in LISTS {
        let mut bench = Bench::new(200, 50).live();
        bench.press(list);
        let (first, columns) = (bench.app.shown_order(), bench.app.columns());
        assert!(columns.len() > 4, "{list}");
        let mut seen = Vec::new();
        for _ in columns {
            let order = bench.press("s").app.shown_order();
            seen.push(order.column);
            bench.screen();
            if order.sorts() {
                bench.press("S");
                assert_eq!(
                    bench.app.shown_order().descending,
                    !order.descending,
                    "{list}"
                );
                bench.press("S");
            }
        }
        seen.sort_unstable();
        let mut all = columns.to_vec();
        all.sort_unstable();
        assert_eq!(seen, all, "{list}");
        assert_eq!(bench.app.shown_order().column, first.column, "{list}");
    }
}

#[test]
fn keys_are_sorted_by_what_the_ledger_has_no_order_for() {
    let mut bench = Bench::new(80, 24);
    bench.press(":sort label<enter>");
    let mut expected: Vec<String> = keys()
        .iter()
        .map(|key| key.settings.label.clone())
        .collect();
    expected.sort_by_key(|label| label.to_lowercase());
    assert_eq!(labels(&bench), expected);
    assert!(bench.screen().contains("LABEL ▲"), "{}", bench.screen());
    bench.press("S");
    expected.reverse();
    assert_eq!(labels(&bench), expected);
    // With more keys than the console holds, it says so and leaves them as they are.
    bench.answers = false;
    bench.press("r");
    let Some(Effect::LoadKeys(request)) = bench.asked.last().cloned() else {
        panic!("{:?}", bench.asked)
    };
    bench.tell(Message::Keys(KeysPage {
        generation: request.generation,
        from: From::Start,
        rows: keys(),
        ended: false,
        took_ms: 1,
        at: now(),
    }));
    assert!(
        bench.screen().contains("not sorted by LABEL"),
        "{}",
        bench.screen()
    );
    assert_eq!(bench.app.shown_order().column, "CREATED");
}

#[test]
fn a_sorted_list_acts_on_the_row_that_is_shown() {
    let mut bench = Bench::new(120, 40).live();
    bench.press("6:sort operation<enter>");
    let row = bench.screen();
    let row = row.lines().find(|line| line.contains("│ > ")).unwrap();
    let copied = bench.app.selected_id().unwrap();
    assert!(row.contains(&copied), "{copied}: {row}");
    bench.press("jjj1jjj<enter>:sort amount<enter>");
    assert!(bench.screen().contains("AMOUNT▼"), "{}", bench.screen());
    bench.press("<enter>");
    let asked = bench.asked.iter().rev();
    let mut requests = asked.filter_map(|effect| match effect {
        Effect::LoadRequest(request) => Some(*request),
        _ => None,
    });
    let payment = super::fixture::entries().pop().unwrap();
    assert_eq!(requests.next(), Some(payment.operation), "the largest");
}

#[test]
fn filters_and_orders_are_undone_one_by_one() {
    let mut bench = Bench::new(80, 24);
    bench.press("/acme<enter>sS");
    let order = bench.app.shown_order();
    bench.press("2/429<enter>s");
    assert_eq!(
        (
            bench.app.live.filter.as_str(),
            bench.app.shown_order().column
        ),
        ("429", "CHARGE")
    );
    bench.press("u");
    assert_eq!(bench.app.shown_order().column, "");
    bench.press("u");
    assert_eq!(bench.app.live.filter, "");
    assert!(bench.screen().contains("undone: filter"));
    bench.press("u");
    assert_eq!(bench.app.shown_order().descending, !order.descending);
    assert!(bench.screen().contains("Keys · acme"), "on its own screen");
    bench.press("uu");
    assert_eq!(bench.app.keys.filter_text, "", "a filter is one step");
    assert!(labels(&bench).len() > 30);
    assert!(bench.press("u").screen().contains("not now"));
}

#[test]
fn the_palette_completes_and_takes_values() {
    let mut bench = Bench::new(80, 24).live();
    bench.press(":so<tab>");
    let typed = |bench: &Bench| {
        let palette = bench.app.palette.as_ref();
        palette.map(|palette| palette.field.text().to_owned())
    };
    assert_eq!(typed(&bench).as_deref(), Some("sort "));
    bench.press("hel<tab><enter>");
    assert_eq!(bench.app.shown_order().column, "HELD");
    bench.press(":filter acme<enter>");
    assert_eq!(bench.app.keys.filter_text, "acme");
    bench.press("9:period last<enter>");
    assert!(bench.screen().contains("last month"), "{}", bench.screen());
    bench.press("1:find inv-8841<enter>");
    let found = |effect: &Effect| matches!(effect, Effect::Find(text) if text.0 == "inv-8841");
    assert!(bench.asked.iter().any(found));
    let screen = bench.press("<esc>A:filter x").screen();
    assert!(screen.contains("this screen has no filter"), "{screen}");
}

/// The keys of *The console* in `docs/operations.md`.
#[test]
fn the_keystrokes_of_the_manual_do_what_it_says() {
    let bench = |keys: &str| {
        let mut bench = Bench::new(80, 24).live();
        bench.press(keys);
        bench
    };
    assert_eq!(bench("?").app.help, Some(0));
    assert_eq!(bench("5").app.screen, crate::app::Screen::Holds);
    assert_eq!(bench("/acme<enter>").app.keys.filter_text, "acme");
    assert_eq!(bench("/acme<enter><esc>").app.keys.filter_text, "");
    assert_eq!(bench("s").app.shown_order().column, "BALANCE");
    assert_eq!(bench(":sort k<enter>").app.shown_order().column, "KEY");
    assert!(bench("S").app.keys.ascending);
    assert_eq!(bench("<space><space><space>by").sent.len(), 3);
    assert_eq!(bench("su").app.shown_order().column, "CREATED");
    let copied = |effect: &Effect| matches!(effect, Effect::Copy(id) if id.0.starts_with("k_"));
    assert!(bench("c").asked.iter().any(copied));
}
