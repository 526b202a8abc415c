//! Expected media of a receiver, with packets and signalling that a test chooses.

use throng_observation::{Codec, Layer};

use super::*;
use crate::webrtc::receiver::stand::{Stand, agreed};

const SDP: &str = "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:a\r\na=rtpmap:111 opus/48000/2\r\na=sendonly\r\n\
    m=video 9 UDP/TLS/RTP/SAVPF 96 98\r\na=mid:v\r\na=rtpmap:96 VP8/90000\r\na=rtpmap:98 H264/90000\r\na=sendonly\r\n";

const OPUS: (u8, u32) = (111, 7);
const VP8: (u8, u32) = (96, 8);
const H264: (u8, u32) = (98, 9);

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
    assert_eq!(
        stand.missing(),
        [(MediaKind::Audio, 4), (MediaKind::Audio, 5), (MediaKind::Audio, 6)]
    );
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
