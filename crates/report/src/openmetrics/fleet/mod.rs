//! The workers of a fleet: how it goes for each by the coordinator's ledger, and what its generator
//! used by the rows of the run.

mod declared;
mod worker;

pub(super) use declared::ALL;

use throng_observation::fleet::{FleetNow, ReassignedJoins, WorkerFate, WorkerInfo, WorkerNow};
use throng_observation::host::catalogue::Together;
use throng_observation::run::Row;
use throng_observation::untrusted;

use super::bounded::OTHER;
use super::declared::Declared;
use super::exposition::{Exposition, Value};
use super::family::Family;
use super::shown::{Shown, add};
use worker::Worker;

/// Workers with series of their own, by number; of further ones there is the sum, or the largest.
const WORKERS_MAX: usize = 50;

/// A figure of one worker; `None` where it has none now.
type Figure = fn(&Worker, &WorkerNow) -> Option<f64>;

/// The figures of a worker, and what those of several come to.
const OF_WORKER: [(&Declared, Together, Figure); 11] = [
    (&declared::LOST, Together::Largest, |_, now| {
        Some(f64::from(u8::from(now.fate == WorkerFate::Lost)))
    }),
    (&declared::PLAYING, Together::Sum, |_, now| Some(f64::from(now.playing))),
    (&declared::OFFSET, Together::Farthest, |worker, now| there(now, worker.clock_offset_s())),
    (&declared::CLOCK_ERROR, Together::Largest, |worker, now| there(now, worker.clock_error_s())),
    (&declared::ROWS_AGE, Together::Largest, |_, now| there(now, now.rows_age_us as f64 / 1e6)),
    (&declared::SILENT, Together::Largest, |_, now| there(now, now.silent_us as f64 / 1e6)),
    (&declared::CPU, Together::Largest, |worker, now| {
        worker.cpu_ratio().and_then(|ratio| there(now, ratio))
    }),
    (&declared::HOTTEST, Together::Largest, |worker, now| {
        worker.hottest_ratio().and_then(|ratio| there(now, ratio))
    }),
    (&declared::LIMITED, Together::Sum, |worker, _| Some(worker.limited_s() as f64)),
    (&declared::SPOOLED, Together::Sum, |_, now| there(now, now.spooled_bytes as f64)),
    (&declared::GIVEN_UP, Together::Sum, |worker, _| Some(worker.given_up_batches() as f64)),
];

/// What is only of a worker of which something is still to come.
fn there(now: &WorkerNow, figure: f64) -> Option<f64> {
    now.fate.is_there().then_some(figure)
}

/// All figures of the workers of a run.
#[derive(Debug)]
pub(super) struct FleetFigures {
    /// By number.
    workers: Vec<Worker>,
    /// As the coordinator knew it last; `None` before the run.
    now: Option<FleetNow>,
}

impl FleetFigures {
    /// Those of the workers that a run has; `None` where this process plays it.
    pub(super) fn new(workers: &[WorkerInfo]) -> Option<Self> {
        let label = |number: usize, name: &str| {
            if number < WORKERS_MAX { untrusted::name(name).into_owned() } else { OTHER.to_owned() }
        };
        let workers: Vec<Worker> = (0..)
            .zip(workers)
            .map(|(number, info)| Worker::new(label(number, &info.name), info.clone()))
            .collect();
        (!workers.is_empty()).then_some(Self { workers, now: None })
    }

    /// How it goes for them now.
    pub(super) fn set(&mut self, now: FleetNow) {
        for (worker, now) in self.workers.iter_mut().zip(&now.workers) {
            worker.set(now);
        }
        self.now = Some(now);
    }

    /// Takes a merged row of the run.
    pub(super) fn take(&mut self, row: &Row) {
        if let Row::Generator(row) = row {
            if let Some(worker) = self.workers.get_mut(usize::from(row.worker)) {
                worker.take(row);
            }
        } else if let Row::SecondClosed(_) = row {
            self.workers.iter_mut().for_each(Worker::close);
        }
    }

    pub(super) fn add_to(&self, out: &mut Exposition) {
        let Some(now) = &self.now else { return };
        let states = WorkerFate::ALL.map(|fate| {
            let count = now.workers.iter().filter(|worker| worker.fate == fate).count();
            (vec![("state", fate.key().to_owned())], Value::Number(count as f64))
        });
        out.add(Family::of(&declared::WORKERS), states);
        let ReassignedJoins { anew, planned } = now.reassigned;
        let joins = [("anew", anew), ("planned", planned)]
            .map(|(join, count)| (vec![("join", join.to_owned())], Value::Number(count as f64)));
        out.add(Family::of(&declared::REASSIGNED), joins);
        for (family, together, figure) in OF_WORKER {
            let mut shown = Shown::new();
            for (worker, now) in self.workers.iter().zip(&now.workers) {
                if let Some(value) = figure(worker, now) {
                    add(together, &mut shown, worker.labels(), value);
                }
            }
            let series = shown.into_iter().map(|(labels, value)| (labels, Value::Number(value)));
            out.add(Family::of(family), series);
        }
    }
}
