//! The report page in a real browser: it opens without an error and without a network, shows the
//! run, and its charts can be used by pointer and by keyboard.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use throng_sim::chromium::Chromium;
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;

use crate::serve::Served;
use crate::throng::{Ran, Stage, THRONG, run};

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
    let target = stage.target();
    let crowd = ["view", &target, "-n", "5", "--every", "100ms", "--for", "5s", "--warm-up", "1s"];
    let objectives = ["--objective", "video.loss p95 < 1%", "--objective", "connect p99 < 3s"];
    let ran = run(None, &[&crowd[..], &objectives].concat());
    let namespace = Namespace::with_veth("page", Ipv4Addr::new(10, 78, 0, 1)).unwrap();
    let mut browser = opened(&namespace, &ran);
    keep_picture(&mut browser, "report");
    let fetched = browser.evaluate("performance.getEntriesByType('resource').length").unwrap();
    assert_eq!(fetched, json!(0), "the page fetches something");
    let charts = browser.evaluate("document.querySelectorAll('svg').length").unwrap();
    assert!(charts.as_u64() >= Some(6), "{charts} charts\n{ran}");
    lines_hide_and_come_back(&mut browser);
    keys_say_the_values(&mut browser);
    a_drag_zooms_all_charts(&mut browser);
    let nameless = "[...document.querySelectorAll('a, button, summary')]
        .filter(node => !node.textContent.trim()).map(node => node.outerHTML)";
    assert_eq!(browser.evaluate(nameless).unwrap(), json!([]), "without a name");
    fits(&mut browser, "report");
    assert_eq!(browser.evaluate("globalThis.met").unwrap(), json!([]), "errors of its use");
    a_served_page_is_used_when_its_charts_were_replaced(&mut browser, &namespace, &ran);
}

/// The same page, served: charts that are replaced are used as those before, and answer once.
fn a_served_page_is_used_when_its_charts_were_replaced(
    browser: &mut Chromium,
    namespace: &Namespace,
    ran: &Ran,
) {
    let folder = ran.folder();
    let args = ["serve", folder.to_str().unwrap(), "127.0.0.1:0"];
    let served = Served::start_by(namespace.command(THRONG), &args);
    browser.load(&served.url()).unwrap();
    // Charts under the pointer would stand still.
    let away = json!({ "type": "mouseMoved", "x": 0, "y": 0 });
    browser.command("Input.dispatchMouseEvent", &away).unwrap();
    let news = "(() => { const old = document.querySelector('.plot');
        const charts = [...shown].filter(([, html]) => draws(html));
        take({ data: JSON.stringify(charts.map(([id, html]) => [id, html + ' '])) });
        return [old.isConnected, document.querySelectorAll('output.unseen').length]; })()";
    assert_eq!(browser.evaluate(news).unwrap(), json!([false, 1]), "replaced, and armed once");
    lines_hide_and_come_back(browser);
    keys_say_the_values(browser);
    a_drag_zooms_all_charts(browser);
    let lost = "[...document.querySelectorAll('nav a, h2 a, h3 a, th a, dt a')]
        .map(link => link.hash.slice(1)).filter(id => !document.getElementById(id))";
    assert_eq!(browser.evaluate(lost).unwrap(), json!([]), "links that lead nowhere");
    let missing = "document.querySelectorAll('main h2').length
        - document.querySelectorAll('nav li').length";
    assert_eq!(browser.evaluate(missing).unwrap(), json!(0), "sections without contents");
    assert_eq!(browser.evaluate("globalThis.met").unwrap(), json!([]), "errors of a served page");
}

/// The buttons of a legend hide their lines and show them again.
fn lines_hide_and_come_back(browser: &mut Chromium) {
    let click = "(() => { const button = document.querySelector('.legend button'); button.click();
        const line = button.closest('figure').querySelector('svg .line');
        return [button.getAttribute('aria-pressed'), getComputedStyle(line).display]; })()";
    assert_eq!(browser.evaluate(click).unwrap(), json!(["false", "none"]));
    assert_eq!(browser.evaluate(click).unwrap(), json!(["true", "inline"]));
}

/// The charts over the axis of the first one, `alike`: these share a cursor and what is shown.
const ALIKE: &str = "const axis = plot => JSON.parse(plot.dataset.points).x ?? 's';
    const plots = [...document.querySelectorAll('.plot')];
    const alike = plots.filter(plot => axis(plot) === axis(plots[0]));";

/// The arrow keys move one cursor over all charts of an axis, and the values at it are said.
fn keys_say_the_values(browser: &mut Chromium) {
    browser.evaluate("document.querySelector('.plot').focus()").unwrap();
    press(browser, "ArrowRight");
    let first = said(browser);
    press(browser, "ArrowRight");
    let second = said(browser);
    assert!(first.contains(" s: ") && second.contains(" s: ") && first != second, "{first}");
    let without = format!(
        "(() => {{ {ALIKE} return alike.filter(plot => !plot.querySelector('.cross')).length; }})()"
    );
    assert_eq!(browser.evaluate(&without).unwrap(), json!(0), "charts without the cursor");
}

