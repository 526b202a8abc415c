//! A day of joins and leaves, sent to the collector as fast as it accepts them: the cost of a run
//! depends on the current participants, not on the number of past ones.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::mpsc;

use throng_observation::run::{CohortId, CrowdRow, ParticipantId};
use throng_observation::{
    Codec, ExperienceRow, FailureReason, MediaKind, Observation, Phase, TrackCounters, TrackId,
    TrackInterval,
};

use super::*;
use throng_net::Waker;

/// Joins a second.
const RATE: i64 = 5;
/// One of this many participants fails, half-way through its stay.
const FAILS: u32 = 50;
/// Set in the child process whose memory is measured.
const CHILD: &str = "THRONG_DAY_OF_SECONDS";

struct Day {
    seconds: i64,
    /// Intended stay of a participant.
    stay_s: i64,
    /// Interval of track reports, which are most of the cost of the test.
    every_s: i64,
}

/// Cost of a part of the day.
#[derive(Clone, Copy, Debug)]
struct Cost {
    rss_kib: u64,
    /// Per second, microseconds.
    cpu_us: f64,
}

/// What the collector wrote.
#[derive(Default)]
struct WrittenRows {
    participants: u64,
    tracks: u64,
    last_crowd: CrowdRow,
    last_experience: ExperienceRow,
}

fn collector(day: &Day) -> (Collector, mpsc::Receiver<Row>) {
    let join = |id: i64| Join {
        participant: ParticipantId(id as u32),
        cohort: CohortId(0),
        place: id as u32,
        at: RunTime(id * 1_000_000 / RATE),
        leave_at: Some(RunTime(id * 1_000_000 / RATE + day.stay_s * 1_000_000)),
        others_follow: false,
        source_ip: None,
    };
    let plan: Arc<[Join]> = (0..day.seconds * RATE).map(join).collect();
    let control = Control::new(Vec::<Arc<Waker>>::new(), plan.len() as u32);
    let (rows, written) = mpsc::sync_channel(1 << 10);
    let config = CollectorConfig {
        addresses: Arc::default(),
        clock: RunClock { start: Instant::now() },
        ends_at: RunTime(day.seconds * 1_000_000),
        cohorts: 1,
        plan,
        worst: 5,
        guards: Guards::default(),
        bad_if: BadIf::default(),
        secrets: Vec::new(),
        control: Arc::new(control),
        live: Arc::default(),
        rows,
    };
    (Collector::new(config), written)
}

/// A second of a track; delays differ from second to second, as those of real ones do.
fn interval(track: u16, kind: MediaKind, ended_at: Instant, second: i64) -> TrackInterval {
    let counters = TrackCounters {
        packets_original: 90,
        payload_bytes: 90_000,
        wire_bytes: 95_000,
        frames_complete: 30,
        frames_decodable: 30,
        active_us: 1_000_000,
        ..TrackCounters::default()
    };
    let spread = |n: u32| 4_000 + u32::from(track) * 700 + (second as u32 * 37 + n * 311) % 9_000;
    TrackInterval {
        track: TrackId(track),
        kind,
        ended_at,
        counters,
        jitter_us: Some(900),
        relative_delay_us: (0..30).map(spread).collect(),
        absolute_delay_us: Vec::new(),
        capture_basis: None,
        oven_rtc_tester_delay_us: Some(300),
        source_fps: (kind == MediaKind::Video).then_some(30.0),
        picture_lines: None,
        missing: None,
        first_frame_awaited_since: None,
        frames_due_us: if kind == MediaKind::Video { 1_000_000 } else { 0 },
    }
}

impl Day {
    /// The events of the threads in `second`.
    fn tell(&self, collector: &mut Collector, second: i64) {
        let clock = collector.config.clock;
        let at = |ms: i64| clock.instant(RunTime(second * 1_000_000 + ms * 1_000));
        let observed = |id: i64, at: Instant, observation: Observation| DriverEvent::Observed {
            id: id as u32,
            at,
            observation,
        };
        for id in (second * RATE..(second + 1) * RATE).filter(|id| *id < self.seconds * RATE) {
            collector.take(DriverEvent::Started { id: id as u32, at: at(1) });
            let address = SocketAddr::from(([127, 0, 0, 1], 9));
            collector.take(DriverEvent::LocalAddress { id: id as u32, address });
            for phase in [Phase::DtlsConnected, Phase::FirstPacket, Phase::FirstFrame] {
                collector.take(observed(id, at(200), Observation::Reached(phase, at(200))));
            }
            for (track, kind, codec) in
                [(0, MediaKind::Video, Codec::Vp8), (1, MediaKind::Audio, Codec::Opus)]
            {
                let track = TrackId(track);
                let opened = Observation::TrackOpened { track, kind, codec, is_recording: false };
                collector.take(observed(id, at(150), opened));
            }
        }
        let oldest = ((second - self.stay_s) * RATE).max(0);
        let fails = |id: &i64| *id as u32 % FAILS == 7;
        let plays = |id: &i64| !fails(id) || second - id / RATE < self.stay_s / 2;
        let reports = |id: &i64| id / RATE % self.every_s == second % self.every_s;
        for id in (oldest..second * RATE).filter(|id| reports(id) && plays(id)) {
            for (track, kind) in [(0, MediaKind::Video), (1, MediaKind::Audio)] {
                let interval = interval(track, kind, at(900), second);
                collector.take(observed(id, at(900), Observation::Interval(Box::new(interval))));
            }
        }
        let halfway = second - self.stay_s / 2;
        for id in (halfway * RATE..(halfway + 1) * RATE).filter(|id| *id >= 0 && fails(id)) {
            let failure = throng_observation::Failure::new(FailureReason::Ice, "no pair");
            collector.take(DriverEvent::Ended {
                id: id as u32,
                at: at(950),
                outcome: Outcome::Failed(failure),
            });
        }
        let gone = second - self.stay_s;
        for id in (gone * RATE..(gone + 1) * RATE).filter(|id| *id >= 0 && !fails(id)) {
            collector.take(DriverEvent::Ended {
                id: id as u32,
                at: at(1),
                outcome: Outcome::Completed,
            });
        }
    }

