//! An estimate over a simulated path with a bottleneck.

use throng_media::rtcp::{Arrival, Compound, Report, Rtcp, RtcpWriter};

use super::*;

const WANTED_BPS: f64 = 1e6;

/// A path with a queue before its bottleneck, and a sender of a frame every 33 ms.
struct Path {
    estimate: Estimate,
    start: Instant,
    now: Instant,
    next: u16,
    capacity_bps: f64,
    /// When the queue is empty.
    free_at: Instant,
    /// Packets in flight: number, arrival.
    under_way: Vec<(u16, Instant)>,
    rng: fastrand::Rng,
    /// The mean of the added jitter.
    jitter_ms: f64,
    reports: u8,
}

/// The results of an interval.
struct Seen {
    sent_bps: f64,
    worst_loss: f64,
    ceilings: Vec<Option<f64>>,
}

impl Path {
    fn new(capacity_bps: f64) -> Self {
        let now = Instant::now();
        Self {
            estimate: Estimate::new(now),
            start: now,
            now,
            next: 65_000,
            capacity_bps,
            free_at: now,
            under_way: Vec::new(),
            rng: fastrand::Rng::with_seed(3),
            jitter_ms: 1.0,
            reports: 0,
        }
    }

    /// Sends at the wanted rate, or at the ceiling if that is lower, for `seconds`; `arrives`
    /// decides for each packet.
    fn run(&mut self, seconds: u64, mut arrives: impl FnMut(u16) -> bool) -> Seen {
        let mut seen = Seen { sent_bps: 0.0, worst_loss: 0.0, ceilings: Vec::new() };
        for frame in 0..seconds * 30 {
            self.now += Duration::from_micros(33_333);
            let rate =
                self.estimate.ceiling_bps().map_or(WANTED_BPS, |ceiling| ceiling.min(WANTED_BPS));
            let mut left = rate / 30.0 / 8.0;
            while left > 0.0 {
                let bytes = left.clamp(60.0, 1_000.0) as usize;
                left -= 1_000.0;
                seen.sent_bps += bytes as f64 * 8.0 / seconds as f64;
                self.packet(bytes, MediaKind::Video, &mut arrives);
            }
            if frame % 3 == 0 {
                self.report();
                seen.worst_loss =
                    self.estimate.take_loss(self.now).unwrap_or(0.0).max(seen.worst_loss);
                self.estimate.forget_above(2.0 * WANTED_BPS);
                seen.ceilings.push(self.estimate.ceiling_bps());
            }
        }
        seen
    }

    fn packet(&mut self, bytes: usize, kind: MediaKind, arrives: &mut impl FnMut(u16) -> bool) {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.estimate.sent(self.now, number, bytes, kind);
        let queue = self.free_at.saturating_duration_since(self.now);
        if !arrives(number) || queue > Duration::from_millis(500) {
            return;
        }
        let takes = Duration::from_secs_f64(bytes as f64 * 8.0 / self.capacity_bps);
        self.free_at = self.free_at.max(self.now) + takes;
        let jitter = Duration::from_secs_f64(self.rng.f64() * 2.0 * self.jitter_ms / 1e3);
        self.under_way.push((number, self.free_at + Duration::from_millis(20) + jitter));
    }

    fn report(&mut self) {
        let (there, under_way) = self.under_way.drain(..).partition(|(_, at)| *at <= self.now);
        self.under_way = under_way;
        let there: Vec<(u16, Instant)> = there;
        let arrivals: Vec<Arrival> = there
            .into_iter()
            .map(|(sequence, at)| Arrival {
                sequence,
                arrived_us: 77_000_000 + (at - self.start).as_micros() as u64,
            })
            .collect();
        tell(&mut self.estimate, self.now, &mut self.reports, &arrivals);
    }
}

fn tell(estimate: &mut Estimate, now: Instant, reports: &mut u8, arrivals: &[Arrival]) {
    let mut bytes = Vec::new();
    let _ = RtcpWriter::compound(&mut bytes, Report::Receiver(9), &[], "x")
        .transport_feedback(9, 2, reports, arrivals);
    for packet in Compound::new(&bytes).flatten() {
        if let Rtcp::TransportFeedback(feedback) = packet {
            estimate.feedback(now, &feedback);
        }
    }
}

