//! The catalogue of metrics, for the parser, its errors and the report.

use throng_observation::units;

use super::measured::{EachOnce, Quantile, Whole};

/// The unit of a metric, and of the value that [`super::Objective::evaluate`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A ratio from 0 to 1, written in percent.
    Ratio,
    /// Milliseconds, written as a duration.
    Milliseconds,
    /// Frames per second, or their ratio to the source's.
    FramesPerSecond,
    /// Pixels of the shorter side of a picture, written as in `720p`.
    Lines,
    /// A number of events.
    Count,
    /// A multiple of the media's bit rate, written as a number or in percent.
    OfBitRate,
}

impl From<Unit> for units::Unit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Ratio => Self::Ratio,
            Unit::Milliseconds => Self::Milliseconds,
            Unit::FramesPerSecond => Self::FramesPerSecond,
            Unit::Lines => Self::Lines,
            Unit::Count => Self::Count,
            Unit::OfBitRate => Self::OfBitRate,
        }
    }
}

/// The direction in which a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better: an objective sets an upper bound.
    Lower,
    /// More is better: an objective sets a lower bound.
    Higher,
}

/// What the catalogue says of a metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricEntry {
    /// The metric.
    pub metric: Metric,
    /// Its names in a scenario; the first is the one that reports use.
    pub names: &'static [&'static str],
    /// What it means.
    pub doc: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its quantile; `None` if it is one value for the whole run.
    pub quantile: Option<Quantile>,
    /// What it is without a quantile; `None` if it needs one.
    pub whole: Option<Whole>,
    /// The direction in which a metric is better.
    pub better: Better,
    /// An objective that could be meant.
    pub example: &'static str,
}

use Better::{Higher, Lower};
use Quantile::{Frames, Latency, Messages, Participants, UserSeconds};
use Unit::{Count, FramesPerSecond, Lines, Milliseconds, OfBitRate, Ratio};

/// Declares the metrics, in the order of the documentation: what each is, and its entry.
macro_rules! metrics {
    ($( #[doc = $meaning:literal] $metric:ident { $($field:ident: $value:expr,)+ } )+) => {
        /// A metric of an objective.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $( #[doc = $meaning] $metric, )+
        }

        /// Every metric, in the order of the documentation.
        pub const CATALOGUE: &[MetricEntry] =
            &[$( MetricEntry { metric: Metric::$metric, $($field: $value,)+ }, )+];
    };
}

