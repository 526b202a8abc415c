//! Maintains the connection to an agent: pings, reconnects after a loss, and turns the agent's rows
//! into the run's.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use throng_observation::host::{HostEventKind, HostId, HostRow, HostSample};
use throng_observation::units;
use tokio::sync::mpsc;

use super::connection::{Connection, LOST_AFTER, RemoteConfig, cut};
use super::translator::RowTranslator;
use crate::remote::clock::AgentClock;
use crate::remote::wire::{Frame, Request, Response};
use crate::rows::RowSender;

/// Keep-alive interval, and the shorter interval of the first pings, which align the clocks.
const PING_EVERY: Duration = Duration::from_secs(1);
const FIRST_PINGS: u32 = 10;
const FIRST_PING_EVERY: Duration = Duration::from_millis(20);
const RECONNECT_EVERY: Duration = Duration::from_secs(1);

/// The agent's current state, shared with the connection's thread.
#[derive(Debug)]
pub(super) struct Shared {
    heard_at: Mutex<Instant>,
    is_connected: AtomicBool,
    /// Consent ends when the agent is lost, even if it comes back: another user may have started
    /// it.
    pub(super) was_lost: AtomicBool,
    pub(super) clock_error_us: AtomicU64,
    /// Requested profiles that have not arrived.
    pub(super) profiles_due: AtomicU32,
}

/// Commands for the connection's thread.
pub(super) enum AgentCommand {
    Begin { host: HostId, zero: Instant, rows: RowSender, name: Option<String> },
    Profile { moment: String, duration: Duration },
    EndProfile,
}

impl Shared {
    pub(super) fn new() -> Self {
        Self {
            heard_at: Mutex::new(Instant::now()),
            is_connected: AtomicBool::new(true),
            was_lost: AtomicBool::new(false),
            clock_error_us: AtomicU64::new(u64::MAX),
            profiles_due: AtomicU32::new(0),
        }
    }

    pub(super) fn is_present(&self) -> bool {
        let heard_at = *self.heard_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_connected.load(Relaxed) && heard_at.elapsed() < LOST_AFTER
    }

    /// A requested profile has arrived, or has failed.
    fn profile_done(&self) {
        let one_less = |due: u32| Some(due.saturating_sub(1));
        let _ = self.profiles_due.fetch_update(Relaxed, Relaxed, one_less);
    }

