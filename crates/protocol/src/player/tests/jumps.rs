//! Live HLS whose dates or time stamps jump: media goes on all the same.

use throng_observation::DATES_AHEAD_US_MAX;

use super::live::{assert_in_order, fixture, last_live, lowest, whole};
use super::segmented::transport_stream;
use super::*;

/// The program at the start, seconds, in segments of four seconds: 0 to 24 are complete.
const ON_AIR_S: u64 = 100;
const SEGMENT_S: u64 = 4;
const LISTED: u64 = 15;

/// The first segment after the jump, which comes after 12 s.
const JUMPS_AT: u64 = 27;

/// What is otherwise from segment [`JUMPS_AT`] on.
#[derive(Clone, Copy, Debug, Default)]
struct Jump {
    /// Dates are later by so many seconds before it, and after it; `None` without dates.
    dates_s: Option<(i64, i64)>,
    /// Time stamps are later by so many seconds.
    media_s: i64,
    is_announced: bool,
    /// Numbers begin anew.
    begins_anew: bool,
}

impl Jump {
    fn playlist(self, name: &str) -> String {
        let complete = (ON_AIR_S + clock().as_secs()) / SEGMENT_S;
        let mut first = complete - LISTED;
        let mut number = first;
        if self.begins_anew && complete > JUMPS_AT {
            (first, number) = (first.max(JUMPS_AT), 0);
        }
        let mut out =
            format!("#EXTM3U\n#EXT-X-TARGETDURATION:{SEGMENT_S}\n#EXT-X-MEDIA-SEQUENCE:{number}\n");
        for number in first..complete {
            if self.is_announced && number == JUMPS_AT {
                out += "#EXT-X-DISCONTINUITY\n";
            }
            if let Some((before_s, after_s)) = self.dates_s {
                let later_s = if number < JUMPS_AT { before_s } else { after_s };
                let at = (STARTS_AT_S - ON_AIR_S + number * SEGMENT_S).strict_add_signed(later_s);
                let (day, hour, minute) = (1 + at / 86_400, at / 3_600 % 24, at / 60 % 60);
                out += &format!(
                    "#EXT-X-PROGRAM-DATE-TIME:1970-01-{day:02}T{hour:02}:{minute:02}:{:02}.000Z\n",
                    at % 60
                );
            }
            out += &format!("#EXTINF:4,\n{name}-{number}.ts\n");
        }
        out
    }

    fn answer(self, path: &str) -> Reply {
        let name = path.trim_start_matches('/').split('.').next().unwrap_or_default();
        let Some((name, number)) = name.split_once('-') else {
            let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=400000\nlow.m3u8\n\
                          #EXT-X-STREAM-INF:BANDWIDTH=1600000\nhigh.m3u8\n";
            let text = if name == "master" { master.to_owned() } else { self.playlist(name) };
            return whole(text.into_bytes());
        };
        let number: u64 = number.parse().unwrap();
        let later_s = if number < JUMPS_AT { 0 } else { self.media_s };
        let begins_s = (number * SEGMENT_S).strict_add_signed(later_s);
        let frame_bytes = if name == "high" { 7_200 } else { 1_800 };
        whole(transport_stream(begins_s..begins_s + SEGMENT_S, frame_bytes))
    }

    fn played(self, player: PlayerConfig) -> Fixture {
        let mut fixture =
            fixture(player, 1_000_000, Box::new(move |path, _| Some(self.answer(path))));
        fixture.seconds(60);
        fixture
    }
}

/// Everything was played, and once.
#[track_caller]
fn assert_played_on(fixture: &Fixture, what: Jump) {
    let totals = fixture.totals();
    assert_eq!(
        (totals.stall_count, totals.skipped_us, totals.requests_failed, totals.missed),
        (0, 0, 0, 0),
        "{what:?}: {:?}",
        fixture.anomalies()
    );
    assert_in_order(fixture);
    let played = fixture.frames_played(0);
    assert!((1_470..=1_500).contains(&played), "{what:?}: {played}");
}

