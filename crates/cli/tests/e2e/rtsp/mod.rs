//! RTSP viewers on real servers: gst-rtsp-server and VLC, over UDP, TCP and TLS.

use std::net::Ipv4Addr;
use std::process::Command;

use serde_json::Value;
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;
use throng_sim::rtsp::{FPS, GstRtspServer, Login, LoginMethod, MediaFile, Options, SECONDS, Vlc};
use throng_store::RunFolder;

use crate::throng::{Ran, Running, figure, run, valid};

mod crowds;
mod driver;
mod dying;
mod publishers;
mod recordings;

const USERS: u32 = 5;

fn view(url: &str, users: u32, transport: &str, seconds: u32, more: &[&str]) -> Ran {
    let (users, seconds) = (users.to_string(), format!("{seconds}s"));
    let transport = format!("target.rtsp_transport={transport}");
    let arguments =
        ["view", url, "-n", &users, "--every", "20ms", "--for", &seconds, "--set", &transport];
    run(None, &[&arguments[..], more].concat())
}

/// All played, at the source's frame rate, without loss.
#[track_caller]
fn assert_plays(ran: &Ran, what: &str) -> Value {
    assert_all_play(ran, USERS, what)
}

#[track_caller]
fn assert_all_play(ran: &Ran, users: u32, what: &str) -> Value {
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.playing"), f64::from(users), "{what}\n{ran}");
    let fps = figure(&summary, "video.fps_p50");
    let source = figure(&summary, "video.source_fps");
    assert!(
        (source * 0.95..source * 1.05).contains(&fps) && source > 24.0,
        "{what}: {fps} fps\n{ran}"
    );
    assert_eq!(figure(&summary, "video.loss_ratio"), 0.0, "{what}\n{ran}");
    summary
}

