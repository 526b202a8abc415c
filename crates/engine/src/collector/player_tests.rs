//! Players from their observations to the rows of a run.

use std::collections::BTreeMap;
use std::sync::mpsc;

use throng_net::Waker;
use throng_observation::run::{ADDRESS_EVENT, CohortId, ParticipantId};
use throng_observation::{
    Clause, Codec, ExperienceRow, FailureReason, MediaKind, Observation, Phase, PlaybackCounters,
    PlaybackInterval, PlaybackRow, PlayerRow, TrackCounters, TrackId, TrackInterval,
};

use super::*;

const S: i64 = 1_000_000;

/// What a player does in a second.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    /// It waits for playback since that second (as the participant says); some media arrives.
    Starts(i64),
    /// The same, and no byte of media has come.
    WaitsForMedia(i64),
    /// It plays; its buffer is full and nothing arrives.
    Plays,
    /// It plays and receives less than the media's bit rate.
    Starves,
    /// It stalls for half of the second.
    Stalls,
    /// Its user paused.
    Pauses,
}

/// The collector of a run with these players, each with its intended join, and what it wrote.
struct Run {
    collector: Collector,
    written: mpsc::Receiver<Row>,
}

impl Run {
    fn new(joins: &[i64]) -> Self {
        let join = |(id, at): (usize, &i64)| Join {
            participant: ParticipantId(id as u32),
            cohort: CohortId(0),
            place: id as u32,
            at: RunTime(at * S),
            leave_at: None,
            others_follow: false,
            source_ip: None,
        };
        let plan: Arc<[Join]> = joins.iter().enumerate().map(join).collect();
        let (rows, written) = mpsc::sync_channel(1 << 12);
        let config = CollectorConfig {
            addresses: Arc::default(),
            clock: RunClock { start: Instant::now() },
            ends_at: RunTime(60 * S),
            cohorts: 1,
            control: Arc::new(Control::new(Vec::<Arc<Waker>>::new(), plan.len() as u32)),
            plan,
            worst: 5,
            guards: Guards::default(),
            bad_if: BadIf::default(),
            secrets: Vec::new(),
            live: Arc::default(),
            rows,
        };
        Self { collector: Collector::new(config), written }
    }

    fn at(&self, us: i64) -> Instant {
        self.collector.config.clock.instant(RunTime(us))
    }

    fn observe(&mut self, id: u32, us: i64, observation: Observation) {
        let at = self.at(us);
        self.collector.take(DriverEvent::Observed { id, at, observation });
    }

    fn start(&mut self, id: u32, us: i64) {
        let at = self.at(us);
        self.collector.take(DriverEvent::Started { id, at });
        let track = TrackId(0);
        let (kind, codec) = (MediaKind::Video, Codec::H264);
        let opened = Observation::TrackOpened { track, kind, codec, is_recording: false };
        self.observe(id, us, opened);
    }

    fn reach(&mut self, id: u32, phases: &[Phase], us: i64) {
        for phase in phases {
            let at = self.at(us);
            self.observe(id, us, Observation::Reached(*phase, at));
        }
    }

    /// The intervals of a second, as the participant sends them at its end.
    fn second(&mut self, id: u32, second: i64, does: Does) {
        let end = (second + 1) * S;
        let all = 1_000_000;
        let counters = match does {
            Does::Starts(_) => PlaybackCounters {
                active_us: all,
                startup_us: all,
                media_bytes: 10_000,
                ..PlaybackCounters::default()
            },
            Does::WaitsForMedia(_) => {
                PlaybackCounters { active_us: all, startup_us: all, ..PlaybackCounters::default() }
            }
            Does::Plays | Does::Starves => {
                PlaybackCounters { active_us: all, played_us: all, ..PlaybackCounters::default() }
            }
            Does::Stalls => PlaybackCounters {
                active_us: all,
                stall_us: all / 2,
                stall_count: 1,
                played_us: all / 2,
                media_bytes: 100_000,
                ..PlaybackCounters::default()
            },
            Does::Pauses => PlaybackCounters { paused_us: all, ..PlaybackCounters::default() },
        };
        let start_awaited_since = match does {
            Does::Starts(since) | Does::WaitsForMedia(since) => Some(self.at(since * S)),
            _ => None,
        };
        let interval = PlaybackInterval {
            ended_at: self.at(end),
            separate_sound_bytes: 0,
            counters,
            buffer_us: if does == Does::Plays { 9_000_000 } else { 0 },
            delivery_ratio: (does == Does::Starves).then_some(0.9),
            start_awaited_since,
            live: None,
        };
        let due_us = counters.active_us - counters.startup_us;
        let track = TrackInterval {
            track: TrackId(0),
            kind: MediaKind::Video,
            ended_at: self.at(end),
            counters: TrackCounters {
                frames_decodable: counters.played_us * 30 / 1_000_000,
                payload_bytes: counters.media_bytes,
                active_us: all,
                ..TrackCounters::default()
            },
            jitter_us: None,
            relative_delay_us: Vec::new(),
            absolute_delay_us: Vec::new(),
            capture_basis: None,
            oven_rtc_tester_delay_us: None,
            source_fps: Some(30.0),
            frames_due_us: due_us,
            first_frame_awaited_since: None,
            picture_lines: None,
            missing: None,
        };
        self.observe(id, end, Observation::Playback(Box::new(interval)));
        self.observe(id, end, Observation::Interval(Box::new(track)));
    }

