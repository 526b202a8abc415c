//! What a run keeps of its scenario, so that its report reads none.

use throng_observation::run::CohortId;
use throng_observation::{PlannedCohort, PlannedJoin, RunPlan, RunTime};

use crate::destination::Destination;
use crate::plan::Join;
use crate::role::{PublishConfig, Role, Subscription};
use crate::run::Stream;
use crate::scenario::{Cohort, Scenario};
use crate::target::{Carriage, Part};

impl Scenario {
    /// What a report needs of the plan.
    #[must_use]
    pub fn run_plan(&self) -> RunPlan {
        // Room after room, as cohorts are numbered.
        let all = self.destinations().into_iter().zip(self.cohorts());
        let all = all.zip(self.crowd.iter().cycle()).zip((0..=u16::MAX).map(CohortId));
        let cohorts = all.map(|(((destination, (_, role)), of_file), cohort)| PlannedCohort {
            cohort,
            ..does(&self.stream, &destination, &role, of_file)
        });
        // Other runs count nothing by who was to be there.
        let is_conference = self.target.part() == Part::Confer;
        let joins = if is_conference { self.plan().joins } else { Vec::new() };
        RunPlan {
            warm_up_us: u64::try_from(self.run.warm_up.as_micros()).unwrap_or(u64::MAX),
            objectives: self.objectives.iter().map(|objective| objective.text.clone()).collect(),
            cohorts: cohorts.collect(),
            joins: joins.iter().map(planned_join).collect(),
        }
    }

    /// The same of the scenario that a run was stored with, for folders of versions that kept no
    /// more; `None` where it cannot be read.
    #[must_use]
    pub fn run_plan_of_stored(text: &str) -> Option<RunPlan> {
        Self::parse_stored(text).ok().map(|scenario| scenario.run_plan())
    }
}

/// What participants with this role do at this destination.
fn does(
    stream: &Stream,
    destination: &Destination,
    role: &Role,
    of_file: &Cohort,
) -> PlannedCohort {
    let protocol = destination.target.protocol();
    let part = protocol.part();
    // A role has something to send by default, which viewers do not.
    let sends = matches!(part, Part::Confer | Part::Publish);
    let sent = role.publish.as_ref().filter(|_| sends);
    // A teacher may send only, in a conference.
    let receives = part != Part::Confer || role.subscribe != Subscription::NONE;
    let only_publishes = part == Part::Publish || (!receives && sent.is_some());
    PlannedCohort {
        cohort: CohortId(0),
        room: role.room,
        size: of_file.size,
        has_own_url: of_file.target.is_some(),
        confers: part == Part::Confer,
        only_publishes,
        watches: !only_publishes && part != Part::Chat,
        plays_from_buffer: protocol.carriage() == Carriage::Http,
        loads_page: part == Part::Visit || role.player.recorded_page.is_some(),
        is_in_chat: role.is_in_chat(protocol),
        sends_video: sent.is_some_and(PublishConfig::has_video),
        sends_audio: sent.is_some_and(|sent| sent.audio),
        sends_layers: sent.is_some_and(|sent| !sent.simulcast.is_empty()),
        video: role.subscribe.video,
        audio: role.subscribe.audio,
        vcards: role.chat.vcards,
        sent_bps: sent.map_or(Some(0.0), |_| stream.sent_bps(role)),
    }
}

