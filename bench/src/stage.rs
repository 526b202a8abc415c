//! Viewers beyond what Janus can send to from one core, against throng's own stage on a core of its
//! own.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::Serialize;
use throng_sim::namespace::Namespace;

use crate::floor::Floor;
use crate::generator::{Crowd, Generator, Media, Receive, Target};
use crate::machine;
use crate::measure::STEAL_MAX;
use crate::page;
use crate::process::{CoreTime, GENERATOR_CPU, Running, SERVER_CPU, Usage};
use crate::stream::Rate;

const EVERY: Duration = Duration::from_millis(20);
const SETTLE: Duration = Duration::from_secs(5);
/// A stage whose core was busy for more than this may have been the limit.
pub const STAGE_BUSY_MAX: f64 = 0.9;
/// The viewers and their bit rate, of which the last column of the table calculates the share of a
/// core.
const CALCULATED: (f64, f64) = (2_500.0, 1e6);

/// A test card of the stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Card {
    /// 640×360, 30 frames a second, about 1 Mbit/s
    Standard,
    /// 320×180, 15 frames a second, about 100 kbit/s
    Low,
}

impl Card {
    /// Its name on throng's command line, and in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Low => "low",
        }
    }

    fn fps(self) -> u64 {
        match self {
            Self::Standard => 30,
            Self::Low => 15,
        }
    }
}

/// The conditions of all runs on a stage.
#[derive(Debug)]
pub struct Bench<'a> {
    /// The binary `throng`.
    pub throng: &'a Path,
    /// The namespace of stage and viewers.
    pub namespace: &'a Namespace,
    /// The window in which CPU time and packets are counted.
    pub window: Duration,
    /// Run folders go here.
    pub folder: PathBuf,
}

/// The cost of a crowd on the stage.
#[derive(Clone, Debug, Serialize)]
pub struct OnStage {
    /// What the stage played.
    pub card: Card,
    /// How the viewers received.
    pub receive: Receive,
    /// Why they did not to the end.
    pub gave_ring_up: Option<String>,
    /// Viewers requested.
    pub viewers: u32,
    /// Viewers connected.
    pub connected: u32,
    /// The failure reasons of viewers.
    pub failures: Vec<String>,
    /// The window, seconds.
    pub window_s: f64,
    /// Packets received in it.
    pub packets: f64,
    /// Video of the whole run.
    pub video: Media,
    /// Audio of the whole run.
    pub audio: Media,
    /// Packets lost over the whole run.
    pub lost: i64,
    /// Datagrams that the generator's own sockets and rings dropped over the whole run.
    pub drops: u64,
    /// CPU time in it, microseconds.
    pub cpu_us: u64,
    /// CPU time of the stage, microseconds.
    pub stage_cpu_us: u64,
    /// The share of the window in which the stage's CPU was not idle.
    pub stage_core_busy_ratio: f64,
    /// Share of the window in which the generator's threads waited for their CPU.
    pub waited_ratio: f64,
    /// The share of the generator's CPU that the hypervisor withheld.
    pub steal_ratio: f64,
    /// Resident memory at its end, kB.
    pub rss_kb: u64,
    /// The part of it that is receive rings, kB.
    pub ring_kb: u64,
    /// Load average at its end.
    pub load: f64,
}

impl OnStage {
    /// CPU time per packet received, microseconds.
    #[must_use]
    pub fn us_per_packet(&self) -> f64 {
        self.cpu_us as f64 / self.packets
    }

    /// Whether the stage may have been the limit.
    #[must_use]
    pub fn is_stage_full(&self) -> bool {
        self.stage_core_busy_ratio > STAGE_BUSY_MAX
    }

    /// The stream that one viewer received.
    #[must_use]
    pub fn rate(&self) -> Rate {
        let packets_per_s = self.packets / self.window_s / f64::from(self.viewers);
        let all = (self.video.packets + self.audio.packets).max(1) as f64;
        let of = |media: Media| packets_per_s * media.packets as f64 / all;
        let (video, audio) = (of(self.video), of(self.audio));
        let (video_bytes, audio_bytes) = (self.video.packet_bytes(), self.audio.packet_bytes());
        Rate {
            video_packets_per_s: video,
            video_packet_bytes: video_bytes,
            audio_packets_per_s: audio,
            audio_packet_bytes: audio_bytes,
            bits_per_s: 8.0 * (video * video_bytes + audio * audio_bytes),
            fps: self.card.fps(),
        }
    }
}

/// A run of the floor with packets like those of a card.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OnFloor {
    /// Which card.
    pub card: Card,
    /// The run.
    pub floor: Floor,
}

