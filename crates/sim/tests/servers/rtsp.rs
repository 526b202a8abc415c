//! The RTSP servers, each played by ffprobe and published to by ffmpeg: programs that share no code
//! with either.

use std::net::Ipv4Addr;
use std::process::Command;
use std::time::{Duration, Instant};

use throng_sim::namespace::Namespace;
use throng_sim::requires_root;
use throng_sim::rtsp::{GstRtspServer, Login, LoginMethod, MediaFile, Options, Recording, Vlc};

/// The streams at `url` and their packets in about a second: `h264 25`, in order of names; or the
/// errors of ffprobe.
fn probed(mut ffprobe: Command, transport: &str, url: &str) -> Result<Vec<(String, u32)>, String> {
    ffprobe.args([
        "-v",
        "error",
        "-rtsp_transport",
        transport,
        "-read_intervals",
        "%+1",
        "-count_packets",
    ]);
    // `-show_streams` would list the streams of a transport stream twice, under its program too.
    ffprobe.args(["-show_entries", "stream=codec_name,nb_read_packets", "-of", "csv=p=0", url]);
    let output = ffprobe.output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut streams: Vec<(String, u32)> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.trim_end_matches(',').split_once(','))
        // `N/A` is a stream of which nothing was read.
        .map(|(codec, packets)| (codec.to_owned(), packets.parse().unwrap_or(0)))
        .collect();
    streams.sort();
    streams.dedup();
    Ok(streams)
}

fn codecs(transport: &str, url: &str) -> Result<String, String> {
    let streams = probed(Command::new("ffprobe"), transport, url)?;
    // A player may align streams that start at different times, and then has less of one.
    assert!(streams.iter().all(|(_, packets)| *packets >= 5), "{url} by {transport}: {streams:?}");
    let names: Vec<&str> = streams.iter().map(|(codec, _)| codec.as_str()).collect();
    Ok(names.join(" "))
}

#[test]
fn every_mount_of_gst_rtsp_server_plays_by_udp_and_tcp() {
    if !GstRtspServer::is_installed() {
        return;
    }
    let server = GstRtspServer::start(&Options::default()).unwrap();
    let mounts = [
        ("/h264", "aac h264"),
        ("/h264-b", "aac h264"),
        ("/mpeg2", "mp2 mpeg2video"),
        ("/ts", "mp2 mpeg2video"),
        ("/live", "h264 opus"),
        ("/h265", "hevc"),
        ("/mpeg4", "mpeg4"),
        ("/mjpeg", "mjpeg"),
        ("/pcma", "pcm_alaw"),
        ("/mp3", "mp3"),
    ];
    std::thread::scope(|scope| {
        for (mount, expected) in mounts {
            let url = server.url(mount);
            scope.spawn(move || {
                // In turn: the server can stand still when two join a shared pipeline at once.
                for transport in ["udp", "tcp"] {
                    assert_eq!(codecs(transport, &url).as_deref(), Ok(expected), "{url}");
                }
            });
        }
    });
}

#[test]
fn logins_and_tls_of_gst_rtsp_server_are_demanded() {
    if !GstRtspServer::is_installed() {
        return;
    }
    for (method, tls) in
        [(LoginMethod::Basic, false), (LoginMethod::Digest, false), (LoginMethod::Digest, true)]
    {
        let login = Login { method, user: "viewer".into(), password: "sesame".into() };
        let options = Options { login: Some(login), tls, ..Options::default() };
        let server = GstRtspServer::start(&options).unwrap();
        assert_eq!(server.certificate().exists(), tls);
        assert_eq!(
            codecs("tcp", &server.url_with_login("/mpeg4")).as_deref(),
            Ok("mpeg4"),
            "{options:?}"
        );
        let refused = codecs("tcp", &server.url("/mpeg4")).unwrap_err();
        assert!(refused.contains("401"), "{options:?}: {refused}");
    }
    let server = GstRtspServer::start(&Options { tls: true, ..Options::default() }).unwrap();
    assert_eq!(codecs("tcp", &server.url("/mpeg4")).as_deref(), Ok("mpeg4"));
}

