//! Colours and weights, for a dark and for a light terminal, or none. What matters is always written in words too.

use ratatui::style::{Color, Modifier, Style};

use crate::app::ConsoleApp;
use crate::app::tone::Tone;
use crate::background::{Background, ThemeChoice};

/// The styles for this terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    /// The terminal's own sixteen, which are made for a dark background.
    Dark,
    /// Darker ones of the 256: the terminal's own yellow, green and cyan are unreadable on white.
    Light,
    Plain,
}

impl Theme {
    /// The one that was chosen, or the one for the terminal's background.
    pub(crate) fn of(app: &ConsoleApp) -> Self {
        match (app.theme, app.background) {
            (ThemeChoice::None, _) => Self::Plain,
            (ThemeChoice::Light, _) | (ThemeChoice::Auto, Some(Background::Light)) => Self::Light,
            (ThemeChoice::Dark | ThemeChoice::Auto, _) => Self::Dark,
        }
    }

    fn tinted(self, color: Color) -> Style {
        let light = match color {
            Color::Cyan => Color::Indexed(25),
            Color::Green => Color::Indexed(28),
            Color::Yellow => Color::Indexed(130),
            Color::Red => Color::Indexed(160),
            other => other,
        };
        match self {
            Self::Dark => Style::new().fg(color),
            Self::Light => Style::new().fg(light),
            Self::Plain => Style::new(),
        }
    }

    /// Titles and column heads.
    pub(crate) fn head(self) -> Style {
        self.tinted(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// A title on a frame, whose border is dim.
    pub(crate) fn undimmed(self) -> Style {
        self.head().remove_modifier(Modifier::DIM)
    }

    /// Frames, hints and secondary text. The terminal's own text colour, dimmed: a fixed grey is unreadable on some light
    /// backgrounds, and equals the background in some dark themes.
    pub(crate) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn good(self) -> Style {
        self.tinted(Color::Green)
    }

    /// Needs attention.
    pub(crate) fn warn(self) -> Style {
        self.tinted(Color::Yellow)
    }

    /// Wrong, or refused.
    pub(crate) fn bad(self) -> Style {
        self.tinted(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// The line under the cursor.
    pub(crate) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A key to press.
    pub(crate) fn key(self) -> Style {
        self.tinted(Color::Cyan)
    }

    /// Values that stand out.
    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// By the kind of a text.
    pub(crate) fn tone(self, tone: Tone) -> Style {
        match tone {
            Tone::Plain => Style::new(),
            Tone::Head => self.head(),
            Tone::Id => self.key(),
            Tone::Strong => self.strong(),
            Tone::Faint => self.faint(),
            Tone::Good => self.good(),
            Tone::Warn => self.warn(),
            Tone::Bad => self.bad(),
        }
    }
}
