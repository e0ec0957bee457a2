//! The operator's secrets: their possible sources, and what they must look like.
//!
//! A secret is `{ env = "…" }` or `{ file = "…" }`, never a literal. This is the only code that reads secrets from the environment.
//! No message here ever contains a value.

use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use toml::de::DeValue;

use crate::code::Code;
use crate::fields::{Entry, Fields};
use crate::hidden_text::HiddenText;
use crate::keys::{ConfigTable, KEYS};
use crate::report::{ConfigFile, Placed, Report, Span};
use crate::{redact, source};

/// A shorter text cannot be a secret.
const LEAST_CHARACTERS: usize = 8;
/// A longer file cannot be a secret.
const LARGEST_SECRET: u64 = 16 * 1024;

/// The source of secrets.
pub trait Secrets {
    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;

    /// The content of a file.
    ///
    /// # Errors
    /// When it cannot be read, or is too large to be a secret.
    fn file(&self, path: &Path) -> std::io::Result<String>;

    /// Whether a missing secret is only worth a note (`check --no-secrets`). The snapshot then has empty secrets and must not be
    /// served.
    fn lenient(&self) -> bool {
        false
    }
}

/// The environment of this process and the files it may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessSecrets {
    /// See [`Secrets::lenient`].
    pub lenient: bool,
}

impl Secrets for ProcessSecrets {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &Path) -> std::io::Result<String> {
        let mut text = String::new();
        source::open(path)?
            .take(LARGEST_SECRET + 1)
            .read_to_string(&mut text)?;
        if text.len() as u64 > LARGEST_SECRET {
            return Err(std::io::Error::other("it is too large to be a secret"));
        }
        Ok(text)
    }

    fn lenient(&self) -> bool {
        self.lenient
    }
}

/// A file that a secret came from, and the hash of its content.
pub type SecretFile = (PathBuf, [u8; 32]);

/// The hash of a secret file's content; the same for all files that cannot be read.
pub fn content_hash(content: &std::io::Result<String>) -> [u8; 32] {
    content
        .as_ref()
        .map(|text| Sha256::digest(text).into())
        .unwrap_or_default()
}

/// Reads the secrets of a file and remembers where they are.
pub struct SecretReader<'a> {
    from: &'a dyn Secrets,
    /// The file that names them.
    file: ConfigFile,
    /// How to check that file without them.
    without: Option<&'static str>,
    /// Files named so far, for the watcher.
    pub files: Vec<SecretFile>,
    /// A header's value may contain spaces and be short; a key may not.
    of_header: bool,
}

/// The variable that a text like `${NAME}` or `$NAME` means to stand for.
fn expansion(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    let name = match name.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}')?,
        None => name,
    };
    let loud = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (name.bytes().all(loud) && redact::plausible_variable(name)).then_some(name)
}

/// Records a literal where the source of a secret is expected: what stands there is `called` so, and written as `name = …`.
fn refuse_literal(
    report: &mut Report<'_>,
    (text, span): (&str, Span),
    called: &str,
    name: &str,
    [what, label]: [&str; 2],
) {
    if let Some(variable) = expansion(text) {
        let message = format!("{called} is a literal: variables are not expanded in strings");
        report
            .add(Code::LiteralSecret, span, message)
            .help(format!("write {name} = {{ env = \"{variable}\" }}"));
        return;
    }
    report
        .add(Code::LiteralSecret, span, format!("{called} is {what}"))
        .label(label)
        .help(format!(
            "write {name} = {{ env = \"NAME_OF_A_VARIABLE\" }} or {name} = {{ file = \"/run/secrets/name\" }}"
        ));
}

impl<'a> SecretReader<'a> {
    /// For a file; `without` is the command that checks it alone.
    pub fn new(from: &'a dyn Secrets, file: ConfigFile, without: Option<&'static str>) -> Self {
        Self {
            from,
            file,
            without,
            files: Vec::new(),
            of_header: false,
        }
    }

    /// See [`Secrets::lenient`].
    pub fn lenient(&self) -> bool {
        self.from.lenient()
    }

    /// Reads `{ env = "…" }` or `{ file = "…" }`.
    pub fn read(
        &mut self,
        value: Entry<'_, '_>,
        report: &mut Report<'_>,
        what: &str,
    ) -> Option<HiddenText> {
        let fields = Self::open(value, report, what, &KEYS.secret)?;
        self.of_fields(&fields, value.name, report, what)
    }

    /// The fields of a secret's table, if it is one.
    pub fn open<'r, 'i>(
        value: Entry<'r, 'i>,
        report: &mut Report<'_>,
        what: &str,
        known: &'static ConfigTable,
    ) -> Option<Fields<'r, 'i>> {
        if let DeValue::String(text) = value.node() {
            let called = format!("`{}` of {what}", value.name);
            let words = ["a literal secret", "hidden here; treat it as leaked"];
            refuse_literal(report, (&**text, value.span()), &called, value.name, words);
            return None;
        }
        value.fields(report, &format!("`{}` of {what}", value.name), known)
    }

