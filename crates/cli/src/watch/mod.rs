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
use throng_observation::host::{HostEvent, HostEventKind, HostId, HostRow};
use throng_observation::masked::masked;
use throng_observation::pack::PACKS_FACT;
use throng_observation::run::{Ending, Row};
use throng_store::{HostFile, RunWriter};
use throng_watch::{LocalHost, RowReceiver, RowSender};

use self::figures::Figures;
use self::view::View;
use crate::args::Watch;
use crate::console::{CliError, Exit, Interrupt, print, say};
use crate::exporter::LiveFigures;
use crate::page::Source;
use crate::served::Outlets;

/// Rows that may wait for the file and the view.
const ROWS_WAITING_MAX: usize = 65_536;
const SHOW_EVERY: Duration = Duration::from_millis(250);
const COMMIT_EVERY: Duration = Duration::from_secs(1);

/// Watches this host.
pub(crate) fn watch(command: &Watch) -> Result<Exit, CliError> {
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    match &command.listen {
        Some(listen) => agent::serve(command, listen.resolved("--listen")?, &interrupt),
        None => here(command, &interrupt),
    }
}

/// On the terminal, and into a file if one is named.
fn here(command: &Watch, interrupt: &Interrupt) -> Result<Exit, CliError> {
    let lasts = command.duration()?;
    let (prometheus, serve) = (command.prometheus.as_ref(), command.serve.as_ref());
    let served = Outlets::take(prometheus, command.otlp.as_deref(), serve)?.of_watch(interrupt)?;
    let live = served.figures();
    let local =
        LocalHost::open(command.config()?).map_err(|error| CliError::new(Exit::Target, error))?;
    let (rows, received) = throng_watch::rows(ROWS_WAITING_MAX);
    let zero = Instant::now();
    let mut file = command.output.as_deref().map(File::create).transpose()?;
    if let Some(file) = &command.output {
        served.shows(|| Source::Watch { file: file.clone(), title: command.title() });
    }
    // The full screen hides what was printed before it.
    let title = [vec![command.title()], served.addresses()].concat().join(" · ");
    let mut view = View::new(command.plain, command.quiet, &title);
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
        for text in served.marks() {
            let at = RunTime::after_start(zero.elapsed());
            // A full queue counts it among the rows that are lost.
            let _ = rows.send(HostRow::Event(mark(at, &text)));
        }
        take(&received, &packs, (&mut figures, live.as_ref()), file.as_mut());
        is_over |= view.show(&figures, zero.elapsed());
    }
    source_watch.stop();
    watching.stop();
    take(&received, &packs, (&mut figures, live.as_ref()), file.as_mut());
    drop(view);
    print(&figures.table(zero.elapsed(), rows.dropped()));
    let Some(file) = file else { return Ok(Exit::Met) };
    served.apart(|| file.finish(zero, &rows))
}

/// What a person marked, without the secrets of its URLs.
fn mark(at: RunTime, text: &str) -> HostEvent {
    HostEvent::new(HostId(0), at, HostEventKind::Mark, masked(text))
}

/// Takes the received rows. The server's knowledge packs become a fact of the host.
fn take(
    received: &RowReceiver,
    packs: &str,
    (figures, live): (&mut Figures, Option<&LiveFigures>),
    mut file: Option<&mut File<'_>>,
) {
    for mut row in received.try_iter() {
        if let HostRow::Info(info) = &mut row {
            info.facts.insert(PACKS_FACT.into(), packs.to_owned());
        }
        figures.take(&row);
        live.iter().for_each(|live| live.take_host(&row));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_holds_no_secret() {
        let mark = mark(RunTime(1), "now http://me:hunter2@h/?token=hunter2");
        assert_eq!(mark.detail, "now http://…@h/?token=…");
    }
}
