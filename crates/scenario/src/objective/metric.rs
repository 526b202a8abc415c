//! The catalogue of metrics, for the parser, its errors and the report.

use throng_observation::{ChatCounters, MediaKind, PlaybackCounters, TrackCounters, units};

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

/// What a metric is without a quantile: one figure, of all participants over the whole run.
#[derive(Clone, Copy, Debug)]
pub enum Whole {
    /// A ratio of the sums of the received tracks of a kind.
    Tracks(MediaKind, fn(&TrackCounters) -> Option<f64>),
    /// A ratio of the sums of players.
    Players(fn(&PlaybackCounters) -> Option<f64>),
    /// A ratio of the sums of a chat.
    Chat(fn(&ChatCounters) -> Option<f64>),
    /// The share of participants that failed.
    Failed,
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
    /// What a quantile runs over.
    pub population: Population,
    /// What it is without a quantile; `None` if it needs one.
    pub whole: Option<Whole>,
    /// The direction in which a metric is better.
    pub better: Better,
    /// An objective that could be meant.
    pub example: &'static str,
}

use Better::{Higher, Lower};
use Population::{Frames, Messages, Participants, Run, UserSeconds};
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
        population: UserSeconds,
        whole: Some(Whole::Tracks(MediaKind::Video, TrackCounters::loss_ratio)),
        better: Lower,
        example: "video.loss p95 < 1%",
    }
    /// Relative delay of video frames.
    VideoDelay {
        names: &["video.delay", "delay"],
        doc: "delay of video frames above the least that their track has seen (relative: needs no \
              synchronised clock)",
        unit: Milliseconds,
        population: Frames,
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
        population: Frames,
        whole: None,
        better: Lower,
        example: "video.one_way_delay p95 < 400ms",
    }
    /// Decodable video frames per second.
    VideoFps {
        names: &["video.fps", "fps"],
        doc: "decodable video frames per second, or their share of the source's frame rate",
        unit: FramesPerSecond,
        population: UserSeconds,
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
        population: Participants,
        whole: Some(Whole::Tracks(MediaKind::Video, TrackCounters::freeze_ratio)),
        better: Lower,
        example: "video.freeze p95 < 1%",
    }
    /// Size of the picture.
    VideoResolution {
        names: &["video.resolution", "resolution"],
        doc: "the shorter side of the picture that is shown, pixels (720 of 720p), of streams \
              whose size is known: H.264 and VP8 as packets, renditions of HLS that say theirs",
        unit: Lines,
        population: UserSeconds,
        whole: None,
        better: Higher,
        example: "resolution min >= 720p",
    }
    /// RFC 3550 interarrival jitter of video.
    VideoJitter {
        names: &["video.jitter", "jitter"],
        doc: "interarrival jitter of video packets (RFC 3550 6.4.1)",
        unit: Milliseconds,
        population: UserSeconds,
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
        population: UserSeconds,
        whole: Some(Whole::Tracks(MediaKind::Audio, TrackCounters::loss_ratio)),
        better: Lower,
        example: "audio.loss p95 < 1%",
    }
    /// Relative delay of audio packets.
    AudioDelay {
        names: &["audio.delay"],
        doc: "delay of audio packets above the least that their track has seen (relative: needs \
              no synchronised clock)",
        unit: Milliseconds,
        population: Frames,
        whole: None,
        better: Lower,
        example: "audio.delay p95 < 150ms",
    }
    /// RFC 3550 interarrival jitter of audio.
    AudioJitter {
        names: &["audio.jitter"],
        doc: "interarrival jitter of audio packets (RFC 3550 6.4.1)",
        unit: Milliseconds,
        population: UserSeconds,
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
        population: Participants,
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
        population: Participants,
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
        population: Participants,
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
        population: Participants,
        whole: Some(Whole::Players(PlaybackCounters::stall_ratio)),
        better: Lower,
        example: "stall_ratio p95 < 1%",
    }
    /// Stalls of a player.
    Stalls {
        names: &["stalls"],
        doc: "stalls of a player over its stay; a player that failed before playback counts as \
              worse than any",
        unit: Count,
        population: Participants,
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
        population: UserSeconds,
        whole: Some(Whole::Players(PlaybackCounters::delivery_ratio)),
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
        population: UserSeconds,
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
        population: Messages,
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
        population: Run,
        whole: Some(Whole::Chat(ChatCounters::missing_ratio)),
        better: Lower,
        example: "chat.missing < 0.1%",
    }
    /// Participants that failed.
    Failed {
        names: &["failed"],
        doc: "participants whose session failed, of those intended",
        unit: Ratio,
        population: Run,
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
}
