//! Plain lines for logs and pipes: a summary block each few seconds with all figures of
//! OvenRtcTester's.

use std::io::Write;
use std::time::Duration;

use throng_engine::LiveSnapshot;
use throng_engine::live::{KindFigures, RunState};
use throng_observation::units::{bit_rate, bytes, duration_ms, percent};
use throng_observation::untrusted;

use super::words::{quantiles, spread};
use super::{Display, State, Who, chat, players};
use crate::live_hosts::ServerFigures;

/// Writes a summary block each `every` of run time.
pub(crate) struct PlainDisplay<W: Write> {
    out: W,
    every_s: i64,
    next_s: i64,
    failed_shown: u32,
    who: Who,
}

impl<W: Write> PlainDisplay<W> {
    pub(crate) fn new(out: W, every: Duration, who: Who) -> Self {
        let every_s = i64::try_from(every.as_secs()).unwrap_or(i64::MAX).max(1);
        Self { out, every_s, next_s: every_s - 1, failed_shown: 0, who }
    }
}

impl<W: Write> Display for PlainDisplay<W> {
    fn show(&mut self, state: &State<'_>) -> bool {
        let State { live, servers, search, .. } = *state;
        // The loads of a search are printed one by one; a summary between them would bury them.
        let Some(second) = live.second.filter(|_| search.is_none()) else { return false };
        if second >= self.next_s && live.state != RunState::Finished {
            self.next_s = (second + 1) / self.every_s * self.every_s + self.every_s - 1;
            // A closed pipe must not end the run; the figures are in the run folder.
            let block = block(live, servers, second, self.who, &mut self.failed_shown);
            let _ = self.out.write_all(untrusted::lines(&block).as_bytes());
            let _ = self.out.flush();
        }
        false
    }
}

fn block(
    live: &LiveSnapshot,
    servers: &[ServerFigures],
    second: i64,
    who: Who,
    failed_shown: &mut u32,
) -> String {
    let crowd = &live.crowd;
    let [new, checking, connected, disconnected, failed, closed] = crowd.ice;
    let playing = match who {
        Who::Viewers => format!("{} playing, ", crowd.playing),
        Who::Publishers | Who::Chatters => String::new(),
    };
    let mut text = format!(
        "<Summary> {} s\n  {} {} of {} intended, {} connected, {playing}{} failed, {} left\n",
        second + 1,
        if who == Who::Publishers { "publishers" } else { "clients   " },
        crowd.intended,
        crowd.planned,
        crowd.connected,
        crowd.failed,
        crowd.left,
    );
    if live.playback.is_none() && who != Who::Chatters {
        text += &format!(
            "  ICE        new {new}, checking {checking}, connected {connected}, completed 0, disconnected {disconnected}, failed {failed}, closed {closed}\n"
        );
    }
    if who != Who::Chatters {
        text += &format!(
            "  join       to connected {}, to first frame {}\n",
            quantiles(live.connect_ms.as_ref(), duration_ms),
            quantiles(live.first_frame_ms.as_ref(), duration_ms)
        );
    }
    for (name, kind) in [("video", &live.video), ("audio", &live.audio)] {
        if kind.tracks > 0 && live.playback.is_none() {
            text += &kind_lines(name, kind, second, crowd.started);
        }
    }
    if let Some(playback) = &live.playback {
        text += &players::lines(live, playback);
    }
    if let Some(chat) = &live.chat {
        text += &chat::lines(live, chat);
    }
    if let Some(bps) = &live.client_bps {
        text += &format!("  clients'   bit rate {}\n", spread(Some(bps), bit_rate));
    }
    for server in servers {
        let name = if servers.len() > 1 { format!("{}: ", server.name) } else { String::new() };
        text += &format!("  server     {name}{}\n", server.line());
    }
    let process = &live.generator.process;
    text += &format!(
        "  generator  CPU {:.0} % of a core, {}{}\n",
        process.cpu_us as f64 / 1e4,
        bytes(process.rss_bytes as f64),
        if live.generator.limited.is_empty() {
            String::new()
        } else {
            format!(", over the limit: {}", live.generator.limited.join("; "))
        }
    );
    if crowd.failed > *failed_shown {
        *failed_shown = crowd.failed;
        let list: Vec<_> =
            live.failures.iter().map(|(reason, n)| format!("{reason} {n}")).collect();
        text += &format!("  failures   {}\n", list.join(", "));
    }
    text
}

