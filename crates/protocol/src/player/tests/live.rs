//! Live HLS: playlists that are loaded again and again, and a position that follows the stream.

use std::time::Duration;

use throng_observation::LiveInterval;
use throng_scenario::{LivePolicy, RenditionPolicy};

use super::segmented::transport_stream;
use super::*;

/// What the program was on for at the start, seconds: segments 0 to 24 are complete.
const ON_AIR_S: u64 = 100;
/// Longest duration of a segment.
const SEGMENT_S: u64 = 4;
/// Segments in a playlist.
const LISTED: u64 = 15;

/// A live server in a low and a high rendition.
#[derive(Clone, Copy)]
pub(super) struct Live {
    has_dates: bool,
    /// From then on nothing is added.
    ends_at: Option<Duration>,
}

pub(super) const DATED: Live = Live { has_dates: true, ends_at: None };

impl Live {
    /// Segments that are complete.
    fn complete(self) -> u64 {
        let now = self.ends_at.map_or(clock(), |end| clock().min(end));
        (ON_AIR_S + now.as_secs()) / SEGMENT_S
    }

    fn playlist(self, name: &str) -> String {
        let complete = self.complete();
        let first = complete - LISTED;
        let mut out =
            format!("#EXTM3U\n#EXT-X-TARGETDURATION:{SEGMENT_S}\n#EXT-X-MEDIA-SEQUENCE:{first}\n");
        for number in first..complete {
            if self.has_dates {
                let at = STARTS_AT_S - ON_AIR_S + number * SEGMENT_S;
                let (day, hour, minute) = (1 + at / 86_400, at / 3_600 % 24, at / 60 % 60);
                out += &format!(
                    "#EXT-X-PROGRAM-DATE-TIME:1970-01-{day:02}T{hour:02}:{minute:02}:{:02}.000Z\n",
                    at % 60
                );
            }
            out += &format!("#EXTINF:4.000000,\n{name}-{number}.ts\n");
        }
        if self.ends_at.is_some_and(|end| clock() >= end) {
            out += "#EXT-X-ENDLIST\n";
        }
        out
    }

    fn segment(self, name: &str, number: u64) -> Option<Vec<u8>> {
        let complete = self.complete();
        let frame_bytes = if name == "high" { 7_200 } else { 1_800 };
        let is_there = (complete - LISTED - 2..complete).contains(&number);
        is_there
            .then(|| transport_stream(number * SEGMENT_S..(number + 1) * SEGMENT_S, frame_bytes))
    }

    pub(super) fn answer(self, path: &str) -> Reply {
        let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=400000\nlow.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=1600000\nhigh.m3u8\n";
        let body = match path {
            "/master.m3u8" => Some(master.to_owned().into_bytes()),
            "/low.m3u8" => Some(self.playlist("low").into_bytes()),
            "/high.m3u8" => Some(self.playlist("high").into_bytes()),
            path => path.trim_start_matches('/').strip_suffix(".ts").and_then(|name| {
                let (name, number) = name.split_once('-')?;
                self.segment(name, number.parse().ok()?)
            }),
        };
        body.map_or_else(|| Reply::of(404, &[]), whole)
    }
}

pub(super) fn whole(body: Vec<u8>) -> Reply {
    let length = ("content-length", body.len().to_string());
    Reply { body, ..Reply::of(200, &[length]) }
}

pub(super) fn lowest() -> PlayerConfig {
    PlayerConfig { rendition: RenditionPolicy::Lowest, ..PlayerConfig::default() }
}

pub(super) fn fixture(player: PlayerConfig, bytes_per_s: u64, answers: Answers) -> Fixture {
    Fixture::at("http://10.0.0.1/master.m3u8", player, bytes_per_s, answers)
}

fn of(live: Live, player: PlayerConfig, bytes_per_s: u64) -> Fixture {
    fixture(player, bytes_per_s, Box::new(move |path, _| Some(live.answer(path))))
}

