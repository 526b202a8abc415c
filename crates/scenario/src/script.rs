//! What participants of a conference do at moments that the scenario names: everybody at the same time, as in a lesson.

use std::time::Duration;

use throng_observation::MediaKind;

/// Something that every participant of a cohort does at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptStep {
    /// When it begins, since the start of the run. Who joins in the middle of it does the rest.
    pub at: Duration,
    /// How long it lasts; `None` until they leave.
    pub lasts: Option<Duration>,
    /// What.
    pub action: Action,
}

/// What is done for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// They send nothing of this kind.
    Mute(MediaKind),
    /// Their picture becomes a larger one of the test card, as who begins to share a screen.
    ScreenShare(String),
}

impl ScriptStep {
    /// Whether it goes on at `at`.
    #[must_use]
    pub fn is_on(&self, at: Duration) -> bool {
        at >= self.at && self.ends_at().is_none_or(|end| at < end)
    }

    /// When it is over.
    #[must_use]
    pub fn ends_at(&self) -> Option<Duration> {
        self.lasts.map(|lasts| self.at.saturating_add(lasts))
    }

    /// The next moment after `at` at which it begins or ends.
    #[must_use]
    pub fn next_change(&self, at: Duration) -> Option<Duration> {
        [Some(self.at), self.ends_at()].into_iter().flatten().filter(|moment| *moment > at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cue_is_on_from_its_moment_until_it_is_over() {
        let s = Duration::from_secs;
        let cue = ScriptStep { at: s(10), lasts: Some(s(5)), action: Action::Mute(MediaKind::Audio) };
        for (at, is_on, next) in
            [(0, false, Some(10)), (10, true, Some(15)), (14, true, Some(15)), (15, false, None)]
        {
            assert_eq!((cue.is_on(s(at)), cue.next_change(s(at))), (is_on, next.map(s)), "{at}");
        }
        assert!(ScriptStep { lasts: None, ..cue }.is_on(s(1_000_000)));
    }
}
