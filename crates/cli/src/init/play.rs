//! Plays one viewer of what was found, briefly: what arrives tells codecs and bit rates, and that
//! the scenario works.

use std::time::Duration;

use throng_protocol::recognition::Found;

use super::follow::follow;
use super::played::Played;
use super::text;
use crate::args::Init;
use crate::console::{CliError, Interrupt};
use crate::scenario;
use crate::session::{self, Joins, Prepared};

/// How long: some key frames, some segments.
pub(super) const LASTS: Duration = Duration::from_secs(4);

/// Plays `found` as the scenario will, with one viewer.
pub(super) fn play(
    found: &Found,
    command: &Init,
    interrupt: &Interrupt,
) -> Result<Played, CliError> {
    let duration = format!("run.duration={}s", LASTS.as_secs());
    let common = command.common(&["crowd.size=1", &duration, "run.warm_up=0s"]);
    let text = text::scenario(found, None, command);
    let scenario = scenario::of_text(&text, &common, "what was found")?;
    let plan = scenario.plan();
    let prepared = Prepared::new(&scenario, &plan, &common)?;
    let (handle, received, rows) = session::start_engine(&prepared, Joins::Planned, None)?;
    drop(rows);
    let mut played = Played::default();
    follow(handle, &received, interrupt, |row| played.add(row))?;
    Ok(played)
}
