//! The engine of a worker while it plays: what the coordinator wants of it is done.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use throng_engine::{NewParticipant, RunHandle};
use throng_fleet::message::CrowdChange;
use throng_fleet::{Part, Wanted};
use throng_observation::run::{ParticipantId, ParticipantRow, Row};
use throng_observation::{Failure, FailureReason, Outcome};
use throng_scenario::Plan;

use super::share::Share;
use crate::console::Interrupt;
use crate::fleet::feed::{Due, Feed};

/// How often the worker looks what is wanted.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Does what the coordinator wants, until the engine has finished.
pub(super) fn supervise(
    handle: &RunHandle,
    part: &Part,
    share: &Share,
    mut feed: Option<Feed>,
    rows: SyncSender<Row>,
    interrupt: &Interrupt,
) {
    let users_max = share.users_max();
    let mut ids = BTreeMap::new();
    let mut is_stopping = false;
    while !handle.is_finished() {
        let Wanted { stop, changes, reassigned } = part.wanted();
        for change in changes {
            match change {
                CrowdChange::Add { .. } if ids.len() >= users_max => {
                    handle.stop_because(
                        "the coordinator asked for more participants than this worker may play",
                    );
                }
                CrowdChange::Add { participant, cohort, place, at, source_ip } => {
                    let new = NewParticipant {
                        participant: Some(participant),
                        cohort,
                        place,
                        at,
                        source_ip,
                    };
                    ids.insert(participant, handle.add_participant(new));
                }
                CrowdChange::Remove(participant) => {
                    let id: Option<ParticipantId> = ids.remove(&participant);
                    id.into_iter().for_each(|id| handle.remove_participant(id));
                }
                CrowdChange::JudgeBeyond(unloaded) => handle.judge_beyond(unloaded),
            }
        }
        let stop =
            stop.or_else(|| interrupt.is_set().then(|| "the worker was interrupted".to_owned()));
        if let Some(why) = stop.filter(|_| !is_stopping) {
            is_stopping = true;
            handle.stop_because(&why);
        }
        if let Some(feed) = feed.as_mut().filter(|_| !is_stopping) {
            reassigned.iter().for_each(|reassignment| feed.reassigned(reassignment));
            for due in feed.due(handle.now()) {
                give(due, handle, &share.whole, &mut ids, &rows);
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
    // The part ends once all senders of rows are gone.
    drop(rows);
}

/// Gives the engine a join or a leave.
fn give(
    due: Due,
    handle: &RunHandle,
    plan: &Plan,
    ids: &mut BTreeMap<ParticipantId, ParticipantId>,
    rows: &SyncSender<Row>,
) {
    match due {
        Due::Join(dealt) => {
            let Some(join) = plan.joins.get(dealt.planned.0 as usize) else { return };
            let new = NewParticipant {
                participant: Some(dealt.visit.participant),
                cohort: join.cohort,
                place: join.place,
                at: dealt.visit.at,
                source_ip: join.source_ip,
            };
            ids.insert(dealt.visit.participant, handle.add_participant(new));
        }
        Due::Leave(participant) => {
            let id = ids.remove(&participant);
            id.into_iter().for_each(|id| handle.remove_participant(id));
        }
        Due::NotStarted(dealt, why) => {
            let at = dealt.visit.at;
            let row = ParticipantRow {
                participant: dealt.visit.participant,
                cohort: dealt.visit.cohort,
                intended_at: at,
                reached: BTreeMap::new(),
                ended_at: Some(at),
                outcome: Some(Outcome::Failed(Failure::new(FailureReason::NotStarted, why))),
                local_address: None,
            };
            let _ = rows.send(Row::Participant(Box::new(row)));
        }
    }
}
