//! A small HTTP client and a WebRTC viewer on str0m, whose own SRTP, NACK and reports judge the
//! stage's.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use str0m::change::{SdpAnswer, SdpPendingOffer};
use str0m::media::{Direction, MediaKind, Mid};
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, Input, Output, Rtc, RtcConfig};

pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) fn http(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Reply {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The stage may refuse before it has read all.
    let _ = stream.write_all(body.as_bytes());
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8(text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(key, value)| (key.to_ascii_lowercase(), value.to_owned()))
        .collect();
    Reply { status, headers, body: body.to_owned() }
}

fn rtc_with_offer(local: SocketAddr) -> (Rtc, String, SdpPendingOffer, Mid, Mid) {
    let mut rtc = RtcConfig::new()
        .clear_codecs()
        .enable_h264(true)
        .enable_opus(true, false)
        .set_rtp_mode(true)
        .build(Instant::now());
    rtc.add_local_candidate(Candidate::host(local, "udp").unwrap());
    let mut changes = rtc.sdp_api();
    let video = changes.add_media(MediaKind::Video, Direction::RecvOnly, None, None, None);
    let audio = changes.add_media(MediaKind::Audio, Direction::RecvOnly, None, None, None);
    let (offer, pending) = changes.apply().unwrap();
    (rtc, offer.to_sdp_string(), pending, video, audio)
}

/// An offer without a client behind it.
pub(crate) fn offer() -> String {
    rtc_with_offer("127.0.0.1:40000".parse().unwrap()).1
}

/// A publisher's offer of sound and a picture of that codec, without a client behind it.
pub(crate) fn publishers_offer(codec: &str) -> String {
    let mut rtc = RtcConfig::new()
        .clear_codecs()
        .enable_h264(codec == "H264")
        .enable_vp8(codec == "VP8")
        .enable_opus(true, false)
        .build(Instant::now());
    rtc.add_local_candidate(Candidate::host("127.0.0.1:40000".parse().unwrap(), "udp").unwrap());
    let mut changes = rtc.sdp_api();
    changes.add_media(MediaKind::Video, Direction::SendOnly, None, None, None);
    changes.add_media(MediaKind::Audio, Direction::SendOnly, None, None, None);
    changes.apply().unwrap().0.to_sdp_string()
}

/// What a viewer saw.
#[derive(Debug, Default)]
pub(crate) struct ReceivedMedia {
    pub(crate) video_packets: usize,
    pub(crate) audio_packets: usize,
    pub(crate) first_is_key: bool,
    pub(crate) repaired: bool,
    pub(crate) gaps: usize,
    pub(crate) sender_reports: usize,
    video_sequences: BTreeSet<u64>,
}

pub(crate) struct Viewer {
    rtc: Rtc,
    socket: UdpSocket,
    stage: SocketAddr,
    session: String,
    video: Mid,
    seen: ReceivedMedia,
    /// RTP datagrams of video still to pass until one is lost.
    lose_in: Option<usize>,
    lost: Option<u16>,
    video_ssrc: Option<u32>,
}

impl Viewer {
    pub(crate) fn join(stage: SocketAddr, path: &str) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (mut rtc, offer, pending, video, _) = rtc_with_offer(socket.local_addr().unwrap());
        let reply = http(stage, "POST", path, "Content-Type: application/sdp\r\n", &offer);
        assert_eq!(reply.status, 201, "{}", reply.body);
        let answer = SdpAnswer::from_sdp_string(&reply.body).unwrap();
        rtc.sdp_api().accept_answer(pending, answer).unwrap();
        let session = reply.header("location").unwrap().to_owned();
        let seen = ReceivedMedia::default();
        Self {
            rtc,
            socket,
            stage,
            session,
            video,
            seen,
            lose_in: None,
            lost: None,
            video_ssrc: None,
        }
    }

    /// Loses the `number`-th video packet on its way.
    pub(crate) fn lose_video_packet(&mut self, number: usize) {
        self.lose_in = Some(number);
    }

    pub(crate) fn seen(&self) -> &ReceivedMedia {
        &self.seen
    }

    pub(crate) fn leave(self) {
        assert_eq!(http(self.stage, "DELETE", &self.session, "", "").status, 200);
    }

    /// Runs the session until `enough`, at most for 15 s.
    pub(crate) fn watch_until(&mut self, what: &str, enough: impl Fn(&ReceivedMedia) -> bool) {
        let begun = Instant::now();
        let mut buffer = [0; 2_048];
        while !enough(&self.seen) {
            assert!(begun.elapsed() < Duration::from_secs(15), "{what}: {:?}", self.seen);
            let deadline = self.drain();
            let wait =
                deadline.saturating_duration_since(Instant::now()).min(Duration::from_millis(20));
            self.socket.set_read_timeout(Some(wait.max(Duration::from_millis(1)))).unwrap();
            let input = match self.socket.recv_from(&mut buffer) {
                Ok((len, source)) => {
                    let datagram = &buffer[..len];
                    if self.is_to_be_lost(datagram) {
                        continue;
                    }
                    let local = self.socket.local_addr().unwrap();
                    let Ok(receive) = Receive::new(Protocol::Udp, source, local, datagram) else {
                        continue;
                    };
                    Input::Receive(Instant::now(), receive)
                }
                Err(_) => Input::Timeout(Instant::now()),
            };
            self.rtc.handle_input(input).unwrap();
        }
        let sequences = &self.seen.video_sequences;
        let span = sequences.last().unwrap_or(&0) - sequences.first().unwrap_or(&0) + 1;
        self.seen.gaps = (span as usize).saturating_sub(sequences.len());
    }

    fn is_to_be_lost(&mut self, datagram: &[u8]) -> bool {
        let &[first, _, s0, s1, _, _, _, _, r0, r1, r2, r3, ..] = datagram else { return false };
        let is_video = self.video_ssrc == Some(u32::from_be_bytes([r0, r1, r2, r3]));
        if first >> 6 != 2 || !is_video {
            return false;
        }
        match &mut self.lose_in {
            Some(0) => {
                self.lose_in = None;
                self.lost = Some(u16::from_be_bytes([s0, s1]));
                true
            }
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        }
    }

    fn drain(&mut self) -> Instant {
        loop {
            match self.rtc.poll_output().unwrap() {
                Output::Timeout(deadline) => return deadline,
                Output::Transmit(transmit) => {
                    self.socket.send_to(&transmit.contents, transmit.destination).unwrap();
                }
                Output::Event(Event::RtpPacket(packet)) => {
                    let mid = self
                        .rtc
                        .direct_api()
                        .stream_rx(&packet.header.ssrc)
                        .map(|stream| stream.mid());
                    if packet.last_sender_info.is_some() {
                        self.seen.sender_reports += 1;
                    }
                    if mid != Some(self.video) {
                        self.seen.audio_packets += 1;
                        continue;
                    }
                    self.video_ssrc = Some(*packet.header.ssrc);
                    if self.seen.video_packets == 0 {
                        // A STAP-A that begins with the sequence parameter set.
                        self.seen.first_is_key =
                            packet.payload[0] & 0x1f == 24 && packet.payload[3] & 0x1f == 7;
                    }
                    self.seen.video_packets += 1;
                    let index: u64 = *packet.seq_no;
                    self.seen.repaired |= self.lost == Some(index as u16);
                    self.seen.video_sequences.insert(index);
                }
                Output::Event(_) => {}
            }
        }
    }
}
