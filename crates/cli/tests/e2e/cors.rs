//! Players on other origins than their page, beside the real Chromium, on real nginx.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use throng_observation::RequestOutcome;
use throng_sim::chromium::Chromium;
use throng_sim::nginx::Nginx;
use throng_store::RunFolder;

use crate::throng::{Ran, figure, plain};
use crate::vod::{url, view};

/// What a server says that lets any page have its media, with the headers of these viewers.
const OPEN: &str = "add_header Access-Control-Allow-Origin * always;
    add_header Access-Control-Allow-Headers 'x-key, authorization' always;
    if ($request_method = OPTIONS) { return 204; }";

const VIEWERS: u32 = 4;

/// A recording of three segments of a second; `None` where ffmpeg is not installed.
fn recording() -> Option<TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let encode = "-v error -f lavfi -i testsrc2=s=160x90:r=25:d=3 -c:v libx264 -preset ultrafast -g 25 \
                  -f hls -hls_time 1 -hls_playlist_type vod media.m3u8";
    let made =
        Command::new("ffmpeg").args(encode.split_whitespace()).current_dir(folder.path()).status();
    let Ok(made) = made else {
        throng_sim::skipped("ffmpeg is not installed (scripts/setup.sh test)");
        return None;
    };
    assert!(made.success());
    fs::write(folder.path().join("watch.html"), "<!doctype html><title>Watch</title>").unwrap();
    let open = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(folder.path(), open).unwrap();
    Some(folder)
}

/// Makes of `media.m3u8` a playlist `name` whose segments are at `at`.
fn listing(folder: &Path, name: &str, at: &str) {
    let playlist = fs::read_to_string(folder.join("media.m3u8")).unwrap();
    fs::write(folder.join(name), playlist.replace("media", &format!("{at}media"))).unwrap();
}

/// Answered requests by method, path and status, as the run counted them.
fn counted(ran: &Ran) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for row in RunFolder::http_requests(ran.folder()).unwrap() {
        let RequestOutcome::Status(status) = row.key.outcome else { panic!("{row:?}\n{ran}") };
        let key = format!("{} {} {status}", row.key.method, row.key.path);
        *counts.entry(key).or_default() += row.counters.requests;
    }
    counts
}

/// How often each line is there.
fn counts<'a>(lines: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in lines {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn players_ask_other_origins_as_chromium_does_and_take_no_for_an_answer() {
    if !Nginx::is_installed() {
        return;
    }
    let Some(folder) = recording() else { return };
    let pages = Nginx::serving_with(folder.path(), OPEN).unwrap();
    let home = format!("http://{}", pages.plain_address());
    // The playlist is elsewhere, and moved to the page's origin; its segments are elsewhere.
    let moved = format!(
        "{OPEN} location = /moved.m3u8 {{ return 302 {home}/listed.m3u8; }}
         location /closed/ {{ alias {}/; add_header X-Cors none; }}",
        folder.path().display()
    );
    let media = Nginx::serving_with(folder.path(), &moved).unwrap();
    listing(folder.path(), "listed.m3u8", &format!("http://{}/", media.plain_address()));
    let page =
        format!("page = \"{home}/watch.html\", repeat = false, format = \"hls\", buffer = \"20s\"");

    let first = url("http", media.plain_address(), "moved.m3u8");
    let ran = view(&first, VIEWERS, 5, &page, &["--set", "target.token=t"]).expect_code(0);
    let summary = ran.summary();
    assert_eq!(figure(&summary, "participants.failed"), 0.0, "{ran}");
    std::thread::sleep(Duration::from_millis(500));
    let origins = || [media.origins().unwrap(), pages.origins().unwrap()];
    let ours = origins();
    let named = |line: &str| line.split('|').next().unwrap_or_default().to_owned();
    let logged: Vec<_> = ours.iter().flatten().map(|line| named(line)).collect();
    assert_eq!(counted(&ran), counts(logged.iter().map(String::as_str)), "{ran}");
    assert_eq!(figure(&summary, "playback.requests"), logged.len() as f64, "{ran}");
    let (run_folder, logs) = (ran.folder(), [media.combined_log(), pages.combined_log()]);
    let [run_folder, media_log, page_log] =
        [&run_folder, &logs[0], &logs[1]].map(|path| path.display().to_string());
    let beside =
        plain(&["requests", &run_folder, "--access-log", &media_log, "--access-log", &page_log]);
    assert!(String::from_utf8_lossy(&beside.stdout).contains("\nEQUAL "), "{beside:?}\n{ran}");

    // Without the header that lets a page have them the responses are no use.
    let closed = url("http", media.plain_address(), "closed/media.m3u8");
    let ran = view(&closed, VIEWERS, 4, &page, &[]);
    let summary = ran.summary();
    assert_eq!(summary["failures"]["cors"], VIEWERS, "{ran}");
    let detail = summary["failure_examples"][0]["detail"].as_str().unwrap();
    assert!(
        detail.ends_with(&format!("CORS: no Access-Control-Allow-Origin for the origin {home}")),
        "{ran}"
    );

    let Some(mut browser) = Chromium::of_host().unwrap() else { return };
    browser.load(&format!("{home}/watch.html")).unwrap();
    let before = origins().map(|lines| lines.len());
    let script = format!(
        "(async () => {{
            const get = url => fetch(url, {{ headers: {{ Authorization: 'Bearer t' }} }});
            const playlist = await (await get('{first}')).text();
            const segments = playlist.split('\\n').filter(line => line.startsWith('http'));
            for (const segment of segments) await (await get(segment)).arrayBuffer();
            return segments.length;
        }})()"
    );
    assert_eq!(browser.evaluate(&script).unwrap(), 3);
    std::thread::sleep(Duration::from_millis(500));
    // What each viewer has requested, Chromium requests too: in this order, with these headers.
    for ((theirs, before), ours) in origins().iter().zip(before).zip(&ours) {
        let theirs: Vec<_> =
            theirs[before..].iter().filter(|line| !line.contains("/favicon.ico")).collect();
        assert_eq!(theirs, once(ours));
        assert!(
            counts(ours.iter().map(String::as_str))
                .values()
                .all(|count| *count == u64::from(VIEWERS)),
            "{ours:?}"
        );
    }
}

/// The lines without repetitions: a viewer has sent what comes before a line itself, so that they
/// are in the order of each.
fn once(lines: &[String]) -> Vec<&String> {
    let mut seen = Vec::new();
    for line in lines {
        if !seen.contains(&line) {
            seen.push(line);
        }
    }
    seen
}
