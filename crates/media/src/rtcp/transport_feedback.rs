//! Transport-wide congestion control feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01):
//! the receiver reports to the sender which packets arrived, and when.

use super::frame::{self, write_words};
use crate::octets::{u16_at, u24_at, u32_at};

/// Resolution of arrival times, microseconds.
const TICK_US: i64 = 250;
/// The reference time counts in steps of 64 ms.
const TICKS_PER_REFERENCE: i64 = 256;
/// Run lengths have 13 bits.
const RUN_MAX: usize = 0x1fff;
/// Most bytes of chunks and deltas in one packet: any path carries it unfragmented.
const FEEDBACK_BYTES_MAX: usize = 1_100;

/// The symbols of a packet status chunk (section 3.1.1 of the draft).
const NOT_RECEIVED: u8 = 0;
const SMALL_DELTA: u8 = 1;
const LARGE_DELTA: u8 = 2;

/// Feedback on a run of transport-wide sequence numbers.
#[derive(Clone, Copy, Debug)]
pub struct TransportFeedback<'a> {
    /// The reporter.
    pub sender_ssrc: u32,
    /// A media source of the reported transport.
    pub media_ssrc: u32,
    /// The first reported transport-wide sequence number.
    pub base_sequence: u16,
    /// Number of reported sequence numbers.
    pub status_count: u16,
    /// The receiver's time at the start of the report, in steps of 64 ms from an arbitrary origin;
    /// 24 bits signed.
    pub reference_time: i32,
    /// Number of this report, to find lost ones.
    pub feedback_count: u8,
    chunks: &'a [u8],
    deltas: &'a [u8],
}

/// The reported status of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketStatus {
    /// Its transport-wide sequence number.
    pub sequence: u16,
    /// When it arrived, microseconds on the receiver's clock (reference time plus deltas); `None`
    /// when it did not.
    pub arrived_us: Option<i64>,
}

impl<'a> TransportFeedback<'a> {
    pub(super) const FORMAT: u8 = 15;

    pub(super) fn parse(body: &'a [u8]) -> Result<Self, &'static str> {
        let read = || {
            let reference_time = (u24_at(body, 12)? << 8) as i32 >> 8;
            Some(Self {
                sender_ssrc: u32_at(body, 0)?,
                media_ssrc: u32_at(body, 4)?,
                base_sequence: u16_at(body, 8)?,
                status_count: u16_at(body, 10)?,
                reference_time,
                feedback_count: *body.get(15)?,
                chunks: body.get(16..)?,
                deltas: &[],
            })
        };
        let mut feedback = read().ok_or("transport feedback head")?;
        feedback.split_deltas()?;
        Ok(feedback)
    }

    /// Finds where the chunks end and the deltas begin, and checks that every status has its delta.
    fn split_deltas(&mut self) -> Result<(), &'static str> {
        let mut statuses = usize::from(self.status_count);
        let (mut chunks_len, mut deltas_len) = (0, 0);
        while statuses > 0 {
            let chunk = Chunk(u16_at(self.chunks, chunks_len).ok_or("packet status chunk")?);
            chunks_len += 2;
            let covered = chunk.len().min(statuses);
            deltas_len += chunk.deltas_len(covered).ok_or("packet status symbol")?;
            statuses -= covered;
        }
        let (chunks, rest) =
            self.chunks.split_at_checked(chunks_len).ok_or("packet status chunk")?;
        self.chunks = chunks;
        self.deltas = rest.get(..deltas_len).ok_or("receive delta")?;
        Ok(())
    }

    /// The status of every reported packet, in the order of sequence numbers.
    pub fn packets(&self) -> impl Iterator<Item = PacketStatus> + Clone + 'a {
        let Self { base_sequence, chunks, deltas, .. } = *self;
        let mut at = 0;
        let mut ticks = i64::from(self.reference_time) * TICKS_PER_REFERENCE;
        chunks
            .chunks_exact(2)
            .flat_map(|chunk| Chunk(u16_at(chunk, 0).unwrap_or_default()).symbols())
            .take(usize::from(self.status_count))
            .zip(0_u16..)
            .map(move |(symbol, index)| {
                let delta = match symbol {
                    SMALL_DELTA => deltas.get(at).map(|&delta| (1, i64::from(delta))),
                    LARGE_DELTA => u16_at(deltas, at).map(|delta| (2, i64::from(delta as i16))),
                    _ => None,
                };
                let arrived_us = delta.map(|(len, delta)| {
                    at += len;
                    ticks += delta;
                    ticks * TICK_US
                });
                PacketStatus { sequence: base_sequence.wrapping_add(index), arrived_us }
            })
    }
}

