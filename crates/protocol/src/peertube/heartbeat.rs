//! What the page tells the server while the player plays: that it is watched, and, where the
//! instance wants it, how.

use std::time::Instant;

use serde::Serialize;
use throng_observation::{MediaKind, PlaybackCounters, PlaybackInterval, TrackInterval};

use super::rhythm::Rhythm;

/// Letters of a session's name.
const SESSION_LEN: usize = 32;

/// The heartbeats of a player.
#[derive(Debug)]
pub(super) struct Heartbeat {
    session: Option<String>,
    rhythm: Rhythm,
    view_at: Instant,
    metrics_at: Option<Instant>,
    played_us: u64,
    told_s: u64,
    since_metrics: PlaybackCounters,
    /// Of its media bytes, those that a page counts.
    counted_bytes: u64,
    /// The shorter side of the picture that is played, pixels, and its frames a second; 0 until
    /// they are known.
    shown: (u32, u32),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    current_time: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(flatten)]
    client: Option<Client>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Client {
    client: &'static str,
    device: &'static str,
    operating_system: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metrics {
    resolution: u32,
    fps: u32,
    player_mode: &'static str,
    resolution_changes: u64,
    errors: u64,
    buffer_stalled: u64,
    #[serde(rename = "downloadedBytesHTTP")]
    downloaded_bytes_http: u64,
    #[serde(rename = "downloadedBytesP2P")]
    downloaded_bytes_p2p: u64,
    #[serde(rename = "uploadedBytesP2P")]
    uploaded_bytes_p2p: u64,
    p2p_peers: u64,
    p2p_enabled: bool,
    video_id: String,
}

impl Heartbeat {
    /// Of a player that begins now; `has_session`: the server tells viewers apart by a name.
    pub(super) fn new(
        now: Instant,
        rhythm: Rhythm,
        has_session: bool,
        rng: &mut fastrand::Rng,
    ) -> Self {
        let session = has_session.then(|| (0..SESSION_LEN).map(|_| rng.alphanumeric()).collect());
        Self {
            session,
            view_at: now + rhythm.view_every,
            metrics_at: rhythm.metrics_every.map(|every| now + every),
            rhythm,
            played_us: 0,
            told_s: 0,
            since_metrics: PlaybackCounters::default(),
            counted_bytes: 0,
            shown: (0, 0),
        }
    }

    /// A second of the player has ended. Pages count what their engine of peers loads, and not the
    /// sound that comes by itself.
    pub(super) fn played(&mut self, interval: &PlaybackInterval) {
        let counters = &interval.counters;
        self.played_us += counters.played_us;
        self.since_metrics += *counters;
        self.counted_bytes += counters.media_bytes.saturating_sub(interval.separate_sound_bytes);
    }

    /// What was shown at the end of that second. A page takes both from the playlist.
    pub(super) fn shows(&mut self, interval: &TrackInterval) {
        if interval.kind != MediaKind::Video {
            return;
        }
        let (lines, fps) = &mut self.shown;
        *lines = interval.picture_lines.map_or(*lines, u32::from);
        *fps = interval.source_fps.map_or(*fps, |source| source.round() as u32);
    }

    /// That it is watched now, as a body.
    pub(super) fn view(&self) -> String {
        let client = self.session.is_some().then_some(Client {
            client: "Chrome",
            device: "desktop",
            operating_system: "Linux",
        });
        let view = View {
            current_time: self.played_us / 1_000_000,
            session_id: self.session.as_deref(),
            client,
        };
        serde_json::to_string(&view).unwrap_or_default()
    }

    /// The body that is due, if playback went on.
    pub(super) fn due_view(&mut self, now: Instant) -> Option<String> {
        if now < self.view_at {
            return None;
        }
        self.view_at += self.rhythm.view_every;
        let at_s = self.played_us / 1_000_000;
        let goes_on = std::mem::replace(&mut self.told_s, at_s) != at_s;
        goes_on.then(|| self.view())
    }

    /// The metrics that are due, as a body, where the instance wants them.
    pub(super) fn due_metrics(
        &mut self,
        now: Instant,
        video: &str,
        has_peers: bool,
    ) -> Option<String> {
        let at = self.metrics_at.filter(|at| now >= *at)?;
        self.metrics_at = self.rhythm.metrics_every.map(|every| at + every);
        let counters = std::mem::take(&mut self.since_metrics);
        let (resolution, fps) = self.shown;
        let metrics = Metrics {
            resolution,
            fps,
            player_mode: "p2p-media-loader",
            resolution_changes: counters.switches,
            errors: counters.requests_failed,
            buffer_stalled: counters.stall_count,
            downloaded_bytes_http: std::mem::take(&mut self.counted_bytes),
            downloaded_bytes_p2p: counters.peer_bytes,
            uploaded_bytes_p2p: counters.uploaded_bytes,
            p2p_peers: counters.peers_us / counters.active_us.max(1),
            p2p_enabled: has_peers,
            video_id: video.to_owned(),
        };
        Some(serde_json::to_string(&metrics).unwrap_or_default())
    }

    pub(super) fn next_timeout(&self) -> Instant {
        self.metrics_at.map_or(self.view_at, |metrics_at| metrics_at.min(self.view_at))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use throng_observation::{TrackCounters, TrackId};

    use super::*;

    const RHYTHM: Rhythm =
        Rhythm { view_every: Duration::from_secs(5), metrics_every: Some(Duration::from_secs(15)) };

    #[test]
    fn it_beats_while_playback_goes_on_only() {
        let (now, mut rng) = (Instant::now(), fastrand::Rng::with_seed(1));
        let mut heartbeat = Heartbeat::new(now, RHYTHM, true, &mut rng);
        let at = |seconds| now + Duration::from_secs(seconds);
        let second = PlaybackInterval {
            ended_at: now,
            counters: PlaybackCounters {
                played_us: 1_000_000,
                media_bytes: 14,
                ..Default::default()
            },
            separate_sound_bytes: 4,
            buffer_us: 0,
            delivery_ratio: None,
            start_awaited_since: None,
            live: None,
        };
        (0..4).for_each(|_| heartbeat.played(&second));
        assert_eq!(heartbeat.due_view(at(4)), None);
        let body = heartbeat.due_view(at(5)).unwrap();
        assert!(
            body.starts_with(r#"{"currentTime":4,"sessionId":""#)
                && body.ends_with(r#""operatingSystem":"Linux"}"#),
            "{body}"
        );
        assert_eq!(heartbeat.due_view(at(10)), None, "stalled");
        heartbeat.played(&second);
        assert!(heartbeat.due_view(at(15)).is_some());
        let metrics = heartbeat.due_metrics(at(15), "a", true).unwrap();
        assert!(
            metrics.contains(r#""downloadedBytesHTTP":50"#) && metrics.contains(r#""videoId":"a""#),
            "{metrics}"
        );
        assert!(metrics.starts_with(r#"{"resolution":0,"fps":0,"#), "nothing was shown: {metrics}");
        let old = Heartbeat::new(now, RHYTHM, false, &mut rng);
        assert_eq!(old.view(), r#"{"currentTime":0}"#);
        let mut silent =
            Heartbeat::new(now, Rhythm { metrics_every: None, ..RHYTHM }, true, &mut rng);
        assert_eq!((silent.due_metrics(at(60), "a", true), silent.next_timeout()), (None, at(5)));
    }
    #[test]
    fn metrics_have_the_resolution_and_the_frames_a_second_that_are_played() {
        let (now, mut rng) = (Instant::now(), fastrand::Rng::with_seed(1));
        let mut heartbeat = Heartbeat::new(now, RHYTHM, true, &mut rng);
        let shown = |kind, picture_lines, source_fps| TrackInterval {
            track: TrackId(0),
            kind,
            ended_at: now,
            counters: TrackCounters::default(),
            jitter_us: None,
            relative_delay_us: Vec::new(),
            absolute_delay_us: Vec::new(),
            capture_basis: None,
            oven_rtc_tester_delay_us: None,
            source_fps,
            picture_lines,
            frames_due_us: 0,
            first_frame_awaited_since: None,
            missing: None,
        };
        heartbeat.shows(&shown(MediaKind::Video, Some(720), Some(24.98)));
        heartbeat.shows(&shown(MediaKind::Audio, None, None));
        heartbeat.shows(&shown(MediaKind::Video, None, None));
        let metrics = heartbeat.due_metrics(now + Duration::from_secs(15), "a", true).unwrap();
        assert!(metrics.starts_with(r#"{"resolution":720,"fps":25,"#), "{metrics}");
    }
}
