//! A session on a worker: connecting, then viewing or publishing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use throng_media::rtcp::{Compound, ReportBlock, Rtcp, RtcpWriter};
use throng_media::rtp::{NtpTime, RtpHeader};
use throng_protocol::webrtc::srtp::{Opener, Sealer};

use crate::card::wall_clock_ns;
use crate::config::Card;
use crate::egress::Egress;
use crate::inbox::{Live, NewSession};
use crate::media_files::MediaFolder;
use crate::peer::{NegotiatedMedia, Peer, Role};
use crate::publisher::{self, Published};
use crate::room::{Room, source_for};
use crate::source::{Channel, History, Source};
use crate::stats::{WorkerCounters, add};
use crate::viewer::{Resend, Stream, ViewerTransport};

/// ICE consent lasts 30 s (RFC 7675 §5.1): a session whose peer is silent for longer ends.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Time limit for connecting.
const CONNECT_MAX: Duration = Duration::from_secs(20);
/// Most source addresses of one peer: more than any host has useful interfaces.
const ADDRESSES_MAX: usize = 8;
/// Most retransmissions for one NACK packet; the rest counts as missed.
const RESENDS_MAX: usize = 256;
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// Shortest interval between key frame requests to a publisher.
const KEY_FRAME_EVERY: Duration = Duration::from_millis(500);

/// Publishers so far in this process.
static PUBLISHERS: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) local_ufrag: String,
    pub(crate) peer: Peer,
    pub(crate) card: Card,
    /// The stream that it views or publishes.
    pub(crate) channel: Channel,
    pub(crate) media: Media,
    /// Where its datagrams come from.
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) heard_at: Instant,
    began_at: Instant,
    _ballast: Vec<u8>,
}

/// The state of a session.
pub(crate) enum Media {
    /// ICE and DTLS are under way.
    Connecting {
        role: Role,
        agreed: Vec<NegotiatedMedia>,
    },
    Viewing {
        transport: ViewerTransport,
        opener: Opener,
        streams: Vec<Stream>,
        report_at: Instant,
    },
    Publishing {
        opener: Opener,
        sealer: Sealer,
        to: SocketAddr,
        tracks: Vec<Published>,
        report_at: Instant,
        key_frame_asked_at: Option<Instant>,
    },
}

/// What a session uses of its worker.
pub(crate) struct SessionContext<'a> {
    pub(crate) now: Instant,
    pub(crate) room: &'a Room,
    pub(crate) counters: &'a WorkerCounters,
    pub(crate) egress: &'a mut Egress,
    pub(crate) history: &'a [History; Source::COUNT],
}

impl Session {
    pub(crate) fn new(new: NewSession, now: Instant) -> Self {
        Self {
            id: new.id,
            local_ufrag: new.local_ufrag,
            peer: new.peer,
            card: new.card,
            channel: new.channel,
            media: Media::Connecting { role: new.role, agreed: new.agreed },
            addresses: Vec::new(),
            heard_at: now,
            began_at: now,
            _ballast: new.ballast,
        }
    }

    /// Adds a source address of the peer; false if it has too many.
    pub(crate) fn learn_address(&mut self, address: SocketAddr) -> bool {
        if !self.addresses.contains(&address) {
            if self.addresses.len() >= ADDRESSES_MAX {
                return false;
            }
            self.addresses.push(address);
        }
        true
    }

    /// Whether the peer has been silent for too long, or did not connect in time.
    pub(crate) fn is_silent(&self, now: Instant) -> bool {
        let connecting = matches!(self.media, Media::Connecting { .. });
        now.saturating_duration_since(self.heard_at) > SILENCE_MAX
            || connecting && now.saturating_duration_since(self.began_at) > CONNECT_MAX
    }

