//! Sources that the server itself provides: one call reads the logs, program outputs, access logs
//! and endpoints of a host, interpreted by its knowledge packs. A source that cannot be read is
//! reported; the others are read.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use throng_observation::host::HostId;
use throng_observation::pack::Pack;

use crate::logs::access::UriGroups;
use crate::logs::{LogKind, LogSource, Output, Patterns, Tail};
use crate::{RowSender, clock_from};

mod failures;
use failures::{ReadFailures, RowSink};

mod config;
pub use config::SourceConfig;

mod source_watch;
pub use source_watch::SourceWatch;

mod endpoint;
pub use endpoint::endpoint;

mod metrics;
use metrics::Metrics;

/// The running readers of a server's sources; dropping it ends them.
#[derive(Debug)]
struct SourceReaders {
    tail: Tail,
    metrics: Metrics,
    packs: Vec<Pack>,
    failures: ReadFailures,
}

impl SourceReaders {
    /// Starts reading with these packs, the user's first. `zero` is the moment of the run's first
    /// intended join. A source that cannot be read becomes an event with the way to fix it; all
    /// others are read.
    fn begin(
        config: &SourceConfig,
        outputs: &[Output],
        packs: Vec<Pack>,
        host: HostId,
        zero: Instant,
        rows: &RowSender,
    ) -> Self {
        let sink = RowSink { host, rows: rows.clone(), clock: clock_from(zero) };
        let mut failures = ReadFailures::new(sink.clone());
        let (patterns, groups) = compile_rules(&packs, &mut failures);
        let mut tail = Tail::new();
        let lines = || LogKind::Lines(patterns.clone());
        let mut follow = |log: &str, source: LogSource, reader: LogKind| {
            let begun = tail.follow(log, source, reader, sink.writer(), sink.clock.clone());
            failures.report(&format!("the log {log}"), begun);
        };
        for log in &config.logs {
            let source = match log.strip_prefix("journal:") {
                Some(unit) => LogSource::journal(unit),
                None => LogSource::File(log.into()),
            };
            follow(log, source, lines());
        }
        for output in outputs {
            follow(output.name(), LogSource::Output(output.clone()), lines());
        }
        for log in &config.access_logs {
            follow(log, LogSource::File(log.into()), LogKind::Access(groups.clone()));
        }
        let mut metrics = Metrics::new(config.metrics.clone(), sink, config.allowed.clone());
        metrics.update(&packs, &mut failures);
        Self { tail, metrics, packs, failures }
    }

    /// The sources that cannot be read at the moment, each with the reason, for display.
    #[must_use]
    fn failures(&self) -> Vec<String> {
        self.failures
            .reasons
            .iter()
            .map(|(what, why)| format!("{what} is not read: {why}"))
            .collect()
    }

    /// Tries the sources again that could not be read before.
    fn retry(&mut self) {
        if !self.failures.reasons.is_empty() {
            self.metrics.update(&self.packs, &mut self.failures);
        }
    }

    /// Replaces the packs: processes that started later may have added some.
    fn set_packs(&mut self, packs: Vec<Pack>) {
        let (patterns, groups) = compile_rules(&packs, &mut self.failures);
        self.tail.set_rules(&patterns, &groups);
        self.packs = packs;
        self.metrics.update(&self.packs, &mut self.failures);
    }

    /// Stops all readers after they have read what is already there. Dropping it does the same.
    fn stop(self) {
        drop(self.metrics);
        self.tail.stop();
    }
}

/// Compiles the log patterns and URI groups of all packs. A pack that does not compile is reported
/// and left out.
fn compile_rules(packs: &[Pack], failures: &mut ReadFailures) -> (Arc<Patterns>, Arc<UriGroups>) {
    let patterns = |packs: &[&Pack]| Patterns::new(packs.iter().flat_map(|pack| &pack.logs));
    let groups = |packs: &[&Pack]| UriGroups::new(packs.iter().flat_map(|pack| &pack.uri_groups));
    let patterns = compile_usable(packs, "log patterns", patterns, failures);
    (Arc::new(patterns), Arc::new(compile_usable(packs, "URI groups", groups, failures)))
}

