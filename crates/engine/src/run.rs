//! Starts a run, and holds the strings by which it is stopped and watched.

use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use throng_observation::RunTime;
use throng_observation::run::{Ending, ParticipantId, Row};

use crate::clock::RunClock;
use crate::collector::{Collector, CollectorConfig};
use crate::config::{Join, NewParticipant, ParticipantFactory, RunConfig};
use crate::consent;
use crate::control::{Control, Waker};
use crate::driver::{
    BATCHES_MAX, CollectorSender, EventLoop, EventLoopConfig, IoContext, IoContextConfig, JoinQueue,
    install_panic_hook,
};
use crate::live::LiveSnapshot;
use crate::memory;
use crate::signalling::SignallingChannels;
use crate::sockets::{Dialer, DnsCache, tls_config};
use crate::tap::TapSender;

/// Why a run could not start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A thread, an epoll set or an eventfd could not be made.
    #[error("cannot start: {0}")]
    Io(#[from] std::io::Error),
    /// The certificates that were given could not be used.
    #[error("TLS: {0}")]
    Tls(String),
    /// The plan contradicts itself.
    #[error("plan: {0}")]
    Plan(String),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// Complete, interrupted or aborted.
    pub ending: Ending,
    /// Why, when it did not run to its end.
    pub why: Option<String>,
    /// When the last participant was gone.
    pub ended_at: RunTime,
    /// Seconds in which the generator was the limit.
    pub limited_seconds: u32,
}

/// A run that goes on. Dropping it stops the run.
#[derive(Debug)]
pub struct RunHandle {
    clock: RunClock,
    started_at_unix_us: i64,
    ends_at: RunTime,
    live: Arc<Mutex<LiveSnapshot>>,
    control: Arc<Control>,
    collector: Option<JoinHandle<RunEnd>>,
    threads: Vec<JoinHandle<()>>,
}

/// Starts a run; rows of what it sees go to `rows` until the run is over and the sender is dropped.
///
/// # Errors
/// When the machine does not give what the threads need, or the plan contradicts itself.
#[expect(clippy::needless_pass_by_value, reason = "the run keeps it: the caller gives it away")]
pub fn run(
    mut config: RunConfig,
    factory: Arc<dyn ParticipantFactory>,
    rows: SyncSender<Row>,
) -> Result<RunHandle, EngineError> {
    check(&config)?;
    let threads = threads(&config);
    memory::share_arenas(threads);
    install_panic_hook();
    let wakers = (0..threads).map(|_| Waker::new().map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
    let planned = u32::try_from(config.joins.len()).unwrap_or(u32::MAX);
    // A day of comers and goers is some hundred thousand joins: all threads look into the same plan.
    let plan: Arc<[Join]> = std::mem::take(&mut config.joins).into();
    let control = Arc::new(Control::new(wakers.clone(), planned));
    let dialer = Arc::new(dialer(&config)?);
    let clock = RunClock { start: Instant::now() + config.lead };
    let unix = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default() + config.lead;
    let live = Arc::new(Mutex::new(LiveSnapshot { ends_at: config.ends_at, ..LiveSnapshot::default() }));
    let (seen, collected) = mpsc::sync_channel(BATCHES_MAX);
    let mut handle = RunHandle {
        clock,
        started_at_unix_us: i64::try_from(unix.as_micros()).unwrap_or(i64::MAX),
        ends_at: config.ends_at,
        live: Arc::clone(&live),
        control: Arc::clone(&control),
        collector: None,
        threads: Vec::new(),
    };
    let collector = Collector::new(CollectorConfig {
        clock,
        ends_at: config.ends_at,
        cohorts: config.cohorts,
        plan: Arc::clone(&plan),
        worst: config.live_participants,
        guards: config.guards,
        bad_if: config.bad_if,
        control: Arc::clone(&control),
        live,
        rows,
    });
    handle.collector = Some(spawn("collector", move || collector.run(&collected))?);
    for (number, waker) in wakers.into_iter().enumerate() {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(4).build()?;
        let (signalling, inbox) = SignallingChannels::new(Arc::clone(&dialer), config.body_bytes_max);
        let io = IoContextConfig {
            thread: u16::try_from(number).unwrap_or(u16::MAX),
            reach: Arc::clone(&config.reach),
            receive_buffer_bytes: config.receive_buffer_bytes,
            grace: config.grace,
            waker,
            signalling,
            collector: CollectorSender::new(seen.clone()),
            tap: config.tap.clone().map(TapSender::new),
        };
        let config = EventLoopConfig {
            clock,
            tick: config.tick,
            number,
            is_open: config.added_participants_max > 0,
            ends_at: clock.instant(config.ends_at),
            joins: JoinQueue::new(Arc::clone(&plan), number, threads),
            factory: Arc::clone(&factory),
            control: Arc::clone(&control),
            inbox,
        };
        let io = {
            let _on_it = runtime.enter();
            IoContext::new(io)?
        };
        handle.threads.push(spawn(&format!("engine-{number}"), move || {
            runtime.block_on(EventLoop::new(config, io).run());
            runtime.shutdown_timeout(BLOCKED_MAX);
        })?);
    }
    for asked in config.consents {
        let (ends_at, control) = (clock.instant(config.ends_at), Arc::clone(&control));
        spawn("consent", move || consent::watch(&asked, ends_at, &control))?;
    }
    Ok(handle)
}

/// How long a look-up of a name that is under way may hold the end of a run.
const BLOCKED_MAX: Duration = Duration::from_millis(200);

fn spawn<T: Send + 'static>(
    name: &str,
    act: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.into()).spawn(act)
}

