//! Setting up a presentation: from its description to PLAY, over UDP or the RTSP connection.

use std::net::SocketAddr;
use std::time::Instant;

use throng_observation::{Failure, FailureReason, Observation, Phase, RefusedDestination};
use throng_scenario::RtspTransport;

use super::description::Description;
use super::receiver::{Receiver, ReceiverOptions};
use super::transport::{Granted, TrackTransport, Wanted, name_of, rtcp_channel, rtp_channel};
use super::viewer::Viewer;
use crate::excerpt::excerpt;
use crate::participant::{Channel, Open, Opening, Output, Transmit};

impl Viewer {
    pub(super) fn described(&mut self, now: Instant, description: Description) {
        self.observe(Observation::Reached(Phase::Described, now));
        for line in &description.skipped {
            let detail = format!("not played: m={}", excerpt(line));
            self.outputs.push_back(Output::Observed(Observation::ProtocolAnomaly { place: "sdp", detail }));
        }
        let options = ReceiverOptions {
            clock: self.options.clock,
            joined_at: self.started_at,
            seed: self.options.seed,
            is_tapped: self.options.is_tapped,
        };
        self.receiver = Some(Receiver::new(options, &description.media, now));
        self.tracks = vec![TrackTransport::default(); description.media.len()];
        self.description = description;
        self.prepare(now, 0);
    }

    /// Sets up track `at`: over UDP its ports come first.
    pub(super) fn prepare(&mut self, now: Instant, at: usize) {
        if self.is_interleaved {
            let channel = u8::try_from(2 * at).unwrap_or(u8::MAX);
            return self.set_up(now, at, Wanted::Interleaved { channel });
        }
        match (self.tracks.get(at).and_then(|track| track.ports), self.server) {
            (Some((rtp_port, rtcp_port)), _) => self.set_up(now, at, Wanted::Udp { rtp_port, rtcp_port }),
            (None, Some(server)) => {
                let rtcp = rtcp_channel(at);
                self.outputs.push_back(Output::Open(rtp_channel(at), Open::RtpPair { rtcp, toward: server }));
            }
            (None, None) => {}
        }
    }

    fn set_up(&mut self, now: Instant, at: usize, wanted: Wanted) {
        let Some(media) = self.description.media.get(at) else { return };
        self.client.set_up(now, at, media.control.as_deref(), wanted, &media.profile);
    }

    pub(super) fn ports_opened(&mut self, now: Instant, channel: Channel, opening: &Opening) {
        let Some(port) = opening.local.map(|local| local.port()) else { return };
        let at = usize::from(channel.0.saturating_sub(1) / 2);
        let Some(track) = self.tracks.get_mut(at) else { return };
        if channel == rtp_channel(at) {
            track.ports = Some((port, port.saturating_add(1)));
            self.prepare(now, at);
        }
    }

    pub(super) fn was_set_up(&mut self, now: Instant, at: usize, granted: Granted) {
        if granted.is_multicast {
            let detail = "SETUP was answered with multicast, which was not asked for";
            return self.fail(now, Failure::new(FailureReason::Protocol, detail));
        }
        if granted.is_interleaved != self.is_interleaved {
            let detail = format!(
                "SETUP was answered with {} where {} was asked for",
                name_of(granted.is_interleaved),
                name_of(self.is_interleaved)
            );
            return self.fail(now, Failure::new(FailureReason::Protocol, detail));
        }
        let source = granted.source.filter(|ip| !ip.is_unspecified());
        let server_ip = source.or_else(|| self.server.map(|server| server.ip()));
        if let Some(ip) = source.filter(|ip| !(self.options.may_reach)(*ip)) {
            let place = SocketAddr::new(ip, granted.server_ports.map_or(0, |(rtp, _)| rtp));
            self.observe(Observation::Refused(RefusedDestination::IceServer, place));
        }
        let peers = server_ip.filter(|ip| (self.options.may_reach)(*ip)).zip(granted.server_ports);
        let peers = peers.map(|(ip, (rtp, rtcp))| (SocketAddr::new(ip, rtp), SocketAddr::new(ip, rtcp)));
        if let Some(track) = self.tracks.get_mut(at) {
            (track.granted, track.peers) = (granted, peers);
        }
        self.open_path(at);
        if at + 1 < self.tracks.len() {
            return self.prepare(now, at + 1);
        }
        self.observe(Observation::Reached(Phase::Negotiated, now));
        self.client.play(now);
    }

    /// Sends a packet from each port, which opens the path through NATs and firewalls, as players do.
    fn open_path(&mut self, at: usize) {
        let Some((rtp, rtcp)) = self.tracks.get(at).and_then(|track| track.peers) else { return };
        if self.is_interleaved {
            return;
        }
        // An RTP packet without payload (version 2, everything else zero).
        let mut empty = vec![0; 12];
        if let Some(first) = empty.first_mut() {
            *first = 0x80;
        }
        self.send(rtp_channel(at), rtp, empty);
        if let Some(report) = self.receiver.as_ref().map(Receiver::empty_report) {
            self.send(rtcp_channel(at), rtcp, report);
        }
    }

    pub(super) fn send(&mut self, channel: Channel, to: SocketAddr, bytes: Vec<u8>) {
        self.outputs.push_back(Output::Send(channel, Transmit { to, from: None, bytes }));
    }

    /// 461: the other transport is used for all tracks, as players do.
    pub(super) fn transport_refused(&mut self, now: Instant) {
        let was = name_of(self.is_interleaved);
        if self.config.transport != RtspTransport::Auto || self.is_interleaved {
            let detail = format!("SETUP: 461 Unsupported Transport: the server refuses RTP over {was}");
            return self.fail(now, Failure::new(FailureReason::RtspStatus(461), detail));
        }
        let detail = format!("the server refuses RTP over {was} (461); TCP is used");
        self.observe(Observation::ProtocolAnomaly { place: "rtsp", detail });
        self.close_ports();
        self.is_interleaved = true;
        self.client.forget_session();
        self.prepare(now, 0);
    }

    pub(super) fn close_ports(&mut self) {
        for at in 0..self.tracks.len() {
            if self.tracks.get_mut(at).and_then(|track| track.ports.take()).is_some() {
                self.outputs.push_back(Output::Close(rtp_channel(at)));
                self.outputs.push_back(Output::Close(rtcp_channel(at)));
            }
        }
    }
}
