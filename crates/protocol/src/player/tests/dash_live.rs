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

fn stand(player: PlayerConfig, mut text: impl FnMut() -> String + 'static) -> Stand {
    let answers: Answers = Box::new(move |path, _| {
        let is_manifest = path == "/live.mpd";
        Some(if is_manifest { whole(text().into_bytes()) } else { segment(path, Duration::ZERO) })
    });
    Stand::at("http://10.0.0.1/live.mpd", player, 1_000_000, answers)
}

#[track_caller]
fn assert_plays(stand: &Stand) {
    let totals = stand.totals();
    assert_eq!(
        (totals.stall_count, totals.requests_failed, totals.skipped_us),
        (0, 0, 0),
        "{:?}",
        stand.requests
    );
    assert_in_order(stand);
}

#[test]
fn numbered_segments_are_requested_when_the_clock_says_that_they_exist() {
    let mut stand = stand(lowest(), || manifest(500, &numbered(""), ""));
    stand.seconds(40);
    assert_plays(&stand);
    assert_eq!(segments(&stand)[0], 22, "84 s are 16 s, four segments, behind the present");
    assert_eq!(*segments(&stand).last().unwrap(), 35, "which ends after 40 s");
    assert_eq!(stand.requests.iter().filter(|request| request.starts_with("/live.mpd")).count(), 1);
    let live = last_live(&stand);
    assert!((16_000_000..16_300_000).contains(&live.since_date_us.unwrap()), "{live:?}");
    assert!(live.over_target_us.abs() < 300_000, "{live:?}");
    let played = stand.frames_played(0);
    assert!((975..=1_000).contains(&played), "{played}");
}

#[test]
fn a_timeline_is_loaded_again_and_the_manifest_chooses_the_delay() {
    let more = r#"suggestedPresentationDelay="PT10S""#;
    let mut stand = stand(lowest(), move || manifest(4, &timeline(), more));
    stand.seconds(40);
    assert_plays(&stand);
    let reloads: Vec<f64> = stand
        .requests
        .iter()
        .zip(&stand.requested_at)
        .filter(|(request, _)| request.starts_with("/live.mpd"))
        .map(|(_, at)| at.as_secs_f64())
        .collect();
    assert!(reloads.windows(2).all(|pair| (pair[1] - pair[0] - 4.0).abs() < 0.05), "{reloads:?}");
    // A timeline is looked at when its manifest came, not all the time.
    let wakes = stand.wakes as f64 / 40.0;
    assert!(wakes < 10.0, "{wakes} deadlines a second");
    let live = last_live(&stand);
    assert!((10_000_000..10_300_000).contains(&live.since_date_us.unwrap()), "{live:?}");
}

/// A server whose clock is 30 s ahead of this host's, and which tells the time as `told`.
fn of_another_clock(sources: &str, told: impl Fn(&str) -> Option<Reply> + 'static) -> Stand {
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
    let mut stand = Stand::at("http://10.0.0.1/live.mpd", lowest(), 1_000_000, answers);
    stand.seconds(30);
    stand
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
    for (sources, stand) in [
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
        let totals = stand.totals();
        assert_eq!(
            (totals.stall_count, totals.skipped_us),
            (0, 0),
            "{sources}: {:?}",
            stand.anomalies()
        );
        assert!((29..=30).contains(&segments(&stand)[0]), "{sources}: {:?}", stand.requests);
        let said =
            stand.anomalies().iter().filter(|text| text.contains("ahead of this host's")).count();
        assert_eq!(said, 1, "{sources}: {:?}", stand.anomalies());
        let live = last_live(&stand);
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
        let stand = of_another_clock(&sources, move |path| {
            Some(match path {
                "/time-none" => Reply::of(200, &[]),
                "/time-html" => whole(b"<html>".to_vec()),
                "/time-year" => whole(b"9999-12-31T23:59:59Z".to_vec()),
                "/time-long" => whole(vec![b' '; 9_000]),
                "/time-late" => late(),
                _ => Reply::of(404, &[]),
            })
        });
        let said = stand.anomalies();
        assert!(said.len() == 1 && said[0].contains(expect), "{sources}: {said:?}");
        assert!(
            startup.contains(&(stand.totals().startup_us / 1_000_000)),
            "{sources}: {:?}",
            stand.totals()
        );
        assert!(
            (22..=24).contains(&segments(&stand)[0]),
            "by this host's clock: {:?}",
            stand.requests
        );
        assert!(stand.ended.is_none() && stand.totals().stall_count == 0);
    }
}

#[test]
fn the_rendition_is_switched_at_the_same_time() {
    let mut stand = stand(PlayerConfig::default(), || manifest(500, &numbered(""), ""));
    stand.seconds(30);
    assert_plays(&stand);
    assert_eq!(stand.totals().switches, 1);
    assert!(stand.requests.last().unwrap().starts_with("/high-"), "{:?}", stand.requests);
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
    let mut stand = Stand::at("http://10.0.0.1/live.mpd", lowest(), 55_000, answers);
    stand.seconds(30);
    assert_plays(&stand);
    let live = last_live(&stand);
    assert!(
        (3_000_000..5_000_000).contains(&live.since_date_us.unwrap()),
        "the target, and what the first segment took: {live:?}"
    );
}

#[test]
fn the_end_and_unreadable_manifests_are_survived() {
    let mut stand = stand(lowest(), || {
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
    stand.seconds(60);
    assert_eq!(stand.ended, Some(Outcome::Completed), "{:?}", stand.requests);
    assert!(
        stand.anomalies().iter().any(|text| text.contains("line 1")),
        "{:?}",
        stand.anomalies()
    );
    assert_eq!(*segments(&stand).last().unwrap(), 30, "120 s");
    assert_eq!(stand.totals().skipped_us, 0);
}
