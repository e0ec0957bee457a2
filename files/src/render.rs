//! Findings as text, in the format made familiar by rustc: title, place, line, caret, help.
//!
//! Only what a [`Diagnostic`] carries is shown, so a report can never contain more than the masked excerpt.

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Diagnostics, FilePlace, Severity};

/// With or without terminal colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// Text only.
    Plain,
    /// ANSI colours.
    Coloured,
}

impl Diagnostics {
    /// The whole report: all findings and a summary line. Ends with a newline.
    pub fn render(&self, paint: Paint) -> String {
        let mut report = String::new();
        for finding in &self.0 {
            report.push_str(&finding.render(paint));
            report.push_str("\n\n");
        }
        report.push_str(&self.summary());
        report.push('\n');
        report
    }
}

impl Diagnostic {
    /// One finding as text, without a newline at the end.
    pub fn render(&self, paint: Paint) -> String {
        let renderer = match paint {
            Paint::Plain => Renderer::plain(),
            Paint::Coloured => Renderer::styled(),
        };
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let mut group = Group::with_title(level.primary_title(self.message.as_str()).id(self.code));
        if let Some(place) = &self.place {
            // Two places on the same line are shown once, with both marks.
            let (near, far): (Vec<&FilePlace>, Vec<&FilePlace>) = self
                .related
                .iter()
                .partition(|other| other.shares_line(place));
            group = group.element(element(place, &near, AnnotationKind::Primary));
            group = group.elements(
                far.into_iter()
                    .map(|other| element(other, &[], AnnotationKind::Context)),
            );
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let report = renderer.render(&[group]);
        // The margin is as wide as the line numbers. Where no line is shown it would be missing, and the report look crooked.
        if self.shows_a_line() {
            report
        } else {
            report.replace('\n', "\n ")
        }
    }

    fn shows_a_line(&self) -> bool {
        self.place
            .iter()
            .chain(&self.related)
            .any(|place| place.excerpt.is_some())
    }
}

impl FilePlace {
    fn shares_line(&self, other: &Self) -> bool {
        self.line == other.line && self.file == other.file
    }
}

fn element<'a>(place: &'a FilePlace, near: &[&'a FilePlace], kind: AnnotationKind) -> Element<'a> {
    let mark = |place: &'a FilePlace, kind: AnnotationKind| {
        kind.span(place.marked.clone())
            .label(place.label.as_deref())
    };
    match &place.excerpt {
        Some(line) => Snippet::source(line.as_str())
            .line_start(place.line)
            .path(place.file.as_str())
            .annotation(mark(place, kind))
            .annotations(
                near.iter()
                    .map(|other| mark(other, AnnotationKind::Context)),
            )
            .into(),
        None if place.line > 0 => Origin::path(place.file.as_str())
            .line(place.line)
            .char_column(place.column)
            .into(),
        None => Origin::path(place.file.as_str()).into(),
    }
}