/// All measurements on the stage of one benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// The start of the benchmark.
    pub date: String,
    /// The command line.
    pub command: String,
    /// The stream of viewers on Janus, whose packets the calculated share of a core is for.
    pub janus_stream: Rate,
    /// Runs of one viewer: the cost of the process itself, and the stream of a viewer.
    pub alone: Vec<OnStage>,
    /// Runs of crowds.
    pub playing: Vec<OnStage>,
    /// Runs of the floor.
    pub floor: Vec<OnFloor>,
    /// Runs that were repeated and are not part of the above, as too much CPU time was stolen from
    /// them: a sentence for each.
    pub repeated: Vec<String>,
}

impl Bench<'_> {
    /// Runs `viewers` of a stage of their own.
    ///
    /// # Errors
    /// If stage or viewers cannot be started, or the viewers end early.
    pub fn run(&self, card: Card, receive: Receive, viewers: u32) -> Result<OnStage> {
        let mut command = self.namespace.command(&self.throng.to_string_lossy());
        command.args(["stage", "--listen", "127.0.0.1:7080", "--card", card.name()]);
        let mut stage = Running::start(command.stdin(Stdio::null()).stdout(Stdio::piped()))?;
        let output = stage.child().stdout.take().context("its output is not piped")?;
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let url = lines
            .find_map(|line| Some(format!("whep+{}", line.trim().strip_prefix("watch")?.trim())));
        let url = url.context("the stage did not start")?;
        let before = EVERY * viewers + SETTLE;
        let crowd =
            Crowd { viewers, every: EVERY, lasts: before + self.window + Duration::from_secs(3) };
        let number = std::fs::read_dir(&self.folder)?.count();
        let folder = self.folder.join(format!("stage-{number}"));
        let target = Target::new(url);
        let generator =
            Generator::throng(self.throng, self.namespace, crowd, receive, &target, &folder)?;
        std::thread::sleep(before);
        let ended_early = "the viewers ended early";
        let (stage_core, own_core) = (CoreTime::of(SERVER_CPU)?, CoreTime::of(GENERATOR_CPU)?);
        let began = Usage::of(generator.pid()).context(ended_early)?;
        let stage_began = Usage::of(stage.id())?;
        std::thread::sleep(self.window);
        let ended = Usage::of(generator.pid()).context(ended_early)?;
        let stage_ended = Usage::of(stage.id())?;
        let stage_core_busy_ratio = CoreTime::of(SERVER_CPU)?.busy_since(stage_core);
        let steal_ratio = CoreTime::of(GENERATOR_CPU)?.steal_since(own_core);
        let load = machine::load();
        let account = generator.account()?;
        let window_s = ended.at_s - began.at_s;
        Ok(OnStage {
            card,
            receive,
            viewers,
            connected: account.connected,
            window_s,
            packets: account.packets_between(began.at_s, ended.at_s),
            video: account.video,
            audio: account.audio,
            lost: account.lost.unwrap_or(0),
            drops: account.drops.unwrap_or(0),
            gave_ring_up: account.gave_ring_up.filter(|_| receive == Receive::Ring),
            failures: account.failures,
            cpu_us: ended.cpu_us - began.cpu_us,
            stage_cpu_us: stage_ended.cpu_us - stage_began.cpu_us,
            stage_core_busy_ratio,
            waited_ratio: ended.waited_us.saturating_sub(began.waited_us) as f64 / 1e6 / window_s,
            steal_ratio,
            rss_kb: ended.rss_kb,
            ring_kb: ended.ring_kb,
            load,
        })
    }
}

impl Results {
    /// The run of one viewer like those of `crowd`.
    fn alone(&self, crowd: &OnStage) -> Option<&OnStage> {
        self.alone.iter().find(|one| (one.card, one.receive) == (crowd.card, crowd.receive))
    }

    fn floor(&self, card: Card, viewers: u32, receive: Receive) -> Option<&Floor> {
        let mut all = self.floor.iter().filter(|run| run.card == card).map(|run| &run.floor);
        all.find(|floor| (floor.viewers, floor.receive) == (viewers, receive))
    }