fn check(config: &RunConfig) -> Result<(), EngineError> {
    let plan = |why: &str| Err(EngineError::Plan(why.into()));
    if !config.joins.is_sorted_by_key(|join| join.at) {
        return plan("joins must be in order of time");
    }
    if config.joins.iter().any(|join| join.cohort.0 >= config.cohorts) {
        return plan("a join is of a cohort that the run does not have");
    }
    if config.threads == Some(0) || config.threads.is_some_and(|threads| threads > 1024) {
        return plan("there must be between 1 and 1024 threads");
    }
    if !(Duration::from_millis(1)..=Duration::from_millis(10)).contains(&config.tick) {
        return plan("the tick must be between 1 and 10 ms");
    }
    Ok(())
}

/// A thread serves some two hundred participants before a second thread is worth its own ticks.
const PARTICIPANTS_PER_THREAD_MIN: usize = 200;

fn threads(config: &RunConfig) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let most = config.joins.len().saturating_add(config.added_participants_max as usize);
    config.threads.unwrap_or_else(|| most.div_ceil(PARTICIPANTS_PER_THREAD_MIN).clamp(1, cores))
}

pub(crate) fn dialer(config: &RunConfig) -> Result<Dialer, EngineError> {
    // A WebSocket upgrade is HTTP/1.1 (RFC 6455 section 4.1).
    let tls = tls_config(&config.tls, &[b"http/1.1"]).map_err(EngineError::Tls)?;
    let mut tls_http = tls.clone();
    tls_http.alpn_protocols.insert(0, b"h2".to_vec());
    Ok(Dialer {
        names: DnsCache::default(),
        reach: Arc::clone(&config.reach),
        tls: Arc::new(tls),
        tls_http: Arc::new(tls_http),
        timeout: config.connect_timeout,
    })
}

impl RunHandle {
    /// RunTime 0 on the monotonic clock.
    #[must_use]
    pub fn started_at(&self) -> Instant {
        self.clock.start
    }

    /// RunTime 0 on the wall clock, microseconds since the Unix epoch.
    #[must_use]
    pub fn started_at_unix_us(&self) -> i64 {
        self.started_at_unix_us
    }

    /// The moment of the run that it is now.
    #[must_use]
    pub fn now(&self) -> RunTime {
        self.clock.run_time(Instant::now())
    }

    /// When everybody is told to leave, if nothing ends the run before.
    #[must_use]
    pub fn ends_at(&self) -> RunTime {
        self.ends_at
    }

    /// Whether the run was ended early.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.control.stopped().is_some()
    }

    /// The latest picture of the run.
    #[must_use]
    pub fn live(&self) -> LiveSnapshot {
        self.live.lock().map(|live| live.clone()).unwrap_or_default()
    }

    /// Calls somebody to a run whose [`RunConfig::added_participants_max`] allows it, and tells who it will be. `at` may be now or
    /// soon; latencies count from it.
    pub fn add_participant(&self, visit: NewParticipant) -> ParticipantId {
        let NewParticipant { cohort, place, at, source_ip } = visit;
        let join = |id| Join {
            participant: ParticipantId(id),
            cohort,
            place,
            at,
            leave_at: None,
            others_follow: false,
            source_ip,
        };
        let (id, thread) = self.control.crowd.add(join);
        self.control.wake(thread);
        ParticipantId(id)
    }

    /// Tells somebody to leave. From this moment on it is nobody who should be served.
    pub fn remove_participant(&self, participant: ParticipantId) {
        let thread = self.control.crowd.remove(participant.0);
        self.control.wake(thread);
    }

    /// Ends the run early in an orderly way: no more joins, everybody leaves.
    pub fn stop(&self) {
        self.control.stop(Ending::Interrupted, "stopped");
    }

    /// Ends the run because something forbids it to go on.
    pub fn abort(&self, why: &str) {
        self.control.stop(Ending::Aborted, why);
    }

    /// Whether all participants are gone and all rows are sent.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.collector.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end.
    #[must_use]
    pub fn wait(mut self) -> RunEnd {
        let end = self.collector.take().map(JoinHandle::join);
        let mut died = Vec::new();
        for thread in self.threads.drain(..) {
            let name = thread.thread().name().unwrap_or("a thread").to_owned();
            if thread.join().is_err() {
                died.push(name);
            }
        }
        let mut end = match end {
            Some(Ok(end)) => end,
            _ => {
                died.push("collector".into());
                RunEnd {
                    ending: Ending::Aborted,
                    why: None,
                    ended_at: self.clock.run_time(Instant::now()),
                    limited_seconds: 0,
                }
            }
        };
        if !died.is_empty() {
            end.ending = Ending::Aborted;
            end.why = Some(format!("a fault of the generator: {} died", died.join(", ")));
        }
        end
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        self.stop();
    }
}
