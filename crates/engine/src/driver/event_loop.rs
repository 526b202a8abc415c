//! The loop of one thread: wait, serve those who join, and each tick serve those who play, whose time has come,
//! and who is to join.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use throng_observation::Outcome;
use throng_protocol::participant::Channel;
use tokio::sync::mpsc;

use super::collector_sender::DriverEvent;
use super::io_context::{IoContext, WAKE};
use super::join_queue::JoinQueue;
use super::panic_guard::catch_panic;
use super::slot::Slot;
use super::slots::Slots;
use super::thread_health::ThreadHealth;
use crate::clock::RunClock;
use crate::config::ParticipantFactory;
use crate::control::Control;
use crate::crowd::Order;
use crate::signalling::SlotEvent;

/// Joins begun before others are served: making a participant takes about a millisecond of CPU.
const JOINS_A_PASS: usize = 4;

/// Sockets of who joins, and tidings, that are dealt with even when it is time for those who play: a burst of joins
/// cannot make their timers late by more than a few handshakes take, and a thread that is always late goes on joining.
const TURNS_MIN: usize = 2;

/// Sockets that one look at readiness may return.
const READY_MAX: usize = 1024;

/// Participants whose memory is read ahead at a time: together they fit the second-level cache.
const WARMED: usize = 8;

/// With nothing to do the loop still looks around this often.
const IDLE: Duration = Duration::from_millis(100);

/// A participant that has no media after this long is served by tick as the others.
const JOINING_MAX: Duration = Duration::from_secs(15);

/// What a thread is to do.
pub(crate) struct EventLoopConfig {
    pub(crate) clock: RunClock,
    pub(crate) tick: Duration,
    /// Which thread it is.
    pub(crate) number: usize,
    /// Whether more may be called: then it does not end for want of participants.
    pub(crate) is_open: bool,
    pub(crate) ends_at: Instant,
    pub(crate) joins: JoinQueue,
    pub(crate) factory: Arc<dyn ParticipantFactory>,
    pub(crate) control: Arc<Control>,
    pub(crate) inbox: mpsc::Receiver<SlotEvent>,
}

/// One thread.
pub(crate) struct EventLoop {
    config: EventLoopConfig,
    io: IoContext,
    slots: Slots,
    /// Who joined lately and when, in order: the slow among them are served by tick in the end.
    lately: VecDeque<(Instant, u32)>,
    leaving: bool,
    /// Sockets that were not emptied: others had their turn first.
    unfinished: Vec<(u32, Channel)>,
}

impl EventLoop {
    pub(crate) fn new(config: EventLoopConfig, io: IoContext) -> Self {
        let (slots, lately) = (Slots::default(), VecDeque::new());
        Self { config, io, slots, lately, leaving: false, unfinished: Vec::new() }
    }

    /// Runs until its participants are gone and no more join. Only the wait is asynchronous: signalling runs in it, and
    /// everything else is the plain loop that it seems to be.
    pub(crate) async fn run(mut self) {
        let mut ready: Vec<epoll::Event> = Vec::with_capacity(READY_MAX);
        let mut told: Vec<SlotEvent> = Vec::new();
        let mut now = Instant::now();
        let mut health = ThreadHealth::begin(self.config.clock, now);
        let mut tick = now;
        while !self.is_done() {
            let until = if told.is_empty() { self.wakes_at(tick, now) } else { now };
            self.io.wait((now, until), &mut ready, &mut self.config.inbox, &mut told).await;
            now = Instant::now();
            self.take(&mut told, tick);
            self.serve_joining(&mut ready, tick);
            self.take_orders(now);
            self.begin_joins(now);
            if now >= tick {
                self.serve_unfinished();
                self.io.poll_settled(&mut ready);
                self.serve(&mut ready);
                now = Instant::now();
                // Here timers are served, so here it shows how late; whether packets or the clock woke the loop is all one.
                health.lag(now.saturating_duration_since(until.max(tick)));
                self.serve_due(now);
                self.housekeep(now, &mut health);
                // Deadlines are absolute: work within a tick does not push the next one away.
                tick += self.config.tick;
                if tick < now {
                    tick = now + self.config.tick;
                }
            }
            now = Instant::now();
        }
        let row = health.turn(self.config.clock, now + Duration::from_secs(1), &mut self.io);
        row.into_iter().for_each(|row| self.io.collector.push(DriverEvent::Health(row)));
        self.io.finish().await;
    }

    fn is_done(&self) -> bool {
        let no_more_join = || !self.config.is_open && self.config.joins.next().is_none();
        self.slots.taken() == 0 && (self.leaving || no_more_join())
    }

    fn wakes_at(&self, tick: Instant, now: Instant) -> Instant {
        let join = self.next_join_at().map(|at| at.max(now));
        let calm = if self.io.settled_sockets + self.io.eager_sockets > 0 {
            tick
        } else {
            let timer = self.io.timers.next();
            [timer, (!self.leaving).then_some(self.config.ends_at)]
                .into_iter()
                .flatten()
                .fold(now + IDLE, Instant::min)
                .max(tick)
        };
        join.map_or(calm, |join| join.min(calm))
    }

    fn next_join_at(&self) -> Option<Instant> {
        let (_, join) = self.config.joins.next().filter(|_| !self.leaving)?;
        Some(self.config.clock.instant(join.at))
    }

