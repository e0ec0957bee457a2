//! A channel of byte chunks that is bounded in bytes, between a relay and the customer's connection.
//!
//! This gives back-pressure: a relay that sends into a full pipe waits and so stops reading its upstream. The sender also learns at
//! once that the receiver is gone, even while it has nothing to send. Every open stream has a pipe and every chunk passes through
//! it, so it is a single mutex; a channel and a semaphore took 2 KiB per stream.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use farebox_ledger::lock;

/// Bytes that may wait for a customer.
// Lower, and each hiccup of a customer's network stops the reading of the provider, which may break a stream that nobody reads; higher,
// and customers who take nothing fill the memory with answers.
const CAPACITY: usize = 256 * 1024;

/// The relay's end.
#[derive(Debug)]
pub struct Sender(Arc<Mutex<Pipe>>);

/// The connection's end.
#[derive(Debug)]
pub struct Receiver(Arc<Mutex<Pipe>>);

/// The other end is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

#[derive(Debug, Default)]
struct Pipe {
    chunks: VecDeque<Bytes>,
    /// Bytes in `chunks`, plus the chunk handed out last: its room is freed when the connection asks for the next one.
    full: usize,
    handed_out: usize,
    sender_gone: bool,
    receiver_gone: bool,
    /// The sender is waiting for room.
    blocked: bool,
    /// The sending task, to wake when there is room again or the receiver is gone.
    sender: Option<Waker>,
    receiver: Option<Waker>,
}

/// A new pipe.
pub fn pipe() -> (Sender, Receiver) {
    let pipe = Arc::new(Mutex::new(Pipe::default()));
    (Sender(Arc::clone(&pipe)), Receiver(pipe))
}

/// Remembers the task to wake.
fn wait<T>(place: &mut Option<Waker>, context: &Context<'_>) -> Poll<T> {
    match place {
        Some(waker) => waker.clone_from(context.waker()),
        None => *place = Some(context.waker().clone()),
    }
    Poll::Pending
}

fn wake(place: Option<Waker>) {
    if let Some(waker) = place {
        waker.wake();
    }
}

impl Pipe {
    /// Accepts a chunk if there is room and a receiver, and returns whom to wake.
    fn push(&mut self, bytes: Bytes) -> Result<Option<Waker>, Bytes> {
        let size = bytes.len().min(CAPACITY);
        if self.receiver_gone || self.full + size > CAPACITY {
            return Err(bytes);
        }
        self.full += size;
        self.chunks.push_back(bytes);
        Ok(self.receiver.take())
    }
}

impl Sender {
    /// Sends at once.
    ///
    /// # Errors
    /// Returns the bytes when there is no room or no receiver.
    pub fn try_send(&self, bytes: Bytes) -> Result<(), Bytes> {
        let pushed = lock(&self.0).push(bytes);
        pushed.map(wake)
    }

    /// Waits for room, then sends. A chunk larger than the pipe takes all of it.
    ///
    /// # Errors
    /// [`Gone`] when the receiver is gone.
    pub async fn send(&self, bytes: Bytes) -> Result<(), Gone> {
        let mut unsent = bytes;
        std::future::poll_fn(|context| self.poll_send(&mut unsent, context)).await
    }

    fn poll_send(&self, unsent: &mut Bytes, context: &Context<'_>) -> Poll<Result<(), Gone>> {
        let mut pipe = lock(&self.0);
        match pipe.push(std::mem::take(unsent)) {
            Ok(receiver) => {
                drop(pipe);
                wake(receiver);
                Poll::Ready(Ok(()))
            }
            Err(_) if pipe.receiver_gone => Poll::Ready(Err(Gone)),
            Err(bytes) => {
                *unsent = bytes;
                pipe.blocked = true;
                wait(&mut pipe.sender, context)
            }
        }
    }

    /// Ends when the receiver is gone.
    pub async fn closed(&self) {
        std::future::poll_fn(|context| {
            let mut pipe = lock(&self.0);
            if pipe.receiver_gone {
                Poll::Ready(())
            } else {
                wait(&mut pipe.sender, context)
            }
        })
        .await;
    }
}

impl Receiver {
    /// The next chunk; `None` when the relay has finished.
    pub async fn next(&mut self) -> Option<Bytes> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`Self::next`], for a body that is polled.
    pub fn poll_next(&mut self, context: &Context<'_>) -> Poll<Option<Bytes>> {
        let mut pipe = lock(&self.0);
        let given_back = std::mem::take(&mut pipe.handed_out);
        pipe.full -= given_back;
        let next = pipe.chunks.pop_front();
        pipe.handed_out = next.as_ref().map_or(0, |bytes| bytes.len().min(CAPACITY));
        let sender = if given_back > 0 && std::mem::take(&mut pipe.blocked) {
            pipe.sender.take()
        } else {
            None
        };
        let answer = match next {
            None if !pipe.sender_gone => wait(&mut pipe.receiver, context),
            next => Poll::Ready(next),
        };
        drop(pipe);
        wake(sender);
        answer
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut pipe = lock(&self.0);
        pipe.sender_gone = true;
        let receiver = pipe.receiver.take();
        drop(pipe);
        wake(receiver);
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut pipe = lock(&self.0);
        pipe.receiver_gone = true;
        let (chunks, sender) = (std::mem::take(&mut pipe.chunks), pipe.sender.take());
        drop(pipe);
        drop(chunks);
        wake(sender);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_pipe_waits_until_the_reader_comes_back_for_more() {
        let (sender, mut receiver) = pipe();
        let chunk = Bytes::from(vec![0; CAPACITY]);
        sender.send(chunk.clone()).await.unwrap();
        let mut second = tokio_test_pending(sender.send(chunk));
        assert!(second.as_mut().now_or_pending().await.is_none());
        assert_eq!(receiver.next().await.unwrap().len(), CAPACITY);
        let reading = tokio::spawn(async move { receiver.next().await });
        second.await.unwrap();
        assert!(reading.await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_sender_in_a_full_pipe_learns_that_the_reader_left() {
        let (sender, receiver) = pipe();
        sender.send(Bytes::from(vec![0; CAPACITY])).await.unwrap();
        drop(receiver);
        assert_eq!(sender.send(Bytes::from_static(b"x")).await, Err(Gone));
    }

    #[tokio::test]
    async fn what_does_not_fit_or_finds_nobody_comes_back() {
        let (sender, mut receiver) = pipe();
        let (chunk, more) = (Bytes::from(vec![0; CAPACITY]), Bytes::from_static(b"more"));
        assert_eq!(sender.try_send(chunk.clone()), Ok(()));
        assert_eq!(sender.try_send(more.clone()), Err(more.clone()));
        assert_eq!(receiver.next().await, Some(chunk));
        assert_eq!(
            sender.try_send(more.clone()),
            Err(more.clone()),
            "its room is free when the next one is asked for"
        );
        drop(receiver);
        assert_eq!(sender.try_send(more.clone()), Err(more));
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
