//! The list of commands that a line narrows while it is typed, and the command that is chosen from it.

use super::message::Effect;
use super::{Action, ConsoleApp};

impl ConsoleApp {
    /// Handles a key in the palette.
    pub(crate) fn in_palette(&mut self, action: Action) -> Vec<Effect> {
        let lines = self.palette_lines().len();
        let Some(palette) = self.palette.as_mut() else {
            return Vec::new();
        };
        match action {
            Action::Edit(edit) => {
                palette.field.edit(&edit);
                palette.selected = 0;
            }
            Action::Next | Action::Scroll(1) => {
                palette.selected = (palette.selected + 1).min(lines.saturating_sub(1))
            }
            Action::Previous | Action::Scroll(-1) => {
                palette.selected = palette.selected.saturating_sub(1)
            }
            Action::Escape => self.palette = None,
            Action::Enter | Action::Submit => {
                let chosen = self
                    .palette_lines()
                    .get(palette_selected(self))
                    .map(|(binding, _)| binding.command);
                self.palette = None;
                return chosen
                    .map(|command| self.perform(command))
                    .unwrap_or_default();
            }
            _ => {}
        }
        Vec::new()
    }
}

fn palette_selected(app: &ConsoleApp) -> usize {
    app.palette.as_ref().map_or(0, |palette| palette.selected)
}
