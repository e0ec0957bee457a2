//! The kind of a text, which decides its colour.

/// What a text is to its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Head,
    /// An id, or a key to press.
    Id,
    /// What stands out.
    Strong,
    Faint,
    Good,
    Warn,
    Bad,
}

impl Tone {
    /// Of the word for a state.
    pub(crate) fn of_state(word: &str) -> Self {
        match word {
            "ok" | "closed" | "LIVE" | "running" | "active" => Self::Good,
            "low" | "in use" | "half_open" | "trial" | "failing" | "warning" | "EXPIRED"
            | "LAPSED" | "lapsed" => Self::Warn,
            "EMPTY" | "REFUSED" | "OWES" | "STOPPED" | "SUSPENDED" | "CLOSED" | "BLOCKED"
            | "REVOKED" | "OPEN" | "open" | "error" | "REJECTED" | "rejected" => Self::Bad,
            _ => Self::Plain,
        }
    }

    /// It if something holds, else plain.
    pub(crate) const fn when(self, holds: bool) -> Self {
        if holds { self } else { Self::Plain }
    }
}
