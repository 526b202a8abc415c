//! One pass of one transport: its roles are started, measured and ended.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::child::{Child, WaitError};
use crate::cpu_profile::Sampling;
use crate::result::Sides;
use crate::role::{RoleCommand, RoleKind, Task, now_ns, slots};
use crate::transport::{self, End, Side};
use crate::{FRAME_BYTES_MIN, Launcher, Plan, Transport};

/// How long a role may take to open its side: Python and GStreamer load many files, on a machine
/// that may be busy.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// How long frames that are still in a transport may take to arrive after its time is over.
const DRAIN_LIMIT: Duration = Duration::from_secs(20);
/// How long a role may take to close.
const END_LIMIT: Duration = Duration::from_secs(3);
/// Delay of the common start after the last role is ready.
const START_AFTER_NS: u64 = 20_000_000;
/// The warm-up: page tables, caches, pools and the ring's first laps.
const WARM_UP: Duration = Duration::from_millis(500);
/// Fewest frames of a warm-up, at a low rate.
const WARM_UP_FRAMES: f64 = 5.0;
const WARM_UP_MAX: Duration = Duration::from_secs(5);

const PYTHON_CONSUMER: &str = include_str!("../role/consumer.py");

/// Runs the roles of `transport` for `measured`.
pub(super) fn run(
    plan: &Plan,
    launcher: &Launcher,
    transport: Transport,
    python: Option<&PathBuf>,
    measured: Duration,
    inspect: bool,
    stop: &dyn Fn() -> bool,
) -> Result<Sides, WaitError> {
    let producers = plan.workload.producers;
    let mut wiring = transport::wire(transport, producers)?;
    let cast = RoleSpawner { plan, launcher, transport, python, measured, inspect };
    let limit = measured + WARM_UP_MAX + DRAIN_LIMIT;
    if transport.is_baseline() {
        let mut floor = cast.start(RoleKind::Baseline, 0, Vec::new())?;
        floor.ready(READY_LIMIT, stop)?;
        floor.order(&RoleCommand::Go { start_ns: now_ns() + START_AFTER_NS })?;
        let sampling = cast.sample(&[&floor]);
        let consumer = floor.done(limit, stop)?;
        let spent = sampling.map(Sampling::spent);
        floor.end(END_LIMIT);
        return Ok(Sides { producers: Vec::new(), consumer, spent });
    }
    let mut consumer = cast.start(RoleKind::Consumer, 0, wiring.consumer.clone())?;
    let address = consumer.ready(READY_LIMIT, stop)?;
    let mut senders = Vec::new();
    for (producer, mut end) in (0..).zip(wiring.producers.clone()) {
        end.address = end.address.or_else(|| address.clone());
        senders.push(cast.start(RoleKind::Producer, producer, vec![end])?);
    }
    // A copy that this process kept open would keep a pipe from ending when its producer dies.
    wiring.fds.clear();
    for sender in &mut senders {
        sender.ready(READY_LIMIT, stop)?;
    }
    let go = RoleCommand::Go { start_ns: now_ns() + START_AFTER_NS };
    for sender in &mut senders {
        sender.order(&go)?;
    }
    let sampling = cast.sample(&senders.iter().chain([&consumer]).collect::<Vec<_>>());
    let mut pass = wait(&mut consumer, &mut senders, limit, stop)?;
    // While the roles still run, since symbols are read from their processes.
    pass.spent = sampling.map(Sampling::spent);
    // Consumers first: a producer that closes while its frames are in use would invalidate them.
    consumer.end(END_LIMIT);
    for sender in &mut senders {
        sender.end(END_LIMIT);
    }
    Ok(pass)
}

/// Waits for all roles; if the consumer fails, its error is returned and not the producers'
/// timeouts.
fn wait(
    consumer: &mut Child,
    senders: &mut [Child],
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Sides, WaitError> {
    let report = consumer.done(limit, stop);
    let mut producers = Vec::new();
    for sender in senders {
        // When the consumer is done, the producers have been done for longer.
        let limit = if report.is_ok() { DRAIN_LIMIT } else { Duration::from_millis(200) };
        match (sender.done(limit, stop), &report) {
            (Ok(done), _) => producers.push(done),
            (Err(ended), Ok(_)) => return Err(ended),
            (Err(_), Err(_)) => {}
        }
    }
    report.map(|consumer| Sides { producers, consumer, spent: None })
}

struct RoleSpawner<'a> {
    plan: &'a Plan,
    launcher: &'a Launcher,
    transport: Transport,
    python: Option<&'a PathBuf>,
    measured: Duration,
    inspect: bool,
}

impl RoleSpawner<'_> {
    /// Starts the CPU profile once the warm-up is over; none in a measured pass.
    fn sample(&self, roles: &[&Child]) -> Option<Sampling> {
        if !self.inspect {
            return None;
        }
        std::thread::sleep(Duration::from_nanos(START_AFTER_NS) + self.warm_up());
        Some(Sampling::start(
            self.transport,
            &roles.iter().map(|role| role.pid()).collect::<Vec<_>>(),
        ))
    }

    fn warm_up(&self) -> Duration {
        let warm_up = self.plan.workload.fps.map_or(0.0, |fps| WARM_UP_FRAMES / fps);
        Duration::try_from_secs_f64(warm_up).unwrap_or(WARM_UP_MAX).clamp(WARM_UP, WARM_UP_MAX)
    }

    fn start(&self, part: RoleKind, producer: u8, ends: Vec<End>) -> Result<Child, WaitError> {
        let workload = &self.plan.workload;
        let frame_bytes_max = workload.sizes.max_bytes() as usize;
        let smallest =
            if workload.sizes.distinct() == 1 { frame_bytes_max } else { FRAME_BYTES_MIN as usize };
        let fds = ends.iter().filter_map(|end| end.fd).collect();
        let task = Task {
            part,
            side: Side {
                transport: self.transport,
                ends,
                producers: workload.producers,
                producer,
                frame_bytes_max,
                slots: slots(self.transport, frame_bytes_max, smallest),
            },
            sizes: workload.sizes.clone(),
            fps: workload.fps,
            reading: self.plan.reading,
            warm_up_ns: self.warm_up().as_nanos() as u64,
            measured_ns: self.measured.as_nanos() as u64,
            inspect: self.inspect,
        };
        let python =
            self.python.filter(|_| part == RoleKind::Consumer && self.transport.is_python());
        let command = match python {
            Some(python) => {
                let mut command = Command::new(python);
                command.args(["-c", PYTHON_CONSUMER]);
                command
            }
            None => {
                let mut command = Command::new(&self.launcher.program);
                command.args(&self.launcher.arguments);
                command
            }
        };
        let role = match part {
            RoleKind::Producer => format!("producer {producer}"),
            RoleKind::Consumer => "consumer".into(),
            RoleKind::Baseline => "process".into(),
        };
        let mut child = Child::start(command, role, fds, &task)?;
        if python.is_some() && self.inspect {
            child.count_system_calls();
        }
        Ok(child)
    }
}
