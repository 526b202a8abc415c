//! Viewers of video files, HLS and DASH recordings on real web servers: nginx, lighttpd and Caddy.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use aws_lc_rs::digest;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use throng_observation::MediaKind;
use throng_observation::run::RunData;
use throng_sim::caddy::Caddy;
use throng_sim::lighttpd::Lighttpd;
use throng_sim::nginx::Nginx;
use throng_store::RunFolder;

use crate::throng::{Ran, figure, run};

/// Length of each file, seconds; 25 frames and 1 Mbit a second.
const SECONDS: u32 = 8;

/// A site of recordings, made once per process by ffmpeg; `None` where it is not installed.
pub(crate) fn site() -> Option<&'static Path> {
    static SITE: OnceLock<Option<TempDir>> = OnceLock::new();
    let made = SITE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let source = format!(
            "-f lavfi -i testsrc2=s=320x180:r=25:d={SECONDS} -f lavfi -i sine=f=440:r=48000:d={SECONDS} -shortest"
        );
        let h264 = "-c:v libx264 -preset ultrafast -g 25 -b:v 900k -minrate 900k -maxrate 900k -bufsize 450k \
                    -x264-params nal-hrd=cbr -c:a aac -b:a 96k";
        for output in [
            format!("{h264} -movflags +faststart first.mp4"),
            format!("{h264} -bf 2 last.mp4"),
            format!("{h264} -movflags frag_keyframe+empty_moov+default_base_moof fragmented.mp4"),
            format!("{h264} h264.ts"),
            "-c:v mpeg2video -g 12 -b:v 900k -c:a mp2 -b:a 96k mpeg2.ts".to_owned(),
            "-c:v libvpx -deadline realtime -cpu-used 8 -g 25 -b:v 900k -c:a libopus vp8.webm".to_owned(),
            format!("{h264} -f hls -hls_time 2 -hls_playlist_type vod hls.m3u8"),
            format!("{h264} -f hls -hls_time 2 -hls_playlist_type vod -hls_segment_type fmp4 hls4.m3u8"),
            format!("{h264} -f dash -seg_duration 2 film.mpd"),
        ] {
            let mut command = Command::new("ffmpeg");
            command.args(["-v", "error"]).args(source.split_whitespace()).args(output.split_whitespace());
            let made = command.current_dir(folder.path()).status().ok()?;
            assert!(made.success(), "{output}");
        }
        Some(folder)
    });
    if made.is_none() {
        throng_sim::skipped("ffmpeg is not installed (scripts/setup.sh test)");
    }
    made.as_ref().map(TempDir::path)
}

pub(crate) fn url(scheme: &str, address: SocketAddr, file: &str) -> String {
    format!("{scheme}://{address}/{file}")
}

pub(crate) fn view(url: &str, users: u32, seconds: u32, player: &str, more: &[&str]) -> Ran {
    let (users, seconds) = (users.to_string(), format!("{seconds}s"));
    let player = format!("crowd.player={{ {player} }}");
    let arguments =
        ["view", url, "-n", &users, "--every", "20ms", "--for", &seconds, "--set", &player];
    run(None, &[&arguments[..], more].concat())
}

/// All played without a stall.
#[track_caller]
fn assert_plays(ran: &Ran, users: u32, path: &str) -> Value {
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{ran}");
    assert_eq!(figure(&summary, "playback.startup.reached"), f64::from(users), "{ran}");
    assert_eq!(figure(&summary, "playback.stalls"), 0.0, "{ran}");
    assert_eq!(figure(&summary, &format!("media_paths.{path}")), f64::from(users), "{ran}");
    summary
}

/// Frames of each kind over the life of the only viewer.
fn frames(run: &RunData, kind: MediaKind) -> u64 {
    run.tracks
        .iter()
        .filter(|track| track.kind == kind)
        .map(|track| track.counters.frames_complete)
        .sum()
}

/// Packets of a stream of a file, by ffprobe: one a frame.
fn packets(file: &Path, stream: &str) -> u64 {
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-count_packets", "-select_streams", stream]);
    command.args(["-show_entries", "stream=nb_read_packets", "-of", "csv=p=0"]).arg(file);
    let printed = String::from_utf8(command.output().unwrap().stdout).unwrap();
    printed.lines().find_map(|line| line.trim().trim_end_matches(',').parse().ok()).unwrap()
}

