//! Collects findings while the files are read, and turns them into diagnostics.
//!
//! Every mistake is collected, none is fatal. Findings that a syntax error makes doubtful, because they depend on something being
//! absent, are dropped at the end. Texts are masked before they leave this file.

use std::ops::Range;

use crate::code::{Code, FindingScope};
use crate::diagnostic::{Diagnostic, Diagnostics, FilePlace, Severity};
use crate::redact;
use crate::source::Source;

/// Errors, and other findings, kept per file; the rest is only counted.
const MOST_FINDINGS: usize = 500;
/// Lines longer than this are not shown.
const LONGEST_LINE: usize = 1_000;

/// A file that people write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigFile {
    /// `catalog.toml`
    Catalog,
    /// `routes.toml`
    Routes,
    /// `shop.toml`
    Shop,
}

/// How many there are.
const FILES: usize = 3;
/// Stands for a file that a load has not.
static ABSENT: Source = Source {
    name: String::new(),
    text: String::new(),
    alone: false,
};

/// Bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Which.
    pub file: ConfigFile,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    /// A part of a file.
    pub fn new(file: ConfigFile, range: Range<usize>) -> Self {
        Self {
            file,
            start: range.start,
            end: range.end,
        }
    }

    /// The beginning of a file, for findings without a better place.
    pub const fn top(file: ConfigFile) -> Self {
        Self {
            file,
            start: 0,
            end: 0,
        }
    }
}

/// A value and its position.
#[derive(Debug, Clone, Copy)]
pub struct Placed<T> {
    /// What stands there.
    pub value: T,
    /// Where.
    pub span: Span,
}

/// A finding whose place is not yet resolved.
#[derive(Debug)]
pub struct Finding {
    code: Code,
    span: Span,
    message: String,
    label: Option<String>,
    help: Option<String>,
    related: Vec<(Span, &'static str)>,
}

impl Finding {
    fn new(code: Code, span: Span, message: String) -> Self {
        Self {
            code,
            span,
            message,
            label: None,
            help: None,
            related: Vec::new(),
        }
    }

    /// Sets the remedy.
    pub fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the label under the caret.
    pub fn label(&mut self, label: impl Into<String>) -> &mut Self {
        self.label = Some(label.into());
        self
    }

    /// Adds a related place.
    pub fn also(&mut self, span: Span, label: &'static str) -> &mut Self {
        self.related.push((span, label));
        self
    }
}

/// The findings of one load so far.
#[derive(Debug)]
pub struct Report<'s> {
    /// What is loaded together.
    files: &'static [ConfigFile],
    sources: [&'s Source; FILES],
    /// Whether a part of a file could not be read, so that something apparently missing may be there.
    damaged: [bool; FILES],
    findings: Vec<Finding>,
    /// By file, and whether it is an error.
    kept: [[usize; 2]; FILES],
    surplus: [usize; FILES],
    /// A placeholder for findings that are only counted.
    scratch: Finding,
    /// "Did you mean" is computed only for the first few findings, because it compares with every name.
    pub(crate) suggestions_left: usize,
}

impl<'s> Report<'s> {
    /// Of a gateway's two files.
    pub fn new(catalog: &'s Source, routes: &'s Source) -> Self {
        let files = &[ConfigFile::Catalog, ConfigFile::Routes];
        Self::of(files, [catalog, routes, &ABSENT])
    }

    /// Of a shop's file.
    pub fn of_shop(shop: &'s Source) -> Self {
        Self::of(&[ConfigFile::Shop], [&ABSENT, &ABSENT, shop])
    }

    fn of(files: &'static [ConfigFile], sources: [&'s Source; FILES]) -> Self {
        let scratch = Finding::new(
            Code::MoreFindings,
            Span::top(ConfigFile::Catalog),
            String::new(),
        );
        Self {
            files,
            sources,
            damaged: [false; FILES],
            findings: Vec::new(),
            kept: [[0; 2]; FILES],
            surplus: [0; FILES],
            scratch,
            suggestions_left: 50,
        }
    }