    /// Plays the day; returns the cost of its second tenth and of its last tenth.
    fn play(&self) -> (Cost, Cost, WrittenRows) {
        let (mut collector, written) = collector(self);
        let reader = std::thread::spawn(move || {
            let mut rows = WrittenRows::default();
            for row in written {
                match row {
                    // The row of a participant is written repeatedly; the last one counts.
                    Row::Participant(row) => rows.participants += u64::from(row.ended_at.is_some()),
                    Row::Track(_) => rows.tracks += 1,
                    Row::Crowd(row) => rows.last_crowd = row,
                    Row::SecondClosed(closed) => {
                        rows.last_experience =
                            closed.experience.last().copied().unwrap_or(rows.last_experience);
                    }
                    _ => {}
                }
            }
            rows
        });
        let tenth = self.seconds / 10;
        let (mut costs, mut began) = (Vec::new(), cpu());
        for second in 0..self.seconds {
            self.tell(&mut collector, second);
            let closed_at = RunTime((second + 1) * 1_000_000 + CLOSED_AFTER_US);
            collector.close_second(closed_at);
            let there = (self.stay_s + 20) * RATE;
            let kept = collector.participants.iter().count() as i64;
            assert!(kept <= there, "{kept} are remembered where {there} may be there");
            if (second + 1) % tenth == 0 {
                let spent = cpu() - began;
                costs.push(Cost {
                    rss_kib: rss_kib("VmRSS"),
                    cpu_us: spent.as_secs_f64() * 1e6 / tenth as f64,
                });
                began = cpu();
            }
        }
        drop(collector);
        (costs[1], *costs.last().unwrap(), reader.join().unwrap())
    }

    /// Compares the written rows with the plan.
    fn check(&self, rows: &WrittenRows) {
        let visits = self.seconds * RATE;
        let gone = (self.seconds - self.stay_s) * RATE;
        let crowd = rows.last_crowd;
        assert_eq!((i64::from(crowd.intended), i64::from(crowd.started)), (visits, visits));
        let failed = (0..(self.seconds - self.stay_s / 2) * RATE)
            .filter(|id| *id as u32 % FAILS == 7)
            .count();
        assert_eq!(crowd.failed as usize, failed);
        let failed_and_gone = (0..gone).filter(|id| *id as u32 % FAILS == 7).count() as i64;
        assert_eq!(i64::from(crowd.left), gone - failed_and_gone);
        // A failed participant counts as bad until its planned leave, also after its record is
        // dropped.
        let lost = failed as i64 - failed_and_gone;
        let bad = i64::from(
            rows.last_experience.clauses[throng_observation::Clause::NotConnected as usize],
        );
        assert!((bad - lost).abs() <= 1, "{bad} of {lost} who failed are missed");
        assert_eq!(rows.participants as i64, gone + lost);
        assert!(rows.tracks as i64 >= 2 * gone - 2 * RATE * self.every_s, "{} tracks", rows.tracks);
    }
}

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A line of `/proc/self/status`.
fn rss_kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}

/// Plays a day in a process of its own, whose memory holds nothing else, and judges it there.
#[expect(clippy::print_stdout, reason = "the figures of docs/measurements/report.md")]
fn in_a_process_of_its_own(test: &str, day: &Day, grows_kib_max: u64) {
    if std::env::var_os(CHILD).is_none() {
        let path = format!("collector::day_tests::{test}");
        let child = Command::new(std::env::current_exe().unwrap())
            .args([&path, "--exact", "--nocapture", "--include-ignored"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&child.stdout),
            String::from_utf8_lossy(&child.stderr)
        );
        println!("{said}");
        assert!(child.status.success() && said.contains("peak RSS"), "{said}");
        return;
    }
    crate::memory::share_one_arena();
    let (early, late, rows) = day.play();
    let peak = rss_kib("VmHWM");
    println!(
        "{} visits, {} there at a time: peak RSS {} MB; a second cost {:.0} µs in the second tenth, {:.0} µs in the last",
        day.seconds * RATE,
        day.stay_s * RATE,
        peak / 1024,
        early.cpu_us,
        late.cpu_us
    );
    day.check(&rows);
    let grown = late.rss_kib.saturating_sub(early.rss_kib);
    assert!(
        grown <= grows_kib_max,
        "{grown} KiB more are taken in the last tenth than in the second"
    );
    assert!(late.cpu_us < 2.0 * early.cpu_us, "{early:?} {late:?}");
}

#[test]
fn the_cost_of_a_run_depends_on_its_current_participants() {
    let day = Day { seconds: 3_000, stay_s: 40, every_s: 4 };
    in_a_process_of_its_own(
        "the_cost_of_a_run_depends_on_its_current_participants",
        &day,
        4 * 1024,
    );
}

mod long {
    use super::*;

    #[test]
    #[ignore = "make proof"]
    fn four_hundred_thousand_visits_take_the_memory_of_a_thousand() {
        let day = Day { seconds: 80_000, stay_s: 200, every_s: 10 };
        let name = "long::four_hundred_thousand_visits_take_the_memory_of_a_thousand";
        in_a_process_of_its_own(name, &day, 8 * 1024);
    }
}
