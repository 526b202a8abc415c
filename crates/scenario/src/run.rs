//! What a scenario says of the run as a whole: its times, the expected stream, the output, the
//! limits.

use std::time::Duration;

use crate::keys::Usual::{Said, Stored};
use crate::keys::{Flag, Keyed, Maybe, POSITIVE, Whole, bit_rate, keys, text, time};
use crate::read::{Fields, Reader};

/// Summaries are not more frequent.
const SUMMARY_EVERY_MIN: Duration = Duration::from_millis(100);

/// Times of the run, from the first intended join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTimes {
    /// Until all participants are asked to leave.
    pub duration: Duration,
    /// Time at the start that media metrics and their objectives exclude.
    pub warm_up: Duration,
    /// Interval of the plain-text summary.
    pub summary_every: Duration,
}

impl Keyed for RunTimes {
    const NAME: &'static str = "RunFile";
    const MEANING: &'static str = "Times of the run, from the first intended join.";

    keys! {
        /// from the first intended join until all participants begin to leave; 1 s to 31 days
        "duration": duration = time("60s"), Stored;
        /// the time at the start that media metrics and their objectives exclude; shorter than
        /// `duration`
        "warm_up": warm_up = time("5s"), Stored;
        /// interval of the plain-text summary; at least `"100ms"`
        "summary_every": summary_every = time("5s"), Stored;
    }

    fn usual() -> Self {
        Self {
            duration: Duration::from_secs(60),
            warm_up: Duration::ZERO,
            summary_every: Duration::from_secs(5),
        }
    }

    fn check(&self, reader: &mut Reader, fields: &mut Fields<'_>) {
        if self.summary_every < SUMMARY_EVERY_MIN {
            let message = "`run.summary_every` is less than 100 ms";
            reader.fail(fields.span_of("summary_every"), message, "write summary_every = \"5s\"");
        }
    }
}

/// The stream that one viewer is expected to receive, for the plan and the bit-rate cap; the report
/// shows what was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stream {
    /// Video, bits per second of RTP payload; `None`: a default is assumed.
    pub video_bits_per_s: Option<f64>,
    /// Audio, bits per second of RTP payload; `None`: a default is assumed.
    pub audio_bits_per_s: Option<f64>,
    /// Frame rate of the source, for objectives `of source`; `None`: from RTP timestamps.
    pub fps: Option<f64>,
}

impl Keyed for Stream {
    const NAME: &'static str = "StreamFile";
    const MEANING: &'static str =
        "The stream that one viewer is expected to receive, for the plan.";

    keys! {
        /// bit rate of the video's RTP payload, `"1Mbit/s"`
        "video": video_bits_per_s = Maybe(bit_rate("1Mbit/s")),
            Said("1.5 Mbit/s is assumed, as `check` reports");
        /// bit rate of the audio's RTP payload, `"48kbit/s"`
        "audio": audio_bits_per_s = Maybe(bit_rate("48kbit/s")),
            Said("48 kbit/s is assumed, as `check` reports");
        /// frame rate of the source
        "fps": fps = Maybe(POSITIVE), Said("none; `of source` uses the rate of the RTP timestamps");
    }

    fn usual() -> Self {
        Self::default()
    }
}

/// The output of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputConfig {
    /// The run folder; `None`: the caller chooses one.
    pub folder: Option<String>,
    /// Also write CSV tables.
    pub csv: bool,
}

impl Keyed for OutputConfig {
    const NAME: &'static str = "OutputFile";
    const MEANING: &'static str = "Output of the run.";

    keys! {
        /// the run folder
        "folder": folder = Maybe(text("text", "runs/monday")),
            Said("`runs/<seconds since 1970>-<process id>`");
        /// also write `series.csv`, `participants.csv`, for players `playback.csv` and
        /// `players.csv`, and for a conference `conference.csv`
        "csv": csv = Flag, Stored;
    }

    fn usual() -> Self {
        Self::default()
    }
}

/// Limits of a run; `None`: unlimited (the default for loopback targets).
#[derive(Clone, Debug, PartialEq)]
pub struct Caps {
    /// Participants at a time.
    pub users: Option<u32>,
    /// Joins within any second.
    pub joins_per_s: Option<f64>,
    /// Sent and received together, Mbit/s (10^6 bit/s).
    pub mbit_per_s: Option<f64>,
    /// Length of the run.
    pub duration: Option<Duration>,
}

impl Caps {
    /// The default limits for targets other than loopback: enough for a real test, too little for
    /// harm by mistake.
    pub const DEFAULT: Self = Self {
        users: Some(500),
        joins_per_s: Some(20.0),
        mbit_per_s: Some(1_000.0),
        duration: Some(Duration::from_secs(60 * 60)),
    };

    /// No limits: the default for loopback.
    pub const NONE: Self =
        Self { users: None, joins_per_s: None, mbit_per_s: None, duration: None };
}

impl Keyed for Caps {
    const NAME: &'static str = "CapsFile";
    const MEANING: &'static str = "Limits; for targets that are not loopback 500 users, \
        20 joins/s, 1000 Mbit/s and 60 minutes by default.";

    keys! {
        /// participants at a time
        "users": users = Maybe(Whole(1, u64::from(u32::MAX))), Said("`500`");
        /// joins within any second
        "joins_per_s": joins_per_s = Maybe(POSITIVE), Said("`20`");
        /// Mbit/s, sent and received together. Checked in the plan if `stream.video` is set, and
        /// measured: 3 s in a row above it end the run
        "mbit_per_s": mbit_per_s = Maybe(POSITIVE), Said("`1000`");
        /// length of the run
        "duration": duration = Maybe(time("60m")), Said("`\"1h\"`");
    }

    /// Without the limits of targets other than loopback, which the documentation says.
    fn usual() -> Self {
        Self::NONE
    }
}