    /// The secret that a table names; `name` is that table's own.
    pub fn of_fields(
        &mut self,
        fields: &Fields<'_, '_>,
        name: &str,
        report: &mut Report<'_>,
        what: &str,
    ) -> Option<HiddenText> {
        match (fields.get("env"), fields.get("file")) {
            (Some(variable), None) => self.variable(variable, report, what),
            (None, Some(file)) => self.file(file, report, what),
            (env, _) => {
                let problem = if env.is_some() {
                    "both `env` and `file`"
                } else {
                    "neither `env` nor `file`"
                };
                let message = format!("`{name}` of {what} has {problem}");
                report
                    .add(Code::Contradiction, fields.span, message)
                    .help("write exactly one of the two");
                None
            }
        }
    }

    /// Reads the value of a header, which may be a secret under any name.
    pub fn read_header(
        &mut self,
        value: Entry<'_, '_>,
        name: &str,
        report: &mut Report<'_>,
        what: &str,
    ) -> Option<HiddenText> {
        if let DeValue::String(text) = value.node() {
            let called = format!("the value of `{name}` in the headers of {what}");
            let words = [
                "a literal",
                "hidden here; if it is a secret, treat it as leaked",
            ];
            let at = (&**text, value.span());
            refuse_literal(report, at, &called, &format!("\"{name}\""), words);
            return None;
        }
        self.of_header = true;
        let content = self.read(value, report, what);
        self.of_header = false;
        content
    }

    fn variable(
        &self,
        value: Entry<'_, '_>,
        report: &mut Report<'_>,
        what: &str,
    ) -> Option<HiddenText> {
        let name = value.text(report)?;
        if !redact::plausible_variable(name.value) {
            report
                .add(Code::LiteralSecret, name.span, format!("`env` of {what} is not the name of a variable"))
                .label("hidden, in case it is the secret itself")
                .help("`env` takes the name of an environment variable: letters, digits and underscores");
            return None;
        }
        match self.from.variable(name.value) {
            Some(secret) => self.check(
                &secret,
                &format!("the variable `{}` (of {what})", name.value),
                name.span,
                report,
            ),
            None => {
                let message = format!("the variable `{}` (of {what}) is not set", name.value);
                self.missing(report, name.span, message, "set it for this process")
            }
        }
    }

    fn file(
        &mut self,
        value: Entry<'_, '_>,
        report: &mut Report<'_>,
        what: &str,
    ) -> Option<HiddenText> {
        let Placed { value: path, span } = value.printable(report, 1_000)?;
        let directory = Path::new(&report.source(self.file).name)
            .parent()
            .map(Path::to_path_buf)
            .unwrap_or_default();
        let resolved = directory.join(path);
        let shown = if redact::plausible_path(path) {
            format!("`{path}`")
        } else {
            "named here".to_owned()
        };
        let read = self.from.file(&resolved);
        self.files.push((resolved, content_hash(&read)));
        match read {
            Ok(secret) => self.check(
                secret.trim(),
                &format!("the file {shown} (of {what})"),
                span,
                report,
            ),
            Err(error) => {
                let message = format!(
                    "the secret file {shown} (of {what}) cannot be read: {}",
                    source::plain(&error)
                );
                self.missing(report, span, message, "make it readable for this process")
            }
        }
    }

    fn missing(
        &self,
        report: &mut Report<'_>,
        span: Span,
        message: String,
        help: &str,
    ) -> Option<HiddenText> {
        if self.from.lenient() {
            report.add(Code::SecretNotChecked, span, message);
            return Some(HiddenText::new(""));
        }
        let without = self
            .without
            .map(|command| format!(", or check the files alone with `{command}`"));
        let help = format!("{help}{}", without.unwrap_or_default());
        report.add(Code::UnsetSecret, span, message).help(help);
        None
    }

    /// Records that a text cannot be a secret.
    fn check(
        &self,
        secret: &str,
        what: &str,
        span: Span,
        report: &mut Report<'_>,
    ) -> Option<HiddenText> {
        let length = secret.chars().count();
        let problem = if secret.is_empty() {
            "is empty".to_owned()
        } else if length < LEAST_CHARACTERS && !self.of_header {
            format!("has {length} characters; a secret has at least {LEAST_CHARACTERS}")
        } else if let Some(quote) = quoted(secret).filter(|_| !self.of_header) {
            format!(
                "stands in quotes ({quote}), which would be sent as a part of it: take them out"
            )
        } else if !secret
            .bytes()
            .all(|byte| byte.is_ascii_graphic() || (self.of_header && byte == b' '))
        {
            "contains a space, a line break or another character that cannot be sent in a header"
                .to_owned()
        } else {
            return Some(HiddenText::new(secret));
        };
        report.add(Code::BadSecret, span, format!("{what} {problem}"));
        None
    }
}

/// The quote in which a whole secret stands, as shells and `.env` files write them.
fn quoted(secret: &str) -> Option<char> {
    let first = secret.chars().next()?;
    (matches!(first, '"' | '\'' | '`') && secret.len() > 1 && secret.ends_with(first))
        .then_some(first)
}
