//! Asks the server which protocol it has. The one who asks is a participant, under the rules of
//! every run: permission, consent, TLS.

use std::sync::Arc;
use std::sync::mpsc;

use throng_engine::{Join, ParticipantFactory};
use throng_observation::run::Ending;
use throng_protocol::participant::Participant;
use throng_protocol::recognition::{CONNECT_WITHIN, Given, Prober, Tried};

use super::follow::follow;
use super::text;
use crate::args::Init;
use crate::console::{CliError, Interrupt};
use crate::{scenario, session};

/// All requests together take less: the server has 5 s for each.
const LASTS: &str = "90s";

/// What was asked, and answered, until a protocol was found.
pub(super) fn look(
    given: &Given,
    command: &Init,
    interrupt: &Interrupt,
) -> Result<Vec<Tried>, CliError> {
    let target = text::target(&given.neutral_target(), None, command);
    let one = format!("{target}\n[crowd]\nsize = 1\n\n[run]\nduration = \"{LASTS}\"\n");
    let common = command.common(&[]);
    let scenario = scenario::of_text(&one, &common, "the command line")?;
    let plan = scenario.plan();
    let prepared = session::Prepared::new(&scenario, &plan, &common)?;
    let (tell, told) = mpsc::channel();
    let given = given.clone();
    let factory: Arc<dyn ParticipantFactory> = Arc::new(move |_: &Join| {
        Box::new(Prober::new(given.clone(), tell.clone())) as Box<dyn Participant>
    });
    let (handle, rows) = session::start_engine_of(&prepared, factory, CONNECT_WITHIN)?;
    let end = follow(handle, &rows, interrupt, drop)?;
    match (end.ending, end.why) {
        (Ending::Aborted | Ending::Interrupted, Some(why)) => Err(CliError::target(why)),
        (Ending::Aborted | Ending::Interrupted, None)
        | (Ending::Complete | Ending::Unfinished, _) => Ok(told.try_iter().collect()),
    }
}