/// Requests for this path, and when each was made.
pub(super) fn times_of(fixture: &Fixture, path: &str) -> Vec<f64> {
    let both = fixture.requests.iter().zip(&fixture.requested_at);
    let named = both.filter(|(request, _)| request.split([' ', '?']).next() == Some(path));
    named.map(|(_, at)| at.as_secs_f64()).collect()
}

/// Numbers of the segments that were requested, in order.
pub(super) fn segments(fixture: &Fixture) -> Vec<u64> {
    let numbers = fixture.requests.iter().filter_map(|request| {
        request.split(' ').next()?.strip_suffix(".ts")?.rsplit('-').next()?.parse().ok()
    });
    numbers.collect()
}

/// Each segment was requested once, in order.
#[track_caller]
pub(super) fn assert_in_order(fixture: &Fixture) {
    let numbers = segments(fixture);
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
}

pub(super) fn last_live(fixture: &Fixture) -> LiveInterval {
    fixture.intervals().last().unwrap().live.unwrap()
}

/// How far behind live it plays, by the dates of its playlist.
fn since_date_us(fixture: &Fixture) -> i64 {
    last_live(fixture).since_date_us.unwrap()
}

#[test]
fn playback_begins_three_target_durations_behind_the_end_and_stays_there() {
    let mut fixture = of(DATED, lowest(), 1_000_000);
    fixture.seconds(40);
    assert_eq!(
        segments(&fixture)[..4],
        [22, 23, 24, 25],
        "24 is the last complete one: {:?}",
        fixture.requests
    );
    let reloads = times_of(&fixture, "/low.m3u8");
    for pair in reloads.windows(2) {
        assert!(
            (pair[1] - pair[0] - 4.0).abs() < 0.03,
            "a target duration after the last request: {reloads:?}"
        );
    }
    let totals = fixture.totals();
    assert_eq!(
        (totals.stall_count, totals.requests_failed, totals.skipped_us),
        (0, 0, 0),
        "{totals:?}"
    );
    assert!(totals.startup_us < 300_000, "{totals:?}");
    let live = last_live(&fixture);
    assert!(
        (12_000_000..12_400_000).contains(&since_date_us(&fixture)),
        "12 s and the startup: {live:?}"
    );
    assert!(live.over_target_us < 400_000, "{live:?}");
    // Between segments there is nothing that could be delivered, so that nothing is short.
    assert!(
        fixture
            .intervals()
            .iter()
            .all(|interval| interval.delivery_ratio.is_none_or(|ratio| ratio > 0.98))
    );
    let played = fixture.frames_played(0);
    assert!((975..=1_000).contains(&played), "{played}");
}

#[test]
fn without_dates_the_latency_is_that_to_the_end_of_the_playlist() {
    let mut fixture = of(Live { has_dates: false, ..DATED }, lowest(), 1_000_000);
    fixture.seconds(30);
    let live = last_live(&fixture);
    assert_eq!((live.since_date_us, live.dates_ahead_us), (None, None));
    assert!((12_000_000..12_400_000).contains(&live.to_edge_us), "{live:?}");
    assert_eq!((fixture.totals().stall_count, fixture.totals().skipped_us), (0, 0));
}

#[test]
fn the_scenario_chooses_the_latency() {
    let live = LivePolicy { latency: Some(Duration::from_secs(20)), ..LivePolicy::default() };
    let mut fixture = of(DATED, PlayerConfig { live, ..lowest() }, 1_000_000);
    fixture.seconds(10);
    assert_eq!(segments(&fixture)[..2], [20, 21]);
    assert!((20_000_000..20_400_000).contains(&since_date_us(&fixture)));
}

