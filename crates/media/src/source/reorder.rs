//! The packets of a recorded stream in the order in which they were sent, over restarts of their sender.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::rtp::RtpHeader;

/// How far packets may be out of order, or missing: as many as half the space of sequence numbers would be ambiguous.
const STEP_MAX: i64 = 0x4000;
/// How far the timestamps of packets that are out of order, or that follow a gap, may lie apart: 10 s of video.
const TICKS_MAX: u32 = 900_000;
/// So long after a sender began anew packets of before may still come, in packets.
const LATE_MAX: usize = 256;
/// How many epochs are looked at for the place of a packet: the one that goes on, the one before it, and strays.
const EPOCHS_BACK: usize = 4;

/// Packets of one stream. A sender that begins anew (another SSRC, or numbers that lead nowhere) begins an epoch, within
/// which sequence numbers and timestamps are of one line.
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

/// What a packet is to an epoch.
enum Fit {
    At(i64),
    /// It is there already.
    Twice,
    Stranger,
}

impl ReorderBuffer {
    /// Takes in a packet, in the order of the file.
    pub(super) fn take(&mut self, packet: &[u8]) {
        let Ok(header) = RtpHeader::parse(packet) else { return };
        let Ok(padding) = header.padding_len(packet) else { return };
        let payload = packet.get(header.header_len..packet.len().saturating_sub(padding)).unwrap_or_default();
        let recorded =
            Recorded { timestamp: header.timestamp, marker: header.marker, payload: payload.to_vec() };
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
            // A packet alone may be a stray one, after which the epoch before goes on (RFC 3550 appendix A.1 takes two for
            // a restart); to an epoch that is over belong only packets that were late.
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

    /// How many packets there are.
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
    /// Where a packet belongs; `goes_on` when it may be the next one, or one after a gap.
    fn fit(&mut self, header: &RtpHeader, packet: &Recorded, goes_on: bool) -> Fit {
        let Some((&newest, last)) = self.packets.last_key_value() else { return Fit::Stranger };
        let step = i64::from(header.sequence.wrapping_sub(newest as u16) as i16);
        if header.ssrc != self.ssrc || step.abs() > STEP_MAX || (step > 0 && !goes_on) {
            return Fit::Stranger;
        }
        let index = newest + step;
        // The next one comes after a pause of any length.
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