#[test]
fn a_path_that_is_wide_enough_has_no_ceiling() {
    for jitter_ms in [0.0, 1.0, 5.0] {
        let mut path = Path { jitter_ms, ..Path::new(50e6) };
        let seen = path.run(120, |_| true);
        assert!(
            seen.ceilings.iter().all(Option::is_none),
            "{jitter_ms}: {:?}",
            path.estimate.ceiling_bps()
        );
        assert!((0.98..1.05).contains(&(seen.sent_bps / WANTED_BPS)), "{}", seen.sent_bps);
    }
}

#[test]
fn a_bottleneck_is_filled_and_not_overrun() {
    for capacity_bps in [0.5 * WANTED_BPS, 0.8 * WANTED_BPS] {
        let mut path = Path::new(capacity_bps);
        path.run(10, |_| true);
        let seen = path.run(60, |_| true);
        let share = seen.sent_bps / capacity_bps;
        assert!((0.6..1.0).contains(&share), "{share} of {capacity_bps}");
        assert!(seen.worst_loss < 0.02, "the queue runs over: {}", seen.worst_loss);
    }
}

#[test]
fn a_path_that_widens_is_found_wide() {
    let mut path = Path::new(0.5 * WANTED_BPS);
    path.run(20, |_| true);
    assert!(path.estimate.ceiling_bps().is_some_and(|ceiling| ceiling < 0.6 * WANTED_BPS));
    path.capacity_bps = 50e6;
    let seen = path.run(60, |_| true);
    assert_eq!(path.estimate.ceiling_bps(), None);
    assert!(seen.sent_bps > 0.8 * WANTED_BPS, "{}", seen.sent_bps);
}

#[test]
fn a_burst_of_loss_is_reported_and_is_no_queue() {
    let mut path = Path::new(50e6);
    path.run(5, |_| true);
    // A second of every third packet, past the wrap of numbers.
    let mut seen = path.run(1, |number| number % 3 != 0);
    seen.worst_loss = seen.worst_loss.max(path.run(2, |_| true).worst_loss);
    assert!((0.15..0.4).contains(&seen.worst_loss), "{}", seen.worst_loss);
    assert_eq!(path.estimate.ceiling_bps(), None);
    assert!(path.run(3, |_| true).worst_loss < 0.02);
}

#[test]
fn audio_that_waits_behind_key_frames_is_no_queue_that_grows() {
    let mut path = Path::new(1.5 * WANTED_BPS);
    for ms in 0..30_000_u64 {
        path.now = path.start + Duration::from_millis(ms);
        if ms % 20 == 3 {
            path.packet(100, MediaKind::Audio, &mut |_: u16| true);
        }
        if ms % 33 == 0 {
            // Every tenth frame is a key frame.
            let packets = if ms % 330 == 0 { 16 } else { 3 };
            (0..packets).for_each(|_| path.packet(960, MediaKind::Video, &mut |_: u16| true));
        }
        if ms % 100 == 0 {
            path.report();
            assert_eq!(path.estimate.ceiling_bps(), None, "after {ms} ms");
        }
    }
}

#[test]
fn lost_audio_is_loss() {
    let start = Instant::now();
    let (mut estimate, mut reports) = (Estimate::new(start), 0);
    for sequence in 0..100_u16 {
        let sent_at = start + Duration::from_millis(20 * u64::from(sequence));
        estimate.sent(sent_at, sequence, 100, MediaKind::Audio);
    }
    let even = (0..100_u16).filter(|sequence| sequence % 2 == 0);
    let arrivals: Vec<Arrival> = even
        .map(|sequence| Arrival { sequence, arrived_us: 9_000_000 + 20_000 * u64::from(sequence) })
        .collect();
    let now = start + Duration::from_secs(2);
    tell(&mut estimate, now, &mut reports, &arrivals);
    // Of the 99 numbers up to the last one that arrived.
    assert_eq!(estimate.take_loss(now), Some(49.0 / 99.0));
    assert_eq!(estimate.arrived.bps(), None, "no rate of video");
}

