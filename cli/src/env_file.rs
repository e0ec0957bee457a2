//! `--env-file FILE`: the settings and secrets of a unit, for a command that is typed.
//!
//! The program starts itself once more with these variables, because only then every part of it finds them where it looks. The console
//! includes this file, too, which therefore names nothing of the gateway.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const FLAG: &str = "--env-file";

/// Replaces this process by one that has the file's variables, if the command line names a file. The caller knows how to read a file,
/// and which variables the environment has.
pub(super) fn load(
    read: impl FnOnce(&Path) -> Result<Vec<u8>, String>,
    is_set: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let Some((file, rest)) = split(std::env::args_os().skip(1)) else {
        return Ok(());
    };
    let failed = |why: String| format!("{FLAG} {}: {why}", file.display());
    let content = read(&file).map_err(failed)?;
    let text = String::from_utf8(content).map_err(|_| failed("it is not UTF-8 text".to_owned()))?;
    let variables = variables(&text).map_err(failed)?;
    let missing = variables.into_iter().filter(|(name, _)| !is_set(name));
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    // Without the flag, or the new process would start itself again as well.
    let error = Command::new(program).args(rest).envs(missing).exec();
    Err(format!("cannot start again: {error}"))
}

/// The file that the flag names, and the command line without it. After `--`, nothing is a flag.
fn split(mut typed: impl Iterator<Item = OsString>) -> Option<(PathBuf, Vec<OsString>)> {
    let (mut file, mut rest) = (None, Vec::new());
    while let Some(word) = typed.next() {
        let joined = word
            .to_str()
            .and_then(|word| word.strip_prefix(FLAG)?.strip_prefix('='));
        if word == "--" {
            rest.push(word);
            rest.extend(typed.by_ref());
        } else if let Some(name) = joined {
            file = Some(PathBuf::from(name));
        } else if word == FLAG {
            // Without a value it is left to clap, which says so.
            match typed.next() {
                Some(name) => file = Some(PathBuf::from(name)),
                None => rest.push(word),
            }
        } else {
            rest.push(word);
        }
    }
    Some((file?, rest))
}

/// Names and values, as systemd reads them: `#` and `;` begin comments, and quotes around a value are not part of it. A mistake is told
/// by its line alone, because the value may be a secret.
fn variables(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1_u32..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let word = |name: &str| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        match line.split_once('=') {
            Some((name, value)) if word(name) => {
                found.push((name.to_owned(), unquoted(value.trim()).to_owned()));
            }
            _ => return Err(format!("line {number} is not NAME=value; nothing was done")),
        }
    }
    Ok(found)
}

fn unquoted(value: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(words: &[&str]) -> Option<(PathBuf, Vec<OsString>)> {
        split(words.iter().map(OsString::from))
    }

    #[test]
    fn the_flag_stands_anywhere_before_two_dashes() {
        let rest: Vec<OsString> = ["keys", "list"].map(OsString::from).into();
        for words in [
            ["--env-file", "e", "keys", "list"].as_slice(),
            &["keys", "--env-file=e", "list"],
            &["keys", "list", "--env-file", "e"],
        ] {
            assert_eq!(
                typed(words),
                Some((PathBuf::from("e"), rest.clone())),
                "{words:?}"
            );
        }
        for words in [
            ["keys", "list"].as_slice(),
            &["keys", "--", "--env-file", "e"],
            &["keys", "--env-file"],
        ] {
            assert_eq!(typed(words), None, "{words:?}");
        }
    }

    #[test]
    fn files_are_read_as_systemd_does() {
        let text = "# comment\n; another\n\nA=1\n B = x\nC=\"two words\"\nD='$x'\nE=a=b\nF=\n";
        let pairs = [
            ("A", "1"),
            ("C", "two words"),
            ("D", "$x"),
            ("E", "a=b"),
            ("F", ""),
        ];
        let expected = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(variables(&text.replace(" B = x\n", "")).unwrap(), expected);
        let mistake = variables(text).unwrap_err();
        assert!(mistake.starts_with("line 5 "), "{mistake}");
        assert!(
            variables("A=1\nexport B=secret")
                .unwrap_err()
                .starts_with("line 2")
        );
    }
}
