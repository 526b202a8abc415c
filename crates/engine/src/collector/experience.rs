//! The quality of a participant's second: which clauses of `bad_if` it violated.

use throng_observation::run::CohortId;
use throng_observation::{
    BadIf, Clause, ExperienceRow, MediaKind, SentInterval, TrackCounters, TrackInterval,
};

/// Lost packets below which an interval is not bad: one of the fifty audio packets of a second is
/// two per cent.
const LOST_MIN: i64 = 2;

/// Judges a track's loss by interval. A single lost packet is excused once; the next one is judged
/// together with it over all packets expected since, so that a steady loss counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossJudge {
    /// Packets expected in the last interval that lost any, and since.
    expected_since: Option<u64>,
}

impl LossJudge {
    fn is_bad(&mut self, counters: &TrackCounters, ratio_max: f64) -> bool {
        let expected = counters.packets_expected();
        let since = self.expected_since.map(|packets| packets.saturating_add(expected));
        if counters.packets_lost <= 0 {
            self.expected_since = since;
            return false;
        }
        self.expected_since = Some(expected);
        let is_above = counters.packet_loss_ratio().unwrap_or(0.0) > ratio_max;
        let is_repeated = since.is_some_and(|packets| LOST_MIN as f64 / packets as f64 > ratio_max);
        is_above && (counters.packets_lost >= LOST_MIN || is_repeated)
    }
}

/// Time with frames expected below which a frame rate is not judged.
const RATE_STRETCH_US_MIN: u64 = 500_000;

/// The clauses that a track's interval violated, as bits of [`Clause::bit`]. `is_recording`: a
/// recording is not a call.
pub(super) fn broken_clauses(
    interval: &TrackInterval,
    bad_if: &BadIf,
    is_recording: bool,
    loss: &mut LossJudge,
) -> u16 {
    let counters = &interval.counters;
    if counters.missing_us > 0 {
        return Clause::NoMedia.bit();
    }
    let mut bits = 0;
    let mut hold =
        |clause: Clause, is_broken: bool| bits |= if is_broken { clause.bit() } else { 0 };
    hold(Clause::Loss, loss.is_bad(counters, bad_if.loss_ratio_max));
    let late = |us: &&u32| f64::from(**us) > bad_if.delay_us_max(is_recording);
    let delays = &interval.relative_delay_us;
    // The median is too late when more than half of the frames are.
    hold(Clause::Delay, delays.iter().filter(late).count() * 2 > delays.len());
    let jitter_ms = f64::from(interval.jitter_us.unwrap_or(0)) / 1e3;
    hold(Clause::Jitter, jitter_ms > bad_if.jitter_ms_max);
    if interval.kind == MediaKind::Video {
        let frozen_us_max = bad_if.freeze_ratio_max * counters.active_us as f64;
        hold(Clause::Freeze, counters.freeze_us as f64 > frozen_us_max);
        // The wait for the first frame counts as join time.
        if interval.frames_due_us >= RATE_STRETCH_US_MIN {
            let (frames, due_us) = (counters.frames_decodable, interval.frames_due_us);
            let is_below = |source: f64| {
                TrackInterval::is_below_source(frames, due_us, source, bad_if.fps_ratio_min)
            };
            let source = interval.source_fps.map(f64::from);
            let never_began = interval.first_frame_awaited_since.is_some();
            hold(Clause::Fps, source.map_or(never_began, is_below));
        }
    }
    bits
}

/// The clauses that a sender's interval violated according to its receiver's reports (RTCP): the
/// only evidence for participants that receive nothing.
pub(super) fn remote_loss_clauses(interval: &SentInterval, bad_if: &BadIf) -> u16 {
    let loss = interval.remote_loss_ratio.unwrap_or(0.0);
    let lost = interval.counters.packets_sent as f64 * loss;
    if loss > bad_if.loss_ratio_max && lost >= LOST_MIN as f64 { Clause::Loss.bit() } else { 0 }
}

/// The quality of a participant's second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SecondQuality {
    /// Violated clauses, as bits of [`Clause::bit`].
    pub(super) bits: u16,
    /// Share of the expected senders that it received badly, thousandths.
    pub(super) badly_milli: u32,
    /// Tracks frozen because their senders paused; these are not violations.
    pub(super) paused: u32,
}

