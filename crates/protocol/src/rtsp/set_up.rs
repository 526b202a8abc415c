//! Setting up the tracks of a presentation, over UDP or the RTSP connection.

use std::net::SocketAddr;
use std::time::Instant;

use throng_observation::{Failure, FailureReason, Observation, RefusedDestination};
use throng_scenario::{IpProtocol, RtspTransport};

use super::session::Session;
use super::transport::{Granted, Track, Wanted, name_of, rtcp_channel, rtp_channel};
use crate::participant::{Channel, Open, Opening, Output};

/// What follows from the answer to a SETUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetUp {
    /// Further tracks are to be set up.
    More,
    /// Every track is.
    All,
}

impl Session {
    /// Sets up `tracks`, the first one now.
    pub(super) fn set_up_tracks(&mut self, now: Instant, tracks: Vec<Track>) {
        self.tracks = tracks;
        self.prepare(now, 0);
    }

    /// Sets up track `at`: over UDP its ports come first.
    pub(super) fn prepare(&mut self, now: Instant, at: usize) {
        if self.is_interleaved {
            let (channel, _) = interleaved_channels(at).unwrap_or((u8::MAX, u8::MAX));
            return self.set_up(now, at, Wanted::Interleaved { channel });
        }
        match (self.tracks.get(at).and_then(|track| track.ports), self.server) {
            (Some((rtp_port, rtcp_port)), _) => {
                self.set_up(now, at, Wanted::Udp { rtp_port, rtcp_port });
            }
            (None, Some(server)) => {
                let rtcp = rtcp_channel(at);
                self.life
                    .push(Output::Open(rtp_channel(at), Open::RtpPair { rtcp, toward: server }));
            }
            (None, None) => {}
        }
    }

    fn set_up(&mut self, now: Instant, at: usize, wanted: Wanted) {
        let Some(track) = self.tracks.get(at) else { return };
        let transport = wanted.header(&track.profile, self.mode);
        self.client.set_up(now, at, track.control.as_deref(), transport);
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

    /// Takes what the server granted for track `at`, and sets up the next one.
    ///
    /// # Errors
    /// The transport is not the one that was asked for.
    pub(super) fn was_set_up(
        &mut self,
        now: Instant,
        at: usize,
        mut granted: Granted,
    ) -> Result<SetUp, Failure> {
        let broken = |detail: String| Err(Failure::new(FailureReason::Protocol, detail));
        if granted.is_multicast {
            return broken("SETUP was answered with multicast, which was not asked for".into());
        }
        if granted.is_interleaved != self.is_interleaved {
            return broken(format!(
                "SETUP was answered with {} where {} was asked for",
                name_of(granted.is_interleaved),
                name_of(self.is_interleaved)
            ));
        }
        if self.is_interleaved {
            // Some servers do not repeat the channels that were asked for.
            granted.channels = granted.channels.or_else(|| interleaved_channels(at));
        }
        let source = granted.source.filter(|ip| !ip.is_unspecified());
        let server_ip = source.or_else(|| self.server.map(|server| server.ip()));
        let may_send = |to: SocketAddr| (self.options.may_reach)(IpProtocol::Udp, to);
        let named = server_ip.zip(granted.server_ports).filter(|_| !self.is_interleaved);
        let named =
            named.map(|(ip, (rtp, rtcp))| (SocketAddr::new(ip, rtp), SocketAddr::new(ip, rtcp)));
        let refused =
            named.and_then(|(rtp, rtcp)| [rtp, rtcp].into_iter().find(|to| !may_send(*to)));
        let peers = named.filter(|_| refused.is_none());
        if let Some(place) = refused {
            self.life.observe(Observation::Refused(RefusedDestination::IceServer, place));
        }
        if let Some(track) = self.tracks.get_mut(at) {
            (track.granted, track.peers, track.refused) = (granted, peers, refused);
        }
        if at + 1 < self.tracks.len() {
            self.prepare(now, at + 1);
            return Ok(SetUp::More);
        }
        Ok(SetUp::All)
    }

    /// The description has a secure profile (RTP/SAVP, keys by MIKEY: RFC 3711, RFC 3830, RFC
    /// 4567). Inside TLS the same media is taken in the clear, as other players do: the connection
    /// is encrypted already.
    ///
    /// # Errors
    /// It would have to be decrypted, which throng does not do.
    pub(super) fn take_in_the_clear(&mut self) -> Result<(), Failure> {
        let is_tls = self.config.url.scheme() == "rtsps";
        if is_tls && self.config.transport != RtspTransport::Udp {
            self.is_interleaved = true;
            return Ok(());
        }
        let way = if is_tls { "target.rtsp_transport = \"tcp\"" } else { "a URL with rtsps://" };
        let detail = format!(
            "the server encrypts media (RTP/SAVP), and throng decrypts none of RTSP; \
             inside TLS it comes in the clear: {way}"
        );
        Err(Failure::new(FailureReason::Unsupported, detail))
    }

    /// 461: the other transport is used for all tracks, as players do.
    ///
    /// # Errors
    /// There is no other one, or the scenario demands this one.
    pub(super) fn transport_refused(&mut self, now: Instant) -> Result<(), Failure> {
        let was = name_of(self.is_interleaved);
        if self.config.transport != RtspTransport::Auto || self.is_interleaved {
            let detail =
                format!("SETUP: 461 Unsupported Transport: the server refuses RTP over {was}");
            return Err(Failure::new(FailureReason::RtspStatus(461), detail));
        }
        self.anomaly("rtsp", format!("the server refuses RTP over {was} (461); TCP is used"));
        self.close_ports();
        self.is_interleaved = true;
        self.client.forget_session();
        self.prepare(now, 0);
        Ok(())
    }

    pub(super) fn close_ports(&mut self) {
        for at in 0..self.tracks.len() {
            if self.tracks.get_mut(at).and_then(|track| track.ports.take()).is_some() {
                self.life.push(Output::Close(rtp_channel(at)));
                self.life.push(Output::Close(rtcp_channel(at)));
            }
        }
    }
}

/// The channels that are asked for on the RTSP connection for track `at`.
fn interleaved_channels(at: usize) -> Option<(u8, u8)> {
    let rtp = u8::try_from(2 * at).ok()?;
    Some((rtp, rtp.checked_add(1)?))
}
