//! Environment variables other than secrets.

/// The user who called `sudo`, if this process was started by it.
pub fn sudo_user() -> Option<String> {
    std::env::var("SUDO_USER")
        .ok()
        .filter(|user| !user.is_empty())
}

/// Whether colours are turned off (<https://no-color.org>).
pub fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// The log filter, as in `FAREBOX_LOG=farebox=debug`.
pub fn log_filter() -> Option<String> {
    std::env::var("FAREBOX_LOG")
        .ok()
        .filter(|filter| !filter.is_empty())
}

/// Whether the log is for machines (`FAREBOX_LOG_FORMAT=json`).
pub fn log_as_json() -> bool {
    std::env::var_os("FAREBOX_LOG_FORMAT").is_some_and(|format| format.eq_ignore_ascii_case("json"))
}

/// The service manager's notification socket (`NOTIFY_SOCKET`), if there is one.
pub fn notify_socket() -> Option<std::ffi::OsString> {
    std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty())
}

/// The proxy for addresses that begin with `https` or `http` (`HTTPS_PROXY`, `ALL_PROXY`, `http_proxy`).
pub fn proxy(scheme: &str) -> Option<String> {
    let names = [format!("{scheme}_proxy"), "all_proxy".to_owned()];
    // In upper case it can come from a request's header where a process is started like a CGI script.
    let loud = |name: &str| (scheme != "http").then(|| set(&name.to_ascii_uppercase()))?;
    names
        .iter()
        .find_map(|name| set(name).or_else(|| loud(name)))
}

/// Hosts that are reached without it (`NO_PROXY`): names, their domains, addresses and networks, with commas.
pub fn no_proxy() -> Option<String> {
    set("no_proxy").or_else(|| set("NO_PROXY"))
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether this variable is set, to whatever.
pub fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some()
}
