//! The sources that a user configures before the processes run. Once the processes are known, the
//! packs are chosen by their names.

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_observation::host::HostId;
use throng_observation::pack::Pack;

use super::SourceReaders;
use super::source_watch::{Choice, SourceWatch};
use crate::local::WatchedProcesses;
use crate::reading::{Reading, ReadingWriter, clock_from};
use crate::scrape::AddressCheck;
use crate::{RowSender, Target, endpoint, packs};

/// How long to wait for a target's first process before the packs are chosen.
const FOUND_WITHIN: Duration = Duration::from_secs(1);

/// The logs, access logs, endpoints and packs to use for a host, independent of the processes that
/// turn up.
#[derive(Clone)]
pub struct SourceConfig {
    /// Logs, as in [`LogSource`](crate::logs::LogSource).
    pub logs: Vec<String>,
    /// Access logs.
    pub access_logs: Vec<String>,
    /// Endpoints, each as [`endpoint`] reads it.
    pub metrics: Vec<String>,
    /// All available packs; the server's own are chosen by the names of its processes.
    pub packs: Vec<Pack>,
    /// The name of the server's pack; it overrides the choice by process names.
    pub pack: Option<String>,
    /// Which addresses may be scraped, and may post events.
    pub allowed: AddressCheck,
}

impl Default for SourceConfig {
    /// Reads nothing; the built-in packs are available.
    fn default() -> Self {
        Self {
            logs: Vec::new(),
            access_logs: Vec::new(),
            metrics: Vec::new(),
            packs: packs::built_in(),
            pack: None,
            allowed: Arc::new(|address| Err(format!("{address} is not allowed"))),
        }
    }
}

impl std::fmt::Debug for SourceConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let packs: Vec<_> = self.packs.iter().map(|pack| &pack.pack).collect();
        let Self { logs, access_logs, pack, .. } = self;
        // Endpoint texts may name where secrets are stored.
        let debug = (logs, access_logs, self.metrics.len(), packs, pack);
        f.debug_tuple("SourceConfig").field(&debug).finish()
    }
}

impl SourceConfig {
    /// Checks everything that does not depend on the processes.
    ///
    /// # Errors
    /// With what is wrong and how to fix it.
    pub fn check(&self) -> Result<(), String> {
        if let Some(name) =
            self.pack.as_ref().filter(|name| self.packs.iter().all(|pack| pack.pack != **name))
        {
            return Err(format!("unknown knowledge pack `{name}`"));
        }
        self.metrics.iter().try_for_each(|text| {
            endpoint(text, &self.packs).map(drop).map_err(|error| error.to_string())
        })
    }

    /// Waits briefly for the processes, chooses the packs by their names, and starts reading.
    /// Processes that start later add their packs then. `zero` is the moment of the run's first
    /// intended join.
    pub fn begin(
        &self,
        targets: &[Target],
        processes: &WatchedProcesses,
        host: HostId,
        zero: Instant,
        rows: &RowSender,
    ) -> SourceWatch {
        wait_for(targets, processes);
        let mut choice = Choice::new(&self.packs, self.pack.as_deref(), targets);
        choice.add_processes(processes);
        let packs = choice.packs();
        let readers =
            SourceReaders::begin(self, processes.outputs(), packs.clone(), host, zero, rows);
        let unknown =
            self.pack.as_ref().filter(|name| packs.iter().all(|pack| pack.pack != **name));
        let mut problems: Vec<String> =
            unknown.map(|name| format!("unknown knowledge pack `{name}`")).into_iter().collect();
        let mut writer = ReadingWriter::new(host, rows.clone());
        writer.write(clock_from(zero)(), problems.iter().map(Reading::unreadable));
        problems.extend(readers.failures());
        SourceWatch::follow(packs, problems, (readers, choice, processes.clone()), writer)
    }
}

/// Waits for the first process, at most [`FOUND_WITHIN`].
fn wait_for(targets: &[Target], processes: &WatchedProcesses) {
    let until = Instant::now() + FOUND_WITHIN;
    while !targets.is_empty() && processes.now().is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_are_chosen_by_the_target_and_errors_are_reported() {
        let (rows, _receiver) = crate::rows(100);
        let nobody = WatchedProcesses::default();
        let begin = |config: &SourceConfig| {
            config.begin(
                &[Target::Process("janus".into())],
                &nobody,
                HostId(0),
                Instant::now(),
                &rows,
            )
        };
        let usual = begin(&SourceConfig::default());
        assert_eq!(usual.packs[0].pack, "janus");
        assert!(usual.problems.is_empty());
        let wrong = SourceConfig { pack: Some("jannus".into()), ..SourceConfig::default() };
        assert!(begin(&wrong).problems[0].contains("`jannus`") && wrong.check().is_err());
        let wrong =
            SourceConfig { metrics: vec!["what+http://h/".into()], ..SourceConfig::default() };
        assert!(begin(&wrong).problems[0].contains("unknown kind") && wrong.check().is_err());
        let named = SourceConfig { pack: Some("nginx".into()), ..SourceConfig::default() };
        assert_eq!(begin(&named).packs[0].pack, "nginx");
    }
}
