//! Publishers by RTMP and SRT on real servers, and viewers of what those make of it.

use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use throng_media::mark::Mark;
use throng_media::picture_clock;
use throng_media::timing::{IndexCache, TimingReader};
use throng_sim::ingest::IngestServer;
use throng_sim::nginx::Nginx;

use crate::canary::processes;
use crate::throng::{Ran, Running, figure, run};
use crate::vod::{url, view};

/// One publisher for some seconds.
fn publisher(url: &str, seconds: &str, media: &str) -> Running {
    let media = format!("crowd.publish={media}");
    Running::start(None, &["view", url, "-n", "1", "--for", seconds, "--set", &media])
}

/// What a viewer sees of the latency: to the end of the playlist (or by its dates), and since
/// capture, both in milliseconds.
fn latencies(ran: &Ran) -> (f64, f64) {
    let summary = ran.summary();
    (
        figure(&summary, "playback.latency.ms_p50"),
        figure(&summary, "playback.latency.capture_ms_p50"),
    )
}

/// The first picture of a segment: the mark in its stream, and the clock in its picture,
/// milliseconds after midnight.
fn first_picture(segment: &std::path::Path, (width, height): (usize, usize)) -> (Mark, u64) {
    let mut reader = TimingReader::segment(IndexCache::default(), None);
    reader.feed(&std::fs::read(segment).unwrap()).unwrap();
    reader.finish().unwrap();
    while reader.next_frame().is_some() {}
    let mark = reader.take_marked().expect("a mark").mark;
    let mut decode = Command::new("ffmpeg");
    decode.args(["-v", "error", "-i"]).arg(segment);
    let picture =
        decode.args("-frames:v 1 -f rawvideo -pix_fmt gray -".split(' ')).output().unwrap();
    let clock = picture_clock::read(&picture.stdout, width, width, height);
    (mark, clock.unwrap_or_else(|| panic!("no clock in {} bytes", picture.stdout.len())))
}

#[test]
fn nginx_takes_what_is_published_by_rtmp_and_viewers_know_how_old_it_is() {
    let Some(server) = IngestServer::nginx_rtmp().unwrap() else { return };
    let publisher = publisher(&format!("{}/k", server.url()), "18s", "{ video = \"360p\" }");
    server.wait_for("k.m3u8", 5).unwrap();
    let nginx = Nginx::serving(&server.folder()).unwrap();
    let ran = view(&url("http", nginx.plain_address(), "k.m3u8"), 5, 8, "", &[]).expect_code(0);
    let published = publisher.wait().expect_code(0);
    let summary = published.summary();
    assert_eq!(figure(&summary, "media_paths.rtmp"), 1.0, "{published}");
    let rate = figure(&summary, "sent.bps") / 1e6;
    assert!((0.9..1.4).contains(&rate), "{rate} Mbit/s\n{published}");
    assert!(published.stdout.contains("by RTMP"), "{published}");

    let summary = ran.summary();
    assert_eq!(figure(&summary, "playback.stalls"), 0.0, "{ran}");
    let fps = figure(&summary, "video.fps_p50");
    assert!((29.0..31.0).contains(&fps), "{fps} fps\n{ran}");
    // The playlist ends when its last segment was complete: the age of what it ends with is all
    // that is added.
    let (behind_edge_ms, since_capture_ms) = latencies(&ran);
    let added_ms = since_capture_ms - behind_edge_ms;
    assert!((-100.0..1_300.0).contains(&added_ms), "{behind_edge_ms} {since_capture_ms}\n{ran}");
}

/// 25 s: the publisher sends for 24 s, in which four segments are made and a run takes 8 s.
#[test]
fn a_clock_in_the_picture_and_the_mark_in_the_stream_say_the_same_behind_ffmpeg_and_srt() {
    let Some(server) = IngestServer::ffmpeg_srt().unwrap() else { return };
    let publisher = publisher(server.url(), "24s", "{ video = \"360p\", burn_clock = true }");
    server.wait_for("live.m3u8", 4).unwrap();
    let nginx = Nginx::serving(&server.folder()).unwrap();
    let ran = view(&url("http", nginx.plain_address(), "live.m3u8"), 3, 8, "", &[]).expect_code(0);
    let published = publisher.wait().expect_code(0);
    assert_eq!(figure(&published.summary(), "media_paths.process"), 1.0, "{published}");
    for number in 1..4 {
        let (mark, clock_ms) =
            first_picture(&server.folder().join(format!("live{number}.ts")), (640, 360));
        let captured_ms = mark.captured_unix_ns / 1_000_000 % 86_400_000;
        assert!(captured_ms.abs_diff(clock_ms) <= 35, "mark {captured_ms}, clock {clock_ms}");
    }
    // The dates of ffmpeg's playlist begin when its muxer did, up to a second off the capture.
    let (by_dates_ms, since_capture_ms) = latencies(&ran);
    assert!((since_capture_ms - by_dates_ms).abs() < 2_000.0, "{ran}");
}

#[test]
fn publishers_that_are_refused_or_find_nobody_fail_and_say_why() {
    let Some(server) = IngestServer::nginx_rtmp().unwrap() else { return };
    let nobody = IngestServer::nobody().unwrap();
    for (url, media, reason, words) in [
        (format!("{}/refused", server.url()), "{}", "signalling_closed", "closed by the server"),
        (format!("publish+rtmp://{nobody}/live/k"), "{}", "tcp", "refused"),
        (
            format!("publish+rtmp://{nobody}/live/k"),
            "{ video = \"360p\", burn_clock = true }",
            "tcp",
            "Connection refused",
        ),
    ] {
        let media = format!("crowd.publish={media}");
        let ran = run(None, &["view", &url, "-n", "1", "--for", "3s", "--set", &media]);
        let summary = ran.summary();
        assert_eq!(figure(&summary, &format!("failures.{reason}")), 1.0, "{url}\n{ran}");
        assert!(ran.stdout.contains(words), "{url}\n{ran}");
        assert!(summary["sent"].is_null(), "nothing was sent\n{ran}");
    }
    // Servers that do not know the protocol.
    let nginx = Nginx::before("http://127.0.0.1:9").unwrap();
    let ran = run(
        None,
        &[
            "view",
            &format!("publish+rtmp://{}/live/k", nginx.plain_address()),
            "-n",
            "1",
            "--for",
            "3s",
        ],
    );
    assert_eq!(figure(&ran.summary(), "participants.failed"), 1.0, "{ran}");
}

/// A server that says nothing keeps FFmpeg in its handshake, where it sees no end of its input.
#[test]
fn ffmpeg_ends_with_a_run_that_is_killed_whatever_its_server_does() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let media = "{ video = \"144p\", burn_clock = true }";
    let publisher = publisher(&format!("publish+rtmp://{address}/live/k"), "60s", media);
    let _connected = silent.accept().unwrap();
    let ours = || {
        let all = processes(&format!("rtmp://{address}")).into_iter();
        all.map(|(_, command)| command).filter(|c| c.starts_with("ffmpeg ")).collect::<Vec<_>>()
    };
    assert_eq!(ours().len(), 1, "{:?}", ours());
    publisher.signal("KILL");
    drop(publisher.wait());
    let until = Instant::now() + Duration::from_secs(10);
    while !ours().is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(ours().is_empty(), "{:?}", ours());
}
