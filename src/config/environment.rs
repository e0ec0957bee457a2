//! Environment variables other than secrets.

/// The user who called `sudo`, if this process was started by it.
#[must_use]
pub fn sudo_user() -> Option<String> {
    std::env::var("SUDO_USER")
        .ok()
        .filter(|user| !user.is_empty())
}

/// Whether colours are turned off (<https://no-color.org>).
#[must_use]
pub fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// The log filter, as in `FAREBOX_LOG=farebox=debug`.
#[must_use]
pub fn log_filter() -> Option<String> {
    std::env::var("FAREBOX_LOG")
        .ok()
        .filter(|filter| !filter.is_empty())
}

/// Whether the log is for machines (`FAREBOX_LOG_FORMAT=json`).
#[must_use]
pub fn log_as_json() -> bool {
    std::env::var_os("FAREBOX_LOG_FORMAT").is_some_and(|format| format.eq_ignore_ascii_case("json"))
}

/// The service manager's notification socket (`NOTIFY_SOCKET`), if there is one.
#[must_use]
pub fn notify_socket() -> Option<std::ffi::OsString> {
    std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty())
}
