//! The size of text, by the two kinds of characters that tokenizers treat differently.

/// Bytes of text by kind, in its JSON form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextSize {
    /// ASCII bytes.
    pub ascii: u64,
    /// Bytes of other characters.
    pub other: u64,
}

impl TextSize {
    /// ASCII and others together; saturates.
    pub fn bytes(&self) -> u64 {
        self.ascii.saturating_add(self.other)
    }

    /// Adds another size to this one.
    pub fn add(&mut self, more: Self) {
        self.ascii = self.ascii.saturating_add(more.ascii);
        self.other = self.other.saturating_add(more.other);
    }

    /// The size of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let other = text.bytes().filter(|byte| *byte >= 0x80).count() as u64;
        Self {
            ascii: text.len() as u64 - other,
            other,
        }
    }
}
