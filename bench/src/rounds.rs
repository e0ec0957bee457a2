//! The rounds: subjects one after another, each started afresh, until the last three were quiet; and what makes a run void.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::answers::BenchFamily;
use crate::calls::{CallCounts, RequestCalls, Tracer};
use crate::generator::{Expected, LoadPlan, run};
use crate::lanes::{Figure, Figures, LaneShape, LoadLane, expected};
use crate::machine::{MachineSample, OURS, Shares};
use crate::subjects::{Programs, RunningSubject, Subject, free_address, spawn};
use crate::upstream::{AnswerMode, ask};
use crate::{books, progress};

/// Keys that requests are spread over.
const KEYS: u64 = 1_000;
/// Keys of a cold start.
const MANY_KEYS: u64 = 1_000_000;
/// Rounds that count: the last ones.
const ROUNDS: usize = 3;
/// Cold starts, each of milliseconds.
const COLD_STARTS: usize = 20;
/// Rounds of a lane before it is given up as never quiet.
const MOST_ROUNDS: usize = 9;
/// How often a subject may be late in a lane. The strict mode waits for the disk, which is slow for a second now and then.
const MOST_LATE: usize = 3;
/// Of nginx's steady figures, the worst round to the best.
const NOISE: f64 = 1.3;

/// One round of one subject.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) lane: LoadLane,
    pub(crate) family: BenchFamily,
    number: usize,
    pub(crate) subject: Subject,
    pub(crate) figures: Figures,
    pub(crate) shares: Shares,
}

/// A run of the benchmark.
pub(crate) struct Bench {
    pub(crate) programs: Programs,
    pub(crate) quick: bool,
    pub(crate) rounds: Vec<Round>,
    /// Why the figures do not count.
    pub(crate) void: Vec<String>,
    /// Rounds that were taken again.
    pub(crate) late: Vec<String>,
    /// Answers of Farebox that its books were compared with.
    pub(crate) governed: u64,
    /// What these cost, in picodollars.
    pub(crate) paid: i128,
    /// System calls, from the lane of that name.
    pub(crate) calls: Vec<RequestCalls>,
    upstream: RunningSubject,
    secrets: Vec<String>,
    big_ledger: PathBuf,
}

impl Bench {
    /// Starts the upstream and prepares a ledger.
    pub(crate) fn new(
        mut programs: Programs,
        quick: bool,
        big_ledger: PathBuf,
    ) -> Result<Self, String> {
        let address = free_address().map_err(|error| format!("no free port: {error}"))?;
        programs.upstream = address;
        let folder = programs.folder.join("upstream");
        let made = std::fs::create_dir_all(&folder).and_then(|()| std::env::current_exe());
        let mut command = std::process::Command::new(
            made.map_err(|error| format!("{}: {error}", folder.display()))?,
        );
        command.args(["upstream", &address.to_string()]);
        let mut upstream = spawn(command, OURS, &folder, "upstream", address)?;
        upstream.wait_until_it_answers()?;
        books::remove(&programs.ledger);
        books::make(&programs.ledger, KEYS)?;
        let (rounds, secrets) = (Vec::new(), books::secrets(KEYS));
        Ok(Self {
            programs,
            quick,
            rounds,
            void: Vec::new(),
            late: Vec::new(),
            governed: 0,
            paid: 0,
            calls: Vec::new(),
            upstream,
            secrets,
            big_ledger,
        })
    }

    /// The rounds of one lane: the last three, as soon as the machine was quiet during all of them.
    pub(crate) fn lane(&mut self, lane: LoadLane) -> Result<(), String> {
        if lane == LoadLane::Cold {
            return self.cold_starts();
        }
        if lane == LoadLane::Calls {
            return lane
                .families()
                .iter()
                .try_for_each(|family| self.count_calls(*family));
        }
        for family in lane.families().iter().copied() {
            let mut late = 0;
            for number in 1..=MOST_ROUNDS {
                while let Some(fault) = self.round(lane, family, number)? {
                    late += 1;
                    if late > MOST_LATE {
                        return Err(fault);
                    }
                    progress(&format!("{fault}: the round is taken again"));
                    self.late.push(fault);
                }
                let counts = |round: &Round| {
                    (round.lane, round.family) != (lane, family) || round.number + ROUNDS > number
                };
                self.rounds.retain(counts);
                if number < ROUNDS {
                    continue;
                }
                let noise = self.noise(lane, family);
                if noise.is_empty() || number == MOST_ROUNDS {
                    self.void.extend(noise);
                    break;
                }
                progress(&format!("{}: another round", noise.join("; ")));
            }
            self.void.extend(self.bottlenecks(lane, family));
        }
        Ok(())
    }

