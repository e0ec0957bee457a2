//! Takes out the paths of files. Paths of an API, of fields and of links stay.

use super::find::{is_word, replaced, token_len};

/// First folders of file systems; paths of an API begin differently.
const ROOTS: [&str; 15] = [
    "usr",
    "home",
    "opt",
    "var",
    "etc",
    "srv",
    "root",
    "mnt",
    "proc",
    "private",
    "tmp",
    "nix",
    "Users",
    "Volumes",
    "workspace",
];
/// First folders that an API may have too: only with a file's ending.
const SHARED_ROOTS: [&str; 5] = ["app", "run", "lib", "bin", "data"];
/// First folders of a Windows drive. JSON has `:\n` in it, so not every word will do.
const DRIVE_ROOTS: [&str; 9] = [
    "users",
    "windows",
    "program files",
    "programdata",
    "inetpub",
    "srv",
    "app",
    "data",
    "temp",
];
/// What a path may begin behind, although other paths do not: JSON writes the ends of lines so.
const BEFORE: [&str; 3] = ["file://", "\\n", "\\t"];
/// What ends a path.
const BEHIND: &str = "\"'`<>(),;:*?|[]{}";

pub(super) fn without_files(text: &str) -> String {
    without_drives(&without_paths(text))
}

/// `/usr/lib/python3/…`
fn without_paths(text: &str) -> String {
    replaced(text, |text, _, from| {
        let at = from + text.get(from..)?.find('/')?;
        let (before, path) = (&text[..at], &text[at + 1..]);
        let begins = !before.ends_with(|c: char| is_word(c) || "./:}]~\\".contains(c))
            || BEFORE.iter().any(|begin| before.ends_with(begin));
        let root = &path[..token_len(path, |c| c.is_ascii_alphanumeric())];
        let shared = SHARED_ROOTS.contains(&root);
        let rest = &path[root.len()..];
        if !begins || !rest.starts_with('/') || !(shared || ROOTS.contains(&root)) {
            return Some((at, at + 1, None));
        }
        let length = token_len(rest, |c| {
            !c.is_whitespace() && c != '\\' && !BEHIND.contains(c)
        });
        let rest = rest[..length].trim_end_matches('.');
        let file = rest.rsplit('/').next().unwrap_or_default();
        let is_path = rest.len() > 1 && (!shared || file.contains('.'));
        let end = at + 1 + root.len() + rest.len();
        Some((at, end, is_path.then_some("[path]")))
    })
}

/// `C:\Users\…`, also with the backslashes of JSON.
fn without_drives(text: &str) -> String {
    replaced(text, |text, lower, from| {
        let at = from + text.get(from..)?.find(":\\")?;
        let drive = at.checked_sub(1).filter(|drive| {
            *drive >= from
                && text.as_bytes()[*drive].is_ascii_alphabetic()
                && !text[..*drive].ends_with(is_word)
        });
        let folder = lower[at + 1..].trim_start_matches('\\');
        let is_root = |root: &&str| {
            let rest = folder.strip_prefix(*root);
            rest.is_some_and(|rest| rest.starts_with('\\'))
        };
        let Some(drive) = drive.filter(|_| DRIVE_ROOTS.iter().any(is_root)) else {
            return Some((at, at + 2, None));
        };
        let root = text.len() - folder.len();
        let name = |c: char| c != '\\' && !BEHIND.contains(c);
        // A folder's name may have a space; the last part ends at one.
        let first = root + token_len(&text[root..], name);
        let tail = token_len(&text[first..], |c| {
            !c.is_whitespace() && !BEHIND.contains(c)
        });
        let end = text[..first + tail].trim_end_matches(['\\', '.']).len();
        Some((drive, end, Some("[path]")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_files_go_and_others_stay() {
        for (text, expected) in [
            (
                "File \"/usr/lib/python3/site.py\", line 3 of /home/run/x.py:12.",
                "File \"[path]\", line 3 of [path]:12.",
            ),
            (
                "C:\\Users\\svc\\app.exe; d:\\\\data\\\\models\\\\x.bin and C:\\Program Files\\x\\y.dll",
                "[path]; [path] and [path]",
            ),
            (
                "file:///opt/vllm/serve, /app/main.py.",
                "file://[path], [path].",
            ),
        ] {
            assert_eq!(without_files(text), expected);
        }
        for text in [
            "messages.0.content.1: either/or, 3/4, and/or",
            "POST /v1/chat/completions, /app/settings, /users/42/posts",
            "https://cdn.customer.example/usr/share/a.png and ../etc/x",
            "\"option a:\\nfoo\\nbar\\ttemp\\n\" of /tmp and ~/home/x",
        ] {
            assert_eq!(without_files(text), text);
        }
    }
}
