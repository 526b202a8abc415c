//! A worker thread: owns a socket and the sessions on it, encrypts for each viewer and sends.

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use throng_media::rtp::{NtpTime, PacketKind, classify};
use throng_net::{ReceiveBatch, Received, wait};

use crate::card::wall_clock_ns;
use crate::egress::Egress;
use crate::inbox::WorkerCommand;
use crate::receive_limiter::ReceiveLimiter;
use crate::room::Room;
use crate::session::{Media, Session, SessionContext};
use crate::sessions::Sessions;
use crate::source::{Burst, History, Source};
use crate::stats::add;
use crate::work::PlantedWork;

/// How often timers of sessions are checked.
const TICK: Duration = Duration::from_millis(10);
/// How long media is sent before datagrams, timers and commands are handled: an overloaded worker
/// must still notice that sessions end.
const MEDIA_TURN: Duration = Duration::from_millis(10);
/// Batches of datagrams received before media is sent again.
const RECEIVE_TURNS: usize = 8;

pub(crate) struct Worker {
    index: usize,
    room: Arc<Room>,
    sessions: Sessions,
    egress: Egress,
    history: [History; Source::COUNT],
    work: PlantedWork,
    receive_limiter: ReceiveLimiter,
    scratch: Vec<u8>,
    next_tick: Instant,
    load: Load,
}

/// How busy the thread was.
struct Load {
    since: Instant,
    waited: Duration,
}

impl Worker {
    pub(crate) fn new(index: usize, room: Arc<Room>, socket: UdpSocket) -> Self {
        let now = Instant::now();
        let config = &room.config;
        let share = config.workers.max(1) as u64;
        let queue = Duration::from_millis(config.egress_queue_ms.into());
        let limit = config.egress_bps.map(|bps| (bps / share, queue));
        let work = PlantedWork::new(&config.planted);
        let receive_limiter = ReceiveLimiter::new(config.planted.receive_rate, now);
        Self {
            index,
            room,
            sessions: Sessions::default(),
            egress: Egress::new(socket, limit, now),
            history: std::array::from_fn(|_| History::default()),
            work,
            receive_limiter,
            scratch: Vec::with_capacity(2_048),
            next_tick: now,
            load: Load { since: now, waited: Duration::ZERO },
        }
    }

    /// Works until stopped.
    pub(crate) fn run(mut self) {
        let mut received = ReceiveBatch::default();
        let room = Arc::clone(&self.room);
        let inbox = &room.workers[self.index].inbox;
        let mut is_behind = false;
        loop {
            if !is_behind {
                self.rest();
            }
            for command in inbox.take_commands() {
                if matches!(command, WorkerCommand::Stop) {
                    return;
                }
                self.execute(command);
            }
            for _ in 0..RECEIVE_TURNS {
                let most = self.receive_limiter.allowed(Instant::now());
                let count = received.receive(self.egress.socket().as_fd(), most).unwrap_or(0);
                if count == 0 {
                    break;
                }
                self.receive_limiter.took(count);
                self.take_in(&mut received, count);
            }
            let turn_ends = Instant::now() + MEDIA_TURN;
            is_behind = false;
            while !is_behind && let Some(burst) = inbox.take_burst() {
                self.play(burst);
                let now = Instant::now();
                self.egress.depart(now);
                is_behind = now >= turn_ends;
            }
            let now = Instant::now();
            if now >= self.next_tick {
                self.next_tick = now + TICK;
                self.tick(now);
            }
            self.egress.depart(now);
            self.count();
        }
    }

    /// Waits for something to do.
    fn rest(&mut self) {
        let begun = Instant::now();
        let until = self
            .egress
            .next_departure()
            .map_or(self.next_tick, |leaves| leaves.min(self.next_tick));
        let timeout = until.saturating_duration_since(begun);
        let socket = (self.receive_limiter.allowed(begun) > 0).then(|| self.egress.socket());
        wait(socket, &self.room.workers[self.index].inbox.waker, timeout);
        self.load.waited += begun.elapsed();
    }

    fn execute(&mut self, command: WorkerCommand) {
        match command {
            WorkerCommand::Join(new) => self.sessions.add(Session::new(*new, Instant::now())),
            WorkerCommand::Leave(id) => {
                if let Some(slot) = self.sessions.slot_of_id(&id) {
                    self.close_session(slot);
                }
            }
            WorkerCommand::Candidate(id, candidate) => {
                if let Some(session) = self.sessions.by_id(&id) {
                    session.peer.add_candidate(&candidate);
                }
            }
            WorkerCommand::Live(channel, live) => {
                let has_card = self.room.config.emulates.has_card();
                self.sessions.switch(channel, live, has_card, &self.room.audience);
            }
            WorkerCommand::KeyFrame(channel) => {
                let now = Instant::now();
                let egress = &mut self.egress;
                for session in self.sessions.iter_mut().filter(|session| session.channel == channel)
                {
                    session.request_key_frame(now, &mut self.scratch, egress);
                }
            }
            WorkerCommand::Stop => {}
        }
    }

