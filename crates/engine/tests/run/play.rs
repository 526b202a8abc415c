//! Plays a run of echoing participants and gathers its rows.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use throng_engine::{Join, RunConfig, RunEnd, run};
use throng_observation::run::{
    CohortId, CrowdRow, EventRow, GeneratorRow, ParticipantId, ParticipantRow, Row,
};
use throng_observation::{FailureReason, RunTime};

use crate::echo::{Echo, EchoTask};

/// The observed rows and events of a run.
pub(crate) struct PlayedRun {
    pub(crate) end: RunEnd,
    pub(crate) participants: BTreeMap<u32, ParticipantRow>,
    pub(crate) crowd: Vec<CrowdRow>,
    pub(crate) events: Vec<EventRow>,
    pub(crate) received: u64,
    pub(crate) health: Vec<GeneratorRow>,
}

/// Runs one participant per entry of `asks`, `every_ms` apart, for `for_ms`.
pub(crate) fn play(
    asks: Vec<EchoTask>,
    every_ms: i64,
    for_ms: i64,
    change: impl FnOnce(&mut RunConfig),
) -> PlayedRun {
    let joins = (0..asks.len() as u32)
        .map(|n| Join {
            participant: ParticipantId(n),
            cohort: CohortId(0),
            place: n,
            at: RunTime(i64::from(n) * every_ms * 1000),
            leave_at: None,
            others_follow: false,
            source_ip: None,
        })
        .collect();
    let mut config = RunConfig::new(
        joins,
        RunTime(for_ms * 1000),
        Arc::new(|_, to: SocketAddr| to.ip().is_loopback()),
    );
    config.connect_timeout = Duration::from_millis(700);
    config.grace = Duration::from_millis(500);
    change(&mut config);
    let (rows, written) = mpsc::sync_channel(10_000);
    let factory = move |join: &Join| -> Box<dyn throng_protocol::participant::Participant> {
        Box::new(Echo::new(asks[join.participant.0 as usize].clone()))
    };
    let handle = run(config, Arc::new(factory), rows).unwrap();
    let mut seen = PlayedRun {
        end: handle.wait(),
        participants: BTreeMap::new(),
        crowd: Vec::new(),
        events: Vec::new(),
        received: 0,
        health: Vec::new(),
    };
    for row in written {
        match row {
            Row::Participant(row) => drop(seen.participants.insert(row.participant.0, *row)),
            Row::Crowd(row) => seen.crowd.push(row),
            Row::Event(row) => seen.events.push(row),
            Row::Series(row) => seen.received += row.counters.packets_original,
            Row::Generator(row) => seen.health.push(row),
            Row::Track(_)
            | Row::Sent(_)
            | Row::Playback(_)
            | Row::Chat(_)
            | Row::Player(_)
            | Row::HttpRequests(_)
            | Row::LayerSwitch(_)
            | Row::SecondClosed(_)
            | Row::Hold(_)
            | Row::Canary(_)
            | Row::Host(_) => {}
        }
    }
    seen
}

/// Why participant number `who` failed.
pub(crate) fn reason(seen: &PlayedRun, who: u32) -> Option<&FailureReason> {
    seen.participants[&who].failure()
}

/// How often events of `kind` happened.
pub(crate) fn times(seen: &PlayedRun, kind: &str) -> u32 {
    seen.events.iter().filter(|event| event.kind == kind).map(|event| event.count).sum()
}
