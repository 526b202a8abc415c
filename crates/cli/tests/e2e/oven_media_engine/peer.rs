//! The media side of the conformance server: a WebRTC sender (str0m, ICE-lite like OvenMediaEngine)
//! that plays the test card to one viewer, with deviations of the real server if a test wants them.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use str0m::change::{SdpAnswer, SdpPendingOffer};
use str0m::format::Codec;
use str0m::media::{Direction, Frequency, MediaKind, MediaTime, Mid};
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, Input, Output, Rtc, RtcConfig};
use throng_media::container::{annexb, ogg::OggReader};
use throng_media::rtcp::{Report, RtcpWriter, SenderInfo};
use throng_media::rtp::{NtpTime, PacketKind, classify};
use throng_protocol::webrtc::srtp::Sealer;
use throng_sim::ome::MediaPeer;

use super::keys::{self, Slot};

static H264: &[u8] = include_bytes!("../../../../media/clips/card-360p.h264");
static OPUS: &[u8] = include_bytes!("../../../../media/clips/tone.opus.ogg");

/// Frames per second of the clip.
pub(crate) const FPS: u32 = 30;

/// One clip: its frames, frames per second, and RTP clock rate.
struct Clip {
    frames: Vec<Arc<[u8]>>,
    rate: u32,
    clock_hz: u32,
}

fn clips() -> [Clip; 2] {
    let units = annexb::h264_access_units(H264).map(|unit| {
        let bytes: Vec<u8> =
            unit.nals.iter().flat_map(|nal| [&[0, 0, 0, 1], *nal].concat()).collect();
        bytes.into()
    });
    let video = Clip { frames: units.collect(), rate: FPS, clock_hz: 90_000 };
    let packets =
        OggReader::new(OPUS).skip(2).take(150).map(|packet| packet.unwrap().into_owned().into());
    [video, Clip { frames: packets.collect(), rate: 50, clock_hz: 48_000 }]
}

/// Deviations of a sender: it is not ready at once, ignores some ports or addresses, or reports a
/// wrong time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manner {
    /// It ignores every other port of its peer, and counts the ignored datagrams.
    pub(crate) listens_to: Option<RangeInclusive<u16>>,
    /// For this time after the answer it drops datagrams: the first connectivity checks of a
    /// viewer, which may send at once. A server that creates the session only while it handles the
    /// answer does so.
    pub(crate) ready_after: Duration,
    /// Its RTCP sender reports contain the media time since its beginning instead of wall-clock
    /// time, as in OvenMediaEngine 0.20.
    pub(crate) reports_media_time: bool,
    /// It sends from this loopback address instead of that of its candidate.
    pub(crate) sends_from: Option<Ipv4Addr>,
}

/// The interval of sender reports.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// A sender that has made its offer.
pub(crate) struct Peer {
    socket: UdpSocket,
    offered: Option<(Rtc, SdpPendingOffer, [Mid; 2], Slot)>,
    manner: Manner,
    trickled: Option<Sender<String>>,
    gone: Arc<AtomicBool>,
    heard_elsewhere: Arc<AtomicU64>,
}

impl Peer {
    /// Creates a sender on a free port of loopback.
    pub(crate) fn new(manner: Manner, heard_elsewhere: Arc<AtomicU64>) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let gone = Arc::default();
        Self { socket, offered: None, manner, trickled: None, gone, heard_elsewhere }
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }
}

impl MediaPeer for Peer {
    fn offer(&mut self) -> String {
        let configuration =
            RtcConfig::new().clear_codecs().enable_h264(true).enable_opus(true, false);
        let (mut rtc, keys) = keys::build(configuration.set_ice_lite(true));
        let mut change = rtc.sdp_api();
        let mids = [MediaKind::Video, MediaKind::Audio].map(|kind| {
            change.add_media(kind, Direction::SendOnly, Some("card".into()), None, None)
        });
        let (offer, pending) = change.apply().unwrap();
        // After the offer is written: the candidates are sent in an array of their own.
        rtc.add_local_candidate(Candidate::host(self.address(), "udp").unwrap());
        self.offered = Some((rtc, pending, mids, keys));
        offer.to_sdp_string()
    }

    fn candidates(&self) -> Vec<String> {
        let SocketAddr::V4(address) = self.address() else { return Vec::new() };
        // In OvenMediaEngine's format.
        vec![format!(
            "candidate:0 1 UDP 50 {} {} typ host generation 0",
            address.ip(),
            address.port()
        )]
    }

    fn answer(&mut self, sdp: &str) {
        let Some((mut rtc, pending, mids, keys)) = self.offered.take() else { return };
        rtc.sdp_api().accept_answer(pending, SdpAnswer::from_sdp_string(sdp).unwrap()).unwrap();
        let (trickled, candidates) = channel();
        self.trickled = Some(trickled);
        let mouth = match self.manner.sends_from {
            Some(ip) => UdpSocket::bind((ip, self.address().port())).unwrap(),
            None => self.socket.try_clone().unwrap(),
        };
        let show = Show {
            rtc,
            mids,
            candidates,
            keys,
            reporter: None,
            ready_at: Instant::now() + self.manner.ready_after,
            to: None,
            played: [0; 2],
            socket: self.socket.try_clone().unwrap(),
            mouth,
            manner: self.manner.clone(),
            gone: self.gone.clone(),
            heard_elsewhere: self.heard_elsewhere.clone(),
        };
        std::thread::spawn(move || show.run());
    }

