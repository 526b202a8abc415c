//! The cost of a conference on a real Janus: publishers compared with those of pion, receivers of
//! many streams compared with viewers of one, and a conference in which all receive all.

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use throng_observation::Phase;
use throng_observation::run::RunData;
use throng_sim::janus::ROOM;
use throng_sim::namespace::Namespace;
use throng_store::RunFolder;

use crate::generator::{Account, Received};
use crate::process::{CoreTime, GENERATOR_CPU, Running, SERVER_CPU, Usage, now_s};

/// Between joins.
pub const EVERY: Duration = Duration::from_millis(50);
/// From the last join to the window.
const SETTLE: Duration = Duration::from_secs(3);

/// The generator and its crowd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Crowd {
    /// `throng view` whose participants send and receive nothing.
    Publishers(u32),
    /// The same on pion.
    PionPublishers(u32),
    /// `throng view` whose participants receive all others in the room and send nothing.
    Receivers(u32),
    /// `throng view` of a conference: all send and receive all.
    Conference(u32),
}

impl Crowd {
    fn size(self) -> u32 {
        let (Self::Publishers(size)
        | Self::PionPublishers(size)
        | Self::Receivers(size)
        | Self::Conference(size)) = self;
        size
    }

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Publishers(size) => format!("throng, {size} publishers"),
            Self::PionPublishers(size) => format!("pion, {size} publishers"),
            Self::Receivers(size) => format!("throng, {size} receivers"),
            Self::Conference(size) => format!("throng, a conference of {size}"),
        }
    }
}

/// The programs, and the folder of their runs.
#[derive(Debug)]
pub struct Bench<'a> {
    /// The namespace of Janus and generators.
    pub namespace: &'a Namespace,
    /// The address of Janus's signalling and media.
    pub address: Ipv4Addr,
    /// Janus's process.
    pub server_pid: u32,
    /// The binary `throng`.
    pub throng: &'a Path,
    /// The binary built from bench/pion-publisher.
    pub pion: Option<&'a Path>,
    /// The folder of the test card's files.
    pub clips: &'a Path,
    /// The window in which CPU time and packets are counted.
    pub window: Duration,
    /// Run folders go here.
    pub folder: PathBuf,
}

/// The cost of a crowd in one window.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The crowd.
    pub crowd: Crowd,
    /// Participants connected.
    pub connected: u32,
    /// CPU time in the window, microseconds.
    pub cpu_us: u64,
    /// The window, seconds.
    pub window_s: f64,
    /// Packets sent in it.
    pub sent: f64,
    /// Packets received in it.
    pub received: f64,
    /// Packets lost over the whole run.
    pub lost: i64,
    /// Resident memory at its end, kB.
    pub rss_kb: u64,
    /// The share of one CPU that Janus used.
    pub server_cpu_ratio: f64,
    /// The share of the window in which Janus's CPU was not idle.
    pub server_core_busy_ratio: f64,
    /// Share of the window in which threads were runnable but had no CPU.
    pub waited_ratio: f64,
    /// Received streams that played at all, and how many there would be if all played.
    pub streams: (usize, usize),
}

impl Measured {
    /// Why this run must not count; `None` if it counts.
    #[must_use]
    pub fn excluded(&self) -> Option<String> {
        let (connected, size) = (self.connected, self.crowd.size());
        if connected < size {
            return Some(format!("{connected} of {size} connected"));
        }
        (self.sent + self.received < 1.0).then(|| "no packet in the window".into())
    }

    /// CPU time per packet sent or received, microseconds.
    #[must_use]
    pub fn us_per_packet(&self) -> f64 {
        self.cpu_us as f64 / (self.sent + self.received).max(1.0)
    }

    /// The share of one CPU that it used.
    #[must_use]
    pub fn cpu_ratio(&self) -> f64 {
        self.cpu_us as f64 / 1e6 / self.window_s
    }
}

/// A crowd at work.
#[derive(Debug)]
pub struct Working {
    running: Running,
    count: Count,
}

