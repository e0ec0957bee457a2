//! Findings about the two files: where, what is wrong, and what to write instead.
//!
//! A [`Diagnostic`] is self-contained: it carries the line it is about, with every secret already masked, so it can be shown,
//! logged and served long after the files have changed. Nothing here reads a file.

use std::ops::Range;

use serde::{Serialize, Serializer};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// For information.
    Note,
    /// Served, but probably not intended.
    Warning,
    /// The files are not used.
    Error,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The stable code of the mistake: `E101`.
    pub code: &'static str,
    /// What is wrong, in one sentence. Never a secret.
    pub message: String,
    /// The place; `None` if there is no single one.
    #[serde(flatten)]
    pub place: Option<FilePlace>,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Related places, each with a label.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<FilePlace>,
}

/// A place in one of the files, with its masked line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilePlace {
    /// The file's path as given on the command line.
    pub file: String,
    /// Line, from 1; 0 when it is about the whole file.
    #[serde(skip_serializing_if = "is_zero")]
    pub line: usize,
    /// Column in characters, from 1; 0 when it is about the whole file.
    #[serde(skip_serializing_if = "is_zero")]
    pub column: usize,
    /// Bytes in the file.
    #[serde(skip)]
    pub span: Range<usize>,
    /// The label under the caret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The line itself, secrets masked; `None` if it is too long to show.
    #[serde(skip)]
    pub excerpt: Option<String>,
    /// The bytes of the excerpt above the caret.
    #[serde(skip)]
    pub marked: Range<usize>,
}

/// All findings of one load, in the order of the files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnostics(pub Vec<Diagnostic>);

/// Findings by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SeverityCounts {
    /// Mistakes with which the files are not taken.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
    /// Notes.
    pub notes: usize,
}

impl Diagnostics {
    /// Whether the files cannot be used.
    pub fn has_errors(&self) -> bool {
        self.0
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }

    /// Whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many of each.
    pub fn counts(&self) -> SeverityCounts {
        let mut counts = SeverityCounts::default();
        for finding in &self.0 {
            match finding.severity {
                Severity::Error => counts.errors += 1,
                Severity::Warning => counts.warnings += 1,
                Severity::Note => counts.notes += 1,
            }
        }
        counts
    }

    /// One line for the end of a report: `2 errors, 1 warning`.
    pub fn summary(&self) -> String {
        let SeverityCounts {
            errors,
            warnings,
            notes,
        } = self.counts();
        let parts: Vec<String> = [(errors, "error"), (warnings, "warning"), (notes, "note")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
            .collect();
        if parts.is_empty() {
            "no findings".to_owned()
        } else {
            parts.join(", ")
        }
    }
}

impl Serialize for Diagnostics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}
