//! The plan of a scenario: every join with its intended time, and the resources that server and
//! generator need.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use throng_observation::run::{CohortId, ParticipantId};

use crate::arrival::{Arrival as _, Jitter, Ramp};
use crate::canary::Canary;
use crate::churn::Reconnect;
use crate::conversation::Conversation;
use crate::destination::Destination;
use crate::objective::Objective;
use crate::role::{CARD_BITS_PER_S, CARD_SIZES, Role};
use crate::room::RoomConfig;
use crate::run::{Caps, RunTimes, Stream};
use crate::scenario::{Cohort, Scenario};
use crate::share::Share;
use crate::tap::Tap;
use crate::target::{Endpoint, Part, Target};
use crate::watch::Watch;

/// The joins of a run and their expected load. Plans are deterministic: two plans of one scenario
/// are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The server under load.
    pub target: Target,
    /// Names of the cohorts by `CohortId`.
    pub cohorts: Vec<String>,
    /// The behaviour of the participants of each cohort in a conference, by `CohortId`.
    pub roles: Vec<Role>,
    /// The destination of each cohort, by `CohortId`.
    pub destinations: Vec<Destination>,
    /// The talkspurts; `None`: all participants speak all the time.
    pub conversation: Option<Conversation>,
    /// The room of a conference, if the run creates it.
    pub room: Option<RoomConfig>,
    /// The joins in the order of their times; in the whole plan, the participant's id is the index.
    pub joins: Vec<Join>,
    /// From the first intended join until all participants are asked to leave.
    pub duration: Duration,
    /// Time at the start that media metrics and their objectives exclude.
    pub warm_up: Duration,
    /// Interval of the plain-text summary.
    pub summary_every: Duration,
    /// The monitored processes; the index of a watch is its `HostId`.
    pub watch: Vec<Watch>,
    /// The participants whose received video is decoded.
    pub tap: Option<Tap>,
    /// Real browsers that join with the crowd.
    pub canary: Option<Canary>,
    /// The objectives of the run.
    pub objectives: Vec<Objective>,
    /// The limits in force, for the whole crowd.
    pub caps: Caps,
    /// The part of the crowd that this plan covers.
    pub share: Share,
    /// The load of this share on the server.
    pub expected: ExpectedLoad,
    /// The resources of the generator that this share needs.
    pub needs: Needs,
    /// One line per cohort of the file: size, arrival, stay.
    pub(crate) arrivals: Vec<String>,
    stream: Stream,
}

/// One participant's intended visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// Numbered in the order of joins over all cohorts. A participant that replaces another has a
    /// new number.
    pub participant: ParticipantId,
    /// Its cohort.
    pub cohort: CohortId,
    /// The number in the cohort, from 0; a participant that replaces another has the same one.
    pub place: u32,
    /// The intended time, from the start of the run.
    pub at: Duration,
    /// When to leave, from the start of the run; `None`: at its end.
    pub leave_at: Option<Duration>,
    /// Whether other participants of the same room, which stay longer, may still be joining at
    /// `leave_at`.
    pub others_follow: bool,
    /// The local address, if the cohort has a list.
    pub source_ip: Option<IpAddr>,
}

/// The peak load on the server. 1 Mbit/s is 10^6 bit/s on the wire, IP header included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExpectedLoad {
    /// Most participants at a time.
    pub users: u32,
    /// Most joins within one second.
    pub joins_per_s: u32,
    /// Into the server: published media, feedback and connectivity checks.
    pub server_in_mbit_per_s: f64,
    /// Out of the server: media with RTP, SRTP, UDP and IP overhead.
    pub server_out_mbit_per_s: f64,
    /// Whether a bit rate was assumed because `[stream]` has none.
    pub assumed: bool,
}

/// The limits that the generator's operating system must allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Most open files.
    pub file_descriptors: u64,
    /// Most local UDP ports (on one address, unless there are several).
    pub ports: u64,
}

