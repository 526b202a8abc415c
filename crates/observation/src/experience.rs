//! The quality of a second for the participants that should be served in it: the user-second, good
//! or bad, on which the search for the limit is based. It is RFC 9971's trial of one second, whose
//! loss ratio is the share of participants with a bad second.

use serde::{Deserialize, Serialize};

use crate::keyed::keyed;
use crate::run::CohortId;

/// When a second was bad for a participant. The second is bad if any clause holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BadIf {
    /// Not connected, without any media, or (of a player) not playing, this long after the intended
    /// join, milliseconds. A player may take as long to play again after a seek.
    pub join_ms_max: f64,
    /// Packets lost ÷ packets expected of a track, after what retransmission recovered.
    pub loss_ratio_max: f64,
    /// Median of the relative delay of a track's frames, milliseconds: queueing above the track's
    /// own floor. ITU-T G.114 considers 150 ms one way unnoticed in conversation.
    pub delay_ms_max: f64,
    /// The same of a track of a recording, which nobody answers: what players buffer of it. VLC
    /// buffers 1,000 ms (`network-caching`), GStreamer's `rtspsrc` 2,000 ms (`latency`).
    #[serde(default = "recorded_delay_ms_max")]
    pub recorded_delay_ms_max: f64,
    /// Decodable frames ÷ frames according to the source's timestamps, of a video track.
    pub fps_ratio_min: f64,
    /// Time in which a video track was frozen (W3C freeze) ÷ time.
    #[serde(default)]
    pub freeze_ratio_max: f64,
    /// Interarrival jitter of a track (RFC 3550), milliseconds.
    pub jitter_ms_max: f64,
    /// Media time that a player received ÷ time in which it wanted media throughout
    /// ([`PlaybackInterval::delivery_ratio`](crate::PlaybackInterval::delivery_ratio)).
    pub delivery_ratio_min: f64,
    /// Further behind the end of a live playlist than the player wants to be, milliseconds. `None`:
    /// by a target duration of the playlist, which is what hls.js adds to its target at most when
    /// playback stalls.
    #[serde(default)]
    pub latency_over_target_ms_max: Option<f64>,
    /// From the intended time of a chat message to its arrival, milliseconds.
    #[serde(default = "chat_delay_ms_max")]
    pub chat_delay_ms_max: f64,
}

/// The bound of runs that have none.
fn recorded_delay_ms_max() -> f64 {
    1_000.0
}

/// The bound of runs that have none.
fn chat_delay_ms_max() -> f64 {
    2_000.0
}

impl Default for BadIf {
    /// 3 s to join, 1 % loss, 150 ms of queues (of a recording 1 s), 0.8 of the frames, no freeze,
    /// 100 ms jitter, 0.98 of the media's bit rate, a target duration behind the target latency.
    ///
    /// Jitter alone does no harm where the delay is within its bound: its own bound only catches
    /// what the other clauses miss.
    ///
    /// A player that receives less than the media's bit rate stalls in the end, so its true bound
    /// is 1. The 2 % below it cover how the ratio is measured: both ends of its window lie between
    /// frames, and audio and video are interleaved in chunks, so that 5 s of media may be 0.1 s
    /// off. At 0.98 a buffer of 10 s lasts for more than eight minutes.
    fn default() -> Self {
        Self {
            join_ms_max: 3_000.0,
            loss_ratio_max: 0.01,
            delay_ms_max: 150.0,
            recorded_delay_ms_max: recorded_delay_ms_max(),
            fps_ratio_min: 0.8,
            freeze_ratio_max: 0.0,
            jitter_ms_max: 100.0,
            delivery_ratio_min: 0.98,
            latency_over_target_ms_max: None,
            chat_delay_ms_max: chat_delay_ms_max(),
        }
    }
}

impl BadIf {
    /// The bound of the relative delay of a track, microseconds.
    #[must_use]
    pub fn delay_us_max(&self, is_recording: bool) -> f64 {
        1e3 * if is_recording { self.recorded_delay_ms_max } else { self.delay_ms_max }
    }
}

keyed! {
    /// Why a second was bad.
    Clause, column "" key "" {
        /// Not connected although the time to join was over, or failed.
        NotConnected = "not_connected",
        /// Connected, and no packet arrived.
        NoMedia = "no_media",
        /// Too many packets lost and not recovered.
        Loss = "loss",
        /// Frames waited in queues.
        Delay = "delay",
        /// Too few frames could be decoded.
        Fps = "fps",
        /// Video was frozen (W3C freeze).
        Freeze = "freeze",
        /// Packets arrived too unevenly.
        Jitter = "jitter",
        /// Media arrived, but playback did not begin in time, or not again after a seek.
        Startup = "startup",
        /// Playback had begun and waited for data.
        Stall = "stall",
        /// A player received less than the media's bit rate for seconds in which it wanted data
        /// throughout: its buffer hides that until it is empty.
        Delivery = "delivery",
        /// Playback jumped over media that never came.
        Skip = "skip",
        /// A player of a live stream is further behind it than it wants to be.
        Latency = "latency",
        /// A playlist, segment or key of a live stream was due and did not come, in spite of the
        /// repeats that players make.
        Request = "request",
        /// A chat message that was due came too late, or never.
        Message = "message",
    }
}

impl Clause {
    /// Whether a path or a source may break it all the time, without load
    /// ([`Unloaded`](crate::Unloaded)).
    #[must_use]
    pub fn may_be_a_pattern(self) -> bool {
        match self {
            Self::Loss | Self::Delay | Self::Fps | Self::Freeze | Self::Jitter => true,
            Self::NotConnected
            | Self::NoMedia
            | Self::Startup
            | Self::Stall
            | Self::Delivery
            | Self::Skip
            | Self::Latency
            | Self::Request
            | Self::Message => false,
        }
    }

    /// Its bit in a set of clauses.
    #[must_use]
    pub fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// The user-seconds of a cohort in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperienceRow {
    /// The second, since the start of the run.
    pub second: i64,
    /// Which cohort.
    pub cohort: CohortId,
    /// Participants that should be served in this second: their time to join is over and the plan
    /// has not ended their stay. Failed participants are among them.
    pub users: u32,
    /// Participants whose second was bad.
    pub bad: u32,
    /// Thousandths of a participant to subtract from `bad`: a participant that receives one of
    /// nineteen streams badly counts as a nineteenth.
    pub uncounted_milli: u32,
    /// Participants by [`Clause`]; one participant may be in several.
    pub clauses: [u32; Clause::ALL.len()],
}

/// The end of a second, sent after all its other rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondClosed {
    /// The second, since the start of the run.
    pub second: i64,
    /// A row per cohort, in order; empty where joins were not offered throughout the second.
    pub experience: Vec<ExperienceRow>,
    /// Whether the generator exceeded one of its own limits in it.
    pub is_generator_limited: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_of_a_recording_has_the_bound_of_a_buffer_and_that_of_a_call_its_own() {
        let bad_if = BadIf { delay_ms_max: 200.0, ..BadIf::default() };
        assert_eq!(
            (bad_if.delay_us_max(false), bad_if.delay_us_max(true)),
            (200_000.0, 1_000_000.0)
        );
    }

    #[test]
    fn each_clause_has_a_bit_and_a_key_of_its_own() {
        let mut bits = 0;
        for (index, clause) in Clause::ALL.into_iter().enumerate() {
            assert_eq!(clause as usize, index, "{}", clause.key());
            assert_eq!(bits & clause.bit(), 0, "{}", clause.key());
            bits |= clause.bit();
            let written = serde_json::to_value(clause).unwrap();
            assert_eq!(written, clause.key());
        }
    }
}
