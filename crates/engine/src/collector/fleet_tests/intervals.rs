//! The intervals that viewers, publishers, players and members of the chat report of each second.

use std::time::Duration;

use throng_observation::{
    CaptureBasis, ChatCounters, ChatInterval, Codec, LiveInterval, MediaKind, Missing, Observation,
    PlaybackCounters, PlaybackInterval, SentCounters, SentInterval, TrackCounters, TrackId,
    TrackInterval,
};

use super::crowd::{S, worker_of};
use super::observations::{Numbers, Story, What};

impl Story {
    pub(super) fn received(&mut self, number: u32, ready: i64, (began, ended): (i64, i64)) {
        let length_us = (ended - began) as u64;
        for (track, kind) in [(0, MediaKind::Video), (1, MediaKind::Audio)] {
            let mut n = Numbers::of(number, began * 2 + i64::from(track));
            let is_video = kind == MediaKind::Video;
            // Negotiated, and never sent.
            let is_missing = !is_video && number % 23 == 10;
            let fps = [30.0_f32, 25.0, 15.0][(number % 3) as usize];
            let frames = length_us * fps as u64 / 1_000_000;
            let freeze_us =
                if is_video && n.below(12) == 0 { n.below(400_000).min(length_us) } else { 0 };
            let came = TrackCounters {
                packets_original: 80 + n.below(30),
                payload_bytes: 90_000 + n.below(9_000),
                header_bytes: 1_200,
                wire_bytes: 99_000 + n.below(9_000),
                packets_lost: if n.below(6) == 0 { n.below(9) as i64 } else { 0 },
                packets_recovered: n.below(4),
                packets_reordered: n.below(2),
                nack_sent: n.below(3),
                pli_sent: n.below(2),
                frames_complete: frames,
                frames_decodable: frames - n.below(6).min(frames),
                key_frames: n.below(2),
                freeze_count: u64::from(freeze_us > 0),
                freeze_us,
                active_us: length_us,
                ..TrackCounters::default()
            };
            let nothing = TrackCounters { active_us: length_us, ..TrackCounters::default() };
            let late_us = if number % 10 == 5 { 100_000 } else { 0 };
            // The best basis counts, whichever worker has it; the others' samples do not.
            let capture_basis = [Some(CaptureBasis::SenderReport), Some(CaptureBasis::Mark), None];
            let capture_basis = capture_basis[worker_of(number)];
            let interval = TrackInterval {
                track: TrackId(track),
                kind,
                ended_at: self.at(ended),
                counters: if is_missing { nothing } else { came },
                jitter_us: Some(500 + n.below(60_000) as u32),
                relative_delay_us: (0..30).map(|_| late_us + n.below(190_000) as u32).collect(),
                absolute_delay_us: (0..10).map(|_| n.below(90_000) as i32 - 500).collect(),
                capture_basis,
                oven_rtc_tester_delay_us: Some(n.below(9_000) as u32),
                source_fps: is_video.then_some(fps),
                frames_due_us: length_us,
                first_frame_awaited_since: None,
                picture_lines: None,
                missing: is_missing.then(|| Missing {
                    since: self.at(ready),
                    has_stopped: number.is_multiple_of(2),
                }),
            };
            self.observe(number, ended, Observation::Interval(Box::new(interval)));
        }
    }

    pub(super) fn sent(&mut self, number: u32, (began, ended): (i64, i64)) {
        for (track, kind, codec) in
            [(0, MediaKind::Video, Codec::H264), (1, MediaKind::Audio, Codec::Opus)]
        {
            let mut n = Numbers::of(number, began * 2 + i64::from(track));
            let interval = SentInterval {
                track: TrackId(track),
                kind,
                codec,
                ended_at: self.at(ended),
                length: Duration::from_micros((ended - began) as u64),
                counters: SentCounters {
                    packets_sent: 100 + n.below(50),
                    payload_bytes: 80_000 + n.below(9_000),
                    wire_bytes: 90_000 + n.below(9_000),
                    retransmitted_packets: n.below(5),
                    frames_sent: 30,
                    key_frames_sent: n.below(2),
                    pli_received: n.below(2),
                    blocked_us: n.below(9_000),
                    ..SentCounters::default()
                },
                round_trip_s: Some(0.02),
                remote_loss_ratio: Some(n.below(30) as f64 / 1e3),
                allowed_bps: 1e6,
                wanted_bps: 1e6,
                pause_us_max: 0,
            };
            self.observe(number, ended, Observation::Sent(Box::new(interval)));
        }
    }

    pub(super) fn played(&mut self, number: u32, (began, ended): (i64, i64)) {
        let (length_us, mut n) = ((ended - began) as u64, Numbers::of(number, began));
        let stall_us = if n.below(15) == 0 { n.below(300_000).min(length_us) } else { 0 };
        let interval = PlaybackInterval {
            ended_at: self.at(ended),
            separate_sound_bytes: 0,
            counters: PlaybackCounters {
                active_us: length_us,
                stall_us,
                stall_count: u64::from(stall_us > 0),
                played_us: length_us - stall_us,
                media_bytes: 200_000 + n.below(90_000),
                other_bytes: n.below(4_000),
                media_us: length_us - n.below(length_us / 10),
                wanted_us: n.below(length_us),
                requests: 2,
                requests_failed: n.below(2),
                connections: n.below(2),
                switches: n.below(2),
                segments: 1,
                segment_download_us: n.below(900_000),
                segment_media_us: 1_000_000,
                responses_http2: 2,
                ..PlaybackCounters::default()
            },
            buffer_us: n.below(20_000_000),
            delivery_ratio: (n.below(3) > 0).then(|| 0.9 + n.below(200) as f32 / 1e3),
            start_awaited_since: None,
            live: Some(LiveInterval {
                to_edge_us: 8_000_000 + n.below(9_000_000) as i64,
                since_date_us: number
                    .is_multiple_of(2)
                    .then(|| 9_000_000 + n.below(9_000_000) as i64),
                dates_ahead_us: number.is_multiple_of(2).then(|| n.below(1_000_000) as i64),
                capture_latency_us: Some(9_000_000 + n.below(9_000_000) as i64),
                over_target_us: n.below(5_000_000) as i64,
                target_duration_us: 4_000_000,
            }),
        };
        self.observe(number, ended, Observation::Playback(Box::new(interval)));
        let path = format!("/{}.ts", ended / S % 20);
        let status = if n.below(8) == 0 { 404 } else { 200 };
        self.tell(number, ended, What::Requested { path, status, bytes: n.below(200_000) });
    }

    pub(super) fn chatted(&mut self, number: u32, ended: i64) {
        let mut n = Numbers::of(number, ended);
        let came = n.below(5);
        let missing = u64::from(n.below(20) == 0);
        let interval = ChatInterval {
            ended_at: self.at(ended),
            counters: ChatCounters {
                messages_due: came + missing,
                messages_missing: missing,
                messages_received: came,
                messages_sent: n.below(2),
                frames_received: came + n.below(3),
                presences_received: n.below(3),
                bytes_received: 300 * came,
                bytes_sent: 200,
                reconnects: u64::from(n.below(30) == 0),
                ..ChatCounters::default()
            },
            delays_us: (0..came).map(|_| n.below(2_500_000)).collect(),
            occupants: n.below(12) as u32,
            is_joined: n.below(25) > 0,
        };
        self.observe(number, ended, Observation::Chat(Box::new(interval)));
    }
}