#[test]
fn dates_that_jump_neither_stall_nor_skip_and_latency_follows_them() {
    for (dates_s, expect_s, is_ahead) in
        [((0, -60), 72, false), ((-60, 0), 12, false), ((0, -2), 14, false), ((0, 60), -48, true)]
    {
        for (is_announced, media_s) in [(false, 0), (true, 0), (true, -60)] {
            let jump = Jump { dates_s: Some(dates_s), media_s, is_announced, begins_anew: false };
            let fixture = jump.played(lowest());
            assert_played_on(&fixture, jump);
            let live = last_live(&fixture);
            let (from_us, to_us) = (expect_s * 1_000_000, expect_s * 1_000_000 + 900_000);
            assert!((from_us..to_us).contains(&live.since_date_us.unwrap()), "{jump:?}: {live:?}");
            assert!((11_100_000..12_900_000).contains(&live.to_edge_us), "{jump:?}: {live:?}");
            assert_eq!(
                live.dates_ahead_us.unwrap() > DATES_AHEAD_US_MAX,
                is_ahead,
                "{jump:?}: {live:?}"
            );
            assert!(live.over_target_us.abs() < 900_000, "{jump:?}: {live:?}");
            let said = fixture.anomalies();
            let said: Vec<_> =
                said.iter().filter(|text| text.contains("the dates jump by")).collect();
            assert!(said.len() == 1 && said[0].contains("at segment 27"), "{jump:?}: {said:?}");
        }
    }
}

#[test]
fn time_stamps_that_jump_neither_stall_nor_skip_whether_announced_or_not() {
    for dates_s in [None, Some((0, 0))] {
        for media_s in [1_000, 3, -3, -60] {
            for is_announced in [true, false] {
                let jump = Jump { dates_s, media_s, is_announced, begins_anew: false };
                let fixture = jump.played(lowest());
                assert_played_on(&fixture, jump);
                let live = last_live(&fixture);
                let latency_us = live.since_date_us.unwrap_or(live.to_edge_us);
                assert!((12_000_000..12_900_000).contains(&latency_us), "{jump:?}: {live:?}");
                let said = fixture.anomalies();
                let said = said
                    .iter()
                    .filter(|text| text.contains("low-27.ts: time stamps jump by"))
                    .count();
                assert_eq!(said, usize::from(!is_announced), "{jump:?}: {:?}", fixture.anomalies());
            }
        }
    }
}

#[test]
fn another_rendition_is_on_the_same_axis_after_a_jump() {
    let jump =
        Jump { dates_s: Some((0, -60)), media_s: -60, is_announced: true, begins_anew: false };
    let mut fixture =
        fixture(PlayerConfig::default(), 100_000, Box::new(move |path, _| Some(jump.answer(path))));
    fixture.seconds(30);
    assert_eq!(fixture.totals().switches, 0, "the line carries no more than the low one");
    fixture.bytes_per_s = 1_000_000;
    fixture.seconds(90);
    let totals = fixture.totals();
    assert_eq!(
        (totals.switches, totals.stall_count, totals.skipped_us, totals.missed),
        (1, 0, 0, 0),
        "{:?}",
        fixture.anomalies()
    );
    assert_in_order(&fixture);
    let live = last_live(&fixture);
    assert!((73_000_000..74_500_000).contains(&live.since_date_us.unwrap()), "{live:?}");
}

#[test]
fn a_stream_that_begins_anew_with_earlier_dates_is_played_on() {
    let jump =
        Jump { dates_s: Some((0, -60)), media_s: -60, is_announced: false, begins_anew: true };
    let fixture = jump.played(lowest());
    assert_played_on(&fixture, jump);
    assert!(fixture.anomalies().iter().any(|text| text.contains("the stream began anew")));
    let live = last_live(&fixture);
    assert!((72_000_000..72_900_000).contains(&live.since_date_us.unwrap()), "{live:?}");
}

/// The segment before the jump is not there, so that nothing says that time stamps jumped.
#[test]
fn who_meets_a_jump_behind_a_missing_segment_plays_on() {
    let jump = Jump { media_s: -60, ..Jump::default() };
    let lacks = format!("-{}.ts", JUMPS_AT - 1);
    let mut fixture = fixture(
        lowest(),
        1_000_000,
        Box::new(move |path, _| {
            Some(if path.ends_with(&lacks) { Reply::of(404, &[]) } else { jump.answer(path) })
        }),
    );
    fixture.seconds(150);
    let live = last_live(&fixture);
    assert!((0..90_000_000).contains(&live.to_edge_us), "{live:?}");
    let played = fixture.frames_played(0);
    assert!(played > 25 * 60, "{played}: {:?}", fixture.totals());
}
