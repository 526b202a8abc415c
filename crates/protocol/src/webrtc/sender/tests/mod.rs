//! A sender against throng's own receiver: no sockets, simulated time.

use super::*;
use throng_media::source::{Clip, Format, read};
use throng_observation::{Codec, Observation, TrackInterval};

use crate::webrtc::receiver::{Receiver, ReceiverOptions};
use crate::webrtc::sdp::Description;
use crate::webrtc::session::Negotiated;
use crate::webrtc::srtp::Profile;

mod numbers;
mod rates;
mod timing;

const SOUND: u32 = 1_000;
const PICTURE: u32 = 2_000;

const SDP: &str = "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=rtpmap:111 opus/48000/2\r\n\
    a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid\r\na=extmap:2 urn:ietf:params:rtp-hdrext:ssrc-audio-level\r\n\
    a=extmap:3 http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time\r\n\
    a=extmap:4 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\na=sendonly\r\n\
    m=video 9 UDP/TLS/RTP/SAVPF 96 97\r\na=mid:1\r\na=rtpmap:96 VP8/90000\r\na=rtcp-fb:96 nack\r\n\
    a=rtcp-fb:96 nack pli\r\na=rtcp-fb:96 ccm fir\r\na=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\n\
    a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid\r\n\
    a=extmap:3 http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time\r\n\
    a=extmap:4 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\na=sendonly\r\n";

/// A second of VP8 at 30 frames a second, `bytes` each; every tenth is a key frame.
fn picture(bytes: usize) -> Arc<Clip> {
    let mut file =
        b"DKIF\0\0\x20\0VP80\x80\x02\x68\x01\x1e\0\0\0\x01\0\0\0\x1e\0\0\0\0\0\0\0".to_vec();
    for pts in 0..30_u64 {
        file.extend((bytes as u32).to_le_bytes());
        file.extend(pts.to_le_bytes());
        file.push(if pts % 10 == 0 { 0x10 } else { 0x11 });
        file.resize(file.len() + bytes - 1, 7);
    }
    let clip = read(&file, &Format::default()).unwrap();
    assert_eq!((clip.codec(), clip.frame_count()), (Codec::Vp8, 30));
    Arc::new(clip)
}

fn plan(kind: MediaKind) -> SendPlan {
    let (section, payload_type, ssrc, repeats) = match kind {
        MediaKind::Audio => (0, 111, SOUND, None),
        MediaKind::Video => (1, 96, PICTURE, Some((97, PICTURE + 1))),
    };
    let description = Description::parse(SDP);
    let section = &description.sections[section];
    let (mid, extension_ids) = (section.mid.clone(), section.extension_ids());
    SendPlan { mid, rid: None, kind, payload_type, ssrc, repeats, extension_ids }
}

fn track(kind: MediaKind, ladder: impl Into<Ladder>) -> SentTrack {
    SentTrack { plan: plan(kind), ladder: ladder.into(), offset: Duration::ZERO }
}

fn keys(client: bool) -> SessionKeys {
    let profile = Profile::AeadAes128Gcm;
    SessionKeys::new(profile, &vec![7; profile.keying_material_len()], client).unwrap()
}

struct Fixture {
    now: Instant,
    sender: Sender,
    receiver: Receiver,
    /// Times and lengths of all datagrams, and whether they are RTCP.
    sent: Vec<(Instant, usize)>,
    intervals: Vec<TrackInterval>,
}

impl Fixture {
    fn new(ladder: &[Arc<Clip>]) -> Self {
        let now = Instant::now();
        let clock = WallClock { at: now, unix_ns: 1_700_000_000_000_000_000 };
        let description = Description::parse(SDP);
        let options = SenderOptions { clock, seed: 5, reduced_size_rtcp: false, adapts: true };
        let tracks = vec![track(MediaKind::Video, Ladder::new(ladder.to_vec()).unwrap())];
        let sender = Sender::new(&keys(true), tracks, options, now).unwrap();
        let negotiated = Negotiated {
            answer: description.clone(),
            remote: description,
            ..Negotiated::default()
        };
        let options = ReceiverOptions {
            clock,
            joined_at: now,
            first_track: 0,
            seed: 9,
            is_tapped: false,
            is_told: false,
        };
        let receiver = Receiver::new(&keys(false), &negotiated, options, now).unwrap();
        Self { now, sender, receiver, sent: Vec::new(), intervals: Vec::new() }
    }

