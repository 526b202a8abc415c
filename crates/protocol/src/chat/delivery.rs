//! What a participant got of what was said while it was in the room: how late, in which order, how
//! often, and what never came.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use throng_observation::ChatCounters;

use super::room_log::{Logged, RoomLog};

/// After so long a message counts as missing; one that comes later still counts as late.
pub(super) const MISSING_AFTER: Duration = Duration::from_secs(10);

/// The messages of an interval, from one participant's place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Deliveries {
    /// Those that are due, missing, came more than once or out of order; all other sums are 0.
    pub(super) counters: ChatCounters,
    /// From the intended time of each that came to its arrival, microseconds.
    pub(super) delays_us: Vec<u64>,
}

/// The messages that are on their way to a participant.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    log: RoomLog,
    /// The first message that it should get; all before `self.first` are settled.
    first: u64,
    /// Whether each message from `first` on has come.
    came: VecDeque<bool>,
    /// Who it is.
    own: u64,
    /// Whether the server sends it its own messages.
    has_echo: bool,
    /// How much had been said when the connection broke; `None` while it is there.
    broken_at: Option<u64>,
    deliveries: Deliveries,
}

impl Inbox {
    /// Of participant `own`, which joined now: what is said from now on is due to it; what it says
    /// itself only where the server `has_echo`.
    pub(super) fn joined(log: RoomLog, own: u64, has_echo: bool) -> Self {
        let first = log.len();
        Self { log, first, own, has_echo, ..Self::default() }
    }

    /// The connection broke: what is said from now on is due only if the stream is resumed.
    pub(super) fn broken(&mut self) {
        self.broken_at = Some(self.log.len());
    }

    /// The stream goes on.
    pub(super) fn resumed(&mut self) {
        self.broken_at = None;
    }

    /// Ends it without waiting for what is on its way: that does not come on another connection.
    /// All that was said until the connection broke was due, so a server that breaks connections
    /// does not look as if it had less to deliver.
    pub(super) fn abandon(mut self) -> Deliveries {
        let end = self.broken_at.unwrap_or_else(|| self.log.len());
        self.settle(|number, _| number < end);
        self.deliveries
    }

    /// Message `number` arrived.
    pub(super) fn received(&mut self, now: Instant, number: u64) {
        let Some(logged) = self.log.get(number) else { return };
        let Some(at) = number.checked_sub(self.first) else {
            // It was said before the join, or counted as missing.
            return;
        };
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        if self.came.len() <= at {
            self.came.resize(at + 1, false);
        }
        let Some(came) = self.came.get_mut(at) else { return };
        if std::mem::replace(came, true) {
            // Servers send authors their own more often (the livechat of PeerTube: as the room's,
            // and as an echo), which their pages show once.
            self.deliveries.counters.duplicates += u64::from(logged.who != self.own);
            return;
        }
        self.deliveries.counters.messages_due += 1;
        let delay_us = now.saturating_duration_since(logged.due_at).as_micros();
        self.deliveries.delays_us.push(u64::try_from(delay_us).unwrap_or(u64::MAX));
        let is_awaited = |before: u64| {
            let at = usize::try_from(before.checked_sub(self.first)?).ok()?;
            Some(!self.came.get(at)?)
        };
        self.deliveries.counters.out_of_order +=
            u64::from(logged.before.and_then(is_awaited).unwrap_or(false));
    }

    /// Ends an interval.
    pub(super) fn take(&mut self, now: Instant) -> Deliveries {
        self.settle(|_, logged| now >= logged.due_at + MISSING_AFTER);
        std::mem::take(&mut self.deliveries)
    }

