//! Live DASH: which segments exist follows from the clock, or from a manifest that is loaded again
//! and again.

use std::time::Duration;

use super::live::{assert_in_order, last_live, lowest, segments, whole};
use super::segmented::transport_stream;
use super::*;

/// The presentation at the start, seconds: segments of four seconds, numbered from 1 on.
const ON_AIR_S: u64 = 100;
const SEGMENT_S: u64 = 4;

fn manifest(update_s: u64, template: &str, more: &str) -> String {
    // 1970-01-01T23:58:20Z is the wall clock at the start minus the time on air.
    format!(
        r#"<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic" availabilityStartTime="1970-01-01T23:58:20Z"
           minimumUpdatePeriod="PT{update_s}S" timeShiftBufferDepth="PT60S" {more}><Period start="PT0S">
           <AdaptationSet contentType="video">{template}<Representation id="low" bandwidth="400000"/>
           <Representation id="high" bandwidth="1600000"/></AdaptationSet></Period></MPD>"#
    )
}

fn numbered(attributes: &str) -> String {
    format!(
        r#"<SegmentTemplate timescale="1000" duration="4000" startNumber="1" {attributes}
           media="$RepresentationID$-$Number$.ts"/>"#
    )
}

/// A timeline of the segments that are complete.
fn timeline() -> String {
    let complete = (ON_AIR_S + clock().as_secs()) / SEGMENT_S;
    let first = complete - 15;
    format!(
        r#"<SegmentTemplate timescale="1000" startNumber="{}" media="$RepresentationID$-$Number$.ts">
           <SegmentTimeline><S t="{}" d="4000" r="14"/></SegmentTimeline></SegmentTemplate>"#,
        first + 1,
        first * SEGMENT_S * 1_000,
    )
}

/// The server has what is complete `early` before its end.
fn segment(path: &str, early: Duration) -> Reply {
    let name = path.trim_start_matches('/').strip_suffix(".ts").unwrap_or_default();
    let Some((name, number)) =
        name.split_once('-').and_then(|(name, n)| Some((name, n.parse::<u64>().ok()?)))
    else {
        return Reply::of(404, &[]);
    };
    let ends = Duration::from_secs(number * SEGMENT_S);
    if ends > Duration::from_secs(ON_AIR_S) + clock() + early {
        return Reply::of(404, &[]);
    }
    let frame_bytes = if name == "high" { 7_200 } else { 1_800 };
    whole(transport_stream((number - 1) * SEGMENT_S..number * SEGMENT_S, frame_bytes))
}

fn fixture(player: PlayerConfig, mut text: impl FnMut() -> String + 'static) -> Fixture {
    let answers: Answers = Box::new(move |path, _| {
        let is_manifest = path == "/live.mpd";
        Some(if is_manifest { whole(text().into_bytes()) } else { segment(path, Duration::ZERO) })
    });
    Fixture::at("http://10.0.0.1/live.mpd", player, 1_000_000, answers)
}

#[track_caller]
fn assert_plays(fixture: &Fixture) {
    let totals = fixture.totals();
    assert_eq!(
        (totals.stall_count, totals.requests_failed, totals.skipped_us),
        (0, 0, 0),
        "{:?}",
        fixture.requests
    );
    assert_in_order(fixture);
}

#[test]
fn numbered_segments_are_requested_when_the_clock_says_that_they_exist() {
    let mut fixture = fixture(lowest(), || manifest(500, &numbered(""), ""));
    fixture.seconds(40);
    assert_plays(&fixture);
    assert_eq!(segments(&fixture)[0], 22, "84 s are 16 s, four segments, behind the present");
    assert_eq!(*segments(&fixture).last().unwrap(), 35, "which ends after 40 s");
    assert_eq!(
        fixture.requests.iter().filter(|request| request.starts_with("/live.mpd")).count(),
        1
    );
    let live = last_live(&fixture);
    assert!((16_000_000..16_300_000).contains(&live.since_date_us.unwrap()), "{live:?}");
    assert!(live.over_target_us.abs() < 300_000, "{live:?}");
    let played = fixture.frames_played(0);
    assert!((975..=1_000).contains(&played), "{played}");
}

#[test]
fn a_segment_that_is_no_media_is_a_hole() {
    let answers: Answers = Box::new(|path, _| {
        Some(match path {
            "/live.mpd" => whole(manifest(500, &numbered(""), "").into_bytes()),
            "/low-26.ts" => whole(b"<html>".repeat(500)),
            _ => segment(path, Duration::ZERO),
        })
    });
    let mut fixture = Fixture::at("http://10.0.0.1/live.mpd", lowest(), 1_000_000, answers);
    fixture.seconds(40);
    let totals = fixture.totals();
    assert!(fixture.ended.is_none() && totals.skipped_us > 3_900_000, "{totals:?}");
    let said = fixture.anomalies();
    assert!(said.iter().any(|text| text.contains("low-26.ts")), "{said:?}");
}

