//! Maintains the connection to an agent: pings, reconnects after a loss, and turns the agent's rows into the run's.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use throng_observation::host::{HostEventKind, HostRow, HostSample};
use throng_observation::units;
use tokio::sync::mpsc;

use super::connection::{Connection, cut};
use super::translator::RowTranslator;
use super::{AgentCommand, LOST_AFTER, RemoteConfig, Shared};
use crate::remote::clock::AgentClock;
use crate::remote::wire::{Frame, NO_PROFILE, Request, Response};

/// Keep-alive interval, and the shorter interval of the first pings, which align the clocks.
const PING_EVERY: Duration = Duration::from_secs(1);
const FIRST_PINGS: u32 = 10;
const FIRST_PING_EVERY: Duration = Duration::from_millis(20);
const RECONNECT_EVERY: Duration = Duration::from_secs(1);

/// A connection to an agent that is reopened after a loss.
pub(super) struct Link {
    pub(super) config: RemoteConfig,
    pub(super) shared: Arc<Shared>,
    pub(super) sink: Option<RowTranslator>,
}

/// Why a connection ended.
enum Over {
    /// The run closed it.
    Done,
    Lost(String),
}

impl Link {
    /// Serves until all senders of commands are dropped.
    pub(super) async fn run(mut self, first: Connection, mut orders: mpsc::Receiver<AgentCommand>) {
        let mut connection = first;
        loop {
            let over = self.serve(&mut connection, &mut orders).await;
            self.shared.was_lost.store(true, Relaxed);
            self.shared.is_connected.store(false, Relaxed);
            drop(connection);
            let why = match over {
                Over::Done => return self.end_series(),
                Over::Lost(why) => why,
            };
            self.end_series();
            self.tell(&format!("the watcher at {} is lost: {why}", self.config.address));
            connection = loop {
                tokio::time::sleep(RECONNECT_EVERY).await;
                // Commands that arrived meanwhile have no connection; a closed channel ends the loop.
                loop {
                    match orders.try_recv() {
                        Ok(order) => self.take_up(order),
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
            self.tell(&format!("the watcher at {} is back", self.config.address));
        }
    }

    /// Serves one connection until it ends.
    async fn serve(
        &mut self,
        connection: &mut Connection,
        orders: &mut mpsc::Receiver<AgentCommand>,
    ) -> Over {
        let lost = |error: io::Error| Over::Lost(error.to_string());
        let base = Instant::now();
        let now_us = || i64::try_from(base.elapsed().as_micros()).unwrap_or(i64::MAX);
        let mut clock = AgentClock::default();
        let (mut number, mut asked) = (0_u32, None);
        let mut ping_at = tokio::time::Instant::now();
        // Rows are requested once the clocks are aligned.
        let (mut begins, mut is_aligned) = (self.sink.is_some(), false);
        loop {
            tokio::select! {
                order = orders.recv() => {
                    let request = match order {
                        None => return Over::Done,
                        Some(AgentCommand::Profile { moment, duration }) => {
                            let duration_ms = u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
                            Request::Profile { moment, duration_ms }
                        }
                        Some(AgentCommand::EndProfile) => Request::EndProfile,
                        Some(order) => {
                            self.take_up(order);
                            begins = !is_aligned;
                            if begins {
                                continue;
                            }
                            Request::Begin
                        }
                    };
                    if let Err(error) = connection.ask(&request).await {
                        return lost(error);
                    }
                }
                () = tokio::time::sleep_until(ping_at) => {
                    let heard_at = *self.shared.heard_at.lock().unwrap_or_else(PoisonError::into_inner);
                    if heard_at.elapsed() >= LOST_AFTER {
                        return Over::Lost(format!("nothing was heard for {}", units::duration(LOST_AFTER)));
                    }
                    number = number.wrapping_add(1);
                    asked = Some((number, now_us()));
                    if let Err(error) = connection.ask(&Request::Ping { number }).await {
                        return lost(error);
                    }
                    ping_at += if number < FIRST_PINGS { FIRST_PING_EVERY } else { PING_EVERY };
                }
                frame = connection.frames.next::<Response>(&mut connection.reader) => match frame {
                    Err(error) => return lost(error),
                    Ok(Frame::Samples(samples)) => self.samples(&samples, &clock, base),
                    Ok(Frame::Message(Response::Row(row))) => self.row(row, &clock, base),
                    Ok(Frame::Message(Response::Pong { number, agent_us, rows_dropped })) => {
                        self.shared.heard();
                        if let Some((_, sent_us)) = asked.take_if(|(asked, _)| *asked == number) {
                            clock.heard(sent_us, agent_us, now_us());
                            self.shared.clock_error_us.store(clock.error_us(), Relaxed);
                        }
                        is_aligned |= number >= FIRST_PINGS;
                        if is_aligned
                            && std::mem::take(&mut begins)
                            && let Err(error) = connection.ask(&Request::Begin).await
                        {
                            return lost(error);
                        }
                        if let Some(sink) = &mut self.sink {
                            sink.rows.count_dropped(rows_dropped.saturating_sub(sink.dropped_before));
                            sink.dropped_before = rows_dropped;
                        }
                    }
                    Ok(Frame::Message(Response::Refused { why })) => return Over::Lost(cut(&why)),
                    Ok(Frame::Message(Response::Welcome { .. })) => return Over::Lost("it lost its place".into()),
                },
            }
        }
    }

    fn take_up(&mut self, order: AgentCommand) {
        if let AgentCommand::Begin { host, zero, rows, name } = order {
            self.sink = Some(RowTranslator::new(host, name, zero, rows));
        }
    }

    fn samples(&mut self, samples: &[HostSample], clock: &AgentClock, base: Instant) {
        let Some(sink) = &mut self.sink else { return };
        for sample in samples {
            let Some(series) = sink.placed(sample) else { continue };
            let at = sink.ours(sample.at, clock, base);
            sink.rows.send(HostRow::Sample(HostSample { series, at, value: sample.value }));
        }
    }

    fn row(&mut self, row: HostRow, clock: &AgentClock, base: Instant) {
        let Some(sink) = &mut self.sink else { return };
        let row = match row {
            HostRow::Sample(sample) => return self.samples(&[sample], clock, base),
            HostRow::Series(mut series) => {
                let Some(ours) = sink.announced(series.id) else { return };
                (series.id, series.host) = (ours, sink.host);
                HostRow::Series(series)
            }
            HostRow::Info(mut info) => {
                info.host = sink.host;
                sink.clock_error_us = sink.clock_error_us.max(clock.error_us());
                info.clock_error_us = sink.clock_error_us;
                if let Some(name) = &sink.name {
                    info.name.clone_from(name);
                }
                HostRow::Info(info)
            }
            HostRow::Event(mut event) => {
                if event.kind == HostEventKind::Unreadable && event.detail.starts_with(NO_PROFILE) {
                    self.shared.profile_came();
                }
                (event.host, event.at) = (sink.host, sink.ours(event.at, clock, base));
                HostRow::Event(event)
            }
            HostRow::Profile(mut profile) => {
                self.shared.profile_came();
                (profile.host, profile.started_at) = (sink.host, sink.ours(profile.started_at, clock, base));
                HostRow::Profile(profile)
            }
        };
        sink.rows.send(row);
    }

    /// Ends all series. After a loss the agent assigns new series ids.
    fn end_series(&mut self) {
        if let Some(sink) = &mut self.sink {
            sink.end_series();
        }
    }

    fn tell(&self, detail: &str) {
        let Some(sink) = &self.sink else { return };
        sink.tell(HostEventKind::Watcher, detail.to_owned());
    }
}