    fn take_in(&mut self, received: &mut ReceiveBatch, count: usize) {
        let now = Instant::now();
        add(&self.counters().datagrams_received, count as u64);
        for index in 0..count {
            let Some(Received { source, bytes: datagram, .. }) = received.get(index) else {
                continue;
            };
            let Some(slot) = self.sessions.slot_of_datagram(source, datagram) else {
                add(&self.counters().datagrams_refused, 1);
                continue;
            };
            let Some(session) = self.sessions.get_mut(slot) else { continue };
            session.heard_at = now;
            let mut context = SessionContext {
                now,
                room: &self.room,
                counters: &self.room.workers[self.index].counters,
                egress: &mut self.egress,
                history: &self.history,
            };
            match classify(datagram) {
                PacketKind::Rtcp => session.take_control(datagram, &mut context),
                PacketKind::Rtp => session.take_media(datagram, &mut context),
                _ => {
                    let egress = &mut self.egress;
                    session.peer.receive(now, source, datagram, &mut |to, bytes| {
                        egress.send_bytes(now, to, bytes);
                    });
                }
            }
            self.advance(slot);
        }
    }

    /// Begins media once a session has its keys, and removes a session that has ended.
    fn advance(&mut self, slot: usize) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        if session.begin_media(&self.room) {
            self.sessions.subscribe(slot, &self.room.audience);
        } else if session.peer.has_ended() {
            self.end(slot);
        }
    }

    fn play(&mut self, burst: Arc<Burst>) {
        let now = Instant::now();
        let lag = now.saturating_duration_since(burst.captured_at);
        self.counters().frame_lag_us.store(lag.as_micros() as u64, Relaxed);
        let (egress, work, turn) = (&mut self.egress, &mut self.work, &self.room.turn);
        self.sessions.each_subscriber(burst.source, |stream, transport| {
            if let Some(file) = &mut transport.file {
                file.read_ahead();
            }
            if !stream.takes(&burst) {
                return;
            }
            if !transport.has_read(&burst) {
                stream.pause();
                return;
            }
            let to = transport.to;
            for number in 0..burst.payloads.len() {
                work.spend(turn);
                egress.send(now, to, |out| stream.write(&burst, number, transport, out));
            }
        });
        self.history[burst.source.place()].keep(burst);
    }

    fn tick(&mut self, now: Instant) {
        let wall_clock = NtpTime::from_unix_ns(wall_clock_ns());
        for slot in 0..self.sessions.slots() {
            let Some(session) = self.sessions.get_mut(slot) else { continue };
            let egress = &mut self.egress;
            session.peer.tick(now, &mut |to, bytes| egress.send_bytes(now, to, bytes));
            session.report(now, wall_clock, &mut self.scratch, egress);
            if session.is_silent(now) {
                self.end(slot);
            } else {
                self.advance(slot);
            }
        }
        let connected = self
            .sessions
            .iter_mut()
            .filter(|session| matches!(session.media, Media::Viewing { .. }))
            .count();
        self.counters().viewers.store(self.sessions.len() as u64, Relaxed);
        self.counters().viewers_connected.store(connected as u64, Relaxed);
    }

    fn close_session(&mut self, slot: usize) {
        let now = Instant::now();
        if let Some(session) = self.sessions.get_mut(slot) {
            session.send_bye(now, &mut self.scratch, &mut self.egress);
        }
        self.end(slot);
    }

    fn end(&mut self, slot: usize) {
        if let Some(session) = self.sessions.remove(slot, &self.room.audience) {
            self.room.forget(&session.id);
        }
    }

    fn count(&mut self) {
        let (sent, dropped) = self.egress.take_counts();
        let counters = &self.room.workers[self.index].counters;
        add(&counters.packets_sent, sent.packets);
        add(&counters.bytes_sent, sent.bytes);
        add(&counters.send_errors, sent.failed);
        add(&counters.link_drops, dropped);
        let span = self.load.since.elapsed();
        if span >= Duration::from_secs(1) {
            let busy = 1.0 - self.load.waited.as_secs_f64() / span.as_secs_f64();
            counters.busy_permille.store((busy.clamp(0.0, 1.0) * 1000.0) as u64, Relaxed);
            let cpu = clock_gettime(ClockId::ThreadCPUTime);
            counters
                .cpu_us
                .store(cpu.tv_sec as u64 * 1_000_000 + cpu.tv_nsec as u64 / 1_000, Relaxed);
            self.load = Load { since: Instant::now(), waited: Duration::ZERO };
        }
    }

    fn counters(&self) -> &crate::stats::WorkerCounters {
        &self.room.workers[self.index].counters
    }
}