    /// Closes the seconds before `until`; the rows that were written.
    fn close(&mut self, until: i64) -> Vec<Row> {
        while self.collector.open < until {
            self.collector.close_second(RunTime((self.collector.open + 2) * S));
        }
        self.written.try_iter().collect()
    }
}

/// By second, the number of users, and which clauses any of them violated.
fn judged(rows: &[Row]) -> BTreeMap<i64, (u32, Vec<&'static str>)> {
    let broken = |row: &ExperienceRow| {
        let broken = Clause::ALL.into_iter().filter(|clause| row.clauses[*clause as usize] > 0);
        (row.users, broken.map(Clause::key).collect())
    };
    let closed = rows.iter().filter_map(|row| match row {
        Row::SecondClosed(closed) => Some(closed),
        _ => None,
    });
    closed.flat_map(|closed| &closed.experience).map(|row| (row.second, broken(row))).collect()
}

const BEFORE_PLAYBACK: [Phase; 3] = [Phase::Playing, Phase::FirstPacket, Phase::FirstFrame];

/// How the seconds of one player from its start at 0 are judged. `None`: it need not be served.
fn seconds_of(does: &[Does]) -> Vec<Option<Vec<&'static str>>> {
    let mut run = Run::new(&[0]);
    run.start(0, 0);
    for (second, does) in (0..).zip(does) {
        let at = second * S + S / 10;
        match does {
            Does::WaitsForMedia(_) => run.reach(0, &[Phase::Playing], at),
            Does::Starts(_) => run.reach(0, &BEFORE_PLAYBACK, at),
            _ => run.reach(0, &[Phase::Playing, Phase::FirstPacket, Phase::PlaybackStarted], at),
        }
        run.second(0, second, *does);
    }
    let rows = run.close(does.len() as i64);
    let judged = judged(&rows);
    (0..does.len() as i64)
        .map(|second| {
            judged.get(&second).filter(|(users, _)| *users > 0).map(|(_, broken)| broken.clone())
        })
        .collect()
}

#[test]
fn a_player_is_judged_by_what_it_waits_for() {
    use Does::{Pauses, Plays, Stalls, Starts, Starves, WaitsForMedia};
    let good = || Some(Vec::new());
    let bad = |clause: &'static str| Some(vec![clause]);
    type Case<'a> = (&'a str, &'a [Does], Vec<Option<Vec<&'static str>>>);
    let cases: [Case<'_>; 8] = [
        ("it begins at once", &[Plays, Plays, Plays], vec![None, good(), good()]),
        (
            "it begins within the time to join",
            &[Starts(0), Starts(0), Plays, Plays],
            vec![None, None, good(), good()],
        ),
        (
            "it begins late",
            &[Starts(0), Starts(0), Starts(0), Starts(0), Starts(0), Plays],
            // The fourth second is the first that begins after the patience of three.
            vec![None, None, None, None, bad("startup"), good()],
        ),
        (
            "no media comes",
            &[
                WaitsForMedia(0),
                WaitsForMedia(0),
                WaitsForMedia(0),
                WaitsForMedia(0),
                WaitsForMedia(0),
            ],
            vec![None, None, None, None, bad("no_media")],
        ),
        (
            "it stalls, and its missing frames are no second reason",
            &[Plays, Plays, Stalls, Stalls, Plays],
            vec![None, good(), bad("stall"), bad("stall"), good()],
        ),
        (
            "too little arrives while its buffer lasts",
            &[Plays, Plays, Starves, Plays],
            vec![None, good(), bad("delivery"), good()],
        ),
        (
            "its user pauses",
            &[Plays, Plays, Pauses, Pauses, Plays],
            vec![None, good(), good(), good(), good()],
        ),
        (
            "its user seeks, and it waits for too long",
            &[Plays, Plays, Starts(2), Starts(2), Starts(2), Starts(2), Starts(2), Plays],
            vec![None, good(), good(), good(), good(), good(), bad("startup"), good()],
        ),
    ];
    for (what, does, expect) in cases {
        assert_eq!(seconds_of(does), expect, "{what}");
    }
}

