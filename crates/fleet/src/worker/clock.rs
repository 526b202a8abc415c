//! Keeps the difference between this worker's clock and the coordinator's: asks for the time before
//! the start and each second of the run. With the time comes what the coordinator's host says of
//! its clock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::FleetError;
use crate::bus::{Bus, Subjects};
use crate::clock::{ClockFilter, Exchange};
use crate::disciplined::{ClockWord, combined};
use crate::host_clock::HostClock;
use crate::message::{ClockSaid, TimeAsked, TimeSaid, read, write};
use crate::steady_clock::SteadyClock;

/// Exchanges before the start: the shortest round trip among so many is close to the path's own.
const EXCHANGES_BEFORE: usize = 20;

/// Time between them.
const PACE: Duration = Duration::from_millis(50);

/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// Exchanges that may fail before the start.
const FAILURES_MAX: usize = 10;

/// The clocks of a worker.
#[derive(Clone)]
pub(super) struct ClockKeeper {
    /// Its steady clock.
    pub(super) steady: SteadyClock,
    host: HostClock,
    state: Arc<Mutex<State>>,
}

struct State {
    filter: ClockFilter,
    /// How far the wall clock was ahead of the steady one when that was last looked at,
    /// microseconds.
    wall_ahead_us: i64,
    steps: u32,
    /// What the coordinator's host said of its clock, and when.
    theirs: Option<(ClockWord, Instant)>,
}

impl ClockKeeper {
    pub(super) fn new(steady: SteadyClock, host: HostClock) -> Self {
        let state = State { filter: ClockFilter::new(), wall_ahead_us: 0, steps: 0, theirs: None };
        Self { steady, host, state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known now.
    pub(super) fn said(&self) -> ClockSaid {
        let word = self.host.word(&self.steady);
        let state = self.lock();
        let unknown =
            ClockSaid { bound_us: u64::MAX, steps: state.steps, word, ..ClockSaid::default() };
        let Some(by_exchanges) = state.filter.offset_at(self.steady.us()) else { return unknown };
        let theirs = state.theirs.map(|(word, said_at)| word.aged(said_at.elapsed()));
        let (offset, basis) = combined(by_exchanges, word.zip(theirs));
        ClockSaid {
            offset_us: offset.offset_us,
            bound_us: offset.bound_us,
            round_trip_us: state.filter.round_trip_us_min().unwrap_or(0),
            basis,
            ..unknown
        }
    }

    /// One exchange.
    async fn ask(&self, bus: &Bus, subjects: &Subjects) -> Result<(), FleetError> {
        self.look_for_steps();
        let sent_us = self.steady.us();
        let asked = bus.client.request(subjects.time(), write(&TimeAsked { sent_us }));
        let answer = match tokio::time::timeout(ANSWER_WITHIN, asked).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(FleetError::Bus(error.to_string())),
            Err(_) => return Err(FleetError::Bus("the coordinator did not tell its time".into())),
        };
        let back_us = self.steady.us();
        let said = read::<TimeSaid>("the coordinator's time", &answer.payload);
        let said = said.map_err(|error| FleetError::Bus(error.to_string()))?;
        let exchange =
            Exchange { t1: sent_us, t2: said.received_us, t3: said.sent_us, t4: back_us };
        let mut state = self.lock();
        state.filter.add(exchange);
        state.theirs = said.word.map(|word| (word, Instant::now()));
        Ok(())
    }

    /// Counts steps of the wall clock.
    fn look_for_steps(&self) {
        let ahead_us = self.steady.wall_step_us().unwrap_or(0);
        let mut state = self.lock();
        if (ahead_us - state.wall_ahead_us).abs() >= crate::steady_clock::STEP_US {
            state.wall_ahead_us = ahead_us;
            state.steps += 1;
        }
    }

    /// Goes on asking, once a second, until the task is dropped.
    pub(super) async fn keep(self, bus: Bus, subjects: Subjects) {
        loop {
            // A coordinator that is silent is told by its beats; the bound grows with the age of
            // what is known.
            let _ = self.ask(&bus, &subjects).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

/// Measures the clocks before the start.
pub(super) async fn measure(
    bus: &Bus,
    subjects: &Subjects,
    keeper: &ClockKeeper,
) -> Result<(), FleetError> {
    let (mut done, mut failed) = (0, 0);
    while done < EXCHANGES_BEFORE {
        match keeper.ask(bus, subjects).await {
            Ok(()) => done += 1,
            Err(error) if failed >= FAILURES_MAX => return Err(error),
            Err(_) => failed += 1,
        }
        tokio::time::sleep(PACE).await;
    }
    Ok(())
}
