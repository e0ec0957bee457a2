//! Names of system users: who acts, and who owns a file.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{Uid, User};

/// The name of the user this process runs as; the number if it has no name.
pub fn user_name() -> String {
    name(Uid::current())
}

/// The owner of a file, or else of its folder.
pub fn of(path: &Path) -> String {
    let found = path.ancestors().find_map(|place| place.metadata().ok());
    found.map_or_else(user_name, |found| name(Uid::from_raw(found.uid())))
}

/// Who acts, for the audit: the name that was given, and the system user behind it.
pub fn actor(named: Option<String>) -> String {
    let user = user_name();
    match named.as_deref().map(str::trim) {
        Some(name) if !name.is_empty() && name != user => format!("{name} ({user})"),
        _ => user,
    }
}

fn name(uid: Uid) -> String {
    User::from_uid(uid)
        .ok()
        .flatten()
        .map_or_else(|| format!("uid {uid}"), |user| user.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_unknown() {
        assert_eq!(name(Uid::from_raw(0)), "root");
        assert_eq!(name(Uid::from_raw(3_999_999_999)), "uid 3999999999");
        assert!(!user_name().is_empty());
        assert_eq!(of(Path::new("/no/such/file")), "root");
        let user = user_name();
        for nobody in [None, Some(" ".to_owned()), Some(user.clone())] {
            assert_eq!(actor(nobody), user);
        }
        assert_eq!(actor(Some("a name".to_owned())), format!("a name ({user})"));
    }
}
