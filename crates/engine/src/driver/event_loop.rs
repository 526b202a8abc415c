//! The event loop of one engine thread: it waits, serves sockets of joining participants at once,
//! and on each tick serves sockets of playing participants, expired timers and joins whose time has
//! come.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use throng_observation::Outcome;
use throng_protocol::participant::{Channel, PREFETCH_LEVELS, Prefetcher};
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
use crate::crowd::CrowdCommand;
use crate::signalling::SlotEvent;
use crate::sockets::RingEntry;

/// Joins begun in one pass of the loop: making a participant takes about a millisecond of CPU.
const JOINS_PER_PASS: usize = 4;

/// Joining sockets, and signalling events, that are served even when it is time for the tick. A
/// burst of joins cannot delay playing participants by more than a few handshakes, and a thread
/// that is always late still makes progress on joins.
const TURNS_MIN: usize = 2;

/// Ready sockets that one `epoll_wait` may return.
const READY_MAX: usize = 1024;

/// Participants prefetched at a time: of each some 7 kB, so that together they fit the first-level
/// cache.
const PREFETCHED: usize = 4;

/// How often datagrams are taken from rings: each second tick, so that a participant is served for
/// several at a time. Browsers look for packets to request again every 20 ms (libwebrtc
/// `NackPeriodicProcessor`).
const RING_EVERY: Duration = Duration::from_millis(10);

/// Longest wait of an idle loop.
const IDLE: Duration = Duration::from_millis(100);

/// A participant without media is served by tick from this long after its join.
const JOINING_MAX: Duration = Duration::from_secs(15);

/// What an event loop needs at its start.
pub(crate) struct EventLoopConfig {
    pub(crate) clock: RunClock,
    pub(crate) tick: Duration,
    /// Index of the thread.
    pub(crate) number: usize,
    /// Whether participants may be added; if so, the loop does not end when it has none.
    pub(crate) is_open: bool,
    pub(crate) ends_at: Instant,
    pub(crate) joins: JoinQueue,
    pub(crate) factory: Arc<dyn ParticipantFactory>,
    pub(crate) control: Arc<Control>,
    pub(crate) inbox: mpsc::Receiver<SlotEvent>,
}

/// The event loop of one thread.
pub(crate) struct EventLoop {
    config: EventLoopConfig,
    io: IoContext,
    slots: Slots,
    /// When participants joined, in order: those that take too long to connect are served by tick.
    recent_joins: VecDeque<(Instant, u32)>,
    leaving: bool,
    /// Sockets that still have datagrams after their turn.
    unfinished: Vec<(u32, Channel)>,
    /// Sockets with datagrams in a ring, or whose use of it changes; empty between passes.
    of_ring: Vec<(u32, Channel, RingEntry)>,
    /// When rings are served next.
    rings_at: Instant,
}

impl EventLoop {
    pub(crate) fn new(config: EventLoopConfig, io: IoContext) -> Self {
        let (slots, recent_joins) = (Slots::default(), VecDeque::new());
        let (unfinished, of_ring) = (Vec::new(), Vec::new());
        let rings_at = Instant::now();
        Self { config, io, slots, recent_joins, leaving: false, unfinished, of_ring, rings_at }
    }

    /// Runs until its participants have ended and no more join. Only the wait is asynchronous:
    /// signalling tasks run during it.
    pub(crate) async fn run(mut self) {
        let mut ready: Vec<epoll::Event> = Vec::with_capacity(READY_MAX);
        let mut events: Vec<SlotEvent> = Vec::new();
        let mut now = Instant::now();
        let mut health = ThreadHealth::start(self.config.clock, now);
        let mut tick = now;
        while !self.is_done() {
            let until = if events.is_empty() { self.wakes_at(tick, now) } else { now };
            self.io.wait((now, until), &mut ready, &mut self.config.inbox, &mut events).await;
            now = Instant::now();
            self.deliver_signalling(&mut events, tick);
            self.serve_joining(&mut ready, tick);
            self.take_crowd_commands(now);
            self.begin_joins(now);
            if now >= tick {
                self.serve_unfinished();
                self.io.poll_on_tick(&mut ready);
                self.serve(&mut ready);
                self.serve_rings(tick);
                now = Instant::now();
                // Timers are served here, so lateness is measured here, whatever woke the loop.
                let late = now.saturating_duration_since(until.max(tick));
                health.record_lag(self.config.clock, now, late);
                self.serve_due(now);
                self.housekeep(now, &mut health);
                // Deadlines are absolute: work within a tick does not delay the next one.
                tick += self.config.tick;
                if tick < now {
                    tick = now + self.config.tick;
                }
            }
            now = Instant::now();
        }
        let rows =
            health.finish_second(self.config.clock, now + Duration::from_secs(1), &mut self.io);
        rows.into_iter().for_each(|row| self.io.collector.push(DriverEvent::Health(row)));
        self.io.finish().await;
    }

