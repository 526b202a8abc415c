//! `--prometheus`: the figures of a command in progress, as a scraper reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::throng::{Stage, THRONG, plain, started};

#[path = "../../../report/src/openmetrics/tests/decoder.rs"]
mod decoder;

/// How long figures may take to appear on a busy machine.
const WITHIN: Duration = Duration::from_secs(30);

/// A command that serves its figures; ended when dropped.
struct Exporter {
    child: Child,
    /// `127.0.0.1:PORT`, as it was printed.
    address: String,
}

impl Exporter {
    fn start(args: &[&str]) -> Self {
        let all = [args, &["--prometheus", "127.0.0.1:0"]].concat();
        let mut child = started(Command::new(THRONG).args(all));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // Owned from the start, so that one that says no address is ended as well.
        let mut exporter = Self { child, address: String::new() };
        exporter.address = loop {
            let line = lines.next().expect("it says where its figures are").unwrap();
            if let Some(url) = line.strip_prefix("metrics") {
                let address = url.trim().strip_prefix("http://").unwrap();
                break address.strip_suffix("/metrics").unwrap().to_owned();
            }
        };
        // Whatever else it says is read, so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        exporter
    }

    fn ask(&self, headers: &str) -> String {
        ask(&self.address, headers)
    }

    fn scrape(&self, is_there: impl Fn(&BTreeMap<String, f64>) -> bool) -> BTreeMap<String, f64> {
        scrape(&self.address, is_there)
    }
}

/// The answer to a request, with its head.
fn ask(address: &str, headers: &str) -> String {
    String::from_utf8(ask_for_bytes(address, headers)).unwrap()
}

/// See [`ask`].
fn ask_for_bytes(address: &str, headers: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(WITHIN)).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\n{headers}\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// The series of a scrape of `127.0.0.1:PORT`, once `is_there` finds in them what it looks for.
pub(crate) fn scrape(
    address: &str,
    is_there: impl Fn(&BTreeMap<String, f64>) -> bool,
) -> BTreeMap<String, f64> {
    let until = Instant::now() + WITHIN;
    loop {
        let answer = ask(address, &format!("Host: {address}\r\n"));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200") && body.ends_with("# EOF\n"), "{answer}");
        assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
        let series = body.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let value = value.parse::<f64>().unwrap_or_else(|e| panic!("{line}: {e}"));
            (series.to_owned(), value)
        });
        let series: BTreeMap<String, f64> = series.collect();
        if is_there(&series) {
            return series;
        }
        assert!(Instant::now() < until, "{body}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The sum of all series of a name.
fn sum(series: &BTreeMap<String, f64>, name: &str) -> f64 {
    let of = series.iter().filter(|(series, _)| series.split('{').next() == Some(name));
    of.map(|(_, value)| value).sum()
}

#[test]
fn a_run_is_scraped_while_its_counters_grow() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("run-of-metrics");
    let target = stage.target();
    let view = ["view", &target, "-n", "3", "--every", "50ms", "--for", "60s", "--quiet"];
    let more = ["--objective", "video.loss < 50%", "--output", output.to_str().unwrap()];
    let exporter = Exporter::start(&[&view[..], &more].concat());
    let packets = "throng_track_packets_original_total";
    let first = exporter.scrape(|series| {
        sum(series, packets) > 0.0 && sum(series, "throng_join_seconds_count") > 0.0
    });
    let second = exporter.scrape(|series| sum(series, packets) > sum(&first, packets));
    assert!(second.len() < 2_000, "{}", second.len());
    let info = second.keys().find(|series| series.starts_with("throng_info{")).unwrap();
    assert!(info.contains("run=\"run-of-metrics\""), "{info}");
    assert_eq!(sum(&second, "throng_verdict"), 1.0, "{second:?}");
    assert!(sum(&second, "throng_generator_cpu_seconds_total") > 0.0);
    // The other format, and a name that leads here.
    let host = format!("Host: {}\r\n", exporter.address);
    let answer = exporter.ask(&format!("{host}Accept: text/plain\r\n"));
    assert!(answer.contains("text/plain; version=0.0.4") && !answer.contains("# EOF"), "{answer}");
    assert!(exporter.ask("Host: evil.example\r\n").starts_with("HTTP/1.1 403"));
    assert_native_histograms(&exporter);
}

/// Who scrapes native histograms gets the families of text, with those of joins.
fn assert_native_histograms(exporter: &Exporter) {
    let host = format!("Host: {}\r\n", exporter.address);
    let accept = "Accept: application/vnd.google.protobuf;\
                  proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,\
                  application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1\r\n";
    let until = Instant::now() + WITHIN;
    loop {
        let text = exporter.ask(&format!("{host}Accept: text/plain\r\n"));
        let answer = ask_for_bytes(&exporter.address, &format!("{host}{accept}"));
        let end = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap();
        let head = std::str::from_utf8(&answer[..end]).unwrap();
        assert!(head.contains("application/vnd.google.protobuf; proto="), "{head}");
        let answer = decoder::read(&answer[end + 4..]);
        let heads = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let families: BTreeSet<&str> = heads.filter_map(|head| head.split(' ').next()).collect();
        let is_join = |series: &str| series.starts_with("throng_join_seconds{");
        let joins = answer.native.iter().filter(|(series, _)| is_join(series));
        let joins: u64 =
            joins.map(|(_, (zero, buckets))| zero + buckets.values().sum::<u64>()).sum();
        assert_eq!(joins as f64, sum(&answer.series, "throng_join_seconds_count"));
        // Both are of one moment, unless its second has ended between them.
        if joins > 0 && answer.kinds.keys().map(String::as_str).eq(families) {
            return;
        }
        assert!(Instant::now() < until, "{text}\n{:?}", answer.kinds);
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn clients_that_say_nothing_keep_nobody_from_the_figures() {
    let exporter = Exporter::start(&["watch", "--quiet", "--for", "60s"]);
    exporter.scrape(|series| sum(series, "throng_host_cpu_busy_seconds_total") > 0.0);
    // As many as are served at a time; each is cut off after 5 s.
    let silent: Vec<_> = (0..8).map(|_| TcpStream::connect(&exporter.address).unwrap()).collect();
    let asked_at = Instant::now();
    let series = exporter.scrape(|series| sum(series, "throng_host_watcher_rss_bytes") > 0.0);
    assert!(asked_at.elapsed() < Duration::from_secs(15), "{:?}", asked_at.elapsed());
    assert!(series.keys().any(|series| series.starts_with("throng_info{version=")));
    drop(silent);
}

#[test]
fn a_port_that_is_taken_is_said_before_anything_is_sent() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let target = "whep+http://127.0.0.1:9/whep";
    for command in [
        &["view", target, "-n", "1", "--for", "1s"][..],
        &["find", target, "--budget", "5m"],
        &["watch", "--for", "1s"],
    ] {
        let said = plain(&[command, &["--prometheus", &address]].concat());
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.status.code(), Some(2), "{command:?}: {text}");
        assert!(text.contains(&format!("--prometheus {address}: ")), "{command:?}: {text}");
        assert!(text.contains("help: "), "{command:?}: {text}");
    }
    let said = plain(&["watch", "--prometheus", "nonsense"]);
    assert!(!said.status.success());
    assert!(String::from_utf8_lossy(&said.stderr).contains("HOST:PORT"));
}
