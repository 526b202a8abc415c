//! axe-core finds nothing serious on the pages of runs, experiments and comparisons, as files and
//! served, with the widths of a phone, a small and a large screen, light and dark.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throng_observation::RunTime;
use throng_observation::host::{Frame, HostRow, Profile, Stack};
use throng_observation::run::{Ending, Row};
use throng_report::html;
use throng_report::matrix::{
    self, CellVerdict, MatrixCell, MatrixFactor, MatrixInput, MatrixMeasure, MatrixReport,
    MatrixRun, RunFigures, RunStatus,
};
use throng_sim::chromium::Chromium;
use throng_sim::skipped;
use throng_store::RunFolder;

use crate::page;
use crate::serve::Served;
use crate::throng::{Stage, THRONG, plain};

#[path = "../../src/report/golden_tests/rows.rs"]
pub(crate) mod rows;

/// How long a page may take on a busy machine.
const WITHIN: Duration = Duration::from_secs(60);

/// What is closed is not looked at, nor the values beside the cursor of a chart that has none.
const OPEN: &str = "for (const one of document.querySelectorAll('details')) one.open = true;
    document.querySelector('.plot')?.focus();";

/// The findings under the rules of `options`, one a string: rule, elements and what is wrong.
const JUDGE: &str = "options => axe.run(document, { resultTypes: ['violations'], ...options })
    .then(({ violations }) => violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .flatMap(({ id, nodes }) => nodes.map(node =>
            `${id}: ${node.target.join(' ')}: ${node.failureSummary}`)))";

/// Pages in a browser, and what was found on them.
struct Judge {
    axe: String,
    browser: Chromium,
    /// By the finding, where it was.
    found: BTreeMap<String, Vec<String>>,
}

impl Judge {
    /// Without axe-core or a browser the test is skipped.
    fn start() -> Option<Self> {
        let folder = |name: &str| {
            let path = std::env::var_os(name).filter(|path| !path.is_empty());
            path.map(PathBuf::from)
        };
        let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
        let script = cache.unwrap_or_default().join("throng/axe.min.js");
        let Ok(axe) = std::fs::read_to_string(script) else {
            skipped("axe-core is not installed (scripts/setup.sh test)");
            return None;
        };
        let mut browser = Chromium::of_host().unwrap()?;
        browser.set_timeout(WITHIN);
        Some(Self { axe, browser, found: BTreeMap::new() })
    }

    fn judge(&mut self, name: &str, url: &str) {
        self.browser.load(url).unwrap();
        self.judge_loaded(name);
    }

    fn judge_file(&mut self, name: &str, page: &Path) {
        self.judge(name, &format!("file://{}", page.display()));
    }

    fn judge_loaded(&mut self, name: &str) {
        self.browser.evaluate(&self.axe).unwrap();
        self.browser.evaluate(OPEN).unwrap();
        let found = &mut self.found;
        page::at_each_size(&mut self.browser, |browser, scheme, width| {
            // Nothing but colours depends on the scheme.
            let rules = match scheme {
                "dark" => json!({ "runOnly": ["color-contrast", "link-in-text-block"] }),
                _ => json!({}),
            };
            let findings = browser.evaluate(&format!("({JUDGE})({rules})")).unwrap();
            for finding in findings.as_array().unwrap().iter().filter_map(Value::as_str) {
                let place = format!("{name}, {scheme}, {width} px");
                found.entry(finding.to_owned()).or_default().push(place);
            }
        });
    }
}

