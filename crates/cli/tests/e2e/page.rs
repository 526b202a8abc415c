//! The report page in a real browser: it opens without an error and without a network, and shows
//! the run.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use throng_sim::chromium::Chromium;
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;

use crate::throng::{Ran, Stage, run};

/// Errors of the page so far; the listener is installed before the page's own script runs.
const LISTEN: &str = "globalThis.met = [];
    addEventListener('error', e => globalThis.met.push(String(e.message)));
    const error = console.error;
    console.error = (...a) => { globalThis.met.push(a.join(' ')); error(...a); };";

#[test]
fn the_report_opens_in_a_browser_without_an_error() {
    if !requires_root() {
        return;
    }
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let ran = run(
        None,
        &["view", &stage.target(), "-n", "5", "--every", "100ms", "--for", "5s", "--warm-up", "1s"],
    );
    let namespace = Namespace::with_veth("page", Ipv4Addr::new(10, 78, 0, 1)).unwrap();
    let mut browser = opened(&namespace, &ran);
    let fetched = browser.evaluate("performance.getEntriesByType('resource').length").unwrap();
    assert_eq!(fetched, serde_json::json!(0), "the page fetches something");
    let charts = browser.evaluate("document.querySelectorAll('svg').length").unwrap();
    assert!(charts.as_u64() >= Some(6), "{charts} charts\n{ran}");
    fits(&mut browser, "report");
}

/// The run's page in a browser, checked to be without errors.
pub(crate) fn opened(namespace: &Namespace, ran: &Ran) -> Chromium {
    let page = ran.folder().join("report.html");
    let mut browser = Chromium::start(namespace).unwrap();
    browser.command("Page.enable", &serde_json::json!({})).unwrap();
    browser
        .command("Page.addScriptToEvaluateOnNewDocument", &serde_json::json!({ "source": LISTEN }))
        .unwrap();
    browser.load(&format!("file://{}", page.display())).unwrap();
    let met = browser.evaluate("globalThis.met").unwrap();
    assert_eq!(met, serde_json::json!([]), "the page met errors");
    browser
}

/// The page is no wider than a screen or a phone. Keeps screenshots of both, and of the dark
/// screen.
pub(crate) fn fits(browser: &mut Chromium, name: &str) {
    for (width, scheme) in [(1200, "light"), (360, "light"), (1200, "dark")] {
        let size = serde_json::json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500 });
        browser.command("Emulation.setDeviceMetricsOverride", &size).unwrap();
        let scheme_set = serde_json::json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        browser.command("Emulation.setEmulatedMedia", &scheme_set).unwrap();
        let overflow =
            browser.evaluate("document.documentElement.scrollWidth - innerWidth").unwrap();
        assert!(overflow.as_i64() <= Some(0), "at {width} px the page is {overflow} px too wide");
        let dark = if scheme == "dark" { "-dark" } else { "" };
        keep_screenshot(browser, &format!("{name}-{width}{dark}"));
    }
}

/// Writes a screenshot under target/screenshots, for manual inspection.
fn keep_screenshot(browser: &mut Chromium, name: &str) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../screenshots");
    let picture = browser
        .command(
            "Page.captureScreenshot",
            &serde_json::json!({ "format": "png", "captureBeyondViewport": true }),
        )
        .unwrap();
    std::fs::create_dir_all(&folder).unwrap();
    let bytes = STANDARD.decode(picture["data"].as_str().unwrap_or_default()).unwrap();
    assert!(bytes.starts_with(b"\x89PNG"), "not a picture");
    std::fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
}
