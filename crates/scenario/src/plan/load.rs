//! The load that joins put on the server, and what they need of the generator.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use super::{Join, Plan};
use crate::destination::Destination;
use crate::role::{CARD_BITS_PER_S, CARD_SIZES, Role};
use crate::run::Stream;
use crate::target::Part;

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
        let of_card = |size: &String| {
            let at = CARD_SIZES.iter().position(|known| known == size)?;
            CARD_BITS_PER_S.get(at).map(|bits| f64::from(*bits))
        };
        let simulcast: f64 = publish.simulcast.iter().filter_map(of_card).sum();
        let card = publish.video.as_ref().and_then(of_card);
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

impl Plan {
    /// Adds up [`Plan::expected`] and [`Plan::needs`] of the joins.
    pub(super) fn add_up(&mut self) {
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
