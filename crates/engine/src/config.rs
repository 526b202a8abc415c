//! The configuration of a run: joins, the participant factory, limits, and which addresses may be
//! reached.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use throng_observation::run::{CohortId, ParticipantId};
use throng_observation::{BadIf, RunTime};
use throng_protocol::participant::Participant;
pub use throng_scenario::MayReach as Reach;
use throng_scenario::Secret;

use crate::consent_lost::ConsentLost;
use crate::tap::Tap;

/// Participants below which a second thread is not worth its own ticks.
const PARTICIPANTS_PER_THREAD_MIN: usize = 200;

/// Checks a consent; every error, an answer that is missing too, aborts the run with its text.
pub type ConsentCheck = Arc<dyn Fn() -> Result<(), ConsentLost> + Send + Sync>;

/// A consent that must hold throughout the run. Each is checked on a thread of its own, so that a
/// slow one does not delay another.
#[derive(Clone)]
pub struct Consent {
    /// The check.
    pub check: ConsentCheck,
    /// Interval between checks; up to 0.2 s longer.
    pub interval: Duration,
}

/// One join of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The participant, numbered in the order of intended joins; with gaps where other machines
    /// play the rest of the crowd.
    pub participant: ParticipantId,
    /// Its cohort.
    pub cohort: CohortId,
    /// Index within the cohort, from 0; a participant that replaces another has the same index.
    pub place: u32,
    /// The intended time of the join.
    pub at: RunTime,
    /// When it is asked to leave; `None`: at the end of the run.
    pub leave_at: Option<RunTime>,
    /// Whether others may still be joining the same room at `leave_at`, so that the room must not
    /// be destroyed then.
    pub others_follow: bool,
    /// Local address for signalling and media to servers of the same family; `None`: the route's
    /// choice.
    pub source_ip: Option<IpAddr>,
}

/// A participant to be added to a run in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewParticipant {
    /// Its number in a crowd that several machines play; `None`: the next of this engine.
    pub participant: Option<ParticipantId>,
    /// Its cohort.
    pub cohort: CohortId,
    /// As [`Join::place`].
    pub place: u32,
    /// The intended time of the join; not before that of a participant added earlier.
    pub at: RunTime,
    /// As [`Join::source_ip`].
    pub source_ip: Option<IpAddr>,
}

/// Makes the participants of a run: the engine does not know protocols and their configuration.
pub trait ParticipantFactory: Send + Sync {
    /// Makes the participant of `join`, on the thread that will own it, shortly before its join.
    fn participant(&self, join: &Join) -> Box<dyn Participant>;
}

impl<F> ParticipantFactory for F
where
    F: Fn(&Join) -> Box<dyn Participant> + Send + Sync,
{
    fn participant(&self, join: &Join) -> Box<dyn Participant> {
        self(join)
    }
}

/// Which TLS certificates of servers are accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Accept any certificate.
    pub insecure: bool,
    /// Certificates (PEM) that are trusted in addition to the system's.
    pub extra_ca_pem: Option<Vec<u8>>,
}

/// Limits that abort a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guards {
    /// Abort when more than this share of joins failed …
    pub connect_failure_ratio_max: f64,
    /// … over this window …
    pub connect_failure_window: Duration,
    /// … and at least this many joins were decided in it.
    pub connect_attempts_min: u32,
    /// Abort when this share of the machine's (or control group's) memory is in use by this
    /// process.
    pub memory_ratio_max: f64,
    /// Abort when received and sent bits on the wire exceed this together, Mbit/s …
    pub mbit_per_s_max: Option<f64>,
    /// … in each of this many seconds in a row.
    pub mbit_per_s_seconds: u32,
}

impl Default for Guards {
    /// 90 % of at least 20 joins in 10 s; 80 % of memory; any rate.
    fn default() -> Self {
        Self {
            connect_failure_ratio_max: 0.9,
            connect_failure_window: Duration::from_secs(10),
            connect_attempts_min: 20,
            memory_ratio_max: throng_observation::limits::MEMORY_RATIO_MAX,
            mbit_per_s_max: None,
            mbit_per_s_seconds: 3,
        }
    }
}

/// Why a run could not start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A thread, an epoll set or an eventfd could not be made.
    #[error("cannot start: {0}")]
    Io(#[from] std::io::Error),
    /// Datagrams were to be received by rings, and cannot be.
    #[error("no receive ring: {0}")]
    Receive(String),
    /// The certificates could not be used.
    #[error("TLS: {0}")]
    Tls(String),
    /// The plan contradicts itself.
    #[error("plan: {0}")]
    Plan(String),
}

/// How datagrams of playing participants are received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Receive {
    /// By memory-mapped rings where this host allows it and they agree with the sockets.
    #[default]
    Auto,
    /// The same, and the run does not start without the right to it.
    Ring,
    /// By sockets.
    Sockets,
}