#[test]
fn a_packet_that_is_sent_twice_is_lost_and_says_nothing_of_the_path() {
    let start = Instant::now();
    let (mut estimate, mut reports) = (Estimate::new(start), 0);
    for sequence in 0..10_u16 {
        let sent_at = start + Duration::from_millis(u64::from(sequence));
        estimate.sent(sent_at, sequence, 1_000, MediaKind::Video);
    }
    let arrivals = |sequences: &[u16], late_us: u64| -> Vec<Arrival> {
        let arrived_us = |sequence: u16| 77_000_000 + late_us + 1_000 * u64::from(sequence);
        let arrival = |&sequence| Arrival { sequence, arrived_us: arrived_us(sequence) };
        sequences.iter().map(arrival).collect()
    };
    let now = start + Duration::from_millis(50);
    tell(&mut estimate, now, &mut reports, &arrivals(&[0, 1, 2, 4, 5], 0));
    assert_eq!((estimate.reported, estimate.lost), (6, 1));
    // The one is known as lost, the other is not reported yet; one had arrived all the same, and
    // one is unknown.
    [3, 7, 5, 4_000].into_iter().for_each(|sequence| estimate.repeated(sequence));
    assert_eq!((estimate.reported, estimate.lost), (7, 2));
    tell(&mut estimate, now, &mut reports, &arrivals(&[3, 6, 7, 8, 9], 60_000));
    assert_eq!((estimate.reported, estimate.lost), (10, 2));
    let bytes: u64 = estimate.arrived.bytes.iter().sum();
    assert_eq!(bytes, 8 * 1_000, "of those that arrived the first time");
}

#[test]
fn feedback_that_lies_is_survived() {
    let start = Instant::now();
    let mut rng = fastrand::Rng::with_seed(8);
    let mut estimate = Estimate::new(start);
    let (mut next, mut reports) = (0_u16, 0);
    for step in 0..5_000_u64 {
        let now = start + Duration::from_millis(step * 20);
        for _ in 0..4 {
            estimate.sent(now, next, rng.usize(0..2_000), MediaKind::Video);
            next = next.wrapping_add(1);
        }
        // Sent and unknown packets, with times that go backwards too.
        let mut sequence = next.wrapping_sub(rng.u16(0..64));
        let mut arrived_us = rng.u64(0..1 << 50);
        let arrivals: Vec<Arrival> = (0..rng.usize(0..20))
            .map(|_| {
                sequence = sequence.wrapping_add(rng.u16(1..40));
                arrived_us = arrived_us.saturating_add_signed(rng.i64(-8_000_000..8_000_000));
                Arrival { sequence, arrived_us }
            })
            .collect();
        tell(&mut estimate, now, &mut reports, &arrivals);
        estimate.forget_above(2.0 * WANTED_BPS);
        let loss = estimate.take_loss(now);
        assert!(loss.is_none_or(|loss| (0.0..=1.0).contains(&loss)), "{loss:?}");
        let ceiling = estimate.ceiling_bps();
        assert!(
            ceiling.is_none_or(|bps| (FLOOR_BPS..=2.0 * WANTED_BPS).contains(&bps)),
            "{ceiling:?}"
        );
    }
}

#[test]
fn a_report_on_all_numbers_is_read_in_part() {
    let start = Instant::now();
    let mut estimate = Estimate::new(start);
    estimate.sent(start, 1, 1_000, MediaKind::Video);
    // 65,535 packets that did not arrive, in eight chunks and one: version, format 15, type 205,
    // head, chunks.
    let mut body = vec![0x8f, 205, 0, 0, 0, 0, 0, 9, 0, 0, 0, 2, 0, 1, 0xff, 0xff, 0, 0, 0, 0];
    (0..8).for_each(|_| body.extend(0x1fff_u16.to_be_bytes()));
    body.extend(7_u16.to_be_bytes());
    body.extend([0, 0]);
    body[3] = (body.len() / 4 - 1) as u8;
    let mut reported = 0;
    for packet in Compound::new(&body).flatten() {
        if let Rtcp::TransportFeedback(feedback) = packet {
            assert_eq!(feedback.status_count, u16::MAX);
            estimate.feedback(start, &feedback);
            reported += 1;
        }
    }
    assert_eq!((reported, estimate.reported, estimate.lost), (1, 1, 1));
    assert_eq!(estimate.ceiling_bps(), None);
}
