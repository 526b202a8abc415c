//! Counts the lines of one log by pattern, each second.

use std::sync::Arc;

use throng_observation::RunTime;
use throng_observation::host::{HostEventKind, Unit};

use super::lines::{Line, Lines};
use super::patterns::Patterns;
use super::redact::redacted;
use crate::reading::Reading;

/// Maximum number of lines searched for patterns in a second; further lines are only counted. A
/// server that writes a hundred thousand lines a second must not make its monitor the busiest
/// program of the host.
pub const SEARCHED_LINES_MAX: u64 = 20_000;

/// Counts the lines of one log.
///
/// Series, with labels `log` and `pattern`: `log.lines` (a second) by pattern, where `any` counts
/// all lines and `binary` those with NUL bytes; `log.lines_unsearched` (a second), lines beyond
/// [`SEARCHED_LINES_MAX`]; `log.lines_cut` (a second), lines longer than
/// [`LINE_BYTES_MAX`](super::LINE_BYTES_MAX); and each value that a pattern extracts, where the
/// last of a second counts. The first line of each pattern is an event.
#[derive(Debug)]
pub struct LineCounter {
    log: String,
    patterns: Arc<Patterns>,
    lines: Lines,
    second: Counts,
    since: RunTime,
    /// By pattern: whether its first line has been reported.
    reported: Vec<bool>,
    /// By series of `log.lines`, patterns first: whether it has been written, because a series does
    /// not start with zero.
    live: Vec<bool>,
}

#[derive(Debug, Default)]
struct Counts {
    any: u64,
    binary: u64,
    cut: u64,
    unsearched: u64,
    by_pattern: Vec<u64>,
    /// By pattern and value: the last number.
    values: Vec<Vec<Option<f64>>>,
    first: Vec<(usize, String)>,
}

impl Counts {
    fn of(patterns: &Patterns) -> Self {
        Self {
            by_pattern: vec![0; patterns.all().len()],
            values: patterns.all().iter().map(|pattern| vec![None; pattern.values.len()]).collect(),
            ..Self::default()
        }
    }
}

impl LineCounter {
    /// A counter for the log named `log`, starting now.
    #[must_use]
    pub fn new(log: impl Into<String>, patterns: Arc<Patterns>, now: RunTime) -> Self {
        let count = patterns.all().len();
        Self {
            log: log.into(),
            second: Counts::of(&patterns),
            lines: Lines::default(),
            since: now,
            reported: vec![false; count],
            live: vec![false; count + OTHERS],
            patterns,
        }
    }

    /// Processes the next bytes of the log.
    pub fn read(&mut self, bytes: &[u8]) {
        let Self { lines, patterns, second, reported, .. } = self;
        lines.push(bytes, |line| second.count(line, patterns, reported));
    }

    /// Ends the log or its current file: an incomplete line counts as a line.
    pub fn finish(&mut self) {
        let Self { lines, patterns, second, reported, .. } = self;
        lines.finish(|line| second.count(line, patterns, reported));
    }

    /// Replaces the patterns. Counts of patterns that are in both sets continue.
    pub fn set_patterns(&mut self, patterns: Arc<Patterns>) {
        let mut new = Self::new(std::mem::take(&mut self.log), patterns, self.since);
        std::mem::swap(&mut new.lines, &mut self.lines);
        let Counts { any, binary, cut, unsearched, by_pattern, first, .. } = &mut self.second;
        (new.second.any, new.second.binary) = (*any, *binary);
        (new.second.cut, new.second.unsearched) = (*cut, *unsearched);
        let (old_count, new_count) = (self.patterns.all().len(), new.patterns.all().len());
        for (old, pattern) in self.patterns.all().iter().enumerate() {
            let Some(place) = new.patterns.all().iter().position(|other| other.id == pattern.id)
            else {
                continue;
            };
            carry(by_pattern, old, &mut new.second.by_pattern, place);
            carry(&mut self.reported, old, &mut new.reported, place);
            carry(&mut self.live, old, &mut new.live, place);
            let its = first.iter_mut().filter(|(index, _)| *index == old);
            new.second.first.extend(its.map(|(_, line)| (place, std::mem::take(line))));
        }
        for other in 0..OTHERS {
            carry(&mut self.live, old_count + other, &mut new.live, new_count + other);
        }
        *self = new;
    }

