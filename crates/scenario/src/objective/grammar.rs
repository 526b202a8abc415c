//! Parses `metric [quantile] op threshold`; errors have the range of the wrong text.

use std::ops::Range;
use std::str::FromStr;

use super::measured::Quantile;
use super::metric::{Better, CATALOGUE, MetricEntry, Unit};
use super::{Comparison, Objective, Statistic, Threshold};
use crate::units;

/// Why a text is not an objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {help}")]
pub struct ObjectiveError {
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub help: String,
    /// The bytes of the text that are wrong.
    pub span: Range<usize>,
}

/// A word of the objective and its offset.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    start: usize,
}

impl Word<'_> {
    fn span(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let (left, comparison, sign, right) = split(text)?;
        let mut words = words(left);
        let Some(name) = words.next() else {
            return Err(fail("the metric is missing", metrics(), sign));
        };
        let entry = metric(name)?;
        let statistic = statistic(entry, words.next(), name)?;
        if let Some(more) = words.next() {
            let help = format!("write it as `{}`", entry.example);
            return Err(fail(format!("unexpected word `{}`", cut(more.text)), help, more.span()));
        }
        direction(entry, comparison, sign)?;
        let threshold = threshold(entry, right)?;
        let text = [entry.names[0], statistic.name(), comparison.sign(), right.text];
        let text: Vec<&str> = text.iter().flat_map(|part| part.split_whitespace()).collect();
        Ok(Self { metric: entry.metric, statistic, comparison, threshold, text: text.join(" ") })
    }
}

/// The text before the comparison, the comparison, its range, and the threshold.
fn split(text: &str) -> Result<(&str, Comparison, Range<usize>, Word<'_>), ObjectiveError> {
    let whole = || 0..text.len();
    let Some(at) = text.find(['<', '>', '≤', '≥', '=']) else {
        let help = "write `metric quantile < threshold`, such as `video.loss p95 < 1%`";
        return Err(fail("the comparison is missing", help, whole()));
    };
    let (left, rest) = text.split_at(at);
    let signs = [
        ("<=", Comparison::LessOrEqual),
        (">=", Comparison::GreaterOrEqual),
        ("≤", Comparison::LessOrEqual),
        ("≥", Comparison::GreaterOrEqual),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];
    let Some((sign, comparison)) = signs.into_iter().find(|(sign, _)| rest.starts_with(sign))
    else {
        return Err(fail("`=` is not a comparison", "write `<`, `<=`, `>` or `>=`", at..at + 1));
    };
    let after = rest.get(sign.len()..).unwrap_or_default();
    let trimmed = after.trim_start();
    let start = at + sign.len() + (after.len() - trimmed.len());
    let right = Word { text: trimmed.trim_end(), start };
    Ok((left, comparison, at..at + sign.len(), right))
}

fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    // Words are slices of `text`: the difference of the pointers is the offset.
    text.split_whitespace().map(move |word| Word {
        text: word,
        start: word.as_ptr() as usize - text.as_ptr() as usize,
    })
}

