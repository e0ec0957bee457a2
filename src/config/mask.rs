//! Hides secrets in everything that is shown of the two files.
//!
//! [`file`] works on broken files as well: line by line, without believing quotes or brackets beyond the line, and it shows only
//! values of fields known to be harmless. What it does not understand is hidden. Every character keeps its width and its
//! bytes, so that spans and columns of the original stay right.

use super::raw::did_you_mean;

/// Fields whose values may be shown.
const HARMLESS: &[&str] = &[
    "model",
    "slug",
    "provider",
    "best_path",
    "best_environments",
    "price",
    "capabilities",
    "limits",
    "aliases",
    "since",
    "use",
    "input",
    "output",
    "cache_read",
    "cache_write",
    "cache_write_1h",
    "reasoning",
    "per_image",
    "per_request",
    "tiers",
    "above_input",
    "context",
    "max_output",
    "default_output",
    "speed",
    "image_bytes",
    "tools",
    "base_url",
    "speaks",
    "timeouts",
    "connect",
    "first_byte",
    "idle",
    "whole",
    "simulated",
    "auth",
    "max_concurrent",
    "chat_limit",
    "refuse_beta",
    "on_disconnect",
    "targets",
    "retry",
    "breaker",
    "failures",
    "open",
];
/// Fields whose values are secrets, together with everything inside them.
const SECRET: &[&str] = &["key", "keys", "headers"];
/// Parts of a name that make its value a secret whatever the field is.
const SECRET_PARTS: &[&str] = &["key", "token", "secret", "passw", "credential", "header", "authoriz"];
/// Beginnings of well-known secrets.
const PREFIXES: &[&str] =
    &["sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "xai-", "gsk_", "ghp_", "hf_", "AIza", "Bearer ", "bearer "];
/// A run of letters and digits this long is taken for a secret.
const RANDOM_RUN: usize = 20;

/// The text with everything hidden that may be a secret; same bytes, same columns.
pub(super) fn file(text: &str) -> String {
    let mut masker = Masker {
        out: String::with_capacity(text.len()),
        rule: Rule::Hide,
        depth: 0,
        in_value: false,
        secret_from: None,
        section: false,
    };
    for line in text.split_inclusive('\n') {
        masker.line(line);
    }
    masker.out
}

/// A sentence with everything hidden that looks like a secret by itself; same bytes, same columns.
pub(super) fn words(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut hidden = vec![false; bytes.len()];
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+' | b'/' | b'=');
    for prefix in PREFIXES {
        for (at, _) in text.match_indices(prefix) {
            if at > 0 && is_word(&bytes[at - 1]) {
                continue;
            }
            let from = at + prefix.len();
            let length = bytes[from..].iter().take_while(|byte| is_token(byte)).count();
            if length >= 6 {
                hidden[from..from + length].fill(true);
            }
        }
    }
    let mut start = 0;
    while start < bytes.len() {
        let length = bytes[start..].iter().take_while(|byte| is_word(byte)).count();
        let run = &bytes[start..start + length];
        if length >= RANDOM_RUN && run.iter().any(u8::is_ascii_digit) && run.iter().any(u8::is_ascii_alphabetic) {
            hidden[start..start + length].fill(true);
        }
        start += length.max(1);
    }
    for (at, separator) in text.match_indices("://") {
        let from = at + separator.len();
        let length = bytes[from..].iter().take_while(|byte| !matches!(byte, b'"' | b'\'' | b' ' | b'`' | b'\n')).count();
        let url = &bytes[from..from + length];
        if let Some(end) = url.iter().rposition(|byte| *byte == b'@') {
            hidden[from..from + end].fill(true);
        }
        if let Some(query) = url.iter().position(|byte| matches!(byte, b'?' | b'#')) {
            hidden[from + query + 1..from + length].fill(true);
        }
    }
    text.char_indices().map(|(at, character)| if hidden[at] { star(character) } else { character }).collect()
}

/// Whether a name may be shown as the name of an environment variable.
pub(super) fn plausible_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.len() <= 80
        && words(name) == name
}

/// Whether a text may be shown as the path of a secret's file. A relative one must not look like a secret with slashes in it.
pub(super) fn plausible_path(path: &str) -> bool {
    let rooted = ["/", "./", "../"].iter().any(|start| path.starts_with(start));
    let tame = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'/' | b'.' | b'_' | b'-');
    (rooted || (path.contains('/') && path.bytes().all(tame))) && path.len() <= 400 && words(path) == path
}

/// A character that hides another one of the same length in bytes and about the same width.
const fn star(character: char) -> char {
    match character.len_utf8() {
        1 if character == '\n' || character == '\r' => character,
        1 => '*',
        2 => '·',
        3 => '•',
        _ => '🔒',
    }
}

/// What may be shown of the value at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Anything, but what looks like a secret by itself.
    Show,
    /// The name of a variable or a file.
    Reference,
    /// Nothing.
    Hide,
}

struct Masker {
    out: String,
    rule: Rule,
    /// Open brackets.
    depth: usize,
    /// A value comes next, not a name.
    in_value: bool,
    /// Inside a secret field, which began at this depth.
    secret_from: Option<usize>,
    /// Inside a table of secrets (`[provider.x.headers]`).
    section: bool,
}

