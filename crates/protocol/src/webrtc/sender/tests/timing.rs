//! Frame times as servers compute them: within a stream by RTP timestamps, across streams by sender
//! reports.

use std::collections::BTreeMap;

use super::*;
use throng_media::card::{self, Rung};

/// Audio and an H.264 video that begins `offset_ms` into its loop.
fn publisher(rung: Rung, offset_ms: u64) -> (Sender, Instant) {
    let fixture = Fixture::new(&[picture(1_000)]);
    let offset = Duration::from_millis(offset_ms);
    let track = |kind, ladder| SentTrack { plan: plan(kind), ladder, offset };
    let pictures = Ladder::new(card::ladder(rung, Codec::H264).unwrap()).unwrap();
    let sound = card::speech().unwrap().into();
    let tracks = vec![track(MediaKind::Audio, sound), track(MediaKind::Video, pictures)];
    let sender =
        Sender::new(&keys(true), tracks, fixture.sender.options.clone(), fixture.now).unwrap();
    (sender, fixture.now)
}

/// Header fields of a media packet: payload type, marker, timestamp.
fn header(packet: &[u8]) -> (u8, bool, u32) {
    let timestamp = u32::from_be_bytes(packet[4..8].try_into().unwrap());
    (packet[1] & 0x7f, packet[1] & 0x80 != 0, timestamp)
}

#[test]
fn timestamps_never_go_back_over_loops_key_frames_and_changes_of_size() {
    let (mut sender, mut now) = publisher(Rung::P360, 700);
    let (mut last, mut frames) = (None, 0);
    for ms in 1..=25_000_u64 {
        now += Duration::from_millis(1);
        let picture = sender.streams.iter_mut().find(|stream| stream.plan.ssrc == PICTURE).unwrap();
        if ms % 700 == 0 {
            picture.key_frame_requested(now);
        }
        if ms % 3_100 == 0 {
            picture.keep_to(if ms % 6_200 == 0 { 3e6 } else { 100e3 }, now);
        }
        sender.timeout(now);
        while let Some(packet) = sender.poll_packet(now) {
            let (payload_type, _, timestamp) = header(&packet);
            if payload_type != 96 {
                continue;
            }
            let step = last.map_or(1, |last: u32| timestamp.wrapping_sub(last) as i32);
            assert!((0..=90_000 / 10).contains(&step), "{step} ticks at {ms} ms");
            frames += u32::from(step > 0);
            last = Some(timestamp);
        }
    }
    assert!(frames > 15 * 25 && sender.streams[1].counters.key_frames_sent > 40, "{frames}");
}

/// A server's model of a track, OvenMediaEngine's `LipSyncClock`: until reports of both tracks have
/// arrived, tracks are aligned by the arrival of their first frames; after that, by the reports.
#[derive(Default)]
struct Track {
    has_spoken: bool,
    first: Option<(Instant, u32)>,
    /// Wall time and timestamp of the newest report.
    report: Option<(f64, u32)>,
    /// The same of the last frame.
    ready: Option<(f64, u32)>,
}

impl Track {
    /// The time of the first frame, by the sender's wall clock.
    fn began_s(&self, rate: f64) -> Option<f64> {
        let ((_, first), (at_s, timestamp)) = (self.first?, self.ready?);
        Some(at_s - f64::from(timestamp.wrapping_sub(first) as i32) / rate)
    }
}

/// Which reports a server processes.
#[derive(Clone, Copy, PartialEq)]
enum Hears {
    /// All.
    All,
    /// Those of SSRCs whose media has arrived.
    Known,
    /// Those after half a second.
    Late,
}

/// When a server shows each frame of a publisher, seconds, on a link of 1.5 times the publisher's
/// rate.
fn shown_s(rung: Rung, offset_ms: u64, hears: Hears) -> Vec<f64> {
    let (mut sender, began_at) = publisher(rung, offset_ms);
    let opener = keys(false).opener().unwrap();
    let mut tracks: BTreeMap<u8, Track> = BTreeMap::new();
    let bytes_per_s = sender.streams.iter().map(Stream::wanted_bps).sum::<f64>() * 1.5 / 8.0;
    let (mut shown, mut arrives_at) = (Vec::new(), began_at);
    for ms in 1..=4_000 {
        let now = began_at + Duration::from_millis(ms);
        sender.timeout(now);
        while let Some(mut packet) = sender.poll_packet(now) {
            arrives_at =
                arrives_at.max(now) + Duration::from_secs_f64(packet.len() as f64 / bytes_per_s);
            if (192..=223).contains(&packet[1]) {
                let len = opener.open_rtcp(&mut packet).unwrap();
                for part in Compound::new(&packet[..len]).flatten() {
                    let Rtcp::SenderReport(report) = part else { continue };
                    let payload_type = if report.sender.ssrc == SOUND { 111 } else { 96 };
                    let at_s = report.sender.ntp.to_unix_ns() as f64 / 1e9 - 1.7e9;
                    let track = tracks.entry(payload_type).or_default();
                    let is_heard = match hears {
                        Hears::All => true,
                        Hears::Known => track.has_spoken,
                        Hears::Late => ms >= 500,
                    };
                    let heard = is_heard.then_some((at_s, report.sender.rtp_timestamp));
                    track.report = heard.or(track.report);
                }
                continue;
            }
            let (payload_type, marker, timestamp) = header(&packet);
            tracks.entry(payload_type).or_default().has_spoken = true;
            // A frame counts when its last packet has arrived.
            if payload_type == 97 || (payload_type == 96 && !marker) {
                continue;
            }
            let track = tracks.entry(payload_type).or_default();
            let (arrived_at, first) = *track.first.get_or_insert((arrives_at, timestamp));
            track.ready = track.report;
            if payload_type == 111 {
                continue;
            }
            let sound = &tracks[&111];
            let offset_s = match (sound.began_s(48_000.0), tracks[&96].began_s(90_000.0)) {
                (Some(sound_s), Some(picture_s)) => picture_s - sound_s,
                _ => (arrived_at - sound.first.unwrap().0).as_secs_f64(),
            };
            shown.push(f64::from(timestamp.wrapping_sub(first)) / 90_000.0 + offset_s);
        }
    }
    shown
}

#[test]
fn a_server_that_sets_tracks_together_by_their_sender_reports_moves_no_picture_back() {
    let goes_back = |shown: &[f64]| shown.windows(2).any(|pair| pair[1] < pair[0]);
    for (rung, offset_ms) in
        [(Rung::P240, 0), (Rung::P360, 0), (Rung::P360, 1_300), (Rung::P720, 0)]
    {
        let shown = shown_s(rung, offset_ms, Hears::All);
        assert!(
            shown.len() > 50 && !goes_back(&shown),
            "{} from {offset_ms} ms: {shown:?}",
            rung.name()
        );
        // The first frame may arrive before an audio packet that follows a report.
        let shown = shown_s(rung, offset_ms, Hears::Known);
        assert!(!goes_back(&shown[1..]), "{} from {offset_ms} ms, known: {shown:?}", rung.name());
        // If the first reports came half a second later, the first key frame, which takes long to
        // arrive, would have put the video behind its audio until then.
        let shown = shown_s(rung, offset_ms, Hears::Late);
        assert!(goes_back(&shown), "{} from {offset_ms} ms: {shown:?}", rung.name());
    }
    assert!(!goes_back(&shown_s(Rung::P144, 0, Hears::All)));
}
