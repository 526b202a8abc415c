//! Participants of a run by role: viewers, publishers, or both; chatters where there is no media.

use throng_observation::units::count;

use crate::summary::Summary;

/// Participants by role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoleCounts {
    pub(crate) publishers: u64,
    pub(crate) viewers: u64,
    /// Whether the viewers are in a chat and in nothing else: then they are called chatters.
    pub(crate) is_chat: bool,
}

impl RoleCounts {
    pub(crate) fn of(summary: &Summary) -> Self {
        let crowd = &summary.participants;
        let publishers = crowd.publishers.min(crowd.intended);
        let viewers = crowd.intended - publishers;
        Self { publishers, viewers, is_chat: summary.is_chat_only() }
    }

    /// All of them: `3 publishers and 1 viewer`.
    pub(crate) fn all(self) -> String {
        let viewers = count(self.viewers, if self.is_chat { "chatters" } else { "viewers" });
        let publishers = count(self.publishers, "publishers");
        match self {
            Self { publishers: 0, .. } => viewers,
            Self { viewers: 0, .. } => publishers,
            _ => format!("{publishers} and {viewers}"),
        }
    }

    /// The noun for one of them.
    pub(crate) fn one(self) -> &'static str {
        self.many().trim_end_matches('s')
    }

    /// The noun for all of them.
    pub(crate) fn many(self) -> &'static str {
        match self {
            Self { publishers: 0, is_chat: true, .. } => "chatters",
            Self { publishers: 0, .. } => "viewers",
            Self { viewers: 0, .. } => "publishers",
            _ => "participants",
        }
    }
}

/// Whether the crowd was of publishers alone, as its scenario says: viewers that received nothing
/// are none.
pub(crate) fn is_send_only(summary: &Summary) -> bool {
    let roles = RoleCounts::of(summary);
    roles.publishers > 0 && roles.viewers == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{example, summarise};
    use std::time::Duration;

    #[test]
    fn publishers_are_distinguished_from_viewers_by_the_scenario() {
        let mut run = example::healthy(5, 20);
        let mut who = |scenario: &str| {
            example::plan(&mut run, scenario);
            let summary = summarise(&run, &[], Duration::ZERO);
            (RoleCounts::of(&summary), summary.headline)
        };
        let whip = "[target]\nurl = \"whip+http://127.0.0.1/a\"\n[crowd]\nsize = 5\n";
        let media = |publishers, viewers| RoleCounts { publishers, viewers, is_chat: false };
        assert_eq!(who(whip).0, media(5, 0));
        assert_eq!(who(&whip.replace("whip+", "whep+")).0, media(0, 5));
        assert_eq!(who("").0, media(0, 5));
        for (row, cohort) in run.participants.iter_mut().zip([1, 0, 0, 1, 1]) {
            row.cohort = throng_observation::run::CohortId(cohort);
        }
        let both = "[target]\nurl = \"whep+http://127.0.0.1/a\"\n[[crowd]]\nsize = 2\nurl = \"whip+http://127.0.0.1/a\"\n[[crowd]]\nsize = 3\n";
        example::plan(&mut run, both);
        let summary = summarise(&run, &[], Duration::ZERO);
        assert_eq!(RoleCounts::of(&summary), media(2, 3));
        assert_eq!(RoleCounts::of(&summary).all(), "2 publishers and 3 viewers");
        assert_eq!(media(1, 0).all(), "1 publisher");
        // Viewers that were all refused are no publishers.
        let mut refused = run.clone();
        refused.series.clear();
        refused.tracks.clear();
        refused.sent = vec![throng_observation::run::SentRow {
            second: 3,
            cohort: throng_observation::run::CohortId(0),
            kind: throng_observation::MediaKind::Video,
            tracks: 2,
            counters: throng_observation::SentCounters {
                wire_bytes: 125_000,
                ..Default::default()
            },
        }];
        for row in refused.participants.iter_mut().filter(|row| row.cohort.0 == 0) {
            row.reached.retain(|phase, _| !throng_observation::Phase::PLAYING.contains(phase));
        }
        for row in refused.participants.iter_mut().filter(|row| row.cohort.0 == 1) {
            let why = throng_observation::FailureReason::HttpStatus(403);
            let why = throng_observation::Failure::new(why, "forbidden");
            row.outcome = Some(throng_observation::Outcome::Failed(why));
            row.reached.clear();
        }
        let refused = summarise(&refused, &[], Duration::ZERO);
        assert_eq!(RoleCounts::of(&refused), media(2, 3));
        assert!(
            refused
                .headline
                .starts_with("2 publishers sent, 0 of 3 viewers played in 20 s; 3 failed"),
            "{}",
            refused.headline
        );
        // A participant that plays nothing waits for no frame.
        assert_eq!((summary.first_frame.reached, summary.connect.reached), (3, 5));
    }
}