    /// The counts since the last call, as rates over the time that passed. Call it about once a
    /// second.
    pub fn tick(&mut self, now: RunTime) -> Vec<Reading> {
        let seconds = now.millis_since(self.since) / 1e3;
        if seconds <= 0.0 {
            return Vec::new();
        }
        self.since = now;
        let counts = std::mem::replace(&mut self.second, Counts::of(&self.patterns));
        let mut readings = Vec::new();
        for (index, line) in counts.first {
            let Some(pattern) = self.patterns.all().get(index) else { continue };
            let detail =
                format!("{} ({}): {line}", pattern.id, pattern.meaning.trim_end_matches('.'));
            readings.push(Reading::Event(HostEventKind::LogLine, detail));
        }
        let names =
            self.patterns.all().iter().map(|pattern| ("log.lines", Some(pattern.id.as_str())));
        let others = [
            ("log.lines", Some("any"), counts.any),
            ("log.lines", Some("binary"), counts.binary),
            ("log.lines_cut", None, counts.cut),
            ("log.lines_unsearched", None, counts.unsearched),
        ];
        debug_assert_eq!(others.len(), OTHERS);
        let counted =
            names.zip(counts.by_pattern).map(|((metric, pattern), count)| (metric, pattern, count));
        for ((metric, pattern, count), live) in counted.chain(others).zip(&mut self.live) {
            if count > 0 || *live {
                let mut labels = vec![("log", self.log.as_str())];
                labels.extend(pattern.map(|pattern| ("pattern", pattern)));
                readings.push(Reading::value(
                    metric,
                    Unit::PerSecond,
                    &labels,
                    count as f64 / seconds,
                ));
                *live = true;
            }
        }
        for (pattern, values) in self.patterns.all().iter().zip(counts.values) {
            let read =
                pattern.values.iter().zip(values).filter_map(|(of, value)| Some((of, value?)));
            let labels = [("log", self.log.as_str())];
            readings.extend(
                read.map(|(of, value)| Reading::value(&of.metric, of.unit, &labels, value)),
            );
        }
        readings
    }
}

/// Number of series that do not belong to a pattern.
const OTHERS: usize = 4;

/// Moves an element to an index of another slice.
fn carry<T: Default>(from: &mut [T], old: usize, to: &mut [T], place: usize) {
    if let (Some(from), Some(to)) = (from.get_mut(old), to.get_mut(place)) {
        *to = std::mem::take(from);
    }
}

