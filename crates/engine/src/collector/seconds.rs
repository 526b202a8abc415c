//! The open seconds of a run, and the crowd's totals up to the last closed one.

use std::collections::{BTreeMap, HashMap, HashSet};

use throng_observation::run::{CohortId, CrowdRow, SentRow, SeriesRow, SourceFps};
use throng_observation::{
    ChatInterval, ChatRow, DATES_AHEAD_US_MAX, Distribution, IceState, LiveInterval, MediaKind,
    PlaybackCounters, PlaybackInterval, PlaybackRow, Received, SentCounters, SentInterval,
    TrackCounters, TrackId, TrackInterval,
};

use super::player_record::delivery_ppm;

/// Open seconds, by number.
pub(super) struct Seconds {
    cohorts: u16,
    open: BTreeMap<i64, OpenSecond>,
    totals: Vec<CrowdDelta>,
}

/// Changes of a cohort's crowd in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CrowdDelta {
    pub(super) started: i32,
    pub(super) connected: i32,
    pub(super) failed: i32,
    pub(super) left: i32,
    pub(super) playing: i32,
    pub(super) ice: [i32; IceState::ALL.len()],
}

#[derive(Default)]
struct OpenSecond {
    crowd: BTreeMap<u16, CrowdDelta>,
    series: BTreeMap<(u16, MediaKind), Sums>,
    sent: BTreeMap<(u16, MediaKind), SentSums>,
    /// Publishers whose connection took nothing for a while; the time is counted with one of their
    /// tracks.
    blocked: HashSet<u32>,
    playback: BTreeMap<u16, HashMap<u32, PlayerSecond>>,
    chat: BTreeMap<u16, ChatRow>,
}

/// All intervals of one player in the second.
#[derive(Default)]
struct PlayerSecond {
    counters: PlaybackCounters,
    buffer_us: u64,
    delivery_ppm: Option<u32>,
    live: Option<LiveInterval>,
}

#[derive(Default)]
struct SentSums {
    counters: SentCounters,
    /// Tracks that sent packets.
    tracks: HashSet<(u32, TrackId)>,
    /// Tracks with an interval in which they sent none.
    silent: HashSet<(u32, TrackId)>,
}

#[derive(Default)]
struct Sums {
    row: SeriesRow,
    tracks: HashMap<(u32, TrackId), TrackSecond>,
}

/// All intervals of one track in the second.
#[derive(Default)]
struct TrackSecond {
    counters: TrackCounters,
    frames_due_us: u64,
    jitter_us: Option<u32>,
    oven_rtc_tester_delay_us: Option<u32>,
    source_fps: Option<f32>,
    picture_lines: Option<u16>,
}

/// Active time below which a track (a join or leave within the second) gives no sample of a rate:
/// one frame more or less would be half of it. Its counts are in the sums.
const RATE_STRETCH_US_MIN: u64 = 500_000;

/// The rows of a closed second.
#[derive(Debug, Default)]
pub(super) struct ClosedSecond {
    pub(super) crowd: Vec<CrowdRow>,
    pub(super) series: Vec<SeriesRow>,
    pub(super) sent: Vec<SentRow>,
    pub(super) playback: Vec<PlaybackRow>,
    pub(super) chat: Vec<ChatRow>,
}

impl ClosedSecond {
    /// Bytes that participants received.
    pub(super) fn received_bytes(&self) -> u64 {
        let received = Received::of(&self.series, &self.playback, &self.chat);
        received.bytes(i64::MIN..i64::MAX)
    }
}

impl Seconds {
    pub(super) fn new(cohorts: u16) -> Self {
        let cohorts = cohorts.max(1);
        Self {
            cohorts,
            open: BTreeMap::new(),
            totals: vec![CrowdDelta::default(); usize::from(cohorts)],
        }
    }

    /// The crowd's changes in `second`. Changes of a closed second are counted in the next one.
    pub(super) fn crowd(&mut self, second: i64, cohort: CohortId) -> &mut CrowdDelta {
        self.open.entry(second).or_default().crowd.entry(cohort.0).or_default()
    }

