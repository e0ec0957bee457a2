//! Which room a file or path belongs to, whether one may name another, and the table of all of them.

use crate::house::Room;
use crate::rooms::rooms;

/// What a pure room leaves alone in the standard library.
pub(crate) const OUTSIDE: [&str; 7] = [
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::process",
    "std::thread",
    "std::time::SystemTime",
];

/// The room of a source file.
pub(crate) fn of_file(path: &str) -> Option<&'static Room> {
    rooms()
        .filter(|room| path.starts_with(room.folder))
        .max_by_key(|room| room.folder.len())
}

/// The room that a resolved path leads into.
pub(crate) fn of_path(path: &[String]) -> Option<&'static Room> {
    let leads = |room: &&Room| {
        let parts: Vec<&str> = room.module.split("::").collect();
        path.len() >= parts.len()
            && parts
                .iter()
                .zip(path)
                .all(|(part, segment)| part == segment)
    };
    rooms().filter(leads).max_by_key(|room| room.module.len())
}

impl Room {
    /// Whether code of this room may name a path that leads into another one.
    pub(crate) fn may(&self, target: &Room, path: &[String]) -> bool {
        self.ours.iter().any(|entry| match entry.split_once("::") {
            Some((room, item)) => target.is(room) && path.iter().any(|segment| segment == item),
            None => target.name == *entry || target.is(entry) && !self.is_beside(target),
        })
    }

    /// Two rooms of one folder, such as the ledger's stores, know each other only by name.
    fn is_beside(&self, other: &Self) -> bool {
        let folder = |room: &Self| room.name.rsplit_once('/').map(|(folder, _)| folder);
        self.name != other.name && folder(self).is_some() && folder(self) == folder(other)
    }

    /// A room counts as part of the one whose folder holds it.
    fn is(&self, name: &str) -> bool {
        self.name == name
            || self
                .name
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('/'))
    }
}

/// The table *Who may import whom*, as Markdown.
pub(crate) fn table() -> String {
    let mut text = "| room | its job | of ours | crates | |\n|---|---|---|---|---|\n".to_owned();
    for room in rooms() {
        let code = |names: &[&str]| match names {
            [] => "–".to_owned(),
            _ => names
                .iter()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", "),
        };
        let pure = if room.pure {
            "pure: no async, no I/O"
        } else {
            ""
        };
        text.push_str(&format!(
            "| `{}` | {} | {} | {} | {pure} |\n",
            room.name,
            room.job,
            code(room.ours),
            code(room.crates)
        ));
    }
    text
}
