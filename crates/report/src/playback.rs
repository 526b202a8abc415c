//! Players: participants that fetch media and play it from a buffer.

use std::collections::BTreeMap;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::run::{ParticipantRow, RunData};
use throng_observation::units::{bytes, duration_ms, percent};
use throng_observation::{Distribution, HttpRequestTotals, LatencyBasis, PlaybackCounters, Players};

use crate::requests;
use crate::survival::TimeTo;

/// The players of a run. Startup and stalls of viewers cover the whole run, the other figures leave the warm-up out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Playback {
    /// Players: participants that reported as one at any time.
    pub players: u64,
    /// Intended join to the begin of playback.
    pub startup: TimeTo,
    /// Stalls begun.
    pub stalls: u64,
    /// Time stalled ÷ time since playback began, without startup and pauses (CTA-2066 rebuffering ratio); `null` when
    /// nothing played.
    pub stall_ratio: Option<f64>,
    /// 95th percentile of the same over players, each over its life.
    pub stall_ratio_p95: Option<f64>,
    /// Players that stalled at any time.
    pub viewers_stalled: u64,
    /// The largest share of players that stalled in the same second.
    pub stalled_ratio_max: Option<f64>,
    /// Time stalled, seconds, all players together.
    pub stall_s: f64,
    /// Time waiting for playback to begin, or to begin again after a seek.
    pub startup_s: f64,
    /// Media time played.
    pub played_s: f64,
    /// Pauses that users made.
    pub paused_s: f64,
    /// Media time received ÷ time in which players wanted media; below 1 the server delivered less than the media's bit
    /// rate. `null` when nothing was wanted.
    pub delivery_ratio: Option<f64>,
    /// 5th percentile of the delivery ratio over seconds in which a player wanted data throughout, at most 1.
    pub delivery_ratio_p5: Option<f64>,
    /// Media time in a player's buffer at the end of a second: median, milliseconds.
    pub buffer_ms_p50: Option<f64>,
    /// 5th percentile of the same.
    pub buffer_ms_p5: Option<f64>,
    /// Bits per second of the media as received: bytes of bodies that hold media ÷ media time in them.
    pub media_bps: Option<f64>,
    /// Bytes of response bodies that hold media.
    pub media_bytes: u64,
    /// Bytes of other response bodies: playlists, manifests, keys, the page around the player.
    pub other_bytes: u64,
    /// Requests sent.
    pub requests: u64,
    /// Requests without a usable response.
    pub requests_failed: u64,
    /// Connections opened.
    pub connections: u64,
    /// Segments or packets that the generator's host sent again on them (`tcpi_total_retrans`).
    pub retransmitted: u64,
    /// Segments that arrived out of order (`tcpi_rcv_ooopack`): a sign of loss on the way from the server.
    pub received_out_of_order: u64,
    /// Seeks.
    pub seeks: u64,
    /// Changes of the rendition.
    pub switches: u64,
    /// Media time that playback jumped over because it never came, seconds.
    #[serde(default)]
    pub skipped_s: f64,
    /// Segments, playlists, manifests and keys of live streams that were due and never came.
    #[serde(default)]
    pub missed: u64,
    /// Segments, or parts of segments, received whole.
    #[serde(default)]
    pub segments: u64,
    /// Time that segments took ÷ media time in them; `null` without segments.
    #[serde(default)]
    pub segment_ratio: Option<f64>,
    /// Responses by version of HTTP.
    #[serde(default)]
    pub responses: ResponsesByVersion,
    /// The page around the player; `null` where none was loaded.
    #[serde(default)]
    pub page: Option<LoadedPage>,
    /// Requests by status, or by why there was no response (`timeout`, `cancelled`, …), of the whole run, warm-up included.
    #[serde(default)]
    pub requests_by_status: BTreeMap<String, u64>,
    /// How far behind live streams players were; `null` where none was live.
    #[serde(default)]
    pub latency: Option<LiveLatency>,
}

/// The page around the player, which its viewers loaded from a recording. Requests and bytes leave the warm-up out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadedPage {
    /// Intended join to the begin of the player.
    pub loaded: TimeTo,
    /// Requests; part of those of all players.
    pub requests: u64,
    /// Those that failed.
    pub requests_failed: u64,
    /// Bytes of response bodies; part of `other_bytes`.
    pub bytes: u64,
}

