//! Each place that can hold a secret has one of its own, and each output is looked at.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use throng_sim::whep::Server;

use super::law::Law;
use super::places::{PAGE, SCENARIOS};
use super::readers::{Heard, asked, observed};
use super::refuses_with;
use crate::matrix::said;
use crate::serve::Served;
use crate::throng::THRONG;

/// How many runs are made at a time.
const AT_ONCE: usize = 6;

/// Between two looks at the arguments of processes.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long a served page may take, and how long its next event is waited for.
const PAGE_WITHIN: Duration = Duration::from_secs(60);
const EVENT_WITHIN: Duration = Duration::from_millis(500);

/// The folders, and the secrets that are in none of the scenarios.
struct Bench {
    law: Law,
    /// What is given to throng, with secrets in it.
    given: PathBuf,
    /// What throng makes of it.
    made: PathBuf,
    /// Run folders alone.
    runs: PathBuf,
    variables: Vec<(String, String)>,
    /// Secrets that scenarios name, by the words that name them.
    named: [(&'static str, String); 2],
}

/// A run in progress, and the server that it has.
struct Begun {
    running: JoinHandle<Vec<Heard>>,
    _server: Server,
}

impl Bench {
    fn new() -> Self {
        let mut law = Law::new();
        let [given, made, runs] = ["given", "made", "made/runs"].map(|name| law.path(name));
        for folder in [&given, &runs] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let [env, file, key] = ["Env", "File", "CollectorKey"].map(|place| law.secret(place));
        std::fs::write(given.join("token"), format!("{file}\n")).unwrap();
        // It keeps its arguments, and is no browser.
        let (browser, arguments) = (given.join("browser"), made.join("browser-arguments"));
        let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >>'{}'\n", arguments.display());
        std::fs::write(&browser, script).unwrap();
        std::fs::set_permissions(&browser, Permissions::from_mode(0o755)).unwrap();
        let variables = [
            ("THRONG_LAW_TOKEN", env.clone()),
            ("OTEL_EXPORTER_OTLP_HEADERS", format!("authorization=Bearer%20{key}")),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value)).into();
        let named = [("env:THRONG_LAW_TOKEN", env), ("file:FOLDER/token", file)];
        Self { law, given, made, runs, variables, named }
    }

    /// Begins a run of a scenario of the table.
    fn begin(&mut self, name: &'static str, text: &str) -> Begun {
        let folder = self.runs.join(name);
        self.begin_by(&["run"], &folder, name, text)
    }

    /// Begins what `throng COMMAND` makes of a scenario of the table.
    fn begin_by(
        &mut self,
        command: &[&str],
        folder: &Path,
        name: &'static str,
        text: &str,
    ) -> Begun {
        let (filled, mut told) = self.law.filled(name, text);
        if text.contains("FOLDER/page.har") {
            let (recorded, of_page) = self.law.filled(name, PAGE);
            std::fs::write(self.given.join("page.har"), recorded).unwrap();
            told.extend(of_page);
        }
        let named = self.named.iter().filter(|(words, _)| text.contains(words));
        told.extend(named.map(|(_, secret)| secret.clone()));
        let server = refuses_with(told.join(" "));
        let filled = filled
            .replace("HOST", &server.address().to_string())
            .replace("FOLDER", &self.given.display().to_string());
        let file = self.given.join(format!("{name}.toml"));
        std::fs::write(&file, format!("{filled}[run]\nduration = \"1s\"\n")).unwrap();
        let at = |ending: &str| word(&self.made.join(format!("{name}.{ending}")));
        let mut arguments: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
        arguments.extend([word(&file), "--output".to_owned(), word(folder)]);
        arguments.extend(["--csv", "--details", "--plain"].map(str::to_owned));
        arguments.extend(["--junit".to_owned(), at("xml"), "--markdown".to_owned(), at("md")]);
        let variables = self.variables.clone();
        let running = std::thread::spawn(move || observed(name, &arguments, &variables));
        Begun { running, _server: server }
    }

    /// Looks at processes until these runs have ended, and then at what was heard of them.
    fn look_at_all(&mut self, begun: Vec<Begun>) {
        while !begun.iter().all(|one| one.running.is_finished()) {
            self.law.look_at_processes(None);
            std::thread::sleep(LOOK_EVERY);
        }
        for one in begun {
            for (what, bytes) in one.running.join().unwrap() {
                self.law.look_at(&what, &bytes);
            }
        }
    }

    /// Runs `throng ARGUMENTS` with the variables; what it printed.
    fn throng(&mut self, arguments: &[&str], shows: bool) -> String {
        let variables: Vec<(&str, &str)> =
            self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        said(&self.law.throng(arguments, &variables, shows))
    }
}

fn word(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// 40 s: 18 runs of a second, six at a time, of which a watched one begins 5 s later; beside them a
/// search, which ends after some ten seconds, as nobody is served.
#[test]
fn no_secret_of_any_place_is_in_any_output() {
    let mut bench = Bench::new();
    let (_, text) = SCENARIOS.into_iter().find(|(name, _)| *name == "ovenmediaengine").unwrap();
    let found = bench.made.join("found");
    let search = bench.begin_by(&["find", "--start", "1", "--budget", "1m"], &found, "find", text);
    for scenarios in SCENARIOS.chunks(AT_ONCE) {
        let begun = scenarios.iter().map(|&(name, text)| bench.begin(name, text)).collect();
        bench.look_at_all(begun);
    }
    bench.look_at_all(vec![search]);
    assert!(found.join("run.db").is_file(), "there was no search");
    exports(&mut bench);
    comparisons(&mut bench);
    pages(&mut bench);
    let arguments = std::fs::read_to_string(bench.made.join("browser-arguments")).unwrap();
    assert!(arguments.contains("--proxy-server="), "{arguments}");
    let made = bench.made.clone();
    bench.law.look_below(&made);
    bench.law.holds();
}

/// What is said of each run alone, and its tables.
fn exports(bench: &mut Bench) {
    for (name, _) in SCENARIOS {
        let run = word(&bench.runs.join(name));
        for arguments in [
            &["report", &run, "--details", "--csv"][..],
            &["report", &run, "--json"],
            &["requests", &run],
            &["rerun", &run, "--print"],
        ] {
            bench.throng(arguments, false);
        }
        for format in ["csv", "jsonl"] {
            let folder = bench.made.join(format!("{name}-{format}"));
            let flag = format!("--{format}");
            let told = bench.throng(&["export", &run, &flag, "-o", &word(&folder)], false);
            assert!(folder.join(format!("run.{format}")).is_file(), "{name}: {told}");
        }
    }
}

/// What is said of several runs.
fn comparisons(bench: &mut Bench) {
    let at = |name: &str| word(&bench.made.join(name));
    let [runs, page, junit, markdown] =
        [word(&bench.runs), at("trend.html"), at("compare.xml"), at("compare.md")];
    let [one, other] = ["whep", "hls"].map(|name| word(&bench.runs.join(name)));
    bench.throng(&["trend", &runs, "--page", &page], false);
    bench.throng(&["trend", &runs, "--json"], false);
    bench.throng(&["compare", &one, &one, "--junit", &junit, "--markdown", &markdown], false);
    let two = ["compare", &one, &other, "--allow-different-machines", "--json"];
    bench.throng(&two, false);
    bench.throng(&["runs", &runs, "--json"], false);
    for made in [page, junit] {
        assert!(Path::new(&made).is_file(), "{made}");
    }
}

/// The pages of `throng serve`: the list, each run, a comparison, a trend, and events.
fn pages(bench: &mut Bench) {
    let served =
        Served::start_by(Command::new(THRONG), &["serve", &word(&bench.runs), "127.0.0.1:0"]);
    let url = served.url();
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let names: Vec<&str> = SCENARIOS.iter().map(|(name, _)| *name).collect();
    let more = ["/", "/compare?runs=whep,hls"].map(str::to_owned);
    let more = more.into_iter().chain([format!("/trend?runs={}", names.join(","))]);
    for path in names.iter().map(|name| format!("/{name}/")).chain(more) {
        let page = asked(address, &path, PAGE_WITHIN).unwrap();
        let begin = String::from_utf8_lossy(&page[..page.len().min(300)]).into_owned();
        assert!(begin.starts_with("HTTP/1.1 200"), "{path}: {begin}");
        bench.law.look_at(&format!("the served page {path}"), &page);
    }
    let events = asked(address, "/whep/events", EVENT_WITHIN).unwrap();
    assert!(String::from_utf8_lossy(&events).contains("text/event-stream"));
    bench.law.look_at("the events of a served page", &events);
}

/// 10 s: two servers are looked at, of which one gets a viewer.
#[test]
fn no_secret_is_said_of_what_a_first_scenario_is_made_for_nor_of_prices() {
    let mut bench = Bench::new();
    for (name, url) in [
        ("InitWhep", "whep+http://me:<user>@HOST/whep?sig=<query>"),
        ("InitBare", "http://me:<user>@HOST/hmac=<path>/live.m3u8?token=<query>"),
        ("InitRtsp", "rtsp://me:<~user>@127.0.0.1:9/cam?token=<~query>"),
        ("InitJanus", "janus+ws://HOST/streaming/1?path=/token=<path>/janus&pin=<pin>"),
    ] {
        let (url, told) = bench.law.filled(name, url);
        let server = refuses_with([told.join(" "), bench.named[0].1.clone()].join(" "));
        let url = url.replace("HOST", &server.address().to_string());
        let file = bench.given.join(format!("{name}.toml"));
        let token = ["--token", "env:THRONG_LAW_TOKEN"];
        bench.throng(&[&["init", &url, "-o", &word(&file)][..], &token].concat(), true);
        // Secrets of the URL are in the file, which is its owner's alone (docs/init.md).
        if let Ok(written) = std::fs::metadata(&file) {
            assert_eq!(written.permissions().mode() & 0o777, 0o600, "{name}");
        }
    }
    let (prices, _) = bench.law.filled(
        "Prices",
        "provider = \"p, http://me:<user>@h/\"\nas_of = \"2026-11\"\ncurrency = \"EUR\"\n\
         # api_token = \"<comment>\"\nnote = \"as http://h/prices?token=<query> says\"\n\
         [compute]\nvcpu_hour = 0.04\nmemory_gb_hour = 0.005\n[egress]\nper_gb = 0.09\n\
         [storage]\nper_gb_month = 0.02\n[requests]\nper_million = 0.4\n",
    );
    let file = word(&bench.given.join("prices.toml"));
    std::fs::write(&file, prices).unwrap();
    let (name, text) = SCENARIOS[0];
    let begun = bench.begin(name, text);
    bench.look_at_all(vec![begun]);
    let run = word(&bench.runs.join(name));
    let price = ["price", &run, "--viewers", "5", "--prices", &file];
    let told = bench.throng(&price, false);
    assert!(told.contains("http://…@h/") && told.contains("prices?token=…"), "{told}");
    bench.throng(&[&price[..], &["--json"]].concat(), false);
    bench.law.holds();
}
