//! Who reads of a run while it happens: a scraper, its page with its events, and a collector of
//! OpenTelemetry.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::otlp::Recorder;
use crate::throng::{THRONG, started};

/// How often the figures are scraped.
const SCRAPE_EVERY: Duration = Duration::from_millis(200);

/// How long an answer may take on a busy machine.
const WITHIN: Duration = Duration::from_secs(60);

/// An output, and what was in it.
pub(super) type Heard = (String, Vec<u8>);

/// Runs `throng ARGUMENTS`, which make a run called `name`, until its end; all that it said, and
/// that its readers got.
pub(super) fn observed(
    name: &str,
    arguments: &[String],
    variables: &[(String, String)],
) -> Vec<Heard> {
    let collector = Recorder::start("200 OK");
    let mut command = Command::new(THRONG);
    command.args(arguments).envs(variables.iter().map(|(variable, value)| (variable, value)));
    command.args(["--prometheus", "127.0.0.1:0", "--serve", "127.0.0.1:0"]);
    let mut child = started(command.args(["--otlp", &collector.url()]));
    let (mut said, mut readers) = (String::new(), Vec::new());
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        readers.extend(readers_of(&line));
        said.push_str(&line);
        said.push('\n');
    }
    let output = child.wait_with_output().unwrap().stdout;
    assert_eq!(readers.len(), 3, "{name}: who was to read of it\n{said}");
    let mut heard = vec![("errors".to_owned(), said.into_bytes()), ("output".to_owned(), output)];
    for (what, reader) in readers {
        let bytes = reader.join().unwrap();
        assert!(!bytes.is_empty(), "{name}: {what} had nothing");
        heard.push((what.to_owned(), bytes));
    }
    let sent = collector.bodies();
    assert!(sent.contains("resourceMetrics") && sent.contains("resourceSpans"), "{name}: {sent}");
    heard.push(("documents for the collector".to_owned(), sent.into_bytes()));
    heard.into_iter().map(|(what, bytes)| (format!("the {what} of {name}"), bytes)).collect()
}

/// The readers of what a line says is served, each with what it reads.
fn readers_of(line: &str) -> Vec<(&'static str, JoinHandle<Vec<u8>>)> {
    let served = line.split_once(" http://").and_then(|(what, url)| {
        let (address, _) = url.split_once('/')?;
        Some((what.trim(), address.to_owned()))
    });
    let Some((what, address)) = served else { return Vec::new() };
    match what {
        "metrics" => vec![("metrics", std::thread::spawn(move || scraped(&address)))],
        "page" => {
            let page = address.clone();
            vec![
                ("page", std::thread::spawn(move || asked(&page, "/", WITHIN).unwrap())),
                ("events of the page", std::thread::spawn(move || events(&address))),
            ]
        }
        _ => Vec::new(),
    }
}

/// The figures, again and again, until nobody answers.
fn scraped(address: &str) -> Vec<u8> {
    let mut all = Vec::new();
    while let Ok(figures) = asked(address, "/metrics", WITHIN) {
        all.extend(figures);
        std::thread::sleep(SCRAPE_EVERY);
    }
    all
}

/// All events of a page, which end with its run.
fn events(address: &str) -> Vec<u8> {
    asked(address, "/events", WITHIN).unwrap()
}

/// The answer to a request with its head: all of it, or of events what came before for so long
/// nothing came.
pub(super) fn asked(address: &str, path: &str, within: Duration) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(within))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
    let (mut answer, mut bytes) = (Vec::new(), [0; 64 * 1024]);
    // An error is the end of the process that answers, or of the time.
    while let Ok(length @ 1..) = stream.read(&mut bytes) {
        answer.extend(&bytes[..length]);
    }
    Ok(answer)
}
