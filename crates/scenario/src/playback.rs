//! What the viewer of a recording does besides playing it: where playback begins, and when it
//! seeks, pauses and changes the speed.

use std::time::Duration;

/// The playback of one viewer. The default plays from the beginning, again and again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlaybackScript {
    /// Where playback begins.
    pub start: PlaybackPosition,
    /// Its actions, in order of time.
    pub steps: Vec<PlaybackStep>,
    /// What it does at the end of the recording.
    pub at_end: AtEnd,
    /// Seed of random positions.
    pub seed: u64,
}

/// A position in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaybackPosition {
    /// So long after the beginning.
    At(Duration),
    /// A random one, other for each viewer.
    Random,
}

impl Default for PlaybackPosition {
    fn default() -> Self {
        Self::At(Duration::ZERO)
    }
}

/// An action of the viewer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlaybackStep {
    /// When, after playback began. An action is late while the one before it is under way.
    pub at: Duration,
    /// The action.
    pub action: PlaybackAction,
}

/// What a viewer does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlaybackAction {
    /// Continues at another position of the recording.
    Seek(PlaybackPosition),
    /// Pauses for so long, then continues where it was.
    Pause(Duration),
    /// Plays at so many times the normal speed (RFC 2326 section 12.34); negative: backwards.
    Scale(f64),
}

/// What a viewer does at the end of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtEnd {
    /// It begins again, so that the load stays.
    #[default]
    Repeat,
    /// It leaves.
    Leave,
}

/// How often a user acts: mean times between actions, which follow a Poisson process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserHabits {
    /// Mean time between seeks to random positions; `None` without seeks.
    pub seek_every: Option<Duration>,
    /// Mean time between pauses; `None` without pauses.
    pub pause_every: Option<Duration>,
    /// Length of a pause.
    pub pause_for: Duration,
}

/// Most actions of one viewer.
const STEPS_MAX: usize = 10_000;

impl PlaybackScript {
    /// A viewer with these habits who stays for at most `stay`; the same `seed` gives the same
    /// actions.
    #[must_use]
    pub fn drawn(start: PlaybackPosition, habits: UserHabits, stay: Duration, seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut steps = Vec::new();
        let actions = [
            (habits.seek_every, PlaybackAction::Seek(PlaybackPosition::Random)),
            (habits.pause_every, PlaybackAction::Pause(habits.pause_for)),
        ];
        for (mean, action) in actions.into_iter().filter_map(|(mean, action)| Some((mean?, action)))
        {
            let mut at = Duration::ZERO;
            // Each kind has half of the room.
            for _ in 0..STEPS_MAX / 2 {
                // The inverse of the exponential distribution; `f64` draws below 1.
                let wait_s = mean.max(SPACING_MIN).as_secs_f64() * -(1.0 - rng.f64()).ln();
                at =
                    at.saturating_add(Duration::try_from_secs_f64(wait_s).unwrap_or(Duration::MAX));
                if at >= stay {
                    break;
                }
                steps.push(PlaybackStep { at, action });
            }
        }
        steps.sort_by_key(|step| step.at);
        Self { start, steps, at_end: AtEnd::Repeat, seed }
    }
}

/// The least mean time between two actions of a kind.
const SPACING_MIN: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_actions_come_at_their_mean_rate_in_order_and_alike_for_a_seed() {
        let s = Duration::from_secs;
        let habits =
            UserHabits { seek_every: Some(s(10)), pause_every: Some(s(40)), pause_for: s(3) };
        let draw = |seed| PlaybackScript::drawn(PlaybackPosition::Random, habits, s(8_000), seed);
        let script = draw(1);
        let pauses =
            script.steps.iter().filter(|step| step.action == PlaybackAction::Pause(s(3))).count();
        let seeks = script.steps.len() - pauses;
        assert!((700..900).contains(&seeks) && (150..250).contains(&pauses), "{seeks} {pauses}");
        assert!(script.steps.is_sorted_by_key(|step| step.at));
        assert!(script.steps.iter().all(|step| step.at < s(8_000)));
        assert_eq!(script, draw(1));
        assert_ne!(script, draw(2));
        let idle =
            PlaybackScript::drawn(PlaybackPosition::default(), UserHabits::default(), s(60), 1);
        assert_eq!(idle, PlaybackScript { seed: 1, ..PlaybackScript::default() });
        let hectic = UserHabits { seek_every: Some(Duration::ZERO), ..UserHabits::default() };
        let hectic = PlaybackScript::drawn(PlaybackPosition::default(), hectic, Duration::MAX, 1);
        assert_eq!(hectic.steps.len(), STEPS_MAX / 2);
    }
}
