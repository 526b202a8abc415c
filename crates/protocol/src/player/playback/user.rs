//! What the user of a player does: where playback begins, and when it is moved or paused.

use std::time::{Duration, Instant};

use throng_observation::seed;
use throng_scenario::{PlaybackPosition, PlayerConfig};

/// Longest time between two actions, in means: an exponential draw has no bound.
const MEANS_MAX: f64 = 20.0;

/// An action of the user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::player) enum UserAction {
    /// To this share of the media.
    Seek(f64),
    /// For so long.
    Pause(Duration),
}

/// The user, with random but repeatable behaviour.
#[derive(Debug)]
pub(in crate::player) struct User {
    random: fastrand::Rng,
    seek: Option<(Duration, Instant)>,
    pause: Option<(Duration, Instant)>,
    pause_for: Duration,
}

impl User {
    /// The user of viewer `number`; actions come from `now` on.
    pub(in crate::player) fn new(config: &PlayerConfig, number: u32, now: Instant) -> Self {
        let seed = seed::of(config.seed, u64::from(number));
        let mut user = Self {
            random: fastrand::Rng::with_seed(seed),
            seek: None,
            pause: None,
            pause_for: config.habits.pause_for,
        };
        user.seek = config.habits.seek_every.map(|mean| (mean, user.next(mean, now)));
        user.pause = config.habits.pause_every.map(|mean| (mean, user.next(mean, now)));
        user
    }

    /// Where playback begins in media of this length, microseconds; with an unknown length at
    /// random positions are the beginning.
    pub(in crate::player) fn start_us(
        &mut self,
        config: &PlayerConfig,
        duration_us: Option<u64>,
    ) -> i64 {
        let start_us = match config.position {
            PlaybackPosition::At(time) => u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
            PlaybackPosition::Random => {
                duration_us.map_or(0, |duration_us| (duration_us as f64 * self.random.f64()) as u64)
            }
        };
        // Behind the end is at the beginning, as if played in a loop.
        let within =
            duration_us.filter(|us| *us > 0).map_or(start_us, |duration_us| start_us % duration_us);
        i64::try_from(within).unwrap_or(0)
    }

    /// The action that is due.
    pub(in crate::player) fn poll(&mut self, now: Instant) -> Option<UserAction> {
        if let Some((mean, _)) = self.seek.filter(|(_, at)| now >= *at) {
            self.seek = Some((mean, self.next(mean, now)));
            return Some(UserAction::Seek(self.random.f64()));
        }
        let (mean, _) = self.pause.filter(|(_, at)| now >= *at)?;
        self.pause = Some((mean, self.next(mean, now + self.pause_for)));
        Some(UserAction::Pause(self.pause_for))
    }

    pub(in crate::player) fn next_timeout(&self) -> Option<Instant> {
        [self.seek, self.pause].into_iter().flatten().map(|(_, at)| at).min()
    }

    /// A Poisson process: exponential times between actions.
    fn next(&mut self, mean: Duration, now: Instant) -> Instant {
        let means = -(1.0 - self.random.f64()).ln();
        now + mean.mul_f64(means.min(MEANS_MAX))
    }
}

#[cfg(test)]
mod tests {
    use throng_scenario::UserHabits;

    use super::*;

    #[test]
    fn actions_come_at_their_mean_rate_and_repeat_with_the_seed() {
        let config = PlayerConfig {
            habits: UserHabits {
                seek_every: Some(Duration::from_secs(10)),
                pause_every: Some(Duration::from_secs(30)),
                pause_for: Duration::from_secs(5),
            },
            ..PlayerConfig::default()
        };
        let start = Instant::now();
        let run = |number| {
            let mut user = User::new(&config, number, start);
            let (mut now, mut seeks, mut pauses) = (start, 0, 0);
            while now < start + Duration::from_secs(100_000) {
                now = user.next_timeout().unwrap();
                match user.poll(now).unwrap() {
                    UserAction::Seek(share) => seeks += i32::from((0.0..1.0).contains(&share)),
                    UserAction::Pause(length) => {
                        pauses += i32::from(length == Duration::from_secs(5));
                    }
                }
            }
            (seeks, pauses)
        };
        let (seeks, pauses) = run(1);
        assert!((9_700..10_300).contains(&seeks), "{seeks}");
        assert!((2_700..3_000).contains(&pauses), "one in 35 s, {pauses}");
        assert_eq!(run(1), (seeks, pauses));
        assert_ne!(run(2), (seeks, pauses));
    }

    #[test]
    fn random_positions_fill_the_media_and_a_position_behind_its_end_wraps() {
        let start = |position, duration_us| {
            let config = PlayerConfig { position, ..PlayerConfig::default() };
            let now = Instant::now();
            (0..1_000)
                .map(|number| User::new(&config, number, now).start_us(&config, duration_us))
                .collect::<Vec<_>>()
        };
        let random = start(PlaybackPosition::Random, Some(10_000_000));
        assert!(random.iter().all(|us| (0..10_000_000).contains(us)));
        let mean_us = random.iter().sum::<i64>() / 1_000;
        assert!((4_500_000..5_500_000).contains(&mean_us), "{mean_us}");
        assert_eq!(start(PlaybackPosition::Random, None)[0], 0);
        let at = |secs| PlaybackPosition::At(Duration::from_secs(secs));
        assert_eq!(
            (start(at(3), Some(10_000_000))[0], start(at(13), Some(10_000_000))[0]),
            (3_000_000, 3_000_000)
        );
        assert_eq!(start(at(13), None)[0], 13_000_000);
    }
}