/// A packet status chunk: a run of one symbol, fourteen one-bit symbols or seven two-bit symbols.
#[derive(Clone, Copy)]
struct Chunk(u16);

impl Chunk {
    fn run(symbol: u8, len: usize) -> Self {
        Self(u16::from(symbol) << 13 | (len.min(RUN_MAX) as u16))
    }

    /// A vector of at most 14 symbols of one bit or 7 of two; missing ones are "not received".
    fn vector(two_bits: bool, symbols: impl Iterator<Item = u8>) -> Self {
        let (head, width) = if two_bits { (0xc000, 2) } else { (0x8000, 1) };
        let places = (0..14 / width).rev();
        Self(
            symbols
                .zip(places)
                .fold(head, |chunk, (symbol, place)| chunk | u16::from(symbol) << (place * width)),
        )
    }

    fn is_run(self) -> bool {
        self.0 & 0x8000 == 0
    }

    /// How many packets it covers.
    fn len(self) -> usize {
        match self.0 >> 14 {
            0 | 1 => usize::from(self.0) & RUN_MAX,
            2 => 14,
            _ => 7,
        }
    }

    /// The symbol of the packet at `index`, which is below [`Self::len`].
    fn symbol(self, index: usize) -> u8 {
        (match self.0 >> 14 {
            0 | 1 => self.0 >> 13 & 3,
            2 => self.0 >> 13usize.saturating_sub(index) & 1,
            _ => self.0 >> 12usize.saturating_sub(2 * index) & 3,
        }) as u8
    }

    fn symbols(self) -> impl Iterator<Item = u8> + Clone {
        (0..self.len()).map(move |index| self.symbol(index))
    }

    /// Bytes of the deltas of its first `covered` packets; `None` when one has the reserved symbol,
    /// or when the chunk is empty (runs of length 0 would allow a report of any length without
    /// content).
    fn deltas_len(self, covered: usize) -> Option<usize> {
        if self.is_run() {
            let symbol = self.symbol(0);
            return (covered > 0 && symbol <= LARGE_DELTA).then(|| covered * usize::from(symbol));
        }
        // The value of each symbol is the length of its delta.
        (0..covered)
            .map(|index| self.symbol(index))
            .try_fold(0, |len, symbol| (symbol <= LARGE_DELTA).then(|| len + usize::from(symbol)))
    }
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its transport-wide sequence number.
    pub sequence: u16,
    /// When it arrived, microseconds since an arbitrary origin that stays the same for the session.
    pub arrived_us: u64,
}

impl Arrival {
    fn ticks(&self) -> i64 {
        // u64::MAX / 250 fits.
        (self.arrived_us / TICK_US as u64) as i64
    }
}

/// Writes feedback on a prefix of `arrivals`, which are in the order of sequence numbers (with
/// wrap); returns how many it took. It stops before a number that is not later, a time outside of
/// the range of deltas, and the length that any path carries. Without arrivals nothing is written.
pub(super) fn write(
    out: &mut Vec<u8>,
    sender_ssrc: u32,
    media_ssrc: u32,
    feedback_count: u8,
    arrivals: &[Arrival],
) -> usize {
    let Some(first) = arrivals.first() else { return 0 };
    let reference = first.ticks().div_euclid(TICKS_PER_REFERENCE);
    let (taken, status_count) = fitting(arrivals, reference * TICKS_PER_REFERENCE);
    let statuses = Statuses {
        arrivals: arrivals.get(..taken).unwrap_or_default(),
        sequence: first.sequence,
        ticks: reference * TICKS_PER_REFERENCE,
    };
    frame::write(out, frame::TRANSPORT_FEEDBACK, TransportFeedback::FORMAT, |out| {
        write_words(out, [sender_ssrc, media_ssrc]);
        write_words(out, [u32::from(first.sequence) << 16 | u32::from(status_count)]);
        // The reference time wraps at 24 bits.
        write_words(out, [(reference as u32) << 8 | u32::from(feedback_count)]);
        write_chunks(out, statuses.clone().map(|(symbol, _)| symbol), usize::from(status_count));
        for (symbol, delta) in statuses {
            match symbol {
                SMALL_DELTA => out.push(delta as u8),
                LARGE_DELTA => out.extend_from_slice(&delta.to_be_bytes()),
                _ => {}
            }
        }
    });
    taken
}

