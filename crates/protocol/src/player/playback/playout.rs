//! Playback on a real clock: it begins when enough is buffered, stalls when the buffer is empty,
//! goes on when it is filled again.
//!
//! ```text
//! Starting ──enough──▶ Playing ──empty──▶ Stalled ──enough──▶ Playing
//!     ▲                  │ ▲ pause/resume     │ a hole, or the live window has moved on: jump
//!     └───────seek───────┴─▼──────────────────┘      Playing ──end of the media──▶ Ended
//! ```

use std::time::{Duration, Instant};

use throng_observation::PlaybackCounters;

use super::timeline::as_us;

/// The normal speed of playback, thousandths.
pub(in crate::player) const NORMAL_RATE_MILLI: u32 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for enough media to begin.
    Starting {
        since: Instant,
    },
    Playing,
    /// Has played, and waits for media.
    Stalled {
        since: Instant,
    },
    /// Its user has paused it.
    Paused {
        until: Instant,
    },
    /// The media has ended.
    Ended,
}

/// What is buffered, as far as playback is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::player) struct Buffered {
    /// How far playback can go, microseconds on the time axis of the media; `None` while nothing
    /// can be played.
    pub(in crate::player) playable_us: Option<i64>,
    /// What is behind that.
    pub(in crate::player) behind: Behind,
}

/// What is behind the media that can be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::player) enum Behind {
    /// Nothing so far.
    More,
    /// A hole, and media behind it.
    Hole,
    /// Nothing, and nothing will come, though the media does not end there.
    Failure,
    /// The end of the media: all of it was received.
    End,
}

impl Buffered {
    /// Media ahead of `position_us`, microseconds.
    fn ahead_us(&self, position_us: i64) -> u64 {
        let ahead_us = self.playable_us.map_or(0, |us| us.saturating_sub(position_us));
        u64::try_from(ahead_us).unwrap_or(0)
    }
}

/// The playback position, and what moves it.
#[derive(Clone, Debug)]
pub(in crate::player) struct Playout {
    state: State,
    /// The position, microseconds, at `at`.
    position_us: i64,
    at: Instant,
    /// Media that must be ahead to begin.
    start_us: i64,
    /// Media time that is played in a unit of real time, thousandths.
    rate_milli: u32,
    /// Of `active_us` it has only the time of playback, until it is taken.
    counters: PlaybackCounters,
}

impl Playout {
    /// Playback from `position_us`, whose user has waited since `since`.
    pub(in crate::player) fn new(since: Instant, position_us: i64, start: Duration) -> Self {
        let state = State::Starting { since };
        let (start_us, counters) = (as_us(start), PlaybackCounters::default());
        Self { state, position_us, at: since, start_us, rate_milli: NORMAL_RATE_MILLI, counters }
    }

    /// Moves the clock to `now`, with what was buffered until then.
    pub(in crate::player) fn advance(&mut self, now: Instant, buffered: Buffered) {
        let passed = now.saturating_duration_since(self.at);
        let passed_us = u64::try_from(passed.as_micros()).unwrap_or(u64::MAX);
        // The rest of a microsecond stays for the next call.
        self.at += Duration::from_micros(passed_us);
        match self.state {
            State::Starting { .. } => self.counters.startup_us += passed_us,
            State::Stalled { .. } => self.counters.stall_us += passed_us,
            State::Paused { .. } => self.counters.paused_us += passed_us,
            State::Ended => {}
            State::Playing => self.play(passed_us, buffered),
        }
    }

    fn play(&mut self, passed_us: u64, buffered: Buffered) {
        let ahead_us = buffered.ahead_us(self.position_us);
        // Real time in which all that is ahead is played.
        let lasts_us = real_us(ahead_us, self.rate_milli);
        let played_us = if passed_us >= lasts_us {
            ahead_us
        } else {
            media_us(passed_us, self.rate_milli).min(ahead_us)
        };
        self.counters.played_us += played_us;
        self.counters.active_us += passed_us.min(lasts_us);
        self.position_us += played_us as i64;
        if played_us == ahead_us && buffered.behind == Behind::End {
            self.state = State::Ended;
        } else if passed_us > lasts_us {
            let since =
                self.at.checked_sub(Duration::from_micros(passed_us - lasts_us)).unwrap_or(self.at);
            self.state = State::Stalled { since };
            self.counters.stall_count += 1;
            self.counters.stall_us += passed_us - lasts_us;
        }
    }

    /// Begins or resumes playback if it can, and ends it where nothing is left; call it after
    /// [`Self::advance`] and after media was added. True if playback began or went on after a wait.
    pub(in crate::player) fn resume(&mut self, buffered: Buffered) -> bool {
        match self.state {
            State::Paused { until } if self.at >= until => {
                self.state = State::Playing;
                false
            }
            State::Starting { .. } | State::Stalled { .. } if self.has_enough(buffered) => {
                self.state = State::Playing;
                true
            }
            State::Starting { .. } | State::Stalled { .. } if self.is_behind_all(buffered) => {
                self.state = State::Ended;
                false
            }
            _ => false,
        }
    }