    /// Adds an interval of a received track of participant `id`.
    pub(super) fn interval(
        &mut self,
        second: i64,
        id: u32,
        cohort: CohortId,
        interval: &TrackInterval,
    ) {
        let open = self.open.entry(second).or_default();
        let sums = open.series.entry((cohort.0, interval.kind)).or_default();
        let row = &mut sums.row;
        row.counters += interval.counters;
        interval
            .relative_delay_us
            .iter()
            .for_each(|us| row.relative_delay_us.record(u64::from(*us)));
        if let Some(basis) = interval.capture_basis {
            interval.absolute_delay_us.iter().for_each(|us| row.absolute_delay.record(basis, *us));
        }
        sums.tracks.entry((id, interval.track)).or_default().add(interval);
    }

    /// Adds an interval of a sent track of participant `id`.
    pub(super) fn sent(&mut self, second: i64, id: u32, cohort: CohortId, interval: &SentInterval) {
        let open = self.open.entry(second).or_default();
        let sums = open.sent.entry((cohort.0, interval.kind)).or_default();
        sums.counters += interval.counters;
        let of_kind =
            if interval.counters.packets_sent > 0 { &mut sums.tracks } else { &mut sums.silent };
        of_kind.insert((id, interval.track));
        if interval.counters.blocked_us > 0 {
            open.blocked.insert(id);
        }
    }

    /// Adds an interval of the player of participant `id`.
    pub(super) fn playback(
        &mut self,
        second: i64,
        id: u32,
        cohort: CohortId,
        interval: &PlaybackInterval,
    ) {
        let players = self.open.entry(second).or_default().playback.entry(cohort.0).or_default();
        let player = players.entry(id).or_default();
        player.counters += interval.counters;
        player.buffer_us = interval.buffer_us;
        player.delivery_ppm = delivery_ppm(interval).or(player.delivery_ppm);
        player.live = interval.live.or(player.live);
    }

    /// Adds an interval of the chat of a participant; `is_first`: of it in this second.
    pub(super) fn chat(
        &mut self,
        second: i64,
        cohort: CohortId,
        interval: &ChatInterval,
        is_first: bool,
    ) {
        let rows = &mut self.open.entry(second).or_default().chat;
        let row = rows.entry(cohort.0).or_insert_with(|| ChatRow {
            second,
            cohort,
            ..ChatRow::default()
        });
        row.members += u32::from(is_first);
        row.joined += u32::from(is_first && interval.is_joined);
        row.occupants_max = row.occupants_max.max(interval.occupants);
        row.counters += interval.counters;
        interval.delays_us.iter().for_each(|us| row.delay_us.record(*us));
    }

    /// Closes `second` and all before it; `intended` returns the intended joins of a cohort.
    pub(super) fn close(&mut self, second: i64, intended: impl Fn(u16) -> u32) -> ClosedSecond {
        let later = self.open.split_off(&(second + 1));
        let mut playing = vec![0; usize::from(self.cohorts)];
        let mut series: BTreeMap<(u16, MediaKind), Sums> = BTreeMap::new();
        let mut sent: BTreeMap<(u16, MediaKind), SentSums> = BTreeMap::new();
        let (mut playback, mut chat) = (BTreeMap::new(), Vec::new());
        for (number, open) in std::mem::replace(&mut self.open, later) {
            for (cohort, change) in open.crowd {
                let cohort = usize::from(cohort);
                if let Some(total) = self.totals.get_mut(cohort) {
                    total.add(&change);
                }
                if let Some(playing) = playing.get_mut(cohort).filter(|_| number == second) {
                    *playing += change.playing;
                }
            }
            series.extend(open.series);
            let blocked = open.blocked;
            sent.extend(open.sent.into_iter().map(|(of, sums)| (of, sums.with_blocked(&blocked))));
            playback.extend(open.playback);
            chat.extend(open.chat.into_values());
        }
        let crowd =
            (0..self.cohorts).zip(&self.totals).zip(playing).map(|((cohort, total), playing)| {
                CrowdRow {
                    second,
                    cohort: CohortId(cohort),
                    intended: intended(cohort),
                    started: count(total.started),
                    connected: count(total.connected),
                    playing: count(playing),
                    failed: count(total.failed),
                    left: count(total.left),
                    ice: total.ice.map(count),
                }
            });
        let series = series.into_iter().map(|((cohort, kind), sums)| SeriesRow {
            second,
            cohort: CohortId(cohort),
            kind: Some(kind),
            ..sums.finish(kind)
        });
        let sent = sent.into_iter().map(|((cohort, kind), sums)| SentRow {
            second,
            cohort: CohortId(cohort),
            kind,
            tracks: u32::try_from(sums.tracks.len()).unwrap_or(u32::MAX),
            counters: sums.counters,
        });
        let playback = playback.into_iter().map(|(cohort, players)| PlaybackRow {
            second,
            cohort: CohortId(cohort),
            ..playback_row(&players)
        });
        ClosedSecond {
            crowd: crowd.collect(),
            series: series.collect(),
            sent: sent.collect(),
            playback: playback.collect(),
            chat,
        }
    }
}