#[test]
fn an_unchanged_playlist_is_asked_for_again_after_half_of_the_time() {
    let stops = Duration::from_secs(8);
    let mut fixture = fixture(
        lowest(),
        1_000_000,
        Box::new(move |path, _| {
            let now = clock();
            CLOCK.set(now.min(stops));
            let reply = DATED.answer(path);
            CLOCK.set(now);
            Some(reply)
        }),
    );
    fixture.seconds(40);
    let late: Vec<f64> =
        times_of(&fixture, "/low.m3u8").into_iter().filter(|at| *at > 13.0).collect();
    assert!(late.windows(2).all(|pair| (pair[1] - pair[0] - 2.0).abs() < 0.03), "{late:?}");
    let totals = fixture.totals();
    assert_eq!(totals.stall_count, 1);
    assert!(totals.stall_us > 15_000_000, "{totals:?}");
    assert!(fixture.ended.is_none(), "its user has patience");
}

#[test]
fn a_slow_line_stalls_and_the_position_stays_behind() {
    // 45 kB/s are the bitrate; 30 kB/s two thirds of it.
    let mut fixture = of(DATED, lowest(), 1_000_000);
    fixture.seconds(10);
    fixture.bytes_per_s = 30_000;
    fixture.seconds(60);
    let totals = fixture.totals();
    assert!(totals.stall_count >= 3, "{totals:?}");
    let live = last_live(&fixture);
    let behind_us = since_date_us(&fixture) - 12_200_000;
    assert!((behind_us - totals.stall_us as i64).abs() < 1_500_000, "{live:?} {totals:?}");
    assert!(live.over_target_us > 3_500_000, "{live:?}");
    let ratio = fixture.intervals().last().unwrap().delivery_ratio.unwrap();
    assert!((0.5..0.8).contains(&ratio), "{ratio}");
}

#[test]
fn a_player_that_falls_out_of_the_playlist_returns_to_its_end() {
    let mut fixture = of(DATED, lowest(), 1_000_000);
    fixture.seconds(6);
    fixture.bytes_per_s = 0;
    fixture.seconds(100);
    fixture.bytes_per_s = 1_000_000;
    fixture.seconds(20);
    let totals = fixture.totals();
    assert_eq!(totals.stall_count, 1, "{totals:?}");
    assert!(totals.skipped_us > 60_000_000, "{totals:?}");
    // What the server had answered to the request that was under way is up to 20 s old.
    let latency_us = since_date_us(&fixture);
    assert!((12_000_000..33_000_000).contains(&latency_us), "{latency_us}");
    assert!(fixture.ended.is_none());
}

#[test]
fn a_bound_of_the_latency_makes_it_jump_forward() {
    let live = LivePolicy { latency_max: Some(Duration::from_secs(16)), ..LivePolicy::default() };
    let mut fixture = of(DATED, PlayerConfig { live, ..lowest() }, 1_000_000);
    fixture.seconds(6);
    fixture.bytes_per_s = 1_000;
    fixture.seconds(20);
    fixture.bytes_per_s = 1_000_000;
    fixture.seconds(20);
    assert!(fixture.totals().skipped_us > 5_000_000, "{:?}", fixture.totals());
    assert!(since_date_us(&fixture) < 17_000_000);
}

#[test]
fn a_missing_segment_is_left_out_and_playback_jumps_over_it() {
    let mut fixture = fixture(
        lowest(),
        1_000_000,
        Box::new(|path, _| {
            Some(if path == "/low-26.ts" { Reply::of(404, &[]) } else { DATED.answer(path) })
        }),
    );
    fixture.seconds(40);
    let totals = fixture.totals();
    assert_eq!(totals.requests_failed, 1);
    assert!((3_900_000..4_100_000).contains(&totals.skipped_us), "{totals:?}");
    assert_eq!(
        segments(&fixture).iter().filter(|number| **number == 26).count(),
        1,
        "players do not repeat 404"
    );
    assert!(
        fixture
            .anomalies()
            .iter()
            .any(|text| text.starts_with("left out: http://10.0.0.1/low-26.ts"))
    );
    assert!(since_date_us(&fixture) < 9_000_000, "what it jumped over brought it nearer");
}

