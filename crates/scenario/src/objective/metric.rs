//! The catalogue of metrics, for the parser, its errors and the report.

use throng_observation::units;

/// A metric of an objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Video packets lost for good.
    VideoLoss,
    /// Relative delay of video frames.
    VideoDelay,
    /// Absolute one-way delay of video frames.
    VideoOneWayDelay,
    /// Decodable video frames per second.
    VideoFps,
    /// Playing time spent in a freeze.
    VideoFreeze,
    /// Size of the picture.
    VideoResolution,
    /// RFC 3550 interarrival jitter of video.
    VideoJitter,
    /// Audio packets lost for good.
    AudioLoss,
    /// Relative delay of audio packets.
    AudioDelay,
    /// RFC 3550 interarrival jitter of audio.
    AudioJitter,
    /// Time until the media transport is up.
    Connect,
    /// Time to the first frame.
    FirstFrame,
    /// Time until playback begins.
    Startup,
    /// Time that players stalled.
    StallRatio,
    /// Stalls of a player.
    Stalls,
    /// Media time that players received, of the time in which they wanted it.
    Delivery,
    /// How far behind live a player is.
    Latency,
    /// How late chat messages arrive.
    ChatDelivery,
    /// Chat messages that never arrive.
    ChatMissing,
    /// Participants that failed.
    Failed,
}

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

/// The population of a quantile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    /// One value for each track (of `delivery`: player) and second of playing, without the warm-up.
    UserSeconds,
    /// One value for each participant. A participant that failed before the value existed counts as
    /// worse than any value.
    Participants,
    /// One value for each complete frame (audio: packet).
    Frames,
    /// One value for each chat message and participant that had it, or should have had it.
    Messages,
    /// One value for the whole run: no quantile.
    Run,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricEntry {
    /// The metric.
    pub metric: Metric,
    /// Its names in a scenario; the first is the one that reports use.
    pub names: &'static [&'static str],
    /// What it means.
    pub doc: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// What a quantile runs over.
    pub population: Population,
    /// Whether it may be used without a quantile, as one figure for the whole run.
    pub whole: bool,
    /// The direction in which a metric is better.
    pub better: Better,
    /// An objective that could be meant.
    pub example: &'static str,
}

use Better::{Higher, Lower};
use Population::{Frames, Messages, Participants, Run, UserSeconds};
use Unit::{Count, FramesPerSecond, Lines, Milliseconds, OfBitRate, Ratio};