/// The row of these players, without its second and cohort.
fn playback_row(players: &HashMap<u32, PlayerSecond>) -> PlaybackRow {
    let count = u32::try_from(players.len()).unwrap_or(u32::MAX);
    let mut row = PlaybackRow { players: count, ..PlaybackRow::default() };
    for player in players.values() {
        row.stalled += u32::from(player.counters.stall_us > 0);
        row.starting += u32::from(player.counters.startup_us > 0);
        row.counters += player.counters;
        row.buffer_us.record(player.buffer_us);
        player.delivery_ppm.iter().for_each(|ppm| {
            row.shortfall_ppm.record(u64::from(1_000_000_u32.saturating_sub(*ppm)));
        });
        if let Some(live) = &player.live {
            // Clocks may disagree so much that a latency is negative.
            let record = |samples: &mut Distribution, us: i64| {
                samples.record(u64::try_from(us).unwrap_or(0));
            };
            record(&mut row.edge_latency_us, live.to_edge_us);
            live.since_date_us.iter().for_each(|us| record(&mut row.latency_us, *us));
            live.capture_latency_us.iter().for_each(|us| record(&mut row.capture_latency_us, *us));
            let is_ahead = live.dates_ahead_us.is_some_and(|us| us > DATES_AHEAD_US_MAX);
            *row.dates_ahead.get_or_insert(0) += u32::from(is_ahead);
        }
    }
    row
}

impl SentSums {
    /// The same with the tracks of publishers whose connection took nothing: they are no less
    /// streams. Any other that sent nothing was muted.
    fn with_blocked(mut self, blocked: &HashSet<u32>) -> Self {
        let silent = std::mem::take(&mut self.silent).into_iter();
        self.tracks.extend(silent.filter(|(id, _)| blocked.contains(id)));
        self
    }
}

impl TrackSecond {
    fn add(&mut self, interval: &TrackInterval) {
        self.counters += interval.counters;
        self.frames_due_us += interval.frames_due_us;
        self.jitter_us = interval.jitter_us.or(self.jitter_us);
        self.oven_rtc_tester_delay_us =
            interval.oven_rtc_tester_delay_us.or(self.oven_rtc_tester_delay_us);
        self.source_fps =
            interval.source_fps.filter(|fps| fps.is_finite() && *fps > 0.0).or(self.source_fps);
        self.picture_lines = interval.picture_lines.or(self.picture_lines);
    }
}