#[test]
fn a_playlist_that_only_forgets_does_not_move_a_stream_without_dates() {
    let undated = Live { has_dates: false, ends_at: None };
    let answers: Answers = Box::new(move |path, _| {
        let now = clock();
        if path != "/low.m3u8" || !(12.0..20.0).contains(&now.as_secs_f64()) {
            return Some(undated.answer(path));
        }
        // What was the end at 12 s, without the first two segments.
        CLOCK.set(Duration::from_secs(12));
        let text = undated.playlist("low");
        CLOCK.set(now);
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:15\n";
        let listed =
            text.lines().skip(3 + 2 * 2).map(|line| format!("{line}\n")).collect::<String>();
        Some(whole(format!("{head}{listed}").into_bytes()))
    });
    let mut fixture = fixture(lowest(), 1_000_000, answers);
    fixture.seconds(10);
    let before_us = last_live(&fixture).to_edge_us;
    fixture.seconds(30);
    assert_eq!(
        (fixture.totals().stall_count, fixture.totals().skipped_us),
        (0, 0),
        "{:?}",
        fixture.anomalies()
    );
    assert!(
        last_live(&fixture).to_edge_us.abs_diff(before_us) < 2_500_000,
        "{before_us} {:?}",
        last_live(&fixture)
    );
}

#[test]
fn the_end_of_the_stream_ends_the_viewer_after_its_last_frame() {
    let mut fixture =
        of(Live { ends_at: Some(Duration::from_secs(20)), ..DATED }, lowest(), 1_000_000);
    fixture.seconds(60);
    assert_eq!(fixture.ended, Some(Outcome::Completed));
    let played = fixture.frames_played(0);
    assert!(
        (795..=800).contains(&played),
        "segments 22 to 29, but for what came before the start: {played}"
    );
    assert_eq!(fixture.totals().stall_count, 0);
}

#[test]
fn the_rendition_follows_the_rate_and_the_other_playlist_is_loaded_first() {
    let mut fixture = of(DATED, PlayerConfig::default(), 1_000_000);
    fixture.seconds(20);
    assert_eq!(fixture.totals().switches, 1);
    let requests: Vec<&str> =
        fixture.requests.iter().map(|r| r.split(' ').next().unwrap()).collect();
    let at = requests.iter().position(|path| *path == "/high.m3u8").unwrap();
    assert!(requests[at + 1].starts_with("/high-"), "{requests:?}");
    assert!(!requests[at..].contains(&"/low.m3u8"), "only one playlist is followed: {requests:?}");
    assert_eq!((fixture.totals().stall_count, fixture.totals().skipped_us), (0, 0));
    assert_in_order(&fixture);
}

#[test]
fn playlists_that_go_back_fail_or_begin_anew_are_survived_and_named() {
    let mut fixture = fixture(
        lowest(),
        1_000_000,
        Box::new(|path, _| {
            let now = clock();
            if path == "/low.m3u8" && (8.0..11.0).contains(&now.as_secs_f64()) {
                CLOCK.set(now.saturating_sub(Duration::from_secs(12)));
            }
            let is_down = (20.0..23.0).contains(&now.as_secs_f64());
            let reply = if is_down { Reply::of(503, &[]) } else { DATED.answer(path) };
            CLOCK.set(now);
            Some(reply)
        }),
    );
    fixture.seconds(50);
    let totals = fixture.totals();
    assert!(fixture.anomalies().iter().any(|text| text.contains("an older playlist than before")));
    assert_eq!(
        (totals.stall_count, totals.skipped_us),
        (0, 0),
        "{totals:?} {:?}",
        fixture.anomalies()
    );
    assert!((1..=4).contains(&totals.requests_failed), "{totals:?}");

    let mut anew = self::fixture(
        lowest(),
        1_000_000,
        Box::new(|path, _| {
            let restarted = Live { has_dates: false, ..DATED };
            let text = if path == "/low.m3u8" && clock() > Duration::from_secs(20) {
                let from = (clock().as_secs() - 20) / SEGMENT_S;
                let listed = (0..=from)
                    .map(|n| format!("#EXTINF:4,\nlow-{}.ts\n", n + 25))
                    .collect::<String>();
                let head = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:0\n";
                return Some(whole(format!("{head}{listed}").into_bytes()));
            } else {
                restarted.answer(path)
            };
            Some(text)
        }),
    );
    anew.seconds(60);
    assert!(
        anew.anomalies().iter().any(|text| text.contains("the stream began anew")),
        "{:?}",
        anew.anomalies()
    );
    assert!(anew.ended.is_none());
    let last = anew.intervals().last().unwrap().counters;
    assert!(last.played_us > 900_000, "it plays on: {last:?}");
}

