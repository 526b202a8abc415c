//! A body that is read only as far as its participant demands. What is not read fills the receive
//! buffer of TCP or the windows of HTTP/2 and QUIC, and then the server waits.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use throng_protocol::participant::{
    ChannelError, Demand, HttpVersion, IGNORED_EVERY, Opening, Request, TransportState,
};
use tokio::time::Sleep;

use super::body::Body;
use super::demand::{self, Demands};
use super::exchange::{Reply, send};
use super::failure::{Progress, longer};
use super::origin::Origin;
use super::pool::{Lease, Pool};
use crate::sockets::Dialer;

/// How often the state of the connection is reported while the body is read.
const TRANSPORT_EVERY: Duration = Duration::from_secs(1);

/// Something of a download, for its participant ([`throng_protocol::participant::DownloadEvent`]).
#[derive(Debug)]
pub(crate) enum DownloadPart {
    Head(Box<http::response::Parts>, Box<Opening>),
    Body(Bytes),
    Ignored(u64),
    Transport(Box<TransportState>),
    Finished(Box<Result<(), ChannelError>>),
}

/// Receives the parts of a download; while it waits, nothing is read.
pub(crate) trait Receiver: Send {
    fn receive(&self, part: DownloadPart) -> impl Future<Output = ()> + Send;
}

/// Performs a download to its end, from local address `source` if given. Dropped, it closes its
/// HTTP/1.1 connection, or resets its stream.
pub(crate) async fn download(
    dialer: &Arc<Dialer>,
    pool: &Pool,
    source: Option<IpAddr>,
    request: &Request,
    version: HttpVersion,
    demands: &Demands,
    receiver: &impl Receiver,
) {
    // Opening needs several times the memory of reading, and a task keeps room for its largest
    // state.
    let opening = Box::pin(send(dialer, pool, source, request, version));
    let timeout = request.timeout;
    let reply =
        tokio::time::timeout(timeout, opening).await.unwrap_or(Err(ChannelError::Timeout(timeout)));
    let result = match reply {
        Ok(Reply { origin, head, body, expected, lease }) => {
            let part = DownloadPart::Head(Box::new(head), Box::new(lease.opening.clone()));
            receiver.receive(part).await;
            let transport_due = Instant::now() + TRANSPORT_EVERY;
            let reading = Reading {
                origin,
                body,
                expected,
                lease,
                demands,
                receiver,
                left: Bytes::new(),
                used: 0,
                ignored: 0,
                ignored_due: transport_due,
                transport_due,
                timer: Box::pin(tokio::time::sleep_until(transport_due.into())),
            };
            reading.run().await
        }
        Err(error) => Err(error),
    };
    receiver.receive(DownloadPart::Finished(Box::new(result))).await;
}

/// A body that is being read.
struct Reading<'a, R> {
    origin: Origin,
    body: Body,
    /// `Content-Length`, if there was one.
    expected: Option<u64>,
    lease: Lease,
    demands: &'a Demands,
    receiver: &'a R,
    /// Read beyond the demand, and not yet demanded.
    left: Bytes,
    /// Bytes delivered or ignored.
    used: u64,
    /// Ignored bytes that were not yet reported, and when they are due to be.
    ignored: u64,
    ignored_due: Instant,
    transport_due: Instant,
    timer: Pin<Box<Sleep>>,
}

impl<R: Receiver> Reading<'_, R> {
    async fn run(mut self) -> Result<(), ChannelError> {
        let result = self.read().await;
        self.report_ignored().await;
        self.report_transport().await;
        if result.is_ok() {
            self.lease.keep();
        }
        result
    }

    async fn read(&mut self) -> Result<(), ChannelError> {
        loop {
            if self.left.is_empty() {
                if self.body.is_over() {
                    return self.progress().at_the_end(&self.origin);
                }
                // The last byte may come before the end, which is awaited without demand where the
                // length tells that no byte is left. Of other bodies the end is found by a read
                // only.
                let is_complete = self.expected.is_some_and(|expected| self.used >= expected);
                if self.demands.first().is_none() {
                    self.report_ignored().await;
                    if !is_complete {
                        self.demands.some().await;
                    }
                }
                match self.next().await? {
                    Some(piece) if is_complete && !piece.is_empty() => {
                        return Err(longer(&self.origin, self.used));
                    }
                    Some(piece) => self.left = piece,
                    None => return self.progress().at_the_end(&self.origin),
                }
            }
            self.use_left().await;
            if !self.left.is_empty() {
                self.report_ignored().await;
                self.demands.some().await;
            }
        }
    }

    /// Uses what was read as far as it is demanded.
    async fn use_left(&mut self) {
        while !self.left.is_empty()
            && let Some(demand) = self.demands.first()
        {
            let length =
                usize::try_from(demand::bytes(demand)).unwrap_or(usize::MAX).min(self.left.len());
            let piece = self.left.split_to(length);
            self.demands.take(length as u64);
            self.used += length as u64;
            match demand {
                Demand::Ignore(_) => {
                    if self.ignored == 0 {
                        self.ignored_due = Instant::now() + IGNORED_EVERY;
                    }
                    self.ignored += length as u64;
                }
                Demand::Deliver(_) => {
                    self.report_ignored().await;
                    self.receiver.receive(DownloadPart::Body(piece)).await;
                }
            }
        }
        self.report_what_is_due().await;
    }

    /// Reads the next piece; reports what is due while there is none.
    async fn next(&mut self) -> Result<Option<Bytes>, ChannelError> {
        loop {
            let due = self.due();
            if self.timer.deadline() != due.into() {
                self.timer.as_mut().reset(due.into());
            }
            tokio::select! {
                biased;
                piece = self.body.next() => {
                    let piece = piece.transpose();
                    return piece
                        .map_err(|e| self.lease.body_failure(&e, &self.origin, self.progress()));
                }
                () = &mut self.timer => self.report_what_is_due().await,
            }
        }
    }

    fn due(&self) -> Instant {
        if self.ignored > 0 { self.ignored_due.min(self.transport_due) } else { self.transport_due }
    }

    fn progress(&self) -> Progress {
        Progress { received: self.used + self.left.len() as u64, expected: self.expected }
    }

    async fn report_what_is_due(&mut self) {
        let now = Instant::now();
        if self.ignored > 0 && now >= self.ignored_due {
            self.report_ignored().await;
        }
        if now >= self.transport_due {
            self.report_ignored().await;
            self.report_transport().await;
            self.transport_due = now + TRANSPORT_EVERY;
        }
    }

    async fn report_ignored(&mut self) {
        let ignored = std::mem::take(&mut self.ignored);
        if ignored > 0 {
            self.receiver.receive(DownloadPart::Ignored(ignored)).await;
        }
    }

    async fn report_transport(&mut self) {
        if let Some(state) = self.lease.transport().state() {
            self.receiver.receive(DownloadPart::Transport(Box::new(state))).await;
        }
    }
}