/// Responses by version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResponsesByVersion {
    /// HTTP/1.1.
    pub http1: u64,
    /// HTTP/2.
    pub http2: u64,
    /// HTTP/3.
    pub http3: u64,
}

/// The latency of players of live streams at the end of each second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveLatency {
    /// `program_date_time`: this host's clock minus the date of what is played, in error by the difference of the clocks;
    /// `playlist_edge`: to the end of the playlist, without what encoder, packager and caches took.
    pub basis: String,
    /// Median, milliseconds.
    pub ms_p50: f64,
    /// 95th percentile.
    pub ms_p95: f64,
    /// The highest.
    pub ms_max: f64,
    /// Median of the last quarter of the seconds minus that of the first: what players lost or regained, milliseconds.
    pub drift_ms: Option<f64>,
    /// From the capture at the publisher to the viewer, by the marks in the media: the median, milliseconds. In error by the
    /// difference of the two clocks. Absent where throng did not publish, or a transcoder removed its marks.
    #[serde(default)]
    pub capture_ms_p50: Option<f64>,
    /// 95th percentile of the same.
    #[serde(default)]
    pub capture_ms_p95: Option<f64>,
}

/// The players of a run added up, warm-up left out.
#[derive(Debug, Default)]
pub(crate) struct PlaybackFigures<'a> {
    pub(crate) counters: PlaybackCounters,
    pub(crate) shortfall_ppm: Distribution,
    buffer_us: Distribution,
    latency_us: BTreeMap<i64, Distribution>,
    edge_latency_us: BTreeMap<i64, Distribution>,
    capture_latency_us: Distribution,
    stalled_ratio_max: Option<f64>,
    players: Option<&'a Players>,
    requests: Option<&'a HttpRequestTotals>,
}

impl<'a> PlaybackFigures<'a> {
    pub(crate) fn of(run: &'a RunData, seconds: &Range<i64>) -> Self {
        let mut figures =
            Self { players: Some(&run.players), requests: Some(&run.http_requests), ..Self::default() };
        let mut by_second: BTreeMap<i64, (u64, u64)> = BTreeMap::new();
        for row in run.playback.iter().filter(|row| seconds.contains(&row.second)) {
            figures.counters += row.counters;
            figures.buffer_us.merge(&row.buffer_us);
            figures.shortfall_ppm.merge(&row.shortfall_ppm);
            figures.capture_latency_us.merge(&row.capture_latency_us);
            let of_second = [
                (&mut figures.latency_us, &row.latency_us),
                (&mut figures.edge_latency_us, &row.edge_latency_us),
            ];
            for (seconds, samples) in of_second.into_iter().filter(|(_, samples)| samples.count() > 0) {
                seconds.entry(row.second).or_default().merge(samples);
            }
            let (stalled, players) = by_second.entry(row.second).or_default();
            *stalled += u64::from(row.stalled);
            *players += u64::from(row.players);
        }
        let shares = by_second.into_values().filter(|(_, players)| *players > 0);
        let shares = shares.map(|(stalled, players)| stalled as f64 / players as f64);
        figures.stalled_ratio_max = shares.reduce(f64::max);
        figures
    }

    /// Whether any participant was a player.
    pub(crate) fn has_players(&self) -> bool {
        self.players.is_some_and(|players| !players.is_empty())
    }

    /// The delivery ratio that a share `quantile` of seconds did not exceed; at most 1.
    pub(crate) fn delivery_quantile(&self, quantile: f64) -> Option<f64> {
        self.shortfall_ppm.quantile(1.0 - quantile).map(|ppm| 1.0 - ppm as f64 / 1e6)
    }

    /// The stall ratio of a share of players; one that failed before playback counts as stalled throughout.
    pub(crate) fn stall_ratio_quantile(&self, intended: &[&ParticipantRow], quantile: f64) -> Option<f64> {
        let stalls = self.players?.stalls();
        let ratio = |row: &ParticipantRow| match stalls.get(&row.participant).and_then(|player| player.ratio)
        {
            None if row.failure().is_some() => Some(1.0),
            ratio => ratio,
        };
        ranked(intended.iter().filter_map(|row| ratio(row)), quantile)
    }