impl Sums {
    /// The row, with one sample of each figure per track.
    fn finish(self, kind: MediaKind) -> SeriesRow {
        let (mut row, mut source_fps) = (self.row, SourceFps::default());
        row.tracks = u32::try_from(self.tracks.len()).unwrap_or(u32::MAX);
        for track in self.tracks.values() {
            track.jitter_us.iter().for_each(|us| row.jitter_us.record(u64::from(*us)));
            track
                .oven_rtc_tester_delay_us
                .iter()
                .for_each(|us| row.oven_rtc_tester_delay_us.record(u64::from(*us)));
            if track.counters.active_us < RATE_STRETCH_US_MIN {
                continue;
            }
            if let Some(ratio) = track.counters.loss_ratio() {
                row.loss_ppm.record((ratio * 1e6) as u64);
            }
            // The wait for the first frame counts as join time.
            if kind != MediaKind::Video || track.frames_due_us < RATE_STRETCH_US_MIN {
                continue;
            }
            let fps = track.counters.fps(track.frames_due_us);
            fps.iter().for_each(|fps| row.fps_milli.record((fps * 1e3) as u64));
            let shown = track.picture_lines.filter(|_| track.counters.frames_decodable > 0);
            shown.iter().for_each(|lines| row.picture_lines.record(u64::from(*lines)));
            if track.counters.missing_us > 0 {
                row.tracks_below_source_fps += 1;
            } else if let Some(source) = track.source_fps.map(f64::from) {
                let (frames, due_us) = (track.counters.frames_decodable, track.frames_due_us);
                let is_below = TrackInterval::is_below_source(frames, due_us, source, 0.9);
                row.tracks_below_source_fps += u64::from(is_below);
                source_fps += SourceFps { tracks: 1, sum_milli: (source * 1e3) as u64 };
            }
        }
        row.source_fps = source_fps;
        row
    }
}

impl CrowdDelta {
    fn add(&mut self, other: &Self) {
        self.started += other.started;
        self.connected += other.connected;
        self.failed += other.failed;
        self.left += other.left;
        self.ice.iter_mut().zip(other.ice).for_each(|(mine, theirs)| *mine += theirs);
    }
}

