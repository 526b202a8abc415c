//! `throng watch`: watches a server's host, on the terminal, into a file, or as the agent of runs
//! on other machines.

mod agent;
mod arguments;
mod figures;
mod screen;
mod view;

#[cfg(test)]
mod hostile_tests;

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use throng_observation::RunTime;
use throng_observation::host::{HostId, HostRow};
use throng_observation::pack::PACKS_FACT;
use throng_observation::run::{Ending, Row};
use throng_report::openmetrics::Metrics;
use throng_store::{HostFile, RunWriter};
use throng_watch::{LocalHost, RowReceiver, RowSender};

use self::figures::Figures;
use self::view::View;
use crate::args::Watch;
use crate::console::{CliError, Exit, Interrupt, print, say};
use crate::exporter::{Exporter, Listener, LiveMetrics};

/// Rows that may wait for the file and the view.
const ROWS_WAITING_MAX: usize = 65_536;
const SHOW_EVERY: Duration = Duration::from_millis(250);
const COMMIT_EVERY: Duration = Duration::from_secs(1);

/// Watches this host.
pub(crate) fn watch(command: &Watch) -> Result<Exit, CliError> {
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    match command.listen {
        Some(listen) => agent::serve(command, listen, &interrupt),
        None => here(command, &interrupt),
    }
}

/// On the terminal, and into a file if one is named.
fn here(command: &Watch, interrupt: &Interrupt) -> Result<Exit, CliError> {
    let lasts = command.duration()?;
    let exporter = command.prometheus.as_ref().map(Listener::bind).transpose()?;
    let of_watch = |port: Listener| port.serve(Metrics::of_watch(env!("CARGO_PKG_VERSION")));
    let exporter = exporter.map(of_watch).transpose()?;
    let metrics = exporter.as_ref().map(Exporter::metrics);
    let local =
        LocalHost::open(command.config()?).map_err(|error| CliError::new(Exit::Target, error))?;
    let (rows, received) = throng_watch::rows(ROWS_WAITING_MAX);
    let zero = Instant::now();
    let mut file = command.output.as_deref().map(File::create).transpose()?;
    let mut view = View::new(command.plain, command.quiet, &command.title());
    let watching = local.begin(HostId(0), zero, rows.clone()).map_err(CliError::invalid)?;

    let sources = command.sources()?;
    let source_watch =
        sources.begin(&command.targets()?, &watching.watched_processes(), HostId(0), zero, &rows);
    source_watch.problems.iter().for_each(|problem| say(&format!("warning: {problem}")));
    let mut packs = serde_json::to_string(&source_watch.packs).unwrap_or_default();
    let mut figures = Figures::default();
    let mut is_over = false;
    while !is_over {
        std::thread::sleep(SHOW_EVERY);
        if let Some(more) = source_watch.changed_packs() {
            packs = serde_json::to_string(&more).unwrap_or_default();
        }
        is_over = interrupt.is_set() || lasts.is_some_and(|lasts| zero.elapsed() >= lasts);
        take(&received, &packs, (&mut figures, metrics.as_ref()), file.as_mut());
        is_over |= view.show(&figures, zero.elapsed());
    }
    source_watch.stop();
    watching.stop();
    take(&received, &packs, (&mut figures, metrics.as_ref()), file.as_mut());
    drop(view);
    print(&figures.table(zero.elapsed(), rows.dropped()));
    let Some(file) = file else { return Ok(Exit::Met) };
    file.finish(zero, &rows)
}

/// Takes the received rows. The server's knowledge packs become a fact of the host.
fn take(
    received: &RowReceiver,
    packs: &str,
    (figures, metrics): (&mut Figures, Option<&LiveMetrics>),
    mut file: Option<&mut File<'_>>,
) {
    for mut row in received.try_iter() {
        if let HostRow::Info(info) = &mut row {
            info.facts.insert(PACKS_FACT.into(), packs.to_owned());
        }
        figures.take(&row);
        metrics.iter().for_each(|metrics| metrics.take_host(&row));
        if let Some(file) = &mut file {
            file.writer.write(Row::Host(row));
        }
    }
    if let Some(file) = file {
        file.commit();
    }
}

/// The file that rows go into.
struct File<'a> {
    path: &'a Path,
    writer: RunWriter,
    committed_at: Instant,
}

impl<'a> File<'a> {
    fn create(path: &'a Path) -> Result<Self, CliError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_at = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        let writer = HostFile::create(path, env!("CARGO_PKG_VERSION"), started_at)
            .map_err(|error| CliError::new(Exit::Usage, error))?;
        Ok(Self { path, writer, committed_at: Instant::now() })
    }

    fn commit(&mut self) {
        if self.committed_at.elapsed() < COMMIT_EVERY {
            return;
        }
        self.committed_at = Instant::now();
        if let Err(error) = self.writer.commit() {
            say(&format!("{} cannot be written at the moment: {error}", self.path.display()));
        }
    }

    fn finish(self, zero: Instant, rows: &RowSender) -> Result<Exit, CliError> {
        let lost = self.writer.rows_lost() + rows.dropped();
        let ended_at = RunTime::after_start(zero.elapsed());
        self.writer.finish(Ending::Complete, ended_at).map_err(CliError::invalid)?;
        say(&format!("written to {}", self.path.display()));
        if lost > 0 {
            say(&format!("{lost} rows arrived too fast and are missing from it"));
        }
        Ok(Exit::Met)
    }
}
