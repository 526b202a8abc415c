//! The loop of one worker thread: wait, serve those who join, and each tick serve those who play, whose time has come,
//! and who is to join.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use throng_observation::Outcome;
use throng_protocol::participant::Channel;
use tokio::sync::mpsc;

use super::guard::guarded;
use super::hub::{Hub, WAKE};
use super::joins::Joins;
use super::pulse::Pulse;
use super::reports::Seen;
use super::seat::Seat;
use super::seats::Seats;
use crate::clock::RunClock;
use crate::config::Casting;
use crate::control::Control;
use crate::crowd::Order;
use crate::signalling::Told;

/// Joins begun before others are served: making a participant takes about a millisecond of CPU.
const JOINS_A_PASS: usize = 4;

/// Sockets of who joins, and tidings, that are dealt with even when it is time for those who play: a burst of joins
/// cannot make their timers late by more than a few handshakes take, and a worker that is always late goes on joining.
const TURNS_MIN: usize = 2;

/// Sockets that one look at readiness may return.
const READY_MAX: usize = 1024;

/// Participants whose memory is read ahead at a time: together they fit the second-level cache.
const WARMED: usize = 8;

/// With nothing to do the loop still looks around this often.
const IDLE: Duration = Duration::from_millis(100);

/// A participant that has no media after this long is served by tick as the others.
const JOINING_MAX: Duration = Duration::from_secs(15);

/// What a worker is to do.
pub(crate) struct Duty {
    pub(crate) clock: RunClock,
    pub(crate) tick: Duration,
    /// Which worker it is.
    pub(crate) number: usize,
    /// Whether more may be called: then it does not end for want of participants.
    pub(crate) is_open: bool,
    pub(crate) ends_at: Instant,
    pub(crate) joins: Joins,
    pub(crate) casting: Arc<dyn Casting>,
    pub(crate) control: Arc<Control>,
    pub(crate) inbox: mpsc::Receiver<Told>,
}

/// One worker.
pub(crate) struct Worker {
    duty: Duty,
    hub: Hub,
    seats: Seats,
    /// Who joined lately and when, in order: the slow among them are served by tick in the end.
    lately: VecDeque<(Instant, u32)>,
    leaving: bool,
    /// Sockets that were not emptied: others had their turn first.
    unfinished: Vec<(u32, Channel)>,
}

impl Worker {
    pub(crate) fn new(duty: Duty, hub: Hub) -> Self {
        let (seats, lately) = (Seats::default(), VecDeque::new());
        Self { duty, hub, seats, lately, leaving: false, unfinished: Vec::new() }
    }

    /// Runs until its participants are gone and no more join. Only the wait is asynchronous: signalling runs in it, and
    /// everything else is the plain loop that it seems to be.
    pub(crate) async fn run(mut self) {
        let mut ready: Vec<epoll::Event> = Vec::with_capacity(READY_MAX);
        let mut told: Vec<Told> = Vec::new();
        let mut now = Instant::now();
        let mut pulse = Pulse::begin(self.duty.clock, now);
        let mut tick = now;
        while !self.is_done() {
            let until = if told.is_empty() { self.wakes_at(tick, now) } else { now };
            self.hub.wait((now, until), &mut ready, &mut self.duty.inbox, &mut told).await;
            now = Instant::now();
            self.take(&mut told, tick);
            self.serve_joining(&mut ready, tick);
            self.take_orders(now);
            self.begin_joins(now);
            if now >= tick {
                self.serve_unfinished();
                self.hub.poll_settled(&mut ready);
                self.serve(&mut ready);
                now = Instant::now();
                // Here timers are served, so here it shows how late; whether packets or the clock woke the loop is all one.
                pulse.lag(now.saturating_duration_since(until.max(tick)));
                self.serve_due(now);
                self.housekeep(now, &mut pulse);
                // Deadlines are absolute: work within a tick does not push the next one away.
                tick += self.duty.tick;
                if tick < now {
                    tick = now + self.duty.tick;
                }
            }
            now = Instant::now();
        }
        let row = pulse.turn(self.duty.clock, now + Duration::from_secs(1), &mut self.hub);
        row.into_iter().for_each(|row| self.hub.reports.push(Seen::Health(row)));
        self.hub.finish().await;
    }

    fn is_done(&self) -> bool {
        let no_more_join = || !self.duty.is_open && self.duty.joins.next().is_none();
        self.seats.taken() == 0 && (self.leaving || no_more_join())
    }

    fn wakes_at(&self, tick: Instant, now: Instant) -> Instant {
        let join = self.next_join_at().map(|at| at.max(now));
        let calm = if self.hub.settled_sockets + self.hub.eager_sockets > 0 {
            tick
        } else {
            let timer = self.hub.timers.next();
            [timer, (!self.leaving).then_some(self.duty.ends_at)]
                .into_iter()
                .flatten()
                .fold(now + IDLE, Instant::min)
                .max(tick)
        };
        join.map_or(calm, |join| join.min(calm))
    }

    fn next_join_at(&self) -> Option<Instant> {
        let (_, join) = self.duty.joins.next().filter(|_| !self.leaving)?;
        Some(self.duty.clock.instant(join.at))
    }

    fn serve(&mut self, ready: &mut Vec<epoll::Event>) {
        for group in ready.chunks(WARMED) {
            self.warm(group.iter().map(|event| (event.data.u64() >> 16) as u32));
            for event in group {
                self.serve_one(event.data.u64());
            }
        }
        ready.clear();
    }