    /// The same fixture with another sender.
    fn sending(mut self, tracks: Vec<SentTrack>) -> Self {
        self.sender =
            Sender::new(&keys(true), tracks, self.sender.options.clone(), self.now).unwrap();
        self
    }

    /// Advances time by `ms`; `arrives` decides for each media datagram.
    fn run(&mut self, ms: u64, mut arrives: impl FnMut(usize) -> bool) {
        for _ in 0..ms {
            self.now += Duration::from_millis(1);
            self.sender.timeout(self.now);
            while let Some(mut packet) = self.sender.poll_packet(self.now) {
                self.sent.push((self.now, packet.len()));
                let is_control = (192..=223).contains(&packet[1]);
                if is_control {
                    assert!(self.receiver.rtcp(self.now, &mut packet));
                } else if arrives(self.sent.len()) {
                    assert!(self.receiver.rtp(self.now, 28, &mut packet));
                }
            }
            self.receiver.timeout(self.now);
            while let Some(mut feedback) = self.receiver.poll_feedback(self.now) {
                assert!(self.sender.rtcp(self.now, &mut feedback));
            }
            for observed in self.receiver.take_observed() {
                if let Observation::Interval(interval) = observed {
                    self.intervals.push(*interval);
                }
            }
        }
    }

    fn received(&self) -> throng_observation::TrackCounters {
        self.intervals.iter().fold(Default::default(), |mut sum, interval| {
            sum += interval.counters;
            sum
        })
    }
}

#[test]
fn what_is_sent_is_received_whole_and_in_time() {
    let mut fixture = Fixture::new(&[picture(4_000)]);
    fixture.run(5_100, |_| true);
    let received = fixture.received();
    // One at the start, and thirty a second.
    assert_eq!((received.packets_lost, received.frames_decodable), (0, 151));
    let [interval] = fixture.sender.take_intervals(0, fixture.now).try_into().unwrap();
    // Four packets a frame; the last frame may still be in flight.
    let of_frames = 4 * interval.counters.frames_sent;
    assert!((of_frames - 4..=of_frames).contains(&interval.counters.packets_sent), "{interval:?}");
    assert!(interval.round_trip_s.is_some_and(|rtt| rtt < 0.01), "{interval:?}");
    assert_eq!(interval.remote_loss_ratio, Some(0.0));
}

#[test]
fn lost_packets_come_again_on_the_stream_for_repeats() {
    let mut fixture = Fixture::new(&[picture(4_000)]);
    fixture.run(6_000, |number| number % 20 != 0);
    let (received, sent) = (fixture.received(), fixture.sender.streams[0].counters);
    assert!(sent.nack_received > 10 && sent.retransmitted_packets > 20, "{sent:?}");
    assert!(received.packets_recovered > 20, "{received:?}");
    let residual = received.packets_lost as f64 / received.packets_original as f64;
    assert!(residual < 0.01, "{received:?}");
}

#[test]
fn packets_come_again_of_a_frame_that_is_still_under_way() {
    let mut fixture = Fixture::new(&[picture(100_000)]);
    fixture.now += Duration::from_millis(1);
    fixture.sender.timeout(fixture.now);
    let mut sent = Vec::new();
    while let Some(packet) = fixture.sender.poll_packet(fixture.now) {
        if packet[1] & 0x7f == 96 {
            sent.push(u16::from_be_bytes([packet[2], packet[3]]));
        }
    }
    let stream = &mut fixture.sender.streams[0];
    let packets = stream.waiting_packets();
    assert!((1..packets).contains(&sent.len()), "{} of {packets} are gone", sent.len());
    // The first packet, the last one sent, and the next one, which is not sent.
    let (first, last) = (sent[0], sent[sent.len() - 1]);
    stream.nacked(fixture.now, [first, last, last.wrapping_add(1)].into_iter());
    fixture.now += Duration::from_millis(100);
    let mut repeated = Vec::new();
    while let Some(packet) = fixture.sender.poll_packet(fixture.now) {
        if packet[1] & 0x7f == 97 {
            repeated.push(packet.len());
        }
    }
    assert_eq!(repeated.len(), 2, "{:?}", fixture.sender.streams[0].counters);
    assert_eq!(fixture.sender.streams[0].counters.retransmitted_packets, 2);
}