    /// The table and its notes, in Markdown.
    #[must_use]
    pub fn table(&self) -> String {
        let loads = || self.playing.iter().map(|run| run.load);
        let (least, most) = (loads().fold(f64::INFINITY, f64::min), loads().fold(0.0, f64::max));
        let mut out = format!(
            "{}, by `{}`; load average {least:.1} to {most:.1}.\n\n",
            self.date, self.command
        );
        out += "| Viewers | Card | Receive | Connected | Failed | Lost | Drops | Packets, of one \
                viewer's | µs/packet | of the floor | CPU of the viewers | CPU of the stage | its \
                core busy | Steal | Memory | Ring, MB | kB/viewer | a core for 2,500 × 1 Mbit/s, \
                calculated \
                |\n|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:\
                |---:|---:|\n";
        let mut sizes: Vec<(u32, Card)> =
            self.playing.iter().map(|run| (run.viewers, run.card)).collect();
        sizes.dedup();
        for (viewers, card) in sizes {
            let runs = self.playing.iter().filter(|run| (run.viewers, run.card) == (viewers, card));
            out.extend(runs.map(|run| self.row(run)));
            let floors =
                Receive::ALL.into_iter().filter_map(|receive| self.floor(card, viewers, receive));
            out.extend(floors.map(|floor| self.floor_row(card, floor)));
        }
        let _ = writeln!(
            out,
            "\nThe last column is calculated, not measured: the row's CPU time per packet, times \
             the packets that 2,500 viewers of 1 Mbit/s would get if they were of {:.0} bytes, \
             the mean on Janus ({:.0} packets/s a viewer). Smaller packets, as those of the low \
             card, cost less to decrypt each.",
            self.janus_stream.packet_bytes(),
            self.calculated_packets_per_s() / CALCULATED.0,
        );
        if self.playing.iter().any(OnStage::is_stage_full) {
            let _ = writeln!(
                out,
                "\n{FULL} The stage's core was busy for more than {:.0} % of the window: the \
                 stage may have been the limit.",
                100.0 * STAGE_BUSY_MAX
            );
        }
        let notes = page::stolen(&out, &self.repeated);
        out += &notes;
        for run in self.alone.iter().chain(&self.playing) {
            let who = format!("{} viewers {}", run.viewers, run.receive.name());
            if let Some(why) = &run.gave_ring_up {
                let _ = writeln!(out, "\n**{who} gave their ring up**: {why}");
            }
            if let Some(first) = run.failures.first() {
                let _ = writeln!(out, "\n**Of {who} some failed**, the first of: {first}");
            }
        }
        out
    }

    fn row(&self, run: &OnStage) -> String {
        let one = self.alone(run);
        let others = f64::from(run.viewers.saturating_sub(1).max(1));
        let memory = one.map(|one| run.rss_kb.saturating_sub(one.rss_kb) as f64 / others);
        let expected =
            one.map(|one| one.packets / one.window_s * run.window_s * f64::from(run.viewers));
        let floor = self.floor(run.card, run.viewers, Receive::Sockets);
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".into());
        let us = run.us_per_packet();
        format!(
            "| {} | {} | {}{} | {} | {} | {} | {} | {} | {us:.2}{} | {} | {} | {} | {:.0} %{} | \
             {:.0} % | {:.0} MB | {:.0} | {} | {} |\n",
            run.viewers,
            run.card.name(),
            run.receive.name(),
            if run.gave_ring_up.is_some() { " (given up)" } else { "" },
            run.connected,
            run.failures.len(),
            run.lost,
            run.drops,
            or_none(expected.map(|expected| format!("{:.1} %", 100.0 * run.packets / expected))),
            page::mark(run.steal_ratio > STEAL_MAX),
            or_none(floor.map(|floor| format!("{:.2}", us / floor.cpu_us_per_packet))),
            of_a_core(run.cpu_us, run.window_s),
            of_a_core(run.stage_cpu_us, run.window_s),
            100.0 * run.stage_core_busy_ratio,
            if run.is_stage_full() { FULL } else { "" },
            100.0 * run.steal_ratio,
            run.rss_kb as f64 / 1024.0,
            run.ring_kb as f64 / 1024.0,
            or_none(memory.map(|kb| format!("{kb:.0}"))),
            self.calculated(us),
        )
    }

    fn floor_row(&self, card: Card, floor: &Floor) -> String {
        let us = floor.cpu_us_per_packet;
        let of = self
            .floor(card, floor.viewers, Receive::Sockets)
            .map(|floor| us / floor.cpu_us_per_packet);
        format!(
            "| {} | {} | {} | | | | {} | | {us:.2}{} | {} | | | | {:.0} % | | | | {} |\n",
            floor.viewers,
            card.name(),
            Floor::name(floor.receive),
            floor.drops.map_or(String::new(), |drops| drops.to_string()),
            page::mark(floor.steal_ratio > STEAL_MAX),
            of.map_or(String::new(), |of| format!("{of:.2}")),
            100.0 * floor.steal_ratio,
            self.calculated(us),
        )
    }

