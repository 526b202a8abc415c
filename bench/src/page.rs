//! The generated parts of pages of docs/measurements, each between a pair of markers; the text
//! around them stays.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::floor::Floor;
use crate::generator::{Kind, Receive};
use crate::measure::{PACKETS_NEEDED, STEAL_MAX};
use crate::results::{Figures, Results, Spread};

/// Replaces the text between the markers of `part` in the file `page`.
///
/// # Errors
/// If the page or its markers do not exist.
pub fn put(page: &Path, part: &str, contents: &str) -> Result<()> {
    let text = fs::read_to_string(page).with_context(|| format!("{}", page.display()))?;
    let changed = replaced(&text, part, contents)
        .with_context(|| format!("{} has no markers of `{part}`", page.display()))?;
    fs::write(page, changed)?;
    Ok(())
}

fn replaced(text: &str, part: &str, contents: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {part}:begin -->"), format!("<!-- {part}:end -->"));
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{}\n{end}{after}", contents.trim()))
}

/// The comparison: machine, table, goals, and excluded runs.
#[must_use]
pub fn comparison(results: &Results) -> String {
    let mut out = String::new();
    let (machine, stream) = (&results.machine, &results.stream);
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(out, "{}, by `{}`.\n", results.date, results.command);
    let _ = writeln!(
        out,
        "{}, {} cores, Linux {}. {}. Load average {}; generators were runnable but without a CPU \
         for {} of the window. Stream: {:.2} Mbit/s, {:.0} packets/s a viewer ({:.0} of video, \
         mean {:.0} bytes; {:.0} of audio, {:.0} bytes).\n",
        machine.cpu,
        machine.cores,
        machine.kernel,
        machine.versions.join(" · "),
        Spread::of(results.playing.iter().map(|run| run.load))
            .map_or("not known".into(), |load| { format!("{:.1} to {:.1}", load.min, load.max) }),
        Spread::of(results.playing.iter().map(|run| 100.0 * run.waited_ratio))
            .map_or("not known".into(), |w| { format!("{:.0} to {:.0} %", w.min, w.max) }),
        stream.bits_per_s / 1e6,
        stream.packets_per_s(),
        stream.video_packets_per_s,
        stream.video_packet_bytes,
        stream.audio_packets_per_s,
        stream.audio_packet_bytes,
    );
    out += "| Viewers | Generator | µs/packet | of pion | of the floor | kB/viewer | of pion | \
            Ring, MB | ms/join | of pion | Steal, % | Janus, % | its CPU, % | Runs |\n";
    out += "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
    for viewers in results.sizes() {
        for kind in results.kinds() {
            out += &row(results, kind, viewers);
        }
        for receive in Receive::ALL {
            out += &floor_row(results, receive, viewers).unwrap_or_default();
        }
    }
    out += "\nEach cell: median (lowest to highest). *of pion*: of pion without RTCP · of pion \
            with its default RTCP. *of the floor*: of the floor with ordinary sockets. *Ring*: \
            the part of the process's memory that the kernel receives into. *Steal*: what the \
            hypervisor withheld of the generator's CPU. *Janus*: what it used of a CPU while they \
            played; *its CPU*: how long that, which feed and harness share, was not idle.\n";
    let notes = stolen(&out, &results.repeated);
    out += &notes;
    out += &goals(results);
    let excluded = results.excluded();
    if excluded.is_empty() {
        out += "\nNo run was excluded.\n";
    } else {
        let _ = writeln!(
            out,
            "\nExcluded, for not all viewers connected or less than {} % of the packets \
             received:\n",
            PACKETS_NEEDED * 100.0
        );
        out.extend(excluded.iter().map(|run| format!("- {run}\n")));
    }
    out
}

/// What an asterisk means, if `table` has one, and which runs were repeated.
pub(crate) fn stolen(table: &str, repeated: &[String]) -> String {
    let (mut out, most) = (String::new(), 100.0 * STEAL_MAX);
    if table.contains(STOLEN) {
        let _ = writeln!(
            out,
            "\n{STOLEN} The hypervisor withheld more than {most:.0} % of the generator's CPU \
             during a run, and during its repetition as well."
        );
    }
    if !repeated.is_empty() {
        let _ = writeln!(
            out,
            "\nRepeated once, since the hypervisor withheld more than {most:.0} % of the CPU: {}.",
            repeated.join("; ")
        );
    }
    out
}

/// The mark of a figure of which too much CPU time was stolen.
pub(crate) const STOLEN: &str = "\\*";

pub(crate) fn mark(is_stolen: bool) -> &'static str {
    if is_stolen { STOLEN } else { "" }
}

