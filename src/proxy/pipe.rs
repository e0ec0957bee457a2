//! A channel of byte chunks that is bounded in bytes, between a relay and the customer's connection.
//!
//! Back-pressure is ordinary: a relay that sends into a full pipe waits and so stops reading its upstream. The sender also sees
//! at once when the receiver is gone, even while there is nothing to send.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Bytes that may wait for a customer.
const CAPACITY: u32 = 256 * 1024;

/// A chunk and the room it takes in the pipe.
type Chunk = (Bytes, OwnedSemaphorePermit);

/// The relay's end.
#[derive(Debug)]
pub struct Sender {
    chunks: mpsc::UnboundedSender<Chunk>,
    room: Arc<Semaphore>,
}

/// The connection's end.
#[derive(Debug)]
pub struct Receiver {
    chunks: mpsc::UnboundedReceiver<Chunk>,
    /// The room of the chunk handed out last; given back when the connection comes for the next one.
    taken: Option<OwnedSemaphorePermit>,
}

/// The other end is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// A new pipe.
#[must_use]
pub fn pipe() -> (Sender, Receiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(CAPACITY as usize));
    (Sender { chunks: sender, room }, Receiver { chunks: receiver, taken: None })
}

impl Sender {
    /// Waits for room, then sends. A chunk larger than the pipe takes all of it.
    ///
    /// # Errors
    /// [`Gone`] when nobody will read it.
    pub async fn send(&self, bytes: Bytes) -> Result<(), Gone> {
        let size = u32::try_from(bytes.len()).unwrap_or(CAPACITY).min(CAPACITY);
        let permit = tokio::select! {
            biased;
            permit = Arc::clone(&self.room).acquire_many_owned(size) => permit.map_err(|_| Gone)?,
            () = self.chunks.closed() => return Err(Gone),
        };
        self.chunks.send((bytes, permit)).map_err(|_| Gone)
    }

    /// Ends when the receiver is gone.
    pub async fn closed(&self) {
        self.chunks.closed().await;
    }
}

impl Receiver {
    /// The next chunk; `None` when the relay has finished.
    pub async fn next(&mut self) -> Option<Bytes> {
        self.taken = None;
        let (bytes, permit) = self.chunks.recv().await?;
        self.taken = Some(permit);
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_pipe_waits_until_the_reader_comes_back_for_more() {
        let (sender, mut receiver) = pipe();
        let chunk = Bytes::from(vec![0; CAPACITY as usize]);
        sender.send(chunk.clone()).await.unwrap();
        let mut second = tokio_test_pending(sender.send(chunk));
        assert!(second.as_mut().now_or_pending().await.is_none());
        assert_eq!(receiver.next().await.unwrap().len(), CAPACITY as usize);
        let reading = tokio::spawn(async move { receiver.next().await });
        second.await.unwrap();
        assert!(reading.await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_sender_in_a_full_pipe_learns_that_the_reader_left() {
        let (sender, receiver) = pipe();
        sender.send(Bytes::from(vec![0; CAPACITY as usize])).await.unwrap();
        drop(receiver);
        assert_eq!(sender.send(Bytes::from_static(b"x")).await, Err(Gone));
    }

    fn tokio_test_pending<F: Future>(future: F) -> std::pin::Pin<Box<F>> {
        Box::pin(future)
    }

    trait NowOrPending: Future {
        async fn now_or_pending(self: std::pin::Pin<&mut Self>) -> Option<Self::Output>;
    }

    impl<F: Future> NowOrPending for F {
        async fn now_or_pending(mut self: std::pin::Pin<&mut Self>) -> Option<Self::Output> {
            tokio::select! { biased; done = &mut self => Some(done), () = std::future::ready(()) => None }
        }
    }
}