    /// The file as it was read.
    pub fn source(&self, file: ConfigFile) -> &'s Source {
        self.sources[file as usize]
    }

    /// Records a finding; the returned value takes help, labels and related places.
    pub fn add(&mut self, code: Code, span: Span, message: impl Into<String>) -> &mut Finding {
        let file = span.file as usize;
        match code {
            Code::Syntax | Code::WrongTable | Code::Unreadable => self.damaged[file] = true,
            _ => {}
        }
        let fresh = Finding::new(code, span, message.into());
        let kept = &mut self.kept[file][usize::from(code.severity() == Severity::Error)];
        if *kept >= MOST_FINDINGS {
            self.surplus[file] += 1;
            self.scratch = fresh;
            return &mut self.scratch;
        }
        *kept += 1;
        let index = self.findings.len();
        self.findings.push(fresh);
        &mut self.findings[index]
    }

    /// Whether any error was found so far.
    pub fn has_errors(&self) -> bool {
        self.kept.iter().any(|[_, errors]| *errors > 0)
    }

    fn is_damaged(&self) -> bool {
        self.damaged.contains(&true)
    }

    /// Whether a finding is reliable although files may be damaged.
    fn is_reliable(&self, finding: &Finding) -> bool {
        match finding.code.scope() {
            FindingScope::Both => !self.is_damaged(),
            FindingScope::File => {
                !self.damaged[finding.span.file as usize] || finding.code == Code::Unreadable
            }
            FindingScope::Place => true,
        }
    }

    /// All findings in order, with their places, masked.
    pub fn finish(mut self) -> Diagnostics {
        let mut findings = std::mem::take(&mut self.findings);
        let before = findings.len();
        findings.retain(|finding| self.is_reliable(finding));
        self.note_gaps(before > findings.len(), &mut findings);
        findings.sort_by_key(|finding| finding.span);
        let pages = [ConfigFile::Catalog, ConfigFile::Routes, ConfigFile::Shop].map(|file| {
            let wanted = findings.iter().any(|finding| {
                finding.span.file == file
                    || finding.related.iter().any(|(span, _)| span.file == file)
            });
            wanted.then(|| FilePage::new(file, self.source(file)))
        });
        Diagnostics(
            findings
                .into_iter()
                .map(|finding| resolve(finding, &pages))
                .collect(),
        )
    }

    /// Adds a finding about what the report omits.
    fn note_gaps(&self, withheld: bool, findings: &mut Vec<Finding>) {
        let unread = findings
            .iter()
            .filter(|finding| finding.code == Code::Unreadable)
            .count();
        let mut note = |code: Code, file: ConfigFile, message: String| {
            let end = self.source(file).text.len();
            findings.push(Finding::new(
                code,
                Span {
                    file,
                    start: end,
                    end,
                },
                message,
            ));
        };
        for &file in self.files {
            let surplus = self.surplus[file as usize];
            if surplus > 0 {
                note(
                    Code::MoreFindings,
                    file,
                    format!("{surplus} more findings in this file are not shown"),
                );
            }
        }
        let is_damaged = |file: &&ConfigFile| self.damaged[**file as usize];
        let broken = (self.files.iter()).find(is_damaged).or(self.files.last());
        if let Some(file) =
            broken.filter(|_| (withheld || self.is_damaged()) && unread < self.files.len())
        {
            note(
                Code::SkippedChecks,
                *file,
                "whatever depends on the broken part was not checked; check again once it is fixed"
                    .to_owned(),
            );
        }
    }
}

/// A file prepared for display.
struct FilePage<'s> {
    name: &'s str,
    masked: String,
    line_starts: Vec<usize>,
}

impl<'s> FilePage<'s> {
    fn new(file: ConfigFile, source: &'s Source) -> Self {
        let masked = match file {
            ConfigFile::Catalog => redact::catalog(&source.text),
            ConfigFile::Routes => redact::file(&source.text),
            ConfigFile::Shop => redact::shop(&source.text),
        };
        let line_starts = std::iter::once(0)
            .chain(masked.match_indices('\n').map(|(index, _)| index + 1))
            .collect();
        Self {
            name: &source.name,
            masked,
            line_starts,
        }
    }

    fn place(&self, span: Span, label: Option<String>, pointed: bool) -> FilePlace {
        let start = floor(&self.masked, span.start);
        let line = self
            .line_starts
            .partition_point(|begin| *begin <= start)
            .max(1);
        let begin = self.line_starts.get(line - 1).copied().unwrap_or_default();
        let end = self
            .line_starts
            .get(line)
            .map_or(self.masked.len(), |next| next - 1);
        let text = self.masked[begin..end.max(begin)].trim_end_matches('\r');
        let from = (start - begin).min(text.len());
        let to = floor(text, span.end.saturating_sub(begin).clamp(from, text.len()));
        let column = text[..from].chars().count() + 1;
        let excerpt = (pointed && text.len() <= LONGEST_LINE).then(|| text.to_owned());
        FilePlace {
            file: self.name.to_owned(),
            line,
            column,
            span: span.start..span.end,
            label,
            excerpt,
            marked: from..to,
        }
    }
}

fn floor(text: &str, index: usize) -> usize {
    let index = index.min(text.len());
    (0..=index)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or_default()
}

fn resolve(finding: Finding, pages: &[Option<FilePage<'_>>; FILES]) -> Diagnostic {
    let code = finding.code;
    let pointed = !matches!(
        code,
        Code::Unreadable | Code::EmptyCatalog | Code::MoreFindings | Code::SkippedChecks
    );
    let clean = |text: String| redact::words(&text);
    let place = pages[finding.span.file as usize].as_ref().map(|page| {
        let mut place = page.place(finding.span, finding.label.map(clean), pointed);
        if !pointed {
            (place.line, place.column) = (0, 0);
        }
        place
    });
    let related = finding
        .related
        .into_iter()
        .filter_map(|(span, label)| {
            Some(
                pages[span.file as usize]
                    .as_ref()?
                    .place(span, Some(label.to_owned()), true),
            )
        })
        .collect();
    Diagnostic {
        severity: code.severity(),
        code: code.id(),
        message: clean(finding.message),
        place,
        help: finding.help.map(clean),
        related,
    }
}
