//! What a collector gets at the end of a command.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use throng_observation::run::RunInfo;
use throng_report::openmetrics::Metrics;
use throng_report::otlp::{Resource, Traces};
use tokio::sync::oneshot;

use super::collector::Collector;
use super::sender::Sender;
use crate::exporter::live::LiveFigures;

/// How long the command has ended before its spans are answered: who gave the request up at the
/// end has done so by then.
const ANSWERED_AFTER: Duration = Duration::from_millis(100);

/// Reads a request; its path.
fn path(stream: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    let length = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let mut body = vec![0; length.unwrap().1.trim().parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    head.split(' ').nth(1).unwrap().to_owned()
}

/// Answers for ever, and keeps the paths that were asked for. It takes all but some, and ends the
/// command while it has its spans.
fn serve(listener: &TcpListener, stop: oneshot::Sender<()>, asked: &Mutex<Vec<String>>) {
    let mut stop = Some(stop);
    for stream in listener.incoming() {
        let mut stream = BufReader::new(stream.unwrap());
        let path = path(&mut stream);
        let refused = if path == "/v1/traces" {
            drop(stop.take());
            std::thread::sleep(ANSWERED_AFTER);
            r#"{"partialSuccess":{"rejectedSpans":"1"}}"#
        } else {
            r#"{"partialSuccess":{"rejectedDataPoints":"3"}}"#
        };
        asked.lock().unwrap().push(path);
        let length = refused.len();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{refused}");
        // Who has given up reads no answer.
        let _ = stream.get_mut().write_all(answer.as_bytes());
    }
}

#[test]
fn what_is_sent_at_the_end_is_waited_for_and_not_sent_twice() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let keeps = Arc::clone(&asked);
    std::thread::spawn(move || serve(&listener, stop, &keeps));

    let traces = Traces::new(&RunInfo::default(), 7, 1);
    let figures = LiveFigures::new(Metrics::of_watch("1.2.3"), Some(traces));
    let folder = Path::new("no/run");
    figures.set_subject("lesson", folder, 0);
    figures.end(folder);
    let collector = Collector::of(&url).unwrap();
    let mut sender = Sender::new(collector, figures, Resource::new("1.2.3", "a"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let is_late = runtime.unwrap().block_on(sender.send_within(stopped));
    assert!(!is_late);
    assert_eq!(*asked.lock().unwrap(), ["/v1/metrics", "/v1/traces", "/v1/metrics"]);
    // Spans add up; points are the same ones each time.
    assert_eq!(sender.missing(is_late), ["1 spans were refused", "3 points were refused"]);
}
