//! The work on an admitted request, which outlives the customer's handler: polled inside the handler while that waits for the
//! answer, and a task of its own from then on.
//!
//! What is left is the rest of a stream, or everything when the customer leaves and the handler is dropped. A task from the
//! beginning would cost a whole answer two wake-ups more. Work that has begun is never dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::{Failure, Reply};

/// Work that was begun for a customer, and the answer that it is going to send.
pub(super) struct HandedOver {
    /// Until it has ended.
    work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    answered: oneshot::Receiver<Result<Reply, Failure>>,
    /// Where it goes on: a handler may be dropped outside of any task.
    runtime: Handle,
}

impl HandedOver {
    /// Begins when it is first polled; `tasks` counts it until it has ended, wherever it runs.
    pub(super) fn new(
        tasks: &TaskTracker,
        work: impl Future<Output = ()> + Send + 'static,
        answered: oneshot::Receiver<Result<Reply, Failure>>,
    ) -> Self {
        Self { work: Some(Box::pin(tasks.track_future(work))), answered, runtime: Handle::current() }
    }
}

impl Future for HandedOver {
    type Output = Result<Reply, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(work) = &mut self.work {
            // A panic ends the work and not the connection, as it would in a task.
            let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
            if !matches!(polled, Ok(Poll::Pending)) {
                self.work = None;
            }
        }
        Pin::new(&mut self.answered).poll(context).map(|answer| answer.unwrap_or(Err(Failure::Internal)))
    }
}

impl Drop for HandedOver {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            drop(self.runtime.spawn(work));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::ReplyBody;

    fn reply() -> Result<Reply, Failure> {
        Ok(Reply { headers: Vec::new(), body: ReplyBody::Whole(bytes::Bytes::new()) })
    }

    #[tokio::test]
    async fn what_is_left_after_the_answer_goes_on_and_is_waited_for() {
        let tasks = TaskTracker::new();
        let (answer, answered) = oneshot::channel();
        let (go, goes) = oneshot::channel::<()>();
        let (done, mut ended) = oneshot::channel();
        let work = async move {
            answer.send(reply()).unwrap();
            goes.await.unwrap();
            done.send(()).unwrap();
        };
        HandedOver::new(&tasks, work, answered).await.unwrap();
        assert!(ended.try_recv().is_err());
        assert_eq!(tasks.len(), 1, "a stop waits for it");
        go.send(()).unwrap();
        ended.await.unwrap();
        tasks.close();
        tasks.wait().await;
    }

    #[tokio::test]
    async fn a_customer_who_leaves_drops_no_work() {
        let tasks = TaskTracker::new();
        let (mut answer, answered) = oneshot::channel();
        let (done, ended) = oneshot::channel();
        let work = async move {
            answer.closed().await;
            done.send(answer).unwrap();
        };
        let mut handler = Box::pin(HandedOver::new(&tasks, work, answered));
        assert!(std::future::poll_fn(|context| Poll::Ready(handler.as_mut().poll(context))).await.is_pending());
        // Dropped where there is no runtime.
        std::thread::spawn(move || drop(handler)).join().unwrap();
        assert!(ended.await.unwrap().is_closed(), "it heard of the leaving and went on");
    }

    #[tokio::test]
    async fn a_panic_is_an_internal_failure() {
        let (answer, answered) = oneshot::channel();
        let work = async move {
            let _answer = answer;
            tokio::task::yield_now().await;
            panic!("as a task would");
        };
        let failed = HandedOver::new(&TaskTracker::new(), work, answered).await;
        assert!(matches!(failed, Err(Failure::Internal)));
    }
}