    /// Whether nothing comes any more for a position so near the end that no media begins behind
    /// it. At the beginning that is no end, but media without a frame.
    fn is_behind_all(&self, buffered: Buffered) -> bool {
        let is_all = buffered.behind == Behind::End && buffered.playable_us.is_none();
        is_all && self.position_us > 0
    }

    fn has_enough(&self, buffered: Buffered) -> bool {
        let ahead_us = buffered.ahead_us(self.position_us);
        let is_full = ahead_us >= u64::try_from(self.start_us).unwrap_or(0);
        match buffered.behind {
            Behind::More => buffered.playable_us.is_some() && is_full,
            // It will not become more.
            Behind::Hole | Behind::Failure => ahead_us > 0,
            Behind::End => buffered.playable_us.is_some(),
        }
    }

    /// Moves playback to `position_us`.
    pub(in crate::player) fn seek(&mut self, position_us: i64) {
        self.state = State::Starting { since: self.at };
        self.position_us = position_us;
        self.counters.seek_count += 1;
    }

    /// Begins again at `position_us`; its user did not ask for it, so that it is no seek.
    pub(in crate::player) fn restart(&mut self, position_us: i64) {
        self.state = State::Starting { since: self.at };
        self.position_us = position_us;
    }

    /// Goes on at `position_us`: what lies between never came, or is not to be had any more.
    pub(in crate::player) fn jump(&mut self, position_us: i64) {
        self.counters.skipped_us +=
            u64::try_from(position_us.saturating_sub(self.position_us)).unwrap_or(0);
        self.position_us = position_us;
    }

    /// The speed of playback from now on, thousandths of the normal one.
    pub(in crate::player) fn set_rate(&mut self, rate_milli: u32) {
        self.rate_milli = rate_milli.max(1);
    }

    /// Whether it waits for media after it had begun.
    pub(in crate::player) fn is_stalled(&self) -> bool {
        matches!(self.state, State::Stalled { .. })
    }

    /// The position where playback begins turns out to be another one, such as the nearest key
    /// frame.
    pub(in crate::player) fn starts_at(&mut self, position_us: i64) {
        if matches!(self.state, State::Starting { .. }) {
            self.position_us = position_us;
        }
    }

    /// Pauses playback for `length`; while it waits for media a pause changes nothing.
    pub(in crate::player) fn pause(&mut self, length: Duration) {
        if self.state == State::Playing {
            self.state = State::Paused { until: self.at + length };
        }
    }

    pub(in crate::player) fn position_us(&self) -> i64 {
        self.position_us
    }

    /// The time of the position.
    pub(in crate::player) fn at(&self) -> Instant {
        self.at
    }

    pub(in crate::player) fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    pub(in crate::player) fn is_playing(&self) -> bool {
        self.state == State::Playing
    }

    /// Since when playback has not begun; `None` once it has.
    pub(in crate::player) fn start_awaited_since(&self) -> Option<Instant> {
        match self.state {
            State::Starting { since } => Some(since),
            _ => None,
        }
    }

    /// Since when its user waits, for the start or in a stall.
    pub(in crate::player) fn waits_since(&self) -> Option<Instant> {
        match self.state {
            State::Starting { since } | State::Stalled { since } => Some(since),
            _ => None,
        }
    }

    /// Takes what the time since the last call was spent with; the other sums are 0.
    pub(in crate::player) fn take_counters(&mut self) -> PlaybackCounters {
        let mut counters = std::mem::take(&mut self.counters);
        counters.active_us += counters.startup_us + counters.stall_us;
        counters
    }

    /// When playback ends or stalls if nothing more is received, or a pause ends.
    pub(in crate::player) fn next_timeout(&self, buffered: Buffered) -> Option<Instant> {
        match self.state {
            State::Playing => {
                let ahead_us = buffered.ahead_us(self.position_us);
                Some(self.at + Duration::from_micros(real_us(ahead_us, self.rate_milli) + 1))
            }
            State::Paused { until } => Some(until),
            _ => None,
        }
    }
}

/// Media time that is played in real time.
fn media_us(real_us: u64, rate_milli: u32) -> u64 {
    real_us.saturating_mul(rate_milli.into()) / u64::from(NORMAL_RATE_MILLI)
}