    /// The stalls of a share of players; one that failed before playback counts as worse than any.
    pub(crate) fn stalls_quantile(&self, intended: &[&ParticipantRow], quantile: f64) -> Option<f64> {
        let stalls = self.players?.stalls();
        let count = |row: &ParticipantRow| match stalls.get(&row.participant) {
            Some(player) if player.ratio.is_some() => Some(player.count as f64),
            _ => row.failure().map(|_| f64::INFINITY),
        };
        ranked(intended.iter().filter_map(|row| count(row)), quantile)
    }

    /// The summary; `None` where nobody plays from a buffer.
    pub(crate) fn summary(
        &self,
        intended: &[&ParticipantRow],
        startup: TimeTo,
        page_loaded: TimeTo,
    ) -> Option<Playback> {
        let players = self.players.filter(|players| !players.is_empty())?;
        let c = &self.counters;
        let seconds = |us: u64| us as f64 / 1e6;
        let buffer_ms = |quantile| self.buffer_us.quantile(quantile).map(|us| us as f64 / 1e3);
        Some(Playback {
            players: players.stalls().len() as u64,
            startup,
            stalls: c.stall_count,
            stall_ratio: c.stall_ratio(),
            stall_ratio_p95: self.stall_ratio_quantile(intended, 0.95),
            viewers_stalled: players.stalls().values().filter(|player| player.count > 0).count() as u64,
            stalled_ratio_max: self.stalled_ratio_max,
            stall_s: seconds(c.stall_us),
            startup_s: seconds(c.startup_us),
            played_s: seconds(c.played_us),
            paused_s: seconds(c.paused_us),
            delivery_ratio: c.delivery_ratio(),
            delivery_ratio_p5: self.delivery_quantile(0.05),
            buffer_ms_p50: buffer_ms(0.50),
            buffer_ms_p5: buffer_ms(0.05),
            media_bps: media_bps(c),
            media_bytes: c.media_bytes,
            other_bytes: c.other_bytes,
            requests: c.requests,
            requests_failed: c.requests_failed,
            connections: c.connections,
            retransmitted: c.retransmitted,
            received_out_of_order: c.received_out_of_order,
            seeks: c.seek_count,
            switches: c.switches,
            skipped_s: seconds(c.skipped_us),
            missed: c.missed,
            segments: c.segments,
            segment_ratio: c.segment_ratio(),
            responses: ResponsesByVersion {
                http1: c.responses_http1,
                http2: c.responses_http2,
                http3: c.responses_http3,
            },
            page: (c.page_requests > 0 || page_loaded.reached > 0).then_some(LoadedPage {
                loaded: page_loaded,
                requests: c.page_requests,
                requests_failed: c.page_requests_failed,
                bytes: c.page_bytes,
            }),
            requests_by_status: self.requests.map(requests::by_status).unwrap_or_default(),
            latency: self.latency(),
        })
    }

    /// The latency by dates where there are some, else to the end of playlists.
    fn latency(&self) -> Option<LiveLatency> {
        let is_dated = !self.latency_us.is_empty();
        let (by_second, basis) = if is_dated {
            (&self.latency_us, LatencyBasis::ProgramDateTime)
        } else {
            (&self.edge_latency_us, LatencyBasis::PlaylistEdge)
        };
        let sum = |seconds: &mut dyn Iterator<Item = &Distribution>| {
            seconds.fold(Distribution::new(), |mut sum, second| {
                sum.merge(second);
                sum
            })
        };
        let ms = |samples: &Distribution, quantile| samples.quantile(quantile).map(|us| us as f64 / 1e3);
        let all = sum(&mut by_second.values());
        let quarter = by_second.len() / 4;
        let first = sum(&mut by_second.values().take(quarter));
        let last = sum(&mut by_second.values().rev().take(quarter));
        Some(LiveLatency {
            basis: basis.key().to_owned(),
            ms_p50: ms(&all, 0.50)?,
            ms_p95: ms(&all, 0.95)?,
            ms_max: ms(&all, 1.0)?,
            drift_ms: ms(&last, 0.50).zip(ms(&first, 0.50)).map(|(last, first)| last - first),
            capture_ms_p50: ms(&self.capture_latency_us, 0.50),
            capture_ms_p95: ms(&self.capture_latency_us, 0.95),
        })
    }

