//! What the process's environment says besides secrets.

/// The user this process runs as, for the audit.
#[must_use]
pub fn system_user() -> String {
    ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()))
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Whether colours are unwanted (<https://no-color.org>).
#[must_use]
pub fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
