//! A live stream whose dates run ahead of the clock, as those of PeerTube do: how far they seem to
//! be ahead hangs on how soon after its segment each playlist is loaded.

use throng_observation::DATES_AHEAD_US_MAX;

use super::live::{fixture, last_live, lowest, whole};
use super::segmented::transport_stream;
use super::*;

/// The program at the start, and the longest segment, seconds.
const ON_AIR_S: u64 = 100;
const SEGMENT_S: u64 = 4;
const LISTED: u64 = 15;
/// The date of a playlist's end when it is published.
const AHEAD_MS: u64 = 1_800;

/// A viewer whose first playlist was published `age_ms` before. From `moves_at` on playlists are
/// published so much sooner that they are new when they are loaded.
fn played(age_ms: u64, moves_at: Duration) -> Fixture {
    let answers: Answers = Box::new(move |path, _| {
        let name = path.trim_start_matches('/').split('.').next().unwrap_or_default();
        let Some((_, number)) = name.split_once('-') else {
            let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=400000\nlow.m3u8\n";
            let text =
                if name == "master" { master.to_owned() } else { playlist(age_ms, moves_at) };
            return Some(whole(text.into_bytes()));
        };
        let begins_s = number.parse::<u64>().unwrap() * SEGMENT_S;
        Some(whole(transport_stream(begins_s..begins_s + SEGMENT_S, 1_800)))
    });
    let mut fixture = fixture(lowest(), 1_000_000, answers);
    fixture.seconds(60);
    fixture
}

fn playlist(age_ms: u64, moves_at: Duration) -> String {
    let sooner_ms = if clock() < moves_at { 0 } else { SEGMENT_S * 1_000 - age_ms + 100 };
    let on_air_ms =
        ON_AIR_S * 1_000 + age_ms + sooner_ms + u64::try_from(clock().as_millis()).unwrap();
    let complete = on_air_ms / 1_000 / SEGMENT_S;
    let first = complete - LISTED;
    let mut out =
        format!("#EXTM3U\n#EXT-X-TARGETDURATION:{SEGMENT_S}\n#EXT-X-MEDIA-SEQUENCE:{first}\n");
    for number in first..complete {
        let at_ms = (STARTS_AT_S - ON_AIR_S + number * SEGMENT_S) * 1_000 + AHEAD_MS - age_ms;
        let (day, hour, minute) =
            (1 + at_ms / 86_400_000, at_ms / 3_600_000 % 24, at_ms / 60_000 % 60);
        out += &format!(
            "#EXT-X-PROGRAM-DATE-TIME:1970-01-{day:02}T{hour:02}:{minute:02}:{:02}.{:03}Z\n",
            at_ms / 1_000 % 60,
            at_ms % 1_000
        );
        out += &format!("#EXTINF:4,\nlow-{number}.ts\n");
    }
    out
}

#[test]
fn viewers_of_one_stream_know_both_latencies_and_differ_in_how_far_its_dates_are_ahead() {
    // The second loads each playlist three seconds after it was published.
    for (age_ms, is_ahead) in [(100, true), (3_000, false)] {
        let fixture = played(age_ms, Duration::MAX);
        let seconds = fixture.intervals();
        let live: Vec<_> = seconds.iter().filter_map(|interval| interval.live).collect();
        assert!(live.len() > 50, "{age_ms}: {}", live.len());
        for live in live {
            assert!((11_500_000..12_500_000).contains(&live.to_edge_us), "{age_ms}: {live:?}");
            assert!(live.since_date_us.is_some(), "{age_ms}: {live:?}");
            let ahead_us = live.dates_ahead_us.unwrap();
            assert_eq!(ahead_us > DATES_AHEAD_US_MAX, is_ahead, "{age_ms}: {live:?}");
        }
        let said = fixture.anomalies();
        let said = said.iter().filter(|text| text.contains("ahead of this host's clock")).count();
        assert_eq!(said, usize::from(is_ahead), "{age_ms}: {:?}", fixture.anomalies());
    }
}

#[test]
fn a_viewer_that_plays_on_is_not_later_because_its_playlists_come_sooner() {
    let fixture = played(3_700, Duration::from_secs(20));
    assert_eq!(
        (fixture.totals().stall_count, fixture.totals().skipped_us),
        (0, 0),
        "{:?}",
        fixture.anomalies()
    );
    let (before, after) = (fixture.intervals()[15].live.unwrap(), last_live(&fixture));
    assert!(after.to_edge_us - before.to_edge_us > 3_000_000, "{before:?} {after:?}");
    assert!(after.over_target_us.abs_diff(before.over_target_us) < 200_000, "{before:?} {after:?}");
}