/// Assumed video if `[stream]` has none, bits per second: a common 720p rendition.
const ASSUMED_VIDEO_BITS_PER_S: f64 = 1.5e6;
/// Assumed audio if `[stream]` has none, bits per second: Opus as browsers send it.
const ASSUMED_AUDIO_BITS_PER_S: f64 = 48e3;
/// The speech-like audio that throng sends, bits per second.
const SPEECH_BITS_PER_S: f64 = 29e3;
/// Headers around the payload of a packet: RTP 12, SRTP tag 10, UDP 8, IPv4 20 bytes.
const OVERHEAD_BYTES: f64 = 50.0;
/// RTP payload of a video packet, as servers cut them below a 1200-byte MTU.
const VIDEO_PAYLOAD_BYTES: f64 = 1150.0;
/// Audio packets a second at the usual 20 ms (RFC 7587 4.2).
const AUDIO_PACKETS_PER_S: f64 = 50.0;
/// Feedback of a viewer: ten transport-wide feedbacks a second of about 80 bytes, two receiver
/// reports of about 120, a STUN consent check each 5 s (RFC 7675) of about 130, all with their
/// headers.
const FEEDBACK_BITS_PER_S: f64 = (10.0 * 80.0 + 2.0 * 120.0 + 130.0 / 5.0) * 8.0;
/// Descriptors of the process itself: standard streams, run folder, epoll, event and timer
/// descriptors of the threads.
pub const OWN_DESCRIPTORS: u64 = 64;

impl Stream {
    /// Wire bits per second to one viewer, and whether any of it was assumed.
    pub(crate) fn wire_bits_per_s(&self) -> (f64, bool) {
        let video = self.video_bits_per_s.unwrap_or(ASSUMED_VIDEO_BITS_PER_S);
        let audio = self.audio_bits_per_s.unwrap_or(ASSUMED_AUDIO_BITS_PER_S);
        let audio_overhead =
            if audio > 0.0 { AUDIO_PACKETS_PER_S * OVERHEAD_BYTES * 8.0 } else { 0.0 };
        let wire = video * (1.0 + OVERHEAD_BYTES / VIDEO_PAYLOAD_BYTES) + audio + audio_overhead;
        (wire, self.video_bits_per_s.is_none() || self.audio_bits_per_s.is_none())
    }

    /// Wire bits per second of video or audio that a publisher sends, and whether they are assumed.
    fn sent_bits_per_s(&self, role: &Role, is_video: bool) -> (f64, bool) {
        let Some(publish) = &role.publish else { return (0.0, false) };
        if !is_video {
            let payload = self.audio_bits_per_s.unwrap_or(SPEECH_BITS_PER_S);
            let wire = payload + AUDIO_PACKETS_PER_S * OVERHEAD_BYTES * 8.0;
            return if publish.audio { (wire, false) } else { (0.0, false) };
        }
        let of_card = publish
            .video
            .as_ref()
            .and_then(|size| CARD_SIZES.iter().position(|known| known == size));
        let sizes = publish
            .simulcast
            .iter()
            .filter_map(|size| CARD_SIZES.iter().position(|known| known == size));
        let simulcast: f64 =
            sizes.filter_map(|at| CARD_BITS_PER_S.get(at)).map(|bits| f64::from(*bits)).sum();
        let card = of_card.and_then(|at| CARD_BITS_PER_S.get(at)).map(|bits| f64::from(*bits));
        let of_file = publish
            .video_file
            .as_ref()
            .map(|_| self.video_bits_per_s.unwrap_or(ASSUMED_VIDEO_BITS_PER_S));
        let payload = card.or(of_file).unwrap_or(simulcast);
        let assumed = card.is_none() && of_file.is_some() && self.video_bits_per_s.is_none();
        (payload * (1.0 + OVERHEAD_BYTES / VIDEO_PAYLOAD_BYTES), assumed)
    }

    /// Wire bits per second that a publisher sends; `None` where any of it is assumed.
    pub(crate) fn sent_bps(&self, role: &Role) -> Option<f64> {
        let [video, audio] = [true, false].map(|is_video| self.sent_bits_per_s(role, is_video));
        (!video.1 && !audio.1).then_some(video.0 + audio.0)
    }

    /// Mbit/s in and out of the server together for `users` viewers.
    pub(crate) fn mbit_per_s(&self, users: u64) -> f64 {
        (self.wire_bits_per_s().0 + FEEDBACK_BITS_PER_S) * users as f64 / 1e6
    }
}

