//! Players of video over HTTP on real web servers: what they put on the wire beyond the bytes that
//! they play.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use throng_engine::{Join, RunConfig, run};
use throng_media::manifest::PlaylistCache;
use throng_media::quality::WallClock;
use throng_media::timing::IndexCache;
use throng_observation::run::{CohortId, ParticipantId, Row};
use throng_observation::{Outcome, PlaybackCounters, RunTime, Url};
use throng_protocol::participant::Participant;
use throng_protocol::player::{Config, Swarms, Viewer};
use throng_scenario::{AtEnd, CredentialsPolicy, HttpVersionPolicy, MayReach, PlayerConfig};
use throng_sim::nginx::Nginx;

/// What came of a viewer.
pub(crate) struct Watched {
    pub(crate) outcome: Outcome,
    pub(crate) counters: PlaybackCounters,
    /// What it had to say.
    pub(crate) events: Vec<String>,
}

/// A player over HTTP/2 only.
pub(crate) fn http2() -> PlayerConfig {
    PlayerConfig { http: HttpVersionPolicy::Http2.into(), ..PlayerConfig::default() }
}

/// One viewer of `url`, who leaves at the end of the recording: how it ended, and what it counted.
fn watch(url: &str, player: &PlayerConfig) -> (Outcome, PlaybackCounters) {
    let watched = watch_with(url, player, |_| {});
    (watched.outcome, watched.counters)
}

/// The same in a run that is changed.
pub(crate) fn watch_with(
    url: &str,
    player: &PlayerConfig,
    change: impl FnOnce(&mut RunConfig),
) -> Watched {
    let join = Join {
        participant: ParticipantId(0),
        cohort: CohortId(0),
        place: 0,
        at: RunTime(0),
        leave_at: None,
        others_follow: false,
        source_ip: None,
    };
    let is_loopback: MayReach = Arc::new(|_, to| to.ip().is_loopback());
    let mut config = RunConfig::new(vec![join], RunTime(30_000_000), is_loopback.clone());
    change(&mut config);
    let (rows, written) = mpsc::sync_channel(10_000);
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let config_of_viewer = Config {
        page: None,
        url: Url::parse(url).unwrap(),
        http: player.http.of(1, 0),
        player: player.clone(),
        token: None,
        may_reach: is_loopback,
        clock: WallClock { at: Instant::now(), unix_ns: since_1970.as_nanos() as u64 },
        number: 0,
        identity_seed: 0,
        head_timeout: Duration::from_secs(10),
        indexes: IndexCache::default(),
        playlists: PlaylistCache::default(),
        swarms: Swarms::default(),
    };
    let factory =
        move |_: &Join| -> Box<dyn Participant> { Box::new(Viewer::new(config_of_viewer.clone())) };
    let end = run(config, Arc::new(factory), rows).unwrap().wait();
    assert_eq!(end.why, None);
    let (mut outcome, mut counters, mut events) = (None, PlaybackCounters::default(), Vec::new());
    for row in written {
        match row {
            Row::Participant(row) => outcome = row.outcome.clone(),
            Row::Playback(row) => counters += row.counters,
            Row::Event(row) if row.kind.starts_with("protocol_anomaly") => {
                events.push(row.detail.into());
            }
            _ => {}
        }
    }
    Watched { outcome: outcome.unwrap(), counters, events }
}

/// A recording of three segments of a second, made by ffmpeg; `None` where it is not installed.
fn recording(folder: &Path) -> Option<()> {
    let source = "-f lavfi -i testsrc2=s=320x180:r=25:d=3 -c:v libx264 -preset ultrafast -g 25";
    // A constant rate is one of filler, which compresses well.
    let rate = "-b:v 900k -minrate 900k -maxrate 900k -bufsize 450k -x264-params nal-hrd=cbr";
    let output = "-f hls -hls_time 1 -hls_playlist_type vod a.m3u8";
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error"]).args(source.split_whitespace()).args(rate.split_whitespace());
    match command.args(output.split_whitespace()).current_dir(folder).status() {
        Ok(status) => assert!(status.success()),
        Err(_) => {
            throng_sim::skipped("ffmpeg is not installed (scripts/setup.sh test)");
            return None;
        }
    }
    let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(folder, open).unwrap();
    Some(())
}

