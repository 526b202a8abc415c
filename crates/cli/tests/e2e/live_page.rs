//! Served pages in a real browser: they have the figures of the run folder, and run nothing that
//! others are called.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throng_analysis::windows::{SecondQuality, quality_by_second};
use throng_observation::host::HostRow;
use throng_observation::run::{CrowdRow, Ending, Row, RunData};
use throng_observation::{Failure, FailureReason, Outcome, Received, RunTime, SecondRow as _};
use throng_report::html::live::strip;
use throng_report::openmetrics::Glance;
use throng_sim::chromium::Chromium;
use throng_sim::janus::{self, Janus};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;
use throng_store::RunFolder;

use crate::axe::{make, rows, text, when_playing};
use crate::page;
use crate::serve::Served;
use crate::throng::THRONG;

/// How long a page may take on a busy machine.
const WITHIN: Duration = Duration::from_secs(60);

/// Seconds of the run that are compared.
const SECONDS: usize = 3;

/// The points of the chart of viewers.
const VIEWERS: &str = "(() => {
    const is = (chart) => chart.querySelector('h3').textContent.startsWith('Viewers');
    const chart = [...document.querySelectorAll('figure.chart')].find(is);
    return JSON.parse(chart.querySelector('.plot').dataset.points); })()";

/// Janus, a browser, and some seconds of a run.
#[test]
fn the_page_of_a_run_on_janus_has_the_figures_of_its_folder() {
    if !requires_root() {
        return;
    }
    let address = Ipv4Addr::new(10, 78, 1, 1);
    let namespace = Namespace::with_veth("livepage", address).unwrap();
    let janus = Janus::start(&namespace, address).unwrap();
    let _feed = janus.feed().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let url = format!("janus+ws://127.0.0.1:{}/streaming/{}", janus::PORT, janus::H264);
    let view = ["view", &url, "-n", "5", "--every", "100ms", "--for", "120s", "--quiet"];
    let more = ["--serve", "127.0.0.1:0", "--output", text(&run)];
    let mut served = Served::start_by(namespace.command(THRONG), &[&view[..], &more].concat());
    let mut browser = Chromium::start(&namespace).unwrap();
    browser.set_timeout(WITHIN);
    page::listen(&mut browser);
    browser.load(&served.url_with_token()).unwrap();
    when_playing(&mut browser);
    let strips = strips(&mut browser);
    let viewers = browser.evaluate(VIEWERS).unwrap();
    page::fits(&mut browser, "live");
    assert_eq!(browser.evaluate("globalThis.met").unwrap(), json!([]), "errors of the page");
    served.interrupt();
    assert_eq!(served.exit_code(), Some(130));

    let run = RunFolder::read(&run).unwrap();
    let crowd = CrowdRow::by_second(&run.crowd);
    let of_folder: BTreeSet<String> =
        crowd.iter().map(|(second, crowd)| strip_of(&run, *second, crowd)).collect();
    for seen in strips {
        assert!(of_folder.contains(&seen), "{seen} is not in {of_folder:#?}");
    }
    let lines = viewers["lines"].as_array().unwrap();
    let connected = lines.iter().find(|line| line["name"] == "connected").unwrap();
    let points = viewers["t"].as_array().unwrap().iter().zip(connected["v"].as_array().unwrap());
    let values: BTreeMap<i64, &str> =
        points.filter_map(|(second, value)| Some((second.as_i64()?, value.as_str()?))).collect();
    assert!(values.values().any(|value| *value == "5"), "{values:?}");
    for (second, value) in values {
        assert_eq!(value, crowd[&second].connected.to_string(), "connected at {second} s");
    }
}

/// What the strip has in some seconds, one after the other.
fn strips(browser: &mut Chromium) -> BTreeSet<String> {
    let (mut seen, until) = (BTreeSet::new(), Instant::now() + WITHIN);
    while seen.len() < SECONDS {
        assert!(Instant::now() < until, "{seen:?}");
        let strip = browser.evaluate("document.getElementById('part-strip').innerHTML").unwrap();
        seen.insert(strip.as_str().unwrap().to_owned());
        std::thread::sleep(Duration::from_millis(200));
    }
    seen
}

