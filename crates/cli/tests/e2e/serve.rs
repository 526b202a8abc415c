//! `--serve` and `throng serve`: pages of runs, while they happen and afterwards.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use throng_observation::RunTime;
use throng_observation::run::{Ending, MARK_EVENT, RunInfo};
use throng_store::RunFolder;

use crate::matrix::Study;
use crate::throng::{Stage, THRONG, plain, started};

/// How long a page may take to show something on a busy machine.
const WITHIN: Duration = Duration::from_secs(60);

/// A command that serves pages; ended when dropped.
pub(crate) struct Served {
    child: Child,
    /// `127.0.0.1:PORT`, as it was printed.
    address: String,
    /// What follows it: the token, where the command has one.
    token: String,
}

impl Served {
    fn start(args: &[&str]) -> Self {
        Self::start_by(Command::new(THRONG), args)
    }

    /// By a command that starts throng.
    pub(crate) fn start_by(mut command: Command, args: &[&str]) -> Self {
        let mut child = started(command.args(args));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // Owned from the start, so that one that says no address is ended as well.
        let mut served = Self { child, address: String::new(), token: String::new() };
        let url = loop {
            let line = lines.next().expect("it says where its pages are").unwrap();
            if let Some((_, url)) = line.split_once(" http://") {
                break url.to_owned();
            }
        };
        // Whatever else it says is read, so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let (address, token) = url.split_once('/').unwrap();
        address.clone_into(&mut served.address);
        token.strip_prefix("#token=").unwrap_or_default().clone_into(&mut served.token);
        served
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The address as it was printed: who opens it may end the run.
    pub(crate) fn url_with_token(&self) -> String {
        format!("{}#token={}", self.url(), self.token)
    }

    fn connect(&self, method: &str, path: &str, headers: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(WITHIN)).unwrap();
        let host = &self.address;
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n").unwrap();
        stream
    }

    /// The answer to a request, with its head.
    fn ask(&self, method: &str, path: &str, headers: &str) -> String {
        let mut answer = String::new();
        self.connect(method, path, headers).read_to_string(&mut answer).unwrap();
        answer
    }

    /// Its events, as they come.
    fn events(&self) -> Events {
        Events(BufReader::new(self.connect("GET", "/events", "")))
    }

    /// Ctrl-C.
    pub(crate) fn interrupt(&self) {
        let interrupted =
            Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(interrupted.unwrap().success());
    }

    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        let until = Instant::now() + WITHIN;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("it goes on");
    }
}

/// What is told to who looks at a page.
struct Events(BufReader<TcpStream>);

impl Events {
    /// Waits until all of it has come, in whatever order.
    fn told(&mut self, wanted: &[&str]) {
        let (mut wanted, mut line) = (wanted.to_vec(), String::new());
        while !wanted.is_empty() {
            line.clear();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "no {wanted:?}");
            wanted.retain(|text| !line.contains(text));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_page_of_a_run_is_read_while_it_happens_and_ends_it_with_its_token() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let target = stage.target();
    let view = ["view", &target, "-n", "2", "--every", "50ms", "--for", "120s", "--quiet"];
    let more = ["--serve", "127.0.0.1:0", "--output", run.to_str().unwrap()];
    let mut served = Served::start(&[&view[..], &more].concat());

    let mut events = served.events();
    events.told(&["text/event-stream"]);
    // All parts at first, then those that change: the strip is of the live figures, the rest of
    // the folder.
    let figures = ["2 connected, 2 playing", "2 connected, 0 failed"];
    events.told(&["[[\"answer\",", "[[\"strip\",", figures[0], figures[1]]);
    let page = served.ask("GET", "/", "");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("connect-src 'self'"), "{page}");
    assert!(page.contains(figures[1]), "{page}");
    // Another process knows it as well.
    let beside = Served::start(&["serve", run.to_str().unwrap(), "127.0.0.1:0"]);
    for page in [page, beside.ask("GET", "/", "")] {
        assert!(page.contains("In progress, ") && page.contains(" of 120 s so far"), "{page}");
        assert!(!page.contains("Partial: "), "{page}");
    }
    drop(beside);
    let image = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n";
    assert!(served.ask("GET", "/", image).starts_with("HTTP/1.1 403"));

    let token = format!("Throng-Token: {}\r\n", served.token);
    let empty = "Content-Length: 0\r\n";
    assert_eq!(served.token.len(), 32);
    assert!(served.ask("POST", "/stop", empty).starts_with("HTTP/1.1 403"));
    let elsewhere = format!("{token}Origin: http://evil.example\r\n{empty}");
    assert!(served.ask("POST", "/stop", &elsewhere).starts_with("HTTP/1.1 403"));
    let own = format!("{token}Origin: http://{}\r\n{empty}", served.address);
    assert!(served.ask("POST", "/mark?text=the+cache+is+warm", &own).starts_with("HTTP/1.1 202"));
    events.told(&["the cache is warm"]);
    assert!(is_marked(&run));
    assert!(served.ask("POST", "/stop", &own).starts_with("HTTP/1.1 202"));
    events.told(&["event: end"]);
    assert_eq!(served.exit_code(), Some(130));
    let report = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(report.contains("the cache is warm") && !report.contains(&served.token));
    assert!(!run.join("run.db-wal").exists(), "a reader kept the database from becoming one file");
}

