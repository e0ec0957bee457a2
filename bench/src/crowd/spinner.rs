//! Threads that burn CPU in an attacker's place: what that alone costs the customer.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::lowly::lowly;

/// Threads that burn this much CPU, in CPUs, until it is dropped; in the idle class, like an attacker's.
#[derive(Debug)]
pub(super) struct Spinner {
    stop: Arc<AtomicBool>,
    _runtime: Runtime,
}

/// Spinning and resting alternate in steps of this.
const STEP: Duration = Duration::from_millis(10);

impl Spinner {
    pub(super) fn start(cpus: f64) -> io::Result<Self> {
        let (stop, runtime) = (
            Arc::new(AtomicBool::new(false)),
            lowly().worker_threads(1).build()?,
        );
        let mut left = cpus;
        while left > 0.0 {
            let (part, stopped) = (left.min(1.0), Arc::clone(&stop));
            left -= 1.0;
            runtime.spawn_blocking(move || {
                while !stopped.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    while begun.elapsed() < STEP.mul_f64(part) {
                        std::hint::spin_loop();
                    }
                    std::thread::sleep(STEP.mul_f64(1.0 - part));
                }
            });
        }
        Ok(Self {
            stop,
            _runtime: runtime,
        })
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