/// Configuration of a run, without its [`ParticipantFactory`].
#[derive(Clone)]
pub struct RunConfig {
    /// The joins, in order of time.
    pub joins: Vec<Join>,
    /// When all participants are asked to leave.
    pub ends_at: RunTime,
    /// Number of cohorts.
    pub cohorts: u16,
    /// Threads that drive participants; `None`: by the crowd's size and the machine's cores.
    pub threads: Option<usize>,
    /// How long received datagrams may gather in socket buffers, 1–10 ms. Participants without
    /// media so far are served at once.
    pub tick: Duration,
    /// Which TLS certificates are accepted.
    pub tls: TlsOptions,
    /// Which ports of which addresses participants may send to.
    pub reach: Reach,
    /// Host names whose addresses were judged before the run: they are not resolved again, so that
    /// their owners cannot point the crowd elsewhere meanwhile.
    pub names: Vec<(String, Vec<IpAddr>)>,
    /// Consents that must hold during the run, if the target needs any.
    pub consents: Vec<Consent>,
    /// Time from [`crate::run`] to RunTime 0, in which threads start.
    pub lead: Duration,
    /// How long participants may take to leave.
    pub grace: Duration,
    /// Time limit for name resolution, TCP and TLS together.
    pub connect_timeout: Duration,
    /// Receive buffer requested for each datagram socket, bytes; it takes memory only while packets
    /// wait. Without CAP_NET_ADMIN the kernel gives net.core.rmem_max at most.
    pub receive_buffer_bytes: usize,
    /// How datagrams of playing participants are received.
    pub receive: Receive,
    /// Memory of a receive ring, bytes; `None`: by the number of participants, and more when more
    /// arrives.
    pub ring_bytes: Option<usize>,
    /// Longest response body, bytes; a longer one is an error.
    pub body_bytes_max: usize,
    /// Number of worst participants in [`crate::LiveSnapshot`].
    pub live_participants: usize,
    /// When the run aborts itself.
    pub guards: Guards,
    /// When a second is bad for a participant.
    pub bad_if: BadIf,
    /// How many participants may be added to [`Self::joins`]. If any, the run lasts until `ends_at`
    /// or until it is stopped, even without participants.
    pub added_participants_max: u32,
    /// The tap for frames of tapped participants.
    pub tap: Option<Arc<Tap>>,
    /// Its number among the workers of a fleet, from 0: each begins with another address of a name.
    pub worker: u16,
    /// What participants tell servers and nobody else: where a server repeats one of these, it is
    /// not in what is told of the server's words.
    pub secrets: Vec<Secret>,
}

impl RunConfig {
    /// A run of `joins` until `ends_at` that may reach what `reach` allows; all other values are
    /// defaults.
    #[must_use]
    pub fn new(joins: Vec<Join>, ends_at: RunTime, reach: Reach) -> Self {
        let cohorts = joins.iter().map(|join| join.cohort.0 + 1).max().unwrap_or(1);
        Self {
            joins,
            ends_at,
            cohorts,
            threads: None,
            tick: Duration::from_millis(5),
            tls: TlsOptions::default(),
            reach,
            names: Vec::new(),
            consents: Vec::new(),
            lead: Duration::from_millis(200),
            grace: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(10),
            // Some seconds of video: a server that stalled sends that much at once.
            receive_buffer_bytes: 4 << 20,
            receive: Receive::default(),
            ring_bytes: None,
            body_bytes_max: 1 << 20,
            live_participants: 10,
            guards: Guards::default(),
            bad_if: BadIf::default(),
            added_participants_max: 0,
            tap: None,
            worker: 0,
            secrets: Vec::new(),
        }
    }

    /// Checks that do not depend on the machine.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let plan = |why: &str| Err(EngineError::Plan(why.into()));
        if !self.joins.is_sorted_by_key(|join| join.at) {
            return plan("joins must be in order of time");
        }
        if self.joins.iter().any(|join| join.cohort.0 >= self.cohorts) {
            return plan("a join is of a cohort that the run does not have");
        }
        if self.threads.is_some_and(|threads| !(1..=1024).contains(&threads)) {
            return plan("there must be between 1 and 1024 threads");
        }
        if !(Duration::from_millis(1)..=Duration::from_millis(10)).contains(&self.tick) {
            return plan("the tick must be between 1 and 10 ms");
        }
        Ok(())
    }

    /// How many participants there may be at most.
    pub(crate) fn participants_max(&self) -> usize {
        self.joins.len().saturating_add(self.added_participants_max as usize)
    }

    /// How many threads drive participants.
    pub(crate) fn thread_count(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let most = self.participants_max();
        self.threads.unwrap_or_else(|| most.div_ceil(PARTICIPANTS_PER_THREAD_MIN).clamp(1, cores))
    }
}
