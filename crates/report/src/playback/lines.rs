//! What is said of players in a line each.

use throng_observation::units::{bytes, count, duration_ms, percent};

use super::Playback;
use crate::requests;

impl Playback {
    /// Stalls, delivery and buffers in a line.
    pub(crate) fn playback_line(&self) -> String {
        let mut parts = vec![match self.stall_ratio {
            None => "nothing played".to_owned(),
            Some(_) if self.stalls == 0 && self.stall_s == 0.0 => "no stalls".to_owned(),
            Some(ratio) => format!(
                "{}, {} of the time, {} of {}",
                count(self.stalls, "stalls"),
                percent(ratio),
                self.viewers_stalled,
                count(self.players, "viewers")
            ),
        }];
        if let Some(ratio) = self.delivery_ratio_p5 {
            parts.push(format!("delivery p5 {} of the bit rate", percent(ratio)));
        }
        if let (Some(p50), Some(p5)) = (self.buffer_ms_p50, self.buffer_ms_p5) {
            parts.push(format!("buffer p50 {}, p5 {}", duration_ms(p50), duration_ms(p5)));
        }
        if self.sums.skipped_s > 0.0 {
            parts.push(format!("{} jumped over", duration_ms(self.sums.skipped_s * 1e3)));
        }
        parts.join("; ")
    }

    /// How far behind live, in a line; `None` where nothing is live.
    pub(crate) fn latency_line(&self) -> Option<String> {
        let latency = self.latency.as_ref()?;
        let by = latency.by();
        let drift = latency.drift_ms.map_or_else(String::new, |ms| {
            let sign = if ms < 0.0 { "−" } else { "+" };
            format!(", {sign}{} over the run", duration_ms(ms.abs()))
        });
        let (p50, p95) = (duration_ms(latency.ms_p50), duration_ms(latency.ms_p95));
        let captured = latency.capture_ms_p50.zip(latency.capture_ms_p95).map(|(p50, p95)| {
            format!(
                "; since capture p50 {}, p95 {}, by marks in the media",
                duration_ms(p50),
                duration_ms(p95)
            )
        });
        Some(format!("p50 {p50}, p95 {p95}, {by}{drift}{}", captured.unwrap_or_default()))
    }

    /// The page around the player, in a line; `None` where none was loaded.
    pub(crate) fn page_line(&self) -> Option<String> {
        let page = self.page.as_ref()?;
        let failed = match page.requests_failed {
            0 => String::new(),
            count => format!(", {count} failed"),
        };
        Some(format!("{} in {} requests{failed}", bytes(page.bytes as f64), page.requests))
    }

    /// Requests by status, in a line; `None` in runs of versions that did not count them.
    pub(crate) fn requests_line(&self) -> Option<String> {
        requests::status_line(&self.requests_by_status)
    }

    /// What was transferred, in a line.
    pub(crate) fn transfer_line(&self) -> String {
        let sums = &self.sums;
        let mut parts = vec![format!(
            "{} in {} requests on {} connections",
            bytes(sums.media_bytes.saturating_add(sums.other_bytes) as f64),
            sums.requests,
            sums.connections
        )];
        let counts = [
            (self.responses.http1, "over HTTP/1.1"),
            (self.responses.http2, "over HTTP/2"),
            (self.responses.http3, "over HTTP/3"),
            (sums.requests_failed, "requests failed"),
            (sums.missed, "segments or playlists never came"),
            (sums.retransmitted, "packets sent again by this host"),
            (sums.received_out_of_order, "arrived out of order"),
            (sums.seeks, "seeks"),
            (sums.switches, "switches of rendition"),
        ];
        parts.extend(
            counts
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!("{count} {what}")),
        );
        parts.join(", ")
    }
}
