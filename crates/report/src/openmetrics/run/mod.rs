//! The figures of a run, from its rows.

mod glance;
mod kept;

pub use glance::Glance;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash as _, Hasher as _};

use throng_analysis::windows::SecondQuality;
use throng_observation::run::{
    CohortId, CrowdRow, EventRow, GeneratorRow, MARK_EVENT, ParticipantRow, Row, RunInfo, SentRow,
    SeriesRow,
};
use throng_observation::{
    ChatCounters, ChatRow, Clause, Counters, ExperienceRow, Goal, HoldOutcome, HoldRow,
    HttpRequestCounters, HttpRequestRow, IceState, LatencyBasis, MediaKind, Phase,
    PlaybackCounters, PlaybackRow, SecondClosed, SentCounters, TrackCounters, untrusted,
};

use super::bounded::{Bounded, OTHER};
use super::declared::{self, Declared};
use super::exposition::{Exposition, Labels, Value};
use super::family::{CHAT, Family, PLAYERS, REQUESTS, SENT, TRACKS};
use super::histogram::Buckets;
use kept::{ByFamily, Seen, Sums, add_sums};

/// Cohorts with series of their own; of further ones there is the sum.
const COHORTS_MAX: usize = 6;
/// Reasons of failures, and outcomes of requests, with series of their own: a server chooses them.
const OUTCOMES_MAX: usize = 20;

/// How long after its last row a process that plays the crowd counts, seconds: that of a lost
/// worker has ended.
const PROCESS_LASTS_S: i64 = 5;

/// The phases whose times are shown.
const JOIN_PHASES: [Phase; 5] = [
    Phase::DtlsConnected,
    Phase::Playing,
    Phase::FirstFrame,
    Phase::PlaybackStarted,
    Phase::Joined,
];

/// All figures of a run so far.
#[derive(Debug)]
pub(super) struct RunFigures {
    planned_us: i64,
    /// The label of each cohort.
    cohorts: Vec<String>,
    tracks: Sums<TrackCounters>,
    sent: Sums<SentCounters>,
    players: Sums<PlaybackCounters>,
    chat: Sums<ChatCounters>,
    requests: Sums<HttpRequestCounters>,
    /// The sums of each key, by its hash: a row has those of the run so far.
    of_requests: HashMap<u64, HttpRequestCounters>,
    outcomes: Bounded,
    reasons: Bounded,
    counts: ByFamily<f64>,
    times: ByFamily<Buckets>,
    /// What is of one second: that which is open, and the last that is whole.
    open: ByFamily<f64>,
    last: ByFamily<f64>,
    reached: BTreeMap<Phase, Seen>,
    failed: Seen,
    ended_holds: BTreeSet<u32>,
    /// The open second, and the last that is whole.
    open_glance: Glance,
    glance: Glance,
    /// The processes that play the crowd, by worker.
    processes: BTreeMap<u16, Process>,
}

/// What a process that plays the crowd has.
#[derive(Debug)]
struct Process {
    /// The second of the row that said so.
    second: i64,
    rss_bytes: f64,
    open_fds: f64,
}

impl RunFigures {
    pub(super) fn new(info: &RunInfo) -> Self {
        let mut names = Bounded::to(COHORTS_MAX);
        let cohorts = info.cohorts.iter().map(|name| names.label(untrusted::name(name).into()));
        let mut figures = Self {
            planned_us: info.planned_duration_us,
            cohorts: cohorts.collect(),
            tracks: Sums::new(),
            sent: Sums::new(),
            players: Sums::new(),
            chat: Sums::new(),
            requests: Sums::new(),
            of_requests: HashMap::new(),
            outcomes: Bounded::to(OUTCOMES_MAX),
            reasons: Bounded::to(OUTCOMES_MAX),
            counts: ByFamily::default(),
            times: ByFamily::default(),
            open: ByFamily::default(),
            last: ByFamily::default(),
            reached: BTreeMap::new(),
            failed: Seen::default(),
            ended_holds: BTreeSet::new(),
            open_glance: Glance::default(),
            glance: Glance::default(),
            processes: BTreeMap::new(),
        };
        // A healthy run says that it is one; the first mark is seen as one more than none.
        for declared in [&declared::GENERATOR_DROPS, &declared::GENERATOR_LIMITED, &declared::MARKS]
        {
            figures.counts.of(declared, Labels::new());
        }
        figures
    }

    /// The last second that is whole.
    pub(super) fn glance(&self) -> Glance {
        self.glance
    }

