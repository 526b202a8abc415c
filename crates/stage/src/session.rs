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
use crate::peer::{Agreed, Peer, Role};
use crate::publisher::{self, Published};
use crate::reel::Library;
use crate::room::{Room, source_for};
use crate::source::{Channel, History, Source};
use crate::stats::{WorkerCounters, add};
use crate::viewer::{Outlet, Resend, Stream};

/// ICE consent lasts 30 s (RFC 7675 §5.1): a peer that is silent for so long has gone.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// A peer that has not connected after so long never will.
const CONNECT_MAX: Duration = Duration::from_secs(20);
/// Addresses that one peer may be heard from: more than any host has interfaces that matter.
const ADDRESSES_MAX: usize = 8;
/// Sequence numbers that are answered of one NACK packet; the rest is counted as missed.
const RESENDS_MAX: usize = 256;
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// A publisher is asked for a key frame no more often.
const KEY_FRAME_EVERY: Duration = Duration::from_millis(500);

/// How many publishers there were, in this process.
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

/// What a session does.
pub(crate) enum Media {
    /// ICE and DTLS are under way.
    Connecting {
        role: Role,
        agreed: Vec<Agreed>,
    },
    Viewing {
        outlet: Outlet,
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

/// What a session works with beyond itself.
pub(crate) struct Outside<'a> {
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

    /// Notes that the peer sends from `address`; false when it has too many.
    pub(crate) fn learn_address(&mut self, address: SocketAddr) -> bool {
        if !self.addresses.contains(&address) {
            if self.addresses.len() >= ADDRESSES_MAX {
                return false;
            }
            self.addresses.push(address);
        }
        true
    }

    /// Whether the peer has been silent for so long that it is gone.
    pub(crate) fn is_silent(&self, now: Instant) -> bool {
        let connecting = matches!(self.media, Media::Connecting { .. });
        now.saturating_duration_since(self.heard_at) > SILENCE_MAX
            || connecting && now.saturating_duration_since(self.began_at) > CONNECT_MAX
    }

    /// Goes on from connecting when DTLS has agreed on keys. True when a viewer has begun.
    pub(crate) fn begin_media(&mut self, room: &Room) -> bool {
        let Media::Connecting { role, agreed } = &mut self.media else { return false };
        let Some((keys, to)) = self.peer.take_keys().zip(self.peer.remote()) else { return false };
        let (Ok(sealer), Ok(opener)) = (keys.sealer(), keys.opener()) else { return false };
        let agreed = std::mem::take(agreed);
        // Sessions that began together report apart.
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
                let reel = room.library.as_ref().and_then(Library::deal);
                let outlet = Outlet { sealer, to, transport_sequence: 0, reel };
                self.media = Media::Viewing { outlet, opener, streams, report_at };
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
                self.media =
                    Media::Publishing { opener, sealer, to, tracks, report_at, key_frame_asked_at: None };
                false
            }
        }
    }

    /// Takes in RTCP.
    pub(crate) fn take_control(&mut self, datagram: &mut [u8], outside: &mut Outside<'_>) {
        let opener = match &self.media {
            Media::Connecting { .. } => return,
            Media::Viewing { opener, .. } | Media::Publishing { opener, .. } => opener,
        };
        let Some(plain) = opener.open_rtcp(datagram).ok().and_then(|len| datagram.get(..len)) else {
            add(&outside.counters.datagrams_refused, 1);
            return;
        };
        let Media::Viewing { outlet, streams, .. } = &mut self.media else { return };
        for packet in Compound::new(plain) {
            match packet {
                Ok(Rtcp::ReceiverReport(report)) => {
                    report.reports().for_each(|block| note_report(outside, &block));
                }
                Ok(Rtcp::SenderReport(report)) => {
                    report.reports().for_each(|block| note_report(outside, &block));
                }
                Ok(Rtcp::Nack(nack)) => {
                    if let Some(stream) =
                        streams.iter_mut().find(|stream| stream.agreed.ssrc == nack.media_ssrc)
                    {
                        resend(stream, outlet, nack.sequences(), outside);
                    }
                }
                Ok(Rtcp::PictureLoss(_) | Rtcp::FullIntraRequest(_)) => {
                    add(&outside.counters.key_frame_requests, 1);
                    // The test card has a key frame each second and cannot make one sooner.
                    if streams.iter().any(|stream| matches!(stream.source, Source::LiveVideo(_))) {
                        outside.room.ask_key_frame(self.channel);
                    }
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }

    /// Takes in RTP: of a publisher it goes to the room, of a viewer nobody wants it.
    pub(crate) fn take_media(&mut self, datagram: &mut [u8], outside: &mut Outside<'_>) {
        let Media::Publishing { opener, tracks, .. } = &mut self.media else { return };
        let Ok(header) = RtpHeader::parse(datagram) else {
            add(&outside.counters.datagrams_refused, 1);
            return;
        };
        let Some(track) = tracks.iter_mut().find(|track| track.owns(&header)) else { return };
        add(&outside.counters.published_packets, 1);
        if let Some(burst) = track.open(&header, datagram, opener, outside.now, wall_clock_ns()) {
            outside.room.play(&Arc::new(burst));
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
            Media::Viewing { outlet, streams, report_at, .. } if *report_at <= now => {
                *report_at = now + REPORT_EVERY;
                for stream in streams {
                    if stream.write_report(now, wall_clock, outlet, scratch) {
                        egress.send_bytes(now, outlet.to, scratch);
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

    /// Asks for a key frame, if this is the publisher and it was not asked just now.
    pub(crate) fn request_key_frame(&mut self, now: Instant, scratch: &mut Vec<u8>, egress: &mut Egress) {
        let Media::Publishing { sealer, to, tracks, key_frame_asked_at, .. } = &mut self.media else {
            return;
        };
        let Some(ssrc) = tracks.iter().find(|track| !track.codec().is_audio()).and_then(Published::ssrc)
        else {
            return;
        };
        if key_frame_asked_at.is_some_and(|at| now.saturating_duration_since(at) < KEY_FRAME_EVERY) {
            return;
        }
        *key_frame_asked_at = Some(now);
        publisher::write_key_frame_request(ssrc, scratch);
        if sealer.seal_rtcp(scratch).is_ok() {
            egress.send_bytes(now, *to, scratch);
        }
    }

    /// Tells a viewer that its streams end (RTCP BYE).
    pub(crate) fn say_goodbye(&mut self, now: Instant, scratch: &mut Vec<u8>, egress: &mut Egress) {
        let Media::Viewing { outlet, streams, .. } = &mut self.media else { return };
        let ssrcs: Vec<u32> = streams.iter().map(|stream| stream.agreed.ssrc).collect();
        scratch.clear();
        let _ = RtcpWriter::reduced_size(scratch).bye(&ssrcs);
        if outlet.sealer.seal_rtcp(scratch).is_ok() {
            egress.send_bytes(now, outlet.to, scratch);
        }
    }
}

fn note_report(outside: &Outside<'_>, block: &ReportBlock) {
    add(&outside.counters.receiver_reports, 1);
    add(&outside.counters.fraction_lost_sum, block.fraction_lost.into());
}

fn resend(
    stream: &mut Stream,
    outlet: &mut Outlet,
    sequences: impl Iterator<Item = u16>,
    outside: &mut Outside<'_>,
) {
    let (history, to) = (&outside.history[stream.source.place()], outlet.to);
    for (number, sequence) in sequences.enumerate() {
        add(&outside.counters.nacks_received, 1);
        let found = match stream.sent_as(sequence) {
            Resend::Packet { number, index } => {
                history.find(number).map(|(burst, place)| (burst, place, index))
            }
            Resend::Unknown => None,
        };
        match found {
            Some((burst, place, index)) if number < RESENDS_MAX => {
                outside
                    .egress
                    .send(outside.now, to, |out| stream.write_again(burst, place, index, outlet, out));
                add(&outside.counters.packets_resent, 1);
            }
            _ => add(&outside.counters.resend_misses, 1),
        }
    }
}
