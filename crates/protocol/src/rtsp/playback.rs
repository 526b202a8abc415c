//! Where in a recording a viewer is, and what it does next by its script.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use throng_scenario::{AtEnd, PlaybackAction, PlaybackPosition, PlaybackScript, PlaybackStep};

/// The end of a recording is known to so much only: a server begins at a key frame behind the
/// position, sends ahead, or has a track that ends before the others. Silence so near the end may
/// be the end.
pub(super) const END_UNSURE: Duration = Duration::from_secs(3);

/// The playback of one viewer.
pub(super) struct Playback {
    start: PlaybackPosition,
    steps: VecDeque<PlaybackStep>,
    pub(super) at_end: AtEnd,
    pub(super) state: PlaybackState,
    /// When PLAY was first answered: the script counts from it.
    began_at: Option<Instant>,
    /// Length of the recording; `None` for a live presentation.
    length: Option<Duration>,
    /// Where the server said that it stops, with its last answer to PLAY.
    stops_at: Option<Duration>,
    position: Position,
    rng: fastrand::Rng,
}

/// What a viewer is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PlaybackState {
    /// The first PLAY is not answered yet.
    Joins,
    Plays,
    /// The recording has ended; it begins again when PLAY is answered.
    Restarts,
    /// The same in a new session: TEARDOWN, SETUP and PLAY are answered one after the other.
    SetsUpAnew,
    /// PAUSE is not answered yet; what follows it.
    Stops(Then),
    Paused {
        until: Instant,
    },
    /// PLAY is not answered yet, after PAUSE.
    Continues(Then),
}

/// What a viewer stops for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Then {
    Pause(Duration),
    Seek(Duration),
    Scale(f64),
    /// Play on as before: what it stopped for was refused.
    PlayOn,
}

/// A position in the recording at a time.
#[derive(Clone, Copy, Debug)]
struct Position {
    at: Duration,
    /// The beginning was asked for, wherever the server then said that it plays.
    is_from_beginning: bool,
    /// Since when it moves; `None` while paused.
    moves_since: Option<Instant>,
    /// How fast: 1 is normal.
    scale: f64,
}

/// What to do about an action of the script.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Due {
    Do(Then),
    /// A seek where there is nothing to seek in.
    Impossible,
}