    pub(super) fn take(&mut self, row: &Row) {
        self.open_glance.take(row);
        match row {
            Row::Crowd(row) => self.crowd(row),
            Row::Series(row) => self.series(row),
            Row::Sent(row) => self.sent(row),
            Row::Playback(row) => self.playback(row),
            Row::Chat(row) => self.chat(row),
            Row::SecondClosed(row) => self.close(row),
            Row::Participant(row) => self.participant(row),
            Row::HttpRequests(row) => self.requests(row),
            Row::Generator(row) => self.generator(row),
            Row::Hold(row) => self.hold(row),
            Row::Event(row) => self.event(row),
            // Of single tracks and players, and of other moments, there are no series.
            Row::Track(_)
            | Row::Player(_)
            | Row::LayerSwitch(_)
            | Row::Canary(_)
            | Row::Host(_) => {}
        }
    }

    fn cohort(&self, id: CohortId) -> (&'static str, String) {
        let label = self.cohorts.get(usize::from(id.0)).map_or(OTHER, String::as_str);
        ("cohort", label.to_owned())
    }

    /// Adds people or tracks to a figure of the open second.
    fn gauge(&mut self, family: &Declared, labels: Labels, count: u32) {
        *self.open.of(family, labels) += f64::from(count);
    }

    fn crowd(&mut self, row: &CrowdRow) {
        let CrowdRow { intended, started, connected, playing, failed, left, ice, .. } = *row;
        let states = [
            ("intended", intended),
            ("started", started),
            ("connected", connected),
            ("playing", playing),
            ("failed", failed),
            ("left", left),
        ];
        let of_crowd = states.map(|(state, count)| (&declared::CROWD, state, count));
        let of_ice = IceState::ALL.into_iter().zip(ice);
        let of_ice = of_ice.map(|(state, count)| (&declared::CROWD_ICE, state.key(), count));
        for (family, state, count) in of_crowd.into_iter().chain(of_ice) {
            let labels = vec![self.cohort(row.cohort), ("state", state.to_owned())];
            self.gauge(family, labels, count);
        }
    }

    fn series(&mut self, row: &SeriesRow) {
        let kind = row.kind.map_or("", MediaKind::key);
        let labels = vec![self.cohort(row.cohort), ("kind", kind.to_owned())];
        let below = u32::try_from(row.tracks_below_source_fps).unwrap_or(u32::MAX);
        self.gauge(&declared::TRACKS, labels.clone(), row.tracks);
        self.gauge(&declared::TRACKS_BELOW_SOURCE, labels.clone(), below);
        self.times.of(&declared::TRACK_DELAY, labels.clone()).add(&row.relative_delay_us);
        *self.tracks.entry(labels).or_default() += row.counters;
    }

    fn sent(&mut self, row: &SentRow) {
        let labels = vec![self.cohort(row.cohort), ("kind", row.kind.key().to_owned())];
        self.gauge(&declared::SENT_TRACKS, labels.clone(), row.tracks);
        *self.sent.entry(labels).or_default() += row.counters;
    }

    fn playback(&mut self, row: &PlaybackRow) {
        let cohort = self.cohort(row.cohort);
        for (family, count) in [
            (&declared::PLAYERS, row.players),
            (&declared::PLAYERS_STALLED, row.stalled),
            (&declared::PLAYERS_STARTING, row.starting),
        ] {
            self.gauge(family, vec![cohort.clone()], count);
        }
        self.times.of(&declared::PLAYER_BUFFER, vec![cohort.clone()]).add(&row.buffer_us);
        for (basis, latency_us) in [
            (LatencyBasis::ProgramDateTime.key(), &row.latency_us),
            (LatencyBasis::PlaylistEdge.key(), &row.edge_latency_us),
            ("capture", &row.capture_latency_us),
        ] {
            if !latency_us.is_empty() {
                let labels = vec![cohort.clone(), ("basis", basis.to_owned())];
                self.times.of(&declared::PLAYER_LATENCY, labels).add(latency_us);
            }
        }
        *self.players.entry(vec![cohort]).or_default() += row.counters;
    }

    fn chat(&mut self, row: &ChatRow) {
        let labels = vec![self.cohort(row.cohort)];
        self.gauge(&declared::CHAT_MEMBERS, labels.clone(), row.members);
        self.gauge(&declared::CHAT_JOINED, labels.clone(), row.joined);
        self.times.of(&declared::CHAT_DELIVERY, labels.clone()).add(&row.delay_us);
        *self.chat.entry(labels).or_default() += row.counters;
    }

    fn participant(&mut self, row: &ParticipantRow) {
        let cohort = self.cohort(row.cohort);
        for phase in JOIN_PHASES {
            let Some(at) = row.reached.get(&phase) else { continue };
            if self.reached.entry(phase).or_default().is_new(row.participant) {
                let us = u64::try_from(at.0.saturating_sub(row.intended_at.0)).unwrap_or(0);
                let labels = vec![cohort.clone(), ("phase", phase.key().to_owned())];
                self.times.of(&declared::JOIN, labels).record(us);
            }
        }
        if let Some(reason) = row.failure()
            && self.failed.is_new(row.participant)
        {
            let labels = vec![cohort, ("reason", self.reasons.label(reason.key()))];
            *self.counts.of(&declared::FAILURES, labels) += 1.0;
        }
    }