#[test]
fn a_timeline_is_loaded_again_and_the_manifest_chooses_the_delay() {
    let more = r#"suggestedPresentationDelay="PT10S""#;
    let mut fixture = fixture(lowest(), move || manifest(4, &timeline(), more));
    fixture.seconds(40);
    assert_plays(&fixture);
    let reloads: Vec<f64> = fixture
        .requests
        .iter()
        .zip(&fixture.requested_at)
        .filter(|(request, _)| request.starts_with("/live.mpd"))
        .map(|(_, at)| at.as_secs_f64())
        .collect();
    assert!(reloads.windows(2).all(|pair| (pair[1] - pair[0] - 4.0).abs() < 0.05), "{reloads:?}");
    // A timeline is looked at when its manifest came, not all the time.
    let wakes = fixture.wakes as f64 / 40.0;
    assert!(wakes < 10.0, "{wakes} deadlines a second");
    let live = last_live(&fixture);
    assert!((10_000_000..10_300_000).contains(&live.since_date_us.unwrap()), "{live:?}");
}

/// A server whose clock is 30 s ahead of this host's, and which tells the time as `told`.
fn of_another_clock(sources: &str, told: impl Fn(&str) -> Option<Reply> + 'static) -> Fixture {
    let timing = format!("{sources}<Period start=");
    let answers: Answers = Box::new(move |path, _| {
        if path == "/live.mpd" {
            let text = manifest(500, &numbered(""), "").replace("<Period start=", &timing);
            return Some(whole(text.into_bytes()));
        }
        if path.starts_with("/time") {
            return told(path);
        }
        Some(segment(path, AHEAD))
    });
    let mut fixture = Fixture::at("http://10.0.0.1/live.mpd", lowest(), 1_000_000, answers);
    fixture.seconds(30);
    fixture
}

const AHEAD: Duration = Duration::from_secs(30);

