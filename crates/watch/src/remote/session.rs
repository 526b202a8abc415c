//! The session of one authenticated run: answers its requests and streams rows as fast as the run
//! takes them.

use std::io;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use throng_observation::RunTime;
use throng_observation::host::{HostId, HostInfo, HostRow, HostSample};
use throng_observation::pack::PACKS_FACT;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::MissedTickBehavior;

use super::tls::is_same;
use super::wire::{
    Consent, Frame, FrameReader, REQUEST_BYTES_MAX, Request, Response, VERSION, write_message,
    write_samples,
};
use crate::commands::Commands;
use crate::config::WatchConfig;
use crate::local::{LocalHost, LocalWatch};
use crate::profiler::{self, Options};
use crate::rows::{RowReceiver, RowSender, rows};
use crate::sources::{SourceConfig, SourceWatch};

/// Queue length for one run: two seconds of 2,000 busy threads. A slower run loses rows.
const ROWS_WAITING_MAX: usize = 16_384;
/// How often queued rows are sent.
const SEND_EVERY: Duration = Duration::from_millis(100);
/// Approximate size of one write, bytes.
const WRITE_BYTES: usize = 256 * 1024;
/// A run that takes no data for this long is considered gone.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);
/// A run that sends nothing for this long is considered gone; it pings once a second.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// Maximum duration of a profile.
const PROFILE_MAX: Duration = Duration::from_secs(300);

/// A connection with or without TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub(super) type AnyStream = Box<dyn Stream>;

/// What the host's owner permits to runs. Runs cannot change it.
#[derive(Clone, Debug, Default)]
pub struct AgentPolicy {
    /// What to monitor.
    pub watch: WatchConfig,
    /// Logs, endpoints and other sources to read.
    pub sources: SourceConfig,
    /// The load that the owner consents to while the agent runs.
    pub consent: Option<Consent>,
}

/// The session of a run.
pub(super) struct Session {
    reader: ReadHalf<AnyStream>,
    writer: WriteHalf<AnyStream>,
    frames: FrameReader,
    zero: Instant,
    out: Vec<u8>,
    rows: Option<RowStream>,
    profiling: Option<(Option<mpsc::Sender<()>>, std::thread::JoinHandle<()>)>,
}

/// The stream of rows to a run.
struct RowStream {
    watching: LocalWatch,
    sender: RowSender,
    receiver: RowReceiver,
    sources: ServerSources,
}

/// The server's packs and sources. They are started on a thread of their own because that waits for
/// processes; they end with the session.
struct ServerSources {
    started: mpsc::Receiver<SourceWatch>,
    watch: Option<SourceWatch>,
    packs: Option<String>,
    info: Option<HostInfo>,
}

impl ServerSources {
    fn start(
        policy: &AgentPolicy,
        streamed: (&LocalWatch, RowSender, Instant),
    ) -> io::Result<Self> {
        let (watching, sender, zero) = streamed;
        let (processes, sources, targets) =
            (watching.watched_processes(), policy.sources.clone(), policy.watch.targets.clone());
        let (out, started) = mpsc::sync_channel(1);
        std::thread::Builder::new().name("watch-sources".into()).spawn(move || {
            let watch = sources.begin(&targets, &processes, HostId(0), zero, &sender);
            let _ = out.send(watch);
        })?;
        Ok(Self { started, watch: None, packs: None, info: None })
    }

    /// The host's facts with the packs, once both are available, and again whenever the packs
    /// change.
    fn updated_info(&mut self) -> Option<HostRow> {
        let packs = match &self.watch {
            Some(watch) => watch.changed_packs()?,
            None => self.watch.insert(self.started.try_recv().ok()?).packs.clone(),
        };
        self.packs = serde_json::to_string(&packs).ok();
        let mut info = self.info.clone()?;
        self.add(&mut info);
        Some(HostRow::Info(info))
    }

