//! Turns keys into actions, depending on the focus. What an action does is decided elsewhere.
//!
//! A letter acts only if no text field has the focus. No ctrl chord does more than move, send a form to its review, or quit.

use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::{Position, Rect};

use crate::app::bindings::{BINDINGS, works_at};
use crate::app::command::{CommandContext, ConsoleCommand};
use crate::app::modal::Modal;
use crate::app::mouse::Spot;
use crate::app::{Action, ConsoleApp};
use crate::field::FieldEdit;

/// A key pressed within milliseconds after escape arrives as one key with alt: it is read as the two original keys.
pub(crate) fn apart(event: Event) -> (Event, Option<Event>) {
    match event {
        Event::Key(key) if key.modifiers.contains(KeyModifiers::ALT) => {
            let escape = KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE);
            let second = KeyEvent {
                modifiers: key.modifiers.difference(KeyModifiers::ALT),
                ..key
            };
            (Event::Key(escape), Some(Event::Key(second)))
        }
        other => (other, None),
    }
}

/// The action for one event of the terminal; `spots` is what is where on the screen.
pub(crate) fn action(app: &ConsoleApp, spots: &[(Rect, Spot)], event: &Event) -> Option<Action> {
    match event {
        Event::Mouse(mouse) => mouse_action(spots, *mouse),
        Event::Resize(width, height) => Some(Action::Resize(*width, *height)),
        Event::Paste(text) if types(app) => Some(Action::Edit(FieldEdit::Paste(text.clone()))),
        Event::Key(key) if key.kind != KeyEventKind::Release => key_action(app, *key),
        _ => None,
    }
}

/// The left button and the wheel act; all else of the mouse does nothing.
fn mouse_action(spots: &[(Rect, Spot)], mouse: MouseEvent) -> Option<Action> {
    let at = Position::new(mouse.column, mouse.row);
    match mouse.kind {
        MouseEventKind::ScrollDown => Some(Action::Wheel { down: true }),
        MouseEventKind::ScrollUp => Some(Action::Wheel { down: false }),
        MouseEventKind::Down(MouseButton::Left) => {
            // What was drawn last lies on top.
            let above = spots.iter().rev().find(|(place, _)| place.contains(at));
            above.map(|(place, spot)| {
                Action::Click(*spot, usize::from(mouse.row.saturating_sub(place.y)))
            })
        }
        _ => None,
    }
}

/// Whether a text field has the focus.
pub(crate) fn types(app: &ConsoleApp) -> bool {
    let field = match &app.modal {
        Some(Modal::Form(_)) => true,
        Some(Modal::Find(page)) => !page.looking,
        Some(Modal::Secret(page)) => page.file.is_some() || page.leaving.is_some(),
        _ => false,
    };
    app.help.is_none() && (field || app.palette.is_some() || app.filtering.is_some())
}

fn key_action(app: &ConsoleApp, key: KeyEvent) -> Option<Action> {
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    if ctrl && key.code == KeyCode::Char('c') {
        return Some(Action::Quit);
    }
    if key.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    if app.help.is_some() {
        return Some(reading(key.code));
    }
    if types(app) {
        return typing(app, key.code, ctrl);
    }
    if app.modal.is_some() {
        return page(key.code, ctrl);
    }
    on_screen(app, key.code, ctrl).map(Action::Command)
}

/// Help: moves, or closes with any other key.
const fn reading(code: KeyCode) -> Action {
    match code {
        KeyCode::Down | KeyCode::Char('j') => Action::Scroll(1),
        KeyCode::Up | KeyCode::Char('k') => Action::Scroll(-1),
        KeyCode::PageDown => Action::Scroll(10),
        KeyCode::PageUp => Action::Scroll(-10),
        _ => Action::Escape,
    }
}