fn timing(scheme: &str, value: &str) -> String {
    format!(r#"<UTCTiming schemeIdUri="urn:mpeg:dash:utc:{scheme}:2014" value="{value}"/>"#)
}

/// The time of the server, `1970-01-02T00:00:00Z` at the start.
fn told() -> (u64, u64, u32) {
    let now = clock() + AHEAD;
    (now.as_secs() / 60, now.as_secs() % 60, now.subsec_millis())
}

fn date() -> Reply {
    let (minute, second, ms) = told();
    whole(format!("1970-01-02T00:{minute:02}:{second:02}.{ms:03}Z").into_bytes())
}

#[test]
fn segments_exist_by_the_clock_of_the_server_where_the_manifest_says_how_to_learn_it() {
    let head = |_: &str| {
        let (minute, second, _) = told();
        let date = ("date", format!("Fri, 02 Jan 1970 00:{minute:02}:{second:02} GMT"));
        // The body that the head describes does not come.
        Some(Reply::of(
            200,
            &[date, ("content-length", "1000".to_owned()), ("content-encoding", "gzip".to_owned())],
        ))
    };
    let unknown = timing("ntp", "10.0.0.1") + &timing("http-xsdate", "https://192.0.2.1/time");
    for (sources, fixture) in [
        ("xsdate", of_another_clock(&timing("http-xsdate", "time"), |_| Some(date()))),
        ("head", of_another_clock(&timing("http-head", "/time"), head)),
        ("direct", of_another_clock(&timing("direct", "1970-01-02T00:00:30Z"), |_| None)),
        (
            "the second that may be asked",
            of_another_clock(&(unknown + &timing("http-iso", "/time-1 /time-2")), |path| {
                Some(if path == "/time-1" { Reply::of(503, &[]) } else { date() })
            }),
        ),
    ] {
        let totals = fixture.totals();
        assert_eq!(
            (totals.stall_count, totals.skipped_us),
            (0, 0),
            "{sources}: {:?}",
            fixture.anomalies()
        );
        assert!((29..=30).contains(&segments(&fixture)[0]), "{sources}: {:?}", fixture.requests);
        let said =
            fixture.anomalies().iter().filter(|text| text.contains("ahead of this host's")).count();
        assert_eq!(said, 1, "{sources}: {:?}", fixture.anomalies());
        let live = last_live(&fixture);
        assert!(
            (15_000_000..17_300_000).contains(&live.since_date_us.unwrap()),
            "{sources}: {live:?}"
        );
    }
}

#[test]
fn a_source_of_time_that_tells_none_is_named_and_costs_at_most_five_seconds() {
    let late = || Reply { not_before: Duration::from_secs(99), ..date() };
    for (sources, expect, startup) in [
        (timing("ntp", "10.0.0.1"), "cannot be asked", 0..1),
        ("<UTCTiming/>".to_owned(), "cannot be asked", 0..1),
        (timing("http-iso", "https://192.0.2.1/time"), "not an allowed target", 0..1),
        (timing("http-iso", "time-gone"), "HTTP status 404", 0..1),
        (timing("http-iso", "time-html"), "`<html>` is not the time", 0..1),
        (timing("http-iso", "time-year"), "is not the time", 0..1),
        (timing("http-head", "time-none"), "`` is not the time", 0..1),
        (timing("http-iso", "time-long"), "more than 256 bytes", 0..1),
        (timing("direct", "soon"), "`soon` is not the time", 0..1),
        (timing("http-iso", "time-late"), "no time (UTCTiming) within 5 s", 5..6),
    ] {
        let fixture = of_another_clock(&sources, move |path| {
            Some(match path {
                "/time-none" => Reply::of(200, &[]),
                "/time-html" => whole(b"<html>".to_vec()),
                "/time-year" => whole(b"9999-12-31T23:59:59Z".to_vec()),
                "/time-long" => whole(vec![b' '; 9_000]),
                "/time-late" => late(),
                _ => Reply::of(404, &[]),
            })
        });
        let said = fixture.anomalies();
        assert!(said.len() == 1 && said[0].contains(expect), "{sources}: {said:?}");
        assert!(
            startup.contains(&(fixture.totals().startup_us / 1_000_000)),
            "{sources}: {:?}",
            fixture.totals()
        );
        assert!(
            (22..=24).contains(&segments(&fixture)[0]),
            "by this host's clock: {:?}",
            fixture.requests
        );
        assert!(fixture.ended.is_none() && fixture.totals().stall_count == 0);
    }
}

#[test]
fn the_rendition_is_switched_at_the_same_time() {
    let mut fixture = fixture(PlayerConfig::default(), || manifest(500, &numbered(""), ""));
    fixture.seconds(30);
    assert_plays(&fixture);
    assert_eq!(fixture.totals().switches, 1);
    assert!(fixture.requests.last().unwrap().starts_with("/high-"), "{:?}", fixture.requests);
}

#[test]
fn chunks_are_played_as_they_come() {
    let target =
        r#"<ServiceDescription id="0"><Latency target="3000"/></ServiceDescription><Period start="#;
    let answers: Answers = Box::new(move |path, _| {
        let text = manifest(500, &numbered(r#"availabilityTimeOffset="3.5""#), "");
        let is_manifest = path == "/live.mpd";
        let text = text.replace("<Period start=", target);
        Some(if is_manifest {
            whole(text.into_bytes())
        } else {
            segment(path, Duration::from_millis(3_500))
        })
    });
    // The line carries a little more than the bit rate, so that a segment comes nearly as slowly as
    // it is made.
    let mut fixture = Fixture::at("http://10.0.0.1/live.mpd", lowest(), 55_000, answers);
    fixture.seconds(30);
    assert_plays(&fixture);
    let live = last_live(&fixture);
    assert!(
        (3_000_000..5_000_000).contains(&live.since_date_us.unwrap()),
        "the target, and what the first segment took: {live:?}"
    );
}

#[test]
fn the_end_and_unreadable_manifests_are_survived() {
    let mut fixture = fixture(lowest(), || {
        let now = clock().as_secs();
        let text = manifest(4, &timeline(), "");
        match now {
            6..=11 => "<html>".to_owned(),
            20.. => {
                let text =
                    text.replace("dynamic", "static").replace("minimumUpdatePeriod=\"PT4S\"", "");
                text.replace(
                    "<Period start=\"PT0S\">",
                    "<Period start=\"PT0S\" duration=\"PT120S\">",
                )
            }
            _ => text,
        }
    });
    fixture.seconds(60);
    assert_eq!(fixture.ended, Some(Outcome::Completed), "{:?}", fixture.requests);
    assert!(
        fixture.anomalies().iter().any(|text| text.contains("line 1")),
        "{:?}",
        fixture.anomalies()
    );
    assert_eq!(*segments(&fixture).last().unwrap(), 30, "120 s");
    assert_eq!(fixture.totals().skipped_us, 0);
}
