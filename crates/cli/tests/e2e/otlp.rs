//! `--otlp`: what a collector gets of a command in progress, and what a run says of one that is not
//! there.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::throng::{Ran, Running, Stage, THRONG, plain, valid};

/// A server that keeps what it is sent, and answers all of it alike.
pub(crate) struct Recorder {
    address: SocketAddr,
    kept: Arc<Mutex<Vec<Recorded>>>,
}

#[derive(Clone, Debug)]
struct Recorded {
    /// Request line and headers.
    head: String,
    body: String,
}

impl Recorder {
    pub(crate) fn start(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let kept: Arc<Mutex<Vec<Recorded>>> = Arc::default();
        let keeps = Arc::clone(&kept);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let keeps = Arc::clone(&keeps);
                std::thread::spawn(move || serve(stream, status, &keeps));
            }
        });
        Self { address, kept }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All documents as they were sent, one after the other.
    pub(crate) fn bodies(&self) -> String {
        self.kept.lock().unwrap().iter().map(|one| one.body.as_str()).collect()
    }

    /// What was sent to a path.
    fn sent_to(&self, path: &str) -> Vec<Recorded> {
        let begin = format!("POST {path} HTTP/1.1\r\n");
        let kept = self.kept.lock().unwrap();
        kept.iter().filter(|one| one.head.starts_with(&begin)).cloned().collect()
    }

    /// The documents of a signal.
    fn documents(&self, path: &str) -> Vec<Value> {
        let sent = self.sent_to(path).into_iter();
        sent.map(|one| serde_json::from_str(&one.body).unwrap()).collect()
    }

    fn spans(&self) -> Vec<Value> {
        let documents = self.documents("/v1/traces").into_iter();
        let spans = documents.flat_map(|document| {
            document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
        });
        spans.collect()
    }
}

/// Reads a request, keeps it, and answers it then: who has the answer finds it kept.
fn serve(stream: TcpStream, status: &str, keeps: &Mutex<Vec<Recorded>>) -> Option<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    let length = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.map_or(0, |(_, length)| length.trim().parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    keeps.lock().unwrap().push(Recorded { head, body: String::from_utf8(body).ok()? });
    let rest = "Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    reader.get_mut().write_all(format!("HTTP/1.1 {status}\r\n{rest}").as_bytes()).ok()
}

/// A run of these arguments that sends to a collector.
fn ran(collector: &str, args: &[&str]) -> Ran {
    ran_by(Command::new(THRONG), collector, args)
}

/// The same by a command with variables of its own.
fn ran_by(mut command: Command, collector: &str, args: &[&str]) -> Ran {
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=hunter%202");
    command.env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=lab,service.name=lost");
    command.env("OTEL_SERVICE_NAME", "load");
    Running::spawn(command, &[args, &["--otlp", collector]].concat()).wait()
}

/// The value of an attribute of a span or a resource.
fn attribute<'a>(of: &'a Value, key: &str) -> Option<&'a str> {
    let mut all = of["attributes"].as_array()?.iter();
    all.find(|one| one["key"] == key)?["value"]["stringValue"].as_str()
}

#[test]
fn a_collector_gets_the_metrics_of_a_run_and_a_trace_of_each_join() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let target = stage.target();
    let view = ["view", &target, "-n", "2", "--every", "100ms", "--for", "3s", "--plain"];
    let (ran, collector) = valid(|| {
        let collector = Recorder::start("200 OK");
        (ran(&collector.url(), &view), collector)
    });
    let ran = ran.expect_code(0);
    assert!(ran.stderr.contains(&format!("otlp        {}\n", collector.url())), "{ran}");
    assert!(!ran.to_string().contains("hunter"), "{ran}");
    assert!(!ran.stderr.contains("did not arrive"), "{ran}");

    let sent = collector.sent_to("/v1/metrics");
    let head = sent[0].head.to_ascii_lowercase();
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    assert!(head.contains("x-key: hunter 2\r\n"), "{head}");
    let last = collector.documents("/v1/metrics").pop().unwrap();
    let resource = &last["resourceMetrics"][0]["resource"];
    assert_eq!(attribute(resource, "service.name"), Some("load"));
    assert_eq!(attribute(resource, "deployment.environment"), Some("lab"));
    let metrics = last["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let metric = |name: &str| {
        metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("{name}"))
    };
    let packets = &metric("throng_track_packets_original")["sum"]["dataPoints"][0]["asDouble"];
    assert!(packets.as_f64().unwrap() > 10.0, "{packets}");
    let joins = metric("throng_join_seconds")["histogram"]["dataPoints"].as_array().unwrap();
    assert!(joins.iter().any(|point| point["count"] == "2"), "{joins:?}");

    let spans = collector.spans();
    let named =
        |name: &str| -> Vec<&Value> { spans.iter().filter(|span| span["name"] == name).collect() };
    let sessions = named("session");
    assert_eq!(sessions.len(), 2, "{spans:#?}");
    for session in sessions {
        let frame = named("first_frame");
        let frame = frame.iter().find(|span| span["traceId"] == session["traceId"]).unwrap();
        assert_eq!(frame["parentSpanId"], session["spanId"]);
        assert_eq!(session["status"], Value::Null);
    }
    let ids: BTreeSet<&str> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), spans.len(), "each span is sent once");
    let run = named("run")[0];
    assert_eq!(attribute(run, "throng.outcome"), Some("met"), "{run}");
}

