//! The rates of all participants together into the server and out of it, second by second, and the
//! expected rate out.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use throng_observation::run::{CohortId, RunData};
use throng_observation::{MediaKind, PlannedCohort, SubscribePolicy};

/// UDP and IPv4 headers of a packet that was sent, bytes; what is received is counted with them.
const HEADERS_BYTES: u64 = throng_observation::units::udp_header_bytes(true) as u64;
/// Seconds over which rates are compared: a second alone has too many or too few key frames in it.
const WINDOW: usize = 5;
/// Seconds after a participant joined, left, failed or muted that are not compared with the
/// expected rate: a new participant is still subscribing, which the time to the first frame
/// measures, and requests key frames.
const SETTLING: usize = 3;
/// Seconds before that are not either. A participant's intervals are counted in the second of their
/// middle, and begin at other times than those of another: a mute is in the intervals of its
/// receivers up to two seconds before the first one in which its sender sent nothing.
const ENDING: usize = 2;
/// In rises by at least this share …
const RISES: f64 = 1.01;
/// … while out falls to at most this.
const FALLS: f64 = 0.9;

/// Rates of one second, bits per second on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FlowSecond {
    pub(crate) second: i64,
    /// Into the server.
    pub(crate) in_bps: f64,
    /// Out of it.
    pub(crate) out_bps: f64,
    /// Expected rate out: each stream times its receivers, N × (N − 1) × b in a conference. Payload
    /// is multiplied, because the server writes its own headers. `None` where it is unknown: of a
    /// simulcast the server forwards one layer of its choice.
    pub(crate) expected_bps: Option<f64>,
}

/// All seconds of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    pub(crate) seconds: Vec<FlowSecond>,
    /// In some second a sent stream had a receiver, or the server sent something. Without any
    /// receiver, as with a lone publisher, the rate out has no meaning.
    pub(crate) has_receivers: bool,
    /// Ranges of seconds, as indices, in which nothing changed, without [`SETTLING`] and
    /// [`ENDING`].
    standstills: Vec<Range<usize>>,
}

/// The rate out of the server while no participant joined, left or muted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Delivered {
    /// The expected rate, bits per second.
    pub(crate) expected_bps: f64,
    /// Rate out ÷ expected rate.
    pub(crate) ratio: f64,
}

/// The moment from which the server received more and sent less than before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fall {
    /// The best stretch before it.
    pub(crate) peak: FlowSecond,
    /// The stretch that shows it.
    pub(crate) after: FlowSecond,
}

#[derive(Default)]
struct Sums {
    in_bytes: u64,
    /// Payload that was sent, and by how many tracks.
    payload: BTreeMap<(CohortId, MediaKind), (u64, u32)>,
    out_bytes: u64,
    connected: BTreeMap<CohortId, u32>,
    /// Participants present, left and failed, by cohort: equal in two seconds between which no
    /// participant joined or left.
    crowd: BTreeMap<CohortId, [u32; 3]>,
}

impl Flow {
    pub(crate) fn of(run: &RunData) -> Self {
        let mut seconds: BTreeMap<i64, Sums> = BTreeMap::new();
        for row in &run.sent {
            let c = &row.counters;
            let bytes = c.wire_bytes
                + c.retransmitted_bytes
                + HEADERS_BYTES * c.packets_sent.saturating_add(c.retransmitted_packets);
            let sums = seconds.entry(row.second).or_default();
            sums.in_bytes += bytes;
            let (sum, tracks) = sums.payload.entry((row.cohort, row.kind)).or_default();
            *sum += c.payload_bytes;
            *tracks += row.tracks;
        }
        for row in &run.series {
            let sums = seconds.entry(row.second).or_default();
            sums.out_bytes += row.counters.wire_bytes;
        }
        for row in &run.crowd {
            let sums = seconds.entry(row.second).or_default();
            *sums.connected.entry(row.cohort).or_default() += row.connected;
            sums.crowd.insert(row.cohort, [row.connected, row.left, row.failed]);
        }
        let roles = run.info.plan.as_ref().map(|plan| plan.cohorts.as_slice());
        let has_receiver =
            |sums: &Sums| sums.out_bytes > 0 || roles.is_some_and(|roles| sums.has_receiver(roles));
        let has_receivers = seconds.values().any(has_receiver);
        let roles = roles.filter(|roles| !roles.iter().any(|role| role.sends_layers));
        let standstills = standstills(&seconds);
        let wire = |kind| wire_per_payload(run, kind);
        let wires = [
            (MediaKind::Video, wire(MediaKind::Video)),
            (MediaKind::Audio, wire(MediaKind::Audio)),
        ];
        let seconds = seconds
            .into_iter()
            .map(|(second, sums)| FlowSecond {
                second,
                in_bps: sums.in_bytes as f64 * 8.0,
                out_bps: sums.out_bytes as f64 * 8.0,
                expected_bps: roles.map(|roles| {
                    wires.iter().map(|(kind, wire)| sums.due_payload_bps(roles, *kind) * wire).sum()
                }),
            })
            .collect();
        Self { seconds, has_receivers, standstills }
    }