    /// Adds the packs to a host's facts.
    fn add(&mut self, info: &mut HostInfo) {
        if let Some(packs) = &self.packs {
            info.facts.insert(PACKS_FACT.into(), packs.clone());
        }
        self.info = Some(info.clone());
    }
}

/// Sends the reason and closes the connection.
pub(super) async fn refuse(to: &mut (impl AsyncWrite + Unpin), why: &str) {
    let mut out = Vec::new();
    if write_message(&mut out, &Response::Refused { why: why.to_owned() }).is_ok() {
        let _ = tokio::time::timeout(Duration::from_secs(1), to.write_all(&out)).await;
        let _ = tokio::time::timeout(Duration::from_secs(1), to.shutdown()).await;
    }
}

impl Session {
    /// Waits for the token. A refused connection is returned with the reason.
    pub(super) async fn hello(
        mut stream: AnyStream,
        token: &str,
    ) -> io::Result<Result<Self, (AnyStream, String)>> {
        let mut frames = FrameReader::new(REQUEST_BYTES_MAX);
        let why = match frames.next(&mut stream).await? {
            Frame::Message(Request::Hello { token: theirs, .. }) if !is_same(token, &theirs) => {
                "the token is wrong".to_owned()
            }
            Frame::Message(Request::Hello { version, .. }) if version != VERSION => {
                format!(
                    "this agent uses version {VERSION} of the protocol, the run {version}: use \
                     the same throng"
                )
            }
            Frame::Message(Request::Hello { .. }) => {
                let (reader, writer) = tokio::io::split(stream);
                let zero = Instant::now();
                let (out, rows, profiling) = (Vec::new(), None, None);
                return Ok(Ok(Self { reader, writer, frames, zero, out, rows, profiling }));
            }
            _ => "the first message must be a hello".to_owned(),
        };
        Ok(Err((stream, why)))
    }

    /// Sends the reason and closes the connection.
    pub(super) async fn refuse(&mut self, why: &str) {
        refuse(&mut self.writer, why).await;
    }

