//! What each command does: a file for each that is made of what other modules do.

mod calibrate;
mod check;
mod compare;
mod completions;
mod consent;
mod decode;
mod doctor;
mod export;
mod ipc;
mod man;
mod price;
mod profile;
mod report;
mod requests;
mod rerun;
mod ring;
mod runs;
mod schema;
mod serve;
mod stage;
mod tap;

use crate::args::Command;
use crate::console::{CliError, Exit};
use crate::kept::KeptCommand;
use crate::{find, fleet, init, matrix, media, run, scenario, watch, worker};

/// Does what the command line asks for.
pub(crate) fn perform(command: &Command) -> Result<Exit, CliError> {
    match command {
        Command::Init(command) => init::init(command),
        Command::Run(command) => match &command.resume {
            Some(run) => fleet::resume(run, &command.common),
            None => scenario::of_file(command)
                .and_then(|(s, common)| run::run(&s, &common, KeptCommand::run(command))),
        },
        Command::View(command) => scenario::of_flags(command)
            .and_then(|(s, common)| run::run(&s, &common, KeptCommand::view(&common))),
        Command::Find(command) => find::find(command),
        Command::Matrix(command) => matrix::matrix(command),
        Command::Prove(command) => matrix::prove(command),
        Command::Compare(command) => compare::compare(command),
        Command::Trend(command) => compare::trend(command),
        Command::Check(command) => check::check(command),
        Command::Report(command) => report::remake(command),
        Command::Export(command) => export::export(command),
        Command::Requests(command) => requests::requests(command),
        Command::Price(command) => price::price(command),
        Command::Runs(command) => runs::runs(command),
        Command::Serve(command) => serve::serve(command),
        Command::Rerun(command) => rerun::rerun(command),
        Command::Worker(command) => worker::worker(command),
        Command::Fleet(command) => fleet::fleet(command),
        Command::Stage(command) => stage::stage(command),
        Command::Calibrate(command) => calibrate::calibrate(command),
        Command::Doctor(command) => doctor::doctor(command),
        Command::Ipc(command) => ipc::measure(command),
        Command::IpcRole => ipc::role(),
        Command::Watch(command) => watch::watch(command),
        Command::Decode(command) => decode::decode(command),
        Command::Tap(command) => tap::tap(command),
        Command::Ring(command) => ring::ring(command),
        Command::Profile(command) => profile::profile(command),
        Command::Media(command) => media::media(command),
        Command::Consent(command) => consent::make(command),
        Command::Schema(command) => schema::schema(command.format),
        Command::Completions(command) => completions::completions(command.shell),
        Command::Man(command) => man::man(&command.folder),
    }
}
