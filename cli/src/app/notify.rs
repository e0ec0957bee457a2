//! Reports the gateway's state to systemd (`Type=notify`), one datagram per state; does nothing without a service manager.

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The gateway answers requests.
pub(super) const READY: &str = "READY=1\nSTATUS=serving";
/// The gateway has begun to stop.
pub(super) const STOPPING: &str = "STOPPING=1\nSTATUS=waiting for running requests";

/// Sends a state to the service manager's socket. The gateway runs without it, so a failure is only logged.
pub(super) fn send(socket: Option<OsString>, word: &str) {
    let Some(name) = socket else { return };
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(hidden) => SocketAddr::from_abstract_name(hidden),
        None => SocketAddr::from_pathname(&name),
    };
    let sent = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(word.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_manager_hears_the_word() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        send(Some(path.into_os_string()), READY);
        send(None, READY);
        send(Some("/nonexistent/notify".into()), READY);
        let mut heard = [0; 64];
        let length = socket.recv(&mut heard).unwrap();
        assert!(heard[..length].starts_with(b"READY=1"));
    }
}
