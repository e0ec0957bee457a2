//! Hides secrets in everything that is shown of the files.
//!
//! [`file()`] also works on broken files: it reads line by line, does not trust quotes or brackets beyond the line, and shows only
//! values of fields known to be harmless. What it does not understand is hidden. Every character keeps its width and its bytes, so
//! that spans and columns of the original stay right.

use std::sync::LazyLock;

use crate::keys::{ConfigTable, KEYS};
use crate::suggest::did_you_mean;

/// Tables whose values may be shown.
type Harmless = Vec<&'static ConfigTable>;
/// Keys whose values are secrets, together with everything inside them.
static SECRET: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let keys = KEYS.all().flat_map(|(_, table)| table.keys());
    keys.filter(|key| key.secret)
        .map(|key| &*key.name)
        .collect()
});
/// Parts of a name that make its value a secret, whatever the field.
const SECRET_PARTS: &[&str] = &[
    "key",
    "token",
    "secret",
    "passw",
    "credential",
    "header",
    "authoriz",
];
/// Prefixes of well-known secrets.
const PREFIXES: &[&str] = &[
    "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "xai-", "gsk_", "ghp_", "hf_", "AIza", "Bearer ",
    "bearer ",
];
/// A run of letters and digits this long is taken for a secret.
const RANDOM_RUN: usize = 20;
/// Longer lines are not examined, because they are not shown.
const LONGEST_LINE: usize = 1_000;
/// Longer words of a comment are not shown.
const LONGEST_WORD: usize = 14;

/// A catalog, which has no place for secrets: only lines that mention one are treated like those of the routes.
pub fn catalog(text: &str) -> String {
    let hidden = file(text);
    let speaks_of_secrets = |line: &str| {
        let lower = line.to_ascii_lowercase();
        SECRET_PARTS.iter().any(|part| lower.contains(part))
    };
    let mut shown = String::with_capacity(text.len());
    for (line, hidden) in text.split_inclusive('\n').zip(hidden.split_inclusive('\n')) {
        if line == hidden || line.len() > LONGEST_LINE || speaks_of_secrets(line) {
            shown.push_str(hidden);
        } else {
            shown.push_str(&words(line));
        }
    }
    shown
}

/// The text with everything hidden that may be a secret; same bytes, same columns.
pub fn file(text: &str) -> String {
    masked(text, Harmless::new())
}

/// The same of a shop's file, whose first keys stand in no table.
pub fn shop(text: &str) -> String {
    masked(text, vec![&KEYS.shop_file])
}

fn masked(text: &str, harmless: Harmless) -> String {
    let mut masker = Masker {
        out: String::with_capacity(text.len()),
        rule: ShowRule::Hide,
        depth: 0,
        in_value: false,
        named: false,
        fresh: false,
        secret_from: None,
        harmless,
    };
    for line in text.split_inclusive('\n') {
        masker.line(line);
    }
    masker.out
}

/// A sentence with everything hidden that looks like a secret by itself; same bytes, same columns.
pub fn words(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut hidden = vec![false; bytes.len()];
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
    let is_token = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+' | b'/' | b'=')
    };
    for prefix in PREFIXES {
        for (at, _) in text.match_indices(prefix) {
            if at > 0 && is_word(&bytes[at - 1]) {
                continue;
            }
            let from = at + prefix.len();
            let length = bytes[from..]
                .iter()
                .take_while(|byte| is_token(byte))
                .count();
            if length >= 6 {
                hidden[from..from + length].fill(true);
            }
        }
    }
    let mut start = 0;
    while start < bytes.len() {
        let length = bytes[start..]
            .iter()
            .take_while(|byte| is_word(byte))
            .count();
        let run = &bytes[start..start + length];
        if length >= RANDOM_RUN
            && run.iter().any(u8::is_ascii_digit)
            && run.iter().any(u8::is_ascii_alphabetic)
        {
            hidden[start..start + length].fill(true);
        }
        start += length.max(1);
    }
    // The part before an `@` or after a `?` of a URL, even of one that lost its beginning.
    let mut from = 0;
    for url in bytes.split(|byte| matches!(byte, b'"' | b'\'' | b' ' | b'`' | b'\n')) {
        let host = url
            .windows(2)
            .position(|pair| pair == b"//")
            .map_or(0, |at| at + 2);
        if let Some(end) = url
            .iter()
            .rposition(|byte| *byte == b'@')
            .filter(|end| *end > host)
        {
            hidden[from + host..from + end].fill(true);
        }
        if let Some(query) = url
            .iter()
            .position(|byte| matches!(byte, b'?' | b'#'))
            .filter(|_| url.contains(&b'/'))
        {
            hidden[from + query + 1..from + url.len()].fill(true);
        }
        from += url.len() + 1;
    }
    text.char_indices()
        .map(|(at, character)| {
            if hidden[at] {
                star(character)
            } else {
                character
            }
        })
        .collect()
}

