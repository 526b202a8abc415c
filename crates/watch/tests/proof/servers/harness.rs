//! Shared by the tests: a server in a folder of its own, requests to it, and the rows of its
//! watcher.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_observation::host::{HostId, HostRow, SeriesId};
use throng_observation::pack::{EndpointKind, Pack};
use throng_watch::logs::access::UriGroups;
use throng_watch::logs::{LogKind, LogSource, Patterns, Tail};
use throng_watch::scrape::{AddressCheck, Credentials, Endpoint, Filter, Scraper};
use throng_watch::{Clock, ReadingWriter, RowReceiver, RowSender, clock_from, packs};

/// The path of a program, also in directories outside a user's PATH; without it the test is
/// skipped.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(["/usr/sbin", "/sbin"]).map(Path::new);
    let found = folders.map(|folder| folder.join(program)).find(|path| path.exists());
    if found.is_none() {
        throng_sim::skipped(&format!("{program} is not installed (scripts/setup.sh test)"));
    }
    found
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// A program that ends when this is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) folder: tempfile::TempDir,
}

impl Server {
    /// Writes `files` into a folder (`@` in them and in the arguments is its path), starts the
    /// program there and waits until it accepts connections.
    pub(crate) fn start(
        program: &Path,
        arguments: &[&str],
        files: &[(&str, &str)],
        port: u16,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display().to_string();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text.replace('@', &here)).unwrap();
        }
        let output = File::create(folder.path().join("output")).unwrap();
        let child = Command::new(program)
            .args(arguments.iter().map(|argument| argument.replace('@', &here)))
            .env("XDG_DATA_HOME", folder.path())
            .env("XDG_CONFIG_HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        let server = Self { child, folder };
        let until = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(
                Instant::now() < until,
                "{} did not come up:\n{}",
                program.display(),
                server.output()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    fn output(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("output")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One request over HTTP/1.1; the answer's bytes.
pub(crate) fn get(port: u16, path: &str) -> Vec<u8> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// A watched server and its rows.
pub(crate) struct Watched {
    rows: RowSender,
    receiver: RowReceiver,
    pub(crate) clock: Clock,
    series: BTreeMap<SeriesId, String>,
    values: Vec<(String, f64)>,
    pub(crate) events: Vec<String>,
}

impl Watched {
    pub(crate) fn new() -> Self {
        let (rows, receiver) = throng_watch::rows(100_000);
        let clock = clock_from(Instant::now());
        Self {
            rows,
            receiver,
            clock,
            series: BTreeMap::new(),
            values: Vec::new(),
            events: Vec::new(),
        }
    }

    pub(crate) fn writer(&self) -> ReadingWriter {
        ReadingWriter::new(HostId(0), self.rows.clone())
    }

    /// Reads an access log with the groups of these packs.
    pub(crate) fn access(&self, tail: &mut Tail, log: PathBuf, names: &[&str]) {
        let packs = named(names);
        let groups = UriGroups::new(packs.iter().flat_map(|pack| &pack.uri_groups)).unwrap();
        let reader = LogKind::Access(Arc::new(groups));
        tail.follow("access", LogSource::File(log), reader, self.writer(), self.clock.clone())
            .unwrap();
    }

    /// Reads a log with the patterns of these packs.
    pub(crate) fn lines(&self, tail: &mut Tail, log: &str, source: LogSource, names: &[&str]) {
        let packs = named(names);
        let patterns = Patterns::new(packs.iter().flat_map(|pack| &pack.logs)).unwrap();
        let reader = LogKind::Lines(Arc::new(patterns));
        tail.follow(log, source, reader, self.writer(), self.clock.clone()).unwrap();
    }

    /// Scrapes an endpoint each half second, with the pack's metrics filter.
    pub(crate) fn scrape(
        &self,
        pack: &str,
        kind: EndpointKind,
        url: &str,
        credentials: Credentials,
    ) -> Scraper {
        self.asker(pack, kind, url, credentials)()
    }

    /// The same, to be started where the endpoint can be reached.
    pub(crate) fn asker(
        &self,
        pack: &str,
        kind: EndpointKind,
        url: &str,
        credentials: Credentials,
    ) -> impl FnOnce() -> Scraper + Send + use<> {
        let mut endpoint = Endpoint::new("endpoint", url, kind).unwrap();
        let packs = named(&[pack]);
        let known = packs[0].endpoints.iter().find(|endpoint| endpoint.kind == kind).unwrap();
        endpoint.filter = Filter::of_pack(known);
        endpoint.interval = Duration::from_millis(500);
        endpoint.credentials = credentials;
        let loopback: AddressCheck =
            Arc::new(|address| if address.is_loopback() { Ok(()) } else { Err("not here".into()) });
        let (writer, clock) = (self.writer(), self.clock.clone());
        move || Scraper::start(vec![(endpoint, writer)], &clock, &loopback).unwrap()
    }

    /// Takes the rows that have arrived.
    pub(crate) fn take(&mut self) {
        for row in self.receiver.try_iter() {
            match row {
                HostRow::Series(series) => {
                    let labels = series
                        .labels
                        .iter()
                        .filter(|(name, _)| !matches!(name.as_str(), "log" | "endpoint"));
                    let labels: Vec<_> =
                        labels.map(|(name, value)| format!("{name}={value}")).collect();
                    self.series
                        .insert(series.id, format!("{}[{}]", series.metric, labels.join(",")));
                }
                HostRow::Sample(sample) => {
                    self.values.push((self.series[&sample.series].clone(), sample.value));
                }
                HostRow::Event(event) => self.events.push(event.detail),
                HostRow::Info(_) | HostRow::Profile(_) => {}
            }
        }
    }

    /// The values of all series whose name and labels contain these words.
    pub(crate) fn values(&mut self, words: &[&str]) -> Vec<f64> {
        self.take();
        let fits = |(name, value): &&(String, f64)| {
            words.iter().all(|word| name.contains(word)) && !value.is_nan()
        };
        self.values.iter().filter(fits).map(|(_, value)| *value).collect()
    }

    /// Waits for the first value that satisfies `wanted`.
    pub(crate) fn wait(&mut self, words: &[&str], wanted: impl Fn(f64) -> bool) -> f64 {
        let until = Instant::now() + Duration::from_secs(15);
        loop {
            if let Some(value) = self.values(words).into_iter().find(|value| wanted(*value)) {
                return value;
            }
            let names: Vec<_> = self.series.values().collect();
            assert!(
                Instant::now() < until,
                "{words:?} did not come; events {:?}, series {names:?}",
                self.events
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

pub(crate) fn named(names: &[&str]) -> Vec<Pack> {
    let all = packs::built_in();
    names.iter().map(|name| all.iter().find(|pack| pack.pack == *name).unwrap().clone()).collect()
}