fn planned_join(join: &Join) -> PlannedJoin {
    PlannedJoin {
        participant: join.participant,
        cohort: join.cohort,
        intended_at: RunTime::after_start(join.at),
        leave_at: join.leave_at.map(RunTime::after_start),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use throng_observation::run::ParticipantId;
    use throng_observation::{SubscribePolicy, VcardPolicy};

    use super::*;

    fn plan(text: &str) -> RunPlan {
        let kept = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let plan = kept.run_plan();
        // A folder that has the text alone says the same.
        assert_eq!(Scenario::run_plan_of_stored(&kept.to_toml()), Some(plan.clone()));
        plan
    }

    #[test]
    fn cohorts_are_what_their_participants_do() {
        let chat = "xmpp+ws://127.0.0.1:5280/ws?room=stage@room.localhost";
        let plan = plan(&format!(
            "objectives = [\"failed  <  5%\"]\n\
             [target]\nurl = \"https://127.0.0.1:5280/live.m3u8\"\n\
             [run]\nduration = \"20s\"\nwarm_up = \"1500ms\"\n\
             [[crowd]]\nname = \"talks\"\nsize = 3\n\
             chat = {{ url = \"{chat}\", vcards = \"all\" }}\n\
             [[crowd]]\nname = \"webrtc\"\nsize = 2\nurl = \"whep+http://127.0.0.1:5280/whep\"\n\
             [[crowd]]\nname = \"camera\"\nsize = 1\nurl = \"whip+http://127.0.0.1:5280/whip\"\n\
             [[crowd]]\nname = \"reads\"\nsize = 1\nurl = \"{chat}\"\n"
        ));
        assert_eq!(plan.warm_up(), Duration::from_millis(1_500));
        assert_eq!(plan.objectives, ["failed < 5%"]);
        assert_eq!((plan.rooms(), plan.users(), plan.joins.len()), (1, 7, 0));
        let [talks, webrtc, camera, reads] = plan.cohorts.as_slice() else {
            panic!("{:?}", plan.cohorts)
        };
        assert_eq!((talks.cohort, reads.cohort), (CohortId(0), CohortId(3)));
        assert!(talks.watches && talks.plays_from_buffer && talks.is_in_chat);
        assert_eq!((talks.size, talks.vcards, talks.has_own_url), (3, VcardPolicy::All, false));
        assert!(webrtc.watches && !webrtc.plays_from_buffer && !webrtc.is_in_chat);
        assert!(webrtc.has_own_url && !webrtc.confers && !webrtc.sends());
        assert!(camera.only_publishes && !camera.watches && camera.sends());
        assert!(!reads.watches && reads.is_in_chat && !reads.only_publishes);
    }

    #[test]
    fn a_conference_has_its_visits_and_what_each_sends() {
        let plan = plan(
            "[target]\nurl = \"janus+ws://127.0.0.1:8188/videoroom/7\"\nrooms = 2\n\
             [run]\nduration = \"60s\"\n\
             [[crowd]]\nname = \"teacher\"\nsize = 1\nsubscribe = \"none\"\n\
             publish = { simulcast = [\"144p\", \"240p\"] }\n\
             [[crowd]]\nname = \"pupils\"\nsize = 2\nstay = \"4s\"\narrival = { every = \"3s\" }\n\
             publish = { video = \"lesson.mjr\" }\nsubscribe = { video = \"last_speakers(2)\" }\n\
             [conversation]\n",
        );
        assert_eq!((plan.rooms(), plan.users(), plan.cohorts.len()), (2, 6, 4));
        let (teacher, pupils) = (plan.cohorts[2], plan.cohorts[3]);
        assert_eq!((teacher.room, pupils.room, pupils.cohort), (1, 1, CohortId(3)));
        assert!(teacher.confers && teacher.only_publishes && teacher.sends_layers);
        assert!(teacher.sent_bps.is_some_and(|bps| bps > 320e3), "{teacher:?}");
        // The rate of a recording is its own.
        assert!(pupils.watches && !pupils.sends_layers && pupils.sent_bps.is_none(), "{pupils:?}");
        assert_eq!(pupils.video, SubscribePolicy::LastSpeakers(2));
        let numbers: Vec<u32> = plan.joins.iter().map(|join| join.participant.0).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
        let left = plan.joins.iter().find(|join| join.leave_at.is_some()).unwrap();
        assert_eq!(left.leave_at, Some(RunTime(left.intended_at.0 + 4_000_000)));
        assert_eq!(plan.join_of(ParticipantId(0), plan.joins[0].cohort), plan.joins.first());
    }

    #[test]
    fn what_cannot_be_read_has_no_plan() {
        assert_eq!(Scenario::run_plan_of_stored("rubbish"), None);
        assert_eq!(Scenario::run_plan_of_stored(""), None);
    }
}
