//! The collector's record of a participant of a chat.

use throng_observation::{BadIf, ChatInterval, Clause};

use super::last_seconds::{LastSeconds, SecondNote};

/// The record of a participant of a chat.
#[derive(Default)]
pub(super) struct ChatRecord {
    /// Violations in its last seconds.
    quality: LastSeconds,
    /// Whether it has ever been in the room.
    has_joined: bool,
    /// The last second of which something is known.
    heard_s: Option<i64>,
}

impl ChatRecord {
    /// Adds an interval, which counts to `second`.
    pub(super) fn add(&mut self, interval: &ChatInterval, second: i64, bad_if: &BadIf) {
        self.has_joined |= interval.is_joined;
        self.heard_s = self.heard_s.max(Some(second));
        self.quality.add(second, SecondNote::new(broken_clauses(interval, bad_if), 0));
    }

    pub(super) fn has_joined(&self) -> bool {
        self.has_joined
    }

    /// The same of a chat beside a player, which may have ended before its participant: then it is
    /// not in the room.
    pub(super) fn broken_clauses_beside(&self, second: i64) -> u16 {
        // The last interval may end in the middle of a second.
        let has_ended = second > self.heard_s.unwrap_or(0).saturating_add(1);
        if has_ended { Clause::NotConnected.bit() } else { self.broken_clauses(second) }
    }

    /// The clauses that it violated in `second`, as bits of [`Clause::bit`].
    pub(super) fn broken_clauses(&self, second: i64) -> u16 {
        self.quality.of(second).map_or(0, |noted| noted.bits)
    }
}

/// The clauses that an interval violated, as bits of [`Clause::bit`].
fn broken_clauses(interval: &ChatInterval, bad_if: &BadIf) -> u16 {
    let mut bits = 0;
    let mut hold =
        |clause: Clause, is_broken: bool| bits |= if is_broken { clause.bit() } else { 0 };
    hold(Clause::NotConnected, !interval.is_joined);
    let late_us = (bad_if.chat_delay_ms_max * 1e3) as u64;
    let is_late = interval.delays_us.iter().any(|us| *us > late_us);
    hold(Clause::Message, is_late || interval.counters.messages_missing > 0);
    bits
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use throng_observation::ChatCounters;

    use super::*;

    #[test]
    fn a_second_is_bad_outside_the_room_and_with_a_message_that_is_late_or_missing() {
        let good = ChatInterval {
            ended_at: Instant::now(),
            counters: ChatCounters { messages_due: 2, ..ChatCounters::default() },
            delays_us: vec![10_000, 2_000_000],
            occupants: 3,
            is_joined: true,
        };
        let missing =
            ChatCounters { messages_due: 2, messages_missing: 1, ..ChatCounters::default() };
        for (interval, clause) in [
            (good.clone(), None),
            (
                ChatInterval { delays_us: vec![10_000, 2_000_001], ..good.clone() },
                Some(Clause::Message),
            ),
            (ChatInterval { counters: missing, ..good.clone() }, Some(Clause::Message)),
            (ChatInterval { is_joined: false, ..good }, Some(Clause::NotConnected)),
        ] {
            let expected = clause.map_or(0, Clause::bit);
            assert_eq!(broken_clauses(&interval, &BadIf::default()), expected, "{interval:?}");
        }
    }
}
