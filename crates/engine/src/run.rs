//! Starts a run, and the handle that controls and watches it.

use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use throng_net::Waker;
use throng_observation::run::{Ending, ParticipantId, Row};
use throng_observation::{RunTime, Unloaded};

use crate::clock::RunClock;
use crate::collector::{Collector, CollectorConfig};
use crate::config::{EngineError, Join, NewParticipant, ParticipantFactory, Receive, RunConfig};
use crate::consent;
use crate::control::{Control, RunEnd};
use crate::driver::{
    BATCHES_MAX, CollectorSender, DriverEvent, EventLoop, EventLoopConfig, IoContext,
    IoContextConfig, JoinQueue, install_panic_hook,
};
use crate::live::LiveSnapshot;
use crate::memory;
use crate::signalling::SignallingChannels;
use crate::sockets::{self, Dialer, LocalPorts, ReceiveConfig};
use crate::tap::TapSender;

/// Control handle of a run. Dropping it stops the run.
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

/// Starts a run; its rows go to `rows`, whose sender is dropped at the end of the run.
///
/// # Errors
/// If a thread or descriptor cannot be created, or the plan contradicts itself.
#[expect(
    clippy::needless_pass_by_value,
    reason = "a caller makes the factory for this run, and keeps none"
)]
pub fn run(
    mut config: RunConfig,
    factory: Arc<dyn ParticipantFactory>,
    rows: SyncSender<Row>,
) -> Result<RunHandle, EngineError> {
    config.check()?;
    let (threads, participants) = (config.thread_count(), config.participants_max());
    if config.receive == Receive::Ring {
        sockets::may_open_ring()?;
    }
    memory::share_arenas(threads);
    install_panic_hook();
    let wakers = (0..threads).map(|_| Waker::new().map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
    let planned = u32::try_from(config.joins.len()).unwrap_or(u32::MAX);
    // A day of joins and leaves is some hundred thousand joins: all threads share one plan.
    let plan: Arc<[Join]> = std::mem::take(&mut config.joins).into();
    let control = Arc::new(Control::new(wakers.clone(), planned));
    let clock = RunClock { start: Instant::now() + config.lead };
    let unix = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default() + config.lead;
    let live =
        Arc::new(Mutex::new(LiveSnapshot { ends_at: config.ends_at, ..LiveSnapshot::default() }));
    let (events, collected) = mpsc::sync_channel(BATCHES_MAX);
    let mut handle = RunHandle {
        clock,
        started_at_unix_us: i64::try_from(unix.as_micros()).unwrap_or(i64::MAX),
        ends_at: config.ends_at,
        live: Arc::clone(&live),
        control: Arc::clone(&control),
        collector: None,
        threads: Vec::new(),
    };
    let dialer = Arc::new(Dialer::new(&config)?);
    let collector = Collector::new(CollectorConfig {
        addresses: Arc::clone(&dialer.chosen),
        clock,
        ends_at: config.ends_at,
        cohorts: config.cohorts,
        plan: Arc::clone(&plan),
        worst: config.live_participants,
        guards: config.guards,
        bad_if: config.bad_if,
        secrets: std::mem::take(&mut config.secrets),
        control: Arc::clone(&control),
        live,
        rows,
    });
    handle.collector = Some(spawn("collector", move || collector.run(&collected))?);
    handle.spawn_event_loops(
        &config,
        participants.div_ceil(threads),
        &plan,
        wakers,
        (&factory, &dialer),
        &events,
    )?;
    for asked in config.consents {
        let (ends_at, control) = (clock.instant(config.ends_at), Arc::clone(&control));
        spawn("consent", move || consent::watch(&asked, ends_at, &control))?;
    }
    Ok(handle)
}

/// How long a name lookup in progress may delay the end of a run.
const BLOCKED_MAX: Duration = Duration::from_millis(200);

fn spawn<T: Send + 'static>(
    name: &str,
    act: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.into()).spawn(act)
}

