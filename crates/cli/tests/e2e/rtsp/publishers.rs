//! Publishers on a real gst-rtsp-server: what it receives is what was sent, to the frame.

use std::time::{Duration, Instant};

use throng_media::card::{Rung, picture};
use throng_observation::{Codec, MediaKind, Observation, Outcome, SentCounters, SentInterval};
use throng_protocol::PublishedMedia;
use throng_protocol::rtsp::{Config, Publisher};
use throng_scenario::RtspTransport;
use throng_sim::rtsp::{GstRtspServer, Login, LoginMethod, Options, Recording};
use throng_store::RunFolder;

use super::at_once;
use super::driver::{drive_lossy, options};
use crate::throng::{Ran, figure, run};

const PUBLISHERS: u32 = 3;
const H264: &str = "{ video = \"360p\", codec = \"h264\" }";

fn publish(url: &str, users: u32, transport: &str, media: &str, more: &[&str]) -> Ran {
    let (users, url) = (users.to_string(), format!("publish+{url}"));
    let transport = format!("target.rtsp_transport={transport}");
    let media = format!("crowd.publish={media}");
    let arguments = ["view", &url, "-n", &users, "--every", "50ms", "--for", "5s"];
    let set = ["--set", &transport, "--set", &media];
    run(None, &[&arguments[..], &set, more].concat())
}

/// What a run sent of a kind.
fn sent(ran: &Ran, kind: MediaKind) -> SentCounters {
    let mut sum = SentCounters::default();
    let rows = RunFolder::read(ran.folder()).unwrap().sent;
    rows.iter().filter(|row| row.kind == kind).for_each(|row| sum += row.counters);
    sum
}

/// The recordings of `server`, once its counters stand still: it writes them ten times a second.
fn recorded(server: &GstRtspServer) -> Vec<Recording> {
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut before = server.recordings().unwrap();
    loop {
        std::thread::sleep(Duration::from_millis(300));
        let recordings = server.recordings().unwrap();
        if recordings == before || Instant::now() > deadline {
            return recordings;
        }
        before = recordings;
    }
}

/// Every frame and packet that was sent has arrived, but for what was in the server's queue at
/// TEARDOWN: it reads a connection in one thread and passes media on in another, which TEARDOWN
/// stops.
#[track_caller]
fn assert_arrived(ran: &Ran, server: &GstRtspServer, publishers: u32, has_sound: bool) {
    let recordings = recorded(server);
    let what = format!("{recordings:?}\n{ran}\n{}", server.log());
    assert_eq!(recordings.len(), publishers as usize, "{what}");
    let of = |at: usize| recordings.iter().map(move |recording| &recording.streams[at]);
    let video = sent(ran, MediaKind::Video);
    let streams = || recordings.iter().flat_map(|recording| &recording.streams);
    assert_eq!(streams().map(|stream| stream.missing_packets).sum::<u64>(), 0, "{what}");
    // A frame of these has up to eight packets.
    let queued = u64::from(publishers);
    let packets = of(0).map(|stream| stream.arrived_packets).sum::<u64>();
    assert!(
        (video.packets_sent - 8 * queued..=video.packets_sent).contains(&packets),
        "{packets} {what}"
    );
    let frames = of(0).map(|stream| stream.arrived_frames).sum::<u64>();
    assert!((video.frames_sent - queued..=video.frames_sent).contains(&frames), "{frames} {what}");
    // The server's jitter buffer holds 0.2 s.
    let held = u64::from(publishers) * 10;
    let decoded = of(0).map(|stream| stream.frames).sum::<u64>();
    assert!(
        video.frames_sent - held <= decoded && decoded <= video.frames_sent,
        "{decoded} {what}"
    );
    if has_sound {
        let sound = sent(ran, MediaKind::Audio);
        let packets = of(1).map(|stream| stream.arrived_packets).sum::<u64>();
        assert!(
            (sound.packets_sent - queued..=sound.packets_sent).contains(&packets),
            "{packets} {what}"
        );
    }
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.connected"), f64::from(publishers), "{what}");
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{what}");
}