fn metric(name: Word<'_>) -> Result<&'static MetricEntry, ObjectiveError> {
    if let Some(entry) = CATALOGUE.iter().find(|entry| entry.names.contains(&name.text)) {
        return Ok(entry);
    }
    let candidates = CATALOGUE.iter().flat_map(|entry| entry.names).copied();
    let help = match crate::suggestion::nearest(name.text, candidates) {
        Some(near) => format!("did you mean `{near}`?"),
        None => metrics(),
    };
    Err(fail(format!("`{}` is not a metric", cut(name.text)), help, name.span()))
}

fn statistic(
    entry: &MetricEntry,
    word: Option<Word<'_>>,
    name: Word<'_>,
) -> Result<Statistic, ObjectiveError> {
    let Some(word) = word else {
        if entry.whole.is_some() {
            return Ok(Statistic::Whole);
        }
        let over = entry.quantile.map_or("", Quantile::population);
        let message = format!("`{}` needs a quantile over {over}", name.text);
        return Err(fail(message, format!("write for example `{}`", entry.example), name.span()));
    };
    let found = Statistic::QUANTILES.into_iter().find(|statistic| statistic.name() == word.text);
    match (found, entry.quantile) {
        (Some(_), None) => {
            let message =
                format!("`{}` is one value for the whole run and has no quantile", name.text);
            Err(fail(message, format!("write for example `{}`", entry.example), word.span()))
        }
        (Some(statistic), Some(_)) => Ok(statistic),
        (None, _) if matches!(word.text, "mean" | "avg" | "average") => {
            let help = "write `p50` for the median, `p95` for nearly all participants";
            Err(fail("there is no mean: it hides the participants that suffer", help, word.span()))
        }
        (None, _) => {
            let message = format!("`{}` is not a quantile", cut(word.text));
            Err(fail(message, "write one of min, p50, p90, p95, p99, max", word.span()))
        }
    }
}

fn direction(
    entry: &MetricEntry,
    comparison: Comparison,
    sign: Range<usize>,
) -> Result<(), ObjectiveError> {
    let upper = matches!(comparison, Comparison::Less | Comparison::LessOrEqual);
    let (wrong, word, help) = match entry.better {
        Better::Lower => (!upper, "lower", "<"),
        Better::Higher => (upper, "higher", ">"),
    };
    if !wrong {
        return Ok(());
    }
    let message = format!(
        "`{}` is better when it is {word}: this objective would demand a bad run",
        entry.names[0]
    );
    Err(fail(message, format!("write `{help}`"), sign))
}

fn threshold(entry: &MetricEntry, right: Word<'_>) -> Result<Threshold, ObjectiveError> {
    let read = |result: Result<f64, units::UnitError>| {
        result.map_err(|error| {
            fail(error.to_string(), format!("write for example `{}`", entry.example), right.span())
        })
    };
    match entry.unit {
        Unit::Ratio => {
            let ratio = read(units::percent(right.text))?;
            if ratio > 1.0 {
                let help = "write a percentage from 0% to 100%";
                return Err(fail("the threshold is more than 100%", help, right.span()));
            }
            Ok(Threshold::Ratio(ratio))
        }
        Unit::Milliseconds => Ok(Threshold::Milliseconds(read(
            units::duration(right.text).map(|time| time.as_secs_f64() * 1e3),
        )?)),
        Unit::FramesPerSecond => frame_rate(right),
        Unit::Lines => lines(entry, right),
        Unit::Count => {
            let number = units::leading_number(right.text).filter(|(_, rest)| rest.is_empty());
            number.map(|(count, _)| Threshold::Count(count)).ok_or_else(|| {
                let message = format!("`{}` is not a number", cut(right.text));
                fail(message, format!("write for example `{}`", entry.example), right.span())
            })
        }
        Unit::OfBitRate => of_bit_rate(entry, right),
    }
}

/// `0.98`, or `98%`.
fn of_bit_rate(entry: &MetricEntry, right: Word<'_>) -> Result<Threshold, ObjectiveError> {
    let ratio = units::leading_number(right.text).and_then(|(number, rest)| match rest.trim() {
        "" => Some(number),
        "%" => Some(number / 100.0),
        _ => None,
    });
    let help = format!("write for example `{}`", entry.example);
    match ratio {
        Some(ratio) if ratio > 1.0 => {
            let message = "the threshold is more than the media's bit rate";
            Err(fail(message, help, right.span()))
        }
        Some(ratio) => Ok(Threshold::OfBitRate(ratio)),
        None => {
            let message = format!("`{}` is not a ratio such as `0.98` or `98%`", cut(right.text));
            Err(fail(message, help, right.span()))
        }
    }
}

/// `720p`, or `720`.
fn lines(entry: &MetricEntry, right: Word<'_>) -> Result<Threshold, ObjectiveError> {
    let lines = units::leading_number(right.text).filter(|(_, rest)| matches!(*rest, "" | "p"));
    lines.map(|(lines, _)| Threshold::Lines(lines)).ok_or_else(|| {
        let message = format!("`{}` is not a size such as `720p`", cut(right.text));
        fail(message, format!("write for example `{}`", entry.example), right.span())
    })
}

/// `25`, `25fps`, or `0.9 of source`.
fn frame_rate(right: Word<'_>) -> Result<Threshold, ObjectiveError> {
    let expected = "a frame rate such as `25`, or a ratio such as `0.9 of source`";
    let parsed = units::leading_number(right.text).and_then(|(number, rest)| {
        let rest: Vec<&str> = rest.split_whitespace().collect();
        match rest.as_slice() {
            [] | ["fps"] => Some(Threshold::FramesPerSecond(number)),
            ["of", "source"] => Some(Threshold::OfSource(number)),
            ["%", "of", "source"] => Some(Threshold::OfSource(number / 100.0)),
            _ => None,
        }
    });
    match parsed {
        Some(Threshold::OfSource(share)) if share > 1.0 => {
            let help = "write a ratio up to 1, such as `0.9 of source`";
            Err(fail("the threshold is more than the frame rate of the source", help, right.span()))
        }
        Some(threshold) => Ok(threshold),
        None => {
            let message = format!("`{}` is not {expected}", cut(right.text));
            Err(fail(message, "write for example `fps min > 0.9 of source`", right.span()))
        }
    }
}

fn metrics() -> String {
    let names: Vec<&str> = CATALOGUE.iter().map(|entry| entry.names[0]).collect();
    format!("write one of {}", names.join(", "))
}

fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

fn fail(message: impl Into<String>, help: impl Into<String>, span: Range<usize>) -> ObjectiveError {
    ObjectiveError { message: message.into(), help: help.into(), span }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::Metric;
    use proptest::prelude::*;

    #[test]
    fn objectives_are_read_as_written() {
        use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual};
        for (text, metric, statistic, comparison, threshold) in [
            (
                "video.loss p95 < 1%",
                Metric::VideoLoss,
                Statistic::P95,
                Less,
                Threshold::Ratio(0.01),
            ),
            ("video.loss<1%", Metric::VideoLoss, Statistic::Whole, Less, Threshold::Ratio(0.01)),
            (
                "video.delay p95 < 400ms",
                Metric::VideoDelay,
                Statistic::P95,
                Less,
                Threshold::Milliseconds(400.0),
            ),
            (
                "connect p99 ≤ 3s",
                Metric::Connect,
                Statistic::P99,
                LessOrEqual,
                Threshold::Milliseconds(3000.0),
            ),
            (
                "fps min > 0.9 of source",
                Metric::VideoFps,
                Statistic::Min,
                Greater,
                Threshold::OfSource(0.9),
            ),
            (
                "fps p50 >= 90% of source",
                Metric::VideoFps,
                Statistic::P50,
                GreaterOrEqual,
                Threshold::OfSource(0.9),
            ),
            (
                "video.fps p50 > 24.5",
                Metric::VideoFps,
                Statistic::P50,
                Greater,
                Threshold::FramesPerSecond(24.5),
            ),
            (
                "resolution p50 >= 720p",
                Metric::VideoResolution,
                Statistic::P50,
                GreaterOrEqual,
                Threshold::Lines(720.0),
            ),
            (
                "video.resolution min > 360",
                Metric::VideoResolution,
                Statistic::Min,
                Greater,
                Threshold::Lines(360.0),
            ),
            ("failed < 1 %", Metric::Failed, Statistic::Whole, Less, Threshold::Ratio(0.01)),
            (
                "jitter max <= 30ms",
                Metric::VideoJitter,
                Statistic::Max,
                LessOrEqual,
                Threshold::Milliseconds(30.0),
            ),
            (
                "startup p95 < 2s",
                Metric::Startup,
                Statistic::P95,
                Less,
                Threshold::Milliseconds(2000.0),
            ),
            (
                "stall_ratio < 1 %",
                Metric::StallRatio,
                Statistic::Whole,
                Less,
                Threshold::Ratio(0.01),
            ),
            ("stalls p95 < 2", Metric::Stalls, Statistic::P95, Less, Threshold::Count(2.0)),
            (
                "delivery > 0.98",
                Metric::Delivery,
                Statistic::Whole,
                Greater,
                Threshold::OfBitRate(0.98),
            ),
            (
                "delivery min > 95%",
                Metric::Delivery,
                Statistic::Min,
                Greater,
                Threshold::OfBitRate(0.95),
            ),
        ] {
            let objective: Objective =
                text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(
                (objective.metric, objective.statistic, objective.comparison, objective.threshold),
                (metric, statistic, comparison, threshold),
                "{text}"
            );
            assert_eq!(objective.text.parse::<Objective>(), Ok(objective.clone()));
        }
    }

    #[test]
    fn errors_point_at_the_word_and_say_the_mend() {
        for (text, meant, help) in [
            ("video.los p95 < 1%", "video.los", "did you mean `video.loss`?"),
            ("bananas p95 < 1%", "bananas", "write one of video.loss"),
            ("video.delay < 400ms", "video.delay", "video.delay p95 < 400ms"),
            ("video.delay mean < 400ms", "mean", "p50"),
            ("video.delay p96 < 400ms", "p96", "p95"),
            ("video.delay p95 x < 400ms", "x", "video.delay p95 < 400ms"),
            ("video.delay p95 < 400", "400", "video.delay p95 < 400ms"),
            ("video.delay p95 < 1%", "1%", "video.delay p95 < 400ms"),
            ("video.loss p95 < 3s", "3s", "video.loss p95 < 1%"),
            ("video.loss p95 < 101%", "101%", "100%"),
            ("video.loss p95 > 1%", ">", "write `<`"),
            ("fps min < 20", "<", "write `>`"),
            ("fps min > 1.1 of source", "1.1 of source", "0.9 of source"),
            ("fps min > 9 of bread", "9 of bread", "0.9 of source"),
            ("resolution min >= 1280x720", "1280x720", "resolution min >= 720p"),
            ("resolution max < 720p", "<", "write `>`"),
            ("resolution >= 720p", "resolution", "resolution min >= 720p"),
            ("failed p95 < 1%", "p95", "failed < 1%"),
            ("stalls < 2", "stalls", "stalls p95 < 2"),
            ("stalls p95 < 2s", "2s", "stalls p95 < 2"),
            ("stall_ratios < 1%", "stall_ratios", "did you mean `stall_ratio`?"),
            ("delivery > 1.5", "1.5", "delivery min > 0.98"),
            ("delivery > 2 Mbit/s", "2 Mbit/s", "delivery min > 0.98"),
            ("delivery < 0.98", "<", "write `>`"),
            ("video.loss p95 = 1%", "=", "<="),
            ("video.loss p95", "video.loss p95", "video.loss p95 < 1%"),
            ("< 1%", "<", "write one of"),
            ("failed <", "", "failed < 1%"),
        ] {
            let error = text.parse::<Objective>().expect_err(text);
            assert_eq!(text.get(error.span.clone()), Some(meant), "{text}: {error}");
            assert!(error.help.contains(help), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics_and_places_are_within_the_text(text in "(video.loss|fps|≥|<|>|p95|of source|1%|\\PC| ){0,8}") {
            if let Err(error) = text.parse::<Objective>() {
                prop_assert!(text.get(error.span).is_some());
            }
        }
    }
}
