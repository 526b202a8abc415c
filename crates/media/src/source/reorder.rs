//! The packets of a recorded stream in the order in which they were sent, across restarts of their
//! sender.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::rtp::RtpHeader;

/// Largest gap or reordering of packets: half the space of sequence numbers would be ambiguous.
const STEP_MAX: i64 = 0x4000;
/// Largest difference of timestamps of packets that are out of order, or that follow a gap: 10 s of
/// video.
const TICKS_MAX: u32 = 900_000;
/// Number of packets after a restart of the sender within which earlier packets may still arrive.
const LATE_MAX: usize = 256;
/// Number of epochs searched for the place of a packet: the current one, the one before it, and
/// strays.
const EPOCHS_BACK: usize = 4;

/// Packets of one stream. A sender that restarts (another SSRC, or unrelated numbers) begins an
/// epoch, within which sequence numbers and timestamps are continuous.
#[derive(Default)]
pub(super) struct ReorderBuffer {
    epochs: Vec<Epoch>,
    len: usize,
}

struct Epoch {
    ssrc: u32,
    /// By extended sequence number.
    packets: BTreeMap<i64, Recorded>,
}

/// A packet of a recording.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) timestamp: u32,
    pub(super) marker: bool,
    pub(super) payload: Vec<u8>,
}

/// Relation of a packet to an epoch.
enum Fit {
    At(i64),
    /// It is a duplicate.
    Twice,
    Stranger,
}

impl ReorderBuffer {
    /// Takes a packet, in the order of the file.
    pub(super) fn take(&mut self, packet: &[u8]) {
        let Ok(header) = RtpHeader::parse(packet) else { return };
        let Ok(padding) = header.padding_len(packet) else { return };
        let payload =
            packet.get(header.header_len..packet.len().saturating_sub(padding)).unwrap_or_default();
        let recorded = Recorded {
            timestamp: header.timestamp,
            marker: header.marker,
            payload: payload.to_vec(),
        };
        let mut goes_on = true;
        for epoch in self.epochs.iter_mut().rev().take(EPOCHS_BACK) {
            match epoch.fit(&header, &recorded, goes_on) {
                Fit::At(index) => {
                    epoch.packets.insert(index, recorded);
                    self.len += 1;
                    return;
                }
                Fit::Twice => return,
                Fit::Stranger => {}
            }
            // A single packet may be a stray one, after which the previous epoch continues (RFC
            // 3550 appendix A.1 needs two for a restart); only late packets are added to an epoch
            // that is over.
            let (is_stray, is_over) = (epoch.packets.len() < 2, !goes_on);
            if (!is_stray && is_over) || epoch.packets.len() > LATE_MAX {
                break;
            }
            goes_on &= is_stray;
        }
        let packets = BTreeMap::from([(i64::from(header.sequence), recorded)]);
        self.epochs.push(Epoch { ssrc: header.ssrc, packets });
        self.len += 1;
    }

    /// Number of packets.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The packets, each with the numbers of its epoch and within it.
    pub(super) fn into_packets(self) -> impl Iterator<Item = (usize, i64, Recorded)> {
        let epochs = self.epochs.into_iter().enumerate();
        epochs.flat_map(|(epoch, Epoch { packets, .. })| {
            packets.into_iter().map(move |(index, packet)| (epoch, index, packet))
        })
    }
}

impl Epoch {
    /// The place of a packet; `goes_on` when it may be the next one, or one after a gap.
    fn fit(&mut self, header: &RtpHeader, packet: &Recorded, goes_on: bool) -> Fit {
        let Some((&newest, last)) = self.packets.last_key_value() else { return Fit::Stranger };
        let step = i64::from(header.sequence.wrapping_sub(newest as u16) as i16);
        if header.ssrc != self.ssrc || step.abs() > STEP_MAX || (step > 0 && !goes_on) {
            return Fit::Stranger;
        }
        let index = newest + step;
        // The next one may follow a pause of any length.
        let is_near = |other: &Recorded| other.timestamp.wrapping_sub(packet.timestamp) as i32;
        if step == 1 || (step > 0 && is_near(last).unsigned_abs() <= TICKS_MAX) {
            return Fit::At(index);
        }
        match self.packets.entry(index) {
            Entry::Occupied(there) if there.get() == packet => return Fit::Twice,
            Entry::Occupied(_) => return Fit::Stranger,
            Entry::Vacant(_) => {}
        }
        let after = self.packets.range(index..).next();
        let fills_gap = after.is_some_and(|(_, after)| is_near(after).unsigned_abs() <= TICKS_MAX);
        if fills_gap { Fit::At(index) } else { Fit::Stranger }
    }
}