impl Counts {
    fn count(&mut self, line: Line<'_>, patterns: &Patterns, reported: &mut [bool]) {
        self.any += 1;
        self.cut += u64::from(line.cut);
        if line.bytes.contains(&0) {
            self.binary += 1;
            return;
        }
        if self.any > SEARCHED_LINES_MAX {
            self.unsearched += 1;
            return;
        }
        for index in patterns.of_line(line.bytes) {
            if let Some(count) = self.by_pattern.get_mut(index) {
                *count += 1;
            }
            if let Some(reported) = reported.get_mut(index).filter(|reported| !**reported) {
                *reported = true;
                self.first.push((index, redacted(line.bytes)));
            }
            let (Some(pattern), Some(values)) =
                (patterns.all().get(index), self.values.get_mut(index))
            else {
                continue;
            };
            for (value, number) in pattern.numbers(line.bytes) {
                if let Some(value) = values.get_mut(value) {
                    *value = Some(number);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packs;
    use crate::packs::seen_tests::{SEEN, line_of};

    fn counter(pack: &str) -> LineCounter {
        let packs = packs::built_in();
        let wanted = packs.iter().filter(|known| known.pack == pack || known.pack == "generic");
        let patterns = Patterns::new(wanted.flat_map(|pack| &pack.logs)).unwrap();
        LineCounter::new("log", Arc::new(patterns), RunTime(0))
    }

    /// A tick's values by metric and pattern.
    fn values(readings: &[Reading]) -> Vec<(String, f64)> {
        let value = |readings: &Reading| match readings {
            Reading::Value(value) => {
                let pattern =
                    value.labels.get("pattern").map(|p| format!("[{p}]")).unwrap_or_default();
                Some((format!("{}{pattern}", value.metric), value.value))
            }
            Reading::Event(..) => None,
        };
        readings.iter().filter_map(value).collect()
    }

    fn value_of(readings: &[Reading], name: &str) -> Option<f64> {
        values(readings).into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn events(readings: &[Reading]) -> Vec<&str> {
        readings
            .iter()
            .filter_map(|s| {
                if let Reading::Event(_, detail) = s { Some(detail.as_str()) } else { None }
            })
            .collect()
    }

    #[test]
    fn a_matching_line_is_counted_and_its_first_is_an_event() {
        let mut counter = counter("janus");
        for _ in 0..30 {
            counter.read(b"[WARN] [8239821] Discarding too old outgoing packet (age=6597865us)\n");
        }
        let readings = counter.tick(RunTime(2_000_000));
        assert_eq!(value_of(&readings, "log.lines[old_packet_discarded]"), Some(15.0));
        assert_eq!(value_of(&readings, "log.lines[any]"), Some(15.0));
        let events = events(&readings);
        assert_eq!(events.len(), 1);
        assert!(
            events[0].contains("Discarding too old outgoing packet (age=6597865us)"),
            "{}",
            events[0]
        );
        // After that only numbers; the end is one zero.
        counter.read(b"[WARN] [8239821] Discarding too old outgoing packet (age=1us)\n");
        assert!(self::events(&counter.tick(RunTime(3_000_000))).is_empty());
        assert_eq!(
            value_of(&counter.tick(RunTime(4_000_000)), "log.lines[old_packet_discarded]"),
            Some(0.0)
        );
    }

    #[test]
    fn the_last_value_of_a_second_counts() {
        let mut counter = counter("ffmpeg");
        counter.read(b"frame=  120 fps= 30 q=28.0 size=     512kB time=00:00:04.00 bitrate=1048.6kbits/s speed=1.01x\r");
        counter.read(b"frame=  150 fps= 27 q=28.0 size=     640kB time=00:00:05.00 bitrate=1048.6kbits/s speed=0.892x    \r");
        let readings = counter.tick(RunTime(1_000_000));
        assert_eq!(value_of(&readings, "ffmpeg.speed"), Some(0.892));
        assert_eq!(value_of(&readings, "ffmpeg.fps"), Some(27.0));
    }

    /// Its queues have names; the line comes when one is longer than ever before.
    #[test]
    fn oven_media_engine_tells_its_full_worker_with_queue_and_rates() {
        let mut counter = counter("ovenmediaengine");
        for id in ["stream_worker_queue", "queue_over_threshold"] {
            counter.read(format!("{}\n", line_of("ovenmediaengine", id)).as_bytes());
        }
        let readings = counter.tick(RunTime(1_000_000));
        for (name, expect) in [
            ("log.lines[stream_worker_queue]", 1.0),
            ("log.lines[queue_over_threshold]", 2.0),
            ("oven_media_engine.stream_worker_queue", 922.0),
            ("oven_media_engine.stream_worker_queue_threshold", 500.0),
            ("oven_media_engine.stream_worker_in", 309.0),
            ("oven_media_engine.stream_worker_out", 230.0),
        ] {
            assert_eq!(value_of(&readings, name), Some(expect), "{name}");
        }
    }

    #[test]
    fn servers_tell_their_limits_in_words_of_their_own() {
        for (pack, pattern, line) in SEEN {
            let mut counter = counter(pack);
            counter.read(format!("{line}\n").as_bytes());
            let readings = counter.tick(RunTime(1_000_000));
            let counted = value_of(&readings, &format!("log.lines[{pattern}]"));
            assert_eq!(counted, Some(1.0), "{line}");
            let is_counted = |of: &str| of == *pack || of == "generic";
            let patterns = SEEN.iter().filter(|(of, _, other)| other == line && is_counted(of));
            assert_eq!(events(&readings).len(), patterns.count(), "of no other pattern: {line}");
        }
        for (pack, pattern, metric, expect) in [
            ("mediamtx", "reader_too_slow", "mediamtx.discarded_frames", 43.0),
            ("live555", "frame_too_large", "live555.frame_bytes_max", 300_552.0),
        ] {
            let mut counter = counter(pack);
            counter.read(format!("{}\n", line_of(pack, pattern)).as_bytes());
            let readings = counter.tick(RunTime(1_000_000));
            assert_eq!(value_of(&readings, metric), Some(expect), "{pattern}");
        }
    }

    #[test]
    fn a_flood_is_counted_and_only_its_beginning_searched() {
        let mut counter = counter("janus");
        let burst = b"[ERR] Too many open files\n".repeat(10_000);
        for _ in 0..5 {
            counter.read(&burst);
        }
        let readings = counter.tick(RunTime(1_000_000));
        assert_eq!(value_of(&readings, "log.lines[any]"), Some(50_000.0));
        assert_eq!(
            value_of(&readings, "log.lines_unsearched"),
            Some(50_000.0 - SEARCHED_LINES_MAX as f64)
        );
        assert_eq!(
            value_of(&readings, "log.lines[too_many_open_files]"),
            Some(SEARCHED_LINES_MAX as f64)
        );
    }

    #[test]
    fn binary_garbage_is_counted_as_such() {
        let mut counter = counter("janus");
        let mut noise: Vec<u8> =
            (0..100_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
        noise.extend(b"\n");
        counter.read(&noise);
        counter.read(b"\xff\xfe Too many open files \xff\n");
        let readings = counter.tick(RunTime(1_000_000));
        assert!(value_of(&readings, "log.lines[binary]").unwrap() > 0.0);
        assert_eq!(value_of(&readings, "log.lines[too_many_open_files]"), Some(1.0));
    }

    #[test]
    fn other_patterns_go_on_where_those_before_were() {
        let mut counter = counter("generic");
        counter.read(b"Too many open files\nDiscarding too old outgo");
        let readings = counter.tick(RunTime(1_000_000));
        assert_eq!(events(&readings).len(), 1);
        counter.read(b"");
        counter.set_patterns(self::counter("janus").patterns);
        counter.read(b"ing packet (age=1us)\nToo many open files\n");
        let readings = counter.tick(RunTime(2_000_000));
        assert_eq!(
            value_of(&readings, "log.lines[old_packet_discarded]"),
            Some(1.0),
            "a line begun before"
        );
        assert_eq!(value_of(&readings, "log.lines[too_many_open_files]"), Some(1.0));
        assert_eq!(
            events(&readings).len(),
            1,
            "the first line of a pattern is reported once: {readings:?}"
        );
        counter.read(b"Too many open files\n");
        counter.set_patterns(self::counter("ffmpeg").patterns);
        let readings = counter.tick(RunTime(3_000_000));
        assert_eq!(
            value_of(&readings, "log.lines[too_many_open_files]"),
            Some(1.0),
            "counted before"
        );
        assert_eq!(value_of(&readings, "log.lines[any]"), Some(1.0));
    }

    #[test]
    fn no_values_without_elapsed_time() {
        let mut counter = counter("janus");
        counter.read(b"x\n");
        assert!(counter.tick(RunTime(0)).is_empty());
        assert_eq!(value_of(&counter.tick(RunTime(500_000)), "log.lines[any]"), Some(2.0));
    }

    #[test]
    fn patterns_that_cannot_work_are_refused_by_name() {
        use throng_observation::pack::{LogPattern, LogValue};
        let value = LogValue { group: "y".into(), metric: "a.b".into(), ..LogValue::default() };
        let cases = [
            ("broken", "(", vec![], "not a supported regular expression"),
            ("look_around", "(?<=a)b", vec![], "not a supported regular expression"),
            ("huge", "(?:a{1000}){1000}", vec![], "not a supported regular expression"),
            ("any", "x", vec![], "is reserved"),
            ("group", "(?<x>.)", vec![value], "no group `y`"),
        ];
        for (id, pattern, values, expect) in cases {
            let pattern = LogPattern {
                id: id.into(),
                pattern: pattern.into(),
                values,
                ..LogPattern::default()
            };
            let error = Patterns::new([&pattern]).unwrap_err().to_string();
            assert!(error.contains(expect) && error.contains(id), "{error}");
        }
    }
}
