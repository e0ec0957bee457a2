//! When to read changed files: 250 ms after the last event, but at most 750 ms after the first. Pure; the time is passed in.

use std::time::Duration;

use tokio::time::Instant;

/// A save is a burst of events; it is over when nothing has happened for this long.
// An editor's save is several events (a new file, a rename, times) within some milliseconds; reading between them would find half of it.
const QUIET: Duration = Duration::from_millis(250);
/// A burst that does not end is cut off after this long.
// With the reading after it, a save takes effect within a second even while something else keeps writing in the folder.
const MOST: Duration = Duration::from_millis(750);

/// The current burst of events, if any.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Debounce {
    /// Its first and its latest event.
    burst: Option<(Instant, Instant)>,
}

impl Debounce {
    /// Records an event.
    pub(crate) fn touch(&mut self, now: Instant) {
        let first = self.burst.map_or(now, |(first, _)| first);
        self.burst = Some((first, now));
    }

    /// When to read the files; `None` if no event is pending.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.burst
            .map(|(first, latest)| (latest + QUIET).min(first + MOST))
    }

    /// Notes that the files are being read, which ends the burst.
    pub(crate) fn clear(&mut self) {
        self.burst = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_quiet_but_not_for_ever() {
        let begin = Instant::now();
        let at = |millis| begin + Duration::from_millis(millis);
        let mut debounce = Debounce::default();
        assert_eq!(debounce.due(), None);
        debounce.touch(at(0));
        assert_eq!(debounce.due(), Some(at(250)));
        debounce.touch(at(200));
        assert_eq!(
            debounce.due(),
            Some(at(450)),
            "each event begins the quiet anew"
        );
        for millis in (400..=700).step_by(100) {
            debounce.touch(at(millis));
        }
        assert_eq!(
            debounce.due(),
            Some(at(750)),
            "but 750 ms after the first one it is enough"
        );
        debounce.clear();
        assert_eq!(debounce.due(), None);
        debounce.touch(at(900));
        assert_eq!(
            debounce.due(),
            Some(at(1150)),
            "a new burst has its own limits"
        );
    }
}