/// Every metric, in the order of the documentation.
pub const CATALOGUE: [MetricEntry; 20] = [
    MetricEntry {
        metric: Metric::VideoLoss,
        names: &["video.loss", "loss"],
        doc: "video packets lost after retransmission, of those expected (RFC 3550 A.3), time \
              without any expected packet counting as lost; without a quantile over the whole run",
        unit: Ratio,
        population: UserSeconds,
        whole: true,
        better: Lower,
        example: "video.loss p95 < 1%",
    },
    MetricEntry {
        metric: Metric::VideoDelay,
        names: &["video.delay", "delay"],
        doc: "delay of video frames above the least that their track has seen (relative: needs no \
              synchronised clock)",
        unit: Milliseconds,
        population: Frames,
        whole: false,
        better: Lower,
        example: "video.delay p95 < 400ms",
    },
    MetricEntry {
        metric: Metric::VideoOneWayDelay,
        names: &["video.one_way_delay"],
        doc: "absolute delay of video frames from capture to arrival, where the stream carries \
              capture times",
        unit: Milliseconds,
        population: Frames,
        whole: false,
        better: Lower,
        example: "video.one_way_delay p95 < 400ms",
    },
    MetricEntry {
        metric: Metric::VideoFps,
        names: &["video.fps", "fps"],
        doc: "decodable video frames per second, or their share of the source's frame rate",
        unit: FramesPerSecond,
        population: UserSeconds,
        whole: false,
        better: Higher,
        example: "fps min > 0.9 of source",
    },
    MetricEntry {
        metric: Metric::VideoFreeze,
        names: &["video.freeze", "freeze"],
        doc: "playing time spent in a freeze (W3C webrtc-stats definition); without a quantile \
              over all participants together",
        unit: Ratio,
        population: Participants,
        whole: true,
        better: Lower,
        example: "video.freeze p95 < 1%",
    },
    MetricEntry {
        metric: Metric::VideoResolution,
        names: &["video.resolution", "resolution"],
        doc: "the shorter side of the picture that is shown, pixels (720 of 720p), of streams \
              whose size is known: H.264 and VP8 as packets, renditions of HLS that say theirs",
        unit: Lines,
        population: UserSeconds,
        whole: false,
        better: Higher,
        example: "resolution min >= 720p",
    },
    MetricEntry {
        metric: Metric::VideoJitter,
        names: &["video.jitter", "jitter"],
        doc: "interarrival jitter of video packets (RFC 3550 6.4.1)",
        unit: Milliseconds,
        population: UserSeconds,
        whole: false,
        better: Lower,
        example: "jitter p95 < 30ms",
    },
    MetricEntry {
        metric: Metric::AudioLoss,
        names: &["audio.loss"],
        doc: "audio packets lost, of those expected (RFC 3550 A.3), time without any expected \
              packet counting as lost; without a quantile over the whole run",
        unit: Ratio,
        population: UserSeconds,
        whole: true,
        better: Lower,
        example: "audio.loss p95 < 1%",
    },
    MetricEntry {
        metric: Metric::AudioDelay,
        names: &["audio.delay"],
        doc: "delay of audio packets above the least that their track has seen (relative: needs \
              no synchronised clock)",
        unit: Milliseconds,
        population: Frames,
        whole: false,
        better: Lower,
        example: "audio.delay p95 < 150ms",
    },
    MetricEntry {
        metric: Metric::AudioJitter,
        names: &["audio.jitter"],
        doc: "interarrival jitter of audio packets (RFC 3550 6.4.1)",
        unit: Milliseconds,
        population: UserSeconds,
        whole: false,
        better: Lower,
        example: "audio.jitter p95 < 30ms",
    },
    MetricEntry {
        metric: Metric::Connect,
        names: &["connect"],
        doc: "time from the intended join until ICE and DTLS are up; a participant that failed \
              counts as slower than any",
        unit: Milliseconds,
        population: Participants,
        whole: false,
        better: Lower,
        example: "connect p99 < 3s",
    },
    MetricEntry {
        metric: Metric::FirstFrame,
        names: &["first_frame"],
        doc: "time from the intended join to the first decodable frame; a participant that failed \
              counts as slower than any",
        unit: Milliseconds,
        population: Participants,
        whole: false,
        better: Lower,
        example: "first_frame p95 < 4s",
    },
    MetricEntry {
        metric: Metric::Startup,
        names: &["startup"],
        doc: "time from the intended join until a player begins playback (CTA-2066 startup time); \
              a player that failed counts as slower than any",
        unit: Milliseconds,
        population: Participants,
        whole: false,
        better: Lower,
        example: "startup p95 < 2s",
    },
    MetricEntry {
        metric: Metric::StallRatio,
        names: &["stall_ratio"],
        doc: "time that a player stalled, of the time since playback began (CTA-2066 rebuffering \
              ratio, without startup and pauses); without a quantile over all players together",
        unit: Ratio,
        population: Participants,
        whole: true,
        better: Lower,
        example: "stall_ratio p95 < 1%",
    },
    MetricEntry {
        metric: Metric::Stalls,
        names: &["stalls"],
        doc: "stalls of a player over its stay; a player that failed before playback counts as \
              worse than any",
        unit: Count,
        population: Participants,
        whole: false,
        better: Lower,
        example: "stalls p95 < 2",
    },
    MetricEntry {
        metric: Metric::Delivery,
        names: &["delivery"],
        doc: "media time that a player received, of the time in which it wanted data: below 1 the \
              server delivers less than the media's bit rate; with a quantile over seconds in \
              which data was wanted throughout (at most 1), without one over all players together",
        unit: OfBitRate,
        population: UserSeconds,
        whole: true,
        better: Higher,
        example: "delivery min > 0.98",
    },
    MetricEntry {
        metric: Metric::Latency,
        names: &["latency"],
        doc: "how far behind a live stream a player is: by the playlist's dates and this host's \
              clock, in error by the difference of the clocks; to the end of the playlist where \
              it has none, or where they run ahead of that clock",
        unit: Milliseconds,
        population: UserSeconds,
        whole: false,
        better: Lower,
        example: "latency p95 < 25s",
    },
    MetricEntry {
        metric: Metric::ChatDelivery,
        names: &["chat.delivery"],
        doc: "time from the intended time of a chat message until a participant in its room has \
              it; one that never comes counts as later than any",
        unit: Milliseconds,
        population: Messages,
        whole: false,
        better: Lower,
        example: "chat.delivery p95 < 1s",
    },
    MetricEntry {
        metric: Metric::ChatMissing,
        names: &["chat.missing"],
        doc: "chat messages that a participant should have had and did not within 10 s, of those \
              that were due",
        unit: Ratio,
        population: Run,
        whole: true,
        better: Lower,
        example: "chat.missing < 0.1%",
    },
    MetricEntry {
        metric: Metric::Failed,
        names: &["failed"],
        doc: "participants whose session failed, of those intended",
        unit: Ratio,
        population: Run,
        whole: true,
        better: Lower,
        example: "failed < 1%",
    },
];

impl Metric {
    /// Its entry of the catalogue.
    #[must_use]
    pub fn entry(self) -> &'static MetricEntry {
        // The catalogue is in the order of the enum; a test holds it to that.
        &CATALOGUE[self as usize]
    }

    /// Its name in reports, such as `video.loss`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().names[0]
    }
}

impl Population {
    /// Its name: `user-seconds`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            UserSeconds => "user-seconds",
            Participants => "participants",
            Frames => "frames",
            Messages => "messages",
            Run => "the whole run",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_complete_in_order_and_its_names_are_unique() {
        let mut names: Vec<&str> =
            CATALOGUE.iter().flat_map(|entry| entry.names).copied().collect();
        for (index, entry) in CATALOGUE.iter().enumerate() {
            assert_eq!(entry.metric as usize, index);
            assert_eq!(entry.metric.entry(), entry);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_example_is_an_objective_about_its_metric() {
        for entry in &CATALOGUE {
            let objective: super::super::Objective = entry.example.parse().unwrap();
            assert_eq!(objective.metric, entry.metric);
        }
    }
}