/// A base URL with those parts of its path hidden that may be a secret: some services put the account or a key there. Same bytes,
/// same columns.
pub fn base_url(text: &str) -> String {
    let text = words(text);
    let host = text.find("://").map_or(0, |at| at + 3);
    let path = text[host..].find('/').map_or(text.len(), |at| host + at);
    let (before, path) = text.split_at(path);
    let hidden = |part: &str| part.chars().map(star).collect::<String>();
    let parts: Vec<String> = path
        .split('/')
        .map(|part| {
            let ending = part.trim_end_matches(['"', '\'']);
            let quote = &part[ending.len()..];
            if is_path_word(ending) {
                part.to_owned()
            } else {
                hidden(ending) + quote
            }
        })
        .collect();
    format!("{before}{}", parts.join("/"))
}

fn is_path_word(part: &str) -> bool {
    let is_version = part.strip_prefix('v').is_some_and(|rest| {
        rest.len() <= 8
            && rest.starts_with(|first: char| first.is_ascii_digit())
            && rest
                .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
                .trim_end_matches(|c: char| c.is_ascii_digit())
                .trim_start_matches("alpha")
                .trim_start_matches("beta")
                .is_empty()
    });
    part.is_empty() || is_version || KEYS.path_words.iter().any(|word| word == part)
}

/// Whether a name may be shown as the name of an environment variable.
pub fn plausible_variable(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.len() <= 80
        && words(name) == name
}

/// Whether a text is the name of a file: words, and one that says so, which a secret does not.
fn is_file_name(text: &str) -> bool {
    let parts = || text.split(['.', '_', '-']);
    let tame = |part: &str| {
        part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit())
            || part.len() <= LONGEST_WORD && part.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    let says = "key keys token secret secrets apikey txt pem env";
    parts().count() > 1
        && parts().all(tame)
        && parts().any(|part| says.split(' ').any(|word| part.eq_ignore_ascii_case(word)))
}

/// Whether a text may be shown as the path of a secret's file. A relative one must not look like a secret with slashes in it.
pub fn plausible_path(path: &str) -> bool {
    let rooted = ["/", "./", "../"]
        .iter()
        .any(|start| path.starts_with(start));
    let tame = |byte: u8| {
        byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(byte, b'/' | b'.' | b'_' | b'-')
    };
    (rooted || is_file_name(path) || (path.contains('/') && path.bytes().all(tame)))
        && path.len() <= 400
        && words(path) == path
}

/// A replacement character with the same length in bytes and about the same width.
const fn star(character: char) -> char {
    match character.len_utf8() {
        1 if character == '\n' || character == '\r' => character,
        1 => '*',
        2 => '·',
        3 => '•',
        _ => '🔒',
    }
}

/// What may be shown of the current value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShowRule {
    /// Anything except what looks like a secret by itself.
    Show,
    /// A base URL.
    Url,
    /// The name of a variable.
    Variable,
    /// The name of a file.
    File,
    /// Nothing.
    Hide,
}

