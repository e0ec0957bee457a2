//! One line of text that a person edits: value and cursor, nothing else.
//!
//! Control characters are never accepted; a paste is cut at its first line end. The cursor is always on a character boundary.

const MAX_CHARS: usize = 1000;

/// An edit of a text field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldEdit {
    Insert(char),
    Paste(String),
    Backspace,
    Delete,
    Left,
    Right,
    Home,
    End,
    Clear,
}

/// An editable line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TextField {
    text: String,
    cursor: usize,
}

impl TextField {
    /// A field that already holds text, with the cursor at its end.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            cursor: text.chars().count(),
            text,
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// How many characters precede the cursor.
    pub(crate) const fn cursor(&self) -> usize {
        self.cursor
    }

    /// Applies one edit.
    pub(crate) fn edit(&mut self, edit: &FieldEdit) {
        let length = self.text.chars().count();
        match edit {
            FieldEdit::Insert(letter) => self.insert(*letter),
            FieldEdit::Paste(text) => text
                .trim_start_matches(['\r', '\n'])
                .chars()
                .take_while(|letter| !matches!(letter, '\r' | '\n'))
                .for_each(|letter| self.insert(letter)),
            FieldEdit::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.remove();
            }
            FieldEdit::Delete if self.cursor < length => self.remove(),
            FieldEdit::Left => self.cursor = self.cursor.saturating_sub(1),
            FieldEdit::Right => self.cursor = length.min(self.cursor + 1),
            FieldEdit::Home => self.cursor = 0,
            FieldEdit::End => self.cursor = length,
            FieldEdit::Clear => *self = Self::default(),
            FieldEdit::Backspace | FieldEdit::Delete => {}
        }
    }

    fn insert(&mut self, letter: char) {
        if letter.is_control() || self.text.chars().count() >= MAX_CHARS {
            return;
        }
        let place = self.byte(self.cursor);
        self.text.insert(place, letter);
        self.cursor += 1;
    }

    fn remove(&mut self) {
        let place = self.byte(self.cursor);
        if place < self.text.len() {
            self.text.remove(place);
        }
    }

    fn byte(&self, chars: usize) -> usize {
        self.text
            .char_indices()
            .nth(chars)
            .map_or(self.text.len(), |(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editing_keeps_the_cursor_between_characters() {
        let mut field = TextField::new("añb");
        for edit in [
            FieldEdit::Left,
            FieldEdit::Backspace,
            FieldEdit::Insert('漢'),
            FieldEdit::Home,
            FieldEdit::Delete,
            FieldEdit::End,
            FieldEdit::Insert('!'),
        ] {
            field.edit(&edit);
        }
        assert_eq!((field.text(), field.cursor()), ("漢b!", 3));
        field.edit(&FieldEdit::Paste("x\x1by\nz".to_owned()));
        assert_eq!(field.text(), "漢b!xy");
        field.edit(&FieldEdit::Clear);
        field.edit(&FieldEdit::Backspace);
        assert_eq!((field.text(), field.cursor()), ("", 0));
    }
}