/// A text field: letters are text.
fn typing(app: &ConsoleApp, code: KeyCode, ctrl: bool) -> Option<Action> {
    let edit = |edit| Some(Action::Edit(edit));
    match code {
        KeyCode::Char('s') if ctrl => Some(Action::Submit),
        KeyCode::Char('u') if ctrl => edit(FieldEdit::Clear),
        KeyCode::Char('a') if ctrl => edit(FieldEdit::Home),
        KeyCode::Char('e') if ctrl => edit(FieldEdit::End),
        KeyCode::Char('n') if ctrl => Some(Action::Next),
        KeyCode::Char('p') if ctrl => Some(Action::Previous),
        KeyCode::Char(_) if ctrl => None,
        // Nothing was typed yet in a filter or palette: a colon or slash there is a slip, not text.
        KeyCode::Char(letter)
            if app
                .palette
                .as_ref()
                .is_some_and(|palette| palette.field.text().is_empty())
                && letter == ':' =>
        {
            None
        }
        KeyCode::Char(letter) => edit(FieldEdit::Insert(letter)),
        KeyCode::Backspace => edit(FieldEdit::Backspace),
        KeyCode::Delete => edit(FieldEdit::Delete),
        KeyCode::Left => edit(FieldEdit::Left),
        KeyCode::Right => edit(FieldEdit::Right),
        KeyCode::Home => edit(FieldEdit::Home),
        KeyCode::End => edit(FieldEdit::End),
        KeyCode::Tab if app.palette.is_some() => Some(Action::Complete),
        KeyCode::Tab | KeyCode::Down => Some(Action::Next),
        KeyCode::BackTab | KeyCode::Up => Some(Action::Previous),
        KeyCode::Enter => Some(Action::Enter),
        KeyCode::Esc => Some(Action::Escape),
        _ => None,
    }
}

/// A page without a text field.
const fn page(code: KeyCode, ctrl: bool) -> Option<Action> {
    match code {
        KeyCode::Char(_) if ctrl => None,
        KeyCode::Char('y') => Some(Action::Yes),
        KeyCode::Char('j') | KeyCode::Down => Some(Action::Scroll(1)),
        KeyCode::Char('k') | KeyCode::Up => Some(Action::Scroll(-1)),
        KeyCode::PageDown => Some(Action::Scroll(10)),
        KeyCode::PageUp => Some(Action::Scroll(-10)),
        KeyCode::Char('q') => Some(Action::Escape),
        KeyCode::Char('?') => Some(Action::Command(ConsoleCommand::Help)),
        KeyCode::Char(letter) => Some(Action::Letter(letter)),
        KeyCode::Enter => Some(Action::Enter),
        KeyCode::Esc => Some(Action::Escape),
        _ => None,
    }
}

fn on_screen(app: &ConsoleApp, code: KeyCode, ctrl: bool) -> Option<ConsoleCommand> {
    let place = app.place();
    let has_tabs = works_at(ConsoleCommand::NextTab, place);
    match code {
        KeyCode::Char('d') if ctrl => Some(ConsoleCommand::HalfDown),
        KeyCode::Char('u') if ctrl => Some(ConsoleCommand::HalfUp),
        KeyCode::Char('f') if ctrl => Some(ConsoleCommand::PageDown),
        KeyCode::Char('b') if ctrl => Some(ConsoleCommand::PageUp),
        KeyCode::Char(_) if ctrl => None,
        KeyCode::Char('j') | KeyCode::Down => Some(ConsoleCommand::Down),
        KeyCode::Char('k') | KeyCode::Up => Some(ConsoleCommand::Up),
        KeyCode::Char('g') | KeyCode::Home => Some(ConsoleCommand::First),
        KeyCode::Char('G') | KeyCode::End => Some(ConsoleCommand::Last),
        KeyCode::PageDown => Some(ConsoleCommand::PageDown),
        KeyCode::PageUp => Some(ConsoleCommand::PageUp),
        KeyCode::Enter | KeyCode::Char('l') | KeyCode::Right => {
            works_at(ConsoleCommand::Open, place).then_some(ConsoleCommand::Open)
        }
        KeyCode::Char('h') | KeyCode::Left => {
            (place == CommandContext::Detail).then_some(ConsoleCommand::Back)
        }
        KeyCode::Esc => Some(ConsoleCommand::Back),
        KeyCode::Char(']') | KeyCode::Tab if has_tabs => Some(ConsoleCommand::NextTab),
        KeyCode::Char('[') | KeyCode::BackTab if has_tabs => Some(ConsoleCommand::PreviousTab),
        KeyCode::Char(letter) => BINDINGS
            .iter()
            .find(|bound| bound.is_on(letter) && bound.works_at(place))
            .map(|bound| bound.command),
        _ => None,
    }
}
