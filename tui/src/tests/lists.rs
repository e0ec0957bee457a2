//! Lists: any column sorts, whatever was filtered, sorted or marked can be undone, and the palette does both by name.

use farebox_ledger::{MarginOrder, MarginQuery, MarginRow};

use super::bench::Bench;
use super::fixture::{customers, keys, now};
use crate::app::customers::CustomersPage;
use crate::app::keys::{From, KeysPage};
use crate::app::message::{Effect, Message};
use crate::app::mouse::{Pane, Spot};
use crate::view::Theme;

/// Every list, by the keys that show it.
const LISTS: &[&str] = &[
    "1",
    "U",
    "U<enter>",
    "U<enter>]]",
    "U<enter>]]]",
    "U<enter>]]]]",
    "2",
    "3",
    "4",
    "5",
    "6",
    "8",
    "8]",
    "8[[",
    "8[",
    "0",
    "jjj<enter>",
    "jjj<enter>]",
    "jjj<enter>]]",
    "jjj<enter>]]]",
    "jjj<enter>]]]]",
    "jjj<enter>]]]]]",
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
        let (first, orders) = (bench.app.shown_order(), bench.app.orders());
        let columns: Vec<&str> = orders.iter().map(|order| order.column).collect();
        assert!(columns.len() > 3, "{list}");
        let mut seen = Vec::new();
        for _ in &columns {
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
        let mut all = columns;
        all.sort_unstable();
        assert_eq!(seen, all, "{list}");
        assert_eq!(bench.app.shown_order().column, first.column, "{list}");
    }
}

/// The cells below a heading, from the top.
fn cells(bench: &Bench, title: &str) -> Vec<String> {
    let (terminal, spots) = bench.draw(Theme::Dark);
    let pane = match bench.app.detail_open {
        true => Pane::Detail,
        false => Pane::List,
    };
    let place = |wanted: &dyn Fn(&Spot) -> bool| {
        let found = spots.iter().find(|(_, spot)| wanted(spot));
        found
            .unwrap_or_else(|| panic!("{title} is not on\n{}", bench.screen()))
            .0
    };
    let head = place(&|spot| *spot == Spot::Head(pane, title_of(bench, title)));
    let rows = place(&|spot| matches!(spot, Spot::Rows(of, _) if *of == pane));
    let buffer = terminal.backend().buffer();
    let cell = |y| {
        let symbols = (head.left()..head.right()).map(|x| buffer[(x, y)].symbol());
        symbols.collect::<String>().trim().to_owned()
    };
    (rows.top()..rows.bottom()).map(cell).collect()
}

fn title_of(bench: &Bench, title: &str) -> &'static str {
    let orders = bench.app.orders().into_iter();
    let mut titles = orders.map(|order| order.column);
    titles.find(|known| *known == title).unwrap()
}

/// What a reader takes a cell for: a number with its unit, an instant, or text.
fn read(title: &str, cell: &str) -> (i64, String) {
    let units = [
        (" min", 60_000.0),
        (" s", 1_000.0),
        (" h", 3_600_000.0),
        (" d", 86_400_000.0),
        ("ms", 1.0),
        ("s", 1_000.0),
        ("k", 1_000.0),
        ("M", 1_000_000.0),
        ("h", 1.0),
        ("%", 1.0),
        ("", 1.0),
    ];
    let plain: String = cell
        .chars()
        .filter(|sign| !"$,+>".contains(*sign))
        .collect();
    let number = |text: &str| {
        let read = |(unit, times): &(&str, f64)| {
            let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
            Some(number * times * 1_000_000.0)
        };
        units.iter().find_map(read)
    };
    let sum = plain.split('→').map(number).sum::<Option<f64>>();
    #[expect(clippy::cast_possible_truncation, reason = "cells have few digits")]
    match (sum, cell.len()) {
        // How long ago it was, of what sorts by its instant.
        (Some(number), _) if title == "LAST" => (-number as i64, String::new()),
        (Some(number), _) => (number as i64, String::new()),
        (None, 8) if cell.matches(':').count() == 2 => (3, cell.to_owned()),
        (None, 11) if cell.contains(':') => (2, cell.to_owned()),
        _ if matches!(cell, "—" | "") => (i64::MIN, String::new()),
        // What no terminal may get is shown by a sign.
        _ => (1, cell.to_lowercase().replace('\u{fffd}', "\0")),
    }
}

/// Columns whose cells are cut or stand for something else: the worst state first, the whole of an id, no reason last.
const OTHERWISE: &[(&str, &str)] = &[("4", "STATE"), ("4", "WHY"), ("jjj<enter>]]]]", "REQUEST")];

