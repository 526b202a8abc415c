//! Expected media of a receiver, with packets and signalling that a test chooses.

use std::collections::BTreeMap;
use std::time::Duration;

use throng_media::quality::WallClock;
use throng_media::rtp::{Extensions, HeaderFields, write_header};
use throng_observation::{Codec, Layer};

use super::*;
use crate::webrtc::receiver::ReceiverOptions;
use crate::webrtc::sdp::Description;
use crate::webrtc::session::Negotiated;
use crate::webrtc::srtp::{Profile, RTP_GROWTH_MAX, Sealer, SessionKeys};

const SDP: &str = "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:a\r\na=rtpmap:111 opus/48000/2\r\na=sendonly\r\n\
    m=video 9 UDP/TLS/RTP/SAVPF 96 98\r\na=mid:v\r\na=rtpmap:96 VP8/90000\r\na=rtpmap:98 H264/90000\r\na=sendonly\r\n";

const OPUS: (u8, u32) = (111, 7);
const VP8: (u8, u32) = (96, 8);
const H264: (u8, u32) = (98, 9);

struct Stand {
    now: Instant,
    receiver: Receiver,
    sealer: Sealer,
    /// Packets sent, by source.
    sent: BTreeMap<u32, u64>,
    opened: Vec<(MediaKind, Codec)>,
    intervals: Vec<TrackInterval>,
}

impl Stand {
    fn new(sdp: &str, is_told: bool) -> Self {
        let now = Instant::now() + Duration::from_secs(1);
        let keys = |client| {
            let profile = Profile::AeadAes128Gcm;
            SessionKeys::new(profile, &vec![7; profile.keying_material_len()], client).unwrap()
        };
        let clock = WallClock { at: now, unix_ns: 1_700_000_000_000_000_000 };
        let options =
            ReceiverOptions { clock, joined_at: now, first_track: 0, seed: 1, is_tapped: false, is_told };
        let receiver = Receiver::new(&keys(true), &agreed(sdp), options, now).unwrap();
        let sealer = keys(false).sealer().unwrap();
        Self { now, receiver, sealer, sent: BTreeMap::new(), opened: Vec::new(), intervals: Vec::new() }
    }

    /// Advances time by `ms` milliseconds; each of these streams has a packet per given number of milliseconds.
    fn run(&mut self, ms: u64, streams: &[((u8, u32), u64)]) {
        for at in 0..ms {
            self.now += Duration::from_millis(1);
            for (stream, _) in streams.iter().filter(|(_, every)| at % every == 0) {
                self.send(*stream);
            }
            self.receiver.timeout(self.now);
            self.look();
        }
    }

    fn send(&mut self, (payload_type, ssrc): (u8, u32)) {
        let index = self.sent.entry(ssrc).or_default();
        *index += 1;
        let (index, timestamp) = (*index, *index as u32 * 3_000);
        let fields = HeaderFields { payload_type, marker: true, sequence: index as u16, timestamp, ssrc };
        let mut packet = Vec::new();
        let header_len = write_header(&mut packet, &fields, &Default::default(), &Extensions::default());
        packet.extend([0x10, 0, 0, 0, 0x9d, 0x01, 0x2a, 64, 0, 64, 0]);
        let plain_len = packet.len();
        packet.resize(plain_len + RTP_GROWTH_MAX, 0);
        let len = self.sealer.seal_rtp(&mut packet, plain_len, header_len, ssrc, index).unwrap();
        packet.truncate(len);
        assert!(self.receiver.rtp(self.now, 28, &mut packet));
    }

    fn look(&mut self) {
        for observed in self.receiver.take_observed() {
            match observed {
                Observation::Interval(interval) => self.intervals.push(*interval),
                Observation::TrackOpened { kind, codec, .. } => self.opened.push((kind, codec)),
                _ => {}
            }
        }
    }

    /// The kinds without media in the intervals since the last call, and for how many seconds it had been
    /// expected.
    fn missing(&mut self) -> Vec<(MediaKind, u64)> {
        let reported = std::mem::take(&mut self.intervals);
        let missing = |interval: &TrackInterval| {
            Some((interval.kind, interval.ended_at.duration_since(interval.missing_since?).as_secs()))
        };
        reported.iter().filter_map(missing).collect()
    }
}

fn agreed(sdp: &str) -> Negotiated {
    let description = Description::parse(sdp);
    Negotiated { answer: description.clone(), remote: description, ..Negotiated::default() }
}

fn stream(mid: &str, from: Option<&str>, is_muted: bool) -> RoomStream {
    let kind = if mid == "a" { MediaKind::Audio } else { MediaKind::Video };
    let from = from.map(str::to_owned);
    RoomStream { mid: mid.into(), from, is_muted, kind, layers: Vec::new(), tells_layers: false }
}

#[test]
fn what_was_agreed_on_and_never_comes_is_missing_from_the_first_second() {
    let mut stand = Stand::new(SDP, false);
    stand.run(3_100, &[(OPUS, 20)]);
    let video = MediaKind::Video;
    assert_eq!(stand.missing(), [(video, 1), (video, 2), (video, 3)]);
    // It arrives late, in another format than the preferred one: it is still one track.
    stand.run(2_000, &[(OPUS, 20), (H264, 33)]);
    assert_eq!(stand.missing(), []);
    let opened = [(MediaKind::Audio, Codec::Opus), (video, Codec::Vp8), (video, Codec::H264)];
    assert_eq!((stand.opened.as_slice(), stand.receiver.track_count()), (&opened[..], 2));
}