impl Scenario {
    /// Every join of the scenario, and the expected load.
    #[must_use]
    pub fn plan(&self) -> Plan {
        Plan::of(self)
    }
}

impl Plan {
    /// The plan of a scenario, for the whole crowd.
    fn of(scenario: &Scenario) -> Self {
        let RunTimes { duration, warm_up, summary_every } = scenario.run;
        let mut joins: Vec<Join> = Vec::new();
        let (rooms, each) = (scenario.target.rooms, scenario.crowd.len());
        for (index, cohort) in scenario.crowd.iter().enumerate() {
            let of_room = |room: u32| {
                CohortId(u16::try_from(room as usize * each + index).unwrap_or(u16::MAX))
            };
            joins_of(cohort, (rooms, &of_room), duration, &mut joins);
        }
        let (cohorts, roles): (_, Vec<Role>) = scenario.cohorts().unzip();
        // A stable sort: simultaneous joins keep the order of the file.
        joins.sort_by_key(|join| join.at);
        for (number, join) in (0_u32..).zip(&mut joins) {
            join.participant = ParticipantId(number);
        }
        mark_followed(&roles, duration, &mut joins);
        let mut plan = Self {
            target: scenario.target.clone(),
            cohorts,
            roles,
            destinations: Destination::all_of(scenario),
            conversation: scenario.conversation,
            room: scenario.room.clone(),
            joins,
            duration,
            warm_up,
            summary_every,
            watch: scenario.watch.clone(),
            tap: scenario.tap.clone(),
            canary: scenario.canary.clone(),
            objectives: scenario.objectives.clone(),
            caps: scenario.caps.clone(),
            share: Share::ALL,
            expected: ExpectedLoad::default(),
            needs: Needs::default(),
            arrivals: scenario.crowd.iter().map(|cohort| cohort.describe(rooms)).collect(),
            stream: scenario.stream.clone(),
        };
        plan.add_up();
        plan
    }

    /// The part of this plan for one of several generators; ids and times stay those of the whole
    /// plan.
    #[must_use]
    pub fn share(&self, share: Share) -> Self {
        let mut part = self.clone();
        part.joins.retain(|join| share.holds(join.participant.0));
        part.share = share;
        part.add_up();
        part
    }

    /// The part of the plan that one machine of several plays: the participants that it `holds`, by
    /// their numbers. What there is one of (browsers, watched hosts) stays with the whole plan.
    #[must_use]
    pub fn part(&self, holds: impl Fn(u32) -> bool) -> Self {
        let mut part = Self { canary: None, watch: Vec::new(), ..self.clone() };
        part.joins.retain(|join| holds(join.participant.0));
        part.add_up();
        part
    }

    /// The endpoint of a browser: that of the participant with its number in the first cohort that
    /// receives media.
    #[must_use]
    pub fn endpoint_of_browser(&self, number: u32) -> Endpoint {
        let mut destinations = self.destinations.iter();
        destinations.find(|destination| destination.part().receives_media()).map_or_else(
            || self.target.endpoint.clone(),
            |destination| destination.endpoint(number, number.into()),
        )
    }

    fn add_up(&mut self) {
        // Browsers count as users; they join with the first share.
        let canaries = self
            .canary
            .as_ref()
            .filter(|_| self.share.holds(0))
            .map_or(0, |canary| canary.browsers);
        let users = users_at_a_time(&self.joins).saturating_add(u32::from(canaries));
        let (wire_bits_per_s, assumed) = self.stream.wire_bits_per_s();
        self.expected = ExpectedLoad {
            users,
            joins_per_s: joins_in_a_second(&self.joins),
            server_in_mbit_per_s: f64::from(users) * FEEDBACK_BITS_PER_S / 1e6,
            server_out_mbit_per_s: f64::from(users) * wire_bits_per_s / 1e6,
            assumed,
        };
        let is_publishing = |destination: &Destination| destination.part() == Part::Publish;
        if self.target.part() == Part::Confer {
            self.add_up_conference();
        } else if self.destinations.iter().any(is_publishing) {
            self.add_up_publishers();
        }
        let (descriptors_each, ports_each) = self.sockets_each();
        let users = u64::from(users);
        self.needs = Needs {
            file_descriptors: OWN_DESCRIPTORS + descriptors_each * users,
            ports: ports_each * users,
        };
    }
}

