//! Clients that download one file again and again, each in a process of its own: throng's engine,
//! and the bare library for HTTP/3, for which no load generator is packaged.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use bytes::Buf;
use throng_engine::{Join, RunConfig, TlsOptions};
use throng_observation::run::{CohortId, ParticipantId, Row};
use throng_observation::{FailureReason, Outcome, RunTime};
use throng_protocol::participant::{
    Demand, DownloadEvent, FetchId, HttpVersion, Input, Output, Participant, Request,
};

/// The viewers of one client process.
#[derive(Clone, Debug)]
pub struct Viewers {
    /// What each downloads.
    pub url: String,
    /// By which version of HTTP.
    pub version: HttpVersion,
    /// How many.
    pub count: u32,
    /// For how long.
    pub lasts: Duration,
    /// Bits that each reads in a second; `None`: as fast as it can.
    pub pace_bps: Option<u64>,
}

/// What a client received.
#[derive(Clone, Copy, Debug, Default)]
pub struct Received {
    /// Bytes of bodies.
    pub bytes: u64,
    /// Resident memory of the process at the end, kB.
    pub rss_kb: u64,
}

#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicU64,
}

/// A participant that ignores a file, and then the file again.
struct Viewer {
    viewers: Viewers,
    outputs: VecDeque<Output>,
    counts: Arc<Counts>,
    download: u32,
    next: Instant,
}

const PACE_EVERY: Duration = Duration::from_secs(1);

impl Viewer {
    fn begin(&mut self) {
        self.download += 1;
        let id = FetchId(self.download);
        // The URL was parsed when the client began.
        let Ok(request) = http::Request::get(self.viewers.url.as_str()).body(()) else { return };
        let request = Request {
            head: request.into_parts().0,
            body: Vec::new(),
            timeout: Duration::from_secs(30),
        };
        self.outputs.push_back(Output::Download(id, Box::new(request), self.viewers.version));
        self.demand();
    }

    fn demand(&mut self) {
        let bytes = self.viewers.pace_bps.map_or(u64::MAX, |bps| bps / 8);
        self.outputs.push_back(Output::Demand(FetchId(self.download), Demand::Ignore(bytes)));
    }
}

impl Participant for Viewer {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Start { .. } => {
                self.next = now + PACE_EVERY;
                self.begin();
            }
            Input::Timeout => {
                self.next += PACE_EVERY;
                self.demand();
            }
            Input::Leave { .. } => self.outputs.push_back(Output::Ended(Outcome::Completed)),
            Input::Download { event: DownloadEvent::Ignored(bytes), .. } => {
                self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
            }
            Input::Download { event: DownloadEvent::Finished(result), .. } => match result {
                Ok(()) => self.begin(),
                Err(error) => self.outputs.push_back(Output::Ended(Outcome::Failed(error.into()))),
            },
            _ => {}
        }
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        let next = if self.viewers.pace_bps.is_some() {
            self.next
        } else {
            now + Duration::from_secs(3600)
        };
        self.outputs.pop_front().unwrap_or(Output::Timeout(next, "the next second's bytes"))
    }
}

/// Downloads with throng's engine, on one thread.
///
/// # Errors
/// When the engine cannot start.
pub fn with_engine(viewers: &Viewers) -> Result<Received> {
    let joins = (0..viewers.count)
        .map(|n| Join {
            participant: ParticipantId(n),
            cohort: CohortId(0),
            place: n,
            at: RunTime(0),
            leave_at: None,
            others_follow: false,
            source_ip: None,
        })
        .collect();
    let lasts = RunTime(i64::try_from(viewers.lasts.as_micros())?);
    let mut config =
        RunConfig::new(joins, lasts, Arc::new(|_, to: SocketAddr| to.ip().is_loopback()));
    config.threads = Some(1);
    config.tls = TlsOptions { insecure: true, extra_ca_pem: None };
    let counts = Arc::new(Counts::default());
    let (own, viewers) = (Arc::clone(&counts), viewers.clone());
    let factory = move |_: &Join| -> Box<dyn Participant> {
        let (viewers, counts) = (viewers.clone(), Arc::clone(&own));
        Box::new(Viewer {
            viewers,
            outputs: VecDeque::new(),
            counts,
            download: 0,
            next: Instant::now(),
        })
    };
    let (rows, written) = mpsc::sync_channel(10_000);
    let reading = std::thread::spawn(move || first_failure(&written));
    // How the run ended says nothing of the downloads, which are counted.
    let _ended = throng_engine::run(config, Arc::new(factory), rows)?.wait();
    let rss_kb = crate::process::Usage::of(std::process::id())?.rss_kb;
    if let Some(why) = reading.join().map_err(|_| anyhow!("the reader of rows panicked"))? {
        bail!("a download failed: {why}");
    }
    Ok(Received { bytes: counts.bytes.load(Ordering::Relaxed), rss_kb })
}

/// Reads all rows.
fn first_failure(rows: &mpsc::Receiver<Row>) -> Option<String> {
    let mut first = None;
    for row in rows {
        if let Row::Participant(row) = row
            && let Some(Outcome::Failed(why)) = row.outcome
            && why.reason != FailureReason::NotStarted
        {
            first.get_or_insert(why.to_string());
        }
    }
    first
}

/// Downloads over HTTP/3 with h3 and quinn alone: a loop that reads and drops, with the windows
/// that throng uses.
///
/// # Errors
/// When a connection fails.
pub fn with_bare_http3(viewers: &Viewers) -> Result<Received> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let counts = Arc::new(Counts::default());
    let until = Instant::now() + viewers.lasts;
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..viewers.count {
            let (url, counts) = (viewers.url.parse::<http::Uri>()?, Arc::clone(&counts));
            tasks.spawn(async move {
                tokio::time::timeout_at(until.into(), loop_http3(&url, &counts)).await
            });
        }
        while let Some(ended) = tasks.join_next().await {
            if let Ok(failed) = ended? {
                return failed;
            }
        }
        Ok(())
    })?;
    let rss_kb = crate::process::Usage::of(std::process::id())?.rss_kb;
    Ok(Received { bytes: counts.bytes.load(Ordering::Relaxed), rss_kb })
}

/// Ends only with a failure.
async fn loop_http3(url: &http::Uri, counts: &Counts) -> Result<()> {
    let trust = throng_net::tls::Trust::Any;
    let mut tls = throng_net::tls::client_config(trust, rustls::DEFAULT_VERSIONS)?;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let mut transport = quinn::TransportConfig::default();
    transport.stream_receive_window((6_u32 << 20).into()).receive_window((15_u32 << 20).into());
    let tls = quinn::crypto::rustls::QuicClientConfig::try_from(tls)?;
    let mut config = quinn::ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    let endpoint = quinn::Endpoint::client(([127, 0, 0, 1], 0).into())?;
    let server = SocketAddr::from(([127, 0, 0, 1], url.port_u16().context("no port")?));
    let connection = endpoint.connect_with(config, server, "localhost")?.await?;
    let (mut driver, mut sender) = h3::client::new(h3_quinn::Connection::new(connection)).await?;
    tokio::spawn(async move { std::future::poll_fn(|cx| driver.poll_close(cx)).await });
    loop {
        let mut stream = sender.send_request(http::Request::get(url.clone()).body(())?).await?;
        stream.finish().await?;
        stream.recv_response().await?;
        while let Some(piece) = stream.recv_data().await? {
            counts.bytes.fetch_add(piece.remaining() as u64, Ordering::Relaxed);
        }
    }
}