/// Real time in which media time is played.
fn real_us(media_us: u64, rate_milli: u32) -> u64 {
    media_us.saturating_mul(NORMAL_RATE_MILLI.into()) / u64::from(rate_milli)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    fn to(playable_ms: i64) -> Buffered {
        Buffered { playable_us: Some(playable_ms * 1_000), behind: Behind::More }
    }

    const NOTHING: Buffered = Buffered { playable_us: None, behind: Behind::More };

    #[test]
    fn playback_begins_with_enough_media_and_stalls_when_it_is_used_up() {
        let start = Instant::now();
        let mut playout = Playout::new(start, 0, Duration::from_secs(1));
        playout.advance(at(start, 300), NOTHING);
        assert!(!playout.resume(to(999)));
        playout.advance(at(start, 400), to(999));
        assert!(playout.resume(to(2_000)));
        assert_eq!(
            playout.next_timeout(to(2_000)),
            Some(at(start, 2_400) + Duration::from_micros(1))
        );
        playout.advance(at(start, 3_000), to(2_000));
        let times = playout.take_counters();
        let expect = PlaybackCounters {
            active_us: 3_000_000,
            startup_us: 400_000,
            played_us: 2_000_000,
            stall_us: 600_000,
            stall_count: 1,
            ..PlaybackCounters::default()
        };
        assert_eq!(times, expect);
        assert_eq!(playout.waits_since(), Some(at(start, 2_400)), "since its media was used up");
        assert!(!playout.resume(to(2_900)), "as much as at the start is needed to go on");
        assert!(playout.resume(to(3_000)));
        playout.advance(at(start, 3_500), to(3_000));
        assert_eq!((playout.position_us(), playout.is_playing()), (2_500_000, true));
    }

    #[test]
    fn the_end_of_the_media_is_no_stall_and_needs_no_full_buffer() {
        let start = Instant::now();
        let whole = Buffered { playable_us: Some(500_000), behind: Behind::End };
        let mut playout = Playout::new(start, 0, Duration::from_secs(1));
        assert!(playout.resume(whole));
        playout.advance(at(start, 800), whole);
        assert!(playout.has_ended());
        let times = playout.take_counters();
        assert_eq!((times.played_us, times.stall_us, times.stall_count), (500_000, 0, 0));
    }

    #[test]
    fn who_seeks_to_where_no_media_begins_is_at_the_end() {
        let start = Instant::now();
        let nothing = Buffered { playable_us: None, behind: Behind::End };
        let mut playout = Playout::new(start, 0, Duration::from_secs(1));
        assert!(!playout.resume(nothing) && !playout.has_ended(), "there is no media at all");
        assert!(playout.resume(to(5_000)));
        playout.seek(59_900_000);
        playout.advance(at(start, 300), NOTHING);
        assert!(!playout.resume(NOTHING) && !playout.has_ended(), "it may come");
        assert!(!playout.resume(nothing) && playout.has_ended());
        assert_eq!(playout.take_counters().stall_count, 0);
    }

    #[test]
    fn a_jump_over_what_never_came_is_counted_and_a_faster_playback_uses_more_media() {
        let start = Instant::now();
        let mut playout = Playout::new(start, 0, Duration::from_secs(1));
        playout.resume(to(2_000));
        playout.set_rate(1_250);
        playout.advance(at(start, 2_000), to(2_000));
        assert_eq!(playout.take_counters().stall_us, 400_000, "2 s of media last for 1.6 s");
        playout.jump(5_000_000);
        assert!(playout.resume(to(7_000)));
        playout.advance(at(start, 3_000), to(7_000));
        let times = playout.take_counters();
        assert_eq!((times.skipped_us, times.played_us), (3_000_000, 1_250_000));
        assert_eq!((times.stall_count, playout.position_us()), (0, 6_250_000));
    }

    #[test]
    fn a_hole_is_no_end_and_what_is_before_the_next_one_is_enough_to_go_on() {
        let start = Instant::now();
        for behind in [Behind::Hole, Behind::Failure] {
            let until = |playable_ms: i64| Buffered { behind, ..to(playable_ms) };
            let mut playout = Playout::new(start, 0, Duration::from_secs(1));
            assert!(playout.resume(until(400)), "it will not become more: {behind:?}");
            playout.advance(at(start, 500), until(400));
            assert!(playout.is_stalled() && !playout.has_ended(), "{behind:?}");
            assert!(!playout.resume(until(400)), "nothing is ahead: {behind:?}");
            playout.jump(1_000_000);
            assert!(playout.resume(until(1_100)), "{behind:?}");
            let times = playout.take_counters();
            assert_eq!(
                (times.played_us, times.skipped_us, times.stall_count),
                (400_000, 600_000, 1)
            );
        }
    }

    #[test]
    fn a_pause_is_neither_played_nor_stalled_and_a_seek_is_a_new_start() {
        let start = Instant::now();
        let mut playout = Playout::new(start, 0, Duration::from_secs(1));
        playout.resume(to(5_000));
        playout.pause(Duration::from_secs(2));
        playout.advance(at(start, 2_000), to(5_000));
        assert!(!playout.resume(to(5_000)), "its user goes on: no wait for media ended");
        assert!(playout.is_playing());
        playout.advance(at(start, 3_000), to(5_000));
        playout.seek(60_000_000);
        assert_eq!(playout.start_awaited_since(), Some(at(start, 3_000)));
        playout.advance(at(start, 3_500), NOTHING);
        playout.starts_at(59_000_000);
        assert!(playout.resume(to(60_000)));
        let times = playout.take_counters();
        assert_eq!((times.paused_us, times.played_us), (2_000_000, 1_000_000));
        assert_eq!((times.startup_us, times.seek_count, times.stall_count), (500_000, 1, 0));
    }
}
