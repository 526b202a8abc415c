//! RTSP viewers on real servers: gst-rtsp-server and VLC, over UDP, TCP and TLS.

use std::process::Command;

use throng_sim::rtsp::{GstRtspServer, Login, LoginMethod, Options, Vlc};
use throng_sim::rtsp::MediaFile;
use throng_store::RunFolder;

use crate::throng::{Ran, figure, run};

fn view(url: &str, users: u32, transport: &str, seconds: u32, more: &[&str]) -> Ran {
    let (users, seconds) = (users.to_string(), format!("{seconds}s"));
    let transport = format!("target.rtsp_transport={transport}");
    let arguments =
        ["view", url, "-n", &users, "--every", "20ms", "--for", &seconds, "--set", &transport];
    run(None, &[&arguments[..], more].concat())
}

/// Frames per second of a file's first stream of that kind, and its frames in all, by ffprobe.
fn frames_of(file: MediaFile) -> u64 {
    let path = file.path().unwrap();
    let arguments = ["-v", "error", "-count_packets", "-select_streams", "v:0", "-show_entries"];
    let printed = Command::new("ffprobe")
        .args(arguments)
        .args(["stream=nb_read_packets", "-of", "csv=p=0"])
        .arg(path)
        .output()
        .unwrap();
    let text = String::from_utf8(printed.stdout).unwrap();
    text.trim().trim_end_matches(',').lines().next().unwrap().parse().unwrap()
}

#[test]
fn viewers_of_a_real_server_play_every_codec_over_udp_and_tcp() {
    if !GstRtspServer::is_installed() {
        return;
    }
    let server = GstRtspServer::start(&Options::default()).unwrap();
    for (mount, fps) in
        [("/h264", 30.0), ("/h264-b", 30.0), ("/mpeg2", 30.0), ("/h265", 30.0), ("/mpeg4", 30.0), ("/mjpeg", 30.0)]
    {
        for transport in ["udp", "tcp"] {
            let ran = view(&server.url(mount), 5, transport, 5, &[]).expect_code(0);
            let summary = ran.summary();
            assert_eq!(figure(&summary, "participants.playing"), 5.0, "{mount} {transport}\n{ran}");
            let shown = figure(&summary, "video.fps_mean");
            assert!((fps - 1.0..=fps + 1.0).contains(&shown), "{mount} {transport}: {shown} fps\n{ran}");
            assert_eq!(figure(&summary, "video.loss_ratio"), 0.0, "{mount} {transport}\n{ran}");
            let delay = figure(&summary, "video.delay_ms_p50");
            assert!(delay < 20.0, "B-frames are no delay: {mount} {transport}: {delay} ms\n{ran}");
        }
    }
}
