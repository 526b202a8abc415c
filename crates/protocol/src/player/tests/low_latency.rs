//! LL-HLS: parts, requests that the server holds until there is something new, delta updates.

use std::time::Duration;

use throng_scenario::LivePolicy;

use super::live::{fixture, last_live, times_of, whole};
use super::segmented::transport_stream;
use super::*;

/// The program at the start, seconds.
const ON_AIR_S: u64 = 100;
/// Parts of a second, four of them a segment.
const PARTS: u64 = 4;
/// Parts are listed of the last segments only.
const WITH_PARTS: u64 = 3;
const LISTED: u64 = 15;

/// What a request for the playlist asks for.
fn parameter(path: &str, name: &str) -> Option<u64> {
    let (_, query) = path.split_once('?')?;
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        .and_then(|v| v.parse().ok())
}

/// Seconds of the program that exist `after` the start.
fn exist(after: Duration) -> u64 {
    ON_AIR_S + after.as_secs()
}

fn playlist(seconds: u64, skips: bool) -> String {
    let (complete, parts) = (seconds / PARTS, seconds % PARTS);
    let first = complete - LISTED;
    let mut out = format!(
        "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:{first}\n\
         #EXT-X-PART-INF:PART-TARGET=1\n\
         #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=3,CAN-SKIP-UNTIL=24\n"
    );
    let skipped = if skips { 8 } else { 0 };
    if skips {
        out += &format!("#EXT-X-SKIP:SKIPPED-SEGMENTS={skipped}\n");
    }
    let part =
        |second: u64| format!("#EXT-X-PART:DURATION=1,URI=\"part-{second}.ts\",INDEPENDENT=YES\n");
    for number in first + skipped..complete {
        if number + WITH_PARTS >= complete {
            out += &(number * PARTS..(number + 1) * PARTS).map(part).collect::<String>();
        }
        out += &format!("#EXTINF:4,\nsegment-{number}.ts\n");
    }
    out += &(complete * PARTS..complete * PARTS + parts).map(part).collect::<String>();
    out + &format!("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"part-{seconds}.ts\"\n")
}

fn answer(path: &str) -> Reply {
    let now = clock();
    let name = path.split('?').next().unwrap().trim_start_matches('/');
    if name == "master.m3u8" {
        // The segment and part that are asked for, as seconds of the program.
        let until = parameter(path, "_HLS_msn")
            .map(|segment| segment * PARTS + parameter(path, "_HLS_part").unwrap_or(PARTS - 1) + 1);
        let until = until.unwrap_or(0).max(exist(now));
        let text = playlist(until, path.contains("_HLS_skip=YES"));
        let not_before = Duration::from_secs(until - ON_AIR_S);
        return Reply { not_before, ..whole(text.into_bytes()) };
    }
    let number = name
        .rsplit('-')
        .next()
        .and_then(|rest| rest.strip_suffix(".ts"))
        .and_then(|n| n.parse().ok());
    let Some(number): Option<u64> = number else { return Reply::of(404, &[]) };
    let seconds = if name.starts_with("part-") {
        number..number + 1
    } else {
        number * PARTS..(number + 1) * PARTS
    };
    if seconds.end > exist(now) + 1 {
        return Reply::of(404, &[]);
    }
    let not_before = Duration::from_secs(seconds.end - ON_AIR_S.min(seconds.end));
    Reply { not_before, ..whole(transport_stream(seconds, 1_800)) }
}

fn playing(live: LivePolicy) -> Fixture {
    let player = PlayerConfig { live, ..PlayerConfig::default() };
    let mut fixture = fixture(player, 1_000_000, Box::new(|path, _| Some(answer(path))));
    fixture.seconds(30);
    let totals = fixture.totals();
    assert_eq!(
        (totals.stall_count, totals.skipped_us, totals.requests_failed),
        (0, 0, 0),
        "{:?}",
        fixture.anomalies()
    );
    fixture
}

#[test]
fn parts_are_played_and_the_playlist_is_awaited() {
    let fixture = playing(LivePolicy::default());
    let media: Vec<&str> = fixture.requests.iter().map(|r| r.split(' ').next().unwrap()).collect();
    let media: Vec<&str> = media.into_iter().filter(|path| path.ends_with(".ts")).collect();
    assert_eq!(
        media[..4],
        ["/part-97.ts", "/part-98.ts", "/part-99.ts", "/part-100.ts"],
        "3 s behind the end"
    );
    assert!(media.iter().all(|path| path.starts_with("/part-")), "{media:?}");
    assert_eq!(fixture.requests[1], "/master.m3u8?_HLS_msn=25&_HLS_part=0&_HLS_skip=YES 0");
    assert!(
        fixture
            .requests
            .contains(&"/master.m3u8?_HLS_msn=26&_HLS_part=3&_HLS_skip=YES 0".to_owned())
    );
    let reloads = times_of(&fixture, "/master.m3u8");
    assert!((30..=33).contains(&reloads.len()), "one for each part: {reloads:?}");
    let live = last_live(&fixture);
    assert!((2_900_000..4_200_000).contains(&(live.over_target_us + 3_000_000)), "{live:?}");
    let played = fixture.frames_played(0);
    assert!((725..=750).contains(&played), "{played}");
}