metrics! {
    /// Video packets lost for good.
    VideoLoss {
        names: &["video.loss", "loss"],
        doc: "video packets lost after retransmission, of those expected (RFC 3550 A.3), time \
              without any expected packet counting as lost; without a quantile over the whole run",
        unit: Ratio,
        quantile: Some(UserSeconds(|of, q| of.video.loss_ratio_at(q))),
        whole: Some(Whole::OfRows(|of| of.video.counters.loss_ratio())),
        better: Lower,
        example: "video.loss p95 < 1%",
    }
    /// Video that came again.
    VideoRepeats {
        names: &["video.repeats", "repeats"],
        doc: "payload bytes of video that came again, as a retransmission or a duplicate, of all \
              that came: what the repair of losses takes of the line",
        unit: Ratio,
        quantile: None,
        whole: Some(Whole::OfRows(|of| of.video.counters.repeat_ratio())),
        better: Lower,
        example: "video.repeats < 5%",
    }
    /// Relative delay of video frames.
    VideoDelay {
        names: &["video.delay", "delay"],
        doc: "delay of video frames above the least that their track has seen (relative: needs no \
              synchronised clock)",
        unit: Milliseconds,
        quantile: Some(Frames(|of, q| of.video.relative_delay_us.quantile_in(q, 1e3))),
        whole: None,
        better: Lower,
        example: "video.delay p95 < 400ms",
    }
    /// Absolute one-way delay of video frames.
    VideoOneWayDelay {
        names: &["video.one_way_delay"],
        doc: "absolute delay of video frames from capture to arrival, where the stream carries \
              capture times",
        unit: Milliseconds,
        quantile: Some(Frames(|of, q| {
            // The server's own reports do not cover the path from the source, so they cannot judge
            // an end-to-end objective.
            let delay = &of.video.absolute_delay;
            delay.basis().filter(|basis| basis.is_end_to_end())?;
            delay.quantile_ms(q)
        })),
        whole: None,
        better: Lower,
        example: "video.one_way_delay p95 < 400ms",
    }
    /// Decodable video frames per second.
    VideoFps {
        names: &["video.fps", "fps"],
        doc: "decodable video frames per second, or their share of the source's frame rate",
        unit: FramesPerSecond,
        quantile: Some(UserSeconds(|of, q| of.video.fps_milli.quantile_in(q, 1e3))),
        whole: None,
        better: Higher,
        example: "fps min > 0.9 of source",
    }
    /// Playing time spent in a freeze.
    VideoFreeze {
        names: &["video.freeze", "freeze"],
        doc: "playing time spent in a freeze (W3C webrtc-stats definition); without a quantile \
              over all participants together",
        unit: Ratio,
        quantile: Some(Participants(EachOnce::Freeze)),
        whole: Some(Whole::OfRows(|of| of.video.counters.freeze_ratio())),
        better: Lower,
        example: "video.freeze p95 < 1%",
    }
    /// Size of the picture.
    VideoResolution {
        names: &["video.resolution", "resolution"],
        doc: "the shorter side of the picture that is shown, pixels (720 of 720p), of streams \
              whose size is known: H.264 and VP8 as packets, and of players MP4, WebM, H.264 in \
              MPEG-TS, and renditions that say theirs",
        unit: Lines,
        quantile: Some(UserSeconds(|of, q| {
            // What a distribution leaves out of a size is below it: 720 is not missed by 719.
            of.video.picture_lines.lowest_at(q).map(|lines| lines as f64)
        })),
        whole: None,
        better: Higher,
        example: "resolution min >= 720p",
    }
    /// RFC 3550 interarrival jitter of video.
    VideoJitter {
        names: &["video.jitter", "jitter"],
        doc: "interarrival jitter of video packets (RFC 3550 6.4.1)",
        unit: Milliseconds,
        quantile: Some(UserSeconds(|of, q| of.video.jitter_us.quantile_in(q, 1e3))),
        whole: None,
        better: Lower,
        example: "jitter p95 < 30ms",
    }
    /// Audio packets lost for good.
    AudioLoss {
        names: &["audio.loss"],
        doc: "audio packets lost, of those expected (RFC 3550 A.3), time without any expected \
              packet counting as lost; without a quantile over the whole run",
        unit: Ratio,
        quantile: Some(UserSeconds(|of, q| of.audio.loss_ratio_at(q))),
        whole: Some(Whole::OfRows(|of| of.audio.counters.loss_ratio())),
        better: Lower,
        example: "audio.loss p95 < 1%",
    }
    /// Relative delay of audio packets.
    AudioDelay {
        names: &["audio.delay"],
        doc: "delay of audio packets above the least that their track has seen (relative: needs \
              no synchronised clock)",
        unit: Milliseconds,
        quantile: Some(Frames(|of, q| of.audio.relative_delay_us.quantile_in(q, 1e3))),
        whole: None,
        better: Lower,
        example: "audio.delay p95 < 150ms",
    }
    /// RFC 3550 interarrival jitter of audio.
    AudioJitter {
        names: &["audio.jitter"],
        doc: "interarrival jitter of audio packets (RFC 3550 6.4.1)",
        unit: Milliseconds,
        quantile: Some(UserSeconds(|of, q| of.audio.jitter_us.quantile_in(q, 1e3))),
        whole: None,
        better: Lower,
        example: "audio.jitter p95 < 30ms",
    }
    /// Time until the media transport is up.
    Connect {
        names: &["connect"],
        doc: "time from the intended join until ICE and DTLS are up; a participant that failed \
              counts as slower than any",
        unit: Milliseconds,
        quantile: Some(Participants(EachOnce::Connect)),
        whole: None,
        better: Lower,
        example: "connect p99 < 3s",
    }
    /// Time to the first frame.
    FirstFrame {
        names: &["first_frame"],
        doc: "time from the intended join to the first decodable frame; a participant that failed \
              counts as slower than any",
        unit: Milliseconds,
        quantile: Some(Participants(EachOnce::FirstFrame)),
        whole: None,
        better: Lower,
        example: "first_frame p95 < 4s",
    }
    /// Time until playback begins.
    Startup {
        names: &["startup"],
        doc: "time from the intended join until a player begins playback (CTA-2066 startup time); \
              a player that failed counts as slower than any",
        unit: Milliseconds,
        quantile: Some(Participants(EachOnce::Startup)),
        whole: None,
        better: Lower,
        example: "startup p95 < 2s",
    }
    /// Time that players stalled.
    StallRatio {
        names: &["stall_ratio"],
        doc: "time that a player stalled, of the time since playback began (CTA-2066 rebuffering \
              ratio, without startup and pauses); without a quantile over all players together",
        unit: Ratio,
        quantile: Some(Participants(EachOnce::StallRatio)),
        whole: Some(Whole::OfRows(|of| of.players.counters.stall_ratio())),
        better: Lower,
        example: "stall_ratio p95 < 1%",
    }
    /// Stalls of a player.
    Stalls {
        names: &["stalls"],
        doc: "stalls of a player over its stay; a player that failed before playback counts as \
              worse than any",
        unit: Count,
        quantile: Some(Participants(EachOnce::Stalls)),
        whole: None,
        better: Lower,
        example: "stalls p95 < 2",
    }
    /// Media time that players received, of the time in which they wanted it.
    Delivery {
        names: &["delivery"],
        doc: "media time that a player received, of the time in which it wanted data: below 1 the \
              server delivers less than the media's bit rate; with a quantile over seconds in \
              which data was wanted throughout (at most 1), without one over all players together",
        unit: OfBitRate,
        quantile: Some(UserSeconds(|of, q| of.players.delivery_ratio(q))),
        whole: Some(Whole::OfRows(|of| of.players.counters.delivery_ratio())),
        better: Higher,
        example: "delivery min > 0.98",
    }
    /// How far behind live a player is.
    Latency {
        names: &["latency"],
        doc: "how far behind a live stream a player is: by the playlist's dates and this host's \
              clock, in error by the difference of the clocks; to the end of the playlist where \
              it has none, or where they run ahead of that clock",
        unit: Milliseconds,
        quantile: Some(Latency),
        whole: None,
        better: Lower,
        example: "latency p95 < 25s",
    }
    /// How late chat messages arrive.
    ChatDelivery {
        names: &["chat.delivery"],
        doc: "time from the intended time of a chat message until a participant in its room has \
              it; one that never comes counts as later than any",
        unit: Milliseconds,
        quantile: Some(Messages(|of, q| of.chat.delivery_ms(q))),
        whole: None,
        better: Lower,
        example: "chat.delivery p95 < 1s",
    }
    /// Chat messages that never arrive.
    ChatMissing {
        names: &["chat.missing"],
        doc: "chat messages that a participant should have had and did not within 10 s, of those \
              that were due",
        unit: Ratio,
        quantile: None,
        whole: Some(Whole::OfRows(|of| of.chat.counters.missing_ratio())),
        better: Lower,
        example: "chat.missing < 0.1%",
    }
    /// Participants that failed.
    Failed {
        names: &["failed"],
        doc: "participants whose session failed, of those intended",
        unit: Ratio,
        quantile: None,
        whole: Some(Whole::Failed),
        better: Lower,
        example: "failed < 1%",
    }
}