    /// The first stretch with a higher rate in and a lower rate out than before, although the
    /// expected rate did not fall, that lasts: while many join, the rate out dips briefly as
    /// subscriptions are renegotiated.
    pub(crate) fn fall(&self) -> Option<Fall> {
        let stretches: Vec<FlowSecond> = self.seconds.windows(WINDOW).map(mean).collect();
        let is_below = |peak: &FlowSecond, stretch: &FlowSecond| {
            // A rate of zero cannot fall: a lone publisher's server sends nothing at any time.
            peak.out_bps > 0.0
                && stretch.expected_bps.is_none_or(|expected| {
                    expected > 0.0 && expected >= peak.expected_bps.unwrap_or(0.0)
                })
                && stretch.in_bps >= peak.in_bps * RISES
                && stretch.out_bps <= peak.out_bps * FALLS
        };
        let mut peak: FlowSecond = *stretches.first()?;
        for (at, stretch) in stretches.iter().enumerate() {
            if stretch.out_bps > peak.out_bps {
                peak = *stretch;
            } else if is_below(&peak, stretch)
                && stretches.get(at + WINDOW).is_some_and(|later| is_below(&peak, later))
            {
                return Some(Fall { peak, after: *stretch });
            }
        }
        None
    }

    /// The largest rates of a stretch, in and out; out is `None` without any receiver.
    pub(crate) fn largest(&self) -> (Option<f64>, Option<f64>) {
        let stretches = || self.seconds.windows(WINDOW).map(mean);
        let most = |rate: fn(&FlowSecond) -> f64| stretches().map(|s| rate(&s)).reduce(f64::max);
        (most(|s| s.in_bps), most(|s| s.out_bps).filter(|_| self.has_receivers))
    }

    /// Rate out ÷ expected rate, over the whole standstill with the highest expected rate: a
    /// stretch of a few seconds may have one key frame more or less at its ends. `None` without a
    /// standstill, or when the expected rate is unknown.
    pub(crate) fn delivered(&self) -> Option<Delivered> {
        let means = self.standstills.iter().filter_map(|range| {
            let seconds = mean(self.seconds.get(range.clone())?);
            let expected_bps = seconds.expected_bps.filter(|expected| *expected > 0.0)?;
            Some(Delivered { expected_bps, ratio: seconds.out_bps / expected_bps })
        });
        means.max_by(|a, b| a.expected_bps.total_cmp(&b.expected_bps))
    }
}

/// Ranges of at least [`WINDOW`] seconds without a join, leave or mute, after [`SETTLING`] and
/// before [`ENDING`].
fn standstills(seconds: &BTreeMap<i64, Sums>) -> Vec<Range<usize>> {
    let all: Vec<(i64, &Sums)> = seconds.iter().map(|(second, sums)| (*second, sums)).collect();
    let crowds: Vec<_> = all
        .iter()
        .zip(lasting_tracks(&all))
        .map(|((second, sums), tracks)| (*second, &sums.crowd, tracks))
        .collect();
    let mut begins = 0;
    crowds
        .chunk_by(|a, b| a.0 + 1 == b.0 && a.1 == b.1 && a.2 == b.2)
        .filter_map(|chunk| {
            let range = begins + SETTLING..(begins + chunk.len()).saturating_sub(ENDING);
            begins += chunk.len();
            (range.len() >= WINDOW).then_some(range)
        })
        .collect()
}

/// How many tracks are sent in each second, without the changes that the next second has not as
/// well: a sender whose interval ends a little after the second, or whose pictures come one a
/// second or less often, is missing in single ones, and a mute lasts.
fn lasting_tracks(all: &[(i64, &Sums)]) -> Vec<BTreeMap<(CohortId, MediaKind), u32>> {
    let mut lasting: Vec<BTreeMap<_, u32>> = Vec::with_capacity(all.len());
    for (at, (_, sums)) in all.iter().enumerate() {
        let mut tracks = sums.tracks();
        if let (Some(before), Some((_, next))) = (lasting.last(), all.get(at + 1)) {
            let next = next.tracks();
            let streams: BTreeSet<_> = before.keys().chain(tracks.keys()).copied().collect();
            for of in streams {
                let sent = tracks.get(&of).copied().unwrap_or(0);
                if sent != next.get(&of).copied().unwrap_or(0) {
                    tracks.insert(of, before.get(&of).copied().unwrap_or(0));
                }
            }
        }
        tracks.retain(|_, tracks| *tracks > 0);
        lasting.push(tracks);
    }
    lasting
}