/// How many of `arrivals` fit one packet, and how many sequence numbers they span.
fn fitting(arrivals: &[Arrival], mut ticks: i64) -> (usize, u16) {
    let (mut taken, mut span, mut bytes) = (0, 0_u16, 0);
    let mut previous = arrivals.first().map_or(0, |first| first.sequence.wrapping_sub(1));
    for arrival in arrivals {
        let step = arrival.sequence.wrapping_sub(previous);
        let Ok(delta) = i16::try_from(arrival.ticks() - ticks) else { break };
        // A gap ends a chunk, spans several when long, and begins another.
        bytes += if step > 1 { 6 + 2 * (usize::from(step) / RUN_MAX) } else { 1 };
        bytes += usize::from(symbol_of(delta));
        let Some(wider) = span.checked_add(step) else { break };
        if step == 0 || step >= 0x8000 || bytes > FEEDBACK_BYTES_MAX {
            break;
        }
        (taken, span, previous, ticks) = (taken + 1, wider, arrival.sequence, arrival.ticks());
    }
    (taken, span)
}

fn symbol_of(delta: i16) -> u8 {
    if (0..=255).contains(&delta) { SMALL_DELTA } else { LARGE_DELTA }
}

/// The symbol and the delta of every sequence number from the first arrival to the last.
#[derive(Clone)]
struct Statuses<'a> {
    arrivals: &'a [Arrival],
    sequence: u16,
    ticks: i64,
}

impl Iterator for Statuses<'_> {
    type Item = (u8, i16);

    fn next(&mut self) -> Option<Self::Item> {
        let (arrival, rest) = self.arrivals.split_first()?;
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        if arrival.sequence != sequence {
            return Some((NOT_RECEIVED, 0));
        }
        let delta = (arrival.ticks() - self.ticks) as i16; // within range: checked by fitting()
        self.ticks = arrival.ticks();
        self.arrivals = rest;
        Some((symbol_of(delta), delta))
    }
}