impl Masker {
    fn line(&mut self, line: &str) {
        if self.header(line) {
            return;
        }
        if self.depth == 0 {
            (self.rule, self.in_value, self.secret_from) = (Rule::Hide, false, None);
        }
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let used = match first {
                '"' | '\'' => {
                    let length = string_length(rest, first);
                    if !self.in_value && followed_by_equals(&rest[length..]) {
                        self.name(&rest[..length]);
                    } else {
                        self.value(&rest[..length]);
                    }
                    length
                }
                '#' => {
                    self.comment(rest);
                    rest.len()
                }
                _ if is_bare(first) => {
                    let length = rest.find(|next| !is_bare(next)).unwrap_or(rest.len());
                    let (word, after) = rest.split_at(length);
                    if !self.in_value && followed_by_equals(after) {
                        self.name(word);
                    } else {
                        self.bare_value(word);
                        self.in_value = true;
                    }
                    length
                }
                _ => {
                    self.punctuation(first);
                    first.len_utf8()
                }
            };
            rest = &rest[used..];
        }
    }

    /// A table header, which is shown; anything else that begins with a bracket is not one.
    fn header(&mut self, line: &str) -> bool {
        let text = line.trim();
        let Some(inner) = text.strip_prefix('[') else { return false };
        let Some((path, after)) = inner.trim_start_matches('[').split_once(']') else { return false };
        let after = after.trim_start_matches(']').trim_start();
        let root = path.split('.').next().unwrap_or_default().trim();
        let plain = !path.contains(['=', '{', ',', '#', '\'']) && (after.is_empty() || after.starts_with('#'));
        let known = did_you_mean(root, &["model", "retired", "route", "provider"]).is_some();
        if !plain || !(known || (self.depth == 0 && root.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'))) {
            return false;
        }
        let (table, comment) = line.split_at(line.find('#').unwrap_or(line.len()));
        self.out.push_str(&words(table));
        (self.rule, self.depth, self.in_value, self.secret_from) = (Rule::Hide, 0, false, None);
        self.comment(comment);
        self.section = path.split('.').skip(2).any(|part| is_secret(part.trim().trim_matches('"')));
        true
    }

    fn punctuation(&mut self, mark: char) {
        self.out.push(if mark.is_ascii() { mark } else { star(mark) });
        match mark {
            '[' | '{' => self.depth += 1,
            ']' | '}' => {
                self.depth = self.depth.saturating_sub(1);
                self.rule = Rule::Hide;
                if self.secret_from.is_some_and(|from| self.depth < from) {
                    self.secret_from = None;
                }
            }
            ',' if self.secret_from == Some(self.depth) => (self.secret_from, self.rule) = (None, Rule::Hide),
            _ => {}
        }
        match mark {
            '=' => self.in_value = true,
            '{' | ',' => self.in_value = false,
            _ => {}
        }
    }

    /// The name of a field (or one part of a dotted one) decides about its value.
    fn name(&mut self, quoted: &str) {
        let name = quoted.trim_matches(['"', '\'']);
        self.out.push_str(&words(quoted));
        if is_secret(name) {
            self.rule = Rule::Hide;
            self.secret_from.get_or_insert(self.depth);
        } else if matches!(name, "env" | "file") {
            self.rule = Rule::Reference;
        } else if self.section || self.secret_from.is_some() {
            self.rule = Rule::Hide;
        } else {
            self.rule = if did_you_mean(name, HARMLESS).is_some() { Rule::Show } else { Rule::Hide };
        }
    }

    fn value(&mut self, quoted: &str) {
        let inner = quoted.trim_matches(['"', '\'', '\n', '\r']);
        let shown = match self.rule {
            Rule::Show => true,
            Rule::Reference => plausible_variable(inner) || plausible_path(inner),
            Rule::Hide => false,
        };
        if shown {
            self.out.push_str(&words(quoted));
        } else {
            self.out.extend(quoted.chars().map(|each| if matches!(each, '"' | '\'') { each } else { star(each) }));
        }
    }

    fn bare_value(&mut self, word: &str) {
        let number = word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-' | b'+' | b':'));
        if self.rule == Rule::Show && (number || matches!(word, "true" | "false")) {
            self.out.push_str(word);
        } else {
            self.out.extend(word.chars().map(star));
            self.rule = Rule::Hide;
        }
    }

    fn comment(&mut self, comment: &str) {
        if self.rule == Rule::Show && !comment.contains(['=', '"', '\'', '{']) {
            self.out.push_str(&words(comment));
        } else {
            self.out.extend(comment.chars().map(|each| if each == '#' || each == ' ' { each } else { star(each) }));
        }
    }
}

fn is_secret(name: &str) -> bool {
    if HARMLESS.contains(&name) {
        return false;
    }
    let lower = name.to_ascii_lowercase();
    SECRET_PARTS.iter().any(|part| lower.contains(part)) || did_you_mean(&lower, SECRET).is_some()
}

fn is_bare(character: char) -> bool {
    character.is_alphanumeric()
        || !character.is_ascii()
        || matches!(
            character,
            '_' | '-'
                | '+'
                | ':'
                | '/'
                | '\\'
                | '$'
                | '%'
                | '@'
                | '!'
                | '&'
                | '*'
                | '~'
                | '^'
                | ';'
                | '?'
                | '|'
                | '('
                | ')'
                | '<'
                | '>'
                | '`'
        )
}

/// Bytes of the string that begins here, its quotes included; it ends with its line at the latest.
fn string_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            '\n' => return at,
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Whether a name ends here: `=` comes next, or a dot and another name.
fn followed_by_equals(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '\t']);
    text.starts_with(['=', '.'])
}
