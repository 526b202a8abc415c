//! `throng check`: prints the plan of a scenario, and sends nothing.

use crate::args::Check;
use crate::console::{CliError, Exit};
use crate::{scenario, session};

pub(crate) fn check(command: &Check) -> Result<Exit, CliError> {
    let overrides = scenario::parse_sets(&command.set)?;
    session::describe(&scenario::of_file_or_url(&command.scenario, overrides)?.plan(), true)
}
