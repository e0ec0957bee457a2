//! The mouse: it selects, opens, sorts, scrolls and changes screens and tabs, and applies nothing.

use crossterm::event::MouseEventKind;

use super::bench::Bench;
use super::fixture::keys;
use crate::app::Screen;
use crate::app::detail::Tab;
use crate::app::message::Effect;
use crate::app::modal::Modal;
use crate::background::{Background, ThemeChoice};
use crate::view::Theme;

#[test]
fn a_click_selects_and_a_second_one_opens() {
    let mut bench = Bench::new(80, 24);
    bench.click("ops@acme.example");
    assert_eq!(bench.app.keys.list.selected, 3);
    assert!(!bench.app.detail_open);
    bench.click("ops@acme.example");
    assert!(bench.app.detail_open);
    bench.click("money in");
    assert_eq!(bench.app.detail.as_ref().unwrap().tab, Tab::Payments);
    bench.click("esc back");
    assert!(!bench.app.detail_open);
}

#[test]
fn headings_sort_and_names_of_screens_show_them() {
    let mut bench = Bench::new(80, 24).live();
    bench.click("BALANCE");
    assert_eq!(bench.app.shown_order().column, "BALANCE");
    let ascending = !bench.app.shown_order().descending;
    bench.click("BALANCE▲");
    assert_eq!(
        (ascending, bench.app.shown_order().descending),
        (true, true)
    );
    // 80 columns have the keys of the other screens only, 200 have all names.
    bench.click(" 2 3 4");
    let mut bench = Bench::new(120, 40).live();
    bench.click("4 Routes");
    assert_eq!(bench.app.screen, Screen::Routes);
    bench.click("0 Nodes");
    bench.click("STATE");
    assert!(bench.screen().contains("not sorted by STATE"));
}

#[test]
fn every_heading_on_every_screen_sorts() {
    for (list, except) in [
        ("1", ""),
        ("2", ""),
        ("3", ""),
        ("4", ""),
        ("5", ""),
        ("6", ""),
        ("8", "SHARE"),
        ("8]", ""),
        ("8[[", ""),
        ("U", ""),
        ("0", "STATE"),
    ] {
        let mut bench = Bench::new(200, 50).live();
        bench.press(list);
        let heads = bench.heads();
        assert!(heads.len() > 4, "{list}");
        for head in heads {
            // The servers of a database are a list of their own.
            let orders = bench.app.orders();
            let sorts = orders.iter().any(|order| order.column == head);
            assert!(sorts || head == except || head == "SERVER", "{list} {head}");
        }
    }
}

#[test]
fn the_two_sides_of_a_wide_terminal_take_the_focus() {
    let mut bench = Bench::new(170, 40).live();
    bench.press("jjj");
    bench.click("money in");
    assert!(bench.app.detail_open, "the page of the key has the focus");
    bench.click("acme-sandbox");
    assert!(!bench.app.detail_open);
    assert_eq!(bench.app.keys.row().unwrap().key.id, keys()[1].id);
}

#[test]
fn the_wheel_scrolls_what_is_on_top() {
    let mut bench = Bench::new(80, 24);
    let place = (10, 10);
    bench.mouse(MouseEventKind::ScrollDown, place);
    assert_eq!(bench.app.keys.list.selected, 3);
    bench.mouse(MouseEventKind::ScrollUp, place);
    assert_eq!(bench.app.keys.list.selected, 0);
    bench.press("?").mouse(MouseEventKind::ScrollDown, place);
    assert_eq!(bench.app.help, Some(3));
    bench
        .press("<esc>:")
        .mouse(MouseEventKind::ScrollDown, place);
    assert_eq!(bench.app.palette.as_ref().unwrap().selected, 1);
}

#[test]
fn nothing_is_applied_with_the_mouse() {
    let mut bench = Bench::new(80, 24);
    bench.press("t5<tab>inv<enter>");
    for row in 0..24 {
        for column in 0..80 {
            let kind = MouseEventKind::Down(crossterm::event::MouseButton::Left);
            bench.mouse(kind, (column, row));
            if !matches!(bench.app.modal, Some(Modal::Review(_))) {
                assert!(matches!(bench.app.modal, Some(Modal::Form(_))));
                bench.press("<enter>");
            }
        }
    }
    assert!(bench.sent.is_empty());
}

#[test]
fn m_turns_it_off_and_on() {
    let mut bench = Bench::new(80, 24);
    bench.press("M");
    assert_eq!(bench.asked.last(), Some(&Effect::Mouse(false)));
    assert!(bench.screen().contains("the terminal selects text"));
    bench.press("M");
    assert_eq!(bench.asked.last(), Some(&Effect::Mouse(true)));
}

#[test]
fn colours_follow_the_terminal_unless_they_are_chosen() {
    let mut bench = Bench::new(80, 24);
    assert_eq!(Theme::of(&bench.app), Theme::Dark);
    bench
        .app
        .update(crate::app::Action::Background(Background::Light));
    assert_eq!(Theme::of(&bench.app), Theme::Light);
    bench.press(":theme dark<enter>");
    assert_eq!(
        (bench.app.theme, Theme::of(&bench.app)),
        (ThemeChoice::Dark, Theme::Dark)
    );
    bench.press(":theme none<enter>");
    assert_eq!(Theme::of(&bench.app), Theme::Plain);
    bench.press(":theme auto<enter>");
    assert_eq!(Theme::of(&bench.app), Theme::Light);
}