impl SecondQuality {
    /// Good if no bit is set, otherwise bad for all senders.
    pub(super) fn whole(bits: u16) -> Self {
        Self { bits, badly_milli: if bits == 0 { 0 } else { 1_000 }, paused: 0 }
    }
}

/// Adds a participant's second to its cohort's row.
pub(super) fn count(rows: &mut [ExperienceRow], cohort: CohortId, quality: SecondQuality) {
    let bits = quality.bits;
    let Some(row) = rows.get_mut(usize::from(cohort.0)) else { return };
    row.users += 1;
    if bits != 0 {
        row.bad += 1;
        row.uncounted_milli += 1_000_u32.saturating_sub(quality.badly_milli);
    }
    for (clause, count) in Clause::ALL.iter().zip(&mut row.clauses) {
        *count += u32::from(bits & clause.bit() != 0);
    }
}

/// Adds `lost` failed participants, which should still be served, to their cohort's row.
pub(super) fn count_lost(row: &mut ExperienceRow, lost: u32) {
    row.users += lost;
    row.bad += lost;
    if let Some(count) = row.clauses.get_mut(Clause::NotConnected as usize) {
        *count += lost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};
    use throng_observation::{Codec, SentCounters, TrackId};

    fn interval(change: impl FnOnce(&mut TrackInterval)) -> TrackInterval {
        let mut interval = TrackInterval {
            track: TrackId(0),
            kind: MediaKind::Video,
            ended_at: Instant::now(),
            counters: TrackCounters {
                packets_original: 100,
                frames_decodable: 30,
                active_us: 1_000_000,
                ..TrackCounters::default()
            },
            jitter_us: Some(3_000),
            relative_delay_us: vec![5_000; 30],
            absolute_delay_us: Vec::new(),
            capture_basis: None,
            oven_rtc_tester_delay_us: None,
            source_fps: Some(30.0),
            frames_due_us: 1_000_000,
            first_frame_awaited_since: None,
            picture_lines: None,
            missing: None,
        };
        change(&mut interval);
        interval
    }

    #[test]
    fn each_clause_is_broken_by_its_own_figure_alone() {
        type Change = fn(&mut TrackInterval);
        let cases: [(&str, Change, Option<Clause>); 14] = [
            ("a good second", |_| {}, None),
            ("one packet lost", |i| i.counters.packets_lost = 1, None),
            ("two packets lost", |i| i.counters.packets_lost = 2, Some(Clause::Loss)),
            ("some frames late", |i| i.relative_delay_us[..15].fill(200_000), None),
            ("most frames late", |i| i.relative_delay_us[..16].fill(200_000), Some(Clause::Delay)),
            ("few frames", |i| i.counters.frames_decodable = 23, Some(Clause::Fps)),
            (
                "a slide every two seconds",
                |i| (i.source_fps, i.counters.frames_decodable) = (Some(0.5), 0),
                None,
            ),
            (
                "a short stretch",
                |i| (i.frames_due_us, i.counters.frames_decodable) = (400_000, 1),
                None,
            ),
            (
                "joined a while before the first key frame",
                |i| (i.frames_due_us, i.counters.frames_decodable) = (600_000, 18),
                None,
            ),
            (
                "still waits for the first key frame",
                |i| {
                    (i.frames_due_us, i.counters.frames_decodable) = (0, 0);
                    i.first_frame_awaited_since = Some(i.ended_at);
                },
                None,
            ),
            (
                "has waited too long for it",
                |i| {
                    (i.source_fps, i.counters.frames_decodable) = (None, 0);
                    i.first_frame_awaited_since = Some(i.ended_at);
                },
                Some(Clause::Fps),
            ),
            ("a still picture", |i| i.counters.freeze_us = 1, Some(Clause::Freeze)),
            ("nothing came", |i| i.counters.missing_us = 1_000_000, Some(Clause::NoMedia)),
            ("uneven", |i| i.jitter_us = Some(101_000), Some(Clause::Jitter)),
        ];
        for (name, change, clause) in cases {
            let expected = clause.map_or(0, Clause::bit);
            let loss = &mut LossJudge::default();
            let broken = broken_clauses(&interval(change), &BadIf::default(), false, loss);
            assert_eq!(broken, expected, "{name}");
        }
    }

    #[test]
    fn a_freeze_within_its_bound_is_not_bad() {
        let bad_if = BadIf { freeze_ratio_max: 0.5, ..BadIf::default() };
        let of = |freeze_us| {
            let frozen = interval(|i| i.counters.freeze_us = freeze_us);
            broken_clauses(&frozen, &bad_if, false, &mut LossJudge::default())
        };
        assert_eq!((of(500_000), of(500_001)), (0, Clause::Freeze.bit()));
    }

    #[test]
    fn a_recording_that_comes_in_bursts_is_not_late_as_a_call_is() {
        let of = |delay_us: u32, is_recording| {
            // MPEG audio of a program stream comes in bursts: the first frame of each is as late as
            // the burst is long.
            let burst = interval(|i| {
                i.kind = MediaKind::Audio;
                i.relative_delay_us = (0..11).rev().map(|frame| delay_us / 10 * frame).collect();
            });
            broken_clauses(&burst, &BadIf::default(), is_recording, &mut LossJudge::default())
        };
        let late = Clause::Delay.bit();
        assert_eq!((of(320_000, false), of(320_000, true)), (late, 0));
        assert_eq!(
            (of(2_200_000, false), of(2_200_000, true)),
            (late, late),
            "more than players buffer"
        );
    }

    #[test]
    fn a_lone_lost_packet_is_excused_and_a_steady_loss_is_not() {
        // Fifty audio packets a second, of which these are lost; returns whether each second is
        // bad.
        let seconds_of = |losses: &[i64]| -> Vec<bool> {
            let mut judge = LossJudge::default();
            let mut second = |lost: &i64| {
                let packets_original = 50 - *lost as u64;
                let counters = TrackCounters {
                    packets_original,
                    packets_lost: *lost,
                    ..TrackCounters::default()
                };
                judge.is_bad(&counters, 0.01)
            };
            losses.iter().map(&mut second).collect()
        };
        assert_eq!(seconds_of(&[1, 1, 1, 1]), [false, true, true, true], "2 % all the time");
        assert_eq!(
            seconds_of(&[1, 0, 1, 0, 1]),
            [false, false, true, false, true],
            "a packet in a hundred"
        );
        assert_eq!(seconds_of(&[1, 0, 0, 0, 1, 0, 0, 0, 1]), [false; 9], "one of two hundred");
        assert_eq!(seconds_of(&[2, 0, 0, 0, 0, 1]), [true, false, false, false, false, false]);
    }

    #[test]
    fn a_sender_whose_receiver_reports_loss_is_served_badly() {
        let remote_loss_clauses = |packets_sent, remote_loss_ratio| {
            let interval = SentInterval {
                track: TrackId(0),
                kind: MediaKind::Video,
                codec: Codec::Vp8,
                ended_at: Instant::now(),
                length: Duration::from_secs(1),
                counters: SentCounters { packets_sent, ..SentCounters::default() },
                round_trip_s: None,
                remote_loss_ratio,
                allowed_bps: 1e6,
                wanted_bps: 1e6,
                pause_us_max: 0,
            };
            super::remote_loss_clauses(&interval, &BadIf::default())
        };
        assert_eq!((remote_loss_clauses(100, None), remote_loss_clauses(100, Some(0.01))), (0, 0));
        // One packet of fifty may be chance.
        assert_eq!(
            (remote_loss_clauses(50, Some(0.02)), remote_loss_clauses(100, Some(0.02))),
            (0, Clause::Loss.bit())
        );
    }

    #[test]
    fn a_participant_in_two_clauses_is_one_bad_user() {
        let mut rows = [ExperienceRow::default()];
        count(
            &mut rows,
            CohortId(0),
            SecondQuality::whole(Clause::Loss.bit() | Clause::Delay.bit()),
        );
        count(&mut rows, CohortId(0), SecondQuality::default());
        count(&mut rows, CohortId(9), SecondQuality::default());
        assert_eq!((rows[0].users, rows[0].bad, rows[0].uncounted_milli), (2, 1, 0));
        assert_eq!(rows[0].clauses.iter().sum::<u32>(), 2);
    }
}