#[test]
fn every_list_sorted_by_any_column_shows_its_rows_in_that_order() {
    let mut wrong = Vec::new();
    for list in LISTS {
        let mut bench = Bench::new(400, 60).live();
        bench.press(list);
        for order in bench.app.orders().into_iter().filter(|order| order.sorts()) {
            let [there, back] = ["", "S"].map(|then| {
                let asked = bench.asked.len();
                bench.press(
                    match then {
                        "" => format!(":sort {}<enter>", order.column.to_lowercase()),
                        reverse => reverse.to_owned(),
                    }
                    .as_str(),
                );
                answer_in_order(&mut bench, asked);
                let shown = bench.app.shown_order();
                assert_eq!(shown.column, order.column, "{list}");
                let mut cells = cells(&bench, order.column);
                // The sums of all stand above those of each.
                cells.drain(..usize::from(*list == "8"));
                assert!(cells.len() > 1, "{list} {}", bench.screen());
                let mut expected = cells.clone();
                if shown.descending {
                    expected.sort_by_key(|cell| std::cmp::Reverse(read(order.column, cell)));
                } else {
                    expected.sort_by_key(|cell| read(order.column, cell));
                }
                if !OTHERWISE.contains(&(list, order.column)) && cells != expected {
                    wrong.push(format!("{list} {shown:?}: {cells:?}"));
                }
                (shown.descending, expected)
            });
            assert_ne!(there.0, back.0, "{list} {order:?}");
            let [mut there, mut back] = [there.1, back.1];
            there.sort();
            back.sort();
            assert_eq!(there, back, "{list} {order:?}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Answers what was asked last as the ledger does, which sorts its answer.
fn answer_in_order(bench: &mut Bench, before: usize) {
    let at = now();
    let questions: Vec<Effect> = bench.asked.drain(before..).collect();
    for question in questions {
        match question {
            Effect::LoadKeys(request) => {
                let mut rows = keys();
                rows.sort_by_key(|key| request.order.place(key).value);
                if request.order.is_descending() {
                    rows.reverse();
                }
                bench.tell(Message::Keys(KeysPage {
                    generation: request.generation,
                    from: From::Start,
                    rows,
                    ended: true,
                    took_ms: 1,
                    at,
                }));
            }
            Effect::LoadCustomers(request) => {
                let mut rows = customers();
                rows.sort_by_key(|customer| request.order.place_of_customer(customer).0);
                if request.order.is_descending() {
                    rows.reverse();
                }
                bench.tell(Message::Customers(CustomersPage {
                    generation: request.generation,
                    more: false,
                    rows: Ok(rows),
                    ended: true,
                    at,
                }));
            }
            Effect::LoadMargins { view, query } => {
                let mut answer = bench.sums(query);
                answer.page.rows.sort_by_key(|row| value(query, row));
                if query.reverse {
                    answer.page.rows.reverse();
                }
                let answer = Ok(answer);
                bench.tell(Message::Margins {
                    view,
                    query,
                    answer,
                });
            }
            _ => {}
        }
    }
}

/// What the ledger sorts sums by, the smallest first: amounts begin with the largest.
fn value(query: MarginQuery, row: &MarginRow) -> (i64, String) {
    let amount = match query.order {
        MarginOrder::Name => return (0, row.name.clone()),
        MarginOrder::Charge => row.charge,
        MarginOrder::Cost => row.cost,
        MarginOrder::Exposure => row.exposure,
        MarginOrder::Loss => row.loss,
        MarginOrder::Margin => match row.margin() {
            Some(margin) => margin,
            None => return (i64::MAX, String::new()),
        },
    };
    (-amount.picos(), String::new())
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
            bench.app.live.list.filter.as_str(),
            bench.app.shown_order().column
        ),
        ("429", "CHARGE")
    );
    bench.press("u");
    assert_eq!(bench.app.shown_order().column, "");
    bench.press("u");
    assert_eq!(bench.app.live.list.filter, "");
    assert!(bench.screen().contains("undone: filter"));
    bench.press("u");
    assert_eq!(bench.app.shown_order().descending, !order.descending);
    assert!(bench.screen().contains("Keys · acme"), "on its own screen");
    bench.press("uu");
    assert_eq!(bench.app.keys.list.filter, "", "a filter is one step");
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
    assert_eq!(bench.app.keys.list.filter, "acme");
    bench.press(":margin<enter>:period last<enter>");
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
    assert_eq!(bench("/acme<enter>").app.keys.list.filter, "acme");
    assert_eq!(bench("/acme<enter><esc>").app.keys.list.filter, "");
    assert_eq!(bench("s").app.shown_order().column, "BALANCE");
    assert_eq!(bench(":sort k<enter>").app.shown_order().column, "KEY");
    assert!(!bench("S").app.keys.list.order.descending);
    assert_eq!(bench("<space><space><space>by").sent.len(), 3);
    assert_eq!(bench("su").app.shown_order().column, "CREATED");
    let copied = |effect: &Effect| matches!(effect, Effect::Copy(id) if id.0.starts_with("k_"));
    assert!(bench("c").asked.iter().any(copied));
}
