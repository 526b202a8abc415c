//! The rows that the collector of a process writes: of the one process, or of a worker and its
//! share.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};

use http::Method;
use throng_net::Waker;
use throng_observation::run::{GeneratorRow, Row};
use throng_observation::{BadIf, HttpRequestCounters, RequestOutcome, RunTime};

use super::crowd::{COHORTS, ENDED_AT, ENDS_AT, PEOPLE, S, join, worker_of};
use super::observations::{Told, What};
use crate::clock::RunClock;
use crate::collector::{CLOSED_AFTER_US, Collector, CollectorConfig};
use crate::config::{Guards, Join};
use crate::control::Control;
use crate::driver::DriverEvent;
use crate::requests::{RequestKind, RequestTable};

/// Health of a worker, or of the one process with its two threads. Figures differ by so little that
/// a sentence that names them rounds them to the same, and none is past a limit.
fn health(worker: Option<usize>, second: i64) -> Vec<GeneratorRow> {
    let (threads, shift) = worker.map_or((2, 0), |worker| (1, worker as u64 + 1));
    let process = GeneratorRow {
        second,
        cpu_us: 500_000 + 10_000 * shift,
        rss_bytes: (50 + shift) << 20,
        steal_ratio: 0.001 * (shift + 1) as f64,
        ..GeneratorRow::default()
    };
    let thread = |number| GeneratorRow {
        second,
        thread: Some(number),
        cpu_us: 300_000 + 1_000 * shift,
        lag_p99_us: 1_000 + 10 * shift,
        ..GeneratorRow::default()
    };
    (0..threads).map(thread).chain([process]).collect()
}

fn tell(collector: &mut Collector, id: u32, told: &Told) {
    let at = collector.config.clock.instant(told.at);
    let event = match told.what.clone() {
        What::Started => DriverEvent::Started { id, at },
        What::Address => {
            DriverEvent::LocalAddress { id, address: SocketAddr::from(([127, 0, 0, 1], 9)) }
        }
        What::Observed(observation) => DriverEvent::Observed { id, at, observation },
        What::RefusedSend => {
            DriverEvent::RefusedSend { id, at, to: SocketAddr::from(([10, 0, 0, 7], 9)) }
        }
        What::Ended(outcome) => DriverEvent::Ended { id, at, outcome },
        What::Requested { path, status, bytes } => {
            let (mut table, method) = (RequestTable::default(), Method::GET);
            let kind = RequestKind {
                method: &method,
                outcome: RequestOutcome::Status(status),
                version: 2,
            };
            let counters = HttpRequestCounters {
                requests: 1,
                body_bytes: bytes,
                ..HttpRequestCounters::default()
            };
            table.add(("live.example", &path), kind, (counters, at, at));
            DriverEvent::Requests(table)
        }
    };
    collector.take(event);
}

/// The rows of a process that plays all of the crowd or a worker's share of it, as they come second
/// by second.
pub(super) fn collected(clock: RunClock, told: &[Told], worker: Option<usize>) -> Vec<Vec<Row>> {
    let is_its = |number: u32| worker.is_none_or(|worker| worker_of(number) == worker);
    let ended_at = worker.map_or(ENDED_AT[2], |worker| ENDED_AT[worker]);
    let plan: Arc<[Join]> = (0..PEOPLE).filter(|number| is_its(*number)).map(join).collect();
    let ids: BTreeMap<u32, u32> = plan.iter().map(|join| join.participant.0).zip(0..).collect();
    let (rows, written) = mpsc::sync_channel(1 << 16);
    let mut collector = Collector::new(CollectorConfig {
        addresses: Arc::default(),
        clock,
        ends_at: ENDS_AT,
        cohorts: COHORTS.len() as u16,
        control: Arc::new(Control::new(Vec::<Arc<Waker>>::new(), plan.len() as u32)),
        plan,
        worst: 5,
        guards: Guards::default(),
        bad_if: BadIf::default(),
        secrets: Vec::new(),
        live: Arc::default(),
        rows,
    });
    let mut story = told.iter().filter(|told| is_its(told.number)).peekable();
    let mut by_second: Vec<Vec<Row>> = Vec::new();
    for second in 0.. {
        let closed_at = RunTime((second + 1) * S + CLOSED_AFTER_US);
        while let Some(told) = story.next_if(|told| told.at < closed_at) {
            tell(&mut collector, ids[&told.number], told);
        }
        health(worker, second).into_iter().for_each(|row| collector.take(DriverEvent::Health(row)));
        if closed_at > ended_at {
            break;
        }
        collector.close_second(closed_at);
        by_second.push(written.try_iter().collect());
    }
    assert!(story.next().is_none(), "all have left");
    collector.finish_at(ended_at);
    by_second.push(written.try_iter().collect());
    by_second
}