struct Masker {
    out: String,
    rule: ShowRule,
    /// Open brackets.
    depth: usize,
    /// Whether a value comes next, not a name.
    in_value: bool,
    /// Whether a name was read and its `=` comes next.
    named: bool,
    /// Whether a value may begin here: right after `=`, `[` or `,`.
    fresh: bool,
    /// Inside a secret field, which began at this depth.
    secret_from: Option<usize>,
    /// What may be shown in the current table: nothing inside `[provider.x.headers]` or below an invalid header.
    harmless: Harmless,
}

impl Masker {
    fn line(&mut self, line: &str) {
        if self.header(line) {
            return;
        }
        if self.depth == 0 && line.trim_start().starts_with('[') {
            self.harmless.clear();
        }
        if self.depth == 0 || self.begins_anew(line) {
            self.forget();
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
                    } else if !self.in_value && self.depth == 0 && self.is_harmless(word) {
                        // A harmless field is still harmless when its `=` was forgotten.
                        self.name(word);
                        (self.in_value, self.named, self.fresh) = (true, false, true);
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

    /// A table header, which is shown; anything else that begins with a bracket is not a header.
    fn header(&mut self, line: &str) -> bool {
        let text = line.trim();
        let Some(inner) = text.strip_prefix('[') else {
            return false;
        };
        let inner = inner.trim_start_matches('[');
        // A header that lost its closing bracket still names a table.
        let closed = inner.contains(']');
        let (path, after) = inner.split_once(']').unwrap_or((inner, ""));
        let after = after.trim_start_matches(']').trim_start();
        let plain = !path.contains(['=', '{', ',', '#', '\''])
            && (after.is_empty() || after.starts_with('#'));
        let mut parts = path.split('.').map(|part| part.trim().trim_matches('"'));
        let root = parts.next().unwrap_or_default();
        let known = KEYS.root(root);
        let word = root
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        if !plain || !(known.is_some() || (self.depth == 0 && word && closed)) {
            return false;
        }
        let names_secret = |part| did_you_mean(part, &SECRET).is_some();
        self.harmless = match known {
            Some(root) if !parts.any(names_secret) => root.shown(),
            _ => Harmless::new(),
        };
        let (table, comment) = line.split_at(line.find('#').unwrap_or(line.len()));
        self.out.push_str(&words(table));
        self.forget();
        self.comment(comment);
        true
    }

    /// Whether a line that begins with a harmless field shows that a bracket before it was never closed.
    fn begins_anew(&self, line: &str) -> bool {
        let name = line.split(|c: char| !is_bare(c)).next().unwrap_or_default();
        self.is_harmless(name)
            && self.secret_from.is_none()
            && followed_by_equals(&line[name.len()..])
    }

    /// Whether the values of a field may be shown.
    fn is_harmless(&self, name: &str) -> bool {
        self.harmless.iter().any(|table| table.shows(name))
    }

    /// Resets to the state at the first line.
    fn forget(&mut self) {
        (self.rule, self.depth, self.secret_from) = (ShowRule::Hide, 0, None);
        (self.in_value, self.named, self.fresh) = (false, false, false);
    }

    fn punctuation(&mut self, mark: char) {
        self.out
            .push(if mark.is_ascii() { mark } else { star(mark) });
        if (mark == '=' && !self.named) || (matches!(mark, '[' | '{') && !self.fresh) {
            self.rule = ShowRule::Hide;
        }
        match mark {
            '[' | '{' => self.depth += 1,
            ']' | '}' => {
                self.depth = self.depth.saturating_sub(1);
                self.rule = ShowRule::Hide;
                if self.secret_from.is_some_and(|from| self.depth < from) {
                    self.secret_from = None;
                }
            }
            ',' if self.secret_from == Some(self.depth) => {
                (self.secret_from, self.rule) = (None, ShowRule::Hide)
            }
            _ => {}
        }
        match mark {
            '=' => (self.in_value, self.named, self.fresh) = (true, false, true),
            '{' | ',' => (self.in_value, self.fresh) = (false, true),
            ']' | '}' => self.fresh = false,
            _ => {}
        }
    }

    /// The name of a field (or one part of a dotted one) decides about its value.
    fn name(&mut self, quoted: &str) {
        let name = quoted.trim_matches(['"', '\'']);
        self.named = true;
        let harmless = self.is_harmless(name);
        // A stray value may look like a name when an `=` or a dot follows; no field name contains digits, except `1h`.
        if harmless || !name.bytes().any(|byte| byte.is_ascii_digit()) {
            self.out.push_str(&words(quoted));
        } else {
            self.out.extend(quoted.chars().map(star));
        }
        if !harmless && is_secret(name) {
            self.rule = ShowRule::Hide;
            self.secret_from.get_or_insert(self.depth);
        } else if name == "env" {
            self.rule = ShowRule::Variable;
        } else if name == "file" {
            self.rule = ShowRule::File;
        } else if self.secret_from.is_none() && is_url(name) && harmless {
            self.rule = ShowRule::Url;
        } else if self.secret_from.is_none() && (harmless || self.misspells_harmless(name)) {
            self.rule = ShowRule::Show;
        } else {
            self.rule = ShowRule::Hide;
        }
    }

    /// In tables that contain secrets, only the exact spelling is trusted.
    fn misspells_harmless(&self, name: &str) -> bool {
        let near = |table: &&ConfigTable| {
            let names: Vec<&str> = table.names().collect();
            did_you_mean(name, &names).is_some()
        };
        let has_secrets = |table: &&ConfigTable| table.keys().any(|key| key.secret);
        !self.harmless.iter().any(has_secrets) && self.harmless.iter().any(near)
    }

    fn value(&mut self, quoted: &str) {
        let inner = quoted.trim_matches(['"', '\'', '\n', '\r']);
        if !std::mem::take(&mut self.fresh) {
            self.rule = ShowRule::Hide;
        }
        let shown = match self.rule {
            ShowRule::Show | ShowRule::Url => true,
            ShowRule::Variable => plausible_variable(inner),
            ShowRule::File => plausible_path(inner),
            ShowRule::Hide => false,
        };
        if shown && self.rule == ShowRule::Url {
            self.out.push_str(&base_url(quoted));
        } else if shown {
            self.out.push_str(&words(quoted));
        } else {
            self.out.extend(quoted.chars().map(|each| {
                if matches!(each, '"' | '\'') {
                    each
                } else {
                    star(each)
                }
            }));
        }
    }

    fn bare_value(&mut self, word: &str) {
        let number = word
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-' | b'+' | b':'));
        if self.rule == ShowRule::Show && (number || matches!(word, "true" | "false")) {
            self.out.push_str(word);
        } else {
            self.out.extend(word.chars().map(star));
            self.rule = ShowRule::Hide;
        }
    }

    /// A comment's plain words are shown. Possible secrets are hidden, and so is the whole comment if it mentions one.
    fn comment(&mut self, comment: &str) {
        let lower = comment.to_ascii_lowercase();
        let secretive = SECRET_PARTS.iter().any(|part| lower.contains(part));
        for token in comment.split_inclusive([' ', '\t', '\n']) {
            if !secretive && is_plain_word(token) {
                self.out.push_str(token);
            } else {
                self.out.extend(token.chars().map(|each| {
                    if each == '#' || each.is_ascii_whitespace() {
                        each
                    } else {
                        star(each)
                    }
                }));
            }
        }
    }
}

/// Letters surrounded by punctuation, too few for a secret, or a short number.
fn is_plain_word(token: &str) -> bool {
    let around = |c: char| c.is_ascii_punctuation() || c.is_ascii_whitespace();
    let inner = token.trim_matches(around);
    let letters = inner.bytes().all(|byte| byte.is_ascii_alphabetic());
    let number = inner
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b'_'));
    token.len() - inner.len() <= 4
        && ((letters && inner.len() <= LONGEST_WORD) || (number && inner.len() <= 9))
}

fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    SECRET_PARTS.iter().any(|part| lower.contains(part)) || did_you_mean(&lower, &SECRET).is_some()
}

fn is_url(name: &str) -> bool {
    name == "base_url"
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

/// Bytes of the string that begins here, including its quotes; it ends with its line at the latest.
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
