//! The programs that are compared: how each is started, and the source of its own packet count.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use throng_observation::run::{RECEIVE_SOCKETS_EVENT, RunData};
use throng_observation::{MediaKind, Phase};
use throng_sim::namespace::Namespace;
use throng_store::RunFolder;

use crate::process::{GENERATOR_CPU, Running, now_s};

/// A generator that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// pion without interceptors: no RTCP at all, like OvenRtcTester.
    PionSilent,
    /// pion with its default interceptors: receiver reports, NACK, transport-cc.
    PionFeedback,
    /// `throng view --receive sockets`: RTCP feedback and all meters.
    ThrongSockets,
    /// `throng view --receive ring`: the same.
    Throng,
}

impl Kind {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PionSilent => "pion, no RTCP (as OvenRtcTester)",
            Self::PionFeedback => "pion, default RTCP",
            Self::ThrongSockets => "throng, by sockets",
            Self::Throng => "throng, by the ring",
        }
    }

    /// How throng receives; `None` of another generator.
    #[must_use]
    pub fn receive(self) -> Option<Receive> {
        match self {
            Self::PionSilent | Self::PionFeedback => None,
            Self::ThrongSockets => Some(Receive::Sockets),
            Self::Throng => Some(Receive::Ring),
        }
    }
}

/// How the datagrams of playing viewers are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receive {
    /// By a socket for each viewer.
    Sockets,
    /// By a memory-mapped ring for all.
    Ring,
}

impl Receive {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sockets, Self::Ring];

    /// Its name on throng's command line.
    #[must_use]
    pub fn flag(self) -> &'static str {
        match self {
            Self::Sockets => "sockets",
            Self::Ring => "ring",
        }
    }

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sockets => "by sockets",
            Self::Ring => "by the ring",
        }
    }
}

/// The paths of the programs; absent ones are left out.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The binary `throng`.
    pub throng: Option<PathBuf>,
    /// The binary built from bench/pion-viewer.
    pub pion: Option<PathBuf>,
}

impl Programs {
    /// The generators that can be run.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        let pion = self.pion.iter().flat_map(|_| [Kind::PionSilent, Kind::PionFeedback]);
        pion.chain(self.throng.iter().flat_map(|_| [Kind::ThrongSockets, Kind::Throng])).collect()
    }

    /// Sends a crowd of `kind` at `target`. throng's run folder is a new one in `folder`.
    ///
    /// # Errors
    /// If its program is absent or cannot be started.
    pub fn start(
        &self,
        kind: Kind,
        namespace: &Namespace,
        crowd: Crowd,
        target: &Target,
        folder: &Path,
    ) -> Result<Generator> {
        let Some(receive) = kind.receive() else {
            let pion = self.pion.as_deref().context("no pion viewer")?;
            return Generator::pion(pion, namespace, crowd, target, kind == Kind::PionFeedback);
        };
        let throng = self.throng.as_deref().context("no throng")?;
        // A unique number for each run.
        let number = std::fs::read_dir(folder)?.count();
        Generator::throng(
            throng,
            namespace,
            crowd,
            receive,
            target,
            &folder.join(format!("run-{number}")),
        )
    }
}

/// What viewers are sent at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The URL, as both programs take it.
    pub url: String,
    /// Further arguments of throng.
    pub throng: Vec<String>,
    /// Further arguments of the pion viewer.
    pub pion: Vec<String>,
}

impl Target {
    /// A URL that needs no further arguments.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), throng: Vec::new(), pion: Vec::new() }
    }
}

/// A crowd to send.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// Viewers.
    pub viewers: u32,
    /// Time between joins.
    pub every: Duration,
    /// How long the generator runs, from its start.
    pub lasts: Duration,
}

/// The packets that a generator had received at a moment, by its own count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Received {
    /// When, seconds since the Unix epoch.
    pub at_s: f64,
    /// RTP packets so far.
    pub packets: u64,
}