impl Playback {
    pub(super) fn new(script: PlaybackScript) -> Self {
        let PlaybackScript { start, steps, at_end, seed } = script;
        Self {
            start,
            steps: steps.into(),
            at_end,
            state: PlaybackState::Joins,
            began_at: None,
            length: None,
            stops_at: None,
            position: Position {
                at: Duration::ZERO,
                is_from_beginning: true,
                moves_since: None,
                scale: 1.0,
            },
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// The recording has this length; a live presentation has none. Returns where to begin, and
    /// whether the script's own position had to be left out.
    pub(super) fn described(&mut self, length: Option<Duration>) -> (Duration, bool) {
        self.length = length;
        match self.resolve(self.start) {
            Some(at) => (at, false),
            None => (Duration::ZERO, self.start != PlaybackPosition::default()),
        }
    }

    /// A position as a time; `None` where the presentation is live.
    fn resolve(&mut self, position: PlaybackPosition) -> Option<Duration> {
        let length = self.length?;
        Some(match position {
            PlaybackPosition::At(at) => at,
            PlaybackPosition::Random => length.mul_f64(self.rng.f64()),
        })
    }

    /// The speed of the next PLAY.
    pub(super) fn scale(&self) -> f64 {
        self.position.scale
    }

    /// The server plays at `scale` what was asked for (`None`: from where it was), or as it
    /// answered, from `answered`.
    pub(super) fn plays(
        &mut self,
        now: Instant,
        asked: Option<Duration>,
        answered: Option<Duration>,
        scale: f64,
    ) {
        self.began_at.get_or_insert(now);
        let asked = asked.unwrap_or_else(|| self.at(now));
        self.position = Position {
            at: answered.unwrap_or(asked),
            is_from_beginning: asked.is_zero(),
            moves_since: Some(now),
            scale,
        };
        self.state = PlaybackState::Plays;
    }

    /// Where the server says that it stops, at the PLAY that is answered now; without that a
    /// recording stops at its length.
    pub(super) fn stops_at(&mut self, position: Option<Duration>) {
        self.stops_at = position;
    }

    /// The server has stopped.
    pub(super) fn stopped(&mut self, now: Instant) {
        self.position = Position { at: self.at(now), moves_since: None, ..self.position };
    }

    /// The position at `now`.
    fn at(&self, now: Instant) -> Duration {
        let Position { at, moves_since, scale, .. } = self.position;
        let moved_s = moves_since
            .map_or(0.0, |since| now.saturating_duration_since(since).as_secs_f64())
            * scale;
        Duration::try_from_secs_f64((at.as_secs_f64() + moved_s).max(0.0)).unwrap_or(at)
    }

    /// Whether the description names an end.
    pub(super) fn has_end(&self) -> bool {
        self.length.is_some()
    }

    /// Since when it plays without a break.
    pub(super) fn plays_since(&self) -> Option<Instant> {
        self.position.moves_since
    }

    /// When the recording has been played to its end, or backwards to its beginning.
    pub(super) fn end_at(&self) -> Option<Instant> {
        let Position { at, moves_since, scale, .. } = self.position;
        let left_s = self.left(at)?.as_secs_f64() / scale.abs().max(SCALE_MIN);
        moves_since?.checked_add(Duration::try_from_secs_f64(left_s).ok()?)
    }

    /// How much of the recording is left to play from `at`.
    fn left(&self, at: Duration) -> Option<Duration> {
        let length = self.length?;
        if self.position.scale < 0.0 {
            return Some(at);
        }
        let end = self.stops_at.filter(|end| *end > at).unwrap_or(length);
        Some(end.saturating_sub(at))
    }

    /// Whether the position at `now` may be the end.
    pub(super) fn is_near_end(&self, now: Instant) -> bool {
        self.left(self.at(now)).is_some_and(|left| left <= END_UNSURE)
    }

    /// Whether it may end though nothing came since PLAY was answered: behind a position elsewhere
    /// than at its beginning there may be no media. Who asked for the beginning and had nothing saw
    /// no end, whatever position was answered. Who never had any (`has_played`) may be behind a
    /// firewall, and has ended only if the position is near the end.
    pub(super) fn may_end_unseen(&self, has_played: bool) -> bool {
        let Position { at, is_from_beginning, .. } = self.position;
        let is_near_end = self.left(at).is_some_and(|left| left <= END_UNSURE);
        !is_from_beginning && (has_played || is_near_end)
    }

    /// When the next action of the script is due.
    pub(super) fn next_step_at(&self) -> Option<Instant> {
        let step = self.steps.front().filter(|_| self.state == PlaybackState::Plays)?;
        self.began_at?.checked_add(step.at)
    }

    /// Takes the action that is due.
    pub(super) fn take_step(&mut self, now: Instant) -> Option<Due> {
        self.next_step_at().filter(|at| now >= *at)?;
        let step = self.steps.pop_front()?;
        Some(match step.action {
            PlaybackAction::Pause(time) => Due::Do(Then::Pause(time)),
            PlaybackAction::Scale(scale) if scale.abs() >= SCALE_MIN => Due::Do(Then::Scale(scale)),
            PlaybackAction::Scale(_) => Due::Impossible,
            PlaybackAction::Seek(to) => {
                self.resolve(to).map_or(Due::Impossible, |to| Due::Do(Then::Seek(to)))
            }
        })
    }
}

/// The slowest speed: at 0 nothing would play.
const SCALE_MIN: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn playback(length: Option<Duration>, steps: Vec<PlaybackStep>) -> Playback {
        let script = PlaybackScript { steps, ..PlaybackScript::default() };
        let mut playback = Playback::new(script);
        playback.described(length);
        playback
    }

    #[test]
    fn the_end_of_a_recording_moves_with_seeks_pauses_and_speed() {
        let start = Instant::now();
        let mut playback = playback(Some(20 * S), Vec::new());
        assert_eq!(playback.end_at(), None);
        playback.plays(start, Some(Duration::ZERO), None, 1.0);
        assert_eq!(playback.end_at(), Some(start + 20 * S));
        playback.stopped(start + 5 * S);
        assert_eq!(playback.end_at(), None);
        playback.plays(start + 15 * S, None, None, 1.0);
        assert_eq!(playback.end_at(), Some(start + 30 * S));
        playback.plays(start + 16 * S, Some(18 * S), None, 1.0);
        assert_eq!(playback.end_at(), Some(start + 18 * S));
        playback.plays(start + 16 * S, Some(10 * S), None, 2.0);
        assert_eq!(playback.end_at(), Some(start + 21 * S));
        playback.plays(start + 16 * S, Some(10 * S), None, -4.0);
        assert_eq!(playback.end_at(), Some(start + 18 * S + S / 2));
        // The server knows better where it stops; what it cannot mean does not count.
        for (stops_at, end) in [(Some(17 * S), 17), (Some(10 * S), 20), (None, 20)] {
            playback.stops_at(stops_at);
            playback.plays(start, Some(10 * S), None, 1.0);
            assert_eq!(playback.end_at(), Some(start + (end - 10) * S), "{stops_at:?}");
        }
    }

    #[test]
    fn a_position_behind_the_beginning_may_be_the_end() {
        let start = Instant::now();
        let mut playback = playback(Some(20 * S), Vec::new());
        for (from, near_end, unseen) in [
            (0, false, [false, false]),
            (10, false, [false, true]),
            (17, true, [true, true]),
            (25, true, [true, true]),
        ] {
            playback.plays(start, Some(from * S), None, 1.0);
            assert_eq!(playback.is_near_end(start), near_end, "{from}");
            assert_eq!([false, true].map(|had| playback.may_end_unseen(had)), unseen, "{from}");
        }
        // Where the beginning was asked for, the answer changes nothing.
        playback.plays(start, Some(Duration::ZERO), Some(20 * S), 1.0);
        assert_eq!([false, true].map(|had| playback.may_end_unseen(had)), [false; 2]);
        playback.plays(start, Some(10 * S), Some(Duration::ZERO), 1.0);
        assert_eq!([false, true].map(|had| playback.may_end_unseen(had)), [false, true]);
        playback.plays(start, Some(10 * S), None, 1.0);
        assert!(playback.is_near_end(start + 7 * S) && !playback.is_near_end(start + 6 * S));
    }

    #[test]
    fn actions_are_due_by_the_script_and_wait_for_one_another() {
        let start = Instant::now();
        let step = |at, action| PlaybackStep { at, action };
        let steps = vec![
            step(2 * S, PlaybackAction::Pause(S)),
            step(2 * S, PlaybackAction::Seek(PlaybackPosition::At(9 * S))),
            step(4 * S, PlaybackAction::Scale(0.0)),
        ];
        let mut playback = playback(Some(20 * S), steps);
        assert_eq!(playback.take_step(start + 9 * S), None, "before PLAY");
        playback.plays(start, Some(Duration::ZERO), None, 1.0);
        assert_eq!(playback.take_step(start + S), None);
        assert_eq!(playback.take_step(start + 2 * S), Some(Due::Do(Then::Pause(S))));
        playback.state = PlaybackState::Paused { until: start + 3 * S };
        assert_eq!(playback.next_step_at(), None);
        playback.plays(start + 3 * S, None, None, 1.0);
        assert_eq!(playback.take_step(start + 3 * S), Some(Due::Do(Then::Seek(9 * S))));
        assert_eq!(
            playback.take_step(start + 4 * S),
            Some(Due::Impossible),
            "standing still is a pause"
        );
    }

    #[test]
    fn random_positions_lie_in_the_recording_and_a_live_presentation_has_none() {
        let script = |seed| PlaybackScript {
            start: PlaybackPosition::Random,
            seed,
            ..PlaybackScript::default()
        };
        let starts: Vec<Duration> =
            (0..100).map(|seed| Playback::new(script(seed)).described(Some(100 * S)).0).collect();
        assert!(starts.iter().all(|start| *start < 100 * S));
        assert!(
            starts.iter().any(|start| *start < 30 * S)
                && starts.iter().any(|start| *start > 70 * S)
        );
        assert_eq!(Playback::new(script(1)).described(None), (Duration::ZERO, true));
        assert_eq!(
            Playback::new(PlaybackScript::default()).described(None),
            (Duration::ZERO, false)
        );
    }
}