fn floor_row(results: &Results, receive: Receive, viewers: u32) -> Option<String> {
    let own = results.floor_us(receive, viewers)?;
    let of_floor =
        results.floor_us(Receive::Sockets, viewers).map(|floor| own.median / floor.median);
    Some(format!(
        "| {viewers} | {} | {} | | {} | | | | | | {} | | | {} |\n",
        Floor::name(receive),
        spread(Some(own), 2),
        of_floor.map_or(String::new(), |ratio| format!("{ratio:.2}")),
        spread(results.floor_steal_percent(receive, viewers), 0),
        own.count,
    ))
}

fn row(results: &Results, kind: Kind, viewers: u32) -> String {
    let own = results.figures(kind, viewers);
    let against = |figure: fn(&Figures) -> Option<Spread>| {
        if kind.receive().is_none() {
            return String::new();
        }
        let pions = [Kind::PionSilent, Kind::PionFeedback];
        pions
            .map(|pion| fraction(figure(&own), figure(&results.figures(pion, viewers))))
            .join(" · ")
    };
    let of_floor = own.us_per_packet.zip(results.floor_us(Receive::Sockets, viewers));
    format!(
        "| {viewers} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} of {} |\n",
        kind.name(),
        spread(own.us_per_packet, 2),
        against(|figures| figures.us_per_packet),
        of_floor.map_or(String::new(), |(own, floor)| format!("{:.2}", own.median / floor.median)),
        spread(own.kb_per_viewer, 0),
        against(|figures| figures.kb_per_viewer),
        if kind == Kind::Throng { spread(own.ring_mb, 0) } else { String::new() },
        spread(own.ms_per_join, 2),
        against(|figures| figures.ms_per_join),
        spread(own.steal_percent, 0),
        spread(own.server_percent, 0),
        spread(own.server_busy_percent, 0),
        own.us_per_packet.map_or(0, |spread| spread.count),
        own.runs,
    )
}

/// `median (lowest to highest)`, with its mark; a dash without measurements.
pub(crate) fn spread(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or("–".into(), |s| {
        let mark = mark(s.is_stolen);
        if s.count == 1 {
            return format!("{:.digits$}{mark}", s.median);
        }
        format!("{:.digits$}{mark} ({:.digits$} to {:.digits$})", s.median, s.min, s.max)
    })
}

/// `1/4.2`: a median as a fraction of another.
pub(crate) fn fraction(own: Option<Spread>, of: Option<Spread>) -> String {
    own.zip(of).map_or("–".into(), |(own, of)| format!("1/{:.1}", of.median / own.median))
}

/// A goal: what is measured, and whether that meets it.
type Goal = fn(&Results, Kind, u32) -> Option<(String, bool)>;

/// The goals of throng. pion is the one without RTCP, which is how OvenRtcTester works.
const GOALS: [(&str, Goal); 4] = [
    (
        "CPU per packet at most 1.3 of the ordinary sockets' floor (with feedback and meters)",
        of_floor,
    ),
    ("CPU per packet at most 1/7 of pion without RTCP", |results, kind, viewers| {
        of_pion(results, kind, viewers, 7.0, |figures| figures.us_per_packet)
    }),
    ("memory at most 50 kB a viewer", memory),
    ("CPU per join at most 1/4 of pion without RTCP", |results, kind, viewers| {
        of_pion(results, kind, viewers, 4.0, |figures| figures.ms_per_join)
    }),
];

fn of_floor(results: &Results, kind: Kind, viewers: u32) -> Option<(String, bool)> {
    let own = results.figures(kind, viewers).us_per_packet?;
    let floor = results.floor_us(Receive::Sockets, viewers)?;
    let ratio = own.median / floor.median;
    Some((format!("{ratio:.2}{}", mark(own.is_stolen || floor.is_stolen)), ratio <= 1.3))
}

fn of_pion(
    results: &Results,
    kind: Kind,
    viewers: u32,
    times: f64,
    figure: fn(&Figures) -> Option<Spread>,
) -> Option<(String, bool)> {
    let own = figure(&results.figures(kind, viewers))?;
    let pion = figure(&results.figures(Kind::PionSilent, viewers))?;
    let ratio = pion.median / own.median;
    Some((format!("1/{ratio:.1}{}", mark(own.is_stolen || pion.is_stolen)), ratio >= times))
}

fn memory(results: &Results, kind: Kind, viewers: u32) -> Option<(String, bool)> {
    let own = results.figures(kind, viewers).kb_per_viewer?;
    Some((format!("{:.0} kB", own.median), own.median <= 50.0))
}

