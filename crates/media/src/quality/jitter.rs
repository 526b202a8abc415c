//! Interarrival jitter, RFC 3550 §6.4.1 and A.8: `J += (|D| − J) / 16`, `D = (R_i − R_j) − (S_i −
//! S_j)`.
//!
//! Packets count in the order of arrival, first transmissions only. All packets of a video frame
//! share a timestamp, so the spacing of a frame's packets counts as jitter, as the RFC defines it
//! and every peer reports it. Packets of frames that are shown before an earlier one (B-frames) are
//! left out.

use super::timestamp;

/// Larger steps are a new timeline of the source, not jitter, and do not change the figure: one of
/// them would dominate the next hundred packets.
const DISCONTINUITY_S: f64 = 5.0;

/// A packet that comes so much earlier than the fastest so far is one of a source whose clock has
/// jumped: a path makes packets late, never early. Seconds.
const JUMP_S: f64 = 1.0;

/// A path reorders packets by less than this, and sends none again later. Seconds.
const REORDERED_S: f64 = 0.5;

/// Jitter of one stream.
#[derive(Clone, Copy, Debug)]
pub struct JitterMeter {
    clock_hz: f64,
    previous: Option<(i64, u32)>,
    /// How much later the previous packet came than the fastest so far, by its timestamp.
    late_ticks: f64,
    jitter_ticks: f64,
    steps: bool,
}

impl JitterMeter {
    /// A meter for an RTP clock of `clock_rate_hz`.
    #[must_use]
    pub fn new(clock_rate_hz: u32) -> Self {
        Self {
            clock_hz: f64::from(clock_rate_hz.max(1)),
            previous: None,
            late_ticks: 0.0,
            jitter_ticks: 0.0,
            steps: false,
        }
    }

    /// A packet arrived. Returns whether the source's clock jumped ahead since the one before, if
    /// none is missing between the two.
    pub fn packet(&mut self, arrived_ns: i64, timestamp: u32) -> bool {
        let mut has_jumped = false;
        if let Some((arrived_before, timestamp_before)) = self.previous {
            let arrival = (arrived_ns - arrived_before) as f64 * 1e-9 * self.clock_hz;
            let step = f64::from(timestamp::step(timestamp_before, timestamp));
            let difference = (arrival - step).abs();
            // The one before may have been late itself; no path turns the time of packets back.
            self.late_ticks = if step < 0.0 { 0.0 } else { self.late_ticks + arrival - step };
            has_jumped = self.late_ticks < -JUMP_S * self.clock_hz;
            self.late_ticks = self.late_ticks.max(0.0);
            if difference < DISCONTINUITY_S * self.clock_hz {
                self.jitter_ticks += (difference - self.jitter_ticks) / 16.0;
                self.steps = true;
            }
        }
        self.previous = Some((arrived_ns, timestamp));
        has_jumped
    }

    /// Whether a packet comes so much earlier or later after the one before than their timestamps
    /// say that they are of two timelines.
    #[must_use]
    pub fn is_apart(&self, arrived_ns: i64, timestamp: u32) -> bool {
        self.apart_ticks(arrived_ns, timestamp).is_some_and(|by| by > JUMP_S * self.clock_hz)
    }

    /// Whether a packet comes so near the one before, by their timestamps, that a path may have
    /// reordered the two, or sent it twice. Not where no packet of this timeline came before.
    #[must_use]
    pub fn may_be_reordered(&self, arrived_ns: i64, timestamp: u32) -> bool {
        self.apart_ticks(arrived_ns, timestamp).is_some_and(|by| by <= REORDERED_S * self.clock_hz)
    }

    /// How much earlier or later it comes after the one before than their timestamps say.
    fn apart_ticks(&self, arrived_ns: i64, timestamp: u32) -> Option<f64> {
        let (arrived_before, timestamp_before) = self.previous?;
        let arrival = (arrived_ns - arrived_before) as f64 * 1e-9 * self.clock_hz;
        let step = f64::from(timestamp::step(timestamp_before, timestamp));
        Some((arrival - step).abs())
    }

    /// The next packet belongs to another timeline; the figure so far stays.
    pub fn restart(&mut self) {
        (self.previous, self.late_ticks) = (None, 0.0);
    }

    /// In timestamp units, as in a receiver report.
    #[must_use]
    pub fn ticks(&self) -> u32 {
        self.jitter_ticks as u32
    }

