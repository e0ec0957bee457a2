//! Parses the text of one file into a syntax tree, even if the text has mistakes.
//!
//! A parser that continues after a syntax error mostly reports consequences of the same error. So each error is reported once,
//! the table around it is overwritten with blanks, and the file is parsed again: the next error is then a separate mistake.
//! Blanking keeps every byte's position. Values never get into messages, because they may be secrets.

use std::borrow::Cow;
use std::ops::Range;

use toml::de::DeTable;

use crate::code::Code;
use crate::keys::{ConfigKey, KEYS};
use crate::report::{ConfigFile, Report, Span};

/// How many independent syntax errors are reported in one file.
const MOST_ERRORS: usize = 20;

/// The text without the tables that cannot be parsed, whose errors are recorded.
pub fn readable<'t>(report: &mut Report<'_>, file: ConfigFile, text: &'t str) -> Cow<'t, str> {
    let mut text = Cow::Borrowed(text);
    blank_single_headers(report, file, &mut text);
    for found in 0..=MOST_ERRORS {
        let Some((span, message)) = first_error(&text) else {
            return text;
        };
        if found == MOST_ERRORS {
            break;
        }
        let mistake = explain(&text, span, message);
        let finding = report.add(
            Code::Syntax,
            Span::new(file, mistake.span.clone()),
            mistake.message,
        );
        if let Some(help) = mistake.help {
            finding.help(help);
        }
        if let Some(first) = mistake.first {
            finding.also(Span::new(file, first), "first here");
        }
        let table = table_around(&text, mistake.span.start);
        if text[table.clone()].trim().is_empty() {
            break;
        }
        blank(text.to_mut(), table);
    }
    Cow::Owned(String::new())
}

/// The syntax tree of a valid text.
pub fn parse(text: &str) -> DeTable<'_> {
    DeTable::parse_recoverable(text).0.into_inner()
}

fn first_error(text: &str) -> Option<(Range<usize>, String)> {
    let (_, errors) = DeTable::parse_recoverable(text);
    let place = |error: &toml::de::Error| error.span().unwrap_or(text.len()..text.len());
    errors
        .iter()
        .min_by_key(|error| place(error).start)
        .map(|error| (place(error), error.message().to_owned()))
}

/// A syntax error in words that lead to its cause.
struct Mistake {
    span: Range<usize>,
    message: String,
    help: Option<String>,
    /// Where a repeated name is written first.
    first: Option<Range<usize>>,
}

fn explain(text: &str, span: Range<usize>, message: String) -> Mistake {
    let line = line_around(text, span.start);
    // At a header, the parser may still be inside the previous table.
    let inside = if is_header(&text[line.clone()]) {
        line.start.saturating_sub(1)
    } else {
        span.start
    };
    let start = table_around(text, inside).start;
    // A bracket that is still open where a new statement begins was never closed.
    if let Some(open) = open_bracket(text, start..span.start)
        && open < line.start
        && (span.start >= text.trim_end().len() || is_statement(&text[line.clone()]))
    {
        let (bracket, closing, what) = if text[open..].starts_with('[') {
            ('[', ']', "list")
        } else {
            ('{', '}', "table")
        };
        let message = format!("this `{bracket}` is not closed");
        let help = Some(format!("write `{closing}` where the {what} ends"));
        return Mistake {
            span: open..open + 1,
            message,
            help,
            first: None,
        };
    }
    if message == "duplicate key" {
        let first = first_of(text, start..line.start, &text[span.clone()], &text[line]);
        let help =
            "a name stands once in a table, and a table once in the file: keep one of the two"
                .to_owned();
        return Mistake {
            span,
            message,
            help: Some(help),
            first,
        };
    }
    let help = advice(
        &text[line.clone()],
        &text[span.start..],
        &text[line.start..span.start],
        &message,
    )
    .map(str::to_owned);
    Mistake {
        span,
        message,
        help,
        first: None,
    }
}

/// Where a name that is repeated later stands first: a header anywhere before, or a field of the same table.
fn first_of(text: &str, table: Range<usize>, name: &str, repeated: &str) -> Option<Range<usize>> {
    let header = repeated.trim_start().starts_with('[');
    let part = if header { 0..table.end } else { table };
    let mut from = part.start;
    for line in text.get(part)?.split_inclusive('\n') {
        let again = if header {
            line.split('#').next().map(str::trim) == repeated.split('#').next().map(str::trim)
        } else {
            line.trim_start()
                .strip_prefix(name)
                .is_some_and(|rest| rest.trim_start().starts_with('='))
        };
        if again {
            let at = from + line.find(name)?;
            return Some(at..at + name.len());
        }
        from += line.len();
    }
    None
}

/// What to write instead, where the parser's words do not say it: from the line, the text at the mistake and the line before it.
fn advice(line: &str, at: &str, before: &str, message: &str) -> Option<&'static str> {
    let next = at.chars().next().unwrap_or('\n');
    if matches!(next, '“' | '”' | '„' | '‘' | '’') {
        Some("TOML has only straight quotes: write \"…\"")
    } else if ["<<<<<<<", "=======", ">>>>>>>"]
        .iter()
        .any(|mark| line.starts_with(mark))
    {
        Some("this line was left by a merge: keep one of the two versions and delete the marks")
    } else if next.is_whitespace() && !next.is_ascii() {
        Some("this is not an ordinary space: delete it and type a space")
    } else if message.starts_with("carriage return") {
        Some("save the file with line ends of Unix (LF) or Windows (CRLF)")
    } else if line.matches('"').count() % 2 == 1 {
        Some("this line has an odd number of quotes: one is missing, or there is one too many")
    } else if next == ':' && !before.contains('=') {
        Some("TOML has `=` between a name and its value")
    } else if next == ';' {
        Some("a line ends without `;`")
    } else if is_grouped(before, at) {
        Some(
            "a comma ends a value: write large numbers with underscores, 400_000, and decimals with a point, \"3.50\"",
        )
    } else if next == ',' && before.contains('=') {
        Some("several values need brackets: [\"…\", \"…\"]")
    } else if message.starts_with("invalid boolean")
        || ["yes", "no", "on", "off"]
            .iter()
            .any(|word| at.starts_with(word))
    {
        Some("write true or false, in lower case and without quotes")
    } else if message.starts_with("string values must be quoted") {
        Some("write it in quotes; only numbers, dates, true and false have none")
    } else {
        None
    }
}

