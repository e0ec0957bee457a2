//! Properties: no sequence of keys at any size makes the console panic, send without a review, or draw outside the screen.

use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use proptest::prelude::*;

use super::bench::Bench;
use super::fixture::{counted, keys};
use crate::app::modal::Modal;
use crate::view::Theme;

fn code() -> impl Strategy<Value = KeyCode> {
    let special = vec![
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Tab,
        KeyCode::BackTab,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Backspace,
        KeyCode::Delete,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::PageDown,
        KeyCode::PageUp,
    ];
    prop_oneof![
        4 => prop::sample::select("tnxbeRafFALvoscCUOKrgGjkyqhwumS*/:?[]1234567890 .-漢".chars().collect::<Vec<_>>()).prop_map(KeyCode::Char),
        3 => prop::sample::select(special),
        1 => any::<char>().prop_map(KeyCode::Char),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => (code(), prop::bool::weighted(0.1)).prop_map(|(code, ctrl)| {
            Event::Key(KeyEvent::new(code, if ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE }))
        }),
        1 => (0_u16..220, 0_u16..60).prop_map(|(width, height)| Event::Resize(width, height)),
        1 => "\\PC{0,40}".prop_map(Event::Paste),
        3 => (0_u16..220, 0_u16..60, prop::sample::select(vec![
            MouseEventKind::Down(MouseButton::Left),
            MouseEventKind::ScrollDown,
            MouseEventKind::ScrollUp,
            MouseEventKind::Up(MouseButton::Left),
        ])).prop_map(|(column, row, kind)| {
            Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_keys_at_any_size(width in 0_u16..220, height in 0_u16..60, live in any::<bool>(), events in prop::collection::vec(event(), 0..60)) {
        let mut bench = Bench::with(width, height, keys(), counted);
        if live {
            bench = bench.live();
        }
        for event in events {
            let reviewed = match &bench.app.modal {
                Some(Modal::Review(_)) => 1,
                Some(Modal::Bulk(act)) if !act.sent => act.changes(),
                _ => 0,
            };
            let sent = bench.sent.len();
            bench.event(&event);
            prop_assert!(bench.sent.len() <= sent + reviewed, "an act was sent without its review");
            bench.terminal(if live { Theme::Light } else { Theme::Plain });
        }
    }
}