    /// The latency that a share of the samples did not exceed, milliseconds.
    pub(crate) fn latency_quantile(&self, quantile: f64) -> Option<f64> {
        let by_second = if self.latency_us.is_empty() { &self.edge_latency_us } else { &self.latency_us };
        let mut all = Distribution::new();
        by_second.values().for_each(|second| all.merge(second));
        all.quantile(quantile).map(|us| us as f64 / 1e3)
    }
}

/// The media's own bit rate: bytes received ÷ media time in them.
pub(crate) fn media_bps(counters: &PlaybackCounters) -> Option<f64> {
    (counters.media_us > 0).then(|| counters.media_bytes as f64 * 8e6 / counters.media_us as f64)
}

/// The value of that rank; `None` without values.
fn ranked(values: impl Iterator<Item = f64>, quantile: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let rank = (quantile * values.len() as f64).ceil() as usize;
    values.get(rank.max(1) - 1).copied()
}

impl Playback {
    /// Stalls, delivery and buffers in a line.
    pub(crate) fn playback_line(&self) -> String {
        let mut parts = vec![match self.stall_ratio {
            None => "nothing played".to_owned(),
            Some(_) if self.stalls == 0 && self.stall_s == 0.0 => "no stalls".to_owned(),
            Some(ratio) => format!(
                "{} stalls, {} of the time, {} of {} viewers",
                self.stalls,
                percent(ratio),
                self.viewers_stalled,
                self.players
            ),
        }];
        if let Some(ratio) = self.delivery_ratio_p5 {
            parts.push(format!("delivery p5 {} of the bit rate", percent(ratio)));
        }
        if let (Some(p50), Some(p5)) = (self.buffer_ms_p50, self.buffer_ms_p5) {
            parts.push(format!("buffer p50 {}, p5 {}", duration_ms(p50), duration_ms(p5)));
        }
        if self.skipped_s > 0.0 {
            parts.push(format!("{} jumped over", duration_ms(self.skipped_s * 1e3)));
        }
        parts.join("; ")
    }

