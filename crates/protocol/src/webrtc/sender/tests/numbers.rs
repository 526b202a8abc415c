//! Transport-wide sequence numbers.

use super::*;
use throng_media::rtp::{Extension, RtpHeader};

/// A sender of audio and video, after `change` of the plan of each.
fn fixture(change: impl Fn(&mut SendPlan)) -> Fixture {
    let speech = throng_media::card::speech().unwrap();
    let mut tracks = vec![track(MediaKind::Audio, speech), track(MediaKind::Video, picture(4_000))];
    tracks.iter_mut().for_each(|track| change(&mut track.plan));
    Fixture::new(&[picture(4_000)]).sending(tracks)
}

impl Fixture {
    /// Advances time by `ms`; returns the media that is sent meanwhile.
    fn media(&mut self, ms: u64) -> Vec<Vec<u8>> {
        let mut media = Vec::new();
        for _ in 0..ms {
            self.now += Duration::from_millis(1);
            self.sender.timeout(self.now);
            let sent = std::iter::from_fn(|| self.sender.poll_packet(self.now));
            media.extend(sent.filter(|packet| !(192..=223).contains(&packet[1])));
        }
        media
    }

    /// The receiver misses all packets of `sent`.
    fn missed(&mut self, sent: &[Vec<u8>]) {
        for stream in &mut self.sender.streams {
            let own = sent.iter().map(|packet| RtpHeader::parse(packet).unwrap());
            let own = own.filter(|header| header.ssrc == stream.plan.ssrc);
            let sequences: Vec<u16> = own.map(|header| header.sequence).collect();
            stream.nacked(self.now, sequences.into_iter());
        }
    }
}

/// The SSRC of a packet, and its transport-wide sequence number.
fn number(packet: &[u8]) -> (u32, Option<u16>) {
    let header = RtpHeader::parse(packet).unwrap();
    let ids = Description::parse(SDP).extension_ids();
    (header.ssrc, ids.read(&header, packet).transport_sequence)
}

/// Whether the numbers are 1, 2 and so on.
fn are_consecutive(packets: &[Vec<u8>]) -> bool {
    packets.iter().zip(1..).all(|(packet, at)| number(packet).1 == Some(at))
}

#[test]
fn sound_and_pictures_are_numbered_together_as_they_leave() {
    let sent = fixture(|_| ()).media(500);
    let of = |ssrc| sent.iter().filter(|packet| number(packet).0 == ssrc).count();
    assert!(of(SOUND) >= 24 && of(PICTURE) >= 56, "{} and {}", of(SOUND), of(PICTURE));
    assert!(are_consecutive(&sent));
}

#[test]
fn a_section_without_the_extension_has_no_numbers() {
    for (kind, ssrc) in [(MediaKind::Audio, SOUND), (MediaKind::Video, PICTURE)] {
        let sent = fixture(|plan| {
            plan.repeats = None;
            if plan.kind == kind {
                plan.extension_ids.set(Extension::TransportSequence, 0);
            }
        })
        .media(500);
        let (without, with): (Vec<_>, Vec<_>) =
            sent.into_iter().partition(|packet| number(packet).0 == ssrc);
        assert!(!without.is_empty() && without.iter().all(|packet| number(packet).1.is_none()));
        assert!(!with.is_empty() && are_consecutive(&with), "{kind:?}");
    }
}

#[test]
fn a_packet_that_is_repeated_unchanged_is_the_same_to_the_bit() {
    let mut fixture = fixture(|plan| plan.repeats = None);
    let mut first_time = Vec::new();
    // Longer than packets are kept for.
    for round in 0..4 {
        let sent = fixture.media(500);
        fixture.missed(&sent);
        let after = fixture.media(500);
        let (repeats, new): (Vec<_>, Vec<_>) =
            after.into_iter().partition(|packet| sent.contains(packet));
        assert_eq!(repeats.len(), sent.len(), "round {round}");
        first_time.extend(sent.into_iter().chain(new));
    }
    assert!(are_consecutive(&first_time), "a repeat takes no new number");
}

#[test]
fn a_repeat_on_its_own_stream_has_a_new_number() {
    let mut fixture = fixture(|_| ());
    let mut sent = fixture.media(200);
    let pictures: Vec<_> =
        sent.iter().filter(|packet| number(packet).0 == PICTURE).cloned().collect();
    fixture.missed(&pictures);
    sent.extend(fixture.media(200));
    let repeats = sent.iter().filter(|packet| number(packet).0 == PICTURE + 1).count();
    assert_eq!(repeats, pictures.len());
    assert!(are_consecutive(&sent));
}

#[test]
fn a_repeat_that_keeps_its_number_counts_as_a_loss() {
    let mut fixture = fixture(|plan| plan.repeats = None);
    let sent = fixture.media(500);
    fixture.missed(&sent);
    let _ = fixture.media(1_000);
    let loss =
        fixture.sender.estimate.as_mut().and_then(|estimate| estimate.take_loss(fixture.now));
    assert_eq!(loss, Some(1.0));
}
