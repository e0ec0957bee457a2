//! A memory budget in bytes, shared by many holders; no holder can take all of it.
//!
//! One holder gets at most a quarter of what the others leave free, so a newcomer always finds room. A network reader takes room in
//! steps as the bytes arrive, and gives it back by dropping its [`ByteShare`]. A share that cannot grow either fails or waits; it never
//! exceeds its part.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

/// Shares grow in steps, so that the lock is taken once per 64 KiB and not for every piece from the network.
const STEP: usize = 64 * 1024;
/// A holder gets at most this part of what the others leave free.
// Sixteen greedy holders then leave a hundredth for the next one. With half of the rest for each, seven would leave less.
const PART: usize = 4;

/// The owner of the bytes: a number that stands for one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Holder(pub u64);

/// The bytes that all bodies may take together, and who holds how many of them.
#[derive(Debug)]
pub struct ByteRoom {
    total: usize,
    /// What one holder must be able to have, also where a quarter is less.
    whole: usize,
    held: Mutex<HeldBytes>,
    freed: Notify,
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct HeldBytes {
    all: usize,
    by: HashMap<Holder, usize>,
}

/// Bytes of one request or answer; given back when dropped.
#[derive(Debug)]
pub struct ByteShare {
    room: Arc<ByteRoom>,
    holder: Holder,
    /// The most its holder may have over all its shares, whatever is free.
    most: usize,
    bytes: usize,
}

impl ByteRoom {
    /// A budget of `total` bytes.
    #[must_use]
    pub fn new(total: usize) -> Arc<Self> {
        Self::of_wholes(total, 0)
    }

    /// A budget that is small beside what one holder must be able to have: a holder gets up to `whole` bytes, as long as the others
    /// leave a third more.
    #[must_use]
    pub fn of_wholes(total: usize, whole: usize) -> Arc<Self> {
        let whole = if total / PART < whole { whole } else { 0 };
        Arc::new(Self {
            total,
            whole,
            held: Mutex::default(),
            freed: Notify::new(),
            waiting: AtomicUsize::new(0),
        })
    }

    /// An empty share. All shares of its holder together never exceed `most`.
    #[must_use]
    pub fn share(self: &Arc<Self>, holder: Holder, most: usize) -> ByteShare {
        ByteShare {
            room: Arc::clone(self),
            holder,
            most,
            bytes: 0,
        }
    }

    /// Bytes that are held now, by everybody together.
    pub fn in_use(&self) -> usize {
        self.lock().all
    }

    /// The most that one holder ever has.
    pub fn largest(&self) -> usize {
        self.part_of(self.total)
    }

    /// What a holder gets of what the others leave.
    fn part_of(&self, left: usize) -> usize {
        let of_whole = self.whole.min(left / PART * (PART - 1));
        (left / PART).max(of_whole)
    }

    /// Bytes in total.
    pub fn total(&self) -> usize {
        self.total
    }

    fn lock(&self) -> MutexGuard<'_, HeldBytes> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, holder: Holder, bytes: usize, most: usize) -> bool {
        let mut held = self.lock();
        let own = held.by.get(&holder).copied().unwrap_or_default();
        let left_by_others = self.total.saturating_sub(held.all.saturating_sub(own));
        if own.saturating_add(bytes) > self.part_of(left_by_others).min(most) {
            return false;
        }
        held.all += bytes;
        *held.by.entry(holder).or_default() += bytes;
        true
    }

    fn give_back(&self, holder: Holder, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut held = self.lock();
        held.all = held.all.saturating_sub(bytes);
        if let Some(own) = held.by.get_mut(&holder) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                held.by.remove(&holder);
            }
        }
        drop(held);
        if self.waiting.load(Ordering::Acquire) > 0 {
            self.freed.notify_waiters();
        }
    }
}

impl ByteShare {
    /// Bytes of all shares of its holder.
    pub fn of_holder(&self) -> usize {
        self.room
            .lock()
            .by
            .get(&self.holder)
            .copied()
            .unwrap_or_default()
    }

    /// Grows to at least `bytes`; false, and unchanged, if that exceeds its part.
    pub fn grow_to(&mut self, bytes: usize) -> bool {
        if bytes <= self.bytes {
            return true;
        }
        // A whole step if there is room for it, else only what is needed: small bodies still fit when less than a step is free.
        let needed = bytes - self.bytes;
        let stepped = bytes.next_multiple_of(STEP) - self.bytes;
        let Some(more) = [stepped, needed]
            .into_iter()
            .find(|more| self.room.take(self.holder, *more, self.most))
        else {
            return false;
        };
        self.bytes += more;
        true
    }

    /// Grows to at least `bytes`, as soon as its part allows.
    pub async fn wait_for(&mut self, bytes: usize) {
        while !self.grow_to(bytes) {
            let room = Arc::clone(&self.room);
            let waiting = ByteWaiter::new(&room);
            // Registers before the second check, so that room freed in between is noticed.
            let freed = room.freed.notified();
            if self.grow_to(bytes) {
                return;
            }
            freed.await;
            drop(waiting);
        }
    }

