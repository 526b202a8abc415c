//! Recordings on a real gst-rtsp-server, played to their end, paused and sought in: to the frame.

use std::process::Command;
use std::time::Duration;

use throng_observation::{MediaKind, Outcome};
use throng_protocol::rtsp::{Config, Viewer};
use throng_scenario::{
    AtEnd, PlaybackAction, PlaybackPosition, PlaybackScript, PlaybackStep, RtspTransport,
};
use throng_sim::rtsp::{FPS, GstRtspServer, MediaFile, Options, SECONDS};

use super::driver::{Watched, drive, options};
use super::{at_once, frames_of};

const S: Duration = Duration::from_secs(1);

/// Plays `mount` by `steps` to the end of the recording.
fn played(
    server: &GstRtspServer,
    mount: &str,
    transport: RtspTransport,
    steps: Vec<PlaybackStep>,
) -> Watched {
    let url = server.url(mount).parse().unwrap();
    let script = PlaybackScript { steps, at_end: AtEnd::Leave, ..PlaybackScript::default() };
    let viewer =
        Viewer::with_playback(Config { url, credentials: None, transport }, script, options());
    drive(viewer, 4 * S * SECONDS)
}

/// Bytes of a file's packets, by ffprobe.
fn bytes_of(file: MediaFile, stream: &str) -> u64 {
    let arguments = [
        "-v",
        "error",
        "-select_streams",
        stream,
        "-show_entries",
        "packet=size",
        "-of",
        "csv=p=0",
    ];
    let printed =
        Command::new("ffprobe").args(arguments).arg(file.path().unwrap()).output().unwrap().stdout;
    let sizes = String::from_utf8(printed).unwrap();
    sizes.lines().filter_map(|line| line.trim_end_matches(',').parse::<u64>().ok()).sum()
}

#[test]
fn the_frames_of_a_recording_are_those_of_its_file_and_its_bit_rate_too() {
    if !GstRtspServer::is_installed() {
        return;
    }
    let server = GstRtspServer::start(&Options::default()).unwrap();
    let files = [
        ("/h264", MediaFile::H264),
        ("/h264-b", MediaFile::H264BFrames),
        ("/mpeg2", MediaFile::Mpeg2),
        ("/ts", MediaFile::Mpeg2),
    ];
    let runs = files
        .into_iter()
        .flat_map(|file| [RtspTransport::Udp, RtspTransport::Tcp].map(|by| (file, by)));
    at_once(runs, |((mount, file), transport)| {
        let watched = played(&server, mount, transport, Vec::new());
        let video = watched.counters(MediaKind::Video);
        let what = format!("{mount} {transport:?}: {video:?} {:?}", watched.anomalies());
        assert_eq!(watched.outcome, Outcome::Completed, "{what}");
        assert_eq!(
            (video.frames_complete, video.frames_decodable),
            (frames_of(file), frames_of(file)),
            "{what}"
        );
        assert_eq!((video.packets_lost, video.frames_dropped), (0, 0), "{what}");
        // A transport stream has its sound, tables and stuffing in the same packets.
        if mount != "/ts" {
            let ratio = |bytes: u64, stream| bytes as f64 / bytes_of(file, stream) as f64;
            let sound = watched.counters(MediaKind::Audio);
            let ratios = [ratio(video.payload_bytes, "v:0"), ratio(sound.payload_bytes, "a:0")];
            assert!(ratios.iter().all(|ratio| (0.98..1.02).contains(ratio)), "{ratios:?} {what}");
        }
    });
}

#[test]
fn a_pause_and_a_seek_on_a_real_server_leave_out_what_they_should_and_nothing_else() {
    if !GstRtspServer::is_installed() {
        return;
    }
    let server = GstRtspServer::start(&Options::default()).unwrap();
    at_once([RtspTransport::Udp, RtspTransport::Tcp], |transport| {
        // One second, a pause of two, the second that follows, then from the seventh second to the
        // end.
        let steps = vec![
            PlaybackStep { at: S, action: PlaybackAction::Pause(2 * S) },
            PlaybackStep { at: 4 * S, action: PlaybackAction::Seek(PlaybackPosition::At(7 * S)) },
        ];
        let watched = played(&server, "/h264", transport, steps);
        let video = watched.counters(MediaKind::Video);
        let what = format!("{transport:?}: {video:?} {:?}", watched.anomalies());
        assert_eq!(watched.outcome, Outcome::Completed, "{what}");
        assert!(watched.anomalies().is_empty(), "{what}");
        // gst-rtsp-server leaves packets of the picture out at which it pauses: until the next key
        // frame, a second later at most, no picture can be decoded. The pause itself is no freeze.
        assert!(Duration::from_micros(video.freeze_us) < 2 * S, "{what}");
        // Two seconds before the seek. After it three, and what the server sends from the key frame
        // before the new position on, which may be that of the second before.
        let (second, frames) = (u64::from(FPS), video.frames_complete);
        assert!((5 * second - 5..=6 * second + 5).contains(&frames), "{what}");
        assert!(video.frames_dropped <= 3 && video.packets_lost == 0, "{what}");
        // Paused time and the end do not count as playback: five seconds of the file without what
        // its last frame lasts, and what requests take.
        let intervals: Vec<_> = watched.intervals(MediaKind::Video).collect();
        let ended_at = |at: usize| intervals[at].ended_at;
        let active = Duration::from_micros(video.active_us);
        assert!((5 * S - S / 10..7 * S).contains(&active), "{active:?} {what}");
        // No interval lies in the pause.
        let longest = (1..intervals.len()).map(|at| ended_at(at) - ended_at(at - 1)).max().unwrap();
        assert!(longest > S + S / 2, "{longest:?} {what}");
    });
}

#[test]
fn a_real_server_plays_at_twice_the_speed() {
    if !GstRtspServer::is_installed() {
        return;
    }
    let server = GstRtspServer::start(&Options::default()).unwrap();
    let steps = vec![PlaybackStep { at: S, action: PlaybackAction::Scale(2.0) }];
    let watched = played(&server, "/h265", RtspTransport::Tcp, steps);
    let video = watched.counters(MediaKind::Video);
    let what = format!("{video:?} {:?}", watched.anomalies());
    assert_eq!(watched.outcome, Outcome::Completed, "{what}");
    assert!(watched.anomalies().is_empty(), "{what}");
    let fps: Vec<f32> =
        watched.intervals(MediaKind::Video).filter_map(|interval| interval.source_fps).collect();
    let doubled = 2.0 * FPS as f32;
    assert!(fps.iter().any(|fps| (doubled - 2.0..doubled + 2.0).contains(fps)), "{fps:?} {what}");
    // Ten seconds of media in about six.
    let active = Duration::from_micros(video.active_us);
    assert!((5 * S..8 * S).contains(&active), "{active:?} {what}");
}