    /// Serves until the run disconnects, stops taking data, or violates the protocol.
    pub(super) async fn serve(
        &mut self,
        policy: &AgentPolicy,
        commands: &Commands,
    ) -> io::Result<()> {
        let (watch, consent) = (&policy.watch, policy.consent.clone());
        let name = watch.name.clone().unwrap_or_else(crate::local::host_name);
        let targets = watch.targets.iter().map(ToString::to_string).collect();
        write_message(
            &mut self.out,
            &Response::Welcome { version: VERSION, name, targets, consent },
        )?;
        self.flush().await?;
        let mut beat = tokio::time::interval(SEND_EVERY);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard_at = Instant::now();
        loop {
            tokio::select! {
                frame = self.frames.next::<Request>(&mut self.reader) => {
                    heard_at = Instant::now();
                    match frame? {
                        Frame::Message(request) => self.answer(request, policy, commands)?,
                        Frame::Samples(_) => return Err(io::ErrorKind::InvalidData.into()),
                    }
                    self.flush().await?;
                }
                _ = beat.tick() => {
                    if heard_at.elapsed() > SILENT_MAX {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    self.send_rows().await?;
                }
            }
        }
    }

    fn answer(
        &mut self,
        request: Request,
        policy: &AgentPolicy,
        commands: &Commands,
    ) -> io::Result<()> {
        match request {
            Request::Ping { number } => {
                let agent_us = i64::try_from(self.zero.elapsed().as_micros()).unwrap_or(i64::MAX);
                let rows_dropped =
                    self.rows.as_ref().map_or(0, |streamed| streamed.sender.dropped());
                write_message(&mut self.out, &Response::Pong { number, agent_us, rows_dropped })
            }
            Request::Begin if self.rows.is_some() => Ok(()),
            Request::Begin => {
                let (sender, receiver) = rows(ROWS_WAITING_MAX);
                let local = LocalHost::open_with(policy.watch.clone(), commands)
                    .map_err(io::Error::other)?;
                let watching =
                    local.begin(HostId(0), self.zero, sender.clone()).map_err(io::Error::other)?;
                let sources = ServerSources::start(policy, (&watching, sender.clone(), self.zero))?;
                self.rows = Some(RowStream { watching, sender, receiver, sources });
                Ok(())
            }
            Request::Profile { moment, duration_ms } => {
                self.profile(moment, Duration::from_millis(duration_ms.into()).min(PROFILE_MAX))
            }
            Request::EndProfile => {
                // Dropping the sender ends the profiling thread.
                self.profiling.iter_mut().for_each(|(stop, _)| *stop = None);
                Ok(())
            }
            Request::Hello { .. } => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Starts a profile, or says why there will be none: the run waits for one or the other.
    fn profile(&mut self, moment: String, duration: Duration) -> io::Result<()> {
        match self.start_profile(moment, duration) {
            Ok(()) => Ok(()),
            Err(why) => write_message(&mut self.out, &Response::NoProfile { why }),
        }
    }

    /// Starts a profile on its own thread; one at a time. An error is a sentence for people.
    fn start_profile(&mut self, moment: String, duration: Duration) -> Result<(), String> {
        let Some(RowStream { watching, sender, .. }) = &self.rows else {
            return Err("the run takes no rows yet".into());
        };
        if self.profiling.as_ref().is_some_and(|(_, thread)| !thread.is_finished()) {
            return Err("another profile is being taken".into());
        }
        let (at, sender) = (RunTime::after_start(self.zero.elapsed()), sender.clone());
        let pids: Vec<u32> = watching.processes().iter().map(|process| process.pid).collect();
        let rows = Some(sender.clone());
        let options = Options { moment, started_at: at, rows, ..Options::default() };
        let sampling = profiler::start(&pids, options).map_err(|error| error.to_string())?;
        let (stop, stopped) = mpsc::channel::<()>();
        let work = move || {
            // Until the time is over, or the run ends the profile or disconnects.
            let _ = stopped.recv_timeout(duration);
            sender.send(HostRow::Profile(Box::new(sampling.stop())));
        };
        let thread = std::thread::Builder::new()
            .name("watch-profile".into())
            .spawn(work)
            .map_err(|error| error.to_string())?;
        self.profiling = Some((Some(stop), thread));
        Ok(())
    }

    /// Sends the queued rows. Consecutive samples are sent as one frame.
    async fn send_rows(&mut self) -> io::Result<()> {
        let mut samples: Vec<HostSample> = Vec::new();
        loop {
            {
                let Some(RowStream { receiver, sources, .. }) = &mut self.rows else {
                    return Ok(());
                };
                let mut row = sources.updated_info().or_else(|| receiver.try_recv().ok());
                while let Some(taken) = row {
                    match taken {
                        HostRow::Sample(sample) => samples.push(sample),
                        HostRow::Info(mut info) => {
                            sources.add(&mut info);
                            write_message(&mut self.out, &Response::Row(HostRow::Info(info)))?;
                        }
                        other => {
                            write_samples(&mut self.out, &samples)?;
                            samples.clear();
                            write_message(&mut self.out, &Response::Row(other))?;
                        }
                    }
                    let is_enough = self.out.len() + samples.len() * 20 >= WRITE_BYTES;
                    row = if is_enough { None } else { receiver.try_recv().ok() };
                }
                write_samples(&mut self.out, &samples)?;
                samples.clear();
            }
            if self.out.is_empty() {
                return Ok(());
            }
            self.flush().await?;
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let written = async {
            self.writer.write_all(&self.out).await?;
            self.writer.flush().await
        };
        tokio::time::timeout(TAKEN_WITHIN, written)
            .await
            .map_err(|_| io::ErrorKind::TimedOut)??;
        self.out.clear();
        self.out.shrink_to(WRITE_BYTES);
        Ok(())
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
