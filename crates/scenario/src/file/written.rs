//! Writes a scenario as TOML: defaults written out, secrets redacted.

use super::{Duration, File, OneOrMany};
use crate::keys::Table;
use crate::scenario::Scenario;
use crate::target::TargetTable;
use crate::units::write_duration;
use crate::watch::WatchTable;

impl Scenario {
    /// The scenario as TOML, with defaults and overrides, secrets redacted (`…`).
    #[must_use]
    pub fn to_toml(&self) -> String {
        // A tree of text, numbers and tables: serialisation does not fail.
        toml::to_string(&file(self)).unwrap_or_default()
    }
}

fn file(scenario: &Scenario) -> File {
    let Scenario {
        target,
        crowd,
        run,
        stream,
        conversation,
        room,
        watch,
        tap,
        canary,
        objectives,
        output,
        caps,
        source: _,
    } = scenario;
    File {
        objectives: objectives.iter().map(|objective| objective.text.clone()).collect(),
        target: Table::of(&TargetTable::of(target)),
        crowd: match crowd.as_slice() {
            [only] => OneOrMany::One(Table::of(only)),
            several => OneOrMany::Many(several.iter().map(Table::of).collect()),
        },
        run: Table::of(run),
        stream: Table::of(stream),
        conversation: conversation.as_ref().map(Table::of),
        room: room.as_ref().map(Table::of),
        watch: watch.iter().map(|watch| Table::of(&WatchTable::of(watch))).collect(),
        tap: tap.as_ref().map(Table::of),
        canary: canary.as_ref().map(Table::of),
        output: Table::of(output),
        caps: Table::of(caps),
    }
}

pub(crate) fn duration(duration: std::time::Duration) -> Duration {
    Duration(write_duration(duration))
}