fn kind_lines(name: &str, kind: &KindFigures, second: i64, clients: u32) -> String {
    let mut text = format!(
        "  {name:<9}  {} over {} tracks, loss {}, delay {}, jitter {}\n",
        bit_rate(kind.bitrate_bps),
        kind.tracks,
        percent(kind.loss_ratio),
        quantiles(kind.relative_delay_ms.as_ref(), duration_ms),
        quantiles(kind.jitter_ms.as_ref(), duration_ms),
    );
    text += &format!(
        "             delay {}\n",
        spread(kind.relative_delay_spread_ms.as_ref(), duration_ms)
    );
    let (so_far, seconds) = (&kind.so_far, (second + 1).max(1) as f64);
    text += &format!(
        "             so far {} ({} a second), {} packets ({:.0} a second), {} lost\n",
        bytes(so_far.wire_bytes as f64),
        bytes(so_far.wire_bytes as f64 / seconds),
        so_far.packets_received,
        so_far.packets_received as f64 / seconds,
        so_far.packets_lost.max(0),
    );
    let (each, lost) = (f64::from(clients.max(1)), so_far.packets_lost.max(0) as f64);
    text += &format!(
        "             a client {}, {:.0} packets, {:.1} lost\n",
        bytes(so_far.wire_bytes as f64 / each),
        so_far.packets_received as f64 / each,
        lost / each,
    );
    if let Some(basis) = kind.absolute_delay_basis {
        let one_way = kind.absolute_delay_ms.as_ref();
        let delay =
            one_way.map_or_else(|| "below zero".into(), |q| quantiles(Some(q), duration_ms));
        text += &format!("             one-way delay {delay}, by {}\n", basis.text());
        if let Some(disagreement) = kind.clock_disagreement {
            text += &format!("             clocks: {}\n", disagreement.text(basis));
        }
    }
    if let (Some(fps), "video") = (&kind.fps, name) {
        let source =
            kind.source_fps.map(|f| format!(" of the source's {f:.1}")).unwrap_or_default();
        let all = spread(kind.fps_spread.as_ref(), |fps| format!("{fps:.1}"));
        text +=
            &format!("             fps {:.1}{source} ({all}), {} freezes\n", fps.p50, kind.freezes);
    }
    if so_far.key_frames > 0 {
        let gop = so_far.frames_decodable as f64 / so_far.key_frames as f64;
        text += &format!("             gop avg {gop:.1} frames\n");
    }
    if let Some(delay) = &kind.oven_rtc_tester_delay_ms {
        text += &format!(
            "             drift since the first packet (what OvenRtcTester calls delay): median {}, {}\n",
            duration_ms(delay.p50),
            spread(kind.oven_rtc_tester_delay_spread_ms.as_ref(), duration_ms),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use throng_engine::live::{PlaybackFigures, Spread};
    use throng_observation::{Distribution, TrackCounters};

    use super::*;

    fn at(second: i64) -> LiveSnapshot {
        LiveSnapshot { second: Some(second), state: RunState::Running, ..LiveSnapshot::default() }
    }

    #[test]
    fn a_block_comes_once_for_every_interval() {
        let mut out = Vec::new();
        let mut plain = PlainDisplay::new(&mut out, Duration::from_secs(5), Who::Viewers);
        for second in 0..=11 {
            let live = at(second);
            let state = State { live: &live, objectives: &[], servers: &[], search: None };
            plain.show(&state);
            plain.show(&state);
        }
        let text = String::from_utf8(out).unwrap();
        let blocks: Vec<_> = text.lines().filter(|line| line.starts_with("<Summary>")).collect();
        assert_eq!(blocks, ["<Summary> 5 s", "<Summary> 10 s"]);
    }

    #[test]
    fn a_one_way_delay_says_by_what_and_whether_the_clocks_agree() {
        use throng_observation::{CaptureBasis, ClockDisagreement};
        let mut live = at(0);
        live.video.tracks = 1;
        live.video.absolute_delay_basis = Some(CaptureBasis::SenderReport);
        live.video.clock_disagreement =
            Some(ClockDisagreement { ratio: 0.6, ahead_ms_p95: Some(0.4) });
        let text = block(&live, &[], 0, Who::Viewers, &mut 0);
        assert!(
            text.contains("one-way delay below zero, by RTCP SR (the server's own clock"),
            "{text}"
        );
        let clocks =
            "clocks: 60.0 % of frames seem to arrive before they were sent, by up to 0.4 ms (p95)";
        assert!(text.contains(clocks), "{text}");
    }

    #[test]
    fn every_figure_of_oven_rtc_testers_summary_is_there() {
        let of = |samples: [u64; 3], scale: f64| {
            let mut all = Distribution::new();
            samples.into_iter().for_each(|sample| all.record(sample));
            (all.quantiles(scale), Spread::of(&all, scale))
        };
        let mut live = at(59);
        (live.crowd.started, live.crowd.ice) = (4, [1, 2, 3, 4, 5, 6]);
        let (fps, fps_spread) = of([20, 30, 40], 1.0);
        let (relative_delay_ms, relative_delay_spread_ms) = of([100, 200, 240], 10.0);
        let (oven_rtc_tester_delay_ms, oven_rtc_tester_delay_spread_ms) = of([10, 20, 30], 1.0);
        let so_far = TrackCounters {
            wire_bytes: 4_000_000,
            packets_received: 4000,
            packets_lost: 10,
            frames_decodable: 1_200,
            key_frames: 40,
            ..TrackCounters::default()
        };
        live.video = KindFigures {
            tracks: 4,
            so_far,
            fps,
            fps_spread,
            relative_delay_ms,
            relative_delay_spread_ms,
            oven_rtc_tester_delay_ms,
            oven_rtc_tester_delay_spread_ms,
            ..KindFigures::default()
        };
        live.audio = KindFigures { tracks: 4, relative_delay_spread_ms, ..KindFigures::default() };
        live.client_bps = Some(Spread { mean: 1e6, min: 9e5, max: 1.1e6 });
        let text = block(&live, &[], 59, Who::Viewers, &mut 0);
        for figure in [
            "<Summary> 60 s",
            "new 1, checking 2, connected 3, completed 0, disconnected 4, failed 5, closed 6",
            "gop avg 30.0 frames",
            "delay avg 18 ms max 24 ms min 10 ms",
            "drift since the first packet (what OvenRtcTester calls delay): median 20 ms, avg 20 ms max 30 ms min 10 ms",
            "fps 30.0 (avg 30.0 max 40.0 min 20.0)",
            "bit rate avg 1.00 Mbit/s max 1.10 Mbit/s min 900 kbit/s",
            "so far 4.00 MB",
            "4000 packets",
            "10 lost",
            "a client 1.00 MB, 1000 packets, 2.5 lost",
        ] {
            assert!(text.contains(figure), "{figure} in:\n{text}");
        }
        assert_eq!(text.matches("delay avg").count(), 2, "{text}");
    }

    #[test]
    fn players_show_stalls_and_buffers_and_no_loss() {
        let mut buffer = Distribution::new();
        [4_000, 9_000, 12_000].into_iter().for_each(|ms| buffer.record(ms));
        let mut live = at(9);
        live.video.tracks = 3;
        live.playback = Some(PlaybackFigures {
            players: 3,
            stalled: 1,
            buffer_ms: buffer.quantiles(1.0),
            buffer_ms_min: Some(4_000.0),
            delivery_ratio_min: Some(0.5),
            ..PlaybackFigures::default()
        });
        let text = block(&live, &[], 9, Who::Viewers, &mut 0);
        for figure in [
            "to 3 players, 1 stalled, 0 starting",
            "lowest 4.00 s",
            "at least 50.0 % of the bit rate",
        ] {
            assert!(text.contains(figure), "{figure} in:\n{text}");
        }
        for absent in ["loss", "jitter", "packets", "ICE"] {
            assert!(!text.contains(absent), "{absent} in:\n{text}");
        }
    }

    #[test]
    fn a_chat_has_rooms_and_messages_and_neither_ice_nor_frames() {
        use throng_engine::live::ChatFigures;
        use throng_observation::{ChatCounters, Quantiles};
        let mut live = at(9);
        let quantiles = Quantiles { count: 9, p50: 20.0, p95: 197.0, p99: 198.0, max: 199.0 };
        let counters =
            ChatCounters { messages_due: 40, messages_missing: 1, ..ChatCounters::default() };
        let so_far = ChatCounters { messages_sent: 7, reconnects: 3, resumes: 2, ..counters };
        let delivery_ms = Some(quantiles);
        live.chat = Some(ChatFigures {
            members: 9,
            joined: 8,
            occupants_max: 10,
            delivery_ms,
            counters,
            so_far,
        });
        let text = block(&live, &[], 9, Who::Chatters, &mut 0);
        for figure in [
            "8 of 9 in the room, with up to 10 others",
            "delivery p50 20 ms p95 197 ms p99 198 ms max 199 ms, 40 due, 1 missing",
            "so far 7 said, 40 due, 1 missing",
            "3 reconnects, 2 of them resumed",
        ] {
            assert!(text.contains(figure), "{figure} in:\n{text}");
        }
        for absent in ["ICE", "first frame", "playing", "loss"] {
            assert!(!text.contains(absent), "{absent} in:\n{text}");
        }
        let beside_viewers = block(&live, &[], 9, Who::Viewers, &mut 0);
        assert!(
            beside_viewers.contains("8 of 9 in the room") && beside_viewers.contains("first frame")
        );
    }

    #[test]
    fn a_watched_server_has_its_line() {
        let servers =
            [ServerFigures { name: "sfu".into(), cpu: Some(0.5), ..ServerFigures::default() }];
        let text = block(&at(0), &servers, 0, Who::Viewers, &mut 0);
        assert!(text.contains("  server     CPU 50.0 % of a core, hottest thread –"), "{text}");
    }

    #[test]
    fn publishers_are_called_so_and_play_nothing() {
        let mut live = at(0);
        (live.crowd.intended, live.crowd.planned, live.crowd.connected) = (3, 3, 2);
        let text = block(&live, &[], 0, Who::Publishers, &mut 0);
        assert!(
            text.contains("  publishers 3 of 3 intended, 2 connected, 0 failed, 0 left\n"),
            "{text}"
        );
        let text = block(&live, &[], 0, Who::Viewers, &mut 0);
        assert!(
            text.contains("  clients    3 of 3 intended, 2 connected, 0 playing, 0 failed"),
            "{text}"
        );
    }

    #[test]
    fn failures_are_named_when_they_are_new() {
        let mut live = at(0);
        live.crowd.failed = 2;
        live.failures.insert("http_404".into(), 2);
        let mut shown = 0;
        assert!(block(&live, &[], 0, Who::Viewers, &mut shown).contains("failures   http_404 2"));
        assert!(!block(&live, &[], 1, Who::Viewers, &mut shown).contains("failures   http_404"));
    }
}