#[test]
fn a_player_that_does_not_connect_fails_or_leaves_is_judged_as_any_participant() {
    let mut run = Run::new(&[0, 0, 0]);
    (0..3).for_each(|id| run.start(id, 0));
    for id in [1, 2] {
        run.reach(id, &BEFORE_PLAYBACK, S / 10);
        run.reach(id, &[Phase::PlaybackStarted], S / 5);
        (0..6).for_each(|second| run.second(id, second, Does::Plays));
    }
    let at = run.at(6 * S);
    let failure = throng_observation::Failure::new(FailureReason::HttpStatus(503), "full");
    run.collector.take(DriverEvent::Ended { id: 1, at, outcome: Outcome::Failed(failure) });
    run.collector.take(DriverEvent::Ended { id: 2, at, outcome: Outcome::Completed });
    let rows = run.close(9);
    let judged = judged(&rows);
    assert_eq!(judged[&2], (2, vec![]), "the first may still connect");
    assert_eq!(judged[&5], (3, vec!["not_connected"]));
    assert_eq!(judged[&7], (2, vec!["not_connected"]), "one failed, one left");
}

#[test]
fn the_rows_of_players_have_their_sums_and_their_lives() {
    let mut run = Run::new(&[0, 0]);
    for id in 0..2 {
        run.start(id, 0);
        run.reach(id, &BEFORE_PLAYBACK, S / 10);
        run.reach(id, &[Phase::PlaybackStarted], S / 2);
    }
    for second in 0..4 {
        run.second(0, second, Does::Plays);
        run.second(1, second, if second == 2 { Does::Stalls } else { Does::Plays });
    }
    let at = run.at(4 * S);
    (0..2).for_each(|id| {
        run.collector.take(DriverEvent::Ended { id, at, outcome: Outcome::Completed });
    });
    let rows = run.close(6);
    let of_seconds: Vec<&PlaybackRow> = rows
        .iter()
        .filter_map(|row| match row {
            Row::Playback(row) => Some(&**row),
            _ => None,
        })
        .collect();
    let stalled: Vec<_> =
        of_seconds.iter().map(|row| (row.second, row.players, row.stalled)).collect();
    assert_eq!(stalled, [(0, 2, 0), (1, 2, 0), (2, 2, 1), (3, 2, 0)]);
    assert_eq!(of_seconds[2].counters.stall_us, 500_000);
    let lives: BTreeMap<u32, PlayerRow> = rows
        .iter()
        .filter_map(|row| match row {
            Row::Player(row) => Some((row.participant.0, **row)),
            _ => None,
        })
        .collect();
    assert_eq!(lives.len(), 2);
    let second = lives[&1];
    assert_eq!((second.startup_us, second.counters.stall_count), (Some(500_000), 1));
    assert_eq!((second.counters.active_us, second.buffer_us), (4_000_000, 9_000_000));
    let crowd: Vec<_> = rows
        .iter()
        .filter_map(|row| match row {
            Row::Crowd(row) => Some((row.second, row.playing)),
            _ => None,
        })
        .collect();
    assert_eq!(crowd[1], (1, 2), "they play from their buffers, and nothing arrives");
    let live = run.collector.config.live.lock().unwrap().clone();
    let playback = live.playback.expect("players");
    assert_eq!((playback.last.players, playback.so_far.stall_count), (0, 1), "they have left");
    assert!(live.startup_ms.is_some_and(|startup| startup.count == 2));
}

#[test]
fn participants_are_told_by_the_addresses_that_they_used() {
    let Run { collector, written } = Run::new(&[0]);
    let address = |last| std::net::IpAddr::from([192, 0, 2, last]);
    for last in [1, 2, 1] {
        collector.config.addresses.add(address(last));
    }
    collector.finish_at(RunTime(S));
    let told: BTreeMap<String, u32> = written
        .try_iter()
        .filter_map(|row| match row {
            Row::Event(row) if row.kind.starts_with(ADDRESS_EVENT) => Some((row.kind, row.count)),
            _ => None,
        })
        .collect();
    let expect = [("address_192.0.2.1", 2), ("address_192.0.2.2", 1)];
    assert_eq!(told, BTreeMap::from(expect.map(|(kind, count)| (kind.to_owned(), count))));
}