#[test]
fn gst_rtsp_server_allows_only_the_transports_of_its_options() {
    if !GstRtspServer::is_installed() {
        return;
    }
    for (allowed, refused) in [("udp", "tcp"), ("tcp", "udp")] {
        let options =
            Options { udp: allowed == "udp", tcp: allowed == "tcp", ..Options::default() };
        let server = GstRtspServer::start(&options).unwrap();
        assert_eq!(codecs(allowed, &server.url("/mpeg4")).as_deref(), Ok("mpeg4"));
        assert!(codecs(refused, &server.url("/mpeg4")).unwrap_err().contains("461"));
    }
}

#[test]
fn gst_rtsp_server_listens_in_a_namespace() {
    if !requires_root() || !GstRtspServer::is_installed() {
        return;
    }
    let address = Ipv4Addr::new(10, 91, 0, 1);
    let namespace = Namespace::with_veth("rtsp", address).unwrap();
    let server = GstRtspServer::start_in(&namespace, address, &Options::default()).unwrap();
    assert_eq!(server.url("/mpeg4"), "rtsp://10.91.0.1:554/mpeg4");
    let streams = probed(namespace.command("ffprobe"), "udp", &server.url("/mpeg4")).unwrap();
    assert_eq!(streams.len(), 1, "{streams:?}");
}

#[test]
fn what_clients_record_on_gst_rtsp_server_is_counted() {
    if !GstRtspServer::is_installed() {
        return;
    }
    let server = GstRtspServer::start(&Options::default()).unwrap();
    let file = MediaFile::H264.path().unwrap();
    for (mount, transport, audio) in [
        ("/record", "udp", "-an"),
        ("/record-aac", "tcp", "-c:a copy"),
        ("/record-opus", "udp", "-c:a libopus"),
    ] {
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-v", "error", "-nostdin", "-re", "-t", "1", "-i"]).arg(&file);
        ffmpeg.args(["-c:v", "copy"]).args(audio.split(' ')).args(["-rtsp_transport", transport]);
        ffmpeg.args(["-f", "rtsp", &server.url(mount)]);
        assert!(ffmpeg.status().unwrap().success(), "{mount}: {}", server.log());
    }
    let recordings = once_counted(&server, &[1, 2, 2]);
    for video in recordings.iter().map(|recording| &recording.streams[0]) {
        assert!(video.packets > video.frames && video.file.exists(), "{recordings:?}");
    }
}

/// The recordings of `server`, once each has its `streams` and the pictures of a second: the server
/// writes its counters after the publisher's last packets, without those that its jitter buffer
/// held at TEARDOWN.
fn once_counted(server: &GstRtspServer, streams: &[usize]) -> Vec<Recording> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let recordings = server.recordings().unwrap();
        let counted: Vec<usize> =
            recordings.iter().map(|recording| recording.streams.len()).collect();
        if counted == streams
            && recordings.iter().all(|recording| (20..=25).contains(&recording.streams[0].frames))
        {
            return recordings;
        }
        assert!(Instant::now() < deadline, "{recordings:?}\n{}", server.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn vlc_plays_by_udp_and_refuses_tcp() {
    if !Vlc::is_installed() {
        return;
    }
    let server = Vlc::start(MediaFile::Mpeg2).unwrap();
    let streams = codecs("udp", &server.url());
    assert!(streams.as_ref().is_ok_and(|codecs| codecs.contains("mpeg2video")), "{streams:?}");
    assert!(codecs("tcp", &server.url()).unwrap_err().contains("461"));
}

#[test]
fn media_files_have_their_frames_and_b_frames_only_where_asked_for() {
    if !GstRtspServer::is_installed() {
        return;
    }
    for (file, reorders) in [(MediaFile::H264, "0"), (MediaFile::H264BFrames, "2")] {
        let mut ffprobe = Command::new("ffprobe");
        ffprobe.args(["-v", "error", "-select_streams", "v", "-of", "csv=p=0", "-show_entries"]);
        ffprobe.arg("stream=has_b_frames,nb_frames").arg(file.path().unwrap());
        let said = ffprobe.output().unwrap().stdout;
        assert_eq!(String::from_utf8_lossy(&said).trim(), format!("{reorders},250"), "{file:?}");
    }
}
