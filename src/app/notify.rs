//! Tells the service manager how the gateway is: systemd's `Type=notify`, one datagram for each word. Without one, nothing.

use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The gateway answers requests.
pub(super) const READY: &str = "READY=1\nSTATUS=serving";
/// The gateway has begun to stop.
pub(super) const STOPPING: &str = "STOPPING=1\nSTATUS=waiting for running requests";

/// Sends a word to the socket that the service manager named. It is a courtesy: failures are logged and nothing else.
pub(super) fn tell(socket: Option<OsString>, word: &str) {
    let Some(name) = socket else { return };
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(hidden) => SocketAddr::from_abstract_name(hidden),
        None => SocketAddr::from_pathname(&name),
    };
    let sent = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(word.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!(%error, "the service manager could not be told");
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
        tell(Some(path.into_os_string()), READY);
        tell(None, READY);
        tell(Some("/nonexistent/notify".into()), READY);
        let mut heard = [0; 64];
        let length = socket.recv(&mut heard).unwrap();
        assert!(heard[..length].starts_with(b"READY=1"));
    }
}
