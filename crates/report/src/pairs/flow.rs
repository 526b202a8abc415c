//! What all together sent into the server against what came out of it, second by second, and what should have come out.

use std::collections::BTreeMap;

use throng_observation::MediaKind;
use throng_observation::run::{CohortId, RunData};
use throng_scenario::{Role, Subscribe};

use super::roles;

/// UDP and IPv4 headers of a packet that was sent, bytes; what is received is counted with them.
const HEADERS_BYTES: u64 = 28;
/// Seconds over which rates are compared: a second alone has too many or too few key frames in it.
const WINDOW: usize = 5;
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
    /// What should come out: each stream as often as there is somebody to receive it, N × (N − 1) × b in a lesson. Headers
    /// are the server's own, so that it is payload that is multiplied.
    pub(crate) due_bps: Option<f64>,
}

/// All seconds of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    pub(crate) seconds: Vec<FlowSecond>,
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
    out_payload: u64,
    connected: BTreeMap<CohortId, u32>,
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
            sums.out_payload += row.counters.payload_bytes;
        }
        for row in &run.crowd {
            *seconds.entry(row.second).or_default().connected.entry(row.cohort).or_default() += row.connected;
        }
        let roles = roles(run);
        // Bytes on the wire for a byte of payload, as the server sends them.
        let total = |of: fn(&Sums) -> u64| seconds.values().map(of).sum::<u64>().max(1) as f64;
        let wire = total(|sums| sums.out_bytes) / total(|sums| sums.out_payload);
        let seconds = seconds
            .into_iter()
            .map(|(second, sums)| FlowSecond {
                second,
                in_bps: sums.in_bytes as f64 * 8.0,
                out_bps: sums.out_bytes as f64 * 8.0,
                due_bps: roles.as_ref().map(|roles| sums.due_payload_bps(roles) * wire),
            })
            .collect();
        Self { seconds }
    }

    /// Where more came in than before and less went out, although no less was due.
    pub(crate) fn fall(&self) -> Option<Fall> {
        let stretches: Vec<FlowSecond> = self.seconds.windows(WINDOW).map(mean).collect();
        let mut peak: Option<FlowSecond> = None;
        for stretch in stretches {
            match peak {
                Some(best) if stretch.out_bps <= best.out_bps => {
                    let is_due = stretch.due_bps.is_none_or(|due| due >= best.due_bps.unwrap_or(0.0));
                    if is_due
                        && stretch.in_bps >= best.in_bps * RISES
                        && stretch.out_bps <= best.out_bps * FALLS
                    {
                        return Some(Fall { peak: best, after: stretch });
                    }
                }
                _ => peak = Some(stretch),
            }
        }
        None
    }

    /// The largest rates of a stretch, in and out.
    pub(crate) fn largest(&self) -> Option<(f64, f64)> {
        let stretches = || self.seconds.windows(WINDOW).map(mean);
        let most = |rate: fn(&FlowSecond) -> f64| stretches().map(|s| rate(&s)).reduce(f64::max);
        Some((most(|s| s.in_bps)?, most(|s| s.out_bps)?))
    }

    /// What came out ÷ what was due, over the stretch in which most was due.
    pub(crate) fn delivered_ratio(&self) -> Option<(f64, f64)> {
        let stretches = self.seconds.windows(WINDOW).map(mean);
        let full = stretches.max_by(|a, b| a.due_bps.unwrap_or(0.0).total_cmp(&b.due_bps.unwrap_or(0.0)))?;
        let due = full.due_bps.filter(|due| *due > 0.0)?;
        Some((due, full.out_bps / due))
    }
}

fn mean(seconds: &[FlowSecond]) -> FlowSecond {
    let count = seconds.len().max(1) as f64;
    let of = |rate: &dyn Fn(&FlowSecond) -> f64| seconds.iter().map(rate).sum::<f64>() / count;
    FlowSecond {
        second: seconds.last().map_or(0, |last| last.second),
        in_bps: of(&|s| s.in_bps),
        out_bps: of(&|s| s.out_bps),
        due_bps: seconds.iter().all(|s| s.due_bps.is_some()).then(|| of(&|s| s.due_bps.unwrap_or(0.0))),
    }
}

impl Sums {
    /// What the payload of this second comes to when everybody gets what they want.
    fn due_payload_bps(&self, roles: &[Role]) -> f64 {
        let role = |cohort: CohortId| roles.get(usize::from(cohort.0));
        let mut due = 0.0;
        for kind in [MediaKind::Video, MediaKind::Audio] {
            let whom = |role: &Role| if kind == MediaKind::Video { role.video } else { role.audio };
            let sent = || self.payload.iter().filter(|((_, of), _)| *of == kind);
            let senders: u32 = sent().map(|(_, (_, tracks))| tracks).sum();
            let bits: f64 = sent().map(|(_, (bytes, _))| *bytes as f64 * 8.0).sum();
            for (cohort, count) in &self.connected {
                let Some(role) = role(*cohort) else { continue };
                let own = self.payload.get(&(*cohort, kind)).filter(|(_, tracks)| *tracks > 0);
                let own_bits = own.map_or(0.0, |(bytes, tracks)| *bytes as f64 * 8.0 / f64::from(*tracks));
                let others = u64::from(senders) - u64::from(own.is_some()).min(u64::from(senders));
                let each = match whom(role) {
                    Subscribe::All => bits - own_bits,
                    whom => (bits - own_bits) / others.max(1) as f64 * whom.count_of(others) as f64,
                };
                due += each * f64::from(*count);
            }
        }
        due
    }
}