#[test]
fn who_asks_for_exponential_histograms_gets_them_alone() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let target = stage.target();
    let view = ["view", &target, "-n", "2", "--every", "100ms", "--for", "3s", "--plain"];
    let (ran, collector) = valid(|| {
        let (mut command, collector) = (Command::new(THRONG), Recorder::start("200 OK"));
        let variable = "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION";
        command.env(variable, "base2_exponential_bucket_histogram");
        (ran_by(command, &collector.url(), &view), collector)
    });
    ran.expect_code(0);
    let last = collector.documents("/v1/metrics").pop().unwrap();
    let metrics = last["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    assert!(metrics.iter().all(|metric| metric["histogram"].is_null()), "{metrics:?}");
    let joins = metrics.iter().find(|metric| metric["name"] == "throng_join_seconds").unwrap();
    let points = joins["exponentialHistogram"]["dataPoints"].as_array().unwrap();
    let number = |of: &Value| of.as_str().unwrap().parse::<u64>().unwrap();
    for point in points {
        let counts = point["positive"]["bucketCounts"].as_array().unwrap();
        let counted: u64 = counts.iter().map(number).sum();
        assert_eq!(number(&point["zeroCount"]) + counted, number(&point["count"]), "{point}");
    }
    assert!(points.iter().any(|point| point["count"] == "2"), "{points:?}");
}

#[test]
fn a_join_that_fails_is_a_trace_with_an_error_which_its_request_named() {
    let (server, collector) =
        (Recorder::start("503 Service Unavailable"), Recorder::start("200 OK"));
    let target = format!("whep+{}/whep", server.url());
    let ran = ran(&collector.url(), &["view", &target, "-n", "1", "--for", "2s", "--plain"]);
    let asked = server.sent_to("/whep");
    let headers = asked.first().unwrap_or_else(|| panic!("{ran}")).head.to_ascii_lowercase();
    let spans = collector.spans();
    let session = spans.iter().find(|span| span["name"] == "session").unwrap();
    let [trace, span] = ["traceId", "spanId"].map(|key| session[key].as_str().unwrap());
    assert!(headers.contains(&format!("traceparent: 00-{trace}-{span}-01\r\n")), "{headers}");
    assert_eq!(session["status"]["code"], 2, "{session}");
    assert_eq!(attribute(session, "error.type"), Some("http_503"));
}

#[test]
fn a_collector_that_is_away_or_silent_costs_a_run_a_message_and_two_seconds() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    // The port of a connection, which nobody else gets and nobody listens on.
    let connected = TcpStream::connect(silent.local_addr().unwrap()).unwrap();
    let closed = connected.local_addr().unwrap();
    let target = stage.target();
    let view = ["view", &target, "-n", "1", "--for", "3s", "--plain"];
    let (ran, ()) = valid(|| (ran(&format!("http://{closed}"), &view), ()));
    let ran = ran.expect_code(0);
    assert_eq!(ran.stderr.matches("the run goes on").count(), 1, "{ran}");
    assert!(ran.stderr.contains("spans did not arrive"), "{ran}");

    let url = format!("http://{}", silent.local_addr().unwrap());
    let began = Instant::now();
    let said = plain(&["watch", "--quiet", "--for", "2s", "--otlp", &url]);
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success() && text.contains("no answer in time"), "{text}");
    // Not the ten seconds that a request may take.
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
}

#[test]
fn a_url_with_a_password_is_refused_and_not_shown() {
    let target = "whep+http://127.0.0.1:9/whep";
    for command in [&["view", target, "-n", "1"][..], &["find", target], &["watch"]] {
        for url in ["http://me:hunter2@127.0.0.1:4318", "http://127.0.0.1:4318/?key=hunter2"] {
            let said = plain(&[command, &["--otlp", url]].concat());
            let text = String::from_utf8_lossy(&said.stderr);
            assert_eq!(said.status.code(), Some(2), "{command:?}: {text}");
            assert!(text.contains("--otlp: ") && !text.contains("hunter2"), "{text}");
        }
    }
}