/// The strip of a second, by the rows of the folder.
fn strip_of(run: &RunData, second: i64, crowd: &CrowdRow) -> String {
    let quality = quality_by_second(run);
    let glance = Glance {
        at_s: (second + 1) as f64,
        planned_s: run.info.planned_duration_us as f64 / 1e6,
        intended: crowd.intended,
        connected: crowd.connected,
        playing: crowd.playing,
        failed: crowd.failed,
        received_bps: Received::of_run(run).bps(second..second + 1).unwrap_or(0.0),
        served_ratio: quality.get(&second).and_then(SecondQuality::served_ratio),
    };
    strip(&glance, None)
}

/// A name that ends whatever it may stand in, and says so if it is run.
const HOSTILE: &str = "</script></style></title></svg><img src=x onerror=globalThis.ran=1>\
                       <script>globalThis.ran=1</script>\"' onmouseover=\"globalThis.ran=1";

/// The same as the name of a folder, which has no slash.
const HOSTILE_FOLDER: &str = "\"'><img src=x onerror=globalThis.ran=1>";

#[test]
fn nothing_that_others_are_called_is_run_by_a_browser() {
    let Some(mut browser) = Chromium::of_host().unwrap() else { return };
    browser.set_timeout(WITHIN);
    page::listen(&mut browser);
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first", HOSTILE_FOLDER].map(|name| folder.path().join(name));
    write_hostile(&first);
    write_hostile(&second);
    let report = first.join("report.html");
    make(&["report", text(&first)], &report);
    let served =
        Served::start_by(Command::new(THRONG), &["serve", text(folder.path()), "127.0.0.1:0"]);
    let list = served.url();
    browser.load(&list).unwrap();
    shows_names_and_runs_nothing(&mut browser, "list");
    let links = "[...document.querySelectorAll('tbody a')].map(link => link.href)";
    let links = browser.evaluate(links).unwrap();
    let runs: Vec<&str> = links.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(runs.len(), 2, "{runs:?}");
    for run in &runs {
        browser.load(run).unwrap();
        shows_names_and_runs_nothing(&mut browser, run);
    }
    let name = |run: &str| run.trim_end_matches('/').rsplit('/').next().unwrap().to_owned();
    let query = format!("runs={}&runs={}", name(runs[0]), name(runs[1]));
    for page in ["compare", "trend"] {
        browser.load(&format!("{list}{page}?{query}")).unwrap();
        shows_names_and_runs_nothing(&mut browser, page);
    }
    browser.load(&format!("file://{}", report.display())).unwrap();
    shows_names_and_runs_nothing(&mut browser, "report.html");
}

/// The name is text of the page, and nothing but that.
fn shows_names_and_runs_nothing(browser: &mut Chromium, page: &str) {
    let found = "[document.body.textContent.includes('onerror=globalThis.ran=1'),
        globalThis.ran ?? 0, document.querySelectorAll('img, [onerror], [onmouseover]').length,
        globalThis.met]";
    let found = browser.evaluate(found).unwrap();
    assert_eq!(found, json!([true, 0, 0, []]), "{page}");
}

/// A run with rows of every kind, in which whatever others chose has that name.
fn write_hostile(folder: &Path) {
    let [recorded, ..] = rows::all();
    let mut info = recorded.info;
    info.target = HOSTILE.into();
    info.throng_version = HOSTILE.into();
    info.warnings = vec![HOSTILE.into()];
    info.cohorts.iter_mut().for_each(|name| name.push_str(HOSTILE));
    info.generator_host.insert(HOSTILE.into(), HOSTILE.into());
    let mut writer = RunFolder::create(folder, &info).unwrap();
    recorded.rows.into_iter().map(hostile).for_each(|row| writer.write(row));
    writer.finish(Ending::Complete, RunTime(rows::SECONDS * 1_000_000)).unwrap();
}

fn hostile(row: Row) -> Row {
    match row {
        Row::Participant(mut row) => {
            row.outcome = Some(Outcome::Failed(Failure::new(FailureReason::Ice, HOSTILE)));
            Row::Participant(row)
        }
        Row::Event(mut row) => {
            row.detail = HOSTILE.into();
            Row::Event(row)
        }
        Row::Host(HostRow::Info(mut host)) => {
            host.name = HOSTILE.into();
            Row::Host(HostRow::Info(host))
        }
        Row::Host(HostRow::Series(mut series)) => {
            for label in ["process", "thread"] {
                series.labels.get_mut(label).into_iter().for_each(|name| *name = HOSTILE.into());
            }
            Row::Host(HostRow::Series(series))
        }
        Row::Host(HostRow::Event(mut event)) => {
            event.detail = HOSTILE.into();
            Row::Host(HostRow::Event(event))
        }
        row => row,
    }
}
