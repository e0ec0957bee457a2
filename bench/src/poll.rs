//! Waiting for many sockets: level-triggered epoll with time-outs finer than a millisecond.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};

/// A set of sockets, each with the caller's number.
pub(crate) struct Poll {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Poll {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(512),
        })
    }

    /// Waits for this socket to be readable from now on.
    pub(crate) fn add(&self, socket: impl AsFd, number: usize) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            socket,
            epoll::EventData::new_u64(number as u64),
            epoll::EventFlags::IN,
        )?)
    }

    /// Waits for it to be writable too, or no longer.
    pub(crate) fn writable(
        &self,
        socket: impl AsFd,
        number: usize,
        wanted: bool,
    ) -> io::Result<()> {
        let flags = if wanted {
            epoll::EventFlags::IN | epoll::EventFlags::OUT
        } else {
            epoll::EventFlags::IN
        };
        Ok(epoll::modify(
            &self.epoll,
            socket,
            epoll::EventData::new_u64(number as u64),
            flags,
        )?)
    }

    /// The numbers of the sockets where something happened, at the latest after `timeout`.
    pub(crate) fn wait(
        &mut self,
        timeout: Option<Duration>,
        ready: &mut Vec<usize>,
    ) -> io::Result<()> {
        ready.clear();
        self.events.clear();
        let timeout = timeout.map(|time| Timespec {
            tv_sec: time.as_secs().cast_signed(),
            tv_nsec: time.subsec_nanos().into(),
        });
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut self.events),
            timeout.as_ref(),
        ) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            other => other?,
        };
        // Copied because events are packed.
        ready.extend(
            self.events
                .iter()
                .map(|event| { event.data }.u64() as usize),
        );
        Ok(())
    }
}

/// A socket as both ends here use it: never waiting, never collecting small writes.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)
}

/// Timers end when they say. The system would otherwise add up to 50 µs to save power.
pub(crate) fn exact_timers() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(
        std::num::NonZeroU64::new(1),
    )?)
}

/// Nothing to read or to write now.
pub(crate) fn would_block(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