impl Plan {
    /// The number of users at a time, divided among the cohorts in proportion to their visits.
    pub(crate) fn users_by_cohort(&self) -> Vec<f64> {
        let mut visits = vec![0_u64; self.roles.len()];
        for join in &self.joins {
            if let Some(count) = visits.get_mut(usize::from(join.cohort.0)) {
                *count += 1;
            }
        }
        let part = f64::from(self.expected.users) / visits.iter().sum::<u64>().max(1) as f64;
        visits.into_iter().map(|count| count as f64 * part).collect()
    }

    /// Publishers send to the server and receive little more than reports; all others are viewers.
    fn add_up_publishers(&mut self) {
        let mut load = self.expected;
        let (wire_bits_per_s, assumed) = self.stream.wire_bits_per_s();
        (load.server_in_mbit_per_s, load.server_out_mbit_per_s, load.assumed) = (0.0, 0.0, false);
        for ((destination, role), users) in
            self.destinations.iter().zip(&self.roles).zip(self.users_by_cohort())
        {
            if destination.part() != Part::Publish {
                load.server_in_mbit_per_s += users * FEEDBACK_BITS_PER_S / 1e6;
                load.server_out_mbit_per_s += users * wire_bits_per_s / 1e6;
                load.assumed |= assumed;
                continue;
            }
            for is_video in [true, false] {
                let (bits_per_s, assumed) = self.stream.sent_bits_per_s(role, is_video);
                load.server_in_mbit_per_s += users * bits_per_s / 1e6;
                load.assumed |= assumed;
            }
            load.server_out_mbit_per_s += users * FEEDBACK_BITS_PER_S / 1e6;
        }
        self.expected = load;
    }

    /// In a conference, each stream goes to all others of the room that subscribe to it: N × b into
    /// the server, N × (N − 1) × b out of it.
    fn add_up_conference(&mut self) {
        let crowd: Vec<(&Role, f64)> = self.roles.iter().zip(self.users_by_cohort()).collect();
        let mut load = self.expected;
        (load.server_in_mbit_per_s, load.server_out_mbit_per_s, load.assumed) = (0.0, 0.0, false);
        let rooms = crowd.chunk_by(|(one, _), (other, _)| one.room == other.room);
        for (crowd, is_video) in rooms.flat_map(|room| [(room, true), (room, false)]) {
            let sent = |role: &Role| self.stream.sent_bits_per_s(role, is_video);
            let senders: f64 =
                crowd.iter().filter(|(role, _)| sent(role).0 > 0.0).map(|(_, n)| n).sum();
            let bits: f64 = crowd.iter().map(|(role, n)| sent(role).0 * n).sum();
            load.assumed |= crowd.iter().any(|(role, _)| sent(role).1);
            let received: f64 = crowd
                .iter()
                .map(|(role, n)| {
                    let others = senders - if sent(role).0 > 0.0 { 1.0 } else { 0.0 };
                    let whom = if is_video { role.subscribe.video } else { role.subscribe.audio };
                    whom.count_of(others.max(0.0).round() as u64) as f64 * n
                })
                .sum();
            load.server_in_mbit_per_s += bits / 1e6;
            load.server_out_mbit_per_s += bits / senders.max(1.0) * received / 1e6;
        }
        self.expected = load;
    }
}

/// The visits of one cohort, without ids: the first participants fill the first room.
fn joins_of(
    cohort: &Cohort,
    (rooms, of_room): (u32, &dyn Fn(u32) -> CohortId),
    duration: Duration,
    joins: &mut Vec<Join>,
) {
    let first = joins.len();
    let size = cohort.size.max(1);
    let arrivals = cohort.joins(cohort.size.saturating_mul(rooms), duration);
    for (member, arrives_at) in (0_u32..).zip(arrivals) {
        let cohort_id = of_room(member / size);
        let mut visit = |at: Duration, stay: Option<Duration>| {
            let leave_at =
                stay.and_then(|stay| at.checked_add(stay)).filter(|leave_at| *leave_at < duration);
            joins.push(Join {
                participant: ParticipantId(0),
                cohort: cohort_id,
                place: member % size,
                at,
                leave_at,
                others_follow: false,
                source_ip: None,
            });
            leave_at
        };
        let Some(stay) = &cohort.stay else {
            visit(arrives_at, None);
            continue;
        };
        let mut at = arrives_at;
        for time in stay.times(member) {
            match visit(at, Some(time)) {
                Some(left_at) if stay.rejoin => at = left_at,
                _ => break,
            }
        }
    }
    if let Some(reconnect) = cohort.reconnect {
        reconnect_at(reconnect, cohort.arrival.jitter(), duration, joins, first);
    }
    let addresses: u128 =
        cohort.source_ips.iter().map(crate::AddressRange::len).fold(0, u128::saturating_add);
    if let Some(own) = joins.get_mut(first..).filter(|_| addresses > 0) {
        own.sort_by_key(|join| join.at);
        for (index, join) in (0_u64..).zip(own) {
            join.source_ip = dealt(cohort, u128::from(index) % addresses);
        }
    }
}

