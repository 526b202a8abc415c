//! `throng check FILE`: says what a scenario comes to, and sends nothing.

use crate::args::Check;
use crate::exit::Exit;
use crate::{Stop, print, run, scenario};

pub(crate) fn check(command: &Check) -> Result<Exit, Stop> {
    let scenario = scenario::read(&command.file, &scenario::parse_sets(&command.set)?)?;
    let plan = scenario.plan();
    print(&plan.describe());
    for warning in run::warnings(&plan) {
        print(&format!("warning: {warning}\n"));
    }
    Ok(Exit::Met)
}