    /// One round of one lane and family: its subjects, one after another. A subject that did not keep up with the rate ends it, and
    /// nothing of it counts; that is what is returned.
    fn round(
        &mut self,
        lane: LoadLane,
        family: BenchFamily,
        number: usize,
    ) -> Result<Option<String>, String> {
        let first = self.rounds.len();
        for subject in lane.subjects() {
            if subject.path(family).is_none() || !self.programs.have(*subject) {
                continue;
            }
            let (lane_name, family_name) = (lane.name(), family.name());
            let Some((figures, shares)) = self.subject(lane, family, *subject)? else {
                self.rounds.truncate(first);
                let subject = subject.name();
                return Ok(Some(format!(
                    "{lane_name}, {family_name}: {subject} did not keep up with the rate"
                )));
            };
            let measured = line(&figures);
            progress(&format!(
                "{lane_name:>5} {family_name:<8} {number} {:<16} {measured}",
                subject.name()
            ));
            self.rounds.push(Round {
                lane,
                family,
                number,
                subject: *subject,
                figures,
                shares,
            });
        }
        self.add_differences(first);
        Ok(None)
    }

    /// One subject, from its start to its end; nothing if it did not keep up with the rate, once its books are checked.
    fn subject(
        &mut self,
        lane: LoadLane,
        family: BenchFamily,
        subject: Subject,
    ) -> Result<Option<(Figures, Shares)>, String> {
        let served_before: u64 = ask(self.upstream.address, AnswerMode::SHORT.path().as_str())?
            .iter()
            .sum();
        let mut running = self.programs.start(subject, self.secrets.len())?;
        let measured = self.measure(lane, family, subject, &mut running);
        let measured = measured.map_err(|fault| running.explain(&fault))?;
        let served = ask(self.upstream.address, AnswerMode::SHORT.path().as_str())?
            .iter()
            .sum::<u64>()
            - served_before;
        if let Some(books) = &running.books {
            let each = family.cost(lane.answer_times());
            books
                .check(served, each)
                .map_err(|fault| running.explain(&fault))?;
            self.governed += served;
            self.paid += i128::from(served) * i128::from(each);
        }
        running.stop()?;
        if let Some(books) = &running.books {
            self.programs.verify(&books.ledger)?;
        }
        Ok(measured)
    }

    /// One round of every subject under strace. Counts need neither repeats nor quiet.
    fn count_calls(&mut self, family: BenchFamily) -> Result<(), String> {
        for subject in LoadLane::Calls.subjects() {
            if subject.path(family).is_none() || !self.programs.have(*subject) {
                continue;
            }
            let mut running = self.programs.start(*subject, self.secrets.len())?;
            let counted = self.trace(family, *subject, &mut running);
            let (calls, answers) = counted.map_err(|fault| running.explain(&fault))?;
            running.stop()?;
            let per_request = calls
                .into_iter()
                .map(|(name, calls)| (name, calls as f64 / answers.max(1) as f64));
            let per_request: Vec<_> = per_request.collect();
            let (sum, shares) = (
                per_request.iter().map(|(_, calls)| calls).sum(),
                Shares::default(),
            );
            let figures = vec![(Figure::CallsPerRequest, sum)];
            progress(&format!(
                "calls {:<8} 1 {:<16} {}",
                family.name(),
                subject.name(),
                line(&figures)
            ));
            self.rounds.push(Round {
                lane: LoadLane::Calls,
                family,
                number: 1,
                subject: *subject,
                figures,
                shares,
            });
            self.calls.push(RequestCalls {
                subject: *subject,
                family,
                per_request,
            });
        }
        Ok(())
    }

    /// Loads a subject that is warm, and counts its calls and answers meanwhile.
    fn trace(
        &self,
        family: BenchFamily,
        subject: Subject,
        running: &mut RunningSubject,
    ) -> Result<(CallCounts, u64), String> {
        let shape = LoadLane::Calls.shape(subject, family, self.quick);
        let heads = self.heads(subject, family, running, shape.body.len());
        let expected = expected(family, shape.mode, subject.answers_as(family));
        ask(self.upstream.address, &shape.mode.path())?;
        let short = LoadLane::Calls.shape(subject, family, true);
        run(
            &plan(running, &heads, &short, &expected),
            MachineSample::default,
        )?;
        let tracer = Tracer::attach(&running.processes, &self.programs.folder)?;
        let outcome = run(
            &plan(running, &heads, &shape, &expected),
            MachineSample::default,
        );
        let calls = tracer.stop()?;
        Ok((calls, outcome?.answers.iter().sum()))
    }

