//! The lanes: what each one sends, to which subject, and the figures it yields.

use std::time::Duration;

use crate::answers::{BenchFamily, CannedAnswer, LONG};
use crate::bodies;
use crate::generator::{Expected, LoadOutcome};
use crate::machine::MachineSample;
use crate::subjects::Subject;
use crate::upstream::AnswerMode;

/// Streams open at once in [`LoadLane::Open`].
const OPEN: usize = 1_000;
/// Requests each second in [`LoadLane::Rate`].
const RATE: u32 = 500;

/// One way of loading a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadLane {
    /// 1 KiB, as fast as it goes.
    Small,
    /// The same for eight seconds and for half a minute, to see what grows within a run.
    Long,
    /// The same, with the subject's system calls counted instead of its time.
    Calls,
    /// 1 KiB, 500 requests each second.
    Rate,
    /// 100 KiB, as fast as it goes.
    Large,
    /// 1 KiB, answered with 100 KiB, as fast as it goes.
    Answer,
    /// 1 MiB, as fast as it goes.
    Huge,
    /// 2,048 texts in 8 MiB, as fast as it goes.
    Batch,
    /// 64 streams with a chunk every 5 ms.
    Paced,
    /// 1,000 streams open at once.
    Open,
    /// From exec to the first paid answer, with 1,000,000 keys.
    Cold,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    CpuPerRequest,
    RequestsPerSecond,
    CallsPerRequest,
    CpuPerChunk,
    P50,
    P99,
    /// Over asking the upstream directly, in the same round.
    AddedP50,
    AddedP99,
    KibPerStream,
    ReadyMs,
    PaidMs,
}

impl Figure {
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::CpuPerRequest => "CPU-µs / request",
            Self::RequestsPerSecond => "requests/s",
            Self::CallsPerRequest => "system calls / request",
            Self::CpuPerChunk => "CPU-µs / chunk",
            Self::P50 => "p50 µs",
            Self::P99 => "p99 µs",
            Self::AddedP50 => "added p50 µs",
            Self::AddedP99 => "added p99 µs",
            Self::KibPerStream => "KiB / open stream",
            Self::ReadyMs => "/readyz, ms",
            Self::PaidMs => "first paid answer, ms",
        }
    }

    /// Whether a quiet machine gives it twice alike. At 500 requests each second the CPU mostly wakes and sleeps, which is not what
    /// is compared there; the median delay of a chunk depends on how the streams' paces fall together, and differs as much without
    /// anybody between.
    pub(crate) const fn is_steady(self, lane: LoadLane) -> bool {
        match self {
            Self::CpuPerRequest => lane.is_saturated(),
            Self::CpuPerChunk => true,
            Self::P50 => matches!(lane, LoadLane::Rate),
            _ => false,
        }
    }
}

/// The figures of one round.
pub(crate) type Figures = Vec<(Figure, f64)>;

/// How a lane is driven.
#[derive(Debug)]
pub(crate) struct LaneShape {
    pub(crate) body: Vec<u8>,
    pub(crate) mode: AnswerMode,
    pub(crate) connections: usize,
    pub(crate) rate: Option<u32>,
    pub(crate) apart: Duration,
    pub(crate) warm: Duration,
    pub(crate) window: Duration,
}

impl LoadLane {
    pub(crate) const ALL: [Self; 11] = [
        Self::Small,
        Self::Long,
        Self::Calls,
        Self::Rate,
        Self::Large,
        Self::Answer,
        Self::Huge,
        Self::Batch,
        Self::Paced,
        Self::Open,
        Self::Cold,
    ];

