//! Hands in the rows that an earlier process of this worker could not deliver.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::rows::{Refused, publish_batch, publish_end};
use crate::bus::{Bus, Subjects};
use crate::spool_folder::{LeftSpool, SpoolFolder};

/// A bus that does not know a run is asked again after so long: it may only come up, and some have
/// lost the run for good.
const UNKNOWN_FOR: Duration = Duration::from_mins(2);

/// The folder of a worker, and its bus.
pub struct LateDelivery {
    pub(super) runtime: Arc<Runtime>,
    pub(super) bus: Bus,
    pub(super) folder: SpoolFolder,
    /// What was said about files that stay.
    pub(super) said: HashSet<String>,
    pub(super) settled: Settled,
}

/// Files that are not read, as nothing would come of it.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// Damaged ones whose whole batches the bus has.
    done: HashSet<PathBuf>,
    /// Those whose runs the bus did not know, and when.
    unknown: HashMap<PathBuf, Instant>,
}

impl Settled {
    fn has(&self, path: &Path, now: Instant) -> bool {
        let is_unknown = |at: &Instant| now.saturating_duration_since(*at) < UNKNOWN_FOR;
        self.done.contains(path) || self.unknown.get(path).is_some_and(is_unknown)
    }
}

impl LateDelivery {
    /// Hands in what is there, one file after the other, each until its end or until the bus does
    /// not take it, while `may_go_on`; says what happened through `say`.
    pub fn all(&mut self, may_go_on: &dyn Fn() -> bool, say: &dyn Fn(&str)) {
        self.folder.remove_old();
        for path in self.folder.files() {
            if !may_go_on() {
                return;
            }
            if self.settled.has(&path, Instant::now()) {
                continue;
            }
            match SpoolFolder::left_in(&path) {
                Ok(Some(spool)) => self.one(spool, may_go_on, say),
                Ok(None) => {}
                Err(what) => self.say_once(&what, say),
            }
        }
    }

    fn say_once(&mut self, what: &str, say: &dyn Fn(&str)) {
        if self.said.insert(what.to_owned()) {
            say(what);
        }
    }

    fn one(&mut self, spool: LeftSpool, may_go_on: &dyn Fn() -> bool, say: &dyn Fn(&str)) {
        let damage = spool.damage();
        let has_rows = !spool.found.batches.is_empty() || spool.found.end.is_some();
        match self.runtime.block_on(publish(&self.bus, &spool, may_go_on)) {
            Ok(()) => {
                let (count, run) = (spool.found.batches.len(), spool.run.clone());
                match damage {
                    Some(damage) => {
                        self.settled.done.insert(spool.path.clone());
                        self.say_once(&format!("{damage}; it is left alone"), say);
                    }
                    None => drop(spool.remove()),
                }
                if has_rows {
                    say(&format!("{count} batches of rows of the run {run} were handed in late"));
                }
            }
            Err(Refused::NoStream) => {
                self.settled.unknown.insert(spool.path.clone(), Instant::now());
                let path = spool.path.display().to_string();
                self.say_once(
                    &format!("{path}: the bus does not know its run; it is kept for a day"),
                    say,
                );
            }
            // The bus is away, or a run begins: it is tried again.
            Err(Refused::NotStored) => {}
        }
    }
}

/// Gives a file's batches to the bus in order, and behind them how the part ended.
async fn publish(
    bus: &Bus,
    spool: &LeftSpool,
    may_go_on: &dyn Fn() -> bool,
) -> Result<(), Refused> {
    let subjects = Subjects::of(&spool.run);
    for batch in &spool.found.batches {
        if !may_go_on() {
            return Err(Refused::NotStored);
        }
        publish_batch(bus, &subjects, spool.worker, batch.number, batch.bytes.clone()).await?;
    }
    if let Some(end) = &spool.found.end {
        publish_end(bus, &subjects, spool.worker, end.clone()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_not_read_again_and_again_while_the_bus_does_not_know_its_run() {
        let (mut settled, now) = (Settled::default(), Instant::now());
        let [unknown, damaged, other] =
            ["0a-0.spool", "0b-0.spool", "0c-0.spool"].map(PathBuf::from);
        settled.unknown.insert(unknown.clone(), now);
        settled.done.insert(damaged.clone());
        let read_at = |path: &Path, later: Duration| !settled.has(path, now + later);
        let seconds = Duration::from_secs;
        assert_eq!([3, 119, 120].map(|s| read_at(&unknown, seconds(s))), [false, false, true]);
        assert!(!read_at(&damaged, seconds(9_999)) && read_at(&other, seconds(0)));
    }
}