fn mean(seconds: &[FlowSecond]) -> FlowSecond {
    let count = seconds.len().max(1) as f64;
    let of = |rate: &dyn Fn(&FlowSecond) -> f64| seconds.iter().map(rate).sum::<f64>() / count;
    FlowSecond {
        second: seconds.last().map_or(0, |last| last.second),
        in_bps: of(&|s| s.in_bps),
        out_bps: of(&|s| s.out_bps),
        expected_bps: seconds
            .iter()
            .all(|s| s.expected_bps.is_some())
            .then(|| of(&|s| s.expected_bps.unwrap_or(0.0))),
    }
}

impl Sums {
    /// How many tracks are sent.
    fn tracks(&self) -> BTreeMap<(CohortId, MediaKind), u32> {
        self.payload.iter().map(|(of, (_, tracks))| (*of, *tracks)).collect()
    }

    /// Whether any stream that is sent has a receiver in the same room.
    fn has_receiver(&self, roles: &[PlannedCohort]) -> bool {
        let there = || {
            let present = self.connected.iter().filter(|(_, count)| **count > 0);
            present.filter_map(|(cohort, count)| {
                Some((cohort, count, roles.get(usize::from(cohort.0))?))
            })
        };
        let other_senders = |to: &CohortId, room: u32| {
            let senders = there().filter(|(.., from)| from.room == room && from.sends());
            senders.map(|(from, count, _)| count - u32::from(from == to)).sum::<u32>()
        };
        there().any(|(to, _, role)| {
            let wants = role.video != SubscribePolicy::None || role.audio != SubscribePolicy::None;
            wants && other_senders(to, role.room) > 0
        })
    }

    /// The payload rate out if every participant received all streams that it subscribed to.
    /// Streams stay within their room.
    fn due_payload_bps(&self, roles: &[PlannedCohort], kind: MediaKind) -> f64 {
        let policy =
            |role: &PlannedCohort| if kind == MediaKind::Video { role.video } else { role.audio };
        let mut by_room: BTreeMap<u32, (u32, f64)> = BTreeMap::new();
        for ((cohort, _), (bytes, tracks)) in self.payload.iter().filter(|((_, of), _)| *of == kind)
        {
            let room = roles.get(usize::from(cohort.0)).map_or(0, |role| role.room);
            let (senders, bits) = by_room.entry(room).or_default();
            *senders += tracks;
            *bits += *bytes as f64 * 8.0;
        }
        let due = self.connected.iter().filter_map(|(cohort, count)| {
            let role = roles.get(usize::from(cohort.0))?;
            let (senders, bits) = by_room.get(&role.room).copied().unwrap_or_default();
            let own = self.payload.get(&(*cohort, kind)).filter(|(_, tracks)| *tracks > 0);
            let own_bits =
                own.map_or(0.0, |(bytes, tracks)| *bytes as f64 * 8.0 / f64::from(*tracks));
            let others = u64::from(senders) - u64::from(own.is_some()).min(u64::from(senders));
            let receivers = f64::from(*count);
            Some(match policy(role) {
                // Each stream that is sent is left out for its own sender, and for nobody who sends
                // none.
                SubscribePolicy::All => {
                    let own_senders = own.map_or(0, |(_, tracks)| (*tracks).min(*count));
                    bits * receivers - own_bits * f64::from(own_senders)
                }
                policy => {
                    let each = (bits - own_bits) / others.max(1) as f64;
                    each * policy.count_of(others) as f64 * receivers
                }
            })
        });
        due.sum()
    }
}

/// Bytes on the wire for a byte of payload, as the server sends this kind: its headers and
/// extensions, not the sender's.
fn wire_per_payload(run: &RunData, kind: MediaKind) -> f64 {
    let rows = || run.series.iter().filter(|row| row.kind == Some(kind));
    let wire: u64 = rows().map(|row| row.counters.wire_bytes).sum();
    let payload: u64 = rows().map(|row| row.counters.payload_bytes).sum();
    if payload == 0 { 1.0 } else { wire as f64 / payload as f64 }
}