    /// As it is typed.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Long => "long",
            Self::Calls => "calls",
            Self::Rate => "rate",
            Self::Large => "100k",
            Self::Answer => "answer",
            Self::Huge => "1m",
            Self::Batch => "batch",
            Self::Paced => "sse",
            Self::Open => "open",
            Self::Cold => "cold",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Small => "1 KiB requests, saturated",
            Self::Long => "1 KiB requests, saturated for half a minute",
            Self::Calls => "System calls of 1 KiB requests, saturated",
            Self::Rate => "1 KiB requests, 500 each second",
            Self::Large => "100 KiB requests of a coding client, saturated",
            Self::Answer => "100 KiB answers of 1 KiB requests, saturated",
            Self::Huge => "1 MiB requests of a coding client, saturated",
            Self::Batch => "Batches of 2,048 texts in 8 MiB, saturated",
            Self::Paced => "64 streams, a chunk every 5 ms",
            Self::Open => "1,000 open streams",
            Self::Cold => "Cold start with 1,000,000 keys",
        }
    }

    /// Whom it asks for.
    pub(crate) const fn families(self) -> &'static [BenchFamily] {
        match self {
            Self::Batch => &[BenchFamily::Embeddings],
            _ => &BenchFamily::CONVERSATIONS,
        }
    }

    pub(crate) const fn subjects(self) -> &'static [Subject] {
        use Subject::{
            Bare, Direct, Farebox, Lasting, Logging, Nginx, Onwards, Profiled, Strict, TwoWorkers,
        };
        match self {
            Self::Small => &[
                Direct, Nginx, Bare, Onwards, Farebox, Profiled, Strict, Logging, TwoWorkers,
            ],
            Self::Calls => &[Nginx, Bare, Onwards, Farebox, Strict],
            Self::Large | Self::Answer | Self::Huge | Self::Batch | Self::Open => {
                &[Nginx, Bare, Onwards, Farebox, Profiled, Strict]
            }
            Self::Rate | Self::Paced => &[Direct, Nginx, Bare, Onwards, Farebox, Profiled, Strict],
            Self::Long => &[Farebox, Lasting],
            Self::Cold => &[Farebox],
        }
    }

    /// The figures it gives, in the order in which they are shown.
    pub(crate) const fn figures(self) -> &'static [Figure] {
        use Figure::{
            AddedP50, AddedP99, CallsPerRequest, CpuPerChunk, CpuPerRequest, KibPerStream, P50,
            P99, PaidMs, ReadyMs, RequestsPerSecond,
        };
        match self {
            Self::Small | Self::Long | Self::Large | Self::Answer | Self::Huge | Self::Batch => {
                &[CpuPerRequest, RequestsPerSecond]
            }
            Self::Calls => &[CallsPerRequest],
            Self::Rate => &[P50, P99, AddedP50, AddedP99, CpuPerRequest],
            Self::Paced => &[CpuPerChunk, P50, P99],
            Self::Open => &[KibPerStream],
            Self::Cold => &[ReadyMs, PaidMs],
        }
    }

    /// Every connection asks again at once, so that the subject should be the bottleneck.
    pub(crate) const fn is_saturated(self) -> bool {
        matches!(
            self,
            Self::Small | Self::Long | Self::Large | Self::Answer | Self::Huge | Self::Batch
        )
    }

    /// What is sent, and for how long; short for development.
    pub(crate) fn shape(self, subject: Subject, family: BenchFamily, quick: bool) -> LaneShape {
        let seconds =
            |full: u64, short: u64| Duration::from_millis(if quick { short } else { full });
        let small = LaneShape {
            body: bodies::small(family, false, bodies::USUAL),
            mode: AnswerMode::SHORT,
            connections: 64,
            rate: None,
            apart: Duration::ZERO,
            warm: seconds(1_000, 300),
            window: seconds(4_000, 1_000),
        };
        match self {
            Self::Calls | Self::Cold => small,
            Self::Long if subject == Subject::Lasting => LaneShape {
                window: seconds(29_000, 8_000),
                ..small
            },
            // Eight seconds in all.
            Self::Small | Self::Long => LaneShape {
                window: seconds(7_000, 1_000),
                ..small
            },
            // Many, because one that waits must not hold up the clock.
            Self::Rate => LaneShape {
                rate: Some(RATE),
                connections: 256,
                window: seconds(6_000, 2_000),
                ..small
            },
            Self::Large | Self::Answer | Self::Huge | Self::Batch => {
                let (body, connections) = self.large(family);
                let times = self.answer_times();
                LaneShape {
                    body,
                    mode: AnswerMode::Whole { times },
                    connections,
                    ..small
                }
            }
            Self::Paced => LaneShape {
                body: bodies::small(family, true, bodies::USUAL),
                mode: AnswerMode::Stream {
                    pace: Duration::from_millis(5),
                    chunks: 200,
                },
                // Spread over a stream's second and over the 5 ms, so that neither beginnings nor chunks come in bursts.
                apart: Duration::from_micros(15_700),
                warm: seconds(1_500, 1_200),
                window: seconds(6_000, 2_000),
                ..small
            },
            Self::Open => LaneShape {
                body: bodies::small(family, true, bodies::USUAL),
                mode: AnswerMode::Stream {
                    pace: Duration::from_millis(200),
                    chunks: 30,
                },
                connections: OPEN,
                apart: Duration::from_millis(1),
                warm: Duration::ZERO,
                // Looked at when each has been open for at least two seconds of its six.
                window: Duration::from_secs(3),
                ..small
            },
        }
    }

    /// How many times the text of a short answer is answered, and paid.
    pub(crate) const fn answer_times(self) -> u64 {
        match self {
            Self::Answer => LONG,
            _ => 1,
        }
    }

    /// What is sent where either side is large, and the connections it is sent on: the larger, the fewer.
    fn large(self, family: BenchFamily) -> (Vec<u8>, usize) {
        match self {
            Self::Batch => (bodies::batch(8 << 20), 4),
            Self::Huge => (bodies::coding(family, 1024 * 1024), 8),
            Self::Answer => (bodies::small(family, false, bodies::MANY), 32),
            _ => (bodies::coding(family, 100 * 1024), 32),
        }
    }

    /// The figures of one round. `before` was taken before the first connection.
    pub(crate) fn read(
        self,
        subject: Subject,
        outcome: &mut LoadOutcome,
        before: &MachineSample,
    ) -> Result<Figures, String> {
        // Without anybody between, it is the load's own cost.
        let cpu = if subject == Subject::Direct {
            MachineSample::load_since
        } else {
            MachineSample::cpu_since
        };
        let cpu = cpu(&outcome.after, &outcome.before).as_secs_f64() * 1e6;
        let (requests, chunks) = (outcome.requests.max(1) as f64, outcome.chunks.max(1) as f64);
        let figure = |figure| match figure {
            Figure::CpuPerRequest => cpu / requests,
            Figure::RequestsPerSecond => requests / outcome.window.as_secs_f64(),
            Figure::CpuPerChunk => cpu / chunks,
            Figure::KibPerStream => {
                outcome.after.resident.saturating_sub(before.resident) as f64 / OPEN as f64
            }
            _ => f64::NAN,
        };
        let mut figures: Figures = self
            .figures()
            .iter()
            .map(|name| (*name, figure(*name)))
            .filter(|one| !one.1.is_nan())
            .collect();
        match self {
            Self::Rate => figures.extend(percentiles(&mut outcome.latencies)),
            Self::Paced => figures.extend(percentiles(&mut outcome.delays)),
            Self::Open if outcome.requests > 0 => {
                return Err("streams ended before they were counted".to_owned());
            }
            _ => {}
        }
        if self != Self::Open && outcome.requests == 0 {
            return Err("nothing was answered in the window".to_owned());
        }
        Ok(figures)
    }
}

fn percentiles(nanos: &mut [u32]) -> [(Figure, f64); 2] {
    nanos.sort_unstable();
    let at = |share: usize| {
        nanos
            .get(nanos.len() * share / 100)
            .copied()
            .map_or(f64::NAN, |nanos| f64::from(nanos) / 1e3)
    };
    [(Figure::P50, at(50)), (Figure::P99, at(99))]
}

/// What a subject that shows this model name must answer.
pub(crate) fn expected(family: BenchFamily, mode: AnswerMode, model: &str) -> Expected {
    let answer = match mode {
        AnswerMode::Whole { times } => CannedAnswer::whole(family, model, times),
        AnswerMode::Stream { chunks, .. } => CannedAnswer::stream(family, model, chunks),
    };
    Expected {
        body: answer.body(),
        stamps: answer.stamps(),
    }
}