    fn heard(&self) {
        *self.heard_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// A connection to an agent that is reopened after a loss.
pub(super) struct Link {
    pub(super) config: RemoteConfig,
    pub(super) shared: Arc<Shared>,
    pub(super) translator: Option<RowTranslator>,
}

/// The state of one connection: the clock estimate, the last ping, and whether rows have been
/// requested.
struct ConnectionState {
    /// Origin of the clock's times.
    base: Instant,
    clock: AgentClock,
    pings: u32,
    /// Number and send time of the last ping.
    pinged: Option<(u32, i64)>,
    /// Rows are to be requested once the clocks are aligned.
    wants_rows: bool,
    is_aligned: bool,
}

impl ConnectionState {
    fn now_us(&self) -> i64 {
        i64::try_from(self.base.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    /// Records a ping that is sent now; returns its number.
    fn ping(&mut self) -> u32 {
        self.pings = self.pings.wrapping_add(1);
        self.pinged = Some((self.pings, self.now_us()));
        self.pings
    }
}

impl Link {
    /// Serves until all senders of commands are dropped.
    pub(super) async fn run(
        mut self,
        first: Connection,
        mut commands: mpsc::Receiver<AgentCommand>,
    ) {
        let mut connection = first;
        loop {
            let ended = self.serve(&mut connection, &mut commands).await;
            self.shared.was_lost.store(true, Relaxed);
            self.shared.is_connected.store(false, Relaxed);
            // What was under way does not come over another connection.
            self.shared.profiles_due.store(0, Relaxed);
            drop(connection);
            self.end_series();
            let Err(why) = ended else { return };
            self.event(&format!("the watcher at {} is lost: {why}", self.config.address));
            connection = loop {
                tokio::time::sleep(RECONNECT_EVERY).await;
                // Commands that arrived meanwhile have no connection; a closed channel ends the
                // loop.
                loop {
                    match commands.try_recv() {
                        Ok(command) => self.start_rows(command),
                        Err(mpsc::error::TryRecvError::Empty) => break,
                        Err(mpsc::error::TryRecvError::Disconnected) => return,
                    }
                }
                if let Ok(connection) = Connection::open(&self.config).await {
                    break connection;
                }
            };
            self.shared.heard();
            self.shared.is_connected.store(true, Relaxed);
            self.event(&format!("the watcher at {} is back", self.config.address));
        }
    }

    /// Serves one connection until the senders of commands are dropped; an error is why it was lost
    /// before.
    async fn serve(
        &mut self,
        connection: &mut Connection,
        commands: &mut mpsc::Receiver<AgentCommand>,
    ) -> Result<(), String> {
        let lost = |error: io::Error| error.to_string();
        let mut state = ConnectionState {
            base: Instant::now(),
            clock: AgentClock::default(),
            pings: 0,
            pinged: None,
            wants_rows: self.translator.is_some(),
            is_aligned: false,
        };
        let mut ping_at = tokio::time::Instant::now();
        loop {
            tokio::select! {
                command = commands.recv() => {
                    let Some(command) = command else { return Ok(()) };
                    if let Some(request) = self.request(command, &mut state) {
                        connection.ask(&request).await.map_err(lost)?;
                    }
                }
                () = tokio::time::sleep_until(ping_at) => {
                    let heard_at =
                        *self.shared.heard_at.lock().unwrap_or_else(PoisonError::into_inner);
                    if heard_at.elapsed() >= LOST_AFTER {
                        let silent = units::duration(LOST_AFTER);
                        return Err(format!("nothing was received for {silent}"));
                    }
                    let number = state.ping();
                    connection.ask(&Request::Ping { number }).await.map_err(lost)?;
                    ping_at += if number < FIRST_PINGS { FIRST_PING_EVERY } else { PING_EVERY };
                }
                frame = connection.frames.next::<Response>(&mut connection.reader) => {
                    match frame.map_err(lost)? {
                        Frame::Samples(samples) => self.samples(&samples, &state),
                        Frame::Message(Response::Row(row)) => self.row(row, &state),
                        Frame::Message(Response::Pong { number, agent_us, rows_dropped }) => {
                            self.pong(&mut state, number, agent_us, rows_dropped);
                            if state.is_aligned && std::mem::take(&mut state.wants_rows) {
                                connection.ask(&Request::Begin).await.map_err(lost)?;
                            }
                        }
                        Frame::Message(Response::NoProfile { why }) => self.no_profile(&why),
                        Frame::Message(Response::Refused { why }) => return Err(cut(&why)),
                        Frame::Message(Response::Welcome { .. }) => {
                            return Err("it sent a second welcome".into());
                        }
                    }
                }
            }
        }
    }

    /// The request for a command; `None` if it has to wait until the clocks are aligned.
    fn request(&mut self, command: AgentCommand, state: &mut ConnectionState) -> Option<Request> {
        match command {
            begin @ AgentCommand::Begin { .. } => {
                self.start_rows(begin);
                state.wants_rows = !state.is_aligned;
                state.is_aligned.then_some(Request::Begin)
            }
            AgentCommand::Profile { moment, duration } => {
                let duration_ms = u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
                Some(Request::Profile { moment, duration_ms })
            }
            AgentCommand::EndProfile => Some(Request::EndProfile),
        }
    }

    /// Sets where rows go; a profile needs a connection, and is not made later.
    fn start_rows(&mut self, command: AgentCommand) {
        match command {
            AgentCommand::Begin { host, zero, rows, name } => {
                self.translator = Some(RowTranslator::new(host, name, zero, rows));
            }
            AgentCommand::Profile { .. } => self.shared.profile_done(),
            AgentCommand::EndProfile => {}
        }
    }

    fn pong(&mut self, state: &mut ConnectionState, number: u32, agent_us: i64, rows_dropped: u64) {
        self.shared.heard();
        if let Some((_, sent_us)) = state.pinged.take_if(|(pinged, _)| *pinged == number) {
            state.clock.heard(sent_us, agent_us, state.now_us());
            self.shared.clock_error_us.store(state.clock.error_us(), Relaxed);
        }
        state.is_aligned |= number >= FIRST_PINGS;
        if let Some(translator) = &mut self.translator {
            translator.rows.count_dropped(rows_dropped.saturating_sub(translator.dropped_before));
            translator.dropped_before = rows_dropped;
        }
    }

    fn samples(&mut self, samples: &[HostSample], state: &ConnectionState) {
        let Some(translator) = &mut self.translator else { return };
        for sample in samples {
            let Some(series) = translator.series_of(sample) else { continue };
            let at = translator.run_time(sample.at, &state.clock, state.base);
            translator.rows.send(HostRow::Sample(HostSample { series, at, value: sample.value }));
        }
    }

    fn row(&mut self, row: HostRow, state: &ConnectionState) {
        let Some(translator) = &mut self.translator else { return };
        let row = match row {
            HostRow::Sample(sample) => return self.samples(&[sample], state),
            HostRow::Series(mut series) => {
                let Some(ours) = translator.announce(series.id) else { return };
                (series.id, series.host) = (ours, translator.host);
                HostRow::Series(series)
            }
            HostRow::Info(mut info) => {
                info.host = translator.host;
                translator.clock_error_us = translator.clock_error_us.max(state.clock.error_us());
                info.clock_error_us = translator.clock_error_us;
                if let Some(name) = &translator.name {
                    info.name.clone_from(name);
                }
                HostRow::Info(info)
            }
            HostRow::Event(mut event) => {
                (event.host, event.at) =
                    (translator.host, translator.run_time(event.at, &state.clock, state.base));
                HostRow::Event(event)
            }
            HostRow::Profile(mut profile) => {
                self.shared.profile_done();
                (profile.host, profile.started_at) = (
                    translator.host,
                    translator.run_time(profile.started_at, &state.clock, state.base),
                );
                HostRow::Profile(profile)
            }
        };
        translator.rows.send(row);
    }

    /// A requested profile will not come: it is not waited for.
    fn no_profile(&self, why: &str) {
        self.shared.profile_done();
        let Some(translator) = &self.translator else { return };
        translator.event(HostEventKind::Unreadable, format!("no profile: {}", cut(why)));
    }

    /// Ends all series. After a loss the agent assigns new series ids.
    fn end_series(&mut self) {
        if let Some(translator) = &mut self.translator {
            translator.end_series();
        }
    }

    fn event(&self, detail: &str) {
        let Some(translator) = &self.translator else { return };
        translator.event(HostEventKind::Watcher, detail.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::RunTime;
    use throng_observation::host::HostEvent;

    #[test]
    fn a_profile_is_waited_for_until_the_agent_says_that_there_is_none_whatever_events_say() {
        let (rows, receiver) = crate::rows(10);
        let config =
            RemoteConfig { address: String::new(), token: String::new(), fingerprint: None };
        let translator = Some(RowTranslator::new(HostId(1), None, Instant::now(), rows));
        let mut link = Link { config, shared: Arc::new(Shared::new()), translator };
        let state = ConnectionState {
            base: Instant::now(),
            clock: AgentClock::default(),
            pings: 0,
            pinged: None,
            wants_rows: false,
            is_aligned: true,
        };
        link.shared.profiles_due.store(1, Relaxed);
        let detail = "no profile: the log of a server has these words".to_owned();
        let event = HostEvent::new(HostId(0), RunTime(0), HostEventKind::Unreadable, detail);
        link.row(HostRow::Event(event), &state);
        assert_eq!(link.shared.profiles_due.load(Relaxed), 1);
        link.no_profile("another profile is being taken");
        assert_eq!(link.shared.profiles_due.load(Relaxed), 0);
        let said: Vec<HostRow> = receiver.try_iter().collect();
        assert!(
            matches!(&said[..], [_, HostRow::Event(event)]
                if event.kind == HostEventKind::Unreadable
                    && event.detail == "no profile: another profile is being taken"),
            "{said:?}"
        );
    }
}
