//! The way back to callers, who wait in runtimes of their own.
//!
//! Waking a runtime from another thread costs a system call for each caller. One task in that runtime, which brings all replies of a
//! batch, costs one for all of them.

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Who waits for a value.
#[derive(Debug)]
pub(super) struct Caller<T> {
    reply: oneshot::Sender<T>,
    runtime: Option<Handle>,
}

impl<T> Caller<T> {
    /// The caller, and what it waits for.
    pub(super) fn new() -> (Self, oneshot::Receiver<T>) {
        let (reply, answer) = oneshot::channel();
        let runtime = Handle::try_current().ok();
        (Self { reply, runtime }, answer)
    }

    /// Replies from this thread.
    pub(super) fn reply(self, value: T) {
        // The caller may have stopped waiting. What it asked for has happened anyway, so there is nothing to undo.
        let _ = self.reply.send(value);
    }

    /// Where the caller waits.
    pub(super) const fn runtime(&self) -> Option<&Handle> {
        self.runtime.as_ref()
    }
}

/// A reply that is ready.
pub(super) trait CallerReply: Send + 'static {
    /// Where its caller waits, if somebody does.
    fn runtime(&self) -> Option<&Handle>;

    /// Sends it from this thread.
    fn send(self);
}

/// A value, and who waits for it.
pub(super) struct CallerValue<T> {
    pub(super) caller: Caller<T>,
    pub(super) value: T,
}

impl<T: Send + 'static> CallerReply for CallerValue<T> {
    fn runtime(&self) -> Option<&Handle> {
        self.caller.runtime()
    }

    fn send(self) {
        self.caller.reply(self.value);
    }
}

/// The replies of a batch. Those that are left when it is dropped are sent then.
pub(super) struct Replies<R: CallerReply>(pub(super) Vec<R>);

impl<R: CallerReply> Replies<R> {
    /// Sends them, each from inside its caller's runtime.
    pub(super) fn send(mut self) {
        while let Some(runtime) = self.0.iter().find_map(CallerReply::runtime).cloned() {
            // Those that nobody waits for are freed there too, instead of on this thread.
            let of_runtime =
                |reply: &mut R| reply.runtime().is_none_or(|own| own.id() == runtime.id());
            let replies = Self(self.0.extract_if(.., of_runtime).collect());
            if replies.0.len() > 1 {
                // If the runtime shuts down and drops the task, `Drop` still sends them.
                drop(runtime.spawn(async move { drop(replies) }));
            }
        }
    }
}

impl<R: CallerReply> Drop for Replies<R> {
    fn drop(&mut self) {
        self.0.drain(..).for_each(CallerReply::send);
    }
}