    /// Packets that the viewers of the last column would get, if they were as large as those on
    /// Janus.
    fn calculated_packets_per_s(&self) -> f64 {
        let (viewers, bits_per_s) = CALCULATED;
        viewers * bits_per_s / 8.0 / self.janus_stream.packet_bytes()
    }

    fn calculated(&self, us_per_packet: f64) -> String {
        format!("{:.0} %", us_per_packet * self.calculated_packets_per_s() / 1e4)
    }
}

/// The mark of a row whose stage may have been the limit.
const FULL: &str = "†";

fn of_a_core(cpu_us: u64, window_s: f64) -> String {
    format!("{:.0} % of a core", cpu_us as f64 / 1e4 / window_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(receive: Receive, viewers: u32, us_per_packet: f64) -> OnStage {
        let packets = 1000.0 * f64::from(viewers);
        OnStage {
            card: Card::Standard,
            receive,
            gave_ring_up: None,
            viewers,
            connected: viewers,
            failures: Vec::new(),
            window_s: 10.0,
            packets,
            video: Media { packets: 3000, bytes: 3_000_000 },
            audio: Media { packets: 1000, bytes: 200_000 },
            lost: 0,
            drops: 0,
            cpu_us: (us_per_packet * packets) as u64,
            stage_cpu_us: 5_000_000,
            stage_core_busy_ratio: 0.5,
            waited_ratio: 0.0,
            steal_ratio: 0.0,
            rss_kb: 10_000 + 40 * u64::from(viewers),
            ring_kb: 1024,
            load: 1.5,
        }
    }

    fn results() -> Results {
        let floor = |receive, cpu_us_per_packet| {
            let (packets, packets_per_s, drops, steal_ratio) = (1000, 100.0, None, 0.0);
            let viewers = 300;
            let floor = Floor {
                receive,
                viewers,
                packets,
                packets_per_s,
                cpu_us_per_packet,
                drops,
                steal_ratio,
            };
            OnFloor { card: Card::Standard, floor }
        };
        let one = run(Receive::Ring, 1, 9.0);
        Results {
            date: "today".into(),
            command: "bench/run.sh".into(),
            janus_stream: one.rate(),
            alone: vec![one],
            playing: vec![run(Receive::Sockets, 300, 8.0), run(Receive::Ring, 300, 5.0)],
            floor: vec![floor(Receive::Sockets, 4.0), floor(Receive::Ring, 2.0)],
            repeated: Vec::new(),
        }
    }

    #[test]
    fn the_stream_of_a_viewer_is_read_from_what_it_received() {
        let rate = run(Receive::Ring, 1, 9.0).rate();
        let packets = (rate.video_packets_per_s, rate.audio_packets_per_s, rate.packets_per_s());
        assert_eq!(packets, (75.0, 25.0, 100.0));
        let bytes = (rate.video_packet_bytes, rate.audio_packet_bytes, rate.packet_bytes());
        assert_eq!(bytes, (1000.0, 200.0, 800.0));
        assert_eq!((rate.bits_per_s, rate.fps), (640_000.0, 30));
    }

    #[test]
    fn both_ways_stand_above_both_floors_with_a_calculated_share() {
        let text = results().table();
        for row in [
            "| 300 | standard | by sockets | 300 | 0 | 0 | 0 | – | 8.00 | 2.00 |",
            "| 300 | standard | by the ring | 300 | 0 | 0 | 0 | 100.0 % | 5.00 | 1.25 | 15 % of a core | 50 % of a core | 50 % |",
            // 390,625 packets/s of 800 bytes.
            "| 21 MB | 1 | 40 | 195 % |\n",
            "| 300 | standard | floor | | | |  | | 4.00 | 1.00 |",
            "| 300 | standard | floor, by the ring | | | |  | | 2.00 | 0.50 |",
            "(156 packets/s a viewer)",
        ] {
            assert!(text.contains(row), "{row}\n{text}");
        }
        assert!(!text.contains(FULL) && !text.contains(page::STOLEN), "{text}");
    }

    #[test]
    fn a_full_stage_and_stolen_time_are_marked_and_explained() {
        let mut results = results();
        for run in &mut results.playing {
            run.stage_core_busy_ratio = 0.95;
            run.steal_ratio = 0.2;
        }
        let text = results.table();
        for part in
            ["| 5.00\\* |", "| 95 %† | 20 % |", "\n† The stage's core", "\n\\* The hypervisor"]
        {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
