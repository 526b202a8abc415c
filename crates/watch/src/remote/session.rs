//! One run that is served: its token was right, its rows are streamed, and only what it takes in time.

use std::io;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use throng_observation::RunTime;
use throng_observation::host::{HostEvent, HostEventKind, HostId, HostRow, HostSample};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::MissedTickBehavior;

use super::tls::is_same;
use super::wire::{
    Answer, Consent, Frame, FrameReader, REQUEST_BYTES_MAX, Request, VERSION, write_message, write_samples,
};
use crate::commands::Commands;
use crate::local::{Local, WatchConfig, Watching};
use crate::profiler::{self, Options};
use crate::rows::{RowSender, rows};

/// Rows that may wait for a run: two seconds of 2,000 busy threads. A run that takes them slower loses some.
const ROWS_WAITING_MAX: usize = 16_384;
/// How often what waits is sent.
const SEND_EVERY: Duration = Duration::from_millis(100);
/// About how much is written at once.
const WRITE_BYTES: usize = 256 * 1024;
/// A run that takes nothing for so long is gone.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);
/// A run that says nothing for so long is gone; it should each second.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// The longest profile.
const PROFILE_MAX: Duration = Duration::from_secs(300);

/// A connection, with TLS or without.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub(super) type AnyStream = Box<dyn Stream>;

/// A run that is served.
pub(super) struct Session {
    reader: ReadHalf<AnyStream>,
    writer: WriteHalf<AnyStream>,
    frames: FrameReader,
    zero: Instant,
    out: Vec<u8>,
    rows: Option<(Watching, RowSender, Receiver<HostRow>)>,
    profiling: Option<std::thread::JoinHandle<()>>,
}

/// Says why and closes.
pub(super) async fn refuse(to: &mut AnyStream, why: &str) {
    let mut out = Vec::new();
    if write_message(&mut out, &Answer::Refused { why: why.to_owned() }).is_ok() {
        let _ = tokio::time::timeout(Duration::from_secs(1), to.write_all(&out)).await;
        let _ = tokio::time::timeout(Duration::from_secs(1), to.shutdown()).await;
    }
}

impl Session {
    /// Waits for the token; what is not right comes back with the reason.
    pub(super) async fn hello(
        mut stream: AnyStream,
        token: &str,
    ) -> io::Result<Result<Self, (AnyStream, String)>> {
        let mut frames = FrameReader::new(REQUEST_BYTES_MAX);
        let why = match frames.next(&mut stream).await? {
            Frame::Message(Request::Hello { token: theirs, .. }) if !is_same(token, &theirs) => {
                "the token is not this agent's".to_owned()
            }
            Frame::Message(Request::Hello { version, .. }) if version != VERSION => {
                format!(
                    "this agent speaks version {VERSION} of the protocol, the run {version}: use the same throng"
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

    /// Says why and closes.
    pub(super) async fn refuse(&mut self, why: &str) {
        self.out.clear();
        if write_message(&mut self.out, &Answer::Refused { why: why.to_owned() }).is_ok() {
            let _ = tokio::time::timeout(Duration::from_secs(1), self.flush()).await;
            let _ = tokio::time::timeout(Duration::from_secs(1), self.writer.shutdown()).await;
        }
    }

    /// Serves until the run goes, takes nothing any more, or says what makes no sense.
    pub(super) async fn serve(
        &mut self,
        watch: &WatchConfig,
        commands: &Commands,
        consent: Option<Consent>,
    ) -> io::Result<()> {
        let name = watch.name.clone().unwrap_or_else(crate::local::host_name);
        let targets = watch.targets.iter().map(ToString::to_string).collect();
        write_message(&mut self.out, &Answer::Welcome { version: VERSION, name, targets, consent })?;
        self.flush().await?;
        let mut beat = tokio::time::interval(SEND_EVERY);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard_at = Instant::now();
        loop {
            tokio::select! {
                frame = self.frames.next::<Request>(&mut self.reader) => {
                    heard_at = Instant::now();
                    match frame? {
                        Frame::Message(request) => self.answer(request, watch, commands)?,
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

    fn answer(&mut self, request: Request, watch: &WatchConfig, commands: &Commands) -> io::Result<()> {
        match request {
            Request::Ping { number } => {
                let agent_us = i64::try_from(self.zero.elapsed().as_micros()).unwrap_or(i64::MAX);
                let rows_dropped = self.rows.as_ref().map_or(0, |(_, sender, _)| sender.dropped());
                write_message(&mut self.out, &Answer::Pong { number, agent_us, rows_dropped })
            }
            Request::Begin if self.rows.is_some() => Ok(()),
            Request::Begin => {
                let (sender, receiver) = rows(ROWS_WAITING_MAX);
                let local = Local::open_with(watch.clone(), commands).map_err(io::Error::other)?;
                let watching = local.begin(HostId(0), self.zero, sender.clone()).map_err(io::Error::other)?;
                self.rows = Some((watching, sender, receiver));
                Ok(())
            }
            Request::Profile { moment, duration_ms } => {
                self.profile(moment, Duration::from_millis(duration_ms.into()).min(PROFILE_MAX));
                Ok(())
            }
            Request::Hello { .. } => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Samples stacks beside everything else; one profile at a time.
    fn profile(&mut self, moment: String, duration: Duration) {
        let Some((watching, sender, _)) = &self.rows else { return };
        let at = RunTime::after_start(self.zero.elapsed());
        let sender = sender.clone();
        let tell = |sender: &RowSender, why: String| {
            let (host, kind, detail) = (HostId(0), HostEventKind::CannotSee, format!("no profile: {why}"));
            sender.send(HostRow::Event(HostEvent { host, at, kind, detail }));
        };
        if self.profiling.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return tell(&sender, "another is being taken".into());
        }
        let pids: Vec<u32> = watching.processes().iter().map(|process| process.pid).collect();
        let options = Options { moment, started_at: at, ..Options::default() };
        match profiler::start(&pids, options) {
            Ok(sampling) => {
                let spawned = std::thread::Builder::new().name("watch-profile".into()).spawn(move || {
                    std::thread::sleep(duration);
                    sender.send(HostRow::Profile(Box::new(sampling.stop())));
                });
                self.profiling = spawned.ok();
            }
            Err(error) => tell(&sender, error.to_string()),
        }
    }

    /// Sends what waits. Samples that follow each other go together.
    async fn send_rows(&mut self) -> io::Result<()> {
        let mut samples: Vec<HostSample> = Vec::new();
        loop {
            {
                let Some((_, _, receiver)) = &self.rows else { return Ok(()) };
                let mut row = receiver.try_recv().ok();
                while let Some(taken) = row {
                    match taken {
                        HostRow::Sample(sample) => samples.push(sample),
                        other => {
                            write_samples(&mut self.out, &samples)?;
                            samples.clear();
                            write_message(&mut self.out, &Answer::Row(other))?;
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
        tokio::time::timeout(TAKEN_WITHIN, written).await.map_err(|_| io::ErrorKind::TimedOut)??;
        self.out.clear();
        self.out.shrink_to(WRITE_BYTES);
        Ok(())
    }
}