#[derive(Debug)]
enum Count {
    Lines(Arc<Mutex<Account>>),
    Folder(PathBuf),
}

/// A line of output of pion's program.
#[derive(Deserialize)]
struct Line {
    connected: u32,
    packets: u64,
}

impl Bench<'_> {
    /// Starts a crowd on a CPU; it runs for `lasts`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&self, crowd: Crowd, lasts: Duration, cpu: usize) -> Result<Working> {
        let mut command = self.namespace.command("taskset");
        command.args(["-c", &cpu.to_string()]).stdin(Stdio::null());
        let (size, lasts) = (crowd.size().to_string(), format!("{}ms", lasts.as_millis()));
        let every = format!("{}ms", EVERY.as_millis());
        if let Crowd::PionPublishers(_) = crowd {
            let url = format!("ws://{}:8188/", self.address);
            command.arg(self.pion.context("no pion publisher")?).args(["-url", &url]);
            command.args([
                "-room",
                &ROOM.to_string(),
                "-n",
                &size,
                "-every",
                &every,
                "-for",
                &lasts,
            ]);
            command.arg("-video").arg(self.clips.join("card-240p.ivf"));
            command.arg("-audio").arg(self.clips.join("speech.opus.ogg")).stdout(Stdio::piped());
            let mut running = Running::start(&mut command)?;
            let account = follow(&mut running)?;
            return Ok(Working { running, count: Count::Lines(account) });
        }
        let number = std::fs::read_dir(&self.folder)?.count();
        let folder = self.folder.join(format!("run-{number}"));
        let url = format!("janus+ws://{}:8188/videoroom/{ROOM}", self.address);
        command
            .arg(self.throng)
            .args(["view", &url, "-n", &size, "--every", &every, "--for", &lasts]);
        let more = match crowd {
            Crowd::Publishers(_) => Some("crowd.subscribe=none"),
            Crowd::Receivers(_) => Some("crowd.publish=none"),
            _ => None,
        };
        if let Some(set) = more {
            command.args(["--set", set]);
        }
        command.args(["--quiet", "-o"]).arg(&folder).stdout(Stdio::null());
        Ok(Working { running: Running::start(&mut command)?, count: Count::Folder(folder) })
    }

    /// Runs a crowd and measures it.
    ///
    /// # Errors
    /// If it cannot be started or ends early.
    pub fn measure(&self, crowd: Crowd) -> Result<Measured> {
        let before = EVERY * crowd.size() + SETTLE;
        let working =
            self.start(crowd, before + self.window + Duration::from_secs(2), GENERATOR_CPU)?;
        std::thread::sleep(before);
        let ended = || format!("{} ended early", crowd.name());
        let (server_before, core_before) = (Usage::of(self.server_pid)?, CoreTime::of(SERVER_CPU)?);
        let first = Usage::of(working.running.id()).with_context(ended)?;
        std::thread::sleep(self.window);
        let last = Usage::of(working.running.id()).with_context(ended)?;
        let (server, core) = (Usage::of(self.server_pid)?, CoreTime::of(SERVER_CPU)?);
        // pion counts once a second: its next line closes the window.
        std::thread::sleep(Duration::from_millis(1_100));
        let counted = working.end(crowd)?;
        let window_s = last.at_s - first.at_s;
        let between = |account: &Account| account.packets_between(first.at_s, last.at_s);
        Ok(Measured {
            crowd,
            connected: counted.sent.connected.max(counted.received.connected),
            cpu_us: last.cpu_us - first.cpu_us,
            window_s,
            sent: between(&counted.sent),
            received: between(&counted.received),
            lost: counted.received.lost.unwrap_or(0),
            rss_kb: last.rss_kb,
            server_cpu_ratio: (server.cpu_us - server_before.cpu_us) as f64
                / 1e6
                / (server.at_s - server_before.at_s),
            server_core_busy_ratio: core.busy_since(core_before),
            waited_ratio: last.waited_us.saturating_sub(first.waited_us) as f64 / 1e6 / window_s,
            streams: counted.streams,
        })
    }
}

