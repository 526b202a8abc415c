//! The cost of a data channel between two viewers: one gives the other segments, each on an engine
//! thread of its own, over loopback. Prints one JSON object; `bench/data-channel.sh` compares it
//! with browsers.
//!
//! ```text
//! data_channel --segments 200 --bytes 1000000
//! ```
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use throng_engine::{Join, RunConfig, run};
use throng_observation::run::{CohortId, ParticipantId, Row};
use throng_observation::{Outcome, RunTime};
use throng_protocol::participant::{Input, Output, Participant};
use throng_protocol::player::{ExchangeConfig, ExchangeRole, SegmentExchange};

/// The threads of the two; the first has the first participant.
const GIVER_THREAD: &str = "engine-0";
const TAKER_THREAD: &str = "engine-1";

/// Sends segments over a data channel, and prints what that cost
#[derive(Parser)]
struct Arguments {
    /// Segments that are counted; a tenth as many come before them
    #[arg(long, default_value_t = 200)]
    segments: u64,
    /// Bytes of a segment
    #[arg(long, default_value_t = 1_000_000)]
    bytes: usize,
    /// How long the exchange may take, seconds
    #[arg(long, default_value_t = 300)]
    timeout_s: u64,
}

/// The CPU time of all threads at a moment, by their names, nanoseconds.
struct Mark {
    at: Instant,
    cpu_ns: BTreeMap<String, u64>,
}

impl Mark {
    fn now() -> Result<Self> {
        let mut cpu_ns = BTreeMap::new();
        for task in fs::read_dir("/proc/self/task")? {
            let task = task?.path();
            // A thread may end between the listing and the reading.
            let Ok(name) = fs::read_to_string(task.join("comm")) else { continue };
            let Ok(text) = fs::read_to_string(task.join("schedstat")) else { continue };
            let ran = text.split_whitespace().next().and_then(|ns| ns.parse::<u64>().ok());
            *cpu_ns.entry(name.trim().to_owned()).or_default() +=
                ran.context("schedstat has no time")?;
        }
        Ok(Self { at: Instant::now(), cpu_ns })
    }

    /// CPU time of the threads of a name since `earlier`, seconds.
    fn cpu_s_since(&self, earlier: &Self, name: &str) -> f64 {
        let of = |mark: &Self| mark.cpu_ns.get(name).copied().unwrap_or_default();
        of(self).saturating_sub(of(earlier)) as f64 / 1e9
    }

    /// CPU time of all threads since `earlier`, seconds.
    fn all_cpu_s_since(&self, earlier: &Self) -> f64 {
        self.cpu_ns.keys().map(|name| self.cpu_s_since(earlier, name)).sum()
    }
}

/// When the segments that are counted began to come, and when they had all come.
#[derive(Default)]
struct Marks(Mutex<Vec<Result<Mark>>>);

impl Marks {
    fn lock(&self) -> MutexGuard<'_, Vec<Result<Mark>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Result<[Mark; 2]> {
        let marks = self.lock().drain(..).collect::<Result<Vec<_>>>()?;
        marks.try_into().ok().context("the segments did not all come in time")
    }
}

/// The viewer that takes, and the clock that it stops.
struct Taker {
    exchange: SegmentExchange,
    /// How many segments it has at each mark that is still to come, the next one last.
    to_come: Vec<u64>,
    marks: Arc<Marks>,
}

impl Participant for Taker {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.exchange.handle(now, input);
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        let output = self.exchange.poll_output(now);
        if self.to_come.pop_if(|taken| self.exchange.taken() >= *taken).is_some() {
            self.marks.lock().push(Mark::now());
        }
        output
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    ensure!(arguments.segments > 0 && arguments.bytes > 0, "there is nothing to send");
    let [first, last] = exchange(&arguments)?;
    let seconds = last.at.saturating_duration_since(first.at).as_secs_f64();
    let result = serde_json::json!({
        "name": "throng",
        "bytes": arguments.segments * arguments.bytes as u64,
        "seconds": seconds,
        "cpu_s": last.all_cpu_s_since(&first),
        "giver_cpu_s": last.cpu_s_since(&first, GIVER_THREAD),
        "taker_cpu_s": last.cpu_s_since(&first, TAKER_THREAD),
    });
    println!("{result}");
    Ok(())
}

/// Lets the two exchange all segments; the marks at the first and the last segment that count.
fn exchange(arguments: &Arguments) -> Result<[Mark; 2]> {
    let warm_up = (arguments.segments / 10).max(1);
    let exchanged = ExchangeConfig {
        segments: warm_up + arguments.segments,
        segment_len: arguments.bytes,
        toward: (Ipv4Addr::LOCALHOST, 9).into(),
        may_reach: Arc::new(|_, to: SocketAddr| to.ip().is_loopback()),
        meeting: Arc::default(),
    };
    let marks = Arc::<Marks>::default();
    let factory = {
        let marks = Arc::clone(&marks);
        move |join: &Join| -> Box<dyn Participant> {
            let exchanged = exchanged.clone();
            if join.place == 0 {
                return Box::new(SegmentExchange::new(exchanged, ExchangeRole::Gives));
            }
            let to_come = vec![exchanged.segments, warm_up];
            let exchange = SegmentExchange::new(exchanged, ExchangeRole::Takes);
            Box::new(Taker { exchange, to_come, marks: Arc::clone(&marks) })
        }
    };
    let (rows, written) = mpsc::sync_channel(1_000);
    let handle = run(config(arguments), Arc::new(factory), rows)?;
    let failed = written.into_iter().find_map(failure);
    drop(handle);
    if let Some(failed) = failed {
        bail!("a viewer failed: {failed}");
    }
    marks.take()
}

/// One participant for each of two threads, until both have ended.
fn config(arguments: &Arguments) -> RunConfig {
    let join = |number| Join {
        participant: ParticipantId(number),
        cohort: CohortId(0),
        place: number,
        at: RunTime(0),
        leave_at: None,
        others_follow: false,
        source_ip: None,
    };
    let ends_at = RunTime::after_start(Duration::from_secs(arguments.timeout_s));
    let mut config = RunConfig::new(
        vec![join(0), join(1)],
        ends_at,
        Arc::new(|_, to: SocketAddr| to.ip().is_loopback()),
    );
    config.threads = Some(2);
    config
}

fn failure(row: Row) -> Option<String> {
    match row {
        Row::Participant(row) => match row.outcome {
            Some(Outcome::Failed(failure)) => Some(failure.to_string()),
            _ => None,
        },
        _ => None,
    }
}