/// A drag over one chart shows the same stretch of its axis in all, and Escape shows all of it
/// again.
fn a_drag_zooms_all_charts(browser: &mut Chromium) {
    let place = "(() => { const plot = document.querySelector('.plot');
        plot.scrollIntoView({ block: 'center', behavior: 'instant' });
        const box = plot.getBoundingClientRect();
        return [box.left, box.width, box.top + box.height / 2]; })()";
    let place = browser.evaluate(place).unwrap();
    let [left, width, y] = [0, 1, 2].map(|index: usize| place[index].as_f64().unwrap());
    for (kind, share) in [("mousePressed", 0.2), ("mouseMoved", 0.5), ("mouseReleased", 0.8)] {
        let event = json!({ "type": kind, "x": left + share * width, "y": y, "button": "left",
            "buttons": 1, "clickCount": 1 });
        browser.command("Input.dispatchMouseEvent", &event).unwrap();
    }
    let stretches = format!(
        "(() => {{ {ALIKE} return [...new Set(alike.map(plot =>
            plot.querySelector('svg').getAttribute('viewBox')))]; }})()"
    );
    let zoomed = browser.evaluate(&stretches).unwrap();
    assert_eq!(zoomed.as_array().map(Vec::len), Some(1), "{zoomed}");
    assert_ne!(zoomed, json!(["0 0 1000 100"]), "the drag chose nothing");
    assert!(said(browser).contains("Escape"), "{}", said(browser));
    press(browser, "Escape");
    assert_eq!(browser.evaluate(&stretches).unwrap(), json!(["0 0 1000 100"]));
}

/// What the page told screen readers last.
fn said(browser: &mut Chromium) -> String {
    let said = browser.evaluate("document.querySelector('output.unseen').textContent").unwrap();
    said.as_str().unwrap_or_default().to_owned()
}

/// Presses and releases a key by its name.
fn press(browser: &mut Chromium, key: &str) {
    for kind in ["keyDown", "keyUp"] {
        let event = json!({ "type": kind, "key": key, "code": key });
        browser.command("Input.dispatchKeyEvent", &event).unwrap();
    }
}

/// Has a browser keep the errors of each page that it opens from now on, in `met`.
pub(crate) fn listen(browser: &mut Chromium) {
    browser.command("Page.enable", &json!({})).unwrap();
    browser.command("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": LISTEN })).unwrap();
}

/// The run's page in a browser, checked to be without errors.
pub(crate) fn opened(namespace: &Namespace, ran: &Ran) -> Chromium {
    let page = ran.folder().join("report.html");
    let mut browser = Chromium::start(namespace).unwrap();
    listen(&mut browser);
    browser.load(&format!("file://{}", page.display())).unwrap();
    let met = browser.evaluate("globalThis.met").unwrap();
    assert_eq!(met, json!([]), "the page met errors");
    browser
}

/// The page is no wider than a phone, a small and a large screen, light or dark. Keeps screenshots
/// of the phone and of the large screen.
pub(crate) fn fits(browser: &mut Chromium, name: &str) {
    at_each_size(browser, |browser, scheme, width| {
        let overflow =
            browser.evaluate("document.documentElement.scrollWidth - innerWidth").unwrap();
        assert!(
            overflow.as_i64() <= Some(0),
            "{scheme}, {width} px: the page is {overflow} px too wide"
        );
        // Between the two it looks like either.
        if width != 800 {
            keep_screenshot(browser, &format!("{name}-{width}-{scheme}"));
        }
    });
}

/// Looks at the page with the widths of a phone, a small and a large screen, light and dark.
pub(crate) fn at_each_size(browser: &mut Chromium, mut look: impl FnMut(&mut Chromium, &str, u32)) {
    for scheme in ["light", "dark"] {
        for width in [360, 800, 1280] {
            show_as(browser, scheme, width);
            look(browser, scheme, width);
        }
    }
}

/// The page in a colour scheme on a screen of a width, CSS pixels.
fn show_as(browser: &mut Chromium, scheme: &str, width: u32) {
    let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
    browser.command("Emulation.setEmulatedMedia", &features).unwrap();
    let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1,
        "mobile": width < 500 });
    browser.command("Emulation.setDeviceMetricsOverride", &size).unwrap();
}

/// Writes a screenshot under target/screenshots, for manual inspection.
fn keep_screenshot(browser: &mut Chromium, name: &str) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../screenshots");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{name}.png")), screenshot(browser, true)).unwrap();
}

/// Keeps the top of the page as a picture of the documentation, if these are to be written anew.
pub(crate) fn keep_picture(browser: &mut Chromium, name: &str) {
    show_as(browser, "light", 1100);
    let picture = screenshot(browser, false);
    if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
        std::fs::write(folder.join(format!("{name}.png")), picture).unwrap();
    }
}

/// The page as PNG: all of it, or what the screen shows.
fn screenshot(browser: &mut Chromium, is_whole: bool) -> Vec<u8> {
    let how = json!({ "format": "png", "captureBeyondViewport": is_whole });
    let picture = browser.command("Page.captureScreenshot", &how).unwrap();
    let bytes = STANDARD.decode(picture["data"].as_str().unwrap_or_default()).unwrap();
    assert!(bytes.starts_with(b"\x89PNG"), "not a picture");
    bytes
}
