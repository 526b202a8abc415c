//! Rows at random, for the tests of this crate.

use std::collections::BTreeMap;

use proptest::prelude::*;
use throng_observation::run::{
    CohortId, CrowdRow, EventRow, GeneratorRow, LayerSwitchRow, ParticipantId, ParticipantRow, Row,
    SentRow, SeriesRow, SourceFps, TrackRow,
};
use throng_observation::{
    CaptureBasis, ChatCounters, ChatRow, Clause, Codec, Distribution, ExperienceRow, Failure,
    FailureReason, HttpRequestCounters, HttpRequestKey, HttpRequestRow, Layer, MediaKind,
    NoResponse, OneWayDelay, Outcome, Phase, PlaybackCounters, PlaybackRow, PlayerRow,
    RequestOutcome, RunTime, SecondClosed, SentCounters, TrackCounters, TrackId, seed,
};

/// Numbers that a seed gives one after the other (splitmix64), smaller ones more often.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        seed::next(&mut self.0)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn small(&mut self) -> u64 {
        let bits = self.below(40);
        self.below(1 << bits)
    }

    fn u32(&mut self) -> u32 {
        self.below(1 << 20) as u32
    }

    fn is(&mut self) -> bool {
        self.below(2) == 0
    }

    fn distribution(&mut self) -> Distribution {
        let mut d = Distribution::new();
        let samples = if self.below(8) == 0 { 3_000 } else { self.below(40) };
        (0..samples).for_each(|_| d.record(self.small()));
        d
    }

    fn delay(&mut self) -> OneWayDelay {
        let mut delay = OneWayDelay::default();
        for _ in 0..self.below(20) {
            let basis = CaptureBasis::ALL[self.below(3) as usize];
            delay.record(basis, self.u32() as i32 - 1_000);
        }
        delay
    }

    fn kind(&mut self) -> MediaKind {
        if self.is() { MediaKind::Audio } else { MediaKind::Video }
    }

    fn time(&mut self) -> RunTime {
        RunTime(self.small() as i64 - 1_000)
    }

    fn text(&mut self) -> String {
        ["", "live.example:8443", "/a/ü.ts", "ice: no pair"][self.below(4) as usize].to_owned()
    }

    fn track_counters(&mut self) -> TrackCounters {
        TrackCounters {
            packets_original: self.small(),
            packets_lost: self.u32() as i64 - 500,
            wire_bytes: self.small(),
            frames_decodable: self.small(),
            active_us: self.small(),
            missing_us: self.small(),
            ..TrackCounters::default()
        }
    }

    fn playback_counters(&mut self) -> PlaybackCounters {
        PlaybackCounters {
            active_us: self.small(),
            stall_us: self.small(),
            tracker_reconnects: self.small(),
            ..PlaybackCounters::default()
        }
    }

    fn outcome(&mut self) -> Option<Outcome> {
        match self.below(4) {
            0 => None,
            1 => Some(Outcome::Completed),
            2 => Some(Outcome::Failed(Failure::new(FailureReason::HttpStatus(404), self.text()))),
            _ => Some(Outcome::Failed(Failure::new(FailureReason::Ice, self.text()))),
        }
    }

    pub(crate) fn crowd(&mut self, second: i64, cohort: u16) -> CrowdRow {
        CrowdRow {
            second,
            cohort: CohortId(cohort),
            intended: self.u32(),
            started: self.u32(),
            connected: self.u32(),
            playing: self.u32(),
            failed: self.u32(),
            left: self.u32(),
            ice: [0; 6].map(|_: u32| self.u32()),
        }
    }

    pub(crate) fn series(&mut self, second: i64, cohort: u16, kind: MediaKind) -> SeriesRow {
        SeriesRow {
            second,
            cohort: CohortId(cohort),
            kind: Some(kind),
            tracks: self.u32(),
            tracks_below_source_fps: u64::from(self.u32()),
            counters: self.track_counters(),
            relative_delay_us: self.distribution(),
            absolute_delay: self.delay(),
            jitter_us: self.distribution(),
            fps_milli: self.distribution(),
            loss_ppm: self.distribution(),
            oven_rtc_tester_delay_us: self.distribution(),
            picture_lines: self.distribution(),
            source_fps: SourceFps { tracks: self.below(5), sum_milli: self.below(100_000) },
        }
    }

    pub(crate) fn sent(&mut self, second: i64, cohort: u16, kind: MediaKind) -> SentRow {
        let counters = SentCounters {
            packets_sent: self.small(),
            blocked_us: self.small(),
            ..Default::default()
        };
        SentRow { second, cohort: CohortId(cohort), kind, tracks: self.u32(), counters }
    }

    pub(crate) fn playback(&mut self, second: i64, cohort: u16) -> PlaybackRow {
        PlaybackRow {
            second,
            cohort: CohortId(cohort),
            players: self.u32(),
            stalled: self.u32(),
            starting: self.u32(),
            counters: self.playback_counters(),
            buffer_us: self.distribution(),
            shortfall_ppm: self.distribution(),
            dates_ahead: Some(self.u32()),
            latency_us: self.distribution(),
            edge_latency_us: self.distribution(),
            capture_latency_us: self.distribution(),
        }
    }

    pub(crate) fn chat(&mut self, second: i64, cohort: u16) -> ChatRow {
        ChatRow {
            second,
            cohort: CohortId(cohort),
            members: self.u32(),
            joined: self.u32(),
            occupants_max: self.u32(),
            counters: ChatCounters { messages_due: self.small(), ..ChatCounters::default() },
            delay_us: self.distribution(),
        }
    }

    pub(crate) fn closed(&mut self, second: i64, cohorts: u16) -> SecondClosed {
        let row = |cohort| ExperienceRow {
            second,
            cohort: CohortId(cohort),
            users: self.u32(),
            bad: self.u32(),
            uncounted_milli: self.u32(),
            clauses: [0; Clause::ALL.len()].map(|_: u32| self.u32()),
        };
        let experience = (0..cohorts).map(row).collect();
        SecondClosed { second, experience, is_generator_limited: self.below(10) == 0 }
    }

    pub(crate) fn participant(
        &mut self,
        participant: u32,
        outcome: Option<Outcome>,
    ) -> ParticipantRow {
        let reached: BTreeMap<_, _> = Phase::ALL
            .into_iter()
            .filter(|_| self.0.is_multiple_of(3))
            .map(|phase| (phase, RunTime(7)))
            .collect();
        ParticipantRow {
            participant: ParticipantId(participant),
            cohort: CohortId(0),
            intended_at: self.time(),
            reached,
            ended_at: outcome.as_ref().map(|_| self.time()),
            outcome,
            local_address: self.is().then(|| self.text()),
        }
    }

    pub(crate) fn requests(&mut self, path: u64, requests: u64) -> HttpRequestRow {
        let outcome = if path.is_multiple_of(2) {
            RequestOutcome::Status(200)
        } else {
            RequestOutcome::NoResponse(NoResponse::Cancelled)
        };
        HttpRequestRow {
            key: HttpRequestKey {
                host: "live.example".to_owned(),
                path: format!("/{path}.ts"),
                method: "GET".to_owned(),
                outcome,
                version: 2,
            },
            counters: HttpRequestCounters {
                requests,
                body_bytes: self.small(),
                cut_off: 1,
                broken_off: 0,
            },
            first_at: self.time(),
            last_at: self.time(),
        }
    }

    pub(crate) fn generator(&mut self, second: i64, thread: Option<u16>) -> GeneratorRow {
        GeneratorRow {
            second,
            thread,
            cpu_us: self.small(),
            steal_ratio: 0.125,
            ..GeneratorRow::default()
        }
    }

    /// A row of any kind that travels.
    pub(crate) fn any(&mut self) -> Row {
        let (second, cohort, kind) = (self.below(100) as i64, self.below(3) as u16, self.kind());
        let (participant, track) = (ParticipantId(self.u32()), TrackId(self.below(9) as u16));
        match self.below(12) {
            0 => Row::Crowd(self.crowd(second, cohort)),
            1 => Row::Series(Box::new(self.series(second, cohort, kind))),
            2 => Row::Sent(self.sent(second, cohort, kind)),
            3 => Row::Playback(Box::new(self.playback(second, cohort))),
            4 => Row::Chat(Box::new(self.chat(second, cohort))),
            5 => Row::SecondClosed(self.closed(second, 3)),
            6 => {
                let outcome = self.outcome();
                Row::Participant(Box::new(self.participant(participant.0, outcome)))
            }
            7 => Row::Track(Box::new(TrackRow {
                participant,
                track,
                kind,
                codec: Codec::ALL[self.below(15) as usize],
                from: self.is().then(|| self.text()),
                first_frame_at: self.is().then(|| self.time()),
                counters: self.track_counters(),
                relative_delay_us: self.distribution(),
                absolute_delay: self.delay(),
                fps: self.is().then_some(29.97),
                jitter_us: self.is().then(|| self.u32()),
                oven_rtc_tester_delay_us: self.is().then(|| self.u32()),
            })),
            8 => Row::Player(Box::new(PlayerRow {
                participant,
                startup_us: self.is().then(|| self.small()),
                buffer_us: self.small(),
                delivery_ppm_min: self.is().then(|| self.u32()),
                counters: self.playback_counters(),
            })),
            9 => {
                let (path, requests) = (self.below(50), self.small());
                Row::HttpRequests(Box::new(self.requests(path, requests)))
            }
            10 => Row::LayerSwitch(LayerSwitchRow {
                participant,
                track,
                layer: Layer::ALL[self.below(4) as usize],
                requested_at: self.time(),
                shown_at: self.is().then(|| self.time()),
                width: self.below(4_000) as u16,
                height: self.below(3_000) as u16,
            }),
            _ if self.is() => {
                let thread = self.is().then_some(3);
                Row::Generator(self.generator(second, thread))
            }
            _ => Row::Event(EventRow {
                at: self.time(),
                participant: self.is().then_some(participant),
                kind: self.text(),
                count: self.u32(),
                detail: self.text().into(),
            }),
        }
    }
}

/// Rows of all kinds.
pub(crate) fn rows(most: usize) -> impl Strategy<Value = Vec<Row>> {
    (any::<u64>(), 0..most).prop_map(|(seed, count)| {
        let mut numbers = Numbers(seed);
        (0..count).map(|_| numbers.any()).collect()
    })
}

/// What rows hold, for comparison: distributions have no equality of their own.
pub(crate) fn said(rows: &[Row]) -> Vec<Vec<u8>> {
    rows.iter().map(|row| postcard::to_stdvec(row).unwrap()).collect()
}
