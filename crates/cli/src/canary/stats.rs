//! Snapshots of `getStats()` from the page, and the difference of two as a row.

use std::collections::HashMap;

use serde::Deserialize;
use throng_observation::canary::{BrowserId, CanarySecondRow};

/// One snapshot. Counters have their names of W3C webrtc-stats.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct StatsSnapshot {
    /// From the join until the first peer connection was connected, milliseconds.
    pub(super) connected_ms: Option<f64>,
    /// From the join until the first picture could be shown, milliseconds.
    pub(super) first_frame_ms: Option<f64>,
    /// The first error.
    pub(super) problem: Option<String>,
    /// The problem is the browser's own, not the server's.
    pub(super) problem_is_own: bool,
    /// Candidates that the consent guard removed.
    pub(super) refused: u32,
    /// The largest delay of a timer of the page since the snapshot before, milliseconds.
    late_ms: f64,
    received: Vec<InboundRtp>,
    sent: Vec<OutboundRtp>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InboundRtp {
    /// Peer connection and SSRC, so that counters that restart belong to another track.
    key: String,
    kind: String,
    /// Milliseconds of the browser's clock.
    timestamp: f64,
    packets_received: f64,
    packets_lost: f64,
    retransmitted_packets_received: f64,
    bytes_received: f64,
    jitter: f64,
    frames_decoded: f64,
    frames_dropped: f64,
    jitter_buffer_delay: f64,
    jitter_buffer_emitted_count: f64,
    freeze_count: f64,
    total_freezes_duration: f64,
    total_decode_time: f64,
    nack_count: f64,
    pli_count: f64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OutboundRtp {
    key: String,
    frames_sent: f64,
    bytes_sent: f64,
}

impl StatsSnapshot {
    /// Why there is no picture: none came, or none of what came could be decoded.
    pub(super) fn why_no_picture(&self) -> String {
        let video = self.received.iter().filter(|track| track.kind == "video");
        let packets = video.map(|track| delta(0.0, track.packets_received, 1.0)).sum::<u64>();
        match packets {
            0 => "no picture arrived".to_owned(),
            _ => format!("{packets} packets of video arrived, and no picture could be decoded"),
        }
    }

    /// What happened between `before` and this snapshot. A track counts from the first snapshot in
    /// which it plays.
    pub(super) fn since(&self, before: &Self, second: i64, browser: BrowserId) -> CanarySecondRow {
        let late_max_us = delta(0.0, self.late_ms, 1e3);
        let mut row =
            CanarySecondRow { second, browser, late_max_us, ..CanarySecondRow::default() };
        let earlier: HashMap<&str, &InboundRtp> =
            before.received.iter().map(|track| (track.key.as_str(), track)).collect();
        for track in &self.received {
            match earlier.get(track.key.as_str()) {
                Some(was) if track.kind == "video" && was.frames_decoded > 0.0 => {
                    video(&mut row, was, track);
                }
                Some(was) if track.kind == "audio" && was.packets_received > 0.0 => {
                    row.audio_tracks += 1;
                    row.audio_packets_received +=
                        delta(was.packets_received, track.packets_received, 1.0);
                    row.audio_packets_lost += signed_delta(was.packets_lost, track.packets_lost);
                    row.audio_bytes += delta(was.bytes_received, track.bytes_received, 1.0);
                }
                _ => {}
            }
        }
        for track in &self.sent {
            let was = before.sent.iter().find(|was| was.key == track.key);
            let (frames, bytes) = was.map_or((0.0, 0.0), |was| (was.frames_sent, was.bytes_sent));
            row.frames_sent += delta(frames, track.frames_sent, 1.0);
            row.bytes_sent += delta(bytes, track.bytes_sent, 1.0);
        }
        row
    }
}

fn video(row: &mut CanarySecondRow, was: &InboundRtp, is: &InboundRtp) {
    row.video_tracks += 1;
    let active_us = delta(was.timestamp, is.timestamp, 1e3);
    row.video_active_us += active_us;
    row.video_silent_us += if is.packets_received > was.packets_received { 0 } else { active_us };
    row.frames_decoded += delta(was.frames_decoded, is.frames_decoded, 1.0);
    row.frames_dropped += delta(was.frames_dropped, is.frames_dropped, 1.0);
    row.video_packets_received += delta(was.packets_received, is.packets_received, 1.0);
    row.video_packets_repeated +=
        delta(was.retransmitted_packets_received, is.retransmitted_packets_received, 1.0);
    row.video_packets_lost += signed_delta(was.packets_lost, is.packets_lost);
    row.video_bytes += delta(was.bytes_received, is.bytes_received, 1.0);
    row.video_jitter_us.record(delta(0.0, is.jitter, 1e6));
    row.jitter_buffer_us += delta(was.jitter_buffer_delay, is.jitter_buffer_delay, 1e6);
    row.jitter_buffer_emitted +=
        delta(was.jitter_buffer_emitted_count, is.jitter_buffer_emitted_count, 1.0);
    row.freeze_count += delta(was.freeze_count, is.freeze_count, 1.0);
    row.freeze_us += delta(was.total_freezes_duration, is.total_freezes_duration, 1e6);
    row.decode_us += delta(was.total_decode_time, is.total_decode_time, 1e6);
    row.nack_sent += delta(was.nack_count, is.nack_count, 1.0);
    row.pli_sent += delta(was.pli_count, is.pli_count, 1.0);
}

/// More than any counter of a run; sums of it still fit.
const COUNTER_MAX: f64 = 1e15;

/// The increase of a counter, times `scale`; 0 if the counter restarted.
fn delta(was: f64, is: f64, scale: f64) -> u64 {
    ((is - was) * scale).round().clamp(0.0, COUNTER_MAX) as u64
}

/// The change of a figure that may fall.
fn signed_delta(was: f64, is: f64) -> i64 {
    (is - was).clamp(-COUNTER_MAX, COUNTER_MAX) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(json: &str) -> StatsSnapshot {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_second_is_the_difference_of_two_readings_of_tracks_that_played() {
        let before = reading(
            r#"{"received": [
                {"key": "0/1", "kind": "video", "timestamp": 1000.0, "framesDecoded": 30, "packetsReceived": 100,
                 "packetsLost": 2, "bytesReceived": 1000, "totalFreezesDuration": 0.5, "jitterBufferDelay": 1},
                {"key": "0/2", "kind": "video", "timestamp": 1000.0, "framesDecoded": 0},
                {"key": "0/3", "kind": "audio", "timestamp": 1000.0, "packetsReceived": 50}],
                "sent": [{"key": "1/9", "framesSent": 10, "bytesSent": 500}]}"#,
        );
        let after = reading(
            r#"{"connectedMs": 12.5, "lateMs": 7.25, "received": [
                {"key": "0/1", "kind": "video", "timestamp": 2000.5, "framesDecoded": 60, "packetsReceived": 200,
                 "packetsLost": 1, "retransmittedPacketsReceived": 3, "bytesReceived": 126000, "totalFreezesDuration": 0.7, "jitter": 0.004,
                 "jitterBufferDelay": 2.5},
                {"key": "0/2", "kind": "video", "timestamp": 2000.5, "framesDecoded": 25},
                {"key": "0/3", "kind": "audio", "timestamp": 2000.5, "packetsReceived": 100},
                {"key": "0/4", "kind": "video", "timestamp": 2000.5, "framesDecoded": 3}],
                "sent": [{"key": "1/9", "framesSent": 40, "bytesSent": 20500}]}"#,
        );
        let row = after.since(&before, 4, BrowserId(1));
        assert_eq!(
            (row.second, row.browser, row.video_tracks, row.video_active_us),
            (4, BrowserId(1), 1, 1_000_500)
        );
        assert_eq!(
            (row.frames_decoded, row.video_packets_received, row.video_packets_lost),
            (30, 100, -1)
        );
        assert_eq!(
            (row.video_packets_repeated, row.video_silent_us, row.late_max_us),
            (3, 0, 7_250)
        );
        assert_eq!(
            (row.video_bytes, row.freeze_us, row.jitter_buffer_us),
            (125_000, 200_000, 1_500_000)
        );
        assert_eq!((row.audio_tracks, row.audio_packets_received), (1, 50));
        assert_eq!((row.frames_sent, row.bytes_sent), (30, 20_000));
        assert_eq!(row.video_jitter_us.count(), 1);
    }

    #[test]
    fn a_browser_that_decodes_nothing_of_what_arrives_says_so() {
        let saw = |packets: u32| {
            reading(&format!(
                r#"{{"received": [{{"kind": "audio", "packetsReceived": 50}},
                    {{"kind": "video", "packetsReceived": {packets}, "framesDecoded": 0}}]}}"#
            ))
        };
        assert_eq!(saw(0).why_no_picture(), "no picture arrived");
        let expect = "1200 packets of video arrived, and no picture could be decoded";
        assert_eq!(saw(1200).why_no_picture(), expect);
        assert_eq!(StatsSnapshot::default().why_no_picture(), "no picture arrived");
    }

    #[test]
    fn counters_that_begin_anew_or_make_no_sense_count_nothing() {
        let high = reading(
            r#"{"received": [{"key": "a", "kind": "video", "framesDecoded": 900, "timestamp": 9e3}]}"#,
        );
        let low = reading(
            r#"{"received": [{"key": "a", "kind": "video", "framesDecoded": 3, "timestamp": -1e300}]}"#,
        );
        let row = low.since(&high, 0, BrowserId(0));
        assert_eq!((row.frames_decoded, row.video_active_us), (0, 0));
        assert_eq!(StatsSnapshot::default().since(&high, 0, BrowserId(0)).video_tracks, 0);
    }
}