    fn measure(
        &self,
        lane: LoadLane,
        family: BenchFamily,
        subject: Subject,
        running: &mut RunningSubject,
    ) -> Result<Option<(Figures, Shares)>, String> {
        let shape = &lane.shape(subject, family, self.quick);
        let upstream = self.upstream.processes.first().copied().unwrap_or(0);
        let sample = |running: &RunningSubject| MachineSample::take(&running.processes, upstream);
        let (heads, small) = (
            self.heads(subject, family, running, shape.body.len()),
            LoadLane::Small.shape(subject, family, true),
        );
        if lane == LoadLane::Open {
            // Everything that is made once, or once for each key, is there before memory is looked at: by requests of every key, and by
            // a whole stream.
            let whole = expected(family, AnswerMode::SHORT, subject.answers_as(family));
            let few = self.heads(subject, family, running, small.body.len());
            let many = LoadPlan {
                rate: Some(500),
                window: Duration::from_secs(2),
                ..plan(running, &few, &small, &whole)
            };
            let warmed = run(&many, MachineSample::default)?;
            running.count(&warmed.answers);
            if warmed.late {
                return Ok(None);
            }
            ask(self.upstream.address, &shape.mode.path())?;
            let streamed = expected(family, shape.mode, subject.answers_as(family));
            let one = LoadPlan {
                connections: 1,
                window: Duration::from_secs(8),
                ..plan(running, &heads, shape, &streamed)
            };
            let answers = run(&one, MachineSample::default)?.answers;
            running.count(&answers);
        }
        ask(self.upstream.address, &shape.mode.path())?;
        let expected = expected(family, shape.mode, subject.answers_as(family));
        let before = sample(running);
        let mut outcome = run(&plan(running, &heads, shape, &expected), || sample(running))?;
        running.count(&outcome.answers);
        if outcome.late {
            return Ok(None);
        }
        let shares = outcome.after.shares_since(&outcome.before);
        let figures = lane.read(subject, &mut outcome, &before)?;
        Ok(Some((figures, shares)))
    }

    /// The head of a request with each key.
    fn heads(
        &self,
        subject: Subject,
        family: BenchFamily,
        running: &RunningSubject,
        length: usize,
    ) -> Vec<Vec<u8>> {
        let path = subject.path(family).unwrap_or_default();
        let version = if family == BenchFamily::Messages {
            "anthropic-version: 2023-06-01\r\n"
        } else {
            ""
        };
        let head = |secret: &String| {
            format!(
                "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {secret}\r\ncontent-type: application/json\r\n\
                 accept: application/json\r\nuser-agent: bench/1.0\r\n{version}content-length: {length}\r\n\r\n",
                running.address
            )
            .into_bytes()
        };
        self.secrets.iter().map(head).collect()
    }

    /// What is over direct, for the rounds from `first` on.
    fn add_differences(&mut self, first: usize) {
        let Some((direct, others)) = self
            .rounds
            .get_mut(first..)
            .and_then(|rounds| rounds.split_first_mut())
        else {
            return;
        };
        if direct.lane != LoadLane::Rate || direct.subject != Subject::Direct {
            return;
        }
        for round in others {
            for (of, added) in [
                (Figure::P50, Figure::AddedP50),
                (Figure::P99, Figure::AddedP99),
            ] {
                if let (Some(with), Some(without)) = (
                    of_figures(&round.figures, of),
                    of_figures(&direct.figures, of),
                ) {
                    round.figures.push((added, with - without));
                }
            }
        }
    }

    /// Our own CPU must not be what limits a saturated lane.
    fn bottlenecks(&self, lane: LoadLane, family: BenchFamily) -> Vec<String> {
        let limited = |round: &&Round| {
            (round.lane, round.family) == (lane, family)
                && lane.is_saturated()
                && !matches!(round.subject, Subject::Direct | Subject::TwoWorkers)
                && round.shares.our_idle < 0.03
                && round.shares.subjects_idle > 0.10
        };
        let told = |round: &Round| {
            format!(
                "the generator was the bottleneck in lane {} with {}: its CPU was {:.0} % busy, the subject's {:.0} % idle",
                lane.name(),
                round.subject.name(),
                100.0 * (1.0 - round.shares.our_idle),
                100.0 * round.shares.subjects_idle
            )
        };
        self.rounds.iter().filter(limited).map(told).collect()
    }

    /// What says that the machine was not quiet during these rounds.
    fn noise(&self, lane: LoadLane, family: BenchFamily) -> Vec<String> {
        let mut noise = Vec::new();
        for figure in lane
            .figures()
            .iter()
            .filter(|figure| figure.is_steady(lane))
        {
            let values = self.values(lane, family, Subject::Nginx, *figure);
            let (least, most) = values
                .iter()
                .fold((f64::MAX, 0.0_f64), |(least, most), one| {
                    (least.min(*one), most.max(*one))
                });
            if most > least * NOISE {
                let (lane, family) = (lane.name(), family.name());
                noise.push(format!(
                    "nginx is not steady in lane {lane}, {family}: {} from {least:.1} to {most:.1}",
                    figure.title()
                ));
            }
        }
        noise
    }