fn compile_usable<T: Default, E: Display>(
    packs: &[Pack],
    what: &str,
    make: impl Fn(&[&Pack]) -> Result<T, E>,
    failures: &mut ReadFailures,
) -> T {
    if let Ok(made) = make(&packs.iter().collect::<Vec<_>>()) {
        return made;
    }
    let (mut good, mut made) = (Vec::new(), T::default());
    for pack in packs {
        good.push(pack);
        match make(&good) {
            Ok(more) => made = more,
            Err(error) => {
                good.pop();
                failures.report(&format!("pack {} ({what})", pack.pack), Err::<(), _>(error));
            }
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::Drain;
    use crate::packs;
    use crate::scrape::AddressCheck;
    use throng_observation::host::HostEventKind;

    fn nobody() -> AddressCheck {
        Arc::new(|address| Err(format!("{address} has not agreed")))
    }

    #[test]
    fn one_call_reads_all_sources_of_a_host() {
        use throng_observation::host::HostRow;
        let folder = tempfile::tempdir().unwrap();
        let (log, access) = (folder.path().join("log"), folder.path().join("access"));
        std::fs::write(&log, "").unwrap();
        std::fs::write(&access, "").unwrap();
        let (reader, mut pipe) = std::io::pipe().unwrap();
        let drain = Drain::start("stderr", reader.into()).unwrap();
        let text = |path: &std::path::Path| vec![path.display().to_string()];
        let config = SourceConfig {
            logs: text(&log),
            access_logs: text(&access),
            metrics: vec!["http://192.0.2.1/metrics".into()],
            allowed: nobody(),
            ..SourceConfig::default()
        };
        let packs = packs::of_server(&packs::built_in(), None, &["janus"]);
        let (rows, receiver) = crate::rows(1_000);
        let outputs = [drain.output().clone()];
        let readers =
            SourceReaders::begin(&config, &outputs, packs, HostId(3), Instant::now(), &rows);
        assert!(readers.failures().is_empty());
        std::io::Write::write_all(&mut pipe, b"Discarding too old outgoing packet (age=1us)\n")
            .unwrap();
        std::fs::write(&log, "Too many open files\n").unwrap();
        std::fs::write(&access, "x [t] \"GET /a.ts HTTP/1.1\" 200 7 \n").unwrap();
        drop((pipe, drain));
        // Wait for the endpoint's refusal; everything else has been read by the end at the latest.
        let refused = |row: &HostRow| matches!(row, HostRow::Event(event) if event.detail.contains("has not agreed"));
        let mut got = vec![];
        while !got.iter().any(refused) {
            got.push(receiver.recv_timeout(std::time::Duration::from_secs(20)).unwrap());
        }
        readers.stop();
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

    #[test]
    fn an_unreadable_source_is_retried_and_does_not_affect_others() {
        use throng_observation::host::HostRow;
        use throng_observation::pack::LogPattern;
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::write(&log, "").unwrap();
        // Another session already listens for the events of the same Janus.
        let other = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = other.local_addr().unwrap();
        let broken =
            LogPattern { id: "broken".into(), pattern: "(".into(), ..LogPattern::default() };
        let broken = Pack { pack: "mine".into(), logs: vec![broken], ..Pack::default() };
        let config = SourceConfig {
            logs: vec!["journal:--file=x".into(), log.display().to_string()],
            metrics: vec![
                "what+http://h/".into(),
                format!("janus-events+http://{address}"),
                "http://192.0.2.1/metrics".into(),
            ],
            allowed: nobody(),
            ..SourceConfig::default()
        };
        let packs = [vec![broken], packs::of_server(&packs::built_in(), None, &["janus"])].concat();
        let (rows, receiver) = crate::rows(1_000);
        let mut readers =
            SourceReaders::begin(&config, &[], packs, HostId(3), Instant::now(), &rows);
        let wrong = readers.failures().join("\n");
        for words in [
            "not a valid systemd unit name",
            "unknown kind `what+`",
            "use another port",
            "pack mine",
        ] {
            assert!(wrong.contains(words), "{words} is not in\n{wrong}");
        }
        std::fs::write(&log, "Too many open files\n").unwrap();
        let is_reported = |row: &HostRow, word: &str| {
            matches!(row, HostRow::Event(event) if event.detail.contains(word)
                && (event.kind == HostEventKind::Unreadable) == event.detail.contains("not "))
        };
        let mut got = vec![];
        while !got.iter().any(|row| is_reported(row, "has not agreed")) {
            got.push(receiver.recv_timeout(std::time::Duration::from_secs(20)).unwrap());
        }
        readers.retry();
        assert_eq!(readers.failures().len(), 4, "nothing has changed");
        drop(other);
        readers.retry();
        assert_eq!(readers.failures().len(), 3, "{:?}", readers.failures());
        readers.stop();
        got.extend(receiver.try_iter());
        let times = |word: &str| got.iter().filter(|row| is_reported(row, word)).count();
        assert_eq!(
            (times("use another port"), times("can be read now")),
            (1, 1),
            "each is said once"
        );
        let counted = |row: &HostRow| {
            let HostRow::Series(series) = row else { return false };
            series.labels.get("pattern").is_some_and(|pattern| pattern == "too_many_open_files")
        };
        assert!(got.iter().any(counted), "the log is read: {got:?}");
    }
}
