//! Expected media of a receiver, with packets and signalling that a test chooses.

use throng_observation::{Codec, Layer};

use super::*;
use crate::webrtc::receiver::fixture::{Fixture, agreed};

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
    let mut fixture = Fixture::new(SDP, false);
    fixture.run(3_100, &[(OPUS, 20)]);
    let video = MediaKind::Video;
    assert_eq!(fixture.missing(), [(video, 1), (video, 2), (video, 3)]);
    // It arrives late, in another format than the preferred one: it is still one track.
    fixture.run(2_000, &[(OPUS, 20), (H264, 33)]);
    assert_eq!(fixture.missing(), []);
    let opened = [(MediaKind::Audio, Codec::Opus), (video, Codec::Vp8), (video, Codec::H264)];
    assert_eq!((fixture.opened.as_slice(), fixture.receiver.track_ids().count()), (&opened[..], 2));
}

/// Whether each of the last intervals without media is of a track that had begun.
fn have_stopped(fixture: &Fixture) -> Vec<bool> {
    let missing = fixture.intervals.iter().filter_map(|interval| interval.missing);
    missing.map(|missing| missing.has_stopped).collect()
}

#[test]
fn what_began_has_stopped_and_what_never_came_is_awaited() {
    let mut fixture = Fixture::new(SDP, false);
    fixture.run(2_100, &[(VP8, 33)]);
    assert_eq!(have_stopped(&fixture), [false, false], "the sound never came");
    fixture.run(1_000, &[(OPUS, 20), (VP8, 33)]);
    fixture.missing();
    fixture.run(2_000, &[(VP8, 33)]);
    assert_eq!(have_stopped(&fixture), [true], "it came and stopped");
}

#[test]
fn what_stops_is_missing_and_counts_from_when_it_was_agreed_on() {
    let mut fixture = Fixture::new(SDP, false);
    fixture.run(3_000, &[(OPUS, 20), (VP8, 33)]);
    assert_eq!(fixture.missing(), []);
    fixture.run(3_000, &[(VP8, 33)]);
    assert_eq!(
        fixture.missing(),
        [(MediaKind::Audio, 4), (MediaKind::Audio, 5), (MediaKind::Audio, 6)]
    );
    let active: u64 = fixture.intervals.iter().map(|interval| interval.counters.active_us).sum();
    assert_eq!(active, 0, "all was looked at");
}

#[test]
fn silence_between_words_and_a_slow_picture_are_nothing_missing() {
    let mut fixture = Fixture::new(SDP, false);
    // Opus in DTX; a slide every 1.5 s.
    fixture.run(12_000, &[(OPUS, 400), (VP8, 1_500)]);
    let slow = fixture.missing();
    assert!(slow.iter().all(|(kind, _)| *kind == MediaKind::Video), "{slow:?}");
    fixture.run(9_000, &[(OPUS, 400), (VP8, 1_500)]);
    assert_eq!(fixture.missing(), [], "its pace is known");
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
        let mut fixture = Fixture::new(&sdp, false);
        fixture.run(3_000, &[(OPUS, 20)]);
        assert_eq!(fixture.missing(), [], "{what}");
        assert_eq!(fixture.opened, [(MediaKind::Audio, Codec::Opus)], "{what}");
    }
    // A later description removes the video.
    let mut fixture = Fixture::new(SDP, false);
    fixture.run(2_000, &[(OPUS, 20), (VP8, 33)]);
    let without = SDP.replace("H264/90000\r\na=sendonly", "H264/90000\r\na=inactive");
    fixture.receiver.renegotiated(&agreed(&without), fixture.now);
    fixture.run(3_000, &[(OPUS, 20)]);
    assert_eq!(fixture.missing(), []);
}

#[test]
fn in_a_conference_media_is_expected_of_unmuted_senders() {
    let mut fixture = Fixture::new(SDP, true);
    fixture.run(2_000, &[]);
    assert_eq!(fixture.missing(), [], "no participant sends");
    let both = |from, is_muted| [stream("a", Some("anna"), false), stream("v", from, is_muted)];
    let says = |fixture: &mut Fixture, before: &[RoomStream], streams: &[RoomStream]| {
        fixture.receiver.sent_in(streams, before, fixture.now);
    };
    says(&mut fixture, &[], &both(Some("anna"), false));
    fixture.run(2_000, &[(OPUS, 20)]);
    assert_eq!(fixture.missing(), [(MediaKind::Video, 1), (MediaKind::Video, 2)]);
    fixture.run(3_000, &[(OPUS, 20), (VP8, 33)]);
    assert_eq!(fixture.missing(), []);
    // Muted video does not count as frozen.
    says(&mut fixture, &both(Some("anna"), false), &both(Some("anna"), true));
    fixture.run(4_000, &[(OPUS, 20)]);
    let muted: Vec<_> = fixture.intervals.iter().filter(|i| i.kind == MediaKind::Video).collect();
    assert!(muted.iter().all(|interval| interval.counters.freeze_us == 0), "{muted:?}");
    assert_eq!(fixture.missing(), []);
    // Unmuted, it is expected again, from that time on.
    says(&mut fixture, &both(Some("anna"), true), &both(Some("anna"), false));
    fixture.run(1_000, &[(OPUS, 20)]);
    assert_eq!(fixture.missing(), [(MediaKind::Video, 1)]);
    // The same holds for another sender.
    says(&mut fixture, &both(Some("anna"), false), &both(Some("bert"), false));
    fixture.run(1_000, &[(OPUS, 20)]);
    assert_eq!(fixture.missing(), [(MediaKind::Video, 1)]);
    says(&mut fixture, &both(Some("bert"), false), &both(None, false));
    fixture.run(2_000, &[(OPUS, 20)]);
    assert_eq!(fixture.missing(), []);
}

#[test]
fn a_picture_that_is_switched_off_is_not_due() {
    let mut fixture = Fixture::new(SDP, false);
    fixture.run(2_000, &[(OPUS, 20), (VP8, 33)]);
    fixture.receiver.layer_asked(fixture.now, Layer::Off);
    fixture.run(3_000, &[(OPUS, 20)]);
    assert_eq!(fixture.missing(), []);
    fixture.receiver.layer_asked(fixture.now, Layer::Low);
    fixture.run(2_000, &[(OPUS, 20)]);
    assert_eq!(fixture.missing(), [(MediaKind::Video, 1), (MediaKind::Video, 2)]);
}
