//! The generated parts of docs/performance.md, each between a pair of markers; the text around them stays.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::generator::Kind;
use crate::measure::PACKETS_NEEDED;
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
        "{}, {} cores, Linux {}. {}. Load average {}; generators were runnable but without a CPU for {} of the \
         window. Stream: {:.2} Mbit/s, {:.0} packets/s a viewer ({:.0} of video, \
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
    out += "| Viewers | Generator | µs/packet | of pion | kB/viewer | of pion | ms/join | of pion | of the floor | Janus, % | its CPU, % | Runs |\n";
    out += "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
    for viewers in results.sizes() {
        for kind in results.kinds() {
            out += &row(results, kind, viewers);
        }
        if let Some(floor) = results.floor_us(viewers) {
            let cell = spread(Some(floor), 2);
            let _ = writeln!(out, "| {viewers} | floor | {cell} | | | | | | 1.00 | | | {} |", floor.count);
        }
    }
    out += "\nEach cell: median (lowest to highest). *of pion*: of pion without RTCP · of pion with its default RTCP. \
            *Janus*: what it used of a CPU while they played; *its CPU*: how long that, which feed and harness share, was \
            not idle.\n";
    out += &goals(results);
    let excluded = results.excluded();
    if excluded.is_empty() {
        out += "\nNo run was excluded.\n";
    } else {
        let _ = writeln!(
            out,
            "\nExcluded, for not all viewers connected or less than {} % of the packets received:\n",
            PACKETS_NEEDED * 100.0
        );
        out.extend(excluded.iter().map(|run| format!("- {run}\n")));
    }
    out
}

fn row(results: &Results, kind: Kind, viewers: u32) -> String {
    let own = results.figures(kind, viewers);
    let against = |figure: fn(&Figures) -> Option<Spread>| {
        if kind != Kind::Throng {
            return String::new();
        }
        let pions = [Kind::PionSilent, Kind::PionFeedback];
        pions.map(|pion| fraction(figure(&own), figure(&results.figures(pion, viewers)))).join(" · ")
    };
    let of_floor = own.us_per_packet.zip(results.floor_us(viewers));
    format!(
        "| {viewers} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} of {} |\n",
        kind.name(),
        spread(own.us_per_packet, 2),
        against(|figures| figures.us_per_packet),
        spread(own.kb_per_viewer, 0),
        against(|figures| figures.kb_per_viewer),
        spread(own.ms_per_join, 2),
        against(|figures| figures.ms_per_join),
        of_floor.map_or(String::new(), |(own, floor)| format!("{:.2}", own.median / floor.median)),
        spread(own.server_percent, 0),
        spread(own.server_busy_percent, 0),
        own.us_per_packet.map_or(0, |spread| spread.count),
        own.runs,
    )
}

fn spread(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or("–".into(), |s| {
        if s.count == 1 {
            return format!("{:.digits$}", s.median);
        }
        format!("{:.digits$} ({:.digits$} to {:.digits$})", s.median, s.min, s.max)
    })
}

fn fraction(own: Option<Spread>, of: Option<Spread>) -> String {
    own.zip(of).map_or("–".into(), |(own, of)| format!("1/{:.1}", of.median / own.median))
}

/// The goals of throng, compared with pion without RTCP, which is how OvenRtcTester works.
fn goals(results: &Results) -> String {
    if !results.kinds().contains(&Kind::Throng) || !results.kinds().contains(&Kind::PionSilent) {
        return String::new();
    }
    type Figure = fn(&Figures) -> Option<Spread>;
    let goals: [(&str, f64, Figure); 3] = [
        ("CPU per received packet", 4.0, |figures| figures.us_per_packet),
        ("memory per viewer", 7.0, |figures| figures.kb_per_viewer),
        ("CPU per join", 4.0, |figures| figures.ms_per_join),
    ];
    let mut out =
        "\n| Goal, against pion without RTCP | Viewers | Measured | |\n|---|---:|---:|---|\n".to_owned();
    for (what, times, figure) in goals {
        for viewers in results.sizes() {
            let pion = figure(&results.figures(Kind::PionSilent, viewers));
            let own = figure(&results.figures(Kind::Throng, viewers));
            let Some((pion, own)) = pion.zip(own) else { continue };
            let ratio = pion.median / own.median;
            let met = if ratio >= times { "met" } else { "**missed**" };
            let _ = writeln!(out, "| {what} at most 1/{times} | {viewers} | 1/{ratio:.1} | {met} |");
        }
    }
    for viewers in results.sizes() {
        let own = results.figures(Kind::Throng, viewers).us_per_packet;
        let Some((own, floor)) = own.zip(results.floor_us(viewers)) else { continue };
        let ratio = own.median / floor.median;
        let met = if ratio <= 1.5 { "met" } else { "**missed**" };
        let _ = writeln!(
            out,
            "| CPU per packet at most 1.5 of the floor (aim) | {viewers} | {ratio:.2} | {met} |"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_markers_changes() {
        let page = "above\n<!-- a:begin -->\nold\n<!-- a:end -->\nbelow <!-- b:begin -->kept<!-- b:end -->\n";
        let expect =
            "above\n<!-- a:begin -->\nnew\n<!-- a:end -->\nbelow <!-- b:begin -->kept<!-- b:end -->\n";
        assert_eq!(replaced(page, "a", "new\n\n").as_deref(), Some(expect));
        assert_eq!(replaced(page, "c", "new"), None);
    }
}