    /// In microseconds; `None` before the second packet.
    #[must_use]
    pub fn micros(&self) -> Option<u32> {
        self.steps.then(|| (self.jitter_ticks / self.clock_hz * 1e6) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_steady_stream_has_no_jitter_over_the_timestamp_wrap() {
        let mut meter = JitterMeter::new(90_000);
        assert_eq!(meter.micros(), None);
        for i in 0..100_u32 {
            meter.packet(i64::from(i) * 20 * MS, (u32::MAX - 9000).wrapping_add(i * 1800));
        }
        assert_eq!((meter.ticks(), meter.micros()), (0, Some(0)));
    }

    #[test]
    fn the_first_step_counts_a_sixteenth_and_alternation_settles_at_its_size() {
        let mut meter = JitterMeter::new(8_000);
        meter.packet(0, 0);
        meter.packet(36 * MS, 160); // 16 ms late: |D| = 128 ticks, a sixteenth is 8
        assert_eq!((meter.ticks(), meter.micros()), (8, Some(1000)));
        for i in 1..400_i64 {
            // Every other packet 10 ms late: |D| is 10 ms each time.
            meter
                .packet((36 + i * 20 + if i % 2 == 0 { 0 } else { 10 }) * MS, 160 + 160 * i as u32);
        }
        assert!(meter.micros().unwrap().abs_diff(10_000) <= 2, "{meter:?}");
    }

    #[test]
    fn packets_of_one_frame_share_a_timestamp_and_their_spacing_counts() {
        let mut meter = JitterMeter::new(90_000);
        for i in 0..1000_i64 {
            meter.packet(i * MS, (i / 40) as u32 * 3600); // 40 packets, 1 ms apart, per 40 ms frame
        }
        let micros = meter.micros().unwrap();
        assert!((1_000..10_000).contains(&micros), "{micros}");
    }

    #[test]
    fn what_comes_in_time_after_a_late_packet_is_no_jump() {
        // A slide every two seconds.
        let jumps = |late_ms: [i64; 6], ahead_s: [u32; 6]| {
            let mut meter = JitterMeter::new(90_000);
            let slides = late_ms.into_iter().zip(ahead_s).zip(0_u32..);
            let jumps = slides.map(|((late_ms, ahead_s), number)| {
                meter.packet(
                    (i64::from(number) * 2_000 + late_ms) * MS,
                    (2 * number + ahead_s).wrapping_mul(90_000),
                )
            });
            jumps.collect::<Vec<_>>()
        };
        assert_eq!(jumps([0, 0, 1_500, 0, 0, 0], [0; 6]), [false; 6]);
        assert_eq!(jumps([9_000, 0, 0, 0, 0, 0], [0; 6])[2..], [false; 4]);
        let jumped = [false, false, true, false, false, false];
        assert_eq!(jumps([0; 6], [0, 0, 2, 2, 2, 2]), jumped);
        let jumped = [false, false, false, true, false, false];
        assert_eq!(jumps([0, 0, 1_500, 0, 0, 0], [0, 0, 0, 2, 2, 2]), jumped);
        // Back, which is none, and ahead again.
        let jumped = [false, false, false, false, true, false];
        assert_eq!(jumps([0; 6], [3, 3, 0, 0, 3, 3]), jumped);
    }

    #[test]
    fn timelines_are_apart_by_more_than_a_second() {
        let mut meter = JitterMeter::new(90_000);
        assert!(!meter.is_apart(0, 7));
        meter.packet(0, u32::MAX);
        // After a tenth of a second, so much media.
        for (media_ms, is_apart) in [(100, false), (1_090, false), (1_110, true), (-890, false)] {
            let timestamp = u32::MAX.wrapping_add_signed(media_ms * 90);
            assert_eq!(meter.is_apart(100 * MS, timestamp), is_apart, "{media_ms}");
        }
        assert!(meter.is_apart(100 * MS, u32::MAX - 90 * 910));
        assert!(meter.is_apart(1_100 * MS, 0), "late");
    }

    #[test]
    fn what_a_path_reorders_is_near_by_its_timestamp() {
        let mut meter = JitterMeter::new(90_000);
        assert!(!meter.may_be_reordered(0, 7), "nothing came before");
        meter.packet(0, 7);
        for (late_ms, media_ms, is_near) in
            [(5, -40, true), (400, -40, true), (500, -40, false), (5, -600, false)]
        {
            let timestamp = 7_u32.wrapping_add_signed(media_ms * 90);
            let is = meter.may_be_reordered(late_ms * MS, timestamp);
            assert_eq!(is, is_near, "{late_ms} {media_ms}");
        }
        meter.restart();
        assert!(!meter.may_be_reordered(0, 7));
    }

    #[test]
    fn a_new_timeline_is_not_jitter() {
        let mut meter = JitterMeter::new(90_000);
        meter.packet(0, 0);
        meter.packet(10 * MS, 900);
        meter.packet(20 * MS, 900 + 90_000 * 60);
        assert_eq!(meter.ticks(), 0);
        meter.packet(30 * MS, 900 + 90_000 * 60 + 900);
        assert_eq!(meter.ticks(), 0);
    }
}
