//! Plain lines for logs and pipes: a summary block each few seconds with all figures of
//! OvenRtcTester's.

use std::io::Write;
use std::time::Duration;

use throng_engine::LiveSnapshot;
use throng_engine::live::{LiveTracks, RunState, Spread};
use throng_observation::units::{bit_rate, bytes, duration_ms, percent};
use throng_observation::{IceState, untrusted};

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
    let playing = match who {
        Who::Viewers => format!("{} playing, ", crowd.playing),
        Who::Publishers | Who::Chatters => String::new(),
    };
    let mut text = format!(
        "<Summary> {} s\n  {} {} of {} intended, {} connected, {playing}{} failed, {} left\n",
        second + 1,
        match who {
            Who::Viewers => "clients   ",
            Who::Publishers => "publishers",
            Who::Chatters => "chatters  ",
        },
        crowd.intended,
        live.planned,
        crowd.connected,
        crowd.failed,
        crowd.left,
    );
    if live.playback.is_none() && who != Who::Chatters {
        text += &format!(
            "  ICE        new {}, checking {}, connected {}, completed 0, disconnected {}, \
             failed {}, closed {}\n",
            crowd.ice_of(IceState::New),
            crowd.ice_of(IceState::Checking),
            crowd.ice_of(IceState::Connected),
            crowd.ice_of(IceState::Disconnected),
            crowd.ice_of(IceState::Failed),
            crowd.ice_of(IceState::Closed),
        );
    }
    if who != Who::Chatters {
        text += &format!(
            "  join       to connected {}, to first frame {}\n",
            quantiles(live.connect_ms, duration_ms),
            quantiles(live.first_frame_ms, duration_ms)
        );
    }
    for (name, kind) in [("video", &live.video), ("audio", &live.audio)] {
        if kind.last.tracks > 0 && live.playback.is_none() {
            text += &kind_lines(name, kind, second, crowd.started);
        }
    }
    if let Some(playback) = &live.playback {
        text += &players::lines(live, playback);
    }
    if let Some(chat) = &live.chat {
        text += &chat::lines(live, chat);
    }
    if live.client_bps.is_some() {
        text += &format!("  clients'   bit rate {}\n", spread(live.client_bps, bit_rate));
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

fn kind_lines(name: &str, kind: &LiveTracks, second: i64, clients: u32) -> String {
    let last = &kind.last;
    let mut text = format!(
        "  {name:<9}  {} over {} tracks, loss {}, delay {}, jitter {}\n",
        bit_rate(last.counters.wire_bytes as f64 * 8.0),
        last.tracks,
        last.counters.loss_ratio().map_or_else(|| "–".into(), percent),
        quantiles(last.relative_delay_us.quantiles(1e3), duration_ms),
        quantiles(last.jitter_us.quantiles(1e3), duration_ms),
    );
    let delay = spread(Spread::of(&last.relative_delay_us, 1e3), duration_ms);
    text += &format!("             delay {delay}\n");
    let (so_far, seconds) = (&kind.so_far, (second + 1).max(1) as f64);
    text += &format!(
        "             so far {} ({} a second), {} packets ({:.0} a second), {} lost\n",
        bytes(so_far.wire_bytes as f64),
        bytes(so_far.wire_bytes as f64 / seconds),
        so_far.packets_original,
        so_far.packets_original as f64 / seconds,
        so_far.packets_lost_for_good(),
    );
    let (each, lost) = (f64::from(clients.max(1)), so_far.packets_lost_for_good() as f64);
    text += &format!(
        "             a client {}, {:.0} packets, {:.1} lost\n",
        bytes(so_far.wire_bytes as f64 / each),
        so_far.packets_original as f64 / each,
        lost / each,
    );
    if let Some(basis) = last.absolute_delay.basis() {
        let one_way = last.absolute_delay.quantiles(1e3);
        let delay =
            one_way.map_or_else(|| "below zero".into(), |q| quantiles(Some(q), duration_ms));
        text += &format!("             one-way delay {delay}, by {}\n", basis.text());
        if let Some(disagreement) = last.absolute_delay.disagreement() {
            text += &format!("             clocks: {}\n", disagreement.text(basis));
        }
    }
    if let (Some(fps), "video") = (last.fps_milli.quantile_in(0.5, 1e3), name) {
        let source = last.source_fps.mean();
        let source = source.map(|f| format!(" of the source's {f:.1}")).unwrap_or_default();
        let all = spread(Spread::of(&last.fps_milli, 1e3), |fps| format!("{fps:.1}"));
        let freezes = last.counters.freeze_count;
        text += &format!("             fps {fps:.1}{source} ({all}), {freezes} freezes\n");
    }
    if let Some(gop) = so_far.gop() {
        text += &format!("             gop avg {gop:.1} frames\n");
    }
    if let Some(drift_ms) = last.oven_rtc_tester_delay_us.quantile_in(0.5, 1e3) {
        text += &format!(
            "             drift since the first packet (what OvenRtcTester calls delay): median \
             {}, {}\n",
            duration_ms(drift_ms),
            spread(Spread::of(&last.oven_rtc_tester_delay_us, 1e3), duration_ms),
        );
    }
    text
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;