    /// Settles messages in their order up to one that has not come and is not lost.
    fn settle(&mut self, is_lost: impl Fn(u64, &Logged) -> bool) {
        let said = self.log.len();
        while self.first < said {
            let has_come = self.came.front().copied().unwrap_or(false);
            let logged = self.log.get(self.first);
            let is_lost = logged.is_some_and(|logged| is_lost(self.first, &logged));
            let is_due = logged.is_none_or(|logged| self.has_echo || logged.who != self.own);
            if !has_come && !is_lost && is_due {
                break;
            }
            if !has_come && is_due {
                self.deliveries.counters.messages_due += 1;
                self.deliveries.counters.messages_missing += 1;
            }
            self.came.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many were due, and of them missing.
    fn messages(of: &Deliveries) -> (u64, u64) {
        (of.counters.messages_due, of.counters.messages_missing)
    }

    #[test]
    fn what_is_said_after_the_join_is_due_and_what_never_comes_is_missing() {
        let (log, start) = (RoomLog::default(), Instant::now());
        let at = |ms: u64| start + Duration::from_millis(ms);
        let before = log.say(1, start);
        let mut inbox = Inbox::joined(log.clone(), 9, true);
        let numbers: Vec<u64> =
            (0..4).map(|second| log.say(second % 2, at(second * 1_000))).collect();
        inbox.received(at(10), before);
        inbox.received(at(40), numbers[0]);
        inbox.received(at(3_500), numbers[3]);
        inbox.received(at(3_600), numbers[1]);
        inbox.received(at(3_700), numbers[1]);
        let first = inbox.take(at(4_000));
        let counted = ChatCounters {
            messages_due: 3,
            duplicates: 1,
            out_of_order: 1,
            ..ChatCounters::default()
        };
        assert_eq!(first.counters, counted);
        assert_eq!(first.delays_us, [40_000, 500_000, 2_600_000]);
        let second = inbox.take(at(12_100));
        assert_eq!((messages(&second), second.delays_us.len()), ((1, 1), 0), "the one of second 2");
        inbox.received(at(13_000), numbers[2]);
        assert_eq!(inbox.take(at(14_000)), Deliveries::default(), "it counts as missing already");
    }

    #[test]
    fn authors_get_their_own_messages_as_often_as_the_server_likes() {
        let (log, now) = (RoomLog::default(), Instant::now());
        let mut inbox = Inbox::joined(log.clone(), 7, true);
        for number in [7, 8].map(|who| log.say(who, now)) {
            inbox.received(now, number);
            inbox.received(now, number);
        }
        let seen = inbox.take(now);
        assert_eq!((messages(&seen), seen.delays_us.len()), ((2, 0), 2));
        assert_eq!(seen.counters.duplicates, 1, "of another");
    }

    #[test]
    fn what_a_server_does_not_send_back_is_not_due_to_its_author() {
        let (log, start) = (RoomLog::default(), Instant::now());
        let mut inbox = Inbox::joined(log.clone(), 7, false);
        log.say(7, start);
        let other = log.say(8, start);
        inbox.received(start, other);
        log.say(7, start);
        let later = inbox.take(start + Duration::from_secs(60));
        assert_eq!((messages(&later), inbox.first), ((1, 0), 3));
    }

    #[test]
    fn what_was_on_its_way_when_the_connection_broke_was_due_and_is_missing() {
        let (log, start) = (RoomLog::default(), Instant::now());
        let mut inbox = Inbox::joined(log.clone(), 7, false);
        let numbers = [8, 7, 8, 8].map(|who| log.say(who, start));
        inbox.received(start, numbers[2]);
        inbox.broken();
        log.say(8, start);
        let end = inbox.abandon();
        assert_eq!(
            (messages(&end), end.delays_us.len()),
            ((3, 2), 1),
            "not its own, nor what came after"
        );
    }

    #[test]
    fn settled_messages_are_forgotten() {
        let (log, now) = (RoomLog::default(), Instant::now());
        let mut inbox = Inbox::joined(log.clone(), 9, true);
        for _ in 0..10_000 {
            let number = log.say(1, now);
            inbox.received(now, number);
            inbox.take(now);
        }
        assert!(inbox.came.is_empty() && inbox.first == 10_000);
    }
}
