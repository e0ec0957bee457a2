//! The threads that serve customers: one for each CPU, each with a runtime of its own.
//!
//! A connection stays on the thread it was given to, and so do its requests and the connections to upstreams that they use: tasks that
//! move between threads would take their data from one CPU's cache to another's. A new connection goes to the thread that has the
//! fewest.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, available_parallelism};
use std::time::Duration;

use rustls::ServerConfig;
use salvo::conn::tcp::TcpCoupler;
use salvo::conn::{Accepted, Acceptor, ConnCtrl, Holding, StraightStream};
use salvo::fuse::{ArcFusePolicy, FuseAction, FuseInfo, TransProto};
use salvo::http::uri::Scheme;
use salvo::server::ServerHandle;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::listen::{Listening, serve_accepted};
use super::{Connections, Front, Tls, service};

/// Connections that were given to a thread and that it has not yet taken. They have no place among [`super::Connections`], so further
/// ones wait in the system's queue.
const UNTAKEN: usize = 8;
/// After the listening socket has failed, for example because too many files are open.
const PAUSE: Duration = Duration::from_millis(10);
/// How long a stopping gateway goes on delivering what was just paid for.
const LAST_FRAMES: Duration = Duration::from_secs(2);
/// How often a thread wakes up for nothing.
// A runtime wakes itself, with a system call, for each timer that is due before all that it knew when it last went to sleep. Most
// timers of a request are due in many seconds and are removed long before, so without this one each of them would be the first.
const TICK: Duration = Duration::from_secs(1);

/// The threads that serve customers. They end when this is dropped.
#[derive(Debug)]
pub struct Workers {
    threads: Vec<ServingThread>,
    servers: JoinSet<io::Result<()>>,
}

#[derive(Debug)]
struct ServingThread {
    inbox: Inbox,
    server: ServerHandle,
    /// The thread runs until this is dropped.
    _running: oneshot::Sender<Infallible>,
}

/// The way to a thread.
#[derive(Debug)]
struct Inbox {
    /// Its connections, with those that it has not yet taken.
    connections: Arc<AtomicUsize>,
    new: mpsc::Sender<NewConnection>,
}

/// An accepted connection that belongs to no runtime yet.
#[derive(Debug)]
struct NewConnection {
    stream: TcpStream,
    peer: SocketAddr,
}

impl Workers {
    /// Starts a thread for each CPU that this process may use. On a runtime of one thread there are none: it serves customers, too,
    /// so that tests that move its clock move theirs.
    ///
    /// # Errors
    /// When the system refuses a thread, or the certificate cannot be used.
    pub async fn start(
        listening: &Listening,
        tls: Option<&Arc<Tls>>,
        front: &Arc<Front>,
    ) -> io::Result<Self> {
        // One configuration, so that a session that began on one thread can be resumed on another.
        let tls = tls.map(|tls| tls.server_config()).transpose()?;
        let (mut threads, mut servers) = (Vec::new(), JoinSet::new());
        for runtime in runtimes()? {
            let thread =
                ServingThread::start(runtime, &mut servers, (listening.address, &tls), front);
            threads.push(thread.await?);
        }
        Ok(Self { threads, servers })
    }

    /// Gives new connections to the threads until one of these fails. The listening socket is closed when this is dropped, so that
    /// a new connection is refused at once and its client or proxy can go elsewhere.
    pub async fn serve(&mut self, listening: Listening) -> io::Error {
        tokio::select! {
            never = accept(&self.threads, listening.listener) => match never {},
            ended = self.servers.join_next() => match ended {
                Some(Ok(Err(failed))) => failed,
                Some(Err(panicked)) => panicked.into(),
                Some(Ok(Ok(()))) | None => io::Error::other("a thread stopped serving"),
            },
        }
    }

