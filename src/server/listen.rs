//! The sockets: bound by hand so that accepted connections get TCP_NODELAY, and served with every timeout set.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use rustls::ServerConfig;
use salvo::conn::rustls::RustlsListener;
use salvo::conn::tcp::TcpAcceptor;
use salvo::conn::{Acceptor, Listener};
use salvo::fuse::FuseConfig;
use salvo::prelude::{Server, Service};
use salvo::server::ServerHandle;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};

use super::connections::Connections;
use super::guard::Guarded;
use super::tls::{Constant, Tls};

/// How long a connection may be idle: longer than clients' pools keep theirs, so that the client closes first.
const IDLE: Duration = Duration::from_secs(120);
/// The largest head; a larger one is answered with 431.
const LARGEST_HEAD: usize = 64 * 1024;
/// A connection whose client accepts no byte for this long is closed.
// Longer than a stream's own `STALL`, which charges what was delivered: this one is for all other answers.
const WRITE_STALL: Duration = Duration::from_secs(60);
/// The longest gap between two pieces of a request body.
const BODY_GAP: Duration = Duration::from_secs(30);

/// A bound listener.
#[derive(Debug)]
pub struct Listening {
    pub(super) listener: tokio::net::TcpListener,
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

/// Serves on the caller's runtime, within the limits of `connections`; HTTPS with a certificate.
///
/// # Errors
/// When the certificate cannot be used.
pub async fn serve(
    listening: Listening,
    tls: Option<Arc<Tls>>,
    connections: Arc<Connections>,
    service: Service,
) -> std::io::Result<()> {
    let acceptor = TcpAcceptor::try_from(listening.listener)?;
    let tls = tls.map(|tls| tls.server_config()).transpose()?;
    serve_accepted(acceptor, tls, (connections, None), service, drop).await
}

/// Serves what `acceptor` brings until the handle given to `started` stops it. Each connection is one less of `counted` when it ends.
pub(super) async fn serve_accepted<A>(
    acceptor: A,
    tls: Option<ServerConfig>,
    (connections, counted): (Arc<Connections>, Option<Arc<AtomicUsize>>),
    service: Service,
    started: impl FnOnce(ServerHandle),
) -> std::io::Result<()>
where
    A: Acceptor + Send + 'static,
    A::Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(tls) = tls else {
        let guarded = Guarded::new(acceptor, connections, counted);
        return run(guarded, service, started).await;
    };
    let listener = RustlsListener::new(Constant(tls), Bound(acceptor));
    let acceptor = listener.try_bind().await.map_err(std::io::Error::other)?;
    run(
        Guarded::new(acceptor, connections, counted),
        service,
        started,
    )
    .await
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
struct Bound<A>(A);

impl<A: Acceptor + Send> Listener for Bound<A> {
    type Acceptor = A;

    async fn try_bind(self) -> salvo::Result<A> {
        Ok(self.0)
    }
}
