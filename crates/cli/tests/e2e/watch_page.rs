//! Viewers that load the page around their player: a recording of the real Chromium, repeated on a
//! real nginx.
//!
//! `tests/data/page` has the site, and `watch.har`, which Chromium 156 recorded on nginx with the
//! rules below (events of DevTools, made a HAR file by chrome-har 1.3.1). Its files had the date
//! that the test gives them, so that nginx makes the same `ETag`s.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use throng_sim::nginx::{Access, Nginx};

use crate::throng::{figure, run};
use crate::vod;

/// What nginx says of caches.
const RULES: &str = "location = /watch.html { add_header Cache-Control no-cache; }
    location = /app.js { add_header Cache-Control no-cache; }
    location = /app.css { add_header Cache-Control max-age=3600; }
    location = /logo.svg { expires 1h; }
    location = /feed.json { add_header Cache-Control no-store; }";

/// When the files of the recorded site were changed, seconds since 1970.
const CHANGED_S: u64 = 1_767_225_600;

const USERS: u32 = 20;

/// The site with a film, and the scenario with its recording in another folder.
fn site(film: &Path) -> (TempDir, TempDir) {
    let (site, scenario) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/page");
    for file in ["watch.html", "app.css", "app.js", "logo.svg", "feed.json"] {
        // Not copied: permissions and dates are the test's own.
        let copy = site.path().join(file);
        fs::write(&copy, fs::read(recorded.join(file)).unwrap()).unwrap();
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(CHANGED_S);
        fs::File::options().write(true).open(&copy).unwrap().set_modified(changed).unwrap();
    }
    fs::copy(film, site.path().join("film.mp4")).unwrap();
    fs::copy(recorded.join("watch.har"), scenario.path().join("watch.har")).unwrap();
    (site, scenario)
}

#[test]
fn pages_are_loaded_cold_and_warm_as_nginx_counts_them() {
    let Some(films) = vod::site() else { return };
    if !Nginx::is_installed() {
        return;
    }
    let (site, folder) = site(&films.join("first.mp4"));
    let nginx = Nginx::serving_with(site.path(), RULES).unwrap();
    let text = format!(
        "[target]\nurl = \"http://{}/film.mp4\"\n[crowd]\nsize = {USERS}\narrival = {{ every = \"50ms\" }}\n\
         player = {{ har = \"watch.har\", warm = 0.5, buffer = \"3s\" }}\n[run]\nduration = \"5s\"\n",
        nginx.plain_address()
    );
    let scenario = folder.path().join("page.toml");
    fs::write(&scenario, text).unwrap();
    let ran = run(None, &["run", &scenario.display().to_string()]).expect_code(0);
    let summary = ran.summary();
    let accesses = nginx.accesses().unwrap();
    let (film, page): (Vec<Access>, Vec<Access>) =
        accesses.into_iter().partition(|access| access.uri == "/film.mp4");
    let count = |uri: &str, status: u16| {
        page.iter().filter(|access| access.uri == uri && access.status == status).count()
    };
    // A cold cache requests all of the page; a warm one asks about what it may not use unasked, and
    // lacks what it may not store.
    let cold = count("/app.css", 200);
    let warm = USERS as usize - cold;
    assert!(cold.abs_diff(USERS as usize / 2) <= 1, "{cold} cold\n{ran}");
    assert_eq!(count("/logo.svg", 200), cold, "{page:?}");
    for uri in ["/watch.html", "/app.js"] {
        assert_eq!((count(uri, 200), count(uri, 304)), (cold, warm), "{uri} {page:?}\n{ran}");
    }
    assert_eq!(count("/feed.json", 200), USERS as usize, "{page:?}");
    assert_eq!(
        page.len(),
        5 * cold + 3 * warm,
        "nothing else, such as the recorded beacon: {page:?}"
    );
    // throng counts what nginx counts.
    assert_eq!(figure(&summary, "playback.page.requests"), page.len() as f64, "{ran}");
    assert_eq!(figure(&summary, "playback.page.requests_failed"), 0.0, "{ran}");
    assert_eq!(figure(&summary, "playback.requests"), (page.len() + film.len()) as f64, "{ran}");
    let bytes: u64 = page.iter().map(|access| access.bytes).sum();
    assert_eq!(figure(&summary, "playback.page.bytes"), bytes as f64, "{ran}");
    // The page is a part of the startup: of the recorded 339 ms it took most.
    assert_eq!(figure(&summary, "playback.startup.reached"), f64::from(USERS), "{ran}");
    assert_eq!(figure(&summary, "playback.page.loaded.reached"), f64::from(USERS), "{ran}");
    let (loaded, started) = (
        figure(&summary, "playback.page.loaded.ms_p50"),
        figure(&summary, "playback.startup.ms_p50"),
    );
    assert!((200.0..1_000.0).contains(&loaded) && started > loaded, "{loaded} {started}\n{ran}");
    assert!(ran.stderr.contains("1 to other origins (http://localhost:18498 1)"), "{ran}");
    assert!(ran.stdout.contains("page loaded"), "{ran}");

    // Without its document a page has no player.
    fs::remove_file(site.path().join("watch.html")).unwrap();
    let ran = run(None, &["run", &scenario.display().to_string(), "--set", "crowd.size=2"]);
    assert!(ran.stdout.contains("http_404") && ran.stdout.contains("page: http://"), "{ran}");
    assert_eq!(figure(&ran.summary(), "participants.failed"), 2.0, "{ran}");
    let again = nginx.accesses().unwrap();
    assert_eq!(again.len(), page.len() + film.len() + 2, "{again:?}");
}