#[test]
fn a_key_frame_comes_when_the_picture_broke_and_no_faster_than_allowed() {
    let mut fixture = Fixture::new(&[picture(2_000)]);
    fixture.run(1_000, |_| true);
    let keys = |fixture: &Fixture| fixture.sender.streams[0].counters.key_frames_sent;
    let before = keys(&fixture);
    for step in 0..100 {
        let now = fixture.now + Duration::from_millis(step * 10);
        fixture.sender.streams[0].key_frame_requested(now);
        fixture.sender.timeout(now);
    }
    let asked = keys(&fixture) - before;
    assert!((3..=5).contains(&asked), "{asked} in a second");
}

#[test]
fn large_frames_are_spread_and_sound_is_not_behind_them() {
    let speech = throng_media::card::speech().unwrap();
    let tracks = vec![track(MediaKind::Audio, speech), track(MediaKind::Video, picture(100_000))];
    let mut fixture = Fixture::new(&[picture(1_000)]).sending(tracks);
    let (mut bursts, mut sound) = (Vec::new(), Vec::new());
    for ms in 0..1_000_u64 {
        fixture.now += Duration::from_millis(1);
        fixture.sender.timeout(fixture.now);
        let mut burst = 0;
        while let Some(packet) = fixture.sender.poll_packet(fixture.now) {
            match packet[1] & 0x7f {
                96 => burst += packet.len(),
                111 => sound.push(ms),
                _ => {}
            }
        }
        bursts.extend((burst > 0).then_some(burst));
    }
    // A socket buffer's worth, plus the packet that exceeds it: each frame is larger than that.
    assert!(bursts.iter().all(|bytes| *bytes < 64_300) && bursts.len() >= 58, "{bursts:?}");
    assert!(
        sound.len() >= 49 && sound.windows(2).skip(1).all(|pair| pair[1] - pair[0] == 20),
        "{sound:?}"
    );
}

#[test]
fn silence_is_rare_packets_and_mute_is_none() {
    let clip = throng_media::card::speech().unwrap();
    let tracks = vec![track(MediaKind::Audio, clip)];
    let mut fixture = Fixture::new(&[picture(1_000)]).sending(tracks);
    let packets = |fixture: &Fixture| fixture.sender.streams[0].counters.packets_sent;
    fixture.run(1_000, |_| true);
    assert!((49..=51).contains(&packets(&fixture)), "{}", packets(&fixture));
    fixture.sender.set_talking(false);
    let before = packets(&fixture);
    fixture.run(2_000, |_| true);
    assert!((4..=6).contains(&(packets(&fixture) - before)), "{}", packets(&fixture) - before);
    fixture.sender.set_muted(MediaKind::Audio, true);
    let before = packets(&fixture);
    fixture.run(2_000, |_| true);
    assert_eq!(packets(&fixture), before);
    assert_eq!(fixture.received().packets_lost, 0, "silence is no loss");
}

#[test]
fn a_sender_that_was_not_served_paused_and_one_that_was_mute_did_not() {
    let mut fixture = Fixture::new(&[picture(1_000)]);
    let pause_ms = |fixture: &mut Fixture| {
        let intervals = fixture.sender.take_intervals(0, fixture.now);
        intervals.iter().map(|interval| interval.pause_us_max / 1_000).max()
    };
    fixture.run(1_000, |_| true);
    let even = pause_ms(&mut fixture);
    assert!(even.is_some_and(|ms| (33..=40).contains(&ms)), "a frame every 33 ms: {even:?}");
    // Its thread was late.
    fixture.now += Duration::from_millis(300);
    fixture.run(200, |_| true);
    let late = pause_ms(&mut fixture);
    assert!(late.is_some_and(|ms| (300..=340).contains(&ms)), "{late:?}");
    fixture.sender.set_muted(MediaKind::Video, true);
    fixture.run(1_000, |_| true);
    fixture.sender.set_muted(MediaKind::Video, false);
    fixture.run(500, |_| true);
    let muted = pause_ms(&mut fixture);
    assert!(muted.is_some_and(|ms| ms <= 70), "{muted:?}");
}