#[test]
fn without_low_latency_whole_segments_are_played() {
    let fixture = playing(LivePolicy { low_latency: false, ..LivePolicy::default() });
    assert!(
        fixture.requests.iter().all(|request| !request.starts_with("/part-")),
        "{:?}",
        fixture.requests
    );
    assert!(
        fixture.requests.iter().any(|request| request.contains("_HLS_msn=25&_HLS_part=3")),
        "{:?}",
        fixture.requests
    );
    let live = last_live(&fixture);
    assert!((11_500_000..13_000_000).contains(&(live.over_target_us + 12_000_000)), "{live:?}");
}

#[test]
fn hinted_parts_are_requested_before_they_exist() {
    let fixture = playing(LivePolicy { preload_hints: true, ..LivePolicy::default() });
    let early = fixture.requests.iter().zip(&fixture.requested_at).filter(|(request, at)| {
        let number = request.split([' ', '-', '.']).nth(1).and_then(|n| n.parse::<u64>().ok());
        request.starts_with("/part-") && number.is_some_and(|number| number >= exist(**at))
    });
    assert!(early.count() > 20, "{:?}", fixture.requests);
    let parts = fixture.requests.iter().filter(|request| request.starts_with("/part-"));
    let mut parts: Vec<_> = parts.collect();
    let all = parts.len();
    parts.dedup();
    assert_eq!(parts.len(), all, "each once");
}

#[test]
fn a_hint_that_leads_nowhere_costs_no_media() {
    let live = LivePolicy { preload_hints: true, ..LivePolicy::default() };
    let player = PlayerConfig { live, ..PlayerConfig::default() };
    let answers: Answers = Box::new(|path, _| {
        let number = path
            .strip_prefix("/part-")
            .and_then(|rest| rest.strip_suffix(".ts")?.parse::<u64>().ok());
        let is_early = number.is_some_and(|number| number >= exist(clock()));
        Some(if is_early { Reply::of(404, &[]) } else { answer(path) })
    });
    let mut fixture = fixture(player, 1_000_000, answers);
    fixture.seconds(30);
    let totals = fixture.totals();
    assert_eq!(
        (totals.stall_count, totals.skipped_us, totals.missed),
        (0, 0, 0),
        "{:?}",
        fixture.anomalies()
    );
    assert_eq!(totals.requests_failed, 1, "it is not tried again");
}

#[test]
fn a_part_that_is_missing_is_a_hole() {
    let answers: Answers = Box::new(|path, _| {
        let reply = answer(path);
        let text = String::from_utf8(reply.body.clone()).unwrap_or_default();
        let listed = "part-110.ts\",INDEPENDENT=YES";
        Some(if text.contains(listed) {
            let body = text.replace(listed, "part-110.ts\",GAP=YES").into_bytes();
            whole_at(body, reply.not_before)
        } else {
            reply
        })
    });
    let mut fixture = fixture(PlayerConfig::default(), 1_000_000, answers);
    fixture.seconds(30);
    let totals = fixture.totals();
    assert_eq!((totals.stall_count, totals.skipped_us), (1, 1_000_000), "{totals:?}");
    assert!(totals.stall_us < 50_000 && totals.requests_failed == 0, "{totals:?}");
    let asked_for = fixture.requests.iter().any(|request| request.starts_with("/part-110.ts"));
    assert!(!asked_for && fixture.ended.is_none(), "{:?}", fixture.requests);
}

/// Two renditions of the same parts, whose playlists report about each other. `report`: what they
/// say of the end.
fn in_two_renditions(path: &str, report: impl Fn(u64) -> String) -> Reply {
    if path == "/master.m3u8" {
        let text = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=400000\nlow.m3u8?a=1\n\
                    #EXT-X-STREAM-INF:BANDWIDTH=1600000\nhigh.m3u8?a=1\n";
        return whole(text.to_owned().into_bytes());
    }
    let Some((name, rest)) = path.split_once(".m3u8") else { return answer(path) };
    let mut reply = answer(&format!("/master.m3u8{rest}"));
    let other = if name == "/low" { "high" } else { "low" };
    let seconds = exist(clock().max(reply.not_before));
    let report = format!("#EXT-X-RENDITION-REPORT:URI=\"{other}.m3u8\",{}\n", report(seconds));
    reply.body.extend_from_slice(report.as_bytes());
    whole_at(reply.body, reply.not_before)
}