/// 25 s: a hundred connections a second are taken, one after another, beside a run of 20 s.
#[test]
fn of_a_thousand_open_pages_few_are_told_the_others_refused_and_the_run_goes_on() {
    let stage = Stage::start(None, "127.0.0.1:0", &[]);
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let target = stage.target();
    let view = ["view", &target, "-n", "2", "--every", "50ms", "--for", "20s", "--quiet"];
    let more = ["--serve", "127.0.0.1:0", "--output", run.to_str().unwrap()];
    let mut served = Served::start(&[&view[..], &more].concat());

    let mut told = Vec::new();
    let mut refused = 0;
    for _ in 0..1_000 {
        let mut page = BufReader::new(served.connect("GET", "/events", ""));
        let mut status = String::new();
        page.read_line(&mut status).unwrap();
        match status.trim_end() {
            "HTTP/1.1 200 OK" => told.push(std::thread::spawn(|| {
                Events(page).told(&["2 connected, 2 playing", "event: end"]);
            })),
            "HTTP/1.1 503 Service Unavailable" => refused += 1,
            _ => panic!("{status}"),
        }
    }
    assert_eq!((told.len(), refused), (16, 984));
    assert!(served.ask("GET", "/", "").starts_with("HTTP/1.1 200"), "the page itself is given");
    // Those that are told lose nothing while the others are refused, and the run ends in its time.
    told.into_iter().for_each(|page| page.join().unwrap());
    served.exit_code().unwrap();
    assert_eq!(RunFolder::read(&run).unwrap().ending, Ending::Complete);
}

/// 15 s: a run of 10 s, and the begin of a second one.
#[test]
fn the_page_of_a_matrix_follows_its_runs_leads_to_theirs_and_ends_it() {
    let study = Study::new(
        "repeats = 2\n[server]\nwatch = \"none\"\n[[factor]]\nname = \"workers\"\nlevels = [1]\n",
    );
    let (file, output) = (study.path("matrix.toml"), study.output());
    let matrix = ["matrix", file.to_str().unwrap(), "--output", output.to_str().unwrap()];
    let mut served = Served::start(&[&matrix[..], &["--serve", "127.0.0.1:0"]].concat());

    let mut events = served.events();
    events.told(&["run 1 of 2", "What limits each cell"]);
    // Before it begins, what the first one measured is known.
    events.told(&["run 2 of 2", "last workers=1, run 1: "]);
    let of_first = "/cells/01_workers=1/1/report.html";
    let page = served.ask("GET", "/", "");
    assert!(page.contains("; not finished") && !page.contains("<button>Mark"), "{page}");
    let page = served.ask("GET", of_first, "");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("id=\"part-charts\""), "{page}");
    let second = served.ask("GET", "/cells/01_workers=1/2/", "");
    assert!(second.starts_with("HTTP/1.1 200"), "{second}");
    for path in ["/cells/01_workers=1/3/", "/cells/../matrix.toml", "/matrix.toml"] {
        assert!(served.ask("GET", path, "").starts_with("HTTP/1.1 404"), "{path}");
    }

    let empty = "Content-Length: 0\r\n";
    assert!(served.ask("POST", "/stop", empty).starts_with("HTTP/1.1 403"));
    let token = format!("Throng-Token: {}\r\n{empty}", served.token);
    assert!(served.ask("POST", "/mark?text=now", &token).starts_with("HTTP/1.1 404"));
    assert!(served.ask("POST", "/stop", &token).starts_with("HTTP/1.1 202"));
    events.told(&["event: end"]);
    assert_eq!(served.exit_code(), Some(130), "as after Ctrl-C");
    assert!(study.is_port_free(), "its server is stopped");
    assert_eq!(study.answer()["partial"], true);
    let report = std::fs::read_to_string(output.join("report.html")).unwrap();
    assert!(report.contains(&of_first[1..]) && !report.contains(&served.token));
}

fn is_marked(run: &Path) -> bool {
    let run = RunFolder::read(run).unwrap();
    run.events.iter().any(|event| event.kind == MARK_EVENT)
}

#[test]
fn a_folder_of_runs_is_served_as_a_list_and_only_read() {
    let folder = tempfile::tempdir().unwrap();
    for (name, started_at_unix_us) in [("first", 1_000_000), ("second <b>", 2_000_000)] {
        let info = RunInfo { started_at_unix_us, ..RunInfo::default() };
        let writer = RunFolder::create(folder.path().join(name), &info).unwrap();
        writer.finish(Ending::Complete, RunTime(5_000_000)).unwrap();
    }
    let runs = folder.path().to_str().unwrap();
    let mut served = Served::start(&["serve", runs, "127.0.0.1:0"]);
    let list = served.ask("GET", "/", "");
    assert!(list.contains("./first/") && list.contains("./second%20%3Cb%3E/"), "{list}");
    assert!(!list.contains("<b>") && list.contains("2 runs"), "{list}");
    let page = served.ask("GET", "/second%20%3Cb%3E/", "");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("part-answer"), "{page}");
    assert!(served.ask("GET", "/..%2Ffirst/", "").starts_with("HTTP/1.1 404"));
    assert!(served.ask("POST", "/stop", "Content-Length: 0\r\n").starts_with("HTTP/1.1 405"));
    served.interrupt();
    assert_eq!(served.exit_code(), Some(0));
}

#[test]
fn a_port_of_pages_that_is_taken_ends_the_command_before_anything_is_sent() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let target = "whep+http://127.0.0.1:9/whep";
    for command in [&["view", target, "-n", "1", "--for", "1s", "--serve"][..], &["serve", "."]] {
        let said = plain(&[command, &[&address]].concat());
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.status.code(), Some(2), "{command:?}: {text}");
        assert!(text.contains(&address) && text.contains("help: "), "{command:?}: {text}");
    }
    let said = plain(&["watch", "--serve", "127.0.0.1:0"]);
    assert_eq!(said.status.code(), Some(2), "its page is made from the file of --output");
    let said = plain(&["serve", "/nowhere", "127.0.0.1:0"]);
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.code() == Some(2) && text.contains("help: runs are in"), "{text}");
}