#[test]
fn what_nginx_compresses_is_played_and_counted_as_it_was_on_the_wire() {
    if !Nginx::is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(()) = recording(folder.path()) else { return };
    let nginx = Nginx::compressing(folder.path()).unwrap();
    let player = PlayerConfig { at_end: AtEnd::Leave, ..PlayerConfig::default() };
    let (outcome, counters) = watch(&format!("http://{}/a.m3u8", nginx.plain_address()), &player);
    assert_eq!(outcome, Outcome::Completed);
    assert_eq!((counters.requests, counters.requests_failed, counters.stall_count), (4, 0, 0));
    assert!(counters.played_us > 2_900_000, "{counters:?}");
    let encodings = nginx.encodings().unwrap();
    let expect = ["/a.m3u8", "/a0.ts", "/a1.ts", "/a2.ts"]
        .map(|uri| format!("{uri}|gzip, deflate, br, zstd|-|gzip"));
    assert_eq!(encodings, expect);
    // nginx counts the frames of chunks too, some bytes in each of its buffers.
    let sent: u64 = nginx.accesses().unwrap().iter().map(|access| access.bytes).sum();
    let received = counters.media_bytes + counters.other_bytes;
    assert!(received <= sent && received * 100 > sent * 97, "{received} of {sent} bytes");
    let length = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
    let decoded: u64 = ["a.m3u8", "a0.ts", "a1.ts", "a2.ts"].map(length).iter().sum();
    assert!(received < decoded, "{received} bytes received of {decoded}");
}

#[test]
fn zstd_is_played_and_a_body_that_is_not_what_its_header_says_is_named() {
    if !Nginx::is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(()) = recording(folder.path()) else { return };
    for name in ["zstd", "br"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    for file in ["a.m3u8", "a0.ts", "a1.ts", "a2.ts"] {
        let made = Command::new("zstd")
            .args(["-q", "-o", &format!("zstd/{file}"), file])
            .current_dir(folder.path())
            .status();
        let Ok(made) = made else { return throng_sim::skipped("zstd is not installed") };
        assert!(made.success());
        std::fs::copy(folder.path().join(file), folder.path().join("br").join(file)).unwrap();
    }
    let nginx = Nginx::compressing(folder.path()).unwrap();
    let player = PlayerConfig { at_end: AtEnd::Leave, ..PlayerConfig::default() };
    let (outcome, counters) =
        watch(&format!("http://{}/zstd/a.m3u8", nginx.plain_address()), &player);
    assert_eq!(outcome, Outcome::Completed);
    assert!(counters.played_us > 2_900_000, "{counters:?}");
    let sent: u64 = nginx.accesses().unwrap().iter().map(|access| access.bytes).sum();
    assert_eq!(counters.media_bytes + counters.other_bytes, sent);
    let (outcome, _) = watch(&format!("http://{}/br/a.m3u8", nginx.plain_address()), &player);
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert!(
        failure.detail.contains("its body is not what Content-Encoding `br` says"),
        "{failure:?}"
    );
}

#[test]
fn a_session_that_nginx_begins_with_a_cookie_goes_on_with_it() {
    if !Nginx::is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(()) = recording(folder.path()) else { return };
    // As servers with signed cookies do: who has none is sent away.
    let directives = "location = /a.m3u8 { add_header Set-Cookie 'session=17; Path=/; HttpOnly'; }
        location = /a1.ts { if ($http_cookie != 'session=17') { return 403; } }";
    let nginx = Nginx::with(folder.path(), directives).unwrap();
    let url = format!("http://{}/a.m3u8", nginx.plain_address());
    let player = PlayerConfig { at_end: AtEnd::Leave, ..PlayerConfig::default() };
    let (outcome, _) = watch(&url, &player);
    assert_eq!(outcome, Outcome::Completed);
    let expect = ["/a.m3u8|-", "/a0.ts|session=17", "/a1.ts|session=17", "/a2.ts|session=17"];
    assert_eq!(nginx.cookies().unwrap(), expect);
    let (outcome, _) =
        watch(&url, &PlayerConfig { credentials: CredentialsPolicy::Omit, ..player });
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert!(failure.detail.contains("/a1.ts: HTTP status 403"), "{failure:?}");
    assert_eq!(nginx.cookies().unwrap()[4..], ["/a.m3u8|-", "/a0.ts|-", "/a1.ts|-"]);
}