    /// The most that its holder ever has.
    pub fn largest(&self) -> usize {
        self.room.largest().min(self.most)
    }

    /// Gives back what is above `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let over = self.bytes.saturating_sub(bytes);
        if over == 0 {
            return;
        }
        self.bytes -= over;
        self.room.give_back(self.holder, over);
    }

    /// The same bytes, holding this share until the last reference is dropped.
    #[must_use]
    pub fn keep(self, bytes: Bytes) -> Bytes {
        if self.bytes == 0 {
            bytes
        } else {
            Bytes::from_owner(KeptBytes {
                bytes,
                _share: self,
            })
        }
    }
}

impl Drop for ByteShare {
    fn drop(&mut self) {
        self.room.give_back(self.holder, self.bytes);
    }
}

struct KeptBytes {
    bytes: Bytes,
    _share: ByteShare,
}

impl AsRef<[u8]> for KeptBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Counts a waiter, so that freeing skips the notification when there is none.
struct ByteWaiter<'a>(&'a ByteRoom);

impl<'a> ByteWaiter<'a> {
    fn new(room: &'a ByteRoom) -> Self {
        room.waiting.fetch_add(1, Ordering::AcqRel);
        Self(room)
    }
}

impl Drop for ByteWaiter<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_holder_gets_a_quarter_of_what_the_others_leave() {
        let room = ByteRoom::new(512 * MIB);
        let (mut first, mut second) = (
            room.share(Holder(1), usize::MAX),
            room.share(Holder(1), usize::MAX),
        );
        assert!(first.grow_to(100 * MIB));
        assert!(
            !second.grow_to(29 * MIB),
            "both are the same key's: 128 MiB together"
        );
        assert!(second.grow_to(28 * MIB));
        let mut other = room.share(Holder(2), usize::MAX);
        assert!(other.grow_to(96 * MIB));
        assert!(!other.grow_to(96 * MIB + 1), "a quarter of 384 MiB");
        drop(first);
        assert!(other.grow_to(121 * MIB), "a quarter of 484 MiB");
        drop((second, other));
        assert_eq!(room.in_use(), 0);
        assert!(room.lock().by.is_empty(), "nobody is remembered");
    }

    #[test]
    fn sixteen_greedy_holders_leave_room_for_a_seventeenth() {
        let room = ByteRoom::new(512 * MIB);
        let mut greedy: Vec<ByteShare> = (0..16)
            .map(|holder| room.share(Holder(holder), usize::MAX))
            .collect();
        for share in &mut greedy {
            while share.grow_to(share.bytes + STEP) {}
        }
        assert!(room.share(Holder(99), usize::MAX).grow_to(MIB));
    }

    #[test]
    fn a_small_budget_still_takes_one_whole() {
        let room = ByteRoom::of_wholes(85 * MIB, 32 * MIB);
        let mut first = room.share(Holder(1), usize::MAX);
        assert!(first.grow_to(32 * MIB) && !first.grow_to(32 * MIB + 1));
        let mut second = room.share(Holder(2), usize::MAX);
        assert!(second.grow_to(32 * MIB), "of 53 MiB that are left");
        assert!(room.share(Holder(3), usize::MAX).grow_to(15 * MIB));
        // A large one is shared by quarters alone.
        assert_eq!(
            ByteRoom::of_wholes(512 * MIB, 32 * MIB).largest(),
            128 * MIB
        );
        assert_eq!(ByteRoom::of_wholes(85 * MIB, 32 * MIB).largest(), 32 * MIB);
    }

    #[test]
    fn a_limit_of_ones_own_counts_over_all_shares() {
        let room = ByteRoom::new(512 * MIB);
        let mut shares: Vec<ByteShare> = (0..4).map(|_| room.share(Holder(1), 16 * MIB)).collect();
        assert!(shares.iter_mut().all(|share| share.grow_to(4 * MIB)));
        assert!(!shares[0].grow_to(5 * MIB));
        shares[1].shrink_to(MIB);
        assert!(shares[0].grow_to(5 * MIB));
    }

    #[tokio::test(start_paused = true)]
    async fn a_share_that_waits_goes_on_when_another_is_dropped() {
        let room = ByteRoom::new(4 * MIB);
        let mut first = room.share(Holder(1), usize::MAX);
        assert!(first.grow_to(MIB));
        let mut second = room.share(Holder(1), usize::MAX);
        let waiting = tokio::spawn(async move {
            second.wait_for(MIB / 2).await;
            second
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        let second = waiting.await.unwrap();
        let kept = second.keep(Bytes::from_static(b"answer"));
        assert_eq!((room.in_use(), &kept[..]), (MIB / 2, &b"answer"[..]));
        drop(kept);
        assert_eq!(room.in_use(), 0);
    }
}
