//! Viewers of live HLS and DASH streams that ffmpeg makes, on real web servers.

use std::collections::BTreeMap;

use serde_json::Value;
use throng_sim::caddy::Caddy;
use throng_sim::live::LiveStream;
use throng_sim::nginx::{Access, Nginx};

use crate::throng::{Ran, figure, valid};
use crate::vod::{url, view};

/// All played from the beginning on without a stall, and no request failed.
#[track_caller]
fn assert_plays(ran: &Ran, users: u32) -> Value {
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{ran}");
    assert_eq!(figure(&summary, "playback.startup.reached"), f64::from(users), "{ran}");
    assert_eq!(figure(&summary, "playback.stalls"), 0.0, "{ran}");
    assert_eq!(figure(&summary, "playback.skipped_s"), 0.0, "{ran}");
    assert_eq!(figure(&summary, "playback.missed"), 0.0, "{ran}");
    let fps = figure(&summary, "video.fps_p50");
    assert!((24.0..26.0).contains(&fps), "{fps} fps\n{ran}");
    summary
}

/// What was odd about the server, not about this host.
fn anomalies(summary: &Value) -> Vec<&str> {
    let events = summary["events"].as_object().expect("events");
    events.keys().map(String::as_str).filter(|kind| *kind != "generator_limited").collect()
}