#[test]
fn what_stops_is_missing_and_counts_from_when_it_was_agreed_on() {
    let mut stand = Stand::new(SDP, false);
    stand.run(3_000, &[(OPUS, 20), (VP8, 33)]);
    assert_eq!(stand.missing(), []);
    stand.run(3_000, &[(VP8, 33)]);
    assert_eq!(stand.missing(), [(MediaKind::Audio, 4), (MediaKind::Audio, 5), (MediaKind::Audio, 6)]);
    let active: u64 = stand.intervals.iter().map(|interval| interval.counters.active_us).sum();
    assert_eq!(active, 0, "all was looked at");
}

#[test]
fn silence_between_words_and_a_slow_picture_are_nothing_missing() {
    let mut stand = Stand::new(SDP, false);
    // Opus in DTX; a slide every 1.5 s.
    stand.run(12_000, &[(OPUS, 400), (VP8, 1_500)]);
    let slow = stand.missing();
    assert!(slow.iter().all(|(kind, _)| *kind == MediaKind::Video), "{slow:?}");
    stand.run(9_000, &[(OPUS, 400), (VP8, 1_500)]);
    assert_eq!(stand.missing(), [], "its pace is known");
}

#[test]
fn media_without_a_sender_is_not_expected() {
    for (sdp, what) in [
        (
            SDP.replacen("a=mid:v\r\n", "a=mid:v\r\na=inactive\r\n", 1)
                .replace("H264/90000\r\na=sendonly", "H264/90000"),
            "inactive",
        ),
        (SDP.replace("m=video 9", "m=video 0"), "rejected"),
        (
            SDP.replacen("a=sendonly\r\n", "a=sendonly\r\na=msid:stream sound\r\n", 1),
            "no track, where tracks are named",
        ),
        (SDP.split_inclusive("a=sendonly\r\n").next().unwrap().to_owned(), "no such section"),
    ] {
        let mut stand = Stand::new(&sdp, false);
        stand.run(3_000, &[(OPUS, 20)]);
        assert_eq!(stand.missing(), [], "{what}");
        assert_eq!(stand.opened, [(MediaKind::Audio, Codec::Opus)], "{what}");
    }
    // A later description removes the video.
    let mut stand = Stand::new(SDP, false);
    stand.run(2_000, &[(OPUS, 20), (VP8, 33)]);
    let without = SDP.replace("H264/90000\r\na=sendonly", "H264/90000\r\na=inactive");
    stand.receiver.renegotiated(&agreed(&without), stand.now);
    stand.run(3_000, &[(OPUS, 20)]);
    assert_eq!(stand.missing(), []);
}

#[test]
fn in_a_conference_media_is_expected_of_unmuted_senders() {
    let mut stand = Stand::new(SDP, true);
    stand.run(2_000, &[]);
    assert_eq!(stand.missing(), [], "no participant sends");
    let both = |from, is_muted| [stream("a", Some("anna"), false), stream("v", from, is_muted)];
    let says = |stand: &mut Stand, before: &[RoomStream], streams: &[RoomStream]| {
        stand.receiver.sent_in(streams, before, stand.now);
    };
    says(&mut stand, &[], &both(Some("anna"), false));
    stand.run(2_000, &[(OPUS, 20)]);
    assert_eq!(stand.missing(), [(MediaKind::Video, 1), (MediaKind::Video, 2)]);
    stand.run(3_000, &[(OPUS, 20), (VP8, 33)]);
    assert_eq!(stand.missing(), []);
    // Muted video does not count as frozen.
    says(&mut stand, &both(Some("anna"), false), &both(Some("anna"), true));
    stand.run(4_000, &[(OPUS, 20)]);
    let muted: Vec<_> = stand.intervals.iter().filter(|i| i.kind == MediaKind::Video).collect();
    assert!(muted.iter().all(|interval| interval.counters.freeze_us == 0), "{muted:?}");
    assert_eq!(stand.missing(), []);
    // Unmuted, it is expected again, from that time on.
    says(&mut stand, &both(Some("anna"), true), &both(Some("anna"), false));
    stand.run(1_000, &[(OPUS, 20)]);
    assert_eq!(stand.missing(), [(MediaKind::Video, 1)]);
    // The same holds for another sender.
    says(&mut stand, &both(Some("anna"), false), &both(Some("bert"), false));
    stand.run(1_000, &[(OPUS, 20)]);
    assert_eq!(stand.missing(), [(MediaKind::Video, 1)]);
    says(&mut stand, &both(Some("bert"), false), &both(None, false));
    stand.run(2_000, &[(OPUS, 20)]);
    assert_eq!(stand.missing(), []);
}

#[test]
fn a_picture_that_is_switched_off_is_not_due() {
    let mut stand = Stand::new(SDP, false);
    stand.run(2_000, &[(OPUS, 20), (VP8, 33)]);
    stand.receiver.layer_asked(stand.now, Layer::Off);
    stand.run(3_000, &[(OPUS, 20)]);
    assert_eq!(stand.missing(), []);
    stand.receiver.layer_asked(stand.now, Layer::Low);
    stand.run(2_000, &[(OPUS, 20)]);
    assert_eq!(stand.missing(), [(MediaKind::Video, 1), (MediaKind::Video, 2)]);
}