/// Half a minute: five runs of 5 s, after all recordings of this file were made.
#[test]
fn fifty_viewers_play_from_each_server_over_each_version_of_http() {
    let Some(site) = site() else { return };
    if !Nginx::is_installed() || !Lighttpd::is_installed() || !Caddy::is_installed() {
        return;
    }
    let nginx = Nginx::serving(site).unwrap();
    let lighttpd = Lighttpd::serving(site).unwrap();
    let caddy = Caddy::serving(site).unwrap();
    let (nginx_ca, caddy_ca) = (nginx.certificate(), caddy.certificate());
    for (what, url, version, path, ca) in [
        ("nginx", url("http", nginx.plain_address(), "first.mp4"), "1.1", "http1", None),
        ("nginx", url("https", nginx.address(), "last.mp4"), "2", "http2", Some(&nginx_ca)),
        ("lighttpd", url("http", lighttpd.address(), "h264.ts"), "1.1", "http1", None),
        (
            "caddy",
            url("https", caddy.address(), "first.mp4"),
            "negotiated",
            "http2",
            Some(&caddy_ca),
        ),
        ("caddy", url("https", caddy.address(), "vp8.webm"), "3", "http3", Some(&caddy_ca)),
    ] {
        let ca = ca.map(|ca: &PathBuf| ca.display().to_string());
        let trust: Vec<&str> =
            ca.as_deref().map(|ca| ["--tls-ca", ca]).into_iter().flatten().collect();
        let ran = view(&url, 50, 5, &format!("http = \"{version}\", buffer = \"3s\""), &trust)
            .expect_code(0);
        let summary = assert_plays(&ran, 50, path);
        let fps = figure(&summary, "video.fps_p50");
        assert!((24.0..26.0).contains(&fps), "{what} {version}: {fps} fps\n{ran}");
        // Three seconds ahead of four and a half that were played, of a file of eight.
        let received = figure(&summary, "playback.media_bytes");
        let whole = 50.0
            * std::fs::metadata(site.join(url.rsplit('/').next().unwrap())).unwrap().len() as f64;
        assert!(received < 1.1 * whole, "{what} {version}: {received} bytes of {whole}\n{ran}");
    }
}

#[test]
fn the_frames_of_every_container_are_counted_to_the_frame() {
    let Some(site) = site() else { return };
    if !Nginx::is_installed() {
        return;
    }
    let nginx = Nginx::serving(site).unwrap();
    std::thread::scope(|scope| {
        for (file, whole) in [
            ("first.mp4", "first.mp4"),
            ("last.mp4", "last.mp4"),
            ("fragmented.mp4", "fragmented.mp4"),
            ("h264.ts", "h264.ts"),
            ("mpeg2.ts", "mpeg2.ts"),
            ("vp8.webm", "vp8.webm"),
            ("hls.m3u8", "hls.m3u8"),
            ("hls4.m3u8", "hls4.m3u8"),
            ("film.mpd", "film.mpd"),
        ] {
            let url = url("http", nginx.plain_address(), file);
            scope.spawn(move || {
                let ran = view(&url, 1, SECONDS + 3, "repeat = false, buffer = \"4s\"", &[])
                    .expect_code(0);
                let rows = RunFolder::read(ran.folder()).unwrap();
                let counted = [MediaKind::Video, MediaKind::Audio].map(|kind| frames(&rows, kind));
                let expected = ["v:0", "a:0"].map(|stream| packets(&site.join(whole), stream));
                assert_eq!(counted, expected, "{file}\n{ran}");
                let summary = assert_plays(&ran, 1, "http1");
                assert_eq!(figure(&summary, "playback.requests_failed"), 0.0, "{file}\n{ran}");
            });
        }
    });
}