/// Requests for playlists by connection, as times between them.
fn spacings(accesses: &[Access]) -> Vec<f64> {
    let mut by_connection: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for access in accesses.iter().filter(|access| access.uri.ends_with(".m3u8")) {
        by_connection.entry(access.connection).or_default().push(access.at_s);
    }
    let between =
        |times: Vec<f64>| times.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
    let mut all: Vec<f64> = by_connection.into_values().flat_map(between).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Viewers with a small picture take the rendition that fills it, and not the best.
#[track_caller]
fn assert_small_screens_get_the_small_rendition(stream: &LiveStream, nginx: &Nginx) {
    let master = "#EXTM3U\n\
        #EXT-X-STREAM-INF:BANDWIDTH=400000,RESOLUTION=640x360\nlive.m3u8?small\n\
        #EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=1280x720\nlive.m3u8?large\n";
    std::fs::write(stream.file("master.m3u8"), master).unwrap();
    let player = "rendition = \"highest\", screen = \"360p\"";
    let url = url("http", nginx.plain_address(), "master.m3u8");
    let ran = view(&url, 2, 3, player, &[]).expect_code(0);
    let accesses = nginx.accesses().unwrap();
    let count = |end: &str| accesses.iter().filter(|access| access.uri.ends_with(end)).count();
    assert!(count("?small") > 0 && count("?large") == 0, "{accesses:?}\n{ran}");
}

#[test]
fn live_viewers_ask_for_what_hls_js_asks_for_and_nginx_counts_the_same() {
    if !Nginx::is_installed() {
        return;
    }
    let Some(stream) = LiveStream::hls("").unwrap() else { return };
    let (users, seconds) = (10_u32, 12_u32);
    let ((ran, summary), accesses) = {
        let nginx = Nginx::serving(stream.folder()).unwrap();
        let url = url("http", nginx.plain_address(), "live.m3u8");
        let ran = view(&url, users, seconds, "", &[]).expect_code(0);
        let summary = assert_plays(&ran, users);
        let accesses = nginx.accesses().unwrap();
        assert_small_screens_get_the_small_rendition(&stream, &nginx);
        ((ran, summary), accesses)
    };
    // A playlist and a segment each second, and two segments more at the start: three are there,
    // one of which is due.
    let between = spacings(&accesses);
    let median = between[between.len() / 2];
    assert!((0.95..1.05).contains(&median), "{between:?}\n{ran}");
    // What the end of the run has cut off, nginx may not have seen.
    let cut_off = summary["playback"]["requests_by_status"]["cancelled"].as_u64().unwrap_or(0);
    let requests = figure(&summary, "playback.requests") as u64;
    assert!(
        (requests - cut_off..=requests).contains(&(accesses.len() as u64)),
        "{}\n{ran}",
        accesses.len()
    );
    assert_eq!(figure(&summary, "playback.requests_failed"), 0.0, "{ran}");
    assert!(accesses.iter().all(|access| access.status == 200), "{accesses:?}");
    let segments = accesses.iter().filter(|access| access.uri.ends_with(".ts"));
    let per_viewer = segments.count() as f64 / f64::from(users);
    assert!(
        (f64::from(seconds) + 0.4..f64::from(seconds) + 3.1).contains(&per_viewer),
        "{per_viewer}\n{ran}"
    );
    let bodies: u64 = accesses.iter().map(|access| access.bytes).sum();
    let received =
        figure(&summary, "playback.media_bytes") + figure(&summary, "playback.other_bytes");
    assert!((received / bodies as f64 - 1.0).abs() < 0.02, "{received} of {bodies} bytes\n{ran}");
    // Three segments behind the end of the playlist, which is up to a segment old.
    assert_eq!(summary["playback"]["latency"]["basis"], "program_date_time");
    let latency_ms = figure(&summary, "playback.latency.ms_p50");
    assert!((2_900.0..4_700.0).contains(&latency_ms), "{latency_ms}\n{ran}");
    assert!(figure(&summary, "playback.latency.drift_ms").abs() < 100.0, "{ran}");
}

#[test]
fn audio_in_a_playlist_of_its_own_is_followed_beside_the_pictures() {
    if !Nginx::is_installed() {
        return;
    }
    let Some(stream) = LiveStream::hls_with_separate_audio().unwrap() else { return };
    let (users, seconds) = (5_u32, 8_u32);
    let nginx = Nginx::serving(stream.folder()).unwrap();
    let ran = view(&url("http", nginx.plain_address(), "live.m3u8"), users, seconds, "", &[])
        .expect_code(0);
    let summary = assert_plays(&ran, users);
    let accesses = nginx.accesses().unwrap();
    assert!(accesses.iter().all(|access| access.status == 200), "{accesses:?}");
    let count = |begins: &str, ends: &str| {
        let of = |access: &&Access| access.uri.starts_with(begins) && access.uri.ends_with(ends);
        accesses.iter().filter(of).count() as f64 / f64::from(users)
    };
    // A playlist and a segment of each a second, and up to three segments more at the start.
    for ends in [".m3u8", ".ts"] {
        let (pictures, sound) = (count("/live-pictures", ends), count("/live-sound", ends));
        let expect = f64::from(seconds) - 1.0..f64::from(seconds) + 4.0;
        assert!(
            expect.contains(&pictures) && expect.contains(&sound),
            "{ends}: {pictures} {sound}\n{ran}"
        );
        assert!((pictures - sound).abs() <= 1.5, "{ends}: {pictures} {sound}\n{ran}");
    }
    assert_eq!(anomalies(&summary), Vec::<&str>::new(), "{ran}");
    assert_eq!(summary["playback"]["latency"]["basis"], "program_date_time");
    let latency_ms = figure(&summary, "playback.latency.ms_p50");
    assert!((2_900.0..4_700.0).contains(&latency_ms), "{latency_ms}\n{ran}");
    // 47 frames of AAC a second.
    let heard = figure(&summary, "audio.frames_complete") / f64::from(users * seconds);
    assert!((40.0..60.0).contains(&heard), "{heard}\n{ran}");
}

/// Over 20 s: two streams get 6 s of history, and two runs take 8 s each.
#[test]
fn live_streams_play_over_http2_and_http3_in_fmp4_and_encrypted() {
    if !Nginx::is_installed() || !Caddy::is_installed() {
        return;
    }
    let [fmp4, encrypted] = std::thread::scope(|scope| {
        let streams = ["-hls_segment_type fmp4", "-hls_key_info_file key.info"]
            .map(|options| scope.spawn(move || LiveStream::hls(options).unwrap()));
        streams.map(|stream| stream.join().unwrap())
    });
    let (Some(fmp4), Some(encrypted)) = (fmp4, encrypted) else { return };
    let (nginx, caddy) =
        (Nginx::serving(fmp4.folder()).unwrap(), Caddy::serving(encrypted.folder()).unwrap());
    for (url, version, certificate) in [
        (url("https", nginx.address(), "live.m3u8"), "http2", nginx.certificate()),
        (url("https", caddy.address(), "live.m3u8"), "http3", caddy.certificate()),
    ] {
        let certificate = certificate.display().to_string();
        let player = format!("http = \"{}\"", version.trim_start_matches("http"));
        let ran = view(&url, 10, 8, &player, &["--tls-ca", &certificate]).expect_code(0);
        let summary = assert_plays(&ran, 10);
        let requests = figure(&summary, "playback.requests");
        // The end of the run may cut off one request of each viewer before its response.
        let answered = figure(&summary, &format!("playback.responses.{version}"));
        assert!((requests - 10.0..=requests).contains(&answered), "{answered}\n{ran}");
        let by_version = summary["playback"]["responses"].as_object().expect("responses");
        let all: f64 = by_version.values().filter_map(Value::as_f64).sum();
        assert_eq!(all, answered, "by another version: {ran}");
        assert_eq!(anomalies(&summary), Vec::<&str>::new(), "{ran}");
    }
}

/// 35 s: two streams in turn, each with 5 s of history and a run of 10 s.
#[test]
fn live_dash_is_followed_by_its_clock_and_by_its_timeline() {
    if !Nginx::is_installed() {
        return;
    }
    for (options, reloads) in [
        ("-f dash -seg_duration 1 -window_size 8 -use_timeline 1 -use_template 1 live.mpd", true),
        ("-f dash -seg_duration 1 -window_size 8 -use_timeline 0 -use_template 1 live.mpd", false),
    ] {
        let is_ready = |text: &str| text.contains("availabilityStartTime");
        let Some(stream) = LiveStream::start(options, is_ready).unwrap() else { return };
        std::thread::sleep(std::time::Duration::from_secs(5));
        let nginx = Nginx::serving(stream.folder()).unwrap();
        let url = url("http", nginx.plain_address(), "live.mpd");
        let ran = view(&url, 5, 10, "latency = \"4s\"", &[]).expect_code(0);
        let summary = assert_plays(&ran, 5);
        // ffmpeg writes a numbered segment later than the clock says; dash.js asks again as well.
        let accesses = nginx.accesses().unwrap();
        let manifests = accesses.iter().filter(|access| access.uri.ends_with(".mpd")).count();
        assert_eq!(manifests > 5, reloads, "{manifests} manifests\n{ran}");
        let latency_ms = figure(&summary, "playback.latency.ms_p50");
        assert!((3_900.0..5_500.0).contains(&latency_ms), "{latency_ms}\n{ran}");
    }
}

/// 20 s: the stream gets 6 s of history, and the run takes 14 s.
#[test]
fn a_rate_below_the_stream_stalls_live_viewers_as_arithmetic_says() {
    if !Nginx::is_installed() {
        return;
    }
    let Some(stream) = LiveStream::hls("").unwrap() else { return };
    let (ran, ()) = valid(|| {
        // A segment has nearly 100 kB.
        let nginx = Nginx::limiting(stream.folder(), 75_000).unwrap();
        (view(&url("http", nginx.plain_address(), "live.m3u8"), 5, 14, "", &[]), ())
    });
    let summary = ran.summary();
    let segment_ratio = figure(&summary, "playback.segment_ratio");
    assert!((1.1..1.8).contains(&segment_ratio), "{segment_ratio}\n{ran}");
    // A second of media takes `segment_ratio` seconds to come; the second with which playback
    // begins is there already.
    let since_start_s =
        (figure(&summary, "playback.played_s") + figure(&summary, "playback.stall_s")) / 5.0;
    let expect = 1.0 - 1.0 / segment_ratio - 1.0 / since_start_s;
    let stalled = figure(&summary, "playback.stall_ratio");
    assert!((stalled / expect - 1.0).abs() < 0.25, "stalled {stalled}, expected {expect}\n{ran}");
    assert_eq!(figure(&summary, "playback.viewers_stalled"), 5.0, "{ran}");
    // Each moment of a stall brings the viewer further behind.
    let drift_ms = figure(&summary, "playback.latency.drift_ms");
    assert!(drift_ms > 1_000.0, "{drift_ms}\n{ran}");
}
