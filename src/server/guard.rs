//! The wrapper around every accepted connection: it takes one place of the limit, and enforces a deadline for request heads.
//!
//! hyper's own timer starts at the end of the previous answer, so it has to be as long as a connection may idle. The time from a
//! head's first byte to its last is therefore measured here: bytes that arrive while no request is under way belong to a head. Each
//! request reports its beginning and end through its place (`connections.rs`). An ordinary request sets no timer.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use salvo::conn::tcp::TcpCoupler;
use salvo::conn::{Accepted, Acceptor, Holding};
use salvo::fuse::ArcFusePolicy;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::connections::{ConnectionPlace, Connections, UnfinishedHead};

/// A head must be complete this long after its first byte.
const HEAD: Duration = Duration::from_secs(10);

/// Wraps another acceptor, and enforces the limits of `connections`.
pub(super) struct Guarded<A> {
    inner: A,
    connections: Arc<Connections>,
    /// The connections of this thread, if it was chosen by them: counted when they were given to it.
    counted: Option<Arc<AtomicUsize>>,
}

impl<A> Guarded<A> {
    pub(super) fn new(
        inner: A,
        connections: Arc<Connections>,
        counted: Option<Arc<AtomicUsize>>,
    ) -> Self {
        Self {
            inner,
            connections,
            counted,
        }
    }
}

/// A connection that was counted; it is one less when this is dropped.
struct CountedConnection(Option<Arc<AtomicUsize>>);

impl Drop for CountedConnection {
    fn drop(&mut self) {
        if let Some(all) = &self.0 {
            all.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl<A> Acceptor for Guarded<A>
where
    A: Acceptor,
    A::Stream: AsyncRead + AsyncWrite,
{
    type Coupler = TcpCoupler<Self::Stream>;
    type Stream = HeadTimer<A::Stream>;

    fn holdings(&self) -> &[Holding] {
        self.inner.holdings()
    }

    async fn accept(
        &mut self,
        fuse: Option<ArcFusePolicy>,
    ) -> io::Result<Accepted<Self::Coupler, Self::Stream>> {
        loop {
            let accepted = self.inner.accept(fuse.clone()).await?;
            let counted = CountedConnection(self.counted.clone());
            let Some(address) = accepted.remote_addr.clone().into_std() else {
                continue;
            };
            // A connection without a place is dropped, which closes it.
            let Some(place) = self.connections.admit(address, accepted.conn_ctrl.clone()) else {
                continue;
            };
            let Accepted {
                stream,
                fuse_config,
                conn_ctrl,
                local_addr,
                remote_addr,
                http_scheme,
                ..
            } = accepted;
            let stream = HeadTimer {
                inner: stream,
                place,
                since: None,
                alarm: None,
                head: None,
                begun: 0,
                _counted: counted,
            };
            let coupler = TcpCoupler::new();
            return Ok(Accepted {
                coupler,
                stream,
                fuse_config,
                conn_ctrl,
                local_addr,
                remote_addr,
                http_scheme,
            });
        }
    }
}

/// A stream that fails if a head takes too long.
pub(super) struct HeadTimer<S> {
    inner: S,
    place: ConnectionPlace,
    /// When the first byte of an unfinished head arrived.
    since: Option<Instant>,
    alarm: Option<Pin<Box<Sleep>>>,
    /// Its place among strangers' unfinished heads.
    head: Option<UnfinishedHead>,
    /// Requests begun at the last read of the connection: their heads are complete.
    begun: u64,
    _counted: CountedConnection,
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadTimer<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let begun = this.place.begun();
        if begun != this.begun {
            (this.since, this.alarm, this.head, this.begun) = (None, None, None, begun);
        }
        let before = into.filled().len();
        let read = Pin::new(&mut this.inner).poll_read(context, into);
        if this.place.is_busy() {
            return read;
        }
        if into.filled().len() > before {
            this.since.get_or_insert_with(Instant::now);
        }
        let Some(since) = this.since else { return read };
        // The timer is looked at only while nothing comes; a head that comes byte by byte is measured by the clock itself.
        if read.is_pending() {
            if this.alarm.is_none() {
                this.head = this.place.unfinished_head();
            }
            let alarm = this
                .alarm
                .get_or_insert_with(|| Box::pin(sleep_until(since + HEAD)));
            ready!(alarm.as_mut().poll(context));
        } else if since.elapsed() < HEAD {
            return read;
        }
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the request head was not complete in time",
        )))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadTimer<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_head_has_ten_seconds_from_its_first_byte_and_a_body_has_not() {
        let connections = Connections::with_descriptors(1_024, Vec::new());
        let address = "192.0.2.1:5".parse().unwrap();
        let place = connections
            .admit(address, salvo::conn::ConnCtrl::new())
            .unwrap();
        let (mut client, server) = duplex(64);
        let mut server = HeadTimer {
            inner: server,
            place,
            since: None,
            alarm: None,
            head: None,
            begun: 0,
            _counted: CountedConnection(None),
        };
        let minute = Duration::from_secs(60);
        assert!(
            tokio::time::timeout(minute, server.read_u8())
                .await
                .is_err(),
            "idle is not late"
        );

        client.write_all(b"GE").await.unwrap();
        assert_eq!(server.read_u16().await.unwrap(), 0x4745);
        let busy = connections.begin(address, None).unwrap();
        assert!(
            tokio::time::timeout(minute, server.read_u8())
                .await
                .is_err(),
            "a body may take longer"
        );
        drop(busy);

        client.write_all(b"GE").await.unwrap();
        assert_eq!(server.read_u16().await.unwrap(), 0x4745);
        let begun = Instant::now();
        let late = server.read_u8().await.unwrap_err();
        assert_eq!(
            (late.kind(), begun.elapsed()),
            (io::ErrorKind::TimedOut, HEAD)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_byte_now_and_then_does_not_stretch_the_time() {
        let connections = Connections::with_descriptors(1_024, Vec::new());
        let place = connections
            .admit("192.0.2.1:5".parse().unwrap(), salvo::conn::ConnCtrl::new())
            .unwrap();
        let (mut client, server) = duplex(64);
        let mut server = HeadTimer {
            inner: server,
            place,
            since: None,
            alarm: None,
            head: None,
            begun: 0,
            _counted: CountedConnection(None),
        };
        let begun = Instant::now();
        let reading = async { while server.read_u8().await.is_ok() {} };
        let writing = async {
            while client.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(700)).await;
            }
        };
        tokio::select! { () = reading => {}, () = writing => {} }
        assert!(
            begun.elapsed() <= HEAD + Duration::from_millis(700),
            "{:?}",
            begun.elapsed()
        );
    }
}
