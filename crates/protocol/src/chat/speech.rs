//! When a participant says something: now and then, and at moments of the show.

use std::time::{Duration, Instant};

use throng_scenario::ChatConfig;

/// When one participant says something.
#[derive(Debug)]
pub(super) struct Speech {
    ambient_per_s: f64,
    rng: fastrand::Rng,
    /// Of its words, so that they do not depend on how many moments there are.
    words: fastrand::Rng,
    /// The moments that it says something at, the last one first.
    moments: Vec<Instant>,
    ambient_at: Option<Instant>,
}

impl Speech {
    /// Of a participant that wants to speak from `now` on, in a run that began at `began_at`.
    pub(super) fn new(
        config: &ChatConfig,
        began_at: Instant,
        now: Instant,
        mut rng: fastrand::Rng,
    ) -> Self {
        let words = rng.fork();
        let mut moments: Vec<Instant> = Vec::new();
        for moment in &config.moments {
            let (says, late) = (rng.f64() * 1e3 < f64::from(moment.share_milli), rng.f64());
            // A third of the time is the mean, and nobody comes after the end.
            let late = (-(1.0 - late).ln() / 3.0).min(1.0);
            let at = began_at + moment.at + moment.within.mul_f64(late);
            if says && at >= now {
                moments.push(at);
            }
        }
        moments.sort_unstable_by(|a, b| b.cmp(a));
        let ambient_per_s = config.every.map_or(0.0, |every| 1.0 / every.as_secs_f64());
        let mut speech = Self { ambient_per_s, rng, words, moments, ambient_at: None };
        speech.plan(now);
        speech
    }

    fn plan(&mut self, after: Instant) {
        let pause = -(1.0 - self.rng.f64()).ln() / self.ambient_per_s;
        let pause = Duration::try_from_secs_f64(pause).ok();
        self.ambient_at = pause.and_then(|pause| after.checked_add(pause));
    }

    /// When it says the next thing.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.ambient_at.into_iter().chain(self.moments.last().copied()).min()
    }

    /// Takes what is to be said by `now`: when it was due, and its words.
    pub(super) fn due(&mut self, now: Instant) -> Option<(Instant, &'static str)> {
        let at = self.next_at().filter(|at| *at <= now)?;
        if self.moments.last() == Some(&at) {
            self.moments.pop();
        } else {
            self.plan(at);
        }
        Some((at, words(&mut self.words)))
    }
}

/// Words that people say, of the lengths that people say them in.
const WORDS: [&str; 12] = [
    "hello everyone, nice stream!",
    "+1",
    "where can I find the slides?",
    "lol",
    "the sound is a bit low here",
    "better now, thanks",
    "greetings from the train, it works even in the tunnels",
    "can somebody explain what was said about the second point? I was away for a minute",
    "yes",
    "bravo!",
    "exactly what I think",
    "I have been waiting for this for a long time",
];

/// What somebody says.
fn words(rng: &mut fastrand::Rng) -> &'static str {
    WORDS.get(rng.usize(..WORDS.len())).copied().unwrap_or("yes")
}

#[cfg(test)]
mod tests {
    use throng_scenario::ChatMoment;

    use super::*;

    fn said(config: &ChatConfig, seed: u64, seconds: u64) -> Vec<Duration> {
        let began = Instant::now();
        let mut speech = Speech::new(config, began, began, fastrand::Rng::with_seed(seed));
        let end = began + Duration::from_secs(seconds);
        std::iter::from_fn(|| speech.due(end)).map(|(at, _)| at - began).collect()
    }

    #[test]
    fn ambient_messages_come_at_their_rate_and_repeat_with_the_seed() {
        let config = ChatConfig { every: Some(Duration::from_secs(2)), ..ChatConfig::default() };
        let times = said(&config, 1, 4_000);
        assert!((1_850..2_150).contains(&times.len()), "{}", times.len());
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(times, said(&config, 1, 4_000));
        assert!(said(&ChatConfig::default(), 1, 4_000).is_empty(), "who says nothing");
    }

    #[test]
    fn at_a_moment_its_share_reacts_most_of_it_soon() {
        let moment = ChatMoment {
            at: Duration::from_secs(60),
            share_milli: 300,
            within: Duration::from_secs(10),
        };
        let config = ChatConfig { moments: vec![moment], ..ChatConfig::default() };
        let times: Vec<_> = (0..2_000).flat_map(|seed| said(&config, seed, 100)).collect();
        assert!((520..680).contains(&times.len()), "{}", times.len());
        assert!(times.iter().all(|at| (60..=70).contains(&at.as_secs())));
        let soon = times.iter().filter(|at| at.as_secs() < 64).count();
        assert!(soon * 10 > times.len() * 6, "{soon} of {}", times.len());
        assert!(said(&config, 7, 59).is_empty(), "not before it");
    }
}