    /// Serves who joins, as long as nobody who plays waits for it. The others are told as ready again, before those who
    /// had their turn.
    fn serve_joining(&mut self, ready: &mut Vec<epoll::Event>, tick: Instant) {
        for (turn, event) in ready.drain(..).enumerate() {
            if turn >= TURNS_MIN && Instant::now() >= tick {
                return;
            }
            self.serve_one(event.data.u64());
        }
    }

    fn serve_one(&mut self, ready: u64) {
        match ready {
            WAKE => self.hub.waker.rest(),
            data => self.receive((data >> 16) as u32, Channel((data & 0xffff) as u16)),
        }
    }

    /// Reads ahead what those who are served next will need.
    fn warm(&self, numbers: impl Iterator<Item = u32>) {
        let seats = numbers.filter_map(|number| self.seats.get(number));
        std::hint::black_box(seats.fold(0, |sum, seat| sum ^ seat.warm()));
    }

    fn receive(&mut self, seat: u32, channel: Channel) {
        let mut emptied = true;
        self.with(seat, |seat, hub| emptied = seat.receive(channel, hub));
        if !emptied && !self.unfinished.contains(&(seat, channel)) {
            self.unfinished.push((seat, channel));
        }
    }

    fn serve_unfinished(&mut self) {
        for (seat, channel) in std::mem::take(&mut self.unfinished) {
            self.receive(seat, channel);
        }
    }

    /// Hands tidings on, as long as nobody who plays waits for it; the others are left.
    fn take(&mut self, told: &mut Vec<Told>, tick: Instant) {
        let mut left = Vec::new();
        for (turn, tidings) in told.drain(..).enumerate() {
            if turn >= TURNS_MIN && Instant::now() >= tick {
                left.push(tidings);
                continue;
            }
            let Told { seat, what } = tidings;
            self.with(seat, |seat, hub| seat.told(Instant::now(), what, hub));
        }
        told.append(&mut left);
    }

    /// Who was called is seated in time; who was dismissed leaves now, or is not let in.
    fn take_orders(&mut self, now: Instant) {
        if !self.duty.is_open {
            return;
        }
        for order in self.duty.control.crowd.orders_of(self.duty.number) {
            match order {
                Order::Join(who, join) => self.duty.joins.call(who, join),
                Order::Dismiss(who) => self.dismiss(who, now),
            }
        }
    }

    fn dismiss(&mut self, who: u32, now: Instant) {
        match self.seats.number_of(who) {
            Some(number) => self.with(number, |seat, hub| seat.dismiss(now, hub)),
            None => self.duty.joins.dismiss(who),
        }
    }

    fn begin_joins(&mut self, now: Instant) {
        for _ in 0..JOINS_A_PASS {
            let Some(intended_at) = self.next_join_at().filter(|at| *at <= now) else { return };
            if self.duty.control.stopped().is_some() {
                return;
            }
            let Some((who, join)) = self.duty.joins.take() else { return };
            let made = guarded(|| self.duty.casting.participant(&join));
            let now = Instant::now();
            self.hub.reports.push(Seen::Started { who, at: now });
            let participant = match made {
                Ok(participant) => participant,
                Err(defect) => {
                    self.hub.reports.push(Seen::Ended { who, at: now, outcome: Outcome::Failed(defect) });
                    continue;
                }
            };
            let leave_at = join.leave_at.map(|at| self.duty.clock.instant(at));
            let seat = |number| Seat::new(number, who, participant, &join, leave_at);
            let number = self.seats.take(who, seat);
            self.lately.push_back((now, number));
            self.with(number, |seat, hub| seat.start(now, intended_at, hub));
        }
    }

    fn serve_due(&mut self, now: Instant) {
        let mut group: Vec<(Instant, u32)> = Vec::with_capacity(WARMED);
        loop {
            group.extend(std::iter::from_fn(|| self.hub.timers.pop(now)).take(WARMED));
            if group.is_empty() {
                return;
            }
            self.warm(group.iter().map(|(_, number)| *number));
            for (entry, number) in group.drain(..) {
                self.with(number, |seat, hub| {
                    if hub.timers.is_due(number, &mut seat.deadline, entry, now) {
                        seat.timeout(now, hub);
                    }
                });
            }
        }
    }

    fn housekeep(&mut self, now: Instant, pulse: &mut Pulse) {
        if !self.leaving && (now >= self.duty.ends_at || self.duty.control.stopped().is_some()) {
            self.leaving = true;
            for number in self.seats.numbers() {
                self.with(number, |seat, hub| seat.dismiss(now, hub));
            }
        }
        if let Some(row) = pulse.turn(self.duty.clock, now, &mut self.hub) {
            self.hub.reports.push(Seen::Health(row));
            self.settle_the_slow(now);
        }
        self.hub.reports.flush_in_time(now);
    }

    fn settle_the_slow(&mut self, now: Instant) {
        let is_over = |(at, _): &(Instant, u32)| now.saturating_duration_since(*at) > JOINING_MAX;
        while self.lately.front().is_some_and(is_over) {
            let slow = self.lately.pop_front();
            // Who plays by now is served so already.
            slow.into_iter().for_each(|(_, number)| self.with(number, Seat::settle));
        }
    }

    /// Does something with a seat, if it is taken, and clears it when that ended it.
    fn with(&mut self, number: u32, act: impl FnOnce(&mut Seat, &mut Hub)) {
        let Some(seat) = self.seats.get_mut(number) else { return };
        act(seat, &mut self.hub);
        if seat.ended().is_some()
            && let Some(seat) = self.seats.clear(number)
        {
            seat.vacate(Instant::now(), &mut self.hub);
        }
    }
}