/// Runs each at the same time.
fn at_once<T: Send>(all: impl IntoIterator<Item = T>, run: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        let threads: Vec<_> = all.into_iter().map(|one| scope.spawn(|| run(one))).collect();
        for thread in threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

/// Frames of a file's video, by ffprobe.
fn frames_of(file: MediaFile) -> u64 {
    let arguments = ["-v", "error", "-count_packets", "-select_streams", "v:0", "-show_entries"];
    let mut command = Command::new("ffprobe");
    command
        .args(arguments)
        .args(["stream=nb_read_packets", "-of", "csv=p=0"])
        .arg(file.path().unwrap());
    let printed = String::from_utf8(command.output().unwrap().stdout).unwrap();
    // A transport stream's are printed twice: of the program, and of the file.
    printed.lines().next().unwrap().trim_end_matches(',').parse().unwrap()
}

/// Over 20 s: four groups of runs of 4 s and one of 3 s, one after the other.
#[test]
fn every_codec_of_a_real_server_plays_over_udp_and_tcp() {
    if !GstRtspServer::is_installed() {
        return;
    }
    let server = GstRtspServer::start(&Options::default()).unwrap();
    // Most of a run is waiting; all at once would limit the generator.
    for mounts in [&["/h264", "/h264-b"][..], &["/mpeg2", "/ts"], &["/h265", "/mpeg4"], &["/mjpeg"]]
    {
        let runs =
            mounts.iter().flat_map(|mount| ["udp", "tcp"].map(|transport| (*mount, transport)));
        at_once(runs, |(mount, transport)| {
            let what = format!("{mount} {transport}");
            let ran = view(&server.url(mount), USERS, transport, 4, &[]).expect_code(0);
            let summary = assert_plays(&ran, &what);
            let delay_ms = figure(&summary, "video.delay_ms_p50");
            // A transport stream has a constant bit rate, so that large pictures take longer.
            assert!(
                mount == "/ts" || delay_ms < 20.0,
                "{what}: the order of B-frames is no delay: {delay_ms} ms\n{ran}"
            );
            let path =
                if transport == "udp" { "media_paths.rtp_udp" } else { "media_paths.rtp_tcp" };
            assert_eq!(figure(&summary, path), f64::from(USERS), "{what}\n{ran}");
        });
    }
    at_once(["/pcma", "/mp3"], |mount| {
        let ran = view(&server.url(mount), USERS, "auto", 3, &[]).expect_code(0);
        assert_eq!(
            figure(&ran.summary(), "participants.playing"),
            f64::from(USERS),
            "{mount}\n{ran}"
        );
        assert_eq!(figure(&ran.summary(), "audio.loss_ratio"), 0.0, "{mount}\n{ran}");
    });
}

/// One viewer at a time. When several join its shared pipeline, gst-rtsp-server leaves packets out
/// (they are not on the wire), and in about one of a hundred starts it answers nobody any more.
/// Crowds on a shared live stream are on `MediaMTX` and go2rtc.
#[test]
fn a_live_stream_of_a_real_server_plays_over_udp_and_tcp() {
    if !GstRtspServer::is_installed() {
        return;
    }
    at_once(["udp", "tcp"], |transport| {
        let server = GstRtspServer::start(&Options::default()).unwrap();
        let ran = view(&server.url("/live"), 1, transport, 4, &[]).expect_code(0);
        assert_all_play(&ran, 1, transport);
    });
}

/// Each viewer stays less than the recording: its frames are those of the file up to then, to the
/// frame.
#[test]
fn the_frames_of_a_recording_are_counted_to_the_frame_and_it_is_played_again() {
    if !GstRtspServer::is_installed() {
        return;
    }
    let server = GstRtspServer::start(&Options::default()).unwrap();
    assert_eq!(frames_of(MediaFile::H264), u64::from(FPS * SECONDS));
    let runs = [("/h264", "tcp"), ("/h264", "udp"), ("/mpeg2", "udp"), ("/h264-b", "tcp")];
    at_once(runs, |(mount, transport)| {
        // Long enough for the end and a second playback, without the third.
        let ran = view(&server.url(mount), 1, transport, 2 * SECONDS - 2, &[]).expect_code(0);
        let rows = RunFolder::read(ran.folder()).unwrap();
        let track = rows
            .tracks
            .iter()
            .find(|track| track.kind == throng_observation::MediaKind::Video)
            .unwrap();
        let counters = track.counters;
        let whole = u64::from(FPS * SECONDS);
        let (complete, lost) = (counters.frames_complete, counters.packets_lost);
        let what = format!("{mount} {transport}: {complete} frames, {lost} packets lost\n{ran}");
        assert!(complete > whole + 3 * u64::from(FPS) && complete < 2 * whole, "{what}");
        assert_eq!((counters.frames_dropped, lost), (0, 0), "{what}");
        assert_eq!(figure(&ran.summary(), "participants.failed"), 0.0, "{what}");
    });
}

#[test]
fn passwords_and_certificates_of_a_real_server_are_answered() {
    if !GstRtspServer::is_installed() {
        return;
    }
    for method in [LoginMethod::Basic, LoginMethod::Digest] {
        let login = Login { method, user: "ann".into(), password: "p:w&+".into() };
        let options = Options { login: Some(login), ..Options::default() };
        let server = GstRtspServer::start(&options).unwrap();
        let url = server.url("/h264").replace("rtsp://", "rtsp://ann:p%3Aw%26+@");
        let ran = view(&url, USERS, "auto", 3, &[]).expect_code(0);
        assert_plays(&ran, &format!("{method:?}"));
        let shown =
            format!("{ran}") + &std::fs::read_to_string(ran.folder().join("summary.json")).unwrap();
        assert!(!shown.contains("w%26") && !shown.contains("p:w"), "the password is shown\n{ran}");
        let refused = view(&url.replace("26+", "26-"), 1, "auto", 3, &[]);
        assert_eq!(figure(&refused.summary(), "failures.unauthorized"), 1.0, "{refused}");
        let without = view(&server.url("/h264"), 1, "auto", 3, &[]);
        assert!(
            format!("{without}").contains("USER:PASSWORD and an @ before the host"),
            "{without}"
        );
    }
    let server = GstRtspServer::start(&Options { tls: true, ..Options::default() }).unwrap();
    let certificate = server.certificate();
    let trusted = ["--tls-ca", certificate.to_str().unwrap()];
    let ran = view(&server.url("/h264"), USERS, "tcp", 3, &trusted).expect_code(0);
    assert_eq!(
        figure(&assert_plays(&ran, "TLS"), "media_paths.rtp_tls"),
        f64::from(USERS),
        "{ran}"
    );
    let untrusted = view(&server.url("/h264"), 1, "tcp", 3, &[]);
    assert_eq!(figure(&untrusted.summary(), "failures.tls"), 1.0, "{untrusted}");
}

/// 25 s: a run of 14 s, which outlasts the session's time-out, and three of up to 3 s.
#[test]
fn a_real_server_without_udp_is_played_over_tcp_and_sessions_outlive_their_timeout() {
    if !GstRtspServer::is_installed() {
        return;
    }
    let server = GstRtspServer::start(&Options { udp: false, ..Options::default() }).unwrap();
    let ran = view(&server.url("/h264"), USERS, "auto", 3, &[]).expect_code(0);
    let summary = assert_plays(&ran, "461");
    assert_eq!(figure(&summary, "media_paths.rtp_tcp"), f64::from(USERS), "{ran}");
    let events = RunFolder::read(ran.folder()).unwrap().events;
    assert!(
        events.iter().any(|event| event.detail.contains("refuses RTP over UDP (461)")),
        "{events:?}"
    );
    let demanded = view(&server.url("/h264"), 1, "udp", 3, &[]);
    assert_eq!(figure(&demanded.summary(), "failures.rtsp_461"), 1.0, "{demanded}");
    // The server ends a session up to 6 s after its timeout, over UDP without a keepalive.
    let server =
        GstRtspServer::start(&Options { session_timeout_s: 4, ..Options::default() }).unwrap();
    let ran = view(&server.url("/live"), 2, "udp", 14, &[]).expect_code(0);
    assert_eq!(figure(&ran.summary(), "participants.failed"), 0.0, "{ran}");
    let missing = view(&server.url("/nowhere"), 1, "auto", 3, &[]);
    assert_eq!(figure(&missing.summary(), "failures.rtsp_404"), 1.0, "{missing}");
}

#[test]
fn vlc_plays_to_viewers_over_udp_and_refuses_tcp() {
    if !Vlc::is_installed() {
        return;
    }
    let vlc = Vlc::start(MediaFile::Mpeg2).unwrap();
    let ran = view(&vlc.url(), USERS, "udp", 5, &[]).expect_code(0);
    assert_plays(&ran, "VLC");
    let refused = view(&vlc.url(), 1, "tcp", 3, &[]);
    assert_eq!(figure(&refused.summary(), "failures.rtsp_461"), 1.0, "{refused}");
}

/// Packets that the firewall of the viewers' namespace drops are those that the meters miss.
#[test]
fn induced_loss_over_udp_is_measured_within_half_a_point() {
    if !requires_root() || !GstRtspServer::is_installed() {
        return;
    }
    let (here, there) = (Ipv4Addr::new(10, 88, 0, 1), Ipv4Addr::new(10, 88, 0, 2));
    let (viewers, host) = Namespace::pair("rtsp", here, there).unwrap();
    let server = GstRtspServer::start_in(&host, there, &Options::default()).unwrap();
    viewers.lose(40, None).unwrap();
    let (users, transport) = (USERS.to_string(), "target.rtsp_transport=udp");
    let url = server.url("/h264");
    let view = ["view", &url, "-n", &users, "--every", "20ms", "--for", "8s", "--set", transport];
    let allowed = ["--allow-target", "10.88.0.0/24"];
    // What a run that is repeated had dropped is not of this one.
    let (ran, dropped) = valid(|| {
        let before = viewers.lost().unwrap();
        let ran = Running::start(Some(&viewers), &[&view[..], &allowed].concat()).wait();
        (ran, (viewers.lost().unwrap() - before) as f64)
    });
    let tracks = RunFolder::read(ran.folder()).unwrap().tracks;
    let counters = || tracks.iter().map(|track| &track.counters);
    let received = counters().map(|track| track.packets_original).sum::<u64>() as f64;
    let lost = counters().map(|track| track.packets_lost).sum::<i64>() as f64;
    assert!(dropped > 100.0, "too few packets to compare: {dropped}\n{ran}");
    let (induced, measured) = (dropped / (received + dropped), lost / (received + lost));
    let what = format!("{received} received, {dropped} dropped, {lost} measured as lost\n{ran}");
    assert!((measured - induced).abs() < 0.005 && measured > 0.03, "{what}");
    assert!(figure(&ran.summary(), "video.loss_ratio") > 0.03, "{what}");
}