    /// Lets running requests end; they have this long. Then we close their connections, and only what is paid for is still delivered.
    pub async fn stop(&mut self, patience: Duration, connections: &Connections) {
        for thread in &self.threads {
            thread.server.stop_graceful(patience + LAST_FRAMES);
        }
        let ended = tokio::time::timeout(patience, self.ended()).await;
        if ended.is_err() {
            connections.close_all();
            self.ended().await;
        }
    }

    async fn ended(&mut self) {
        while self.servers.join_next().await.is_some() {}
    }
}

/// One for each thread to start; `None` stands for the caller's.
fn runtimes() -> io::Result<Vec<Option<Runtime>>> {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return Ok(vec![None]);
    }
    let new = |_| Builder::new_current_thread().enable_all().build();
    let cpus = available_parallelism().map_or(1, usize::from);
    (0..cpus).map(|cpu| new(cpu).map(Some)).collect()
}

/// Accepts connections and gives them to the threads.
async fn accept(threads: &[ServingThread], listener: TcpListener) -> Infallible {
    loop {
        let accepted = listener.accept().await;
        let new = accepted.and_then(|(stream, peer)| {
            let stream = stream.into_std()?;
            Ok(NewConnection { stream, peer })
        });
        match new {
            Ok(new) => give(threads.iter().map(|thread| &thread.inbox), new).await,
            Err(error) => {
                tracing::error!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Gives a connection to the thread that has the fewest, of those that take theirs.
async fn give(inboxes: impl Iterator<Item = &Inbox> + Clone, new: NewConnection) {
    let connections = |inbox: &&Inbox| inbox.connections.load(Ordering::Relaxed);
    let taking = inboxes.clone().filter(|inbox| inbox.new.capacity() > 0);
    // If all are that busy, the connection and those after it wait.
    let chosen = taking
        .min_by_key(connections)
        .or(inboxes.min_by_key(connections));
    if let Some(inbox) = chosen {
        inbox.connections.fetch_add(1, Ordering::Relaxed);
        // It fails when the thread no longer serves, which ends the gateway.
        let _ = inbox.new.send(new).await;
    }
}

impl ServingThread {
    async fn start(
        runtime: Option<Runtime>,
        servers: &mut JoinSet<io::Result<()>>,
        (address, tls): (SocketAddr, &Option<ServerConfig>),
        front: &Arc<Front>,
    ) -> io::Result<Self> {
        let (new, coming) = mpsc::channel(UNTAKEN);
        let (started, starting) = oneshot::channel();
        let (running, until_dropped) = oneshot::channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let acceptor = NewConnections {
            coming,
            address,
            connections: Arc::clone(&connections),
        };
        let guarded = (
            Arc::clone(&front.connections),
            Some(Arc::clone(&connections)),
        );
        let serving = serve_accepted(acceptor, tls.clone(), guarded, service(front), |server| {
            let _ = started.send(server);
        });
        if let Some(runtime) = runtime {
            servers.spawn_on(serving, runtime.handle());
            thread::Builder::new()
                .name("serving".to_owned())
                .spawn(move || run(runtime, until_dropped))?;
        } else {
            servers.spawn(serving);
        }
        let server = starting.await.map_err(io::Error::other)?;
        Ok(Self {
            inbox: Inbox { connections, new },
            server,
            _running: running,
        })
    }
}

/// One thread's life.
fn run(runtime: Runtime, until_dropped: oneshot::Receiver<Infallible>) {
    runtime.block_on(async {
        tokio::select! {
            _ = until_dropped => (),
            never = tick() => match never {},
        }
    });
    // What still runs has had its time.
    runtime.shutdown_background();
}

/// Keeps a timer that is due sooner than those of requests.
async fn tick() -> Infallible {
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
    }
}

/// What a thread is given, in place of a listening socket.
struct NewConnections {
    coming: mpsc::Receiver<NewConnection>,
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl NewConnections {
    /// The next connection, now of the caller's runtime.
    async fn next(&mut self) -> io::Result<(tokio::net::TcpStream, SocketAddr)> {
        let Some(NewConnection { stream, peer }) = self.coming.recv().await else {
            return std::future::pending().await;
        };
        let stream = tokio::net::TcpStream::from_std(stream).inspect_err(|_| self.lost())?;
        Ok((stream, peer))
    }

    fn lost(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Acceptor for NewConnections {
    type Coupler = TcpCoupler<Self::Stream>;
    type Stream = StraightStream<tokio::net::TcpStream>;

    fn holdings(&self) -> &[Holding] {
        // They are for the framework's log, and the socket is not this thread's.
        &[]
    }

    async fn accept(
        &mut self,
        fuse: Option<ArcFusePolicy>,
    ) -> io::Result<Accepted<Self::Coupler, Self::Stream>> {
        loop {
            let (stream, peer) = self.next().await?;
            let info = FuseInfo {
                trans_proto: TransProto::Tcp,
                remote_addr: peer.into(),
                local_addr: self.address.into(),
            };
            let conn_ctrl = ConnCtrl::new();
            let (fuse_config, observer) = match &fuse {
                None => (None, None),
                Some(policy) => match policy.decide(&info).await {
                    FuseAction::Accept(config) => (Some(config), policy.observe(&info, &conn_ctrl)),
                    FuseAction::Reject => {
                        self.lost();
                        continue;
                    }
                },
            };
            return Ok(Accepted {
                coupler: TcpCoupler::new(),
                stream: StraightStream::new(stream, fuse_config, conn_ctrl.clone(), observer),
                fuse_config,
                conn_ctrl,
                local_addr: info.local_addr,
                remote_addr: info.remote_addr,
                http_scheme: Scheme::HTTP,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the threads' connections are counted, and the other ends of their inboxes.
    fn inboxes<const N: usize>() -> ([Inbox; N], [mpsc::Receiver<NewConnection>; N]) {
        let mut coming = Vec::new();
        let inboxes = std::array::from_fn(|_| {
            let (new, taken) = mpsc::channel(UNTAKEN);
            coming.push(taken);
            let connections = Arc::default();
            Inbox { connections, new }
        });
        (inboxes, coming.try_into().unwrap())
    }

    fn connection(listener: &std::net::TcpListener) -> NewConnection {
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let peer = stream.local_addr().unwrap();
        NewConnection { stream, peer }
    }

    #[tokio::test]
    async fn a_connection_goes_where_the_fewest_are_and_not_where_nobody_takes_them() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (inboxes, mut coming) = inboxes::<3>();
        let counts = || {
            inboxes
                .each_ref()
                .map(|one| one.connections.load(Ordering::Relaxed))
        };
        for _ in 0..6 {
            give(inboxes.iter(), connection(&listener)).await;
        }
        assert_eq!(counts(), [2, 2, 2]);

        for _ in 0..UNTAKEN {
            inboxes[1].connections.store(0, Ordering::Relaxed);
            give(inboxes.iter(), connection(&listener)).await;
        }
        assert_eq!(counts(), [3, 0, 3], "six more that it does not take");
        assert_eq!(coming.each_ref().map(mpsc::Receiver::len), [3, UNTAKEN, 3]);

        while coming[1].try_recv().is_ok() {}
        inboxes[1].connections.store(1, Ordering::Relaxed);
        give(inboxes.iter(), connection(&listener)).await;
        assert_eq!(counts(), [3, 2, 3], "it takes them again");
    }

    #[tokio::test]
    async fn a_connection_waits_while_no_thread_takes_one() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (inboxes, mut coming) = inboxes::<1>();
        for _ in 0..UNTAKEN {
            give(inboxes.iter(), connection(&listener)).await;
        }
        let mut last = Box::pin(give(inboxes.iter(), connection(&listener)));
        assert!(futures_util::poll!(&mut last).is_pending());
        assert!(coming[0].try_recv().is_ok());
        last.await;
        assert_eq!(coming[0].len(), UNTAKEN);
    }
}
