//! Whether this machine's clock jumped: compared at each look with a clock that is never set. A file has no clock of its own, so nobody
//! else can tell which of the two times is right.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::value::clock;
use crate::{Fault, Timestamp, TroubleKind, lock};

/// A jump of so many milliseconds is told.
// A clock that is being adjusted runs a little faster or slower; it does not move half a minute between two looks.
const JUMP: u64 = 30_000;
/// After this time the new one is taken for right.
const TOLD_FOR: Duration = Duration::from_secs(600);

/// The two clocks, as they agreed last.
#[derive(Debug)]
pub(super) struct WallClock(Mutex<Reference>);

#[derive(Debug, Clone, Copy)]
struct Reference {
    wall: Timestamp,
    at: Instant,
    /// When they were first seen apart.
    jumped: Option<Instant>,
}

impl Default for WallClock {
    fn default() -> Self {
        Self(Mutex::new(Reference {
            wall: clock::now(),
            at: Instant::now(),
            jumped: None,
        }))
    }
}

impl WallClock {
    /// Compares them, and says by how much the one jumped that can be set. Call it at least once a second: a clock that is corrected
    /// little by little never jumps.
    pub(super) fn look(&self, wall: Timestamp, at: Instant) -> Option<Fault> {
        let mut known = lock(&self.0);
        let passed = at.saturating_duration_since(known.at).as_millis();
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        let expected = known.wall.millis().saturating_add(passed);
        let off = wall.millis().saturating_sub(expected);
        let jumped = *known.jumped.get_or_insert(at);
        if off.unsigned_abs() < JUMP || at.saturating_duration_since(jumped) >= TOLD_FOR {
            *known = Reference {
                wall,
                at,
                jumped: None,
            };
            return None;
        }
        let way = if off < 0 { "back" } else { "ahead" };
        // In tens, so that the words stay the same.
        let seconds = (off.unsigned_abs().saturating_add(5_000) / 10_000).saturating_mul(10);
        let cause = format!("this machine's clock jumped {way} by about {seconds} s");
        let remedy = "if it is wrong now, set it (timedatectl, chronyc tracking); if it was wrong before, or the machine slept, nothing is to \
             be done, and this ends by itself after ten minutes";
        Some(Fault::new(TroubleKind::ClockJumped, cause, remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_is_told_until_it_is_undone_or_has_become_the_time() {
        let (begun, clock) = (Instant::now(), WallClock::default());
        clock.0.lock().unwrap().at = begun;
        let zero = clock.0.lock().unwrap().wall.millis();
        let look = |second: u64, wall: i64| {
            let at = begun + Duration::from_secs(second);
            let fault = clock.look(Timestamp::from_millis(zero + wall * 1_000), at);
            fault.map(|fault| fault.cause)
        };
        assert_eq!(look(1, 1), None);
        // Little by little.
        assert_eq!((look(2, 20), look(3, 40), look(4, 60)), (None, None, None));
        let said = "this machine's clock jumped ahead by about 40 s".to_owned();
        assert_eq!(
            (look(5, 101), look(6, 102)),
            (Some(said.clone()), Some(said))
        );
        assert_eq!(look(7, 63), None, "set back");
        let back = look(8, 0).unwrap();
        assert!(back.contains("back by about 60 s"), "{back}");
        assert!(look(607, 599).is_some());
        assert_eq!((look(608, 600), look(609, 601)), (None, None));
    }
}
