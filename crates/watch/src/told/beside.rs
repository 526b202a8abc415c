//! What is read beside the counters of a host, said before its processes are there: once they are, what is known of them
//! is chosen, and reading begins.

use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_observation::host::HostId;
use throng_observation::pack::Pack;

use super::{Told, ToldConfig, ToldError};
use crate::local::Processes;
use crate::scrape::Allowed;
use crate::{RowSender, Target, endpoint, packs};

/// How long the processes of a target are waited for, so that what is known of them can be chosen.
const FOUND_WITHIN: Duration = Duration::from_secs(1);

/// What is read of a host beside its counters, whoever its processes turn out to be.
#[derive(Clone)]
pub struct Beside {
    /// Logs, as in [`ToldConfig::logs`].
    pub logs: Vec<String>,
    /// Access logs.
    pub access_logs: Vec<String>,
    /// Endpoints, each as [`endpoint`] reads it.
    pub metrics: Vec<String>,
    /// All that is known of servers; what is of this one is chosen by its processes.
    pub packs: Vec<Pack>,
    /// The server's pack by name, rather than by its processes.
    pub pack: Option<String>,
    /// Which addresses may be asked, and may tell.
    pub allowed: Allowed,
}

/// What [`Beside::begin`] came to.
#[derive(Debug)]
pub struct Listened {
    /// What is known of the server.
    pub packs: Vec<Pack>,
    /// What is read of it; `None` where nothing was asked for.
    pub told: Option<Told>,
    /// What is wrong with what was asked for; everything else goes on.
    pub problem: Option<String>,
}

impl Default for Beside {
    /// Nothing is read; the packs that throng brings along are known.
    fn default() -> Self {
        Self {
            logs: Vec::new(),
            access_logs: Vec::new(),
            metrics: Vec::new(),
            packs: packs::built_in(),
            pack: None,
            allowed: Arc::new(|address| Err(format!("{address} was not allowed to be asked"))),
        }
    }
}

impl std::fmt::Debug for Beside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let packs: Vec<_> = self.packs.iter().map(|pack| &pack.pack).collect();
        let Self { logs, access_logs, pack, .. } = self;
        // Endpoints may hold where secrets are kept.
        let debug = (logs, access_logs, self.metrics.len(), packs, pack);
        f.debug_tuple("Beside").field(&debug).finish()
    }
}

impl Beside {
    /// Whether anything is wrong with it that does not depend on the processes.
    ///
    /// # Errors
    /// With what is wrong, and the mend.
    pub fn check(&self) -> Result<(), String> {
        if let Some(name) =
            self.pack.as_ref().filter(|name| self.packs.iter().all(|pack| pack.pack != **name))
        {
            return Err(format!("there is no knowledge pack `{name}`"));
        }
        self.metrics
            .iter()
            .try_for_each(|text| endpoint(text, &self.packs).map(drop).map_err(|error| error.to_string()))
    }

    /// Waits a moment for the processes, chooses what is known of them, and begins to read. `zero` is the moment of the
    /// run's first intended join.
    pub fn begin(
        &self,
        targets: &[Target],
        processes: &Processes,
        host: HostId,
        zero: Instant,
        rows: &RowSender,
    ) -> Listened {
        let names = names(targets, processes);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let packs = packs::of_server(&self.packs, self.pack.as_deref(), &names);
        let unknown = self.pack.as_ref().filter(|name| packs.iter().all(|pack| pack.pack != **name));
        let mut problem = unknown.map(|name| format!("there is no knowledge pack `{name}`"));
        let config = ToldConfig {
            logs: self.logs.clone(),
            access_logs: self.access_logs.clone(),
            metrics: self.metrics.clone(),
            packs: packs.clone(),
        };
        let is_empty = config.logs.is_empty() && config.access_logs.is_empty() && config.metrics.is_empty();
        let told = if is_empty {
            None
        } else {
            let refused = |error: ToldError| {
                problem = Some(format!("what it tells of itself is not read: {error}"));
            };
            Told::begin(&config, host, zero, rows, &self.allowed).map_err(refused).ok()
        };
        Listened { packs, told, problem }
    }
}

/// By what names a server goes: its target's, and those of its processes if they are there.
fn names(targets: &[Target], processes: &Processes) -> Vec<String> {
    let until = Instant::now() + FOUND_WITHIN;
    while !targets.is_empty() && processes.now().is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    let of_target = |target: &Target| match target {
        Target::Process(name) => Some(name.clone()),
        Target::Unit(name) => Some(name.trim_end_matches(".service").to_owned()),
        Target::Command(words) => words.first().and_then(|word| word.rsplit('/').next()).map(str::to_owned),
        Target::Cgroup(_) | Target::Pid(_) | Target::Port(_) => None,
    };
    let found = processes.now().into_iter().map(|process| process.name);
    found.chain(targets.iter().filter_map(of_target)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_chosen_by_the_target_and_what_is_wrong_is_said() {
        let (rows, _receiver) = crate::rows(100);
        let nobody = Processes::default();
        let begin = |beside: &Beside| {
            beside.begin(&[Target::Process("janus".into())], &nobody, HostId(0), Instant::now(), &rows)
        };
        let usual = begin(&Beside::default());
        assert_eq!(usual.packs[0].pack, "janus");
        assert!(usual.told.is_none() && usual.problem.is_none());
        let wrong = Beside { pack: Some("jannus".into()), ..Beside::default() };
        assert!(begin(&wrong).problem.unwrap().contains("`jannus`") && wrong.check().is_err());
        let wrong = Beside { metrics: vec!["what+http://h/".into()], ..Beside::default() };
        assert!(begin(&wrong).problem.unwrap().contains("is not known") && wrong.check().is_err());
        let named = Beside { pack: Some("nginx".into()), ..Beside::default() };
        assert_eq!(begin(&named).packs[0].pack, "nginx");
    }
}