    /// Begins media once DTLS has keys; true if a viewer has begun.
    pub(crate) fn begin_media(&mut self, room: &Room) -> bool {
        let Media::Connecting { role, agreed } = &mut self.media else { return false };
        let Some((keys, to)) = self.peer.take_keys().zip(self.peer.remote()) else { return false };
        let (Ok(sealer), Ok(opener)) = (keys.sealer(), keys.opener()) else { return false };
        let agreed = std::mem::take(agreed);
        // Spreads the reports of sessions that began together.
        let report_at = self.began_at + REPORT_EVERY.mul_f64(fastrand::f64());
        match role {
            Role::Viewer => {
                let (channel, live) = (self.channel, room.live(self.channel));
                let card = room.config.emulates.has_card().then_some(self.card);
                let (has_picture, stutters) = (room.has_a_picture_left(), room.stutters());
                let streams: Vec<Stream> = agreed
                    .into_iter()
                    .filter(|agreed| has_picture || agreed.codec.is_audio())
                    .map(|agreed| {
                        let source = source_for(agreed.codec, channel, card, live);
                        let now = Instant::now();
                        let ends_at = room.config.planted.ends_at(agreed.codec, now);
                        let stutters_from = (stutters && !agreed.codec.is_audio()).then_some(now);
                        Stream::new(agreed, source, ends_at, stutters_from)
                    })
                    .collect();
                if streams.iter().any(|stream| stream.source.is_live()) {
                    room.ask_key_frame(self.channel);
                }
                let file = room.library.as_ref().and_then(MediaFolder::deal);
                let transport = ViewerTransport { sealer, to, transport_sequence: 0, file };
                self.media = Media::Viewing { transport, opener, streams, report_at };
                true
            }
            Role::Publisher => {
                let generation = PUBLISHERS.fetch_add(1, Relaxed).wrapping_add(1) & 0x00ff_ffff;
                let tracks: Vec<Published> = agreed
                    .into_iter()
                    .map(|agreed| Published::new(agreed, self.channel, generation))
                    .collect();
                let live = Some(Live {
                    video: tracks.iter().map(Published::codec).find(|codec| !codec.is_audio()),
                    audio: tracks.iter().any(|track| track.codec().is_audio()),
                });
                room.go_live(self.channel, live);
                self.media = Media::Publishing {
                    opener,
                    sealer,
                    to,
                    tracks,
                    report_at,
                    key_frame_asked_at: None,
                };
                false
            }
        }
    }

