//! Transport streams that ffmpeg makes: as many frames as it counts itself. Skipped where it is not
//! installed.

use std::process::Command;
use std::time::{Duration, Instant};
use throng_media::codec::PayloadFacts;
use throng_media::quality::{Packet, TrackConfig, TrackMeter, WallClock};
use throng_observation::{Codec, MediaKind, TrackId, TrackInterval};

const SECONDS: u32 = 4;
const FPS: u32 = 30;
const RTP_PAYLOAD: usize = 7 * 188;

/// Four seconds of 30 frames a second, coded in this way, with sound; `None` where ffmpeg cannot.
#[expect(
    clippy::print_stderr,
    reason = "a skipped test must be reported where the test runner shows it"
)]
fn coded(video: &str) -> Option<Vec<u8>> {
    let picture = format!("testsrc2=s=320x180:r={FPS}:d={SECONDS}");
    let sound = format!("sine=d={SECONDS}");
    let inputs = ["-v", "error", "-f", "lavfi", "-i", &picture, "-f", "lavfi", "-i", &sound];
    let made = Command::new("ffmpeg")
        .args(inputs)
        .args(video.split(' '))
        .args(["-c:a", "mp2", "-f", "mpegts", "-"])
        .output();
    let made = made.ok().filter(|made| made.status.success()).map(|made| made.stdout);
    if made.is_none() {
        eprintln!("skipped: no ffmpeg here that codes `{video}`");
    }
    made
}

/// What a viewer measures that gets the stream at its own pace, without the packets that `arrives`
/// refuses.
fn viewed(stream: &[u8], arrives: impl Fn(usize) -> bool) -> TrackInterval {
    let start = Instant::now();
    let config = TrackConfig {
        track: TrackId(0),
        kind: MediaKind::Video,
        codec: Codec::Mp2t,
        clock_rate_hz: 90_000,
        nack: false,
    };
    let clock = WallClock { at: start, unix_ns: 1_800_000_000_000_000_000 };
    let mut meter = TrackMeter::new(config, clock, start);
    let packets = stream.chunks(RTP_PAYLOAD);
    let step = Duration::from_secs(SECONDS.into()) / packets.len() as u32;
    let mut arrived_at = start;
    for (i, payload) in packets.enumerate() {
        arrived_at += step;
        meter.timeout(arrived_at);
        if !arrives(i) {
            continue;
        }
        let packet = Packet {
            arrived_at,
            sequence: (i as u16).wrapping_sub(100),
            timestamp: (i as u32).wrapping_mul(90),
            marker: false,
            facts: PayloadFacts::default(),
            payload_bytes: payload.len() as u32,
            header_bytes: 12,
            wire_bytes: payload.len() as u32 + 40,
            retransmitted: false,
            captured: None,
        };
        meter.packet_with_payload(&packet, payload);
    }
    meter.finish(arrived_at)
}

#[test]
fn frames_are_those_that_were_coded() {
    for (video, key_frames) in [
        ("-c:v mpeg2video -g 15 -bf 2", None),
        ("-c:v mpeg4 -g 15 -bf 2", None),
        ("-c:v libx264 -preset ultrafast -g 30 -keyint_min 30 -sc_threshold 0 -bf 3", Some(4)),
    ] {
        let Some(stream) = coded(video) else { continue };
        let interval = viewed(&stream, |_| true);
        let counters = interval.counters;
        let frames = u64::from(SECONDS * FPS);
        // The end of the last frame is known by stuffing only, which a full packet has not.
        assert!((frames - 1..=frames).contains(&counters.frames_complete), "{video}: {counters:?}");
        assert_eq!(counters.frames_decodable, counters.frames_complete, "{video}");
        assert_eq!(counters.frames_dropped, 0, "{video}");
        let expect = key_frames.unwrap_or(SECONDS as u64 * 2);
        assert!(
            counters.key_frames.abs_diff(expect) <= 2,
            "{video}: {} key frames",
            counters.key_frames
        );
        assert!(interval.source_fps.is_some_and(|fps| (fps - FPS as f32).abs() < 0.1), "{video}");
        assert!(interval.absolute_delay_us.is_empty());
    }
}

#[test]
fn loss_costs_frames_and_no_more() {
    let Some(stream) = coded("-c:v mpeg2video -g 15 -bf 2") else { return };
    let counters = viewed(&stream, |i| i % 50 != 20).counters;
    assert!(counters.packets_lost > 3, "{counters:?}");
    // A picture of which the beginning is lost is not told from the one before it.
    let judged = counters.frames_dropped + counters.frames_complete;
    assert!(
        counters.frames_dropped > 0 && counters.frames_complete > 100 && judged < 120,
        "{counters:?}"
    );
    assert!(counters.frames_decodable < counters.frames_complete, "{counters:?}");
}