fn goals(results: &Results) -> String {
    let mut out =
        "\n| Goal | Viewers | By the ring | | By sockets | |\n|---|---:|---:|---|---:|---|\n"
            .to_owned();
    let mut is_any = false;
    for (what, goal) in GOALS {
        for viewers in results.sizes() {
            let measured =
                [Kind::Throng, Kind::ThrongSockets].map(|kind| goal(results, kind, viewers));
            if measured.iter().all(Option::is_none) {
                continue;
            }
            is_any = true;
            let cells = measured.map(|measured| {
                measured.map_or("– | ".to_owned(), |(measured, is_met)| {
                    format!("{measured} | {}", if is_met { "met" } else { "**missed**" })
                })
            });
            let _ = writeln!(out, "| {what} | {viewers} | {} |", cells.join(" | "));
        }
    }
    if is_any { out } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::measure::Playing;
    use crate::stream::Rate;

    #[test]
    fn only_what_stands_between_the_markers_changes() {
        let page = "above\n<!-- a:begin -->\nold\n<!-- a:end -->\nbelow <!-- b:begin -->kept<!-- b:end -->\n";
        let expect = "above\n<!-- a:begin -->\nnew\n<!-- a:end -->\nbelow <!-- b:begin -->kept<!-- b:end -->\n";
        assert_eq!(replaced(page, "a", "new\n\n").as_deref(), Some(expect));
        assert_eq!(replaced(page, "c", "new"), None);
    }
    fn playing(kind: Kind, us_per_packet: f64, rss_kb: u64, steal_ratio: f64) -> Playing {
        Playing {
            kind,
            viewers: 101,
            connected: 101,
            window_s: 10.0,
            cpu_us: (us_per_packet * 1000.0) as u64,
            waited_ratio: 0.0,
            packets: 1000.0,
            expected_packets: 1000.0,
            lost: None,
            drops: None,
            gave_ring_up: None,
            rss_kb,
            ring_kb: 40 << 10,
            steal_ratio,
            server_cpu_ratio: 0.5,
            server_core_busy_ratio: 0.5,
            load: 1.0,
            failures: Vec::new(),
        }
    }

    fn floor(receive: Receive, cpu_us_per_packet: f64) -> Floor {
        let (packets, packets_per_s, drops, steal_ratio) = (1000, 100.0, None, 0.0);
        Floor {
            receive,
            viewers: 101,
            packets,
            packets_per_s,
            cpu_us_per_packet,
            drops,
            steal_ratio,
        }
    }

    fn results() -> Results {
        Results {
            date: "today".into(),
            command: "bench/run.sh".into(),
            machine: Machine {
                cpu: "a CPU".into(),
                cores: 2,
                kernel: "6".into(),
                versions: Vec::new(),
            },
            stream: Rate {
                video_packets_per_s: 121.0,
                video_packet_bytes: 1050.0,
                audio_packets_per_s: 50.0,
                audio_packet_bytes: 174.0,
                bits_per_s: 1.09e6,
                fps: 30,
            },
            alone: vec![
                Playing {
                    viewers: 1,
                    connected: 1,
                    ..playing(Kind::ThrongSockets, 9.0, 10_000, 0.0)
                },
                Playing { viewers: 1, connected: 1, ..playing(Kind::Throng, 9.0, 50_000, 0.0) },
            ],
            playing: vec![
                playing(Kind::PionSilent, 40.0, 70_000, 0.0),
                playing(Kind::ThrongSockets, 8.0, 20_000, 0.2),
                playing(Kind::Throng, 5.0, 54_000, 0.0),
            ],
            joining: Vec::new(),
            floor: vec![floor(Receive::Sockets, 4.0)],
            floor_ring: vec![floor(Receive::Ring, 2.0)],
            repeated: Vec::new(),
        }
    }

    #[test]
    fn both_ways_and_both_floors_have_rows_and_ratios_to_the_floor_of_sockets() {
        let text = comparison(&results());
        for row in [
            "| 101 | throng, by sockets | 8.00\\* | 1/5.0 · – | 2.00 | 100 | – · – |  | – | – · – | 20 |",
            "| 101 | throng, by the ring | 5.00 | 1/8.0 · – | 1.25 | 40 | – · – | 40 | – | – · – | 0 |",
            "| 101 | floor | 4.00 | | 1.00 |",
            "| 101 | floor, by the ring | 2.00 | | 0.50 |",
            "\n\\* The hypervisor withheld more than 10 %",
        ] {
            assert!(text.contains(row), "{row}\n{text}");
        }
    }

    #[test]
    fn goals_are_of_the_ring_and_of_sockets() {
        let text = goals(&results());
        for row in [
            "(with feedback and meters) | 101 | 1.25 | met | 2.00\\* | **missed** |",
            "1/7 of pion without RTCP | 101 | 1/8.0 | met | 1/5.0\\* | **missed** |",
            "| memory at most 50 kB a viewer | 101 | 40 kB | met | 100 kB | **missed** |",
        ] {
            assert!(text.contains(row), "{row}\n{text}");
        }
        assert!(!text.contains("per join"), "{text}");
        assert_eq!(goals(&Results { playing: Vec::new(), ..results() }), "");
    }
}
