//! The receiver report of a stream, RFC 3550 §6.4.1 and A.3.
//!
//! Loss of the network before repair: packets on an RTX stream do not count as received (RFC 4588
//! gives that stream reports of its own), and missing packets count at once. A retransmission on
//! the original SSRC is indistinguishable from a first transmission and counts as received, as in
//! the RFC's own arithmetic. Duplicates do not make up for losses.

use super::sequence::SequenceMeter;

/// A report block without its SSRC and the fields about the last sender report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reception {
    /// Fraction lost since the previous report, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost since the source began, clamped to 24 bits, signed.
    pub cumulative_lost: i32,
    /// Highest sequence number received, with the count of wraps in the upper half.
    pub extended_highest_sequence: u32,
    /// Interarrival jitter in timestamp units.
    pub jitter: u32,
}

/// The state between two reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceptionMeter {
    retransmissions: u64,
    /// Arrivals when the source began.
    arrivals_before: u64,
    expected_prior: i64,
    received_prior: i64,
}

impl ReceptionMeter {
    /// A packet counted by the sequence meter came on an RTX stream.
    pub fn retransmission(&mut self) {
        self.retransmissions += 1;
    }

    /// The source restarts, with the next packet that `sequence` counts.
    pub fn restart(&mut self, sequence: &SequenceMeter) {
        *self = Self { arrivals_before: sequence.arrivals(), ..Self::default() };
    }

    /// The next report; `None` before the first packet.
    pub fn report(&mut self, sequence: &SequenceMeter, jitter: u32) -> Option<Reception> {
        let (lowest, highest) = sequence.range()?;
        let expected = highest - lowest + 1;
        let arrivals = sequence.arrivals().saturating_sub(self.arrivals_before);
        let received =
            i64::try_from(arrivals.saturating_sub(self.retransmissions)).unwrap_or(i64::MAX);
        let expected_interval = expected - self.expected_prior;
        let lost_interval = expected_interval - (received - self.received_prior);
        (self.expected_prior, self.received_prior) = (expected, received);
        let fraction = if expected_interval > 0 && lost_interval > 0 {
            (lost_interval << 8) / expected_interval
        } else {
            0
        };
        Some(Reception {
            fraction_lost: u8::try_from(fraction).unwrap_or(u8::MAX),
            cumulative_lost: (expected - received).clamp(-0x80_0000, 0x7F_FFFF) as i32,
            extended_highest_sequence: highest as u32,
            jitter,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_follow_the_rfc() {
        let mut sequence = SequenceMeter::new(1024, 32, 200);
        let mut meter = ReceptionMeter::default();
        assert_eq!(meter.report(&sequence, 0), None);
        let mut report = |packets: &[(u16, bool)], retransmissions: u32| {
            for &(number, again) in packets {
                sequence.packet(number, again, 0);
            }
            (0..retransmissions).for_each(|_| meter.retransmission());
            let r = meter.report(&sequence, 7).unwrap();
            (r.fraction_lost, r.cumulative_lost, r.extended_highest_sequence)
        };
        let first = |numbers: &[u16]| numbers.iter().map(|&n| (n, false)).collect::<Vec<_>>();
        assert_eq!(
            report(&first(&[65533, 65534, 0, 1]), 0),
            (51, 1, 65537),
            "1 of 5 lost, over the wrap"
        );
        assert_eq!(report(&[], 0), (0, 1, 65537), "nothing new");
        assert_eq!(
            report(&first(&[2, 3, 3, 3]), 0),
            (0, 1, 65539),
            "duplicates do not make up for it"
        );
        assert_eq!(report(&[(65535, true)], 1), (0, 1, 65539), "nor does a retransmission");
        assert_eq!(report(&first(&[5, 4]), 0), (0, 1, 65541), "reordering is no loss");
        assert_eq!(report(&first(&[105]), 0), (253, 100, 65641));
        let late: Vec<u16> = (6..=104).collect();
        assert_eq!(report(&first(&late), 0), (0, 1, 65641), "late packets take the loss back");
    }
}