/// A generator's own figures at its end.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Packets over time, in order.
    pub received: Vec<Received>,
    /// Viewers whose ICE and DTLS were done.
    pub connected: u32,
    /// Lost packets, as far as it detects them; pion does not report any.
    pub lost: Option<i64>,
    /// Viewers that failed, with their reasons, as far as it reports them.
    pub failures: Vec<String>,
    /// Datagrams that its own sockets and rings dropped; only throng counts them.
    pub drops: Option<u64>,
    /// Why throng gave its ring up during the run.
    pub gave_ring_up: Option<String>,
    /// All video that throng received.
    pub video: Media,
    /// All audio that throng received.
    pub audio: Media,
}

/// Packets of one kind over a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Media {
    /// RTP packets.
    pub packets: u64,
    /// Their bytes, RTP headers included.
    pub bytes: u64,
}

impl Media {
    /// The mean size of a packet, RTP header included, bytes.
    #[must_use]
    pub fn packet_bytes(&self) -> f64 {
        self.bytes as f64 / self.packets.max(1) as f64
    }
}

impl Account {
    /// Packets received between two moments; linear between the moments that it counted at.
    #[must_use]
    pub fn packets_between(&self, from_s: f64, to_s: f64) -> f64 {
        self.at(to_s) - self.at(from_s)
    }

    fn at(&self, at_s: f64) -> f64 {
        let after =
            self.received.iter().position(|r| r.at_s >= at_s).unwrap_or(self.received.len());
        let earlier = after.checked_sub(1).and_then(|index| self.received.get(index));
        match (earlier, self.received.get(after)) {
            (Some(a), Some(b)) => {
                let share = (at_s - a.at_s) / (b.at_s - a.at_s);
                a.packets as f64 + share * (b.packets - a.packets) as f64
            }
            (Some(only), None) | (None, Some(only)) => only.packets as f64,
            (None, None) => 0.0,
        }
    }
}

/// A running generator.
#[derive(Debug)]
pub struct Generator {
    running: Running,
    counter: Counter,
}

#[derive(Debug)]
enum Counter {
    /// pion's lines of output, as they arrive.
    Lines(Arc<Mutex<Account>>),
    /// throng's run folder, read at the end.
    Folder(PathBuf),
}

/// A line of the pion viewer.
#[derive(Deserialize)]
struct Line {
    connected: u32,
    packets: u64,
}

impl Generator {
    /// Sends pion viewers at `target`, with or without pion's default RTCP.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn pion(
        program: &Path,
        namespace: &Namespace,
        crowd: Crowd,
        target: &Target,
        feedback: bool,
    ) -> Result<Self> {
        let mut command = pinned(namespace, program);
        command.args(["-url", &target.url, "-n", &crowd.viewers.to_string()]).args(&target.pion);
        command.args(["-every", &millis(crowd.every), "-for", &millis(crowd.lasts)]);
        command.args(feedback.then_some("-feedback")).stdout(Stdio::piped());
        let mut running = Running::start(&mut command)?;
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
        Ok(Self { running, counter: Counter::Lines(account) })
    }

    /// Sends throng's viewers at `target`, which receive only in the given way; its run folder is
    /// `folder`, which must not exist.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn throng(
        program: &Path,
        namespace: &Namespace,
        crowd: Crowd,
        receive: Receive,
        target: &Target,
        folder: &Path,
    ) -> Result<Self> {
        let mut command = pinned(namespace, program);
        command.args(["view", &target.url, "-n", &crowd.viewers.to_string()]).args(&target.throng);
        command.args(["--quiet", "-o"]).arg(folder);
        command.args(["--receive", receive.flag()]);
        command
            .args(["--every", &millis(crowd.every), "--for", &millis(crowd.lasts)])
            .stdout(Stdio::null());
        let running = Running::start(&mut command)?;
        Ok(Self { running, counter: Counter::Folder(folder.to_owned()) })
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.running.id()
    }

    /// Waits for its end (throng writes its folder until then) and returns its account.
    ///
    /// # Errors
    /// If throng does not end by itself, or left no run folder.
    pub fn account(mut self) -> Result<Account> {
        match &self.counter {
            Counter::Lines(account) => {
                Ok(account.lock().unwrap_or_else(PoisonError::into_inner).clone())
            }
            Counter::Folder(folder) => {
                let code = self.running.ended_within(Duration::from_secs(60))?;
                code.context("throng did not end by itself")?;
                read_folder(folder)
            }
        }
    }
}

