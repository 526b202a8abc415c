//! The result as a table of one terminal screen.

use std::fmt::Write as _;

use throng_observation::units::count;
use throng_report::columns::{Align, aligned};

use crate::cost::{self, byte_rate, duration_us, figure, grouped, money};
use crate::{CpuProfile, IpcReport, Measured, Outcome, ReadMode, Row};

/// Placeholder for a missing figure.
const NONE: &str = "-";

/// Functions listed for a transport.
const FUNCTIONS: usize = 3;

/// The columns; the first is aligned left, the others right.
pub(crate) const COLUMNS: [&str; 11] = [
    "transport",
    "CPU s/GB",
    "send + receive",
    "throughput",
    "CPU/frame",
    "p50",
    "p99",
    "max",
    "calls/frame",
    "copying",
    "masking",
];

impl IpcReport {
    /// The text that is printed after the measurement.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!("{}\n\n", self.headline);
        let _ = writeln!(out, "{}", self.circumstances());
        let mut rows = vec![self.columns()];
        rows.extend(
            self.rows.iter().filter_map(|row| Some(self.cells(row, row.figures.as_ref()?))),
        );
        out.push('\n');
        out += &aligned(&rows, &[Align::Left, Align::Right]);
        out.push('\n');
        let spent: Vec<_> =
            self.spent().map(|(name, functions)| vec![name.to_owned(), functions]).collect();
        if !spent.is_empty() {
            out.push_str("where the time goes\n");
            for row in spent {
                let _ = writeln!(out, "  {}", row.join(": "));
            }
            out.push('\n');
        }
        for row in &self.rows {
            match (row.outcome, &row.reason, &row.note) {
                (Outcome::Measured, _, Some(note)) => {
                    let _ = writeln!(out, "  {}: {note}", row.name);
                }
                (Outcome::Missing, Some(reason), _) => {
                    let _ = writeln!(out, "  {}: not here: {reason}", row.name);
                }
                (Outcome::Failed, Some(reason), _) => {
                    let _ = writeln!(out, "  {}: FAILED: {reason}", row.name);
                }
                _ => {}
            }
        }
        for remark in self.remarks() {
            let _ = writeln!(out, "  {remark}");
        }
        out
    }

    /// Workload and machine, in two lines.
    pub(crate) fn circumstances(&self) -> String {
        let passed = &self.workload;
        let sizes = match passed.sizes {
            1 => format!("frames of {} B", grouped(passed.frame_bytes_mean)),
            sizes => format!(
                "{} sizes, mean {} B, largest {} B",
                grouped(sizes as f64),
                grouped(passed.frame_bytes_mean),
                grouped(f64::from(passed.frame_bytes_max))
            ),
        };
        let rate = match passed.fps {
            Some(fps) => format!("{} fps offered", figure(fps)),
            None => "as fast as they go".into(),
        };
        let producers = count(passed.producers.into(), "producers");
        let reading = match passed.reading {
            ReadMode::Edges => "payload checked at its edges and left alone",
            ReadMode::All => "every byte read once and checked",
        };
        let rounds = match passed.rounds {
            1 => String::new(),
            rounds => format!(", median of {rounds} rounds"),
        };
        let machine = &self.machine;
        format!(
            "{sizes}, {rate}, {producers}, {reading}; {} s each{rounds}\n{}, {} cores, Linux {}, \
             load {}",
            figure(passed.duration_s),
            machine.cpu.as_deref().unwrap_or("unknown processor"),
            machine.cores.map_or_else(|| NONE.into(), |cores| cores.to_string()),
            machine.kernel.as_deref().unwrap_or(NONE),
            machine.load_1m.map_or_else(|| NONE.into(), figure),
        )
    }

    pub(crate) fn columns(&self) -> Vec<String> {
        let money = format!("{} streams/year", grouped(f64::from(self.assumptions.streams)));
        COLUMNS.map(str::to_owned).into_iter().chain([money]).collect()
    }

    pub(crate) fn cells(&self, row: &Row, figures: &Measured) -> Vec<String> {
        let latency = |value: fn(&crate::Latency) -> f64| {
            figures
                .latency
                .as_ref()
                .map_or_else(|| NONE.into(), |latency| duration_us(value(latency)))
        };
        let is_baseline = row.transport.is_baseline();
        let sides = if is_baseline {
            NONE.into()
        } else {
            format!(
                "{} + {}",
                figure(figures.cpu_s_per_gb_producer),
                figure(figures.cpu_s_per_gb_consumer)
            )
        };
        let spent = |ratio: fn(&CpuProfile) -> f64| {
            let sampled = figures.cpu_profile.as_ref().filter(|spent| spent.samples > 0);
            sampled.map_or_else(|| NONE.into(), |spent| format!("{:.0} %", ratio(spent) * 100.0))
        };
        let calls = figures.system_calls.as_ref().and_then(crate::SystemCalls::per_frame);
        vec![
            row.name.clone(),
            figure(figures.cpu_s_per_gb),
            sides,
            byte_rate(figures.bytes_per_second),
            duration_us(figures.cpu_us_per_frame),
            latency(|latency| latency.us_p50),
            latency(|latency| latency.us_p99),
            latency(|latency| latency.us_max),
            calls.map_or_else(|| NONE.into(), figure),
            spent(|spent| spent.copying_ratio),
            spent(|spent| spent.masking_ratio),
            if is_baseline { NONE.into() } else { money(figures.cost_per_year) },
        ]
    }

    /// For each profiled transport, the functions that took most CPU.
    pub(crate) fn spent(&self) -> impl Iterator<Item = (&str, String)> {
        self.rows.iter().filter_map(|row| {
            let spent =
                row.figures.as_ref()?.cpu_profile.as_ref().filter(|spent| spent.samples > 0)?;
            let functions = spent.functions.iter().take(FUNCTIONS);
            let functions: Vec<_> = functions
                .map(|f| format!("{:.0} % {}", f.ratio * 100.0, short(&f.function)))
                .collect();
            Some((row.name.as_str(), functions.join(", ")))
        })
    }

    /// Remarks that the figures need.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.partial {
            remarks.push("Ended early: rows that are not in the table were not measured.".into());
        }
        remarks.push(match self.workload.fps {
            Some(_) => "Latency is from the intended send time until the consumer has all of a \
                        frame."
                .into(),
            None => "Latency as fast as it goes is the time a frame waits in a full transport; \
                     give --fps for that of a stream."
                .to_owned(),
        });
        for (row, figures) in self.passed().filter(|(_, figures)| figures.frames_not_sent > 0) {
            remarks.push(format!(
                "{} was too slow for the offered rate: {} frames were not sent in time.",
                row.name,
                grouped(figures.frames_not_sent as f64)
            ));
        }
        if let Some(late) = self.late_producer() {
            remarks.push(late);
        }
        let missing =
            self.passed().find_map(|(_, figures)| figures.system_calls.as_ref()?.missing.as_ref());
        if let Some(missing) = missing {
            remarks.push(format!("System calls were not counted: {missing}."));
        }
        let missing =
            self.passed().find_map(|(_, figures)| figures.cpu_profile.as_ref()?.missing.as_ref());
        if let Some(missing) = missing {
            remarks.push(format!("Where the time goes is not known in full: {missing}."));
        }
        remarks.push(cost::formula(self.workload.frame_bytes_mean, &self.assumptions));
        remarks
    }

    /// A producer that woke late adds to every latency, so that is stated.
    fn late_producer(&self) -> Option<String> {
        let late = |figures: &Measured| Some(figures.send_delay?.us_p99);
        let (row, us) = self
            .passed()
            .filter_map(|(row, figures)| Some((row, late(figures)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(format!(
            "Producers sent frames up to {} late (p99, worst at {}); the latency includes that.",
            duration_us(us),
            row.name
        ))
    }
}

/// A function's short name, with the last segment of its path and without type arguments:
/// `Server::receive` of `<throng_ipc::websocket::Server as throng_ipc::Receiver>::receive`.
fn short(function: &str) -> String {
    let last = |path: &str, count: usize| {
        let path = path.split(['<', '(']).next().unwrap_or(path);
        let parts: Vec<_> = path.split("::").collect();
        parts.get(parts.len().saturating_sub(count)..).unwrap_or_default().join("::")
    };
    match function.strip_prefix('<').and_then(|rest| rest.split_once(" as ")) {
        Some((owner, method)) => {
            format!("{}::{}", last(owner, 1), method.rsplit("::").next().unwrap_or(method))
        }
        None => last(function, 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_functions_are_short_and_tell_whose_they_are() {
        for (function, name) in [
            ("__memcpy_avx512_unaligned_erms", "__memcpy_avx512_unaligned_erms"),
            ("throng_ipc::frame::fill", "frame::fill"),
            ("core::ptr::swap<&mut [u8]>", "ptr::swap"),
            (
                "<throng_ipc::transport::websocket::Server as throng_ipc::transport::Receiver>::receive",
                "Server::receive",
            ),
            ("<a::B<c::D> as e::F>::g", "B::g"),
            ("", ""),
        ] {
            assert_eq!(short(function), name);
        }
    }
}