/// Whether a mistake is at a number with a comma in it: `400,000`, `3,50`.
fn is_grouped(before: &str, at: &str) -> bool {
    let part = |c: char| c.is_ascii_digit() || c == ',';
    let begins = before.trim_end_matches(part).len();
    let ends = at.find(|c| !part(c)).unwrap_or(at.len());
    let number = format!("{}{}", &before[begins..], &at[..ends]);
    let mut parts = number.trim_end_matches(',').split(',');
    parts.clone().count() > 1
        && parts.all(|part| !part.is_empty())
        && before[..begins].trim_end().ends_with('=')
}

/// Whether a line begins a field or a table.
fn is_statement(line: &str) -> bool {
    let rest = line
        .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    is_header(line) || (rest.len() < line.len() && rest.trim_start().starts_with('='))
}

/// Whether a line is, or was meant to be, the header of one of our tables.
fn is_header(line: &str) -> bool {
    root_of(line).is_some()
}

/// The key at the top of a file that a table header means.
fn root_of(line: &str) -> Option<&'static ConfigKey> {
    let inner = line
        .trim_start()
        .strip_prefix('[')?
        .trim_start_matches(['[', ' ']);
    let end = inner
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
        .unwrap_or(inner.len());
    KEYS.root(&inner[..end])
}

/// Whether a header is that of a table inside a table: `[model.price]`.
fn is_inner(line: &str) -> bool {
    let path = line.trim_start().trim_start_matches(['[', ' ']);
    root_of(line).is_some_and(ConfigKey::is_list)
        && path
            .split([']', '#'])
            .next()
            .is_some_and(|path| path.contains('.'))
}

fn line_around(text: &str, at: usize) -> Range<usize> {
    let at = at.min(text.len());
    let start = text.as_bytes()[..at]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |newline| newline + 1);
    let end = text.as_bytes()[at..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(text.len(), |length| at + length);
    start..end
}

/// The table that contains a position, including the sub-tables that follow it.
fn table_around(text: &str, at: usize) -> Range<usize> {
    let mut table = 0..text.len();
    let mut from = 0;
    for line in text.split_inclusive('\n') {
        if is_header(line) {
            if from <= at {
                table.start = from;
            } else if !is_inner(line) {
                table.end = from;
                break;
            }
        }
        from += line.len();
    }
    table
}

/// The innermost bracket that is opened but not closed in a part of the text.
fn open_bracket(text: &str, part: Range<usize>) -> Option<usize> {
    let mut open = Vec::new();
    let mut rest = text.get(part.clone())?.char_indices().peekable();
    let mut header = true;
    while let Some((at, character)) = rest.next() {
        match character {
            '#' => while rest.next_if(|(_, next)| *next != '\n').is_some() {},
            '"' | '\'' => {
                // Strings end with their line at the latest: a lost quote must not swallow the file.
                while let Some((_, next)) = rest.next_if(|(_, next)| *next != '\n') {
                    if next == '\\' && character == '"' {
                        rest.next();
                    } else if next == character {
                        break;
                    }
                }
            }
            '\n' => header = false,
            '[' | '{' if !(header && character == '[') => open.push(part.start + at),
            ']' | '}' if !header => {
                open.pop();
            }
            _ => {}
        }
    }
    open.pop()
}

/// Several `[model]`, or one in addition to `[[model]]`: the parser would call all but the first duplicates.
fn blank_single_headers(report: &mut Report<'_>, file: ConfigFile, text: &mut Cow<'_, str>) {
    let lists = KEYS.roots().filter(|key| key.is_list());
    let lists: Vec<&str> = lists.map(|key| &*key.name).collect();
    let mut singles = Vec::new();
    let mut doubled = Vec::new();
    let mut from = 0;
    for line in text.split_inclusive('\n') {
        let header = line.trim();
        // Most lines are not headers; a file may have millions of them.
        let names = if header.starts_with('[') {
            &*lists
        } else {
            &[]
        };
        for name in names {
            if header.starts_with(&format!("[[{name}]]")) {
                doubled.push(name);
            } else if header.starts_with(&format!("[{name}]")) {
                let at = from + line.find(name).unwrap_or_default();
                singles.push((name, at..at + name.len()));
            }
        }
        from += line.len();
    }
    let repeated = |name| {
        doubled.contains(name) || singles.iter().filter(|(single, _)| single == name).count() > 1
    };
    for (name, span) in singles.iter().filter(|(name, _)| repeated(name)).cloned() {
        let table = table_around(text, span.start);
        report
            .add(
                Code::WrongTable,
                Span::new(file, span),
                format!("`{name}` must be a list of tables"),
            )
            .help(format!("write [[{name}]] in double brackets"));
        blank(text.to_mut(), table);
    }
}

/// Spaces in place of everything except line ends, byte for byte.
fn blank(text: &mut String, part: Range<usize>) {
    let bytes = text[part.clone()].bytes();
    let spaces: String = bytes
        .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
        .collect();
    text.replace_range(part, &spaces);
}
