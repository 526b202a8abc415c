//! What a server tells of itself, read beside its counters: one call for the logs, access logs and endpoints of a
//! watched host, with what its packs know of them.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use throng_observation::host::HostId;
use throng_observation::pack::{EndpointKind, Pack};

use crate::logs::access::{GroupError, UriGroups};
use crate::logs::{LogReader, LogSource, PatternError, Patterns, SourceError, Tail};
use crate::scrape::janus::{EventListener, ListenError};
use crate::scrape::{Allowed, Endpoint, EndpointError, Scraper};
use crate::{RowSender, SeenWriter, clock_from};

mod beside;
pub use beside::{Beside, Listened};

mod endpoint;
pub use endpoint::endpoint;

/// What is read of a host beside its counters.
#[derive(Clone, Debug, Default)]
pub struct ToldConfig {
    /// Logs whose lines are counted: paths, or `journal:UNIT`.
    pub logs: Vec<String>,
    /// Access logs whose requests are accounted: paths.
    pub access_logs: Vec<String>,
    /// Endpoints that are asked, each as [`endpoint`] reads it.
    pub metrics: Vec<String>,
    /// What is known of the server ([`packs::of_server`](crate::packs::of_server)), the user's first.
    pub packs: Vec<Pack>,
}

/// Why a server cannot be listened to.
#[derive(Debug, thiserror::Error)]
pub enum ToldError {
    /// Log patterns that cannot be used.
    #[error(transparent)]
    Patterns(#[from] PatternError),
    /// URI groups that cannot be used.
    #[error(transparent)]
    Groups(#[from] GroupError),
    /// A log that cannot be followed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An endpoint that cannot be asked.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// An address at which events cannot be taken.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// The readers of what a server tells; they end when it is dropped.
#[derive(Debug)]
pub struct Told {
    tail: Tail,
    scraper: Option<Scraper>,
    listeners: Vec<EventListener>,
    patterns: Arc<Patterns>,
    host: HostId,
    rows: RowSender,
    zero: Instant,
}

impl Told {
    /// Begins to read. `zero` is the moment of the run's first intended join; `allowed` says which addresses may be
    /// asked. What cannot be read yet is no error: it is said in the run and tried again.
    ///
    /// # Errors
    /// When a pattern, a group, a unit or an endpoint is wrong in itself, or no thread can be made.
    pub fn begin(
        config: &ToldConfig,
        host: HostId,
        zero: Instant,
        rows: &RowSender,
        allowed: &Allowed,
    ) -> Result<Self, ToldError> {
        let patterns = Arc::new(Patterns::new(config.packs.iter().flat_map(|pack| &pack.logs))?);
        let groups = Arc::new(UriGroups::new(config.packs.iter().flat_map(|pack| &pack.uri_groups))?);
        let endpoints: Vec<Endpoint> =
            config.metrics.iter().map(|text| endpoint(text, &config.packs)).collect::<Result<_, _>>()?;
        let clock = clock_from(zero);
        let writer = || SeenWriter::new(host, rows.clone());
        let mut tail = Tail::new();
        for log in &config.logs {
            let source = match log.strip_prefix("journal:") {
                Some(unit) => LogSource::journal(unit),
                None => LogSource::File(log.into()),
            };
            tail.follow(log, source, LogReader::Lines(patterns.clone()), writer(), clock.clone())?;
        }
        for log in &config.access_logs {
            let (source, reader) = (LogSource::File(log.into()), LogReader::Access(groups.clone()));
            tail.follow(log, source, reader, writer(), clock.clone())?;
        }
        let (told, asked): (Vec<_>, Vec<_>) =
            endpoints.into_iter().partition(|endpoint| endpoint.kind == EndpointKind::JanusEvents);
        let listen = |endpoint: &Endpoint| -> Result<EventListener, ToldError> {
            let address = endpoint::listen_address(endpoint)?;
            Ok(EventListener::start(&endpoint.name, address, writer(), &clock, allowed)?)
        };
        let listeners = told.iter().map(listen).collect::<Result<_, _>>()?;
        let endpoints: Vec<_> = asked.into_iter().map(|endpoint| (endpoint, writer())).collect();
        let scraper =
            if endpoints.is_empty() { None } else { Some(Scraper::start(endpoints, &clock, allowed)?) };
        Ok(Self { tail, scraper, listeners, patterns, host, rows: rows.clone(), zero })
    }

    /// Reads the output of a program too: the reading end of its pipe, called `log`.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn follow_pipe(&mut self, log: &str, pipe: OwnedFd) -> Result<(), ToldError> {
        let writer = SeenWriter::new(self.host, self.rows.clone());
        let reader = LogReader::Lines(self.patterns.clone());
        Ok(self.tail.follow(log, LogSource::Pipe(pipe), reader, writer, clock_from(self.zero))?)
    }

    /// Ends all reading, when what is there has been read. Dropping it does the same.
    pub fn stop(self) {
        drop((self.scraper, self.listeners));
        self.tail.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packs;

    #[test]
    fn one_call_reads_all_that_a_host_is_watched_by() {
        use throng_observation::host::HostRow;
        let folder = tempfile::tempdir().unwrap();
        let (log, access) = (folder.path().join("log"), folder.path().join("access"));
        std::fs::write(&log, "").unwrap();
        std::fs::write(&access, "").unwrap();
        let text = |path: &std::path::Path| vec![path.display().to_string()];
        let config = ToldConfig {
            logs: text(&log),
            access_logs: text(&access),
            metrics: vec!["http://192.0.2.1/metrics".into()],
            packs: packs::of_server(&packs::built_in(), None, &["janus"]),
        };
        let (rows, receiver) = crate::rows(1_000);
        let nobody: Allowed = Arc::new(|address| Err(format!("{address} has not agreed")));
        let mut told = Told::begin(&config, HostId(3), Instant::now(), &rows, &nobody).unwrap();
        let (reader, mut pipe) = std::io::pipe().unwrap();
        told.follow_pipe("stderr", reader.into()).unwrap();
        std::io::Write::write_all(&mut pipe, b"Discarding too old outgoing packet (age=1us)\n").unwrap();
        std::fs::write(&log, "Too many open files\n").unwrap();
        std::fs::write(&access, "x [t] \"GET /a.ts HTTP/1.1\" 200 7 \n").unwrap();
        drop(pipe);
        // The refusal of the endpoint is waited for; the rest is read by the end at the latest.
        let refused =
            |row: &HostRow| matches!(row, HostRow::Event(event) if event.detail.contains("has not agreed"));
        let mut got = vec![];
        while !got.iter().any(refused) {
            got.push(receiver.recv_timeout(std::time::Duration::from_secs(20)).unwrap());
        }
        told.stop();
        got.extend(receiver.try_iter());
        let series = |row: &HostRow| match row {
            HostRow::Series(series) => {
                assert_eq!(series.host, HostId(3));
                Some(series.labels.get("pattern").unwrap_or(&series.metric).clone())
            }
            _ => None,
        };
        let names: Vec<_> = got.iter().filter_map(series).collect();
        for wanted in ["too_many_open_files", "old_packet_discarded", "access.bytes"] {
            assert!(names.iter().any(|name| name == wanted), "{wanted} in {names:?}");
        }
    }
}