    fn serve(&mut self, ready: &mut Vec<epoll::Event>) {
        for group in ready.chunks(WARMED) {
            self.prefetch(group.iter().map(|event| (event.data.u64() >> 16) as u32));
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
            WAKE => self.io.waker.rest(),
            data => self.receive((data >> 16) as u32, Channel((data & 0xffff) as u16)),
        }
    }

    /// Reads ahead what those who are served next will need.
    fn prefetch(&self, numbers: impl Iterator<Item = u32>) {
        let slots = numbers.filter_map(|number| self.slots.get(number));
        std::hint::black_box(slots.fold(0, |sum, slot| sum ^ slot.prefetch()));
    }

    fn receive(&mut self, slot: u32, channel: Channel) {
        let mut emptied = true;
        self.with(slot, |slot, io| emptied = slot.receive(channel, io));
        if !emptied && !self.unfinished.contains(&(slot, channel)) {
            self.unfinished.push((slot, channel));
        }
    }

    fn serve_unfinished(&mut self) {
        for (slot, channel) in std::mem::take(&mut self.unfinished) {
            self.receive(slot, channel);
        }
    }

    /// Hands tidings on, as long as nobody who plays waits for it; the others are left.
    fn take(&mut self, told: &mut Vec<SlotEvent>, tick: Instant) {
        let mut left = Vec::new();
        for (turn, tidings) in told.drain(..).enumerate() {
            if turn >= TURNS_MIN && Instant::now() >= tick {
                left.push(tidings);
                continue;
            }
            let SlotEvent { slot, what } = tidings;
            self.with(slot, |slot, io| slot.told(Instant::now(), what, io));
        }
        told.append(&mut left);
    }

    /// Who was called is seated in time; who was dismissed leaves now, or is not let in.
    fn take_orders(&mut self, now: Instant) {
        if !self.config.is_open {
            return;
        }
        for order in self.config.control.crowd.orders_of(self.config.number) {
            match order {
                Order::Join(who, join) => self.config.joins.call(who, join),
                Order::Dismiss(who) => self.dismiss(who, now),
            }
        }
    }

    fn dismiss(&mut self, who: u32, now: Instant) {
        match self.slots.number_of(who) {
            Some(number) => self.with(number, |slot, io| slot.dismiss(now, io)),
            None => self.config.joins.dismiss(who),
        }
    }

    fn begin_joins(&mut self, now: Instant) {
        for _ in 0..JOINS_A_PASS {
            let Some(intended_at) = self.next_join_at().filter(|at| *at <= now) else { return };
            if self.config.control.stopped().is_some() {
                return;
            }
            let Some((who, join)) = self.config.joins.take() else { return };
            let made = catch_panic(|| self.config.factory.participant(&join));
            let now = Instant::now();
            self.io.collector.push(DriverEvent::Started { who, at: now });
            let participant = match made {
                Ok(participant) => participant,
                Err(defect) => {
                    self.io.collector.push(DriverEvent::Ended {
                        who,
                        at: now,
                        outcome: Outcome::Failed(defect),
                    });
                    continue;
                }
            };
            let leave_at = join.leave_at.map(|at| self.config.clock.instant(at));
            let slot = |number| Slot::new(number, who, participant, &join, leave_at);
            let number = self.slots.take(who, slot);
            self.lately.push_back((now, number));
            self.with(number, |slot, io| slot.start(now, intended_at, io));
        }
    }

    fn serve_due(&mut self, now: Instant) {
        let mut group: Vec<(Instant, u32)> = Vec::with_capacity(WARMED);
        loop {
            group.extend(std::iter::from_fn(|| self.io.timers.pop(now)).take(WARMED));
            if group.is_empty() {
                return;
            }
            self.prefetch(group.iter().map(|(_, number)| *number));
            for (entry, number) in group.drain(..) {
                self.with(number, |slot, io| {
                    if io.timers.is_due(number, &mut slot.deadline, entry, now) {
                        slot.timeout(now, io);
                    }
                });
            }
        }
    }

    fn housekeep(&mut self, now: Instant, health: &mut ThreadHealth) {
        if !self.leaving && (now >= self.config.ends_at || self.config.control.stopped().is_some()) {
            self.leaving = true;
            for number in self.slots.numbers() {
                self.with(number, |slot, io| slot.dismiss(now, io));
            }
        }
        if let Some(row) = health.turn(self.config.clock, now, &mut self.io) {
            self.io.collector.push(DriverEvent::Health(row));
            self.settle_the_slow(now);
        }
        self.io.collector.flush_in_time(now);
    }

    fn settle_the_slow(&mut self, now: Instant) {
        let is_over = |(at, _): &(Instant, u32)| now.saturating_duration_since(*at) > JOINING_MAX;
        while self.lately.front().is_some_and(is_over) {
            let slow = self.lately.pop_front();
            // Who plays by now is served so already.
            slow.into_iter().for_each(|(_, number)| self.with(number, Slot::settle));
        }
    }

    /// Does something with a slot, if it is taken, and clears it when that ended it.
    fn with(&mut self, number: u32, act: impl FnOnce(&mut Slot, &mut IoContext)) {
        let Some(slot) = self.slots.get_mut(number) else { return };
        act(slot, &mut self.io);
        if slot.ended().is_some()
            && let Some(slot) = self.slots.clear(number)
        {
            slot.vacate(Instant::now(), &mut self.io);
        }
    }
}