/// Writes the chunks of `count` symbols: runs where they are long, vectors elsewhere, of two bits
/// only where needed.
fn write_chunks(out: &mut Vec<u8>, mut symbols: impl Iterator<Item = u8> + Clone, count: usize) {
    let mut left = count;
    while left > 0
        && let Some(first) = symbols.clone().next()
    {
        let run = symbols.clone().take(RUN_MAX).take_while(|&symbol| symbol == first).count();
        let two_bits = symbols.clone().take(14).any(|symbol| symbol == LARGE_DELTA);
        let vector_len = if two_bits { 7 } else { 14 };
        let (chunk, covered) = if run >= vector_len.min(left) {
            (Chunk::run(first, run), run)
        } else {
            (Chunk::vector(two_bits, symbols.clone().take(vector_len)), vector_len.min(left))
        };
        out.extend_from_slice(&chunk.0.to_be_bytes());
        left -= covered.min(left);
        symbols.by_ref().take(covered).for_each(drop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Rtcp, RtcpError};
    use proptest::prelude::*;

    fn parse(bytes: &[u8]) -> Result<TransportFeedback<'_>, RtcpError> {
        match Compound::new(bytes).next().unwrap()? {
            Rtcp::TransportFeedback(feedback) => Ok(feedback),
            other => panic!("{other:?}"),
        }
    }

    fn statuses(bytes: &[u8]) -> Vec<(u16, Option<i64>)> {
        parse(bytes).unwrap().packets().map(|p| (p.sequence, p.arrived_us)).collect()
    }

    fn with_fci(words: u8, fci: &[u8]) -> Vec<u8> {
        [&[0x8f, 205, 0, words + 2, 0, 0, 0, 1, 0, 0, 0, 2][..], fci].concat()
    }

    #[test]
    fn run_length_chunks_and_both_vectors_as_the_draft_draws_them() {
        let fci = [
            0,
            5,
            0,
            12,
            0,
            0,
            1,
            3, // base 5, 12 statuses, reference 64 ms, report 3
            0x20,
            2, // two small deltas
            0,
            2, // two lost
            0xd0,
            0b1000_0000, // two bits: small? no: 01 00 00 10 00 00 00
            0x80,
            0, // one bit: not received (only the first is counted)
            4,
            8,
            2,
            0xff,
            0xfe,
            0,
            0,
            0,
        ];
        // The two-bit vector 11 01 00 00 10 00 00 00 begins after its two head bits.
        let bytes = with_fci(6, &fci);
        let feedback = parse(&bytes).unwrap();
        assert_eq!((feedback.base_sequence, feedback.status_count), (5, 12));
        assert_eq!((feedback.reference_time, feedback.feedback_count), (1, 3));
        let base = 64_000;
        assert_eq!(
            statuses(&bytes),
            [
                (5, Some(base + 1000)),
                (6, Some(base + 3000)),
                (7, None),
                (8, None),
                (9, Some(base + 3500)),
                (10, None),
                (11, None),
                (12, Some(base + 3000)), // a large delta may go back
                (13, None),
                (14, None),
                (15, None),
                (16, None),
            ]
        );
    }

    #[test]
    fn reports_that_lie_about_their_length_are_refused() {
        for (fci, bad) in [
            (&[0, 0, 0, 1, 0, 0, 0, 0][..], "packet status chunk"),
            (&[0, 0, 0, 5, 0, 0, 0, 0, 0x20, 5, 1, 1], "receive delta"),
            (&[0, 0, 0, 1, 0, 0, 0, 0, 0x60, 1, 0, 0], "packet status symbol"),
            (&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], "packet status symbol"), // a run of nothing
            (&[0, 0, 0, 7, 0, 0, 0, 0, 0xff, 0xff, 0, 0], "packet status symbol"),
        ] {
            match parse(&with_fci((fci.len() / 4) as u8, fci)) {
                Err(RtcpError::Malformed { what, .. }) => assert_eq!(what, bad),
                other => panic!("{fci:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn reference_times_are_signed() {
        let bytes = with_fci(3, &[0, 0, 0, 1, 0xff, 0xff, 0xff, 0, 0x20, 1, 4, 0]);
        assert_eq!(statuses(&bytes), [(0, Some(-63_000))]);
    }

    fn check(arrivals: &[Arrival]) {
        let mut rest = arrivals;
        let mut seen = Vec::new();
        while !rest.is_empty() {
            let mut out = Vec::new();
            let taken = write(&mut out, 1, 2, 9, rest);
            assert!(taken > 0 && out.len() <= FEEDBACK_BYTES_MAX + 40, "{taken} {}", out.len());
            let feedback = parse(&out).unwrap();
            let last = rest[taken - 1].sequence;
            assert_eq!(feedback.base_sequence, rest[0].sequence);
            assert_eq!(feedback.status_count, last.wrapping_sub(rest[0].sequence).wrapping_add(1));
            seen.extend(feedback.packets().filter_map(|p| {
                p.arrived_us.map(|us| Arrival { sequence: p.sequence, arrived_us: us as u64 })
            }));
            rest = &rest[taken..];
        }
        let in_ticks: Vec<_> = arrivals
            .iter()
            .map(|a| Arrival { arrived_us: a.arrived_us / 250 * 250, ..*a })
            .collect();
        assert_eq!(seen, in_ticks);
    }

    #[test]
    fn what_is_written_is_read() {
        let at = |sequence, arrived_us| Arrival { sequence, arrived_us };
        check(&[at(7, 0)]);
        check(
            &(0..200)
                .map(|n| at(65_500_u16.wrapping_add(n), 1_000 * u64::from(n)))
                .collect::<Vec<_>>(),
        );
        check(&[at(1, 1_000_000), at(2, 999_000), at(4, 1_200_000), at(5, 9_999_000)]); // back, and too far ahead
        check(&[at(1, 0), at(30_000, 1_000), at(60_000, 2_000), at(61_000, 3_000)]);
        check(&(0..2000).map(|n| at(2 * n, 300 * u64::from(n))).collect::<Vec<_>>());
        let mut out = Vec::new();
        assert_eq!((write(&mut out, 1, 2, 0, &[]), out.len()), (0, 0));
    }

    #[test]
    fn a_number_that_does_not_follow_waits_for_the_next_report() {
        let at = |sequence| Arrival { sequence, arrived_us: 1_000 };
        let mut out = Vec::new();
        assert_eq!(write(&mut out, 1, 2, 0, &[at(5), at(6), at(6), at(7)]), 2);
        assert_eq!(write(&mut out, 1, 2, 0, &[at(5), at(4)]), 1);
    }

    #[test]
    fn a_steady_stream_costs_one_run() {
        let arrivals: Vec<_> =
            (0..100).map(|n| Arrival { sequence: n, arrived_us: 10_000 * u64::from(n) }).collect();
        let mut out = Vec::new();
        assert_eq!(write(&mut out, 1, 2, 0, &arrivals), 100);
        assert_eq!(out.len(), (12 + 8 + 2 + 100_usize).next_multiple_of(4));
    }

    proptest! {
        #[test]
        fn any_ascending_arrivals_survive(
            first: u16,
            steps in prop::collection::vec((1_u16..=40, 0_u64..200_000), 1..400),
        ) {
            let (mut sequence, mut arrived_us) = (first, 1_000_000_u64);
            let arrivals: Vec<_> = steps
                .into_iter()
                .map(|(step, us)| {
                    sequence = sequence.wrapping_add(if step > 5 { 1 } else { step });
                    arrived_us = (arrived_us + us).saturating_sub(20_000);
                    Arrival { sequence, arrived_us }
                })
                .collect();
            check(&arrivals);
        }
    }
}
