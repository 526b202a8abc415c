//! The CPU time of a join on several servers: all runs, and their table.

use std::fmt::Write as _;

use serde::Serialize;

use crate::generator::Kind;
use crate::machine::Machine;
use crate::measure::Joining;
use crate::page;
use crate::results::{Spread, ms_per_join};
use crate::server::ServerKind;

/// The compared generators: the ring is for media, and a pion that sends RTCP has none to report
/// on.
pub const KINDS: [Kind; 2] = [Kind::ThrongSockets, Kind::PionSilent];
/// A join is to cost at most one in so many of pion's.
const GOAL: f64 = 4.0;

/// A run of joins on a server.
#[derive(Clone, Debug, Serialize)]
pub struct OnServer {
    /// Which server.
    pub server: ServerKind,
    /// The run.
    #[serde(flatten)]
    pub joining: Joining,
}

/// All measurements of one benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// The start of the benchmark.
    pub date: String,
    /// The command line.
    pub command: String,
    /// The machine.
    pub machine: Machine,
    /// Viewers of a crowd.
    pub viewers: u32,
    /// Runs with one viewer, and with a crowd.
    pub runs: Vec<OnServer>,
    /// Runs that were repeated and are not part of the above, as too much CPU time was stolen from
    /// them: a sentence for each.
    pub repeated: Vec<String>,
    /// Servers that could not be measured on, with the reason: a sentence for each.
    pub not_measured: Vec<String>,
}

impl Results {
    fn runs(&self, server: ServerKind, kind: Kind) -> impl Iterator<Item = &Joining> {
        let of = move |run: &&OnServer| (run.server, run.joining.kind) == (server, kind);
        self.runs.iter().filter(of).map(|run| &run.joining)
    }

    /// Runs with the whole crowd.
    fn crowds(&self, server: ServerKind, kind: Kind) -> impl Iterator<Item = &Joining> {
        self.runs(server, kind).filter(move |run| run.viewers == self.viewers)
    }

    /// Machine, table, and what was left out, in Markdown.
    #[must_use]
    pub fn table(&self) -> String {
        let machine = &self.machine;
        let mut out = format!(
            "{}, by `{}`. {}, {} cores, Linux {}. {}.\n\n",
            self.date,
            self.command,
            machine.cpu,
            machine.cores,
            machine.kernel,
            machine.versions.join(" · "),
        );
        out += "| Server | throng, ms/join | pion, ms/join | of pion | at most 1/4 | joined, \
                throng | joined, pion | Steal, % | Load average \
                |\n|---|---:|---:|---:|---|---:|---:|---:|---:|\n";
        out.extend(ServerKind::ALL.into_iter().filter_map(|server| self.row(server)));
        let _ = writeln!(
            out,
            "\nms/join: median (lowest to highest) of runs with {} viewers. *joined*: connected \
             viewers of each run. *Steal*: what the hypervisor withheld of the generator's CPU.",
            self.viewers
        );
        let notes = page::stolen(&out, &self.repeated);
        out += &notes;
        out += &list("Excluded, for not all viewers joined:", &self.excluded());
        out += &list("Not measured:", &self.not_measured);
        out
    }

    /// `None` of a server without runs.
    fn row(&self, server: ServerKind) -> Option<String> {
        self.runs.iter().find(|run| run.server == server)?;
        let [own, pion] = KINDS.map(|kind| ms_per_join(self.runs(server, kind), self.viewers));
        let ratio = own.zip(pion).map(|(own, pion)| pion.median / own.median);
        let verdict = ratio.map_or("–", |ratio| if ratio >= GOAL { "met" } else { "**missed**" });
        let both = || KINDS.into_iter().flat_map(move |kind| self.crowds(server, kind));
        Some(format!(
            "| {} | {} | {} | {} | {verdict} | {} | {} | {} | {} |\n",
            server.name(),
            page::spread(own, 2),
            page::spread(pion, 2),
            page::fraction(own, pion),
            self.joined(server, Kind::ThrongSockets),
            self.joined(server, Kind::PionSilent),
            page::spread(Spread::of(both().map(|run| 100.0 * run.steal_ratio)), 0),
            page::spread(Spread::of(both().map(|run| run.load)), 1),
        ))
    }

    /// `100, 99 of 100`: of each run with the whole crowd.
    fn joined(&self, server: ServerKind, kind: Kind) -> String {
        let counts: Vec<String> =
            self.crowds(server, kind).map(|run| run.connected.to_string()).collect();
        format!("{} of {}", counts.join(", "), self.viewers)
    }

    /// A sentence for each run that does not count.
    fn excluded(&self) -> Vec<String> {
        let excluded = self.runs.iter().filter_map(|run| {
            Some(format!(
                "{}, {}: {}",
                run.server.name(),
                run.joining.kind.name(),
                run.joining.excluded()?
            ))
        });
        excluded.collect()
    }
}

/// Empty without items.
fn list(head: &str, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let items: String = items.iter().map(|item| format!("- {item}\n")).collect();
    format!("\n{head}\n\n{items}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(server: ServerKind, kind: Kind, viewers: u32, connected: u32, cpu_ms: u64) -> OnServer {
        let joining = Joining {
            kind,
            viewers,
            connected,
            cpu_us: 1_000 * cpu_ms,
            steal_ratio: 0.0,
            load: 1.5,
        };
        OnServer { server, joining }
    }

    fn results(runs: Vec<OnServer>) -> Results {
        Results {
            date: "today".into(),
            command: "bench/joins.sh".into(),
            machine: Machine {
                cpu: "a CPU".into(),
                cores: 2,
                kernel: "6".into(),
                versions: Vec::new(),
            },
            viewers: 101,
            runs,
            repeated: Vec::new(),
            not_measured: Vec::new(),
        }
    }

    #[test]
    fn a_join_is_what_a_further_viewer_costs() {
        let [own, pion] = KINDS;
        let runs =
            [(own, 1, 100), (own, 101, 300), (own, 101, 400), (pion, 1, 50), (pion, 101, 1_100)];
        let runs = runs
            .map(|(kind, viewers, ms)| run(ServerKind::Srs, kind, viewers, viewers, ms))
            .to_vec();
        let text = results(runs).table();
        let row = "| SRS-like (stage) | 2.50 (2.00 to 3.00) | 10.50 | 1/4.2 | met | 101, 101 of 101 | 101 of 101 |";
        assert!(text.contains(row), "{row}\n{text}");
        assert!(!text.contains("Janus (real)") && !text.contains("Excluded"), "{text}");
    }

    #[test]
    fn runs_in_which_not_all_joined_are_listed_and_do_not_count() {
        let [own, pion] = KINDS;
        let runs =
            [(own, 1, 1, 100), (own, 101, 99, 300), (pion, 1, 1, 50), (pion, 101, 101, 1_100)];
        let runs = runs
            .map(|(kind, viewers, up, ms)| run(ServerKind::Ome, kind, viewers, up, ms))
            .to_vec();
        let mut results = results(runs);
        results.not_measured.push("LiveKit: it is not installed".into());
        let text = results.table();
        for part in [
            "| OME-like | – | 10.50 | – | – | 99 of 101 | 101 of 101 |",
            "\n- OME-like, throng, by sockets: 99 of 101 viewers joined\n",
            "\nNot measured:\n\n- LiveKit: it is not installed\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