/// Splits the visits from `first` on that last beyond the reconnect: they end there, and a second
/// visit follows each.
fn reconnect_at(
    reconnect: Reconnect,
    jitter: Option<Jitter>,
    duration: Duration,
    joins: &mut Vec<Join>,
    first: usize,
) {
    let is_there = |join: &&mut Join| {
        join.at < reconnect.at
            && join.leave_at.unwrap_or(duration) > reconnect.at.saturating_add(reconnect.within)
    };
    let mut back: Vec<Join> = Vec::new();
    for join in joins.iter_mut().skip(first).filter(is_there) {
        back.push(*join);
        join.leave_at = Some(reconnect.at);
    }
    let count = u32::try_from(back.len()).unwrap_or(u32::MAX);
    let ramp = Ramp { over: reconnect.within, jitter };
    for (join, offset) in back.iter_mut().zip(ramp.offsets(count)) {
        join.at = reconnect.at.saturating_add(offset);
    }
    joins.extend(back);
}

/// The longest time that a join may take.
const JOINING: Duration = Duration::from_secs(10);

/// Sets [`Join::others_follow`] of participants that leave before the end. `joins` are in the order
/// of their times.
fn mark_followed(roles: &[Role], duration: Duration, joins: &mut [Join]) {
    let room_of = |join: &Join| roles.get(usize::from(join.cohort.0)).map(|role| role.room);
    // For each room, in reverse order: from this join on, a participant stays until then.
    let mut stays: HashMap<_, Vec<(Duration, Duration)>> = HashMap::new();
    for join in joins.iter().rev() {
        let of_room = stays.entry(room_of(join)).or_default();
        let longest = of_room.last().map_or(Duration::ZERO, |(_, until)| *until);
        of_room.push((join.at, longest.max(join.leave_at.unwrap_or(duration))));
    }
    for join in joins {
        let Some(leave_at) = join.leave_at else { continue };
        let of_room = stays.get(&room_of(join)).map_or(&[][..], Vec::as_slice);
        let late = of_room.partition_point(|(at, _)| at.saturating_add(JOINING) > leave_at);
        let others = late.checked_sub(1).and_then(|last| of_room.get(last));
        join.others_follow = others.is_some_and(|(_, until)| *until > leave_at);
    }
}

/// Address number `index` of the cohort's concatenated ranges.
fn dealt(cohort: &Cohort, mut index: u128) -> Option<IpAddr> {
    for range in &cohort.source_ips {
        if index < range.len() {
            return u64::try_from(index).ok().map(|index| range.nth(index));
        }
        index -= range.len();
    }
    None
}

/// The largest number of participants at a time; a leave comes before a join at the same time.
fn users_at_a_time(joins: &[Join]) -> u32 {
    let mut leaving: BinaryHeap<Reverse<Duration>> = BinaryHeap::new();
    let (mut present, mut most) = (0_u32, 0_u32);
    for join in joins {
        while leaving.peek().is_some_and(|Reverse(at)| *at <= join.at) {
            leaving.pop();
            present -= 1;
        }
        present += 1;
        most = most.max(present);
        leaving.extend(join.leave_at.map(Reverse));
    }
    most
}