fn count(signed: i32) -> u32 {
    u32::try_from(signed).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use throng_observation::{CaptureBasis, Codec};

    use super::*;

    fn interval(received: u64, lost: i64, frames: u64, active_ms: u64) -> TrackInterval {
        TrackInterval {
            track: TrackId(0),
            kind: MediaKind::Video,
            ended_at: Instant::now(),
            counters: TrackCounters {
                packets_original: received,
                packets_lost: lost,
                frames_decodable: frames,
                active_us: active_ms * 1000,
                ..TrackCounters::default()
            },
            jitter_us: Some(1000),
            relative_delay_us: vec![10_000, 20_000],
            absolute_delay_us: vec![-5, 9_000, 9_000],
            capture_basis: Some(CaptureBasis::Mark),
            oven_rtc_tester_delay_us: None,
            source_fps: Some(30.0),
            frames_due_us: active_ms * 1000,
            first_frame_awaited_since: None,
            picture_lines: None,
            missing: None,
        }
    }

    #[test]
    fn a_second_holds_the_sums_and_all_samples_of_its_tracks() {
        let mut seconds = Seconds::new(1);
        seconds.interval(3, 0, CohortId(0), &interval(90, 10, 30, 1000));
        seconds.interval(3, 1, CohortId(0), &interval(100, 0, 20, 1000));
        seconds.interval(4, 1, CohortId(0), &interval(1, 0, 0, 1000));
        let closed = seconds.close(3, |_| 2);
        let [row] = closed.series.as_slice() else { panic!("{closed:?}") };
        assert_eq!(
            (row.tracks, row.tracks_below_source_fps, row.counters.packets_original),
            (2, 1, 190)
        );
        assert_eq!(
            (row.relative_delay_us.count(), row.loss_ppm.quantile(1.0).unwrap() / 1000),
            (4, 100)
        );
        assert_eq!(row.source_fps, SourceFps { tracks: 2, sum_milli: 60_000 });
        let one_way = &row.absolute_delay;
        assert_eq!((one_way.basis(), one_way.negative()), (Some(CaptureBasis::Mark), 2));
        assert!(one_way.quantile_us(0.2).is_none() && one_way.quantile_us(0.5).is_some());
    }

    #[test]
    fn a_track_counts_once_in_a_second_however_many_intervals_lie_there() {
        let mut seconds = Seconds::new(1);
        for id in 0..10 {
            seconds.interval(7, id, CohortId(0), &interval(60, 0, 18, 600));
            seconds.interval(7, id, CohortId(0), &interval(30, 10, 9, 300));
        }
        let row = &seconds.close(7, |_| 10).series[0];
        assert_eq!(
            (row.tracks, row.tracks_below_source_fps, row.counters.packets_original),
            (10, 0, 900)
        );
        assert_eq!(
            (row.fps_milli.count(), row.loss_ppm.count(), row.jitter_us.count()),
            (10, 10, 10)
        );
        assert_eq!(
            row.fps_milli.quantile(0.5).unwrap() / 100,
            300,
            "27 frames in 0.9 s are 30 fps"
        );
        assert_eq!(row.loss_ppm.quantile(0.5).unwrap() / 1000, 100);
    }

    #[test]
    fn the_size_of_a_picture_is_that_at_the_end_of_the_second_where_one_is_shown() {
        let mut seconds = Seconds::new(1);
        let shows = |lines, frames| TrackInterval {
            picture_lines: lines,
            ..interval(100, 0, frames, 1000)
        };
        seconds.interval(0, 0, CohortId(0), &shows(Some(360), 15));
        seconds.interval(0, 0, CohortId(0), &shows(Some(720), 15));
        seconds.interval(0, 1, CohortId(0), &shows(Some(1080), 0));
        seconds.interval(0, 2, CohortId(0), &shows(None, 30));
        let row = &seconds.close(0, |_| 3).series[0];
        assert_eq!((row.picture_lines.count(), row.fps_milli.count()), (1, 3));
        assert_eq!(row.picture_lines.lowest_at(0.5), Some(720));
    }

    #[test]
    fn a_stretch_too_short_for_a_rate_is_summed_and_not_sampled() {
        let mut seconds = Seconds::new(1);
        seconds.interval(0, 0, CohortId(0), &interval(10, 5, 1, 200));
        let row = &seconds.close(0, |_| 1).series[0];
        assert_eq!(
            (row.tracks, row.counters.packets_lost, row.counters.frames_decodable),
            (1, 5, 1)
        );
        assert!(
            row.fps_milli.is_empty() && row.loss_ppm.is_empty() && row.source_fps.mean().is_none()
        );
        assert_eq!(row.tracks_below_source_fps, 0);
    }

    #[test]
    fn the_wait_for_the_first_key_frame_is_no_bad_frame_rate() {
        let mut seconds = Seconds::new(1);
        let joins = |frames, frames_due_us| TrackInterval {
            frames_due_us,
            ..interval(100, 0, frames, 1000)
        };
        seconds.interval(0, 0, CohortId(0), &joins(18, 600_000));
        seconds.interval(0, 1, CohortId(0), &joins(0, 0));
        seconds.interval(0, 2, CohortId(0), &joins(0, 1_000_000));
        let row = &seconds.close(0, |_| 3).series[0];
        assert_eq!((row.tracks, row.fps_milli.count(), row.tracks_below_source_fps), (3, 2, 1));
        assert_eq!(row.loss_ppm.count(), 3);
    }

    #[test]
    fn a_muted_track_is_not_sent_and_one_whose_connection_is_blocked_is() {
        let mut seconds = Seconds::new(1);
        let interval = |packets_sent, blocked_us| SentInterval {
            track: TrackId(0),
            kind: MediaKind::Video,
            codec: Codec::H264,
            ended_at: Instant::now(),
            length: Duration::from_secs(1),
            counters: SentCounters { packets_sent, blocked_us, ..SentCounters::default() },
            round_trip_s: None,
            remote_loss_ratio: None,
            allowed_bps: 1e6,
            wanted_bps: 1e6,
            pause_us_max: 0,
        };
        seconds.sent(3, 0, CohortId(0), &interval(90, 0));
        seconds.sent(3, 1, CohortId(0), &interval(0, 0));
        seconds.sent(3, 2, CohortId(0), &interval(0, 1_000_000));
        // The time is counted with the first track of a publisher; the sound is blocked as well.
        for (id, packets_sent) in [(0, 50), (1, 0), (2, 0)] {
            let kind = MediaKind::Audio;
            let sound = SentInterval { track: TrackId(1), kind, ..interval(packets_sent, 0) };
            seconds.sent(3, id, CohortId(0), &sound);
        }
        // At the end of what was blocked.
        seconds.sent(3, 2, CohortId(0), &interval(40, 0));
        let mut rows = seconds.close(3, |_| 3).sent;
        rows.sort_by_key(|row| row.counters.packets_sent);
        let rows = rows.iter().map(|row| (row.kind, row.tracks, row.counters.packets_sent));
        let expect = [(MediaKind::Audio, 2, 50), (MediaKind::Video, 2, 130)];
        assert_eq!(rows.collect::<Vec<_>>(), expect);
    }

    #[test]
    fn a_player_counts_once_in_a_second_with_its_last_buffer() {
        let mut seconds = Seconds::new(2);
        let interval = |stall_us, buffer_us, delivery_ratio| PlaybackInterval {
            ended_at: Instant::now(),
            separate_sound_bytes: 0,
            counters: PlaybackCounters {
                active_us: 500_000,
                stall_us,
                media_bytes: 100,
                ..Default::default()
            },
            buffer_us,
            delivery_ratio,
            start_awaited_since: None,
            live: None,
        };
        seconds.playback(3, 0, CohortId(1), &interval(200_000, 0, Some(0.5)));
        seconds.playback(3, 0, CohortId(1), &interval(0, 4_000_000, None));
        seconds.playback(3, 1, CohortId(1), &interval(0, 9_000_000, None));
        let closed = seconds.close(3, |_| 2);
        let [row] = closed.playback.as_slice() else { panic!("{closed:?}") };
        assert_eq!((row.second, row.cohort, row.players, row.stalled), (3, CohortId(1), 2, 1));
        assert_eq!((row.counters.stall_us, row.counters.active_us), (200_000, 1_500_000));
        let shortfall = row.shortfall_ppm.quantile(1.0).map(|ppm| ppm / 100_000);
        assert_eq!((row.buffer_us.count(), shortfall), (2, Some(5)));
        assert_eq!(row.buffer_us.quantile(0.0).map(|us| (us as f64 / 1e6).round()), Some(4.0));
        assert_eq!(closed.received_bytes(), 300);
        assert!(seconds.close(4, |_| 2).playback.is_empty());
    }

    #[test]
    fn a_live_player_has_both_latencies_and_dates_that_are_ahead_are_counted() {
        let mut seconds = Seconds::new(1);
        for (id, dates_ahead_us) in [(0, Some(1_800_000)), (1, Some(-200_000)), (2, None)] {
            let live = LiveInterval {
                to_edge_us: 12_000_000,
                since_date_us: dates_ahead_us.map(|ahead_us| 12_000_000 - ahead_us),
                dates_ahead_us,
                capture_latency_us: None,
                over_target_us: 0,
                target_duration_us: 4_000_000,
            };
            let interval = PlaybackInterval {
                ended_at: Instant::now(),
                separate_sound_bytes: 0,
                counters: PlaybackCounters::default(),
                buffer_us: 9_000_000,
                delivery_ratio: None,
                start_awaited_since: None,
                live: Some(live),
            };
            seconds.playback(0, id, CohortId(0), &interval);
        }
        let row = &seconds.close(0, |_| 3).playback[0];
        assert_eq!(
            (row.edge_latency_us.count(), row.latency_us.count(), row.dates_ahead),
            (3, 2, Some(1))
        );
    }

    #[test]
    fn the_crowd_is_counted_up_and_late_news_is_not_lost() {
        let mut seconds = Seconds::new(2);
        seconds.crowd(0, CohortId(1)).started += 5;
        seconds.crowd(1, CohortId(1)).connected += 3;
        seconds.crowd(1, CohortId(1)).playing += 2;
        let crowd = seconds.close(0, |_| 7).crowd;
        assert_eq!(
            (crowd[1].intended, crowd[1].started, crowd[1].connected, crowd[0].started),
            (7, 5, 0, 0)
        );
        seconds.crowd(0, CohortId(1)).failed += 1; // late
        let crowd = seconds.close(1, |_| 7).crowd;
        assert_eq!(
            (crowd[1].started, crowd[1].connected, crowd[1].playing, crowd[1].failed),
            (5, 3, 2, 1)
        );
    }
}