impl Metric {
    /// Its entry of the catalogue.
    #[must_use]
    pub fn entry(self) -> &'static MetricEntry {
        // Both are declared at once, in the same order.
        &CATALOGUE[self as usize]
    }

    /// Its name in reports, such as `video.loss`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().names[0]
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::run::SeriesRow;
    use throng_observation::{ChatRow, PlaybackRow};

    use super::super::measured::Rows;
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> =
            CATALOGUE.iter().flat_map(|entry| entry.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_example_is_an_objective_about_its_metric() {
        for entry in CATALOGUE {
            let objective: super::super::Objective = entry.example.parse().unwrap();
            assert_eq!(objective.metric, entry.metric);
        }
    }

    /// A run without video does not show that video is fine.
    #[test]
    fn of_nothing_nothing_is_measured() {
        let (tracks, players) = (SeriesRow::default(), PlaybackRow::default());
        let chat = ChatRow::default();
        let rows = Rows { video: &tracks, audio: &tracks, players: &players, chat: &chat };
        for entry in CATALOGUE {
            let whole = match entry.whole {
                Some(Whole::OfRows(figure)) => figure(&rows),
                Some(Whole::Failed) | None => None,
            };
            let quantile = match entry.quantile {
                Some(UserSeconds(figure) | Frames(figure) | Messages(figure)) => figure(&rows, 0.5),
                Some(Latency | Participants(_)) | None => None,
            };
            assert_eq!((whole, quantile), (None, None), "{:?}", entry.metric);
        }
    }

    #[test]
    fn a_metric_of_rows_has_the_figure_of_its_own_rows() {
        let mut video = SeriesRow::default();
        (video.counters.packets_original, video.counters.packets_lost) = (90, 10);
        (video.counters.payload_bytes, video.counters.repeated_bytes) = (8_000, 2_000);
        video.loss_ppm.record(0);
        let (audio, players, chat) =
            (SeriesRow::default(), PlaybackRow::default(), ChatRow::default());
        let rows = Rows { video: &video, audio: &audio, players: &players, chat: &chat };
        for (metric, whole, median) in
            [(Metric::VideoLoss, Some(0.1), Some(0.0)), (Metric::AudioLoss, None, None)]
        {
            let entry = metric.entry();
            let (Some(UserSeconds(quantile)), Some(Whole::OfRows(ratio))) =
                (entry.quantile, entry.whole)
            else {
                panic!("{metric:?} is of rows");
            };
            assert_eq!((ratio(&rows), quantile(&rows, 0.5)), (whole, median), "{metric:?}");
        }
        let Some(Whole::OfRows(ratio)) = Metric::VideoRepeats.entry().whole else {
            panic!("repeats are of rows");
        };
        assert_eq!(ratio(&rows), Some(0.25));
    }
}