    /// How far behind live, in a line; `None` where nothing is live.
    pub(crate) fn latency_line(&self) -> Option<String> {
        let latency = self.latency.as_ref()?;
        let by = if latency.basis == LatencyBasis::ProgramDateTime.key() {
            "by the playlist's dates and this host's clock"
        } else {
            "to the end of the playlist"
        };
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
        let mut parts = vec![format!(
            "{} in {} requests on {} connections",
            bytes((self.media_bytes + self.other_bytes) as f64),
            self.requests,
            self.connections
        )];
        let counts = [
            (self.responses.http1, "over HTTP/1.1"),
            (self.responses.http2, "over HTTP/2"),
            (self.responses.http3, "over HTTP/3"),
            (self.requests_failed, "requests failed"),
            (self.missed, "segments or playlists never came"),
            (self.retransmitted, "packets sent again by this host"),
            (self.received_out_of_order, "arrived out of order"),
            (self.seeks, "seeks"),
            (self.switches, "switches of rendition"),
        ];
        parts.extend(
            counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
        );
        parts.join(", ")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use throng_observation::run::{CohortId, EventRow, ParticipantId};
    use throng_observation::{
        MediaKind, MediaPath, NoResponse, Phase, PlaybackRow, PlayerRow, RequestOutcome, RunTime,
        TrackCounters,
    };
    use throng_scenario::Objective;

    use super::*;
    use crate::{example, summarise, text};

    /// A run of HTTP players: of 100, `stalls` each stall for half of every second from 10 s on.
    pub(crate) fn players(stalls: u32) -> RunData {
        const PLAYERS: u32 = 100;
        const SECONDS: i64 = 30;
        let mut run = example::healthy(PLAYERS, SECONDS);
        run.info.target = "http://127.0.0.1:8080/film.mp4".into();
        // Nothing comes as packets.
        let fetched = |c: TrackCounters| TrackCounters {
            payload_bytes: c.payload_bytes,
            frames_complete: c.frames_complete,
            frames_decodable: c.frames_decodable,
            key_frames: c.key_frames,
            active_us: c.active_us,
            ..TrackCounters::default()
        };
        for row in &mut run.series {
            row.counters = fetched(row.counters);
            row.relative_delay_us = Distribution::new();
            row.absolute_delay = throng_observation::OneWayDelay::default();
            row.jitter_us = Distribution::new();
            row.loss_ppm = Distribution::new();
            row.oven_rtc_tester_delay_us = Distribution::new();
        }
        for track in &mut run.tracks {
            track.counters = fetched(track.counters);
            track.relative_delay_us = Distribution::new();
            track.absolute_delay = throng_observation::OneWayDelay::default();
            (track.jitter_us, track.oven_rtc_tester_delay_us) = (None, None);
        }
        let mut all: Vec<PlayerRow> = Vec::new();
        for row in &mut run.participants {
            for phase in [Phase::Negotiated, Phase::IceConnected, Phase::DtlsConnected] {
                row.reached.remove(&phase);
            }
            let after = |ms: i64| RunTime(row.intended_at.0 + ms * 1_000);
            let phases = [
                (Phase::Described, 20),
                (Phase::Playing, 40),
                (Phase::FirstPacket, 45),
                (Phase::FirstFrame, 60),
                (Phase::PlaybackStarted, 400),
            ];
            row.reached.extend(phases.map(|(phase, ms)| (phase, after(ms))));
            all.push(PlayerRow {
                participant: row.participant,
                startup_us: Some(400_000),
                buffer_us: 10_000_000,
                delivery_ppm_min: None,
                counters: PlaybackCounters::default(),
            });
        }
        for second in 0..SECONDS {
            let is_short = second >= 10;
            let stalled = if is_short { stalls } else { 0 };
            let mut row = PlaybackRow {
                second,
                cohort: CohortId(0),
                players: PLAYERS,
                stalled,
                starting: if second == 0 { PLAYERS } else { 0 },
                ..PlaybackRow::default()
            };
            for (number, player) in all.iter_mut().enumerate() {
                let is_stalled = is_short && (number as u32) < stalls;
                let counters = PlaybackCounters {
                    active_us: 1_000_000,
                    startup_us: if second == 0 { 400_000 } else { 0 },
                    stall_us: if is_stalled { 500_000 } else { 0 },
                    stall_count: u64::from(is_stalled),
                    played_us: if is_stalled { 500_000 } else { 1_000_000 },
                    media_bytes: if is_stalled { 125_000 } else { 250_000 },
                    media_us: if is_stalled { 500_000 } else { 1_000_000 },
                    wanted_us: 1_000_000,
                    requests: 1,
                    connections: u64::from(second == 0),
                    ..PlaybackCounters::default()
                };
                row.counters += counters;
                player.counters += counters;
                row.buffer_us.record(if is_stalled { 0 } else { 10_000_000 });
                row.shortfall_ppm.record(if is_stalled { 500_000 } else { 0 });
            }
            run.playback.push(row);
        }
        all.iter().for_each(|player| run.players.add(player));
        let statuses = [(200, 12_300), (206, 40), (404, 5)];
        let statuses = statuses.map(|(status, requests)| (RequestOutcome::Status(status), requests));
        run.http_requests.by_outcome.extend(statuses);
        run.http_requests.by_outcome.insert(RequestOutcome::NoResponse(NoResponse::NotAllowed), 1);
        let (at, detail) = (RunTime(SECONDS * 1_000_000), String::new());
        let kind = format!("{}{}", MediaPath::EVENT, MediaPath::Http1.key());
        run.events.push(EventRow { at, participant: None, kind, count: PLAYERS, detail });
        run
    }

    fn objectives(texts: &[&str]) -> Vec<Objective> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn players_have_startup_stalls_delivery_and_buffers() {
        let summary = summarise(&players(20), &[], Duration::from_secs(10));
        let playback = summary.playback.as_ref().expect("players");
        assert_eq!((playback.players, playback.viewers_stalled, playback.stalls), (100, 20, 20 * 20));
        assert_eq!(playback.startup.ms_p95, Some(400.0));
        let near =
            |figure: Option<f64>, expect: f64| figure.is_some_and(|value| (value - expect).abs() < 0.01);
        assert!(near(playback.stall_ratio, 0.1), "{playback:?}");
        assert!(near(playback.stall_ratio_p95, 10.0 / 29.6), "over the whole life: {playback:?}");
        assert!(near(playback.stalled_ratio_max, 0.2) && near(playback.delivery_ratio, 0.9), "{playback:?}");
        assert!(near(playback.delivery_ratio_p5, 0.5) && playback.buffer_ms_p5 == Some(0.0), "{playback:?}");
        assert!(near(playback.media_bps.map(|bps| bps / 1e6), 2.0), "{playback:?}");
        assert!(summarise(&example::healthy(5, 10), &[], Duration::ZERO).playback.is_none());
    }

    #[test]
    fn the_latency_of_live_players_names_its_basis_and_what_was_lost_over_the_run() {
        let live = |dated: bool| {
            let mut run = players(0);
            for row in &mut run.playback {
                let latency_us = 12_000_000 + u64::try_from(row.second).unwrap() * 100_000;
                let samples = if dated { &mut row.latency_us } else { &mut row.edge_latency_us };
                (0..100).for_each(|_| samples.record(latency_us));
            }
            run
        };
        for (dated, basis, words) in [
            (true, "program_date_time", "by the playlist's dates and this host's clock"),
            (false, "playlist_edge", "to the end of the playlist"),
        ] {
            let run = live(dated);
            let bounds = objectives(&["latency p95 < 14s", "latency p95 < 16s"]);
            let summary = summarise(&run, &bounds, Duration::ZERO);
            let latency = summary.playback.as_ref().and_then(|playback| playback.latency.clone()).unwrap();
            assert_eq!(latency.basis, basis);
            assert!((13_300.0..13_600.0).contains(&latency.ms_p50), "{latency:?}");
            let drift_ms = latency.drift_ms.unwrap();
            assert!((2_100.0..2_500.0).contains(&drift_ms), "a tenth of a second each second: {latency:?}");
            let text = text::summary(&summary);
            assert!(text.contains("behind live") && text.contains(words), "{text}");
            assert!(text.contains("MISSED  latency p95 < 14s"), "{text}");
            assert!(text.contains("met     latency p95 < 16s"), "{text}");
        }
        assert!(summarise(&players(0), &[], Duration::ZERO).playback.unwrap().latency.is_none());
    }

    #[test]
    fn the_page_around_the_player_is_a_part_of_the_startup_where_there_is_one() {
        let mut run = players(0);
        for row in &mut run.participants {
            row.reached.insert(Phase::PageLoaded, RunTime(row.intended_at.0 + 300_000));
        }
        let counters = &mut run.playback[3].counters;
        (counters.page_requests, counters.page_requests_failed, counters.page_bytes) = (500, 2, 1_000_000);
        let summary = summarise(&run, &[], Duration::ZERO);
        let page = summary.playback.as_ref().and_then(|playback| playback.page.clone()).unwrap();
        assert_eq!((page.loaded.ms_p50, page.requests, page.requests_failed), (Some(300.0), 500, 2));
        let text = text::summary(&summary);
        assert!(text.contains("page loaded") && text.contains("1.00 MB in 500 requests, 2 failed"), "{text}");
        let phases: Vec<_> = summary.phases.iter().map(|phase| phase.phase.as_str()).collect();
        assert!(phases.contains(&"page_loaded"), "{phases:?}");
        let without = summarise(&players(0), &[], Duration::ZERO);
        assert_eq!(without.playback.as_ref().unwrap().page, None);
        assert!(!text::summary(&without).contains("page"));
    }

    #[test]
    fn what_does_not_exist_for_players_is_absent_and_no_zero() {
        let run = players(20);
        let summary = summarise(&run, &[], Duration::ZERO);
        let video = &summary.video;
        assert_eq!((video.loss_ratio, video.freeze_ratio, video.delay_ms_p95), (None, None, None));
        let text = text::summary(&summary);
        for absent in ["loss", "delay", "frozen", "jitter"] {
            assert!(!text.contains(absent), "{absent} in\n{text}");
        }
        for present in [
            "  startup      p50 400 ms, p95 400 ms",
            "  playback     400 stalls, 6.76 % of the time, 20 of 100 viewers; delivery p5 ",
            "  transfer     ",
            "  received     187 Mbit/s mean",
            "  path         100 by HTTP/1.1",
            "  requests     12,346: 200 ×12,300, 206 ×40, 404 ×5, no response (not allowed) ×1",
        ] {
            assert!(text.contains(present), "{present} in\n{text}");
        }
        assert!(!summary.headline.contains("cleanly"), "{}", summary.headline);
        assert_eq!(
            summarise(&players(0), &[], Duration::ZERO).headline,
            "100 viewers played cleanly for 30 s"
        );
        let page = crate::html::render(&run, &summary);
        for present in ["<h2>Playback</h2>", "Buffer", "playback started", "Waiting viewers", "404 ×5"] {
            assert!(page.contains(present), "{present}");
        }
        for absent in [
            "<h3>Packet loss",
            "<h3>Video delay",
            "<h3>Freezes",
            "<dt>packet loss",
            "noticeable loss",
            "<h2>Worst viewers",
        ] {
            assert!(!page.contains(absent), "{absent}");
        }
        let packets = crate::html::render(
            &example::healthy(5, 10),
            &summarise(&example::healthy(5, 10), &[], Duration::ZERO),
        );
        assert!(!packets.contains("<h2>Playback</h2>"));
    }

    #[test]
    fn objectives_judge_players() {
        let goals = objectives(&[
            "startup p95 < 2s",
            "stall_ratio < 5%",
            "stall_ratio p50 < 1%",
            "stalls p50 < 1",
            "stalls max < 3",
            "delivery > 0.98",
            "delivery min > 0.45",
            "delivery p90 > 98%",
        ]);
        let summary = summarise(&players(20), &goals, Duration::ZERO);
        let met: Vec<bool> = summary.objectives.iter().map(|objective| objective.met).collect();
        assert_eq!(met, [true, false, true, true, false, false, true, true], "{:?}", summary.objectives);
        assert_eq!(summary.objectives[4].measured_text, "20");
        assert_eq!(summary.objectives[5].measured_text, "0.933");
        let others = summarise(&example::healthy(5, 10), &goals, Duration::ZERO);
        assert!(others.objectives.iter().all(|objective| objective.result == "not_measured"), "{others:?}");
    }

    #[test]
    fn players_that_failed_stay_in_the_denominator() {
        let mut run = players(0);
        let failure =
            throng_observation::Failure::new(throng_observation::FailureReason::HttpStatus(503), "full");
        for row in &mut run.participants[..10] {
            row.outcome = Some(throng_observation::Outcome::Failed(failure.clone()));
            row.reached.remove(&Phase::PlaybackStarted);
        }
        let mut began = Players::default();
        for (participant, _) in run.players.stalls().iter().filter(|(participant, _)| participant.0 >= 10) {
            let counters = PlaybackCounters { active_us: 1, ..PlaybackCounters::default() };
            let participant = ParticipantId(participant.0);
            let row =
                PlayerRow { participant, startup_us: None, buffer_us: 0, delivery_ppm_min: None, counters };
            began.add(&row);
        }
        run.players = began;
        let goals =
            objectives(&["startup p95 < 2s", "stall_ratio p95 < 1%", "stalls p95 < 1", "stalls p90 < 1"]);
        let summary = summarise(&run, &goals, Duration::ZERO);
        let met: Vec<bool> = summary.objectives.iter().map(|objective| objective.met).collect();
        assert_eq!(met, [false, false, false, true], "{:?}", summary.objectives);
        assert_eq!(
            summary.video.tracks,
            run.tracks.iter().filter(|t| t.kind == MediaKind::Video).count() as u64
        );
    }
}