#[test]
fn what_is_no_media_is_left_out_until_nothing_else_comes() {
    let broken = |numbers: std::ops::Range<u64>| -> Answers {
        Box::new(move |path, _| {
            let is_broken = numbers.clone().any(|number| path == format!("/low-{number}.ts"));
            Some(if is_broken { whole(b"<html>".repeat(500)) } else { DATED.answer(path) })
        })
    };
    let mut one = fixture(lowest(), 1_000_000, broken(26..27));
    one.seconds(40);
    assert!(one.ended.is_none() && one.totals().skipped_us > 3_900_000);
    assert!(one.anomalies().iter().any(|text| text.contains("low-26.ts")), "{:?}", one.anomalies());
    let mut all = fixture(lowest(), 1_000_000, broken(0..999));
    all.seconds(20);
    assert!(
        all.failure().contains("is neither MP4, MPEG-TS, WebM nor packed audio"),
        "{}",
        all.failure()
    );
}

/// The playlist `text` with a key of its own for segments of even and of odd numbers.
pub(super) fn with_keys(text: &str) -> String {
    let number = |line: &str| line.strip_suffix(".ts")?.rsplit('-').next()?.parse::<u64>().ok();
    let lines: Vec<&str> = text.lines().collect();
    let keyed =
        lines.iter().zip(lines.iter().skip(1).chain([&""])).map(|(line, next)| {
            match number(next) {
                Some(number) => {
                    format!("#EXT-X-KEY:METHOD=AES-128,URI=\"/key{}\"\n{line}\n", number % 2)
                }
                None => format!("{line}\n"),
            }
        });
    keyed.collect()
}

#[test]
fn an_encrypted_stream_is_decrypted_with_its_keys_which_are_fetched_once_each() {
    use aws_lc_rs::cipher::{
        AES_128, EncryptionContext, PaddedBlockEncryptingKey, UnboundCipherKey,
    };
    use aws_lc_rs::iv::FixedLength;

    let key = |number: u64| -> [u8; 16] { std::array::from_fn(|at| at as u8 + (number % 2) as u8) };
    let mut fixture = fixture(
        lowest(),
        1_000_000,
        Box::new(move |path, _| {
            let mut reply = DATED.answer(path);
            if path == "/low.m3u8" {
                return Some(whole(
                    with_keys(&String::from_utf8(reply.body).unwrap()).into_bytes(),
                ));
            }
            if let Some(number) = path.strip_prefix("/key") {
                return Some(whole(key(number.parse().unwrap()).to_vec()));
            }
            if let Some(number) =
                path.strip_prefix("/low-").and_then(|rest| rest.strip_suffix(".ts"))
            {
                let number = number.parse::<u64>().unwrap();
                let cipher = UnboundCipherKey::new(&AES_128, &key(number)).unwrap();
                let cipher = PaddedBlockEncryptingKey::cbc_pkcs7(cipher).unwrap();
                let context =
                    EncryptionContext::Iv128(FixedLength::from(u128::from(number).to_be_bytes()));
                cipher.less_safe_encrypt(&mut reply.body, context).unwrap();
                reply = whole(reply.body);
            }
            Some(reply)
        }),
    );
    fixture.seconds(20);
    assert_eq!(["/key0", "/key1"].map(|path| times_of(&fixture, path).len()), [1, 1]);
    let totals = fixture.totals();
    assert_eq!((totals.stall_count, totals.requests_failed), (0, 0), "{:?}", fixture.anomalies());
    assert!(
        fixture.frames_played(0) > 475 && fixture.anomalies().is_empty(),
        "{:?}",
        fixture.anomalies()
    );
}