#[test]
fn what_publishers_send_arrives_over_udp_tcp_and_tls() {
    if !GstRtspServer::is_installed() {
        return;
    }
    let vp8 = "{ video = \"240p\", audio = false }";
    let udp = [("udp", false, "/record-opus", H264), ("udp", false, "/record-vp8", vp8)];
    let tcp = [("tcp", false, "/record-opus", H264), ("tcp", true, "/record-opus", H264)];
    // The server counts packets in Python: all at once would fill a core.
    for runs in [udp, tcp] {
        at_once(runs, |(transport, tls, mount, media)| arrives(transport, tls, mount, media));
    }
}

fn arrives(transport: &str, tls: bool, mount: &str, media: &str) {
    let server = GstRtspServer::start(&Options { tls, ..Options::default() }).unwrap();
    let certificate = server.certificate();
    let trusted = ["--tls-ca", certificate.to_str().unwrap()];
    let more = if tls { &trusted[..] } else { &[] };
    let ran = publish(&server.url(mount), PUBLISHERS, transport, media, more).expect_code(0);
    assert_arrived(&ran, &server, PUBLISHERS, mount == "/record-opus");
    let path = match (transport, tls) {
        ("udp", _) => "media_paths.rtp_udp",
        (_, true) => "media_paths.rtp_tls",
        _ => "media_paths.rtp_tcp",
    };
    assert_eq!(figure(&ran.summary(), path), f64::from(PUBLISHERS), "{ran}");
}

/// The server's receiver reports are read: what it misses is what was lost.
#[test]
fn the_loss_that_the_server_reports_is_that_of_its_publisher() {
    if !GstRtspServer::is_installed() {
        return;
    }
    let server = GstRtspServer::start(&Options::default()).unwrap();
    let config = Config {
        url: server.url("/record").parse().unwrap(),
        credentials: None,
        transport: RtspTransport::Udp,
    };
    // So few packets that a busy machine loses none of its own.
    let clip = picture(Rung::P144, Codec::H264).unwrap();
    let media = vec![PublishedMedia { clip, offset: Duration::ZERO }];
    // The server reports every five seconds.
    let stay = Duration::from_secs(14);
    let watched = drive_lossy(Publisher::new(config, media, options()), stay, 10);
    let sent: Vec<&SentInterval> = watched
        .observed
        .iter()
        .filter_map(|(_, observation)| match observation {
            Observation::Sent(interval) => Some(&**interval),
            _ => None,
        })
        .collect();
    let what = format!("{:?} {sent:?} {:?}", watched.outcome, watched.anomalies());
    assert_eq!(watched.outcome, Outcome::Completed, "{what}");
    let last = sent.last().unwrap();
    let loss = last.remote_loss_ratio.unwrap_or_else(|| panic!("no receiver report\n{what}"));
    assert!((0.05..0.15).contains(&loss), "{loss} {what}");
    assert!(last.round_trip_s.is_some_and(|s| s < 0.2), "{what}");
}

#[test]
fn publishers_log_in_fall_back_to_tcp_and_are_refused_where_nothing_is_taken() {
    if !GstRtspServer::is_installed() {
        return;
    }
    let login =
        Login { method: LoginMethod::Digest, user: "ann".into(), password: "secret".into() };
    let options = Options { login: Some(login), udp: false, ..Options::default() };
    let server = GstRtspServer::start(&options).unwrap();
    let ran = publish(&server.url_with_login("/record-opus"), 2, "auto", H264, &[]).expect_code(0);
    assert_arrived(&ran, &server, 2, true);
    assert_eq!(figure(&ran.summary(), "media_paths.rtp_tcp"), 2.0, "{ran}");
    let wrong = server.url_with_login("/record-opus").replace("secret", "wrong");
    let refused = publish(&wrong, 1, "auto", H264, &[]);
    assert_eq!(figure(&refused.summary(), "failures.unauthorized"), 1.0, "{refused}");
    let nowhere = publish(&server.url_with_login("/nowhere"), 1, "auto", H264, &[]);
    assert_eq!(figure(&nowhere.summary(), "failures.rtsp_404"), 1.0, "{nowhere}");
    // A mount that plays is none to publish to.
    let plays = publish(&server.url_with_login("/h264"), 1, "auto", H264, &[]);
    assert_eq!(figure(&plays.summary(), "participants.failed"), 1.0, "{plays}");
}
