use crate::args;
use crate::exit::Exit;
use crate::Stop;
pub(crate) fn calibrate(_: &args::Calibrate) -> Result<Exit, Stop> { Ok(Exit::Met) }
