//! A receiver, with packets that a test chooses.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use throng_media::quality::WallClock;
use throng_media::rtp::{Extensions, HeaderFields, write_header};
use throng_observation::{Codec, MediaKind, Observation, TrackInterval};

use super::{Receiver, ReceiverOptions};
use crate::webrtc::sdp::Description;
use crate::webrtc::session::Negotiated;
use crate::webrtc::srtp::{Opener, Profile, RTP_GROWTH_MAX, Sealer, SessionKeys};

pub(super) struct Fixture {
    pub(super) now: Instant,
    pub(super) receiver: Receiver,
    sealer: Sealer,
    /// Of what it sends.
    pub(super) opener: Opener,
    /// Packets sent, by source.
    sent: BTreeMap<u32, u64>,
    /// Timestamp of the last one by [`Self::arrives_of`].
    timestamp: Option<u32>,
    pub(super) opened: Vec<(MediaKind, Codec)>,
    /// Places of protocol anomalies.
    pub(super) anomalies: Vec<&'static str>,
    pub(super) intervals: Vec<TrackInterval>,
}

impl Fixture {
    pub(super) fn new(sdp: &str, is_told: bool) -> Self {
        let now = Instant::now() + Duration::from_secs(1);
        let keys = |client| {
            let profile = Profile::AeadAes128Gcm;
            SessionKeys::new(profile, &vec![7; profile.keying_material_len()], client).unwrap()
        };
        let clock = WallClock { at: now, unix_ns: 1_700_000_000_000_000_000 };
        let options = ReceiverOptions {
            clock,
            joined_at: now,
            first_track: 0,
            seed: 1,
            is_tapped: false,
            is_told,
        };
        let receiver = Receiver::new(&keys(true), &agreed(sdp), options, now).unwrap();
        let (sealer, opener) = (keys(false).sealer().unwrap(), keys(false).opener().unwrap());
        Self {
            now,
            receiver,
            sealer,
            opener,
            sent: BTreeMap::new(),
            timestamp: None,
            opened: Vec::new(),
            anomalies: Vec::new(),
            intervals: Vec::new(),
        }
    }

    /// Advances time by `ms` milliseconds; each of these streams has a packet per given number of
    /// milliseconds.
    pub(super) fn run(&mut self, ms: u64, streams: &[((u8, u32), u64)]) {
        for at in 0..ms {
            self.now += Duration::from_millis(1);
            for (stream, _) in streams.iter().filter(|(_, every)| at % every == 0) {
                self.send(*stream);
            }
            self.receiver.timeout(self.now);
            self.look();
        }
    }

    pub(super) fn send(&mut self, (payload_type, ssrc): (u8, u32)) {
        let index = self.sent.entry(ssrc).or_default();
        *index += 1;
        let index = *index;
        self.arrives((payload_type, ssrc), index, self.now);
    }

    /// Packet `index` of a stream arrived at `arrived_at`, and is passed on now.
    pub(super) fn arrives(&mut self, stream: (u8, u32), index: u64, arrived_at: Instant) {
        self.arrives_of(stream, index, index as u32 * 3_000, arrived_at);
    }

    /// The same of a picture with this timestamp.
    pub(super) fn arrives_of(
        &mut self,
        (payload_type, ssrc): (u8, u32),
        index: u64,
        timestamp: u32,
        arrived_at: Instant,
    ) {
        let fields =
            HeaderFields { payload_type, marker: true, sequence: index as u16, timestamp, ssrc };
        let mut packet = Vec::new();
        let header_len =
            write_header(&mut packet, &fields, &Default::default(), &Extensions::default());
        // The first of a picture begins a partition.
        let is_first = self.timestamp.replace(timestamp) != Some(timestamp);
        packet.extend([u8::from(is_first) << 4, 0, 0, 0, 0x9d, 0x01, 0x2a, 64, 0, 64, 0]);
        let plain_len = packet.len();
        packet.resize(plain_len + RTP_GROWTH_MAX, 0);
        let len = self.sealer.seal_rtp(&mut packet, plain_len, header_len, ssrc, index).unwrap();
        packet.truncate(len);
        assert!(self.receiver.rtp(arrived_at, 28, &mut packet));
    }

    pub(super) fn look(&mut self) {
        for observed in self.receiver.take_observed() {
            match observed {
                Observation::Interval(interval) => self.intervals.push(*interval),
                Observation::TrackOpened { kind, codec, .. } => self.opened.push((kind, codec)),
                Observation::ProtocolAnomaly { place, .. } => self.anomalies.push(place),
                _ => {}
            }
        }
    }

    /// The kinds without media in the intervals since the last call, and for how many seconds it
    /// had been expected.
    pub(super) fn missing(&mut self) -> Vec<(MediaKind, u64)> {
        let reported = std::mem::take(&mut self.intervals);
        let missing = |interval: &TrackInterval| {
            Some((
                interval.kind,
                interval.ended_at.duration_since(interval.missing?.since).as_secs(),
            ))
        };
        reported.iter().filter_map(missing).collect()
    }
}

pub(super) fn agreed(sdp: &str) -> Negotiated {
    let description = Description::parse(sdp);
    Negotiated { answer: description.clone(), remote: description, ..Negotiated::default() }
}