fn whole_at(body: Vec<u8>, not_before: Duration) -> Reply {
    Reply { not_before, ..whole(body) }
}

#[test]
fn the_first_request_for_another_rendition_is_answered_with_its_end() {
    let report = |seconds: u64| {
        let last = seconds - 1;
        format!("LAST-MSN={},LAST-PART={}", last / PARTS, last % PARTS)
    };
    let answers: Answers = Box::new(move |path, _| Some(in_two_renditions(path, report)));
    let mut fixture = fixture(PlayerConfig::default(), 1_000_000, answers);
    fixture.seconds(30);
    let totals = fixture.totals();
    assert_eq!(
        (totals.stall_count, totals.skipped_us, totals.requests_failed),
        (0, 0, 0),
        "{totals:?}"
    );
    assert_eq!(totals.switches, 1);
    let switched =
        fixture.requests.iter().position(|request| request.starts_with("/high.m3u8")).unwrap();
    let (request, at) = (&fixture.requests[switched], fixture.requested_at[switched]);
    let last = exist(at) - 1;
    let expect = format!("/high.m3u8?a=1&_HLS_msn={}&_HLS_part={} 0", last / PARTS, last % PARTS);
    assert_eq!(*request, expect, "at {at:?}");
    assert!(
        fixture.requests[switched + 1].starts_with("/high.m3u8?a=1&_HLS_msn="),
        "the next part is awaited"
    );
}

#[test]
fn a_report_that_is_wrong_costs_a_request() {
    let answers: Answers = Box::new(|path, _| {
        let is_beyond = parameter(path, "_HLS_msn").is_some_and(|segment| segment > 1_000);
        let report = |_| "LAST-MSN=18446744073709551615,LAST-PART=18446744073709551615".to_owned();
        Some(if is_beyond { Reply::of(400, &[]) } else { in_two_renditions(path, report) })
    });
    let mut fixture = fixture(PlayerConfig::default(), 1_000_000, answers);
    fixture.seconds(30);
    let totals = fixture.totals();
    assert_eq!(
        (totals.stall_count, totals.skipped_us, totals.requests_failed),
        (0, 0, 1),
        "{totals:?}"
    );
    assert!(fixture.requests.contains(&"/high.m3u8?a=1 0".to_owned()), "{:?}", fixture.requests);
    assert!(fixture.ended.is_none());
}

#[test]
fn updates_that_nobody_asked_for_are_not_asked_for_without_end() {
    let always = |path: &str| {
        let mut reply = answer(path);
        if path.starts_with("/master.m3u8?") {
            // Of a playlist that has nothing in common with the one before.
            let text = playlist(exist(clock()), true)
                .replace("SKIPPED-SEGMENTS=8", "SKIPPED-SEGMENTS=9999");
            reply = whole(text.into_bytes());
        }
        reply
    };
    let mut later =
        fixture(PlayerConfig::default(), 1_000_000, Box::new(move |path, _| Some(always(path))));
    later.seconds(20);
    assert!(later.ended.is_none());
    // A repeat waits for a second; the whole playlist between is followed at once by the next
    // update.
    assert!(later.requests.len() < 100, "{} requests in 20 s", later.requests.len());
    assert!(
        later.anomalies().iter().any(|text| text.contains("EXT-X-SKIP")),
        "{:?}",
        later.anomalies()
    );
    let mut first = fixture(
        PlayerConfig::default(),
        1_000_000,
        Box::new(|_, _| Some(whole(playlist(exist(clock()), true).into_bytes()))),
    );
    first.seconds(2);
    assert!(first.failure().contains("EXT-X-SKIP"), "{}", first.failure());
}

#[test]
fn a_faster_playback_regains_what_a_stall_took() {
    let after_a_stall = |catch_up_milli| {
        let live = LivePolicy {
            catch_up_milli,
            latency: Some(Duration::from_secs(4)),
            ..LivePolicy::default()
        };
        let mut fixture = playing(live);
        fixture.bytes_per_s = 0;
        fixture.seconds(7);
        fixture.bytes_per_s = 1_000_000;
        fixture.seconds(30);
        assert_eq!(fixture.totals().stall_count, 1);
        last_live(&fixture).over_target_us
    };
    let (usual, fast) = (after_a_stall(1_000), after_a_stall(1_500));
    assert!(usual > 1_500_000 && fast < 100_000, "{usual} {fast}");
}
