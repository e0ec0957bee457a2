//! The sockets: bound by hand so that accepted connections get TCP_NODELAY, and served with every timeout set.

use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use salvo::conn::rustls::RustlsListener;
use salvo::conn::tcp::TcpAcceptor;
use salvo::conn::{Acceptor, Listener};
use salvo::fuse::FuseConfig;
use salvo::prelude::{Server, Service};
use salvo::server::ServerHandle;
use socket2::{Domain, Protocol, Socket, Type};

use super::connections::Connections;
use super::guarded::Guarded;
use super::tls::{Constant, Tls};

/// How long a connection may be idle: longer than clients' pools keep theirs, so that the client closes first.
const IDLE: Duration = Duration::from_secs(120);
/// The largest head; a larger one is answered with 431.
const LARGEST_HEAD: usize = 64 * 1024;
/// A connection whose client accepts no byte for this long is closed.
const WRITE_STALL: Duration = Duration::from_secs(60);
/// The longest gap between two pieces of a request body.
const BODY_GAP: Duration = Duration::from_secs(30);

/// A bound listener.
#[derive(Debug)]
pub struct Listening {
    listener: tokio::net::TcpListener,
    /// Where it listens, with the actual port if 0 was requested.
    pub address: SocketAddr,
}

/// Binds an address.
///
/// # Errors
/// When the address is in use or not local.
pub fn listen(address: SocketAddr) -> std::io::Result<Listening> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // A restart must bind at once, and on Linux accepted sockets inherit NODELAY.
    socket.set_reuse_address(true)?;
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(4_096)?;
    let listener = tokio::net::TcpListener::from_std(socket.into())?;
    let address = listener.local_addr()?;
    Ok(Listening { listener, address })
}

/// Stops a server.
#[derive(Debug)]
pub struct ServerStop {
    handle: ServerHandle,
    /// A second handle of the listening socket: the framework keeps its own open until the last connection has ended.
    socket: Socket,
    closed: Arc<AtomicBool>,
}

impl ServerStop {
    /// Closes the listening socket, so that a new connection is refused at once and its client or proxy can go elsewhere; running
    /// requests have this long to end.
    pub fn stop(self, patience: Duration) {
        self.closed.store(true, Ordering::Release);
        self.handle.stop_graceful(Some(patience));
        // On failure the socket is already closed.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// Serves within the limits of `connections` until the [`ServerStop`] handed to `started` is used; HTTPS with a certificate.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    listening: Listening,
    tls: Option<Arc<Tls>>,
    connections: Arc<Connections>,
    service: Service,
    started: impl FnOnce(ServerStop),
) -> std::io::Result<()> {
    let socket = Socket::from(listening.listener.as_fd().try_clone_to_owned()?);
    let closed = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&closed);
    let started = move |handle| {
        started(ServerStop {
            handle,
            socket,
            closed: stop,
        })
    };
    let acceptor = TcpAcceptor::try_from(listening.listener)?;
    match tls {
        None => {
            run(
                Guarded::new(acceptor, connections, closed),
                service,
                started,
            )
            .await
        }
        Some(tls) => {
            let listener = RustlsListener::new(Constant(tls.server_config()?), Bound(acceptor));
            let acceptor = listener.try_bind().await.map_err(std::io::Error::other)?;
            run(
                Guarded::new(acceptor, connections, closed),
                service,
                started,
            )
            .await
        }
    }
}

async fn run(
    acceptor: impl Acceptor,
    service: Service,
    started: impl FnOnce(ServerHandle),
) -> std::io::Result<()> {
    let fuse = FuseConfig::default()
        .with_http1_header_timeout(IDLE)
        .with_write_stall_timeout(WRITE_STALL)
        .with_request_body_timeout(BODY_GAP);
    let mut server = Server::new(acceptor).fuse_config(fuse);
    // The buffer limits an unfinished head, and with it the memory of an idle connection.
    server
        .http1_mut()
        .max_header_size(LARGEST_HEAD)
        .max_buf_size(LARGEST_HEAD);
    started(server.handle());
    server.try_serve(service).await
}

/// A socket that is already bound, in place of one that the framework would bind.
struct Bound(TcpAcceptor);

impl Listener for Bound {
    type Acceptor = TcpAcceptor;

    async fn try_bind(self) -> salvo::Result<TcpAcceptor> {
        Ok(self.0)
    }
}