    /// Handles RTCP.
    pub(crate) fn take_control(&mut self, datagram: &mut [u8], context: &mut SessionContext<'_>) {
        let opener = match &self.media {
            Media::Connecting { .. } => return,
            Media::Viewing { opener, .. } | Media::Publishing { opener, .. } => opener,
        };
        let Some(plain) = opener.open_rtcp(datagram).ok().and_then(|len| datagram.get(..len))
        else {
            add(&context.counters.datagrams_refused, 1);
            return;
        };
        let Media::Viewing { transport, streams, .. } = &mut self.media else { return };
        for packet in Compound::new(plain) {
            match packet {
                Ok(Rtcp::ReceiverReport(report)) => {
                    report.reports().for_each(|block| note_report(context, &block));
                }
                Ok(Rtcp::SenderReport(report)) => {
                    report.reports().for_each(|block| note_report(context, &block));
                }
                Ok(Rtcp::Nack(nack)) => {
                    if let Some(stream) =
                        streams.iter_mut().find(|stream| stream.agreed.ssrc == nack.media_ssrc)
                    {
                        resend(stream, transport, nack.sequences(), context);
                    }
                }
                Ok(Rtcp::PictureLoss(_) | Rtcp::FullIntraRequest(_)) => {
                    add(&context.counters.key_frame_requests, 1);
                    // The test card has a key frame each second and cannot make one sooner.
                    if streams.iter().any(|stream| matches!(stream.source, Source::LiveVideo(_))) {
                        context.room.ask_key_frame(self.channel);
                    }
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }

    /// Handles RTP: a publisher's goes to the room, a viewer's is ignored.
    pub(crate) fn take_media(&mut self, datagram: &mut [u8], context: &mut SessionContext<'_>) {
        let Media::Publishing { opener, tracks, .. } = &mut self.media else { return };
        let Ok(header) = RtpHeader::parse(datagram) else {
            add(&context.counters.datagrams_refused, 1);
            return;
        };
        let Some(track) = tracks.iter_mut().find(|track| track.owns(&header)) else { return };
        add(&context.counters.published_packets, 1);
        if let Some(burst) = track.open(&header, datagram, opener, context.now, wall_clock_ns()) {
            context.room.play(&Arc::new(burst));
        }
    }

    /// Sends the reports of each second.
    pub(crate) fn report(
        &mut self,
        now: Instant,
        wall_clock: NtpTime,
        scratch: &mut Vec<u8>,
        egress: &mut Egress,
    ) {
        match &mut self.media {
            Media::Viewing { transport, streams, report_at, .. } if *report_at <= now => {
                *report_at = now + REPORT_EVERY;
                for stream in streams {
                    if stream.write_report(now, wall_clock, transport, scratch) {
                        egress.send_bytes(now, transport.to, scratch);
                    }
                }
            }
            Media::Publishing { sealer, to, tracks, report_at, .. } if *report_at <= now => {
                *report_at = now + REPORT_EVERY;
                publisher::write_feedback(tracks, scratch);
                if sealer.seal_rtcp(scratch).is_ok() {
                    egress.send_bytes(now, *to, scratch);
                }
            }
            _ => {}
        }
    }

    /// Requests a key frame if this is a publisher and [`KEY_FRAME_EVERY`] has passed since the
    /// last request.
    pub(crate) fn request_key_frame(
        &mut self,
        now: Instant,
        scratch: &mut Vec<u8>,
        egress: &mut Egress,
    ) {
        let Media::Publishing { sealer, to, tracks, key_frame_asked_at, .. } = &mut self.media
        else {
            return;
        };
        let Some(ssrc) =
            tracks.iter().find(|track| !track.codec().is_audio()).and_then(Published::ssrc)
        else {
            return;
        };
        if key_frame_asked_at.is_some_and(|at| now.saturating_duration_since(at) < KEY_FRAME_EVERY)
        {
            return;
        }
        *key_frame_asked_at = Some(now);
        publisher::write_key_frame_request(ssrc, scratch);
        if sealer.seal_rtcp(scratch).is_ok() {
            egress.send_bytes(now, *to, scratch);
        }
    }

    /// Tells a viewer that its streams end (RTCP BYE).
    pub(crate) fn send_bye(&mut self, now: Instant, scratch: &mut Vec<u8>, egress: &mut Egress) {
        let Media::Viewing { transport, streams, .. } = &mut self.media else { return };
        let ssrcs: Vec<u32> = streams.iter().map(|stream| stream.agreed.ssrc).collect();
        scratch.clear();
        let _ = RtcpWriter::reduced_size(scratch).bye(&ssrcs);
        if transport.sealer.seal_rtcp(scratch).is_ok() {
            egress.send_bytes(now, transport.to, scratch);
        }
    }
}

fn note_report(context: &SessionContext<'_>, block: &ReportBlock) {
    add(&context.counters.receiver_reports, 1);
    add(&context.counters.fraction_lost_sum, block.fraction_lost.into());
}

fn resend(
    stream: &mut Stream,
    transport: &mut ViewerTransport,
    sequences: impl Iterator<Item = u16>,
    context: &mut SessionContext<'_>,
) {
    let (history, to) = (&context.history[stream.source.place()], transport.to);
    for (number, sequence) in sequences.enumerate() {
        add(&context.counters.nacks_received, 1);
        let found = match stream.sent_as(sequence) {
            Resend::Packet { number, index } => {
                history.find(number).map(|(burst, place)| (burst, place, index))
            }
            Resend::Unknown => None,
        };
        match found {
            Some((burst, place, index)) if number < RESENDS_MAX => {
                context.egress.send(context.now, to, |out| {
                    stream.write_again(burst, place, index, transport, out)
                });
                add(&context.counters.packets_resent, 1);
            }
            _ => add(&context.counters.resend_misses, 1),
        }
    }
}