/// Twenty seconds of a browser: each kind of page, at three widths and in both schemes.
#[test]
fn no_page_has_a_serious_finding() {
    let Some(mut judge) = Judge::start() else { return };
    judge.browser.evaluate("document.body.append(document.createElement('img'))").unwrap();
    judge.judge_loaded("planted");
    assert!(judge.found.keys().any(|found| found.starts_with("image-alt: ")), "{:?}", judge.found);
    judge.found.clear();

    let folder = tempfile::tempdir().unwrap();
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let live = started(&stage, &folder.path().join("live"));
    let runs = folder.path().join("runs");
    for recorded in rows::all() {
        let (name, run) = (recorded.name, runs.join(recorded.name));
        write(&run, recorded);
        let page = run.join("report.html");
        make(&["report", text(&run)], &page);
        judge.judge_file(name, &page);
    }
    for (name, page) in results(&runs, folder.path()) {
        judge.judge_file(name, &page);
    }
    let served = Served::start_by(Command::new(THRONG), &["serve", text(&runs), "127.0.0.1:0"]);
    judge.judge("list", &served.url());

    judge.browser.load(&live.url_with_token()).unwrap();
    when_playing(&mut judge.browser);
    // It stands still while it is looked at.
    judge.browser.evaluate("events.close()").unwrap();
    page::keep_picture(&mut judge.browser, "live");
    judge.judge_loaded("live");
    assert!(judge.found.is_empty(), "{:#?}", judge.found);
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Has throng make a page, whatever it thinks of the runs.
pub(crate) fn make(args: &[&str], page: &Path) {
    let said = plain(args);
    assert!(page.is_file(), "{args:?}: {}", String::from_utf8_lossy(&said.stderr));
}

/// A run of five viewers in progress, with its page.
fn started(stage: &Stage, run: &Path) -> Served {
    let target = stage.target();
    let view = ["view", &target, "-n", "5", "--every", "50ms", "--for", "120s", "--quiet"];
    let more = ["--serve", "127.0.0.1:0", "--output", text(run)];
    Served::start_by(Command::new(THRONG), &[&view[..], &more].concat())
}

/// Waits until the strip of the page says that all viewers play.
pub(crate) fn when_playing(browser: &mut Chromium) {
    let until = Instant::now() + WITHIN;
    let all_play = "document.getElementById('part-strip').textContent.includes('5 playing')";
    while browser.evaluate(all_play).unwrap() != Value::Bool(true) {
        assert!(Instant::now() < until, "the strip does not say that five play");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Writes a made-up run; that of the crowd has profiles, which the others have not.
fn write(folder: &Path, recorded: rows::Recorded) {
    let mut writer = RunFolder::create(folder, &recorded.info).unwrap();
    recorded.rows.into_iter().for_each(|row| writer.write(row));
    if recorded.name == "crowd" {
        writer.write(profile("full", [300, 100]));
        writer.write(profile("fail", [100, 300]));
    }
    writer.finish(Ending::Complete, RunTime(rows::SECONDS * 1_000_000)).unwrap();
}

/// Samples of two functions of the server's thread at a moment of the run.
fn profile(moment: &str, counts: [u32; 2]) -> Row {
    let frame = |symbol: &str| Frame { symbol: symbol.into(), module: "server".into() };
    let stack = |(frame, count)| Stack {
        pid: 7,
        tid: 7,
        thread: "worker".into(),
        frames: vec![frame],
        count,
    };
    Row::Host(HostRow::Profile(Box::new(Profile {
        moment: moment.into(),
        duration_us: 10_000_000,
        frequency_hz: 99,
        frames: ["encrypt", "send"].map(frame).into(),
        stacks: (0..).zip(counts).map(stack).collect(),
        ..Profile::default()
    })))
}

/// The pages of a comparison, a trend and a matrix, by the run of the crowd.
fn results(runs: &Path, folder: &Path) -> [(&'static str, PathBuf); 3] {
    let [crowd, again] = ["crowd", "again"].map(|name| runs.join(name));
    let [first, ..] = rows::all();
    write(&again, first);
    let pages =
        ["compare", "trend", "matrix"].map(|name| (name, folder.join(format!("{name}.html"))));
    for (name, page) in &pages {
        match *name {
            "matrix" => {
                std::fs::write(page, html::matrix::render(&experiment(&crowd))).unwrap();
            }
            name => make(&[name, text(&crowd), text(&again), "--page", text(page)], page),
        }
    }
    pages
}

/// A matrix of two factors whose one cell is limited, with the figures of a run.
fn experiment(run: &Path) -> MatrixReport {
    let run = RunFolder::read(run).unwrap();
    let summary = throng_report::summarise(&run, &[], Duration::ZERO);
    let limited = matrix::figures(&run, &summary, None);
    let served =
        RunFigures { verdict: CellVerdict::Served, finding: None, score: None, ..limited.clone() };
    let cell = |number: usize| {
        let figures = if number == 2 { limited.clone() } else { served.clone() };
        let run = MatrixRun {
            repeat: 1,
            place: Some(number),
            status: RunStatus::Valid,
            folder: Some(format!("cells/{number}/1")),
            figures: Some(figures),
            ..MatrixRun::default()
        };
        MatrixCell {
            number,
            levels: vec![(number - 1) / 2, (number - 1) % 2],
            name: format!("cell {number}"),
            runs: vec![run],
            ..MatrixCell::default()
        }
    };
    let factor = |name: &str, levels: [&str; 2]| MatrixFactor {
        name: name.into(),
        levels: levels.map(String::from).into(),
    };
    matrix::summarise(MatrixInput {
        name: Some("files and storage".into()),
        measure: MatrixMeasure::Hold,
        repeats: 1,
        seed: 1,
        order: "random".into(),
        factors: vec![factor("files", ["1", "30"]), factor("storage", ["disk", "tmpfs"])],
        cells: (1..=4).map(cell).collect(),
        relieved: &|_, _, _| None,
        throng_version: "0.1.0".into(),
    })
}