impl RunHandle {
    /// Spawns a thread with an event loop for each of `wakers`, for so many `participants` each.
    fn spawn_event_loops(
        &mut self,
        config: &RunConfig,
        participants: usize,
        plan: &Arc<[Join]>,
        wakers: Vec<Arc<Waker>>,
        (factory, dialer): (&Arc<dyn ParticipantFactory>, &Arc<Dialer>),
        events: &SyncSender<Vec<DriverEvent>>,
    ) -> Result<(), EngineError> {
        let threads = wakers.len();
        for (number, waker) in wakers.into_iter().enumerate() {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .max_blocking_threads(4)
                .build()?;
            let (signalling, inbox) =
                SignallingChannels::new(Arc::clone(dialer), config.body_bytes_max);
            let io = IoContextConfig {
                thread: u16::try_from(number).unwrap_or(u16::MAX),
                reach: Arc::clone(&config.reach),
                receive_buffer_bytes: config.receive_buffer_bytes,
                receive: ReceiveConfig {
                    receive: config.receive,
                    ports: LocalPorts::of_thread(number, threads, participants, std::process::id()),
                    // Those of a search come one by one: its ring grows with them.
                    planned: plan.len().div_ceil(threads),
                    threads,
                    ring_bytes: config.ring_bytes,
                },
                grace: config.grace,
                waker,
                signalling,
                collector: CollectorSender::new(events.clone()),
                tap: config.tap.clone().map(TapSender::new),
            };
            let event_loop = EventLoopConfig {
                clock: self.clock,
                tick: config.tick,
                number,
                is_open: config.added_participants_max > 0,
                ends_at: self.clock.instant(config.ends_at),
                joins: JoinQueue::new(Arc::clone(plan), number, threads),
                factory: Arc::clone(factory),
                control: Arc::clone(&self.control),
                inbox,
            };
            let io = {
                let _entered = runtime.enter();
                IoContext::new(io)?
            };
            self.threads.push(spawn(&format!("engine-{number}"), move || {
                runtime.block_on(EventLoop::new(event_loop, io).run());
                runtime.shutdown_timeout(BLOCKED_MAX);
            })?);
        }
        Ok(())
    }

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

    /// The current time of the run.
    #[must_use]
    pub fn now(&self) -> RunTime {
        self.clock.run_time(Instant::now())
    }

    /// When all participants are asked to leave, if nothing ends the run before.
    #[must_use]
    pub fn ends_at(&self) -> RunTime {
        self.ends_at
    }

    /// Whether the run was ended early.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.control.stopped().is_some()
    }

    /// The latest snapshot of the run.
    #[must_use]
    pub fn live(&self) -> LiveSnapshot {
        self.live.lock().map(|live| live.clone()).unwrap_or_default()
    }

    /// Adds a participant to a run whose [`RunConfig::added_participants_max`] allows it, and
    /// returns its id for [`Self::remove_participant`]. `at` may be now or soon; latencies count
    /// from it.
    pub fn add_participant(&self, visit: NewParticipant) -> ParticipantId {
        let NewParticipant { participant, cohort, place, at, source_ip } = visit;
        let join = |id| Join {
            participant: participant.unwrap_or(ParticipantId(id)),
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

    /// Asks a participant to leave. From now on it does not count among those that should be
    /// served.
    pub fn remove_participant(&self, participant: ParticipantId) {
        let thread = self.control.crowd.remove(participant.0);
        self.control.wake(thread);
    }

    /// From now on users are judged beyond what they see without load; only the first call has an
    /// effect.
    pub fn judge_beyond(&self, unloaded: Unloaded) {
        self.control.judge_beyond(unloaded);
    }

    /// Ends the run early in an orderly way: no more joins, all participants leave.
    pub fn stop(&self) {
        self.stop_because("stopped");
    }

    /// The same with its reason.
    pub fn stop_because(&self, why: &str) {
        self.control.stop(Ending::Interrupted, why);
    }

    /// Aborts the run, for example because consent was withdrawn.
    pub fn abort(&self, why: &str) {
        self.control.stop(Ending::Aborted, why);
    }

    /// Whether all participants have ended and all rows are sent.
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