/// A server that sends four fifths of what is needed: the buffer of the start lasts five times its
/// length, then playback stalls for a fifth of the time. It takes as long as the film and stalls.
#[test]
fn a_server_below_the_bitrate_of_the_file_stalls_its_viewers_and_fails_the_objective() {
    let Some(site) = site() else { return };
    if !Nginx::is_installed() {
        return;
    }
    let bytes_per_s = std::fs::metadata(site.join("h264.ts")).unwrap().len() / u64::from(SECONDS);
    let nginx = Nginx::limiting(site, bytes_per_s * 8 / 10).unwrap();
    let url = url("http", nginx.plain_address(), "h264.ts");
    let objective = ["--objective", "stall_ratio < 1%"];
    let ran = view(&url, 5, 14, "start = \"500ms\", buffer = \"5s\"", &objective).expect_code(1);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "playback.viewers_stalled"), 5.0, "{ran}");
    let delivery = figure(&summary, "playback.delivery_ratio");
    assert!((0.72..0.88).contains(&delivery), "{delivery}\n{ran}");
    let stalled = figure(&summary, "playback.stall_ratio");
    assert!((0.08..0.26).contains(&stalled), "{stalled}\n{ran}");
    let playing = url.replace("h264.ts", "missing.ts");
    let ran = view(&playing, 2, 2, "", &[]);
    assert!(ran.stdout.contains("http_404"), "{ran}");
}

/// A recording of 40 s as PeerTube keeps it: one file of fragmented MP4, whose segments of 2 s are
/// ranges of it, and the list of their hashes (`updateSha256VODSegments` of its `lib/hls.ts`).
fn recording_in_ranges(folder: &Path) -> bool {
    let mut command = Command::new("ffmpeg");
    let arguments = "-v error -f lavfi -i testsrc2=s=160x90:r=10:d=40 -f lavfi -i sine=d=40 \
                     -c:v libx264 -preset ultrafast -g 20 -b:v 300k -c:a aac -b:a 48k -f hls \
                     -hls_time 2 -hls_playlist_type vod -hls_segment_type fmp4 \
                     -hls_flags single_file film.m3u8";
    let made = command.args(arguments.split_whitespace()).current_dir(folder).status();
    if !made.is_ok_and(|status| status.success()) {
        return false;
    }
    let playlist = std::fs::read_to_string(folder.join("film.m3u8")).unwrap();
    let name = playlist.lines().find(|line| !line.starts_with('#')).unwrap();
    let file = std::fs::read(folder.join(name)).unwrap();
    let mut hashes = Map::new();
    for range in playlist.lines().filter_map(|line| line.strip_prefix("#EXT-X-BYTERANGE:")) {
        let (count, first) = range.split_once('@').unwrap();
        let [count, first]: [usize; 2] = [count, first].map(|number| number.parse().unwrap());
        let hash = digest::digest(&digest::SHA256, &file[first..first + count]);
        let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        hashes.insert(format!("{first}-{}", first + count - 1), hash.into());
    }
    assert!((20..=21).contains(&hashes.len()), "{playlist}");
    std::fs::write(folder.join("segments-sha256.json"), json!({ name: hashes }).to_string())
        .unwrap();
    let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=400000,RESOLUTION=160x90\nfilm.m3u8\n";
    std::fs::write(folder.join("master.m3u8"), master).unwrap();
    true
}

/// Ten seconds. Each loads what is played within 15 s from the server, and what the others have of
/// the rest from them.
#[test]
fn viewers_of_a_recording_in_ranges_get_them_from_each_other() {
    // What is said where ffmpeg is missing.
    let folder = tempfile::tempdir().unwrap();
    if site().is_none() || !Nginx::is_installed() || !recording_in_ranges(folder.path()) {
        return;
    }
    let nginx = Nginx::serving(folder.path()).unwrap();
    let of = |file: &str| url("http", nginx.plain_address(), file);
    let player =
        format!("p2p = {{ hashes = \"{}\" }}, buffer = \"10s\"", of("segments-sha256.json"));
    let ran = view(&of("master.m3u8"), 8, 10, &player, &[]).expect_code(0);
    let summary = assert_plays(&ran, 8, "http1");
    assert_eq!(figure(&summary, "playback.requests_failed"), 0.0, "{ran}");
    assert_eq!(figure(&summary, "playback.peers.hash_reloads"), 0.0, "{ran}");
    // Of 20 segments eight are played within 15 s, and up to twelve in the run.
    let ratio = figure(&summary, "playback.peers.ratio");
    assert!((0.25..0.65).contains(&ratio), "{ratio}: {ran}");
}