    /// The figures of a subject, round by round.
    pub(crate) fn values(
        &self,
        lane: LoadLane,
        family: BenchFamily,
        subject: Subject,
        figure: Figure,
    ) -> Vec<f64> {
        let rounds = self
            .rounds
            .iter()
            .filter(|round| (round.lane, round.family, round.subject) == (lane, family, subject));
        rounds
            .filter_map(|round| of_figures(&round.figures, figure))
            .collect()
    }

    /// Starts with many keys, each time until the first paid answer.
    fn cold_starts(&mut self) -> Result<(), String> {
        let ledger = self.big_ledger.clone();
        if !ledger.exists() {
            progress(&format!(
                "making {MANY_KEYS} keys in {}, once",
                ledger.display()
            ));
            // Under another name first: a run that is cut short leaves nothing that looks complete.
            let part = ledger.with_extension("part");
            books::make(&part, MANY_KEYS)?;
            books::copy(&part, &ledger)?;
            books::remove(&part);
        }
        // A ledger from elsewhere gets the one key that is used.
        books::make(&ledger, 1)?;
        ask(self.upstream.address, &AnswerMode::SHORT.path())?;
        for round in 1..=COLD_STARTS {
            let figures = self.cold_start(&ledger)?;
            progress(&format!(
                " cold chat     {round} farebox          {}",
                line(&figures)
            ));
            let (lane, family, subject, shares) = (
                LoadLane::Cold,
                BenchFamily::Chat,
                Subject::Farebox,
                Shares::default(),
            );
            self.rounds.push(Round {
                lane,
                family,
                number: round,
                subject,
                figures,
                shares,
            });
        }
        Ok(())
    }

    fn cold_start(&self, ledger: &std::path::Path) -> Result<Figures, String> {
        let folder = self.programs.folder.join("cold");
        let prepared = std::fs::create_dir_all(&folder).and_then(|()| {
            let address = free_address()?;
            let admin = free_address()?;
            let mut command = self.programs.farebox(&folder, ledger, address, admin)?;
            command.env("FAREBOX_LOG", "warn");
            Ok((command, address, admin))
        });
        let (command, address, admin) =
            prepared.map_err(|error| format!("{}: {error}", folder.display()))?;
        books::forget(ledger)?;
        let begun = Instant::now();
        let mut running = spawn(
            command,
            crate::machine::SUBJECTS,
            &folder,
            "farebox",
            address,
        )?;
        let request = format!("GET /readyz HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\r\n");
        let patience = Duration::from_secs(120);
        let until = |address, request: &[u8]| {
            while begun.elapsed() < patience {
                if answers(address, request) {
                    return Ok(begun.elapsed().as_secs_f64() * 1e3);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(format!("{address} does not answer"))
        };
        let shape = LoadLane::Cold.shape(Subject::Farebox, BenchFamily::Chat, true);
        let head = self
            .heads(
                Subject::Farebox,
                BenchFamily::Chat,
                &running,
                shape.body.len(),
            )
            .swap_remove(0);
        let request_paid = [head, shape.body].concat();
        let ready = until(admin, request.as_bytes()).map_err(|fault| running.explain(&fault))?;
        let paid = until(address, &request_paid).map_err(|fault| running.explain(&fault))?;
        running.stop()?;
        Ok(vec![(Figure::ReadyMs, ready), (Figure::PaidMs, paid)])
    }
}

fn plan<'a>(
    running: &RunningSubject,
    heads: &'a [Vec<u8>],
    shape: &'a LaneShape,
    expected: &'a Expected,
) -> LoadPlan<'a> {
    LoadPlan {
        address: running.address,
        heads,
        body: &shape.body,
        expected,
        connections: shape.connections,
        rate: shape.rate,
        apart: shape.apart,
        warm: shape.warm,
        window: shape.window,
    }
}

/// Whether this address answers this request with 200 now.
fn answers(address: std::net::SocketAddr, request: &[u8]) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return false;
    };
    let mut begin = [0; 12];
    let patience = stream.set_read_timeout(Some(Duration::from_secs(30)));
    patience
        .and_then(|()| stream.write_all(request))
        .and_then(|()| stream.read_exact(&mut begin))
        .is_ok()
        && begin == *b"HTTP/1.1 200"
}

/// The middle one of some values; of an even number, the upper one.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// One figure of a round.
fn of_figures(figures: &Figures, wanted: Figure) -> Option<f64> {
    figures
        .iter()
        .find(|(figure, _)| *figure == wanted)
        .map(|(_, value)| *value)
}

fn line(figures: &Figures) -> String {
    let shown: Vec<String> = figures
        .iter()
        .map(|(figure, value)| format!("{} {value:.1}", figure.title()))
        .collect();
    shown.join(" · ")
}
