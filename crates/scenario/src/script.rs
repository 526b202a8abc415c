//! Timed actions of a cohort in a conference: all its participants act at the same time.

use std::time::Duration;

use throng_observation::MediaKind;

/// An action of all participants of a cohort, and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptStep {
    /// When it begins, from the start of the run. Participants that join later perform the rest.
    pub at: Duration,
    /// Its duration; `None`: until they leave.
    pub lasts: Option<Duration>,
    /// The action.
    pub action: Action,
}

/// A timed action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends no media of this kind.
    Mute(MediaKind),
    /// Replaces the video by this larger size of the test card, as a shared screen.
    ScreenShare(String),
}

impl ScriptStep {
    /// Whether it is active at `at`.
    #[must_use]
    pub fn is_on(&self, at: Duration) -> bool {
        at >= self.at && self.ends_at().is_none_or(|end| at < end)
    }

    /// When it ends.
    #[must_use]
    pub fn ends_at(&self) -> Option<Duration> {
        self.lasts.map(|lasts| self.at.saturating_add(lasts))
    }

    /// Its next begin or end after `at`.
    #[must_use]
    pub fn next_change(&self, at: Duration) -> Option<Duration> {
        [Some(self.at), self.ends_at()].into_iter().flatten().filter(|moment| *moment > at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_active_from_its_begin_to_its_end() {
        let s = Duration::from_secs;
        let step =
            ScriptStep { at: s(10), lasts: Some(s(5)), action: Action::Mute(MediaKind::Audio) };
        for (at, is_on, next) in
            [(0, false, Some(10)), (10, true, Some(15)), (14, true, Some(15)), (15, false, None)]
        {
            assert_eq!((step.is_on(s(at)), step.next_change(s(at))), (is_on, next.map(s)), "{at}");
        }
        assert!(ScriptStep { lasts: None, ..step }.is_on(s(1_000_000)));
    }
}
