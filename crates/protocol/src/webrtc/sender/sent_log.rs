//! When each packet was sent, for packets that feedback may still report.

use std::collections::VecDeque;

use throng_observation::MediaKind;

/// Feedback arrives several times a second; after this time it no longer reports a packet.
const KEPT_US: u32 = 2_000_000;
/// The largest number of packets: 500 a second.
const PACKETS_MAX: usize = 1_000;

/// The packets of the last seconds by transport-wide sequence number; the numbers are consecutive
/// and wrap.
#[derive(Debug, Default)]
pub(super) struct SentLog {
    packets: VecDeque<SentPacket>,
    /// Number of the first of them.
    first: u16,
}

/// A sent packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentPacket {
    /// Microseconds on a clock that wraps.
    pub(super) sent_us: u32,
    pub(super) bytes: u16,
    pub(super) kind: MediaKind,
    pub(super) fate: PacketOutcome,
}

/// What feedback reported about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketOutcome {
    NotReported,
    Lost,
    Arrived,
    /// The receiver missed it, and it was sent once more with the same number: which of the two
    /// arrived is unknown.
    Repeated,
}

impl SentLog {
    /// Packet `sequence`, the successor of the previous one, was sent.
    pub(super) fn sent(&mut self, sequence: u16, sent_us: u32, bytes: usize, kind: MediaKind) {
        let is_old = |packet: &SentPacket| sent_us.wrapping_sub(packet.sent_us) > KEPT_US;
        while self.packets.len() >= PACKETS_MAX || self.packets.front().is_some_and(is_old) {
            self.packets.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        if sequence != self.first.wrapping_add(self.packets.len() as u16) {
            self.packets.clear();
        }
        if self.packets.is_empty() {
            self.first = sequence;
        }
        let bytes = u16::try_from(bytes).unwrap_or(u16::MAX);
        let fate = PacketOutcome::NotReported;
        self.packets.push_back(SentPacket { sent_us, bytes, kind, fate });
    }

    /// The outcome of packet `sequence` is known. Returns its previous state; `None` when it is
    /// unknown, was already reported as arrived, or was repeated.
    pub(super) fn tell(&mut self, sequence: u16, fate: PacketOutcome) -> Option<SentPacket> {
        let packet = self.packets.get_mut(usize::from(sequence.wrapping_sub(self.first)))?;
        let known = *packet;
        match known.fate {
            PacketOutcome::Arrived | PacketOutcome::Repeated => return None,
            PacketOutcome::NotReported | PacketOutcome::Lost => packet.fate = fate,
        }
        Some(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_and_what_is_old_or_unknown_is_not_there() {
        let mut log = SentLog::default();
        let at = |number: u32| (u32::MAX - 1_000_000).wrapping_add(number * 10_000);
        for number in 0..300_u32 {
            let (sequence, bytes) = (65_400_u16.wrapping_add(number as u16), 100 + number as usize);
            log.sent(sequence, at(number), bytes, MediaKind::Video);
        }
        assert_eq!(log.packets.len(), 201, "of two seconds");
        let known = |log: &mut SentLog, number: u16, fate| {
            log.tell(65_400_u16.wrapping_add(number), fate)
                .map(|packet| (packet.bytes, packet.fate))
        };
        assert_eq!(known(&mut log, 98, PacketOutcome::Arrived), None);
        assert_eq!(known(&mut log, 300, PacketOutcome::Arrived), None);
        let before = known(&mut log, 200, PacketOutcome::Lost);
        assert_eq!(before, Some((300, PacketOutcome::NotReported)));
        let before = known(&mut log, 200, PacketOutcome::Arrived);
        assert_eq!(before, Some((300, PacketOutcome::Lost)));
        assert_eq!(known(&mut log, 200, PacketOutcome::Arrived), None, "it arrives once");
        assert_eq!(known(&mut log, 200, PacketOutcome::Lost), None, "and stays so");
        assert_eq!(known(&mut log, 200, PacketOutcome::Repeated), None, "also when repeated");
    }

    #[test]
    fn it_holds_no_more_than_it_may() {
        let mut log = SentLog::default();
        (0..70_000_u32).for_each(|number| log.sent(number as u16, number, 1_200, MediaKind::Video));
        assert_eq!(log.packets.len(), PACKETS_MAX);
        assert!(
            log.tell(69_999_u32 as u16, PacketOutcome::Arrived).is_some()
                && log.tell(68_999_u32 as u16, PacketOutcome::Arrived).is_none()
        );
    }
}