/// `program` inside the namespace and on the generator's CPU. Both wrappers exec it, so the process
/// id is its own.
fn pinned(namespace: &Namespace, program: &Path) -> Command {
    let mut command = namespace.command("taskset");
    command.args(["-c", &GENERATOR_CPU.to_string()]).arg(program).stdin(Stdio::null());
    command
}

fn millis(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}

fn read_folder(folder: &Path) -> Result<Account> {
    let run = RunFolder::read(folder).context("throng left no run that can be read")?;
    let start_s = run.info.started_at_unix_us as f64 / 1e6;
    let mut rows: Vec<(i64, u64)> = run
        .series
        .iter()
        .map(|row| (row.second, row.counters.packets_original + row.counters.packets_recovered))
        .collect();
    rows.sort_unstable();
    let mut received = vec![Received { at_s: start_s, packets: 0 }];
    let mut packets = 0;
    for (index, (second, count)) in rows.iter().enumerate() {
        packets += count;
        if rows.get(index + 1).is_none_or(|(next, _)| next != second) {
            received.push(Received { at_s: start_s + (second + 1) as f64, packets });
        }
    }
    let connected =
        run.participants.iter().filter(|p| p.reached.contains_key(&Phase::DtlsConnected)).count();
    let failures =
        run.participants.iter().filter_map(|p| p.failure().map(|reason| format!("{reason:?}")));
    Ok(Account {
        received,
        connected: u32::try_from(connected)?,
        lost: Some(run.tracks.iter().map(|track| track.counters.packets_lost).sum()),
        failures: failures.collect(),
        drops: Some(drops(&run)),
        gave_ring_up: run
            .events
            .iter()
            .find(|event| event.kind == RECEIVE_SOCKETS_EVENT)
            .map(|event| event.detail.to_string()),
        video: media(&run, MediaKind::Video),
        audio: media(&run, MediaKind::Audio),
    })
}

/// The threads' own drops; the row of the process may repeat their sum.
fn drops(run: &RunData) -> u64 {
    let sum = |of_thread: bool| {
        let rows = run.generator.iter().filter(|row| row.thread.is_some() == of_thread);
        rows.map(|row| row.socket_drops).sum::<u64>()
    };
    sum(true).max(sum(false))
}

fn media(run: &RunData, kind: MediaKind) -> Media {
    let tracks = run.tracks.iter().filter(|track| track.kind == kind).map(|track| &track.counters);
    tracks.fold(Media::default(), |sum, counters| Media {
        packets: sum.packets + counters.packets_original,
        bytes: sum.bytes + counters.payload_bytes + counters.header_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_between_are_interpolated_and_never_beyond_the_count() {
        let counts = [(10.0, 0), (11.0, 100), (12.0, 300)];
        let received = counts.map(|(at_s, packets)| Received { at_s, packets }).to_vec();
        let account = Account { received, ..Account::default() };
        let check = |from: f64, to: f64, expect: f64| {
            assert_eq!(account.packets_between(from, to), expect, "from {from} to {to}");
        };
        check(10.0, 12.0, 300.0);
        check(10.5, 11.5, 150.0);
        check(11.0, 11.25, 50.0);
        check(0.0, 99.0, 300.0);
        assert_eq!(Account::default().packets_between(1.0, 2.0), 0.0);
    }

    #[test]
    fn both_ways_of_throng_are_generators_of_their_own() {
        let programs = Programs { throng: Some("throng".into()), pion: None };
        assert_eq!(programs.kinds(), [Kind::ThrongSockets, Kind::Throng]);
        assert_eq!(
            programs.kinds().into_iter().filter_map(Kind::receive).collect::<Vec<_>>(),
            Receive::ALL
        );
        assert_eq!(serde_json::to_string(&Receive::ALL).unwrap(), r#"["sockets","ring"]"#);
    }

    #[test]
    fn drops_of_threads_are_not_counted_again_with_those_of_the_process() {
        use throng_observation::run::GeneratorRow;
        let row =
            |thread, socket_drops| GeneratorRow { thread, socket_drops, ..GeneratorRow::default() };
        let run = RunData {
            generator: vec![row(Some(0), 3), row(Some(1), 4), row(None, 7)],
            ..RunData::default()
        };
        assert_eq!(drops(&run), 7);
    }
}