    fn is_done(&self) -> bool {
        let no_more_join = || !self.config.is_open && self.config.joins.next().is_none();
        self.slots.len() == 0 && (self.leaving || no_more_join())
    }

    fn wakes_at(&self, tick: Instant, now: Instant) -> Instant {
        let join = self.next_join_at().map(|at| at.max(now));
        let calm = if self.io.on_tick_sockets + self.io.immediate_sockets > 0 {
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
        for group in ready.chunks(PREFETCHED) {
            self.prefetch(&group.iter().map(|event| (event.data.u64() >> 16) as u32));
            for event in group {
                self.serve_one(event.data.u64());
            }
        }
        ready.clear();
    }

    /// Serves sockets of joining participants until the next tick. The rest stays ready, and the
    /// next `epoll_wait` returns it first.
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
            WAKE => self.io.waker.clear(),
            data => self.receive((data >> 16) as u32, Channel((data & 0xffff) as u16)),
        }
    }

    /// Has the CPU load the memory of participants that are served next.
    fn prefetch(&self, keys: &(impl Iterator<Item = u32> + Clone)) {
        let mut load = throng_net::prefetch;
        let mut prefetcher = Prefetcher::new(&mut load);
        // A slot points to its participant, whose levels follow.
        for level in 0..=PREFETCH_LEVELS {
            let slots = keys.clone().filter_map(|key| self.slots.get(key));
            slots.for_each(|slot| slot.prefetch(level, &mut prefetcher));
        }
    }

    fn receive(&mut self, slot: u32, channel: Channel) {
        let mut emptied = true;
        self.with(slot, |slot, io| emptied = slot.receive(channel, io));
        self.go_on_later(emptied, slot, channel);
    }

    /// Edge-triggered: what is not read now would wait for the next datagram.
    fn go_on_later(&mut self, emptied: bool, slot: u32, channel: Channel) {
        if !emptied && !self.unfinished.contains(&(slot, channel)) {
            self.unfinished.push((slot, channel));
        }
    }

    fn serve_unfinished(&mut self) {
        for (slot, channel) in std::mem::take(&mut self.unfinished) {
            self.receive(slot, channel);
        }
    }

    /// Delivers what has arrived in the rings, one socket after the other.
    fn serve_rings(&mut self, tick: Instant) {
        if !self.io.rings.is_used() {
            return;
        }
        let clocks = self.io.clocks.read();
        if clocks.now < self.rings_at {
            return;
        }
        self.rings_at = tick + RING_EVERY;
        let mut sockets = std::mem::take(&mut self.of_ring);
        self.io.rings.collect(clocks, &mut sockets);
        for group in sockets.chunks(PREFETCHED) {
            group.iter().for_each(|(.., entry)| self.io.rings.prefetch_first(*entry));
            self.prefetch(&group.iter().map(|(slot, ..)| *slot));
            for &(slot, channel, entry) in group {
                self.with(slot, |slot, io| slot.receive_from_ring((channel, entry), clocks, io));
            }
        }
        self.io.rings.release(&sockets);
        sockets.clear();
        self.io.rings.due(clocks.now, &mut sockets);
        for (slot, channel, entry) in sockets.drain(..) {
            // What a socket takes from now on counts from now, not from when this pass began.
            let clocks = self.io.clocks.read();
            let mut emptied = true;
            self.with(slot, |slot, io| emptied = slot.step_ring((channel, entry), clocks, io));
            self.go_on_later(emptied, slot, channel);
        }
        self.of_ring = sockets;
    }

    /// Delivers signalling events until the next tick; the rest stays in `events`.
    fn deliver_signalling(&mut self, events: &mut Vec<SlotEvent>, tick: Instant) {
        let mut left = Vec::new();
        for (turn, event) in events.drain(..).enumerate() {
            if turn >= TURNS_MIN && Instant::now() >= tick {
                left.push(event);
                continue;
            }
            let SlotEvent { slot, what } = event;
            self.with(slot, |slot, io| slot.on_signalling(Instant::now(), what, io));
        }
        events.append(&mut left);
    }

    /// Queues added participants; removed ones leave now, or do not join.
    fn take_crowd_commands(&mut self, now: Instant) {
        if !self.config.is_open {
            return;
        }
        for command in self.config.control.crowd.take_for_thread(self.config.number) {
            match command {
                CrowdCommand::Add(id, join) => self.config.joins.push(id, join),
                CrowdCommand::Remove(id) => self.remove(id, now),
            }
        }
    }

    fn remove(&mut self, id: u32, now: Instant) {
        match self.slots.key_of(id) {
            Some(key) => self.with(key, |slot, io| slot.leave_now(now, io)),
            None => self.config.joins.remove(id),
        }
    }

    fn begin_joins(&mut self, now: Instant) {
        for _ in 0..JOINS_PER_PASS {
            let Some(intended_at) = self.next_join_at().filter(|at| *at <= now) else { return };
            if self.config.control.stopped().is_some() {
                return;
            }
            let Some((id, join)) = self.config.joins.take() else { return };
            let made = catch_panic(|| self.config.factory.participant(&join));
            let now = Instant::now();
            self.io.collector.push(DriverEvent::Started { id, at: now });
            let participant = match made {
                Ok(participant) => participant,
                Err(defect) => {
                    self.io.collector.push(DriverEvent::Ended {
                        id,
                        at: now,
                        outcome: Outcome::Failed(defect),
                    });
                    continue;
                }
            };
            let leave_at = join.leave_at.map(|at| self.config.clock.instant(at));
            let slot = |key| Slot::new(key, id, participant, &join, leave_at);
            let key = self.slots.insert(id, slot);
            self.recent_joins.push_back((now, key));
            self.with(key, |slot, io| slot.start(now, intended_at, io));
        }
    }

    fn serve_due(&mut self, now: Instant) {
        let mut group: Vec<(Instant, u32)> = Vec::with_capacity(PREFETCHED);
        loop {
            group.extend(std::iter::from_fn(|| self.io.timers.pop(now)).take(PREFETCHED));
            if group.is_empty() {
                return;
            }
            self.prefetch(&group.iter().map(|(_, key)| *key));
            for (entry, key) in group.drain(..) {
                self.with(key, |slot, io| {
                    if io.timers.is_due(key, &mut slot.deadline, entry, now) {
                        slot.timeout(now, io);
                    }
                });
            }
        }
    }

    fn housekeep(&mut self, now: Instant, health: &mut ThreadHealth) {
        if !self.leaving && (now >= self.config.ends_at || self.config.control.stopped().is_some())
        {
            self.leaving = true;
            for key in self.slots.keys() {
                self.with(key, |slot, io| slot.leave_now(now, io));
            }
        }
        let rows = health.finish_second(self.config.clock, now, &mut self.io);
        if !rows.is_empty() {
            rows.into_iter().for_each(|row| self.io.collector.push(DriverEvent::Health(row)));
            self.io.report_requests();
            self.serve_slow_joiners_on_tick(now);
        }
        self.io.collector.flush_in_time(now);
    }

    fn serve_slow_joiners_on_tick(&mut self, now: Instant) {
        let is_over = |(at, _): &(Instant, u32)| now.saturating_duration_since(*at) > JOINING_MAX;
        while self.recent_joins.front().is_some_and(is_over) {
            let slow = self.recent_joins.pop_front();
            // No effect on participants that play: they are served by tick already.
            slow.into_iter().for_each(|(_, key)| self.with(key, Slot::serve_on_tick));
        }
    }

    /// Calls `act` on an occupied slot, and frees the slot when its participant has ended.
    fn with(&mut self, key: u32, act: impl FnOnce(&mut Slot, &mut IoContext)) {
        let Some(slot) = self.slots.get_mut(key) else { return };
        act(slot, &mut self.io);
        if slot.ended().is_some()
            && let Some(slot) = self.slots.remove(key)
        {
            slot.close(Instant::now(), &mut self.io);
        }
    }
}