/// The largest number of joins in any `[t, t + 1 s)`.
fn joins_in_a_second(joins: &[Join]) -> u32 {
    let mut window: VecDeque<Duration> = VecDeque::new();
    let mut most = 0;
    for join in joins {
        while window.front().is_some_and(|at| *at + Duration::from_secs(1) <= join.at) {
            window.pop_front();
        }
        window.push_back(join.at);
        most = most.max(window.len());
    }
    u32::try_from(most).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(crowd: &str, duration: &str) -> Plan {
        let text = format!(
            "[target]\nurl = \"whep+http://127.0.0.1/x\"\n[run]\nduration = \"{duration}\"\n[stream]\nvideo = \"1Mbit/s\"\naudio = \"48kbit/s\"\n{crowd}"
        );
        Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}")).plan()
    }

    #[test]
    fn a_cohort_that_comes_later_joins_after_the_first() {
        let toml = "[[crowd]]\nname = \"a\"\nsize = 2\narrival = { every = \"1s\" }\n\
                    [[crowd]]\nname = \"b\"\nsize = 2\narrival = { every = \"1s\" }\nstarts_at = \"10s\"";
        let plan = plan(toml, "60s");
        let joins: Vec<u64> = plan.joins.iter().map(|join| join.at.as_secs()).collect();
        assert_eq!(joins, [0, 1, 10, 11]);
        assert!(plan.describe().contains("from 10.00 s on"), "{}", plan.describe());
    }

    #[test]
    fn a_scenario_without_jitter_says_so_and_joins_at_an_even_rate() {
        let text = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 5\n\
                    arrival = { every = \"2s\" }\n[run]\nduration = \"60s\"\n";
        let scenario = Scenario::parse(text).unwrap().without_jitter();
        let joins: Vec<Duration> = scenario.plan().joins.iter().map(|join| join.at).collect();
        assert_eq!(joins, [0, 2, 4, 6, 8].map(Duration::from_secs));
        assert!(!scenario.plan().describe().contains("jitter"), "{}", scenario.plan().describe());
    }

    #[test]
    fn jitter_is_of_what_is_left_of_a_run_that_ends_before_the_last_interval_does() {
        for arrival in ["{ every = \"5s\" }", "{ ramp = \"15s\" }"] {
            let toml = format!("[[crowd]]\nname = \"a\"\nsize = 3\narrival = {arrival}");
            for duration_s in [11, 12, 15, 20] {
                let joins = plan(&toml, &format!("{duration_s}s")).joins;
                let last = joins.last().map_or(0, |join| join.at.as_secs());
                assert!((10..duration_s).contains(&last), "{arrival} {duration_s} s: {joins:?}");
            }
        }
    }

    #[test]
    fn participants_are_numbered_by_their_joins_across_cohorts() {
        let plan = plan(
            "[[crowd]]\nname = \"a\"\nsize = 2\narrival = { every = \"2s\", jitter = false }\n\
             [[crowd]]\nname = \"b\"\nsize = 2\narrival = { every = \"1s\", jitter = false }",
            "10s",
        );
        let joins: Vec<(u32, u16, u64)> = plan
            .joins
            .iter()
            .map(|join| (join.participant.0, join.cohort.0, join.at.as_secs()))
            .collect();
        assert_eq!(joins, [(0, 0, 0), (1, 1, 0), (2, 1, 1), (3, 0, 2)]);
        assert_eq!(plan.cohorts, ["a", "b"]);
    }

    #[test]
    fn rooms_are_filled_one_after_the_other_and_their_streams_stay_within() {
        let lesson = |rooms: u32| {
            let text = format!(
                "[target]\nurl = \"janus+ws://127.0.0.1:8188/videoroom/7\"\nrooms = {rooms}\n[run]\nduration = \"60s\"\n\
                 [[crowd]]\nname = \"teachers\"\nsize = 1\narrival = {{ every = \"3s\", jitter = false }}\n\
                 [[crowd]]\nname = \"pupils\"\nsize = 3\narrival = {{ every = \"1s\", jitter = false }}"
            );
            Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}")).plan()
        };
        let (one, two) = (lesson(1), lesson(2));
        let cohorts: Vec<u16> = two.joins.iter().map(|join| join.cohort.0).collect();
        assert_eq!(cohorts, [0, 1, 1, 1, 2, 3, 3, 3]);
        assert_eq!(
            two.cohorts,
            ["teachers, room 1", "pupils, room 1", "teachers, room 2", "pupils, room 2"]
        );
        assert_eq!(two.roles.iter().map(|role| role.room).collect::<Vec<_>>(), [0, 0, 1, 1]);
        assert_eq!(two.expected.users, 8);
        for (one, two) in [
            (one.expected.server_in_mbit_per_s, two.expected.server_in_mbit_per_s),
            (one.expected.server_out_mbit_per_s, two.expected.server_out_mbit_per_s),
        ] {
            assert!((two - 2.0 * one).abs() < 1e-9, "{one} {two}");
        }
        assert!(
            two.describe().contains("3 pupils in each of 2 rooms, one every 1.00 s"),
            "{}",
            two.describe()
        );
    }

    #[test]
    fn an_audience_that_rejoins_keeps_its_size() {
        let crowd = "[crowd]\nsize = 3\narrival = { every = \"0s\" }\nstay = { exactly = \"4s\", rejoin = true }";
        let plan = plan(crowd, "10s");
        let visits: Vec<(u64, Option<u64>)> = plan
            .joins
            .iter()
            .map(|join| (join.at.as_secs(), join.leave_at.map(|at| at.as_secs())))
            .collect();
        assert_eq!(
            visits,
            [
                (0, Some(4)),
                (0, Some(4)),
                (0, Some(4)),
                (4, Some(8)),
                (4, Some(8)),
                (4, Some(8)),
                (8, None),
                (8, None),
                (8, None),
            ]
        );
        assert_eq!((plan.expected.users, plan.expected.joins_per_s), (3, 3));
    }

    #[test]
    fn a_final_leave_is_not_counted_twice() {
        let plan = plan("[crowd]\nsize = 10\narrival = { every = \"1s\" }\nstay = \"2s\"", "60s");
        assert_eq!((plan.joins.len(), plan.expected.users), (10, 2));
    }

    #[test]
    fn shares_split_the_plan_and_keep_ids_and_moments() {
        let whole =
            plan("[crowd]\nsize = 11\nstay = { mean = \"3s\", seed = 2, rejoin = true }", "20s");
        let mut together: Vec<Join> =
            (0..3).flat_map(|index| whole.share(Share::new(index, 3).unwrap()).joins).collect();
        together.sort_by_key(|join| join.participant);
        assert_eq!(together, whole.joins);
        assert_eq!(whole.share(Share::ALL), whole);
    }

    #[test]
    fn a_part_of_the_plan_keeps_ids_and_counts_its_own_load() {
        let whole = plan("[crowd]\nsize = 11", "20s");
        let part = whole.part(|number| number % 4 == 1);
        let numbers: Vec<u32> = part.joins.iter().map(|join| join.participant.0).collect();
        assert_eq!((numbers.as_slice(), part.expected.users), (&[1, 5, 9][..], 3));
        assert!(part.joins.iter().all(|join| whole.joins.contains(join)));
    }

    #[test]
    fn the_expected_load_grows_with_the_crowd() {
        let plan = plan("[crowd]\nsize = 100", "60s");
        // 1 Mbit/s video + 50/1150 overhead, 48 kbit/s audio + 50 packets of 50 bytes.
        let one = 1.0 * (1.0 + 50.0 / 1150.0) + 0.048 + 0.020;
        assert!((plan.expected.server_out_mbit_per_s - 100.0 * one).abs() < 1e-6);
        assert!(plan.expected.server_in_mbit_per_s < 0.05 * plan.expected.server_out_mbit_per_s);
        assert_eq!(plan.needs, Needs { file_descriptors: 264, ports: 100 });
        assert!(!plan.expected.assumed);
        assert!(plan.share(Share::new(1, 2).unwrap()).expected.users == 50);
    }

    #[test]
    fn local_addresses_are_dealt_in_turn_over_all_ranges() {
        let plan =
            plan("[crowd]\nsize = 5\nsource_ips = [\"127.0.0.2-127.0.0.3\", \"127.0.0.9\"]", "60s");
        let dealt: Vec<String> =
            plan.joins.iter().filter_map(|join| join.source_ip).map(|ip| ip.to_string()).collect();
        assert_eq!(dealt, ["127.0.0.2", "127.0.0.3", "127.0.0.9", "127.0.0.2", "127.0.0.3"]);
    }
}