    fn candidate(&mut self, candidate: &str) {
        if let Some(trickled) = &self.trickled {
            let _ = trickled.send(candidate.to_owned());
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
    }
}

/// The thread of one sender.
struct Show {
    rtc: Rtc,
    mids: [Mid; 2],
    candidates: Receiver<String>,
    keys: Slot,
    /// The destination of reports in media time, and the keys for them.
    reporter: Option<(Sealer, SocketAddr)>,
    ready_at: Instant,
    /// The destination of the last datagram.
    to: Option<SocketAddr>,
    /// Frames played of each stream.
    played: [u32; 2],
    socket: UdpSocket,
    /// The socket that it sends with.
    mouth: UdpSocket,
    manner: Manner,
    gone: Arc<AtomicBool>,
    heard_elsewhere: Arc<AtomicU64>,
}

impl Show {
    fn run(mut self) {
        let clips = clips();
        let mut next = [0_u32; 2];
        let (mut began_at, mut report_at) = (None, Duration::ZERO);
        let mut buffer = vec![0; 2_000];
        while !self.gone.load(Ordering::Relaxed) && self.rtc.is_alive() {
            while let Ok(candidate) = self.candidates.try_recv() {
                self.rtc.add_remote_candidate(Candidate::from_sdp_string(&candidate).unwrap());
            }
            let wake_at = self.drain(&mut began_at);
            let mut wake_at = wake_at.min(Instant::now() + Duration::from_millis(5));
            if let Some(began_at) = began_at {
                for ((clip, next), mid) in clips.iter().zip(&mut next).zip(self.mids) {
                    let due = began_at + Duration::from_secs(1) * *next / clip.rate;
                    if due <= Instant::now() {
                        self.play(mid, clip, *next);
                        *next += 1;
                        wake_at = Instant::now();
                    } else {
                        wake_at = wake_at.min(due);
                    }
                }
            }
            self.played = next;
            let playing =
                began_at.map(|began_at: Instant| began_at.elapsed()).filter(|at| *at >= report_at);
            if let Some(played) = playing.filter(|_| self.manner.reports_media_time) {
                report_at = played + REPORT_EVERY;
                self.report(&clips);
            }
            self.receive(wake_at, &mut buffer);
        }
    }

    /// Sends a report of each stream, with the media time so far and the ticks of its clock.
    fn report(&mut self, clips: &[Clip; 2]) {
        let keys = self.keys.lock().unwrap().take();
        if let (None, Some(keys), Some(to)) = (&self.reporter, keys, self.to) {
            self.reporter = Some((keys.sealer().unwrap(), to));
        }
        for ((clip, number), mid) in clips.iter().zip(self.played).zip(self.mids) {
            let mut api = self.rtc.direct_api();
            let Some(ssrc) = api.stream_tx_by_mid(mid, None).map(|stream| *stream.ssrc()) else {
                continue;
            };
            let Some((sealer, to)) = &mut self.reporter else { return };
            // The upper half of an NTP time is seconds: this time is in the first minutes of 1900.
            let ntp = NtpTime((u64::from(number) << 32) / u64::from(clip.rate));
            let rtp_timestamp = number * (clip.clock_hz / clip.rate);
            let info =
                SenderInfo { ssrc, ntp, rtp_timestamp, packet_count: number, octet_count: number };
            let mut packet = Vec::new();
            let _ = RtcpWriter::compound(&mut packet, Report::Sender(&info), &[], "conformance");
            sealer.seal_rtcp(&mut packet).unwrap();
            let _ = self.mouth.send_to(&packet, *to);
        }
    }

    fn drain(&mut self, began_at: &mut Option<Instant>) -> Instant {
        loop {
            match self.rtc.poll_output().unwrap() {
                Output::Timeout(at) => return at,
                // Its own reports replace these.
                Output::Transmit(transmit)
                    if self.manner.reports_media_time
                        && classify(&transmit.contents) == PacketKind::Rtcp => {}
                Output::Transmit(transmit) => {
                    self.to = Some(transmit.destination);
                    let _ = self.mouth.send_to(&transmit.contents, transmit.destination);
                }
                Output::Event(Event::Connected) => *began_at = Some(Instant::now()),
                Output::Event(_) => {}
            }
        }
    }

    fn play(&mut self, mid: Mid, clip: &Clip, number: u32) {
        let codec = if clip.rate == FPS { Codec::H264 } else { Codec::Opus };
        let writer = self.rtc.writer(mid).unwrap();
        let payload_type = writer.payload_params().find(|p| p.spec().codec == codec).unwrap().pt();
        let frequency = Frequency::new(clip.clock_hz).unwrap();
        let time =
            MediaTime::new(u64::from(number) * u64::from(clip.clock_hz / clip.rate), frequency);
        let frame = clip.frames[number as usize % clip.frames.len()].clone();
        writer.write(payload_type, Instant::now(), time, frame).unwrap();
    }

    fn receive(&mut self, until: Instant, buffer: &mut [u8]) {
        let wait = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.socket.set_read_timeout(Some(wait)).unwrap();
        if let Ok((len, source)) = self.socket.recv_from(buffer) {
            if self.manner.listens_to.as_ref().is_some_and(|ports| !ports.contains(&source.port()))
            {
                self.heard_elsewhere.fetch_add(1, Ordering::Relaxed);
            } else if Instant::now() >= self.ready_at {
                let local = self.socket.local_addr().unwrap();
                if let Ok(received) = Receive::new(Protocol::Udp, source, local, &buffer[..len]) {
                    self.rtc.handle_input(Input::Receive(Instant::now(), received)).unwrap();
                    return;
                }
            }
        }
        self.rtc.handle_input(Input::Timeout(Instant::now())).unwrap();
    }
}