/// The counts of a crowd.
#[derive(Debug, Default)]
struct Counted {
    sent: Account,
    received: Account,
    streams: (usize, usize),
}

impl Working {
    /// Waits for its end.
    fn end(mut self, crowd: Crowd) -> Result<Counted> {
        match &self.count {
            Count::Lines(account) => {
                let sent = account.lock().unwrap_or_else(PoisonError::into_inner).clone();
                Ok(Counted { sent, ..Counted::default() })
            }
            Count::Folder(folder) => {
                let code = self.running.ended_within(Duration::from_secs(60))?;
                code.context("throng did not end by itself")?;
                let run = RunFolder::read(folder).context("throng left no run that can be read")?;
                Ok(counted(&run, crowd))
            }
        }
    }

    /// Ends it at once.
    pub fn stop(self) {
        drop(self);
    }
}

fn counted(run: &RunData, crowd: Crowd) -> Counted {
    let start_s = run.info.started_at_unix_us as f64 / 1e6;
    let up =
        run.participants.iter().filter(|p| p.reached.contains_key(&Phase::DtlsConnected)).count();
    let connected = u32::try_from(up).unwrap_or(u32::MAX);
    let account = |rows: Vec<(i64, u64)>, lost| Account {
        received: over_time(start_s, rows),
        connected,
        lost,
        ..Account::default()
    };
    let sent = run.sent.iter().map(|row| (row.second, row.counters.packets_sent)).collect();
    let counters = run.series.iter().map(|row| (row.second, row.counters));
    let received =
        counters.map(|(second, c)| (second, c.packets_original + c.packets_recovered)).collect();
    let lost = run.tracks.iter().map(|track| track.counters.packets_lost).sum();
    let playing = run.tracks.iter().filter(|track| track.counters.frames_decodable > 0).count();
    let expected = match crowd {
        Crowd::Conference(size) => (size * (size - 1) * 2) as usize,
        _ => run.tracks.len(),
    };
    Counted {
        sent: account(sent, None),
        received: account(received, Some(lost)),
        streams: (playing, expected),
    }
}

/// Counts of seconds as sums up to the end of each.
fn over_time(start_s: f64, mut rows: Vec<(i64, u64)>) -> Vec<Received> {
    rows.sort_unstable();
    let mut packets = 0;
    let mut sums = vec![Received { at_s: start_s, packets }];
    for second in rows.chunk_by(|a, b| a.0 == b.0) {
        packets += second.iter().map(|(_, count)| count).sum::<u64>();
        let at = second.first().map_or(0, |(second, _)| *second);
        sums.push(Received { at_s: start_s + (at + 1) as f64, packets });
    }
    sums
}

fn follow(running: &mut Running) -> Result<Arc<Mutex<Account>>> {
    let lines = running.child().stdout.take().context("its output is not piped")?;
    let account = Arc::new(Mutex::new(Account::default()));
    let filled = Arc::clone(&account);
    // Ends with the generator, whose output ends then.
    std::thread::spawn(move || {
        for line in BufReader::new(lines).lines().map_while(Result::ok) {
            let Ok(line) = serde_json::from_str::<Line>(&line) else { continue };
            let mut account = filled.lock().unwrap_or_else(PoisonError::into_inner);
            account.received.push(Received { at_s: now_s(), packets: line.packets });
            account.connected = line.connected;
        }
    });
    Ok(account)
}

/// Fails if a program that the benchmark needs is missing.
///
/// # Errors
/// If `program` is not installed.
pub fn has(program: &str) -> Result<()> {
    let found =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    ensure!(found.is_ok(), "{program} is not installed: scripts/setup.sh test");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_sums_up_to_their_ends() {
        let sums = over_time(100.0, vec![(1, 5), (0, 10), (1, 7)]);
        let expect = [(100.0, 0), (101.0, 10), (102.0, 22)];
        assert_eq!(sums, expect.map(|(at_s, packets)| Received { at_s, packets }));
    }
}