    fn requests(&mut self, row: &HttpRequestRow) {
        let mut hasher = DefaultHasher::new();
        row.key.hash(&mut hasher);
        let before = self.of_requests.insert(hasher.finish(), row.counters).unwrap_or_default();
        let labels = vec![("outcome", self.outcomes.label(row.key.outcome.key()))];
        *self.requests.entry(labels).or_default() += row.counters.since(&before);
    }

    fn generator(&mut self, row: &GeneratorRow) {
        let own = Labels::new;
        let lag = self.open.of(&declared::GENERATOR_LAG, own());
        *lag = lag.max(row.lag_p99_us as f64 / 1e6);
        if row.thread.is_some() {
            let drops = row.socket_drops.saturating_add(row.send_drops);
            *self.counts.of(&declared::GENERATOR_DROPS, own()) += drops as f64;
            return;
        }
        *self.counts.of(&declared::GENERATOR_CPU, own()) += row.cpu_us as f64 / 1e6;
        let process = Process {
            second: row.second,
            rss_bytes: row.rss_bytes as f64,
            open_fds: row.open_fds as f64,
        };
        self.processes.insert(row.worker, process);
        let steal = self.open.of(&declared::GENERATOR_STEAL, own());
        *steal = steal.max(row.steal_ratio);
    }

    /// Adds up what the processes have: each once, whether its row was late or not.
    fn processes(&mut self, second: i64) {
        self.processes.retain(|_, of| second.saturating_sub(of.second) < PROCESS_LASTS_S);
        for Process { rss_bytes, open_fds, .. } in self.processes.values() {
            *self.last.of(&declared::GENERATOR_MEMORY, Labels::new()) += rss_bytes;
            *self.last.of(&declared::GENERATOR_FILES, Labels::new()) += open_fds;
        }
    }

    fn hold(&mut self, row: &HoldRow) {
        // From zero on, so that the first one that ends is seen as one more than none.
        for outcome in HoldOutcome::ALL {
            self.counts.of(&declared::SEARCH_HOLDS, of_outcome(outcome));
        }
        if row.until.is_some() && self.ended_holds.insert(row.number) {
            let labels = of_outcome(row.passed(Goal::Acceptable));
            *self.counts.of(&declared::SEARCH_HOLDS, labels) += 1.0;
        }
    }

    fn event(&mut self, row: &EventRow) {
        if row.kind == MARK_EVENT {
            *self.counts.of(&declared::MARKS, Labels::new()) += 1.0;
        }
    }

    fn close(&mut self, row: &SecondClosed) {
        self.last = std::mem::take(&mut self.open);
        self.glance = std::mem::take(&mut self.open_glance).of_second(row, self.planned_us);
        self.processes(row.second);
        *self.last.of(&declared::RUN_TIME, Labels::new()) = row.second.saturating_add(1) as f64;
        *self.last.of(&declared::RUN_PLANNED, Labels::new()) = self.planned_us as f64 / 1e6;
        let limited = f64::from(u8::from(row.is_generator_limited));
        *self.counts.of(&declared::GENERATOR_LIMITED, Labels::new()) += limited;
        row.experience.iter().for_each(|row| self.experience(row));
    }

    fn experience(&mut self, row: &ExperienceRow) {
        let labels = vec![self.cohort(row.cohort)];
        let bad = SecondQuality::from(row).bad_users();
        *self.counts.of(&declared::USER_SECONDS, labels.clone()) += f64::from(row.users);
        *self.counts.of(&declared::BAD_USER_SECONDS, labels) += bad.max(0.0);
        for (clause, count) in Clause::ALL.into_iter().zip(row.clauses) {
            let labels = vec![("clause", clause.key().to_owned())];
            *self.counts.of(&declared::BAD_BY_CLAUSE, labels) += f64::from(count);
        }
    }

    pub(super) fn add_to(&self, out: &mut Exposition) {
        for declared in declared::ALL {
            let numbers = self.last.get(declared).chain(self.counts.get(declared));
            let numbers = numbers.map(|(labels, number)| (labels.clone(), Value::Number(*number)));
            let times = self.times.get(declared);
            let times = times.map(|(labels, of)| (labels.clone(), Value::Histogram(of.clone())));
            out.add(Family::of(declared), numbers.chain(times));
        }
        add_sums(out, TRACKS, &self.tracks);
        add_sums(out, SENT, &self.sent);
        add_sums(out, PLAYERS, &self.players);
        add_sums(out, CHAT, &self.chat);
        add_sums(out, REQUESTS, &self.requests);
    }
}

/// What a hold came to, as a label.
fn of_outcome(outcome: HoldOutcome) -> Labels {
    let outcome = match outcome {
        HoldOutcome::Yes => "passed",
        HoldOutcome::No => "failed",
        HoldOutcome::Undecided => "undecided",
    };
    vec![("outcome", outcome.to_owned())]
}
