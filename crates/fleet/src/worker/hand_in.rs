//! Hands in the rows that an earlier process of this worker could not deliver.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Runtime;

use super::rows::{Refused, publish_batch, publish_end};
use crate::bus::{Bus, Subjects};
use crate::spool_folder::{LeftSpool, SpoolFolder};

/// The folder of a worker, and its bus.
pub struct HandIn {
    pub(super) runtime: Arc<Runtime>,
    pub(super) bus: Bus,
    pub(super) folder: SpoolFolder,
    /// What was said about files that stay.
    pub(super) said: HashSet<String>,
    /// Damaged files whose whole batches the bus has.
    pub(super) done: HashSet<PathBuf>,
}

impl HandIn {
    /// Hands in what is there, each file until its end or until the bus does not take it; says what happened through `say`.
    pub fn all(&mut self, say: &dyn Fn(&str)) {
        let (left, wrong) = self.folder.left();
        wrong.into_iter().for_each(|what| self.say_once(&what, say));
        for spool in left {
            if !self.done.contains(&spool.path) {
                self.one(spool, say);
            }
        }
    }

    fn say_once(&mut self, what: &str, say: &dyn Fn(&str)) {
        if self.said.insert(what.to_owned()) {
            say(what);
        }
    }

    fn one(&mut self, spool: LeftSpool, say: &dyn Fn(&str)) {
        let damage = spool.damage();
        let has_rows = !spool.found.batches.is_empty() || spool.found.end.is_some();
        match self.runtime.block_on(publish(&self.bus, &spool)) {
            Ok(()) => {
                let (count, run) = (spool.found.batches.len(), spool.run.clone());
                match damage {
                    Some(damage) => {
                        self.done.insert(spool.path.clone());
                        self.say_once(&format!("{damage}; it is left alone"), say);
                    }
                    None => drop(spool.remove()),
                }
                if has_rows {
                    say(&format!("{count} batches of rows of the run {run} were handed in late"));
                }
            }
            Err(Refused::NoStream) => {
                let path = spool.path.display().to_string();
                self.say_once(&format!("{path}: the bus does not know its run; it is kept for a day"), say);
            }
            // The bus is away: it is tried again.
            Err(Refused::NotStored) => {}
        }
    }
}

/// Gives a file's batches to the bus in order, and behind them how the part ended.
async fn publish(bus: &Bus, spool: &LeftSpool) -> Result<(), Refused> {
    let subjects = Subjects::of(&spool.run);
    for batch in &spool.found.batches {
        publish_batch(bus, &subjects, spool.worker, batch.number, batch.bytes.clone()).await?;
    }
    if let Some(end) = &spool.found.end {
        publish_end(bus, &subjects, spool.worker, end.clone()).await?;
    }
    Ok(())
}
